"""A rule's file: what it may say, and what its author should mend."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from advisor.rulebook.schema import problems
from tests.unit.rulebook.samples import RAISE, rule

EXPECT = [{"metric": "time_at_sequence_cap", "scales": "to_zero"}]


@pytest.mark.parametrize(
    ("parts", "complaint"),
    [
        ({"id": "No/Name"}, "should match pattern"),
        ({"id": "name"}, "should match pattern"),
        ({"severity": "fatal"}, "should be 'critical', 'warning', 'opportunity' or 'info'"),
        ({"reason": "the cache is {kv_usage_p59} full"}, "did you mean kv_usage_p95"),
        ({"title": "{nothing}"}, "unknown fact"),
        ({"verify": "look at {kv}"}, "unknown fact"),
        ({"undo": "{0}"}, "unknown fact"),
        ({"reason": "x" * 301}, "at most 300"),
        ({"sevrity": "info"}, "Extra inputs"),
        ({"when": []}, "would always hold"),
        ({"when": ["running_p95 >= 1", "kv_usage_p59 < 6 %"]}, "when.1"),
        ({"when": [{"any": ["running_p95 >= 1", {"not": "kv_usage_p59 < 6 %"}]}]}, "when.0"),
        ({"expect": [{"metric": "kv"}]}, "unknown fact"),
        ({"advise": {"verdict": "change_flag"}}, "needs `knob`"),
        ({"advise": {"verdict": "change_flag", "knob": "max_num_seqs"}}, "and `to`"),
        ({"advise": {"verdict": "change_flag", "knob": "replicas", "to": "recommended_replicas"}}, "a flag"),
        ({"advise": {"verdict": "change_flag", "knob": "block_size", "to": "running_p95"}}, "knob"),
        ({"advise": RAISE | {"verdict": "add_replicas"}}, "only change_flag changes max_num_seqs"),
        ({"advise": RAISE | {"to": "kv_usage_p95"}}, "max_num_seqs is in sequences, kv_usage_p95 in ratio"),
        ({"advise": RAISE | {"to": "recommended_max_model_len"}}, "in sequences, recommended_max_model_len in tokens"),
        ({"advise": RAISE | {"to": "next_max_seqs"}}, "did you mean next_max_num_seqs"),
        ({"advise": RAISE | {"step": "max_num_seqs"}}, "only investigate names"),
        ({"advise": RAISE | {"verdict": "restart"}}, "verdict"),
    ],
)
def test_a_rule_that_cannot_be_meant_is_refused(parts: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        rule(*parts.pop("when", ["running_p95 >= 1"]), **parts)


@pytest.mark.parametrize(
    ("parts", "found"),
    [
        ({}, ()),
        ({"advise": RAISE, "expect": EXPECT}, ()),
        ({"advise": RAISE}, ("a change needs a prediction (`expect`) that can refute it",)),
        ({"advise": RAISE, "id": "plan/first"}, ()),
        ({"severity": "warning"}, ("severity warning but nothing is advised",)),
        ({"severity": "critical", "advise": {"verdict": "investigate"}}, ()),
    ],
)
def test_what_the_author_should_mend(parts: dict[str, Any], found: tuple[str, ...]) -> None:
    assert problems(rule("running_p95 >= 1", **parts)) == found


def test_only_what_is_more_than_information_matters() -> None:
    matter = {s: rule("running_p95 >= 1", severity=s).matters for s in ("critical", "warning", "opportunity", "info")}
    assert matter == {"critical": True, "warning": True, "opportunity": True, "info": False}
