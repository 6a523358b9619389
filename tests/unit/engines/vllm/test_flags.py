from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.domain.evidence import FlagValue
from advisor.engines.vllm import flags


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("0.32.0", (0, 32, 0)),
        ("v0.11.2", (0, 11, 2)),
        ("0.11.0rc2.dev98+g393de22d2", (0, 11, 0)),
        ("0.6.3.post1", (0, 6, 3)),
        ("0.10", (0, 10, 0)),
        ("0.1.dev12986+gfa99ccebd", None),
        ("main", None),
        (">=0.24", None),
        ("", None),
        (None, None),
    ],
)
def test_parse_version(text: str | None, version: flags.Version | None) -> None:
    assert flags.parse_version(text) == version


@pytest.mark.parametrize(
    ("knob", "value", "written"),
    [
        ("max_num_seqs", 24, "--max-num-seqs 24"),
        ("gpu_memory_utilization", 0.92, "--gpu-memory-utilization 0.92"),
        ("enable_prefix_caching", True, "--enable-prefix-caching"),
        ("enable_chunked_prefill", False, "--no-enable-chunked-prefill"),
        ("kv_cache_dtype", "fp8", "--kv-cache-dtype fp8"),
    ],
)
def test_render_flag(knob: str, value: FlagValue, written: str) -> None:
    assert flags.render_flag(knob, value) == written


def test_a_knob_that_is_no_flag_is_never_printed() -> None:
    with pytest.raises(ValueError, match="replicas is no flag"):
        flags.render_flag("replicas", 3)


@pytest.mark.parametrize(
    ("flag", "version", "known"),
    [
        ("max_num_seqs", "0.2.7", True),
        ("max_num_active_seqs", "0.30.9", False),
        ("max_num_active_seqs", "0.31.0", True),
        ("max_num_partial_prefills", "0.26.0", True),
        ("max_num_partial_prefills", "0.27.0", False),
        ("swap_space", "0.18.0", False),
        ("kv_cache_memory_bytes", "0.10.1.1", False),
        ("max_num_queued_reqs", None, False),
        ("max_num_seqs", None, True),
        ("swap_space", None, False),
        ("no_such_flag", "0.32.0", False),
    ],
)
def test_supported(flag: str, version: str | None, known: bool) -> None:
    assert flags.supported(flag, version) is known


@pytest.mark.parametrize(
    ("name", "value", "read"),
    [
        ("max_model_len", "12k", 12_000),
        ("max_model_len", "12K", 12_288),
        ("max_model_len", -1, "auto"),
        ("max_model_len", "auto", "auto"),
        ("max_num_seqs", "1_024", 1024),
        ("gpu_memory_utilization", "92%", 0.92),
        ("long_prefill_token_threshold", 0, 0),
        ("some_other_flag", "x", "x"),
    ],
)
def test_normalise(name: str, value: object, read: FlagValue) -> None:
    assert flags.normalise(name, value) == read


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_num_seqs", 0),
        ("max_num_seqs", -4),
        ("max_num_seqs", 1.5),
        ("max_num_seqs", True),
        ("max_num_seqs", None),
        ("max_model_len", 10**12),
        ("gpu_memory_utilization", 1.2),
        ("gpu_memory_utilization", 92),
        ("gpu_memory_utilization", 0),
        ("gpu_memory_utilization", float("nan")),
        ("enable_prefix_caching", "yes"),
        ("some_other_flag", ["x"]),
    ],
)
def test_a_flag_cannot_have_an_impossible_value(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=r"(lies between|is a share|is true or false|one plain value|is not)"):
        flags.normalise(name, value)


def test_default_gpu_memory_utilization_changed_at_0_20() -> None:
    assert flags.default_gpu_memory_utilization("0.19.1") == 0.9
    assert flags.default_gpu_memory_utilization("0.20.0") == 0.92
    assert flags.certain_defaults("0.32.0")["gpu_memory_utilization"] == 0.92
    assert "gpu_memory_utilization" not in flags.certain_defaults(None)


def test_declared_output_counts_before_0_32() -> None:
    assert [flags.counts_declared_output(v) for v in ("0.31.0", "0.32.0", None)] == [True, False, None]


def test_full_prompts_are_reserved_from_0_19_1() -> None:
    assert [flags.reserves_full_prompt(v) for v in ("0.19.0", "0.19.1", "main")] == [False, True, None]


@pytest.mark.parametrize(
    ("set_flags", "version", "lines"),
    [
        (
            {"max_num_seqs": 1024, "max_num_batched_tokens": 512},
            "0.32.0",
            ("max_num_seqs 1,024 exceeds max_num_batched_tokens 512",),
        ),
        ({"max_num_seqs": 512, "max_num_batched_tokens": 512}, "0.32.0", ()),
        ({"max_num_seqs": 8, "max_num_active_seqs": 9}, "0.32.0", ("max_num_active_seqs 9 exceeds max_num_seqs 8",)),
        ({"max_model_len": 4096, "max_num_batched_tokens": 2048}, "0.32.0", ()),
        (
            {"max_model_len": 4096, "max_num_batched_tokens": 2048, "enable_chunked_prefill": False},
            "0.32.0",
            ("max_model_len 4,096 exceeds max_num_batched_tokens 2,048 while chunked prefill is off",),
        ),
        (
            {"max_model_len": 4096, "long_prefill_token_threshold": 5000},
            None,
            ("long_prefill_token_threshold 5,000 exceeds max_model_len 4,096",),
        ),
        (
            {"max_num_batched_tokens": 512},
            "0.9.2",
            ("max_num_batched_tokens 512 is below a default max_num_seqs of up to 1,024: set both",),
        ),
        ({"max_num_batched_tokens": 512}, "0.10.1", ()),
        ({"max_num_batched_tokens": 512}, None, ()),
        ({}, None, ()),
    ],
)
def test_violations(set_flags: dict[str, FlagValue], version: str | None, lines: tuple[str, ...]) -> None:
    assert flags.violations(set_flags, version) == lines


def test_one_full_request_must_fit_the_pool() -> None:
    assert flags.violations({"max_model_len": 29_000}, "0.6.4", pool_tokens=23_648) == (
        "max_model_len 29,000 exceeds the KV pool 23,648",
    )
    assert flags.violations({"max_model_len": 29_000}, "0.6.4", pool_tokens=29_000) == ()


@given(st.sampled_from(sorted(flags.FLAGS)), st.one_of(st.integers(), st.floats(), st.text(max_size=20), st.booleans()))
def test_what_is_normalised_stays_as_it_is(name: str, value: object) -> None:
    try:
        once = flags.normalise(name, value)
    except ValueError:
        return
    assert flags.normalise(name, once) == once or once != once  # noqa: PLR0124
