"""The page of a rule."""

from __future__ import annotations

from advisor.rulebook.page import HEADINGS, render
from tests.unit.rulebook.samples import RAISE, rule


def test_the_page_has_the_conditions_as_written_and_every_heading() -> None:
    page = render(rule("running_p95 >= 1", {"any": [{"not": "kv_usage_p95 < 60 %"}]}, advise=RAISE))
    assert page.startswith("area/name · info\nA title\n\nIt holds when\n  running_p95 >= 1\n  any:\n    not:\n      kv")
    assert "It advises\n  change_flag max_num_seqs -> next_max_num_seqs\n" in page
    assert [heading for heading, _ in HEADINGS if f"\n{heading}\n  Told elsewhere." in page] == [h for h, _ in HEADINGS]


def test_the_page_names_what_the_rule_gives_way_to() -> None:
    page = render(rule("running_p95 >= 1", gives_way_to=["b/cause", "b/other"]))
    assert "\nIt gives way to\n  b/cause\n  b/other\n" in page


def test_a_finding_advises_nothing() -> None:
    assert "It advises" not in render(rule("running_p95 >= 1"))
