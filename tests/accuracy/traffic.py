"""Lengths to measure with: real requests of the traces where there are any, else drawn from mixes of known shape."""

from __future__ import annotations

import csv
import gzip
import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Trace:
    """Requests in the order of their arrival: seconds, prompt and output tokens. `name` is short: "azure conv"."""

    name: str
    seconds: tuple[float, ...]
    pairs: tuple[Pair, ...]


def read_traces(data: Path | None) -> list[Trace]:
    """Every file of DATA/traces that has times and both lengths of each request; none without DATA."""
    found = sorted((data / "traces").glob("*.csv.gz")) if data else []
    return [trace for trace in map(_trace, found) if trace.pairs]


def _trace(path: Path) -> Trace:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        table = csv.DictReader(file)
        if not {"t_s", "prompt_tokens", "output_tokens"} <= set(table.fieldnames or ()):
            return Trace(path.name, (), ())
        rows = sorted((float(r["t_s"]), int(r["prompt_tokens"]), int(r["output_tokens"])) for r in table)
    words = path.name.removesuffix(".csv.gz").split("_")
    pairs = tuple((max(prompt, 1), max(output, 1)) for _, prompt, output in rows)
    return Trace(f"{words[0][:5]} {words[-1][:6]}", tuple(at for at, _, _ in rows), pairs)


def _chat(dice: random.Random) -> Pair:
    return _tokens(dice.lognormvariate(math.log(700), 0.8)), _tokens(dice.lognormvariate(math.log(260), 0.7))


def _reasoning(dice: random.Random) -> Pair:
    return _tokens(dice.lognormvariate(math.log(400), 0.7)), _tokens(dice.lognormvariate(math.log(1800), 0.6))


def _documents(dice: random.Random) -> Pair:
    return _tokens(dice.lognormvariate(math.log(4000), 0.7)), _tokens(dice.lognormvariate(math.log(180), 0.6))


def _heavy(dice: random.Random) -> Pair:
    """Nine chats and one Pareto document, whose p99.9 is far beyond its median."""
    if dice.random() < 0.9:
        return _chat(dice)
    return _tokens(min(1500 * dice.paretovariate(1.6), 60_000)), _tokens(dice.lognormvariate(math.log(300), 0.7))


def _tokens(length: float) -> int:
    return max(1, round(length))


MIXES: dict[str, Callable[[random.Random], Pair]] = {
    "chat": _chat,
    "reasoning": _reasoning,
    "documents": _documents,
    "heavy tail": _heavy,
}


def drawn(mix: str, n: int, seed: int) -> tuple[Pair, ...]:
    """`n` independent requests of a mix; the same for the same seed."""
    dice = random.Random(seed)
    return tuple(MIXES[mix](dice) for _ in range(n))
