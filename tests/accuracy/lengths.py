"""The length limit, measured: what one part of the traffic says against what the rest then needed."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from advisor.domain.evidence import Window
from advisor.domain.fact import FactSheet
from advisor.domain.policy import Policy
from advisor.estimates import estimate
from advisor.gather import gather
from advisor.settings import read_settings
from tests.accuracy.table import Row, share_row
from tests.accuracy.traffic import MIXES, Pair, Trace, drawn, read_traces

BEGAN = 1_795_737_600.0
SPLITS = (0.25, 0.33, 0.5, 0.67, 0.75, 0.9)
PROMISED = 0.999
GENERATED = 4000
REFERENCE = 400_000
SEEDS = 12
_WIDTH, _LIMIT = "  width, bound / p99.9", "  limit advised refuses <= 0.1 %"


@dataclass(frozen=True, slots=True)
class Outlook:
    """What was said of the coming traffic (None: Unknown) and what came of it, in tokens."""

    name: str
    bound: float | None
    limit: float | None
    earlier_p999: float
    later_p999: float
    later_refused: float


def traced(data: Path | None) -> list[Row]:
    """Coverage and width of the bound, and refusals of the limit, on the traces split in time."""
    looks = [look for trace in read_traces(data) for look in _split(trace)]
    if not looks:
        parts = (("later p99.9 within its bound", ">= 90%"), (_WIDTH, "<= 1.5"))
        return [Row(what, goal, "no traces in DATA") for what, goal in (*parts, (_LIMIT, ">= 100%"))]
    return [_covered("later p99.9 within its bound", looks), _width(looks), _refused(looks)]


def generated() -> list[Row]:
    """Coverage on independent requests of known shape: no drift and no bursts, only the size of the sample."""
    return [_covered("p99.9 within bound, generated", list(_drawn()))]


def _covered(what: str, looks: Sequence[Outlook]) -> Row:
    held = [(look.name, None if look.bound is None else look.bound >= look.later_p999) for look in looks]
    return share_row(what, held, 0.9)


def _width(looks: Sequence[Outlook]) -> Row:
    ratios = [look.bound / look.earlier_p999 for look in looks if look.bound is not None]
    median, most = (float(np.median(ratios)), max(ratios)) if ratios else (np.inf, np.inf)
    unknown = len(looks) - len(ratios)
    return Row(_WIDTH, "<= 1.5", f"{median:.2f}", len(looks), unknown, f"{most:.2f} at most", met=median <= 1.5)


def _refused(looks: Sequence[Outlook]) -> Row:
    most = max((look.later_refused for look in looks if look.limit is not None), default=0.0)
    held = [(k.name, None if k.limit is None else k.later_refused <= 1 - PROMISED) for k in looks]
    return share_row(_LIMIT, held, 1.0, worst=f"{most:.3%} refused")


def _split(trace: Trace) -> Iterator[Outlook]:
    for share in SPLITS:
        at = int(share * len(trace.pairs))
        said = facts_of(trace.pairs[:at], trace.seconds[:at])
        yield _outlook(f"{trace.name} {share:g}", said, trace.pairs[:at], trace.pairs[at:])


def _drawn() -> Iterator[Outlook]:
    """Independent requests against a sample a hundred times as large, whose quantile stands for the true one."""
    for place, mix in enumerate(MIXES):
        truth = drawn(mix, REFERENCE, 1000 + place)
        for seed in range(SEEDS):
            sample = drawn(mix, GENERATED, 100 * place + seed)
            said = facts_of(sample, [float(i) for i in range(GENERATED)])
            yield _outlook(f"{mix} {seed}", said, sample, truth)


def _outlook(name: str, said: FactSheet, earlier: Sequence[Pair], later: Sequence[Pair]) -> Outlook:
    before, after = (np.array(pairs).sum(axis=1) for pairs in (earlier, later))
    bound, limit = said["needed_tokens_p999_upper"].number, said["recommended_max_model_len"].number
    refused = 0.0 if limit is None else float((after > limit).mean())
    return Outlook(
        name, bound, limit, float(np.quantile(before, PROMISED)), float(np.quantile(after, PROMISED)), refused
    )


def facts_of(pairs: Sequence[Pair], seconds: Sequence[float]) -> FactSheet:
    """The facts that a request log of these requests yields, read from a file like any other."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "requests.jsonl"
        with log.open("w", encoding="utf-8") as file:
            for at, (prompt, output) in zip(seconds, pairs, strict=True):
                usage = {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output}
                file.write(json.dumps({"ts": BEGAN + at, "model": "m", "status": 200, "usage": usage}) + "\n")
        settings = read_settings(None, {"logs": {"paths": [str(log)]}})
        (evidence,) = gather(settings, Window(BEGAN, BEGAN + max(seconds) + 1)).deployments.values()
    return estimate(evidence, Policy())
