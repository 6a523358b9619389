"""The lengths of single requests, from the best source that knows them: a request log, counts as given, or host agents.

Host agents count total tokens in buckets that are 4.4 % wide. Each length is then taken for the largest of its bucket,
so a bound is at most one bucket too long and never too short.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from advisor.domain.evidence import Evidence, RequestLog
from advisor.domain.exported import ExportedLengths
from advisor.domain.histogram import Buckets, TokenCounts

from .length_slots import Slots

IN_BUCKETS = "to the bucket, 4.4 %"
TELL_LENGTHS = "a request log (--logs), sql or the exporter"
TELL_PAIRS = "a request log (--logs) or sql"
"""What to connect for lengths, and where prompt and output of one request have to be known together."""


@dataclass(frozen=True, eq=False, slots=True)
class LengthSample:
    """Tokens of requests. totals: prompt + output of served ones. refused_needs: what refused ones would have needed.

    declared: prompt plus what the client asked for at most. refused: requests refused for their length. beyond: served
    ones that are longer than all others, nobody knows by how much. slots: how totals went with time.
    """

    totals: TokenCounts
    refused_needs: TokenCounts
    declared: TokenCounts
    refused: int
    beyond: int
    slots: Slots | None
    source: str

    @property
    def needs(self) -> TokenCounts:
        """Totals of served requests together with what refused ones would have needed."""
        return TokenCounts.merge([self.totals, self.refused_needs])

    @property
    def unsaid(self) -> int:
        """Requests of which nobody says how long they were, only that they were long."""
        return max(self.refused - self.refused_needs.n, 0) + self.beyond


def length_sample(evidence: Evidence) -> LengthSample | None:
    """What is known of the lengths of single requests; None where no source knows them."""
    joint, log = evidence.best_joint, evidence.log
    if joint is not None and joint.n:
        return _counted(joint.totals(), log)
    if evidence.totals is not None and evidence.totals.n:
        return _counted(evidence.totals, log)
    agents = believed_agents(evidence)
    return None if agents is None else _exported(agents)


def believed_agents(evidence: Evidence) -> ExportedLengths | None:
    """What host agents counted, where no source knows lengths better; None where one does, or there are no agents."""
    joint, totals, told = evidence.best_joint, evidence.totals, evidence.exported
    if (joint is not None and joint.n) or (totals is not None and totals.n):
        return None
    return told if told is not None and told.histograms["total"].n >= 1 else None


def _counted(totals: TokenCounts, log: RequestLog | None) -> LengthSample:
    nothing = TokenCounts.of([])
    history = log.history if log is not None and log.served.n else None
    return LengthSample(
        totals=totals,
        refused_needs=log.refused_needs if log else nothing,
        declared=log.declared if log else nothing,
        refused=log.refused if log else 0,
        beyond=0,
        slots=Slots.of(history) if history is not None else None,
        source=log.source if log is not None and log.served.n else "request counts as given",
    )


def _exported(told: ExportedLengths) -> LengthSample:
    total = told.histograms["total"]
    return LengthSample(
        totals=rounded_up(total),
        refused_needs=rounded_up(told.histograms["refused"]),
        declared=rounded_up(told.histograms["declared"]),
        refused=round(told.outcomes["refused_length"]),
        beyond=round(float(total.counts[-1])),
        slots=Slots(told.slot_seconds, told.slot_start, told.slots, np.append(total.edges, 2 * total.edges[-1])),
        source=f"{told.source}, {IN_BUCKETS}",
    )


def rounded_up(buckets: Buckets) -> TokenCounts:
    """Lengths that were counted in buckets, each the largest of its own; what lies beyond the last edge is left out."""
    return TokenCounts.of(buckets.edges, np.round(buckets.counts[:-1]))
