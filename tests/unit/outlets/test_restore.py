"""A report that was kept as its document and comes back."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from advisor.domain.errors import SourceError
from advisor.domain.fact import FactSheet, measured
from advisor.domain.pictures import CurvePicture, CurvePoint, LengthPicture, Pictures
from advisor.domain.report import Report
from advisor.outlets.derivations import story
from advisor.outlets.markdown import render_markdown
from advisor.outlets.restore import restore
from advisor.outlets.structured import render_json
from advisor.outlets.terminal import render_table
from tests.unit.outlets.samples import HOSTILE_NAMES, fleet, hostile, infinite, report, throttled

PICTURES = Pictures(
    LengthPicture((10.0, 100.0, 1_000.0), (0.75, 0.25), 412_310, 950.0, 2_048.0, None, "request log"),
    CurvePicture((CurvePoint(1.0, 0.012, 9.0),), (0.011, 0.0003), 0.04, 445.0, None, 16.0, 24.0, "request log"),
)


def kept(original: Report) -> Report:
    return restore(render_json(original))


def test_every_format_for_people_reads_the_same_from_the_kept_report() -> None:
    # Two sources that dispute a flag are told in the sources of a report; the document has no other place for them.
    undisputed = [replace(d, evidence=replace(d.evidence, disagreements=())) for d in fleet().deployments]
    original = replace(fleet(), deployments=tuple(undisputed))
    assert render_table(kept(original), verbose=True) == render_table(original, verbose=True)
    assert render_markdown(kept(original)) == render_markdown(original)


@pytest.mark.parametrize(
    "original", [fleet(), report(infinite()), report(), *(report(hostile(n)) for n in HOSTILE_NAMES)]
)
def test_keeping_it_again_changes_nothing(original: Report) -> None:
    assert render_json(kept(original)) == render_json(original)


def test_pictures_are_kept() -> None:
    drawn = report(replace(throttled(), pictures=PICTURES))
    assert kept(drawn).deployments[0].pictures == PICTURES
    assert json.loads(render_json(drawn))["deployments"][0]["pictures"]["lengths"]["shares"] == [0.75, 0.25]


def test_what_is_not_believed_is_kept_with_its_source() -> None:
    rival = measured(8.0, source="a dashboard")
    facts = FactSheet({**throttled().facts, "running_p95": measured(16.0, source="gauges").instead_of(rival)})
    (restored,) = kept(report(replace(throttled(), facts=facts))).deployments
    assert restored.facts["running_p95"].rivals == (rival,)
    assert story("running_p95", restored.facts["running_p95"]) == "gauges; not believed: 8 (a dashboard)"


def test_a_document_from_before_pictures_and_titles_is_read() -> None:
    document = json.loads(render_json(report(throttled())))
    for part in document["deployments"]:
        del part["pictures"], part["observed"]
        for fact in part["facts"].values():
            del fact["rivals"]
        for advice in part["advice"]:
            del advice["title"]
    (restored,) = restore(json.dumps(document)).deployments
    assert restored.pictures == Pictures()
    assert restored.judgement.advice[0].title == "concurrency/cap-pinned-cache-free"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "Invalid JSON"),
        ("[]", "Input should be an object"),
        ('{"schema_version": "2"}', "schema_version"),
        (render_json(report()).replace("2026-11-29T16", "yesterday"), "yesterday"),
    ],
)
def test_what_is_no_report_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(SourceError, match=f"no report of this version of advisor.*{complaint}"):
        restore(text)
