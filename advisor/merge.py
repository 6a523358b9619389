"""One deployment's evidence from several sources: the engine's own word first, and every disagreement kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from advisor.domain.evidence import (
    TRUST,
    Disagreement,
    EngineSeries,
    Evidence,
    Flag,
    FlagSource,
    FlagValue,
    HttpOutcomes,
    ReportedPool,
)
from advisor.engines import canonical, flags_of
from advisor.engines.command_line import Launch
from advisor.engines.startup import StartupFacts
from advisor.estimates.plateau import plateau
from advisor.outcomes.sides import Sides, divide
from advisor.sources.metrics_reading import DeploymentMetrics

HTTP_CLASSES = ("ok", "client_errors", "server_errors")


def with_metrics(evidence: Evidence, metrics: DeploymentMetrics) -> Evidence:
    """Add what engine metrics and endpoints tell. Flags, version and pool are those of the side that is sized."""
    sides = divide(metrics.engines)
    if sides.apart:
        metrics = _of_one_side(metrics, sides)
    joined = replace(
        evidence,
        engine=metrics.engine_kind,
        engine_version=metrics.version_hint or evidence.engine_version,
        replicas=metrics.replicas or evidence.replicas,
        engines=sides.engines,
        apart=sides.apart,
        rollout=sides.rollout,
        http=metrics.http,
        reported_pool=metrics.reported_pool or evidence.reported_pool,
        disagreements=(*evidence.disagreements, *metrics.disagreements),
    )
    return _with(joined, metrics.flags)


def with_endpoints(metrics: DeploymentMetrics, asked: DeploymentMetrics) -> DeploymentMetrics:
    """Add what an engine says of itself, where another source already has its metrics: to it, and to the deployment."""
    flags, disputes = _believed(metrics.flags, asked.flags)
    return replace(
        metrics,
        engines=tuple(
            replace(e, flags=_believed(e.flags, asked.flags)[0], version=asked.version_hint or e.version)
            if e.instance in asked.instances
            else e
            for e in metrics.engines
        ),
        version_hint=asked.version_hint or metrics.version_hint,
        reported_pool=metrics.reported_pool or asked.reported_pool,
        flags=flags,
        disagreements=(*metrics.disagreements, *asked.disagreements, *disputes),
    )


def with_replica_flags(
    metrics: DeploymentMetrics, own: Mapping[str, Mapping[str, FlagValue]], common: Mapping[str, FlagValue]
) -> DeploymentMetrics:
    """Add flags that the configuration states of single replicas, by instance, and of all that it does not name."""

    def told(engine: EngineSeries) -> Mapping[str, Flag]:
        stated = {**common, **own.get(engine.instance, {})}
        return _believed(engine.flags, {name: Flag(value, "config") for name, value in stated.items()})[0]

    return replace(metrics, engines=tuple(replace(engine, flags=told(engine)) for engine in metrics.engines))


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


def _of_one_side(metrics: DeploymentMetrics, sides: Sides) -> DeploymentMetrics:
    """The deployment as the replicas see it that ceilings are taken from; what others say is no dispute, but theirs."""
    words, theirs = _words(sides.engines), _words(sides.apart)
    strange = {name: values - words.get(name, set()) for name, values in theirs.items()}
    flags = {name: flag for name, flag in metrics.flags.items() if name not in theirs}
    for engine in sides.engines:
        flags = _believed(flags, engine.flags)[0]
    versions = {e.version for e in sides.engines if e.version}
    exact = {v for v in versions if v[:1] not in "<>"} or versions
    pools = [e.pool_tokens for e in sides.engines if e.pool_tokens is not None]
    return replace(
        metrics,
        version_hint=exact.pop() if len(exact) == 1 else None,
        reported_pool=ReportedPool(
            min(pools),
            f"as reported, the least of {len(pools)} engines that run alike",
            nominal=metrics.reported_pool is not None and metrics.reported_pool.nominal,
        )
        if pools
        else None,
        flags=flags,
        disagreements=tuple(
            d for d in metrics.disagreements if not {d.believed.value, d.other.value} & strange.get(d.flag, set())
        ),
    )


def _words(engines: Sequence[EngineSeries]) -> dict[str, set[FlagValue]]:
    """Every value of each flag that any of the engines is said to run with."""
    words: dict[str, set[FlagValue]] = {}
    for engine in engines:
        for name, flag in engine.flags.items():
            words.setdefault(name, set()).add(flag.value)
    return words


def with_startup(evidence: Evidence, facts: StartupFacts) -> Evidence:
    """Add what a start-up log tells; the pool that metrics report is newer and stays."""
    pool = evidence.reported_pool
    if pool is None and facts.kv_pool_tokens is not None:
        pool = ReportedPool(facts.kv_pool_tokens, "start-up log", facts.max_concurrency)
    gpu = evidence.gpu
    if facts.kv_available_bytes is not None:
        gpu = replace(gpu, kv_available_bytes=facts.kv_available_bytes)
    version = facts.version or evidence.engine_version
    joined = replace(
        evidence,
        engine=facts.engine,
        engine_version=version,
        reported_pool=pool,
        gpu=gpu,
        failure=facts.failure or evidence.failure,
    )
    stated = with_flags(joined, facts.flags, "startup_log")
    # vLLM prints every argument that is not the default, so the silence about these is a statement. Others print all.
    return _with_weights(_with_defaults(stated) if facts.engine == "vllm" else stated, facts.weights_bytes)


def _with_weights(evidence: Evidence, on_one_gpu: float | None) -> Evidence:
    """Add the weights of all GPUs of one engine, from what the log prints of one; what somebody states is believed."""
    stages, tensor = evidence.count_flag("pipeline_parallel_size") or 1, evidence.count_flag("tensor_parallel_size")
    if on_one_gpu is None or tensor is None or evidence.model.weights_bytes is not None:
        return evidence
    return replace(evidence, model=replace(evidence.model, weights_bytes=on_one_gpu * tensor * stages))


def with_load(evidence: Evidence, engines: Sequence[EngineSeries]) -> Evidence:
    """Add engines as their own logs show them, where no metrics do; one log is one replica."""
    if evidence.engines or not engines:
        return evidence
    replicas = evidence.replicas or len({engine.instance for engine in engines})
    return replace(evidence, engines=tuple(engines), replicas=replicas)


def with_launch(evidence: Evidence, launch: Launch, source: FlagSource) -> Evidence:
    """Add what an engine was started with, by its process or a manifest; the engine's own metrics know its kind."""
    joined = evidence if evidence.engines else replace(evidence, engine=launch.engine)
    stated = _with(joined, launched_flags(launch, source, joined.engine_version))
    return _with_defaults(stated) if launch.whole else stated


def launched_flags(
    launch: Launch, source: FlagSource, version: str | None, *, since: float | None = None
) -> dict[str, Flag]:
    """The flags that a command line states; what a process leaves out of one that is whole, it states by silence."""
    own = flags_of(launch.engine)
    silent = own.certain_defaults(version) if own and launch.whole and source == "process" else {}
    return {name: Flag(value, source, since) for name, value in {**silent, **launch.flags}.items()}


def _with_defaults(evidence: Evidence) -> Evidence:
    """Add what flags are that nobody set; where another source states one, that is no dispute."""
    own = flags_of(evidence.engine)
    silent = own.certain_defaults(evidence.engine_version) if own else {}
    return with_flags(evidence, {n: v for n, v in silent.items() if n not in evidence.flags}, "default")


def with_plateau(evidence: Evidence) -> Evidence:
    """Add the sequence cap that the gauges show, for where nobody states it; who states another is believed."""
    own, found = flags_of(evidence.engine), plateau(evidence.engines)
    if found is None or own is None or own.lacks("max_num_seqs") or "max_num_active_seqs" in evidence.flags:
        return evidence
    return with_flags(evidence, {"max_num_seqs": found.seats}, "inferred")


def with_flags(evidence: Evidence, values: Mapping[str, FlagValue], source: FlagSource) -> Evidence:
    """Add flags that one source states."""
    return _with(evidence, {name: Flag(value, source) for name, value in values.items()})


def startup_summary(facts: StartupFacts) -> str:
    """What a start-up log told, in one line."""
    pool = f"{facts.kv_pool_tokens:,} tokens of cache" if facts.kv_pool_tokens else "no KV pool printed"
    failed = f", failed: {facts.failure.kind.replace('_', ' ')}" if facts.failure else ""
    return f"{facts.engine} {facts.version or 'of unknown version'}, {len(facts.flags)} flags, {pool}{failed}"


def _with(evidence: Evidence, flags: Mapping[str, Flag]) -> Evidence:
    """The more trusted value of each flag wins; one that differs from it is kept as a disagreement."""
    named = [(canonical(evidence.engine, name, flag.value), flag) for name, flag in flags.items()]
    merged, disputes = _believed(evidence.flags, {name: replace(flag, value=value) for (name, value), flag in named})
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
