"""TGI's start-up lines, worded as its launcher and router print them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from advisor.engines.startup import StartupFacts
from advisor.engines.tgi.startup_log import parse_startup

ARGUMENTS = (
    '2024-08-11T07:23:37.228062Z  INFO text_generation_launcher: Args { model_id: "org/chat-7b", revision: None, '
    "num_shard: Some(2), quantize: None, max_concurrent_requests: 128, max_input_tokens: None, "
    "max_total_tokens: Some(4096), waiting_served_ratio: 0.3, max_batch_prefill_tokens: Some(4096), "
    "max_batch_total_tokens: None, max_waiting_tokens: 20, max_batch_size: None, cuda_memory_fraction: 1.0 }"
)
POOL = "INFO text_generation_router: router/src/main.rs:354: Setting max batch total tokens to 43808"


def test_arguments_that_were_set_and_the_pool() -> None:
    assert parse_startup([ARGUMENTS, "Starting Webserver", POOL]) == StartupFacts(
        engine="tgi",
        model="org/chat-7b",
        served_names=("org/chat-7b",),
        flags={
            "tensor_parallel_size": 2,
            "max_concurrent_requests": 128,
            "max_model_len": 4096,
            "waiting_served_ratio": 0.3,
            "max_batch_prefill_tokens": 4096,
            "max_waiting_tokens": 20,
            "cuda_memory_fraction": 1.0,
        },
        kv_pool_tokens=43_808,
        engines=1,
    )


def test_of_several_starts_the_last_counts() -> None:
    again = ARGUMENTS.replace("Some(4096)", "Some(8192)", 1)
    found = parse_startup([ARGUMENTS, POOL, again])
    assert found is not None
    assert (found.flags["max_model_len"], found.kv_pool_tokens) == (8192, None)


def test_what_the_launcher_chose_is_told_apart_from_what_was_set() -> None:
    found = parse_startup(["\x1b[32m INFO\x1b[0m Default `max_batch_prefill_tokens` to 8192"])
    assert found is not None
    assert found.flags == {"max_batch_prefill_tokens": 8192}


def test_lines_of_a_sister_project_and_of_requests_are_passed_over() -> None:
    embeddings = 'INFO text_embeddings_router: Args { model_id: "m", max_batch_tokens: 16384 }'
    assert parse_startup([embeddings, "INFO generate: Success"]) is None


@given(st.lists(st.text(max_size=200)))
def test_foreign_lines_do_no_harm(lines: list[str]) -> None:
    assert parse_startup([*lines, POOL]) is not None
