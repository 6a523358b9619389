"""Command lines of engines as flags. What each means is worked out from the engines' own argument parsers."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor import engines
from advisor.domain.evidence import FlagValue
from advisor.engines.command_line import Launch, as_arguments, untold
from advisor.engines.launch import COMMAND_LINES, launch, launch_of_image, launch_of_process


def started(command: str, environment: Mapping[str, str] | None = None) -> Launch:
    found = launch(shlex.split(command), environment)
    assert found is not None
    return found


def test_every_command_line_is_registered() -> None:
    folder = Path(engines.__file__).parent
    assert {path.parent.name for path in folder.glob("*/command_line.py")} == set(COMMAND_LINES)


@pytest.mark.parametrize(
    ("command", "flags"),
    [
        ("vllm serve /m", {}),
        ("vllm serve /m -tp 4 --max-num-seqs=64", {"tensor_parallel_size": 4, "max_num_seqs": 64}),
        # Lower case is decimal and upper case binary: 128 x 1000, 12 x 1024, 32 x 2^30.
        ("vllm serve /m --max-model-len 128k", {"max_model_len": 128_000}),
        ("vllm serve /m --max_model_len 12K", {"max_model_len": 12_288}),
        ("vllm serve /m --kv-cache-memory 32G", {"kv_cache_memory_bytes": 34_359_738_368}),
        # An abbreviation that is unique, the last of two values, a limit that the engine fits by itself.
        ("vllm serve /m --max-num-b 2048 --max-num-batched-tokens 4096", {"max_num_batched_tokens": 4096}),
        ("vllm serve /m --max-model-len auto --max-num-seqs 8", {"max_num_seqs": 8}),
        ("vllm serve /m --max-model-len=-1", {}),
        (
            "vllm serve /m --no-enable-prefix-caching --enforce-eager",
            {"enable_prefix_caching": False, "enforce_eager": True},
        ),
        ("vllm serve /m --enable-chunked-prefill=False", {"enable_chunked_prefill": False}),
        ("vllm serve /m --gpu-memory-utilization .9 --unknown --seed 7", {"gpu_memory_utilization": 0.9}),
        (
            """vllm serve /m --speculative-config '{"num_speculative_tokens": 3, "method": "ngram", "key": "s"}'""",
            {"speculative_config": '{"method": "ngram", "num_speculative_tokens": 3}'},
        ),
        (
            "vllm serve /m --speculative-config.method ngram --speculative-config.num_speculative_tokens 3",
            {"speculative_config": '{"method": "ngram", "num_speculative_tokens": 3}'},
        ),
        ("python3 -m vllm.entrypoints.openai.api_server --model /m --block-size 32", {"block_size": 32}),
        ("numactl --membind=0 /opt/bin/vllm serve /m --max-num-seqs 8", {"max_num_seqs": 8}),
        (
            "python3 -m sglang.launch_server --tp 2 --context-length 32768 --max-running-requests 48",
            {"tensor_parallel_size": 2, "max_model_len": 32_768, "max_num_seqs": 48},
        ),
        (
            "sglang serve --model-path /m --mem-fraction-static 0.85 --disable-radix-cache",
            {"mem_fraction_static": 0.85, "enable_prefix_caching": False},
        ),
        ("text-generation-launcher --max-total-tokens 4096", {"max_model_len": 4096}),
        ("trtllm-serve /m --max_batch_size 32 --tp_size 2", {"max_num_seqs": 32, "tensor_parallel_size": 2}),
        ("llama-server -m /m -c 8192 -np 4", {"ctx_size": 8192, "max_num_seqs": 4}),
    ],
)
def test_flags_have_their_canonical_names(command: str, flags: Mapping[str, FlagValue]) -> None:
    found = started(command)
    assert (found.flags, found.unresolved, found.whole) == (flags, (), True)


@pytest.mark.parametrize(
    ("command", "names", "port"),
    [
        ("vllm serve /m", ("/m",), 8000),
        ("vllm serve /m --served-model-name chat gpt-4o --port 9000", ("chat", "gpt-4o"), 9000),
        ("python -m vllm.entrypoints.openai.api_server --port=81 --model /m", ("/m",), 81),
        ("python -m sglang.launch_server --model-path /m", ("/m",), 30_000),
        ("llama-server -m /m -a chat", ("chat",), 8080),
        ("vllm serve --port 81", (), 81),
    ],
)
def test_what_it_serves_and_where(command: str, names: tuple[str, ...], port: int) -> None:
    found = started(command)
    assert (found.served_names, found.port) == (names, port)


def test_variables_are_flags_of_tgi_and_arguments_win() -> None:
    environment = {"MAX_TOTAL_TOKENS": "2048", "MAX_INPUT_TOKENS": "1024", "MODEL_ID": "/m", "PORT": "80"}
    found = started("text-generation-launcher --max-total-tokens 4096", environment)
    assert found.flags == {"max_model_len": 4096, "max_input_tokens": 1024}
    assert (found.served_names, found.port) == (("/m",), 80)
    assert started("vllm serve /m", environment).flags == {}


def test_a_configuration_file_says_what_arguments_do_not() -> None:
    extra = as_arguments({"max-num-seqs": 8, "max-model-len": "8k", "enable-prefix-caching": False, "none": None})
    found = launch(["vllm", "serve", "/m", "--config", "c.yaml", "--max-num-seqs", "16"], extra=extra)
    assert found is not None
    assert found.flags == {"max_num_seqs": 16, "max_model_len": 8000, "enable_prefix_caching": False}
    assert (found.config_file, found.served_names) == ("c.yaml", ("/m",))


def test_what_is_not_told_is_named_and_never_guessed() -> None:
    words = ["vllm", "serve", "/m", "--max-num-seqs", untold("$SEQS"), "--max-model-len", "4096", untold("$MORE")]
    found = launch(words)
    assert found is not None
    assert found.flags == {"max_model_len": 4096}
    assert found.unresolved == (
        "max_num_seqs is $SEQS, which is not told here",
        "more arguments are in $MORE, which is not told here",
    )
    assert not found.whole


def test_a_value_that_cannot_be_is_named() -> None:
    found = started("vllm serve /m --max-num-seqs many --block-size 16 --speculative-config '{'")
    assert found.flags == {"block_size": 16}
    assert [line.partition(" cannot be read")[0] for line in found.unresolved] == ["max_num_seqs", "speculative_config"]


@pytest.mark.parametrize(
    "command", ["", "grep -r vllm serve", "vim vllm serve", "python -m http.server", "docker run vllm serve"]
)
def test_a_process_that_only_names_an_engine_is_none(command: str) -> None:
    assert launch_of_process(shlex.split(command)) is None


@pytest.mark.parametrize(
    ("image", "engine"),
    [
        ("vllm/vllm-openai:v0.11.0", "vllm"),
        ("ghcr.io/huggingface/text-generation-inference:3.3.4", "tgi"),
        ("ghcr.io/ggml-org/llama.cpp:server-cuda", "llamacpp"),
        ("lmsysorg/sglang:latest", None),  # starts nothing by itself
        ("nginx", None),
    ],
)
def test_an_image_without_a_command_starts_its_program(image: str, engine: str | None) -> None:
    found = launch_of_image(image, ["--port", "81"])
    assert (found.engine if found else None) == engine


@given(st.lists(st.text(max_size=40), max_size=30))
def test_any_words_are_read_and_no_secret_is_kept(words: list[str]) -> None:
    found = launch(["vllm", "serve", *words, "--api-key", "s3cr3t-value"])
    assert found is not None
    assert "s3cr3t-value" not in repr(found)
