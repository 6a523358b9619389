"""What is sure of the objectives: shares that buckets leave open are neither met nor missed."""

from __future__ import annotations

from collections.abc import Mapping

from advisor.domain.fact import Fact

ALL = "slo_attainment"


def surely_missed(known: Mapping[str, Fact], attainment: str = ALL) -> bool:
    """Whether even the most that may have met the target are too few; 97-98 % of 99 %."""
    most, asked = known[attainment].ceiling, known["slo_target"].number
    return asked is not None and most is not None and most < asked


def surely_met(known: Mapping[str, Fact], attainment: str = ALL) -> bool:
    """Whether even the fewest that may have met the target are enough; 99.1-99.8 % of 99 %."""
    least, asked = known[attainment].floor, known["slo_target"].number
    return asked is not None and least is not None and least >= asked
