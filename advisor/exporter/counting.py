"""Hours of a request log as counts by model: which lengths fall into which bucket, and how requests ended."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from advisor.domain.evidence import RequestLog
from advisor.domain.exported import EDGES, OTHER_MODELS, LengthCounts
from advisor.domain.histogram import Buckets, TokenCounts
from advisor.outlets.plain import plain

LONGEST_NAME = 200


def label(model: str) -> str:
    """A model's name as a label: one line of printable characters, bounded. Names that look alike then are one."""
    return plain(model, limit=LONGEST_NAME)


def counts_of(log: RequestLog) -> LengthCounts:
    """The lengths of a log in buckets, and its requests by outcome."""
    cut = min(log.cut.n, log.served.n)
    return LengthCounts(
        {
            "prompt": _bucketed(log.served.prompts()),
            "output": _bucketed(log.served.outputs()),
            "total": _bucketed(log.served.totals()),
            "declared": _bucketed(log.declared),
            "refused": _bucketed(log.refused_needs),
        },
        {
            "served": log.served.n - cut,
            "cut": cut,
            "refused_length": log.refused,
            "failed": log.failed,
            "without_usage": log.without_usage,
        },
    )


def added(known: Mapping[str, LengthCounts], new: Mapping[str, LengthCounts], most: int) -> dict[str, LengthCounts]:
    """What the models in `new` come to: those that are `known`, and of the others as many as fit under `most`.

    A model is worth series of its own once it served a request, because anybody can ask for models that do not exist.
    The rest is counted together as OTHER_MODELS, for good: what was counted there is not told apart later.
    """
    names = {*known} - {OTHER_MODELS}
    changed: dict[str, LengthCounts] = {}
    for model, counts in new.items():
        if model not in names and counts.histograms["total"].n and len(names) < most:
            names.add(model)
        name = model if model in names else OTHER_MODELS
        changed[name] = changed.get(name, known.get(name, LengthCounts.nothing())).plus(counts)
    return changed


def _bucketed(lengths: TokenCounts) -> Buckets:
    counts = np.zeros(EDGES.size + 1)
    np.add.at(counts, np.searchsorted(EDGES, lengths.lengths), lengths.counts)
    return Buckets(EDGES, counts, float(lengths.lengths @ lengths.counts))
