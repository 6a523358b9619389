from dataclasses import replace

import pytest

from tests.accuracy.plants import Plant, plants
from tests.recording.engine import EngineFlags, StepTime

FLAGS = EngineFlags(max_model_len=4096, max_num_seqs=10, max_num_batched_tokens=2048, kv_pool_tokens=100_000)
PLANT = Plant("even", FLAGS, StepTime(0.01, 0.0, 0.0, 0.0), ((1000, 200),), seed=3)


def test_a_sequence_holds_its_prompt_and_half_its_answer() -> None:
    assert PLANT.held == pytest.approx(1100)


def test_loads_follow_from_littles_law() -> None:
    # 200 tokens at 10 ms are 2 s a request: 10 seats serve 5 a second
    assert PLANT.rate(10) == pytest.approx(5)
    assert PLANT.gap(10) == pytest.approx(0.01)


def test_all_seats_are_taken_while_saturated() -> None:
    played = PLANT.saturated(2000)
    assert played.itl_seconds == pytest.approx(0.01)
    # one more step of 10 ms a request for its prompt: 10 / 2.01 s is 4.98 a second
    assert played.requests_per_second == pytest.approx(4.98, rel=0.01)
    assert played.within(0.0101) == 1
    assert played.within(0.0099) == 0
    assert played.preempted_share == 0


def test_a_pool_for_fewer_sequences_than_seats_preempts() -> None:
    tight = replace(PLANT, pairs=((100, 900),), flags=replace(FLAGS, max_model_len=1024, kv_pool_tokens=4000))
    # ten sequences hold 550 tokens each on average, 4,000 are there
    assert tight.saturated(1000).preempted_share > 0.1


def test_plants_are_the_same_for_the_same_seeds_and_vary_with_them() -> None:
    first, second = plants(None, (1, 2))[:2]
    assert plants(None, (1, 2))[0] == first
    assert first.cost != second.cost
    assert {p.name for p in plants(None, (1,))} == {"chat-1", "reasoning-1", "documents-1", "heavy tail-1"}
