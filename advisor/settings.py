"""The configuration: every setting and its meaning, from a file, the environment (ADVISOR_*) and the command line.

The command line wins over the environment, the environment over the file. A missing file, an unknown key and an unknown
ADVISOR_ variable are errors; nothing is silently ignored.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_settings import BaseSettings, EnvSettingsSource, SettingsConfigDict, SettingsError

from advisor.domain import quantity
from advisor.domain.errors import ConfigError
from advisor.domain.evidence import FlagValue, Slo, Workload
from advisor.domain.policy import Policy
from advisor.engines import FLAG_NAMES, normalise
from advisor.exporter.options import ExporterOptions
from advisor.outlets.slack.options import SlackOptions
from advisor.service_options import LoggingOptions, ScheduleOptions, StoreOptions
from advisor.sources.engine_endpoint import EngineOptions
from advisor.sources.plausible import FirstTokenSeconds, TokenSeconds
from advisor.sources.prometheus import PrometheusOptions
from advisor.sources.request_log import LogOptions
from advisor.sources.sql import SqlOptions
from advisor.sources.yaml_file import load_yaml, nearest, validate
from advisor.web.options import WebOptions

PREFIX = "ADVISOR_"
Seconds = Annotated[
    float, BeforeValidator(quantity.seconds, json_schema_input_type=float | str), Field(gt=0, le=10 * 365 * 86400.0)
]
Ratio = Annotated[float, BeforeValidator(quantity.ratio, json_schema_input_type=float | str)]


def _flags(stated: Mapping[str, FlagValue]) -> Mapping[str, FlagValue]:
    flags: dict[str, FlagValue] = {}
    for written, value in stated.items():
        name = written.removeprefix("--").replace("-", "_")
        if name not in FLAG_NAMES:
            raise ValueError(f"no flag that sizes a server is called {name[:60]!r}; {nearest(name, FLAG_NAMES)}")
        flags[name] = normalise(name, value)
    return flags


RunningFlags = Annotated[Mapping[str, FlagValue], AfterValidator(_flags)]


class SloOptions(BaseModel):
    """Latency objectives; what is absent is not judged."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tpot: TokenSeconds | None = Field(None, description="time per output token of a request, such as 40ms")
    itl: TokenSeconds | None = Field(None, description="gap between two output tokens")
    ttft: FirstTokenSeconds | None = Field(None, description="time to first token")
    percentile: float | None = Field(
        None, ge=50, lt=100, description="share of requests, in percent, that must meet them"
    )


class PolicyOptions(BaseModel):
    """How cautious the arithmetic is."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    length_percentile: float = Field(99.9, gt=50, lt=100, description="share of requests that max_model_len must hold")
    length_margin: Ratio = Field(0.25, ge=0, le=10, description="added on top of it")
    kv_overflow_risk: Ratio = Field(0.01, gt=0, lt=0.5, description="accepted share of requests that are preempted")
    spare_replicas: int = Field(0, ge=0, le=100, description="replicas that may fail without being felt")

    def policy(self) -> Policy:
        """The same as the estimates take it."""
        return Policy(
            self.length_percentile, self.length_margin, self.kv_overflow_risk, spare_replicas=self.spare_replicas
        )


class DeploymentOptions(BaseModel):
    """What is true of one deployment only."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    workload: Workload | None = Field(None, description="interactive or batch")
    slo: SloOptions = Field(default_factory=SloOptions, description="objectives of this deployment")
    flags: RunningFlags = Field(default_factory=dict, description="running flags that no source tells")
    replica_flags: Mapping[str, RunningFlags] = Field(
        default_factory=dict,
        description="running flags of single replicas, by instance, where they are not those of all",
    )
    startup_logs: tuple[Path, ...] = Field((), description="start-up logs of its engines")
    manifests: tuple[Path, ...] = Field((), description="files that say how its engines are started")
    sweeps: tuple[Path, ...] = Field((), description="results of load tests with its flags")
    model_config_file: Path | None = Field(None, description="config.json of its model")


class Config(BaseModel):
    """Everything that can be configured."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    prometheus: PrometheusOptions | None = Field(None, description="the Prometheus that scrapes the engines")
    engines: tuple[EngineOptions, ...] = Field((), description="engines to ask directly")
    logs: LogOptions | None = Field(None, description="request logs")
    sql: SqlOptions | None = Field(None, description="a database that has the requests")
    startup_logs: tuple[Path, ...] = Field((), description="start-up logs, joined by the model's name")
    manifests: tuple[Path, ...] = Field(
        (), description="files that say how engines are started, joined by the model's name"
    )
    processes: bool = Field(default=False, description="read the command lines of the engines on this host")
    sweeps: tuple[Path, ...] = Field((), description="results of load tests; needs a single deployment")
    model_config_file: Path | None = Field(None, description="config.json of the model; needs a single deployment")
    evidence: tuple[Path, ...] = Field((), description="evidence files")
    since: Seconds = Field(7 * 86400.0, description="how far back to look, such as 7d")
    workload: Workload = Field("interactive", description="what deployments are for, unless they say otherwise")
    slo: SloOptions = Field(default_factory=SloOptions, description="objectives, unless a deployment has its own")
    policy: PolicyOptions = Field(default_factory=PolicyOptions, description="how cautious the arithmetic is")
    flags: RunningFlags = Field(default_factory=dict, description="running flags; needs a single deployment")
    rules: tuple[Path, ...] = Field((), description="directories of rules of your own")
    deployments: Mapping[str, DeploymentOptions] = Field(default_factory=dict, description="what is true of one only")
    strict: bool = Field(default=False, description="a source that fails is an error")
    store: StoreOptions = Field(default_factory=StoreOptions, description="the daemon's memory")
    schedule: ScheduleOptions = Field(default_factory=ScheduleOptions, description="when the daemon does what")
    slack: SlackOptions | None = Field(None, description="where the weekly report is posted")
    web: WebOptions = Field(default_factory=WebOptions, description="where the daemon serves its read-only page")
    exporter: ExporterOptions = Field(default_factory=ExporterOptions, description="the host agent")
    logging: LoggingOptions = Field(default_factory=LoggingOptions, description="how the daemon's log is written")

    def slo_of(self, name: str, stated: Slo | None = None) -> Slo:
        """Objectives of a deployment: its own, else what an evidence file states, else the general ones."""
        own = self.deployments.get(name, DeploymentOptions()).slo
        less = stated or Slo()
        return Slo(
            tpot_seconds=_first(own.tpot, self.slo.tpot, less.tpot_seconds),
            itl_seconds=_first(own.itl, self.slo.itl, less.itl_seconds),
            ttft_seconds=_first(own.ttft, self.slo.ttft, less.ttft_seconds),
            percentile=own.percentile or self.slo.percentile or less.percentile,
        )


class Settings(BaseSettings, Config):
    """The configuration with the environment and the command line on top."""

    model_config = SettingsConfigDict(extra="forbid", frozen=True, env_prefix=PREFIX, env_nested_delimiter="__")


def read_settings(path: Path | None = None, given: Mapping[str, Any] | None = None) -> Settings:
    """The settings from a file, the environment and what the command line gives. Raises ConfigError, with the place."""
    stated: Mapping[str, Any] = {}
    if path is not None:
        document = load_yaml(path)
        validate(document, Config)
        stated = document.data or {}
    _refuse_unknown_variables()
    try:
        environment = EnvSettingsSource(Settings)()
        return Settings.model_validate(_given_last(_merge(stated, environment), given or {}))
    except SettingsError as error:
        raise ConfigError(f"environment (ADVISOR_*): {error}: write a list or a mapping as JSON") from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        message = str(first["ctx"]["error"]) if first["type"] == "value_error" else first["msg"]
        raise ConfigError(f"setting {where}: {message}") from None


def _given_last(stated: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """What the command line gives wins over everything, over what is true of one deployment only as well."""
    general = {name: given[name] for name in ("slo", "workload") if name in given}
    merged, own = _merge(stated, given), stated.get("deployments")
    if general and isinstance(own, Mapping):
        merged["deployments"] = {n: _merge(o, general) if isinstance(o, Mapping) else o for n, o in own.items()}
    return merged


def _merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Mappings are merged key by key; everything else is replaced."""
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        merged[key] = _merge(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return merged


def _refuse_unknown_variables() -> None:
    known = {f"{PREFIX}{name.upper()}" for name in Config.model_fields}
    for name in sorted(os.environ):
        if name.startswith(PREFIX) and name.split("__")[0] not in known:
            raise ConfigError(f"environment variable {name} names no setting: {nearest(name, known)}")


def _first(*values: float | None) -> float | None:
    return next((value for value in values if value is not None), None)
