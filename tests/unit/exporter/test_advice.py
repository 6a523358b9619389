"""What may be advised from host agents alone: a shorter limit, which the engines' own histograms never carry."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor import rule_pack
from advisor.domain.advice import Advice
from advisor.domain.evidence import Evidence
from advisor.domain.policy import Policy
from advisor.estimates import estimate
from advisor.rulebook.arbiter import advise
from tests.unit.estimates.evidence import NOTHING, buckets, engine, flags
from tests.unit.estimates.test_length_sample import exported

RULES = rule_pack.load()
SERVED = (6000, 500, 100_000)


def watched(served: int = 100_000, refused: int = 0) -> Evidence:
    """A week of agents beside engines that finished so many requests, at a limit of 131,072."""
    engines = (engine(lengths={"prompt_tokens": buckets([8192], [served, 0])}),)
    return replace(
        NOTHING,
        exported=exported(SERVED, refused=refused),
        engines=engines,
        replicas=1,
        flags=flags(max_model_len=131_072),
    )


def on_the_limit(evidence: Evidence) -> list[Advice]:
    judgement = advise(RULES, evidence, estimate(evidence, Policy()), ())
    return [advice for advice in judgement.advice if advice.knob == "max_model_len"]


def test_a_limit_is_shortened() -> None:
    (advice,) = on_the_limit(watched())
    assert advice.rule == "length/limit-oversized"
    # 6,500 tokens are in the bucket up to 6,607: x 1.25 = 8,259 -> 9 x 1,024
    assert (advice.current, advice.recommended) == (131_072, 9216)


@pytest.mark.parametrize(
    "evidence",
    [watched(served=110_000), watched(refused=500), replace(watched(), flags=flags(max_model_len=10_240))],
    ids=["covered in part", "refused", "within a bucket and the margin"],
)
def test_what_is_in_doubt_is_left(evidence: Evidence) -> None:
    assert not any(advice.rule == "length/limit-oversized" for advice in on_the_limit(evidence))


def test_half_a_week_is_not_enough() -> None:
    whole = watched()
    assert whole.exported is not None
    half = replace(whole.exported, slot_start=whole.exported.slot_start[:84], slots=whole.exported.slots[:84] * 2)
    assert on_the_limit(replace(whole, exported=half)) == []
