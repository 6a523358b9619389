"""An upper bound on what 99.9 % of requests need that holds for the weeks to come, as far as the past can tell.

Three things are added to the order statistic of the whole sample:

- The sample counts for what it is worth: clustered requests bound a quantile like fewer independent ones.
- Where lengths changed within the window and the requests since are enough, these alone decide. There is no half-life:
  weights that decay forget the weekly peak, while a change is found at once and nothing else is forgotten.
- The margin covers what drift the past shows. Split in time, the bound of the first part is set against the same
  quantile of the rest; where it was outgrown by more than the margin, the margin becomes that.
"""

from __future__ import annotations

from dataclasses import dataclass

from advisor.domain.histogram import TokenCounts

from . import lengths
from .drift import largest_shift
from .effective_sample import design_effect
from .length_slots import Slots

SPLITS = (0.25, 0.5, 0.75)
LEAST_EXPECTED_ABOVE = 3


@dataclass(frozen=True, slots=True)
class Bound:
    """tokens: the upper bound, None where the sample is too small. worth: independent requests that it equals.

    drift: how many times the rest needed what the first part's bound allowed, at most; 1 where it was never outgrown.
    story: what the bound rests on.
    """

    tokens: int | None
    worth: int
    drift: float
    story: str


def upper(needed: TokenCounts, slots: Slots | None, q: float, *, unseen: int = 0) -> Bound:
    """The one-sided 95 % upper bound of the q-th percentile (0..100) of `needed`, lengths in tokens.

    slots: how the same lengths went with time, or None. unseen: requests longer than all others, of unknown length.
    """
    if slots is not None and not unseen:
        since = _since_the_change(slots, q, needed.largest)
        if since is not None:
            return since
    effect = 1.0 if slots is None else design_effect(slots, q / 100)
    worth = int(needed.n / effect)
    tokens = lengths.upper_bound(needed, q, unseen=unseen, effect=effect)
    story = "order statistics, one-sided 95 %"
    if worth < needed.n:
        story += f", {needed.n:,} requests that count like {worth:,} (long ones come in bursts)"
    return Bound(tokens, worth, 1.0 if slots is None else drift(slots, q), story)


def _since_the_change(slots: Slots, q: float, largest: int) -> Bound | None:
    """The bound of requests since their lengths changed, where these are enough; never under what was needed before.

    Lengths of the table are rounded up to their bins, so it is cut to the `largest` length of all.
    """
    shift = largest_shift(slots, q)
    if shift is None or shift.strength <= 1:
        return None
    before, after = slots.split(shift.at)
    tokens = _bounded(after, q)
    if tokens is None:
        return None
    tokens = min(max(tokens, _bounded(before, q) or before.totals().largest), largest)
    worth = int(after.n / design_effect(after, q / 100))
    story = f"order statistics, one-sided 95 %, of the {after.n:,} requests since lengths changed"
    return Bound(tokens, worth, drift(after, q), story)


def _bounded(slots: Slots, q: float) -> int | None:
    return lengths.upper_bound(slots.totals(), q, effect=design_effect(slots, q / 100))


def drift(slots: Slots, q: float) -> float:
    """How far later requests outgrew the bound of earlier ones, at most; 1 where they never did.

    Worked: where the first half's bound is 6,000 tokens and the second half's p99.9 is 9,000, it is 1.5.
    """
    growth = [1.0]
    for share in SPLITS:
        before, after = slots.split(slots.after_share(share))
        bound = _bounded(before, q)
        if bound is not None and after.n * (1 - q / 100) >= LEAST_EXPECTED_ABOVE:
            growth.append(after.totals().quantile(q / 100) / max(bound, 1))
    return max(growth)
