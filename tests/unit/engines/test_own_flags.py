"""Flags under each engine's own names: translated, rendered, checked against what the engine refuses at start."""

from __future__ import annotations

import pytest

from advisor.domain.evidence import FlagValue
from advisor.engines import FLAG_NAMES, canonical, flags_of, normalise


@pytest.mark.parametrize(
    ("engine", "own", "value", "expected"),
    [
        ("sglang", "context_length", "32k", ("max_model_len", 32_000)),
        ("sglang", "max_running_requests", 64, ("max_num_seqs", 64)),
        ("sglang", "page_size", 16, ("block_size", 16)),
        # The same words mean the pool to SGLang and the length limit to TGI.
        ("sglang", "max_total_tokens", 400_000, ("max_total_tokens", 400_000)),
        ("tgi", "max_total_tokens", 8192, ("max_model_len", 8192)),
        ("tgi", "max_batch_prefill_tokens", 4096, ("max_batch_prefill_tokens", 4096)),
        ("trtllm", "max_batch_size", 64, ("max_num_seqs", 64)),
        ("llamacpp", "parallel", 4, ("max_num_seqs", 4)),
        ("vllm", "max_num_seqs", 64, ("max_num_seqs", 64)),
        ("dynamo", "max_num_seqs", 64, ("max_num_seqs", 64)),
        ("sglang", "max_num_seqs", 64, ("max_num_seqs", 64)),
    ],
)
def test_own_names_become_canonical_ones(
    engine: str, own: str, value: FlagValue, expected: tuple[str, FlagValue]
) -> None:
    assert canonical(engine, own, value) == expected


@pytest.mark.parametrize(
    ("engine", "knob", "written"),
    [
        ("sglang", "max_model_len", "--context-length 12288"),
        ("sglang", "max_num_seqs", "--max-running-requests 12288"),
        ("tgi", "max_model_len", "--max-total-tokens 12288"),
        ("trtllm", "max_num_seqs", "--max_batch_size 12288"),
        ("trtllm", "max_model_len", "--max_seq_len 12288"),
        ("vllm", "max_num_seqs", "--max-num-seqs 12288"),
    ],
)
def test_advice_is_spelled_in_the_engines_own_words(engine: str, knob: str, written: str) -> None:
    flags = flags_of(engine)
    assert flags is not None
    assert flags.lacks(knob) is None
    assert flags.render_flag(knob, 12288) == written


@pytest.mark.parametrize(
    ("engine", "knob", "reason"),
    [
        ("sglang", "max_num_batched_tokens", "--chunked-prefill-size bounds the prompt tokens of one prefill pass"),
        ("tgi", "max_num_seqs", "TGI seats by tokens, not by sequences"),
        ("tgi", "max_num_batched_tokens", "--max-batch-prefill-tokens"),
        ("llamacpp", "max_model_len", "ctx-size / parallel"),
        ("llamacpp", "max_num_seqs", "--parallel must grow together with --ctx-size"),
        ("sglang", "async_scheduling", "has no flag for async_scheduling"),
        ("vllm", "replicas", "is no flag of vLLM"),
    ],
)
def test_a_knob_without_a_flag_says_why_and_is_never_rendered(engine: str, knob: str, reason: str) -> None:
    flags = flags_of(engine)
    assert flags is not None
    assert reason in (flags.lacks(knob) or "")
    with pytest.raises(ValueError, match="no flag of"):
        flags.render_flag(knob, 1)


@pytest.mark.parametrize(
    ("engine", "flags", "pool", "lines"),
    [
        ("sglang", {"max_num_seqs": 200}, 400, ()),
        (
            "sglang",
            {"max_num_seqs": 201},
            400,
            ("max_running_requests 201 exceeds half of the 400 tokens in the pool",),
        ),
        ("sglang", {"chunked_prefill_size": 100, "block_size": 64}, None, ("chunked_prefill_size 100 is no multiple",)),
        ("sglang", {"chunked_prefill_size": -1, "block_size": 64}, None, ()),
        ("tgi", {"max_model_len": 4096, "max_input_tokens": 4095}, None, ()),
        ("tgi", {"max_model_len": 4096, "max_input_tokens": 4096}, None, ("max_input_tokens 4,096 is not below",)),
        ("tgi", {"max_model_len": 4096}, 4000, ("max_total_tokens 4,096 exceeds the 4,000 tokens",)),
        ("tgi", {"max_model_len": 4096, "max_batch_total_tokens": 4096}, 4000, ()),
        ("trtllm", {"max_model_len": 4096}, 4000, ("max_seq_len 4,096 exceeds the KV pool 4,000",)),
        ("llamacpp", {"max_num_seqs": 4}, 10, ()),
    ],
)
def test_what_the_engine_would_refuse_is_found(
    engine: str, flags: dict[str, FlagValue], pool: int | None, lines: tuple[str, ...]
) -> None:
    own = flags_of(engine)
    assert own is not None
    found = own.violations(flags, None, pool_tokens=pool)
    assert len(found) == len(lines)
    assert all(line in said for line, said in zip(lines, found, strict=True))


def test_a_stated_flag_is_read_before_the_engine_is_known() -> None:
    assert normalise("max_running_requests", "64") == 64
    assert normalise("chunked_prefill_size", "8192") == 8192
    assert normalise("mem_fraction_static", "0.88") == 0.88
    assert normalise("enable_mixed_chunk", True) is True
    assert normalise("max_total_tokens", "8192") == 8192
    with pytest.raises(ValueError, match="not a quantity"):
        normalise("max_running_requests", "many")


def test_every_documented_flag_of_every_engine_may_be_stated() -> None:
    sglang = "context_length max_running_requests mem_fraction_static max_total_tokens chunked_prefill_size"
    tgi = "max_concurrent_requests max_input_tokens max_total_tokens max_batch_total_tokens max_batch_prefill_tokens"
    more = "max_prefill_tokens schedule_conservativeness waiting_served_ratio max_num_seqs"
    assert set(f"{sglang} {tgi} {more}".split()) <= FLAG_NAMES


def test_sglang_and_tgi_refuse_by_the_declared_output() -> None:
    told = {engine: flags_of(engine) for engine in ("sglang", "tgi", "trtllm")}
    counts = {engine: flags.counts_declared_output(None) for engine, flags in told.items() if flags}
    assert counts == {"sglang": True, "tgi": True, "trtllm": None}
