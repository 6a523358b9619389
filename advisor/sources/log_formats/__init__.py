"""Log formats, one file each: how to recognise a line, and what lines say as common columns.

A new format is a new module with a `FORMAT`, named here. `mapped` is made from a field map instead of being fixed.
"""

from __future__ import annotations

from . import envoy_ai_gateway, litellm, llamacpp, openai_gateway, otlp, sglang, tgi
from ._lengthless import lengthless
from ._lines import moment
from ._requests import MAX_TOKENS, LogFormat, Requests, Row, unix_seconds
from ._wrapped import part_of, unwrapping
from .mapped import FieldMap, mapped_format

# Order is the order of recognition: the more particular format first.
FORMATS: dict[str, LogFormat] = {
    "litellm": litellm.FORMAT,
    "envoy_ai_gateway": envoy_ai_gateway.FORMAT,
    "otlp": otlp.FORMAT,
    "sglang": sglang.FORMAT,
    "tgi": tgi.FORMAT,
    "llamacpp": llamacpp.FORMAT,
    "openai_gateway": openai_gateway.FORMAT,
}

__all__ = [
    "FORMATS",
    "MAX_TOKENS",
    "FieldMap",
    "LogFormat",
    "Requests",
    "Row",
    "lengthless",
    "mapped_format",
    "moment",
    "part_of",
    "unix_seconds",
    "unwrapping",
]
