"""Whether two pieces of advice are the same one, seen at two evaluations."""

from __future__ import annotations

import math
from dataclasses import replace

from advisor.domain.advice import SEVERITIES, Advice


def moved(before: float | None, after: float | None) -> float:
    """How far a value moved, relative to what it was: 24 -> 27 is 0.125. Infinite where only one of them is known."""
    if before == after:
        return 0.0
    if before is None or after is None or before == 0:
        return math.inf
    return abs(after - before) / abs(before)


def same_question(one: Advice, other: Advice) -> bool:
    """Whether both come from the same rule and turn the same knob; their values may differ."""
    return one.rule == other.rule and one.knob == other.knob


def same_advice(kept: Advice, new: Advice, within: float) -> bool:
    """The same question with a value that moved by less than `within` (0.1 is a tenth) from the one kept."""
    return same_question(kept, new) and moved(kept.recommended, new.recommended) < within


def is_graver(new: Advice, kept: Advice) -> bool:
    """Whether the severity rose."""
    return SEVERITIES.index(new.severity) < SEVERITIES.index(kept.severity)


def stays_muted(kept: Advice, new: Advice, within: float) -> bool:
    """Whether somebody's decision about `kept` covers `new`: value moved by at most `within`, severity did not rise."""
    covered = same_question(kept, new) and moved(kept.recommended, new.recommended) <= within
    return covered and not is_graver(new, kept)


def refreshed(kept: Advice, new: Advice) -> Advice:
    """The newest figures under the id that the advice always had.

    Where the value moved a little, the first one stays with everything that was said of it: flag, reason, prediction.
    """
    if kept.recommended == new.recommended:
        return replace(new, id=kept.id)
    return replace(kept, state=new.state, severity=new.severity, current=new.current, undo=new.undo)
