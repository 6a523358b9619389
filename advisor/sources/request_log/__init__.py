"""Request logs of gateways: what each deployment's requests needed, and how long they took under which load."""

from __future__ import annotations

from .follow import Followed, follow
from .options import LogOptions
from .origins import Resolve
from .reading import LogReading, read_request_logs

__all__ = ["Followed", "LogOptions", "LogReading", "Resolve", "follow", "read_request_logs"]
