"""The shape of an evidence file."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, Strict, StringConstraints, field_validator, model_validator

from .plausible import (
    MAX_TOKENS,
    CacheMemory,
    Count,
    FirstTokenSeconds,
    GpuMemory,
    Headroom,
    PoolTokens,
    TokenBytes,
    Tokens,
    TokenSeconds,
    Weights,
)
from .sweep_formats.points import Points

_PERCENTILE = re.compile(r"p(\d{1,2}(?:\.\d{1,4})?)")
_LONG_LIST = 10**6

Length = Annotated[int, Strict(), Field(ge=0, le=MAX_TOKENS)]
Times = Annotated[int, Strict(), Field(ge=1, le=10**9)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=300)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SloPart(_Part):
    """Latency objectives."""

    tpot: TokenSeconds | None = Field(default=None, description="time per output token, mean of one request")
    itl: TokenSeconds | None = Field(default=None, description="gap between two tokens")
    ttft: FirstTokenSeconds | None = Field(default=None, description="time to first token")
    percentile: float = Field(
        default=99, ge=50, lt=100, description="percent of requests that must meet them, such as 99"
    )


class ModelPart(_Part):
    """What KV arithmetic needs of the model."""

    weights: Weights | None = Field(default=None, description="all weights of one replica")
    kv_per_token: TokenBytes | None = Field(
        default=None, description="KV cache of one token, over all ranks of one engine"
    )
    max_context: Tokens | None = Field(default=None, description="the longest context that the model admits")
    config: str | dict[str, Any] | None = Field(default=None, description="path of a config.json, or its fields inline")


class GpuPart(_Part):
    """Memory of one GPU."""

    memory: GpuMemory | None = Field(default=None, description="total memory")
    headroom: Headroom | None = Field(default=None, description="what neither weights nor cache may use")
    kv_available: CacheMemory | None = Field(
        default=None, description="available for the cache, as the engine prints it"
    )


class RequestsPart(_Part):
    """Lengths of requests: pairs of prompt and output where they are known, else totals."""

    joint: list[tuple[Length, Length, Times]] | None = Field(
        default=None, max_length=_LONG_LIST, description="rows of prompt tokens, output tokens, number of requests"
    )
    total: list[tuple[Length, Times]] | None = Field(
        default=None, max_length=_LONG_LIST, description="rows of prompt plus output tokens, number of requests"
    )

    @model_validator(mode="after")
    def _either(self) -> RequestsPart:
        if not self.joint and not self.total:
            raise ValueError("give joint or total, with at least one row")
        if self.joint and self.total:
            raise ValueError("give joint or total, not both: joint contains the totals")
        return self


class ReportedPart(_Part):
    """What the engine reports of itself."""

    kv_pool_tokens: PoolTokens = Field(description="KV pool of one engine")


class DeploymentPart(_Part):
    """Everything that is known of one deployment."""

    engine: Literal["vllm", "sglang", "tgi", "trtllm", "llamacpp", "dynamo", "unknown"] = Field(
        default="vllm", description="which engine serves; of an unknown one advice names flags as vLLM does"
    )
    engine_version: str | None = Field(default=None, max_length=100, description="its version, such as '0.32.0'")
    workload: Literal["interactive", "batch"] = Field(
        default="interactive", description="does somebody wait for tokens"
    )
    slo: SloPart = Field(default=SloPart(), description="latency objectives")
    flags: dict[Name, Any] = Field(default_factory=dict, description="engine flags under the engine's own names")
    model: ModelPart = Field(default=ModelPart(), description="the model")
    gpu: GpuPart = Field(default=GpuPart(), description="one GPU")
    total_tokens: dict[str, Tokens] | None = Field(default=None, description="percentiles such as p99.9: 9500")
    sweep: Points | None = Field(default=None, description="points of a load test")
    reported: ReportedPart | None = Field(default=None, description="what the engine reports of itself")
    requests: RequestsPart | None = Field(default=None, description="lengths of requests")
    max_concurrency_seen: Count | None = Field(
        default=None, description="most running requests ever seen on one engine"
    )
    replicas: Count | None = Field(default=None, description="replicas that serve")
    facts: dict[Name, Any] = Field(default_factory=dict, description="facts of the catalogue, measured elsewhere")

    @field_validator("total_tokens")
    @classmethod
    def _ascending(cls, stated: dict[str, int] | None) -> dict[str, int] | None:
        ordered = sorted((percentile(name), tokens, name) for name, tokens in (stated or {}).items())
        for (_, lower, lower_name), (_, upper, upper_name) in pairwise(ordered):
            if upper < lower:
                raise ValueError(f"{upper_name} is {upper:,}, below {lower_name} with {lower:,}")
        return stated


class EvidenceFile(_Part):
    """The whole file."""

    deployments: dict[Name, DeploymentPart] = Field(min_length=1, description="by name")


def percentile(name: str) -> float:
    """`p99.9` is 99.9. Raises ValueError for anything else."""
    match = _PERCENTILE.fullmatch(name)
    if match is None or float(match[1]) == 0:
        raise ValueError(f"{name[:40]!r} is no percentile; write p50, p99 or p99.9")
    return float(match[1])
