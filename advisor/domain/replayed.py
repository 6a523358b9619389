"""What an evaluation says when it is replayed at a moment of the past."""

from __future__ import annotations

from dataclasses import dataclass

from .advice import Advice, Status


@dataclass(frozen=True, slots=True)
class Replayed:
    """What was said of one deployment at one moment (UNIX seconds).

    advice: what was to be acted on, None when nothing was. max_model_len, max_num_seqs: the targets, where known.
    refused_after: share of the next window's requests above that max_model_len, None without exact lengths of them.
    """

    at: float
    deployment: str
    status: Status
    advice: Advice | None
    max_model_len: float | None
    max_num_seqs: float | None
    refused_after: float | None = None

    @property
    def said(self) -> tuple[object, ...]:
        """What makes two moments the same to whoever has to act."""
        return self.status, self.advice and (self.advice.rule, self.advice.knob, self.advice.recommended)
