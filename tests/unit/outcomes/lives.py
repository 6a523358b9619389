"""Deployments as evaluations see them hour by hour, for the tests of what becomes of advice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from advisor.domain.advice import Advice, Judgement, Need, Prediction, Severity, Status, Undetermined
from advisor.domain.evidence import Evidence, Flag, FlagSource, Window
from advisor.domain.fact import Fact, FactSheet, measured
from advisor.domain.report import DeploymentReport

HOUR, DAY = 3600.0, 86_400.0
NOW = 1_795_968_000.0  # Sun 29 Nov 2026 16:00 UTC
RULE = "concurrency/cap-pinned-cache-free"
FASTER = Prediction("ttft_p99", 1.84, 0.5, 0.7, "seconds")


def raise_cap(
    to: float | None = 24.0,
    *,
    current: float | None = 16.0,
    severity: Severity = "opportunity",
    rule: str = RULE,
    knob: str | None = "max_num_seqs",
    state: str = "open",
    prediction: tuple[Prediction, ...] = (FASTER,),
) -> Advice:
    """Raise the sequence cap; its id follows from rule and value, as the composer's does."""
    return Advice(
        id=f"{rule.split('/')[1]}:{to}",
        rule=rule,
        title="The sequence cap throttles a server that has cache to spare",
        state="open" if state == "open" else "queued",
        verdict="change_flag" if knob != "replicas" else "add_replicas",
        knob=knob,
        current=current,
        recommended=to,
        flag=f"--{knob.replace('_', '-')} {to:g}" if knob and to is not None else None,
        severity=severity,
        confidence="high",
        confidence_basis="measured",
        reason=f"requests wait behind the cap; {to} is the next step",
        evidence=(),
        prediction=prediction,
        verify="compare",
        undo="--max-num-seqs 16",
    )


def evaluation(
    *advice: Advice,
    name: str = "chat-70b",
    running: float = 16.0,
    source: FlagSource = "server_info",
    since: float | None = None,
    facts: Mapping[str, Fact] | None = None,
    undetermined: Sequence[str] = (),
    status: Status | None = None,
) -> DeploymentReport:
    """What one evaluation says of a deployment whose cap is `running`, under 2 requests per second of chat."""
    known = {
        "max_num_seqs": measured(running, source=source),
        "max_model_len": measured(131_072.0, source="server_info"),
        "demand_requests_per_second_mean": measured(2.0, source="log"),
        "total_tokens_p50": measured(1_400.0, source="log"),
        "ttft_p99": measured(1.84, source="log"),
        "observed_seconds": measured(7 * DAY, source="gauges"),
        **(facts or {}),
    }
    judged = Judgement(
        status or ("advice" if advice else "ok"),
        advice,
        undetermined=tuple(Undetermined(rule, (Need("running_p95", "no scrape"),)) for rule in undetermined),
    )
    evidence = Evidence(
        name=name, window=Window(NOW - 7 * DAY, NOW), flags={"max_num_seqs": Flag(int(running), source, since)}
    )
    return DeploymentReport(evidence, FactSheet(known), judged)
