"""The log of llama.cpp's server; the lengths are those that the server told its clients (`usage`)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from advisor.engines.refusals import length_refusal
from advisor.sources.log_formats import FORMATS, Requests
from advisor.sources.log_formats.llamacpp import ALONE

LOG = Path(__file__).parents[3] / "captures" / "llamacpp-b11549" / "server.log"
LLAMACPP = FORMATS["llamacpp"]


def read(text: bytes) -> tuple[Requests, Counter[str], Counter[str]]:
    bad: Counter[str] = Counter()
    unused: Counter[str] = Counter()
    return LLAMACPP.read(text, bad, unused), bad, unused


def lengths(requests: Requests) -> list[tuple[int, int]]:
    return list(zip(requests.prompt_tokens, requests.output_tokens, strict=True))


def test_a_real_servers_log_has_the_lengths_that_its_clients_were_told() -> None:
    requests, bad, unused = read(LOG.read_bytes())
    # 967 with 5 of them cached, of which the line of the prompt says 962.
    assert lengths(requests)[:3] == [(911, 71), (316, 170), (967, 224)]
    assert requests.status == [200] * 13 + [400] * 2
    assert not bad
    assert ALONE not in unused
    refusals = [length_refusal(message) for message in requests.message[13:]]
    assert [refusal.prompt_tokens for refusal in refusals if refusal] == [19_639, 12_431]


def test_releases_of_2024_say_it_the_other_way_round_and_without_the_slot() -> None:
    text = (
        b"slot      release: id  3 | task 7 | stop processing: n_past = 149, truncated = 0\n"
        b"slot print_timing: id  3 | task 7 | \n"
        b"prompt eval time =      70.30 ms /   100 tokens (    0.18 ms per token,  5661.69 tokens per second)\n"
        b"       eval time =   24711.89 ms /    50 tokens (  163.65 ms per token,     6.11 tokens per second)\n"
        b"      total time =   24782.18 ms /   150 tokens\n"
    )
    assert lengths(read(text)[0]) == [(100, 50)]


def test_a_shifted_context_does_not_tell_the_prompt() -> None:
    text = (
        b"slot print_timing: id  0 | task 1 |        eval time =   9.0 ms /    50 tokens (\n"
        b"slot      release: id  0 | task 1 | stop processing: n_tokens = 149, truncated = 1\n"
    )
    assert lengths(read(text)[0]) == [(-1, 50)]


def test_half_a_request_is_counted_and_more_output_than_was_held_is_bad() -> None:
    text = b"slot release: id  0 | task 1 | stop processing: n_tokens = 149, truncated = 0\n"
    requests, _, unused = read(text)
    assert (len(requests), unused[ALONE]) == (0, 1)
    more = b"slot print_timing: id  0 | task 1 |    eval time =   9.0 ms /    151 tokens (\n"
    requests, bad, unused = read(text + more)
    assert (len(requests), bad.total(), unused[ALONE]) == (0, 1, 0)


@pytest.mark.parametrize(
    "taken_down", [b"1795960000.5 ", b"2026-11-29T13:46:40.500000000Z stderr F ", b"2026-11-29T14:46:40.5+01:00 "]
)
def test_the_time_is_whoevers_took_the_line_down(taken_down: bytes) -> None:
    text = (
        taken_down + b"slot print_timing: id  0 | task 1 |        eval time =   9.0 ms /    50 tokens (\n" + taken_down
    ) + b"slot      release: id  0 | task 1 | stop processing: n_tokens = 149, truncated = 0\n"
    assert read(text)[0].completed == [1795960000.5]
