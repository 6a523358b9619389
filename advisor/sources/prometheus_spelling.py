"""How a server spells what engines expose: series that an exporter renamed or a rule recorded, labels that were moved.

Everything that is read is brought back to the engines' own words, so that nothing beyond queries knows the difference.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from advisor.engines import METRICS
from advisor.engines.metrics import PROCESS_START

from .metrics_series import RawSeries

EXPORTED = {"exported_job": "job", "exported_instance": "instance"}
"""What federation, or a gateway between, makes of the labels that name a process: its own take their place."""

_KNOWN = frozenset(
    {PROCESS_START}
    | {name for metrics in METRICS.values() for name in metrics.names}
    | {name for metrics in METRICS.values() if metrics.answers for name in metrics.answers.names}
)
_CUMULATIVE = ("_total", "_bucket", "_sum", "_count")
_RATE = re.compile(r"(?:^|[:_])(?:i?rate|increase|i?delta|deriv)(?![a-z])")
_SERIES_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")


@dataclass(frozen=True, slots=True)
class Spelling:
    """names: what series' names begin with -> what they begin with on the server; the longest that fits counts.

    instance_label: the label that names one process, where `instance` does not.

    >>> Spelling({"vllm:": "ray_vllm_"}).here("vllm:num_requests_running")
    'ray_vllm_num_requests_running'
    """

    names: Mapping[str, str] = field(default_factory=dict)
    instance_label: str | None = None

    @property
    def process_labels(self) -> tuple[str, ...]:
        """The labels by which series of one process are joined on the server."""
        own = (self.instance_label,) if self.instance_label else ()
        return tuple(dict.fromkeys(("job", "instance", *EXPORTED, *own)))

    def here(self, name: str) -> str:
        """A series' name on the server."""
        begins = max((begin for begin in self.names if name.startswith(begin)), key=len, default=None)
        return name if begins is None else self.names[begins] + name.removeprefix(begins)

    def known(self, name: str) -> str:
        """The engine's name of a series that has this one on the server."""
        return self._back().get(name, name)

    def canonical(self, series: Iterable[RawSeries]) -> list[RawSeries]:
        """What was read, in the engines' words; series that name no process are left out."""
        back = self._back()
        named = (replace(one, name=back.get(one.name, one.name), labels=self._labels(one.labels)) for one in series)
        return [one for one in named if one.labels.get("instance")]

    def _back(self) -> Mapping[str, str]:
        return {self.here(name): name for name in _KNOWN} if self.names else {}

    def _labels(self, labels: Mapping[str, str]) -> Mapping[str, str]:
        own = {name: labels[label] for label, name in EXPORTED.items() if label in labels}
        if self.instance_label is not None and self.instance_label in labels:
            own["instance"] = labels[self.instance_label]
        return {**labels, **own} if own else labels


def checked_names(names: Mapping[str, str]) -> Mapping[str, str]:
    """`names` as they were stated; ValueError, one line, where reading by them would mislead."""
    for begins, here in names.items():
        meant = [name for name in _KNOWN if name.startswith(begins)] if begins else []
        if not meant:
            raise ValueError(f"no series that is read begins with {begins[:60]!r}: write vllm: or a whole name")
        if not _SERIES_NAME.fullmatch(here):
            raise ValueError(f"{here[:60]!r} cannot be the name of a series")
        if _RATE.search(here) and any(name.endswith(_CUMULATIVE) for name in meant):
            raise ValueError(f"{here[:60]!r} holds a rate: record the counter itself (sum by, without rate)")
    spelled = Spelling(names)
    owners: dict[str, str] = {}
    for name in sorted(_KNOWN):
        if (other := owners.setdefault(spelled.here(name), name)) != name:
            raise ValueError(f"{spelled.here(name)[:60]!r} would stand for both {other} and {name}")
    return names
