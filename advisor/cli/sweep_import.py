"""`advisor sweep import`: what a load test brought, where it crosses the objective, and its safe-keeping."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from advisor.cli.sources import FILE
from advisor.cli.store_access import store_options
from advisor.cli.terminal import terminal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from advisor.domain.evidence import Evidence, FlagValue, Slo
    from advisor.domain.sweep import Sweep
    from advisor.outlets.sweep import SweepResult


@click.command(name="import")
@click.argument("files", nargs=-1, required=True, type=FILE, metavar="FILE...")
@store_options
@click.option("--deployment", metavar="NAME", help="Whose sweep it is; not needed where there is only one.")
@click.option("--where", multiple=True, metavar="KEY=VALUE", help="Only runs whose results say so, such as isl=2048.")
@click.option("--ran-with", multiple=True, metavar="FLAG=VALUE", help="A flag of the tested engine.")
@click.option("--slo-tpot", metavar="TIME", help="Objective: time per output token, such as 40ms.")
@click.option("--slo-ttft", metavar="TIME", help="Objective: time to first token.")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def import_(
    files: tuple[Path, ...],
    config: Path | None,
    store: Path | None,
    deployment: str | None,
    where: tuple[str, ...],
    ran_with: tuple[str, ...],
    output: str,
    **slo: str | None,
) -> None:
    """Read results of a load test, show where they cross the objective, and keep them for the daemon.

    Of vllm bench serve, SGLang bench_serving, GuideLLM, AIPerf, inference-perf, genai-perf, or a list of points.
    """
    from advisor.domain.errors import SourceError
    from advisor.estimates.sweep_ceiling import other_epoch
    from advisor.outlets.sweep import render_json, render_table
    from advisor.sources.sweep import read_sweeps

    sweep = _stated(read_sweeps(files, dict(map(_pair, where))), ran_with)
    evidence = _running(store, config, deployment)
    why = None if evidence is None else other_epoch(sweep, evidence)
    if why is not None:
        raise SourceError(f"{files[0]}: a sweep of another epoch: {why}; run it again on what runs now", permanent=True)
    result = _result(sweep, evidence, _objectives(slo, evidence), _kept(sweep, evidence, store, config))
    width, _ = terminal(no_color=True)
    click.echo(render_json(result) if output == "json" else "\n".join(render_table(result, width)))


def _pair(text: str) -> tuple[str, str]:
    from advisor.domain.errors import UsageError

    key, equals, value = text.partition("=")
    if not equals or not key:
        raise UsageError(f"{text[:60]!r}: write KEY=VALUE")
    return key.strip(), value.strip()


def _stated(sweep: Sweep, ran_with: tuple[str, ...]) -> Sweep:
    from dataclasses import replace

    from advisor.cli.sources import set_flag

    flags: dict[str, FlagValue] = {flag.name: flag.value for flag in map(set_flag, ran_with)}
    return replace(sweep, flags={**sweep.flags, **flags})


def _running(store: Path | None, config: Path | None, deployment: str | None) -> Evidence | None:
    """What the daemon saw of the deployment last; None where there is no daemon's store on this machine."""
    from advisor.cli.store_access import latest_report, store_path
    from advisor.domain.errors import UsageError

    if store is None and config is None and not store_path(None, None).exists():
        return None
    found = {d.evidence.name: d.evidence for d in latest_report(None, store, config).deployments}
    if deployment is None and len(found) == 1:
        return next(iter(found.values()))
    if deployment not in found:
        asked = "which deployment is it of?" if deployment is None else f"no deployment is called {deployment[:60]!r};"
        raise UsageError(f"{asked} give --deployment, one of {', '.join(sorted(found))[:200] or 'none seen yet'}")
    return found[deployment]


def _objectives(given: Mapping[str, str | None], evidence: Evidence | None) -> Slo:
    from advisor.domain import quantity
    from advisor.domain.errors import UsageError
    from advisor.domain.evidence import Slo

    known = evidence.slo if evidence is not None else Slo()
    try:
        tpot, ttft = (quantity.seconds(t) if (t := given[f"slo_{kind}"]) else None for kind in ("tpot", "ttft"))
    except ValueError as error:
        raise UsageError(f"objective {error}; write it like 40ms") from None
    return Slo(tpot_seconds=tpot or known.tpot_seconds, ttft_seconds=ttft or known.ttft_seconds)


def _kept(sweep: Sweep, evidence: Evidence | None, store: Path | None, config: Path | None) -> str:
    """Store it with the flags that run now, so that a change of epoch is noticed, and say where it went."""
    from dataclasses import replace

    from advisor.cli.store_access import store_path
    from advisor.estimates.sweep_ceiling import FIXED_FLAGS
    from advisor.kept_sweeps import keep

    if evidence is None:
        return "not kept, as there is no store here: pass it with --sweep, or set deployments.NAME.sweeps"
    now = {name: flag.value for name, flag in evidence.flags.items() if name in (*FIXED_FLAGS, "max_num_seqs")}
    known = replace(sweep, flags={**now, **sweep.flags}, engine_version=sweep.engine_version or evidence.engine_version)
    path = keep(store_path(store, config), evidence.name, known)
    return f"kept for {evidence.name} in {path}: used until its epoch changes"


def _result(sweep: Sweep, evidence: Evidence | None, slo: Slo, kept: str) -> SweepResult:
    from dataclasses import replace

    from advisor.estimates.sweep_ceiling import from_sweep, on_one_engine, where_next
    from advisor.estimates.sweep_lengths import for_traffic, on_other_lengths
    from advisor.outlets.sweep import SweepResult

    seen = sweep if evidence is None else on_one_engine(replace(evidence, sweep=sweep)) or sweep
    other = None if evidence is None else on_other_lengths(seen, evidence)
    tpot = None if slo.tpot_seconds is None else from_sweep(seen, slo.tpot_seconds)
    ttft = None if slo.ttft_seconds is None else from_sweep(seen, slo.ttft_seconds, lambda point: point.ttft_seconds)
    tpot, ttft = (None if ceiling is None else for_traffic(ceiling, other) for ceiling in (tpot, ttft))
    leading = tpot or ttft
    return SweepResult(
        deployment=None if evidence is None else evidence.name,
        sweep=seen,
        slo=slo,
        tpot_ceiling=tpot,
        ttft_ceiling=ttft,
        next_concurrency=None if leading is None else where_next(leading),
        kept=kept,
    )
