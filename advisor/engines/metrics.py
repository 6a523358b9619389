"""An engine's /metrics as a value: under which series names readings are found, and what its settings say.

Names change between releases and some releases expose two names for one thing, so every reading lists its series,
newest first; whoever reads takes one of them and never their sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from advisor.domain.evidence import FlagValue

PROCESS_START = "process_start_time_seconds"
WINDOWED_HISTOGRAMS = ("ttft", "tpot")
WHOLE_HISTOGRAMS = ("itl", "queue", "prompt_tokens", "output_tokens", "block_reuse_gap", "block_idle_before_evict")

Settings = Mapping[str, str]
"""What the config series of one engine say: labels of an info series, or a gauge's value under the gauge's name."""


@dataclass(frozen=True, slots=True)
class Series:
    """One series name that carries a reading, and which values of `label` belong to it."""

    name: str
    label: str | None = None
    only: frozenset[str] = field(default=frozenset())
    never: frozenset[str] = field(default=frozenset())

    def accepts(self, value: str) -> bool:
        """Whether the series whose `label` has this value is part of the reading."""
        return value not in self.never and (not self.only or value in self.only)


@dataclass(frozen=True, slots=True)
class Answers:
    """Where answers to requests are counted by status.

    only: label values that a generation request has. classes: status -> first digit of its class, where it is no code.
    """

    names: tuple[str, ...]
    status_label: str
    only: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    classes: Mapping[str, str] = field(default_factory=dict)

    def accepts(self, labels: Mapping[str, str]) -> bool:
        """Whether the series counts answers to generation requests."""
        return all(labels.get(label) in values for label, values in self.only.items())

    def status_class(self, status: str) -> str:
        """`2`, `4` or `5`."""
        return self.classes.get(status, status[:1])


@dataclass(frozen=True, slots=True)
class SeriesCounts:
    """How many series one engine has, by kind of reading; what the sample budget is planned with."""

    gauges: int
    windows: int
    whole: int
    info: int


def no_flags(_settings: Settings) -> Mapping[str, FlagValue]:
    """For engines whose metrics tell no flag."""
    return {}


def no_pool(_settings: Settings, _engines: int) -> tuple[int, str] | None:
    """For engines whose metrics do not tell the pool."""
    return None


def no_release(_present: Collection[str], _settings: Settings) -> str | None:
    """For engines whose releases are not told apart by their metrics."""
    return None


@dataclass(frozen=True, slots=True)
class EngineMetrics:
    """Everything that reading one kind of engine needs to know of its metrics.

    marker: the gauge by which its processes are found. gauges: `running`, `waiting`, `kv_usage` (0..1), or `kv_tokens`
    where usage is told in tokens of the pool. histograms, counters: by canonical name. config: series that tell
    settings, info series (`_info`) by labels or gauges by value. epoch_settings: those whose change begins an epoch.
    dating: series whose presence dates a release. labels: the engine's own label -> the one that others use.
    parts: labels whose values are parts of one reading. summed: labels whose values add up before that.
    exact_prefix_hits: the counter of prefix hits in tokens; what is computed of prompts is all less these.
    hands_over: series that only engines expose which hand the cache of a prompt over to others, or take it from them.
    awake: the gauge that is 0 while the engine sleeps, its memory given back; it is present to whoever reads only then.
    role_label: the label that names what part of a request an engine serves, `prefill` or `decode`.
    front_end: these are figures of a router over several engines, so they say nothing of one of them.
    occasional: histograms and counters that only some settings expose, so that nobody misses them.
    never_tells: fact -> why this engine cannot tell it, and what can.
    """

    engine: str
    marker: str
    gauges: Mapping[str, tuple[str, ...]]
    histograms: Mapping[str, tuple[str, ...]]
    counters: Mapping[str, tuple[Series, ...]]
    series: SeriesCounts
    config: tuple[str, ...] = ()
    epoch_settings: tuple[str, ...] = ()
    dating: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    parts: tuple[str, ...] = ("le",)
    summed: tuple[str, ...] = ()
    exact_prefix_hits: str | None = None
    answers: Answers | None = None
    hands_over: tuple[str, ...] = ()
    awake: Series | None = None
    role_label: str | None = None
    front_end: bool = False
    occasional: frozenset[str] = field(default=frozenset())
    never_tells: Mapping[str, str] = field(default_factory=dict)
    flags: Callable[[Settings], Mapping[str, FlagValue]] = no_flags
    pool: Callable[[Settings, int], tuple[int, str] | None] = no_pool
    release: Callable[[Collection[str], Settings], str | None] = no_release

    @property
    def gauge_names(self) -> tuple[str, ...]:
        """Series read scrape by scrape."""
        return tuple(sorted({self.marker, *(name for names in self.gauges.values() for name in names)}))

    @property
    def window_names(self) -> tuple[str, ...]:
        """Series read as increases over short windows."""
        counted = {series.name for listed in self.counters.values() for series in listed}
        return tuple(sorted(counted | self._histogram_names(WINDOWED_HISTOGRAMS)))

    @property
    def whole_names(self) -> tuple[str, ...]:
        """Series read over the whole time, at wide steps."""
        return tuple(sorted(self._histogram_names(WHOLE_HISTOGRAMS)))

    @property
    def present_names(self) -> tuple[str, ...]:
        """Series whose mere presence tells something."""
        return (*self.dating, *self.hands_over)

    @property
    def names(self) -> frozenset[str]:
        """All series that are this engine's alone."""
        own = {*self.gauge_names, *self.window_names, *self.whole_names, *self.config, *self.present_names}
        own |= {self.awake.name} if self.awake else set()
        return frozenset(own)

    def canonical_labels(self, labels: Mapping[str, str]) -> Mapping[str, str]:
        """The labels under the names that all engines share; a shared name that is there already stays."""
        renamed = {common: labels[own] for own, common in self.labels.items() if own in labels and common not in labels}
        return {**{k: v for k, v in labels.items() if k not in self.labels}, **renamed} if renamed else labels

    def _histogram_names(self, kinds: Collection[str]) -> set[str]:
        return {
            name + suffix for kind in kinds for name in self.histograms.get(kind, ()) for suffix in ("_bucket", "_sum")
        }


def sums(*histograms: str) -> tuple[Series, ...]:
    """The `_sum` of histograms that are names of one thing, newest first."""
    return tuple(Series(f"{name}_sum") for name in histograms)


def counts(*histograms: str) -> tuple[Series, ...]:
    """The `_count` of histograms that are names of one thing, newest first."""
    return tuple(Series(f"{name}_count") for name in histograms)


def number(settings: Settings, name: str) -> float | None:
    """A setting as a number above zero, or None."""
    try:
        value = float(settings.get(name, ""))
    except ValueError:
        return None
    return value if math.isfinite(value) and 0 < value < 1e15 else None


def count_flags(settings: Settings, flags: Mapping[str, str]) -> dict[str, FlagValue]:
    """Flags that gauges tell by their value; `flags` is series name -> canonical flag."""
    found = {flag: number(settings, name) for name, flag in flags.items()}
    return {flag: int(value) for flag, value in found.items() if value is not None and value >= 1}
