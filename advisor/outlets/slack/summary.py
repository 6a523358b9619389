"""The parent message: the fleet at a glance. Whoever reads nothing else knows what changed and what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from advisor.domain.advice import SEVERITIES, Advice
from advisor.domain.life import TrackRecord
from advisor.domain.report import SourceState
from advisor.outlets import phrases, silence

from .deployment import lines_of, mark
from .mrkdwn import bold, code, prose
from .post import MOST_MESSAGE_CHARACTERS, Block, Message, fitting, header, section
from .standing import Edition, Stand, Standing

_TOP = 8
_FEW, _MANY = 3, 5
_ROOM_FOR_A_LIST = 2_800
_ROOM_FOR_THE_REST = 4_500
_STANDS: tuple[tuple[Stand, str], ...] = (
    ("to_change", "to change"),
    ("fine", "fine"),
    ("cannot_tell", "cannot tell"),
    ("no_data", "without data"),
    ("silenced", "snoozed, rejected or being verified"),
    ("collecting", "collecting"),
    ("frozen", "frozen"),
)


def summary(
    standings: Sequence[Standing],
    since: Sequence[str],
    track: Iterable[TrackRecord],
    sources: Sequence[SourceState],
    edition: Edition,
    *,
    key: str,
    threads: bool,
) -> Message:
    """The report of the week in one message; a single line when nothing is new and nothing failed.

    `since`: what became of earlier advice since the last report, a clause each.
    """
    fresh = [s for s in standings if s.fresh]
    troubled = [s for s in sources if s.status == "failed"]
    held = [s for s in standings if s.held]
    title = f"Serving advice · week {int(edition.period[-2:])}"
    counts = _counts(standings)
    if not fresh and not since and not troubled and not held:
        line = f"*{title}* · {counts}. Nothing new{_still_open(standings)}."
        return Message(key, f"{title} · {counts}. Nothing new.", (section(line),))
    tops = fitting(map(_top, fresh[:_TOP]), MOST_MESSAGE_CHARACTERS - _ROOM_FOR_THE_REST)
    rest = [
        _more(len(fresh) - len(tops), threads=threads),
        _listed("Still open", [_again(s) for s in standings if s.advice and not s.fresh]),
        _listed("Cannot tell", [f"{code(s.name)} {prose(_reason(s), most=120)}" for s in _undecided(standings)]),
        _listed("Held", [f"{code(s.name)} {s.stand} {prose(s.held, most=120)}" for s in held]),
        _track(track),
    ]
    # What could not be read comes first: it says how far the rest can be relied on.
    failed = _listed(
        "Sources that failed", [f"{prose(s.name, most=60)}: {prose(s.detail, most=160)}" for s in troubled]
    )
    opening = [f"{counts}.", failed, _bulleted("Since the last report", since), bold("New advice") if tops else ""]
    spent = sum(map(len, (*opening, *tops)))
    closing = fitting([text for text in rest if text], MOST_MESSAGE_CHARACTERS - spent)
    blocks: tuple[Block, ...] = (header(title), *(section(text) for text in (*opening, *tops, *closing) if text))
    first = f" {prose(fresh[0].name, most=60)}: {lines_of(_foremost(fresh[0]))[0]}" if fresh else ""
    told = () if threads else tuple(a.id for s in fresh[: len(tops)] for a in s.fresh)
    return Message(key, f"{title} · {counts}.{first}", blocks, announces=told)


def _counts(standings: Sequence[Standing]) -> str:
    """`14 deployments: 3 to change, 9 fine, 2 cannot tell`."""
    counted = Counter(s.stand for s in standings)
    parts = [f"{counted[stand]} {words}" for stand, words in _STANDS if counted[stand]]
    return f"{phrases.deployments(len(standings))}{': ' if parts else ''}{', '.join(parts)}"


def _top(standing: Standing) -> str:
    """A deployment with its first piece of advice in at most three lines."""
    advice = _foremost(standing)
    what, flag, why = lines_of(advice)
    also = f" (and {len(standing.fresh) - 1} more)" if standing.fresh[1:] else ""
    return "\n".join(line for line in (f"{mark(advice)} {code(standing.name)} *{what}*{also}", flag, why) if line)


def _foremost(standing: Standing) -> Advice:
    return min(standing.fresh, key=lambda advice: SEVERITIES.index(advice.severity))


def _more(number: int, *, threads: bool) -> str:
    where = "in the thread and in" if threads else "in"
    return f"and {number} more with new advice, {where} {code('advisor status')}" if number > 0 else ""


def _listed(title: str, items: Sequence[str]) -> str:
    """`*Held:* a; b; c; and 4 more (advisor status)`; nothing when there is none."""
    if not items:
        return ""
    more = f"; and {len(items) - _FEW} more ({code('advisor status')})" if len(items) > _FEW else ""
    return f"{bold(title)}: {'; '.join(items[:_FEW])}{more}"


def _bulleted(title: str, items: Sequence[str]) -> str:
    """The same as a list, for items of the length of a sentence."""
    kept = fitting((f"• {item}" for item in items[:_MANY]), _ROOM_FOR_A_LIST)
    more = [f"• and {len(items) - len(kept)} more ({code('advisor history')})"] if len(items) > len(kept) else []
    return "\n".join([bold(title), *kept, *more]) if items else ""


def _again(standing: Standing) -> str:
    return f"{code(standing.name)} {code(phrases.action(standing.advice[0]))}"


def _undecided(standings: Sequence[Standing]) -> list[Standing]:
    return [s for s in standings if s.stand == "cannot_tell" and not s.advice]


def _reason(standing: Standing) -> str:
    lacks = silence.needs(standing.deployment.judgement.undetermined)
    return lacks[0].reason if lacks else phrases.why_not_advised(standing.deployment)[1]


def _still_open(standings: Sequence[Standing]) -> str:
    number = sum(len(s.advice) for s in standings)
    pieces = "1 piece of advice is" if number == 1 else f"{number} pieces of advice are"
    return f"; {pieces} still open ({code('advisor status')})" if number else ""


def _track(track: Iterable[TrackRecord]) -> str:
    """`Track record: 11 pieces of advice followed, 9 held, 1 did not, 1 undecided.`"""
    listed = list(track)
    followed, held = sum(t.followed for t in listed), sum(t.held for t in listed)
    regressed, undecided = sum(t.regressed for t in listed), sum(t.undecided for t in listed)
    if not followed:
        return ""
    parts = [f"{followed} followed", f"{held} did as predicted"]
    parts += [f"{regressed} did not"] if regressed else []
    parts += [f"{undecided} undecided"] if undecided else []
    return f"{bold('Track record')}: {', '.join(parts)}"
