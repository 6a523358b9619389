"""How vLLM lays the layers of a model out in blocks, and how it prints the pool.

Layers of one kind share one block table. A model of several kinds gets several tables, which all draw their blocks from
one pool, so pages of all kinds are made equally large, and tables equally deep; short ones are padded. Read in vLLM's
`v1/core/kv_cache_utils.py` (later `kv_cache_planning.py`) and `v1/kv_cache_interface.py`, 0.9.1 to 0.33.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from .layers import CacheType, Heads, Latent, Layers, State, UnknownLayoutError, uniform

SMALLEST_BLOCK = 16


@dataclass(frozen=True, slots=True)
class Table:
    """Block tables of one kind: `copies` of them, each block with `block_tokens` tokens.

    A sequence holds what it has written so far; with a `window` only its last tokens; with `held` so many blocks
    whatever its length.
    """

    copies: int
    block_tokens: int
    window: int | None = None
    held: int | None = None

    def blocks(self, tokens: int, in_flight: int) -> int:
        """Blocks that one sequence of `tokens` holds at most, while `in_flight` tokens are being computed."""
        if self.held is not None:
            return self.copies * self.held
        if self.window is None:
            return self.copies * -(-tokens // self.block_tokens)
        kept = min(self.window - 1 + in_flight, tokens)
        # A window need not begin where a block does.
        return self.copies * (-(-kept // self.block_tokens) + 1)


@dataclass(frozen=True, slots=True)
class Blocks:
    """The layout of one rank: bytes of a block over all its layers, and the block tables.

    in_flight: tokens that steps under way may hold beyond a window.
    """

    block_bytes: float
    tables: tuple[Table, ...]
    in_flight: int = 0

    @property
    def is_uniform(self) -> bool:
        """True where a pool is so many tokens, whatever the sequences are."""
        return len(self.tables) == 1 and self.tables[0].window is None

    @property
    def block_tokens(self) -> int:
        """Tokens of the smallest block."""
        return min(table.block_tokens for table in self.tables)

    def per_sequence(self, tokens: int) -> int:
        """Blocks that one sequence of that length holds."""
        return sum(table.blocks(tokens, self.in_flight) for table in self.tables)

    def count(self, rank_bytes: float) -> int:
        """Whole blocks in the memory of one rank."""
        # A pool that divides evenly must not lose a block to the last bit of a float.
        return max(0, math.floor(rank_bytes / self.block_bytes + 1e-9))

    def printed_tokens(self, blocks: int, limit: int | None) -> int:
        """The pool as it is printed: with `limit`, what requests of that length hold together (since 0.20.1).

        Before, and for a single kind of layer, blocks / tables x tokens of a block. Qwen3.6 35B in fp8 with 6.01 GiB:
        300 blocks of 2,096 tokens; a request of 131,072 holds 63 + 3 x 2; 300 / 69 x 131,072 = 569,878.
        """
        if limit is None or self.is_uniform:
            return blocks // sum(table.copies for table in self.tables) * self.block_tokens
        return int(blocks / self.per_sequence(limit) * limit)


@dataclass(frozen=True, slots=True)
class Terms:
    """What besides the layers decides the layout; one set of choices where some are not known.

    state_blocks: blocks that a sequence holds in each table of states. depth_ratio: up to that ratio of their numbers,
    layers of the rarer kind are padded to the more frequent one. align: of the block where states ask for a larger one.
    """

    ranks: int
    cache: CacheType
    element_bytes: int
    block_tokens: int
    lookahead: int
    state_blocks: int
    in_flight: int
    depth_ratio: float
    align: int


def lay_out(layers: Layers, terms: Terms) -> Blocks:
    """The blocks of one rank that holds all `layers`. Raises UnknownLayoutError for a mixture that is not known."""
    if uniform(layers):
        token = sum(number * _token_bytes(layer, terms) for layer, number in layers)
        return Blocks(token * terms.block_tokens, (Table(1, terms.block_tokens),))
    if len(layers) == 1 and isinstance(layers[0][0], Heads):
        token, window = layers[0][1] * _token_bytes(layers[0][0], terms), layers[0][0].window
        return Blocks(token * terms.block_tokens, (Table(1, terms.block_tokens, window),), terms.in_flight)
    page, tables = _pages(layers, terms)
    depth = _depth([number for _, number in layers], terms.depth_ratio)
    copies = [-(-number // depth) for _, number in layers]
    counted = tuple(Table(n, t.block_tokens, t.window, t.held) for n, t in zip(copies, tables, strict=True))
    return Blocks(depth * page, counted, terms.in_flight)


def _pages(layers: Layers, terms: Terms) -> tuple[float, list[Table]]:
    """The common size of a page, and per kind how many tokens it holds."""
    if any(isinstance(layer, Latent) and layer.index_dim is not None for layer, _ in layers):
        raise UnknownLayoutError("sparse latent attention beside other layers is laid out in ways not known here")
    sizes = [_token_bytes(layer, terms) for layer, _ in layers if not isinstance(layer, State)]
    block = terms.block_tokens
    for layer, _ in layers:
        if isinstance(layer, State):
            state = layer.state_bytes(terms.ranks, terms.element_bytes, terms.lookahead)
            block = max(block, terms.align * math.ceil(state / (terms.align * max(sizes))))
    page = max(sizes) * block
    return page, [_table(layer, page, block, terms) for layer, _ in layers]


def _table(layer: Heads | Latent | State, page: float, block: int, terms: Terms) -> Table:
    if isinstance(layer, State):
        return Table(1, block, held=terms.state_blocks)
    times, rest = divmod(page, _token_bytes(layer, terms) * block)
    if rest:
        raise UnknownLayoutError("its kinds of layers have pages that do not divide each other")
    return Table(1, block * int(times), layer.window if isinstance(layer, Heads) else None)


def _depth(numbers: list[int], ratio: float) -> int:
    return max(numbers) if max(numbers) < min(numbers) * ratio else min(numbers)


def _token_bytes(layer: Heads | Latent | State, terms: Terms) -> float:
    if isinstance(layer, State):
        raise UnknownLayoutError("a state has no size per token")
    return layer.token_bytes(terms.ranks, terms.cache)
