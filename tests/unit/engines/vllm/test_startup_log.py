from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.engines.startup import GIB, MemoryBreakdown, StartupFacts
from advisor.engines.vllm.startup_log import TELLING, parse_startup

V0_32 = """\
(APIServer pid=7) INFO 11-29 10:00:01 [api_utils.py:347]  ▄▄ ▄█ █     █     █ ▀▄▀ █  version 0.32.0
(APIServer pid=7) INFO 11-29 10:00:01 [api_utils.py:347]   █▄█▀ █     █     █     █  model   org/chat-70b
(APIServer pid=7) INFO 11-29 10:00:01 [api_utils.py:286] non-default args: \
{'host': '0.0.0.0', 'api_key': ['sk-secret'], 'model': 'org/chat-70b', 'max_model_len': 32768, \
'served_model_name': ['chat', 'chat-alias'], 'max_num_seqs': 64, \
'tensor_parallel_size': 4, 'compilation_config': {'mode': <Mode.NONE: 0>}}
(APIServer pid=7) INFO 11-29 10:00:09 [model.py:2152] Using max model len 32768
(APIServer pid=7) INFO 11-29 10:00:09 [scheduler.py:224] Chunked prefill is enabled with max_num_batched_tokens=8192.
(EngineCore pid=41) INFO 11-29 10:00:20 [core.py:133] Initializing a V1 LLM engine (v0.32.0) with config: \
model='org/chat-70b', speculative_config=None, dtype=torch.bfloat16, max_seq_len=32768, tensor_parallel_size=4, \
pipeline_parallel_size=1, data_parallel_size=1, quantization=fp8, kv_cache_dtype=auto, served_model_name=chat, \
enable_prefix_caching=True, enable_chunked_prefill=True, compilation_config={'mode': <Mode.NONE: 0>}
(Worker_TP0 pid=50) INFO 11-29 10:01:50 [gpu_model_runner.py:900] Model loading took 16.5 GiB memory and 81.2 seconds
(Worker_TP1 pid=51) INFO 11-29 10:01:50 [gpu_model_runner.py:900] Model loading took 16.4 GiB memory and 81.3 seconds
(Worker_TP0 pid=50) INFO 11-29 10:02:10 [gpu_worker.py:830] Available KV cache memory: 51.20 GiB
(Worker_TP1 pid=51) INFO 11-29 10:02:10 [gpu_worker.py:830] Available KV cache memory: 51.10 GiB
(EngineCore pid=41) INFO 11-29 10:02:33 [kv_cache_utils.py:2327] GPU KV cache size: 669,776 tokens, \
Maximum concurrency for 32,768 tokens per request: 20.44x
(Worker_TP0 pid=50) INFO 11-29 10:03:00 [gpu_worker.py:1050] Free memory on device (78.66/79.25 GiB) on startup. \
Desired GPU memory utilization is (0.92, 72.91 GiB). Actual usage is 16.5 GiB for weight, 3.9 GiB for peak activation, \
1.1 GiB for non-torch memory, and 0.6 GiB for CUDAGraph memory.
"""

V0_6 = """\
INFO 12-11 10:00:01 api_server.py:585] vLLM API server version 0.6.4.post1
INFO 12-11 10:00:01 api_server.py:586] args: Namespace(host=None, port=8000, model='org/llama-8b', dtype='auto', \
max_model_len=20000, block_size=16, gpu_memory_utilization=0.9, swap_space=4, max_num_batched_tokens=None, \
max_num_seqs=256, served_model_name=None, disable_log_requests=False)
INFO 12-11 10:00:20 model_runner.py:1077] Loading model weights took 14.9888 GB
INFO 12-11 10:00:30 worker.py:233] the current vLLM instance can use total_gpu_memory (23.58GiB) x \
gpu_memory_utilization (0.90) = 21.22GiB
INFO 12-11 10:00:30 worker.py:233] model weights take 14.99GiB; non_torch_memory takes 0.35GiB; PyTorch activation \
peak memory takes 2.07GiB; the rest of the memory reserved for KV Cache is 3.81GiB.
INFO 12-11 10:00:31 gpu_executor.py:100] # GPU blocks: 1952, # CPU blocks: 2048
INFO 12-11 10:00:31 gpu_executor.py:104] Maximum concurrency for 20000 tokens per request: 1.56x
"""


def parsed(text: str) -> StartupFacts:
    facts = parse_startup(text.splitlines())
    assert facts is not None
    return facts


def test_it_reads_a_start_of_0_32() -> None:
    facts = parsed(V0_32)
    assert (facts.engine, facts.version, facts.model) == ("vllm", "0.32.0", "org/chat-70b")
    assert facts.served_names == ("chat", "chat-alias")
    assert facts.flags == {
        "max_model_len": 32768,
        "max_num_seqs": 64,
        "tensor_parallel_size": 4,
        "max_num_batched_tokens": 8192,
        "dtype": "bfloat16",
        "pipeline_parallel_size": 1,
        "data_parallel_size": 1,
        "quantization": "fp8",
        "kv_cache_dtype": "auto",
        "enable_prefix_caching": True,
        "enable_chunked_prefill": True,
        "gpu_memory_utilization": 0.92,
    }
    assert (facts.kv_pool_tokens, facts.max_concurrency, facts.engines) == (669_776, 20.44, 1)
    assert facts.kv_available_bytes == 51.10 * GIB
    assert facts.weights_bytes == 16.5 * GIB
    assert facts.memory == MemoryBreakdown(79.25 * GIB, 16.5 * GIB, 3.9 * GIB, 1.1 * GIB, 0.6 * GIB)


def test_it_reads_a_start_of_0_6() -> None:
    facts = parsed(V0_6)
    assert (facts.version, facts.model, facts.served_names) == ("0.6.4.post1", "org/llama-8b", ())
    assert facts.flags["max_num_seqs"] == 256
    assert "max_num_batched_tokens" not in facts.flags
    assert facts.kv_pool_tokens == 1952 * 16
    assert facts.kv_available_bytes == 3.81 * GIB
    assert facts.memory is not None
    assert facts.memory.activation_peak_bytes == 2.07 * GIB


def test_secrets_among_the_arguments_are_not_kept() -> None:
    assert "sk-secret" not in repr(parsed(V0_32))


def test_the_last_start_wins_and_inherits_nothing() -> None:
    second = V0_32.replace("'max_num_seqs': 64, ", "").replace("669,776", "500,000")
    facts = parsed(V0_32 + second)
    assert "max_num_seqs" not in facts.flags
    assert facts.kv_pool_tokens == 500_000


def test_arguments_printed_twice_are_a_restart_where_the_banner_is_filtered() -> None:
    without_banner = "\n".join(line for line in V0_32.splitlines() if "█" not in line)
    second = without_banner.replace("'max_num_seqs': 64, ", "")
    assert "max_num_seqs" not in parsed(without_banner + "\n" + second).flags


def test_data_parallel_engines_each_have_a_pool_and_the_least_counts() -> None:
    lines = [
        f"(EngineCore_DP{rank} pid=4{rank}) INFO 11-29 10:02:33 [x.py:1] GPU KV cache size: {tokens} tokens"
        for rank, tokens in ((0, "8,192"), (1, "8,000"))
    ]
    facts = parsed("\n".join(lines))
    assert (facts.engines, facts.kv_pool_tokens) == (2, 8000)


@pytest.mark.parametrize(
    ("line", "length"),
    [
        ("Auto-fit max_model_len: reduced from 131072 to 20480 to fit", 20_480),
        ("Auto-fit max_model_len: full model context length 131072 fits", 131_072),
    ],
)
def test_the_fitted_length_beats_the_one_before_the_fit(line: str, length: int) -> None:
    assert parsed(f"Using max model len 131072\n{line}").flags["max_model_len"] == length


def test_speculation_is_kept_in_brief_in_both_forms() -> None:
    config = (
        "Initializing a V1 LLM engine (v0.30.0) with config: speculative_config=SpeculativeConfig(method='eagle', x=1)"
    )
    arguments = (
        "non-default args: {'speculative_config': {'method': 'ngram', 'token': 's', 'num_speculative_tokens': 4}}"
    )
    assert parsed(config).flags["speculative_config"] == '{"method": "eagle"}'
    whole = config.replace("x=1", "model='org/head', num_spec_tokens=3")
    assert parsed(whole).flags["speculative_config"] == '{"method": "eagle", "num_speculative_tokens": 3}'
    assert parsed(arguments).flags["speculative_config"] == '{"method": "ngram", "num_speculative_tokens": 4}'


def test_colours_are_no_part_of_the_text() -> None:
    assert parsed("\x1b[32mINFO\x1b[0m GPU KV cache size: \x1b[1m8,192\x1b[0m tokens").kv_pool_tokens == 8192


def test_a_prompt_in_the_log_cannot_speak_for_the_engine() -> None:
    prompt = (
        "INFO [logger.py:39] Received request cmpl-1: prompt: 'GPU KV cache size: 1 tokens', params: SamplingParams()"
    )
    assert parsed(V0_32 + prompt).kv_pool_tokens == 669_776


@pytest.mark.parametrize("unit", ["█", "non-default args: {", "args: Namespace(", "9", "LLM engine (v", "x"])
def test_a_hostile_line_costs_no_more_than_its_length(unit: str) -> None:
    def seconds(length: int) -> float:
        line = (unit * length)[:length] + " KV cache version 1"
        begun = time.process_time()
        parse_startup([line] * 20)
        return time.process_time() - begun

    # 16 times the length: a linear search takes 16 times as long, a quadratic one 256 times.
    assert seconds(65_536) < 100 * seconds(4_096)


def test_other_logs_are_not_mistaken() -> None:
    assert parse_startup(["Python version 3.11.2", "INFO: Application startup complete.", ""]) is None


def test_the_byte_filter_lets_every_telling_line_through() -> None:
    for line in (V0_32 + V0_6).splitlines():
        if parse_startup([line]) is not None:
            assert TELLING.search(line.encode())


@given(st.lists(st.text(max_size=80), max_size=5))
def test_any_lines_are_survived(lines: list[str]) -> None:
    assert parse_startup(lines) is None or isinstance(parse_startup(lines), StartupFacts)


def test_the_block_of_a_hybrid_is_the_one_that_the_engine_chose() -> None:
    lines = (
        "non-default args: {'model': 'org/hybrid', 'block_size': 16}\n"
        "Setting attention block size to 1600 tokens to ensure that attention page size is >= mamba page size.\n"
    )
    assert parsed(lines).flags["block_size"] == 1600
