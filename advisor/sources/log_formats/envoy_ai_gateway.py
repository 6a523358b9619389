"""Envoy AI Gateway's access log in JSON, with the fields of its example: token counts of the answers' usage.

What is logged is whatever the gateway's `EnvoyProxy` resource says; a log with other names needs a field map.
"""

from __future__ import annotations

from .mapped import FieldMap, mapped_format

FIELDS = FieldMap(
    timestamp="start_time",
    timestamp_of="start",
    model="gen_ai.request.model",
    upstream="upstream_host",
    status="response_code",
    prompt_tokens="gen_ai.usage.input_tokens",
    output_tokens="gen_ai.usage.output_tokens",
    duration="duration",
    duration_unit="ms",
    request_id="x-request-id",
)

FORMAT = mapped_format(FIELDS, "envoy_ai_gateway", marks=("gen_ai.usage.input_tokens", "start_time", "response_code"))
