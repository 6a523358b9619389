"""How each deployment stands this week: what is to be said of it, and what is held back and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Literal

from advisor.domain.advice import SEVERITIES, Advice, Status
from advisor.domain.life import AdviceRecord
from advisor.domain.report import DeploymentReport, Report

from .options import SlackOptions

DAY = 86_400.0
Stand = Literal["to_change", "fine", "cannot_tell", "no_data", "silenced", "collecting", "frozen"]


_STANDS: Mapping[Status, Stand] = {
    "advice": "to_change",
    "ok": "fine",
    "cannot_tell": "cannot_tell",
    "no_data": "no_data",
}


@dataclass(frozen=True, slots=True)
class Edition:
    """Which report this is. Times in UNIX seconds.

    period: names it for ever, `2026-W48`. first_seen: since when each deployment is watched.
    announced: whether a channel was told of a piece of advice.
    reported: when the report before this one went to a channel; None for its first.
    """

    now: float
    period: str
    zone: tzinfo = UTC
    first_seen: Mapping[str, float] = field(default_factory=dict)
    announced: Callable[[str, str], bool] = lambda _channel, _advice: False
    reported: Callable[[str], float | None] = lambda _channel: None


def period_of(now: float, zone: tzinfo = UTC, *, weeks_before: int = 0) -> str:
    """The week of a report, ISO 8601, in the time zone of its readers, `2026-W48`; or that of an earlier one."""
    year, week, _ = (datetime.fromtimestamp(now, zone).date() - timedelta(weeks=weeks_before)).isocalendar()
    return f"{year}-W{week:02}"


@dataclass(frozen=True, slots=True)
class Standing:
    """One deployment this week. `advice` is to be acted on now, `fresh` is what its channel was not told yet."""

    deployment: DeploymentReport
    stand: Stand
    advice: tuple[Advice, ...] = ()
    fresh: tuple[Advice, ...] = ()
    held: str = ""

    @property
    def name(self) -> str:
        """The deployment's name."""
        return self.deployment.evidence.name

    @property
    def urgency(self) -> int:
        """0 for critical advice, more for less."""
        return min((SEVERITIES.index(a.severity) for a in self.advice), default=len(SEVERITIES))


def standings(
    report: Report, records: Iterable[AdviceRecord], edition: Edition, options: SlackOptions
) -> list[Standing]:
    """How every deployment stands, the most urgent first."""
    silenced = {r.id for r in records if r.state in {"snoozed", "rejected", "applied"}}
    found = [_standing(d, report, silenced, edition, options) for d in report.deployments]
    return sorted(found, key=lambda s: (s.urgency, s.name))


def _standing(
    deployment: DeploymentReport, report: Report, silenced: set[str], edition: Edition, options: SlackOptions
) -> Standing:
    judgement, name = deployment.judgement, deployment.evidence.name
    freeze = options.freeze_of(name, edition.now, edition.zone)
    if freeze is not None:
        return Standing(deployment, "frozen", held=f"until {_day(freeze.last_day)}: {freeze.reason}")
    asked = min(options.collecting_days, report.window.seconds / DAY)
    until = collecting_until(asked, deployment.facts["observed_days"].number, edition.first_seen.get(name), edition.now)
    if until is not None and judgement.status != "no_data" and is_watched(deployment):
        moment = datetime.fromtimestamp(until, edition.zone)
        return Standing(deployment, "collecting", held=f"until {_day(moment)}")
    advice = tuple(a for a in judgement.advice if a.state == "open" and a.id not in silenced)
    if not advice and judgement.advice:
        return Standing(deployment, "silenced")
    channel = options.channel_of(name)
    fresh = tuple(a for a in advice if not edition.announced(channel, a.id))
    return Standing(deployment, _STANDS[judgement.status], advice, fresh)


def is_watched(deployment: DeploymentReport) -> bool:
    """Whether its traffic is seen: what is computed from stated figures alone has nothing to wait for."""
    return deployment.evidence.log is not None or bool(deployment.evidence.engines)


def collecting_until(
    asked_days: float, observed_days: float | None, first_seen: float | None, now: float
) -> float | None:
    """When there will be enough to speak of, in UNIX seconds; None when there is.

    asked_days: how long a deployment is to be watched. observed_days: what its log spans, which may begin before the
    advisor did. first_seen: when it was first evaluated. Asked for 7 days and seen for 3, it is in 4 days.
    """
    # A log's sample begins and ends with a request, so that a full week of a quiet service spans somewhat less.
    if observed_days is not None and observed_days >= 0.9 * asked_days:
        return None
    begun = first_seen if first_seen is not None or observed_days is None else now - observed_days * DAY
    ends = None if begun is None else begun + asked_days * DAY
    return ends if ends is not None and ends > now else None


def _day(moment: date) -> str:
    return f"{moment:%a %d %b}"
