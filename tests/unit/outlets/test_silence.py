"""Why a rule says nothing, and which comes first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.domain.advice import Judgement, Need, NotFired, Undetermined
from advisor.outlets import phrases, silence
from tests.unit.outlets import samples


def test_the_nearest_rule_comes_first_and_says_what_is_missing() -> None:
    far = NotFired("a", "kv_usage_p95 > 90%", 0.04, 0.95)
    near = NotFired("b", "preempted_share > 0.5%", 0.004, -0.2)
    word = NotFired("c", "binding_ceiling == memory", "latency", None)
    assert silence.nearest((far, word, near)) == [near, far, word]
    assert silence.shortfall(near) == "fires when preempted_share > 0.5%; it is 0.4 %"
    assert silence.shortfall(word) == "fires when binding_ceiling == memory; it is latency"


def test_what_teaches_nothing_comes_last() -> None:
    lone = NotFired("a", "replicas > 1", 1, 0.0)
    role = NotFired("b", "not serving_role is whole", "whole", None)
    none = NotFired("c", "stalled_short_share > 0 %", 0.0, 0.0)
    far = NotFired("d", "preempted_share > 0.5 %", 0.0, 1.0)
    gave_way = NotFired("e", "gives way to b/cause", None, None)
    assert silence.nearest((lone, role, none, gave_way, far)) == [far, gave_way, none, lone, role]


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (NotFired("a", "not waiting_p95 >= 1", 1.05, 0.05), "fires when not waiting_p95 >= 1; it is 1.1"),
        (NotFired("a", "not ttft_p99 > 2s", 7_826.0, 9.0), "fires when not ttft_p99 > 2s; it is 2.17 h"),
        (
            NotFired("a", "latency_ceiling is unknown", None, None, low=10),
            "fires when latency_ceiling is unknown; it is at least 10",
        ),
        (
            NotFired("a", "demand_over_capacity > 100 %", None, None, low=0.0, high=0.74),
            "fires when demand_over_capacity > 100 %; it is at most 0.74x",
        ),
        (
            NotFired("a", "not kv_usage_p95 is unknown", None, None),
            "fires when kv_usage_p95 is known; it is unknown",
        ),
        (NotFired("a", "gives way to b/cause", None, None), "gives way to b/cause"),
    ],
)
def test_a_shortfall_is_the_condition_and_the_figure_with_its_bounds(rule: NotFired, text: str) -> None:
    assert silence.shortfall(rule) == text


def test_lacks_are_gathered_by_reason_the_most_wanted_first() -> None:
    one = Undetermined("a", (Need("ttft_p99", "no histogram"), Need("running_p95", "no gauge")))
    two = Undetermined("b", (Need("waiting_p95", "no gauge"), Need("running_p95", "no gauge")))
    assert silence.needs((one, two)) == [
        silence.Lack("no gauge", ("running_p95", "waiting_p95"), 2),
        silence.Lack("no histogram", ("ttft_p99",), 1),
    ]


def test_the_source_that_most_rules_wait_for_is_named_first_and_no_fact() -> None:
    """Three rules want the log and two the metrics; the fact that five want cannot be had by connecting anything."""
    odd = Need("replicas_left_ratio", "no engine metrics over time: give --prometheus")
    lengths = Need("declared_tokens_p999", "no request log shows lengths (--logs)")
    bounded = Need("kv_usage_p95", "only known to lie between 0.3 and 0.9")
    open_ = [(odd, bounded), (odd, bounded), (lengths, bounded), (lengths, bounded), (lengths, bounded)]
    undetermined = tuple(Undetermined(f"a/{place}", needs) for place, needs in enumerate(open_))
    assert [lack.reason for lack in silence.needs(undetermined)] == [lengths.reason, odd.reason, bounded.reason]
    judged = replace(samples.cannot_tell(), judgement=Judgement("cannot_tell", undetermined=undetermined))
    assert phrases.answers(judged) == [("?", "cannot tell", lengths.reason)]


def test_of_sources_that_tell_equally_much_metrics_come_before_a_log() -> None:
    both = Need("demand", "arrivals are not known: give a request log (--logs) or engine metrics (--prometheus)")
    log, metrics, cap = Need("a", "--logs"), Need("b", "--prometheus"), Need("c", "give --set max_num_seqs=N")
    undetermined = (Undetermined("x", (log, metrics, cap)), Undetermined("y", (both,)))
    assert [lack.reason for lack in silence.needs(undetermined)] == ["--prometheus", both.reason, "--logs", cap.reason]
