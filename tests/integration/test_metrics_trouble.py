"""What stands between a real Prometheus and the advisor: Thanos's front end, and everything that goes wrong in mid-run.

Between them is a server that passes requests on and changes answers; how Thanos does is composed from its sources.
"""

from __future__ import annotations

import gzip
import json
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import parse_qs, urlencode

import pytest

from advisor.domain.evidence import Window
from advisor.gather import gather
from advisor.settings import Settings
from tests.integration.metrics_servers import counted, half_an_hour, reading, served
from tests.recording.deployment import Recording
from tests.unit.sources.http_server import answering, reply

pytestmark = pytest.mark.integration
EXAMPLE = Path(__file__).parents[2] / "config" / "examples" / "chat-70b.yaml"
Pass = Callable[[BaseHTTPRequestHandler, bytes], bytes]
Meddling = Callable[[BaseHTTPRequestHandler, bytes, Pass], None]


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    return half_an_hour(tmp_path_factory.mktemp("half-an-hour"))


@pytest.fixture(scope="module")
def prometheus(recording: Recording) -> Iterator[str]:
    with served("prometheus", recording.metrics) as url:
        yield url


@contextmanager
def between(url: str, meddle: Meddling) -> Iterator[str]:
    """A server that may pass requests on to the one at `url`."""

    def ask(handler: BaseHTTPRequestHandler, body: bytes) -> bytes:
        with urllib.request.urlopen(urllib.request.Request(url + handler.path, data=body), timeout=20) as answer:
            whole: bytes = answer.read()
            return whole

    with answering(lambda handler, body: meddle(handler, body, ask)) as middle:
        yield middle


def test_thanos_moves_the_grid_and_warns_of_a_store_that_is_down(recording: Recording, prometheus: str) -> None:
    seen: set[tuple[str | None, ...]] = set()

    def thanos(handler: BaseHTTPRequestHandler, body: bytes, ask: Pass) -> None:
        form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
        seen.add((form["dedup"], form["partial_response"], handler.headers.get("THANOS-TENANT")))
        if "step" in form:  # --query-range.align-range-with-step, which is on unless turned off
            step = int(form["step"])
            form |= {bound: str(int(float(form[bound])) // step * step) for bound in ("start", "end")}
        answer = json.loads(ask(handler, urlencode(form).encode()))
        warning = "receive series from Addr: store-1:10901: rpc error: code = Unavailable"
        reply(handler, json.dumps({**answer, "warnings": [warning, "another"]}).encode())

    straight = reading(prometheus, recording)
    with between(prometheus, thanos) as url:
        found = reading(url, recording, tenant="llm")
    assert seen == {("true", "true", "llm")}
    assert found.state.status == "partial"
    assert "the server warns: receive series from Addr: store-1:10901: rpc error: code = Unavailable (and 1 more)" in (
        found.state.detail
    )
    (moved,), (whole,) = counted(found.deployments[0]), counted(straight.deployments[0])
    # up to one step of 15 s (counters) of the half hour lies behind the moved grid
    assert moved["finished"] == pytest.approx(whole["finished"], rel=0.02)
    assert moved["generation_tokens"] == pytest.approx(whole["generation_tokens"], rel=0.02)


def third(meddle: Meddling) -> Meddling:
    """All is well until the third query."""
    asked: list[int] = []

    def meddling(handler: BaseHTTPRequestHandler, body: bytes, ask: Pass) -> None:
        asked.append(1)
        if len(asked) < 3:
            reply(handler, ask(handler, body))
        else:
            meddle(handler, body, ask)

    return meddling


def gone(handler: BaseHTTPRequestHandler, _body: bytes, _ask: Pass) -> None:
    handler.close_connection = True


def silent(_handler: BaseHTTPRequestHandler, _body: bytes, _ask: Pass) -> None:
    time.sleep(1.0)


def cut_by_a_proxy(handler: BaseHTTPRequestHandler, body: bytes, ask: Pass) -> None:
    whole = ask(handler, body)
    reply(handler, whole[: len(whole) // 2])


def broken_off(handler: BaseHTTPRequestHandler, body: bytes, ask: Pass) -> None:
    whole = ask(handler, body)
    reply(handler, whole[: len(whole) // 2], headers={"Content-Length": str(len(whole))})
    handler.close_connection = True


def overwhelming(handler: BaseHTTPRequestHandler, _body: bytes, _ask: Pass) -> None:
    mebibyte = gzip.compress(b" " * (1 << 20))
    reply(handler, 130 * mebibyte, headers={"Content-Encoding": "gzip"})


@pytest.mark.parametrize(
    ("meddle", "line"),
    [
        (gone, "refuses the connection or closes it; is it running, is url right?"),
        (silent, "does not answer in time; raise read_timeout_seconds or ask for less"),
        (cut_by_a_proxy, "gives an answer that breaks off or is no JSON; does a proxy cut it?"),
        (broken_off, "broke off in the middle of an answer; try again"),
        (overwhelming, "answers with more than 128 MiB; ask for less of it"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_trouble_in_mid_run_is_one_line_and_other_sources_go_on(
    recording: Recording, prometheus: str, meddle: Meddling, line: str
) -> None:
    with between(prometheus, third(meddle)) as url:
        server = {"url": url, "read_timeout_seconds": 0.4 if meddle is silent else 30}
        settings = Settings.model_validate({"prometheus": server, "evidence": [EXAMPLE]})
        gathered = gather(settings, Window(recording.start, recording.end))
    states = {source.name: (source.status, source.detail) for source in gathered.sources}
    assert states["prometheus"] == ("failed", f"{url} {line}")
    assert states["evidence chat-70b.yaml"][0] == "ok"
    assert gathered.deployments.keys() == {"chat-70b"}
