"""Joints in Kleene's three values, and how they are read."""

from __future__ import annotations

from typing import Any

import pytest

from advisor.domain.errors import ConfigError
from advisor.domain.fact import FactSheet
from advisor.rulebook.clause import Clause, read
from tests.unit.rulebook.samples import sheet

# running_p95 >= 5 is true at 8, false at 2 and open when nobody knows; the same for waiting_p95.
VALUES: dict[bool | None, float | None] = {True: 8, False: 2, None: None}
A, B = "running_p95 >= 5", "waiting_p95 >= 5"


def facts(a: bool | None, b: bool | None = None) -> FactSheet:
    stated = {"running_p95": VALUES[a], "waiting_p95": VALUES[b]}
    return sheet(**{name: value for name, value in stated.items() if value is not None})


@pytest.mark.parametrize(
    ("a", "b", "both", "either"),
    [
        (True, True, True, True),
        (True, False, False, True),
        (True, None, None, True),
        (False, True, False, True),
        (False, False, False, False),
        (False, None, False, None),
        (None, True, None, True),
        (None, False, False, None),
        (None, None, None, None),
    ],
)
def test_all_and_any(a: bool | None, b: bool | None, *, both: bool | None, either: bool | None) -> None:
    assert read([A, B]).holds(facts(a, b)) is both
    assert read([{"any": [A, B]}]).holds(facts(a, b)) is either


@pytest.mark.parametrize(
    ("a", "negated", "undecided"), [(True, False, False), (False, True, False), (None, None, True)]
)
def test_not_and_undecided(a: bool | None, *, negated: bool | None, undecided: bool) -> None:
    assert read([{"not": A}]).holds(facts(a)) is negated
    assert read([{"undecided": A}]).holds(facts(a)) is undecided


@pytest.mark.parametrize(("a", "b"), [(a, b) for a in VALUES for b in VALUES])
def test_de_morgan(a: bool | None, b: bool | None) -> None:
    neither = read([{"not": {"any": [A, B]}}])
    both_not = read([{"not": A}, {"not": B}])
    assert neither.holds(facts(a, b)) is both_not.holds(facts(a, b))


def test_conditions_come_in_order() -> None:
    clause = read([A, {"any": [B, {"not": "kv_usage_p95 < 60 %"}]}])
    assert [c.fact for c in clause.conditions()] == ["running_p95", "waiting_p95", "kv_usage_p95"]


@pytest.mark.parametrize(
    ("raw", "complaint"),
    [
        ([], "has no condition"),
        ([{"any": []}], "`any` has no condition"),
        ([{"not": [A, B]}], "`not` takes one condition, not 2"),
        ([{"undecided": [A, B]}], "`undecided` takes one condition, not 2"),
        ([{"none": [A]}], "is not a condition"),
        ([{"any": [A], "all": [B]}], "is not a condition"),
        ([5], "is not a condition"),
        ([None], "is not a condition"),
        ([[A]], "is not a condition"),
    ],
)
def test_what_is_no_clause_is_refused(raw: Any, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        read(raw)


def test_nesting_is_bounded() -> None:
    raw: Any = A
    for _ in range(8):
        raw = {"not": raw}
    with pytest.raises(ConfigError, match="nested deeper than 6"):
        read([raw])
    assert isinstance(read([{"not": {"not": {"not": A}}}]), Clause)


@pytest.mark.parametrize(
    ("running", "possible", "sure", "undecided"),
    [(8.0, True, True, False), (2.0, False, False, False), ((2.0, 8.0), True, False, True)],
)
def test_how_sure_a_condition_is_can_always_be_told(
    running: float | tuple[float, float], *, possible: bool, sure: bool, undecided: bool
) -> None:
    facts = sheet(running_p95=running)
    told = [read({joint: "running_p95 >= 4"}).holds(facts) for joint in ("possible", "sure", "undecided")]
    assert told == [possible, sure, undecided]
