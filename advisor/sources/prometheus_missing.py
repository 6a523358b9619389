"""Why series that ought to be there are not. The server is asked only when some are missing, with one query."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from advisor.domain.evidence import Window
from advisor.engines import METRICS, metrics_of_series
from advisor.engines.metrics import EngineMetrics

from .http_session import one_line
from .metrics_reading import RawMetrics, Scope, Target
from .prometheus_api import PrometheusApi
from .prometheus_plan import Selectors

_MOST_TOLD = 3
_LATE_SECONDS = 86400
_RAY = "ray_"
_LABELS_TO_ALLOW = 60
"""vLLM's config series has 37 labels of its own in 0.32; scraping, a pod, a node and a cluster add a dozen."""


def renamed(api: PrometheusApi, selectors: Selectors, window: Window) -> str | None:
    """The setting that reads what looks like an engine under another name, late in `window`; None without any."""
    looks = "|".join(f"{head}[:_]{tail}" for head, tail in map(_halves, METRICS.values()))
    late = f"[{math.ceil(min(window.seconds, _LATE_SECONDS))}s]"
    query = f"count by (__name__) (last_over_time({selectors.matching(f'.*({looks}).*')}{late}))"
    found = api.instant(query, window.end)
    settings = sorted({setting for series in found if (setting := _setting(series.name))})
    if not settings:
        return None
    told = " or ".join(one_line(setting, 200) for setting in settings[:_MOST_TOLD])
    return f"engines are there under other names: set {told}"


def _halves(metrics: EngineMetrics) -> tuple[str, str]:
    """`vllm:num_requests_running` is `vllm` and `num_requests_running`."""
    head, tail = re.split("[:_]", metrics.marker, maxsplit=1)
    return head, tail


def _setting(name: str) -> str | None:
    """The setting that reads a renamed marker: of all series when its beginning is another one, else of it alone."""
    for metrics in METRICS.values():
        head, tail = _halves(metrics)
        place = re.search(f"{head}[:_]{tail}", name)
        if place is None or name == metrics.marker:
            continue
        if place.end() < len(name):
            return f'names: {{"{metrics.marker}": "{name}"}}'
        begins = f'names: {{"{metrics.marker.removesuffix(tail)}": "{name.removesuffix(tail)}"}}'
        return f"{begins} and instance_label: WorkerId" if name.startswith(_RAY) else begins
    return None


def missing(api: PrometheusApi, selectors: Selectors, raw: RawMetrics, scope: Scope, at: float) -> list[str]:
    """What engines ought to show and do not, each with its cause, one line each."""
    configs, families = _without_config(raw, scope), _without_buckets(raw, selectors.kinds)
    if not configs and not families:
        return []
    answer = api.instant(f"count by (__name__) ({selectors.named([*configs, *families])})", at)
    there = {selectors.spelling.known(series.name) for series in answer}
    told = [_of_config(name, engines, cut=name in there) for name, engines in configs.items()]
    if native := sorted(there & families):
        told.append(
            f"{native[0]} is a native histogram, which has no buckets to read: scrape classic ones "
            "(always_scrape_classic_histograms, and no convert_classic_histograms_to_nhcb)"
        )
    return told


def _of_config(name: str, engines: int, *, cut: bool) -> str:
    what = "has lost its labels job and instance" if cut else f"is missing for {engines} engines"
    return (
        f"{name} {what}, and with it pool and flags: let a series have {_LABELS_TO_ALLOW} labels "
        "(VictoriaMetrics: -maxLabelsPerTimeseries, Mimir and Cortex: max_label_names_per_series)"
    )


def _without_config(raw: RawMetrics, scope: Scope) -> dict[str, int]:
    """Config series whose many labels a server may refuse, and how many processes lack them."""
    told = {scope.target(series.labels) for series in raw.configs}
    lacking: dict[str, set[Target]] = {}
    for series in raw.gauges:
        metrics, target = metrics_of_series(series.name), scope.target(series.labels)
        for name in metrics.config if metrics and target not in told else ():
            if name.endswith("_info"):
                lacking.setdefault(name, set()).add(target)
    return {name: len(targets) for name, targets in lacking.items()}


def _without_buckets(raw: RawMetrics, kinds: Iterable[EngineMetrics]) -> frozenset[str]:
    """Histograms of the kinds of engines that show not one bucket."""
    families: set[str] = set()
    read = {series.name for series in (*raw.windows, *raw.whole)}
    for metrics in kinds:
        mine = {name for names in metrics.histograms.values() for name in names}
        families |= mine if read.isdisjoint(f"{name}_bucket" for name in mine) else set()
    return frozenset(families)
