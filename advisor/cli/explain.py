"""`advisor explain`: the page of a rule, of the rule behind a piece of advice, or of a fact."""

from __future__ import annotations

from pathlib import Path

import click

from advisor.cli.store_access import opened, store_options


@click.command(name="explain")
@click.argument("rule_id", metavar="RULE-OR-ADVICE-ID")
@click.option(
    "--rules", multiple=True, type=click.Path(path_type=Path), metavar="DIR", help="Directory with rules of your own."
)
@store_options
def command(rule_id: str, rules: tuple[Path, ...], store: Path | None, config: Path | None) -> None:
    """What a rule checks, why it costs, how to change and undo. RULE is an id such as length/limit-oversized.

    The id of a piece of advice is looked up where -c or --store says; its own story comes first. The name of a fact,
    such as kv_usage_p95, gives its unit, its meaning and the rules that ask for it.
    """
    from advisor import rule_pack
    from advisor.domain.catalogue import CATALOGUE
    from advisor.domain.errors import UsageError
    from advisor.rulebook.page import render, render_fact
    from advisor.sources.yaml_file import nearest

    known = {rule.id: rule for rule in rule_pack.load(rules)}
    meant = [name for name in known if rule_id in (name, name.split("/")[1])]
    if len(meant) > 1:
        raise UsageError(f"{rule_id!r} is the name of {len(meant)} rules: write {' or '.join(meant)}")
    if not meant and rule_id in CATALOGUE:
        click.echo(render_fact(rule_id, known.values()), nl=False)
        return
    if not meant and (store or config):
        rule = _rule_of_advice(rule_id, store, config)
        meant = [rule] if rule in known else []
    if not meant:
        names = {part for name in known for part in (name, name.split("/")[1])}
        raise UsageError(f"no rule or fact is called {rule_id[:60]!r}; {nearest(rule_id, {*names, *CATALOGUE})}")
    click.echo(render(known[meant[0]]), nl=False)


def _rule_of_advice(identity: str, store: Path | None, config: Path | None) -> str:
    """Print what became of a piece of advice, and say which rule it came from."""
    from advisor.outcomes import by_id
    from advisor.outlets.history import story

    with opened(store, config) as memory:
        record = by_id(memory.records(), identity)
    click.echo("\n".join(story(record)) + "\n")
    return record.advice.rule
