"""How long requests are: percentiles with the interval that the sample allows.

From exact counts (logs): order statistics, which hold for every distribution. Of n requests the p-quantile lies between
the order statistics of ranks k(0.025) and k(0.975) + 1 of Binomial(n, p) with 95 % confidence. 10,000 requests bracket
the p99.9 by the 9,983rd and the 9,997th; fewer than 2,995 cannot bound it from above at all.

From bucket counts (engine metrics): the edges around it, and for prompt + output the sharp bounds of Makarov (1981):
quantiles do not add, so the total's is an interval however many requests were counted. Host agents count the total of
each request as well, in buckets so narrow that their middle is a value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import numpy as np
from scipy.special import bdtr, bdtrik

from advisor.domain.evidence import Evidence
from advisor.domain.exported import ExportedLengths, Quantity
from advisor.domain.fact import Fact, measured, unknown
from advisor.domain.histogram import Buckets, TokenCounts

from .length_sample import IN_BUCKETS, TELL_LENGTHS, believed_agents

PERCENTILES: Mapping[str, float] = {"p50": 50.0, "p90": 90.0, "p99": 99.0, "p999": 99.9}
NO_LENGTHS = f"no request lengths: give {TELL_LENGTHS}, or engine metrics (--prometheus, --engine)"

AGENTS_KINDS: tuple[Quantity, ...] = ("prompt", "output", "total")

Bounds = Callable[[float], tuple[float, float]]


def facts(evidence: Evidence) -> dict[str, Fact]:
    """Percentiles of prompt, output and total tokens of served requests, and of what clients declared."""
    out = {f"{kind}_tokens_{p}": unknown(NO_LENGTHS) for kind in ("prompt", "output", "total") for p in PERCENTILES}
    out |= _from_marginals(evidence)
    out |= _from_stated(evidence)
    for kind, counts in _exact(evidence).items():
        if counts.n:
            out |= {
                f"{kind}_tokens_{p}": percentile(counts, q, _exact_source(evidence)) for p, q in PERCENTILES.items()
            }
    agents = believed_agents(evidence)
    if agents is not None:
        out |= {
            f"{kind}_tokens_{p}": _counted(agents, kind, q) for kind in AGENTS_KINDS for p, q in PERCENTILES.items()
        }
    if evidence.log and evidence.log.declared.n:
        out["declared_tokens_p999"] = percentile(evidence.log.declared, 99.9, evidence.log.source)
    elif agents is not None and agents.histograms["declared"].n >= 1:
        out["declared_tokens_p999"] = _counted(agents, "declared", 99.9)
    else:
        out["declared_tokens_p999"] = unknown("no request log shows max_tokens that clients declared")
    return out


def percentile(counts: TokenCounts, q: float, source: str) -> Fact:
    """The q-th percentile (0..100) with its 95 % interval; "at least" where the sample cannot bound it above."""
    p, n = q / 100, counts.n
    below, above = ranks(n, p)
    low = None if below is None else counts.at_rank(below)
    if above is not None:
        return measured(counts.quantile(p), low=low, high=counts.at_rank(above), n=n, source=source)
    few = f"{n:,} requests cannot bound a p{q:g} from above"
    return unknown(few) if low is None else measured(None, low=low, n=n, source=f"{source}; {few}")


def ranks(n: int, p: float) -> tuple[int | None, int | None]:
    """Ranks (from 1) of the order statistics that bracket the p-quantile of n with 95 %; None where there is none.

    (9,983, 9,997) for n = 10,000 and p = 0.999; (1, 6) for the median of six; none of five on either side.
    """
    below, above = binomial_quantile(0.025, n, p), binomial_quantile(0.975, n, p) + 1
    return below if below >= 1 else None, above if above <= n else None


def upper_bound(counts: TokenCounts, q: float, *, unseen: int = 0, effect: float = 1.0) -> int | None:
    """One-sided 95 % upper bound of the q-th percentile, or None when the sample is too small for one.

    `unseen` requests of unknown length are taken to be longer than all others. n requests with a design effect (see
    `effective_sample`) bound it like n / `effect` independent ones.

    x_(k) with the smallest k for which P(Binomial(n, q) <= k - 1) >= 95 %. At n = 2,995 the p99.9 is bounded by the
    largest value; below that by nothing (ln 0.05 / ln 0.999 = 2,994.2).
    """
    every = counts.n + unseen
    worth = int(every / effect)
    rank = binomial_quantile(0.95, worth, q / 100) + 1
    if rank > worth:
        return None
    rank = math.ceil(rank / worth * every)
    return counts.at_rank(rank) if rank <= counts.n else None


def binomial_quantile(share: float, n: int, p: float) -> int:
    """Smallest k with P(Binomial(n, p) <= k) >= share: 9,996 for 0.975, 10,000 and 0.999."""
    if n == 0 or p <= 0 or p >= 1:
        return n if p >= 1 else 0
    k = max(math.floor(bdtrik(share, n, p)) - 1, 0)
    while bdtr(k, n, p) < share:
        k += 1
    return k


def sharp_bounds(prompt: Bounds, output: Bounds, q: float) -> tuple[float, float]:
    """Least and greatest q-quantile (0..1) of prompt + output that two marginals allow, whatever their dependence.

    `prompt(u)`, `output(u)` give (lower, upper) bounds of their u-quantile. Makarov (1981): the least is
    max over u of Q_prompt(u) + Q_output(q - u), the greatest min over d <= 1 - q of Q_prompt(1 - d) + Q_output(q + d).
    With exact marginals of two uniform variables on 0..1 and q = 0.9: 0.9 and 1.9.
    """
    shares = np.concatenate([np.linspace(0, 1, 65), 1 - np.geomspace(1e-6, 0.5, 64)])
    low = max(prompt(u)[0] + output(q - u)[0] for u in shares * q)
    high = min(prompt(1 - d)[1] + output(q + d)[1] for d in shares * (1 - q))
    return low, high


def marginals(evidence: Evidence) -> tuple[Buckets | None, Buckets | None]:
    """Histograms of prompt and of output tokens, of host agents where these are believed, else of the engines."""
    agents = believed_agents(evidence)
    if agents is not None:
        return agents.histograms["prompt"], agents.histograms["output"]
    return engine_marginals(evidence)


def engine_marginals(evidence: Evidence) -> tuple[Buckets | None, Buckets | None]:
    """The engines' prompt and output length histograms, all engines together."""
    return (
        Buckets.merge(e.lengths["prompt_tokens"] for e in evidence.every_engine if "prompt_tokens" in e.lengths),
        Buckets.merge(e.lengths["output_tokens"] for e in evidence.every_engine if "output_tokens" in e.lengths),
    )


def _exact(evidence: Evidence) -> dict[str, TokenCounts]:
    joint = evidence.best_joint
    if joint is not None and joint.n:
        return {"prompt": joint.prompts(), "output": joint.outputs(), "total": joint.totals()}
    return {"total": evidence.totals} if evidence.totals is not None else {}


def _exact_source(evidence: Evidence) -> str:
    return evidence.log.source if evidence.log and evidence.log.served.n else "request counts as given"


def _from_stated(evidence: Evidence) -> dict[str, Fact]:
    stated = evidence.percentiles.total if evidence.percentiles else {}
    return {
        f"total_tokens_{p}": measured(stated[q], source="percentile as stated")
        for p, q in PERCENTILES.items()
        if q in stated
    }


def _from_marginals(evidence: Evidence) -> dict[str, Fact]:
    prompt, output = engine_marginals(evidence)
    of = {f"{k}_tokens": partial(_of_one, b) for k, b in (("prompt", prompt), ("output", output)) if b is not None}
    if prompt is not None and output is not None:
        of["total_tokens"] = partial(total_from_marginals, prompt, output)
    return {f"{kind}_{p}": fact(q) for kind, fact in of.items() for p, q in PERCENTILES.items()}


def total_from_marginals(prompt: Buckets, output: Buckets, q: float) -> Fact:
    """Between which lengths the q-th percentile (0..100) of prompt + output lies, whatever their dependence."""
    story = "sharp bounds from the two length histograms"
    n = min(prompt.n, output.n)
    return _interval(lambda u: sharp_bounds(_quantiles(prompt), _quantiles(output), u), n, q, story)


def _of_one(buckets: Buckets, q: float) -> Fact:
    return _interval(buckets.quantile_bounds, buckets.n, q, "bucket edges")


def _counted(agents: ExportedLengths, kind: Quantity, q: float) -> Fact:
    """A percentile of what host agents counted: the middle of its bucket, at most 2.2 % off, and the edges around it.

    The bucket of 7,847 to 8,192 tokens has its middle at 8,019.5.
    """
    buckets = agents.histograms[kind]
    fact = _interval(buckets.quantile_bounds, buckets.n, q, f"{agents.source}, {IN_BUCKETS}")
    below, upper = buckets.quantile_bounds(q / 100)
    return fact if fact.low is None or fact.high is None else replace(fact, value=(below + 1 + upper) / 2)


def _quantiles(buckets: Buckets) -> Bounds:
    return lambda u: buckets.quantile_bounds(min(max(u, 0.0), 1.0))


def _interval(bounds: Bounds, n: float, q: float, source: str) -> Fact:
    """The 95 % interval of a percentile: the edges around the order statistics that bracket it."""
    whole = math.floor(n)
    below, above = ranks(whole, q / 100)
    low = None if below is None else bounds((below - 0.5) / whole)[0]
    high = math.inf if above is None else bounds((above - 0.5) / whole)[1]
    if low is None and high == math.inf:
        return unknown(f"{whole:,} requests say nothing of a p{q:g}")
    return measured(None, low=low, high=high if math.isfinite(high) else None, n=whole, source=source)
