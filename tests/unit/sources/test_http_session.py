"""The session against a real server that misbehaves: one line each, no secret in any, nothing that hangs."""

from __future__ import annotations

import gzip
import time
from base64 import b64encode
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
import requests
from pydantic import ValidationError

from advisor.domain.errors import SourceError
from advisor.sources.http_failure import failure
from advisor.sources.http_session import HttpOptions, Session, one_line, public_address
from tests.certificates import Certificates, issue, locked_key
from tests.unit.sources.http_server import Answering, answering, reply, tunnelling


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
        with pytest.raises(SourceError, match="TLS handshake failed; does it speak https"):
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
        {"url": "https://h", "client_key_file": "k"},
        {"url": "http://h", "proxy_url": "http://user:geheim@proxy:3128"},
        {"url": "http://h", "proxy_url": "socks5://proxy:1080"},
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
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return issue(tmp_path_factory.mktemp("tls"))


def over_tls(url: str, **settings: object) -> bytes:
    options = HttpOptions.model_validate({"url": url, **settings})
    return Session(options, largest_body_bytes=10).get(options.url).content


def test_a_certificate_is_trusted_only_through_its_authority(certificates: Certificates) -> None:
    with answering(lambda h, _: reply(h, b"secret"), certificates.context()) as url:
        with pytest.raises(
            SourceError, match=r"(self.signed|issuer) certificate.*; set ca_file to the certificates of"
        ):
            over_tls(url)
        assert over_tls(url, ca_file=certificates.authority) == b"secret"


def test_a_bundle_of_the_environment_counts_and_the_setting_counts_more(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    with answering(lambda h, _: reply(h, b"secret"), certificates.context()) as url:
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificates.authority))
        assert over_tls(url) == b"secret"
        with pytest.raises(SourceError, match="set ca_file"):
            over_tls(url, ca_file=certificates.certificate("client"))


def test_an_unverified_certificate_is_never_unsaid(certificates: Certificates) -> None:
    with answering(lambda h, _: reply(h, b"secret"), certificates.context()) as url:
        assert over_tls(url, verify_tls=False) == b"secret"  # and no warning, which would fail this test
        caveats = [HttpOptions(url=url, verify_tls=verify).caveat for verify in (False, True)]
    assert caveats == ["its certificate is not verified (verify_tls: false)", None]
    assert HttpOptions(url="http://h", verify_tls=False).caveat is None


def test_a_certificate_of_another_name(certificates: Certificates) -> None:
    with answering(lambda h, _: reply(h, b"secret"), certificates.context()) as url:
        elsewhere = url.replace("127.0.0.1", "localhost")
        with pytest.raises(SourceError, match=r"mismatch.*; url must name the server as its certificate does"):
            over_tls(elsewhere, ca_file=certificates.authority)


def test_a_client_shows_its_certificate_where_that_is_demanded(certificates: Certificates) -> None:
    own = {"client_cert_file": certificates.certificate("client"), "client_key_file": certificates.key("client")}
    trust = {"ca_file": certificates.authority}
    both = certificates.folder / "both.pem"
    both.write_bytes(own["client_key_file"].read_bytes() + own["client_cert_file"].read_bytes())
    with answering(lambda h, _: reply(h, b"secret"), certificates.context(demands_client=True)) as url:
        assert over_tls(url, **trust, **own) == b"secret"
        assert over_tls(url, **trust, client_cert_file=both) == b"secret"
        with pytest.raises(
            SourceError, match=r"handshake failed; .*want client_cert_file|demands a client certificate"
        ):
            over_tls(url, **trust)
        with pytest.raises(SourceError, match="client_key_file is encrypted; give one without a pass phrase"):
            over_tls(url, **trust, **{**own, "client_key_file": locked_key(certificates)})
        with pytest.raises(SourceError, match="client_key_file is not the key of client_cert_file"):
            over_tls(url, **trust, **{**own, "client_key_file": certificates.key("server")})


def test_a_certificate_out_of_date() -> None:
    told = requests.exceptions.SSLError("[SSL] certificate verify failed: certificate has expired (_ssl.c:1006)")
    assert str(failure(told, "https://h", 3)) == (
        "https://h: certificate has expired; renew the certificate, or check this machine's clock"
    )


def test_this_machine_is_asked_without_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert get(lambda h, _: reply(h, b"direct"), proxy_url="http://127.0.0.1:9") == b"direct"
    for host in ("localhost", "127.8.9.10", "[::1]", "a.localhost"):
        assert HttpOptions(url=f"http://{host}:9").proxies == {"no_proxy": "*"}
    assert HttpOptions(url="http://prometheus:9").proxies == {}


def through(monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], **settings: object) -> list[str]:
    """What a proxy is asked for when a server elsewhere is read, with its own address for `PROXY`."""
    asked: list[str] = []

    def forward(handler: BaseHTTPRequestHandler, _: bytes) -> None:
        asked.append(handler.path)
        reply(handler, b"forwarded")

    for name in ("http_proxy", "HTTP_PROXY", "no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with answering(forward) as proxy:
        for name, value in environment.items():
            monkeypatch.setenv(name, value.replace("PROXY", proxy))
        stated = {key: str(value).replace("PROXY", proxy) for key, value in settings.items()}
        options = HttpOptions.model_validate({"url": "http://prometheus.test:9090/p", **stated})
        assert Session(options, largest_body_bytes=99).get(f"{options.url}/x").content == b"forwarded"
    return asked


def test_a_proxy_of_the_environment_or_of_the_settings_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ["http://prometheus.test:9090/p/x"]
    assert through(monkeypatch, {"http_proxy": "PROXY"}) == asked
    assert through(monkeypatch, {}, proxy_url="PROXY") == asked
    assert through(monkeypatch, {"http_proxy": "http://127.0.0.1:9"}, proxy_url="PROXY") == asked


def test_a_proxy_sees_no_secret_of_what_it_tunnels(certificates: Certificates, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("geheim")
    told: list[str | None] = []

    def note(handler: BaseHTTPRequestHandler, _: bytes) -> None:
        told.append(handler.headers.get("Authorization"))
        reply(handler, b"tunnelled")

    asked: list[str] = []
    with (
        answering(note, certificates.context()) as server,
        tunnelling(int(server.rpartition(":")[2]), asked) as proxy,
    ):
        credentials = {"bearer_token_file": tmp_path / "token", "ca_file": certificates.authority}
        assert over_tls("https://prometheus.test:9090", proxy_url=proxy, **credentials) == b"tunnelled"
    assert (asked, told) == (["prometheus.test:9090 None"], ["Bearer geheim"])


def test_a_proxy_that_is_down_is_named_as_such() -> None:
    options = HttpOptions(url="http://prometheus.test:9090", proxy_url="http://127.0.0.1:9", connect_timeout_seconds=1)
    with pytest.raises(SourceError, match="cannot be reached through the proxy; check proxy_url"):
        Session(options, largest_body_bytes=10).get(options.url)


def test_credentials_in_the_address_are_used_and_not_shown() -> None:
    def guarded(handler: BaseHTTPRequestHandler, _: bytes) -> None:
        known = handler.headers.get("Authorization") == "Basic " + b64encode(b"u:geheim").decode()
        reply(handler, b"in" if known else b"out", 200 if known else 401)

    with answering(guarded) as url:
        options = HttpOptions(url=url.replace("http://", "http://u:geheim@"))
        assert Session(options, largest_body_bytes=10).get(options.url).content == b"in"
        assert "geheim" not in options.place
