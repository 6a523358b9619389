"""The application: /metrics, packed for whoever takes it so, and /healthz."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

_FAST = 1


def create_app(metrics: Callable[[], bytes]) -> Starlette:
    """The application over a text. Serve it with `advisor.web.server.serve`, which guards the door."""

    def exposed(_: Request) -> Response:
        return Response(metrics(), media_type=CONTENT_TYPE_PLAIN_0_0_4)

    def alive(_: Request) -> Response:
        return PlainTextResponse("alive\n")

    return Starlette(
        routes=[Route("/metrics", exposed), Route("/healthz", alive)],
        middleware=[Middleware(GZipMiddleware, compresslevel=_FAST)],
    )
