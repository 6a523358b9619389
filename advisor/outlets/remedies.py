"""What to connect so that more can be told: the options that the reasons of Unknown facts name, the most useful first.

An Unknown says what would resolve it, `no engine metrics over time: give --prometheus`. Of all options that undecided
rules ask for, the one that most of them ask for comes first; of several alike, the one that tells most.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

ORDER = ("--prometheus", "--logs", "--startup-log", "--set", "--slo-", "--sweep", "--model-config")
"""Where a newcomer should begin: load and latency over time, then lengths, then settings, objectives and the model."""
_OPTION = re.compile("|".join(map(re.escape, ORDER)))


def options(reason: str) -> frozenset[str]:
    """The options that a reason names, those of one family (`--slo-tpot`, `--slo-ttft`) as one."""
    return frozenset(_OPTION.findall(reason))


def usefulness(reason: str, wanted: Mapping[str, int]) -> tuple[int, int]:
    """A sort key, the most useful first: by the rules that wait for its best option (`wanted`), then by ORDER.

    A reason that names no option comes last: nobody can do anything about it at once.
    """
    return min(((-wanted[option], ORDER.index(option)) for option in options(reason)), default=(1, len(ORDER)))
