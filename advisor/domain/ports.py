"""What rooms need of each other and take as an argument: protocols, and the values that pass through them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

DeliveryState = Literal["sending", "sent", "failed"]


@dataclass(frozen=True, slots=True)
class Delivery:
    """What is known of one message that goes out at most once. Times in UNIX seconds.

    sending: an attempt began and its end was never recorded: the message may be there or not.
    sent: it is there; `reference` is the other side's name for it, empty where it gives none.
    failed: it is not there, and `why` says so; `permanent` means that a person must mend something first.
    """

    key: str
    state: DeliveryState
    attempts: int
    first_begun_at: float
    begun_at: float
    changed_at: float
    reference: str = ""
    why: str = ""
    permanent: bool = False


class DeliveryLog(Protocol):
    """Remembers what was sent, over restarts. Every call is durable when it returns."""

    def state(self, key: str) -> Delivery | None:
        """What is known of the message `key`; None when no attempt ever began."""

    def begin(self, key: str, now: float, *, after: int = 0) -> bool:
        """Claim the next attempt, as the caller who has seen `after` attempts.

        Compares and swaps: False, and nothing changes, when another process has begun one since or when it is sent. The
        claimed attempt makes the state `sending`, counts one more in `attempts` and sets `begun_at`.
        """

    def sent(self, key: str, now: float, reference: str) -> None:
        """The message is there."""

    def failed(self, key: str, now: float, why: str, *, permanent: bool) -> None:
        """The message is not there. `why` is one line for people, without secrets."""
