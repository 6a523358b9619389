from __future__ import annotations

import json
from pathlib import Path

import pytest

from advisor.domain.errors import SourceError
from advisor.sources import model_config
from advisor.sources.model_config import read_model_config


def test_it_reads_the_file_or_the_directory(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"num_hidden_layers": 32, "time_step_limit": [0.0, Infinity]}')
    assert read_model_config(tmp_path)["num_hidden_layers"] == 32
    assert read_model_config(tmp_path / "config.json") == read_model_config(tmp_path)


@pytest.mark.parametrize(
    ("content", "problem"),
    [("[1]", "not a JSON object"), ("{", "not JSON"), ("[" * 9000, "not JSON"), ("\xff", "not JSON")],
)
def test_what_is_no_config_is_refused(tmp_path: Path, content: str, problem: str) -> None:
    file = tmp_path / "config.json"
    file.write_text(content, encoding="latin-1")
    with pytest.raises(SourceError, match=problem):
        read_model_config(file)


def test_it_stays_within_its_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_config, "MAX_BYTES", 10)
    (tmp_path / "config.json").write_text(json.dumps({"a": "x" * 20}))
    with pytest.raises(SourceError, match="larger than"):
        read_model_config(tmp_path)
    with pytest.raises(SourceError, match="no such file"):
        read_model_config(tmp_path / "absent.json")
