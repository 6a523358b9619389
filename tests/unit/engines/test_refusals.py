"""Over-length refusals in the words of engines other than vLLM, composed from their sources."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.engines.refusals import length_refusal
from advisor.engines.vllm.refusals import Refusal

SGLANG = "The input (150000 tokens) is longer than the model's context length (131072 tokens)."
SGLANG_TOTAL = (
    "Requested token count exceeds the model's maximum context length of 64000 tokens. You requested a total of 71897 "
    "tokens: 7897 tokens from the input messages and 64000 tokens for the completion. Please reduce the number"
)
SGLANG_POOL = "Input length (9000 tokens) exceeds the maximum allowed length (8191 tokens). Use a shorter one"
TGI = "Input validation error: `inputs` must have less than 4095 tokens. Given: 6000"
TGI_TOTAL = (
    "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 3000 `inputs` tokens and 2000 "
    "`max_new_tokens`"
)
LLAMACPP = "request (49509 tokens) exceeds the available context size (49152 tokens), try increasing it"
VLLM = (
    "This model's maximum context length is 8192 tokens. However, you requested 100 output tokens and your prompt "
    "contains 9000 input tokens"
)


@pytest.mark.parametrize(
    ("message", "refusal", "needed"),
    [
        (SGLANG, Refusal(131_072, 150_000, None, at_least=False), 150_000),
        (SGLANG_TOTAL, Refusal(64_000, 7897, 64_000, at_least=False), 71_897),
        (SGLANG_POOL, Refusal(8191, 9000, None, at_least=False), 9000),
        (TGI, Refusal(4095, 6000, None, at_least=False), 6000),
        (TGI_TOTAL, Refusal(4096, 3000, 2000, at_least=False), 5000),
        (LLAMACPP, Refusal(49_152, 49_509, None, at_least=False), 49_509),
        (VLLM, Refusal(8192, 9000, 100, at_least=False), 9100),
    ],
)
def test_the_figures_of_a_refusal(message: str, refusal: Refusal, needed: int) -> None:
    assert length_refusal(message) == refusal
    assert refusal.needed_tokens == needed


@pytest.mark.parametrize(
    "message",
    ["Model is overloaded", "The request queue is full.", "Request failed during generation", "exceeds", ""],
)
def test_other_errors_are_no_refusals_for_length(message: str) -> None:
    assert length_refusal(message) is None


@given(st.text(alphabet="inputs` must have less than(0123456789 tokens). Given:<=max_new_"))
def test_foreign_text_is_read_without_harm(message: str) -> None:
    found = length_refusal(message)
    assert found is None or found.limit_tokens >= 0
