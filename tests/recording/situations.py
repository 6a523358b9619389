"""Deployments whose right answer is known: each name says what is wrong with it, each comment what to do about it.

`RECORDED_AT` is the UNIX time at which all of them end. The lengths of chat traffic and the step times are of the order
of a 70B model on four large GPUs; nothing depends on their exact values.
"""

from __future__ import annotations

from dataclasses import replace

from tests.recording.deployment import Deployment, Restart, Traffic
from tests.recording.engine import EngineFlags, StepTime

RECORDED_AT = 1_795_737_600.0  # 2026-11-27 00:00 UTC

CHAT = Traffic(requests_per_second=1.2, prompt_median=700, prompt_sigma=0.8, output_median=260, output_sigma=0.7)

HEALTHY = Deployment(
    model="acme/healthy",
    traffic=CHAT,
    engine=EngineFlags(max_model_len=16384, max_num_seqs=64, kv_pool_tokens=500_000),
)
"""Within its cap, cache and latency objectives: no advice."""

CAP_PINNED = Deployment(
    model="acme/cap-pinned",
    traffic=replace(CHAT, requests_per_second=2.35, seed=2),
    engine=EngineFlags(max_model_len=16384, max_num_seqs=16, kv_pool_tokens=500_000),
)
"""Requests queue behind the sequence cap while the cache is nearly empty: raise `max_num_seqs` in steps."""

CACHE_CHURN = Deployment(
    model="acme/cache-churn",
    traffic=Traffic(0.19, prompt_median=500, prompt_sigma=0.6, output_median=2500, output_sigma=0.8, seed=3),
    engine=EngineFlags(max_model_len=32768, max_num_seqs=256, kv_pool_tokens=50_000),
)
"""Long answers overflow the pool and are preempted: more cache (replicas, sharding), never a higher cap."""

REFUSING = Deployment(
    model="acme/refusing",
    traffic=replace(CHAT, prompt_sigma=1.0, seed=4),
    engine=EngineFlags(max_model_len=4096, max_num_seqs=64, kv_pool_tokens=500_000),
)
"""`max_model_len` refuses and cuts real traffic: raise it, and never shrink from this sample."""

RESTARTED = replace(
    CAP_PINNED,
    model="acme/restarted",
    restart=Restart(at=3 * 3600, engine=replace(CAP_PINNED.engine, max_num_seqs=32)),
)
"""CAP_PINNED for three hours, then the cap was doubled: what came before the restart is another epoch."""

TWO_REPLICAS = replace(HEALTHY, model="acme/two-replicas", replicas=2)
"""HEALTHY on two instances, which share its traffic."""

DATA_PARALLEL = replace(HEALTHY, model="acme/data-parallel", data_parallel_size=2)
"""HEALTHY on one instance with two engines: one pool an engine, `engine` labels 0 and 1."""

DEMO = Deployment(
    model="chat-70b",
    traffic=Traffic(
        0.58, prompt_median=820, prompt_sigma=0.75, output_median=560, output_sigma=0.75, daily_swing=0.3, seed=70
    ),
    engine=EngineFlags(max_model_len=131072, max_num_seqs=16, max_num_batched_tokens=2048, kv_pool_tokens=479_184),
    step_time=StepTime(base=0.018, per_sequence=2.5e-4, per_kv_token=2e-8, per_prefill_token=1e-4),
    seconds=24 * 3600,
    scrape_seconds=60,
)
"""The recorded deployment that `make demo` shows: its cap is reached in the busy hours, its cache stays empty."""
