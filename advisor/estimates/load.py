"""What the engines were doing: running, waiting, cache usage, time at the cap, preemptions, prefix hits.

Gauges are pooled over (engine, scrape) pairs of the present epoch. One scrape of an engine says nothing about its past;
there the counters since its start bound what the gauges would have shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from advisor.domain.evidence import EngineSeries, Evidence
from advisor.domain.fact import Fact, computed, measured, unknown
from advisor.domain.histogram import Floats
from advisor.engines.admission import reserve

from .context_limit import present_limit
from .demand import GONE_SECONDS
from .flag_sources import missing
from .gauge_occupancy import kept_full
from .length_sample import believed_agents

LEAST_SCRAPES = 30
NO_METRICS = "no engine metrics over time: give --prometheus"
KEPT_FULL = "the cache is full whatever runs, as offload keeps it: usage tells nothing of requests"
LEAST_QUEUE_SECONDS = 0.05
RUNNING = ("server_info", "models_endpoint", "startup_log", "process", "metrics")


def facts(evidence: Evidence, known: Mapping[str, Fact]) -> dict[str, Fact]:
    """Load facts of one deployment; every share and percentile per engine."""
    cap = sequence_cap(evidence)
    gauges = _Gauges.of(evidence)
    return {
        "observed_seconds": _observed(evidence),
        "running_p95": _percentile(gauges.running, 95, "num_requests_running"),
        "running_max": _running_max(evidence, gauges),
        "waiting_p95": _percentile(gauges.waiting, 95, "num_requests_waiting"),
        "waiting_share": _share((gauges.waiting > 0).astype(float), "num_requests_waiting above 0"),
        "kv_usage_p95": _kv_usage(evidence, gauges, known, cap),
        "time_at_sequence_cap": _at_cap(evidence, gauges, cap),
        "time_at_full_seats": _full(evidence, gauges, cap),
        "preempted_share": _preempted(evidence),
        "queue_share_of_ttft": _ratio(evidence, "queue_sum", "ttft_sum", "request_queue_time / time_to_first_token"),
        "prefix_cache_hit_rate": _hit_rate(evidence),
        "replica_imbalance": _imbalance(evidence),
    }


def time_at_next_cap(evidence: Evidence, known: Mapping[str, Fact]) -> Fact:
    """Share of scrapes in which running and waiting together would fill the next cap; with a shorter queue, fewer do.

    Scrapes of 16 running with 0, 3, 9 and 19 waiting would fill 24 seats in two of four.
    """
    seats, gauges = known["next_max_num_seqs"].number, _Gauges.of(evidence)
    if seats is None:
        return unknown("no next cap is known")
    held = (gauges.running + gauges.waiting >= seats).astype(float)
    return _share(held, f"running and waiting together at {seats:,.0f} or more")


def sequence_cap(evidence: Evidence) -> int | None:
    """min(max_num_seqs, max_num_active_seqs) of the known ones: where `running` stops rising."""
    caps = [c for name in ("max_num_seqs", "max_num_active_seqs") if (c := evidence.count_flag(name)) and c > 0]
    return min(caps, default=None)


def engines_per_instance(evidence: Evidence) -> float:
    """Data-parallel engines behind one address: a log counts what an address serves, a cap holds for one engine."""
    instances = {e.instance for e in evidence.engines}
    return (
        len(evidence.engines) / len(instances) if instances else float(evidence.count_flag("data_parallel_size") or 1)
    )


def mean_decode_batch(engine: EngineSeries) -> float | None:
    """Decoding sequences per engine step over the whole epoch: one gap is recorded per decoding sequence and step."""
    gaps, steps = engine.windows.total("itl_count"), engine.windows.total("steps")
    return gaps / steps if gaps and steps and steps >= 1 else None


@dataclass(frozen=True, eq=False, slots=True)
class _Gauges:
    """Gauges of all engines side by side, one entry a (engine, scrape) pair with both counts readable."""

    running: Floats
    waiting: Floats
    kv_usage: Floats

    @classmethod
    def of(cls, evidence: Evidence) -> _Gauges:
        rows = [e.samples for e in evidence.engines if not e.lifetime]
        usage = [np.full(s.running.size, np.nan) if s.kv_usage is None else s.kv_usage for s in rows]
        columns = ([s.running for s in rows], [s.waiting for s in rows], usage)
        running, waiting, kv = (np.concatenate(c) if c else np.empty(0) for c in columns)
        both = np.isfinite(running) & np.isfinite(waiting)
        return cls(running[both], waiting[both], kv[both])


def _observed(evidence: Evidence) -> Fact:
    spans = [span for e in evidence.engines if (span := _span_seconds(e)) is not None]
    if spans:
        return measured(max(spans), source="engine metrics of the present epoch")
    if evidence.log and evidence.log.requests:
        return measured(evidence.log.last_seconds - evidence.log.first_seconds, source=evidence.log.source)
    agents = believed_agents(evidence)
    if agents is not None:
        return measured(agents.span_seconds, source=agents.source)
    if evidence.failure is None and any(flag.source in RUNNING for flag in evidence.flags.values()):
        return measured(0.0, source="a server runs, but no traffic was read")
    return unknown("nothing that runs was observed")


def _span_seconds(engine: EngineSeries) -> float | None:
    """Of its counters, else of its gauges: the engine's own log tells these alone."""
    windows, time = engine.windows, engine.samples.time
    if windows.end.size:
        return float(windows.end[-1] - windows.start[0])
    return float(time[-1] - time[0]) if time.size else None


def _percentile(values: Floats, q: float, source: str) -> Fact:
    finite = values[np.isfinite(values)]
    if finite.size < LEAST_SCRAPES:
        return unknown(f"{finite.size} scrapes; {LEAST_SCRAPES} are needed: {NO_METRICS}")
    return measured(float(np.quantile(finite, q / 100)), n=int(finite.size), source=source)


def _share(hits: Floats, source: str) -> Fact:
    if hits.size < LEAST_SCRAPES:
        return unknown(f"{hits.size} scrapes; {LEAST_SCRAPES} are needed: {NO_METRICS}")
    return measured(float(hits.mean()), n=int(hits.size), source=source)


def _running_max(evidence: Evidence, gauges: _Gauges) -> Fact:
    if gauges.running.size:
        return measured(float(gauges.running.max()), n=int(gauges.running.size), source="num_requests_running")
    batches = [b for e in evidence.engines if (b := mean_decode_batch(e)) is not None]
    if batches:
        return computed(
            float(np.ceil(max(batches) - 1e-9)), source="mean decode batch since the engine started, rounded up"
        )
    if evidence.max_concurrency_seen is not None:
        return measured(evidence.max_concurrency_seen, source="as stated")
    if evidence.log and evidence.log.latency is not None and evidence.log.latency.concurrency.size:
        most = float(evidence.log.latency.concurrency.max()) / engines_per_instance(evidence)
        return measured(most, source=f"{evidence.log.source}, decoding requests")
    return unknown(NO_METRICS)


def _kv_usage(evidence: Evidence, gauges: _Gauges, known: Mapping[str, Fact], cap: int | None) -> Fact:
    if evidence.engines and all(map(kept_full, evidence.engines)):
        return unknown(KEPT_FULL)
    over_time = _percentile(gauges.kv_usage, 95, "kv_cache_usage_perc")
    limit, pool = present_limit(evidence), known["kv_pool_tokens"].number
    if not over_time.is_unknown or cap is None or limit is None or not pool or not evidence.engines:
        return over_time
    most = min(cap * limit / pool, 1.0)
    if most == 1.0:
        return over_time
    story = f"{cap} sequences of {limit:,} tokens in a pool of {pool:,.0f} cannot use more"
    return computed(None, low=0.0, high=most, source=story)


def _at_cap(evidence: Evidence, gauges: _Gauges, cap: int | None) -> Fact:
    if cap is None:
        return unknown(missing(evidence, "max_num_seqs"))
    if gauges.running.size >= LEAST_SCRAPES:
        pinned = (gauges.running >= cap) & (gauges.waiting > 0)
        return measured(float(pinned.mean()), n=int(pinned.size), source=f"running at {cap} while requests wait")
    bounds = [_least_at_cap(e, cap) for e in evidence.engines if mean_decode_batch(e) is not None]
    if any(bounds):
        story = f"mean decode batch above {cap - 1} with requests queueing, since the engine started; share of steps"
        return computed(None, low=float(np.mean(bounds)), high=1.0, source=story)
    if (stated := _stated_at_cap(evidence, cap)) is not None:
        return stated
    return unknown(f"{gauges.running.size} scrapes; {LEAST_SCRAPES} are needed: {NO_METRICS}")


def _full(evidence: Evidence, gauges: _Gauges, cap: int | None) -> Fact:
    """Waiting or not: seats that are all taken for a moment are a queue that a slightly larger burst would see."""
    if cap is None:
        return unknown(missing(evidence, "max_num_seqs"))
    return _share((gauges.running >= cap).astype(float), f"running at {cap}")


def _stated_at_cap(evidence: Evidence, cap: int) -> Fact | None:
    """From stated percentiles alone: a p95 of running at the cap means 5 % of the scrapes; likewise for waiting."""
    running, waiting = (
        evidence.stated[n].number if n in evidence.stated else None for n in ("running_p95", "waiting_p95")
    )
    if "time_at_sequence_cap" in evidence.stated or running is None or waiting is None:
        return None
    if running < cap or waiting <= 0:
        return None
    story = f"running at {cap} and {waiting:g} waiting, both at p95; taken to be the same scrapes"
    return Fact(low=0.05, high=1.0, source=story, basis="assumed")


def _least_at_cap(engine: EngineSeries, cap: int) -> float:
    """A step below the cap holds at most cap - 1 sequences: a mean batch D is at the cap in at least D - (cap - 1).

    58,176 gaps over 7,416 steps = 7.845 at a cap of 8: at least 84 % of the steps. Only where requests really queued.
    """
    batch = mean_decode_batch(engine)
    queued, finished = engine.windows.total("queue_sum"), engine.windows.total("queue_count")
    if batch is None or not queued or not finished or queued / finished < LEAST_QUEUE_SECONDS:
        return 0.0
    share = batch - (cap - 1)
    return share if 0 < share <= 1 else 0.0


def _ratio(evidence: Evidence, above: str, below: str, source: str) -> Fact:
    pairs = [(e.windows.total(above), e.windows.total(below)) for e in evidence.engines]
    told = [(top, bottom) for top, bottom in pairs if top is not None and bottom is not None]
    if not told:
        return unknown(
            f"the engines do not expose {source.replace(' / ', ' and ')}" if evidence.engines else NO_METRICS
        )
    bottom = sum(b for _, b in told)
    if bottom <= 0:
        return unknown(f"{source.rpartition(' / ')[2]} did not move in the present epoch")
    return measured(sum(t for t, _ in told) / bottom, n=round(bottom), source=source)


def _preempted(evidence: Evidence) -> Fact:
    kept = reserve(evidence.engine, {})
    if kept is not None and kept.whole and evidence.engines:
        return measured(0.0, source="the engine reserves what a request declares and preempts nothing")
    return _ratio(evidence, "preemptions", "finished", "num_preemptions_total / request_success_total")


def _hit_rate(evidence: Evidence) -> Fact:
    rate = _ratio(evidence, "prefix_hits", "prefix_queries", "prefix_cache_hits / prefix_cache_queries")
    if rate.is_unknown and evidence.flag("enable_prefix_caching") is False:
        return measured(0.0, source="disabled")
    return rate


def serving(engines: Iterable[EngineSeries]) -> list[EngineSeries]:
    """Those that were still scraped when the last of them was: the others left."""
    sampled = [engine for engine in engines if engine.samples.time.size]
    last = max((float(engine.samples.time[-1]) for engine in sampled), default=0.0)
    return [engine for engine in sampled if engine.samples.time[-1] > last - GONE_SECONDS]


def _imbalance(evidence: Evidence) -> Fact:
    """Of the engines that serve, over the time in which all of them did: nights would count for one that restarted."""
    samples = [engine.samples for engine in serving(evidence.engines)]
    since = max((float(s.time[0]) for s in samples), default=0.0)
    read = [s.running[np.isfinite(s.running) & (s.time >= since)] for s in samples]
    means = [float(running.mean()) for running in read if running.size >= LEAST_SCRAPES]
    if len(means) < 2 or sum(means) == 0:
        return unknown("needs two engines that were scraped over time")
    return measured(max(means) / float(np.mean(means)), n=len(means), source="mean running per engine")
