"""How long requests are: percentiles with the interval that the sample allows.

From exact counts (logs): order statistics, which hold for every distribution. Of n requests the p-quantile lies between
the order statistics of ranks k(0.025) and k(0.975) + 1 of Binomial(n, p) with 95 % confidence. 10,000 requests bracket
the p99.9 by the 9,984th and the 9,997th; fewer than 2,995 cannot bound it from above at all.

From bucket counts (engine metrics): the edges around it, and for prompt + output the sharp bounds of Makarov (1981):
quantiles do not add, so the total's is an interval however many requests were counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from scipy.special import bdtr, bdtrik

from advisor.domain.evidence import Evidence
from advisor.domain.fact import Fact, measured, unknown
from advisor.domain.histogram import Buckets, TokenCounts

PERCENTILES: Mapping[str, float] = {"p50": 50.0, "p90": 90.0, "p99": 99.0, "p999": 99.9}
NO_LENGTHS = "no request lengths: give a request log (--logs) or engine metrics (--prometheus, --engine)"

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
    if evidence.log and evidence.log.declared.n:
        out["declared_tokens_p999"] = percentile(evidence.log.declared, 99.9, evidence.log.source)
    else:
        out["declared_tokens_p999"] = unknown("no request log shows max_tokens that clients declared")
    return out


def percentile(counts: TokenCounts, q: float, source: str) -> Fact:
    """The q-th percentile (0..100) with its 95 % interval; "at least" where the sample cannot bound it above."""
    p, n = q / 100, counts.n
    low = counts.at_rank(max(1, binomial_quantile(0.025, n, p)))
    rank_above = binomial_quantile(0.975, n, p) + 1
    if rank_above > n:
        return measured(None, low=low, n=n, source=f"{source}; {n:,} requests cannot bound a p{q:g} from above")
    return measured(counts.quantile(p), low=low, high=counts.at_rank(rank_above), n=n, source=source)


def upper_bound(counts: TokenCounts, q: float) -> int | None:
    """One-sided 95 % upper bound of the q-th percentile, or None when the sample is too small for one.

    x_(k) with the smallest k for which P(Binomial(n, q) <= k - 1) >= 95 %. At n = 2,995 the p99.9 is bounded by the
    largest value; below that by nothing (ln 0.05 / ln 0.999 = 2,994.2).
    """
    rank = binomial_quantile(0.95, counts.n, q / 100) + 1
    return counts.at_rank(rank) if rank <= counts.n else None


def binomial_quantile(share: float, n: int, p: float) -> int:
    """Smallest k with P(Binomial(n, p) <= k) >= share: 9,996 for 0.975, 10,000 and 0.999."""
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
    """The engines' prompt and output length histograms, all engines together."""
    return (
        Buckets.merge(e.lengths["prompt_tokens"] for e in evidence.engines if "prompt_tokens" in e.lengths),
        Buckets.merge(e.lengths["output_tokens"] for e in evidence.engines if "output_tokens" in e.lengths),
    )


def served_totals(evidence: Evidence) -> TokenCounts | None:
    """Exact prompt + output tokens of served requests, from the best source that has them."""
    counts = _exact(evidence).get("total")
    return counts if counts is not None and counts.n else None


def _exact(evidence: Evidence) -> dict[str, TokenCounts]:
    joint = evidence.log.served if evidence.log and evidence.log.served.n else evidence.joint
    if joint is not None:
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
    out: dict[str, Fact] = {}
    prompt, output = marginals(evidence)
    for kind, buckets in (("prompt", prompt), ("output", output)):
        if buckets is not None:
            for p, q in PERCENTILES.items():
                out[f"{kind}_tokens_{p}"] = _interval(buckets.quantile_bounds(q / 100), buckets, "bucket edges")
    if prompt is not None and output is not None:
        for p, q in PERCENTILES.items():
            bounds = sharp_bounds(_quantiles(prompt), _quantiles(output), q / 100)
            out[f"total_tokens_{p}"] = _interval(bounds, prompt, "sharp bounds from the two length histograms")
    return out


def _quantiles(buckets: Buckets) -> Bounds:
    return lambda u: buckets.quantile_bounds(min(max(u, 0.0), 1.0))


def _interval(bounds: tuple[float, float], buckets: Buckets, source: str) -> Fact:
    low, high = bounds
    return measured(None, low=low, high=high if np.isfinite(high) else None, n=round(buckets.n), source=source)
