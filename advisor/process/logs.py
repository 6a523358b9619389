"""The log of a process that lasts: on stderr, one line an event."""

from __future__ import annotations

import logging
import sys
from collections.abc import MutableMapping
from typing import Any

import structlog

from advisor.outlets.plain import plain

_LONGEST_VALUE = 4000


def configure_logging(*, level: str, as_json: bool) -> None:
    """Log to stderr: one line an event, key=value for people and journald, or JSON. No value can break its line."""
    form: list[Any] = [structlog.processors.LogfmtRenderer(key_order=["level", "event"], bool_as_flag=False)]
    if as_json:
        form = [structlog.processors.TimeStamper(fmt="iso", utc=True), structlog.processors.JSONRenderer()]
    structlog.configure(
        processors=[structlog.processors.add_log_level, structlog.processors.format_exc_info, _printable, *form],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    # Libraries log through the standard module; what is worth a line comes out in the same form.
    logging.basicConfig(level=logging.ERROR, handlers=[_ToStructlog()], force=True)


def _printable(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    return {
        key: plain(value, limit=_LONGEST_VALUE) if isinstance(value, str) else value for key, value in event.items()
    }


class _ToStructlog(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        structlog.get_logger().error("library", logger=record.name, message=record.getMessage())
