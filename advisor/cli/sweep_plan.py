"""`advisor sweep plan`: the data sets and commands of a sweep with the deployment's own lengths."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from advisor.cli.sources import FILE, request, source_options

if TYPE_CHECKING:
    from collections.abc import Mapping

    from advisor.domain.report import DeploymentReport
    from advisor.estimates.sweep_ladder import Ladder
    from advisor.outlets.sweep_plan import Target


@click.command(name="plan")
@click.argument("name", metavar="DEPLOYMENT")
@source_options
@click.option("--url", metavar="URL", help="Where one replica answers.  [default: the --engine, else a placeholder]")
@click.option("--served-name", metavar="NAME", help="The model's name there.  [default: the deployment's name]")
@click.option("--tokenizer", metavar="NAME", help="Tokenizer for the tools, where the served name is none.")
@click.option(
    "--dir", "folder", type=FILE, metavar="DIR", help="Where the data sets go.  [default: ./sweep-DEPLOYMENT]"
)
def plan(
    name: str, url: str | None, served_name: str | None, tokenizer: str | None, folder: Path | None, **given: Any
) -> None:
    """Write the data sets of a sweep for DEPLOYMENT and print the commands that run it.

    The concurrencies bracket its objective, the lengths are its own, and the text is made of random words.
    """
    from advisor.domain.errors import SourceError
    from advisor.estimates.sweep_ladder import ladder
    from advisor.outlets.sweep_plan import Target

    judged = _judged(name, given)
    steps = ladder(judged.evidence, judged.facts)
    if isinstance(steps, str):
        raise SourceError(f"{name[:60]}: {steps}", permanent=True)
    target = Target(
        url=url or next(iter(given["engines"]), "http://REPLICA:8000"),
        model=served_name or _served_name(name),
        tokenizer=tokenizer,
        flags={flag: known.value for flag, known in judged.evidence.flags.items()},
        seats=steps.seats,
    )
    where = folder or Path(f"sweep-{_slug(name)}")
    _write(where, steps)
    _tell(where, steps, target, name)


def _judged(name: str, given: Mapping[str, Any]) -> DeploymentReport:
    from advisor.cycle import run_once
    from advisor.domain.errors import SourceError
    from advisor.outlets.plain import plain

    asked = request({**given, "deployment": name})
    report = run_once(asked.settings, asked.window, set_flags=asked.set_flags, deployment=name)
    if report.deployments:
        return report.deployments[0]
    failed = [plain(f"{source.name}: {source.detail}") for source in report.sources if source.status == "failed"]
    raise SourceError(failed[0] if failed else f"no source shows a deployment {name[:60]!r}: advisor doctor lists them")


def _served_name(name: str) -> str:
    """`job/org/model` is served as `org/model`; a plain name and `org/model` are themselves."""
    return name.partition("/")[2] if name.count("/") == 2 else name


def _slug(name: str) -> str:
    import re

    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:80] or "deployment"


def _write(folder: Path, steps: Ladder) -> None:
    from advisor.outlets.sweep_plan import dataset_lines

    (folder / "results").mkdir(parents=True, exist_ok=True)
    for seed, level in enumerate(steps.levels):
        with (folder / f"concurrency-{level.concurrency}.jsonl").open("w", encoding="ascii") as file:
            file.writelines(f"{line}\n" for line in dataset_lines(level.prompt, level.output, seed))


def _tell(folder: Path, steps: Ladder, target: Target, name: str) -> None:
    import shlex

    from advisor.outlets.plain import plain
    from advisor.outlets.sweep_plan import commands, notes

    levels = {level.concurrency: int(level.prompt.size) for level in steps.levels}
    click.echo(plain(f"concurrency {', '.join(map(str, levels))}: {steps.reason}"))
    click.echo(plain(f"lengths: {steps.lengths}"))
    for line in notes(target):
        click.echo(plain(line))
    for tool, text in commands(target, levels, str(folder)).items():
        click.echo(f"\n# {tool}\n{text}")
    where, whose = shlex.quote(str(folder)), shlex.quote(name)
    click.echo(f"\n# then, with the results of one of them\nadvisor sweep import {where}/results --deployment {whose}")
    click.echo(f"advisor sweep import {where}/aiperf-*/profile_export_aiperf.json --deployment {whose}")
