"""HTTP as every source uses it: bounded in time and size, credentials from files, every failure one line for a person.

Messages name the address without its credentials and never carry a header, a body of unbounded size or the text of an
exception, which may hold a secret.
"""

from __future__ import annotations

import io
import time
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urljoin, urlsplit

import requests
import urllib3
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from requests.adapters import HTTPAdapter
from requests.auth import AuthBase, HTTPBasicAuth
from urllib3.util.retry import Retry

from advisor.domain.errors import SourceError

from .http_failure import failure

CONNECT_RETRY = Retry(
    total=2,
    connect=2,
    read=False,
    redirect=0,
    status=0,
    other=0,
    backoff_factor=0.3,
    respect_retry_after_header=False,
)
"""Connecting is tried again; a read that timed out is not, because the server would do the same work again. An answer
with Retry-After is an answer: urllib3 would make an error of it."""

_BUSY = frozenset({429, 502, 504})
_BUSY_PAUSES_SECONDS = (0.5, 1.0)
_CHUNK_BYTES = 1 << 16
_LONGEST_SECRET_BYTES = 1 << 16

Seconds = Annotated[float, Field(gt=0, le=3600)]


class HttpOptions(BaseModel):
    """How to reach one HTTP server. A proxy is taken from the environment unless named; none leads to this machine."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    url: str = Field(repr=False, description="Address, with the path prefix if the server has one")
    bearer_token_file: Path | None = Field(None, description="File with the bearer token; read anew for every request")
    user: str | None = Field(None, description="User name for basic authentication")
    password_file: Path | None = Field(None, description="File with the password; read anew for every request")
    ca_file: Path | None = Field(None, description="CA certificates (PEM) that sign the server's certificate")
    client_cert_file: Path | None = Field(None, description="Client certificate (PEM) for mutual TLS")
    client_key_file: Path | None = Field(None, description="Key (PEM) of the client certificate, if not in its file")
    verify_tls: bool = Field(default=True, description="Whether the server's certificate must be valid")
    proxy_url: str | None = Field(None, description="Proxy on the way, in place of HTTP(S)_PROXY of the environment")
    headers: dict[str, str] = Field(default_factory=dict, repr=False, description="Headers sent with every request")
    connect_timeout_seconds: Seconds = Field(3.0, description="How long to wait for a connection")
    read_timeout_seconds: Seconds = Field(30.0, description="How long the server may stay silent")
    total_timeout_seconds: Seconds = Field(120.0, description="How long one answer may take from request to last byte")

    @field_validator("url", "proxy_url")
    @classmethod
    def _is_http(cls, url: str | None) -> str | None:
        if url is None:
            return None
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
        if self.client_key_file and not self.client_cert_file:
            raise ValueError("client_key_file needs its client_cert_file")
        if self.proxy_url and urlsplit(self.proxy_url).username:
            raise ValueError("proxy_url must not hold credentials; give such a proxy in HTTPS_PROXY of the environment")
        return self

    @property
    def place(self) -> str:
        """The address for people: without user, password and anything else that may be secret."""
        return public_address(self.url)

    @property
    def caveat(self) -> str | None:
        """What a person should be reminded of whenever this server is read."""
        if self.verify_tls or not self.url.startswith("https:"):
            return None
        return "its certificate is not verified (verify_tls: false)"

    @property
    def proxies(self) -> dict[str, str]:
        """In the terms of `requests`: the proxy that was named, or none whatever the environment says, or neither."""
        if _is_this_machine(urlsplit(self.url).hostname or ""):
            return {"no_proxy": "*"}
        return {"http": self.proxy_url, "https": self.proxy_url} if self.proxy_url else {}


def _is_this_machine(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


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


class TooLargeError(SourceError):
    """An answer that is larger than allowed: a smaller one may be asked for."""


class Session(requests.Session):
    """A `requests` session that cannot hang, cannot be flooded and follows no redirect.

    A server that says it is busy is asked again after these pauses.
    """

    def __init__(
        self,
        options: HttpOptions,
        *,
        largest_body_bytes: int,
        busy_pauses_seconds: tuple[float, ...] = _BUSY_PAUSES_SECONDS,
    ) -> None:
        super().__init__()
        self._options = options
        self._busy_pauses_seconds = busy_pauses_seconds
        self._largest_body_bytes = largest_body_bytes
        self.sent = 0
        self.caveat = options.caveat
        self.auth = _credentials(options)
        self.headers.update(options.headers)
        self.verify = str(options.ca_file) if options.ca_file and options.verify_tls else options.verify_tls
        certificate, key = options.client_cert_file, options.client_key_file
        for setting in ("ca_file", "client_cert_file", "client_key_file"):
            path = getattr(options, setting)
            if path and not path.is_file():
                raise SourceError(f"{setting} {path} cannot be read", permanent=True)
        # The key is always named, because only then an encrypted one is an error and not a question on the terminal.
        self.cert = (str(certificate), str(key or certificate)) if certificate else None
        if not options.verify_tls:
            urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)  # `caveat` says it where it is read
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
            "proxies": options.proxies,
            "timeout": (options.connect_timeout_seconds, options.read_timeout_seconds),
        }
        try:
            response = self._patiently(method, url, *args, **keywords)
        except (OSError, ValueError, urllib3.exceptions.HTTPError) as error:
            raise failure(error, options.place, options.connect_timeout_seconds) from None
        if 300 <= response.status_code < 400:
            target = _redirect_target(str(url), response.headers.get("Location", ""))
            raise SourceError(f"{options.place} redirects to {target}; set url to where it lives", permanent=True)
        return response

    def _patiently(self, method: Any, url: Any, *args: Any, **keywords: Any) -> requests.Response:
        for pause in (*self._busy_pauses_seconds, None):
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
                raise TooLargeError(f"{self._options.place} answers with more than {limit} MiB; ask for less of it")
            if time.monotonic() > deadline:
                raise requests.Timeout
        return bytes(body)


class _FileCredentials(AuthBase):
    """Credentials read from their file for every request, so that rotating them needs no restart."""

    def __init__(self, options: HttpOptions) -> None:
        self._options = options

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self._options.bearer_token_file:
            token = read_secret(self._options.bearer_token_file, "bearer_token_file")
            request.headers["Authorization"] = f"Bearer {token}"
        elif self._options.user is not None and self._options.password_file:
            password = read_secret(self._options.password_file, "password_file")
            HTTPBasicAuth(self._options.user.encode(), password.encode())(request)
        return request


def _credentials(options: HttpOptions) -> AuthBase | None:
    return _FileCredentials(options) if options.bearer_token_file or options.user is not None else None


def read_secret(path: Path, setting: str) -> str:
    """The secret in a file. Raises SourceError that names the setting and the file, never the content."""
    try:
        with path.open("rb") as file:
            text = file.read(_LONGEST_SECRET_BYTES).decode().strip()
    except (OSError, UnicodeDecodeError):
        raise SourceError(f"{setting} {path} cannot be read", permanent=True) from None
    if not text or not text.isprintable():
        raise SourceError(f"{setting} {path} does not hold one line with the secret", permanent=True)
    return text
