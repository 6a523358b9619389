"""Engines by their processes: real ones that the test starts under the words of an engine."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

import pytest

from advisor.domain.errors import SourceError
from advisor.sources.processes import EngineProcess, read_processes
from tests.unit.sources.engine_process import running


def found(pid: int) -> EngineProcess | None:
    return next((one for one in read_processes().engines if one.pid == pid), None)


def test_a_process_tells_its_flags_its_port_and_its_start(tmp_path: Path) -> None:
    with running(tmp_path, "vllm", "serve", "/m", "--max-num-seqs", "64", "--api-key", "secret") as (pid, port):
        one = found(pid)
    assert one is not None
    assert (one.launch.flags, one.launch.served_names, one.launch.whole) == ({"max_num_seqs": 64}, ("/m",), True)
    assert one.ports == (port,)  # what it listens on, not the 8000 that vLLM would
    assert one.started is not None
    assert abs(one.started - time.time()) < 300
    assert "secret" not in repr(one)


def test_a_configuration_file_is_read_from_the_folder_of_the_process(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("max-num-seqs: 8\nmax-model-len: 8k\nhf-token: secret\n")
    with running(tmp_path, "vllm", "serve", "/m", "--config", "c.yaml", "--max-num-seqs", "16") as (pid, _):
        one = found(pid)
    assert one is not None
    assert one.launch.flags == {"max_num_seqs": 16, "max_model_len": 8000}
    assert "secret" not in repr(one)


def test_a_configuration_file_that_is_gone_is_named(tmp_path: Path) -> None:
    with running(tmp_path, "vllm", "serve", "/m", "--config", "none.yaml") as (pid, _):
        one = found(pid)
    assert one is not None
    assert one.launch.unresolved == ("its --config none.yaml is no YAML file that is there",)
    assert not one.launch.whole


def test_only_the_known_variables_of_a_process_are_taken(tmp_path: Path) -> None:
    variables = {"MAX_TOTAL_TOKENS": "4096", "HF_TOKEN": "secret", "MODEL_ID": "/m"}
    with running(tmp_path, "text-generation-launcher", variables=variables) as (pid, _):
        one = found(pid)
    assert one is not None
    assert (one.launch.engine, one.launch.flags, one.launch.served_names) == ("tgi", {"max_model_len": 4096}, ("/m",))
    assert "secret" not in repr(one)


def test_a_variable_that_nothing_passes_on_is_named(tmp_path: Path) -> None:
    variables = {"VLLM_MAX_NUM_SEQS": "256", "MAX_MODEL_LEN": "4096", "VLLM_LOGGING_LEVEL": "INFO"}
    with running(tmp_path, "vllm", "serve", "/m", "--max-model-len", "8192", variables=variables) as (pid, _):
        one = found(pid)
    assert one is not None
    told = "VLLM_MAX_NUM_SEQS is 256, but no argument carries it: only a wrapper could pass it on"
    assert (one.launch.flags, one.launch.unresolved) == ({"max_model_len": 8192}, (told,))


def test_this_host_is_known_by_its_names_and_addresses() -> None:
    assert {"localhost", "127.0.0.1", socket.gethostname()} <= read_processes().addresses


def process(proc: Path, pid: int, *words: str, parent: int = 1) -> None:
    """A process as the kernel shows one whose sockets, variables and files belong to somebody else."""
    (proc / str(pid)).mkdir(parents=True)
    (proc / str(pid) / "cmdline").write_bytes(b"".join(word.encode() + b"\0" for word in words))
    # Fields after the name: state, parent, ..., and as the 22nd of all the start in ticks. The name may hold brackets.
    fields = ["S", str(parent), *["0"] * 17, str(100 * os.sysconf("SC_CLK_TCK"))]
    (proc / str(pid) / "stat").write_text(f"{pid} (a ) b) {' '.join(fields)}\n")


def test_processes_of_others(tmp_path: Path) -> None:
    (tmp_path / "stat").write_text("cpu 1 2\nbtime 1000\n")
    process(tmp_path, 10, "python3", "/bin/vllm", "serve", "/m", "--port", "9000")
    process(tmp_path, 11, "python3", "/bin/vllm", "serve", "/m", "--port", "9000", parent=10)
    process(tmp_path, 12, "bash")
    (tmp_path / "13").mkdir()  # ended while it was looked at
    reading = read_processes(tmp_path)
    assert [(one.pid, one.ports, one.started) for one in reading.engines] == [(10, (9000,), 1100.0)]
    assert reading.seen == 4


def test_without_a_process_table_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="cannot be read: No such file"):
        read_processes(tmp_path / "none")
