"""What vLLM's flags and release decide about the blocks of a model with several kinds of layers."""

from __future__ import annotations

from itertools import product

from advisor.domain.evidence import Evidence
from advisor.engines.vllm.flags import Version, parse_version

from .cache_type import cache_type, model_element_bytes
from .config_fields import language_part
from .drafts import draft
from .layers import Heads, Layers, State, UnknownLayoutError
from .state_layers import MAMBA2_MODELS
from .vllm_blocks import SMALLEST_BLOCK, Terms

_PRINTS_BY_LENGTH = (0, 20, 1)
_CACHES_PREFIXES_OF_HYBRIDS = (0, 26, 0)
_COUNTS_STEPS_IN_FLIGHT = (0, 26, 0)
_PADS_FROM = ((0, 12, 0), 1.25), ((0, 18, 0), 1.5)


def _refuse_splits(evidence: Evidence) -> None:
    for flag, what in (("pipeline_parallel_size", "pipeline"), ("decode_context_parallel_size", "context")):
        if (evidence.count_flag(flag) or 1) > 1:
            raise UnknownLayoutError(f"{what} parallelism splits its kinds of layers in ways not known here")
    if evidence.flag("kv_transfer_config"):
        raise UnknownLayoutError("with a KV connector a model of several kinds of layers may keep all of them whole")


def terms(evidence: Evidence, layers: Layers, ranks: int) -> list[Terms]:
    """The choices that are possible, the likelier ones first.

    Raises UnknownLayoutError where flags or release would have to tell and do not.
    """
    _refuse_splits(evidence)
    version = parse_version(evidence.engine_version)
    states = any(isinstance(layer, State) for layer, _ in layers)
    windows = any(isinstance(layer, Heads) and layer.window for layer, _ in layers)
    lookahead = draft(evidence).lookahead
    if states and lookahead is None:
        raise UnknownLayoutError("speculative_config does not say num_speculative_tokens, and states are kept for each")
    return [
        Terms(
            ranks=ranks,
            cache=cache_type(evidence, layers),
            element_bytes=model_element_bytes(evidence),
            block_tokens=max(evidence.count_flag("block_size") or 0, SMALLEST_BLOCK),
            lookahead=lookahead or 0,
            state_blocks=(2 if cached else 1) + (lookahead or 0),
            in_flight=in_flight,
            depth_ratio=ratio,
            align=align,
        )
        for cached, in_flight, ratio, align in product(
            _prefixes_cached(evidence, version) if states else [False],
            _in_flight(evidence, version) if windows else [0],
            _depth_ratios(version),
            _alignments(layers) if states else [SMALLEST_BLOCK],
        )
    ]


def _prefixes_cached(evidence: Evidence, version: Version | None) -> list[bool]:
    flag = evidence.flag("enable_prefix_caching")
    if isinstance(flag, bool):
        known = [flag]
    else:
        known = [False, True] if version is None else [version >= _CACHES_PREFIXES_OF_HYBRIDS]
    kind = language_part(evidence.model.config or {}).get("model_type")
    if kind in MAMBA2_MODELS and True in known and (version is None or version < _CACHES_PREFIXES_OF_HYBRIDS):
        raise UnknownLayoutError("with prefix caching, older releases keep a Mamba state for every block of a sequence")
    return known


def _in_flight(evidence: Evidence, version: Version | None) -> list[int]:
    budget = evidence.count_flag("max_num_batched_tokens")
    if budget is None:
        raise UnknownLayoutError("max_num_batched_tokens is not known: a sliding window keeps what a step computes")
    if version is not None and version < _COUNTS_STEPS_IN_FLIGHT:
        return [budget]
    overlapping = evidence.flag("async_scheduling")
    steps = [1, 2] if version is None or not isinstance(overlapping, bool) else [2 if overlapping else 1]
    return [number * budget for number in reversed(steps)]


def _depth_ratios(version: Version | None) -> list[float]:
    if version is None:
        return [1.5, 1.25]
    return [max([1.0, *(ratio for first, ratio in _PADS_FROM if version >= first)])]


def _alignments(layers: Layers) -> list[int]:
    """A block of latent attention is a multiple of 64 or, in newer releases, 128 tokens."""
    return [SMALLEST_BLOCK] if all(isinstance(layer, Heads | State) for layer, _ in layers) else [128, 64]


def print_limits(evidence: Evidence) -> list[int | None]:
    """The lengths by which the pool may be printed: max_model_len, or None for blocks by tables as before 0.20.1.

    Where the release is not known, the concurrency printed beside the pool tells which.
    """
    version, limit = parse_version(evidence.engine_version), evidence.count_flag("max_model_len")
    pool = evidence.reported_pool
    if version is not None and version < _PRINTS_BY_LENGTH:
        return [None]
    if limit is None:
        raise UnknownLayoutError("the pool of several kinds of layers is printed by max_model_len, which is not known")
    if version is not None:
        return [limit]
    if pool is not None and pool.max_concurrency:
        # Printed with two digits.
        same = abs(pool.tokens / limit - pool.max_concurrency) < 0.006
        return [limit] if same else [None]
    return [limit, None]
