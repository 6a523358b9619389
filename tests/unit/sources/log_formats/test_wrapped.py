"""Lines as container runtimes keep them; the shapes are those that containerd, Docker and Fluent Bit write."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping

import pytest

from advisor.sources.log_formats import FORMATS, unwrapping
from tests.unit.sources.log_formats.good_lines import GOOD
from tests.unit.sources.log_formats.one_line import read_one

TIME = "2026-11-29T13:46:40.123456789Z"
FORMS: Mapping[str, Callable[[bytes], bytes]] = {
    "cri": lambda line: f"{TIME} stdout F ".encode() + line,
    "docker": lambda line: json.dumps({"log": line.decode() + "\n", "stream": "stdout", "time": TIME}).encode(),
    "journalctl": lambda line: json.dumps(
        {"__REALTIME_TIMESTAMP": "1795960000123456", "MESSAGE": line.decode(), "_PID": "7"}
    ).encode(),
    "fluent bit": lambda line: json.dumps({"@timestamp": TIME, "message": line.decode(), "k8s": {"pod": "p"}}).encode(),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["openai_gateway", "litellm", "envoy_ai_gateway", "sglang", "tgi"])
def test_a_wrapped_line_says_what_it_says_alone(name: str, form: str) -> None:
    line, written = GOOD[name][0], unwrapping(FORMATS[name])
    wrapped = FORMS[form](line)
    assert written.recognises(wrapped)
    alone, found = read_one(written, line), read_one(written, wrapped)
    assert (found.prompt_tokens, found.output_tokens) == (alone.prompt_tokens, alone.output_tokens)
    # What names no zone takes the time of whoever took it down: 2026-11-29 13:46:40 UTC is 1795960000.
    assert found.completed == (pytest.approx(1795960000.123, abs=1e-3) if written.takes_time else alone.completed)


@pytest.mark.parametrize("form", ["cri", "docker"])
def test_lines_that_the_runtime_cut_are_joined(form: str) -> None:
    line = GOOD["openai_gateway"][0]
    parts = line[:40], line[40:]
    if form == "cri":
        lines = [f"{TIME} stdout P ".encode() + parts[0], f"{TIME} stdout F ".encode() + parts[1]]
    else:
        lines = [
            json.dumps({"log": text, "time": TIME}).encode() for text in (parts[0].decode(), parts[1].decode() + "\n")
        ]
    assert read_one(unwrapping(FORMATS["openai_gateway"]), b"\n".join(lines)).prompt_tokens == 374


def test_a_wrapper_that_is_broken_costs_its_line_alone() -> None:
    good = FORMS["docker"](GOOD["openai_gateway"][0])
    bad: Counter[str] = Counter()
    found = unwrapping(FORMATS["openai_gateway"]).read(b"\n".join([good, good[:50], good]) + b"\n", bad, Counter())
    assert (len(found), bad.total()) == (2, 1)
