from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.domain import quantity


@pytest.mark.parametrize(
    ("text", "value"),
    [("40ms", 0.04), ("2s", 2), ("7d", 604_800), ("1.5h", 5400), ("3", 3), (3, 3), ("1h30m", 5400), ("2m 30s", 150)],
)
def test_seconds(text: str | float, value: float) -> None:
    assert quantity.seconds(text) == pytest.approx(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [("80GB", 80e9), ("1GiB", 2**30), ("320KiB", 327_680), ("8.11GiB", 8.11 * 2**30), ("5B", 5), ("1_000", 1000)],
)
def test_gb_is_decimal_and_gib_is_binary(text: str, value: float) -> None:
    assert quantity.size_bytes(text) == pytest.approx(value)


@pytest.mark.parametrize(("text", "value"), [("6%", 0.06), ("0.06", 0.06), ("0 %", 0), (0.25, 0.25), ("150%", 1.5)])
def test_ratio(text: str | float, value: float) -> None:
    assert quantity.ratio(text) == pytest.approx(value)


@pytest.mark.parametrize(
    ("text", "value"), [("12288", 12_288), (9500, 9500), ("8k", 8000), ("8K", 8192), ("1e3", 1000)]
)
def test_tokens(text: str | float, value: int) -> None:
    assert quantity.tokens(text) == value


@pytest.mark.parametrize("text", ["1.5", "-3", "8 apples", "", "nan", "inf", "1e999", True])
def test_what_is_no_count_of_tokens(text: str | float) -> None:
    with pytest.raises(ValueError, match="not a"):
        quantity.tokens(text)


def test_a_number_without_its_unit_is_refused_where_the_unit_matters() -> None:
    with pytest.raises(ValueError, match="'40' is not a quantity in ms, s"):
        quantity.parse("40", quantity.SECONDS)


def test_a_hostile_text_is_quoted_in_part_only() -> None:
    with pytest.raises(ValueError, match="is not a quantity") as error:
        quantity.seconds("x" * 10_000)
    assert len(str(error.value)) < 120


@given(st.text(max_size=30))
def test_any_text_is_a_finite_quantity_or_refused(text: str) -> None:
    for read in (quantity.seconds, quantity.size_bytes, quantity.ratio, quantity.tokens):
        try:
            value = read(text)
        except ValueError:
            continue
        assert math.isfinite(value)


@given(st.floats(0, 1e6, allow_nan=False))
def test_a_number_written_with_its_unit_is_itself(value: float) -> None:
    assert quantity.seconds(f"{value!r}s") == value
