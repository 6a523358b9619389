from __future__ import annotations

from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.domain.advice import Advice
from advisor.domain.catalogue import CATALOGUE
from advisor.domain.fact import Fact, FactSheet, measured
from advisor.domain.report import DeploymentReport
from advisor.outlets.contract import AdviceJson, DeploymentJson, FactJson
from advisor.outlets.document import document
from tests.unit.outlets import samples

FACT_KEYS = ["value", "unit", "low", "high", "n", "window", "source", "basis", "unknown", "rivals"]
DEPLOYMENT_KEYS = [
    *("name", "engine", "engine_version", "replicas", "workload", "status", "slo", "flags", "facts", "advice"),
    *("findings", "undetermined", "not_fired", "observed", "pictures", "canaries"),
]
ADVICE_KEYS = [
    *("id", "rule", "state", "verdict", "knob", "current", "recommended", "flag", "severity", "confidence"),
    *("confidence_basis", "reason", "evidence", "prediction", "verify", "undo", "options", "title", "trial"),
]


def _deployment(deployment: DeploymentReport) -> DeploymentJson:
    return document(samples.report(deployment)).deployments[0]


def _fact(name: str, fact: Fact) -> FactJson:
    base = samples.healthy()
    return _deployment(replace(base, facts=FactSheet({name: fact}))).facts[name]


def test_the_keys_are_the_contracts() -> None:
    dump = document(samples.report(samples.throttled())).model_dump()
    assert list(dump) == ["schema_version", "generated_at", "window", "sources", "deployments"]
    deployment = dump["deployments"][0]
    assert list(deployment) == DEPLOYMENT_KEYS
    assert [list(advice) for advice in deployment["advice"]] == [ADVICE_KEYS, ADVICE_KEYS]
    assert list(deployment["slo"]) == ["tpot_seconds", "itl_seconds", "ttft_seconds", "percentile"]
    assert deployment["flags"]["max_num_seqs"] == {
        "value": 16,
        "source": "server_info",
        "since": "2026-11-24T09:12:00Z",
    }
    assert deployment["undetermined"] == [
        {
            "rule": "latency/chunk-stalls-decode",
            "needs": [
                {
                    "fact": "slo_attainment_tpot",
                    "reason": "no TPOT edge lies at 40 ms: a request log or finer buckets tell it",
                }
            ],
        }
    ]
    assert deployment["not_fired"][0] == {
        "rule": "concurrency/cap-invites-churn",
        "closest": {"condition": "preempted_share > 0.5%", "value": 0.0, "distance": 1.0, "low": None, "high": None},
    }


def test_every_fact_is_there_in_the_catalogues_order() -> None:
    facts = _deployment(samples.no_data()).model_dump()["facts"]
    assert list(facts) == list(CATALOGUE)
    assert all(list(fact) == FACT_KEYS for fact in facts.values())
    assert all(fact["unknown"] == "nothing that was read tells this" for fact in facts.values())


def test_times_are_iso_8601_in_utc() -> None:
    made = document(samples.report())
    assert made.generated_at == "2026-11-29T16:00:00Z"
    assert (made.window.start, made.window.end) == ("2026-11-22T16:00:00Z", "2026-11-29T16:00:00Z")


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("recommended_max_model_len", 12_288.0, int),
        ("memory_ceiling_guaranteed", 47.0, int),
        ("kv_bytes_per_token", 327_680.0, int),
        ("running_p95", 15.4, float),
        ("preempted_share", 0.0, float),
        ("ttft_p99", 2.0, float),
        ("binding_ceiling", "latency", str),
    ],
)
def test_whole_counts_are_integers(name: str, value: float | str, kind: type) -> None:
    told = _fact(name, Fact(value=value, source="-"))
    assert told.value == value
    assert type(told.value) is kind


def test_bounds_are_kept_and_infinity_is_none() -> None:
    assert _fact("latency_ceiling", measured(None, low=16.0, source="gauges")).model_dump() == {
        "value": None,
        "unit": "sequences",
        "low": 16,
        "high": None,
        "n": None,
        "window": None,
        "source": "gauges",
        "basis": "measured",
        "unknown": None,
        "rivals": [],
    }
    assert _fact("itl_p99", measured(None, low=0.1, high=float("inf"), source="-")).high is None


def test_what_is_not_believed_stands_beside_it() -> None:
    believed = measured(16.0, source="gauges", n=900).instead_of(measured(8.0, source="dashboard"))
    told = _fact("running_p95", believed).model_dump()
    assert (told["value"], told["source"]) == (16, "gauges")
    assert told["rivals"] == [{"value": 8, "low": None, "high": None, "source": "dashboard", "basis": "measured"}]


def test_a_fact_with_nothing_finite_is_unknown() -> None:
    told = _fact("ttft_p99", measured(float("nan"), source="-"))
    assert (told.value, told.unknown) == (None, "it came out as no finite number")


def test_advice_carries_what_the_domain_says() -> None:
    told = _deployment(samples.throttled()).advice[0]
    assert (told.current, told.recommended, told.flag) == (16, 24, "--max-num-seqs 24")
    assert told.evidence[3].model_dump() == {
        "fact": "running_p95",
        "value": 16,
        "unit": "requests",
        "condition": "running_p95 < 0.8 budget_ceiling",
        "bound": None,
    }
    assert told.prediction[0].model_dump() == {
        "metric": "ttft_p99",
        "now": 1.84,
        "low": 0.5,
        "high": 0.7,
        "unit": "seconds",
    }
    assert _deployment(samples.short_of_replicas()).advice[0].options == [
        {"replicas": 6, "tensor_parallel_size": 1, "kv_pool_tokens": 587_158}
    ]


def test_every_field_of_advice_is_told() -> None:
    assert {field.name for field in fields(Advice)} == set(AdviceJson.model_fields)


def test_an_absurd_process_start_is_no_date() -> None:
    assert _deployment(samples.infinite()).flags["x"].since is None


@given(st.floats() | st.text(st.characters(codec=None, exclude_categories=()), max_size=20))
def test_no_value_breaks_the_document(value: float | str) -> None:
    told = _fact("ttft_p99", Fact(value=value, source="-"))
    assert (told.value is None) == (told.unknown is not None)
