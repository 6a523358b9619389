"""What can be said from a dashboard's percentiles alone, and from one scrape since the engine started."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.domain.evidence import Evidence, Flag, Slo, Window
from advisor.domain.fact import measured
from advisor.domain.policy import Policy
from advisor.estimates import estimate
from tests.unit.estimates.evidence import buckets, engine, windows

DASHBOARD = {"running_p95": 8.0, "waiting_p95": 30.0, "kv_usage_p95": 0.06, "preempted_share": 0.0}


def _stated(**facts: float) -> Evidence:
    return Evidence(
        "chat",
        Window(0.0, 604800.0),
        flags={"max_num_seqs": Flag(8, "config")},
        stated={name: measured(value, source="stated") for name, value in facts.items()},
    )


def test_a_dashboard_that_shows_the_cap_pinned_gives_one_step() -> None:
    # Running at the cap at p95 is at the cap in 5 % of the scrapes or more; 1.5 x 8 = 12 uses 9 % of the cache.
    facts = estimate(_stated(**DASHBOARD), Policy())
    assert facts["time_at_sequence_cap"].low == 0.05
    assert facts["time_at_sequence_cap"].basis == "assumed"
    assert facts["next_max_num_seqs"].number == 12


def test_what_was_read_is_believed_and_what_was_stated_is_kept() -> None:
    counted = engine(counters=windows({"preemptions": [0.0, 6.0], "finished": [100.0, 100.0]}))
    fact = estimate(replace(_stated(**DASHBOARD), engines=(counted,)), Policy())["preempted_share"]
    assert fact.value == 0.03
    assert [(rival.value, rival.source) for rival in fact.rivals] == [(0.0, "stated")]


@pytest.mark.parametrize("change", [{"running_p95": 7.0}, {"waiting_p95": 0.0}])
def test_below_the_cap_or_without_a_queue_nothing_is_assumed(change: dict[str, float]) -> None:
    assert estimate(_stated(**DASHBOARD | change), Policy())["time_at_sequence_cap"].is_unknown


def test_a_cache_without_room_gives_no_step() -> None:
    # 1.5 x 45 % = 68 % of the cache, above the 60 % that counts as roomy.
    assert estimate(_stated(**DASHBOARD | {"kv_usage_p95": 0.45}), Policy())["next_max_num_seqs"].is_unknown


def test_a_promise_that_was_never_measured_gives_no_step() -> None:
    promised = replace(_stated(**DASHBOARD), slo=Slo(tpot_seconds=0.05))
    assert estimate(promised, Policy())["next_max_num_seqs"].is_unknown


def _lifetime(within: float) -> Evidence:
    counters = windows({"itl_count": [7845.0], "steps": [1000.0], "itl_sum": [31.0]}, seconds=3600.0)
    tpot = buckets([0.01, 0.025], [within, 1000 - within, 0])
    one = engine(counters=counters, latencies={"tpot": tpot}, lifetime=True)
    return Evidence("tiny", Window(0.0, 3600.0), engines=(one,), slo=Slo(tpot_seconds=0.01))


def test_one_scrape_that_met_the_target_was_never_seen_failing_at_its_mean_batch() -> None:
    ceiling = estimate(_lifetime(within=995), Policy())["latency_ceiling"]
    assert (ceiling.number, ceiling.low, ceiling.high) == (None, 7, None)


def test_one_scrape_that_missed_the_target_says_nothing_about_concurrency() -> None:
    assert estimate(_lifetime(within=900), Policy())["latency_ceiling"].is_unknown
