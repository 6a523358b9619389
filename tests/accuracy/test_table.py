from pathlib import Path

import pytest

from tests.accuracy import kv_pool, lengths, sweeps
from tests.accuracy.__main__ import main
from tests.accuracy.table import Row, bound_row, render, share_row


def test_a_share_counts_what_is_known() -> None:
    outcomes: list[tuple[str, bool | None]] = [("a", True), ("b", None), ("c", False), ("d", True)]
    row = share_row("what", outcomes, 0.6)
    # two of the three that are known
    assert (row.cases, row.unknown, row.reached, row.worst, row.verdict) == (4, 1, "67%", "c", "met")
    assert share_row("what", outcomes, 0.67).verdict == "MISSED"


def test_a_bound_is_on_both_sides_and_names_the_worst() -> None:
    row = bound_row("what", [("a", 0.05), ("b", -0.2), ("c", None)], 0.1, 0.5)
    assert (row.unknown, row.reached, row.worst, row.verdict) == (1, "50%", "-20% b", "met")
    assert bound_row("what", [("b", -0.2)], 0.1, 1.0).verdict == "MISSED"


@pytest.mark.parametrize("refused", [[("a", None)], [("a", None), ("b", None)]])
def test_refusing_everything_meets_no_goal(refused: list[tuple[str, None]]) -> None:
    assert share_row("what", refused, 0.5).verdict == "MISSED"
    assert bound_row("what", refused, 0.5, 1.0).verdict == "MISSED"


def test_the_table_has_a_line_a_row_within_one_screen() -> None:
    row = Row("w" * 32, "+-10% on 90%", "100%", 24, 9, "x" * 60, met=True)
    head, line, missing = render([row, Row("what", "goal", "no traces in DATA")]).splitlines()
    assert head.split() == ["what", "cases", "unknown", "goal", "reached", "worst", "verdict"]
    assert len(line) <= 100
    assert line.endswith("met")
    assert missing.split() == ["what", "no", "traces", "in", "DATA"]


def test_what_the_data_lacks_is_said(tmp_path: Path) -> None:
    told = [*lengths.traced(tmp_path), *kv_pool.rows(tmp_path), *sweeps.rows(tmp_path)]
    assert {row.reached for row in told} == {"no traces in DATA", "no kv_pool in DATA", "no sweeps in DATA"}
    assert {row.verdict for row in told} == {""}


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no such folder"):
        main([str(tmp_path / "missing")])
