"""The advice of one rule: value, flag, prediction, confidence, identity, and when there is none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from advisor.domain.advice import Advice, Prediction, Undetermined
from advisor.domain.evidence import CounterWindows, EngineSeries, Evidence, Samples, as_floats
from advisor.domain.fact import Fact, FactSheet, computed
from advisor.rulebook.composer import Refusal, compose
from advisor.rulebook.schema import Rule
from tests.unit.rulebook.samples import RAISE, evidence, fact, rule, sheet

PINNED = ("time_at_sequence_cap >= 5 %", "kv_usage_p95 < 60 %")
SEEN: dict[str, Any] = {"time_at_sequence_cap": 0.17, "kv_usage_p95": 0.04, "running_p95": 16}


def advised(one: Rule, facts: FactSheet, of: Evidence | None = None) -> Advice:
    found = compose(one, of or evidence(), facts, ())
    assert isinstance(found, Advice)
    return found


def refused(one: Rule, facts: FactSheet, of: Evidence | None = None) -> str:
    found = compose(one, of or evidence(), facts, ())
    assert isinstance(found, Refusal)
    return found.reason


def test_a_flag_is_ready_to_copy_and_to_undo() -> None:
    found = advised(rule(*PINNED, advise=RAISE), sheet(**SEEN, max_num_seqs=16, next_max_num_seqs=24))
    assert (found.current, found.recommended) == (16, 24)
    assert (found.flag, found.undo) == ("--max-num-seqs 24", "--max-num-seqs 16")
    assert found.state == "queued"


def test_without_a_present_value_the_rule_says_how_to_undo() -> None:
    one = rule(*PINNED, advise=RAISE, undo="Leave {next_max_num_seqs} out.")
    found = advised(one, sheet(**SEEN, next_max_num_seqs=24))
    assert (found.current, found.undo) == (None, "Leave 24 out.")


@pytest.mark.parametrize(
    ("engine", "following", "named"),
    [
        ("vllm", 24, "Look. Its next step here is --max-num-seqs 24."),
        ("sglang", 24, "Look. Its next step here is --max-running-requests 24."),
        ("tgi", 24, "Look."),
        ("vllm", 16, "Look."),
        ("vllm", None, "Look."),
    ],
)
def test_what_is_looked_into_names_the_step_that_it_may_end_in(engine: str, following: int | None, named: str) -> None:
    one = rule(*PINNED, advise={"verdict": "investigate", "step": "max_num_seqs"}, reason="Look.")
    known = {"max_num_seqs": 16} | ({} if following is None else {"next_max_num_seqs": following})
    found = advised(one, sheet(**SEEN, **known), replace(evidence(), engine=engine))
    assert (found.reason, found.flag, found.recommended) == (named, None, None)


# Of 100, a tenth is 10: 109 and 91 are noise, 110 and 90 are changes.
@pytest.mark.parametrize(
    ("value", "change"), [(100, False), (109, False), (91, False), (110, True), (90, True), (40, True)]
)
def test_a_change_under_ten_percent_is_none(value: float, *, change: bool) -> None:
    facts = sheet(**SEEN, max_num_seqs=100, next_max_num_seqs=value)
    found = compose(rule(*PINNED, advise=RAISE), evidence(), facts, ())
    assert isinstance(found, Advice) is change
    if isinstance(found, Refusal):
        assert found.reason == f"100 -> {value} is a change of under 10 %"


def test_a_limit_that_turns_requests_away_is_raised_by_whatever_it_takes() -> None:
    limit = {"verdict": "change_flag", "knob": "max_model_len", "to": "recommended_max_model_len"}
    one = rule("refused_share_now > 0.1 %", advise=limit)
    raised = advised(one, sheet(refused_share_now=0.05, max_model_len=12_288, recommended_max_model_len=13_312))
    assert raised.flag == "--max-model-len 13312"
    lowered = sheet(refused_share_now=0.05, max_model_len=13_312, recommended_max_model_len=12_288)
    assert refused(one, lowered) == "13,312 -> 12,288 is a change of under 10 %"


def test_what_the_engine_refuses_at_start_is_not_advised() -> None:
    facts = sheet(**SEEN, max_num_seqs=16, next_max_num_seqs=24)
    reason = refused(rule(*PINNED, advise=RAISE), facts, evidence({"max_num_batched_tokens": 20, "max_num_seqs": 16}))
    assert reason == "the engine would refuse to start: max_num_seqs 24 exceeds max_num_batched_tokens 20"


def test_a_collision_that_is_there_already_does_not_block_another_change() -> None:
    facts = sheet(**SEEN, max_num_seqs=16, next_max_num_seqs=24, kv_pool_tokens=100_000)
    of = evidence({"max_num_seqs": 16, "max_model_len": 131_072})
    assert advised(rule(*PINNED, advise=RAISE), facts, of).recommended == 24


def test_a_limit_beyond_the_pool_is_refused() -> None:
    limit = {"verdict": "change_flag", "knob": "max_model_len", "to": "recommended_max_model_len"}
    facts = sheet(refused_share_now=0.05, max_model_len=4_096, recommended_max_model_len=9_216, kv_pool_tokens=8_000)
    reason = refused(rule("refused_share_now > 0.1 %", advise=limit), facts, evidence({"max_model_len": 4_096}))
    assert reason == "the engine would refuse to start: max_model_len 9,216 exceeds the KV pool 8,000"


@pytest.mark.parametrize(("left", "taken"), [((21_712, 30_314), False), ((33_000, 33_500), True)])
def test_a_budget_must_leave_a_cache_that_holds_the_limit(left: tuple[float, float], *, taken: bool) -> None:
    budget = {"verdict": "change_flag", "knob": "max_num_batched_tokens", "to": "next_max_num_batched_tokens"}
    of = evidence({"max_model_len": 32_768, "max_num_batched_tokens": 2_048})
    given = {"max_num_batched_tokens": 2_048, "next_max_num_batched_tokens": 8_192, "kv_pool_tokens": 34_000}
    facts = sheet(**SEEN, **given, kv_pool_tokens_at_next_budget=left)
    found = compose(rule(*PINNED, advise=budget), of, facts, ())
    assert isinstance(found, Advice) is taken
    if isinstance(found, Refusal):
        assert found.reason == "the engine would refuse to start: max_model_len 32,768 exceeds the KV pool 21,712"


@pytest.mark.parametrize("value", [(12, 24), (12, None)])
def test_a_value_that_is_only_bounded_leaves_the_rule_undetermined(value: tuple[float, float | None]) -> None:
    found = compose(rule(*PINNED, advise=RAISE), evidence(), sheet(**SEEN, next_max_num_seqs=value), ())
    assert isinstance(found, Undetermined)
    (need,) = found.needs
    assert need.fact == "next_max_num_seqs"
    told = "lie between 12 and 24" if value[1] else "be at least 12"
    assert need.reason == f"only known to {told} (test): not enough to decide"


def test_a_value_that_is_unknown_leaves_the_rule_undetermined_with_its_reason() -> None:
    found = compose(
        rule(*PINNED, advise=RAISE), evidence(), sheet(**SEEN, next_max_num_seqs=Fact(unknown="run a sweep")), ()
    )
    assert isinstance(found, Undetermined)
    assert found.needs[0].reason == "run a sweep"


def test_a_fraction_of_a_sequence_is_not_advised() -> None:
    found = advised(rule(*PINNED, advise=RAISE), sheet(**SEEN, max_num_seqs=16, next_max_num_seqs=24.9))
    assert (found.recommended, found.flag) == (24, "--max-num-seqs 24")


def test_less_than_one_sequence_is_no_value() -> None:
    assert "no value for a flag" in refused(rule(*PINNED, advise=RAISE), sheet(**SEEN, next_max_num_seqs=0.4))


def test_an_engine_whose_flags_are_not_known_gets_no_flag() -> None:
    facts = sheet(**SEEN, max_num_seqs=16, next_max_num_seqs=24)
    found = advised(rule(*PINNED, advise=RAISE), facts, evidence(engine="triton"))
    assert (found.recommended, found.flag) == (24, None)


MORE = {"verdict": "add_replicas", "knob": "replicas", "to": "recommended_replicas"}


@pytest.mark.parametrize(
    ("replicas", "recommended", "advice"),
    [
        (4, 6, 6),
        (4, 4, 5),  # the rule held, so four are too few whatever the arithmetic rounds to
        (4, None, 5),
        (4, (7, 9), 7),  # at least seven
        (4, 6.2, 7),
        (None, 6, 6),
        (None, None, None),  # nothing is made up
    ],
)
def test_more_replicas_are_more_than_there_are(
    replicas: float | None, recommended: float | tuple[float, float] | None, advice: float | None
) -> None:
    stated = {"replicas": replicas, "recommended_replicas": recommended, "running_p95": 16}
    facts = sheet(**{name: value for name, value in stated.items() if value is not None})
    found = compose(rule("running_p95 >= 1", advise=MORE), evidence(), facts, ({"replicas": 6},))
    assert isinstance(found, Advice) is (advice is not None)
    if isinstance(found, Advice):
        assert (found.recommended, found.flag, found.options) == (advice, None, ({"replicas": 6},))


def predicted(facts: FactSheet, **expect: str) -> tuple[Prediction, ...]:
    return advised(rule("running_p95 >= 1", advise=RAISE, expect=[expect]), facts).prediction


# 16 -> 24 is a factor of 1.5.
@pytest.mark.parametrize(
    ("expect", "low", "high"),
    [
        ({"metric": "kv_usage_p95", "scales": "with_knob"}, 0.04, 0.06),
        ({"metric": "waiting_p95", "scales": "against_knob"}, 20, 30),
        ({"metric": "waiting_p95", "scales": "down"}, None, 30),
        ({"metric": "waiting_p95", "scales": "to_zero"}, 0, 3),
        ({"metric": "itl_mean", "at_least": "itl_mean", "at_most": "itl_at_next_cap"}, 0.018, 0.021),
        ({"metric": "slo_attainment_tpot", "at_least": "slo_target"}, 0.99, None),
    ],
)
def test_a_prediction_is_a_range(expect: dict[str, str], low: float | None, high: float | None) -> None:
    facts = {"waiting_p95": 30, "itl_mean": 0.018, "itl_at_next_cap": 0.021, "slo_target": 0.99}
    (found,) = predicted(sheet(**SEEN, **facts, max_num_seqs=16, next_max_num_seqs=24), **expect)
    assert found.low == pytest.approx(low)
    assert found.high == pytest.approx(high)


def test_a_prediction_is_never_inside_out() -> None:
    facts = sheet(**SEEN, itl_mean=0.021, itl_at_next_cap=0.018, max_num_seqs=16, next_max_num_seqs=24)
    (found,) = predicted(facts, metric="itl_mean", at_least="itl_mean", at_most="itl_at_next_cap")
    assert (found.low, found.high) == (0.018, 0.021)


@pytest.mark.parametrize("scales", ["with_knob", "against_knob", "down", "to_zero"])
def test_nothing_is_predicted_of_a_metric_that_is_not_known(scales: str) -> None:
    facts = sheet(**SEEN, max_num_seqs=16, next_max_num_seqs=24)
    assert predicted(facts, metric="waiting_p95", scales=scales) == ()


@pytest.mark.parametrize(
    ("usage", "confidence", "told"),
    [
        (Fact(value=0.04, n=10_080, source="s"), "high", "the smallest sample is 10,080"),
        (Fact(value=0.04, n=499, source="s"), "medium", "the smallest sample behind it is 499"),
        (computed(0.04, source="s"), "medium", "nothing was measured on this deployment"),
        (Fact(value=0.04, source="s", basis="assumed"), "low", "not measured here: kv_usage_p95"),
    ],
)
def test_confidence_follows_the_evidence(usage: Fact, confidence: str, told: str) -> None:
    found = advised(rule("kv_usage_p95 < 60 %", advise=RAISE), sheet(kv_usage_p95=usage, next_max_num_seqs=24))
    assert found.confidence == confidence
    assert told in found.confidence_basis


def test_arithmetic_on_what_was_measured_is_not_said_to_be_of_nothing() -> None:
    nothing = as_floats([])
    engine = EngineSeries(
        "a:8000", "0", 0.0, Samples(nothing, nothing, nothing, None), CounterWindows(nothing, nothing, {}), {}, {}
    )
    known = sheet(kv_usage_p95=computed(0.04, source="s"), next_max_num_seqs=24)
    found = advised(rule("kv_usage_p95 < 60 %", advise=RAISE), known, evidence(engines=(engine,)))
    assert (found.confidence, found.confidence_basis) == (
        "medium",
        "arithmetic on its settings and on what was measured; no sample decides it",
    )


def test_a_cap_that_is_only_inferred_lowers_confidence() -> None:
    inferred = Fact(value=16, source="inferred", basis="assumed")
    known = sheet(kv_usage_p95=fact(0.04, n=10_000), next_max_num_seqs=24, max_num_seqs=inferred)
    found = advised(rule("kv_usage_p95 < 60 %", advise=RAISE), known)
    assert (found.confidence, found.confidence_basis) == ("low", "stated or assumed, not measured here: max_num_seqs")


def test_replicas_of_which_only_the_least_is_known_say_so() -> None:
    add = {"verdict": "add_replicas", "knob": "replicas", "to": "recommended_replicas"}
    one = rule("kv_usage_p95 < 60 %", advise=add, reason="Too few.")
    some = advised(one, sheet(kv_usage_p95=0.04, replicas=2, recommended_replicas=(3, None)))
    assert (some.recommended, some.reason) == (3, "Too few. Replicas needed: at least 3 (test).")
    known = advised(one, sheet(kv_usage_p95=0.04, replicas=2, recommended_replicas=3))
    assert (known.recommended, known.reason) == (3, "Too few.")


@pytest.mark.parametrize(
    ("needed", "reason"),
    [
        (2, "it asks for 1.77x"),  # 1.77 of one replica are two
        (3, "it asks for 1.77x. Replicas needed: 3 (test)."),
    ],
)
def test_more_replicas_than_the_reason_makes_of_demand_are_explained(needed: int, reason: str) -> None:
    add = {"verdict": "add_replicas", "knob": "replicas", "to": "recommended_replicas"}
    one = rule("kv_usage_p95 < 60 %", advise=add, reason="it asks for {demand_over_capacity}")
    stated = sheet(kv_usage_p95=0.04, replicas=1, recommended_replicas=needed, demand_over_capacity=1.77)
    assert advised(one, stated).reason == reason


def test_a_lone_replica_is_compared_with_itself() -> None:
    told = "Restart one replica with it first and compare it with the others: time at the cap falls."
    one = rule("kv_usage_p95 < 60 %", advise=RAISE, verify=told)
    known = sheet(kv_usage_p95=0.04, next_max_num_seqs=24, replicas=2)
    assert advised(one, known).verify == told
    alone = sheet(kv_usage_p95=0.04, next_max_num_seqs=24, replicas=1)
    assert advised(one, alone).verify == (
        "Restart it with that and compare the same hours before and after: time at the cap falls."
    )


def test_what_was_left_open_lowers_confidence() -> None:
    free, either = "kv_usage_p95 < 60 %", ["running_p95 < 0.8 budget_ceiling", "budget_ceiling is unknown"]
    facts = sheet(kv_usage_p95=fact(0.04, n=10_000), running_p95=fact(16, n=10_000), next_max_num_seqs=24)
    found = advised(rule(free, {"any": either}, advise=RAISE), facts)
    assert (found.confidence, found.confidence_basis) == ("medium", "not known: budget_ceiling")


def test_what_others_decide_leaves_nothing_open() -> None:
    knee = {"not": {"all": ["budget_ceiling is known", "running_p95 >= budget_ceiling"]}}
    facts = sheet(kv_usage_p95=fact(0.04, n=10_000), running_p95=fact(16, n=10_000), next_max_num_seqs=24)
    assert advised(rule("kv_usage_p95 < 60 %", knee, advise=RAISE), facts).confidence == "high"


def test_the_id_names_deployment_rule_and_value() -> None:
    one, another = rule(*PINNED, advise=RAISE), rule(*PINNED, advise=RAISE, id="area/other")

    def identity(of: Rule, value: float, usage: float = 0.04) -> str:
        return advised(of, sheet(**SEEN | {"kv_usage_p95": usage}, next_max_num_seqs=value)).id

    # printf 'chat\0area/name\00024' | sha256sum
    assert identity(one, 24) == identity(one, 24.0, usage=0.05) == "46e14fbfc7"
    assert len({identity(one, 24), identity(one, 25), identity(another, 24)}) == 3
    assert identity(one, 1_048_576) != identity(one, 1_048_577)
