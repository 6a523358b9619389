"""Messages as vLLM words them, by version; the figures are those in the message."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.engines.vllm.refusals import Refusal, length_refusal

LIMIT = "This model's maximum context length is 2048 tokens"

WORDINGS = {
    "0.6 messages and completion": (
        f"{LIMIT}. However, you requested 2600 tokens (2100 in the messages, 500 in the completion). Please reduce",
        Refusal(2048, 2100, 500, at_least=False),
        2600,
    ),
    "0.6 messages alone": (
        f"{LIMIT}. However, you requested 2100 tokens in the messages, Please reduce the length of the messages.",
        Refusal(2048, 2100, None, at_least=False),
        2100,
    ),
    "0.10.1 output too large": (
        f"'max_tokens' or 'max_completion_tokens' is too large: 500. {LIMIT} and your request has 2000 input tokens",
        Refusal(2048, 2000, 500, at_least=False),
        2500,
    ),
    "0.10.1 prompt too long": (
        f"{LIMIT}. However, your request has 2100 input tokens. Please reduce the length of the input messages.",
        Refusal(2048, 2100, None, at_least=False),
        2100,
    ),
    "0.18 both": (
        f"{LIMIT}. However, you requested 86 output tokens and your prompt contains 2000 input tokens, for a total of",
        Refusal(2048, 2000, 86, at_least=False),
        2086,
    ),
    "0.18 tokenised up to the limit": (
        f"{LIMIT}. However, you requested 86 output tokens and your prompt contains at least 2049 input tokens, for",
        Refusal(2048, 2049, 86, at_least=True),
        2135,
    ),
    "other order": (
        f"{LIMIT}, but 86 output tokens were requested and the prompt contains 2000 input tokens, for a total of 2086",
        Refusal(2048, 2000, 86, at_least=False),
        2086,
    ),
    "0.32 prompt": (
        f"{LIMIT}. However, your prompt contains 2100 input tokens, which exceeds this limit even without any output",
        Refusal(2048, 2100, None, at_least=False),
        2100,
    ),
    "0.32 tokenised up to the limit": (
        f"{LIMIT}. However, your prompt contains at least 2049 input tokens, which exceeds this limit even without",
        Refusal(2048, 2049, None, at_least=True),
        2049,
    ),
    "0.32 characters": (
        f"{LIMIT}. However, your prompt contains 36028 characters (more than 26624 characters, which is the upper bo",
        Refusal(2048, None, None, at_least=True),
        2049,
    ),
    "0.32 declared output alone": (
        "max_tokens=5000 cannot be greater than max_model_len=2048. Please request fewer output tokens.",
        Refusal(2048, None, 5000, at_least=True),
        5000,
    ),
    "engine side": (
        "The decoder prompt (length 12324) is longer than the maximum model length of 8192. Make sure that",
        Refusal(8192, 12324, None, at_least=False),
        12324,
    ),
    "limit only": (
        "Requested token count exceeds the model's maximum context length of 4096 tokens.",
        Refusal(4096, None, None, at_least=False),
        None,
    ),
    "inside a gateway's own words": (
        f"BadRequestError: OpenAIException - {LIMIT}. However, your request has 2100 input tokens. Received Model=x",
        Refusal(2048, 2100, None, at_least=False),
        2100,
    ),
}


@pytest.mark.parametrize(("message", "expected", "needed"), WORDINGS.values(), ids=WORDINGS.keys())
def test_it_reads_every_wording(message: str, expected: Refusal, needed: int | None) -> None:
    refusal = length_refusal(message)
    assert refusal == expected
    assert refusal.needed_tokens == needed


@pytest.mark.parametrize(
    "message",
    [
        "",
        "max_tokens must be at least 1, got 0",
        "The engine is currently busy and cannot accept new requests",
        "temperature must be non-negative, got -1",
        "The model `acme/x` does not exist.",
    ],
)
def test_it_leaves_other_errors_alone(message: str) -> None:
    assert length_refusal(message) is None


@given(st.text(max_size=300), st.integers(1, 10**9), st.integers(1, 10**9))
def test_it_finds_the_figures_in_any_surroundings(noise: str, limit: int, prompt: int) -> None:
    message = (
        f"{noise} This model's maximum context length is {limit} tokens. However, "
        f"your prompt contains {prompt} input tokens, which exceeds this limit. {noise}"
    )
    refusal = length_refusal(message)
    assert refusal is not None
    assert (refusal.limit_tokens, refusal.prompt_tokens) == (limit, prompt)


def test_it_does_not_read_on_for_ever() -> None:
    assert length_refusal("x" * 1_000_000 + LIMIT) is None
