"""Advice over time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.domain.errors import SourceError
from advisor.domain.life import AdviceRecord, Score, TrackRecord
from advisor.outlets.history import render_history, restore_history
from advisor.outlets.plain import cells
from advisor.web.api import History, RecordJson, TrackRecordJson
from tests.unit.outlets.samples import HOSTILE_NAMES, NOW, throttled

SEATS, LENGTH = throttled().judgement.advice
DAY = 86_400.0
VERIFIED = AdviceRecord(
    deployment="chat-70b",
    advice=SEATS,
    state="verified",
    since=NOW + 2 * DAY,
    first_seen=NOW,
    last_seen=NOW,
    applied_at=NOW + DAY,
    scores=(
        Score("ttft_p99", "seconds", 0.5, 0.7, 1.84, 0.61, held=True),
        Score("itl_p99", "seconds", None, 0.05, None, None, held=None, note="no bucket"),
    ),
)
REJECTED = AdviceRecord("code-8b", LENGTH, "rejected", NOW, NOW, NOW, reason="long documents come in December")
TRACK = (TrackRecord("concurrency/cap-pinned-cache-free", 1, 1, 0, 0),)


def test_it_tells_prediction_and_outcome_and_the_newest_change_first() -> None:
    assert render_history([REJECTED, VERIFIED], TRACK).splitlines() == [
        "01 Dec 16:00  chat-70b  verified    --max-num-seqs 16 -> 24 (max_num_seqs-1)",
        "              requests wait behind the cap 17 % of the time while the cache is",
        "              4 % full and both SLOs have slack",
        "              first seen 29 Nov 16:00; rule concurrency/cap-pinned-cache-free;",
        "              applied 30 Nov 16:00",
        "              TTFT p99 1.84 s -> 0.5-0.7 s predicted, 0.61 s measured: held",
        "              ITL p99 -> at most 50 ms predicted: undecided (no bucket)",
        "",
        "29 Nov 16:00  code-8b   rejected    --max-model-len 131072 -> 8192",
        "                                    (max_model_len-1)",
        "              16x above what requests need; bounds the worst case, frees no",
        "              cache on this engine",
        "              first seen 29 Nov 16:00; rule length/max-model-len-oversized",
        "              long documents come in December",
        "",
        "SCORES   advice that was followed, and whether it did what it said",
        "  rule                               followed  held  missed  undecided",
        "  concurrency/cap-pinned-cache-free         1     1       0          0",
    ]


def test_open_advice_tells_what_it_expects() -> None:
    text = render_history([replace(VERIFIED, state="open", applied_at=None, scores=())], ())
    assert "expects TTFT p99 1.84 s -> 0.5-0.7 s" in text
    assert text.endswith("SCORES   no advice was followed yet")


def test_what_the_daemon_tells_over_http_reads_the_same() -> None:
    told = History(
        records=[RecordJson.model_validate(r) for r in (VERIFIED, REJECTED)],
        track_records=[TrackRecordJson.model_validate(t) for t in TRACK],
    )
    assert render_history(*restore_history(told.model_dump_json())) == render_history([VERIFIED, REJECTED], TRACK)


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_no_name_or_reason_breaks_a_line_or_the_width(name: str) -> None:
    lines = render_history([replace(REJECTED, deployment=name, reason=name)], ()).splitlines()
    assert all(cells(line) <= 80 for line in lines)
    assert all(line.isprintable() for line in lines)


@pytest.mark.parametrize("text", ["", "{}", '{"records": [{}], "track_records": []}', "[" * 5_000])
def test_what_is_no_history_is_refused(text: str) -> None:
    with pytest.raises(SourceError, match="no history of this version"):
        restore_history(text)
