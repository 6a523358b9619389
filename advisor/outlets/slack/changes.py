"""What became of advice since the last report: followed and how it went, gone, put off."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from advisor.domain.life import AdviceRecord, LifeState, Score
from advisor.domain.numbers import quantity, span
from advisor.outlets import phrases

from .mrkdwn import code, prose

_ORDER: tuple[LifeState, ...] = ("regressed", "verified", "applied", "rejected", "snoozed", "superseded")


def told(records: Sequence[AdviceRecord], since: float | None) -> list[str]:
    """One clause for every record that changed its state after `since`, what went wrong first.

    Before a channel's first report (None) everything counts, except advice that came and went and was never told of.
    """
    states = _ORDER if since is not None else tuple(state for state in _ORDER if state != "superseded")
    changed = [r for r in records if r.state in states and r.since > (since or 0.0)]
    return [_clause(r) for r in sorted(changed, key=lambda r: (_ORDER.index(r.state), -r.since))]


def _clause(record: AdviceRecord) -> str:
    head = f"{code(record.deployment)} {code(phrases.action(record.advice))}"
    reason = prose(record.reason or "no reason given", most=100)
    if record.state == "regressed":
        return f"{head} *did not do what was predicted*: {_scores(record)}; undo with {_undo(record)}"
    if record.state == "verified":
        return f"{head} followed, and it did as predicted: {_scores(record)}"
    if record.state == "applied":
        return f"{head} followed; the verdict comes when there is enough traffic to compare"
    if record.state == "superseded":
        return f"{head} is gone ({reason})"
    return f"{head} {record.state} ({reason})"


def _undo(record: AdviceRecord) -> str:
    undo = record.advice.undo
    return code(undo) if undo.startswith("--") else prose(undo, most=100)


def _scores(record: AdviceRecord) -> str:
    """What decides comes first: of a regression the metrics that failed, else those that held."""
    wanted = record.state == "verified"
    decided: Iterable[Score] = sorted((s for s in record.scores if s.held is not None), key=lambda s: s.held != wanted)
    return ", ".join(_score(s) for s in list(decided)[:2]) or "no metric could be compared"


def _score(score: Score) -> str:
    """`TTFT p99 1.8 s -> 0.6 s`, with the prediction where it was missed."""
    before, after = quantity(score.before, score.unit), quantity(score.after, score.unit)
    missed = "" if score.held else f" (predicted {span(score.low, score.high, score.unit)})"
    return prose(f"{phrases.label(score.metric)} {before} -> {after}{missed}", most=120)
