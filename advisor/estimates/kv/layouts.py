"""The layouts that one engine may have, as far as flags, release and config tell."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import product

from advisor.domain.evidence import Evidence, ReportedPool

from .architecture import architecture, keeps_every_token
from .cache_type import cache_type
from .config_fields import layer_count
from .drafts import draft, with_draft
from .layers import Heads, Latent, Layers, UnknownLayoutError, attention_only, uniform
from .vllm_blocks import Blocks, Table, lay_out
from .vllm_choices import print_limits, terms


@dataclass(frozen=True, slots=True)
class Layout:
    """One layout that the engine may have; `limit` is the length by which it prints its pool, or None.

    token_bytes: of one token over all ranks, where every layer keeps every token, else None. likely: False for one that
    is possible, but not what is expected.
    """

    blocks: Blocks
    limit: int | None
    shares: int
    token_bytes: float | None
    story: str
    likely: bool = True

    def printed_tokens(self, rank_bytes: float) -> int:
        """The pool that the engine prints for that much memory on each rank."""
        return self.tokens_of(self.blocks.count(rank_bytes))

    def tokens_of(self, blocks: int) -> int:
        """The pool that the engine prints for that many blocks."""
        return self.shares * self.blocks.printed_tokens(blocks, self.limit)

    def blocks_of_report(self, pool: ReportedPool) -> float:
        """The blocks behind a reported pool, to within one."""
        tokens = pool.tokens
        if pool.nominal:
            return tokens / self.blocks.block_tokens
        if self.limit is None or self.blocks.is_uniform:
            return tokens / self.blocks.block_tokens * sum(t.copies for t in self.blocks.tables) / self.shares
        return tokens / self.limit * self.blocks.per_sequence(self.limit)


def stated_layouts(evidence: Evidence) -> tuple[Layout, ...]:
    """Every token takes so many bytes over all ranks of the present engine, as somebody stated."""
    stated = evidence.model.kv_bytes_per_token or 0.0
    return (_of_size(evidence, stated, ranks_of(evidence)),)


def restated_layouts(evidence: Evidence, tensor: int) -> tuple[Layout, ...]:
    """The same at another tensor parallelism: split further, or else every added rank keeps a copy.

    Raises UnknownLayoutError where nobody stated it.
    """
    stated, today = evidence.model.kv_bytes_per_token, evidence.count_flag("tensor_parallel_size") or 1
    if stated is None:
        raise UnknownLayoutError("neither the model's config.json nor kv_per_token is given")
    ranks = ranks_of(evidence) // today * tensor
    split = _of_size(evidence, stated, ranks)
    return (split, replace(_of_size(evidence, stated * max(1.0, tensor / today), ranks), likely=False))


def _of_size(evidence: Evidence, token_bytes: float, ranks: int) -> Layout:
    block, shares = evidence.count_flag("block_size") or 1, _shares(evidence)
    blocks = Blocks(token_bytes * shares / ranks * _unevenness(evidence) * block, (Table(1, block),))
    return Layout(blocks, None, shares, token_bytes, "stated")


def _unevenness(evidence: Evidence) -> float:
    """How much more than an even share of the layers the fullest pipeline stage holds: it decides for all."""
    stages = evidence.count_flag("pipeline_parallel_size") or 1
    layers = layer_count(evidence.model.config) if evidence.model.config else None
    return math.ceil(layers / stages) * stages / layers if layers else 1.0


def layouts(evidence: Evidence, tensor: int | None = None) -> tuple[Layout, ...]:
    """The possible layouts, the likeliest first; at `tensor` parallelism where given, else at the present one.

    Raises UnknownLayoutError where config, flags or release do not tell enough to name them.
    """
    if evidence.model.config is None:
        raise UnknownLayoutError("neither the model's config.json nor kv_per_token is given")
    layers, drafted = architecture(evidence.model.config), draft(evidence)
    ranks = attention_ranks(evidence, tensor)
    numbers = [drafted.layers, 0, drafted.most] if drafted.most > drafted.layers else [drafted.layers]
    return tuple(
        replace(found, likely=number == drafted.layers)
        for number in numbers
        for found in _of_layers(evidence, with_draft(layers, number), ranks, number)
    )


def attention_ranks(evidence: Evidence, tensor: int | None = None) -> int:
    """Ranks over which the attention of a sequence is split: with DP attention (SGLang) a part of the tensor ranks."""
    ranks = tensor or evidence.count_flag("tensor_parallel_size") or 1
    if evidence.engine == "sglang" and evidence.flag("enable_dp_attention") is True:
        return max(1, ranks // (evidence.count_flag("data_parallel_size") or 1))
    return ranks


def ranks_of(evidence: Evidence) -> int:
    """GPUs that hold the cache of one engine."""
    return attention_ranks(evidence) * (evidence.count_flag("pipeline_parallel_size") or 1)


def shares_blocks(evidence: Evidence) -> bool:
    """True where vLLM's pool serves layers of several kinds: a sequence then holds no fixed number of bytes a token."""
    config = evidence.model.config
    return evidence.engine == "vllm" and config is not None and not keeps_every_token(config)


def _of_layers(evidence: Evidence, layers: Layers, ranks: int, drafted: int) -> list[Layout]:
    if evidence.engine != "vllm":
        if any(isinstance(layer, Heads) and layer.window for layer, _ in layers):
            raise UnknownLayoutError(f"it may keep windows in a pool of their own (engine: {evidence.engine})")
        # States have a pool of their own there, so that the printed bytes are those of attention alone.
        layers = attention_only(layers)
    if uniform(layers):
        return [_uniform(evidence, layers, ranks, drafted)]
    plans = dict.fromkeys(
        (lay_out(layers, choice), limit)
        for choice, limit in product(terms(evidence, layers, ranks), print_limits(evidence))
    )
    return [Layout(blocks, limit, 1, None, _story(blocks)) for blocks, limit in plans]


def _uniform(evidence: Evidence, layers: Layers, ranks: int, drafted: int) -> Layout:
    cache, shares = cache_type(evidence, layers), _shares(evidence)
    block = evidence.count_flag("block_size") or 1
    pipeline = evidence.count_flag("pipeline_parallel_size") or 1
    total = sum(number for _, number in layers)
    token = sum(number * layer.token_bytes(ranks, cache) for layer, number in attention_only(layers))
    # The fullest pipeline stage decides for all.
    stage = token * math.ceil(total / pipeline) / total
    blocks = Blocks(stage * block, (Table(1, block),))
    story = _product(layers, ranks, cache.element_bytes, drafted)
    return Layout(blocks, None, shares, token * ranks / shares, story)


def _shares(evidence: Evidence) -> int:
    """Ranks over which the tokens of one sequence are spread."""
    return evidence.count_flag("decode_context_parallel_size") or 1


def _product(layers: Layers, ranks: int, element: float, drafted: int) -> str:
    parts = [_layer_story(layer, number, ranks, element) for layer, number in attention_only(layers)]
    return " + ".join(parts) + (f", {drafted} of them drafted" if drafted else "")


def _layer_story(layer: Heads | Latent, number: int, ranks: int, element: float) -> str:
    if isinstance(layer, Latent):
        index = f" and an index key of {layer.index_dim}" if layer.index_dim else ""
        copies = f", {ranks} copies" if ranks > 1 else ""
        return f"{number} layers x one latent of {layer.dim} x {element:g} bytes{index}{copies}"
    stored = layer.heads_on_rank(ranks) * ranks
    kept = f"{stored} KV heads" if stored == layer.kv_heads else f"{stored} copies of {layer.kv_heads} KV heads"
    return f"{number} layers x {kept} x {layer.key_dim} x 2 (K and V) x {element:g} bytes"


def _story(blocks: Blocks) -> str:
    tables = " + ".join(
        f"{t.copies} of {t.block_tokens:,} tokens"
        + (f" in a window of {t.window:,}" if t.window else "")
        + (f" with {t.held} states a sequence" if t.held is not None else "")
        for t in blocks.tables
    )
    return f"{blocks.block_bytes:,.0f} bytes a block; block tables: {tables}"
