"""An evaluation taken apart and packed must come back as it was."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from advisor.domain.errors import SourceError
from advisor.outlets import phrases
from advisor.outlets.restore import restore
from advisor.outlets.structured import render_json
from advisor.service.shown import Shown
from advisor.web import pages
from tests.unit.outlets import samples
from tests.unit.web import fleets

DOCUMENT = render_json(fleets.fleet())
WHOLE = restore(DOCUMENT)


def test_every_deployment_comes_back_whole() -> None:
    shown = Shown(samples.NOW, DOCUMENT)
    assert [d.judgement for d in shown.deployments()] == [d.judgement for d in WHOLE.deployments]
    assert [dict(d.facts) for d in shown.deployments()] == [dict(d.facts) for d in WHOLE.deployments]
    assert [d.pictures for d in shown.deployments()] == [d.pictures for d in WHOLE.deployments]
    one = shown.deployment("chat-70b")
    assert one is not None
    assert one.evidence.flags == WHOLE.deployments[0].evidence.flags
    assert shown.deployment("nobody") is None


def test_the_outline_answers_as_the_whole_does() -> None:
    outline = Shown(samples.NOW, DOCUMENT).outline
    assert (outline.generated_at, outline.window, outline.sources) == (WHOLE.generated_at, WHOLE.window, WHOLE.sources)
    assert [phrases.answers(d) for d in outline.deployments] == [phrases.answers(d) for d in WHOLE.deployments]
    assert pages.counts(outline) == pages.counts(WHOLE)


def test_whatever_way_the_document_is_written() -> None:
    compact = json.dumps(json.loads(DOCUMENT), separators=(",", ":"))
    for shown in (Shown(samples.NOW, compact), Shown(samples.NOW, DOCUMENT)):
        assert [d.evidence.name for d in shown.deployments()] == [d.evidence.name for d in WHOLE.deployments]
    assert Shown(samples.NOW, render_json(samples.report())).outline.deployments == ()


@pytest.mark.parametrize("name", [*fleets.HOSTILE_NAMES, '"deployments": [', "]}]}", "\\"])
def test_a_name_cannot_pass_for_the_end_of_the_list(name: str) -> None:
    source = replace(WHOLE.sources[0], detail=name)
    report = replace(samples.report(samples.hostile(name), samples.throttled()), sources=(source,))
    kept = Shown(samples.NOW, render_json(report))
    assert [d.evidence.name for d in kept.deployments()] == [
        d.evidence.name for d in restore(render_json(report)).deployments
    ]


@pytest.mark.parametrize("broken", ["", "{}", '{"deployments": [', DOCUMENT[:-20], DOCUMENT.replace('"1"', '"2"', 1)])
def test_a_document_of_another_version_is_refused(broken: str) -> None:
    with pytest.raises(SourceError, match="no report of this version"):
        Shown(samples.NOW, broken)
