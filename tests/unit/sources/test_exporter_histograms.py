"""Host agents' histograms out of answers that a test makes up, and how finely they are asked for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs

import pytest

from advisor.domain.errors import SourceError
from advisor.domain.evidence import Window
from advisor.domain.exported import EDGES
from advisor.sources.exporter_histograms import SERIES_A_MODEL, ExporterReading, read_exporters, step_seconds
from advisor.sources.prometheus import PrometheusOptions
from tests.unit.sources.http_server import Answering, answering, reply

WEEK = Window(0.0, 604_800.0)
DAY = Window(0.0, 86_400.0)
TOTAL = "advisor_request_total_tokens"
Series = tuple[Mapping[str, str], list[float | None]]


def bucket(le: str, *values: float | None, model: str = "m", instance: str = "a") -> Series:
    return {"__name__": f"{TOTAL}_bucket", "model": model, "le": le, "instance": instance}, list(values)


def tokens(*values: float | None, model: str = "m", instance: str = "a") -> Series:
    return {"__name__": f"{TOTAL}_sum", "model": model, "instance": instance}, list(values)


def outcome(name: str, *values: float | None, model: str = "m", instance: str = "a") -> Series:
    return {
        "__name__": "advisor_requests_total",
        "model": model,
        "outcome": name,
        "instance": instance,
    }, list(values)


def answer_with(*series: Series, agents: int = 1, asked: list[str] | None = None) -> Answering:
    """A server where each series has these values hour by hour, None for none, from the beginning of a day on."""

    def answer(handler: BaseHTTPRequestHandler, body: bytes) -> None:
        query = parse_qs(body.decode())["query"][0]
        if asked is not None:
            asked.append(query)
        result: list[dict[str, object]] = [{"metric": {}, "value": [86_400, str(agents)]}] if agents else []
        if not query.startswith("count("):
            result = [
                {"metric": labels, "values": [[3600.0 * n, str(v)] for n, v in enumerate(values) if v is not None]}
                for labels, values in series
            ]
        reply(handler, json.dumps({"status": "success", "data": {"resultType": "x", "result": result}}).encode())

    return answer


def reading(*series: Series, agents: int = 1, asked: list[str] | None = None, **options: object) -> ExporterReading:
    """What is read there over that day."""
    with answering(answer_with(*series, agents=agents, asked=asked)) as url:
        settings = PrometheusOptions.model_validate({"url": url, **options})
        return read_exporters(settings, DAY, lambda model: None if model == "stranger" else "chat")


def test_increases_become_a_histogram_and_slots() -> None:
    told = reading(
        bucket("1024.0", 100, 103, 103, 108),
        bucket("2048.0", 100, 104, 104, 109),
        bucket("+Inf", 100, 104, 104, 110),
        tokens(90_000, 94_000, 94_000, 103_000),
        outcome("served", 100, 104, 104, 109),
        outcome("cut", 0, 0, 0, 1),
    ).lengths["chat"]
    total = told.histograms["total"]
    assert total.edges.tolist() == [1024, 2048]
    assert total.counts.tolist() == [8, 1, 1]
    assert total.mean == 1300.0
    assert told.slot_start.tolist() == [0, 3600, 7200]
    assert told.slots.tolist() == [[3, 1, 0], [0, 0, 0], [5, 0, 1]]
    assert told.outcomes == {"served": 9, "cut": 1, "refused_length": 0, "failed": 0, "without_usage": 0}
    assert told.histograms["declared"].n == 0
    assert told.span_seconds == 3 * 3600


def test_hosts_and_models_of_one_deployment_are_added_up() -> None:
    told = reading(
        *(bucket(le, 5, 5 + n, **whose) for n, whose in HOSTS for le in ("1024.0", "+Inf")),
        *(outcome("served", 5, 5 + n, **whose) for n, whose in HOSTS),
    ).lengths["chat"]
    assert told.histograms["total"].counts.tolist() == [12, 0]
    assert told.slots.tolist() == [[12, 0]]
    assert told.requests == 12


HOSTS: list[tuple[int, dict[str, str]]] = [
    (3, {"instance": "a"}),
    (4, {"instance": "b"}),
    (5, {"instance": "a", "model": "adapter"}),
]


def test_a_host_that_was_not_scraped_for_a_while_loses_nothing() -> None:
    told = reading(
        bucket("+Inf", 5, None, None, 9), bucket("1024.0", 5, None, None, 9), outcome("served", 5, None, None, 9)
    )
    assert told.lengths["chat"].histograms["total"].n == 4
    assert told.lengths["chat"].requests == 4


def test_counters_that_began_again_count_from_zero() -> None:
    told = reading(bucket("1024.0", 5, 8, 2), bucket("+Inf", 5, 8, 2), outcome("served", 5, 8, 2)).lengths["chat"]
    assert told.histograms["total"].n == told.requests == 5


def test_what_nobody_claims_is_counted() -> None:
    told = reading(
        outcome("served", 1, 4, model="stranger"),
        outcome("failed", 0, 4, 5, model="(others)"),
        bucket("+Inf", 1, 4, model="stranger"),
    )
    assert told.lengths == {}
    assert told.strangers == {"stranger": 3, "(others)": 5}


def test_buckets_without_a_number_or_an_end_are_nothing() -> None:
    told = reading(bucket("1024.0", 0, 3), bucket("many", 0, 3), bucket("NaN", 0, 3), outcome("served", 0, 3))
    assert told.lengths["chat"].histograms["total"].n == 0
    assert told.lengths["chat"].histograms["total"].edges.size == EDGES.size


def test_no_agents_are_no_source() -> None:
    told = reading(agents=0)
    assert (told.state, told.lengths, told.queries) == (None, {}, 1)


def test_matchers_of_engines_are_left_out() -> None:
    asked: list[str] = []
    reading(asked=asked, matchers={"job": "vllm", "cluster": 'a"b'})
    assert all('cluster="a\\"b"' in query and "job=" not in query for query in asked)
    assert len(asked) == 2


def test_steps_widen_with_the_number_of_agents() -> None:
    assert SERIES_A_MODEL == 1365
    assert [step_seconds(1, Window(0.0, hours * 3600.0), 5_000_000) for hours in (1, 23, 24)] == [300, 300, 3600]
    # 4 x 1,365 x 169 = 922,740, under a fifth of 5,000,000; 5 are 1,153,425. A week at both ends: 366 x 1,365 x 2.
    assert [step_seconds(agents, WEEK, 5_000_000) for agents in (1, 4, 5, 17, 48, 91, 366)] == [
        3600,
        3600,
        7200,
        14_400,
        43_200,
        86_400,
        604_800,
    ]
    with pytest.raises(SourceError, match="the histograms of 367 models and hosts do not fit into sample_budget 50"):
        step_seconds(367, WEEK, 5_000_000)
