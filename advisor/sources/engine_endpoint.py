"""One engine asked directly: its /metrics, and what its JSON endpoints say of its flags when they answer.

One scrape covers the process's lifetime: counters count from its start, gauges are one sample.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

import msgspec
import numpy as np
from prometheus_client.parser import text_string_to_metric_families
from pydantic import field_validator

from advisor.domain.errors import SourceError
from advisor.domain.evidence import Disagreement, Flag, FlagSource, FlagValue, ReportedPool, Window
from advisor.domain.numbers import counted
from advisor.domain.report import SourceState
from advisor.engines import ENDPOINTS, METRICS
from advisor.engines.endpoint import Endpoint, Told
from advisor.engines.metrics import PROCESS_START

from .http_session import HttpOptions, Session, one_line
from .metrics_assembly import assemble
from .metrics_engine import NO_WINDOWS
from .metrics_reading import DeploymentMetrics, MetricsReading, RawMetrics, Scope, Target
from .metrics_series import RawSeries

LARGEST_BODY_BYTES = 64 << 20
MOST_LINES = 200_000
PATHS = ("/metrics", "/prometheus/metrics")
_MARKERS = tuple(metrics.marker for metrics in METRICS.values())
_PREFIXES = (
    PROCESS_START,
    *(name for metrics in METRICS.values() if metrics.answers for name in metrics.answers.names),
    *(re.split("(?<=[:_])", marker, maxsplit=1)[0] for marker in _MARKERS),
)
_UNKNOWN_START_SECONDS = 1.0


class EngineOptions(HttpOptions):
    """One engine's own HTTP server."""

    @field_validator("url")
    @classmethod
    def _without_metrics_path(cls, url: str) -> str:
        return url.removesuffix("/metrics")


@dataclass(frozen=True, slots=True)
class _Answers:
    """What the JSON endpoints said; notes name the ones that said something unexpected."""

    told: tuple[tuple[FlagSource, Told], ...]
    notes: tuple[str, ...]

    @property
    def version(self) -> str | None:
        """As the endpoint says that is asked first."""
        return next((one_line(told.version, 40) for _, told in self.told if told.version), None)

    @property
    def model(self) -> str | None:
        """As the endpoint says that is asked first."""
        return next((told.model for _, told in self.told if told.model), None)

    @property
    def pool(self) -> ReportedPool | None:
        """As the endpoint says that is asked first."""
        return next((ReportedPool(told.pool_tokens, "server info") for _, told in self.told if told.pool_tokens), None)


def read_engine(options: EngineOptions, now: float) -> MetricsReading:
    """The engine at `options.url` as one deployment (one engine per data-parallel rank), `now` in UNIX seconds.

    Raises SourceError when /metrics fails or is no known engine's; the other endpoints may be missing.
    """
    session = Session(options, largest_body_bytes=LARGEST_BODY_BYTES)
    session.headers.setdefault("Accept", "text/plain, application/json")
    instance = urlsplit(options.place).netloc
    series = _of_an_engine(session, options, instance, now)
    start = _process_start(series, now)
    window = Window(start if start is not None else now - _UNKNOWN_START_SECONDS, now)
    scope = Scope(("model_name",), window, lifetime=True)
    found = assemble(_raw(series, scope), scope)
    answers = {kind: _ask(session, options, ENDPOINTS[kind]) for kind in dict.fromkeys(d.engine_kind for d in found)}
    deployments = tuple(_told_too(d, answers[d.engine_kind], known_start=start is not None) for d in found)
    samples = len(series)
    detail = f"{instance}: {counted(len(deployments[0].engines), 'engine')}, one scrape of {samples} samples"
    state = SourceState("engine", "ok", "; ".join(filter(None, (detail, session.caveat))))
    return MetricsReading(deployments, state, session.sent, samples)


def _of_an_engine(session: Session, options: HttpOptions, instance: str, now: float) -> list[RawSeries]:
    """The first page of metrics that shows a known engine."""
    first, *others = PATHS
    series = list(_scrape(session, options, first, instance, now))
    if _shows_engine(series):
        return series
    for path in others:
        try:
            series = list(_scrape(session, options, path, instance, now))
        except SourceError:
            continue
        if _shows_engine(series):
            return series
    raise SourceError(
        f"{options.place}{first} shows none of {', '.join(_MARKERS)}; is it an engine, and has it served a request?",
        permanent=True,
    )


def _shows_engine(series: Collection[RawSeries]) -> bool:
    return any(one.name in _MARKERS for one in series)


def _scrape(session: Session, options: HttpOptions, path: str, instance: str, now: float) -> Iterator[RawSeries]:
    """The series of interest in the text exposition, each with the one sample taken now; what is not finite is left."""
    response = session.get(f"{options.url}{path}")
    if response.status_code != 200:
        advice = "set bearer_token_file" if response.status_code in {401, 403} else "does url lack a path prefix?"
        raise SourceError(f"{options.place}{path} answers with status {response.status_code}; {advice}")
    text = response.content.decode("utf-8", "replace")
    lines = [line for line in text.split("\n") if line.startswith(_PREFIXES)]
    if len(lines) > MOST_LINES:
        raise SourceError(f"{options.place}{path} has {len(lines)} lines of interest; at most {MOST_LINES} are read")
    try:
        for family in text_string_to_metric_families("\n".join(lines)):
            for sample in family.samples:
                if np.isfinite(sample.value):
                    labels = {**sample.labels, "instance": instance}
                    yield RawSeries(sample.name, labels, np.array([now]), np.array([float(sample.value)]))
    except (ValueError, IndexError):
        raise SourceError(f"{options.place}{path} is not in Prometheus's text format", permanent=True) from None


def _process_start(series: Collection[RawSeries], now: float) -> float | None:
    """When the process began: its own word, else the creation of its first counter, else None (several processes)."""
    for suffix in (PROCESS_START, "_created"):
        starts = [float(s.values[0]) for s in series if s.name.endswith(suffix) and 0 < s.values[0] < now]
        if starts:
            return min(starts)
    return None


def _raw(series: Collection[RawSeries], scope: Scope) -> RawMetrics:
    def named(*names: str) -> list[RawSeries]:
        return [s for s in series if s.name in names]

    target: Target = scope.target(next(iter(series)).labels)
    start = RawSeries(
        PROCESS_START, {"instance": target[1]}, np.array([scope.window.end]), np.array([scope.window.start])
    )
    kinds = METRICS.values()
    return RawMetrics(
        gauges=named(*(name for metrics in kinds for name in metrics.gauge_names)),
        windows=named(*(name for metrics in kinds for name in metrics.window_names)),
        whole=named(*(name for metrics in kinds for name in metrics.whole_names)),
        configs=named(*(name for metrics in kinds for name in metrics.config)),
        starts=[start],
        http=[
            one
            for metrics in kinds
            if metrics.answers is not None
            for one in named(*metrics.answers.names)
            if metrics.answers.accepts(one.labels)
        ],
        present={target: frozenset(s.name for s in (*named(*_present_names()), *_asleep(series)))},
    )


def _present_names() -> Iterator[str]:
    return (name for metrics in METRICS.values() for name in metrics.present_names)


def _asleep(series: Collection[RawSeries]) -> Iterator[RawSeries]:
    for metrics in METRICS.values():
        if awake := metrics.awake:
            told = (s for s in series if s.name == awake.name and awake.accepts(s.labels.get(awake.label or "", "")))
            yield from (one for one in told if one.values[-1] == 0)


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


def _ask(session: Session, options: HttpOptions, questions: Collection[Endpoint]) -> _Answers:
    endpoints = _Endpoints(session, options)
    told: list[tuple[FlagSource, Told]] = []
    for question in questions:
        for path in question.paths:
            document = endpoints.document(path)
            if document is None:
                continue
            answer = question.read(document)
            if answer is None:
                endpoints.unknown_form(path.partition("?")[0])
            else:
                told.append((question.source, answer))
            break
    return _Answers(tuple(told), tuple(endpoints.notes))


def _flags(values: Mapping[str, FlagValue], source: FlagSource) -> dict[str, Flag]:
    return {flag: Flag(value, source) for flag, value in values.items()}


def _told_too(deployment: DeploymentMetrics, answers: _Answers, *, known_start: bool) -> DeploymentMetrics:
    """The deployment with what the JSON endpoints said of it, the more trusted source of a flag believed."""
    flags: dict[str, Flag] = {}
    disagreements = list(deployment.disagreements)
    for source in (*(_flags(told.flags, source) for source, told in answers.told), deployment.flags):
        for flag, value in source.items():
            believed = flags.setdefault(flag, value)
            if believed.value != value.value:
                disagreements.append(Disagreement(flag, believed, value))
    notes = (*deployment.notes, *answers.notes)
    engines = deployment.engines
    if not known_start:
        engines = tuple(replace(engine, windows=NO_WINDOWS) for engine in engines)
        notes += ("/metrics does not tell when the process began; rates stay unknown",)
    version = answers.version or deployment.version_hint
    named = deployment.labels.get("model_name") or answers.model or ""
    return replace(
        deployment,
        labels={
            **deployment.labels,
            "model_name": one_line(named, 200) if named != deployment.labels["model_name"] else named,
        },
        reported_pool=deployment.reported_pool or answers.pool,
        version_hint=version,
        flags=flags,
        disagreements=tuple(disagreements),
        notes=notes,
        engines=tuple(replace(engine, flags=flags, version=version) for engine in engines),
    )
