"""A real VictoriaMetrics over recorded metrics: `with serve(Path("metrics.om.gz")) as url`.

Needs the program `victoria-metrics` (Debian: the package of that name), and nothing but Python's own library.
"""

from __future__ import annotations

import contextlib
import re
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from tests.prometheus_server import free_port, installed, plain_text, running

_TIME = re.compile(r" (\d+)$", re.MULTILINE)
_COMMENT = re.compile(r"^#.*\n", re.MULTILINE)


@contextlib.contextmanager
def serve(openmetrics: Path, *flags: str, program: str = "victoria-metrics") -> Iterator[str]:
    """Import `openmetrics` (text, or gzip by its name) and serve it on a free loopback port.

    Raises PrometheusMissingError without the program, PrometheusError when it does not start.
    """
    with tempfile.TemporaryDirectory(prefix="victoria-metrics-") as folder:
        work = Path(folder)
        port = free_port()
        command = [
            installed(program),
            f"-storageDataPath={work}/data",
            f"-httpListenAddr=127.0.0.1:{port}",
            "-retentionPeriod=100y",
            "-search.latencyOffset=0s",  # else data of the last half minute is held back
            *flags,
        ]
        with running(command, work / "server.log", "server at http", port):
            url = f"http://127.0.0.1:{port}"
            # Its import reads milliseconds where OpenMetrics has seconds.
            text = _TIME.sub(r" \g<1>000", _COMMENT.sub("", plain_text(openmetrics, work).read_text()))
            _post(f"{url}/api/v1/import/prometheus", text.encode())
            _post(f"{url}/internal/force_flush", b"")
            yield url


def _post(url: str, body: bytes) -> None:
    with urllib.request.urlopen(urllib.request.Request(url, data=body), timeout=60) as answer:
        answer.read()
