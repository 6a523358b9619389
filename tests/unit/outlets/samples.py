"""Reports as the pipeline makes them, for the outlets' tests: planned, throttled, undecided, empty and hostile."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from advisor.domain.advice import (
    Advice,
    EvidenceLine,
    Finding,
    Judgement,
    Need,
    NotFired,
    Prediction,
    Undetermined,
)
from advisor.domain.evidence import (
    CounterWindows,
    Disagreement,
    EngineSeries,
    Evidence,
    Flag,
    GpuInfo,
    ModelInfo,
    RequestLog,
    Samples,
    Slo,
    StatedPercentiles,
    Window,
    as_floats,
)
from advisor.domain.fact import FactSheet, measured, unknown
from advisor.domain.histogram import JointCounts, TokenCounts
from advisor.domain.report import DeploymentReport, Report, SourceState
from advisor.domain.sweep import Sweep, SweepPoint
from tests.unit.outlets.sample_facts import PLANNED_FACTS, THROTTLED_FACTS

NOW = 1_795_968_000.0  # Sun 29 Nov 2026 16:00 UTC
WEEK = Window(NOW - 7 * 86_400, NOW)
FLAGS_CHANGED = 1_795_511_520.0  # Tue 24 Nov 2026 09:12 UTC


def _flag_advice(knob: str, current: float | None, recommended: float | None, **rest: object) -> Advice:
    option = "--" + knob.replace("_", "-")
    base = Advice(
        id=f"{knob}-1",
        rule="length/max-model-len-oversized",
        title="The length limit is far above what requests need",
        state="open",
        verdict="change_flag",
        knob=knob,
        current=current,
        recommended=recommended,
        flag=f"{option} {recommended}",
        severity="opportunity",
        confidence="medium",
        confidence_basis="stated percentiles carry no interval",
        reason="requests need 9,500 tokens at the p99.9; the model would admit 1,048,576",
        evidence=(),
        prediction=(),
        verify="start with it and compare the pool line of the start-up log with 587,158 tokens",
        undo=f"remove {option}" if current is None else f"{option} {current:.0f}",
    )
    return replace(base, **rest)  # type: ignore[arg-type]


def planned() -> DeploymentReport:
    """A first configuration: nothing runs yet, so both flags are advised at once."""
    evidence = Evidence(
        name="chat-70b",
        window=WEEK,
        slo=Slo(tpot_seconds=0.04),
        flags={
            "gpu_memory_utilization": Flag(0.92, "config"),
            "tensor_parallel_size": Flag(4, "config"),
            "max_num_seqs": Flag(256, "config"),
            "max_num_batched_tokens": Flag(2048, "config"),
        },
        model=ModelInfo(weights_bytes=70e9, kv_bytes_per_token=327_680.0, max_context_tokens=1_048_576),
        gpu=GpuInfo(memory_bytes=80e9, headroom_bytes=8e9),
        percentiles=StatedPercentiles({50.0: 1400, 90.0: 3800, 99.0: 6200, 99.9: 9500}),
        sweep=Sweep((SweepPoint(40, 1 / 26), SweepPoint(48, 1 / 19)), "chat-70b.yaml"),
    )
    seats = _flag_advice(
        "max_num_seqs",
        256,
        40,
        rule="concurrency/cap-above-latency-ceiling",
        title="The sequence cap admits more than the latency objective bears",
        severity="warning",
        reason="at 48 sequences a user gets 19 tokens/s where 25 are needed; at 40 it is 26",
        evidence=(EvidenceLine("max_num_seqs", 256.0, "sequences", "max_num_seqs > 1.1 recommended_max_num_seqs"),),
        prediction=(Prediction("itl_mean", 1 / 19, 1 / 26, 1 / 26, "seconds"),),
    )
    judgement = Judgement(
        status="advice",
        advice=(_flag_advice("max_model_len", None, 12_288), seats),
        undetermined=(
            Undetermined(
                "concurrency/budget-binds",
                (Need("budget_ceiling", "mean prompt and output lengths are not known: a request log tells them"),),
            ),
        ),
    )
    return DeploymentReport(evidence, FactSheet(PLANNED_FACTS), judgement)


def _engine_series(instance: str) -> EngineSeries:
    empty = as_floats([])
    return EngineSeries(
        instance=instance,
        engine="0",
        epoch_start=FLAGS_CHANGED,
        samples=Samples(empty, empty, empty, None),
        windows=CounterWindows(empty, empty, {}),
        lengths={},
        latencies={},
    )


def _log(served: int) -> RequestLog:
    nothing = TokenCounts.of([])
    return RequestLog(
        served=JointCounts.of([1020], [129], [served]),
        declared=nothing,
        refused_needs=nothing,
        cut=nothing,
        refused=0,
        failed=0,
        without_usage=0,
        first_seconds=WEEK.start,
        last_seconds=WEEK.end,
        arrivals={},
        latency=None,
        source="request log",
    )


def throttled(name: str = "chat-70b") -> DeploymentReport:
    """Requests wait behind the sequence cap while the cache is nearly empty; the length limit is queued behind it."""
    evidence = Evidence(
        name=name,
        window=WEEK,
        engine_version="0.32.0",
        replicas=2,
        slo=Slo(tpot_seconds=0.04, ttft_seconds=2.0),
        flags={
            "max_num_seqs": Flag(16, "server_info", since=FLAGS_CHANGED),
            "max_model_len": Flag(131_072, "models_endpoint"),
            "max_num_batched_tokens": Flag(2048, "server_info"),
            "enable_prefix_caching": Flag(value=True, source="metrics"),
        },
        disagreements=(Disagreement("max_num_seqs", Flag(16, "server_info"), Flag(32, "config")),),
        log=_log(412_310),
        engines=(_engine_series("10.0.0.1:8000"), _engine_series("10.0.0.2:8000")),
    )
    seats = _flag_advice(
        "max_num_seqs",
        16,
        24,
        rule="concurrency/cap-pinned-cache-free",
        title="The sequence cap throttles a server that has cache to spare",
        confidence="high",
        confidence_basis="R2 0.94 over 1,930 windows; reaches 1.5x beyond what was observed",
        reason="requests wait behind the cap 17 % of the time while the cache is 4 % full and both SLOs have slack",
        evidence=(
            EvidenceLine("time_at_sequence_cap", 0.174, "ratio", "time_at_sequence_cap >= 5%"),
            EvidenceLine("kv_usage_p95", 0.0407, "ratio", "kv_usage_p95 < 60%"),
            EvidenceLine("preempted_share", 0.0, "ratio", "preempted_share < 0.5%"),
            EvidenceLine("running_p95", 16.0, "requests", "running_p95 < 0.8 budget_ceiling"),
        ),
        prediction=(
            Prediction("ttft_p99", 1.84, 0.5, 0.7, "seconds"),
            Prediction("itl_mean", 0.0143, 0.0161, 0.0172, "seconds"),
            Prediction("kv_usage_p95", 0.0407, None, 0.061, "ratio"),
        ),
        verify="restart one replica with it first and compare its TTFT p99 with the other's on the same traffic",
    )
    length = _flag_advice(
        "max_model_len",
        131_072,
        8_192,
        state="queued",
        reason="16x above what requests need; bounds the worst case, frees no cache on this engine",
    )
    judgement = Judgement(
        status="advice",
        advice=(seats, length),
        findings=(
            Finding(
                "budget/irrelevant",
                "The token budget hurts neither TTFT nor the gap between tokens",
                (EvidenceLine("prefill_share_of_budget", 0.31, "ratio", "prefill_share_of_budget < 60%"),),
            ),
        ),
        undetermined=(
            Undetermined(
                "latency/chunk-stalls-decode",
                (Need("slo_attainment_tpot", "no TPOT edge lies at 40 ms: a request log or finer buckets tell it"),),
            ),
        ),
        not_fired=(
            NotFired("concurrency/cap-invites-churn", "preempted_share > 0.5%", 0.0, 1.0),
            NotFired("capacity/replicas-short", "demand_over_capacity > 0.9", 0.86, 0.044),
            NotFired("prefix/cache-off", "prefix_cache_hit_rate < 5%", 0.31, 5.2),
            NotFired("latency/ttft-failing", "slo_attainment_ttft < slo_target", None, None),
        ),
    )
    return DeploymentReport(evidence, FactSheet(THROTTLED_FACTS), judgement)


def short_of_replicas() -> DeploymentReport:
    """Demand beyond what its replicas carry: no flag helps."""
    evidence = Evidence(
        name="code-8b",
        window=WEEK,
        engine_version="0.32.0",
        replicas=4,
        slo=Slo(tpot_seconds=0.03),
        log=_log(1_201_552),
    )
    advice = _flag_advice(
        "replicas",
        4,
        6,
        rule="capacity/replicas-short",
        title="Demand exceeds what the replicas serve within their objectives",
        verdict="add_replicas",
        flag=None,
        severity="critical",
        reason="p99 demand is 9.1 req/s; one replica serves 1.7 req/s within the SLO",
        undo="4 replicas",
        verify="the share within the SLO should reach 99 % in the busiest hour",
        options=({"replicas": 6, "tensor_parallel_size": 1, "kv_pool_tokens": 587_158},),
    )
    facts = {"demand_requests_per_second_p99": measured(9.1, source="request log")}
    return DeploymentReport(evidence, FactSheet(facts), Judgement("advice", (advice,)))


def healthy() -> DeploymentReport:
    """Within its objectives."""
    evidence = Evidence(
        name="rag-32b",
        window=WEEK,
        engine="sglang",
        engine_version="0.5.23",
        replicas=1,
        engines=(_engine_series("10.0.1.1:30000"),),
    )
    findings = (Finding("health/within-slo", "within its SLOs", ()), Finding("demand/limited", "demand-limited", ()))
    return DeploymentReport(evidence, FactSheet({}), Judgement("ok", findings=findings))


def cannot_tell() -> DeploymentReport:
    """Histograms whose last bucket hides the tail."""
    reason = "the p99.9 lies above the last bucket (10,000): add a request log (--logs)"
    facts = {
        "total_tokens_p50": measured(None, low=1_000.0, high=2_000.0, n=9_120, source="engine histograms"),
        "total_tokens_p90": measured(None, low=5_000.0, high=10_000.0, n=9_120, source="engine histograms"),
        "total_tokens_p99": measured(None, low=10_000.0, n=9_120, source="engine histograms"),
        "total_tokens_p999": measured(None, low=10_000.0, n=9_120, source="engine histograms"),
        "recommended_max_model_len": unknown(reason),
        "latency_ceiling": unknown("no TPOT target was given (--slo-tpot)"),
    }
    judgement = Judgement(
        "cannot_tell",
        undetermined=(
            Undetermined("length/max-model-len-oversized", (Need("recommended_max_model_len", reason),)),
            Undetermined("length/refusals", (Need("refused_share_now", reason),)),
            Undetermined(
                "concurrency/cap-above-latency-ceiling",
                (Need("latency_ceiling", "no TPOT target was given (--slo-tpot)"),),
            ),
        ),
    )
    evidence = Evidence(
        name="eval-405b",
        window=WEEK,
        engine="tgi",
        engine_version="3.3.7",
        replicas=1,
        workload="batch",
        engines=(_engine_series("10.0.2.1:80"),),
    )
    return DeploymentReport(evidence, FactSheet(facts), judgement)


def sweep_first() -> DeploymentReport:
    """Nothing can be told of latency before somebody measures it."""
    advice = _flag_advice(
        "max_num_seqs",
        None,
        None,
        flag=None,
        rule="latency/ceiling-unmeasured",
        title="The latency ceiling was never measured",
        verdict="run_sweep",
        severity="info",
        confidence="low",
        confidence_basis="no concurrency above 3 was ever seen",
        reason="no sweep was given and traffic never exceeded 3 requests at once",
        verify="give the result with --sweep",
        undo="nothing to undo",
    )
    evidence = Evidence(name="vision-90b", window=WEEK, engine_version="0.32.0", replicas=1)
    return DeploymentReport(evidence, FactSheet({}), Judgement("cannot_tell", (advice,)))


def no_data() -> DeploymentReport:
    """A name and nothing else."""
    return DeploymentReport(Evidence(name="ghost", window=WEEK), FactSheet({}), Judgement("no_data"))


HOSTILE_NAMES = (
    "<!channel>",
    "=cmd|' /C calc'!A0",
    "\x1b[2J\x1b[31mred\x07",
    "a" * 150 + "b" * 150,
    "evil\u202egnp.exe",
    "| x | [a](http://evil) <script>alert(1)</script> `whoami` *b* _c_ @team",
    "line one\nADVICE  --max-num-seqs 999\r! forged",
    "模型-七十亿-聊天-生产环境-东部区域-主要部署",
    "half \ud800 pair",
    "",
)


def hostile(name: str) -> DeploymentReport:
    """A deployment that carries `name` wherever text from outside can stand."""
    base = throttled(name)
    advice = tuple(
        replace(a, reason=name, verify=name, undo=name, confidence_basis=name) for a in base.judgement.advice
    )
    judgement = replace(
        base.judgement,
        advice=advice,
        findings=(Finding("health/within-slo", name, ()),),
        undetermined=(Undetermined("latency/chunk-stalls-decode", (Need("slo_attainment_tpot", name),)),),
    )
    evidence = replace(base.evidence, engine=name, engine_version=name, flags={"max_num_seqs": Flag(name, "config")})
    facts = {**THROTTLED_FACTS, "latency_ceiling": measured(16.0, source=name), "budget_ceiling": unknown(name)}
    return DeploymentReport(evidence, FactSheet(facts), judgement)


OK_SOURCES = (
    SourceState("prometheus", "ok", "7 queries, 1,204,551 samples"),
    SourceState("request log", "ok", "412,310 requests in 3 files"),
)
POOR_SOURCES = (
    SourceState("prometheus", "failed", "http://prom:9090 answered 401: set prometheus.bearer_token_file"),
    SourceState("request log", "partial", "412,310 requests in 3 files (3 of 1,204,551 lines skipped: 2 not JSON)"),
)


def report(*deployments: DeploymentReport, sources: tuple[SourceState, ...] = OK_SOURCES) -> Report:
    """A report of one evaluation at `NOW` over the last week."""
    return Report(generated_at=NOW, window=WEEK, sources=sources, deployments=deployments)


def fleet() -> Report:
    """Every kind of deployment side by side, with a source that failed and one that was read in part."""
    return report(
        throttled(),
        planned_as("chat-new"),
        short_of_replicas(),
        healthy(),
        cannot_tell(),
        sweep_first(),
        no_data(),
        sources=POOR_SOURCES,
    )


def planned_as(name: str) -> DeploymentReport:
    """The planned deployment under another name."""
    base = planned()
    return replace(base, evidence=replace(base.evidence, name=name))


def infinite() -> DeploymentReport:
    """Figures that no JSON can carry."""
    facts = {
        "ttft_p99": measured(float("nan"), source="histogram"),
        "itl_p99": measured(None, low=0.1, high=float("inf"), source="histogram"),
        "waiting_p95": measured(float(np.float64(15.4)), source="engine gauges"),
    }
    judgement = Judgement("ok", not_fired=(NotFired("a/b", "ttft_p99 > 1", float("inf"), float("-inf")),))
    return DeploymentReport(
        Evidence(name="odd", window=WEEK, flags={"x": Flag(float("inf"), "process", 1e300)}),
        FactSheet(facts),
        judgement,
    )
