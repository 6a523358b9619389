"""A replay of the past for people and for scripts: what would have been said, from when to when."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from advisor.domain.numbers import ratio, tokens
from advisor.domain.replayed import Replayed

from . import phrases
from .document import instant
from .history import moment
from .layout import grid
from .plain import plain

HEAD = ("from", "to", "advice", "max_model_len", "max_num_seqs", "refused after")
_NOTHING = {"ok": "nothing to change", "cannot_tell": "cannot tell", "no_data": "no data", "advice": "nothing open"}


def render_replayed(rows: Iterable[Replayed]) -> str:
    """A block for each deployment, its moments in order, those that said the same in one line."""
    ordered = sorted(rows, key=lambda row: (row.deployment, row.at))
    blocks = [_block(name, list(group)) for name, group in groupby(ordered, key=lambda row: row.deployment)]
    return "\n\n".join("\n".join(block) for block in blocks)


def replayed_document(rows: Iterable[Replayed]) -> dict[str, object]:
    """The same with every moment by itself, for `-o json`."""
    return {"schema_version": "1", "evaluations": [_entry(row) for row in sorted(rows, key=lambda row: row.at)]}


def _block(name: str, rows: Sequence[Replayed]) -> Iterator[str]:
    spans = [list(group) for _, group in groupby(rows, key=lambda row: row.said)]
    yield f"{plain(name)}   {len(rows)} evaluations, {len(spans) - 1} changes of what is advised"
    yield from grid([HEAD, *map(_line, spans)])


def _line(span: Sequence[Replayed]) -> tuple[str, ...]:
    first, last = span[0], span[-1]
    told = phrases.action(first.advice) if first.advice is not None else _NOTHING[first.status]
    refused = [row.refused_after for row in span if row.refused_after is not None]
    return (
        moment(first.at),
        moment(last.at),
        told,
        _range([row.max_model_len for row in span]),
        _range([row.max_num_seqs for row in span]),
        ratio(min(refused), max(refused)) if refused else "-",
    )


def _range(values: Iterable[float | None]) -> str:
    known = [value for value in values if value is not None]
    return tokens(min(known), max(known)) if known else "-"


def _entry(row: Replayed) -> dict[str, object]:
    advice = row.advice
    return {
        "at": instant(row.at),
        "deployment": row.deployment,
        "status": row.status,
        "rule": advice and advice.rule,
        "knob": advice and advice.knob,
        "current": advice and advice.current,
        "recommended": advice and advice.recommended,
        "flag": advice and advice.flag,
        "recommended_max_model_len": row.max_model_len,
        "recommended_max_num_seqs": row.max_num_seqs,
        "refused_share_after": row.refused_after,
    }
