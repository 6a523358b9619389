"""What becomes of advice: its life from one evaluation to the next, and its predictions held against what happened."""

from __future__ import annotations

from .decisions import by_id, reject, reopen, snooze
from .life import advance
from .scoring import track_records
from .standing import standing, with_states
from .terms import Terms

__all__ = ["Terms", "advance", "by_id", "reject", "reopen", "snooze", "standing", "track_records", "with_states"]
