"""The server that other tests rest on: it answers, it is cleaned up, and its failures say what is wrong."""

import gzip
import json
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests import prometheus_server
from tests.conftest import absent
from tests.prometheus_server import PrometheusError, PrometheusMissingError, serve

pytestmark = pytest.mark.integration

METRICS = """# TYPE seats gauge
seats{instance="a"} 3 1795737540
seats{instance="a"} 5 1795737600
# EOF
"""


@pytest.fixture
def metrics(tmp_path: Path) -> Path:
    path = tmp_path / "metrics.om.gz"
    path.write_bytes(gzip.compress(METRICS.encode()))
    return path


def seats(url: str) -> str:
    with urllib.request.urlopen(f"{url}/api/v1/query?query=sum(seats)&time=1795737600", timeout=20) as answer:
        value: str = json.load(answer)["data"]["result"][0]["value"][1]
        return value


def test_it_serves_what_was_recorded_and_is_gone_afterwards(metrics: Path) -> None:
    try:
        with serve(metrics) as url:
            assert seats(url) == "5"
    except PrometheusMissingError as error:
        absent(str(error))
    with pytest.raises(urllib.error.URLError):
        seats(url)


def test_as_a_program_it_runs_a_command_around_a_server(metrics: Path) -> None:
    ask = "import sys, urllib.request as u; u.urlopen(sys.argv[1] + '/-/ready', timeout=20); sys.exit(7)"
    command = [sys.executable, prometheus_server.__file__, str(metrics), sys.executable, "-c", ask, "{url}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "is not installed" in done.stderr:
        absent(done.stderr)
    assert (done.returncode, done.stdout, done.stderr) == (7, "", "")


def test_a_broken_recording_is_an_error_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "broken.om"
    path.write_text("this is no metric\n")
    with pytest.raises(PrometheusError, match=r"broken\.om|is not installed"), serve(path):
        pass


def test_missing_programs_are_named(metrics: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(PrometheusMissingError, match="prometheus is not installed"), serve(metrics):
        pass
