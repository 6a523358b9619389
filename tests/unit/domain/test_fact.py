from __future__ import annotations

import pytest

from advisor.domain.catalogue import CATALOGUE
from advisor.domain.fact import Fact, FactSheet, computed, measured, unknown


def test_a_known_fact_is_its_own_floor_and_ceiling() -> None:
    fact = measured(40, low=30, high=48, source="sweep", n=4)
    assert (fact.number, fact.floor, fact.ceiling, fact.is_unknown) == (40, 40, 40, False)


def test_at_least_has_a_floor_and_no_number() -> None:
    fact = computed(None, low=16, source="log")
    assert (fact.number, fact.floor, fact.ceiling, fact.is_unknown) == (None, 16, None, False)


def test_a_word_is_no_number() -> None:
    assert computed("latency", source="ceilings").number is None


def test_zero_is_a_number() -> None:
    fact = measured(0.0, low=None, high=1.0, source="counter")
    assert (fact.number, fact.floor, fact.ceiling) == (0.0, 0.0, 0.0)


def test_what_is_done_to_a_figure_is_done_to_its_bounds() -> None:
    doubled = computed(None, low=1.5, high=None, n=7, source="memory").each(lambda times: 2 * times)
    assert (doubled.value, doubled.low, doubled.high, doubled.n, doubled.source) == (None, 3.0, None, 7, "memory")
    nothing = unknown("no weights")
    assert nothing.each(lambda times: 2 * times) == nothing


def test_unknown_says_why() -> None:
    fact = unknown("no request log (--logs)")
    assert fact.is_unknown
    assert (fact.number, fact.floor, fact.ceiling, fact.unknown) == (None, None, None, "no request log (--logs)")


def test_over_adds_the_window_and_nothing_else() -> None:
    assert measured(1, source="s").over("week") == Fact(value=1, source="s", window="week")


def test_of_two_accounts_the_one_that_is_not_believed_is_kept() -> None:
    gauges, dashboard, log = (measured(v, source=s) for v, s in ((16.0, "gauges"), (8.0, "dashboard"), (12.0, "log")))
    once = dashboard.instead_of(log)
    assert gauges.instead_of(once) == Fact(value=16.0, source="gauges", rivals=(dashboard, log))
    assert gauges.instead_of(measured(16.0, source="dashboard")) == gauges


def test_an_unknown_rivals_nothing() -> None:
    told, why = measured(16.0, source="gauges"), unknown("no gauges")
    assert told.instead_of(why) == told
    assert why.instead_of(told) == told
    assert why.instead_of(unknown("not given")) == why


def test_a_sheet_has_every_fact_in_the_order_of_the_catalogue() -> None:
    sheet = FactSheet({"running_p95": measured(8, source="stated")})
    assert list(sheet) == list(CATALOGUE)
    assert len(sheet) == len(CATALOGUE)
    assert sheet["running_p95"].number == 8
    assert sheet["ttft_p99"].is_unknown


def test_a_fact_that_the_catalogue_lacks_is_an_error() -> None:
    with pytest.raises(KeyError, match="runing_p95"):
        FactSheet({"runing_p95": unknown("typed wrong")})
