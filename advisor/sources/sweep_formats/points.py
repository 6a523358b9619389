"""Our own form of a sweep: a list of points, as people write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, RootModel, model_validator

from advisor.domain.evidence import FlagValue
from advisor.domain.sweep import SloStatistic, SweepPoint
from advisor.engines.vllm.flags import FLAGS, normalise
from advisor.sources.plausible import Concurrency, FirstTokenSeconds, MeanTokens, Rate, TokenSeconds
from advisor.sources.yaml_file import nearest


class Point(BaseModel):
    """One load level. Time per token is given directly or as tokens per second of one user, never both."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    concurrency: Concurrency = Field(description="sequences in flight at this level")
    output_tokens_per_second_per_user: Rate | None = Field(
        default=None, description="mean output tokens per second of one user; TPOT is one over it"
    )
    tpot: TokenSeconds | None = Field(default=None, description="time per output token")
    ttft: FirstTokenSeconds | None = Field(default=None, description="time to first token")
    requests_per_second: Rate | None = Field(default=None, description="requests finished per second")
    statistic: SloStatistic = Field(default="mean", description="what tpot and ttft are: mean, or p99 over requests")
    requests: int | None = Field(default=None, ge=1, description="requests behind it")
    computed: bool = Field(default=False, description="concurrency follows from throughput and latency, it was not set")
    at_most: bool = Field(default=False, description="tpot is only the most that it can be")
    prompt_tokens: MeanTokens | None = Field(default=None, description="mean prompt tokens of its requests")
    output_tokens: MeanTokens | None = Field(default=None, description="mean output tokens of its requests")

    @model_validator(mode="after")
    def _one_speed(self) -> Point:
        if (self.tpot is None) == (self.output_tokens_per_second_per_user is None):
            raise ValueError("give either tpot or output_tokens_per_second_per_user")
        if self.output_tokens_per_second_per_user is not None and self.statistic != "mean":
            raise ValueError("output_tokens_per_second_per_user is a mean; give tpot for a p99")
        return self

    def as_sweep_point(self) -> SweepPoint:
        """The point in seconds: 62 tokens per second per user are a TPOT of 16.1 ms."""
        speed = self.output_tokens_per_second_per_user
        return SweepPoint(
            concurrency=self.concurrency,
            tpot_seconds=1 / speed if speed is not None else self.tpot or 0.0,
            ttft_seconds=self.ttft,
            requests_per_second=self.requests_per_second,
            statistic=self.statistic,
            requests=self.requests,
            computed=self.computed,
            at_most=self.at_most,
            prompt_tokens=self.prompt_tokens,
            output_tokens=self.output_tokens,
        )


def distinct(points: Sequence[Point]) -> Sequence[Point]:
    """The points themselves. Raises ValueError when two of them claim one concurrency."""
    seen: set[float] = set()
    for point in points:
        if point.concurrency in seen:
            raise ValueError(f"concurrency {point.concurrency:g} is given twice")
        seen.add(point.concurrency)
    return points


Points = Annotated[list[Point], Field(min_length=1, max_length=1000), AfterValidator(distinct)]


class PointList(RootModel[Points]):
    """A file that is nothing but a list of points."""


class PointFile(BaseModel):
    """A file with the points under `sweep`, as in an evidence file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sweep: Points = Field(description="points of a load test")
    model: str | None = Field(default=None, max_length=200, description="the model that was tested")
    engine_version: str | None = Field(default=None, max_length=100, description="release of the engine")
    flags: Mapping[str, FlagValue] = Field(default_factory=dict, description="flags that it ran with")
    in_flight: bool = Field(default=False, description="concurrency is of requests in flight, not of those that ran")

    def running_flags(self) -> dict[str, FlagValue]:
        """The flags under vLLM's names. Raises ValueError for one that does not exist or cannot have its value."""
        flags: dict[str, FlagValue] = {}
        for written, value in self.flags.items():
            name = written.removeprefix("--").replace("-", "_")
            if name not in FLAGS:
                raise ValueError(f"no flag that sizes a server is called {name[:60]!r}; {nearest(name, FLAGS)}")
            flags[name] = normalise(name, value)
        return flags
