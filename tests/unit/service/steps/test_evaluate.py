"""One evaluation into the store; and what becomes of it when the disk is full."""

from __future__ import annotations

import json
import resource
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from advisor.service.steps import evaluate
from advisor.settings import Settings, read_settings
from advisor.store import Store

EVIDENCE = Path(__file__).parents[4] / "config" / "examples" / "chat-70b.yaml"
NOW = 1_795_968_000.0


def settings(folder: Path) -> Settings:
    return read_settings(None, {"evidence": [str(EVIDENCE)], "store": {"path": str(folder / "advisor.db")}})


@contextmanager
def no_file_grows() -> Iterator[None]:
    """As on a full disk: writing beyond the first byte of a file fails."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_what_is_remembered_of_an_evaluation(tmp_path: Path) -> None:
    account = evaluate.run(settings(tmp_path), NOW, None)
    assert (account.problems, account.unsaved) == ([], None)
    assert [name for name, _, _ in account.parts] == ["judge", "record"]
    with closing(Store.open(tmp_path / "advisor.db", readonly=True)) as store:
        kept, records = store.latest_report(), store.records()
        history = store.fact_history("chat-70b", ["recommended_max_num_seqs"], NOW - 60)
    assert kept is not None
    assert kept[0] == NOW
    assert json.loads(kept[1])["generated_at"] == "2026-11-29T16:00:00Z"
    assert {r.advice.flag for r in records} == {"--max-model-len 12288", "--max-num-seqs 40"}
    assert history["recommended_max_num_seqs"] == ((NOW, 40.0),)


def test_a_full_disk_stops_nothing_but_the_recording(tmp_path: Path) -> None:
    evaluate.run(settings(tmp_path), NOW, None)
    with no_file_grows():
        account = evaluate.run(settings(tmp_path), NOW + 3600, None)
    (problem,) = account.problems
    assert "advisor.db" in problem
    assert account.unsaved is not None
    assert account.unsaved[0] == NOW + 3600
    assert json.loads(account.unsaved[1])["deployments"][0]["name"] == "chat-70b"
    with closing(Store.open(tmp_path / "advisor.db", readonly=True)) as store:
        kept = store.latest_report()
    assert kept is not None
    assert kept[0] == NOW
