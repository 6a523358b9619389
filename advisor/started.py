"""How engines were started, joined to deployments: processes by the address they serve or the model, manifests by it.

Engines that serve one model with different flags tell only those in which they agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from advisor import merge
from advisor.domain.evidence import Evidence, FlagSource, Window
from advisor.domain.report import SourceState
from advisor.engines.command_line import Launch
from advisor.sources.manifests import Declared
from advisor.sources.metrics_reading import DeploymentMetrics
from advisor.sources.processes import RIGHTS, EngineProcess, ProcessReading

MOST_TOLD = 5
_NOTHING = DeploymentMetrics({}, (), ())


@dataclass(frozen=True, slots=True)
class Joined:
    """Deployments with what was added to them, and one line each on what could not be joined."""

    deployments: dict[str, Evidence]
    notes: tuple[str, ...] = ()


def with_processes(metrics: DeploymentMetrics, running: ProcessReading) -> DeploymentMetrics:
    """Add what the processes of this host were started with that serve an address which is scraped."""
    for one in running.engines:
        for instance in _served_by(one, metrics, running):
            flags = merge.launched_flags(one.launch, "process", metrics.version_hint, since=one.started)
            metrics = merge.with_endpoints(metrics, replace(_NOTHING, instances=(instance,), flags=flags))
    return metrics


def unscraped(running: ProcessReading, fleet: Iterable[DeploymentMetrics]) -> tuple[EngineProcess, ...]:
    """The processes whose address nobody scrapes; these are joined by the model that they serve."""
    known = list(fleet)
    return tuple(one for one in running.engines if not any(_served_by(one, metrics, running) for metrics in known))


def _served_by(one: EngineProcess, metrics: DeploymentMetrics, running: ProcessReading) -> list[str]:
    if metrics.engine_kind != one.launch.engine:
        return []
    places = ((instance, *instance.rpartition(":")[::2]) for instance in metrics.instances)
    return [i for i, host, port in places if host in running.addresses and port in map(str, one.ports)]


def by_model(
    deployments: Mapping[str, Evidence], started: Sequence[Declared], source: FlagSource, window: Window
) -> Joined:
    """Add engines to the deployments that serve their model. Where there is no deployment yet, each model is one."""
    alone, out, strangers = not deployments, dict(deployments), list[str]()
    owned: dict[str, list[Declared]] = {}
    for one in started:
        name = _own_name(one) if alone else _owner(one, deployments, only=len(started) == 1)
        if name is None:
            strangers.append(_own_name(one))
        else:
            owned.setdefault(name, []).append(one)
    notes = [f"no deployment serves {name}: put the file under deployments.NAME.manifests" for name in strangers]
    for name, engines in owned.items():
        evidence = out.get(name) or Evidence(name=name, window=window)
        out[name], told = to_one(evidence, engines, source)
        notes += told
    return Joined(out, tuple(notes[:MOST_TOLD]))


def _own_name(one: Declared) -> str:
    return next(iter(one.launch.served_names), one.name) or "unnamed"


def _owner(one: Declared, deployments: Mapping[str, Evidence], *, only: bool) -> str | None:
    """The deployment that has a name which the engine serves, else its object's; else the only one for the only one."""
    known = {name: evidence for name, evidence in deployments.items() if _may_be(one, evidence)}
    for served in (*one.launch.served_names, one.name):
        if served in known:
            return served
    # A deployment is called job/model where several jobs serve the model: then only the configuration can tell.
    return next(iter(known)) if only and len(deployments) == len(known) == 1 and not one.launch.served_names else None


def _may_be(one: Declared, evidence: Evidence) -> bool:
    return not evidence.engines or evidence.engine == one.launch.engine


def to_one(evidence: Evidence, engines: Sequence[Declared], source: FlagSource) -> tuple[Evidence, list[str]]:
    """Add engines to the deployment that they are of; with the flags in which they differ, one line each."""
    launch, differing = _agreed([one.launch for one in engines])
    told = [one.replicas for one in engines if one.replicas is not None]
    versions = {one.version for one in engines}
    joined = replace(
        evidence,
        replicas=evidence.replicas or (sum(told) if len(told) == len(engines) else None) or None,
        engine_version=evidence.engine_version or (versions.pop() if len(versions) == 1 else None),
    )
    notes = [f"{name} differs between the engines of {evidence.name}, so it is not taken" for name in differing]
    return merge.with_launch(joined, launch, source), notes


def _agreed(launches: Sequence[Launch]) -> tuple[Launch, list[str]]:
    """What several engines were all started with, and the flags in which they differ or that only some have."""
    first, *others = launches
    names = sorted({name for launch in launches for name in launch.flags})
    differing = [n for n in names if any(other.flags.get(n) != first.flags.get(n) for other in others)]
    flags = {name: value for name, value in first.flags.items() if name not in differing}
    return replace(first, flags=flags, whole=all(launch.whole for launch in launches) and not differing), differing


def declared_by_processes(engines: Iterable[EngineProcess]) -> tuple[Declared, ...]:
    """Processes as what starts engines; how many replicas there are elsewhere this host does not know."""
    return tuple(Declared(f"process {one.pid}", one.launch) for one in engines)


def manifest_state(name: str, engines: Sequence[Declared], notes: Sequence[str]) -> SourceState:
    """What a manifest told, in one line."""
    told = [
        f"{one.launch.engine} {_own_name(one)}: {_count(len(one.launch.flags), 'flag')}{_size(one)}" for one in engines
    ]
    gaps = [*(f"{_own_name(one)}: {gap}" for one in engines for gap in one.launch.unresolved), *notes]
    return SourceState(f"manifest {name}", "partial" if gaps else "ok", _line(told, gaps))


def process_state(running: ProcessReading, notes: Sequence[str]) -> SourceState:
    """What the processes of this host told, in one line."""
    seen = f"{running.seen:,} processes that this account sees"
    if not running.engines:
        return SourceState("processes", "partial", f"no engine that is known among the {seen}; {RIGHTS}")
    told = [
        f"{one.launch.engine} on port {'/'.join(map(str, one.ports))}: {_count(len(one.launch.flags), 'flag')}"
        for one in running.engines
    ]
    gaps = [*(gap for one in running.engines for gap in one.launch.unresolved), *notes]
    return SourceState("processes", "partial" if gaps else "ok", f"{_line(told, gaps)}; among {seen}")


def _size(one: Declared) -> str:
    replicas = "" if one.replicas is None else f", {_count(one.replicas, 'replica')}"
    return replicas + (f" of {_count(one.gpus, 'GPU')}" if one.gpus and replicas else "")


def _line(told: Sequence[str], gaps: Sequence[str]) -> str:
    """At most a few of each, every gap once."""
    distinct = list(dict.fromkeys(gaps))
    return "; ".join(part for listed in (told, distinct) for part in _few(listed))


def _few(listed: Sequence[str]) -> list[str]:
    rest = len(listed) - MOST_TOLD
    return list(listed) if rest <= 0 else [*listed[:MOST_TOLD], f"and {rest} more"]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
