"""Published sweeps: the largest concurrency within 30, 50 and 100 ms a token, against what their authors measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from advisor.domain.errors import SourceError
from advisor.domain.evidence import Evidence, Slo, Window
from advisor.domain.fact import Fact
from advisor.domain.policy import Policy
from advisor.estimates import estimate
from advisor.sources.sweep import read_sweeps
from tests.accuracy.table import Row, share_row

OBJECTIVES = (30, 50, 100)


@dataclass(frozen=True, slots=True)
class Published:
    """A sweep and the right answers at 30, 50 and 100 ms, read off its figures by hand.

    "64 < 128": 64 held and 128 failed. "128 +": never seen failing. "< 119": the lowest one failed. "?": not to be
    told, and a refusal is right. `where` picks the runs that differ in load only.
    """

    files: str
    answers: tuple[str, str, str]
    where: Mapping[str, str] = field(default_factory=dict)


PD, H100 = "dstack_pd_gptoss120b_h200", "dstack_8xh100_405b_vllm_json"
SGLANG, AMD = "datacrunch_h200_sglang", "dstack_mi300x_llama31_405b"
PUBLISHED = (
    # p99 TPOT 9.8, 11.9 and 45.2 ms at 32, 64 and 128 in flight; the other two never exceed 23 ms.
    Published(f"{PD}/1p3d*.json", ("64 < 128", "128 +", "128 +")),
    Published(f"{PD}/2p2d*.json", ("128 +", "128 +", "128 +")),
    Published(f"{PD}/3p1d*.json", ("128 +", "128 +", "128 +")),
    # p99 TPOT 153 ms and more; 99.5 ms x (120,689 - 1,000) gaps in 100.7 s are 118 sequences at the lowest.
    Published(f"{H100}/*.json", ("< 119", "< 119", "< 119")),
    Published(f"{H100}/qps_output.csv", ("?", "?", "?")),  # eight settings of the server in one table
    # Only medians and the mean time end to end: at most 14.7, 16.6, 25.5, 102.7 ms a token at 7, 15, 40, 248.
    Published(f"{SGLANG}/llama_3_3_70b_online*", ("39 +", "39 +", "39 +"), {"dataset_name": "random"}),
    Published(f"{SGLANG}/llama_3_3_70b_online*", ("25 +", "25 +", "25 +"), {"dataset_name": "sharegpt"}),
    # At most 45.7, 58.4, 219 ms at 20, 39, 216; and 62.4, 184 ms at 30 and 132 of the other data set.
    Published(f"{SGLANG}/llama_405b_online*", ("?", "19 +", "39 +"), {"dataset_name": "random"}),
    Published(f"{SGLANG}/llama_405b_online*", ("?", "?", "29 +"), {"dataset_name": "sharegpt"}),
    # Everything sent at once, without a limit: how many ran together is not in the results.
    Published(f"{SGLANG}/llama_3_3_70b_offline*", ("?", "?", "?")),
    Published(f"{AMD}/vllm_raw.txt", ("?", "?", "?")),
    Published(f"{AMD}/tgi_raw.txt", ("?", "?", "?")),
    Published("argonne_vllm_all_results.csv", ("?", "?", "?")),  # whole batches: no time per token
)


def rows(data: Path | None) -> list[Row]:
    """One row: answers as published, or refusals where the results do not say."""
    what = "concurrency within SLO, sweeps"
    folder = data / "sweeps" if data else None
    if folder is None or not folder.is_dir():
        return [Row(what, "all right", "no sweeps in DATA")]
    told = [(one, target, want) for one in PUBLISHED for target, want in zip(OBJECTIVES, one.answers, strict=True)]
    outcomes = [(f"{one.files} {target}", answer(folder, one, target) == want) for one, target, want in told]
    refused = sum(want == "?" for _, _, want in told)
    row = share_row(what, outcomes, 1.0)
    return [Row(what, "all right", row.reached, row.cases, refused, row.worst, row.met)]


def answer(folder: Path, published: Published, milliseconds: float) -> str:
    """What the product says of a sweep, in the words of `Published`."""
    try:
        sweep = read_sweeps(sorted(folder.glob(published.files)), published.where)
    except SourceError:
        return "?"
    slo = Slo(tpot_seconds=milliseconds / 1000)
    return _worded(estimate(Evidence("m", Window(0, 1), slo=slo, sweep=sweep), Policy())["latency_ceiling"])


def _worded(fact: Fact) -> str:
    if fact.is_unknown:
        return "?"
    if not fact.low:
        return f"< {(fact.high or 0) + 1:.0f}"
    return f"{fact.low:.0f} +" if fact.high is None else f"{fact.low:.0f} < {fact.high:.0f}"
