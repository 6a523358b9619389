"""`advisor doctor`: which sources answer, what they show of each deployment, and what is missing for a judgement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from advisor.cli import NOT_JUDGED
from advisor.cli.sources import request, source_options

if TYPE_CHECKING:
    from collections.abc import Iterator

    from advisor.domain.report import DeploymentReport, Report

GAUGES = {"kv_usage": "KV cache usage"}
COUNTERS = {
    "preemptions": "preemptions",
    "finished": "finished requests",
    "itl_sum": "gaps between tokens",
    "steps": "engine steps",
    "queue_sum": "time in the queue",
    "prompt_tokens_computed": "prompt tokens computed",
    "prefix_queries": "prefix cache",
}
HISTOGRAMS = {"prompt_tokens": "prompt lengths", "output_tokens": "output lengths"}
LATENCIES = {"ttft": "time to first token", "tpot": "time per output token", "itl": "gap between tokens"}
FLAGS = ("max_num_seqs", "max_num_batched_tokens", "max_model_len")


@click.command(name="doctor")
@source_options
def command(**given: Any) -> int:
    """Read the sources as check does, and say what was found and what is missing instead of advice."""
    from advisor.cycle import run_once
    from advisor.outlets.plain import plain

    asked = request(given)
    notes: list[str] = []
    report = run_once(
        asked.settings, asked.window, set_flags=asked.set_flags, deployment=asked.deployment, tell=notes.append
    )
    for line in _lines(report, notes):
        click.echo(plain(line) if line.strip() == line else "  " + plain(line.strip()))
    return 0 if report.deployments else NOT_JUDGED


def _lines(report: Report, notes: list[str]) -> Iterator[str]:
    yield "SOURCES"
    if not report.sources:
        yield "  none named: --prometheus, --engine, --logs, --startup-log, --evidence"
    for source in report.sources:
        yield f"  {source.status:8} {source.name}: {source.detail}"
    for note in notes:
        yield f"  note     {note}"
    for deployment in report.deployments:
        yield ""
        yield from _deployment(deployment)


def _deployment(report: DeploymentReport) -> Iterator[str]:
    evidence = report.evidence
    yield f"DEPLOYMENT {evidence.name}"
    yield f"  engines  {len(evidence.engines)} of {evidence.engine} {evidence.engine_version or '(version unknown)'}"
    for flag in FLAGS:
        known = evidence.flags.get(flag)
        told = (
            f"{known.value} ({known.source.replace('_', ' ')})"
            if known
            else f"missing: --startup-log or --set {flag}=N"
        )
        yield f"  flag     {flag} {told}"
    if evidence.engines:
        present, missing = _metrics(report)
        yield f"  metrics  present: {', '.join(present) or 'none'}"
        if missing:
            yield f"  metrics  missing or renamed: {', '.join(missing)}"
    coverage = report.facts["length_coverage"]
    logged = coverage.unknown or f"{coverage.number:.1%} of finished requests are in the log"
    yield f"  coverage {logged}"
    for undetermined in report.judgement.undetermined:
        needs = "; ".join(f"{need.fact}: {need.reason}" for need in undetermined.needs)
        yield f"  open     {undetermined.rule}: {needs}"


def _metrics(report: DeploymentReport) -> tuple[list[str], list[str]]:
    engines = report.evidence.engines
    have = {word: any(e.windows.total(name) is not None for e in engines) for name, word in COUNTERS.items()}
    have |= {word: any(name in e.lengths for e in engines) for name, word in HISTOGRAMS.items()}
    have |= {word: any(name in e.latencies for e in engines) for name, word in LATENCIES.items()}
    have |= {word: any(getattr(e.samples, name) is not None for e in engines) for name, word in GAUGES.items()}
    return [w for w, there in have.items() if there], [w for w, there in have.items() if not there]
