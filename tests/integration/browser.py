"""A real headless Chromium, driven over a pipe with its DevTools protocol: no driver and no library in between."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from base64 import b64decode
from collections.abc import Iterator
from typing import Any

_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
_SECONDS = 60.0


class Browser:
    """One tab. `complaints` are the console messages, refusals of the content security policy among them."""

    def __init__(self, reader: int, writer: int) -> None:
        self._reader, self._writer = reader, writer
        self._buffer = b""
        self._calls = 0
        self._events: list[dict[str, Any]] = []
        self.complaints: list[str] = []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session: str | None = None
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Log", "Runtime", "Network"):
            self._call(f"{domain}.enable")

    def view(self, width: int, theme: str) -> None:
        """A viewport of this width in CSS pixels, in the theme `light` or `dark`."""
        metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self._call("Emulation.setDeviceMetricsOverride", **metrics)
        self._call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])

    def open(self, url: str) -> None:
        """Load a page to its end."""
        self._call("Page.navigate", url=url)
        self._wait_for("Page.loadEventFired")

    def asked(self, expression: str) -> Any:
        """The JSON value of a script's expression, evaluated from outside the page and so free of its policy."""
        answer = self._call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def screenshot(self) -> bytes:
        """The whole page as PNG."""
        return b64decode(self._call("Page.captureScreenshot", captureBeyondViewport=True)["data"])

    def _call(self, method: str, **parameters: object) -> dict[str, Any]:
        self._calls += 1
        message = {"id": self._calls, "method": method, "params": parameters}
        if getattr(self, "_session", None):
            message["sessionId"] = self._session
        os.write(self._writer, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._calls:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result

    def _wait_for(self, event: str) -> None:
        while not any(known["method"] == event for known in self._events):
            self._next()
        self._events.clear()

    def _next(self) -> dict[str, Any]:
        deadline = time.monotonic() + _SECONDS
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._reader], [], [], max(0.0, deadline - time.monotonic()))
            received = os.read(self._reader, 1 << 20) if ready else b""
            assert received, "the browser does not answer"
            self._buffer += received
        raw, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(raw)
        if "method" in message:
            self._events.append(message)
            self._note(message)
        return message

    def _note(self, event: dict[str, Any]) -> None:
        if event["method"] == "Log.entryAdded":
            self.complaints.append(event["params"]["entry"]["text"])
        if event["method"] in {"Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Page.javascriptDialogOpening"}:
            self.complaints.append(json.dumps(event["params"])[:500])


def program() -> str | None:
    """Where a Chromium is installed, or None."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@contextlib.contextmanager
def browsing(chromium: str) -> Iterator[Browser]:
    """A browser with an empty profile, until the block ends."""
    down_reader, down_writer = os.pipe()
    up_reader, up_writer = os.pipe()
    # The protocol is read from file descriptor 3 and written to 4.
    connect = f'exec 3<&{down_reader} 4>&{up_writer}; exec "$@"'
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            ["bash", "-c", connect, "sh", chromium, *_FLAGS, f"--user-data-dir={profile}"],
            pass_fds=(down_reader, up_writer),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(down_reader)
        os.close(up_writer)
        try:
            yield Browser(up_reader, down_writer)
        finally:
            process.terminate()
            process.wait(timeout=20)
            os.close(up_reader)
            os.close(down_writer)
