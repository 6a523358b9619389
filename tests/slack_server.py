"""A local server that behaves as Slack does for the calls that posting makes, and fails as a test tells it to.

It keeps what it accepted, so that a test can count: one message a key, one share a file, whatever went wrong.
"""

from __future__ import annotations

import contextlib
import json
import re
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal
from urllib.parse import parse_qs

TOKEN = "xoxb-test-token"
CHANNEL = "C0123ABCD"
HOOK = "/services/T0/B0/secret"

Fault = Literal["429", "500 before", "500 after", "drop before", "drop after", "stall after", "not json"]
Json = dict[str, Any]


@dataclass
class SlackState:
    """What the workspace holds, and what is to go wrong. `faults` maps a method to its next failures, in order."""

    faults: dict[str, list[Fault]] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    messages: list[Json] = field(default_factory=list)
    files: dict[str, Json] = field(default_factory=dict)
    hooked: list[Json] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    retry_after: str = "7"
    page: int = 100
    accept_delay_seconds: float = 0.0
    clock: float = 1_795_968_000.0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def texts(self, *, thread: bool) -> list[str]:
        """Fallback texts of messages under others, or of those that stand alone."""
        return [m["text"] for m in self.messages if ("thread_ts" in m) is thread and "files" not in m]

    def shares(self) -> list[Json]:
        """Messages that share a file."""
        return [m for m in self.messages if "files" in m]

    def stamp(self) -> str:
        """The next ts."""
        self.clock += 1
        return f"{self.clock:.6f}"


class SlackError(Exception):
    """An answer with ok: false."""

    def __init__(self, error: str, *details: str, **more: str) -> None:
        super().__init__(error)
        self.answer: Json = {"ok": False, "error": error, **more}
        if details:
            self.answer |= {
                "errors": list(details),
                "response_metadata": {"messages": [f"[ERROR] {d}" for d in details]},
            }


@contextlib.contextmanager
def slack(state: SlackState | None = None) -> Iterator[tuple[str, SlackState]]:
    """Serves until the block ends; yields the base URL (the API is under /api/, the webhook at HOOK) and the state."""
    held = state or SlackState()

    class Handler(_Handler):
        workspace = held

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", held
        finally:
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    workspace: SlackState

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with contextlib.suppress(ConnectionError):
            self._answer(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass

    def _answer(self, body: bytes) -> None:
        state, method = self.workspace, self.path.removeprefix("/api/").partition("?")[0]
        if method.startswith("upload/"):
            method, file = "upload", method.removeprefix("upload/")
        with state.lock:
            state.calls.append(method)
            fault = state.faults[method].pop(0) if state.faults.get(method) else None
        if fault in ("429", "500 before", "drop before", "not json"):
            self._fail(fault)
            return
        if method in ("chat.postMessage", "files.completeUploadExternal"):
            time.sleep(state.accept_delay_seconds)
        with state.lock:
            answer = self._upload(file, body) if method == "upload" else self._accepted(method, body)
        if fault in ("500 after", "drop after", "stall after"):
            self._fail(fault)
            return
        self._reply(200 if isinstance(answer, dict) or answer in {"ok", "OK"} else 404, answer)

    def _fail(self, fault: Fault) -> None:
        if fault.startswith("drop"):
            self.close_connection = True
            self.connection.shutdown(2)
        elif fault == "stall after":
            time.sleep(3)
        elif fault == "429":
            self._reply(429, {"ok": False, "error": "ratelimited"}, {"Retry-After": self.workspace.retry_after})
        elif fault == "not json":
            self._reply(502, "<html>bad gateway</html>")
        else:
            self._reply(500, {"ok": False, "error": "internal_error"})

    def _reply(self, status: int, answer: Json | str, headers: Mapping[str, str] | None = None) -> None:
        body = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
        self.send_response(status)
        kind = "text/html" if isinstance(answer, str) else "application/json; charset=utf-8"
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _accepted(self, method: str, body: bytes) -> Json | str:
        state = self.workspace
        if self.path == HOOK:
            state.hooked.append(_message(json.loads(body)))
            return "ok"
        if method.startswith("/services/"):
            return "no_service"
        try:
            return {"ok": True, **self._called(method, body)}
        except SlackError as error:
            return error.answer

    def _called(self, method: str, body: bytes) -> Json:
        state = self.workspace
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            raise SlackError("invalid_auth")
        if method in state.errors:
            raise SlackError(state.errors[method], needed="channels:history")
        return _METHODS[method](state, _arguments(self.headers, body), self.headers["Host"])

    def _upload(self, file: str, body: bytes) -> str:
        self.workspace.files[file]["bytes"] = body
        return "OK"


def _arguments(headers: Any, body: bytes) -> Json:
    if "json" in headers.get("Content-Type", ""):
        return dict(json.loads(body))
    return {name: values[-1] for name, values in parse_qs(body.decode()).items()}


def _channel(given: Json, name: str = "channel") -> str:
    if given.get(name) != CHANNEL:
        raise SlackError("channel_not_found")
    return CHANNEL


def _message(given: Json) -> Json:
    """Checked as Slack checks it: 50 blocks, 3,000 characters a text, about 10,000 in all, 150 a title."""
    blocks = given.get("blocks") or []
    if len(blocks) > 50:
        raise SlackError("invalid_blocks", "no more than 50 items allowed [json-pointer:/blocks]")
    total = 0
    for place, block in enumerate(blocks):
        for text in block.get("elements") or [block["text"]]:
            most = 150 if block["type"] == "header" else 3_000
            if not 1 <= len(text["text"]) <= most:
                raise SlackError("invalid_blocks", f"must be less than {most + 1} [json-pointer:/blocks/{place}/text]")
            total += len(text["text"])
    if total > 10_000:
        raise SlackError("msg_blocks_too_long")
    if not given.get("text") or len(given["text"]) > 40_000:
        raise SlackError("no_text")
    return {name: given[name] for name in ("text", "blocks", "metadata", "thread_ts") if given.get(name)}


def _post_message(state: SlackState, given: Json, _host: str) -> Json:
    channel = _channel(given)
    message = _message(given) | {"ts": state.stamp(), "type": "message"}
    if "thread_ts" in message and not any(m["ts"] == message["thread_ts"] for m in state.messages):
        raise SlackError("thread_not_found")
    state.messages.append(message)
    return {"channel": channel, "ts": message["ts"], "message": message}


def _history(state: SlackState, given: Json, _host: str) -> Json:
    _channel(given)
    return _paged(state, given, [m for m in state.messages if "thread_ts" not in m])


def _replies(state: SlackState, given: Json, _host: str) -> Json:
    _channel(given)
    thread = given["ts"]
    return _paged(state, given, [m for m in state.messages if thread in (m["ts"], m.get("thread_ts"))])


def _paged(state: SlackState, given: Json, messages: list[Json]) -> Json:
    """Newest first, `page` at a time; metadata only where it is asked for."""
    found = [m for m in reversed(messages) if float(m["ts"]) > float(given.get("oldest", 0))]
    start = int(given.get("cursor") or 0)
    shown = found[start : start + state.page]
    if str(given.get("include_all_metadata")) not in {"1", "true", "True"}:
        shown = [{k: v for k, v in m.items() if k != "metadata"} for m in shown]
    rest = start + state.page < len(found)
    return {"messages": shown, "response_metadata": {"next_cursor": str(start + state.page) if rest else ""}}


def _upload_url(state: SlackState, given: Json, host: str) -> Json:
    name = f"F{len(state.files):08}"
    state.files[name] = {"name": given["filename"], "length": int(given["length"]), "alt": given.get("alt_txt")}
    return {"file_id": name, "upload_url": f"http://{host}/api/upload/{name}"}


def _complete_upload(state: SlackState, given: Json, _host: str) -> Json:
    channel = _channel(given, "channel_id")
    listed = given["files"] if isinstance(given["files"], list) else json.loads(given["files"])
    for file in listed:
        held = state.files[file["id"]]
        if len(_posted_bytes(held["bytes"])) != held["length"]:
            raise SlackError("file_upload_size_mismatch")
        shared = {"id": file["id"], "name": held["name"], "title": file.get("title")}
        under = {"thread_ts": given["thread_ts"]} if given.get("thread_ts") else {}
        state.messages.append({"ts": state.stamp(), "text": "", "type": "message", "files": [shared], **under})
    return {"files": [{"id": file["id"], "title": file.get("title")} for file in listed], "channel": channel}


def _posted_bytes(body: bytes) -> bytes:
    """The file out of a multipart body, or the body itself."""
    parted = re.match(rb"--[^\r\n]+\r\n.*?\r\n\r\n(.*)\r\n--[^\r\n]+--\r\n?$", body, re.DOTALL)
    return parted[1] if parted else body


_METHODS = {
    "auth.test": lambda _state, _given, _host: {"user_id": "U0ADVISOR", "team": "test"},
    "chat.postMessage": _post_message,
    "conversations.history": _history,
    "conversations.replies": _replies,
    "files.getUploadURLExternal": _upload_url,
    "files.completeUploadExternal": _complete_upload,
}
