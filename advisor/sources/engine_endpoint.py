"""One engine asked directly: its /metrics, and what its JSON endpoints say of its flags when they answer.

One scrape covers the process's lifetime: counters count from its start, gauges are one sample.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

import msgspec
import numpy as np
from prometheus_client.parser import text_string_to_metric_families
from pydantic import field_validator

from advisor.domain.errors import SourceError
from advisor.domain.evidence import Disagreement, Flag, FlagSource, FlagValue, Window
from advisor.domain.report import SourceState
from advisor.engines.vllm import metrics as vllm
from advisor.engines.vllm.endpoints import served_model, server_info_flags

from .http_session import HttpOptions, Session, one_line
from .metrics_assembly import assemble
from .metrics_engine import NO_WINDOWS
from .metrics_reading import DeploymentMetrics, MetricsReading, RawMetrics, Scope, Target
from .metrics_series import RawSeries

LARGEST_BODY_BYTES = 64 << 20
MOST_LINES = 200_000
_PREFIXES = ("vllm:", vllm.PROCESS_START, vllm.HTTP_REQUESTS)
_UNKNOWN_START_SECONDS = 1.0


class EngineOptions(HttpOptions):
    """One engine's own HTTP server."""

    @field_validator("url")
    @classmethod
    def _without_metrics_path(cls, url: str) -> str:
        return url.removesuffix("/metrics")


@dataclass(frozen=True, slots=True)
class _Told:
    """What the JSON endpoints said; notes name the ones that said something unexpected."""

    version: str | None
    flags: tuple[dict[str, Flag], ...]
    notes: tuple[str, ...]


def read_engine(options: EngineOptions, now: float) -> MetricsReading:
    """The engine at `options.url` as one deployment (one engine per data-parallel rank), `now` in UNIX seconds.

    Raises SourceError when /metrics fails or is not vLLM's; the other endpoints may be missing.
    """
    session = Session(options, largest_body_bytes=LARGEST_BODY_BYTES)
    session.headers.setdefault("Accept", "text/plain, application/json")
    instance = urlsplit(options.place).netloc
    series = list(_scrape(session, options, instance, now))
    if not any(one.name == vllm.RUNNING for one in series):
        raise SourceError(f"{options.place}/metrics shows no {vllm.RUNNING}; is it a vLLM server?", permanent=True)
    start = _process_start(series, now)
    window = Window(start if start is not None else now - _UNKNOWN_START_SECONDS, now)
    scope = Scope(("model_name",), window, lifetime=True)
    told = _ask(session, options)
    deployments = tuple(_told_too(d, told, known_start=start is not None) for d in assemble(_raw(series, scope), scope))
    samples = len(series)
    detail = f"{instance}: {len(deployments[0].engines)} engines, one scrape of {samples} samples"
    state = SourceState("engine", "ok", detail)
    return MetricsReading(deployments, state, session.sent, samples)


def _scrape(session: Session, options: HttpOptions, instance: str, now: float) -> Iterator[RawSeries]:
    """The series of interest in the text exposition, each with the one sample taken now; what is not finite is left."""
    response = session.get(f"{options.url}/metrics")
    if response.status_code != 200:
        advice = "set bearer_token_file" if response.status_code in {401, 403} else "does url lack a path prefix?"
        raise SourceError(f"{options.place}/metrics answers with status {response.status_code}; {advice}")
    text = response.content.decode("utf-8", "replace")
    lines = [line for line in text.split("\n") if line.startswith(_PREFIXES)]
    if len(lines) > MOST_LINES:
        raise SourceError(f"{options.place}/metrics has {len(lines)} lines of interest; at most {MOST_LINES} are read")
    try:
        for family in text_string_to_metric_families("\n".join(lines)):
            for sample in family.samples:
                if np.isfinite(sample.value):
                    labels = {**sample.labels, "instance": instance}
                    yield RawSeries(sample.name, labels, np.array([now]), np.array([float(sample.value)]))
    except (ValueError, IndexError):
        raise SourceError(f"{options.place}/metrics is not in Prometheus's text format", permanent=True) from None


def _process_start(series: Collection[RawSeries], now: float) -> float | None:
    """When the process began: its own word, else the creation of its first counter, else None (several processes)."""
    for suffix in (vllm.PROCESS_START, "_created"):
        starts = [float(s.values[0]) for s in series if s.name.endswith(suffix) and 0 < s.values[0] < now]
        if starts:
            return min(starts)
    return None


def _raw(series: Collection[RawSeries], scope: Scope) -> RawMetrics:
    def named(*names: str) -> list[RawSeries]:
        return [s for s in series if s.name in names]

    target: Target = scope.target(next(iter(series)).labels)
    start = RawSeries(
        vllm.PROCESS_START, {"instance": target[1]}, np.array([scope.window.end]), np.array([scope.window.start])
    )
    posts = [s for s in named(vllm.HTTP_REQUESTS) if s.labels.get("method") == "POST"]
    return RawMetrics(
        gauges=named(*vllm.GAUGE_NAMES),
        windows=named(*vllm.WINDOW_NAMES),
        whole=named(*vllm.WHOLE_NAMES),
        configs=named(vllm.CONFIG),
        starts=[start],
        http=[s for s in posts if s.labels.get("handler") in vllm.GENERATION_HANDLERS],
        present={target: frozenset(s.name for s in named(*vllm.MARKERS))},
    )


class _Endpoints:
    """The JSON endpoints of one engine; `notes` tells which of them said something unexpected."""

    def __init__(self, session: Session, options: HttpOptions) -> None:
        self.notes: list[str] = []
        self._session = session
        self._url = options.url

    def document(self, path: str) -> object:
        """The JSON at `path`, or None. A missing endpoint is usual, so 404 makes no note."""
        try:
            response = self._session.get(self._url + path)
        except SourceError as error:
            self.notes.append(str(error))
            return None
        if response.status_code != 200:
            if response.status_code != 404:
                self.notes.append(f"{path} answers with status {response.status_code}; not used")
            return None
        try:
            document: object = msgspec.json.decode(response.content)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            self.unknown_form(path)
            return None
        return document

    def unknown_form(self, path: str) -> None:
        """Note that an answer cannot be used."""
        self.notes.append(f"{path} gives no answer in a known form; not used")


def _ask(session: Session, options: HttpOptions) -> _Told:
    endpoints = _Endpoints(session, options)
    flags: list[dict[str, Flag]] = []
    info = endpoints.document("/server_info?config_format=json")
    if info is not None:
        stated = server_info_flags(info)
        if stated is None:
            endpoints.unknown_form("/server_info")
        flags.append(_flags(stated or {}, "server_info"))
    models = endpoints.document("/v1/models")
    if models is not None:
        model = served_model(models)
        if model is None:
            endpoints.unknown_form("/v1/models")
        elif model[1] is not None:
            flags.append(_flags({"max_model_len": model[1]}, "models_endpoint"))
    version = endpoints.document("/version")
    number = version.get("version") if isinstance(version, dict) else None
    known = one_line(number, 40) if isinstance(number, str) and number[:1].isdigit() else None
    return _Told(known, tuple(flags), tuple(endpoints.notes))


def _flags(values: dict[str, FlagValue], source: FlagSource) -> dict[str, Flag]:
    return {flag: Flag(value, source) for flag, value in values.items()}


def _told_too(deployment: DeploymentMetrics, told: _Told, *, known_start: bool) -> DeploymentMetrics:
    """The deployment with what the JSON endpoints said of it, the more trusted source of a flag believed."""
    flags: dict[str, Flag] = {}
    disagreements = list(deployment.disagreements)
    for source in (*told.flags, deployment.flags):
        for flag, value in source.items():
            believed = flags.setdefault(flag, value)
            if believed.value != value.value:
                disagreements.append(Disagreement(flag, believed, value))
    notes = (*deployment.notes, *told.notes)
    engines = deployment.engines
    if not known_start:
        engines = tuple(replace(engine, windows=NO_WINDOWS) for engine in engines)
        notes += ("/metrics does not tell when the process began (several API processes); rates stay unknown",)
    version = told.version or deployment.version_hint
    return replace(
        deployment,
        version_hint=version,
        flags=flags,
        disagreements=tuple(disagreements),
        notes=notes,
        engines=tuple(replace(engine, flags=flags, version=version) for engine in engines),
    )
