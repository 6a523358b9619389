"""Templates of Helm and the like that were not rendered: what they would fill in is marked, never guessed."""

from __future__ import annotations

import re

from advisor.engines.command_line import untold

# Bounded, so that the search stays linear in the text.
_FILLED = re.compile(r"\{\{-?([^{}]{0,500})\}\}")
_ALONE = re.compile(r"(?m)^[ \t]*(?:\{\{[^{}]{0,500}\}\}[ \t]*)+$")
_NO_BREAK = "\N{NO-BREAK SPACE}"
_UNSAFE = re.compile(r"[\s\"'#:\[\]{},&*!|>%@`\\]+")


def marked(text: str) -> tuple[str, bool]:
    """The text with `{{ … }}` as marks that YAML reads as words, and whether there were any.

    Lines that hold nothing else direct the template; they are left empty, and what they decide is not known.

    >>> marked("replicas: {{ .Values.replicas }}")
    ('replicas: ⟦.Values.replicas⟧', True)
    """
    if "{{" not in text:
        return text, False
    return _FILLED.sub(lambda match: untold(_UNSAFE.sub(_NO_BREAK, match[1].strip(" -"))), _ALONE.sub("", text)), True
