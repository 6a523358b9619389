from __future__ import annotations

import json

import pytest
from ruamel.yaml import YAML
from syrupy.assertion import SnapshotAssertion

from advisor.domain.report import Report
from advisor.outlets.document import document
from advisor.outlets.structured import render_json, render_yaml
from tests.unit.outlets import samples

pytestmark = pytest.mark.slow

reports = pytest.mark.parametrize(
    "report",
    [
        samples.report(samples.throttled()),
        samples.report(),
        samples.report(samples.infinite()),
        samples.report(*map(samples.hostile, samples.HOSTILE_NAMES)),
    ],
    ids=["throttled", "none", "infinite", "hostile"],
)


@reports
def test_json_is_ascii_and_says_what_the_document_says(report: Report) -> None:
    text = render_json(report)
    assert text.isascii()
    assert "\x1b" not in text
    assert json.loads(text) == document(report).model_dump()


@reports
def test_yaml_says_the_same_as_json(report: Report) -> None:
    text = render_yaml(report)
    assert text.isascii()
    assert "\x1b" not in text
    assert YAML(typ="safe", pure=True).load(text) == json.loads(render_json(report))


def test_json_keeps_names_exactly() -> None:
    names = [
        d["name"]
        for d in json.loads(render_json(samples.report(*map(samples.hostile, samples.HOSTILE_NAMES))))["deployments"]
    ]
    assert names == [name.replace("\ud800", "\\ud800") for name in samples.HOSTILE_NAMES]


def test_json_of_the_planned_deployment(snapshot: SnapshotAssertion) -> None:
    assert render_json(samples.report(samples.planned())) == snapshot
