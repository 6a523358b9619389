"""A real HTTP server on loopback that answers as a test says."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answering = Callable[[BaseHTTPRequestHandler, bytes], None]
"""Writes the answer to a request, given the request's handler and its body."""


def reply(
    handler: BaseHTTPRequestHandler, body: bytes, status: int = 200, headers: dict[str, str] | None = None
) -> None:
    """One whole answer."""
    handler.send_response(status)
    for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(body)


@contextlib.contextmanager
def answering(answer: Answering, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Serves on a free port until the block ends, over TLS if told so; yields the URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            with contextlib.suppress(ConnectionError):
                answer(self, self.rfile.read(int(self.headers.get("Content-Length", 0))))

        do_POST = do_GET  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield f"{'https' if tls else 'http'}://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@contextlib.contextmanager
def tunnelling(port: int, asked: list[str]) -> Iterator[str]:
    """A proxy that tunnels every CONNECT to a port of this machine, and notes what it was asked; yields its URL."""

    class Proxy(BaseHTTPRequestHandler):
        def do_CONNECT(self) -> None:
            asked.append(f"{self.path} {self.headers.get('Authorization')}")
            with socket.create_connection(("127.0.0.1", port)) as target:
                self.send_response(200)
                self.end_headers()
                back = threading.Thread(target=_pump, args=(target, self.connection), daemon=True)
                back.start()
                _pump(self.connection, target)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    """Bytes from one to the other until either ends."""
    with contextlib.suppress(OSError):
        while chunk := source.recv(65536):
            sink.sendall(chunk)
        sink.shutdown(socket.SHUT_WR)
