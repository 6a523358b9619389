"""What an engine tells about itself while it starts, in terms that hold for every engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from advisor.domain.evidence import FlagValue
from advisor.domain.failure import Failure

GIB = 2.0**30


@dataclass(frozen=True, slots=True)
class MemoryBreakdown:
    """Where the memory of one GPU went, in bytes, as the engine printed it. None is not printed."""

    total_bytes: float | None = None
    weights_bytes: float | None = None
    activation_peak_bytes: float | None = None
    non_torch_bytes: float | None = None
    cuda_graph_bytes: float | None = None


@dataclass(frozen=True, slots=True)
class StartupFacts:
    """One start of one server.

    flags: under vLLM's names, only those that somebody set or the engine resolved in print.
    kv_pool_tokens: of one engine; the least of them where a server has several data-parallel ones.
    kv_available_bytes: for the cache, on the GPU that has least; weights_bytes: on the GPU that has most.
    max_concurrency: requests of full length that fit into one engine, the least over engines.
    engines: data-parallel engines that printed a pool; 0 when none did.
    failure: why this start ended without a server, or why the server died of memory.
    """

    engine: str
    version: str | None = None
    model: str | None = None
    served_names: tuple[str, ...] = ()
    flags: Mapping[str, FlagValue] = field(default_factory=dict)
    kv_pool_tokens: int | None = None
    kv_available_bytes: float | None = None
    weights_bytes: float | None = None
    max_concurrency: float | None = None
    memory: MemoryBreakdown | None = None
    engines: int = 0
    failure: Failure | None = None
