"""What a sequence takes of the cache where engines reserve for declared output."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from advisor.domain.evidence import Evidence, Flag, RequestLog, Window
from advisor.domain.histogram import JointCounts, TokenCounts
from advisor.estimates.reservation import GAUGES, Occupancy, as_admitted

LOG = RequestLog(
    served=JointCounts.of([1000, 1000], [50, 50]),
    declared=TokenCounts.of([1500, 2500]),
    refused_needs=TokenCounts.of([]),
    cut=TokenCounts.of([]),
    refused=0,
    failed=0,
    without_usage=0,
    first_seconds=0,
    last_seconds=1,
    arrivals={},
    latency=None,
    source="request log",
)
EVIDENCE = Evidence("m", Window(0, 3600), log=LOG)
HELD = Occupancy(1025, 14, 2, "prompt and output of each logged request")
SEEN = Occupancy(2100, 300, 900, GAUGES)


def test_vllm_takes_what_is_there() -> None:
    assert as_admitted(EVIDENCE, [HELD, SEEN]) == [HELD, SEEN]


def test_tgi_takes_the_whole_declared_output_however_short_the_answer() -> None:
    seen, declared = as_admitted(replace(EVIDENCE, engine="tgi"), [HELD, SEEN])
    assert seen is SEEN
    assert (declared.mean, declared.sd, declared.n) == (2000, 500, 2)
    assert as_admitted(replace(EVIDENCE, engine="tgi", log=None), [HELD]) == []


@pytest.mark.parametrize(("conservativeness", "more"), [(1.0, 98.0), (0.5, 49.0)])
def test_sglang_keeps_a_share_on_top(conservativeness: float, more: float) -> None:
    """Declared outputs of 500 and 1,500: 0.098 of 1,000 on average, half of it at half the conservativeness."""
    flags = {"schedule_conservativeness": Flag(conservativeness, "server_info")}
    (held,) = as_admitted(replace(EVIDENCE, engine="sglang", flags=flags), [HELD])
    assert held.mean == pytest.approx(1025 + more)
    assert held.sd == HELD.sd
    assert held.reserved


def test_sglang_without_a_log_is_as_it_is_seen() -> None:
    assert as_admitted(replace(EVIDENCE, engine="sglang", log=None), [SEEN]) == [SEEN]
    nothing = replace(LOG, declared=TokenCounts.of(np.array([], int)))
    assert as_admitted(replace(EVIDENCE, engine="sglang", log=nothing), [SEEN]) == [SEEN]
