"""What people reported of servers in trouble, cut down to the figures they gave, and what the advisor makes of them.

Each row is one kind of report: what is known, the rule that has to come first (or what has to be found), the flag that
it says, and what may not be said.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from advisor.cycle import run_once
from advisor.domain.evidence import Window
from advisor.outlets import phrases
from advisor.settings import Settings

pytestmark = pytest.mark.slow

WINDOW = Window(1_795_960_000.0, 1_795_970_000.0)
BANNER = "INFO 03-11 10:00:01 [api_server.py:1034] vLLM API server version {}"
ARGUMENTS = "INFO 03-11 10:00:01 [api_server.py:1042] non-default args: {}"
UP = "INFO:     Application startup complete."
OUT_OF_MEMORY = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.15 GiB."
LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "num_hidden_layers": 32,
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "torch_dtype": "bfloat16",
}
RAISES_THE_CAP = ("concurrency/cap-pinned-cache-free", "concurrency/batch-cap-below-memory", "plan/first-max-num-seqs")
SIZES = (*RAISES_THE_CAP, "concurrency/cap-invites-churn", "memory/limit-above-pool", "length/limit-oversized")
REPLICAS = ("capacity/demand-exceeds-capacity", "capacity/low-cap-would-queue", "memory/cache-pinned-by-long-prompts")


@dataclass(frozen=True)
class Report:
    """`known` is the evidence of the deployment, `log` its start-up log, `told` what the first answer says."""

    about: str
    known: Mapping[str, Any] = field(default_factory=dict)
    log: tuple[str, ...] = ()
    first: str | None = None
    flag: str | None = None
    found: str | None = None
    never: tuple[str, ...] = ()
    told: str = ""


def seen(**facts: float | str) -> dict[str, Any]:
    return {"facts": facts}


REPORTS = (
    Report(
        "a model's maximum of 32,768 against 7,344 tokens of cache",
        log=(("The model's max seq len (32768) is larger than the maximum number of tokens that can be stored in KV "
             "cache (7344). Try"),),
        first="startup/limit-above-pool",
        flag="--max-model-len 7264",
    ),
    Report(
        "a limit of 4,096 against 3,664 tokens of cache, 0.2.7",
        log=(BANNER.format("0.2.7"), ("The model's max seq len (4096) is larger than the maximum number of tokens that "
             "can be stored in KV cache (3664). Try")),
        first="startup/limit-above-pool",
        flag="--max-model-len 3616",
    ),
    Report(
        "the engine names the limit that would start",
        log=(BANNER.format("0.10.2"), ("To serve at least one request with the models's max seq len (131072), (4.00 "
             "GiB KV cache is needed, which is larger than the available KV cache memory (0.65 GiB). Based on the "
             "available memory, the estimated maximum model length is 21440. Try")),
        first="startup/limit-above-pool",
        flag="--max-model-len 21216",  # 21,440 - 214.4 in blocks of 16
    ),
    Report(
        "1,024 seats of the V1 default break the warm-up of the sampler",
        log=(BANNER.format("0.8.0"), "CUDA out of memory occurred when warming up sampler with 1024 dummy requests."),
        first="startup/too-many-seats",
        flag="--max-num-seqs 256",
        never=("startup/out-of-memory", "startup/no-memory-for-cache"),
    ),
    Report(
        "a hybrid model has 614 slots for states and 1,024 seats by default",
        log=(BANNER.format("0.25.1"), "max_num_seqs (1024) exceeds available Mamba cache blocks (614). Each"),
        first="startup/too-many-seats",
        flag="--max-num-seqs 614",
    ),
    Report(
        "nothing is left for the cache at the default share: the opposite of running out",
        log=(BANNER.format("0.9.0"), "No available memory for the cache blocks. Try"),
        first="startup/no-memory-for-cache",
        flag="--gpu-memory-utilization 0.95",
    ),
    Report(
        "0.99 of the memory, and an activation fails under load",
        log=(
            BANNER.format("0.7.2"),
            ARGUMENTS.format("{'model': 'm', 'gpu_memory_utilization': 0.99}"),
            UP,
            OUT_OF_MEMORY,
        ),
        first="startup/out-of-memory",
        flag="--gpu-memory-utilization 0.94",
    ),
    Report(
        "all of the memory on a 70B",
        {"flags": {"gpu_memory_utilization": 1.0}} | seen(server_failure="out_of_memory_serving"),
        first="startup/out-of-memory",
        flag="--gpu-memory-utilization 0.95",
    ),
    Report(
        "out of memory, share unknown",
        seen(server_failure="out_of_memory_serving"),
        first="startup/out-of-memory-share-unknown",
    ),
    Report(
        "a request that the pool can never hold preempts itself for ever",
        {"flags": {"max_model_len": 1024}, "reported": {"kv_pool_tokens": 1008}} | seen(running_p95=1),
        first="memory/limit-above-pool",
        flag="--max-model-len 992",
    ),
    Report(
        "two requests fill the cache of a 32B on one GPU, twenty seats",
        {"flags": {"max_num_seqs": 20, "max_model_len": 32000}} | seen(running_p95=2, kv_usage_p95="100%"),
        first="memory/cache-full-below-cap",
        never=RAISES_THE_CAP,
    ),
    Report(
        "usage near 100 %, a growing queue, falling throughput",
        seen(kv_usage_p95="99%", waiting_p95=50),
        first="memory/cache-full-below-cap",
        never=RAISES_THE_CAP,
    ),
    Report(
        "one runs, three wait, 3 % of the cache",
        {"flags": {"max_num_seqs": 256}} | seen(running_p95=1, waiting_p95=3, kv_usage_p95="3.1%"),
        first="concurrency/waits-below-the-cap",
        never=SIZES,
    ),
    Report(
        "a budget of 512 and long prompts with 16 tokens of answer: never more than three run",
        {"flags": {"max_num_seqs": 512, "max_num_batched_tokens": 512}}
        | seen(running_p95=3, waiting_p95=97, kv_usage_p95="5%"),
        first="concurrency/waits-below-the-cap",
        never=SIZES,
    ),
    Report(
        "low usage and nothing waits",
        {"flags": {"max_num_seqs": 256}}
        | seen(running_p95=4, waiting_p95=0, kv_usage_p95="15.6%", preempted_share="0%"),
        found="health/idle-seats",
        never=(*SIZES, *REPLICAS),
    ),
    Report(
        "low usage, nothing waits, the cap is not known",
        seen(waiting_p95=0, kv_usage_p95="3%"),
        found="health/idle-seats",
        never=(*SIZES, *REPLICAS),
    ),
    Report(
        "SGLang: four requests of 1,000 tokens, three run",
        {"engine": "sglang"} | seen(running_p95=3, waiting_p95=1),
        first="concurrency/reserved-for-declared-output",
    ),
    Report(
        "TensorRT-LLM serialises requests that declare as much as the budget",
        {"engine": "trtllm"} | seen(running_p95=1, waiting_p95=10),
        first="concurrency/reserved-for-declared-output",
    ),
    Report(
        "TGI: a queue that never drains and nothing runs",
        {"engine": "tgi"} | seen(running_p95=0, waiting_p95=50),
        first="health/queue-without-progress",
        never=("concurrency/reserved-for-declared-output", *SIZES),
    ),
    Report(
        "a cache that stays full with nothing running",
        seen(kv_usage_p95="99%", running_p95=0, waiting_p95=0),
        first="health/cache-held-by-nobody",
        never=("memory/cache-full-below-cap", *REPLICAS),
    ),
    Report(
        "usage falls to 0 between requests although prefixes are cached",
        {"flags": {"enable_prefix_caching": True}} | seen(kv_usage_p95="0%", running_p95=0),
        found="instrumentation/usage-of-running-only",
    ),
    Report(
        "every first token within the lowest bucket",
        {"slo": {"ttft": "1s"}} | seen(ttft_p99="1ms"),
        first="instrumentation/latencies-of-nothing",
    ),
    Report(
        "several front ends",
        {"flags": {"api_server_count": 4}},
        found="instrumentation/several-api-servers",
    ),
    Report(
        "30 % prefix hits on a server that thrashes",
        {"flags": {"max_num_seqs": 1024}}
        | seen(running_p95=260, waiting_p95=475, kv_usage_p95="100%", prefix_cache_hit_rate="30%"),
        first="memory/cache-full-below-cap",
        found="prefix/hits-inflated-by-preemption",
    ),
    Report(
        "a system prompt of 240 tokens and blocks of 784",
        {"flags": {"block_size": 784}} | seen(prefix_cache_hit_rate="0%"),
        found="prefix/never-hit",
    ),
    Report(
        "an option of a wrapper that never reached the engine",
        {"flags": {"max_num_seqs": 1024}},
        log=(BANNER.format("0.10.0"), ARGUMENTS.format("{'model': 'm', 'max_num_seqs': 256}")),
        first="health/flag-sources-disagree",
    ),
    Report(
        "34 wait behind 8 seats, most of the pool is free, preemptions were not looked at",
        {"flags": {"max_num_seqs": 8}} | seen(running_p95=8, waiting_p95=34, kv_usage_p95="20%"),
        first="concurrency/cap-pinned-cache-unknown",
    ),
    Report(
        "the same with preemptions at none",
        {"flags": {"max_num_seqs": 8}}
        | seen(running_p95=8, waiting_p95=34, kv_usage_p95="20%", preempted_share="0%"),
        first="concurrency/cap-pinned-cache-free",
        flag="--max-num-seqs 12",
    ),
    Report(
        "agents at 4,096 tokens get 400s",
        {"flags": {"max_model_len": 4096}} | seen(refused_share_now="5%"),
        first="length/refused-need-unknown",
        never=("length/limit-oversized",),
    ),
    Report(
        "one request of 122,946 tokens is known among those refused at 16,384",
        {"flags": {"max_model_len": 16384}, "requests": {"joint": [[112946, 10000, 1]]}} | seen(refused_share_now="2%"),
        first="length/refused-need-unknown",
        never=("length/limit-oversized",),
    ),
    Report(
        "8B on eight GPUs as one replica",
        {
            "flags": {"tensor_parallel_size": 8, "max_model_len": 8192, "gpu_memory_utilization": 0.9},
            "model": {"weights": "16GB", "config": LLAMA},
            "gpu": {"memory": "48GB", "headroom": "2GB"},
        },
        first="capacity/sharded-beyond-need",
    ),
    Report(
        "eight ranks and four KV heads",
        {"flags": {"tensor_parallel_size": 8}, "model": {"config": LLAMA | {"num_key_value_heads": 4}}},
        found="kv/cache-kept-more-than-once",
    ),
    Report(
        "11,198 and 11,218 tokens/s at 100 and at 1,000 at once",
        {"sweep": [{"concurrency": 100, "tpot": "8.93ms"}, {"concurrency": 1000, "tpot": "89.14ms"}]},
        found="capacity/throughput-flat",
    ),
    Report(
        "8,192 tokens a step take 3.5 s and streams stand still",
        {"slo": {"itl": "300ms"}, "flags": {"max_num_batched_tokens": 8192}}
        | seen(full_step_seconds=3.5, slo_attainment_itl="40%"),
        first="latency/full-step-exceeds-gap",
    ),
    Report(
        "SGLang: chunks of 256 for prompts of 79,096 tokens",
        {"engine": "sglang", "flags": {"chunked_prefill_size": 256}, "slo": {"ttft": "60s"}}
        | seen(slo_attainment_ttft="50%"),
        first="budget/small-passes-delay-prompts",
    ),
    Report(
        "a context of 128k and a budget of 32k",
        {"flags": {"max_model_len": 131072, "max_num_batched_tokens": 32768, "enable_chunked_prefill": True}},
        found="plan/prompts-in-pieces",
    ),
    Report(
        "n-gram drafts in a large batch",
        {"flags": {"speculative_config": '{"method": "ngram", "num_speculative_tokens": 4}'}} | seen(running_p95=64),
        found="speculation/at-a-large-batch",
    ),
    Report(
        "an autoscaler that adds replicas without load",
        {"replicas": 10} | seen(running_p95=0, waiting_p95=0, kv_usage_p95="0%"),
        found="health/idle-seats",
        never=REPLICAS,
    ),
    Report(
        "how many users fit within a latency that is promised",
        {"slo": {"tpot": "50ms"}, "gpu": {"memory": "48GB"}},
        first="concurrency/sweep-needed",
    ),
    Report(
        "SGLang: a request of 128k outgrows what is kept for its output",
        {"engine": "sglang"} | seen(preempted_share="5%"),
        first="concurrency/admits-beyond-its-reserve",
        never=("concurrency/churn-not-sized",),
    ),
    Report(
        "TensorRT-LLM fills the cache greedily with prompts of 16,384 tokens",
        {"engine": "trtllm", "requests": {"joint": [[16384, 512, 128]]}} | seen(running_p95=32, preempted_share="50%"),
        first="concurrency/admits-beyond-its-reserve",
    ),
    Report(
        "a hybrid's blocks of 7,808 tokens at a limit of 8,192",
        log=(
            BANNER.format("0.28.0"),
            ARGUMENTS.format("{'model': 'm', 'max_model_len': 8192}"),
            "INFO 03-11 10:00:07 Setting attention block size to 7808 tokens",
            "INFO 03-11 10:00:08 [kv_cache_utils.py:1] GPU KV cache size: 260,006 tokens",
        ),
        found="kv/blocks-larger-than-requests",
    ),
    Report(
        "two prompts of 200,000 tokens fill 98 % of 530,081, which is 259,740 each",
        {"reported": {"kv_pool_tokens": 530081}}
        | seen(running_p95=2, kv_usage_p95="98%", kv_tokens_per_sequence=259740, total_tokens_p999=200000),
        found="kv/sequences-hold-more-than-they-need",
    ),
    Report(
        "tokens come late as more run, and nobody looked at preemptions",
        {"slo": {"tpot": "50ms"}} | seen(slo_attainment_tpot="80%", running_p95=40),
        first="instrumentation/preemptions-not-counted",
    ),
    Report(
        "a prompt of 8,192 tokens is one step",
        {"slo": {"itl": "200ms"}, "flags": {"max_model_len": 8192, "max_num_batched_tokens": 8192}},
        first="plan/prompt-in-one-step",
    ),
    Report(
        "a server at its cap beyond the knee of its sweep",
        {
            "flags": {"max_num_seqs": 256},
            "sweep": [{"concurrency": 100, "tpot": "8.93ms"}, {"concurrency": 1000, "tpot": "89.14ms"}],
        }
        | seen(running_p95=256, waiting_p95=400),
        found="capacity/throughput-flat",
        never=(*RAISES_THE_CAP, "concurrency/cap-pinned-cache-unknown"),
    ),
    Report(
        "a fifth of first tokens is late, and nothing else was looked at",
        {"slo": {"ttft": "500ms"}} | seen(slo_attainment="90%", slo_attainment_ttft="90%"),
        told="no engine metrics over time: give --prometheus",
    ),
    Report("how is max_num_seqs determined, and nothing else", {"flags": {}}, told="connect metrics (--prometheus"),
)  # fmt: skip


@pytest.mark.parametrize("report", REPORTS, ids=[report.about for report in REPORTS])
def test_a_report(report: Report, tmp_path: Path) -> None:
    sources: dict[str, list[Path]] = {}
    if report.known:
        (tmp_path / "known.yaml").write_text(json.dumps({"deployments": {"served": report.known}}))
        sources["evidence"] = [tmp_path / "known.yaml"]
    if report.log:
        (tmp_path / "start.log").write_text("\n".join(report.log) + "\n")
        sources["startup_logs"] = [tmp_path / "start.log"]
    (deployment,) = run_once(Settings.model_validate(sources), WINDOW).deployments
    judgement = deployment.judgement
    said = [a.rule for a in judgement.advice]
    assert (said[0] if said else None) == report.first or report.first is None
    if report.flag:
        assert judgement.advice[0].flag == report.flag
    if report.found:
        assert report.found in [f.rule for f in judgement.findings]
    assert set(said).isdisjoint(report.never)
    assert report.told in phrases.answers(deployment)[0][2]
