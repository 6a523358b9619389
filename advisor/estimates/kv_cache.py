"""The KV cache: what one token takes, and how many tokens the pool of one engine holds."""

from __future__ import annotations

import math
from collections.abc import Sequence

from advisor.domain.evidence import Evidence
from advisor.domain.fact import Fact, computed, measured, unknown

from .kv.layers import UnknownLayoutError
from .kv.layouts import Layout, layouts, ranks_of, shares_blocks, stated_layouts
from .kv.memory import cache_memory

_RESOLVE = "state kv_per_token, or rely on the pool that the engine reports"


def kv_bytes_per_token(evidence: Evidence) -> Fact:
    """Bytes of KV cache of one token, over all ranks of one engine.

    A stated figure first. Else layers x KV heads x head size x 2 (K and V) x bytes of an element, KV heads counted once
    a rank where tensor parallelism exceeds them. Llama 3.1 70B: 80 x 8 x 128 x 2 x 2 = 327,680 at TP 1 to 8, and
    655,360 at TP 16. Latent attention: layers x 576 x 2, once a rank: DeepSeek V3 70,272 at TP 1, 562,176 at TP 8.
    Unknown where sequences take no fixed number of bytes a token, and for every architecture that is not known.
    """
    if evidence.model.kv_bytes_per_token is not None:
        return measured(evidence.model.kv_bytes_per_token, source="stated")
    try:
        sizes = [(layout.token_bytes, layout.story) for layout in layouts(evidence)]
    except UnknownLayoutError as reason:
        return unknown(f"{reason}: {_RESOLVE}")
    known = [size for size, _ in sizes if size is not None]
    if len(known) < len(sizes):
        return unknown(
            "its layers keep windows or states, so that a sequence takes no fixed number of bytes a token: "
            "the pool is computed in blocks"
        )
    low, high = (min(known), max(known)) if len(set(known)) > 1 else (None, None)
    return computed(known[0], low=low, high=high, source=sizes[0][1])


def kv_pool_tokens(evidence: Evidence) -> Fact:
    """Tokens in the KV pool of one engine, as it reports."""
    pool = evidence.reported_pool
    if pool is None:
        return unknown(
            "the engine's report of its pool was not read: give a start-up log, metrics, or reported.kv_pool_tokens"
        )
    return measured(pool.tokens, source=pool.source)


def kv_pool_tokens_predicted(evidence: Evidence) -> Fact:
    """Tokens in the KV pool of one engine by arithmetic, as this engine and release would print them.

    Memory for the cache / bytes of a token, in whole blocks; where layers of several kinds share the pool, in blocks
    for all of them. Memory, all ranks together: what the engine printed or was told, else what total memory leaves.
    Four GPUs of 80 GB at 0.92 with 70 GB of weights, 8 GB of headroom each and 327,680 bytes a token: 4 x (73.6 - 17.5
    - 8) = 192.4 GB, 587,158 tokens. What the headroom stands for (activations, graphs, communication) cannot be known
    from outside, so the figure then carries the interval of none to twice that headroom; without a stated headroom it
    is an interval alone. So it is where something decides the layout that nobody told. Rounding to blocks only where
    block_size is known.
    """
    try:
        found = present_layouts(evidence)
    except UnknownLayoutError as reason:
        return unknown(f"{reason}: {_RESOLVE}")
    blocks = evidence.count_flag("num_gpu_blocks_override") if evidence.engine == "vllm" else None
    if blocks is None:
        return pool_in(found, cache_memory(evidence), ranks_of(evidence))
    pools = {layout.tokens_of(blocks) for layout in found}
    if evidence.count_flag("block_size") is None or len(pools) > 1:
        return unknown("num_gpu_blocks_override is set, but not what a block holds: state block_size and the version")
    return computed(pools.pop(), source=f"{blocks:,} blocks by num_gpu_blocks_override")


def sequences_of_length(evidence: Evidence, tokens: float) -> Fact:
    """Sequences of that length that fit together, counted in blocks: for layers that keep windows or states.

    Blocks: those behind the reported pool, else those of the memory; one of them is never handed out. Qwen3.6 35B with
    300 blocks of 2,096 tokens: at 131,072 tokens a sequence holds 63 + 3 x 2 blocks, so 299 / 69 = 4 fit.
    """
    try:
        found = layouts(evidence)
    except UnknownLayoutError as reason:
        return unknown(f"its layers keep windows or states, and {reason}")
    pool, memory = evidence.reported_pool, cache_memory(evidence)
    if pool is None and memory.floor is None:
        return unknown(memory.unknown or "the memory for the cache is not known")
    fits = []
    for layout in found:
        rank = (memory.floor or 0.0) / ranks_of(evidence)
        blocks = layout.blocks.count(rank) if pool is None else layout.blocks_of_report(pool)
        fits.append(math.floor((blocks + 0.01 - 1) / layout.blocks.per_sequence(math.ceil(tokens))))
    story = f"{tokens:,.0f} tokens in {found[0].blocks.per_sequence(math.ceil(tokens)):,} blocks; {found[0].story}"
    if len(set(fits)) == 1:
        return computed(max(0, fits[0]), source=story)
    return computed(None, low=max(0, min(fits)), high=max(0, *fits), source=story)


def kv_pool_relative_error(evidence: Evidence) -> Fact:
    """(predicted - reported) / reported, signed; with the interval that the prediction has."""
    predicted, reported = kv_pool_tokens_predicted(evidence), printed_pool(evidence)
    if predicted.is_unknown or not reported.number:
        return unknown(predicted.unknown or reported.unknown or "the reported pool is empty")
    pool = reported.number
    value, low, high = (
        None if bound is None else bound / pool - 1 for bound in (predicted.number, predicted.low, predicted.high)
    )
    said = "in an interval" if predicted.number is None else f"{predicted.number:,.0f}"
    return computed(value, low=low, high=high, source=f"predicted {said}, reported {pool:,.0f} ({reported.source})")


def kv_pool_disagreement(relative_error: Fact) -> Fact:
    """How far the reported pool lies outside what arithmetic allows, as a share of it; 0 inside the interval.

    From printed memory there is no interval, and an error of -3 % disagrees by 3 %; an error of 4 % that may as well be
    -2 % does not disagree.
    """
    low = relative_error.number if relative_error.low is None else relative_error.low
    high = relative_error.number if relative_error.high is None else relative_error.high
    if low is None or high is None:
        return unknown(relative_error.unknown or "the predicted pool is not known")
    return computed(max(low, -high, 0.0), source=relative_error.source or "relative error")


def printed_pool(evidence: Evidence) -> Fact:
    """The reported pool; one in nominal tokens as the start-up log would print it."""
    pool = evidence.reported_pool
    if pool is None or not pool.nominal or not shares_blocks(evidence):
        return kv_pool_tokens(evidence)
    try:
        printed = {layout.tokens_of(math.floor(layout.blocks_of_report(pool))) for layout in layouts(evidence)}
    except UnknownLayoutError as reason:
        return unknown(f"{reason}: {_RESOLVE}")
    if len(printed) > 1:
        return unknown("the reported pool is in nominal tokens, and the layout that it stands for is not known")
    return measured(printed.pop(), source=pool.source)


def present_layouts(evidence: Evidence) -> Sequence[Layout]:
    """What the cache of this engine may look like. Raises UnknownLayoutError where that is not known."""
    return layouts(evidence) if evidence.model.kv_bytes_per_token is None else stated_layouts(evidence)


def pool_in(found: Sequence[Layout], memory: Fact, ranks: int) -> Fact:
    """The pool for that much memory over all ranks: a figure where memory and layout are known, and its bounds."""
    if memory.is_unknown:
        return memory

    def tokens(size: float | None, among: Sequence[Layout]) -> list[int]:
        return [] if size is None else [layout.printed_tokens(size / ranks) for layout in among]

    likely = tokens(memory.number, [layout for layout in found if layout.likely])
    lows = tokens(memory.number if memory.low is None else memory.low, found)
    highs = tokens(memory.number if memory.high is None else memory.high, found)
    if not max(highs):
        return unknown(f"not one block fits the memory for the cache: {memory.source}")
    per = found[0].token_bytes
    story = f"{memory.source}; {found[0].story}" if per is None else f"{memory.source} / {per:,.0f} bytes a token"
    value = likely[0] if len(set(likely)) == 1 else None
    if value is not None and min(lows) == max(highs):
        return computed(value, source=story)
    return computed(value, low=min(lows), high=max(highs), source=story)
