"""Which queries read a fleet, and how finely, so that the samples stay under a budget however large the fleet is."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from advisor.domain.errors import SourceError
from advisor.engines.vllm import metrics as vllm

STEPS_SECONDS = (15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400, 43200, 86400)
SCRAPE_INTERVALS_SECONDS = (5, 10, 15, 20, 30, 60, 120, 300)
MOST_JOBS_NAMED = 50


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of reading: series an engine has of it, the finest useful step and its share of the budget."""

    series: int
    finest_seconds: int
    share: float


GAUGES = Kind(vllm.GAUGE_SERIES, 15, 0.3)
WINDOWS = Kind(vllm.WINDOW_SERIES, 15, 0.4)
WHOLE = Kind(vllm.WHOLE_SERIES, 300, 0.2)
INFO = Kind(vllm.INFO_SERIES, 300, 0.1)


@dataclass(frozen=True, slots=True)
class Fleet:
    """What discovery found: how many engines, for how long all of them together, where, and how often scraped."""

    engines: int
    engine_seconds: float
    first: float
    last: float
    scrape_seconds: float
    jobs: frozenset[str]


def step_seconds(kind: Kind, fleet: Fleet, sample_budget: int) -> int:
    """The finest step at which this kind of reading stays within its share of the budget; a multiple of the scrape's.

    Worked: 3 gauges of 8 engines over 7 days at 15 s are 967,680 samples, under 30 % of 5,000,000. Raises SourceError
    when not even one sample a day fits.
    """
    for step in STEPS_SECONDS:
        stretched = math.ceil(step / fleet.scrape_seconds) * fleet.scrape_seconds
        if step >= kind.finest_seconds and fleet.engine_seconds / stretched * kind.series <= kind.share * sample_budget:
            return math.ceil(stretched)
    raise SourceError(
        f"{fleet.engines} engines do not fit into sample_budget {sample_budget}; raise it or narrow matchers",
        permanent=True,
    )


def scrape_interval(step: float, most_samples: float) -> float:
    """The scrape interval when a span of `step` seconds holds at most so many samples: the nearest usual one.

    >>> scrape_interval(864, 58)
    15.0
    """
    guess = step / max(most_samples, 1.0)
    near = min(SCRAPE_INTERVALS_SECONDS, key=lambda usual: abs(usual - guess))
    return float(near) if abs(near - guess) <= 0.1 * near else float(math.ceil(guess))


def quoted(text: str) -> str:
    """A string of PromQL: quotes, backslashes and control characters are escaped as in JSON, which PromQL reads too."""
    return json.dumps(text, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Selectors:
    """The queries, restricted by the matchers that the user gave."""

    matchers: Mapping[str, str]

    @property
    def _pairs(self) -> str:
        return ",".join(f"{label}={quoted(value)}" for label, value in sorted(self.matchers.items()))

    @property
    def running(self) -> str:
        """The gauge that every release of the engine has."""
        return f"{vllm.RUNNING}{{{self._pairs}}}"

    def named(self, names: Collection[str]) -> str:
        """All series of any of these names."""
        pairs = f",{self._pairs}" if self._pairs else ""
        return f"{{__name__=~{quoted('|'.join(names))}{pairs}}}"

    def of_engines(self, name: str, jobs: Collection[str], pairs: str = "") -> str:
        """Series that lack the engine's labels and that other processes may have too: those of the engines only.

        The jobs keep the server from reading the series of everybody else, as long as there are few.
        """
        if 0 < len(jobs) <= MOST_JOBS_NAMED and "" not in jobs:
            named = "|".join(re.escape(job) for job in sorted(jobs))
            pairs = ",".join(filter(None, (f"job=~{quoted(named)}", pairs)))
        return f"{name}{{{pairs}}} and on (job, instance) {self.running}"
