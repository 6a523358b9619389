"""What a sequence takes of the cache where the engine reserves for output to come, not only for what is there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from advisor.domain.evidence import Evidence
from advisor.engines.admission import Reserve, reserve


@dataclass(frozen=True, slots=True)
class Occupancy:
    """KV tokens that one sequence in service takes, mean and standard deviation, and what told it.

    reserved: some of them are kept for output to come, so the lengths do not show them. shared: tokens that all of them
    hold together once, a common prefix; `mean` is what one more takes.
    """

    mean: float
    sd: float
    n: int
    source: str
    reserved: bool = False
    shared: float = 0.0


def as_admitted(evidence: Evidence, held: Sequence[Occupancy]) -> list[Occupancy]:
    """What sequences hold, as the engine's admission counts them; `held` comes back as it is where it reserves nothing.

    Where the whole declared output is reserved (TGI), what requests use says nothing: 1,000 in and 500 declared take
    1,500 tokens however short the answer. Where a share is (SGLang), it comes on top of what is held.
    """
    kept = reserve(evidence.engine, {name: flag.value for name, flag in evidence.flags.items()})
    if kept is None:
        return list(held)
    if kept.whole:
        declared = _declared(evidence)
        return [*(o for o in held if o.source == GAUGES), *([declared] if declared else [])]
    return [_with_reserve(evidence, o, kept) for o in held]


GAUGES = "running and cache usage at the same scrape"


def _declared(evidence: Evidence) -> Occupancy | None:
    """Prompt and declared output of each logged request; None where the log shows none that declared any."""
    declared = evidence.log.declared if evidence.log else None
    if declared is None or not declared.n:
        return None
    sd = float(np.sqrt(np.average((declared.lengths - declared.mean) ** 2, weights=declared.counts)))
    return Occupancy(declared.mean, sd, declared.n, "prompt and declared output, all of it reserved", reserved=True)


def _with_reserve(evidence: Evidence, held: Occupancy, kept: Reserve) -> Occupancy:
    log = evidence.log
    if log is None or not log.declared.n or not log.served.n:
        return held
    declared = max(log.declared.mean - log.served.prompts().mean, 0.0)
    more = kept.tokens(declared)
    story = f"{held.source}, and {more:,.0f} kept free of {declared:,.0f} declared"
    return replace(held, mean=held.mean + more, source=story, reserved=True)
