"""The options by which `check` and `doctor` name their sources, and what they mean in terms of settings."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from advisor.cycle import SetFlag
    from advisor.domain.evidence import Window
    from advisor.settings import Settings

Command = TypeVar("Command", bound=Callable[..., Any])
FILE = click.Path(path_type=Path)
EARLIEST, LATEST = 1e9, 4102444800.0  # 2001 to 2100: before it somebody wrote a year, beyond it milliseconds
_DATE = re.compile(r"\d{4}-?\d{2}-?\d{2}(?!\d|\.)")

_OPTIONS = (
    click.option(
        "-c", "--config", "config_file", type=FILE, metavar="FILE", help="Configuration file; options here win."
    ),
    click.option(
        "--prometheus", metavar="URL", help="Prometheus, Thanos, Mimir or VictoriaMetrics that scrapes the engines."
    ),
    click.option(
        "--engine", "engines", multiple=True, metavar="URL", help="One engine: its /metrics, models and server info."
    ),
    click.option("--logs", multiple=True, metavar="PATH", help="Request log: file, directory or glob."),
    click.option("--log-format", metavar="NAME", help="Its format; told by its content unless given."),
    click.option(
        "--startup-log",
        "startup_logs",
        multiple=True,
        type=FILE,
        metavar="PATH",
        help="An engine's own log: a file, or journal:UNIT.",
    ),
    click.option(
        "--manifest",
        "manifests",
        multiple=True,
        type=FILE,
        metavar="FILE",
        help="How engines are started: Kubernetes, Helm values, compose, docker inspect, systemd unit.",
    ),
    click.option("--processes", is_flag=True, help="The command lines of the engines on this host."),
    click.option("--sweep", "sweeps", multiple=True, type=FILE, metavar="FILE", help="Results of a load test."),
    click.option("--model-config", "model_config_file", type=FILE, metavar="PATH", help="config.json of the model."),
    click.option("--evidence", multiple=True, type=FILE, metavar="FILE", help="What is known without any server."),
    click.option("--deployment", metavar="NAME", help="Only this deployment."),
    click.option("--since", metavar="SPAN", help="How far back to look.  [default: 7d]"),
    click.option("--until", metavar="TIME", help="ISO-8601 or UNIX seconds.  [default: now]"),
    click.option("--slo-tpot", metavar="TIME", help="Objective: time per output token of a request, such as 40ms."),
    click.option("--slo-itl", metavar="TIME", help="Objective: gap between two output tokens."),
    click.option("--slo-ttft", metavar="TIME", help="Objective: time to first token."),
    click.option(
        "--slo-percentile", type=float, metavar="P", help="Share of requests that must meet them.  [default: 99]"
    ),
    click.option("--workload", type=click.Choice(["interactive", "batch"]), help="What the deployment is for."),
    click.option("--length-percentile", type=float, metavar="P", help="What max_model_len must hold.  [default: 99.9]"),
    click.option("--length-margin", metavar="SHARE", help="Added on top of it.  [default: 25%]"),
    click.option("--kv-overflow-risk", metavar="SHARE", help="Accepted share of requests preempted.  [default: 1%]"),
    click.option("--rules", multiple=True, type=FILE, metavar="DIR", help="Directory with rules of your own."),
    click.option(
        "--set", "set_flags", multiple=True, metavar="[DEPLOYMENT:]FLAG=VALUE", help="A running flag no source tells."
    ),
    click.option("--strict", is_flag=True, help="A source that fails is an error (exit code 3)."),
)


@dataclass(frozen=True, slots=True)
class Request:
    """What a command line asks for."""

    settings: Settings
    window: Window
    set_flags: tuple[SetFlag, ...]
    deployment: str | None


def source_options(command: Command) -> Command:
    """Add the options of the sources to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def request(given: Mapping[str, Any]) -> Request:
    """Settings, window and flags from the options given. Raises ConfigError and UsageError."""
    from advisor.domain.evidence import Window
    from advisor.settings import read_settings

    settings = read_settings(given["config_file"], _settings_of(given))
    until = _until(given["until"])
    flags = tuple(set_flag(text) for text in given["set_flags"])
    return Request(settings, Window(until - settings.since, until), flags, given["deployment"])


def _settings_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were given, in the shape of the configuration file."""
    slo = {name: given[f"slo_{name}"] for name in ("tpot", "itl", "ttft", "percentile")}
    policy = {name: given[name] for name in ("length_percentile", "length_margin", "kv_overflow_risk")}
    logs = {"paths": list(given["logs"]) or None, "format": given["log_format"]}
    shaped = {
        "prometheus": {"url": given["prometheus"]},
        "engines": [{"url": url} for url in given["engines"]],
        "logs": logs,
        "slo": slo,
        "policy": policy,
        "strict": given["strict"] or None,
        "processes": given["processes"] or None,
        **{name: given[name] for name in ("model_config_file", "since", "workload")},
        **{name: list(given[name]) for name in ("startup_logs", "manifests", "sweeps", "evidence", "rules")},
    }
    return _given(shaped)


def _given(shaped: Mapping[str, Any]) -> dict[str, Any]:
    kept = {k: _given(v) if isinstance(v, dict) else v for k, v in shaped.items()}
    return {k: v for k, v in kept.items() if v not in (None, {}, [])}


def _until(text: str | None) -> float:
    import time
    from datetime import UTC, datetime

    from advisor.domain.errors import UsageError

    if text is None:
        return time.time()
    try:
        moment = datetime.fromisoformat(text) if _DATE.match(text) else datetime.fromtimestamp(float(text), UTC)
        seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError, OSError):
        seconds = -1.0
    if not EARLIEST <= seconds <= LATEST:
        raise UsageError(f"--until {text[:40]!r}: give ISO-8601 (2026-11-29T16:00:00Z) or UNIX seconds")
    return seconds


def set_flag(text: str) -> SetFlag:
    """`max_num_seqs=64` or `DEPLOYMENT:max_num_seqs=64`; the deployment's name may itself hold colons."""
    from advisor.cycle import SetFlag
    from advisor.domain.errors import UsageError
    from advisor.engines import FLAG_NAMES, normalise
    from advisor.sources.yaml_file import nearest

    left, equals, value = text.partition("=")
    deployment, colon, name = left.rpartition(":")
    name = name.strip().removeprefix("--").replace("-", "_")
    if not equals or (colon and not deployment):
        raise UsageError(f"--set {text[:60]!r}: write FLAG=VALUE or DEPLOYMENT:FLAG=VALUE")
    if name not in FLAG_NAMES:
        known = nearest(name, FLAG_NAMES)
        raise UsageError(f"--set {text[:60]!r}: no flag that sizes a server is called {name!r}; {known}")
    try:
        return SetFlag(deployment or None, name, normalise(name, _word(value.strip())))
    except ValueError as error:
        raise UsageError(f"--set {text[:60]!r}: {error}") from None


def _word(text: str) -> bool | str:
    return {"true": True, "false": False}.get(text.lower(), text)
