"""The page of a rule."""

from __future__ import annotations

from advisor.rulebook.page import HEADINGS, render, render_fact
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


def test_the_page_of_a_fact_has_its_unit_its_meaning_and_who_asks_for_it() -> None:
    rules = [
        rule("kv_usage_p95 < 60 %", {"not": "kv_usage_p95 < 60 %"}, id="a/asks"),
        rule("running_p95 < 0.8 budget_ceiling", id="a/other"),
    ]
    assert render_fact("kv_usage_p95", rules).endswith("\n\nRules that ask for it\n  a/asks: kv_usage_p95 < 60 %\n")
    assert "  a/other: running_p95 < 0.8 budget_ceiling" in render_fact("budget_ceiling", rules)
    page = render_fact("demand_over_saturated_rate", rules)
    assert page == (
        "demand_over_saturated_rate · ratio\nDemand p99 / what was served while saturated, with headroom\n\n"
        "Rules that ask for it\n  none\n"
    )
    assert render_fact("binding_ceiling", rules).startswith("binding_ceiling · memory, latency, budget, demand\n")
    assert render_fact("observed_days", rules).startswith("observed_days\n")
