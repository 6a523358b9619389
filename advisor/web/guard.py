"""The door: what reaches the application, and the headers with which everything leaves."""

from __future__ import annotations

import re
from collections.abc import MutableMapping
from ipaddress import ip_address
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .pages import style_hash

_PORT = re.compile(r":[0-9]*$")
HEADERS = {
    # The pages need one inline style sheet and nothing else: no script, no image, no frame, no form, no other host.
    "content-security-policy": (
        f"default-src 'none'; style-src 'sha256-{style_hash()}'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-cache",
}


class Guard:
    """Lets GET and HEAD for a trusted host through; the rest is answered here. Wraps the whole application."""

    def __init__(self, app: ASGIApp, trusted_hosts: frozenset[str] | None) -> None:
        self._app = app
        self._trusted = trusted_hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, as ASGI has it."""

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                _harden(message)
            await send(message)

        refusal = self._refusal(scope)
        # The server drops the body of a HEAD by itself.
        await (refusal or self._app)({**scope, "method": "GET"}, receive, send_guarded)

    def _refusal(self, scope: MutableMapping[str, Any]) -> PlainTextResponse | None:
        if scope["method"] not in {"GET", "HEAD"}:
            return PlainTextResponse("this server is read-only: GET or HEAD\n", 405, {"allow": "GET, HEAD"})
        host = _PORT.sub("", Headers(scope=scope).get("host", "")).lower()
        if self._trusted is not None and host not in self._trusted and not _is_address(host):
            # 421: the request was meant for another server; the name is not repeated, it is hostile.
            return PlainTextResponse("not a name of this server: add it to web.hosts\n", 421)
        return None


def _is_address(host: str) -> bool:
    try:
        ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


def _harden(message: Message) -> None:
    headers = MutableHeaders(raw=list(message["headers"]))
    for name, value in HEADERS.items():
        headers.setdefault(name, value)
    message["headers"] = headers.raw
