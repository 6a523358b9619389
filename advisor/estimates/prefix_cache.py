"""How much room the prefix cache has, how long a block that nobody uses survives in it, and whether hits are lost.

vLLM and SGLang keep what finished requests have written until its place is needed, the longest unused first, and their
usage gauge counts running requests only. So the prefix cache has what these leave, R = pool x (1 - usage), and where W
tokens are written a second (prompts computed, and output) an unused block survives for about R / W.

Worked: of 400,000 tokens 25 % are in use; 500 tokens are written a second: 300,000 / 500 = 600 s.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from advisor.domain.evidence import Evidence
from advisor.domain.fact import Fact, computed, measured, unknown
from advisor.domain.histogram import Buckets, Floats

from .gauge_occupancy import kept_full
from .kv.layouts import shares_blocks
from .load import KEPT_FULL, NO_METRICS
from .prefix_slots import SLOT_SECONDS, Slots, slots

KEEPS_THE_UNUSED = ("vllm", "sglang")
LEAST_SLOTS = 8
LEAST_BLOCKS = 100
BUSY_SHARE = 0.1
QUARTER = 0.25
SAME_LENGTHS = 1.25
LEAST_SPREAD = 2.0
SURE = 4.0
SLOTS_AN_HOUR = 3600 / SLOT_SECONDS
NO_RESIDENCY = "needs vLLM 0.12 or later with --kv-cache-metrics, which samples when blocks are used and evicted"


def facts(evidence: Evidence, known: Mapping[str, Fact]) -> dict[str, Fact]:
    """Room and turnover of the prefix cache, the gaps after which blocks are used again, and hits that are lost."""
    pool = known["kv_pool_tokens"]
    reason = _untold(evidence) or (None if pool.number else f"the KV pool is not known: {pool.unknown}")
    found = None if reason or not pool.number else slots(evidence, pool.number)
    told = found if found is not None and found.written.size >= LEAST_SLOTS else reason or NO_METRICS
    gaps, idle = _blocks(evidence, "block_reuse_gap"), _blocks(evidence, "block_idle_before_evict")
    usual, busy = _turnover(told, 0.5), _turnover(told, BUSY_SHARE)
    survived = None if idle is None else _percentile(idle, 0.5, "idle time of evicted blocks")
    return {
        "prefix_cache_room_tokens": _room(told),
        "prefix_turnover_seconds": usual if survived is None else survived.instead_of(usual),
        "prefix_turnover_busy_seconds": busy,
        "prefix_reuse_gap_p90_seconds": _percentile(
            gaps, 0.9, "time between two uses of a block, of those evicted since"
        ),
        "prefix_late_reuse_share": _late(gaps, busy),
        "prefix_hit_rate_lost": _lost(told),
        "external_prefix_cache_hit_rate": _external(evidence),
    }


def _untold(evidence: Evidence) -> str | None:
    """Why nothing follows from the gauges of this engine."""
    if evidence.engine not in KEEPS_THE_UNUSED:
        return f"what the cache usage of {evidence.engine} leaves is not known to hold prefixes"
    if evidence.flag("enable_prefix_caching") is False or evidence.flag("disable_radix_cache") is True:
        return "the prefix cache is off"
    if evidence.engines and all(map(kept_full, evidence.engines)):
        return KEPT_FULL
    if shares_blocks(evidence):
        return "its layers keep windows or states, so that a token takes no fixed part of the pool"
    return None


def _room(told: Slots | str) -> Fact:
    if isinstance(told, str):
        return unknown(told)
    mean = float(np.average(told.room, weights=told.seconds))
    return computed(mean, n=told.room.size, source="pool x (1 - mean usage), per engine: what running requests leave")


def _turnover(told: Slots | str, share: float) -> Fact:
    """The turnover below which this share of all tokens is written."""
    if isinstance(told, str):
        return unknown(told)
    value = _weighted(told.turnover, told.written, share)
    how = "half" if share == 0.5 else f"{share:.0%}"
    story = f"room / tokens written a second; {how} of them are written while it is shorter"
    return computed(value, n=told.written.size, source=story)


def _weighted(values: Floats, weights: Floats, q: float) -> float:
    order = np.argsort(values, kind="stable")
    upto = np.cumsum(weights[order])
    # Where a value has exactly that share below it, the last bit of a sum must not decide.
    return float(values[order][np.searchsorted(upto, q * upto[-1] * (1 - 1e-9))])


def _blocks(evidence: Evidence, name: str) -> Buckets | None:
    merged = Buckets.merge(e.latencies[name] for e in evidence.engines if name in e.latencies)
    return merged if merged is not None and merged.n >= LEAST_BLOCKS else None


def _percentile(blocks: Buckets | None, q: float, source: str) -> Fact:
    if blocks is None:
        return unknown(NO_RESIDENCY)
    low, high = blocks.quantile_bounds(q)
    return measured(None, low=low, high=high if np.isfinite(high) else None, n=round(blocks.n), source=source)


def _late(gaps: Buckets | None, busy: Fact) -> Fact:
    """Reuses that came later than a block survives in busy times: then they would have missed.

    A gap is seen only where the block was still there, in quieter times: so these are the least that are lost.
    """
    if gaps is None or busy.number is None:
        return unknown(NO_RESIDENCY if gaps is None else busy.unknown or "")
    least, most = gaps.share_within(busy.number)
    value = 1 - least if least == most else None
    low, high = (None, None) if value is not None else (1 - most, 1 - least)
    story = f"blocks used again after more than {busy.number:,.0f} s, of those used twice and evicted since"
    return measured(value, low=low, high=high, n=round(gaps.n), source=story)


def _lost(told: Slots | str) -> Fact:
    """Hits that busy times lack beside quiet ones, as a share of their lookups: at least so many are lost.

    Of the quarters of lookups while blocks survive longest and shortest, with mean prompts and outputs within 25 %.
    That the hit rate falls is no proof: other requests may come on top that share nothing. They take no hits away, so
    fewer tokens that hit a second, although more are looked up, are one. A value where it is four times its own error,
    else bounds.
    Worked: 1,254 tokens hit a second at 99 s of turnover, 818 of 6,820 at 44 s: 436 / 6,820 = 6.4 % are lost.
    """
    if isinstance(told, str):
        return unknown(told)
    looked = told.looked_up()
    short, long = looked.part(looked.turnover, QUARTER), looked.part(-looked.turnover, QUARTER)
    if refused := _not_comparable(short, long):
        return unknown(refused)
    asked = float(short.queries.sum() / short.seconds.sum())
    (few, unsure), (many, unsure_too) = _hits_per_second(short), _hits_per_second(long)
    lost, error = (many - few) / asked, float(np.hypot(unsure, unsure_too)) / asked
    story = (
        f"{many:,.0f} tokens hit a second while blocks survive {np.median(long.turnover):,.0f} s, {few:,.0f} of "
        f"{asked:,.0f} at {np.median(short.turnover):,.0f} s"
    )
    if lost + 2 * error <= 0:
        return unknown("no fewer tokens hit a second while blocks survive briefly: no loss is seen")
    value = lost if lost >= SURE * error else None
    low, high = max(lost - 2 * error, 0.0), lost + 2 * error
    return computed(value, low=low, high=high, n=looked.queries.size, source=story)


def _not_comparable(short: Slots, long: Slots) -> str | None:
    """Why the hits of times in which blocks survive briefly and long say nothing of each other."""
    if min(short.queries.size, long.queries.size) < LEAST_SLOTS:
        return f"needs {LEAST_SLOTS} quarters of an hour with lookups and without preemptions at each end"
    if np.median(long.turnover) < LEAST_SPREAD * np.median(short.turnover):
        return "blocks survive about as long in quiet times as in busy ones, so nothing tells them apart"
    for one, other in zip(short.mean_lengths, long.mean_lengths, strict=True):
        if not max(one, other) <= SAME_LENGTHS * min(one, other):
            return "busy and quiet times have requests of other lengths, so other prefixes, too"
    if short.queries.sum() / short.seconds.sum() < long.queries.sum() / long.seconds.sum():
        return "fewer tokens are looked up while blocks survive briefly, so fewer hits are no loss"
    return None


def _hits_per_second(part: Slots) -> tuple[float, float]:
    """With its standard error; slots of one hour are taken for one."""
    mean = float(part.hits.sum() / part.seconds.sum())
    spread = np.average((part.hits / part.seconds - mean) ** 2, weights=part.seconds)
    return mean, float(np.sqrt(spread / max(part.hits.size / SLOTS_AN_HOUR, 1.0)))


def _external(evidence: Evidence) -> Fact:
    totals = [
        (e.windows.total("external_prefix_hits"), e.windows.total("external_prefix_queries")) for e in evidence.engines
    ]
    told = [(hits, queries) for hits, queries in totals if hits is not None and queries]
    if not told:
        return unknown("no cache beyond the engine's own is looked up, as far as its metrics tell")
    queries = sum(q for _, q in told)
    return measured(sum(h for h, _ in told) / queries, n=round(queries), source="external_prefix_cache_hits / queries")
