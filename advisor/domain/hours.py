"""What was measured hour by hour: the grain at which a change is compared with the time before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # so that `advisor history` starts without numpy
    from .evidence import FlagValue

HOUR_SECONDS = 3600.0
DEMAND, ENGINES = "requests_per_second", "engines"
PROMPT, OUTPUT = "prompt_tokens_mean", "output_tokens_mean"

SHARES_OF_TIME = ("time_at_sequence_cap", "waiting_share", "running_p95", "waiting_p95", "kv_usage_p95")
OF_REQUESTS = (
    "preempted_share",
    "queue_share_of_ttft",
    "itl_mean",
    "ttft_p99",
    "slo_attainment",
    "slo_attainment_tpot",
    "slo_attainment_ttft",
)
LOAD_DEPENDENT = (*SHARES_OF_TIME, *OF_REQUESTS)
"""Facts that move with the hour of the week, and so are compared on the same hours only."""


@dataclass(frozen=True, slots=True)
class HourFacts:
    """One whole hour of a deployment, in which every engine that served was read throughout.

    start: UNIX seconds, a whole hour. epoch: start of the youngest epoch among its engines. settings: flags and
    `version` that ran. figures: facts of LOAD_DEPENDENT by their names, as far as the hour tells them, and what the
    hour was like: requests that arrived per second, engines, mean prompt and output tokens.
    """

    start: float
    epoch: float
    settings: Mapping[str, FlagValue]
    figures: Mapping[str, float]
