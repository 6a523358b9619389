"""A real Prometheus that is hard to reach: mutual TLS, basic authentication, a path prefix."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from advisor.domain.errors import SourceError
from advisor.domain.evidence import Window
from advisor.sources.metrics_reading import MetricsReading
from advisor.sources.prometheus import PrometheusOptions, read_prometheus
from tests.certificates import Certificates, issue
from tests.integration.metrics_servers import PROMETHEUS, served

pytestmark = pytest.mark.integration
END = 1_795_737_600
METRICS = (
    "# TYPE vllm:num_requests_running gauge\n"
    + "".join(
        f'vllm:num_requests_running{{job="vllm",instance="a:8000",model_name="m",engine="0"}} 1 {END - 15 * back}\n'
        for back in range(40, -1, -1)
    )
    + "# EOF\n"
)
PASSWORD = "correct horse"
HASH = "$2b$04$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e"  # bcrypt of PASSWORD
ACCESS = """\
tls_server_config:
  cert_file: {server}
  key_file: {key}
  client_auth_type: RequireAndVerifyClientCert
  client_ca_file: {authority}
basic_auth_users:
  advisor: {hash}
"""


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return issue(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module", params=PROMETHEUS)
def url(request: pytest.FixtureRequest, certificates: Certificates) -> Iterator[str]:
    folder = certificates.folder
    (folder / "metrics.om").write_text(METRICS)
    files = {"server": certificates.certificate("server"), "key": certificates.key("server")}
    access = folder / "web.yml"
    access.write_text(ACCESS.format(**files, authority=certificates.authority, hash=HASH))
    flags = (f"--web.config.file={access}", "--web.route-prefix=/prometheus")
    with served(request.param, folder / "metrics.om", *flags) as server:
        yield f"{server.replace('http:', 'https:')}/prometheus"


def read(url: str, certificates: Certificates, password: Path, **settings: object) -> MetricsReading:
    """What is read with everything that is demanded, `settings` aside."""
    demanded: dict[str, object] = {
        "url": url,
        "ca_file": certificates.authority,
        "client_cert_file": certificates.certificate("client"),
        "client_key_file": certificates.key("client"),
        "user": "advisor",
        "password_file": password,
    }
    return read_prometheus(PrometheusOptions.model_validate({**demanded, **settings}), Window(END - 3600, END))


def test_all_that_is_demanded_is_shown(url: str, certificates: Certificates, tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("old\n")
    with pytest.raises(SourceError, match=r"wants credentials; set bearer_token_file, or user and password_file"):
        read(url, certificates, password)
    password.write_text(f"{PASSWORD}\n")  # rotated
    found = read(url, certificates, password)
    assert [d.instances for d in found.deployments] == [("a:8000",)]
    assert "not verified" not in found.state.detail
    unverified = read(url, certificates, password, ca_file=None, verify_tls=False)
    assert unverified.state.detail.endswith("its certificate is not verified (verify_tls: false)")


def test_what_is_missing_is_said_in_one_line(url: str, certificates: Certificates, tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text(PASSWORD)

    def line(address: str = url, **settings: object) -> str:
        with pytest.raises(SourceError) as caught:
            read(address, certificates, password, **settings)
        assert PASSWORD not in str(caught.value)
        return str(caught.value)

    # The server may close before its alert is read.
    stranger = line(client_cert_file=None, client_key_file=None)
    assert re.search(
        "demands a client certificate that it trusts; set|handshake failed; .*want client_cert_file", stranger
    )
    assert "certificate; set ca_file to the certificates of who signed it" in line(ca_file=None)
    assert "has no query API there; does url lack a path prefix?" in line(url.removesuffix("/prometheus"))
