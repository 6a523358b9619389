"""The pages, as text. Whatever a template prints is made plain and escaped on the way, so that none can forget to."""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from advisor.domain import numbers
from advisor.domain.advice import Advice
from advisor.domain.catalogue import CATALOGUE
from advisor.domain.fact import FactSheet
from advisor.domain.life import AdviceRecord, TrackRecord
from advisor.domain.report import DeploymentReport, Report
from advisor.outlets import derivations, phrases, silence
from advisor.outlets.history import outcome
from advisor.outlets.layout import fitted
from advisor.outlets.plain import plain

from . import svg, trends
from .state import Health, Past

WORDS = {"!": "act", "^": "improve", "?": "cannot tell", ".": "fine", "-": "no data"}
"""What the marks mean, the most urgent first."""
NOTHING: Mapping[str, float] = {}
_ORDER = {mark: place for place, mark in enumerate(WORDS)}
_TOLD = {"!": "to act on", "^": "to improve", "?": "cannot be told", ".": "fine", "-": "without data"}
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:%|ms|s|min|h|d|[KMGT]?i?B|req/s)(?![\w]))")
_CEILINGS = frozenset(
    {
        "memory_ceiling_guaranteed",
        "memory_ceiling_expected",
        "latency_ceiling",
        "budget_ceiling",
        "recommended_max_num_seqs",
        "next_max_num_seqs",
        "binding_ceiling",
    }
)
_LIMITS = frozenset(
    {
        "max_model_len",
        "refused_share_now",
        "finish_length_share",
        "needed_tokens_p999_upper",
        "recommended_max_model_len",
        "refused_share_at_recommended",
        "max_model_len_cost_ratio",
    }
)


def address(name: str) -> Markup:
    """The path of a deployment's page, percent-encoded: `a/b` is `/deployments/a%2Fb`."""
    return Markup(f"/deployments/{quote(sendable(name), safe='')}")  # noqa: S704 - percent-encoded


def fleet(report: Report, health: Health, collecting: Mapping[str, float] = NOTHING) -> str:
    """Every deployment in one line, those to act on first. `collecting`: until when those watched too briefly are."""
    return _render("fleet.html", report=report, rows=rows(report), collecting=collecting, health=health)


def deployment(report: Report, shown: DeploymentReport, past: Past, health: Health) -> str:
    """Everything about one deployment."""
    drawn = trends.trends(past.trends)
    told = {"records": recent(past.records), "trends": drawn, "until": past.collecting_until}
    return _render("deployment.html", report=report, d=shown, health=health, **told)


def history(records: Sequence[AdviceRecord], tracks: Sequence[TrackRecord], health: Health) -> str:
    """All advice that is remembered, the latest first, and how each rule scored."""
    return _render("history.html", records=recent(records), tracks=tracks, health=health)


def message(status: int, text: str) -> str:
    """A page that says why there is nothing else to see."""
    return _render("message.html", status=status, text=text, health=Health(ready=True))


def standalone(report: Report) -> str:
    """The fleet and every deployment in one file."""
    return _render("standalone.html", report=report, rows=rows(report), style_hash=style_hash())


@cache
def style_hash() -> str:
    """SHA-256 of the one style sheet that the pages' content security policy admits, in base64."""
    sheet = _environment().get_template("style.css").render()
    return b64encode(hashlib.sha256(sheet.encode()).digest()).decode()


def rows(report: Report) -> list[tuple[DeploymentReport, list[tuple[str, str, str]]]]:
    """Each deployment with its answers (mark, what to do, why), the most urgent first, else as they come."""
    answered = [(d, phrases.answers(d)) for d in report.deployments]
    return sorted(answered, key=lambda row: min(_ORDER[mark] for mark, _, _ in row[1]))


def recent(records: Iterable[AdviceRecord]) -> list[AdviceRecord]:
    """What changed its state last comes first."""
    return sorted(records, key=lambda record: -record.since)


def counts(report: Report) -> str:
    """How the fleet is: `2 to act on, 1 to improve, 9 fine`."""
    most_urgent = Counter(min((mark for mark, _, _ in answers), key=_ORDER.__getitem__) for _, answers in rows(report))
    return ", ".join(f"{most_urgent[mark]} {told}" for mark, told in _TOLD.items() if most_urgent[mark])


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("advisor.web"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters.update(
        ground=phrases.ground,
        finding=lambda f: (f.rule, f.title),
        not_fired=lambda rule: (rule.rule, silence.shortfall(rule)),
        lack=lambda lack: (", ".join(lack.facts), lack.reason),
    )
    environment.globals.update(
        words=WORDS,
        catalogue=CATALOGUE,
        ceilings=_ceilings,
        limits=_limits,
        numbers=numbers,
        phrases=phrases,
        silence=silence,
        derivations=derivations,
        svg=svg,
        sparkline=trends.sparkline,
        trend_start=trends.since,
        address=address,
        fitted=fitted,
        counts=counts,
        outcome=outcome,
    )
    return environment


def _render(template: str, **shown: object) -> str:
    return _environment().get_template(template).render(**shown)


def _ceilings(advice: Iterable[Advice]) -> list[tuple[str, str]]:
    """What bounds the sequence cap, as (label, fact)."""
    return [row for row in derivations.derived(advice) if row[1] in _CEILINGS]


def _limits(facts: FactSheet) -> list[tuple[str, str]]:
    """What is known of the length limit, as (label, fact)."""
    return [(label, name) for label, name in derivations.derived(()) if name in _LIMITS and not facts[name].is_unknown]


def _shown(value: object) -> object:
    if isinstance(value, Markup):
        return value
    return "" if value is None else _BEFORE_UNIT.sub("\N{NO-BREAK SPACE}", plain(str(value)).replace(" -> ", " → "))


def sendable(name: str) -> str:
    """A name as it can be sent: half a surrogate pair is spelled out, as in the JSON."""
    return name.encode("utf-8", "backslashreplace").decode()
