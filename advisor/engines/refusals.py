"""How engines word the refusal of a request that is longer than their limit, whichever engine answered.

A log does not always say which engine served, and what one engine says no other does, so all wordings are tried.
"""

from __future__ import annotations

import re

from .vllm import refusals as vllm
from .vllm.refusals import LOOKED_AT_CHARACTERS, Refusal

_COUNT = r"\d{1,12}"

_WORDINGS = (
    # SGLang, prompt and declared output: "Requested token count exceeds the model's maximum context length of 64000
    # tokens. You requested a total of 71897 tokens: 7897 tokens from the input messages and 64000 tokens for the ..."
    (
        rf"maximum context length of (?P<limit>{_COUNT}) tokens\. You requested a total of {_COUNT} tokens: "
        rf"(?P<prompt>{_COUNT}) tokens from the input messages and (?P<asked>{_COUNT}) tokens for the completion"
    ),
    rf"[Ii]nput \((?P<prompt>{_COUNT}) tokens\) is longer than the model's context length \((?P<limit>{_COUNT}) tokens",
    rf"Input length \((?P<prompt>{_COUNT}) tokens\) exceeds the maximum allowed length \((?P<limit>{_COUNT}) tokens",
    # TGI
    (
        rf"inputs`? tokens \+ `?max_new_tokens`? must be <= (?P<limit>{_COUNT})\. "
        rf"Given: (?P<prompt>{_COUNT}) `?inputs`? tokens and (?P<asked>{_COUNT})"
    ),
    rf"inputs`? must have less than (?P<limit>{_COUNT}) tokens\. Given: (?P<prompt>{_COUNT})",
    # llama.cpp's server
    rf"request \((?P<prompt>{_COUNT}) tokens\) exceeds the available context size \((?P<limit>{_COUNT}) tokens",
)
_PATTERNS = tuple(re.compile(wording) for wording in _WORDINGS)


def length_refusal(message: str) -> Refusal | None:
    """Read an error message; None when it is not a refusal for length.

    SGLang's "requested a total of 71897 tokens: 7897 tokens from the input messages and 64000 tokens for the
    completion" needs 71,897.
    """
    text = message[:LOOKED_AT_CHARACTERS]
    for pattern in _PATTERNS:
        if found := pattern.search(text):
            figures = found.groupdict()
            asked = figures.get("asked")
            return Refusal(int(figures["limit"]), int(figures["prompt"]), int(asked) if asked else None, at_least=False)
    return vllm.length_refusal(message)
