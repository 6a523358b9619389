"""`advisor explain`: the page of a rule."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(name="explain")
@click.argument("rule_id", metavar="RULE")
@click.option(
    "--rules", multiple=True, type=click.Path(path_type=Path), metavar="DIR", help="Directory with rules of your own."
)
def command(rule_id: str, rules: tuple[Path, ...]) -> None:
    """What a rule checks, why it costs, how to change and undo. RULE is an id such as length/limit-oversized."""
    from advisor import rule_pack
    from advisor.domain.errors import UsageError
    from advisor.rulebook.page import render
    from advisor.sources.yaml_file import nearest

    known = {rule.id: rule for rule in rule_pack.load(rules)}
    short = {name.split("/")[1]: rule for name, rule in known.items()}
    rule = known.get(rule_id) or short.get(rule_id)
    if rule is None:
        raise UsageError(f"no rule is called {rule_id[:60]!r}; {nearest(rule_id, [*known, *short])}")
    click.echo(render(rule), nl=False)
