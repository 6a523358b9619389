"""The fleet in one line a deployment."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from advisor.domain.errors import SourceError
from advisor.domain.ports import Delivery
from advisor.outlets.plain import cells
from advisor.outlets.status import read_overview, render_status
from advisor.outlets.structured import render_json
from tests.unit.outlets.samples import HOSTILE_NAMES, NOW, fleet, hostile, report, throttled

FLEET = read_overview(render_json(fleet()))


def test_it_begins_with_how_old_it_is_and_has_one_line_for_each_deployment() -> None:
    lines = render_status(FLEET, NOW + 720, width=120).splitlines()
    assert lines[0].startswith("judged Sun 29 Nov 2026 16:00 UTC, 12 min ago · 7 deployments · prometheus failed")
    assert lines[2].startswith("^ chat-70b   x2  --max-num-seqs 16 -> 24")
    assert "max_num_s…s-1" not in lines[2]
    assert lines[3].startswith("^ chat-new       --max-model-len 12288 +1")
    assert [line[0] for line in lines[2:9]] == ["^", "^", "!", ".", "?", "?", "-"]
    assert lines[-1] == "1 queued (advisor show DEPLOYMENT, advisor history). Nothing was changed."


def test_the_id_to_snooze_with_stands_beside_the_advice() -> None:
    deployment = throttled()
    first, second = deployment.judgement.advice
    advice = (replace(first, id="0a1b2c3d4e-2"), second)
    named = replace(deployment, judgement=replace(deployment.judgement, advice=advice))
    assert "  0a1b2c3d4e-2  " in render_status(read_overview(render_json(report(named))), NOW, width=80)


def test_sources_and_deliveries_that_failed_are_told() -> None:
    failed = Delivery("weekly/2026-W48/C1", "failed", 1, NOW, NOW, NOW, why="channel_not_found: invite the bot")
    text = render_status(FLEET, NOW, failed=[replace(failed, permanent=True)], width=120)
    assert "  prometheus failed: http://prom:9090 answered 401: set prometheus.bearer_token_file" in text
    assert "  not delivered (weekly/2026-W48/C1): channel_not_found: invite the bot" in text


def test_it_says_when_it_is_stale() -> None:
    assert "STALE" not in render_status(FLEET, NOW + 3 * 3600, width=80)
    assert "STALE: nothing was judged for 5 h: is the daemon running?" in render_status(FLEET, NOW + 5 * 3600)
    assert "0 s ago" in render_status(FLEET, NOW - 86_400)  # a clock that was set back is no age


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_no_name_breaks_a_line_or_the_width(name: str) -> None:
    text = render_status(read_overview(render_json(report(hostile(name), throttled()))), NOW, width=80)
    assert all(cells(line) <= 80 for line in text.splitlines())
    assert text.isprintable() or (set(text) - set("\n") and all(c.isprintable() for c in text if c != "\n"))
    assert len(text.splitlines()) == 7


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"generated_at": 1}', "[" * 5_000])
def test_what_is_no_report_is_refused(text: str) -> None:
    with pytest.raises(SourceError, match="no report of this version"):
        read_overview(text)


def test_a_state_that_nobody_knows_is_refused_rather_than_shown() -> None:
    document = json.loads(render_json(report(throttled())))
    document["deployments"][0]["status"] = "splendid"
    with pytest.raises(SourceError, match="no report of this version"):
        read_overview(json.dumps(document))
