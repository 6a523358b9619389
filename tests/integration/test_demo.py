"""`make demo`: the recorded deployment through the real command, with a Prometheus and without one."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import absent

pytestmark = pytest.mark.integration

RUN = Path(__file__).parents[2] / "config" / "demo" / "run"
PROGRAMS = Path(sys.executable).parent


def demo(path: str) -> tuple[Any, str]:
    """The demo's JSON and what it says on stderr, with `path` as the PATH."""
    command = ["/bin/sh", str(RUN), "-o", "json"]
    done = subprocess.run(command, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["deployments"][0], done.stderr


def test_with_a_prometheus_it_says_to_raise_the_cap_by_a_step() -> None:
    path = f"{PROGRAMS}:{os.environ['PATH']}"
    if shutil.which("prometheus", path=path) is None:
        absent("prometheus is not installed: run .ci/install-prometheus")
    deployment, stderr = demo(path)
    first = deployment["advice"][0]
    # the cap of 16 was reached, so the next step is 1.5 x 16
    assert (first["knob"], first["current"], first["recommended"]) == ("max_num_seqs", 16, 24)
    assert stderr == ""


def test_without_one_it_says_so_and_judges_the_logs(tmp_path: Path) -> None:
    for program in (PROGRAMS / "advisor", shutil.which("dirname")):
        (tmp_path / Path(str(program)).name).symlink_to(str(program))
    deployment, stderr = demo(str(tmp_path))
    assert stderr.startswith("demo: no Prometheus on this machine")
    assert deployment["facts"]["time_at_sequence_cap"]["unknown"] is not None
    # the log's own count: 50,309 answered requests
    assert deployment["facts"]["total_tokens_p50"]["n"] == 50_309
