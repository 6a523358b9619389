"""Log formats, one file each: a typed line, how to recognise it, and what its lines say as common columns.

A new format is a new module with a `FORMAT`, named here. `mapped` is made from a field map instead of being fixed.
"""

from __future__ import annotations

from . import litellm, openai_gateway
from ._requests import MAX_TOKENS, LogFormat, NoEngineError, Requests, Row
from .mapped import FieldMap, mapped_format

# Order is the order of recognition: the more particular format first.
FORMATS: dict[str, LogFormat] = {
    "litellm": litellm.FORMAT,
    "openai_gateway": openai_gateway.FORMAT,
}

__all__ = ["FORMATS", "MAX_TOKENS", "FieldMap", "LogFormat", "NoEngineError", "Requests", "Row", "mapped_format"]
