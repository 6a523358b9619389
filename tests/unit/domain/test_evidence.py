from __future__ import annotations

import pytest

from advisor.domain.evidence import TRUST, Evidence, FlagSource, Slo, Window
from tests.unit.estimates.evidence import NOTHING, flags, joint, log, windows


def test_a_window_knows_its_length() -> None:
    assert Window(100.0, 160.0).seconds == 60.0


def test_the_share_of_an_objective() -> None:
    assert Slo(percentile=99.0).share == pytest.approx(0.99)


def test_the_engines_own_word_beats_what_people_say() -> None:
    order: list[FlagSource] = ["server_info", "startup_log", "command_line", "config", "default"]
    assert sorted(order, key=TRUST.index) == order


@pytest.mark.parametrize(("value", "count"), [(64, 64), (0, 0), (True, None), (0.5, None), ("64", None)])
def test_only_a_whole_number_is_a_count(value: int | float | str | bool, count: int | None) -> None:
    known = Evidence(name="m", window=NOTHING.window, flags=flags(max_num_seqs=value))
    assert known.count_flag("max_num_seqs") == count
    assert known.flag("max_num_seqs") == value
    assert NOTHING.flag("max_num_seqs") is None


def test_a_total_leaves_out_what_was_not_read() -> None:
    read = windows({"finished": [1.0, float("nan"), 2.0], "steps": [float("nan")] * 3})
    assert read.total("finished") == 3.0
    assert read.total("steps") is None
    assert read.total("preemptions") is None


def test_a_total_of_zero_is_known() -> None:
    assert windows({"preemptions": [0.0, 0.0]}).total("preemptions") == 0.0


def test_requests_of_a_log_are_all_that_it_shows() -> None:
    assert log(joint((10, 5, 3)), refused=2).requests == 5
