"""Engine metrics out of Prometheus, or anything that speaks its query API: a handful of queries for a whole fleet."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from advisor.domain.errors import SourceError
from advisor.domain.evidence import Window
from advisor.domain.numbers import counted
from advisor.domain.report import SourceState
from advisor.engines import METRICS

from .http_session import HttpOptions
from .metrics_assembly import TAKEN_FOR_ONE, assemble
from .metrics_reading import MetricsReading, RawMetrics, Scope, Target
from .metrics_series import LOOKBACK_SECONDS, RawSeries
from .prometheus_api import PrometheusApi
from .prometheus_missing import missing, renamed
from .prometheus_plan import (
    GAUGES,
    INFO,
    WHOLE,
    WINDOWS,
    Fleet,
    Kind,
    Selectors,
    label,
    scrape_interval,
    step_seconds,
)
from .prometheus_spelling import Spelling, checked_names

_KIND = "advisor_engine_kind"
_DISCOVERY_POINTS = 50
_DISCOVERY_LEAST_STEP_SECONDS = 300
_TENANT_HEADERS = ("X-Scope-OrgID", "THANOS-TENANT")
_NO_PROCESS = (
    "the engines' series have no label instance, so that one cannot be told from another; let rules keep it "
    "(by job, instance, model_name, engine), or name another in instance_label"
)

LabelName = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z_][a-zA-Z0-9_.:/-]*$", max_length=200)]


class PrometheusOptions(HttpOptions):
    """A Prometheus, Thanos, Mimir or VictoriaMetrics that scrapes the engines."""

    tenant: str | None = Field(
        None, description="Tenant of a shared Mimir, Cortex (X-Scope-OrgID) or Thanos (THANOS-TENANT)"
    )
    identity_labels: tuple[LabelName, ...] = Field(
        ("job", "model_name"), min_length=1, description="Labels whose values make a deployment"
    )
    matchers: dict[LabelName, Annotated[str, StringConstraints(max_length=1000)]] = Field(
        default_factory=dict, description="Labels and the values they must have, of the series that are read"
    )
    names: Annotated[dict[str, str], AfterValidator(checked_names)] = Field(
        default_factory=dict,
        description="Series under other names: what the engine's name begins with, and what it begins with here",
    )
    instance_label: LabelName | None = Field(
        None, description="Label that names one engine process, where `instance` does not"
    )
    sample_budget: int = Field(
        5_000_000, ge=10_000, description="Most samples to ask for; above it the fleet is read at wider steps"
    )


def connected(options: PrometheusOptions) -> PrometheusApi:
    """The query API of a server, as the tenant that is named."""
    return PrometheusApi(options, dict.fromkeys(_TENANT_HEADERS, options.tenant) if options.tenant else {})


def read_prometheus(options: PrometheusOptions, window: Window) -> MetricsReading:
    """All deployments that show a known engine's metrics within `window`.

    About a dozen queries whatever the size of the fleet. Raises SourceError when the server fails; what it answers only
    in part makes the state `partial`.
    """
    api = connected(options)
    selectors = Selectors(options.matchers, spelling=Spelling(options.names, options.instance_label))
    fleet = _discover(api, selectors, window)
    if fleet is None:
        detail = renamed(api, selectors, window) or _nothing(selectors, window)
        return MetricsReading((), SourceState("prometheus", "partial", detail), api.queries, api.samples)
    selectors = replace(selectors, kinds=fleet.kinds)
    raw, scope, steps = _read(api, selectors, options, fleet, window)
    deployments = assemble(raw, scope)
    doubts = missing(api, selectors, raw, scope, scope.window.end)
    if not deployments:
        doubts.append("engines were seen for too short a time to be read; look again in some minutes")
    doubts += dict.fromkeys(note for found in deployments for note in found.notes if TAKEN_FOR_ONE in note)
    size = f"{counted(len(deployments), 'deployment')}, {counted(fleet.engines, 'engine')}, {steps}"
    return MetricsReading(deployments, _state(api, doubts, size), api.queries, api.samples)


def _nothing(selectors: Selectors, window: Window) -> str:
    markers = ", ".join(selectors.spelling.here(metrics.marker) for metrics in METRICS.values())
    return f"none of {markers} in {_days(window.seconds)}; are the engines scraped, do the matchers fit?"


def _discover(api: PrometheusApi, selectors: Selectors, window: Window) -> Fleet | None:
    """Which engines lived when, and how often they were scraped, from one query."""
    step = max(_DISCOVERY_LEAST_STEP_SECONDS, math.ceil(window.seconds / _DISCOVERY_POINTS))
    start = min(window.start + step, window.end)
    query = selectors.marked(f"count_over_time({{}}[{step}s])", _KIND)
    shown = [series for series in api.range(query, start, window.end, step, series=1) if series.times.size]
    found = selectors.spelling.canonical(shown)
    if not found:
        if shown:
            raise SourceError(_NO_PROCESS, permanent=True)
        return None
    seconds: Counter[str] = Counter()
    for series in found:
        seconds[series.labels[_KIND]] += series.times.size * step
    return Fleet(
        engines=len(found),
        seconds=seconds,
        first=max(window.start, min(float(series.times[0]) for series in found) - step),
        last=min(window.end, max(float(series.times[-1]) for series in found)),
        scrape_seconds=scrape_interval(step, max(float(series.values.max()) for series in found)),
        jobs=frozenset(series.labels.get("job", "") for series in shown),
    )


def _read(
    api: PrometheusApi, selectors: Selectors, options: PrometheusOptions, fleet: Fleet, window: Window
) -> tuple[RawMetrics, Scope, str]:
    """Everything that is read, gauges first: they show where the newest data lies, and all grids end there."""
    steps = {kind: step_seconds(kind, fleet, options.sample_budget) for kind in (GAUGES, WINDOWS, WHOLE, INFO)}

    def read(query: str | None, kind: Kind, end: float) -> list[RawSeries]:
        listed = api.range(query, fleet.first, end, steps[kind], fleet.most_series(kind)) if query else []
        return selectors.spelling.canonical(listed)

    def named(lists: Iterable[Collection[str]]) -> str | None:
        names = [name for listed in lists for name in listed]
        return selectors.named(names) if names else None

    gauges = read(named(metrics.gauge_names for metrics in fleet.kinds), GAUGES, fleet.last)
    end = _newest(api, selectors, gauges, fleet.last)
    begin = min((float(series.times[0]) for series in gauges if series.times.size), default=fleet.first)
    scope = Scope(
        identity_labels=tuple(options.identity_labels),
        window=Window(window.start, end),
        alive_seconds=max(LOOKBACK_SECONDS, 2.0 * steps[GAUGES]),
    )
    raw = RawMetrics(
        gauges=[_until(series, end) for series in gauges],
        windows=read(named(metrics.window_names for metrics in fleet.kinds), WINDOWS, end),
        whole=read(named(metrics.whole_names for metrics in fleet.kinds), WHOLE, end),
        configs=read(selectors.configs(fleet.jobs), INFO, end),
        starts=read(selectors.starts(fleet.jobs), INFO, end),
        http=read(selectors.answers(fleet.jobs), INFO, end),
        present=_present(api, selectors, scope, end),
    )
    gauge, counter, length = (steps[kind] for kind in (GAUGES, WINDOWS, WHOLE))
    span = _days(max(end - begin, 0.0))
    return raw, scope, f"{span} at {gauge} s (gauges), {counter} s (counters), {length} s (lengths)"


def _newest(api: PrometheusApi, selectors: Selectors, gauges: list[RawSeries], last: float) -> float:
    """When the newest sample was taken; a grid alone does not tell, because the last value is repeated for a while."""
    seen = max((float(series.times[-1]) for series in gauges if series.times.size), default=last)
    answer = api.instant(f"max({selectors.marked('timestamp({})')})", seen)
    taken = [float(series.values[0]) for series in answer if series.values.size]
    return min(seen, math.ceil(taken[0])) if taken else seen


def _until(series: RawSeries, end: float) -> RawSeries:
    known = series.times <= end
    return RawSeries(series.name, series.labels, series.times[known], series.values[known])


def _present(api: PrometheusApi, selectors: Selectors, scope: Scope, at: float) -> dict[Target, frozenset[str]]:
    """Which of the series that tell something by being there each process exposes now."""
    spelling = selectors.spelling
    by = ", ".join(map(label, dict.fromkeys(("__name__", *spelling.process_labels, *scope.target_labels))))
    present: dict[Target, set[str]] = {}
    telling = [name for metrics in selectors.kinds for name in metrics.present_names]
    told = [*([selectors.named(telling)] if telling else []), *selectors.asleep]
    found = api.instant(" or ".join(f"count by ({by}) ({query})" for query in told), at) if told else []
    for series in spelling.canonical(found):
        present.setdefault(scope.target(series.labels), set()).add(series.name)
    return {target: frozenset(names) for target, names in present.items()}


def _state(api: PrometheusApi, doubts: Sequence[str], size: str) -> SourceState:
    warnings = api.session.warnings
    more = f" (and {len(warnings) - 1} more)" if len(warnings) > 1 else ""
    partly = ([f"the server warns: {warnings[0]}{more}"] if warnings else []) + [*doubts]
    dropped = f"; {api.dropped:,} samples without a finite value" if api.dropped else ""
    cost = f"{api.queries} queries, {api.samples:,} samples{dropped}"
    said = filter(None, [*partly, size, cost, api.session.caveat])
    return SourceState("prometheus", "partial" if partly else "ok", "; ".join(said))


def _days(seconds: float) -> str:
    return f"{seconds / 86400:.1f} d" if seconds >= 86400 else f"{seconds / 3600:.1f} h"
