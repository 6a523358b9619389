"""`advisor doctor`: which sources answer, what they show of each deployment, and what is missing for a judgement."""

from __future__ import annotations

import re
import textwrap
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
STEP_TIME = re.compile(r"\w+: [\d.]+ s")
WIDTH = 100
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
    for label, text in _rows(report, [note for note in notes if not STEP_TIME.fullmatch(note)]):
        click.echo(_laid_out(label, plain(text)))
    return 0 if report.deployments else NOT_JUDGED


def _laid_out(label: str, text: str) -> str:
    head, margin = f"{label:11}", " " * 11
    wrapped = textwrap.fill(text, WIDTH, initial_indent=head, subsequent_indent=margin, break_on_hyphens=False)
    return (wrapped or label).rstrip()


def _rows(report: Report, notes: list[str]) -> Iterator[tuple[str, str]]:
    """What to print: a label and a text each."""
    yield "SOURCES", "" if report.sources else "none named: --prometheus, --engine, --logs, --startup-log, --evidence"
    for source in report.sources:
        yield f"  {source.status}", f"{source.name}: {source.detail}"
    for note in notes:
        yield "  note", note
    for deployment in report.deployments:
        yield "", ""
        yield from _deployment(deployment)


def _deployment(report: DeploymentReport) -> Iterator[tuple[str, str]]:
    evidence = report.evidence
    yield "DEPLOYMENT", evidence.name
    yield "  engines", f"{len(evidence.engines)} of {evidence.engine} {evidence.engine_version or '(version unknown)'}"
    for flag in FLAGS:
        known = evidence.flags.get(flag)
        missing = f"missing: --startup-log or --set {flag}=N"
        told = f"{known.value} ({known.source.replace('_', ' ')})" if known else missing
        yield "  flag", f"{flag} {told}"
    if evidence.engines:
        present, absent = _metrics(report)
        yield "  metrics", f"present: {', '.join(present) or 'none'}"
        yield "  metrics", f"missing or renamed: {', '.join(absent) or 'none'}"
    coverage = report.facts["length_coverage"]
    yield "  coverage", coverage.unknown or f"{coverage.number:.1%} of finished requests are in the log"
    for reason, rules in _open_rules(report).items():
        yield "  open", f"{reason} [{', '.join(rules)}]"


def _open_rules(report: DeploymentReport) -> dict[str, list[str]]:
    """What keeps rules undetermined, each reason once, with the rules that wait for it."""
    waiting: dict[str, list[str]] = {}
    for undetermined in report.judgement.undetermined:
        for reason in dict.fromkeys(need.reason for need in undetermined.needs):
            waiting.setdefault(reason, []).append(undetermined.rule)
    return waiting


def _metrics(report: DeploymentReport) -> tuple[list[str], list[str]]:
    engines = report.evidence.engines
    have = {word: any(e.windows.total(name) is not None for e in engines) for name, word in COUNTERS.items()}
    have |= {word: any(name in e.lengths for e in engines) for name, word in HISTOGRAMS.items()}
    have |= {word: any(name in e.latencies for e in engines) for name, word in LATENCIES.items()}
    have |= {word: any(getattr(e.samples, name) is not None for e in engines) for name, word in GAUGES.items()}
    return [w for w, there in have.items() if there], [w for w, there in have.items() if not there]
