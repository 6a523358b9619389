from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.domain.evidence import Slo
from advisor.domain.fact import Fact
from advisor.estimates.seat_wait import erlang_c, late_share, longer_than
from tests.unit.estimates.evidence import NOTHING, sheet

PROMISED = replace(NOTHING, slo=Slo(ttft_seconds=4.0), replicas=2)


def test_the_wait_for_one_seat_and_for_two() -> None:
    # M/M/1 waits with probability rho; M/M/2 with 2 rho^2 / (1 + rho) = 1/3 at rho = 0.5
    assert erlang_c(1, 0.5) == pytest.approx(0.5)
    assert erlang_c(2, 1.0) == pytest.approx(1 / 3)


def test_a_tabulated_value() -> None:
    # Erlang C of 10 agents and 8 erlangs in published tables: 0.409
    assert erlang_c(10, 8.0) == pytest.approx(0.409, abs=5e-4)


def test_a_low_cap_moves_the_wait_into_the_queue() -> None:
    # two replicas, 3.75 requests/s that hold a seat for 4 s: 7.5 sequences each
    known: dict[str, float | Fact] = {"sequences_demanded": 7.5, "demand_requests_per_second_p99": 3.75}
    late = late_share(PROMISED, sheet(**known, next_max_num_seqs=9.0))
    assert late.value == pytest.approx(longer_than(4.0, 9, 7.5, 4.0))
    assert late.number is not None
    assert 0.1 < late.number < 0.15
    roomy = late_share(PROMISED, sheet(**known, next_max_num_seqs=16.0)).number
    assert roomy is not None
    assert roomy < 1e-3
    assert late_share(PROMISED, sheet(**known, next_max_num_seqs=7.0)).value == 1.0


def test_what_is_missing() -> None:
    assert "--slo-ttft" in (late_share(NOTHING, sheet()).unknown or "")
    assert late_share(PROMISED, sheet(next_max_num_seqs=9.0)).is_unknown


@given(
    seats=st.integers(1, 600),
    demanded=st.floats(0.0, 600.0),
    seconds=st.floats(0.0, 100.0),
    held=st.floats(1e-3, 1e3),
    scale=st.floats(1e-3, 1e3),
)
def test_more_seats_never_wait_longer_and_units_do_not_matter(
    seats: int, demanded: float, seconds: float, held: float, scale: float
) -> None:
    share = longer_than(seconds, seats, demanded, held)
    assert 0 <= share <= 1 + 1e-12
    assert longer_than(seconds, seats + 1, demanded, held) <= share + 1e-12
    assert longer_than(seconds * scale, seats, demanded, held * scale) == pytest.approx(share, abs=1e-9)
