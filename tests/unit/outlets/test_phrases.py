from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.domain.advice import (
    Advice,
    EvidenceLine,
    Finding,
    Judgement,
    Need,
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


@pytest.mark.parametrize(
    ("now", "low", "high", "told"),
    [
        (1.84, 0.5, 0.7, True),
        (1.84, None, 1.2, True),
        (1.84, None, 1.84, False),  # at most what it is
        (0.0, 0.0, 0.0, False),
        (None, None, 1.2, True),
    ],
)
def test_only_what_can_turn_out_wrong_is_expected(
    now: float | None, low: float | None, high: float, *, told: bool
) -> None:
    (seats, *_) = samples.throttled().judgement.advice
    advice = replace(seats, prediction=(Prediction("ttft_p99", now, low, high, "seconds"),))
    assert bool(phrases.expectations(advice)) is told


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
        (
            EvidenceLine("slo_attainment", 0.944, "ratio", "slo_attainment < slo_target", "high"),
            "slo_attainment < slo_target: at most 94.4 %",
        ),
        (
            EvidenceLine("demand_over_capacity", 1.77, "ratio", "demand_over_capacity > 100 %"),
            "demand_over_capacity > 100 %: 1.77x",
        ),
    ],
)
def test_a_ground_is_its_condition_and_the_value(line: EvidenceLine, text: str) -> None:
    assert phrases.ground(line) == text


def test_an_option_tells_what_is_known() -> None:
    bounds_only = {"replicas": 2, "kv_pool_tokens": None, "kv_pool_tokens_low": 474_608, "note": "to be tried"}
    assert phrases.option(bounds_only) == "replicas 2, kv pool tokens low 474,608, note to be tried"


def test_an_option_of_unknown_size_is_left_out() -> None:
    (advice,) = samples.short_of_replicas().judgement.advice
    sharded = {"replicas": 4, "tensor_parallel_size": 2, "note": "to be tried", "unknown": "give --set"}
    both = replace(advice, options=(*advice.options, sharded))
    assert phrases.options(both) == ["replicas 6, tensor parallel size 1, kv pool tokens 587,158"]


def test_what_the_reader_said_is_told_as_he_said_it() -> None:
    assert (phrases.told_by("command_line"), phrases.told_by("metrics")) == ("--set", "metrics")
