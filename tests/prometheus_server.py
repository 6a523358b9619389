"""A real Prometheus over recorded metrics: `with serve(Path("metrics.om.gz")) as url`, or as a program around another:

    python tests/prometheus_server.py metrics.om.gz COMMAND... {url} ...

Needs the programs `prometheus` and `promtool` (Debian: the package prometheus), and nothing but Python's own library.
"""

from __future__ import annotations

import contextlib
import gzip
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

READY_SECONDS = 60.0


class PrometheusError(RuntimeError):
    """A server could not be had; one line with the reason."""


class PrometheusMissingError(PrometheusError):
    """The programs are not installed."""


@contextlib.contextmanager
def serve(
    openmetrics: Path | None, *flags: str, program: str = "prometheus", configuration: str = "scrape_configs: []\n"
) -> Iterator[str]:
    """Backfill `openmetrics` (text, or gzip by its name) into a fresh TSDB and serve it on a free loopback port.

    Yields the URL once the server is ready; the process and its data are gone afterwards. Raises PrometheusMissingError
    without the programs, PrometheusError when backfilling or starting fails. None is no history.
    """
    prometheus, promtool = installed(program), installed("promtool")
    with tempfile.TemporaryDirectory(prefix="prometheus-") as folder:
        work = Path(folder)
        if openmetrics is not None:
            _backfill(promtool, plain_text(openmetrics, work), work / "tsdb")
        (work / "prometheus.yml").write_text(configuration)
        port = free_port()
        command = [
            prometheus,
            f"--config.file={work}/prometheus.yml",
            f"--storage.tsdb.path={work}/tsdb",
            "--storage.tsdb.retention.time=100y",
            f"--web.listen-address=127.0.0.1:{port}",
            *flags,
        ]
        with running(command, work / "server.log", "Server is ready to receive web requests", port):
            yield f"http://127.0.0.1:{port}"


@contextlib.contextmanager
def running(command: Sequence[str], log: Path, ready: str, port: int) -> Iterator[None]:
    """A server from when its log says `ready` and its port is open until the block ends. PrometheusError if never."""
    with log.open("wb") as output, subprocess.Popen(command, stdout=output, stderr=output) as process:
        try:
            _wait(process, log, ready, port)
            yield
        finally:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
            process.kill()


def installed(name: str) -> str:
    """The path of a server's program. PrometheusMissingError, with what to do, when it is not there."""
    beside_python = Path(sys.executable).parent  # where .ci/install-from-debian puts them
    found = shutil.which(name) or shutil.which(name, path=str(beside_python))
    if found is None:
        raise PrometheusMissingError(
            f"{name} is not installed: run make servers, or .ci/install-prometheus for that one"
        )
    return found


def plain_text(openmetrics: Path, work: Path) -> Path:
    """The recording as a file of text, unpacked into `work` if need be."""
    if openmetrics.suffix != ".gz":
        return openmetrics
    plain = work / "metrics.om"
    with gzip.open(openmetrics, "rb") as packed, plain.open("wb") as text:
        shutil.copyfileobj(packed, text)
    return plain


def _backfill(promtool: str, openmetrics: Path, tsdb: Path) -> None:
    """One block for up to a week of data: with the default of two hours promtool reads the file once a block."""
    command = [promtool, "tsdb", "create-blocks-from", "openmetrics", "-q", "--max-block-duration=168h"]
    done = subprocess.run([*command, str(openmetrics), str(tsdb)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise PrometheusError(f"promtool could not backfill {openmetrics.name}: {done.stderr.strip()[-300:]}")


def free_port() -> int:
    """A port of the loopback address on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait(process: subprocess.Popen[bytes], log: Path, ready: str, port: int) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        if ready in log.read_text(errors="replace"):
            with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port), timeout=5):
                return
        time.sleep(0.02)
    told = log.read_text(errors="replace").strip()[-300:]
    raise PrometheusError(f"{Path(str(process.args[0])).name} did not become ready: {told}")  # type: ignore[index]


def main(openmetrics: str, *command: str) -> int:
    """Run `command` with `{url}` replaced while the server runs; its exit code."""
    try:
        with serve(Path(openmetrics)) as url:
            return subprocess.run([word.replace("{url}", url) for word in command], check=False).returncode
    except PrometheusError as error:
        sys.exit(str(error))
    except FileNotFoundError:
        sys.exit(f"{command[0]}: no such program: run make demo, or activate .venv first")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
