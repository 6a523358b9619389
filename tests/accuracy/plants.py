"""Simulated engines to hold promises against: what each would do under load is known, because it can be played.

Costs of a step, pools, caps and seeds vary; lengths are those of a trace, else of a mix. The formulas here only choose
loads of an interesting size; what counts is what the simulator then does.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tests.accuracy.traffic import MIXES, Pair, drawn, read_traces
from tests.recording import meters
from tests.recording.deployment import Deployment, Traffic, play
from tests.recording.engine import EngineFlags, StepTime
from tests.recording.meters import Scrape

LEAST_REQUESTS = 2000
SAMPLE = 6000
LONGEST = 65_536
WARM_UP = 0.25
BUSIER = 1.3


@dataclass(frozen=True, slots=True)
class Steady:
    """What one engine does while all its seats are taken: means over the time after it warmed up.

    within: for any target, the share of requests whose time per output token meets it.
    """

    itl_seconds: float
    requests_per_second: float
    preempted_share: float
    tpot_seconds: tuple[float, ...]

    def within(self, tpot_seconds: float) -> float:
        """Share of requests whose mean gap between tokens is at most so much."""
        return float(np.mean(np.array(self.tpot_seconds) <= tpot_seconds))


@dataclass(frozen=True, slots=True)
class Plant:
    """An engine's flags, what its steps cost, and the lengths of its traffic."""

    name: str
    flags: EngineFlags
    cost: StepTime
    pairs: tuple[Pair, ...]
    seed: int

    @property
    def held(self) -> float:
        """Tokens that a sequence in service holds on average: E[o (i + o/2)] / E[o]."""
        i, o = np.array(self.pairs, float).T
        return float((o * (i + o / 2)).sum() / o.sum())

    def rate(self, seats: float) -> float:
        """About the requests per second at which so many seats are taken: seats / (output x gap), prompts included."""
        i, o = np.array(self.pairs, float).mean(axis=0)
        decode = self.cost.base + seats * (self.cost.per_sequence + self.cost.per_kv_token * self.held)
        return float(seats / (o * decode + seats * i * self.cost.per_prefill_token))

    def gap(self, seats: float) -> float:
        """About the seconds between tokens with so many seats taken."""
        return float(seats / (self.rate(seats) * np.array(self.pairs, float)[:, 1].mean()))

    def with_cap(self, cap: int) -> Plant:
        """The same with another sequence cap."""
        return replace(self, flags=replace(self.flags, max_num_seqs=cap))

    def traffic(self, requests_per_second: float, daily_swing: float = 0.0) -> Traffic:
        """Poisson arrivals of these lengths."""
        return Traffic(requests_per_second, daily_swing=daily_swing, seed=self.seed, pairs=self.pairs)

    def serving(self, traffic: Traffic, hours: float, replicas: int = 1) -> Deployment:
        """A deployment of such engines under that traffic."""
        return Deployment(f"acme/{self.name}", traffic, self.flags, self.cost, replicas=replicas, seconds=hours * 3600)

    def saturated(self, requests: int = 3000) -> Steady:
        """Play it with more requests arriving than it can serve, for the time that about `requests` of them take."""
        rate = self.rate(self.flags.max_num_seqs)
        seconds = requests / rate / (1 - WARM_UP)
        deployment = replace(
            self.serving(replace(self.traffic(rate * BUSIER), seed=self.seed + 1), 0.0),
            seconds=seconds,
            scrape_seconds=seconds / 20,
        )
        (run,) = play(deployment)
        warm = [s for s in run.scrapes if s.time >= WARM_UP * seconds]
        done = [r for r in run.requests if r.finished >= warm[0].time and r.generated > 1]
        return _between(warm[0], warm[-1], [(r.finished - r.first_token) / (r.generated - 1) for r in done])


def _between(first: Scrape, last: Scrape, tpot_seconds: Sequence[float]) -> Steady:
    def counted(*names: str) -> int:
        return sum(last.counters[name] - first.counters[name] for name in names)

    gaps = last.histograms[meters.ITL][0][-1] - first.histograms[meters.ITL][0][-1]
    seconds = last.histograms[meters.ITL][1] - first.histograms[meters.ITL][1]
    finished = counted(meters.FINISHED_STOP, meters.FINISHED_LENGTH)
    return Steady(
        seconds / gaps,
        finished / (last.time - first.time),
        counted(meters.PREEMPTIONS) / finished,
        tuple(tpot_seconds),
    )


def plants(data: Path | None, seeds: Sequence[int]) -> list[Plant]:
    """One plant a seed with lengths of every mix, and one with those of every trace of DATA that is long enough."""
    traced = [_plant(t.name, t.pairs, seeds[0]) for t in read_traces(data) if len(t.pairs) >= LEAST_REQUESTS]
    return [*(_plant(mix, drawn(mix, SAMPLE, seed), seed) for mix in MIXES for seed in seeds), *traced]


def _plant(name: str, pairs: Sequence[Pair], seed: int) -> Plant:
    """Costs, pool and cap of the order of a large model on a few GPUs, drawn anew for every name and seed."""
    dice = random.Random(f"{name} {seed}")
    fitting = tuple(p for p in pairs if sum(p) < LONGEST)
    limit = max(map(sum, fitting)) + 1
    cost = StepTime(
        base=dice.uniform(0.008, 0.022),
        per_sequence=dice.uniform(1e-4, 3e-4),
        per_kv_token=dice.uniform(5e-9, 2.5e-8),
        per_prefill_token=dice.uniform(2e-5, 8e-5),
    )
    plant = Plant(f"{name}-{seed}", EngineFlags(), cost, fitting, seed)
    flags = EngineFlags(
        max_model_len=limit,
        max_num_seqs=dice.choice((10, 12, 16, 20)),
        max_num_batched_tokens=dice.choice((2048, 4096, 8192)),
        kv_pool_tokens=max(limit + 16, round(plant.held * dice.uniform(30, 70))),
    )
    return replace(plant, flags=flags)
