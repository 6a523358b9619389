"""One deployment's evidence from several sources: the engine's own word first, and every disagreement kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from advisor.domain.evidence import (
    TRUST,
    Disagreement,
    Evidence,
    Flag,
    FlagSource,
    FlagValue,
    HttpOutcomes,
    ReportedPool,
)
from advisor.engines.startup import StartupFacts
from advisor.engines.vllm.flags import certain_defaults
from advisor.sources.metrics_reading import DeploymentMetrics

HTTP_CLASSES = ("ok", "client_errors", "server_errors")


def with_metrics(evidence: Evidence, metrics: DeploymentMetrics) -> Evidence:
    """Add what engine metrics and endpoints tell."""
    joined = replace(
        evidence,
        engine=metrics.engine_kind,
        engine_version=metrics.version_hint or evidence.engine_version,
        replicas=metrics.replicas or evidence.replicas,
        engines=metrics.engines,
        http=metrics.http,
        reported_pool=metrics.reported_pool or evidence.reported_pool,
        disagreements=(*evidence.disagreements, *metrics.disagreements),
    )
    return _with(joined, metrics.flags)


def with_endpoints(evidence: Evidence, metrics: DeploymentMetrics) -> Evidence:
    """Add what an engine says of itself, where another source already has its metrics."""
    joined = replace(
        evidence,
        engine_version=metrics.version_hint or evidence.engine_version,
        reported_pool=evidence.reported_pool or metrics.reported_pool,
        disagreements=(*evidence.disagreements, *metrics.disagreements),
    )
    return _with(joined, metrics.flags)


def as_one(parts: Sequence[DeploymentMetrics]) -> DeploymentMetrics:
    """Replicas that were read one by one, as the one deployment that they are."""
    first, versions = parts[0], {p.version_hint for p in parts}
    pools = [p.reported_pool for p in parts if p.reported_pool is not None]
    answers = [p.http for p in parts if p.http is not None]
    flags, disputes = dict(first.flags), [d for p in parts for d in p.disagreements]
    for part in parts[1:]:
        flags, new = _believed(flags, part.flags)
        disputes += new
    return replace(
        first,
        engines=tuple(e for p in parts for e in p.engines),
        instances=tuple(sorted({i for p in parts for i in p.instances})),
        version_hint=versions.pop() if len(versions) == 1 else None,
        http=HttpOutcomes(*(sum(getattr(a, f) for a in answers) for f in HTTP_CLASSES)) if answers else None,
        reported_pool=min(pools, key=lambda pool: pool.tokens, default=None),
        flags=flags,
        disagreements=tuple(disputes),
        notes=tuple(dict.fromkeys(n for p in parts for n in p.notes)),
    )


def with_startup(evidence: Evidence, facts: StartupFacts) -> Evidence:
    """Add what a start-up log tells; the pool that metrics report is newer and stays."""
    pool = evidence.reported_pool
    if pool is None and facts.kv_pool_tokens is not None:
        pool = ReportedPool(facts.kv_pool_tokens, "start-up log")
    gpu = evidence.gpu
    if facts.kv_available_bytes is not None:
        gpu = replace(gpu, kv_available_bytes=facts.kv_available_bytes)
    version = facts.version or evidence.engine_version
    joined = replace(evidence, engine=facts.engine, engine_version=version, reported_pool=pool, gpu=gpu)
    stated = with_flags(joined, facts.flags, "startup_log")
    if facts.engine != "vllm":
        return stated
    # The log prints every argument that is not the default, so the silence about these is a statement.
    silent = {n: v for n, v in certain_defaults(facts.version).items() if n not in stated.flags}
    return with_flags(stated, silent, "default")


def with_flags(evidence: Evidence, values: Mapping[str, FlagValue], source: FlagSource) -> Evidence:
    """Add flags that one source states."""
    return _with(evidence, {name: Flag(value, source) for name, value in values.items()})


def startup_summary(facts: StartupFacts) -> str:
    """What a start-up log told, in one line."""
    pool = f"{facts.kv_pool_tokens:,} tokens of cache" if facts.kv_pool_tokens else "no KV pool printed"
    return f"{facts.engine} {facts.version or 'of unknown version'}, {len(facts.flags)} flags, {pool}"


def _with(evidence: Evidence, flags: Mapping[str, Flag]) -> Evidence:
    """The more trusted value of each flag wins; one that differs from it is kept as a disagreement."""
    merged, disputes = _believed(evidence.flags, flags)
    return replace(evidence, flags=merged, disagreements=(*evidence.disagreements, *disputes))


def _believed(known: Mapping[str, Flag], more: Mapping[str, Flag]) -> tuple[dict[str, Flag], list[Disagreement]]:
    merged, disputes = dict(known), []
    for name, flag in more.items():
        old = merged.get(name)
        believed, other = (flag, old) if old is None or _rank(flag) < _rank(old) else (old, flag)
        merged[name] = believed
        if other is not None and other.value != believed.value:
            disputes.append(Disagreement(name, believed, other))
    return merged, disputes


def _rank(flag: Flag) -> int:
    return TRUST.index(flag.source)
