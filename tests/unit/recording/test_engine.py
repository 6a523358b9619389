import math
from dataclasses import replace

import pytest

from tests.recording import meters
from tests.recording.deployment import Traffic
from tests.recording.engine import Engine, EngineFlags, Request, StepTime
from tests.recording.meters import Scrape

FLAGS = EngineFlags(max_model_len=4096, max_num_seqs=8, max_num_batched_tokens=256, kv_pool_tokens=8192)
COST = StepTime(base=0.1, per_sequence=0.01, per_kv_token=0.0, per_prefill_token=0.001)


def serve(
    requests: list[Request], flags: EngineFlags = FLAGS, cost: StepTime = COST, scrape_seconds: float = 10.0
) -> list[Scrape]:
    return Engine(flags, cost, 0.0).run(requests, 300.0, scrape_seconds)


def test_one_request_takes_a_prefill_and_a_step_a_token() -> None:
    request = Request(arrival=1.0, prompt_tokens=100, output_tokens=3)
    serve([request])
    assert request.first_token - 1.0 == pytest.approx(0.1 + 100 * 0.001)
    assert request.finished - request.first_token == pytest.approx(2 * (0.1 + 0.01))


def test_a_long_prompt_takes_a_step_a_chunk() -> None:
    request = Request(arrival=0.0, prompt_tokens=1000, output_tokens=1)
    serve([request])
    # 1,000 tokens in chunks of 256: four steps, each with its base cost
    assert request.first_token == request.finished == pytest.approx(4 * 0.1 + 1000 * 0.001)


def test_growing_context_costs_time() -> None:
    request = Request(arrival=0.0, prompt_tokens=10, output_tokens=4)
    serve([request], cost=StepTime(base=1.0, per_sequence=0.0, per_kv_token=0.01, per_prefill_token=0.0))
    # decode steps over 10, 11 and 12 cached tokens
    assert request.finished - request.first_token == pytest.approx(1.10 + 1.11 + 1.12)


def test_the_cap_makes_requests_wait_in_order() -> None:
    requests = [Request(arrival=0.0, prompt_tokens=10, output_tokens=5) for _ in range(3)]
    serve(requests, replace(FLAGS, max_num_seqs=1))
    assert requests[0].finished < requests[1].scheduled + 1e-9
    assert requests[1].finished < requests[2].scheduled + 1e-9


@pytest.mark.parametrize(("prompt", "refused"), [(4096, True), (4095, False)])
def test_a_prompt_that_leaves_no_room_is_refused(prompt: int, *, refused: bool) -> None:
    request = Request(arrival=0.0, prompt_tokens=prompt, output_tokens=50)
    last = serve([request])[-1]
    assert request.refused is refused
    assert last.counters[meters.REFUSED] == refused


@pytest.mark.parametrize(("max_tokens", "generated"), [(None, 96), (40, 40)])
def test_an_output_is_cut_at_the_limit_or_at_what_was_declared(max_tokens: int | None, generated: int) -> None:
    request = Request(arrival=0.0, prompt_tokens=4000, output_tokens=500, max_tokens=max_tokens)
    serve([request])
    assert (request.generated, request.finish_reason) == (generated, "length")


def test_the_latest_sequence_is_preempted_when_the_pool_is_full() -> None:
    # 20 blocks of 16: two sequences of 100 + 100 tokens hold 7 blocks each at first, and would end at 13 each
    flags = replace(FLAGS, max_model_len=256, kv_pool_tokens=320)
    first, second = (Request(arrival=0.0, prompt_tokens=100, output_tokens=100) for _ in range(2))
    last = serve([first, second], flags)[-1]
    assert last.counters[meters.PREEMPTIONS] == 1
    assert first.finished < second.finished
    assert last.counters[meters.OUTPUT_TOKENS] == 200
    assert last.kv_usage == 0


def test_histograms_hold_each_request_once_and_each_gap_once() -> None:
    requests = [Request(arrival=0.1 * i, prompt_tokens=50, output_tokens=10) for i in range(20)]
    last = serve(requests)[-1]
    count = {name: cumulative[-1] for name, (cumulative, _) in last.histograms.items()}
    assert count[meters.TTFT] == count[meters.E2E] == count[meters.TPOT] == count[meters.OUTPUT_LENGTH] == 20
    assert count[meters.ITL] == 20 * 9
    assert last.histograms[meters.PROMPT_LENGTH][1] == 20 * 50
    assert last.histograms[meters.STEP_TOKENS][1] == 20 * 50 + 20 * 10


@pytest.mark.parametrize("pool", [4096, 500_000], ids=["churn", "free"])
def test_taking_steps_together_changes_nothing(pool: int) -> None:
    flags = EngineFlags(max_model_len=4096, max_num_seqs=32, max_num_batched_tokens=512, kv_pool_tokens=pool)
    traffic = Traffic(1.0, prompt_median=200, output_median=300)
    together, one_by_one = traffic.draw(60), traffic.draw(60)
    fast = serve(together, flags, StepTime(), scrape_seconds=300)[-1]
    slow = serve(one_by_one, flags, StepTime(), scrape_seconds=0.01)[-1]
    assert fast.counters == slow.counters
    assert (pool == 4096) == (fast.counters[meters.PREEMPTIONS] > 0)
    assert [r.finished for r in together] == pytest.approx([r.finished for r in one_by_one], nan_ok=True)
    assert not any(math.isnan(r.finished) for r in together)


def test_an_engine_that_could_not_start_is_an_error() -> None:
    with pytest.raises(ValueError, match="refuses to start"):
        EngineFlags(max_model_len=8192, kv_pool_tokens=4096)


def test_token_edges_are_the_published_ladder() -> None:
    assert meters.token_edges(8192)[-4:] == (500, 1000, 2000, 5000)
    assert meters.token_edges(131_072)[-1] == 100_000
