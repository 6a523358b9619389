"""Lines out of Loki's API: none lost, none twice, whatever the pages, the streams and the moods of the server."""

from __future__ import annotations

import json
from collections import Counter
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from advisor.domain.cursor import Cursors
from advisor.domain.evidence import Window
from advisor.sources.request_log import Followed, LogOptions, LogReading, follow, loki_api, read_request_logs, survey
from advisor.sources.request_log.loki_api import _asked_to_wait
from tests.unit.sources.http_server import answering, reply
from tests.unit.sources.request_log.loki_server import Logged, Loki, serving

T0 = 1_795_960_800
NANO = 10**9
DELAY = 120


def request(prompt: int, at: float = 0.0) -> str:
    usage = {"prompt_tokens": prompt, "completion_tokens": 7}
    return json.dumps({"ts": T0 + at, "model": "m", "status": 200, "usage": usage})


def logged(prompt: int, at: float, stream: str = "a") -> Logged:
    return int((T0 + at) * NANO), stream, request(prompt, at)


def options(url: str, **more: Any) -> LogOptions:
    longest = {"max_line_bytes": more.pop("max_line_bytes")} if "max_line_bytes" in more else {}
    return LogOptions.model_validate({"loki": {"url": url, "query": '{app=~".+"}', **more}, **longest})


def read(url: str, **more: Any) -> LogReading:
    window = Window(T0 - 60, T0 + 3600)
    return read_request_logs(options(url, **more), window, lambda model, _: model, lambda _: 0.0)


def read_on(given_options: LogOptions, cursors: Cursors, now: float = T0 + 3600, **more: Any) -> Followed:
    return follow(given_options, cursors, lambda model, _: model, lambda _: 0.0, now, reach_seconds=7200, **more)


def prompts(*readings: LogReading | Followed) -> Counter[int]:
    counts: Counter[int] = Counter()
    for reading in readings:
        for log in (reading.logs if isinstance(reading, LogReading) else reading.slices).values():
            counts.update(dict(zip(log.served.prompt.tolist(), log.served.counts.tolist(), strict=True)))
    return counts


def test_pages_of_several_streams() -> None:
    """24 lines in pages of five, three of each second; the last two are younger than the delay."""
    lines = [logged(100 + place, place // 3, "abc"[place % 3]) for place in range(21)]
    lines += [logged(500, 3600 - DELAY - 0.5), logged(600, 3600 - DELAY), logged(700, 3599)]
    loki = Loki(lines)
    with serving(loki) as url:
        reading = read(url, page_lines=5)
    assert prompts(reading) == Counter([*range(100, 121), 500])
    assert (reading.state.status, reading.state.detail) == ("ok", "22 requests in Loki")
    assert {asked["limit"] for asked in loki.asked} == {"5"}
    assert {asked["direction"] for asked in loki.asked} == {"forward"}
    assert loki.asked[0]["query"] == '{app=~".+"}'
    assert int(loki.asked[0]["start"]) == (T0 - 60) * NANO
    assert int(loki.asked[-1]["end"]) == (T0 + 3600 - DELAY) * NANO


MOMENTS = st.integers(0, 6)
LOGGED = st.lists(st.tuples(MOMENTS, st.sampled_from("abc")), max_size=30)


@given(LOGGED, LOGGED, st.integers(1, 9), st.integers(1, 12), st.integers(1, 12))
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_each_line_is_read_once_over_any_pages_and_readings(
    early: list[tuple[int, str]], late: list[tuple[int, str]], page: int, first: int, second: int
) -> None:
    """Up to 30 lines at seven moments, read as they come; the page holds all that have one moment."""
    lines = [logged(100 + place, 10 + at, stream) for place, (at, stream) in enumerate(early)]
    more = [logged(200 + place, 30 + at, stream) for place, (at, stream) in enumerate(late)]
    crowded = max(Counter(moment for moment, _, _ in [*lines, *more]).values(), default=0)
    loki = Loki(lines)
    readings = []
    with serving(loki) as url:
        asked, cursors = options(url, page_lines=max(page, crowded + 1)), Cursors()
        for now in (8 + first, 8 + first, 29, 29 + second, 60):
            if now >= 29:
                loki.lines = [*lines, *more]
            while True:
                readings.append(read_on(asked, cursors, T0 + DELAY + now, budget_bytes=1))
                cursors = readings[-1].cursors
                if not readings[-1].behind:
                    break
    assert prompts(*readings) == Counter([*range(100, 100 + len(lines)), *range(200, 200 + len(more))])


@pytest.mark.parametrize("included", [False, True])
def test_a_line_at_the_end_of_a_span_is_read_once(*, included: bool) -> None:
    """Spans are of six hours: the second begins at 6 h after the first did."""
    loki = Loki([logged(1, 1), logged(2, 6 * 3600), logged(3, 6 * 3600 + 1)], end_included=included)
    with serving(loki) as url:
        window = Window(T0, T0 + 8 * 3600)
        reading = read_request_logs(options(url), window, lambda model, _: model, lambda _: 0.0)
    assert [int(asked["start"]) // NANO - T0 for asked in loki.asked] == [0, 6 * 3600]
    assert prompts(reading) == Counter([1, 2, 3])


def test_a_crash_before_the_commit_reads_the_same_again() -> None:
    with serving(Loki([logged(1, 1), logged(2, 2)])) as url:
        first = read_on(options(url), Cursors())
        again = read_on(options(url), Cursors())
        after = read_on(options(url), first.cursors)
    assert prompts(first) == prompts(again) == Counter([1, 2])
    assert prompts(after) == Counter()
    assert [cursor.format for cursor in first.cursors.streams] == ["openai_gateway"]
    assert first.cursors.streams[0].seconds == T0 + 3600 - DELAY


def test_another_query_or_address_goes_on_where_the_last_one_was() -> None:
    """Else a change of the configuration would count twice what lies in the store."""
    with serving(Loki([logged(1, 1)])) as one, serving(Loki([logged(1, 1), logged(2, 3700)])) as two:
        first = read_on(options(one), Cursors())
        other = read_on(options(two, query='{app="a"}', tenant="b"), first.cursors, T0 + 7200)
    assert prompts(first) == Counter([1])
    assert prompts(other) == Counter([2])


def test_what_was_followed_before_loki_is_not_read_again(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(request(1, 1) + "\n")
    with serving(Loki([logged(1, 1), logged(2, 3700)])) as url:
        files = LogOptions.model_validate({"paths": [str(tmp_path / "log")]})
        first = read_on(files, Cursors())
        moved = read_on(options(url), first.cursors, T0 + 7200)
    assert prompts(first) == Counter([1])
    assert prompts(moved) == Counter([2])


def test_more_lines_of_one_time_than_a_page_are_said_and_passed() -> None:
    lines = [logged(100 + place, 10) for place in range(9)]
    with serving(Loki([*lines, logged(500, 11)])) as url:
        reading = read(url, page_lines=4)
    assert prompts(reading)[500] == 1
    assert prompts(reading).total() == 5
    assert reading.state.status == "partial"
    assert "Loki: 4 lines of one time, 2026-11-29 14:00:10 UTC, fill a page: others of it" in reading.state.detail


def test_a_server_that_gives_fewer_lines_at_once_is_asked_for_fewer() -> None:
    loki = Loki([logged(place, place) for place in range(1, 31)], most=10)
    with serving(loki) as url:
        reading = read(url)
    assert prompts(reading).total() == 30
    assert [asked["limit"] for asked in loki.asked][:3] == ["5000", "10", "10"]


def test_a_page_that_is_too_large_is_asked_for_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """200 lines of over 100 bytes are more than 4 KiB at once: asked for 5,000, 625, 78 and 9 at once, then for 18."""
    monkeypatch.setattr(loki_api, "LARGEST_BODY_BYTES", 1 << 12)
    loki = Loki([logged(place + 1, place) for place in range(200)])
    with serving(loki) as url:
        reading = read(url)
    assert prompts(reading) == Counter(range(1, 201))
    assert reading.state.status == "ok"
    assert [asked["limit"] for asked in loki.asked][:5] == ["5000", "625", "78", "9", "18"]


def test_tenant_and_credentials(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("hunter2\n")
    loki = Loki([logged(1, 1)], tenant="team-a")
    with serving(loki) as url:
        assert prompts(read(url, tenant="team-a", bearer_token_file=str(tmp_path / "token"))) == Counter([1])
        without = read(url)
    assert loki.headers[0]["authorization"] == "Bearer hunter2"
    assert without.state.status == "failed"
    assert "wants a tenant or credentials; set tenant, bearer_token_file" in without.state.detail
    assert without.state.detail.endswith("no org id")


def test_a_busy_server_is_waited_for_as_it_asks() -> None:
    loki = Loki([logged(1, 1)], busy=[(429, "0"), (503, "0"), (429, formatdate(T0 - 9e8, usegmt=True))])
    with serving(loki) as url:
        reading = read(url)
    assert prompts(reading) == Counter([1])
    assert len(loki.asked) == 4


def test_a_server_that_asks_for_too_much_patience_is_left_for_the_next_reading() -> None:
    lines = [logged(place, place) for place in range(1, 11)]
    loki = Loki(lines)
    with serving(loki) as url:
        asked = options(url, page_lines=4, reading_timeout_seconds=20)
        loki.busy = [(429, "3600")]
        first = read_on(asked, Cursors())
        second = read_on(asked, first.cursors)
    assert first.state.status == "failed"
    assert "is throttled; what is left is read next time: too many outstanding requests" in first.state.detail
    assert not first.behind
    assert prompts(first, second) == Counter(range(1, 11))


def test_what_was_read_before_a_failure_counts_and_the_rest_is_read_next_time() -> None:
    loki = Loki([logged(place, place) for place in range(1, 11)], fails_after=2)
    with serving(loki) as url:
        first = read_on(options(url, page_lines=4), Cursors())
        loki.fails_after = None
        second = read_on(options(url, page_lines=4), first.cursors)
    assert 0 < prompts(first).total() < 10
    assert prompts(first, second) == Counter(range(1, 11))
    assert first.state.status == "partial"
    assert "answers with HTTP 500: context deadline exceeded" in first.state.detail


def test_waiting_times() -> None:
    class Told:
        def __init__(self, text: str) -> None:
            self.headers = {"Retry-After": text}

    def wait(text: str) -> float | None:
        return _asked_to_wait(Told(text), T0)  # type: ignore[arg-type]

    assert [wait("7"), wait("0"), wait(""), wait("soon"), wait("-5")] == [7, 0, None, None, None]
    assert wait(formatdate(T0 + 30, usegmt=True)) == 30
    assert wait(formatdate(T0 - 30, usegmt=True)) == 0


def test_lines_are_bounded_and_of_one_line() -> None:
    lines = [logged(1, 1), (int((T0 + 2) * NANO), "a", "x" * 5000), (int((T0 + 3) * NANO), "a", "no\njson")]
    with serving(Loki(lines)) as url:
        reading = read(url, max_line_bytes=4096)
    assert prompts(reading) == Counter([1])
    assert "2 of 3 lines skipped" in reading.state.detail


def test_lines_that_a_shipper_wrapped_are_unwrapped() -> None:
    wrapped = [json.dumps({"log": request(place, place) + "\n", "stream": "stdout"}) for place in (1, 2)]
    loki = Loki([(int((T0 + place) * NANO), "a", line) for place, line in enumerate(wrapped)])
    with serving(loki) as url:
        assert prompts(read(url)) == Counter([1, 2])


def test_lines_that_do_not_say_when_take_the_time_of_loki() -> None:
    finished = (
        "[2026-11-29 13:46:40 TP0] Finish: obj=GenerateReqInput(rid='r1'), out={'text': 'x', 'meta_info': {'id': 'r1', "
        "'finish_reason': {'type': 'stop'}, 'prompt_tokens': 374, 'completion_tokens': 63, "
        "'e2e_latency': 2.5}}"
    )
    loki = Loki([(int((T0 + 5) * NANO), "a", finished)])
    with serving(loki) as url:
        window = Window(T0, T0 + 3600)
        asked = options(url).model_copy(update={"aliases": {"": "m"}})
        log = read_request_logs(asked, window, lambda model, _: model, lambda _: 0.0).logs["m"]
    assert log.first_seconds == T0 + 5


@pytest.mark.parametrize(
    ("body", "status", "why"),
    [
        (
            b'{"status":"success","data":{"resultType":"matrix","result":[]}}',
            200,
            "the query yields no lines but numbers",
        ),
        (b"<html>", 200, "answers with something else than Loki's JSON; is url right?"),
        (
            b'{"data":{"resultType":"streams","result":[{"stream":{},"values":[["x","y"]]}]}}',
            200,
            "something else than",
        ),
        (b"parse error at line 1, col 1: syntax error", 400, "refuses the query: parse error at line 1, col 1"),
        (b"404 page not found", 404, "has no such API there; does url lack a path prefix?"),
    ],
)
def test_what_is_no_answer(body: bytes, status: int, why: str) -> None:
    with answering(lambda handler, _: reply(handler, body, status)) as url:
        state = read(url).state
    assert state.status == "failed"
    assert why in state.detail


def test_nothing_there_is_told() -> None:
    with serving(Loki()) as url:
        reading = read(url)
        followed = read_on(options(url), Cursors())
    assert "has no such lines; check query and tenant" in reading.state.detail
    assert followed.cursors.streams == ()


def test_what_lines_look_like_is_surveyed() -> None:
    """The first page is of something else, as when an engine starts; then two requests and one line that is broken."""
    other = [(int((T0 + place) * NANO), "a", f"INFO: loading {place}") for place in range(4)]
    broken = (int((T0 + 11) * NANO), "a", '{"ts": 1')
    loki = Loki([*other, logged(1, 10), broken, logged(2, 12)])
    window = Window(T0, T0 + 3600)
    with serving(loki) as url:
        (seen,) = survey(options(url, page_lines=4), window)
        loki.fails_after = 0
        (failed,) = survey(options(url), window)
    assert (seen.name, seen.format, seen.requests, seen.skipped, seen.problem) == ("Loki", "openai_gateway", 2, 1, "")
    assert "HTTP 500" in failed.problem


def test_loki_stands_alone() -> None:
    loki = {"url": "http://loki:3100", "query": '{app="x"}'}
    with pytest.raises(ValidationError, match="`loki` stands alone: a request that lies in a file"):
        LogOptions.model_validate({"loki": loki, "paths": ["/var/log/x"]})
    with pytest.raises(ValidationError, match="`loki` stands alone"):
        LogOptions.model_validate({"loki": loki, "journal": {"units": ["x.service"]}})
