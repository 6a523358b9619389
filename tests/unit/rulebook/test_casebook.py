"""A rule's own cases: what they may say, and what is reported when the rule contradicts them."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from advisor.rulebook.casebook import Casebook, failures
from tests.unit.rulebook.samples import rule

FULL = rule("kv_usage_p95 >= 90 %", "running_p95 >= 1")
FIRES = {"name": "full", "expect": "fires", "facts": {"kv_usage_p95": "95 %", "running_p95": 8}}
QUIET = {"name": "free", "expect": "not_fires", "facts": {"kv_usage_p95": "5 %"}}
OPEN = {"name": "blind", "expect": "undetermined", "facts": {"kv_usage_p95": "95 %"}}


def book(*cases: dict[str, Any]) -> Casebook:
    return Casebook.model_validate({"cases": list(cases)})


def test_a_rule_that_does_as_its_cases_say_has_no_failures() -> None:
    assert failures(FULL, book(FIRES, QUIET, OPEN)) == ()


def test_a_contradiction_names_rule_case_and_both_outcomes() -> None:
    wrong = FIRES | {"facts": {"kv_usage_p95": "5 %", "running_p95": 8}}
    assert failures(FULL, book(wrong, QUIET, OPEN)) == (
        "area/name: case 'full' expects fires, the rule says not_fires",
    )


def test_every_outcome_needs_a_case() -> None:
    assert failures(FULL, book(FIRES)) == (
        "area/name: no case expects not_fires",
        "area/name: no case expects undetermined",
    )


def test_a_rule_that_is_always_decided_needs_no_undetermined_case() -> None:
    always = rule("observed_days is known", {"undecided": "kv_usage_p95 < 60 %"})
    fires = {"name": "a", "expect": "fires", "facts": {"observed_days": 7}}
    quiet = {"name": "b", "expect": "not_fires", "facts": {"observed_days": 7, "kv_usage_p95": "5 %"}}
    assert failures(always, book(fires, quiet)) == ()


def test_facts_are_written_as_people_write_them() -> None:
    one = rule("kv_usage_p95 <= 1 %", "itl_mean <= 40ms", "kv_bytes_per_token <= 320KiB", "binding_ceiling is latency")
    facts = {
        "kv_usage_p95": {"low": 0, "high": "1 %"},
        "itl_mean": "40 ms",
        "kv_bytes_per_token": 327_680,
        "binding_ceiling": "latency",
    }
    found = failures(one, book({"name": "a", "expect": "fires", "facts": facts}))
    assert found == ("area/name: no case expects not_fires", "area/name: no case expects undetermined")


@pytest.mark.parametrize(
    ("facts", "complaint"),
    [
        ({"kv_usage_p59": 0.05}, "did you mean kv_usage_p95"),
        ({"kv_usage_p95": "40 ms"}, "a quantity in ratio is expected"),
        ({"binding_ceiling": "latncy"}, "binding_ceiling is one of memory, latency, budget, demand"),
        ({"observed_days": "seven"}, "a quantity in - is expected"),
        ({"kv_usage_p95": {"lower": 0}}, "Extra inputs"),
    ],
)
def test_a_case_that_cannot_be_meant_is_refused(facts: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        book({"name": "a", "expect": "fires", "facts": facts})


def test_a_book_without_cases_is_refused() -> None:
    with pytest.raises(ValidationError, match="at least 1 item"):
        book()


def test_a_case_may_stand_beside_a_rule_that_comes_first() -> None:
    yielding = rule("kv_usage_p95 >= 90 %", "running_p95 >= 1", gives_way_to=["b/cause"])
    beside = {**FIRES, "name": "beside", "beside": ["b/cause"]}
    assert failures(yielding, book(FIRES, QUIET, OPEN, {**beside, "expect": "not_fires"})) == ()
    assert failures(yielding, book(FIRES, QUIET, OPEN, beside)) == (
        "area/name: case 'beside' expects fires, the rule says not_fires",
    )
