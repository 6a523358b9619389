"""Quantities that people write, with bounds beyond which a figure is a slip of the pen, such as `memory: 80`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from pydantic import BeforeValidator

from advisor.domain import quantity

MAX_TOKENS = 10**8
"""Well above any context length; a length beyond it is an error of whoever wrote it."""


def _within(parse: Callable[[str | float], float], least: float, most: float, example: str) -> BeforeValidator:
    def check(value: str | float) -> float:
        number = parse(value)
        if not least <= number <= most:
            raise ValueError(f"{str(value)[:40]!r} is not plausible here; write it like {example}")
        return number

    return BeforeValidator(check, json_schema_input_type=float | str)


def _number(value: str | float) -> float:
    return quantity.parse(value, quantity.COUNT, bare="")


Tokens = Annotated[int, _within(quantity.tokens, 1, MAX_TOKENS, "12288")]
MeanTokens = Annotated[float, _within(_number, 1, MAX_TOKENS, "1155")]
PoolTokens = Annotated[int, _within(quantity.tokens, 1, 10**11, "587158")]
Count = Annotated[int, _within(quantity.tokens, 1, 10**6, "64")]
Concurrency = Annotated[float, _within(_number, 1e-6, 10**6, "24")]
Rate = Annotated[float, _within(_number, 1e-6, 10**6, "62")]
GpuMemory = Annotated[float, _within(quantity.size_bytes, 1e9, 1e13, "80GB")]
Headroom = Annotated[float, _within(quantity.size_bytes, 1e6, 1e13, "8GB")]
CacheMemory = Annotated[float, _within(quantity.size_bytes, 1e6, 1e13, "8.11GiB")]
Weights = Annotated[float, _within(quantity.size_bytes, 1e5, 1e14, "70GB")]
TokenBytes = Annotated[float, _within(quantity.size_bytes, 1, 1e9, "320KiB")]
TokenSeconds = Annotated[float, _within(quantity.seconds, 1e-6, 10, "40ms")]
FirstTokenSeconds = Annotated[float, _within(quantity.seconds, 1e-6, 3600, "2s")]
