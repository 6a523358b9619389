"""The session against a real server that misbehaves: one line each, no secret in any, nothing that hangs."""

from __future__ import annotations

import gzip
import shutil
import ssl
import subprocess
import time
from base64 import b64encode
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from pydantic import ValidationError

from advisor.domain.errors import SourceError
from advisor.sources.http_session import HttpOptions, Session, one_line, public_address
from tests.conftest import absent
from tests.unit.sources.http_server import Answering, answering, reply


def get(answer: Answering, *, largest: int = 1000, **settings: object) -> bytes:
    with answering(answer) as url:
        options = HttpOptions.model_validate({"url": url, **settings})
        return Session(options, largest_body_bytes=largest).get(f"{options.url}/x").content


def test_a_body_at_the_limit_comes_whole_and_one_byte_more_does_not() -> None:
    assert get(lambda h, _: reply(h, b"x" * 1000)) == b"x" * 1000
    with pytest.raises(SourceError, match="answers with more than"):
        get(lambda h, _: reply(h, b"x" * 1001))


def test_a_compressed_body_is_bounded_by_what_it_unpacks_to() -> None:
    bomb = gzip.compress(b"0" * 5_000_000)
    assert len(bomb) < 10_000
    with pytest.raises(SourceError, match="answers with more than"):
        get(lambda h, _: reply(h, bomb, headers={"Content-Encoding": "gzip"}), largest=100_000)


def test_half_an_answer_is_no_answer() -> None:
    with pytest.raises(SourceError, match=r"broke off|closes it"):
        get(lambda h, _: reply(h, b"half", headers={"Content-Length": "4000"}))


def test_silence_ends() -> None:
    started = time.monotonic()
    with pytest.raises(SourceError, match="does not answer in time"):
        get(lambda _, __: time.sleep(1.5), read_timeout_seconds=0.2)
    assert time.monotonic() - started < 1.4


def test_an_endless_trickle_ends() -> None:
    def trickle(handler: BaseHTTPRequestHandler, _: bytes) -> None:
        handler.send_response(200)
        handler.end_headers()
        for _piece in range(40):
            handler.wfile.write(b"x" * 65536)
            time.sleep(0.05)

    with pytest.raises(SourceError, match="does not answer in time"):
        get(trickle, largest=1 << 30, total_timeout_seconds=0.3)


def test_nobody_there() -> None:
    options = HttpOptions(url="http://127.0.0.1:9", connect_timeout_seconds=1)
    with pytest.raises(SourceError, match=r"http://127\.0\.0\.1:9 refuses the connection"):
        Session(options, largest_body_bytes=10).get(options.url)


def test_plain_text_where_tls_is_spoken() -> None:
    with answering(lambda h, _: reply(h, b"ok")) as url:
        options = HttpOptions(url=url.replace("http:", "https:"))
        with pytest.raises(SourceError, match="TLS handshake failed; set ca_file"):
            Session(options, largest_body_bytes=10).get(options.url)


def test_redirects_are_told_and_not_followed() -> None:
    with pytest.raises(SourceError, match=r"redirects to https://elsewhere/p; set url") as caught:
        get(lambda h, _: reply(h, b"", 302, {"Location": "https://user:geheim@elsewhere/p?token=geheim"}))
    assert "geheim" not in str(caught.value)
    with pytest.raises(SourceError):
        get(lambda h, _: reply(h, b"", 302, {"Location": "http://["}))


def test_a_busy_server_is_asked_again_and_a_failing_one_is_not() -> None:
    asked: list[int] = []

    def busy_once(handler: BaseHTTPRequestHandler, _: bytes) -> None:
        asked.append(1)
        reply(handler, b"late", 429 if len(asked) == 1 else 200)

    assert get(busy_once) == b"late"
    assert len(asked) == 2

    def failing(handler: BaseHTTPRequestHandler, _: bytes) -> None:
        asked.append(1)
        reply(handler, b"", 503)

    get(failing)
    assert len(asked) == 3


def test_a_token_is_read_anew_for_every_request(tmp_path: Path) -> None:
    token = tmp_path / "token"
    seen: list[str | None] = []

    def note(handler: BaseHTTPRequestHandler, _: bytes) -> None:
        seen.append(handler.headers.get("Authorization"))
        reply(handler, b"")

    with answering(note) as url:
        session = Session(HttpOptions(url=url, bearer_token_file=token), largest_body_bytes=10)
        for text in ("first\n", "second\n"):
            token.write_text(text)
            session.get(url)
    assert seen == ["Bearer first", "Bearer second"]


def test_basic_authentication_reads_the_password_file(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("pä:ss\n", encoding="utf-8")
    seen: list[str | None] = []

    def note(handler: BaseHTTPRequestHandler, _: bytes) -> None:
        seen.append(handler.headers.get("Authorization"))
        reply(handler, b"")

    get(note, user="advisor", password_file=tmp_path / "password")
    assert seen == ["Basic " + b64encode("advisor:pä:ss".encode()).decode()]


@pytest.mark.parametrize("content", [b"", b"two\nlines", b"\xff\xfe", b"bell\x07"])
def test_a_file_without_one_secret_is_named_and_not_quoted(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "token").write_bytes(content)
    with pytest.raises(SourceError, match=r"bearer_token_file .*token (cannot be read|does not hold)") as caught:
        get(lambda h, _: reply(h, b""), bearer_token_file=tmp_path / "token")
    assert "lines" not in str(caught.value)


def test_a_header_that_cannot_be_sent_is_not_quoted() -> None:
    with pytest.raises(SourceError, match="check url and headers") as caught:
        get(lambda h, _: reply(h, b""), headers={"X-Key": "geheim\nX-Other: 1"})
    assert "geheim" not in str(caught.value)


def test_certificates_that_are_not_there_or_are_none(tmp_path: Path) -> None:
    missing = HttpOptions(url="https://127.0.0.1:9", ca_file=tmp_path / "none.pem")
    with pytest.raises(SourceError, match=r"ca_file .*none\.pem cannot be read"):
        Session(missing, largest_body_bytes=10)
    (tmp_path / "text.pem").write_text("no certificate")
    with answering(lambda h, _: reply(h, b"ok")) as url:
        useless = HttpOptions(url=url.replace("http:", "https:"), client_cert_file=tmp_path / "text.pem")
        with pytest.raises(SourceError, match=r"holds no usable PEM|TLS handshake failed"):
            Session(useless, largest_body_bytes=10).get(useless.url)


@pytest.mark.parametrize(
    "settings",
    [
        {"url": "prometheus:9090"},
        {"url": "file:///etc/passwd"},
        {"url": "http://user:geheim@:80"},
        {"url": "http://h:99999"},
        {"url": "http://h/?token=geheim"},
        {"url": "http://h", "user": "u"},
        {"url": "http://h", "user": "u", "password_file": "p", "bearer_token_file": "t"},
        {"url": "http://h", "unheard_of": 1},
        {"url": "http://h", "read_timeout_seconds": 0},
    ],
)
def test_settings_that_cannot_work_are_refused_without_quoting_them(settings: dict[str, object]) -> None:
    with pytest.raises(ValidationError) as caught:
        HttpOptions.model_validate(settings)
    assert "geheim" not in str(caught.value)


def test_what_people_see_has_no_credentials() -> None:
    options = HttpOptions(url="http://user:geheim@prometheus:9090/prefix/")
    assert options.place == "http://prometheus:9090/prefix"
    assert "geheim" not in repr(options)
    assert public_address("http://[::1]:80/x?y") == "http://[::1]:80/x"


def test_foreign_text_becomes_one_short_line() -> None:
    assert one_line("a\x1b[31m\r\nb\u202ec") == "a [31m b c"
    assert len(one_line("x" * 10_000, 50)) == 50


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate for 127.0.0.1, with its key in the same file."""
    openssl = shutil.which("openssl")
    if openssl is None:
        absent("openssl is not installed")
    folder = tmp_path_factory.mktemp("tls")
    names = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    command = [str(openssl), "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *names, *files]
    subprocess.run(command, check=True, capture_output=True)
    both = folder / "both.pem"
    both.write_bytes((folder / "key.pem").read_bytes() + (folder / "cert.pem").read_bytes())
    return both


def test_a_certificate_is_trusted_only_through_its_authority(certificate: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with answering(lambda h, _: reply(h, b"secret"), context) as url:
        with pytest.raises(SourceError, match=r"self.signed certificate; set ca_file"):
            Session(HttpOptions(url=url), largest_body_bytes=10).get(url)
        trusting = HttpOptions(url=url, ca_file=certificate.parent / "cert.pem")
        assert Session(trusting, largest_body_bytes=10).get(url).content == b"secret"


def test_credentials_in_the_address_are_used_and_not_shown() -> None:
    def guarded(handler: BaseHTTPRequestHandler, _: bytes) -> None:
        known = handler.headers.get("Authorization") == "Basic " + b64encode(b"u:geheim").decode()
        reply(handler, b"in" if known else b"out", 200 if known else 401)

    with answering(guarded) as url:
        options = HttpOptions(url=url.replace("http://", "http://u:geheim@"))
        assert Session(options, largest_body_bytes=10).get(options.url).content == b"in"
        assert "geheim" not in options.place
