from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.domain.advice import (
    Advice,
    EvidenceLine,
    Finding,
    Judgement,
    Need,
    NotFired,
    Prediction,
    Undetermined,
    Verdict,
)
from advisor.domain.evidence import Slo
from advisor.domain.report import DeploymentReport
from advisor.outlets import phrases
from tests.unit.outlets import samples


def _advice(**changes: object) -> Advice:
    base = samples.throttled().judgement.advice[0]
    return replace(base, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("advice", "action", "headline"),
    [
        (_advice(), "--max-num-seqs 16 -> 24", "raise max_num_seqs from 16 to 24"),
        (_advice(current=None), "--max-num-seqs 24", "set max_num_seqs to 24"),
        (_advice(current=131_072.0, recommended=8_192.0, flag="--max-model-len 8192", knob="max_model_len"),
         "--max-model-len 131072 -> 8192", "lower max_model_len from 131,072 to 8,192"),
        (_advice(flag=None), "max_num_seqs 16 -> 24", "raise max_num_seqs from 16 to 24"),
        (_advice(current=0, recommended=1, flag="--enable-prefix-caching", knob="enable_prefix_caching"),
         "--enable-prefix-caching 0 -> 1", "raise enable_prefix_caching from 0 to 1"),
        (_advice(recommended=None, flag="--no-enable-prefix-caching"),
         "--no-enable-prefix-caching", "The sequence cap throttles a server that has cache to spare"),
        (_advice(flag="--max-num-seqs 24 --max-num-batched-tokens 4096"),
         "--max-num-seqs 24 --max-num-batched-tokens 4096", "raise max_num_seqs from 16 to 24"),
    ],
)  # fmt: skip
def test_advice_in_few_words(advice: Advice, action: str, headline: str) -> None:
    assert phrases.action(advice) == action
    assert phrases.headline(advice) == headline


@pytest.mark.parametrize(
    ("verdict", "action"),
    [
        ("add_replicas", "4 -> 6 replicas"),
        ("remove_replicas", "4 -> 6 replicas"),
        ("reshard", "replicas 4 -> 6"),
    ],
)
def test_replicas_are_no_flag(verdict: Verdict, action: str) -> None:
    advice = _advice(verdict=verdict, knob="replicas", current=4, recommended=6, flag=None)
    assert phrases.action(advice) == action


@pytest.mark.parametrize(
    ("verdict", "action"), [("run_sweep", "run a sweep"), ("split_workload", "split the workload")]
)
def test_advice_without_a_number_is_its_verdict(verdict: Verdict, action: str) -> None:
    assert phrases.action(_advice(verdict=verdict, recommended=None, flag=None)) == action


@pytest.mark.parametrize(
    ("deployment", "answers"),
    [
        (samples.healthy(), [(".", "none", "within its SLOs; demand-limited")]),
        (samples.no_data(), [("-", "no data", phrases.NOTHING_GIVEN)]),
        (
            samples.cannot_tell(),
            [
                (
                    "?",
                    "cannot tell",
                    "the p99.9 lies above the last bucket (10,000): add a request log (--logs)",
                )
            ],
        ),
    ],
)
def test_a_deployment_without_advice_says_why(
    deployment: DeploymentReport, answers: list[tuple[str, str, str]]
) -> None:
    assert phrases.answers(deployment) == answers


def test_every_open_piece_of_advice_is_an_answer_with_its_own_mark() -> None:
    marks = [(mark, action) for mark, action, _ in phrases.answers(samples.planned())]
    assert marks == [("^", "--max-model-len 12288"), ("!", "--max-num-seqs 256 -> 40")]
    assert [action for _, action, _ in phrases.answers(samples.throttled())] == ["--max-num-seqs 16 -> 24"]


@pytest.mark.parametrize(
    ("prediction", "text"),
    [
        (Prediction("ttft_p99", 1.84, 0.5, 0.7, "seconds"), "TTFT p99 1.84 s -> 0.5-0.7 s"),
        (Prediction("kv_usage_p95", None, 0.06, 0.06, "ratio"), "KV usage p95 -> 6 %"),
        (Prediction("slo_attainment", 0.93, 0.99, None, "ratio"), "SLO attainment 93 % -> at least 99 %"),
    ],
)
def test_a_prediction_as_now_and_then(prediction: Prediction, text: str) -> None:
    assert phrases.expectation(prediction) == text


def test_the_nearest_rule_comes_first_and_says_what_is_missing() -> None:
    far = NotFired("a", "kv_usage_p95 > 90%", 0.04, 0.95)
    near = NotFired("b", "preempted_share > 0.5%", 0.004, -0.2)
    word = NotFired("c", "binding_ceiling == memory", "latency", None)
    assert phrases.nearest((far, word, near)) == [near, far, word]
    assert phrases.shortfall(near) == "fires when preempted_share > 0.5%; it is 0.4 %"
    assert phrases.shortfall(word) == "fires when binding_ceiling == memory; it is latency"


def test_lacks_are_gathered_by_reason_the_most_wanted_first() -> None:
    one = Undetermined("a", (Need("ttft_p99", "no histogram"), Need("running_p95", "no gauge")))
    two = Undetermined("b", (Need("waiting_p95", "no gauge"), Need("running_p95", "no gauge")))
    assert phrases.needs((one, two)) == [
        phrases.Lack("no gauge", ("running_p95", "waiting_p95"), 2),
        phrases.Lack("no histogram", ("ttft_p99",), 1),
    ]


def test_the_source_that_most_rules_wait_for_is_named_first_and_no_fact() -> None:
    """Three rules want the log and two the metrics; the fact that five want cannot be had by connecting anything."""
    odd = Need("replicas_left_ratio", "no engine metrics over time: give --prometheus")
    lengths = Need("declared_tokens_p999", "no request log shows lengths (--logs)")
    bounded = Need("kv_usage_p95", "only known to lie between 0.3 and 0.9")
    open_ = [(odd, bounded), (odd, bounded), (lengths, bounded), (lengths, bounded), (lengths, bounded)]
    undetermined = tuple(Undetermined(f"a/{place}", needs) for place, needs in enumerate(open_))
    assert [lack.reason for lack in phrases.needs(undetermined)] == [lengths.reason, odd.reason, bounded.reason]
    judged = replace(samples.cannot_tell(), judgement=Judgement("cannot_tell", undetermined=undetermined))
    assert phrases.answers(judged) == [("?", "cannot tell", lengths.reason)]


def test_of_sources_that_tell_equally_much_metrics_come_before_a_log() -> None:
    both = Need("demand", "arrivals are not known: give a request log (--logs) or engine metrics (--prometheus)")
    log, metrics, cap = Need("a", "--logs"), Need("b", "--prometheus"), Need("c", "give --set max_num_seqs=N")
    undetermined = (Undetermined("x", (log, metrics, cap)), Undetermined("y", (both,)))
    assert [lack.reason for lack in phrases.needs(undetermined)] == ["--prometheus", both.reason, "--logs", cap.reason]


def test_what_was_found_is_said_although_not_all_can_be_told() -> None:
    finding = Finding("capacity/throughput-flat", "Beyond 4 sequences throughput no longer rises", ())
    open_ = (Undetermined("a", (Need("running_p95", "give --prometheus"),)),)
    judged = replace(samples.cannot_tell(), judgement=Judgement("cannot_tell", findings=(finding,), undetermined=open_))
    known = "Beyond 4 sequences throughput no longer rises. For more: give --prometheus"
    assert phrases.answers(judged) == [("?", "cannot tell", known)]


@pytest.mark.parametrize(
    ("slo", "text"),
    [
        (Slo(tpot_seconds=0.04, ttft_seconds=2.0), "SLO p99: 40 ms a token, first token 2 s"),
        (Slo(itl_seconds=0.2, percentile=99.9), "SLO p99.9: gap 200 ms"),
        (Slo(), "no SLO given"),
    ],
)
def test_objectives(slo: Slo, text: str) -> None:
    assert phrases.objectives(slo) == text


def test_the_window_in_plain_words() -> None:
    assert phrases.span_of_time(samples.WEEK) == "7 d to Sun 29 Nov 2026 16:00 UTC"


def test_an_epoch_border_outside_the_window_is_not_told() -> None:
    absurd = replace(samples.throttled().evidence.engines[0], epoch_start=1e300)
    evidence = replace(samples.throttled().evidence, engines=(absurd,))
    assert phrases.traffic(evidence) == "412,310 requests in the log; metrics of 1 engine"


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (EvidenceLine("kv_usage_p95", 0.041, "ratio", "kv_usage_p95 < 60%"), "kv_usage_p95 < 60%: 4.1 %"),
        (
            EvidenceLine("latency_ceiling", None, "sequences", "latency_ceiling is unknown"),
            "latency_ceiling is unknown",
        ),
    ],
)
def test_a_ground_is_its_condition_and_the_value(line: EvidenceLine, text: str) -> None:
    assert phrases.ground(line) == text


def test_an_option_tells_what_is_known() -> None:
    bounds_only = {"replicas": 2, "kv_pool_tokens": None, "kv_pool_tokens_low": 474_608, "note": "to be tried"}
    assert phrases.option(bounds_only) == "replicas 2, kv pool tokens low 474,608, note to be tried"
