"""What a server would start with and can serve, after it failed or where its limit is longer than its cache."""

from __future__ import annotations

import math
from collections.abc import Mapping

from advisor.domain.evidence import Evidence
from advisor.domain.fact import Fact, computed, measured, unknown

from .context_limit import present_limit

SLACK = 0.01
"""Kept free in each pool by the watermark of releases before the V1 engine."""
DEFAULT_BLOCK = 16
USUAL_SEATS = 256
MOST_UTILIZATION = 0.95
STEP = 0.05
MARGIN = 0.005


def facts(evidence: Evidence, known: Mapping[str, Fact]) -> dict[str, Fact]:
    """The failure, and the settings that would avoid it."""
    return {
        "server_failure": _word(evidence),
        "servable_max_model_len": _limit(evidence, known),
        "startable_max_num_seqs": _seats(evidence),
        "startable_gpu_memory_utilization": _utilization(evidence, known),
    }


def _word(evidence: Evidence) -> Fact:
    if evidence.failure is not None:
        return computed(evidence.failure.kind, source="start-up log")
    if "server_failure" in evidence.stated:
        return unknown("stated")
    return computed("none", source="no log that was read tells of a failure")


def fits(most: float, block: int) -> int:
    """The longest limit in whole blocks that leaves a block and 1 % of `most` tokens free.

    7,344 tokens in blocks of 16: 7,344 - 73.44 = 7,270.56, so 7,264. 1,008 tokens: one block off, 992.
    """
    return max(math.floor((most - max(block, SLACK * most)) / block) * block, 0)


def _limit(evidence: Evidence, known: Mapping[str, Fact]) -> Fact:
    most, source = _most_tokens(evidence)
    if most is None:
        return unknown(source)
    longest, needed = fits(most, evidence.count_flag("block_size") or DEFAULT_BLOCK), known["recommended_max_model_len"]
    if needed.number is not None and needed.number < longest:
        return computed(needed.number, source=f"what requests need; {longest:,} would fit")
    return computed(longest, source=f"{most:,.0f} tokens ({source}), less a block and 1 %")


def _most_tokens(evidence: Evidence) -> tuple[float | None, str]:
    """Tokens of the longest request that the cache can hold, and who says so; else None and why."""
    failure, pool, limit = evidence.failure, evidence.reported_pool, present_limit(evidence)
    if failure is not None and failure.most_tokens is not None:
        return failure.most_tokens, "named by the engine"
    if pool is None:
        return None, "the engine's report of its pool was not read"
    if not pool.nominal:
        return pool.tokens, pool.source
    if pool.max_concurrency is None or limit is None:
        return None, "the pool is counted in blocks that layers share: the log's maximum concurrency would tell"
    return pool.max_concurrency * limit, f"{pool.max_concurrency:g} requests of {limit:,} tokens, {pool.source}"


def _seats(evidence: Evidence) -> Fact:
    """What the engine names; after memory ran out for so many seats 256, the default before they grew, or half."""
    failure = evidence.failure
    if failure is not None and failure.most_seats is not None:
        return measured(failure.most_seats, source="named by the engine: one state slot a sequence")
    if failure is None or failure.kind != "out_of_memory_by_seats" or failure.seats is None:
        return unknown("no start failed for the number of its sequences")
    seats = USUAL_SEATS if failure.seats > USUAL_SEATS else max(failure.seats // 2, 1)
    return computed(seats, source=f"{failure.seats:,} were too many while starting")


def _utilization(evidence: Evidence, known: Mapping[str, Fact]) -> Fact:
    """0.05 lower after memory ran out, at most 0.95: 0.99 becomes 0.94; what is free where others hold the rest.

    Where nothing is left for the cache 0.95, and Unknown from there: then the weights are too large for the GPU.
    """
    failure, now = evidence.failure, known["gpu_memory_utilization"].number
    kind = failure.kind if failure else known["server_failure"].value
    if failure and failure.free_share is not None:
        return computed(
            math.floor((failure.free_share - MARGIN) * 100) / 100, source=f"{failure.free_share:.1%} was free"
        )
    if now is None:
        return unknown("gpu_memory_utilization is not known: give --set gpu_memory_utilization=N, or the whole log")
    if kind in ("out_of_memory_starting", "out_of_memory_serving"):
        value = min(math.floor((now - STEP) * 100 + 1e-9) / 100, MOST_UTILIZATION)
        return computed(value, source=f"{STEP:g} below {now:g}, at most {MOST_UTILIZATION:g}")
    if kind == "no_memory_for_cache" and now < MOST_UTILIZATION:
        return computed(MOST_UTILIZATION, source=f"{now:g} leaves nothing; above {MOST_UTILIZATION:g} activations fail")
    return unknown(f"at {now:g} no other share of memory is known to help")
