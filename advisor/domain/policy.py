"""How cautious the arithmetic is: the handful of numbers that a team may choose for itself."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Policy:
    """Ratios are 0..1; `length_percentile` is 0..100.

    length_percentile: the share of requests that max_model_len must hold.
    length_margin: added on top of it, 0.25 is a quarter.
    kv_overflow_risk: accepted share of requests that the cache has no room for: preemptions / finished.
    step_limit: how far beyond the largest concurrency observed a cap may be proposed.
    demand_headroom: share of a capacity that demand may use up.
    spare_replicas: how many replicas may fail without being felt, beyond those that demand asks for.
    """

    length_percentile: float = 99.9
    length_margin: float = 0.25
    kv_overflow_risk: float = 0.01
    step_limit: float = 1.5
    demand_headroom: float = 0.9
    spare_replicas: int = 0
