"""How vLLM words the refusal of a request that is longer than max_model_len, from 0.4 to 0.32.

The wording changed often, the phrases around each figure did not; so each figure is looked for on its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

LOOKED_AT_CHARACTERS = 4000
_COUNT = r"(\d{1,12})"

_LIMIT = re.compile(
    rf"maximum (?:context|model) length (?:is|of) {_COUNT}|cannot be greater than max_model_len\s?=\s?{_COUNT}"
)
_PROMPT = re.compile(
    rf"(?:prompt contains|request has) (at least )?{_COUNT} input tokens"
    rf"|requested {_COUNT} tokens in the (?:messages|input|prompt)"
    rf"|{_COUNT} in the (?:messages|prompt)"
    rf"|prompt \(length {_COUNT}\)"
)
_ASKED = re.compile(
    rf"requested {_COUNT} output tokens"
    rf"|{_COUNT} output tokens were requested"
    rf"|is too large: {_COUNT}"
    rf"|{_COUNT} in the completion"
    rf"|max_tokens\s?=\s?{_COUNT} cannot be greater"
)
_TOO_MANY_CHARACTERS = re.compile(r"prompt contains \d{1,12} characters")


@dataclass(frozen=True, slots=True)
class Refusal:
    """One refusal for length, as far as the engine says. `at_least` marks `needed_tokens` as a lower bound."""

    limit_tokens: int
    prompt_tokens: int | None
    asked_tokens: int | None
    at_least: bool

    @property
    def needed_tokens(self) -> int | None:
        """The limit that would have admitted the request, or None where no size is stated.

        Prompt plus declared output where the message counts both (before 0.32), else the prompt. "Contains 4079 input
        tokens, 86 output tokens were requested" needs 4,165. A prompt refused by its characters, before it was
        tokenised, needs more than the limit.
        """
        if self.prompt_tokens is None and self.asked_tokens is None:
            return self.limit_tokens + 1 if self.at_least else None
        return (self.prompt_tokens or 0) + (self.asked_tokens or 0)


def length_refusal(message: str) -> Refusal | None:
    """Read an error message; None when it is not a refusal for length.

    "max_tokens must be at least 1, got 0" (0.32, a prompt of exactly the limit) is not taken for one: a client that
    asks for 0 tokens gets the same words.
    """
    text = message[:LOOKED_AT_CHARACTERS]
    limit = _figure(_LIMIT, text)
    if limit is None:
        return None
    prompt, asked = _figure(_PROMPT, text), _figure(_ASKED, text)
    without_prompt = prompt is None and (asked is not None or _TOO_MANY_CHARACTERS.search(text) is not None)
    return Refusal(limit, prompt, asked, at_least="at least" in text or without_prompt)


def _figure(phrases: re.Pattern[str], text: str) -> int | None:
    found = phrases.search(text)
    if found is None:
        return None
    return next(int(group) for group in found.groups() if group is not None and group.isdigit())
