from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.domain.evidence import Evidence, Slo, Workload
from advisor.domain.fact import Fact
from advisor.domain.policy import Policy
from advisor.estimates import budget_target
from advisor.estimates.budget_target import LATER, NAMES
from advisor.estimates.full_step import FullStep
from tests.unit.estimates.evidence import NOTHING, bounded, buckets, engine, flags, joint, sheet, windows

CHAT = FullStep(base=0.011, per_sequence=82e-6, per_prompt_token=0.112e-3, windows=3840)


def served(
    budget: int, slo: Slo, *, cap: int = 128, workload: Workload = "interactive", prompt: int = 1155
) -> Evidence:
    """Two replicas that serve prompts of one length, with answers of 211 tokens."""
    return replace(
        NOTHING,
        slo=slo,
        replicas=2,
        workload=workload,
        joint=joint((prompt, 211, 5000)),
        flags=flags(max_num_batched_tokens=budget, max_num_seqs=cap),
    )


def judged(evidence: Evidence, work: FullStep | str = CHAT, **known: float | Fact) -> dict[str, Fact]:
    given_facts: dict[str, float | Fact] = {
        "running_p95": 18.0,
        "prompt_tokens_p99": 4100.0,
        "demand_requests_per_second_p99": 5.9,
        "slo_target": 0.99,
        "kv_pool_tokens": 400_000.0,
        "prefix_cache_hit_rate": 0.0,
    }
    return budget_target.facts(evidence, Policy(), work, sheet(**(given_facts | known)))


GAPS = Slo(itl_seconds=0.1, ttft_seconds=3.0)


def test_chunks_that_stall_decoding() -> None:
    """Best by simulation of this deployment: 512, and nothing between 1,024 and 16,384 helps."""
    facts = judged(served(16_384, GAPS), slo_attainment_itl=0.977)
    assert facts["recommended_max_num_batched_tokens"].value == facts["next_max_num_batched_tokens"].value == 512
    # decode 11 + 18 x 0.082 = 12.476 ms, prompts 494 x 0.112 = 55.328 ms: between 55.3 and 67.8, middle 61.566 ms
    full = facts["full_step_at_next_budget"]
    assert (full.value, full.low, full.high) == pytest.approx((0.061566, 0.055328, 0.067804))
    assert facts["prefill_tokens_per_step_at_next_budget"].value == 494
    # 55.328 / 67.804
    assert facts["prefill_efficiency_at_next_budget"].value == pytest.approx(0.816, abs=5e-4)
    # 512 x 211 / 1,366 = 79.1
    assert facts["budget_ceiling_at_next_budget"].value == 79
    # 15,872 tokens of budget give back 0.6 to 2.0 tokens of cache each
    pool = facts["kv_pool_tokens_at_next_budget"]
    assert (pool.value, pool.low, pool.high, pool.basis) == (None, 409_523.2, 431_744.0, "assumed")


def test_demand_against_what_full_steps_serve() -> None:
    facts = judged(served(16_384, GAPS), slo_attainment_itl=0.977)
    # 79.09 sequences: 11 + 79.09 x 0.082 + 432.9 x 0.112 = 65.97 ms a step, 211 steps: 5.68 requests/s;
    # 2.95 of 5.68 x 0.9
    assert facts["demand_over_capacity_at_next_budget"].value == pytest.approx(0.577, abs=1e-3)


def test_the_first_token_of_a_long_prompt() -> None:
    facts = judged(served(16_384, GAPS), slo_attainment_itl=0.977)
    # rate 494 / 67.80 ms = 7,286 tokens/s, use 2.95 x 1,155 / 7,286 = 0.4677; all prompts alike: mean wait
    # 2.95 x 1,155^2 / 7,286^2 / (2 x 0.5323) = 69.6 ms, p99 69.6 / 0.4677 x ln 46.77 = 572 ms; own: 9 chunks x 12.476 +
    # 4,100 x 0.112 = 571.5 ms
    assert facts["ttft_at_next_budget"].value == pytest.approx(1.144, abs=2e-3)


def test_a_time_per_token_is_a_mean_and_needs_no_margin_for_jitter() -> None:
    slow = Slo(tpot_seconds=0.065, ttft_seconds=15.0)
    assert judged(served(2048, slow), slo_attainment_tpot=0.93)["next_max_num_batched_tokens"].value == 512
    gaps = Slo(itl_seconds=0.065, ttft_seconds=15.0)
    assert judged(served(2048, gaps), slo_attainment_itl=0.93)["next_max_num_batched_tokens"].value == 256


@pytest.mark.parametrize("attained", [0.995, bounded(0.98, 0.995)])
def test_an_objective_that_may_hold_leaves_the_budget(attained: float | Fact) -> None:
    facts = judged(served(16_384, GAPS), slo_attainment_itl=attained)
    assert facts["next_max_num_batched_tokens"].value == 16_384
    assert "no objective is missed" in (facts["recommended_max_num_batched_tokens"].source or "")
    assert all(facts[name].unknown == "the budget stays as it is" for name in LATER)


def test_a_budget_that_fits_is_not_what_hurts() -> None:
    facts = judged(served(512, GAPS), slo_attainment_itl=0.977)
    assert facts["next_max_num_batched_tokens"].value == 512
    assert "not what hurts" in (facts["recommended_max_num_batched_tokens"].source or "")


@pytest.mark.parametrize(
    ("evidence", "known", "why"),
    [
        # 60 sequences decode in 15.92 ms, 8 are allowed
        (served(2048, Slo(itl_seconds=0.01)), {"running_p95": 60.0}, "no budget helps"),
        # 128 tokens take 18.6 ms in the middle, 16 are allowed
        (served(2048, Slo(itl_seconds=0.02)), {}, "long_prefill_token_threshold"),
        (served(2048, GAPS, cap=1024), {}, "below max_num_seqs is refused"),
        # 512 tokens serve 5.68 requests/s an engine, 7.5 arrive
        (served(2048, GAPS), {"demand_requests_per_second_p99": 15.0}, "% of what that serves"),
        (served(2048, replace(GAPS, ttft_seconds=0.5)), {}, "the first token would take"),
    ],
)
def test_no_budget_fits(evidence: Evidence, known: dict[str, float], why: str) -> None:
    facts = judged(evidence, CHAT, slo_attainment_itl=0.9, **known)
    assert why in (facts["recommended_max_num_batched_tokens"].unknown or "")
    assert facts["next_max_num_batched_tokens"].is_unknown


def test_demand_that_is_not_known_leaves_the_demand_at_the_next_budget_open() -> None:
    facts = judged(served(16_384, GAPS), slo_attainment_itl=0.977, demand_requests_per_second_p99=bounded(1, None))
    assert facts["next_max_num_batched_tokens"].value == 512
    assert facts["demand_over_capacity_at_next_budget"].is_unknown


def test_a_p99_in_the_open_bucket_is_as_long_as_the_limit() -> None:
    facts = judged(
        served(16_384, GAPS), slo_attainment_itl=0.977, prompt_tokens_p99=bounded(2000, None), max_model_len=4100.0
    )
    assert facts["ttft_at_next_budget"].value == pytest.approx(1.144, abs=2e-3)


FIRST = Slo(tpot_seconds=0.2, ttft_seconds=3.0)


def test_prompts_that_starve_get_a_larger_budget() -> None:
    facts = judged(served(128, FIRST, cap=64), slo_attainment_ttft=0.8)
    # at 1,024 a full step spends 1,006 x 0.112 = 112.7 of 125.1 ms on prompts, the first above 90 %: fourfold at once
    assert facts["recommended_max_num_batched_tokens"].value == 1024
    assert facts["next_max_num_batched_tokens"].value == 512
    # 110 x 0.112 = 12.32 of 24.8 ms
    assert facts["prefill_efficiency"].value == pytest.approx(0.497, abs=1e-3)


def test_the_time_per_token_bounds_a_raise() -> None:
    # 1,024 would take up to 125.1 ms, 512 up to 67.8
    facts = judged(served(256, Slo(tpot_seconds=0.1, ttft_seconds=3.0), cap=64), slo_attainment_ttft=0.8)
    assert facts["next_max_num_batched_tokens"].value == 512
    tight = judged(served(256, Slo(tpot_seconds=0.05, ttft_seconds=3.0), cap=64), slo_attainment_ttft=0.8)
    assert tight["next_max_num_batched_tokens"].value == 256


def test_an_efficient_budget_is_not_raised() -> None:
    facts = judged(served(4096, FIRST), slo_attainment_ttft=0.8)
    assert facts["next_max_num_batched_tokens"].value == 4096
    assert "more adds nothing" in (facts["recommended_max_num_batched_tokens"].source or "")


def test_batch_work_that_waits_goes_for_efficiency() -> None:
    facts = judged(served(256, Slo(), workload="batch"), waiting_share=0.9)
    assert facts["recommended_max_num_batched_tokens"].value == 1024
    idle = judged(served(256, Slo(), workload="batch"), waiting_share=0.0)
    assert idle["recommended_max_num_batched_tokens"].value == 256


@pytest.mark.parametrize(
    ("evidence", "work", "why"),
    [
        (NOTHING, CHAT, "max_num_batched_tokens is in no metric"),
        (served(2048, GAPS), "few windows", "few windows"),
        (replace(served(2048, GAPS), joint=None), CHAT, "lengths of requests"),
    ],
)
def test_what_is_missing_is_said_everywhere(evidence: Evidence, work: FullStep | str, why: str) -> None:
    facts = judged(evidence, work)
    assert set(facts) == set(NAMES)
    assert all(why in (fact.unknown or "") for fact in facts.values())


@pytest.mark.parametrize(("tpot", "advised"), [(0.15, 512), (0.08, None)])
def test_nothing_but_full_steps_bounds_twice_the_budget(tpot: float, advised: int | None) -> None:
    """39 decoding and 211 prompt tokens fill 250 of 256; each step takes 45 ms, so 512 take at most 90 ms."""
    rows = {"steps": 300.0, "itl_count": 300 * 39.0, "itl_sum": 300 * 39 * 0.045, "prompt_tokens_computed": 300 * 211.0}
    full = engine(counters=windows({name: [value] * 40 for name, value in rows.items()}))
    evidence = replace(served(256, Slo(tpot_seconds=tpot, ttft_seconds=3.0)), engines=(full,))
    facts = judged(evidence, "concurrency hardly varied", slo_attainment_ttft=0.2)
    assert facts["next_max_num_batched_tokens"].value == advised
    assert facts["recommended_max_num_batched_tokens"].unknown == "concurrency hardly varied"
    if advised:
        step = facts["full_step_at_next_budget"]
        assert (step.value, step.low, step.high, step.n) == pytest.approx((None, 0.045, 0.09, 40))
    half_empty = replace(evidence, flags=flags(max_num_batched_tokens=512, max_num_seqs=128))
    assert judged(half_empty, "hardly varied", slo_attainment_ttft=0.2)["next_max_num_batched_tokens"].is_unknown


def test_where_full_steps_are_all_prompts_twice_the_budget_serves_hardly_more() -> None:
    # full steps of 45 ms, and one gap in a thousand is at most 10 ms: 90 / 80 = 1.125 times; 1.61 / 1.125 = 1.43
    rows = {"steps": 300.0, "itl_count": 300 * 39.0, "itl_sum": 300 * 39 * 0.045, "prompt_tokens_computed": 300 * 211.0}
    gaps = buckets([0.010, 0.025, 0.05], [500, 4_500, 400_000, 0])
    full = engine(counters=windows({name: [value] * 40 for name, value in rows.items()}), latencies={"itl": gaps})
    evidence = replace(served(256, Slo(tpot_seconds=0.1, ttft_seconds=3.0)), engines=(full,))
    known = {"slo_attainment_ttft": 0.2, "demand_over_saturated_rate": 1.61}
    pressure = judged(evidence, "hardly varied", **known)["demand_over_capacity_at_next_budget"]
    assert (pressure.value, pressure.low, pressure.high) == pytest.approx((None, 1.61 / 1.125, None))
    never_full = judged(evidence, "hardly varied", slo_attainment_ttft=0.2)
    assert never_full["demand_over_capacity_at_next_budget"].is_unknown


def test_parts_of_a_step_that_a_measured_gap_refutes_size_no_budget() -> None:
    # a full step takes at most 12.5 + 16,366 x 0.112 = 1,845 ms by its parts; one gap in a hundred takes four seconds
    refuted = judged(served(16_384, GAPS), slo_attainment_itl=0.977, itl_p99=bounded(4.0, 5.0))
    assert "a full step by its parts at most 1.85 s" in (refuted["next_max_num_batched_tokens"].unknown or "")
    fair = judged(served(16_384, GAPS), slo_attainment_itl=0.977, itl_p99=bounded(2.5, 5.0))
    assert fair["next_max_num_batched_tokens"].value == 512


def test_mean_lengths_stand_in_for_the_spread_of_prompts() -> None:
    # twice the square of the mean, as for an exponential: the wait doubles, 0.572 x 2 + 0.5715
    assert judged(
        replace(served(16_384, GAPS), joint=joint((1, 211, 2500), (2309, 211, 2500))), slo_attainment_itl=0.9
    )["ttft_at_next_budget"].value == pytest.approx(1.715, abs=4e-3)


@given(
    target=st.floats(0.02, 1.0),
    tighter=st.floats(0.1, 1.0),
    prompt=st.integers(1, 20_000),
    budget=st.sampled_from([256, 512, 2048, 8192, 16_384]),
)
def test_a_tighter_objective_never_asks_for_more(target: float, tighter: float, prompt: int, budget: int) -> None:
    def advised(itl: float) -> Fact:
        evidence = served(budget, Slo(itl_seconds=itl), cap=64, prompt=prompt)
        facts = judged(evidence, slo_attainment_itl=0.5, demand_requests_per_second_p99=0.001)
        for fact in facts.values():
            for figure in (fact.value, fact.low, fact.high):
                assert figure is None or (isinstance(figure, int | float) and figure >= 0)
        return facts["next_max_num_batched_tokens"]

    loose, tight = advised(target), advised(target * tighter)
    if loose.number is not None and tight.number is not None:
        assert tight.number <= loose.number
    if loose.is_unknown:
        assert tight.is_unknown


@given(scale=st.sampled_from([1e-3, 0.5, 3.0, 1e3]))
def test_the_unit_of_time_does_not_matter(scale: float) -> None:
    """Everything in other seconds: the same budget, and times that scale."""
    work = FullStep(CHAT.base * scale, CHAT.per_sequence * scale, CHAT.per_prompt_token * scale, 3840)
    slo = Slo(itl_seconds=0.1 * scale, ttft_seconds=3.0 * scale)
    one, other = (
        judged(served(16_384, s), w, slo_attainment_itl=0.9, demand_requests_per_second_p99=5.9 / k)
        for s, w, k in ((GAPS, CHAT, 1.0), (slo, work, scale))
    )
    for name in ("next_max_num_batched_tokens", "demand_over_capacity_at_next_budget"):
        assert one[name].value == pytest.approx(other[name].value)
    assert other["ttft_at_next_budget"].value == pytest.approx((one["ttft_at_next_budget"].number or 0) * scale)
