"""One row a deployment as CSV, safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable
from io import StringIO

from advisor.domain.advice import Advice
from advisor.domain.fact import Fact
from advisor.domain.numbers import setting
from advisor.domain.report import DeploymentReport, Report

from . import phrases
from .plain import plain

Cell = str | int | float | None

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")
_IDENTITY = ("name", "engine", "version", "replicas", "status")
_ADVICE = ("verdict", "knob", "current", "recommended", "flag", "severity", "confidence", "reason")
_MORE = ("also_now", "queued")
_FACTS = (
    "recommended_max_model_len",
    "refused_share_at_recommended",
    "recommended_max_num_seqs",
    "next_max_num_seqs",
    "binding_ceiling",
    "memory_ceiling_guaranteed",
    "memory_ceiling_expected",
    "latency_ceiling",
    "budget_ceiling",
    "kv_pool_tokens",
    "kv_pool_tokens_predicted",
    "total_tokens_p50",
    "total_tokens_p99",
    "total_tokens_p999",
    "running_p95",
    "waiting_p95",
    "kv_usage_p95",
    "time_at_sequence_cap",
    "preempted_share",
    "ttft_p99",
    "tpot_p99",
    "itl_p99",
    "slo_attainment",
    "demand_requests_per_second_p99",
    "capacity_requests_per_second_per_replica",
)


def render_csv(report: Report) -> str:
    """A header and one row a deployment, without a newline at the end.

    The advice columns tell the one to act on; what may change together with it is in `also_now`. An Unknown fact is an
    empty cell, and one that is only bounded reads `>=16`. Text is quoted, and text that a spreadsheet would take for a
    formula begins with an apostrophe: `'--max-num-seqs 24`.
    """
    stream = StringIO()
    writer = csv.writer(stream, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow((*_IDENTITY, *_ADVICE, *_MORE, *_FACTS))
    writer.writerows([_cell(value) for value in _row(deployment)] for deployment in report.deployments)
    return stream.getvalue().rstrip("\n")


def _row(deployment: DeploymentReport) -> Iterable[Cell]:
    evidence, judgement = deployment.evidence, deployment.judgement
    yield from (evidence.name, evidence.engine, evidence.engine_version, evidence.replicas, judgement.status)
    yield from _advice(judgement.advice) if judgement.advice else _no_advice(deployment)
    yield from (_figure(deployment.facts[name]) for name in _FACTS)


def _advice(advice: tuple[Advice, ...]) -> Iterable[Cell]:
    first = advice[0]
    also = "; ".join(phrases.action(a) for a in advice[1:] if a.state == "open")
    queued = "; ".join(phrases.action(a) for a in advice[1:] if a.state == "queued")
    change = (first.verdict, first.knob, first.current, first.recommended, first.flag)
    return (*change, first.severity, first.confidence, first.reason, also, queued)


def _no_advice(deployment: DeploymentReport) -> Iterable[Cell]:
    reason = phrases.why_not_advised(deployment)[1]
    return (None,) * 7 + (reason,) + (None,) * 2


def _figure(fact: Fact) -> Cell:
    if fact.value is not None:
        return fact.value
    bounds = ((">=", fact.low), ("<=", fact.high))
    return " ".join(f"{sign}{setting(bound)}" for sign, bound in bounds if bound is not None and math.isfinite(bound))


def _cell(value: Cell) -> Cell:
    if isinstance(value, float):
        return (int(value) if value.is_integer() else value) if math.isfinite(value) else None
    if not isinstance(value, str):
        return value
    text = plain(value)
    return f"'{text}" if text.startswith(_FORMULA) else text
