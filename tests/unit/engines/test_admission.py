from __future__ import annotations

import pytest

from advisor.engines.admission import Reserve, admits_by_first_chunk, reserve


def test_vllm_keeps_nothing_for_output_to_come() -> None:
    assert reserve("vllm", {}) is None


def test_tgi_keeps_all_that_is_declared() -> None:
    kept = reserve("tgi", {})
    assert kept == Reserve(1.0, whole=True)
    assert kept.tokens(500) == 500


@pytest.mark.parametrize(
    ("conservativeness", "tokens"),
    # 0.7 x 0.14 = 0.098 of 2,000; 0.3 x that; 1.0 x 0.14 once 0.7 x 2 is cut to 1
    [(None, 196.0), (0.3, 58.8), (2.0, 280.0)],
)
def test_sglang_keeps_a_share_that_its_conservativeness_scales(conservativeness: float | None, tokens: float) -> None:
    kept = reserve("sglang", {} if conservativeness is None else {"schedule_conservativeness": conservativeness})
    assert kept is not None
    assert kept.tokens(2000) == pytest.approx(tokens)
    assert kept.tokens(100_000) == pytest.approx(tokens / 2000 * 4096)


@pytest.mark.parametrize(
    ("engine", "version", "flags", "told"),
    [
        ("vllm", "0.18.2", {}, True),
        ("vllm", "0.19.1", {}, False),
        ("vllm", None, {}, None),
        ("vllm", "0.32.0", {"scheduler_reserve_full_isl": False}, True),
        ("vllm", None, {"scheduler_reserve_full_isl": True}, False),
        ("sglang", "0.5.2", {}, False),
    ],
)
def test_which_engines_admit_a_prompt_by_its_first_chunk(
    engine: str, version: str | None, flags: dict[str, bool], told: bool | None
) -> None:
    assert admits_by_first_chunk(engine, version, flags) is told
