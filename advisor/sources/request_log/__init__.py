"""Request logs of gateways: what each deployment's requests needed, and how long they took under which load."""

from __future__ import annotations

from .options import LogOptions
from .origins import Resolve
from .reading import LogReading, read_request_logs

__all__ = ["LogOptions", "LogReading", "Resolve", "read_request_logs"]
