"""Logs that people take for request logs and that tell no lengths: better named than called unknown."""

from __future__ import annotations

import re

_VLLM = re.compile(
    rb"(?:INFO|WARNING|DEBUG) \d\d-\d\d \d\d:\d\d:\d\d \[?[\w/]{1,80}\.py:\d{1,6}\] "
    rb"(?!.{0,400}Routing request )"
)
_ROUTER = re.compile(rb"Routing request \S{1,200} with session id .{1,300}, process time = ")
_ACCESS = re.compile(rb'"(?:GET|POST) /\S{0,500} HTTP/\d(?:\.\d)?" [1-5]\d\d\b')

_TAKE = "take a gateway's log with usage, or OpenTelemetry spans"
_TOLD = {
    _ROUTER: f"the log of vLLM's router, which tells no lengths: {_TAKE}",
    _VLLM: f"vLLM's own log, which does not tell both lengths of a request: {_TAKE}, or its metrics",
    _ACCESS: "an access log without token counts: log the answers' usage too, as JSON, and map its fields",
}


def lengthless(line: bytes) -> str | None:
    """What log a line is of, and what to read instead; None where it is unknown."""
    return next((told for pattern, told in _TOLD.items() if pattern.search(line, 0, 2000)), None)
