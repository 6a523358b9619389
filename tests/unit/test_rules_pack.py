"""The rules that ship: in order by their own linter and cases, complete, and about facts that exist."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor import rule_pack
from advisor.domain.catalogue import CATALOGUE
from advisor.rule_pack import RuleFile
from advisor.rulebook import casebook, wording

SHIPPED = rule_pack.shipped_directory("rules")
FILES = rule_pack.read([SHIPPED])
each_rule = pytest.mark.parametrize("file", FILES, ids=[file.rule.id for file in FILES])


def test_the_pack_has_nothing_to_mend() -> None:
    assert len(FILES) >= 20
    assert rule_pack.lint(FILES) == ()
    assert rule_pack.test(FILES) == ()


@each_rule
def test_the_id_is_the_path(file: RuleFile) -> None:
    assert file.path.relative_to(SHIPPED) == Path(f"{file.rule.id}.yaml")


@each_rule
def test_there_is_a_case_for_every_outcome_that_can_be(file: RuleFile) -> None:
    assert file.cases is not None
    outcomes = {case.expect for case in file.cases.cases}
    assert outcomes >= {"fires", "not_fires"}
    assert "undetermined" in outcomes or "undetermined" in casebook._impossible(file.rule)


@each_rule
def test_every_fact_that_is_mentioned_exists(file: RuleFile) -> None:
    rule = file.rule
    asked = {name for c in rule.condition.conditions() for name in (c.fact, c.other) if name}
    said = {name for text in (rule.title, rule.reason, rule.verify, rule.undo) for name in wording.names(text)}
    predicted = {name for e in rule.expect for name in (e.metric, e.at_least, e.at_most) if name}
    assert asked
    assert asked | said | predicted <= set(CATALOGUE)


@each_rule
def test_the_page_is_written(file: RuleFile) -> None:
    for heading in ("what", "why", "evidence", "change", "verify", "undo", "limits"):
        text = getattr(file.rule, heading).strip()
        assert text.endswith(".")
        assert "TODO" not in text


def test_no_case_lies_beside_no_rule() -> None:
    cases = {path.name.removesuffix(".test.yaml") for path in SHIPPED.rglob("*.test.yaml")}
    assert cases == {file.path.stem for file in FILES}


def test_a_flag_is_raised_by_no_rule_that_ignores_churn() -> None:
    """Whoever advises max_num_seqs of a running server has looked at preemptions, or lowers it."""
    advising = [f.rule for f in FILES if f.rule.advise and f.rule.advise.knob == "max_num_seqs" and not f.rule.plans]
    looked = {r.id: {c.fact for c in r.condition.conditions()} for r in advising}
    assert {name for name, facts in looked.items() if "preempted_share" not in facts} <= {
        "concurrency/cap-above-latency-ceiling",
        "startup/too-many-seats",
    }
