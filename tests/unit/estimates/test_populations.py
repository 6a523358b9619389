from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.domain.evidence import Evidence
from advisor.domain.fact import Fact
from advisor.domain.histogram import JointCounts
from advisor.domain.policy import Policy
from advisor.estimates import populations
from tests.unit.estimates.evidence import NOTHING, flags, joint, log, sheet


def mixed(chats: int = 9_800, documents: int = 200, seed: int = 3) -> JointCounts:
    """Chats of about 1,000 tokens in, and documents of about 60,000."""
    random = np.random.default_rng(seed)
    prompt = np.concatenate([random.integers(200, 2_000, chats), random.integers(50_000, 70_000, documents)])
    return JointCounts.of(prompt, random.integers(50, 400, chats + documents))


def facts(served: JointCounts, **known: float) -> dict[str, Fact]:
    seen = replace(NOTHING, log=log(served), flags=flags(max_num_batched_tokens=4_096))
    return dict(populations.facts(seen, Policy(), populations.cut_of(seen), sheet(**known)))


def test_the_gap_between_chats_and_documents() -> None:
    cut = populations.populations(mixed(), 4_096)
    assert cut is not None
    assert 2_400 <= cut.tokens < 50_050
    assert (cut.short.n, cut.long.n) == (9_800, 200)
    assert cut.long_share == pytest.approx(0.02)


def test_shares_by_hand() -> None:
    # 900 of (1,000, 100), 100 of (50,000, 100); C = 50,000: one step of prefill, 100 of decoding, for both 101 steps
    # cache x time: 1,000/2 + 100 x 1,050 = 105,500 and 50,000/2 + 100 x 50,050 = 5,030,000; 900 x, 100 x
    cut = populations.populations(joint((1_000, 100, 900), (50_000, 100, 100)), 50_000)
    assert cut is not None
    assert cut.long_seats_share == pytest.approx(0.1)
    assert cut.long_kv_share == pytest.approx(503_000_000 / (503_000_000 + 94_950_000))


@pytest.mark.parametrize(
    "rows",
    [
        # one population; half of all are long; as good as no cache beyond; fewer than a hundred beyond
        [(1_000, 100, 10_000)],
        [(1_000, 100, 5_000), (50_000, 100, 5_000)],
        [(1_000, 100, 100_000), (9_000, 10, 100)],
        [(1_000, 100, 10_000), (500_000, 100, 99)],
    ],
)
def test_what_is_not_two_populations(rows: list[tuple[int, int, int]]) -> None:
    assert populations.populations(joint(*rows), 4_096) is None


def test_a_heavy_tail_without_a_gap_is_one_population() -> None:
    random = np.random.default_rng(1)
    prompt = np.exp(random.normal(7, 1.2, 20_000)).astype(np.int64)
    assert populations.populations(JointCounts.of(prompt, random.integers(50, 400, 20_000)), 4_096) is None


KNOWN = {"kv_pool_tokens": 400_000.0, "replicas": 8.0, "sequences_demanded": 40.0}


def test_pools_apart_hold_more_than_one() -> None:
    out = facts(mixed(), **KNOWN)
    short, long = out["split_short_ceiling"].number, out["split_long_ceiling"].number
    assert short is not None
    assert long is not None
    # documents hold about 60,000 for most of their time: six fill 400,000; chats hold about 1,100
    assert 5 <= long <= 6
    assert short >= 250
    # 320 sequences in all; a document's 15 steps of prefill and 225 of decoding make 2.1 % of them documents
    assert (out["split_short_replicas"].value, out["split_long_replicas"].value) == (2, 2)
    gain = out["split_gain"].number
    # 77 fit a replica of the mix: five together, four apart
    assert gain == pytest.approx(0.2)


def test_the_latency_ceiling_holds_in_every_pool() -> None:
    assert facts(mixed(), **KNOWN, latency_ceiling=20.0)["split_short_ceiling"].number == 20


def test_one_replica_cannot_be_split() -> None:
    out = facts(mixed(), **(KNOWN | {"replicas": 1.0}))
    assert out["split_gain"].unknown == "a deployment of one replica cannot be split"


def test_without_pool_or_demand_nothing_is_gained() -> None:
    assert "KV pool is unknown" in (facts(mixed(), replicas=8.0)["split_gain"].unknown or "")
    assert "the demand is not known" in (
        facts(mixed(), **{k: v for k, v in KNOWN.items() if k != "sequences_demanded"})["split_gain"].unknown or ""
    )


def test_one_population_gains_nothing_and_nothing_read_says_so() -> None:
    assert facts(joint((1_000, 100, 10_000)), **KNOWN)["split_gain"].value == 0
    nothing: Evidence = NOTHING
    assert populations.facts(nothing, Policy(), populations.cut_of(nothing), sheet())["split_gain"].is_unknown


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 200_000), st.integers(0, 5_000), st.integers(1, 500)), min_size=1, max_size=40)
)
def test_shares_are_shares_and_both_sides_add_up(rows: list[tuple[int, int, int]]) -> None:
    served = joint(*rows)
    cut = populations.populations(served, 2_048)
    if cut is not None:
        assert cut.short.n + cut.long.n == served.n
        assert all(0 < share < 1 for share in (cut.long_share, cut.long_kv_share, cut.long_seats_share))
        assert int((cut.short.prompt + cut.short.output).max()) <= cut.tokens
        assert int((cut.long.prompt + cut.long.output).min()) > cut.tokens
