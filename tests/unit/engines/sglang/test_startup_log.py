from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.engines.sglang.startup_log import parse_startup
from advisor.engines.startup import GIB, StartupFacts

LOG = """\
[2026-11-04 10:00:00] server_args=ServerArgs(model_path='org/chat-235b', served_model_name='chat', \
api_key='sk-secret', tp_size=4, pp_size=1, dp_size=1, mem_fraction_static=0.93, page_size=1, kv_cache_dtype='auto', \
max_running_requests=None, disable_radix_cache=False)
[2026-11-04 10:01:00 TP0] Load weight end. type=Qwen3MoeForCausalLM, \
dtype=torch.bfloat16, avail mem=22.10 GB, mem usage=56.98 GB.
[2026-11-04 10:01:10 TP0] KV Cache is allocated. #tokens: 367404, K size: 8.23 GB, V size: 8.23 GB
[2026-11-04 10:01:40 TP0] max_total_num_tokens=367404, chunked_prefill_size=8192, max_prefill_tokens=16384, \
max_running_requests=2048, context_len=40960, available_gpu_mem=3.10 GB
"""


def parsed(text: str) -> StartupFacts:
    facts = parse_startup(text.splitlines())
    assert facts is not None
    return facts


def test_it_reads_a_start_under_canonical_names() -> None:
    facts = parsed(LOG)
    assert (facts.engine, facts.model, facts.served_names) == ("sglang", "org/chat-235b", ("chat",))
    assert facts.flags == {
        "tensor_parallel_size": 4,
        "pipeline_parallel_size": 1,
        "data_parallel_size": 1,
        "block_size": 1,
        "kv_cache_dtype": "auto",
        "enable_prefix_caching": True,
        "max_num_seqs": 2048,
        "max_model_len": 40_960,
        "mem_fraction_static": 0.93,
        "chunked_prefill_size": 8192,
        "max_prefill_tokens": 16_384,
    }
    assert (facts.kv_pool_tokens, facts.engines) == (367_404, 1)
    assert facts.kv_available_bytes == 16.46 * GIB
    assert facts.weights_bytes == 56.98 * GIB
    assert "sk-secret" not in repr(facts)


def test_the_dictionary_form_of_newer_releases() -> None:
    facts = parsed("server_args={'model_path': 'm', 'tp_size': 8, 'disable_radix_cache': True}")
    assert facts.flags == {"tensor_parallel_size": 8, "enable_prefix_caching": False}


def test_the_last_start_wins() -> None:
    facts = parsed(LOG + LOG.replace("367404", "300000").replace("tp_size=4, ", ""))
    assert facts.kv_pool_tokens == 300_000
    assert "tensor_parallel_size" not in facts.flags


def test_each_attention_rank_has_its_own_pool() -> None:
    lines = "\n".join(
        f"[10:00 DP{r} TP{r}] max_total_num_tokens={n}, context_len=4096" for r, n in ((0, 9000), (1, 8000))
    )
    assert (parsed(lines).engines, parsed(lines).kv_pool_tokens) == (2, 8000)


def test_a_prompt_cannot_speak_for_the_engine() -> None:
    prompt = "Receive: obj=GenerateReqInput(text='max_total_num_tokens=1, context_len=1')\n"
    assert parsed(LOG + prompt).kv_pool_tokens == 367_404
    assert parse_startup([prompt, "Uvicorn running"]) is None


@given(st.lists(st.text(max_size=80), max_size=5))
def test_any_lines_are_survived(lines: list[str]) -> None:
    assert parse_startup(lines) is None or isinstance(parse_startup(lines), StartupFacts)


def test_the_pool_of_a_draft_is_not_the_pool() -> None:
    # a dense draft head after the model, on each of two workers: noonghunna/club-3090#1261
    sizes = ((0, 3.46), (0, 1.08), (1, 3.45), (1, 1.08))
    lines = [
        f"[2026-09-12 00:22:48 TP{rank}] KV Cache is allocated. #tokens: 454112, K size: {size} GB, V size: {size} GB"
        for rank, size in sizes
    ]
    assert parsed("\n".join(lines)).kv_available_bytes == 2 * 3.45 * GIB


ARGUMENTS = "[2025-11-01 10:00:00] server_args=ServerArgs(model_path='org/m', tp_size=1, mem_fraction_static=0.9)"


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.", "no_memory_for_cache"),
        ("Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 2 GiB", "out_of_memory_starting"),
        ("[2025-11-01 11:00:00] Prefill out of memory. Try to lower your batch size.", "out_of_memory_serving"),
        ("[2025-11-01 11:00:00] Decode out of memory happened. #retracted_reqs: 1", None),
    ],
)
def test_why_it_ended(line: str, kind: str | None) -> None:
    facts = parse_startup([ARGUMENTS, line])
    assert facts is not None
    assert (facts.failure.kind if facts.failure else None) == kind
