"""Fleets with charts and a past, as the daemon would offer them to the pages."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from advisor.domain.life import AdviceRecord, Score, TrackRecord
from advisor.domain.pictures import CurvePicture, CurvePoint, LengthPicture, Pictures
from advisor.domain.report import DeploymentReport, Report
from advisor.web.app import create_app
from advisor.web.options import WebOptions
from advisor.web.server import serve
from advisor.web.state import Health, Past
from tests.unit.outlets import samples

HOSTILE_NAMES = (
    *samples.HOSTILE_NAMES,
    "acme/llama-3/70b",
    '"><img src=x onerror=alert(1)>',
    "a/b?c#d%2Fe",
    "../../etc/passwd",
    "javascript:alert(1)",
    "{{ 7 * 7 }}{% raw %}",
    "</style></title></svg><script>document.title='owned'</script>",
)


def lengths(source: str = "request log") -> LengthPicture:
    """Log-normal lengths around 1,412 tokens with the marks of `samples.throttled`."""
    edges = tuple(20 * (9000 / 20) ** (place / 48) for place in range(49))
    weights = [math.exp(-(math.log(edge / 1412) ** 2) / 1.5) for edge in edges[:-1]]
    shares = tuple(weight / sum(weights) for weight in weights)
    return LengthPicture(edges, shares, 412_310, 6_301.0, 8_192.0, 131_072.0, source)


def curve(source: str = "request log") -> CurvePicture:
    """A live curve up to the cap of 16, below its objective, with a memory ceiling far beyond."""
    points = tuple(CurvePoint(float(n), 0.0098 + 0.00028 * n, 1_000.0) for n in range(1, 17))
    return CurvePicture(points, (0.0098, 0.00028), 0.04, 445.0, None, 16.0, 24.0, source)


def drawn(deployment: DeploymentReport) -> DeploymentReport:
    """The deployment with both charts."""
    name = deployment.evidence.name
    return replace(deployment, pictures=Pictures(lengths(name), curve(name)))


def fleet() -> Report:
    """Every kind of deployment, two of them with charts."""
    usual = samples.fleet()
    first, *others = usual.deployments
    return replace(usual, deployments=(drawn(first), *others))


def hostile_fleet() -> Report:
    """Deployments whose names, reasons and sources try to be something else."""
    deployments = (drawn(samples.hostile(name)) for name in HOSTILE_NAMES)
    return samples.report(*deployments, sources=samples.POOR_SOURCES)


def records(deployment: str = "chat-70b") -> tuple[AdviceRecord, ...]:
    """What was advised for a deployment: one piece open, one verified, one snoozed."""
    now = samples.NOW
    advice = samples.throttled().judgement.advice[0]
    held = Score("ttft_p99", "seconds", 2.1, 3.2, 6.1, 2.8, held=True)
    apart = Score("kv_usage_p95", "ratio", None, 0.05, 0.031, 0.038, held=None, note="another length mix")
    earlier = replace(advice, id="aa11", current=11, recommended=16, flag="--max-num-seqs 16")
    return (
        AdviceRecord(
            deployment, earlier, "verified", now - 5e5, now - 2e6, now, applied_at=now - 1e6, scores=(held, apart)
        ),
        AdviceRecord(deployment, advice, "open", now - 3600, now - 3600, now),
        AdviceRecord(
            deployment,
            replace(advice, id="bb22"),
            "snoozed",
            now - 2e5,
            now - 9e5,
            now,
            until=now + 8e5,
            reason="launch",
        ),
    )


def history() -> dict[str, tuple[tuple[float, float], ...]]:
    """Thirty days: a cap that was followed, a limit never was, load with days and nights, and two days unwatched."""
    hours = [hour for hour in range(30 * 24) if not 200 <= hour < 250]
    at = [samples.NOW - (30 * 24 - hour) * 3600.0 for hour in hours]
    day = [0.5 + 0.5 * math.sin(hour / 24 * 2 * math.pi) for hour in hours]
    facts: dict[str, list[float]] = {
        "max_num_seqs": [11.0 if hour < 400 else 16.0 for hour in hours],
        "recommended_max_num_seqs": [16.0 if hour < 400 else 24.0 for hour in hours],
        "max_model_len": [131_072.0 for _ in hours],
        "recommended_max_model_len": [8_192.0 for _ in hours],
        "running_p95": [10 + 6 * load for load in day],
        "waiting_share": [max(0.0, load - 0.8) for load in day],
        "kv_usage_p95": [0.04 for _ in hours],
        "demand_requests_per_second_p99": [4 + 6 * load for load in day],
    }
    return {name: tuple(zip(at, values, strict=True)) for name, values in facts.items()}


def past(name: str, remembered: Sequence[AdviceRecord], until: float | None = None) -> Past:
    """What is remembered of a deployment, with trends."""
    return Past(tuple(r for r in remembered if r.deployment == name), history(), until)


@dataclass
class Known:
    """A state that a test fills in."""

    latest: Report | None = field(default_factory=fleet)
    told: Health = field(default_factory=lambda: Health(ready=True))
    past_records: Sequence[AdviceRecord] = field(default_factory=records)

    def report(self) -> tuple[float, Report] | None:
        return (self.latest.generated_at, self.latest) if self.latest else None

    def deployments(self) -> Iterator[DeploymentReport]:
        yield from self.latest.deployments if self.latest else ()

    def deployment(self, name: str) -> DeploymentReport | None:
        return next((d for d in self.deployments() if d.evidence.name == name), None)

    def past(self, name: str) -> Past:
        return past(name, self.past_records, self.collecting().get(name))

    def collecting(self) -> dict[str, float]:
        return {"chat-new": samples.NOW + 4 * 86_400}

    def records(self) -> tuple[AdviceRecord, ...]:
        return tuple(self.past_records)

    def track_records(self) -> tuple[TrackRecord, ...]:
        return (TrackRecord("concurrency/cap-pinned-cache-free", followed=7, held=5, regressed=1, undecided=1),)

    def health(self) -> Health:
        return self.told

    def metrics(self) -> bytes:
        return b"# TYPE advisor_up gauge\nadvisor_up 1.0\n"


@contextmanager
def served(state: Known, options: WebOptions | None = None) -> Iterator[str]:
    """The real server on a free port; yields its URL."""
    server = serve(create_app(state), options or WebOptions(listen="127.0.0.1:0"))
    server.start()
    try:
        yield server.url
    finally:
        server.stop()
