"""What a report says in words, the same in every format for people. Nothing here is escaped: the formats do that."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from advisor.domain.advice import Advice, EvidenceLine, Judgement, Prediction, Status
from advisor.domain.canary import Canary, Reading
from advisor.domain.numbers import duration, number, quantity, seconds, setting, span, unit_of

from . import remedies, silence

if TYPE_CHECKING:  # evidence carries arrays, and one line of status must not wait for numpy
    from advisor.domain.evidence import Evidence, FlagSource, FlagValue, Slo, Window

_ENGINES = {
    "vllm": "vLLM",
    "sglang": "SGLang",
    "tgi": "TGI",
    "trtllm": "TensorRT-LLM",
    "llamacpp": "llama.cpp",
    "dynamo": "Dynamo",
    "unknown": "engine unknown",
}
_ACRONYMS = frozenset({"ttft", "tpot", "itl", "kv", "slo"})
_EPOCHS = {
    "restarted": "restarted",
    "changed": "its settings changed",
    "counters_reset": "its counters began again",
    "first_seen": "nothing was read before",
    None: "restarted or changed",
}
_VERDICTS = {
    "change_flag": "change a flag",
    "add_replicas": "add replicas",
    "remove_replicas": "remove replicas",
    "reshard": "shard differently",
    "split_workload": "split the workload",
    "run_sweep": "run a sweep",
    "fix_instrumentation": "fix instrumentation",
    "investigate": "investigate",
}
_BOUNDS = {"low": "at least ", "high": "at most ", None: ""}
NOTHING_GIVEN = (
    "nothing was seen or given: connect metrics (--prometheus, --engine) or requests (--logs, sql); before anything "
    "runs, give a start-up log, the model's config or a load test"
)


class Judged(Protocol):
    """Whatever the rules said something of."""

    @property
    def judgement(self) -> Judgement:
        """What they said."""


class Served(Protocol):
    """Whatever an engine serves."""

    @property
    def engine(self) -> str:
        """Its name, `vllm`."""

    @property
    def engine_version(self) -> str | None:
        """Its version, where it is known."""


def mark(status: Status, advice: Advice | None = None) -> str:
    """One character for the eye: `!` act, `^` an opportunity, `.` fine, `?` cannot tell, `-` no data."""
    if advice is not None and status == "advice":
        return "!" if advice.severity in {"critical", "warning"} else "^"
    return {"advice": "^", "ok": ".", "cannot_tell": "?", "no_data": "-"}[status]


def answers(deployment: Judged) -> list[tuple[str, str, str]]:
    """The answer in one line each: (mark, what to do, why). Several where several flags are to change together."""
    status = deployment.judgement.status
    said = [(mark(status, a), action(a), a.reason) for a in deployment.judgement.advice if a.state == "open"]
    return said or [(mark(status), *why_not_advised(deployment))]


def engine(evidence: Served) -> str:
    """`vLLM 0.32.0`."""
    return f"{_ENGINES.get(evidence.engine, evidence.engine)} {evidence.engine_version or ''}".rstrip()


def action(advice: Advice) -> str:
    """What to do in the fewest words: `--max-num-seqs 16 -> 24`, `4 -> 6 replicas`, `run a sweep`."""
    if advice.recommended is None:
        return advice.flag or _VERDICTS[advice.verdict]
    change = _change(advice)
    if advice.verdict in {"add_replicas", "remove_replicas"}:
        return f"{change} replicas"
    option, _, value = (advice.flag or advice.knob or _VERDICTS[advice.verdict]).partition(" ")
    return f"{option} {change}" if not value or value == setting(advice.recommended) else f"{option} {value}"


def headline(advice: Advice) -> str:
    """The advice as a sentence: `raise max_num_seqs from 16 to 24`; without a number, the title of its rule."""
    if advice.recommended is None or advice.knob is None:
        return advice.title
    if advice.current is None:
        return f"set {advice.knob} to {number(advice.recommended)}"
    direction = "raise" if advice.recommended > advice.current else "lower"
    return f"{direction} {advice.knob} from {_count(advice.current)} to {_count(advice.recommended)}"


def why_not_advised(deployment: Judged) -> tuple[str, str]:
    """What stands in place of advice, and why: `none`, `within its SLOs`; `cannot tell`, `X. For more: ...`."""
    judgement = deployment.judgement
    found = "; ".join(finding.title for finding in judgement.findings)
    if judgement.status == "ok":
        return "none", found or "every rule was decided, and none fired"
    if judgement.status == "no_data":
        return "no data", NOTHING_GIVEN
    lacks = silence.needs(judgement.undetermined)
    reason = _lacking(lacks[0]) if lacks else "rules that matter are undecided"
    return "cannot tell", f"{found}. For more: {reason}" if found else reason


def _lacking(lack: silence.Lack) -> str:
    """The reason alone where it says what to connect; else which fact it is about."""
    return lack.reason if remedies.options(lack.reason) else f"{lack.facts[0]}: {lack.reason}"


def expectations(advice: Advice) -> list[str]:
    """What it predicts that the next window can refute: nothing of what is 0, nor that something stays as it is."""
    return [
        expectation(p) for p in advice.prediction if p.now is None or (p.now and (p.low is not None or p.high != p.now))
    ]


def expectation(prediction: Prediction) -> str:
    """`TTFT p99 1.8 s -> 0.5-0.7 s`."""
    now = "" if prediction.now is None else f"{quantity(prediction.now, prediction.unit)} "
    return f"{label(prediction.metric)} {now}-> {span(prediction.low, prediction.high, prediction.unit)}"


def label(name: str) -> str:
    """A fact's name as people write it: `ttft_p99` is `TTFT p99`, `kv_usage_p95` is `KV usage p95`."""
    return " ".join(part.upper() if part in _ACRONYMS else part for part in name.split("_"))


def objectives(slo: Slo) -> str:
    """`SLO p99: 40 ms a token, first token 2 s`."""
    targets = (("{} a token", slo.tpot_seconds), ("gap {}", slo.itl_seconds), ("first token {}", slo.ttft_seconds))
    given = [words.format(seconds(target)) for words, target in targets if target is not None]
    return f"SLO p{number(slo.percentile)}: {', '.join(given)}" if given else "no SLO given"


def told_by(source: FlagSource) -> str:
    """Who tells a flag's value; `--set` for what the reader of the report said on the command line."""
    return "--set" if source == "command_line" else source


def span_of_time(window: Window) -> str:
    """`7 d to Sun 29 Nov 2026 16:00 UTC`."""
    return f"{duration(window.seconds)} to {moment(window.end)}"


def moment(unix_seconds: float) -> str:
    """`Sun 29 Nov 2026 16:00 UTC`."""
    return datetime.fromtimestamp(unix_seconds, UTC).strftime("%a %d %b %Y %H:%M UTC")


def deployments(number: int) -> str:
    """`1 deployment`, `4 deployments`, `no deployments`."""
    return f"{number or 'no'} deployment{'' if number == 1 else 's'}"


def replicas(count: int | None) -> str:
    """`2 replicas`; empty when nobody knows."""
    return "" if count is None else f"{count} replica{'' if count == 1 else 's'}"


def ground(line: EvidenceLine) -> str:
    """A condition and what it was decided on, `kv_usage_p95 < 60%: 4 %`; "is unknown" already says what there is."""
    if line.value is None:
        return line.condition
    unit = "x" if unit_of(line.fact) == "x" else line.unit
    return f"{line.condition}: {_BOUNDS[line.bound]}{quantity(line.value, unit)}"


def options(advice: Advice) -> list[str]:
    """The ways to do it of which the size is known; why that of another is not stands in the JSON."""
    return [option(choice) for choice in advice.options if "unknown" not in choice]


def option(choice: Mapping[str, object]) -> str:
    """One way to do it: `replicas 6, tensor parallel size 4, kv pool tokens 587,158`; what is not known is left out."""
    written = {k: _count(v) if isinstance(v, int | float) else v for k, v in choice.items() if v is not None}
    return ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in written.items())


def traffic(evidence: Evidence) -> str:
    """What was seen of it, and since when its latencies count: `412,310 requests in the log; metrics of 2 engines`."""
    log = evidence.log
    given = evidence.joint or evidence.totals
    seen = [f"{log.requests:,} requests in the log"] if log else [f"{given.n:,} requests given"] if given else []
    number = len(evidence.every_engine)
    if number:
        seen.append(f"metrics of {number} engine{'' if number == 1 else 's'}")
    if since := measuring(evidence):
        seen.append(since)
    return "; ".join(seen) or "no traffic was read: what follows is computed from the figures given"


def measuring(evidence: Evidence) -> str:
    """Since when load and latency count, and why not for longer: `measuring since Tue 24 Nov ... (restarted)`.

    Empty where all of the window counts. Where replicas began at different times: the first of them, and the last.
    """
    seen = sorted(evidence.sized_engines, key=lambda engine: engine.epoch_start)
    inside = [e for e in seen if evidence.window.start < e.epoch_start < evidence.window.end]
    if not inside:
        return ""
    first, last = seen[0], inside[-1]
    why = f"since {moment(last.epoch_start)} ({_EPOCHS[last.epoch_cause]})"
    if first.epoch_start == last.epoch_start:
        return f"measuring {why}"
    return f"measuring{f' since {moment(first.epoch_start)}' if first in inside else ''}, the last replica only {why}"


def epoch(evidence: Evidence) -> list[str]:
    """What limits how far back figures reach: since when it is measured, and a rollout that passes through."""
    passing = [evidence.rollout.reason] if evidence.rollout else []
    return [since, *passing] if (since := measuring(evidence)) else passing


def canary(one: Canary) -> str:
    """Who runs apart, with what, and since when: `b:8000 runs with max_num_seqs 24 (others 16) since ...`."""
    first, *more = one.instances
    who = f"{first} and {len(more)} more run" if more else f"{first} runs"
    apart = ", ".join(f"{d.setting} {_value(d.canary)} (others {_value(d.siblings)})" for d in one.differences)
    return f"{who} with {apart or 'other settings'} since {moment(one.since)}"


def comparison(one: Canary) -> list[str]:
    """What that did on the same hours: first what differs, then what does not, then what nobody can tell."""
    hours = f"{one.hours} common hour{'' if one.hours == 1 else 's'}"
    apart = [_apart(r) for r in one.readings if r.outcome in ("lower", "higher")]
    same = [label(r.metric) for r in one.readings if r.outcome == "same"]
    reasons: dict[str, list[str]] = {}
    for reading in one.readings:
        if reading.outcome == "unknown":
            reasons.setdefault(reading.why, []).append(label(reading.metric))
    lines = [f"{hours}: {'; '.join(apart)}"] if apart else []
    if same:
        lines.append(f"{'' if apart else hours + ': '}no difference beyond noise in {', '.join(same)}")
    return lines + [f"cannot tell {', '.join(names)}: {why}" for why, names in reasons.items()]


def _apart(reading: Reading) -> str:
    values = f"{quantity(reading.canary, reading.unit)} against {quantity(reading.siblings, reading.unit)}"
    return f"{label(reading.metric)} {reading.outcome}, {values}"


def _value(value: FlagValue) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _change(advice: Advice) -> str:
    after = setting(advice.recommended or 0)
    return after if advice.current is None else f"{setting(advice.current)} -> {after}"


def _count(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else setting(value)
