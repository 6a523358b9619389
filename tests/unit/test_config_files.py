"""The files in config/: the example holds every setting and works, and the schema is the one of the settings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner
from pydantic import BaseModel

from advisor.cli import cli
from advisor.settings import Config, read_settings
from advisor.sources.http_session import HttpOptions
from advisor.sources.request_log.loki_api import LokiOptions
from advisor.sources.yaml_file import load_yaml, validate

CONFIG = Path(__file__).parents[2] / "config"
EXAMPLE = CONFIG / "examples" / "advisor.yaml"
LOKI = CONFIG / "examples" / "loki.yaml"
SCHEMA = CONFIG / "advisor.schema.json"

Setting = tuple[str, str]
TOLD_IN_WORDS: set[Setting] = {
    ("SlackOptions", "webhook_url_file"),
    ("SqlOptions", "url_file"),
    ("SqlOptions", "query"),
    ("LogOptions", "loki"),
}
"""Settings that exclude one of the others, so that a file cannot hold both."""


def everything_in_use(path: Path, folder: Path) -> Config:
    """The example with its unused settings (`#key: value`, no blank after the `#`) in use."""
    uncommented = folder / path.name
    uncommented.write_text(re.sub(r"(?m)^( *)#(?=\S)", r"\1", path.read_text(encoding="utf-8")), encoding="utf-8")
    return validate(load_yaml(uncommented), Config)


def option_models(value: object) -> Iterator[BaseModel]:
    """A model of options, and those inside it."""
    if isinstance(value, BaseModel):
        yield value
        yield from (model for _, field in value for model in option_models(field))
    elif isinstance(value, Mapping):
        yield from (model for item in value.values() for model in option_models(item))
    elif isinstance(value, tuple):
        yield from (model for item in value for model in option_models(item))


def setting(model: type[BaseModel], name: str) -> Setting:
    """A setting by the class that declares it: what `prometheus` and `engines` inherit is one setting."""
    declaring = next(cls for cls in reversed(model.__mro__) if name in getattr(cls, "model_fields", {}))
    return declaring.__name__, name


def stated(config: Config) -> set[Setting]:
    return {setting(type(m), name) for m in option_models(config) for name in m.model_fields_set}


def declared(config: Config) -> set[Setting]:
    return {setting(type(m), name) for m in option_models(config) for name in type(m).model_fields}


def test_the_example_works_as_it_lies_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CONFIG.parent)
    settings = read_settings(EXAMPLE)
    assert (settings.since, settings.slo.tpot) == (604_800.0, 0.04)
    assert all(path.is_file() for path in settings.evidence)


def test_every_setting_is_in_the_example(tmp_path: Path) -> None:
    config = everything_in_use(EXAMPLE, tmp_path)
    assert ("HttpOptions", "ca_file") in stated(config)
    assert declared(config) - stated(config) == TOLD_IN_WORDS
    assert all(name in EXAMPLE.read_text(encoding="utf-8") for _, name in TOLD_IN_WORDS)


def test_a_setting_that_the_example_lacks_is_noticed(tmp_path: Path) -> None:
    poorer = tmp_path / "poorer" / EXAMPLE.name
    poorer.parent.mkdir()
    poorer.write_text(re.sub(r".*\bttft_unit:.*\n", "", EXAMPLE.read_text(encoding="utf-8")), encoding="utf-8")
    config = everything_in_use(poorer, tmp_path)
    assert declared(config) - stated(config) == {("FieldMap", "ttft_unit"), *TOLD_IN_WORDS}


def test_every_setting_of_loki_is_in_its_example(tmp_path: Path) -> None:
    assert validate(load_yaml(LOKI), Config).logs is not None
    said = {name for model, name in stated(everything_in_use(LOKI, tmp_path)) if model == "LokiOptions"}
    assert said == LokiOptions.model_fields.keys() - HttpOptions.model_fields.keys()


def test_every_setting_has_a_description(tmp_path: Path) -> None:
    config = everything_in_use(EXAMPLE, tmp_path)
    models = {type(model) for model in option_models(config)}
    bare = {setting(m, name) for m in models for name, field in m.model_fields.items() if not field.description}
    assert bare == set()


def test_the_schema_is_current(request: pytest.FixtureRequest) -> None:
    printed = CliRunner().invoke(cli, ["config", "schema"], catch_exceptions=False).output
    if request.config.getoption("update_snapshots"):
        SCHEMA.write_text(printed, encoding="utf-8")
    assert SCHEMA.read_text(encoding="utf-8") == printed, "config/advisor.schema.json is old: run make snapshots"
