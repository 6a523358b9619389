"""How many requests would wait too long for a seat under another cap: what a low cap does to time to first token.

N seats that hold a request for S seconds each and a sequences demanded at once (Little's law) are an M/M/N queue. A
request waits with probability C(N, a) (Erlang C), and longer than t with C(N, a) exp(-(N - a) t / S).

Worked: 9 seats, 7.5 demanded, 4 s each: C = 0.52, longer than 4 s 0.52 x exp(-1.5) = 12 %. With 26 seats and 18
demanded of 6.5 s, C = 0.048 and none in a million waits 15 s.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from advisor.domain.evidence import Evidence
from advisor.domain.fact import Fact, computed, unknown

from .load import engines_per_instance


def late_share(evidence: Evidence, known: Mapping[str, Fact]) -> Fact:
    """Share of requests that wait longer than the TTFT objective for a seat of the next cap, at demand p99."""
    limit, seats = evidence.slo.ttft_seconds, known["next_max_num_seqs"].number
    demanded, demand = known["sequences_demanded"].number, known["demand_requests_per_second_p99"].number
    replicas = evidence.replicas
    if limit is None:
        return unknown("no time-to-first-token objective is given (--slo-ttft)")
    if seats is None or demanded is None or not demand or not replicas:
        return unknown("needs the next cap, and how many sequences demand asks for")
    held_seconds = demanded * replicas / demand
    per_engine = demanded / engines_per_instance(evidence)
    story = f"{seats:,.0f} seats, {per_engine:,.1f} demanded of {held_seconds:.3g} s each (Erlang C)"
    return computed(longer_than(limit, int(seats), per_engine, held_seconds), source=story)


def longer_than(seconds: float, seats: int, demanded: float, held_seconds: float) -> float:
    """Probability of a wait of more than `seconds`; 1 where demand exceeds the seats."""
    if demanded >= seats:
        return 1.0
    return erlang_c(seats, demanded) * math.exp(-(seats - demanded) * seconds / held_seconds)


def erlang_c(seats: int, demanded: float) -> float:
    """Probability that all seats are taken when a request arrives, for fewer sequences demanded than seats."""
    blocked = 1.0
    for taken in range(1, seats + 1):
        blocked = demanded * blocked / (taken + demanded * blocked)
    return blocked / (1 - demanded / seats * (1 - blocked))
