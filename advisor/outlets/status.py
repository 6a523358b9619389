"""Current advice in one line a deployment. It reads the kept document bare, because its answer has to come at once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from advisor.domain.advice import Judgement
from advisor.domain.errors import SourceError
from advisor.domain.numbers import duration
from advisor.domain.ports import Delivery

from . import phrases
from .judgements import restore_judgement
from .layout import hanging, left, width_of, wrapped

STALE_SECONDS = 3 * 3600.0
"""Deployments are judged every hour: three misses in a row are a fault that somebody has to look at."""

_LONGEST_ID = 12
_LEAST_ROOM_FOR_WHY = 12
_NOTHING_TO_DO = "Nothing was changed."


@dataclass(frozen=True, slots=True)
class Line:
    """One deployment as far as one line tells of it."""

    name: str
    engine: str
    engine_version: str | None
    replicas: int | None
    judgement: Judgement


@dataclass(frozen=True, slots=True)
class Source:
    """How reading one source went."""

    name: str
    status: str
    detail: str


@dataclass(frozen=True, slots=True)
class Overview:
    """The fleet at its last evaluation, UNIX seconds."""

    generated_at: float
    sources: tuple[Source, ...]
    lines: tuple[Line, ...]


def read_overview(document_json: str | bytes) -> Overview:
    """From the contract's document. Raises SourceError where it is none."""
    try:
        document = json.loads(document_json)
        return Overview(
            generated_at=datetime.fromisoformat(document["generated_at"]).timestamp(),
            sources=tuple(Source(str(s["name"]), str(s["status"]), str(s["detail"])) for s in document["sources"]),
            lines=tuple(map(_line, document["deployments"])),
        )
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        raise SourceError("what was kept is no report of this version of advisor", permanent=True) from None


def render_status(overview: Overview, now: float, *, failed: Sequence[Delivery] = (), width: int = 80) -> str:
    """One line each, in at most `width` columns. `failed` are messages that a person must mend something for."""
    lines = [
        *_header(overview, now, width),
        "",
        *_rows(overview.lines, width),
        "",
        *_troubles(overview, failed, width),
        *wrapped(_closing(overview.lines), width),
    ]
    return "\n".join(line.rstrip() for line in lines)


def _line(part: dict[str, Any]) -> Line:
    line = Line(part["name"], part["engine"], part["engine_version"], part["replicas"], restore_judgement(part))
    phrases.answers(line)  # a status, verdict or severity that this version does not know has to fail here
    return line


def _header(overview: Overview, now: float, width: int) -> Iterator[str]:
    age = max(0.0, now - overview.generated_at)
    judged = f"judged {phrases.moment(overview.generated_at)}, {duration(round(age))} ago"
    sources = ", ".join(f"{source.name} {source.status}" for source in overview.sources)
    yield from wrapped(" · ".join(t for t in (judged, phrases.deployments(len(overview.lines)), sources) if t), width)
    if age > STALE_SECONDS:
        yield from wrapped(f"STALE: nothing was judged for {duration(round(age))}: is the daemon running?", width)


def _rows(lines: Sequence[Line], width: int) -> Iterator[str]:
    rows = [_cells(line) for line in lines]
    name = min(width_of(row[1] for row in rows), width // 3)
    copies = min(width_of(row[2] for row in rows), 5)
    identity = min(width_of(row[4] for row in rows), _LONGEST_ID)
    action = min(width_of(row[3] for row in rows), width - name - copies - identity - 7)
    room = width - name - copies - action - identity - 9
    for mark, who, many, what, advice, why in rows:
        head = f"{mark} {left(who, name)} {left(many, copies)}  {left(what, action)}  {left(advice, identity)}  "
        yield head + (wrapped(why, room, most=1)[0] if room >= _LEAST_ROOM_FOR_WHY else "")


def _cells(line: Line) -> tuple[str, str, str, str, str, str]:
    told = phrases.answers(line)
    mark, action, why = told[0]
    opened = [a for a in line.judgement.advice if a.state == "open"]
    more = f" +{len(told) - 1}" if len(told) > 1 else ""
    copies = "" if line.replicas is None else f"x{line.replicas}"
    return mark, line.name, copies, action + more, opened[0].id if opened else "", why


def _troubles(overview: Overview, failed: Iterable[Delivery], width: int) -> list[str]:
    told = [f"{s.name} {s.status}: {s.detail}" for s in overview.sources if s.status != "ok"]
    told += [f"not delivered ({d.key}): {d.why}" for d in failed]
    lines = [line for text in told for line in hanging("  ", text, width=width, most=3)]
    return [*lines, ""] if lines else []


def _closing(lines: Sequence[Line]) -> str:
    counts = dict.fromkeys(("queued", "snoozed", "rejected", "applied"), 0)
    for line in lines:
        for advice in line.judgement.advice:
            if advice.state in counts:
                counts[advice.state] += 1
    told = ", ".join(f"{number} {state}" for state, number in counts.items() if number)
    return f"{told} (advisor show DEPLOYMENT, advisor history). {_NOTHING_TO_DO}" if told else _NOTHING_TO_DO
