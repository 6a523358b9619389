"""HTTP as every source uses it: bounded in time and size, credentials from files, every failure one line for a person.

This is the only place where transport errors become `SourceError`. Messages name the address without its credentials
and never carry a header, a body of unbounded size or the text of an exception, which may hold a secret.
"""

from __future__ import annotations

import io
import re
import time
from pathlib import Path
from typing import Annotated, Any, NoReturn
from urllib.parse import urljoin, urlsplit

import requests
import urllib3
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from requests.adapters import HTTPAdapter
from requests.auth import AuthBase, HTTPBasicAuth
from urllib3.util.retry import Retry

from advisor.domain.errors import SourceError

CONNECT_RETRY = Retry(total=2, connect=2, read=False, redirect=0, status=0, other=0, backoff_factor=0.3)
"""Connecting is tried again; a read that timed out is not, because the server would do the same work again."""

_BUSY = frozenset({429, 502, 504})
_BUSY_PAUSES_SECONDS = (0.5, 1.0)
_CHUNK_BYTES = 1 << 16
_LONGEST_SECRET_BYTES = 1 << 16

Seconds = Annotated[float, Field(gt=0, le=3600)]


class HttpOptions(BaseModel):
    """How to reach one HTTP server. Proxies are taken from the environment, as every tool does."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    url: str = Field(repr=False, description="Address, with the path prefix if the server has one")
    bearer_token_file: Path | None = Field(None, description="File with the bearer token; read anew for every request")
    user: str | None = Field(None, description="User name for basic authentication")
    password_file: Path | None = Field(None, description="File with the password; read anew for every request")
    ca_file: Path | None = Field(None, description="CA certificates (PEM) that sign the server's certificate")
    client_cert_file: Path | None = Field(None, description="Client certificate (PEM) for mutual TLS")
    client_key_file: Path | None = Field(None, description="Key (PEM) of the client certificate, if not in its file")
    verify_tls: bool = Field(default=True, description="Whether the server's certificate must be valid")
    headers: dict[str, str] = Field(default_factory=dict, repr=False, description="Headers sent with every request")
    connect_timeout_seconds: Seconds = Field(3.0, description="How long to wait for a connection")
    read_timeout_seconds: Seconds = Field(30.0, description="How long the server may stay silent")
    total_timeout_seconds: Seconds = Field(120.0, description="How long one answer may take from request to last byte")

    @field_validator("url")
    @classmethod
    def _is_http(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError("must be an address such as http://prometheus:9090")
        if parts.query or parts.fragment or parts.port == 0:
            raise ValueError("must not have a query, a fragment or port 0")
        return url.rstrip("/")

    @model_validator(mode="after")
    def _one_kind_of_credentials(self) -> HttpOptions:
        if self.bearer_token_file and self.user:
            raise ValueError("bearer_token_file and user exclude each other")
        if (self.user is None) != (self.password_file is None):
            raise ValueError("user and password_file belong together")
        return self

    @property
    def place(self) -> str:
        """The address for people: without user, password and anything else that may be secret."""
        return public_address(self.url)


def public_address(url: str) -> str:
    """`https://host:port/path` of a URL: no credentials, no query."""
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    port = f":{parts.port}" if parts.port else ""
    return one_line(f"{parts.scheme}://{host}{port}{parts.path}", 200)


def one_line(text: str, limit: int = 200) -> str:
    """Foreign text fit for a message: control characters become blanks, and what is too long is cut."""
    flat = " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * limit]).split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def _redirect_target(url: str, location: str) -> str:
    try:
        return public_address(urljoin(url, location))
    except ValueError:
        return "nowhere"


class Session(requests.Session):
    """A `requests` session that cannot hang, cannot be flooded and follows no redirect."""

    def __init__(self, options: HttpOptions, *, largest_body_bytes: int) -> None:
        super().__init__()
        self._options = options
        self._largest_body_bytes = largest_body_bytes
        self.sent = 0
        self.auth = _credentials(options)
        self.headers.update(options.headers)
        self.verify = str(options.ca_file) if options.ca_file and options.verify_tls else options.verify_tls
        certificate, key = options.client_cert_file, options.client_key_file
        for setting in ("ca_file", "client_cert_file", "client_key_file"):
            path = getattr(options, setting)
            if path and not path.is_file():
                raise SourceError(f"{setting} {path} cannot be read", permanent=True)
        self.cert = (str(certificate), str(key)) if certificate and key else str(certificate) if certificate else None
        for scheme in ("http://", "https://"):
            self.mount(scheme, HTTPAdapter(max_retries=CONNECT_RETRY))

    def request(self, method: Any, url: Any, *args: Any, **keywords: Any) -> requests.Response:
        """Send; the body is read completely. Parameters of a POST go into the form, so that no query is too long.

        Raises SourceError for everything that keeps an answer from arriving whole, and for redirects.
        """
        options = self._options
        if str(method).upper() == "POST" and keywords.get("params"):
            keywords["data"] = keywords.pop("params")
        keywords |= {
            "stream": True,
            "allow_redirects": False,
            "verify": self.verify,  # said here, because REQUESTS_CA_BUNDLE would overrule the session's own
            "timeout": (options.connect_timeout_seconds, options.read_timeout_seconds),
        }
        try:
            response = self._patiently(method, url, *args, **keywords)
        except (OSError, ValueError, urllib3.exceptions.HTTPError) as error:
            _explain(error, options)
        if 300 <= response.status_code < 400:
            target = _redirect_target(str(url), response.headers.get("Location", ""))
            raise SourceError(f"{options.place} redirects to {target}; set url to where it lives", permanent=True)
        return response

    def _patiently(self, method: Any, url: Any, *args: Any, **keywords: Any) -> requests.Response:
        for pause in (*_BUSY_PAUSES_SECONDS, None):
            deadline = time.monotonic() + self._options.total_timeout_seconds
            self.sent += 1
            response = super().request(method, url, *args, **keywords)
            with response:
                body = self._read(response, deadline)
            response.raw = io.BytesIO(body)
            if pause is None or response.status_code not in _BUSY:
                break
            time.sleep(pause)
        return response

    def _read(self, response: requests.Response, deadline: float) -> bytes:
        body = bytearray()
        for chunk in response.raw.stream(_CHUNK_BYTES, decode_content=True):
            body += chunk
            if len(body) > self._largest_body_bytes:
                limit = self._largest_body_bytes >> 20
                raise SourceError(f"{self._options.place} answers with more than {limit} MiB; ask for less of it")
            if time.monotonic() > deadline:
                raise requests.Timeout
        return bytes(body)


def _explain(error: Exception, options: HttpOptions) -> NoReturn:
    """The one line for a transport error, by its kind: the text of an exception may quote a header."""
    place = options.place
    if isinstance(error, requests.exceptions.SSLError | urllib3.exceptions.SSLError):
        reason = re.search(r"certificate verify failed: ([^(\]]{1,80})", str(error))
        why = one_line(reason[1]) if reason else "the TLS handshake failed"
        raise SourceError(f"{place}: {why}; set ca_file (or client_cert_file)", permanent=True) from None
    if isinstance(error, requests.exceptions.ProxyError):
        raise SourceError(f"{place} cannot be reached through the proxy; check HTTP(S)_PROXY and NO_PROXY") from None
    if isinstance(error, requests.ConnectTimeout):
        limit = options.connect_timeout_seconds
        raise SourceError(f"{place} does not take a connection within {limit:g} s; check url") from None
    if isinstance(error, requests.Timeout | urllib3.exceptions.TimeoutError):
        raise SourceError(f"{place} does not answer in time; raise read_timeout_seconds or ask for less") from None
    if isinstance(error, requests.ConnectionError):
        raise SourceError(f"{place} refuses the connection or closes it; is it running, is url right?") from None
    if isinstance(error, urllib3.exceptions.HTTPError):
        raise SourceError(f"{place} broke off in the middle of an answer; try again") from None
    if isinstance(error, requests.RequestException | ValueError):
        raise SourceError(f"{place}: no request can be made of these settings; check url and headers") from None
    raise SourceError(f"{place}: ca_file or client_cert_file holds no usable PEM", permanent=True) from None


class _FileCredentials(AuthBase):
    """Credentials read from their file for every request, so that rotating them needs no restart."""

    def __init__(self, options: HttpOptions) -> None:
        self._options = options

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self._options.bearer_token_file:
            token = _secret(self._options.bearer_token_file, "bearer_token_file")
            request.headers["Authorization"] = f"Bearer {token}"
        elif self._options.user is not None and self._options.password_file:
            password = _secret(self._options.password_file, "password_file")
            HTTPBasicAuth(self._options.user.encode(), password.encode())(request)
        return request


def _credentials(options: HttpOptions) -> AuthBase | None:
    return _FileCredentials(options) if options.bearer_token_file or options.user is not None else None


def _secret(path: Path, setting: str) -> str:
    """The secret in a file. Raises SourceError that names the setting and the file, never the content."""
    try:
        with path.open("rb") as file:
            text = file.read(_LONGEST_SECRET_BYTES).decode().strip()
    except (OSError, UnicodeDecodeError):
        raise SourceError(f"{setting} {path} cannot be read", permanent=True) from None
    if not text or not text.isprintable():
        raise SourceError(f"{setting} {path} does not hold one line with the secret", permanent=True)
    return text
