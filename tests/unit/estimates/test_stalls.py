from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.domain.evidence import Slo
from advisor.domain.fact import Fact, unknown
from advisor.estimates import stalls
from advisor.estimates.full_step import FullStep
from advisor.estimates.populations import Cut
from tests.unit.estimates.evidence import NOTHING, bounded, flags, joint, sheet

CUT = Cut(20_000, 0.02, 0.7, 0.05, joint((1_000, 200, 9_800)), joint((50_000, 300, 200)))
WORK = FullStep(base=0.010, per_sequence=0.1e-3, per_prompt_token=0.08e-3, windows=100)
SLO = Slo(tpot_seconds=0.020, ttft_seconds=2.0, percentile=99.0)
KNOWN = {
    "replicas": 6.0,
    "demand_requests_per_second_p99": 6 / 0.98,
    "demand_requests_per_second_mean": 6.0,
    "itl_mean": 0.025,
    "max_num_batched_tokens": 4_096.0,
    "running_max": 30.0,
    "slo_attainment": 0.80,
}


def facts(
    *, slo: Slo = SLO, work: FullStep | str = WORK, cut: Cut | None = CUT, **changed: float | Fact | None
) -> dict[str, Fact]:
    seen = replace(NOTHING, slo=slo, flags=flags(max_num_batched_tokens=4_096))
    return stalls.facts(seen, work, cut, sheet(**(KNOWN | changed)))


def test_how_many_short_requests_are_late_and_stalled() -> None:
    out = facts()
    # 20 % late, of which 2 % may be the long ones: 18 of 98
    assert out["late_short_share"].value == pytest.approx(0.18 / 0.98)
    # 50,000 x 0.08 ms + 13 steps x 10 ms
    assert out["long_prefill_seconds"].low == pytest.approx(4.13)
    # 0.02 long ones a second and replica, and 200 gaps of 25 ms: 1 - exp(-0.02 x 9.13)
    assert out["stalled_short_share"].value == pytest.approx(0.1669, abs=1e-4)


def test_the_pool_of_short_requests_by_hand() -> None:
    """Slope 0.1 + 0.08 x 5 = 0.5 ms. One replica: 1,200 tokens/s, D = 12 / 0.4 = 30: 20 at most fit 20 ms.

    Two: 600 tokens/s, D = 6 / 0.7 = 8.57 at 14.29 ms; with 2.326 x 2.93 more 15.4 at 17.7 ms. Long ones
    need 4 x 6.122 x 0.02 x 4.13 / 0.5 = 4.05, so 5: of six replicas one too few for both.
    """
    out = facts()
    told = [out[name].value for name in ("apart_short_replicas", "apart_long_replicas", "apart_replicas")]
    assert told == [2, 5, 7]
    assert out["apart_short_tpot"].value == pytest.approx(0.014286, abs=1e-6)
    assert out["apart_short_tpot"].high == pytest.approx(0.01769, abs=1e-5)
    assert out["apart_short_ceiling"].value == 20
    assert out["slo_attainment_apart"].value == pytest.approx(0.98 * 0.99)


def test_what_short_requests_do_not_need_remains_for_the_long_ones() -> None:
    out = facts(replicas=9.0)
    told = [out[name].value for name in ("apart_short_replicas", "apart_long_replicas", "apart_replicas")]
    assert told == [2, 7, 9]


def test_no_seat_is_promised_that_was_never_taken() -> None:
    assert facts(running_max=17.0)["apart_short_ceiling"].value == 17
    assert facts(running_max=15.0)["apart_short_replicas"].value == 3


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"replicas": unknown("nobody tells")}, "nobody tells"),
        ({"slo_attainment": 0.01}, "long prompts explain too little of what is late"),
        ({"slo_attainment": bounded(0.7, None)}, "only a lower bound of the requests within their targets is known"),
        ({"itl_mean": unknown("no gaps were counted")}, "no gaps were counted"),
        ({"work": "the step time is not identified"}, "what a long prompt costs is not known: the step time"),
        ({"work": replace(WORK, per_sequence=0.0)}, "how the gap grows with concurrency is not known"),
        ({"cut": None, "split_cut_tokens": unknown("one population")}, "one population"),
        ({"slo": Slo(tpot_seconds=0.009)}, "twice the replicas do not keep short requests"),
        (
            {"slo": Slo(ttft_seconds=0.08)},
            "twice the replicas do not keep short requests",
        ),  # a prompt alone takes 80 ms
    ],
)
def test_what_keeps_pools_unknown(changed: dict[str, object], reason: str) -> None:
    out = facts(**changed)  # type: ignore[arg-type]
    assert reason in (out["slo_attainment_apart"].unknown or "")
    assert out["apart_short_replicas"].is_unknown


def test_in_one_population_nobody_is_stalled_and_without_a_log_nobody_can_tell() -> None:
    alone = replace(NOTHING, joint=joint((1_000, 200, 9_800)))
    assert stalls.facts(alone, WORK, None, sheet(**KNOWN))["stalled_short_share"].value == 0
    assert stalls.facts(NOTHING, WORK, None, sheet(**KNOWN))["stalled_short_share"].is_unknown


def test_where_as_many_are_late_as_are_long_no_short_one_need_be() -> None:
    assert facts(slo_attainment=0.985)["late_short_share"].value == 0


@given(st.floats(0.1, 40.0), st.floats(1.0, 3.0))
def test_more_demand_never_needs_fewer_replicas(rate: float, more: float) -> None:
    few, many = (
        facts(demand_requests_per_second_p99=r, replicas=12.0)["apart_short_replicas"].number
        for r in (rate, rate * more)
    )
    assert many is None or (few is not None and few <= many)
