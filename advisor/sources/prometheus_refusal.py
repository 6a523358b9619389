"""Why a server of metrics refuses a query, as one line that says what to do about it.

The limits are those of Prometheus, Thanos, Cortex, Mimir and VictoriaMetrics, told by the words of their messages,
because all of them answer 422 (or 400, 429, 503) whatever the limit was.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .http_session import one_line

_CAUSE_CHARACTERS = 160
_LONGEST_READ = 20_000
_FLAG = re.compile(r"(?<![\w-])--?[a-z][a-z-]*\.[a-zA-Z][\w.-]*\w(?![\w*-]|\.\w)")
_SENTENCE_END = re.compile(r"[;.](?:\s|$)|\), ")

_STATUS_ADVICE = {
    401: "wants credentials; set bearer_token_file, or user and password_file",
    403: "refuses these credentials; check bearer_token_file, user and password_file, or tenant",
    404: "has no query API there; does url lack a path prefix?",
}
_NO_TENANT = b"no org id"


@dataclass(frozen=True, slots=True)
class Refusal:
    """`why` continues the server's address. `permanent`: the same query will be refused again."""

    why: str
    permanent: bool


@dataclass(frozen=True, slots=True)
class _Limit:
    """A limit by the words with which servers tell it; `flag` raises it where the message names none."""

    words: re.Pattern[str]
    advice: str
    flag: str
    permanent: bool = True


_LIMITS = (
    _Limit(
        re.compile(r"the (?:total )?query time range exceeds the limit", re.IGNORECASE),
        "look back less far (since), or raise",
        "the tenant's limit on the length of a query",
    ),
    _Limit(
        re.compile(
            r"the query exceeded the maximum number of series|the query hit the max number of series limit|"
            r"exceeded series limit"
        ),
        "narrow matchers, or raise",
        "the server's limit on the series of a query",
    ),
    _Limit(
        re.compile(r"the number of matching timeseries exceeds"),
        "narrow matchers, or raise",
        "-search.maxUniqueTimeseries",
    ),
    _Limit(
        re.compile(r"query processing would load too many samples|cannot select more than -search\.maxSamples"),
        "narrow matchers, look back less far (since), or raise",
        "--query.max-samples",
    ),
    _Limit(
        re.compile(
            r"the query exceeded the (?:aggregated chunks size|maximum number of (?:estimated )?chunks|maximum allowed)"
            r"|the query hit the (?:max number of chunks|aggregated chunks size) limit|not enough memory for processing"
        ),
        "narrow matchers, look back less far (since), or raise",
        "the server's limit on one query",
    ),
    _Limit(
        re.compile(r"exceeded maximum resolution of|too many points for the given"),
        "the advisor needs 10,000 points a series: raise",
        "the server's limit on them",
    ),
    _Limit(
        re.compile(r"query timed out|context deadline exceeded|timeout exceeded"),
        "narrow matchers, lower sample_budget, or raise read_timeout_seconds and",
        "--query.timeout",
        permanent=False,
    ),
    _Limit(
        re.compile(r"too many outstanding requests|couldn't start executing the request|too many concurrent"),
        "try again when it is less busy, or raise",
        "its limit on concurrent queries",
        permanent=False,
    ),
)


def explained(status: int, body: bytes, document: Mapping[str, Any]) -> Refusal:
    """What an answer that is no success means. `document` is the JSON object in its body, empty where there is none."""
    told = document.get("error")
    if status == 401 and _NO_TENANT in body[:_LONGEST_READ]:
        return Refusal("serves several tenants; set tenant (401)", permanent=True)
    if status in _STATUS_ADVICE:
        return Refusal(f"{_STATUS_ADVICE[status]} ({status})", permanent=True)
    if isinstance(told, str):
        return _of_error(status, one_line(str(document.get("errorType", status)), 40), told)
    if status != 200:
        return Refusal(f"answers with HTTP status {status}; is it up?", permanent=False)
    if body.lstrip()[:1] == b"{" and not document:
        return Refusal("gives an answer that breaks off or is no JSON; does a proxy cut it?", permanent=False)
    return Refusal("does not answer as Prometheus does; is url its address?", permanent=True)


def _of_error(status: int, kind: str, told: str) -> Refusal:
    """By the server's own error text. Errors wrap each other, so that the cause stands at the end."""
    text = told[-_LONGEST_READ:]
    for limit in _LIMITS:
        if found := limit.words.search(text):
            cause = one_line(_SENTENCE_END.split(text[found.start() :])[0], _CAUSE_CHARACTERS)
            flag = _FLAG.search(text, found.start())
            raised = f"{limit.advice} {one_line(flag[0], 60) if flag else limit.flag}"
            return Refusal(f"cannot answer ({kind}): {cause}; {raised}", permanent=limit.permanent)
    cause = one_line(text[-_CAUSE_CHARACTERS:], _CAUSE_CHARACTERS)
    cut = "…" if len(text) > _CAUSE_CHARACTERS else ""
    return Refusal(f"cannot answer ({kind}): {cut}{cause}", permanent=status in {400, 422})
