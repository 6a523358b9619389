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

    from advisor.domain.evidence import Evidence, RequestLog, Window
    from advisor.domain.report import DeploymentReport, Report
    from advisor.sources.request_log import LogOptions

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
    notes = [note for note in notes if not STEP_TIME.fullmatch(note)]
    for label, text in _rows(report, notes, asked.settings.logs, asked.window):
        click.echo(_laid_out(label, plain(text)))
    return 0 if report.deployments else NOT_JUDGED


def _laid_out(label: str, text: str) -> str:
    head, margin = f"{label:11}", " " * 11
    wrapped = textwrap.fill(text, WIDTH, initial_indent=head, subsequent_indent=margin, break_on_hyphens=False)
    return (wrapped or label).rstrip()


def _rows(report: Report, notes: list[str], logs: LogOptions | None, window: Window) -> Iterator[tuple[str, str]]:
    """What to print: a label and a text each."""
    yield "SOURCES", "" if report.sources else "none named: --prometheus, --engine, --logs, --startup-log, --evidence"
    for source in report.sources:
        yield f"  {source.status}", f"{source.name}: {source.detail}"
    yield from (("  log", told) for told in _logs(logs, window))
    for note in notes:
        yield "  note", note
    for deployment in report.deployments:
        yield "", ""
        yield from _deployment(deployment)


def _logs(logs: LogOptions | None, window: Window) -> Iterator[str]:
    """How each log is written, and what share of its lines was understood."""
    from advisor.sources.request_log import survey

    for log in survey(logs, window) if logs else ():
        if log.problem:
            yield f"{log.name}: {log.problem}"
        else:
            others = f", {log.others:,} of something else" if log.others else ""
            yield (
                f"{log.name}: {log.format}; {log.understood_share:.1%} of {log.lines:,} lines understood, "
                f"{log.requests:,} of finished requests{others}"
            )


def _logged(log: RequestLog) -> str:
    """What became of the requests that the log has."""
    without = f"{log.without_usage:,} without both lengths" if log.without_usage else ""
    cured = " (streams: stream_options.include_usage)" if log.without_usage else ""
    ends = [f"{log.served.n:,} with both lengths", without + cured, f"{log.refused:,} refused for length"]
    return f"{log.requests:,} requests: {', '.join([*filter(None, ends), f'{log.failed:,} failed'])}"


def _deployment(report: DeploymentReport) -> Iterator[tuple[str, str]]:
    from advisor.domain.evidence import UNTOLD
    from advisor.outlets.phrases import engine

    evidence = report.evidence
    yield "DEPLOYMENT", evidence.name
    version = "" if evidence.engine_version else " (version unknown)"
    told = f"{len(evidence.every_engine)} of {engine(evidence)}{version}"
    yield "  engines", "none read, and no source says which they are" if evidence.engine == UNTOLD else told
    for flag in FLAGS:
        yield "  flag", f"{flag} {_told(evidence, flag)}"
    if evidence.engines:
        present, absent = _metrics(report)
        yield "  metrics", f"present: {', '.join(present) or 'none'}"
        yield "  metrics", f"missing or renamed: {', '.join(absent) or 'none'}"
        for reason, facts in _never_told(evidence.engine).items():
            yield "  lacks", f"{reason} [{', '.join(facts)}]"
    if evidence.log is not None:
        yield "  log", _logged(evidence.log)
    if evidence.exported is not None:
        yield "  agents", f"{evidence.exported.requests:,.0f} requests counted by host agents"
    coverage = report.facts["length_coverage"]
    seen = "are in the log" if evidence.log is not None else "were counted by host agents"
    yield "  coverage", coverage.unknown or f"{coverage.number:.1%} of finished requests {seen}"
    for reason, rules in _open_rules(report).items():
        yield "  open", f"{reason} [{', '.join(rules)}]"


def _told(evidence: Evidence, flag: str) -> str:
    """The value of a flag and who says so, or what would tell it."""
    from advisor.engines import flags_of
    from advisor.estimates.flag_sources import missing

    known = evidence.flags.get(flag)
    if known is not None:
        return f"{known.value} ({known.source.replace('_', ' ')})"
    own = flags_of(evidence.engine)
    remedy = missing(evidence, flag).removeprefix(f"{flag} is in no metric")
    return (own.lacks(flag) if own else None) or f"missing{remedy}"


def _never_told(kind: str) -> dict[str, list[str]]:
    """What this kind of engine never exposes, each reason once, with the facts it keeps Unknown."""
    from advisor.engines import METRICS

    lacking: dict[str, list[str]] = {}
    if metrics := METRICS.get(kind):
        for fact, reason in metrics.never_tells.items():
            lacking.setdefault(reason, []).append(fact)
    return lacking


def _open_rules(report: DeploymentReport) -> dict[str, list[str]]:
    """What keeps rules undetermined, each reason once, with the rules that wait for it."""
    waiting: dict[str, list[str]] = {}
    for undetermined in report.judgement.undetermined:
        for reason in dict.fromkeys(need.reason for need in undetermined.needs):
            waiting.setdefault(reason, []).append(undetermined.rule)
    return waiting


def _metrics(report: DeploymentReport) -> tuple[list[str], list[str]]:
    """What the engines showed, and what an engine of their kind may show and these did not."""
    from advisor.engines import METRICS

    engines, kind = report.evidence.engines, METRICS[report.evidence.engine]
    have = {w: any(e.windows.total(n) is not None for e in engines) for n, w in COUNTERS.items() if n in kind.counters}
    have |= {w: any(n in e.lengths for e in engines) for n, w in HISTOGRAMS.items() if n in kind.histograms}
    have |= {w: any(n in e.latencies for e in engines) for n, w in LATENCIES.items() if n in kind.histograms}
    have |= {w: any(getattr(e.samples, n) is not None for e in engines) for n, w in GAUGES.items() if kind.gauges}
    return [w for w, there in have.items() if there], [w for w, there in have.items() if not there]
