"""Everything about one deployment, for a terminal: what it runs with, what to do, why, and why not something else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from advisor.domain.advice import Advice
from advisor.domain.evidence import Evidence
from advisor.domain.report import DeploymentReport

from . import phrases, silence
from .derivations import ceilings, lengths, limit
from .layout import hanging, wrapped
from .observations import observed

_MARGIN = 14
_FEW = 3
_KNOBS = ("max_model_len", "max_num_seqs", "max_num_batched_tokens", "tensor_parallel_size", "gpu_memory_utilization")


def detail(deployment: DeploymentReport, width: int, *, verbose: bool = False) -> list[str]:
    """The block of one deployment in lines of at most `width` columns; `verbose` leaves nothing out."""
    facts, advice = deployment.facts, deployment.judgement.advice
    sections: tuple[Iterable[str], ...] = (
        _heading(deployment.evidence, width),
        _canaries(deployment, width),
        *(_advice(a, width) for a in advice if a.state == "open"),
        limit(facts, width, verbose=verbose),
        ceilings(facts, advice, width, verbose=verbose),
        lengths(facts, width),
        (line for title, text in observed(deployment) for line in _beside(title, [text], width)),
        _beside("NEXT", _queued(advice), width),
        _judged(deployment, width, verbose=verbose),
    )
    return [line for section in sections if (lines := list(section)) for line in ("", *lines)][1:]


def _beside(title: str, texts: Iterable[str], width: int) -> Iterator[str]:
    """Paragraphs beside a title in the margin."""
    for place, text in enumerate(texts):
        yield from hanging(("" if place else title).ljust(_MARGIN), text, width=width)


def _heading(evidence: Evidence, width: int) -> Iterator[str]:
    words = (
        evidence.name,
        phrases.replicas(evidence.replicas),
        phrases.engine(evidence),
        evidence.workload,
        phrases.objectives(evidence.slo),
    )
    paragraphs = [" · ".join(word for word in words if word), phrases.traffic(evidence)]
    known = [(knob, flag) for knob in _KNOBS if (flag := evidence.flags.get(knob))]
    if evidence.rollout:
        paragraphs.append(evidence.rollout.reason)
    if known:
        flags = (f"{knob} {flag.value} ({phrases.told_by(flag.source)})" for knob, flag in known)
        paragraphs.append(f"runs with {', '.join(flags)}")
    for odd in evidence.disagreements:
        believed = f"{odd.flag} is {odd.believed.value} by {phrases.told_by(odd.believed.source)}, which is believed"
        paragraphs.append(f"{believed}; {phrases.told_by(odd.other.source)} says {odd.other.value}")
    for paragraph in paragraphs:
        # A continued line is set in, so that a long name cannot put a line of its own making into the margin.
        first, *more = wrapped(paragraph, width - 2)
        yield from (first, *(f"  {line}" for line in more))


def _canaries(deployment: DeploymentReport, width: int) -> Iterator[str]:
    for one in deployment.canaries:
        yield from _beside("CANARY", [phrases.canary(one), *phrases.comparison(one)], width)


def _advice(advice: Advice, width: int) -> Iterator[str]:
    yield from _beside("ADVICE", [phrases.headline(advice)], width)
    yield from _beside("  flag", [advice.flag] if advice.flag else [], width)
    yield from _beside("  why", [advice.reason], width)
    yield from _beside("  because", map(phrases.ground, advice.evidence), width)
    yield from _beside("  options", phrases.options(advice), width)
    yield from _beside("  expect", phrases.expectations(advice), width)
    yield from _beside("  try", [advice.trial] if advice.trial else [], width)
    yield from _beside("  verify", [advice.verify], width)
    yield from _beside("  undo", [advice.undo], width)
    yield from _beside("  confidence", [f"{advice.confidence}: {advice.confidence_basis}"], width)
    yield from _beside("  rule", [f"{advice.rule} ({advice.severity})"], width)


def _queued(advice: tuple[Advice, ...]) -> list[str]:
    queued = [a for a in advice if a.state == "queued"]
    return [f"{place}. {phrases.action(a)}: {a.reason}" for place, a in enumerate(queued, 1)]


def _judged(deployment: DeploymentReport, width: int, *, verbose: bool) -> Iterator[str]:
    judgement = deployment.judgement
    yield from _beside("FINDINGS", [f"{f.title} ({f.rule})" for f in judgement.findings], width)
    near = [f"{rule.rule}: {silence.shortfall(rule)}" for rule in silence.nearest(judgement.not_fired)]
    yield from _beside("WHY NOT", near if verbose else near[:_FEW], width)
    unknown = [f"{', '.join(need.facts)}: {need.reason}" for need in silence.needs(judgement.undetermined)]
    yield from _beside("UNKNOWN", unknown if verbose else _first(unknown, 2 * _FEW), width)


def _first(texts: list[str], most: int) -> list[str]:
    rest = len(texts) - most
    return texts if rest <= 0 else [*texts[:most], f"and {rest} more (-v shows them)"]
