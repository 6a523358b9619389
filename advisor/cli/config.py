"""`advisor config`: check a configuration file, show what is in force, print the schema."""

from __future__ import annotations

from pathlib import Path

import click

FILE = click.Path(path_type=Path)


@click.group(name="config")
def command() -> None:
    """The configuration."""


@command.command()
@click.argument("file", type=FILE)
def check(file: Path) -> None:
    """Read a configuration file; the first mistake is named with its line and column."""
    from advisor import rule_pack
    from advisor.settings import read_settings

    settings = read_settings(file)
    rules = rule_pack.load(settings.rules)
    click.echo(f"{file}: good, {len(rules)} rules")


@command.command()
def schema() -> None:
    """The JSON schema of the configuration file, for editors."""
    import json

    from advisor.settings import Config

    click.echo(json.dumps(Config.model_json_schema(), indent=2, sort_keys=True))


@command.command()
@click.option("-c", "--config", "file", type=FILE, metavar="FILE", help="Configuration file.")
def show(file: Path | None) -> None:
    """The settings in force: file, environment and defaults together. Secrets lie in files and are not shown."""
    import sys

    from ruamel.yaml import YAML

    from advisor.outlets.plain import plain
    from advisor.settings import read_settings

    settings = read_settings(file).model_dump(mode="json", exclude_none=True)
    loki = (settings.get("logs") or {}).get("loki")
    for holder in (settings.get("prometheus"), loki, *settings.get("engines", ())):
        if holder:
            holder["headers"] = {plain(name): "(not shown)" for name in holder.get("headers", {})}
            holder["url"] = _without_credentials(holder["url"])
    writer = YAML(typ="safe", pure=True)
    writer.default_flow_style = False
    writer.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    writer.dump(settings, sys.stdout)


def _without_credentials(url: str) -> str:
    from advisor.sources.http_session import public_address

    return public_address(url)
