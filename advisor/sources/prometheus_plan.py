"""Which queries read a fleet, and how finely, so that the samples stay under a budget however large the fleet is."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

from advisor.domain.errors import SourceError
from advisor.engines import METRICS
from advisor.engines.metrics import PROCESS_START, EngineMetrics, Series, SeriesCounts

from .prometheus_spelling import Spelling

STEPS_SECONDS = (15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400, 43200, 86400)
SCRAPE_INTERVALS_SECONDS = (5, 10, 15, 20, 30, 60, 120, 300)
MOST_JOBS_NAMED = 50
_CLASSIC = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")

KindName = Literal["gauges", "windows", "whole", "info"]


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of reading: the finest useful step and its share of the budget."""

    name: KindName
    finest_seconds: int
    share: float


GAUGES = Kind("gauges", 15, 0.3)
WINDOWS = Kind("windows", 15, 0.4)
WHOLE = Kind("whole", 300, 0.2)
INFO = Kind("info", 300, 0.1)


@dataclass(frozen=True, slots=True)
class Fleet:
    """What discovery found: how many engines of which kinds, for how long together, where, and how often scraped.

    seconds: engine-seconds by kind of engine.
    """

    engines: int
    seconds: Mapping[str, float]
    first: float
    last: float
    scrape_seconds: float
    jobs: frozenset[str]

    @property
    def kinds(self) -> tuple[EngineMetrics, ...]:
        """The kinds of engines there are."""
        return tuple(METRICS[engine] for engine in sorted(self.seconds))

    def series_seconds(self, kind: Kind) -> float:
        """How long all series of one kind of reading last together: the samples at a step of one second."""
        return sum(seconds * _series(METRICS[engine].series, kind) for engine, seconds in self.seconds.items())

    def most_series(self, kind: Kind) -> int:
        """How many series of one kind of reading there are at most."""
        return self.engines * max((_series(metrics.series, kind) for metrics in self.kinds), default=0)


def _series(counts: SeriesCounts, kind: Kind) -> int:
    number: int = getattr(counts, kind.name)
    return number


def step_seconds(kind: Kind, fleet: Fleet, sample_budget: int) -> int:
    """The finest step at which this kind of reading stays within its share of the budget; a multiple of the scrape's.

    Worked: 3 gauges of 8 engines over 7 days at 15 s are 967,680 samples, under 30 % of 5,000,000. Raises SourceError
    when not even one sample a day fits.
    """
    for step in STEPS_SECONDS:
        stretched = math.ceil(step / fleet.scrape_seconds) * fleet.scrape_seconds
        if step >= kind.finest_seconds and fleet.series_seconds(kind) / stretched <= kind.share * sample_budget:
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


def label(name: str) -> str:
    """A label's name in PromQL; one with dots, as OpenTelemetry has them, is quoted, which takes Prometheus 3."""
    return name if _CLASSIC.fullmatch(name) else quoted(name)


@dataclass(frozen=True, slots=True)
class Selectors:
    """The queries over some kinds of engines, restricted by the user's matchers, in the server's spelling."""

    matchers: Mapping[str, str]
    kinds: tuple[EngineMetrics, ...] = tuple(METRICS.values())
    spelling: Spelling = field(default_factory=Spelling)

    @property
    def _pairs(self) -> str:
        return ",".join(f"{label(name)}={quoted(value)}" for name, value in sorted(self.matchers.items()))

    def marked(self, form: str, kind_label: str | None = None) -> str:
        """`form` over the marker gauge of each kind (`{}` stands for it); a label says which kind, if one is named.

        One gauge after the other, because functions drop names, and series of two names would then be one.
        """
        queries = []
        for metrics in self.kinds:
            query = form.format(f"{self.spelling.here(metrics.marker)}{{{self._pairs}}}")
            if kind_label is not None:
                query = f'label_replace({query}, "{kind_label}", "{metrics.engine}", "", "")'
            queries.append(query)
        return " or ".join(queries)

    @property
    def running(self) -> str:
        """The gauges by which engines are found."""
        return self.named([metrics.marker for metrics in self.kinds])

    def named(self, names: Collection[str]) -> str:
        """All series of any of these names."""
        return self.matching("|".join(map(self.spelling.here, names)))

    @property
    def asleep(self) -> tuple[str, ...]:
        """The gauges by which engines say that they sleep, as far as they do."""
        return tuple(self._asleep(metrics.awake) for metrics in self.kinds if metrics.awake)

    def _asleep(self, awake: Series) -> str:
        words = quoted("|".join(sorted(awake.only)))
        pairs = ",".join(filter(None, (f"{label(awake.label or '')}=~{words}", self._pairs)))
        return f"{self.spelling.here(awake.name)}{{{pairs}}} == 0"

    def matching(self, pattern: str) -> str:
        """All series whose name on the server is as a regular expression says."""
        pairs = f",{self._pairs}" if self._pairs else ""
        return f"{{__name__=~{quoted(pattern)}{pairs}}}"

    def of_engines(self, names: Collection[str], jobs: Collection[str], pairs: str = "") -> str:
        """Series that lack the engine's labels and that other processes may have too: those of the engines only.

        The jobs keep the server from reading the series of everybody else, as long as there are few.
        """
        name = "|".join(map(self.spelling.here, names))
        if 0 < len(jobs) <= MOST_JOBS_NAMED and "" not in jobs:
            named = "|".join(re.escape(job) for job in sorted(jobs))
            pairs = ",".join(filter(None, (f"job=~{quoted(named)}", pairs)))
        mine = ", ".join(map(label, self.spelling.process_labels))
        return f"{{__name__=~{quoted(name)}{f',{pairs}' if pairs else ''}}} and on ({mine}) {self.running}"

    def starts(self, jobs: Collection[str]) -> str:
        """When the engines' processes began."""
        return self.of_engines([PROCESS_START], jobs)

    def configs(self, jobs: Collection[str]) -> str | None:
        """What the engines' settings are, or None where no kind tells any."""
        names = [name for metrics in self.kinds for name in metrics.config]
        return self.of_engines(names, jobs) if names else None

    def answers(self, jobs: Collection[str]) -> str | None:
        """What the engines answered to generation requests, or None where no kind counts that."""
        queries = []
        for metrics in self.kinds:
            if told := metrics.answers:
                pairs = ",".join(f"{label(name)}=~{quoted('|'.join(values))}" for name, values in told.only.items())
                queries.append(self.of_engines(told.names, jobs, pairs))
        return " or ".join(queries) or None
