"""`advisor rules`: list the rules, lint them, run their own test cases."""

from __future__ import annotations

from pathlib import Path

import click

DIRECTORIES = click.argument("directories", nargs=-1, type=click.Path(path_type=Path))


@click.group(name="rules")
def command() -> None:
    """The rule packs. DIRECTORIES default to the shipped rules."""


@command.command(name="list")
@DIRECTORIES
def list_(directories: tuple[Path, ...]) -> None:
    """Every rule with its severity and title."""
    from advisor import rule_pack

    files = rule_pack.read([rule_pack.shipped_directory("rules"), *directories])
    width = max(len(file.rule.id) for file in files)
    for file in files:
        click.echo(f"{file.rule.id:{width}}  {file.rule.severity:11}  {file.rule.title}")


@command.command()
@DIRECTORIES
def lint(directories: tuple[Path, ...]) -> int:
    """Check that every rule can be read, asks for facts that exist, in their units, and has test cases."""
    from advisor import rule_pack

    files = rule_pack.read(directories or [rule_pack.shipped_directory("rules")])
    rule_pack.load(directories)
    return _report(rule_pack.lint(files), f"{len(files)} rules, nothing to mend")


@command.command()
@DIRECTORIES
def test(directories: tuple[Path, ...]) -> int:
    """Run the test cases that lie beside the rules."""
    from advisor import rule_pack

    files = rule_pack.read(directories or [rule_pack.shipped_directory("rules")])
    cases = sum(len(file.cases.cases) for file in files if file.cases is not None)
    return _report(rule_pack.test(files), f"{cases} cases of {len(files)} rules hold")


def _report(problems: tuple[str, ...], good: str) -> int:
    for line in problems:
        click.echo(line)
    if not problems:
        click.echo(good)
    return 2 if problems else 0
