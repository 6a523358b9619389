"""Sentences with facts filled in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.domain.errors import ConfigError
from advisor.rulebook.wording import fill, names
from tests.unit.rulebook.samples import sheet


def test_a_fact_is_written_in_its_unit() -> None:
    facts = sheet(kv_usage_p95=0.04, running_p95=15.4, itl_mean=0.018, latency_ceiling=(16, None))
    text = "{kv_usage_p95} full, {running_p95} run, {itl_mean} a token, {latency_ceiling} seats, {budget_ceiling}"
    assert fill(text, facts) == "4 % full, 15.4 run, 18 ms a token, at least 16 seats, unknown"


def test_the_facts_of_a_sentence_are_found() -> None:
    assert names("{kv_usage_p95} and {running_p95}, {{not this") == ("kv_usage_p95", "running_p95")
    with pytest.raises(ConfigError, match=r"unknown fact \"\"$"):
        names("{}")


@given(st.text(alphabet="{}abc_ \n!:.0", max_size=60))
def test_braces_name_facts_or_are_refused(text: str) -> None:
    try:
        found = names(text)
    except ConfigError:
        return
    assert found == ()
    assert fill(text, sheet()) == text
