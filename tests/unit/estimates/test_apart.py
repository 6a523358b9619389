"""What replicas that run apart count for: traffic is the deployment's, ceilings are of those that run alike."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.domain.canary import Rollout
from advisor.domain.evidence import Evidence, ReportedPool
from advisor.domain.policy import Policy
from advisor.estimates import SIZED, estimate, saturation
from tests.unit.estimates.evidence import NOTHING, buckets, engine, flags, gauges, sheet, windows


def serving(instance: str, running: float, finished: float = 300.0, waiting: float = 0.0) -> Evidence:
    """One engine for an hour."""
    counted = windows({"finished": [finished] * 12}, seconds=300.0)
    prompts = {"prompt_tokens": buckets([100.0, 1000.0], [500.0, 500.0, 0.0])}
    one = engine(gauges([running] * 240, waiting), counted, instance=instance, lengths=prompts)
    return replace(NOTHING, engines=(one,))


def split(alike: Evidence, apart: Evidence) -> Evidence:
    return replace(alike, apart=apart.engines, replicas=2, flags=flags(max_num_seqs=16))


def test_demand_and_lengths_are_of_all_and_load_is_of_those_alike() -> None:
    facts = estimate(split(serving("a:1", 10), serving("b:1", 24)), Policy())
    assert facts["running_max"].value == 10
    assert facts["demand_requests_per_second_mean"].value == pytest.approx(2.0)
    assert facts["prompt_tokens_p50"].n == 2_000


def test_who_runs_apart_serves_its_part_of_a_saturated_deployment() -> None:
    """0.2 requests/s of the one that is sized, and as many of the other: 0.4 of both."""
    evidence = split(serving("a:1", 16, finished=60, waiting=3), serving("b:1", 24, finished=90, waiting=3))
    facts = saturation.facts(evidence, Policy(), sheet())
    assert facts["saturated_requests_per_second"].number == pytest.approx(0.4)


def test_nothing_is_sized_while_a_rollout_passes() -> None:
    pool = ReportedPool(500_000, "metrics")
    settled = replace(split(serving("a:1", 10), serving("b:1", 24)), reported_pool=pool)
    settled = replace(settled, flags=flags(max_num_seqs=16, max_model_len=10_000))
    assert estimate(settled, Policy())["memory_ceiling_guaranteed"].value == 50
    passing = replace(settled, rollout=Rollout("a rollout is under way", refuses_ceilings=True))
    facts = estimate(passing, Policy())
    assert {facts[name].unknown for name in SIZED} == {"a rollout is under way"}
    assert facts["running_max"].value == 10
    noted = replace(settled, rollout=Rollout("a rollout may be under way", refuses_ceilings=False))
    assert estimate(noted, Policy())["memory_ceiling_guaranteed"].value == 50
