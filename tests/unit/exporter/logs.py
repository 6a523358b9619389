"""What a gateway logs, for tests of what is counted of it."""

from __future__ import annotations

import json

T0 = 1_699_999_200.0
REFUSAL = (
    "This model's maximum context length is 4096 tokens. However, your prompt contains {} input tokens, which exceeds "
    "this limit even without any output tokens."
)


def row(prompt: int, output: int, *, at: float = 0.0, model: str = "m", **more: object) -> str:
    """A request that was answered."""
    usage = {"prompt_tokens": prompt, "completion_tokens": output}
    return _line({"ts": T0 + at, "model": model, "status": 200, "usage": usage} | more)


def refused(needed: int, *, at: float = 0.0, model: str = "m") -> str:
    """A request that was longer than the limit."""
    error = {"type": "BadRequestError", "code": 400, "message": REFUSAL.format(needed)}
    return _line({"ts": T0 + at, "model": model, "status": 400, "error": error})


def failed(*, at: float = 0.0, model: str = "m") -> str:
    """A request that the server could not answer."""
    return _line({"ts": T0 + at, "model": model, "status": 503, "error": {"message": "busy"}})


def silent(*, at: float = 0.0, model: str = "m") -> str:
    """An answer without token counts."""
    return _line({"ts": T0 + at, "model": model, "status": 200})


def _line(document: dict[str, object]) -> str:
    return json.dumps(document) + "\n"
