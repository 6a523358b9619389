import gzip
from pathlib import Path

from tests.accuracy.traffic import drawn, read_traces


def test_traces_are_read_in_the_order_of_arrival(tmp_path: Path) -> None:
    (tmp_path / "traces").mkdir()
    rows = "t_s,prompt_tokens,output_tokens,more\n2.5,30,4,1\n0.5,10,0,1\n"
    (tmp_path / "traces" / "azure2023_conv.csv.gz").write_bytes(gzip.compress(rows.encode()))
    (trace,) = read_traces(tmp_path)
    assert trace.name == "azure conv"
    assert trace.seconds == (0.5, 2.5)
    assert trace.pairs == ((10, 1), (30, 4))  # no request is without an output token


def test_histograms_of_one_length_are_no_trace(tmp_path: Path) -> None:
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "some_hist.csv.gz").write_bytes(gzip.compress(b"tokens,expected_requests\n4,839.4\n"))
    assert read_traces(tmp_path) == []


def test_a_mix_is_the_same_for_the_same_seed() -> None:
    assert drawn("chat", 50, 7) == drawn("chat", 50, 7)
    assert drawn("chat", 50, 7) != drawn("chat", 50, 8)
