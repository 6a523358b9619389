from __future__ import annotations

import json
from pathlib import Path

import pytest

from advisor.domain.errors import SourceError
from advisor.sources import engine_log
from advisor.sources.startup_log import read_startup_log

POOL = "(EngineCore pid=41) INFO 11-29 10:02:33 [x.py:1] GPU KV cache size: 8,192 tokens"


@pytest.mark.parametrize(
    "text",
    [
        POOL,
        "2026-11-29T10:02:33.1Z stdout F " + POOL,
        "Nov 29 10:02:33 host vllm[41]: " + POOL,
        json.dumps({"log": POOL + "\n", "stream": "stderr"}),
        json.dumps({"MESSAGE": POOL, "PRIORITY": "6"}),
        '{"log": broken ' + POOL,
    ],
)
def test_it_reads_lines_as_shippers_wrap_them(tmp_path: Path, text: str) -> None:
    file = tmp_path / "startup.log"
    file.write_bytes(b"\xff\xfe noise\n" + text.encode() + b"\n")
    assert read_startup_log(file).kv_pool_tokens == 8192


def test_it_tells_the_engines_apart(tmp_path: Path) -> None:
    file = tmp_path / "startup.log"
    file.write_text("[10:00 TP0] max_total_num_tokens=4096, context_len=2048, available_gpu_mem=3.10 GB\n")
    facts = read_startup_log(file)
    assert (facts.engine, facts.kv_pool_tokens, facts.flags["max_model_len"]) == ("sglang", 4096, 2048)


def test_the_rest_of_an_overlong_line_is_no_line(tmp_path: Path) -> None:
    file = tmp_path / "startup.log"
    file.write_text(POOL + "\n" + "x" * engine_log.MAX_LINE + "GPU KV cache size: 1 tokens\n")
    assert read_startup_log(file).kv_pool_tokens == 8192


def test_a_file_without_a_start_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "access.log"
    file.write_text('INFO: 127.0.0.1 - "GET /version HTTP/1.1" 200 OK\n')
    with pytest.raises(SourceError, match="no start-up line of vLLM, SGLang, TGI or llama"):
        read_startup_log(file)
    file.write_text("")
    with pytest.raises(SourceError, match="the file is empty"):
        read_startup_log(file)
    with pytest.raises(SourceError, match="no such file"):
        read_startup_log(tmp_path)


def test_a_file_beyond_the_bound_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_log, "MAX_BYTES", 100)
    file = tmp_path / "startup.log"
    file.write_text((POOL + "\n") * 3)
    with pytest.raises(SourceError, match="give the part from the last start as a file"):
        read_startup_log(file)
