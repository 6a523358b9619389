"""Raw series of any engine in the form that all engines share: labels renamed, parts added up, settings as labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from advisor.domain.histogram import Floats
from advisor.engines import metrics_of_series
from advisor.engines.metrics import EngineMetrics

from .metrics_reading import RawMetrics
from .metrics_series import RawSeries


def canonical(raw: RawMetrics) -> RawMetrics:
    """The same readings; series that belong to no known engine are left as they are."""
    return replace(
        raw,
        gauges=_renamed(raw.gauges),
        windows=_renamed(raw.windows),
        whole=_renamed(raw.whole),
        configs=[spell for series in _renamed(raw.configs) for spell in settings_spells(series)],
    )


def settings_spells(series: RawSeries) -> list[RawSeries]:
    """A config gauge as info series: one for every span in which its value stayed, with the value as a label.

    A gauge that reads 4,096, 4,096 and 8,192 is two series, as when an info series changes a label.
    """
    if series.name.endswith("_info"):
        return [series]
    return [
        RawSeries(
            series.name,
            {**series.labels, series.name: f"{value:.17g}"},
            series.times[series.values == value],
            series.values[series.values == value],
        )
        for value in np.unique(series.values)
    ]


def _renamed(listed: Sequence[RawSeries]) -> list[RawSeries]:
    apart: list[RawSeries] = []
    together: dict[tuple[str, frozenset[tuple[str, str]]], list[RawSeries]] = {}
    for one in listed:
        metrics = metrics_of_series(one.name)
        if metrics is None:
            apart.append(one)
            continue
        series = _with_labels(one, metrics)
        if metrics.summed and not set(metrics.summed).isdisjoint(series.labels):
            kept = {k: v for k, v in series.labels.items() if k not in metrics.summed}
            together.setdefault((series.name, frozenset(kept.items())), []).append(series)
        else:
            apart.append(series)
    return apart + [_added(name, dict(labels), parts) for (name, labels), parts in together.items()]


def _with_labels(series: RawSeries, metrics: EngineMetrics) -> RawSeries:
    labels = metrics.canonical_labels(series.labels)
    return series if labels is series.labels else replace(series, labels=labels)


def _added(name: str, labels: dict[str, str], parts: Sequence[RawSeries]) -> RawSeries:
    """The sum of series at every time at which any of them was read; one that is not there yet stands at zero."""
    times = np.unique(np.concatenate([part.times for part in parts]))
    values = np.zeros(times.size)
    for part in parts:
        values[np.searchsorted(times, part.times)] += part.values
    return RawSeries(name, labels, times, values)


def shared(series: RawSeries, engines: int) -> RawSeries:
    """An equal share of a series that one process keeps for all its engines."""
    values: Floats = series.values / engines
    return series if engines == 1 else replace(series, values=values)
