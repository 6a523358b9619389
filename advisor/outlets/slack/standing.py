"""How each deployment stands this week: what is to be said of it, and what is held back and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, tzinfo
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

    since: when the last report went out; None for the first. period: names it for ever, `2026-W48`.
    first_seen: since when each deployment is watched. announced: whether a channel was told of a piece of advice.
    """

    now: float
    since: float | None
    period: str
    zone: tzinfo = UTC
    first_seen: Mapping[str, float] = field(default_factory=dict)
    announced: Callable[[str, str], bool] = lambda _channel, _advice: False


def period_of(now: float, zone: tzinfo = UTC) -> str:
    """The week of a report, ISO 8601, in the time zone of its readers: `2026-W48`."""
    year, week, _ = datetime.fromtimestamp(now, zone).isocalendar()
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
    until = _collecting_until(deployment, report, edition, options)
    if until is not None and judgement.status != "no_data":
        moment = datetime.fromtimestamp(until, edition.zone)
        return Standing(deployment, "collecting", held=f"until {_day(moment)}")
    advice = tuple(a for a in judgement.advice if a.state == "open" and a.id not in silenced)
    if not advice and judgement.advice:
        return Standing(deployment, "silenced")
    channel = options.channel_of(name)
    fresh = tuple(a for a in advice if not edition.announced(channel, a.id))
    return Standing(deployment, _STANDS[judgement.status], advice, fresh)


def _collecting_until(
    deployment: DeploymentReport, report: Report, edition: Edition, options: SlackOptions
) -> float | None:
    """When there will be enough to speak of; None when there is. A log that covers the time already needs no wait."""
    asked = min(options.collecting_days, report.window.seconds / DAY)
    seen = deployment.facts["observed_days"].number
    # A log's sample begins and ends with a request, so that a full week of a quiet service spans somewhat less.
    if seen is not None and seen >= 0.9 * asked:
        return None
    begun = edition.first_seen.get(deployment.evidence.name)
    if begun is None and seen is not None:
        begun = report.generated_at - seen * DAY
    ends = None if begun is None else begun + asked * DAY
    return ends if ends is not None and ends > edition.now else None


def _day(moment: date) -> str:
    return f"{moment:%a %d %b}"
