"""Certificates of an authority that lives as long as a test: a server's, a client's, and what goes wrong with them."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import absent

SERVER_NAMES = "subjectAltName=IP:127.0.0.1,DNS:prometheus.test"
_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-days", "2")


@dataclass(frozen=True, slots=True)
class Certificates:
    """Files (PEM): the authority's certificate, and `NAME.pem` with `NAME.key` for `server` and `client`."""

    folder: Path

    @property
    def authority(self) -> Path:
        """The certificate that signs the others."""
        return self.folder / "authority.pem"

    def certificate(self, name: str) -> Path:
        """The certificate of `server` or `client`."""
        return self.folder / f"{name}.pem"

    def key(self, name: str) -> Path:
        """Its key."""
        return self.folder / f"{name}.key"

    def context(self, *, demands_client: bool = False) -> ssl.SSLContext:
        """What a server needs to speak TLS, perhaps only with clients of the same authority."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate("server"), self.key("server"))
        if demands_client:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(self.authority)
        return context


def issue(folder: Path) -> Certificates:
    """Makes all of them with openssl; without it the test is skipped, in CI it fails."""
    made = Certificates(folder)
    _openssl("-nodes", "-subj", "/CN=authority", "-keyout", folder / "authority.key", "-out", made.authority)
    signed = ("-nodes", "-CA", made.authority, "-CAkey", folder / "authority.key")
    for name, extension in (("server", SERVER_NAMES), ("client", "basicConstraints=critical,CA:FALSE")):
        files = ("-keyout", made.key(name), "-out", made.certificate(name))
        _openssl(*signed, "-subj", f"/CN={name}", "-addext", extension, *files)
    return made


def locked_key(certificates: Certificates) -> Path:
    """The client's key under a pass phrase."""
    target = certificates.folder / "locked.key"
    _run("pkey", "-in", certificates.key("client"), "-aes256", "-passout", "pass:geheim", "-out", target)
    return target


def _openssl(*words: str | Path) -> None:
    _run("req", "-x509", *_NEW_KEY, *words)


def _run(*words: str | Path) -> None:
    openssl = shutil.which("openssl")
    if openssl is None:
        absent("openssl is not installed")
    subprocess.run([str(openssl), *map(str, words)], check=True, capture_output=True)
