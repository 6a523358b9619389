"""What an engine counts about itself: the counters and histograms that vLLM 0.32 exposes, under its names."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

FIRST_TOKEN_EDGES = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0),
    *(20.0, 40.0, 80.0, 160.0, 640.0, 2560.0),
)
PER_TOKEN_EDGES = (
    *(0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0),
    *(20.0, 40.0, 80.0),
)
REQUEST_EDGES = (
    *(0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0),
    *(120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0),
)
STEP_TOKENS_EDGES = (1.0, *(2.0**k for k in range(3, 15)))

TTFT = "vllm:time_to_first_token_seconds"
ITL = "vllm:inter_token_latency_seconds"
TPOT = "vllm:request_time_per_output_token_seconds"
E2E = "vllm:e2e_request_latency_seconds"
QUEUE = "vllm:request_queue_time_seconds"
STEP_TOKENS = "vllm:iteration_tokens_total"
PROMPT_LENGTH = "vllm:request_prompt_tokens"
OUTPUT_LENGTH = "vllm:request_generation_tokens"
PREEMPTIONS = "vllm:num_preemptions"
PROMPT_TOKENS = "vllm:prompt_tokens"
OUTPUT_TOKENS = "vllm:generation_tokens"
FINISHED_STOP = "stop"
FINISHED_LENGTH = "length"
REFUSED = "refused"


def token_edges(max_model_len: int) -> tuple[float, ...]:
    """The 1-2-5 ladder of token histograms, up to the limit: 4,096 gives 1, 2, 5, ... 1,000, 2,000."""
    ladder = (float(mantissa * 10**power) for power in range(8) for mantissa in (1, 2, 5))
    return tuple(edge for edge in ladder if edge <= max_model_len)


class Histogram:
    """A Prometheus histogram: `counts` per bucket, the last one for +Inf, and the `total` of what was observed."""

    def __init__(self, edges: Sequence[float]) -> None:
        self.edges = edges
        self.counts = [0] * (len(edges) + 1)
        self.total = 0.0

    def observe(self, value: float, times: int = 1) -> None:
        """Book `value`, `times` times."""
        self.counts[bisect_left(self.edges, value)] += times
        self.total += value * times


@dataclass(frozen=True, slots=True)
class Scrape:
    """All figures of one engine at one moment. `histograms` holds (cumulative bucket counts, sum) by family."""

    time: float
    running: int
    waiting: int
    kv_usage: float
    counters: dict[str, int]
    histograms: dict[str, tuple[tuple[int, ...], float]]


class Meters:
    """The counters and histograms of one engine since it started."""

    def __init__(self, max_model_len: int) -> None:
        names = (PREEMPTIONS, PROMPT_TOKENS, OUTPUT_TOKENS, FINISHED_STOP, FINISHED_LENGTH, REFUSED)
        self.counters = dict.fromkeys(names, 0)
        lengths = token_edges(max_model_len)
        self.histograms = {
            TTFT: Histogram(FIRST_TOKEN_EDGES),
            ITL: Histogram(PER_TOKEN_EDGES),
            TPOT: Histogram(PER_TOKEN_EDGES),
            E2E: Histogram(REQUEST_EDGES),
            QUEUE: Histogram(REQUEST_EDGES),
            STEP_TOKENS: Histogram(STEP_TOKENS_EDGES),
            PROMPT_LENGTH: Histogram(lengths),
            OUTPUT_LENGTH: Histogram(lengths),
        }

    def scrape(self, time: float, *, running: int, waiting: int, kv_usage: float) -> Scrape:
        """A copy of everything, with the gauges of the moment."""
        frozen = {name: (tuple(accumulate(h.counts)), h.total) for name, h in self.histograms.items()}
        return Scrape(time, running, waiting, kv_usage, dict(self.counters), frozen)
