"""A deployment under seeded traffic, and what it leaves behind: engine metrics and a gateway's request log."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from pathlib import Path

from tests.recording.engine import Engine, EngineFlags, Request, StepTime
from tests.recording.export import EngineRun, write_metrics, write_request_log


@dataclass(frozen=True, slots=True)
class Traffic:
    """Poisson arrivals with log-normal lengths. `daily_swing` (0..1) is the amplitude of a 24 h sine from the start.

    `max_tokens` is what every request declares; an output that would be longer ends there with reason `length`.
    `pairs`: prompt and output tokens of requests to draw from instead.
    """

    requests_per_second: float
    prompt_median: float = 900
    prompt_sigma: float = 0.8
    output_median: float = 200
    output_sigma: float = 0.7
    max_tokens: int | None = None
    daily_swing: float = 0.0
    seed: int = 1
    pairs: tuple[tuple[int, int], ...] = ()

    def draw(self, seconds: float) -> list[Request]:
        """The requests of `seconds` of traffic, by arrival; the same ones for the same seed."""
        dice = random.Random(self.seed)
        peak = self.requests_per_second * (1 + self.daily_swing)
        requests = []
        now = dice.expovariate(peak)
        while now < seconds:
            level = (1 + self.daily_swing * math.sin(2 * math.pi * now / 86400)) / (1 + self.daily_swing)
            if dice.random() < level:
                requests.append(Request(now, *self._lengths(dice), self.max_tokens))
            now += dice.expovariate(peak)
        return requests

    def _lengths(self, dice: random.Random) -> tuple[int, int]:
        if self.pairs:
            return dice.choice(self.pairs)
        prompt = dice.lognormvariate(math.log(self.prompt_median), self.prompt_sigma)
        output = dice.lognormvariate(math.log(self.output_median), self.output_sigma)
        return max(1, round(prompt)), max(1, round(output))


@dataclass(frozen=True, slots=True)
class Restart:
    """All replicas go down at `at` (seconds from the start), losing what they serve, and return with `engine`."""

    at: float
    engine: EngineFlags
    down_seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class Deployment:
    """Replicas of one model, their flags, the cost of a step, their traffic and how it is recorded.

    `canary`: the flags of the last replica, where they are not those of the others.
    """

    model: str
    traffic: Traffic
    engine: EngineFlags = field(default_factory=EngineFlags)
    step_time: StepTime = field(default_factory=StepTime)
    replicas: int = 1
    data_parallel_size: int = 1
    restart: Restart | None = None
    canary: EngineFlags | None = None
    seconds: float = 6 * 3600
    scrape_seconds: float = 15.0

    def lives(self) -> list[tuple[float, float, EngineFlags]]:
        """The spans in which processes live, as (start, end, flags)."""
        if self.restart is None:
            return [(0.0, self.seconds, self.engine)]
        up_again = self.restart.at + self.restart.down_seconds
        return [(0.0, self.restart.at, self.engine), (up_again, self.seconds, self.restart.engine)]


@dataclass(frozen=True, slots=True)
class Recording:
    """What was written: OpenMetrics text for `promtool tsdb create-blocks-from`, and JSON lines; and its span."""

    metrics: Path
    log: Path
    start: float
    end: float


def play(deployment: Deployment) -> list[EngineRun]:
    """Run every engine in every life of its process. A front end deals requests to engines in turn."""
    requests = deployment.traffic.draw(deployment.seconds)
    ranks = deployment.data_parallel_size
    engines = deployment.replicas * ranks
    runs = []
    for number in range(engines):
        instance = f"10.0.0.{number // ranks + 1}:8000"
        tried = deployment.canary if number // ranks == deployment.replicas - 1 else None
        for start, end, common in deployment.lives():
            flags = tried or common
            mine = [r for r in requests[number::engines] if start <= r.arrival < end]
            scrapes = Engine(flags, deployment.step_time, start).run(mine, end, deployment.scrape_seconds)
            runs.append(EngineRun(instance, str(number % ranks), flags, start, scrapes, mine))
    return runs


def record(deployment: Deployment, end: float, folder: Path) -> Recording:
    """Play `deployment` so that it ends at the UNIX time `end`, and write what it leaves behind into `folder`."""
    runs = play(deployment)
    start = end - deployment.seconds
    folder.mkdir(parents=True, exist_ok=True)
    recording = Recording(folder / "metrics.om", folder / "requests.jsonl", start, end)
    write_metrics(recording.metrics, deployment.model, runs, start)
    write_request_log(recording.log, deployment.model, runs, start)
    return recording
