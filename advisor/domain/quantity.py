"""Quantities with units as people write them: `40ms`, `7d`, `80GB`, `320KiB`, `25%`."""

from __future__ import annotations

import math
import re

SECONDS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
BYTES = (
    {"B": 1.0}
    | {p + "B": 1000.0**k for k, p in enumerate("kMGT", 1)}
    | {p + "iB": 1024.0**k for k, p in enumerate("KMGT", 1)}
    | {"KB": 1000.0}
)
RATIO = {"%": 0.01}
COUNT = {"": 1.0, "tokens": 1.0}
ENGINE_COUNT = {letter: 1000.0**k for k, letter in enumerate("kmgt", 1)} | {
    letter: 1024.0**k for k, letter in enumerate("KMGT", 1)
}
"""Suffixes as vLLM reads them: lower case is decimal, upper case binary."""

_NUMBER = re.compile(r"\s*([+-]?(?:\d[\d_]*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)\s*(%|[A-Za-z]*)\s*")


def parse(text: str | float, units: dict[str, float], *, bare: str | None = None) -> float:
    """The quantity in the base unit of `units`; a number without unit is taken in `bare`, or refused when that is None.

    >>> parse("40ms", SECONDS), parse("80GB", BYTES), parse("1GiB", BYTES), parse("25%", RATIO)
    (0.04, 80000000000.0, 1073741824.0, 0.25)
    """
    match = _NUMBER.fullmatch(str(text)) if not isinstance(text, bool) else None
    unit = (match[2] or bare) if match else None
    if match is None or unit not in units:
        names = ", ".join(u for u in units if u) or "a plain number"
        raise ValueError(f"{str(text)[:40]!r} is not a quantity in {names}")
    value = float(match[1].replace("_", "")) * units[unit]
    if not math.isfinite(value):
        raise ValueError(f"{str(text)[:40]!r} is not a finite number")
    return value


def seconds(text: str | float) -> float:
    """A duration in seconds; a bare number is seconds. `Prometheus` style sums such as `1h30m` are read too."""
    parts = re.findall(r"\d+(?:\.\d+)?(?:ms|min|[smhdw])", str(text))
    if len(parts) > 1 and "".join(parts) == str(text).replace(" ", ""):
        return sum(parse(part, SECONDS) for part in parts)
    return parse(text, SECONDS, bare="s")


def size_bytes(text: str | float) -> float:
    """A size in bytes. GB is 1e9 and GiB is 2**30, always; a bare number is bytes."""
    return parse(text, BYTES, bare="B")


def ratio(text: str | float) -> float:
    """A ratio: `6%` is 0.06, and a bare 0.06 is itself."""
    return parse(text, RATIO | {"": 1.0}, bare="")


def tokens(text: str | float) -> int:
    """A whole, non-negative count of tokens."""
    value = parse(text, COUNT | ENGINE_COUNT, bare="")
    if value < 0 or value != int(value):
        raise ValueError(f"{str(text)[:40]!r} is not a whole number of tokens")
    return int(value)
