"""Since when requests are as long as they are now: what was measured before that was measured on other work.

At equal concurrency a step takes longer with longer contexts (prompt and half of the output), and with more prompt
tokens for every token of an answer. Both are followed window by window. They changed where a split into before and
since is clearest: with n and m requests and means M1 and M2 where |M2 - M1| sqrt(n m / (n + m)) is largest (CUSUM). It
counts where one mean is 1.25 times the other and |ln M2 / M1| sqrt(n m / (n + m)) is six scatters of a single request.
What came since is split again until nothing is found.

What asks more of a step counts at once. What asks less counts once it has come for a day: until then it may only be
what comes at this hour, and a line measured on it alone would promise too much to what comes back.

Worked: 1,000 requests of 1,150 tokens, then 250 of 2,300, with a scatter of 100 %: ln 2 x sqrt(200) = 9.8.
Drawn without any change from nine kinds of traffic, 150 times each: one was found, and four with five scatters.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from advisor.domain import numbers
from advisor.domain.evidence import EngineSeries, Evidence, as_floats
from advisor.domain.histogram import Floats
from advisor.domain.length_history import LengthHistory, upper_edge

HEAVIER = 1.25
SURE = 6.0
LEAST_REQUESTS = 100
DAY_SECONDS = 86_400.0
PIECES = 64
MEDIAN_OF_CHI_SQUARE = 0.455
_COUNTERS = ("finished", "prompt_tokens", "generation_tokens")


@dataclass(frozen=True, slots=True)
class LengthChange:
    """A change of lengths: how many times as much requests ask of a step since then as over all, and both in words."""

    heavier: float
    told: str


@dataclass(frozen=True, eq=False, slots=True)
class _Course:
    """A mean by window, `above` / `below`, and how many requests stand behind each."""

    above: Floats
    below: Floats
    requests: Floats

    def since(self, first: int) -> _Course:
        return _Course(self.above[first:], self.below[first:], self.requests[first:])


@lru_cache(maxsize=256)
def first_alike(engine: EngineSeries) -> int:
    """Place of the first of an engine's windows since which requests are as long as now; 0 where nothing tells.

    Asked by every estimate that pairs lengths with times, and 16 ms for a week of one engine: remembered.
    """
    if not set(_COUNTERS) <= engine.windows.deltas.keys():
        return 0
    counted = np.array([engine.windows.deltas[name] for name in _COUNTERS])
    finished, prompts, outputs = np.where(np.isfinite(counted).all(axis=0), counted, 0.0)
    courses = (_Course(prompts + outputs / 2, finished, finished), _Course(prompts, outputs, finished))
    return _first(courses, engine.windows.end - engine.windows.start)


def mean_lengths_now(evidence: Evidence) -> tuple[float, float] | None:
    """Mean prompt and output tokens of requests since their lengths changed; None where they did not.

    Of all engines since the last change on any of them: the week of one that did not change would hide it.
    """
    firsts = {engine: first_alike(engine) for engine in _counting(evidence)}
    changes = [float(engine.windows.start[first]) for engine, first in firsts.items() if first]
    if not changes:
        return None
    return _means({engine: int(np.searchsorted(engine.windows.start, max(changes))) for engine in firsts})


def length_change(evidence: Evidence) -> LengthChange | None:
    """The last change of lengths within the present epoch, from counters, else from the log; None without one."""
    engines = _counting(evidence)
    if not engines:
        history = evidence.log.history if evidence.log else None
        return None if history is None else _logged(history)
    now, overall = mean_lengths_now(evidence), _means(dict.fromkeys(engines, 0))
    if now is None or overall is None:
        return None
    seconds = max(float(e.windows.end[-1] - e.windows.start[k]) for e in engines if (k := first_alike(e)))
    (prompt, output), (prompt_overall, output_overall) = now, overall
    held = (prompt + output / 2) / (prompt_overall + output_overall / 2)
    per_token = (prompt / max(output, 1.0)) / (prompt_overall / max(output_overall, 1.0))
    told, told_overall = (f"{numbers.tokens(i)} + {numbers.tokens(o)}" for i, o in (now, overall))
    return LengthChange(max(held, per_token), _told(told, told_overall, seconds))


def _counting(evidence: Evidence) -> list[EngineSeries]:
    return [e for e in evidence.engines if not e.lifetime and set(_COUNTERS) <= e.windows.deltas.keys()]


def _means(since: dict[EngineSeries, int]) -> tuple[float, float] | None:
    finished, prompts, outputs = (
        sum(float(np.nansum(engine.windows.deltas[name][first:])) for engine, first in since.items())
        for name in _COUNTERS
    )
    return (prompts / finished, outputs / finished) if finished and prompts else None


def _logged(history: LengthHistory) -> LengthChange | None:
    slots, place = np.unique(history.start, return_inverse=True)
    finished = as_floats(np.bincount(place, history.counts))
    tokens = as_floats(np.bincount(place, history.counts * upper_edge(history.bin)))
    first = _first((_Course(tokens, finished, finished),), np.full(slots.size, float(history.seconds)))
    if not first:
        return None
    now, overall = (float(tokens[k:].sum() / finished[k:].sum()) for k in (first, 0))
    seconds = float(slots[-1] + history.seconds - slots[first])
    return LengthChange(now / overall, _told(numbers.tokens(now), numbers.tokens(overall), seconds))


def _told(now: str, overall: str, seconds: float) -> str:
    return f"requests changed {numbers.duration(seconds)} ago ({now} tokens now, {overall} over all)"


def _first(courses: Iterable[_Course], seconds: Floats) -> int:
    first, courses = 0, list(courses)
    while change := _clearest([course.since(first) for course in courses], seconds[first:]):
        first += change
    return first


def _clearest(courses: Iterable[_Course], seconds: Floats) -> int:
    """How many windows lie before the clearest change of any course; 0 where there is none."""
    if seconds.size < 2:
        return 0
    lasting = seconds.sum() - np.cumsum(seconds)[:-1]
    return max(_change(course, lasting) for course in courses)[1]


def _change(course: _Course, lasting: Floats) -> tuple[float, int]:
    """How many scatters the clearest split shows, and the windows before it; zeros where none counts."""
    above, below, before = (np.cumsum(part)[:-1] for part in (course.above, course.below, course.requests))
    all_above, all_below, requests = course.above.sum(), course.below.sum(), course.requests.sum()
    enough = (before >= LEAST_REQUESTS) & (requests - before >= LEAST_REQUESTS)
    enough &= (above > 0) & (below > 0) & (above < all_above) & (below < all_below)
    if not enough.any():
        return 0.0, 0
    with np.errstate(divide="ignore", invalid="ignore"):
        was, now = above / below, (all_above - above) / (all_below - below)
        weight = np.sqrt(requests * below / all_below * (1 - below / all_below))
        jump, shift = np.where(enough, (now - was) * weight, 0.0), np.log(now / was)
    more, less = int(jump.argmax()), int(jump.argmin())
    places = [k for k in ([more, less] if lasting[less] >= DAY_SECONDS else [more]) if enough[k]]
    clear = [k for k in places if abs(shift[k]) >= math.log(HEAVIER)]
    strengths = [(float(abs(shift[k]) * weight[k] / max(_scatter(course), 1e-9)), k + 1) for k in clear]
    return max((told for told in strengths if told[0] >= SURE), default=(0.0, 0))


def _scatter(course: _Course) -> float:
    """Scatter of the logarithm of one request's figure, from how the means of neighbouring pieces of time differ.

    Neighbours, so that a slow change is not taken for scatter; their median, so that a jump is not.
    """
    starts = np.unique(np.linspace(0, course.requests.size, PIECES, endpoint=False).astype(int))
    pieces = np.array([np.add.reduceat(part, starts) for part in (course.above, course.below, course.requests)])
    above, below, requests = pieces[:, (pieces > 0).all(axis=0)]
    if requests.size < 2:
        return math.inf
    steps = np.diff(np.log(above / below)) ** 2 / (1 / requests[1:] + 1 / requests[:-1])
    return math.sqrt(float(np.median(steps)) / MEDIAN_OF_CHI_SQUARE)
