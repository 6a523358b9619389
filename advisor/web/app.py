"""The application: which address shows what. It knows nothing but its state and changes nothing."""

from __future__ import annotations

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from starlette.convertors import Convertor, register_url_convertor
from starlette.exceptions import HTTPException as StarletteHTTPException

from advisor import __version__
from advisor.outlets.plain import plain

from . import api, pages
from .state import WebState


class _NameConvertor(Convertor[str]):
    """The rest of the path, whatever it holds: names have slashes, and hostile ones line breaks."""

    regex = "(?s:.*)"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("deployment", _NameConvertor())


def create_app(state: WebState) -> FastAPI:
    """The application over a state. Serve it with `advisor.web.server.serve`, which guards the door."""
    # The interactive documentation would load scripts from another host.
    app = FastAPI(
        title="Serving Advisor",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/v1/openapi.json",
        redirect_slashes=False,
        exception_handlers={StarletteHTTPException: _refused},
    )
    app.include_router(api.router(state))
    _add_pages(app, state)
    _add_probes(app, state)
    return app


def _add_pages(app: FastAPI, state: WebState) -> None:
    @app.get("/", response_class=HTMLResponse, include_in_schema=False)
    def fleet() -> str:
        return pages.fleet(api.evaluated(state), state.health(), state.collecting())

    @app.get("/deployments/{name:deployment}", response_class=HTMLResponse, include_in_schema=False)
    def deployment(name: str) -> str:
        report = api.evaluated(state)
        found = api.find(state, report, name)
        if found is None:
            raise HTTPException(404, "No deployment has this name.")
        return pages.deployment(report, found, state.past(found.evidence.name), state.health())

    @app.get("/history", response_class=HTMLResponse, include_in_schema=False)
    def history() -> str:
        return pages.history(state.records(), state.track_records(), state.health())


def _add_probes(app: FastAPI, state: WebState) -> None:
    @app.get("/healthz", response_class=PlainTextResponse, include_in_schema=False)
    def healthz() -> str:
        return "alive\n"

    @app.get("/readyz", response_class=PlainTextResponse, include_in_schema=False)
    def readyz(response: Response) -> str:
        health = state.health()
        response.status_code = 200 if health.ready else 503
        return "ready\n" if health.ready else f"{plain(health.reason)}\n"

    @app.get("/metrics", include_in_schema=False)
    def metrics() -> Response:
        return Response(state.metrics(), media_type=CONTENT_TYPE_PLAIN_0_0_4)


async def _refused(request: Request, error: StarletteHTTPException) -> Response:
    """People get a page, programs get JSON."""
    if request.url.path.startswith("/api/"):
        return JSONResponse({"detail": error.detail}, error.status_code, error.headers)
    return HTMLResponse(pages.message(error.status_code, error.detail), error.status_code, error.headers)
