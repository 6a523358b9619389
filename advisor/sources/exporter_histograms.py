"""What host agents (`advisor exporter`) counted, out of the Prometheus that scrapes them: a fleet in one query.

The counters are read as they are and subtracted here: that costs the server least, adds up to exactly what was counted,
rare long requests included, and bridges a host that was not scraped for a while.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from advisor.domain.errors import SourceError
from advisor.domain.evidence import Window
from advisor.domain.exported import EDGES, FAMILIES, OTHER_MODELS, OUTCOMES, QUANTITIES, REQUESTS, ExportedLengths
from advisor.domain.histogram import Buckets, Floats
from advisor.domain.numbers import counted
from advisor.domain.report import SourceState

from .metrics_series import PartKey, RawSeries, Readings
from .prometheus import PrometheusOptions, connected
from .prometheus_api import PrometheusApi
from .prometheus_plan import quoted

NAME = "exporter"
STEPS_SECONDS = (300, 3600, 7200, 14_400, 43_200, 86_400, 604_800)
SHARE_OF_BUDGET = 0.2
DAY_SECONDS = 86_400
SERIES_A_MODEL = len(QUANTITIES) * (EDGES.size + 2) + len(OUTCOMES)
_NAMES = "|".join([f"{REQUESTS}_total", *(f"{family}_(bucket|sum)" for family in FAMILIES.values())])
_OF_ENGINES = {"job", "instance", "model_name", "engine"}
_PARTS = ("le", "outcome")


@dataclass(frozen=True, slots=True)
class ExporterReading:
    """What was read, by deployment, and requests of models that none claims, most first.

    state: None where no agent is scraped.
    """

    lengths: Mapping[str, ExportedLengths]
    strangers: Mapping[str, float]
    state: SourceState | None
    queries: int
    samples: int


def read_exporters(options: PrometheusOptions, window: Window, resolve: Callable[[str], str | None]) -> ExporterReading:
    """What was counted within `window`, in steps of an hour (five minutes of less than a day), or wider ones.

    resolve: model, as the agents name it, to the deployment's name, or None. Matchers restrict what is read as they do
    engines, but for labels that name an engine. Raises SourceError when the server fails, and when not even both ends
    of a week fit into a fifth of the sample budget.
    """
    api = connected(options)
    pairs = [f"{name}={quoted(value)}" for name, value in sorted(options.matchers.items()) if name not in _OF_ENGINES]
    agents = _agents(api, pairs, window)
    if not agents:
        return ExporterReading({}, {}, None, api.queries, api.samples)
    step = step_seconds(agents, window, options.sample_budget)
    query = f"{{{','.join([f'__name__=~{quoted(_NAMES)}', *pairs])}}}"
    series = api.range(query, window.start, window.end, step, agents * SERIES_A_MODEL)
    claimed, strangers = _claimed(series, resolve)
    read = {name: _lengths(told, step) for name, told in claimed.items()}
    lengths = {name: told for name, told in read.items() if told.requests}
    requests = sum(told.requests for told in lengths.values())
    detail = f"{requests:,.0f} requests of {counted(len(lengths), 'deployment')}, in steps of {step} s"
    state = SourceState(NAME, "ok", f"{detail}; {api.queries} queries, {api.samples:,} samples")
    return ExporterReading(lengths, dict(strangers.most_common()), state, api.queries, api.samples)


def step_seconds(agents: int, window: Window, sample_budget: int) -> int:
    """The finest step at which this stays within its share; `agents` counts each model of each agent.

    Worked: 4 of 1,365 series over 7 days are 922,740 samples at 3,600 s, under a fifth of 5,000,000.
    """
    finest = STEPS_SECONDS[1 if window.seconds >= DAY_SECONDS else 0]
    for step in (step for step in STEPS_SECONDS if step >= finest):
        if agents * SERIES_A_MODEL * (window.seconds // step + 1) <= SHARE_OF_BUDGET * sample_budget:
            return step
    raise SourceError(
        f"the histograms of {agents} models and hosts do not fit into sample_budget {sample_budget}; raise it or "
        "narrow matchers",
        permanent=True,
    )


def _agents(api: PrometheusApi, pairs: Sequence[str], window: Window) -> int:
    served = ",".join([f"outcome={quoted('served')}", *pairs])
    over = f"{math.ceil(window.seconds)}s"
    found = api.instant(f"count(count_over_time({REQUESTS}_total{{{served}}}[{over}]))", window.end)
    return round(float(found[0].values[0])) if found and found[0].values.size else 0


def _claimed(
    series: Sequence[RawSeries], resolve: Callable[[str], str | None]
) -> tuple[dict[str, list[Readings]], Counter[str]]:
    """What each agent counted for each deployment, under whatever names; and the requests of other models."""
    told: dict[frozenset[tuple[str, str]], dict[PartKey, list[RawSeries]]] = {}
    for one in series:
        whose = frozenset((name, value) for name, value in one.labels.items() if name not in _PARTS)
        if (part := _part(one.labels)) is not None:
            told.setdefault(whose, {}).setdefault((one.name, part), []).append(one)
    claimed: dict[str, list[Readings]] = defaultdict(list)
    strangers: Counter[str] = Counter()
    for whose, parts in told.items():
        model, readings = dict(whose).get("model", ""), Readings.of(parts, ())
        name = None if model == OTHER_MODELS else resolve(model)
        if name is not None:
            claimed[name].append(readings)
        else:
            strangers[model] += round(sum(_outcomes(readings).values()))
    return claimed, strangers


def _part(labels: Mapping[str, str]) -> str | None:
    """Which part of a reading a series is; edges are compared as numbers."""
    if "le" not in labels:
        return labels.get("outcome", "")
    try:
        edge = float(labels["le"])
    except ValueError:
        return None
    return repr(edge) if edge > 0 else None


def _lengths(told: Sequence[Readings], step: int) -> ExportedLengths:
    """What several agents counted of one deployment."""
    outcomes = Counter[str]()
    for readings in told:
        outcomes.update(_outcomes(readings))
    histograms = {quantity: _histogram(told, family) for quantity, family in FAMILIES.items()}
    ends, slots = _slots(told, histograms["total"].edges)
    return ExportedLengths(
        histograms=histograms,
        outcomes={outcome: outcomes[outcome] for outcome in OUTCOMES},
        slot_seconds=float(step),
        slot_start=ends - step,
        slots=slots,
        source="exporter histograms",
    )


def _outcomes(readings: Readings) -> dict[str, int]:
    gained = np.nansum(readings.increases(), axis=0)
    counters = {part: i for (name, part), i in readings.columns.items() if name == f"{REQUESTS}_total"}
    return {outcome: round(float(gained[column])) for outcome, column in counters.items()}


def _histogram(told: Sequence[Readings], family: str) -> Buckets:
    parts = [found for readings in told if (found := readings.histogram(family)) is not None]
    return Buckets.merge(parts) or Buckets(EDGES, np.zeros(EDGES.size + 1), 0.0)


def _slots(told: Sequence[Readings], edges: Floats) -> tuple[Floats, Floats]:
    """When the steps ended, and the total tokens of each in buckets with these finite edges."""
    ends = np.unique(np.concatenate([readings.times[1:] for readings in told]))
    cumulative = np.zeros((ends.size, edges.size + 1))
    for readings in told:
        columns = dict(readings.edges(FAMILIES["total"]))
        if all(edge in columns for edge in (*edges.tolist(), math.inf)):
            gained = np.nan_to_num(readings.increases()[:, [columns[edge] for edge in (*edges.tolist(), math.inf)]])
            cumulative[np.searchsorted(ends, readings.times[1:])] += gained
    return ends, np.maximum(np.diff(cumulative, axis=1, prepend=0.0), 0.0)
