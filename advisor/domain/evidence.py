"""Evidence: everything observed of one deployment over one window, frozen. Sources write it, estimates read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from .canary import Rollout
from .exported import ExportedLengths
from .fact import Fact
from .failure import Failure
from .histogram import BucketHours, Buckets, Floats, Ints, JointCounts, TokenCounts
from .length_history import LengthHistory
from .sweep import Sweep

FlagValue = int | float | str | bool
FlagSource = Literal[
    "server_info",
    "models_endpoint",
    "startup_log",
    "process",
    "manifest",
    "metrics",
    "config",
    "command_line",
    "inferred",
    "default",
]
Workload = Literal["interactive", "batch"]

UNTOLD = "unknown"
"""The engine of a deployment of which nothing that was read says what serves it."""

TRUST: tuple[FlagSource, ...] = (
    "server_info",
    "models_endpoint",
    "startup_log",
    "metrics",
    "process",
    "manifest",
    "command_line",
    "config",
    "inferred",
    "default",
)
"""Where a flag's value may come from, most trusted first: the engine's own word beats what people say of it."""


@dataclass(frozen=True, slots=True)
class Window:
    """A span of time in UNIX seconds."""

    start: float
    end: float

    @property
    def seconds(self) -> float:
        """Its length."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Slo:
    """Latency objectives in seconds; None is no objective. `percentile` of requests (0..100) must meet them."""

    tpot_seconds: float | None = None
    itl_seconds: float | None = None
    ttft_seconds: float | None = None
    percentile: float = 99.0

    @property
    def share(self) -> float:
        """The share of requests, 0..1, that must meet the targets."""
        return round(self.percentile / 100, 12)

    @property
    def of_requests(self) -> Mapping[str, float]:
        """The targets that a request meets as a whole, in seconds: those of `tpot` and `ttft` that are given."""
        targets = {"tpot": self.tpot_seconds, "ttft": self.ttft_seconds}
        return {name: target for name, target in targets.items() if target is not None}


@dataclass(frozen=True, slots=True)
class Flag:
    """The running value of one engine flag, under vLLM's name, and who says so."""

    value: FlagValue
    source: FlagSource
    since: float | None = None


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Two sources that state one flag differently; the first is believed."""

    flag: str
    believed: Flag
    other: Flag


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What KV arithmetic needs of the model. `config` is the Hugging Face config.json, nested parts included."""

    config: Mapping[str, Any] | None = None
    weights_bytes: float | None = None
    kv_bytes_per_token: float | None = None
    max_context_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class GpuInfo:
    """Memory of one GPU. `kv_available_bytes` is what the engine prints as available for the cache, per GPU."""

    memory_bytes: float | None = None
    headroom_bytes: float | None = None
    kv_available_bytes: float | None = None


@dataclass(frozen=True, slots=True)
class ReportedPool:
    """The KV pool of one engine in tokens, as the engine printed or exported it. `source` is for people.

    `max_concurrency` is how many requests of full length it says would fit. `nominal`: blocks x tokens of a block, more
    than requests can hold where layers of several kinds share the blocks.
    """

    tokens: int
    source: str
    max_concurrency: float | None = None
    nominal: bool = False


@dataclass(frozen=True, slots=True)
class StatedPercentiles:
    """Percentiles of total tokens that somebody stated: `{99.9: 9500}`. They carry no interval and no n."""

    total: Mapping[float, float]


@dataclass(frozen=True, eq=False, slots=True)
class LatencySample:
    """Latencies of logged requests of the present epoch, binned to 1 %: parallel arrays, one row a distinct triple.

    `concurrency` is the mean number of sequences decoding on the request's replica while it decoded itself (rounded);
    `in_flight` the mean number of requests that had arrived there and not finished, queued ones included (rounded).
    `tpot_seconds` is NaN for requests of one output token, `ttft_seconds` is NaN where the log has none.
    """

    ttft_seconds: Floats
    tpot_seconds: Floats
    concurrency: Ints
    in_flight: Ints
    counts: Ints


@dataclass(frozen=True, eq=False, slots=True)
class RequestLog:
    """What request logs say of one deployment.

    served: (prompt, output) of requests that were answered with token counts.
    declared: prompt + declared max tokens, of served requests that declared some.
    refused_needs: what requests refused for their length would have needed, as far as the refusal says.
    refused: how many were refused for their length; failed: other errors; without_usage: answered without counts.
    cut: total tokens of requests that finished with reason `length`.
    arrivals: requests that arrived per 5-minute slot; key = UNIX seconds of the slot's start.
    history: how the lengths of served requests went with time and with clients; None where nobody kept that.
    tells_refusals, tells_cuts: whether its source would show such requests; else that there are none says nothing.
    """

    served: JointCounts
    declared: TokenCounts
    refused_needs: TokenCounts
    cut: TokenCounts
    refused: int
    failed: int
    without_usage: int
    first_seconds: float
    last_seconds: float
    arrivals: Mapping[int, int]
    latency: LatencySample | None
    source: str
    history: LengthHistory | None = None
    tells_refusals: bool = True
    tells_cuts: bool = True

    @property
    def requests(self) -> int:
        """All requests that the log shows."""
        return self.served.n + self.refused + self.failed + self.without_usage


@dataclass(frozen=True, eq=False, slots=True)
class Samples:
    """Gauges of one engine, scrape by scrape, in its present epoch; arrays of one length. `kv_usage` is 0..1.

    An array is None when the engine does not expose the gauge; NaN marks a scrape that lacks it.
    """

    time: Floats
    running: Floats
    waiting: Floats
    kv_usage: Floats | None


COUNTERS = (
    "preemptions",
    "finished",
    "finished_length",
    "prompt_tokens",
    "prompt_tokens_computed",
    "generation_tokens",
    "itl_sum",
    "itl_count",
    "ttft_sum",
    "ttft_count",
    "queue_sum",
    "queue_count",
    "steps",
    "step_tokens_sum",
    "prefix_queries",
    "prefix_hits",
    "external_prefix_queries",
    "external_prefix_hits",
)
"""Canonical counters of one engine. `itl_*`, `ttft_*`, `queue_*`: histogram sums (seconds) and counts; `steps`: engine
steps that emitted output; `step_tokens_sum`: tokens booked in them (prompt tokens computed + generated);
`external_prefix_*`: lookups of what was not in the engine's own cache, in one on the host or beyond."""


@dataclass(frozen=True, eq=False, slots=True)
class CounterWindows:
    """Increases of counters of one engine over successive windows of its present epoch.

    start, end: UNIX seconds, n windows. deltas: per canonical counter an array of n; NaN where a window has no
    reading. A counter that the engine does not expose is absent from `deltas`. tpot: per window the new observations of
    the TPOT histogram, n x (edges + 1), or None.
    """

    start: Floats
    end: Floats
    deltas: Mapping[str, Floats]
    tpot_edges: Floats | None = None
    tpot: Floats | None = None
    ttft_edges: Floats | None = None
    ttft: Floats | None = None

    def latencies(self, name: str) -> tuple[Floats, Floats] | None:
        """What the `tpot` or `ttft` histogram counted, n x (edges + 1), and its edges; None where not read."""
        counts, edges = (self.tpot, self.tpot_edges) if name == "tpot" else (self.ttft, self.ttft_edges)
        return None if counts is None or edges is None else (counts, edges)

    def total(self, counter: str) -> float | None:
        """The increase over all windows, or None when the counter was never readable."""
        values = self.deltas.get(counter)
        if values is None or not np.isfinite(values).any():
            return None
        return float(np.nansum(values))


EpochCause = Literal["restarted", "changed", "counters_reset", "first_seen"]
"""Why an epoch begins where it does: a process began, the settings that it exposes became others, its counters began
again without a known start, or nothing was read of it before."""


EngineRole = Literal["prefill", "decode", "part"]
"""What an engine serves of a request, where prompts are computed on one and answers on another; `part`: not told."""


@dataclass(frozen=True, eq=False, slots=True)
class EngineSeries:
    """One engine (one scheduler: a replica, or one data-parallel rank of it).

    lengths: `prompt_tokens` and `output_tokens` histograms over the whole window (lengths survive an epoch).
    latencies: `ttft`, `itl`, `tpot`, `queue` histograms in seconds over the present epoch, and of blocks of the cache
    that were evicted `block_reuse_gap` (between two uses) and `block_idle_before_evict` (since the last one).
    epoch_start: UNIX seconds since which flags, version and hardware are not known to have changed.
    lifetime: True when everything was read in one scrape and covers the time since the process started.
    length_hours: the same histograms as `lengths`, hour by hour.
    flags, version, pool_tokens: what this engine itself runs with, as far as it says so; siblings may differ.
    role: which part of its requests it serves; None for whole ones.
    """

    instance: str
    engine: str
    epoch_start: float
    samples: Samples
    windows: CounterWindows
    lengths: Mapping[str, Buckets]
    latencies: Mapping[str, Buckets]
    lifetime: bool = False
    flags: Mapping[str, Flag] = field(default_factory=dict)
    version: str | None = None
    pool_tokens: int | None = None
    epoch_cause: EpochCause | None = None
    length_hours: Mapping[str, BucketHours] = field(default_factory=dict)
    role: EngineRole | None = None


@dataclass(frozen=True, slots=True)
class HttpOutcomes:
    """Answers of the engines' HTTP servers to generation requests, by class. 4xx mixes refusals with other errors."""

    ok: float
    client_errors: float
    server_errors: float


@dataclass(frozen=True, eq=False, slots=True)
class Evidence:
    """Everything observed of one deployment over one window. Every part may be missing; what is missing is Unknown.

    engines: those that run alike, the most of the deployment; ceilings are taken from them. apart: those that run with
    other settings (canaries, or a rollout under way); their traffic counts, their latencies are of another epoch.
    read_in_part: the metrics' server told less than there is, or may have; so there may be more traffic than is shown.
    demand_hours: (UNIX seconds of a whole hour, requests per second) that earlier evaluations saw, oldest first.
    """

    name: str
    window: Window
    engine: str = "vllm"
    engine_version: str | None = None
    replicas: int | None = None
    workload: Workload = "interactive"
    slo: Slo = field(default_factory=Slo)
    flags: Mapping[str, Flag] = field(default_factory=dict)
    disagreements: tuple[Disagreement, ...] = ()
    model: ModelInfo = field(default_factory=ModelInfo)
    gpu: GpuInfo = field(default_factory=GpuInfo)
    reported_pool: ReportedPool | None = None
    percentiles: StatedPercentiles | None = None
    totals: TokenCounts | None = None
    joint: JointCounts | None = None
    log: RequestLog | None = None
    exported: ExportedLengths | None = None
    engines: tuple[EngineSeries, ...] = ()
    http: HttpOutcomes | None = None
    sweep: Sweep | None = None
    max_concurrency_seen: int | None = None
    stated: Mapping[str, Fact] = field(default_factory=dict)
    apart: tuple[EngineSeries, ...] = ()
    rollout: Rollout | None = None
    failure: Failure | None = None
    read_in_part: bool = False
    demand_hours: tuple[tuple[float, float], ...] = ()

    @property
    def every_engine(self) -> tuple[EngineSeries, ...]:
        """All engines: what traffic asks of the deployment, whatever the settings of the one that serves it."""
        return (*self.engines, *self.apart)

    @property
    def sized_engines(self) -> tuple[EngineSeries, ...]:
        """Of those that run alike the ones that were seen running in their present epoch; all, where none was."""
        return tuple(engine for engine in self.engines if engine.samples.time.size) or self.engines

    @property
    def best_joint(self) -> JointCounts | None:
        """Prompt and output of single requests: the log's where it has any, else as given."""
        return self.log.served if self.log and self.log.served.n else self.joint

    def flag(self, name: str) -> FlagValue | None:
        """The running value of a flag, or None when no source tells it."""
        known = self.flags.get(name)
        return known.value if known else None

    def count_flag(self, name: str) -> int | None:
        """A flag that is a whole number, or None."""
        value = self.flag(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def number_flag(self, name: str) -> float | None:
        """A flag that is a number, whole or not, or None."""
        value = self.flag(name)
        return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def as_floats(values: npt.ArrayLike) -> Floats:
    """Values as a float array."""
    return np.asarray(values, dtype=np.float64)
