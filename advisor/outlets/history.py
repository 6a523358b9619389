"""Advice over time: what was said when, what became of it, predicted against measured, and the score of each rule."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from advisor.domain.errors import SourceError
from advisor.domain.life import AdviceRecord, Score, TrackRecord
from advisor.domain.numbers import quantity, span

from . import phrases
from .judgements import restore_advice
from .layout import grid, hanging, left, width_of

_INDENT = " " * 14
_VERDICTS = {True: "held", False: "missed", None: "undecided"}


def restore_history(history_json: str | bytes) -> tuple[tuple[AdviceRecord, ...], tuple[TrackRecord, ...]]:
    """Records and scores as the daemon's /api/v1/history tells them. Raises SourceError where it does not."""
    try:
        history = json.loads(history_json)
        records = tuple(map(_record, history["records"]))
        return records, tuple(TrackRecord(**track) for track in history["track_records"])
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        raise SourceError("what the server tells is no history of this version of advisor", permanent=True) from None


def render_history(records: Iterable[AdviceRecord], tracks: Sequence[TrackRecord], *, width: int = 80) -> str:
    """The newest change first; below, how often the advice of each rule did what it said. No newline at the end."""
    ordered = sorted(records, key=lambda record: (-record.since, record.deployment, record.id))
    names = width_of(record.deployment for record in ordered)
    lines = [line for record in ordered for line in (*story(record, width=width, name_width=names), "")]
    return "\n".join([*lines, *_scores(tracks)]).rstrip("\n")


def story(record: AdviceRecord, *, width: int = 80, name_width: int | None = None) -> Iterator[str]:
    """What was advised, what became of it and when, and its prediction; lines of at most `width` columns."""
    name = width_of([record.deployment]) if name_width is None else name_width
    head = f"{moment(record.since)}  {left(record.deployment, min(name, width // 4))}  {left(record.state, 10)}  "
    yield from hanging(head, f"{phrases.action(record.advice)}  ({record.id})", width=width)
    seen = f"first seen {moment(record.first_seen)}; rule {record.advice.rule}"
    applied = "" if record.applied_at is None else f"; applied {moment(record.applied_at)}"
    for text in (record.advice.reason, seen + applied, _decision(record), *_predictions(record)):
        if text:
            yield from hanging(_INDENT, text, width=width)


def outcome(score: Score) -> str:
    """`TTFT p99 1.84 s -> 0.5-0.7 s predicted, 0.61 s measured: held`."""
    before = "" if score.before is None else f"{quantity(score.before, score.unit)} "
    predicted = f"{phrases.label(score.metric)} {before}-> {span(score.low, score.high, score.unit)} predicted"
    measured = "" if score.after is None else f", {quantity(score.after, score.unit)} measured"
    return f"{predicted}{measured}: {_VERDICTS[score.held]}" + (f" ({score.note})" if score.note else "")


def _record(told: dict[str, Any]) -> AdviceRecord:
    scores = tuple(Score(**score) for score in told["scores"])
    return AdviceRecord(**{**told, "advice": restore_advice(told["advice"]), "scores": scores})


def _decision(record: AdviceRecord) -> str:
    until = f"until {moment(record.until)}" if record.until is not None else ""
    return ": ".join(part for part in (until, record.reason) if part)


def _predictions(record: AdviceRecord) -> list[str]:
    """What happened where it is known; what is expected while the advice still stands."""
    if record.scores:
        return [outcome(score) for score in record.scores]
    if record.state in ("superseded", "rejected"):
        return []
    return [f"expects {phrases.expectation(p)}" for p in record.advice.prediction]


def _scores(tracks: Sequence[TrackRecord]) -> list[str]:
    if not tracks:
        return ["SCORES   no advice was followed yet"]
    rows: list[tuple[str, ...]] = [("rule", "followed", "held", "missed", "undecided")]
    rows += [(t.rule, *map(str, (t.followed, t.held, t.regressed, t.undecided))) for t in tracks]
    return ["SCORES   advice that was followed, and whether it did what it said", *grid(rows)]


def moment(unix_seconds: float) -> str:
    """`27 Nov 16:00`, in UTC."""
    return datetime.fromtimestamp(unix_seconds, UTC).strftime("%d %b %H:%M")
