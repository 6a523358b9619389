"""What one layer of a model stores in the cache, and its size on one of several tensor-parallel ranks."""

from __future__ import annotations

from dataclasses import dataclass


class UnknownLayoutError(Exception):
    """Why the cache of this model is not computed; for people."""


@dataclass(frozen=True, slots=True)
class CacheType:
    """How the elements of keys, values and latents are kept.

    element_bytes: 2, 1 with fp8, 0.5625 with nvfp4 (half a byte and one fp8 scale for 16 elements).
    scale_bytes: besides, for each vector of one head and token (4 where scales are per token and head).
    packed_latent_bytes: a latent vector in the packed fp8 form for sparse attention, 512 + 16 of scales + 128, or None.
    """

    element_bytes: float
    scale_bytes: int = 0
    packed_latent_bytes: int | None = None

    def vector_bytes(self, elements: int) -> float:
        """One vector of one head and token: 128 elements in nvfp4 are 72 bytes."""
        return elements * self.element_bytes + self.scale_bytes


@dataclass(frozen=True, slots=True)
class Heads:
    """Multi-head, grouped-query or multi-query attention; with a `window`, only its last tokens are kept."""

    query_heads: int
    kv_heads: int
    key_dim: int
    value_dim: int
    window: int | None = None

    def heads_on_rank(self, ranks: int) -> int:
        """KV heads that one rank stores: at least one. Raises UnknownLayoutError where they cannot be split."""
        if self.query_heads % ranks:
            raise UnknownLayoutError(f"{self.query_heads} attention heads cannot be split over {ranks} ranks")
        if self.kv_heads % ranks and ranks % self.kv_heads:
            raise UnknownLayoutError(f"{self.kv_heads} KV heads cannot be split over {ranks} ranks")
        return max(1, self.kv_heads // ranks)

    def token_bytes(self, ranks: int, cache: CacheType) -> float:
        """Bytes of one token on one rank. 8 heads of 128 in 16 bits: 4,096 at TP 1, 512 at TP 8 and above."""
        vectors = cache.vector_bytes(self.key_dim) + cache.vector_bytes(self.value_dim)
        return self.heads_on_rank(ranks) * vectors


@dataclass(frozen=True, slots=True)
class Latent:
    """Multi-head latent attention: one vector for all heads, the same on every rank; a sparse one adds an index key.

    The index key is kept in fp8 with one 4-byte scale for 128 elements.
    """

    dim: int
    index_dim: int | None = None

    def token_bytes(self, ranks: int, cache: CacheType) -> float:
        """Bytes of one token on one rank, whatever their number: 576 elements in 16 bits are 1,152."""
        del ranks
        index = 0 if self.index_dim is None else self.index_dim + self.index_dim // 128 * 4
        packed = cache.packed_latent_bytes if self.index_dim is not None else None
        return index + (cache.vector_bytes(self.dim) if packed is None else packed)


@dataclass(frozen=True, slots=True)
class State:
    """A layer with a state of fixed size per sequence: state-space, linear attention, short convolution.

    The convolution keeps `conv_channels` for its last `conv_steps` tokens in the model's type; `recurrent_elements` are
    kept in `recurrent_bytes` each.
    """

    conv_channels: int
    conv_steps: int
    recurrent_elements: int = 0
    recurrent_bytes: int = 0

    def state_bytes(self, ranks: int, element_bytes: int, lookahead: int) -> int:
        """Bytes of one state on one rank; `lookahead` draft tokens lengthen the convolution.

        Qwen3.5 27B at TP 1: 10,240 x 3 x 2 + 48 x 128 x 128 x 4 = 3,207,168.
        """
        if self.conv_channels % ranks or self.recurrent_elements % ranks:
            raise UnknownLayoutError(f"the state of its linear layers cannot be split over {ranks} ranks")
        conv = self.conv_channels // ranks * (self.conv_steps + lookahead) * element_bytes
        return conv + self.recurrent_elements // ranks * self.recurrent_bytes


Layer = Heads | Latent | State
Layers = tuple[tuple[Layer, int], ...]
"""Kinds of layers, each with how many there are."""


def attention_only(layers: Layers) -> tuple[tuple[Heads | Latent, int], ...]:
    """The layers whose cache grows with the sequence."""
    return tuple((layer, count) for layer, count in layers if not isinstance(layer, State))


def uniform(layers: Layers) -> bool:
    """True where every layer keeps every token: then a pool is so many tokens, whatever their sequences."""
    return all(isinstance(layer, Latent) or (isinstance(layer, Heads) and layer.window is None) for layer, _ in layers)
