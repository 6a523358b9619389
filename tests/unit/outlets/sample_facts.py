"""Figures of two deployments, for the outlets' tests: one that is only planned, and one whose cap throttles it."""

from __future__ import annotations

from collections.abc import Mapping

from advisor.domain.fact import Fact, computed, measured, unknown

PLANNED_FACTS: Mapping[str, Fact] = {
    "total_tokens_p50": measured(1_400.0, source="stated"),
    "total_tokens_p90": measured(3_800.0, source="stated"),
    "total_tokens_p99": measured(6_200.0, source="stated"),
    "total_tokens_p999": measured(9_500.0, source="stated"),
    "recommended_max_model_len": computed(12_288.0, source="p99.9 9,500 x 1.25 = 11,875, rounded up to 1,024"),
    "max_model_len_cost_ratio": computed(1_048_576 / 12_288, source="the model's maximum 1,048,576 / 12,288"),
    "kv_bytes_per_token": measured(327_680.0, source="stated"),
    "kv_pool_tokens": unknown("no engine has reported it: --startup-log, --engine or --prometheus tells it"),
    "kv_pool_tokens_predicted": computed(
        587_158.0, source="4 x (80 GB x 0.92 - 70 GB / 4 - 8 GB) = 192.4 GB, / 327,680 bytes"
    ),
    "memory_ceiling_guaranteed": computed(47.0, source="587,158 / 12,288 (predicted pool / recommended limit)"),
    "memory_ceiling_expected": unknown("the joint lengths of requests are not known: a request log tells them"),
    "latency_ceiling": Fact(
        value=40.0,
        high=48.0,
        source="26 tokens/s per user at 40, 19 at 48; 25 needed (sweep of means)",
        basis="measured",
    ),
    "budget_ceiling": unknown("mean prompt and output lengths are not known: a request log tells them"),
    "recommended_max_num_seqs": computed(40.0, source="least of memory 47 and latency 40"),
    "next_max_num_seqs": computed(40.0, source="measured by the sweep at 40"),
    "binding_ceiling": computed("latency", source="latency 40 < memory 47"),
    "max_num_seqs": measured(256.0, source="config"),
    "max_num_batched_tokens": measured(2_048.0, source="config"),
    "prefill_tokens_per_step_left": computed(2_008.0, source="2,048 - 40"),
}

THROTTLED_FACTS: Mapping[str, Fact] = {
    **{
        f"{kind}_tokens_{percentile}": measured(
            value, low=low, high=high, n=412_310, source="request log, order statistics"
        )
        for kind, row in {
            "prompt": ((1020, 1017, 1024), (2734, 2728, 2741), (4142, 4120, 4165), (6179, 6020, 6310)),
            "output": ((129, 129, 130), (424, 423, 426), (601, 598, 604), (954, 930, 978)),
            "total": ((1412, 1409, 1416), (2820, 2814, 2827), (4259, 4240, 4281), (6301, 6190, 6480)),
        }.items()
        for percentile, (value, low, high) in zip(("p50", "p90", "p99", "p999"), row, strict=True)
    },
    "refused_share_now": measured(0.0, n=412_310, source="0 of 412,310 in the request log"),
    "needed_tokens_p999_upper": computed(6_480.0, source="order statistics of 412,310 requests"),
    "recommended_max_model_len": computed(8_192.0, source="6,480 x 1.25 = 8,100, rounded up to 1,024"),
    "refused_share_at_recommended": measured(124 / 412_310, n=412_310, source="124 of 412,310 observed requests"),
    "max_model_len_cost_ratio": computed(16.0, source="131,072 / 8,192"),
    "kv_bytes_per_token": computed(327_680.0, source="80 layers x 8 KV heads x 128 x 2 x 2 bytes"),
    "kv_pool_tokens": measured(587_008.0, source="start-up log"),
    "kv_pool_tokens_predicted": computed(587_158.0, source="179.2 GiB / 327,680 bytes"),
    "kv_pool_relative_error": computed(587_158 / 587_008 - 1, source="(587,158 - 587,008) / 587,008"),
    "memory_ceiling_guaranteed": computed(71.0, source="587,008 / 8,192 (reported pool / recommended limit)"),
    "memory_ceiling_expected": computed(445.0, source="1 % overflow risk; 1,242 +- 701 tokens in flight per request"),
    "latency_ceiling": measured(None, low=16.0, source="never seen failing; the live line crosses 40 ms near 110"),
    "budget_ceiling": computed(301.0, source="2,048 x 152 / (882 + 152)"),
    "recommended_max_num_seqs": computed(445.0, source="memory 445; latency at least 16"),
    "next_max_num_seqs": computed(24.0, source="1.5 x 16, the largest concurrency observed"),
    "binding_ceiling": computed("budget", source="budget 301 < memory 445"),
    "max_num_seqs": measured(16.0, source="server_info"),
    "max_model_len": measured(131_072.0, source="models_endpoint"),
    "max_num_batched_tokens": measured(2_048.0, source="server_info"),
    "prefill_tokens_per_step_left": computed(1_603.0, source="2,048 - 445"),
    "replicas": measured(2.0, source="2 instances alive at the end of the window"),
    "time_at_sequence_cap": measured(0.174, n=80_640, source="engine gauges"),
    "running_p95": measured(16.0, n=80_640, source="engine gauges"),
    "waiting_p95": measured(9.0, n=80_640, source="engine gauges"),
    "kv_usage_p95": measured(0.0407, n=80_640, source="engine gauges"),
    "preempted_share": measured(0.0, n=412_310, source="engine counters"),
    "prefix_cache_hit_rate": measured(0.31, source="engine counters"),
    "replica_imbalance": measured(1.04, source="engine gauges"),
    "ttft_p50": measured(0.212, n=300_112, source="request log"),
    "ttft_p99": measured(1.84, n=300_112, source="request log"),
    "tpot_p99": measured(0.0191, n=300_112, source="request log"),
    "itl_mean": measured(0.0143, source="engine histogram"),
    "itl_p99": measured(None, low=0.025, high=0.05, source="engine histogram"),
    "slo_attainment": measured(0.9936, n=300_112, source="request log"),
    "slo_target": Fact(value=0.99, source="objective", basis="assumed"),
    "demand_requests_per_second_p99": measured(1.42, source="request log"),
    "capacity_requests_per_second_per_replica": measured(None, low=0.83, source="engine counters"),
}
