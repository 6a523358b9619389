"""Quantities as people read them. One function a unit; several values come out as a span in one unit, `0.5-0.7 s`."""

from __future__ import annotations

import math
from collections.abc import Callable

from advisor.domain.catalogue import CATALOGUE
from advisor.domain.fact import Fact

_FACTORS = frozenset(
    {
        "max_model_len_cost_ratio",
        "replica_imbalance",
        "logged_over_finished",
        "demand_over_capacity",
        "demand_over_saturated_rate",
        "demand_over_observed_rate",
        "busiest_half_hour_over_capacity",
        "worst_replica_load",
        "replicas_left_ratio",
        "kv_pool_growth_at_double_tp",
    }
)
"""Ratios that people read as "so many times", not as a share."""

_OF_TIME = frozenset({"time_at_sequence_cap"})
_LONG = ((7_200.0, 3_600.0, "h"), (600.0, 60.0, "min"))
"""From how many seconds on a time is told in which longer unit, and how many seconds that has."""

_NOTHING = "unknown"


def seconds(*values: float) -> str:
    """A time: 0.0143 is `14.3 ms`, 1.84 is `1.84 s`, 0.5 to 0.7 is `0.5-0.7 s`, and 7,826 is `2.17 h`."""
    if max(map(abs, values)) < 0.5:
        return _span(*(_significant(1000 * v) for v in values)) + " ms"
    length, unit = next(((length, unit) for least, length, unit in _LONG if min(values) >= least), (1.0, "s"))
    return _span(*(_significant(v / length) for v in values)) + f" {unit}"


def ratio(*values: float) -> str:
    """A share: 0.174 is `17 %`, 0.00031 is `0.031 %`, and 0.9996 is `99.96 %`: only 0 and 1 look like 0 and 1."""
    return _span(*map(_percent, values)) + " %"


def factor(*values: float) -> str:
    """A multiple, to the second decimal: 85.333 is `85.33x`; a small one keeps two digits, `0.0042x`."""
    return _span(*(_trimmed(f"{v:,.2f}") if abs(v) >= 0.1 else _significant(v, digits=2) for v in values)) + "x"


def tokens(*values: float) -> str:
    """A count of tokens, whole: 12288 is `12,288`."""
    return _span(*(f"{v:,.0f}" for v in values))


def count(*values: float) -> str:
    """A count of sequences, requests or replicas: 16 is `16`; a percentile between two keeps a decimal, `15.4`.

    From a hundred on the decimal tells nothing: 24563.5 is `24,564`.
    """
    return _span(*(_trimmed(f"{v:,.1f}") if abs(v) < 100 else f"{v:,.0f}" for v in values))


def counted(many: int, thing: str) -> str:
    """So many of a thing: 1 and `engine` is `1 engine`, 2 `2 engines`."""
    return f"{many:,} {thing}{'' if many == 1 else 's'}"


def size_bytes(*values: float) -> str:
    """A size in binary units: 327680 is `320 KiB`, 8708046029 is `8.11 GiB`."""
    power = min(4, max(0, int(math.log2(max(1.0, *map(abs, values)))) // 10))
    return _span(*(_significant(v / 1024**power) for v in values)) + " " + ("B", "KiB", "MiB", "GiB", "TiB")[power]


def rate(*values: float) -> str:
    """Requests per second: 9.13 is `9.13 req/s`."""
    return _span(*map(_significant, values)) + " req/s"


def number(*values: float) -> str:
    """A figure without unit, to four significant digits."""
    return _span(*(_significant(v, digits=4) for v in values))


def duration(value: float) -> str:
    """A span of time in the largest unit that keeps it exact enough: 604800 is `7 d`, 5400 is `1.5 h`, 90 is `90 s`."""
    for length, unit in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if value >= 1.5 * length or value == length:
            return f"{_significant(value / length)} {unit}"
    return f"{_significant(value)} s"


def setting(value: float) -> str:
    """A flag's value as it is typed, without separators: 131072 is `131072`, 0.92 is `0.92`."""
    return str(int(value)) if float(value).is_integer() else str(value)


_BY_UNIT: dict[str, Callable[..., str]] = {
    "seconds": seconds,
    "ratio": ratio,
    "tokens": tokens,
    "sequences": count,
    "requests": count,
    "replicas": count,
    "bytes": size_bytes,
    "1/s": rate,
    "x": factor,
}


def quantity(value: float | str | None, unit: str) -> str:
    """A value in its unit; a word is itself and nothing is `unknown`."""
    if isinstance(value, str):
        return value
    return span(value, value, unit)


def span(low: float | None, high: float | None, unit: str) -> str:
    """Between two bounds: `0.5-0.7 s`, `at least 16`, `at most 40 ms`, or `unknown` when neither is a finite number."""
    write = _BY_UNIT.get(unit, number)
    bounds = [v for v in (low, high) if v is not None and math.isfinite(v)]
    if not bounds:
        return _NOTHING
    if len(bounds) == 2:
        return write(*bounds)
    return f"{'at least' if bounds[0] == low else 'at most'} {write(*bounds)}"


def unit_of(name: str) -> str:
    """The unit in which the fact `name` reads best; `-` for a name that the catalogue does not know."""
    return "x" if name in _FACTORS else CATALOGUE[name].unit if name in CATALOGUE else "-"


def figure(name: str, fact: Fact) -> str:
    """The fact's value, else its bounds: `40`, `at least 16`, `0.5-0.7 s`, `unknown`; 0 as the least says nothing."""
    return bounded(fact.value, fact.low, fact.high, unit_of(name))


def bounded(value: float | str | None, low: float | None, high: float | None, unit: str) -> str:
    """A value in its unit, else its bounds: 0 to 0.74 is `at most 0.74x`."""
    if value is not None:
        return quantity(value, unit)
    return span(None if low == 0 and high else low, high, unit)


def told(name: str, fact: Fact) -> str:
    """The figure, and of a share of time what it is a share of: `13 % of the time`, where counters of a single scrape
    bound it `84-100 % of engine steps since the start`.
    """
    if name not in _OF_TIME:
        return figure(name, fact)
    in_steps = fact.basis == "computed" and fact.value is None
    return f"{figure(name, fact)} of {'engine steps since the start' if in_steps else 'the time'}"


def interval(name: str, fact: Fact) -> str:
    """The bounds around a known value, `6,190-6,480`; empty where there are none."""
    bounds = span(fact.low, fact.high, unit_of(name))
    return "" if fact.number is None or bounds == _NOTHING else bounds


def _span(*texts: str) -> str:
    distinct = list(dict.fromkeys(texts))
    return (" to " if any(t.startswith("-") for t in distinct) else "-").join(distinct)


def _trimmed(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def _significant(value: float, *, digits: int = 3) -> str:
    if value == 0:
        return "0"
    places = min(9, max(0, digits - 1 - math.floor(math.log10(abs(value)))))
    return _trimmed(f"{value:,.{places}f}")


def _percent(value: float) -> str:
    percent = 100 * value
    to_full = abs(100 - percent)
    if 0 < to_full < 10:
        # 99.96 % of requests is not all of them, 100.04 % is more than all, and 98.6 % do not meet a promise of 99 %.
        magnitude = -math.floor(math.log10(to_full))
        places = min(6, max(magnitude, min(3, magnitude + 1)))
        return _trimmed(f"{percent:.{places}f}")
    if 0 < abs(percent) < 1e-4:
        return "<0.0001" if percent > 0 else ">-0.0001"
    return _significant(percent, digits=2) if abs(percent) < 100 else f"{percent:,.0f}"
