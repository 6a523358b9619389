"""What kept an answer from arriving, as one line for a person: here alone transport errors become SourceError.

Told by the kind of the error, because the text of an exception may quote a header.
"""

from __future__ import annotations

import re

import requests
import urllib3

from advisor.domain.errors import SourceError

_VERIFICATION = re.compile(r"certificate verify failed: ([^(\]]{1,80})")


_LINES: tuple[tuple[tuple[type[Exception], ...], str], ...] = (
    (
        (requests.exceptions.ProxyError,),
        "{place} cannot be reached through the proxy; check proxy_url, or HTTP(S)_PROXY and NO_PROXY",
    ),
    ((requests.ConnectTimeout,), "{place} does not take a connection within {seconds:g} s; check url"),
    (
        (requests.Timeout, urllib3.exceptions.TimeoutError),
        "{place} does not answer in time; raise read_timeout_seconds or ask for less",
    ),
    (
        (requests.ConnectionError,),
        "{place} refuses the connection or closes it; is it running, is url right?",
    ),
    ((urllib3.exceptions.HTTPError,), "{place} broke off in the middle of an answer; try again"),
    (
        (requests.RequestException, ValueError),
        "{place}: no request can be made of these settings; check url and headers",
    ),
)
"""The first kind that an error is of counts: the errors of `requests` are kinds of each other, and of OSError."""


def failure(error: Exception, place: str, connect_timeout_seconds: float) -> SourceError:
    """The line for an error of `requests`, urllib3 or the system; `place` is the address as people may see it."""
    if isinstance(error, requests.exceptions.SSLError | urllib3.exceptions.SSLError):
        return SourceError(f"{place}: {_tls(str(error))}", permanent=True)
    for kinds, line in _LINES:
        if isinstance(error, kinds):
            return SourceError(line.format(place=place, seconds=connect_timeout_seconds))
    return SourceError(f"{place}: ca_file or client_cert_file holds no usable PEM", permanent=True)


_TLS_LINES = (
    ("password is required", "client_key_file is encrypted; give one without a pass phrase, for this account only"),
    ("KEY_VALUES_MISMATCH", "client_key_file is not the key of client_cert_file"),
    *(
        (alert, "it demands a client certificate that it trusts; set client_cert_file and client_key_file")
        for alert in ("certificate required", "alert bad certificate", "alert unknown ca", "handshake failure")
    ),
)
_VERIFICATION_ADVICE = (
    ("mismatch", "url must name the server as its certificate does"),
    ("expired", "renew the certificate, or check this machine's clock"),
    ("not yet valid", "renew the certificate, or check this machine's clock"),
    ("", "set ca_file to the certificates of who signed it"),
)


def _tls(text: str) -> str:
    """Why no secure connection came about, and what to do, from OpenSSL's words for it."""
    for words, line in _TLS_LINES:
        if words in text:
            return line
    if found := _VERIFICATION.search(text):
        why = " ".join(found[1].split())
        return f"{why}; {next(advice for words, advice in _VERIFICATION_ADVICE if words in why)}"
    return "the TLS handshake failed; does it speak https, and want client_cert_file?"
