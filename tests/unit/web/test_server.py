from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest
import requests

from advisor.domain.errors import ConfigError
from advisor.web import server as server_module
from advisor.web.app import create_app
from advisor.web.options import WebOptions
from advisor.web.server import serve
from tests.unit.web.fleets import Known, served


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with served(Known()) as url:
        yield url


def said(url: str, raw: bytes) -> bytes:
    """What comes back for bytes, until the server closes."""
    place = urlsplit(url)
    with socket.create_connection((place.hostname, place.port), timeout=10) as connection:
        connection.sendall(raw)
        answer = b""
        with contextlib.suppress(ConnectionResetError):
            while received := connection.recv(65_536):
                answer += received
        return answer


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"])
def test_nothing_can_be_changed(url: str, method: str) -> None:
    for path in ("/", "/api/v1/advice", "/nowhere"):
        answer = requests.request(method, url + path, timeout=10)
        assert answer.status_code == 405
        assert answer.headers["allow"] == "GET, HEAD"


@pytest.mark.parametrize("path", ["/", "/deployments/chat-70b", "/api/v1/advice", "/metrics", "/healthz", "/nowhere"])
def test_head_is_get_without_the_body(url: str, path: str) -> None:
    whole, head = requests.get(url + path, timeout=10), requests.head(url + path, timeout=10)
    assert (head.status_code, head.content) == (whole.status_code, b"")
    assert head.headers.get("content-length") == whole.headers.get("content-length")


@pytest.mark.parametrize("path", ["/", "/api/v1/deployments", "/metrics", "/nowhere", "/api/v1/nowhere"])
def test_every_answer_is_hardened(url: str, path: str) -> None:
    headers = requests.get(url + path, timeout=10).headers
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "server" not in headers
    assert "set-cookie" not in headers


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:9109", 200),
        ("LOCALHOST", 200),
        ("127.0.0.1:1", 200),
        ("[::1]:9109", 200),
        ("evil.example", 421),
        ("127.0.0.1.evil.example:9109", 421),
        ("localhost.evil.example", 421),
        ("", 421),
    ],
)
def test_a_name_pointed_at_loopback_is_refused(url: str, host: str, status: int) -> None:
    for path in ("/", "/api/v1/advice", "/metrics"):
        assert requests.get(url + path, headers={"Host": host}, timeout=10).status_code == status


def test_the_name_of_a_proxy_can_be_allowed() -> None:
    with served(Known(), WebOptions(listen="127.0.0.1:0", hosts=("advisor.example",))) as url:
        assert requests.get(url, headers={"Host": "Advisor.example"}, timeout=10).status_code == 200
        assert requests.get(url, headers={"Host": "other.example"}, timeout=10).status_code == 421


def test_a_host_twice_is_no_request(url: str) -> None:
    answer = said(url, b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n")
    assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 421"))


def test_an_endless_head_is_cut_off(url: str) -> None:
    answer = said(url, b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 200_000)
    assert not answer.startswith(b"HTTP/1.1 200")


def test_a_stuck_client_is_dropped_and_others_are_served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "CONNECTION_SECONDS", 0.5)
    with served(Known()) as url:
        place = urlsplit(url)
        stuck = [socket.create_connection((place.hostname, place.port), timeout=10) for _ in range(20)]
        for connection in stuck:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: loc")
        assert requests.get(f"{url}/healthz", timeout=10).status_code == 200
        for connection in stuck:
            with contextlib.suppress(ConnectionResetError):
                assert connection.recv(1) == b""
            connection.close()


def test_a_taken_port_is_one_line() -> None:
    with (
        served(Known()) as url,
        pytest.raises(ConfigError, match=r"^listen 127.0.0.1:\d+: Address already in use: "),
    ):
        serve(create_app(Known()), WebOptions(listen=url.removeprefix("http://")))


def test_stopping_frees_the_port_and_ends_the_thread() -> None:
    server = serve(create_app(Known()), WebOptions(listen="127.0.0.1:0"))
    server.start()
    assert requests.get(f"{server.url}/healthz", timeout=10).ok
    started = time.monotonic()
    server.stop()
    assert not server.alive
    assert time.monotonic() - started < 5
    with pytest.raises(requests.ConnectionError):
        requests.get(server.url, timeout=1)


@dataclass
class Broken(Known):
    """A state that fails, as a bug would."""

    def metrics(self) -> bytes:
        raise ZeroDivisionError


def test_a_bug_costs_one_answer(caplog: pytest.LogCaptureFixture) -> None:
    with served(Broken()) as url:
        answer = requests.get(f"{url}/metrics", timeout=10)
        assert (answer.status_code, answer.text) == (500, "Internal Server Error")
        assert "content-security-policy" in answer.headers
        assert requests.get(url, timeout=10).status_code == 200
    assert "ZeroDivisionError" in caplog.text
