from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.domain.evidence import Evidence, ReportedPool
from advisor.domain.fact import Fact
from advisor.domain.failure import Failure
from advisor.estimates import start
from tests.unit.estimates.evidence import NOTHING, flags, sheet


def told(evidence: Evidence, **known: float | str | Fact | None) -> dict[str, float | str | None]:
    return {name: fact.value for name, fact in start.facts(evidence, sheet(**known)).items()}


def failed(**figures: object) -> Evidence:
    return replace(NOTHING, failure=Failure(**figures))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("most", "block", "longest"),
    [
        (7344, 16, 7264),  # 7,344 - 73.44 = 7,270.56; 454 blocks
        (1008, 16, 992),  # 1 % is less than the block that is left free
        (3664, 16, 3616),
        (10, 16, 0),
    ],
)
def test_a_block_and_a_hundredth_stay_free(most: int, block: int, longest: int) -> None:
    assert start.fits(most, block) == longest


@given(st.integers(1, 10**7), st.sampled_from([1, 16, 64, 784, 7808]))
def test_what_fits_leaves_a_block_free_and_is_whole_blocks(most: int, block: int) -> None:
    longest = start.fits(most, block)
    assert longest % block == 0
    assert 0 <= longest <= max(most - block, 0)
    assert start.fits(most + block, block) >= longest


def test_the_longest_limit_is_the_engines_figure_or_what_requests_need() -> None:
    refused = failed(kind="limit_above_pool", limit_tokens=32768, most_tokens=7344)
    assert told(refused)["servable_max_model_len"] == 7264
    assert told(refused, recommended_max_model_len=4096)["servable_max_model_len"] == 4096
    assert told(refused, recommended_max_model_len=16384)["servable_max_model_len"] == 7264


def test_a_pool_that_layers_share_is_counted_in_requests() -> None:
    shared = ReportedPool(60_000, "start-up log", max_concurrency=0.92, nominal=True)
    running = replace(NOTHING, flags=flags(max_model_len=32768), reported_pool=shared)
    # 0.92 x 32,768 = 30,146.56; less 1 % 29,845.09; 1,865 blocks
    assert told(running)["servable_max_model_len"] == 29840
    silent = replace(running, reported_pool=replace(shared, max_concurrency=None))
    assert told(silent)["servable_max_model_len"] is None


def test_nothing_failed_unless_somebody_says_so() -> None:
    assert told(NOTHING)["server_failure"] == "none"
    stated = replace(NOTHING, stated={"server_failure": Fact(value="memory_taken")})
    assert start.facts(stated, sheet())["server_failure"].is_unknown


def test_seats() -> None:
    assert told(failed(kind="seats_above_state_slots", seats=1024, most_seats=614))["startable_max_num_seqs"] == 614
    assert told(failed(kind="out_of_memory_by_seats", seats=1024))["startable_max_num_seqs"] == 256
    assert told(failed(kind="out_of_memory_by_seats", seats=256))["startable_max_num_seqs"] == 128
    assert told(NOTHING)["startable_max_num_seqs"] is None


@pytest.mark.parametrize(
    ("kind", "now", "value"),
    [
        ("out_of_memory_serving", 1.0, 0.95),
        ("out_of_memory_serving", 0.99, 0.94),
        ("out_of_memory_starting", 0.941, 0.89),
        ("out_of_memory_serving", None, None),
        ("no_memory_for_cache", 0.9, 0.95),
        ("no_memory_for_cache", 0.95, None),  # the weights are too large: no share helps
        ("limit_above_pool", 0.9, None),
    ],
)
def test_share_of_memory(kind: str, now: float | None, value: float | None) -> None:
    assert told(failed(kind=kind), gpu_memory_utilization=now)["startable_gpu_memory_utilization"] == value


def test_what_others_hold_is_left_to_them() -> None:
    """106.88 of 121.69 GiB are 87.8 %: 0.87."""
    taken = failed(kind="memory_taken", free_share=106.88 / 121.69)
    assert told(taken, gpu_memory_utilization=0.89)["startable_gpu_memory_utilization"] == 0.87
