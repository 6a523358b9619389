"""The server: the application in a thread of the daemon, with bounds on what one connection may take."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from typing import cast

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from advisor.domain.errors import ConfigError

from .guard import Guard
from .options import WebOptions

CONNECTION_SECONDS = 60.0
"""The longest life of a connection, whatever it does: stuck and trickling clients go, others connect anew."""
_MOST_CONNECTIONS = 200
_HEADER_BYTES = 32 * 1024
_START_SECONDS = 10.0
_STOP_SECONDS = 5.0


class _MortalProtocol(H11Protocol):
    """uvicorn waits for ever for the end of a request's head; here every connection ends."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._end = self.loop.call_later(CONNECTION_SECONDS, transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end.cancel()
        super().connection_lost(exc)


class Server:
    """A server that listens when it is made and answers from `start` to `stop`."""

    def __init__(self, app: ASGIApp, options: WebOptions) -> None:
        self._socket = _listening(options)
        host, port = self._socket.getsockname()[:2]
        self.url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        """Where it listens, with the port that was really taken: `http://127.0.0.1:9109`."""
        config = uvicorn.Config(
            Guard(app, options.trusted_hosts),
            http=_MortalProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=_MOST_CONNECTIONS,
            h11_max_incomplete_event_size=_HEADER_BYTES,
            timeout_keep_alive=5,
            timeout_graceful_shutdown=2,
        )
        self._server = uvicorn.Server(config)
        # uvicorn leaves signals alone outside the main thread.
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), name="web", daemon=True)

    @property
    def alive(self) -> bool:
        """Whether it answers."""
        return self._thread.is_alive() and self._server.started

    def start(self) -> None:
        """Answer requests; returns once it does. Raises ConfigError when it cannot."""
        self._thread.start()
        deadline = time.monotonic() + _START_SECONDS
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > deadline:
                raise ConfigError(f"web server on {self.url} did not start: see the log")
            time.sleep(0.01)

    def stop(self) -> None:
        """Finish what is being answered (two seconds at most) and close."""
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join(_STOP_SECONDS)
        self._socket.close()


def serve(app: ASGIApp, options: WebOptions) -> Server:
    """Listen on the configured address. Raises ConfigError when it is taken or not of this machine."""
    return Server(app, options)


def _listening(options: WebOptions) -> socket.socket:
    host, port = options.address
    try:
        family = cast("socket.AddressFamily", socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0])
        return socket.create_server((host, port), family=family)
    except OSError as error:
        why = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
        raise ConfigError(f"listen {options.listen}: {why}: choose another address") from None
