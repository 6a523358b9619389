"""Why a server did not start, or died of memory, as far as its own last words tell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

FailureKind = Literal[
    "limit_above_pool",
    "no_memory_for_cache",
    "memory_taken",
    "seats_above_state_slots",
    "out_of_memory_by_seats",
    "out_of_memory_starting",
    "out_of_memory_serving",
]
FAILURES: tuple[FailureKind, ...] = get_args(FailureKind)


@dataclass(frozen=True, slots=True)
class Failure:
    """One failure with the figures that the engine named. None is not named.

    limit_tokens, seats: what was asked for. most_tokens: the longest limit that the cache could take; most_seats: the
    most sequences; free_share: memory that was free when the server started, of all memory of the GPU.
    """

    kind: FailureKind
    limit_tokens: int | None = None
    most_tokens: int | None = None
    seats: int | None = None
    most_seats: int | None = None
    free_share: float | None = None
