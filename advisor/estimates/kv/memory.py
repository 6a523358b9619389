"""The memory that one engine has for its cache: as printed, as told, or what total memory leaves."""

from __future__ import annotations

from advisor.domain.evidence import Evidence
from advisor.domain.fact import Fact, computed, unknown
from advisor.engines.vllm.flags import default_gpu_memory_utilization, parse_version

from .layouts import ranks_of

GIB = 2.0**30
LEAST_HEADROOM = 0.2 * GIB
MOST_HEADROOM = 2.5 * GIB
MOST_SHARE = 0.05
USUAL_BUDGET = 8192
_PREFILLS_IN_CHUNKS = (0, 8, 0)
_LONGEST_UNCHUNKED = 32_768


def cache_memory(evidence: Evidence) -> Fact:
    """Bytes for the cache over all ranks of one engine; from total memory with the interval of the headroom."""
    told = evidence.count_flag("kv_cache_memory_bytes")
    if evidence.gpu.kv_available_bytes is not None:
        return _per_gpu(evidence, evidence.gpu.kv_available_bytes, "available memory as printed")
    if told is not None:
        return _per_gpu(evidence, float(told), "kv_cache_memory_bytes")
    return memory_left(evidence, ranks_of(evidence))


def memory_left(evidence: Evidence, ranks: int) -> Fact:
    """Bytes that total memory leaves for the cache when the model is spread over so many ranks.

    ranks x (memory x utilization - headroom) - weights. With a stated headroom the interval goes from twice of it to
    none. Without one there is no best guess, and `usual_headroom` gives the interval.
    """
    gpu, weights = evidence.gpu, evidence.model.weights_bytes
    share = evidence.flag("gpu_memory_utilization") or default_gpu_memory_utilization(evidence.engine_version)
    if evidence.engine != "vllm":
        return unknown(
            f"GPU memory is not shared out by vLLM's rule (engine: {evidence.engine}): "
            "give gpu.kv_available as it prints it"
        )
    if gpu.memory_bytes is None or weights is None:
        return unknown(
            "memory for the cache: give gpu.kv_available as the engine prints it, or gpu.memory, gpu.headroom and "
            "model.weights"
        )
    if not isinstance(share, float | int):
        return unknown("gpu_memory_utilization is not known, nor the version that decides its default: state either")
    room = ranks * gpu.memory_bytes * share - weights
    terms = f"{gpu.memory_bytes / 1e9:g} GB x {share:g} - {weights / ranks / 1e9:g}"
    if gpu.headroom_bytes is None:
        return _usual(room, ranks, terms, *usual_headroom(evidence, gpu.memory_bytes))
    left = room - ranks * gpu.headroom_bytes
    terms = f"{terms} - {gpu.headroom_bytes / 1e9:g}"
    if left <= 0:
        return unknown(f"no memory is left for a cache: {ranks} x ({terms}) is {left / 1e9:,.1f} GB; check the figures")
    return computed(
        left, low=max(0.0, 2 * left - room), high=room, source=f"{ranks} x ({terms}) = {left / 1e9:,.1f} GB"
    )


def usual_headroom(evidence: Evidence, memory: float) -> tuple[float, float]:
    """Least and most bytes of one GPU that neither weights nor cache get: of 80 GiB, 0.2 to 4 GiB.

    Activations of the profiling step, CUDA graphs and communication took 0.25 to 3.1 GiB in nine of ten public
    start-ups on GPUs of 12 to 80 GiB, and 4 of 140 GiB: so at most 2.5 GiB, or 5 % of a large GPU. They grow with the
    tokens of that step: the token budget, or a whole max_model_len before prefills were chunked.
    """
    budget = evidence.count_flag("max_num_batched_tokens") or _profiled_length(evidence) or USUAL_BUDGET
    return LEAST_HEADROOM, max(MOST_HEADROOM, MOST_SHARE * memory) * max(1.0, budget / USUAL_BUDGET)


def _profiled_length(evidence: Evidence) -> int | None:
    version, length = parse_version(evidence.engine_version), evidence.count_flag("max_model_len") or 0
    unchunked = version is not None and version < _PREFILLS_IN_CHUNKS and length <= _LONGEST_UNCHUNKED
    return length if unchunked else None


def _usual(room: float, ranks: int, terms: str, least: float, most: float) -> Fact:
    high = room - ranks * least
    if high <= 0:
        return unknown(f"no memory is left for a cache: {ranks} x ({terms}) is {room / 1e9:,.1f} GB; check the figures")
    low = max(0.0, room - ranks * most)
    story = f"{ranks} x ({terms} - a headroom of {least / 1e9:.2g} to {most / 1e9:.2g}, which nobody stated)"
    return computed(None, low=low, high=high, source=f"{story} = {low / 1e9:,.1f} to {high / 1e9:,.1f} GB")


def _per_gpu(evidence: Evidence, size: float, source: str) -> Fact:
    ranks = ranks_of(evidence)
    stated = evidence.count_flag("tensor_parallel_size")
    who = f"{ranks} x " if ranks > 1 else "" if stated else "1 GPU (tensor_parallel_size not stated) x "
    return computed(ranks * size, source=f"{who}{size / 1e9:,.2f} GB ({source})")
