"""Lines of each format as their writers write them, for tests that damage them and for those that time reading."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from advisor.sources.log_formats import FieldMap
from tests.unit.sources.log_formats.test_engine_logs import (
    ABORTED,
    EVENT,
    FINISHED,
    REFUSAL,
    SUCCESS,
    SUCCESS_TEXT,
    TIMES,
    span,
    text,
)
from tests.unit.sources.log_formats.test_log_formats import ENVOY, GATEWAY, LITELLM, NGINX, NGINX_FIELDS

FIELDS: FieldMap = NGINX_FIELDS
GOOD: Mapping[str, Sequence[bytes]] = {
    "openai_gateway": [text(GATEWAY), text(GATEWAY | {"usage": None, "error": {"message": "too long", "code": 400}})],
    "litellm": [text(LITELLM), text(LITELLM | {"status": "failure", "error_information": {"error_code": "400"}})],
    "envoy_ai_gateway": [text(ENVOY)],
    "mapped": [text(json.dumps(NGINX))],
    "sglang": [
        text(FINISHED),
        text(FINISHED.replace("'e2e_latency': 2.5}}", TIMES)),
        text(ABORTED),
        text(EVENT),
        b"[2026-11-29 13:46:40 TP0] Decode batch, #running-req: 8, #token: 5000, token usage: 0.10, #queue-req: 0",
    ],
    "tgi": [text(SUCCESS), text(SUCCESS_TEXT), text(f"2026-11-29T13:46:40Z ERROR text_generation_router: {REFUSAL}")],
    "llamacpp": [
        b"0.45.947.544 I slot print_timing: id  2 | task 2 |        eval time =   19215.80 ms /    71 tokens (  274 ms",
        b"0.45.947.691 I slot      release: id  2 | task 2 | stop processing: n_tokens = 981, truncated = 0",
        b"send_error: task id = 699, error: request (19639 tokens) exceeds the available context size (2048 tokens)",
    ],
    "otlp": [
        span({"gen_ai.usage.prompt_tokens": 374, "gen_ai.usage.completion_tokens": 63, "gen_ai.request.n": 2}),
        span({"gen_ai.usage.input_tokens": 374, "gen_ai.response.finish_reasons": ["length"], "server.port": 80}),
    ],
}
