"""Requests as numpy arrays: outcome decided, window applied, repetitions left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from advisor.domain.evidence import Window
from advisor.domain.histogram import Floats, Ints
from advisor.engines.refusals import length_refusal
from advisor.sources.log_formats import MAX_TOKENS, Requests

from .clients import Clients
from .origins import Origins
from .retries import Retries

_Scalar = TypeVar("_Scalar", bound=np.generic)
Mask = npt.NDArray[np.bool_]

SERVED, WITHOUT_USAGE, REFUSED, FAILED = range(4)
OUTSIDE, TIMELESS, REPEATED = "outside the window", "without a time", "repeated"


@dataclass(frozen=True, eq=False, slots=True)
class Batch:
    """Requests as arrays of one length. `needed` is what a refused one would have needed; -1 is not said."""

    completed: Floats
    ttft: Floats
    duration: Floats
    prompt: Ints
    output: Ints
    declared: Ints
    cut: Mask
    origin: Ints
    outcome: Ints
    needed: Ints
    client: Ints

    @property
    def size(self) -> int:
        """How many requests."""
        return self.completed.size

    def where(self, mask: Mask) -> Batch:
        """Those for which `mask` holds."""
        return self if mask.all() else Batch(*(getattr(self, name)[mask] for name in self.__slots__))

    def groups(self, keys: Ints) -> Iterator[tuple[int, Batch]]:
        """Those of each key, one key per request, with the key."""
        order = np.argsort(keys, kind="stable")
        distinct, starts = np.unique(keys[order], return_index=True)
        for key, places in zip(distinct.tolist(), np.split(order, starts[1:]), strict=True):
            yield key, Batch(*(getattr(self, name)[places] for name in self.__slots__))

    @classmethod
    def joined(cls, batches: Sequence[Batch]) -> Batch:
        """All requests of at least one batch."""
        return cls(*(np.concatenate([getattr(batch, name) for batch in batches]) for name in cls.__slots__))


def batch_of(
    requests: Requests, window: Window, origins: Origins, clients: Clients, retries: Retries, unused: Counter[str]
) -> Batch:
    """The requests within the window as arrays; the others are counted in `unused`, by reason.

    One without a time is not used: nobody could say that it is of this window.
    """
    prompt, output = _array(requests.prompt_tokens, np.int64), _array(requests.output_tokens, np.int64)
    # Some gateways write zeros where they have no usage; a prompt has at least one token.
    outcome, needed = _outcomes(requests, (prompt > 0) & (output >= 0))
    pairs = zip(requests.model, requests.upstream, strict=True)
    batch = Batch(
        completed=_array(requests.completed, np.float64),
        ttft=_array(requests.ttft_seconds, np.float64),
        duration=_array(requests.duration_seconds, np.float64),
        prompt=prompt,
        output=output,
        declared=_array(requests.max_tokens, np.int64),
        cut=_array(requests.cut, np.bool_),
        origin=np.fromiter(map(origins.__getitem__, pairs), np.int64, len(requests)),
        outcome=outcome,
        needed=needed,
        client=np.fromiter(map(clients.__getitem__, requests.client), np.int64, len(requests)),
    )
    used = _within(batch.completed, window, unused)
    if any(requests.request_id):
        _leave_out_repetitions(batch, used, requests.request_id, origins, retries, unused)
    return batch.where(used)


def _array(column: Sequence[float], kind: type[_Scalar]) -> npt.NDArray[_Scalar]:
    return np.fromiter(column, kind, len(column))


def _within(completed: Floats, window: Window, unused: Counter[str]) -> Mask:
    inside = (completed >= window.start) & (completed < window.end)
    if not inside.all():
        timeless = int(np.isnan(completed).sum())
        unused[TIMELESS] += timeless
        unused[OUTSIDE] += inside.size - int(inside.sum()) - timeless
    return inside


def _leave_out_repetitions(
    batch: Batch, used: Mask, ids: Sequence[str], origins: Origins, retries: Retries, unused: Counter[str]
) -> None:
    places = np.flatnonzero(used)
    ending = np.where(batch.outcome == SERVED, batch.prompt, -batch.outcome)[places]
    deployments = origins.deployment_of(batch.origin[places])
    chosen = [ids[place] for place in places.tolist()]
    repeated = retries.repeated(chosen, deployments.tolist(), ending.tolist(), failed=-FAILED)
    used[places[repeated]] = False
    unused[REPEATED] += len(repeated)


def _outcomes(requests: Requests, counted: Mask) -> tuple[Ints, Ints]:
    status = _array(requests.status, np.int64)
    answered = (status >= 200) & (status < 300)
    outcome = np.where(answered, np.where(counted, SERVED, WITHOUT_USAGE), FAILED).astype(np.int64)
    needed = np.full(status.size, -1, np.int64)
    for i in np.flatnonzero((status >= 400) & (status < 500)).tolist():
        refusal = length_refusal(requests.message[i])
        if refusal is not None:
            outcome[i] = REFUSED
            size = refusal.needed_tokens
            needed[i] = size if size is not None and size <= MAX_TOKENS else -1
    return outcome, needed
