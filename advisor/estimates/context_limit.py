"""What max_model_len should be: the p99.9 of what requests need plus a margin, and what it would refuse.

Worked: a stated p99.9 of 9,500 tokens x 1.25 = 11,875, rounded up to 1,024 = 12,288; against a model maximum of
1,048,576 that is 85.33 times smaller.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from advisor.domain.evidence import Evidence
from advisor.domain.fact import Fact, computed, measured, unknown
from advisor.domain.histogram import TokenCounts
from advisor.domain.policy import Policy

from . import lengths
from .attention import language_part

STEP = 1024
DAY = 86400.0
MOST_COVERAGE = 1.1
STRETCHED = ("yarn", "linear", "dynamic")
MOST_STRETCH = 1024
CONTEXT_KEYS = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "model_max_length")


def facts(evidence: Evidence, policy: Policy, known: Mapping[str, Fact]) -> dict[str, Fact]:
    """The limit advised, what it refuses, how much worst case it saves, and whether the sample may shrink anything."""
    out = _censoring(evidence)
    needed = needs(evidence)
    recommended, upper = _recommended(evidence, policy, known, needed)
    out["recommended_max_model_len"] = recommended
    out["needed_tokens_p999_upper"] = upper
    out["refused_share_at_recommended"] = _refused_at(recommended, needed, unsaid_needs(evidence))
    out["max_model_len_cost_ratio"] = _cost_ratio(evidence, recommended)
    return out


def needs(evidence: Evidence) -> TokenCounts | None:
    """Total tokens of served requests together with what refused ones would have needed; None without exact counts."""
    served = lengths.served_totals(evidence)
    if served is None:
        return None
    return TokenCounts.merge([served, evidence.log.refused_needs]) if evidence.log else served


def present_limit(evidence: Evidence) -> int | None:
    """max_model_len, where it is known; -1 and 0 leave it to the engine and say nothing."""
    limit = evidence.count_flag("max_model_len")
    return limit if limit is not None and limit > 0 else None


def unsaid_needs(evidence: Evidence) -> int:
    """How many requests were refused for their length without a word of what they would have needed."""
    return max(evidence.log.refused - evidence.log.refused_needs.n, 0) if evidence.log else 0


def model_maximum(evidence: Evidence) -> int | None:
    """The longest context that the model supports: as stated, or as its config.json says, rope scaling included.

    32,768 original positions with yarn x 4 are 131,072. A limit that runs now is supported, whatever they say.
    """
    stated, running = evidence.model.max_context_tokens, present_limit(evidence)
    if stated is None and evidence.model.config is not None:
        stated = _configured_maximum(language_part(evidence.model.config))
    return max(stated, running or 0) if stated is not None and stated > 0 else None


def _configured_maximum(config: Mapping[str, Any]) -> int | None:
    values = [v for key in CONTEXT_KEYS if (v := _positive(config.get(key)))]
    rope = config.get("rope_scaling") or config.get("rope_parameters")
    if not values or not isinstance(rope, Mapping):
        return min(values, default=None)
    kind, factor = rope.get("rope_type", rope.get("type")), rope.get("factor")
    if kind not in STRETCHED or not isinstance(factor, int | float) or not 1 <= factor <= MOST_STRETCH:
        return min(values)
    original = _positive(rope.get("original_max_position_embeddings")) if kind == "yarn" else None
    return int((original or min(values)) * factor)


def _positive(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def round_up(tokens: float) -> int:
    """The next multiple of 1,024, at least one: 11,875 -> 12,288."""
    return max(math.ceil(tokens / STEP), 1) * STEP


def _recommended(
    evidence: Evidence, policy: Policy, known: Mapping[str, Fact], needed: TokenCounts | None
) -> tuple[Fact, Fact]:
    percentile = policy.length_percentile
    if needed is None:
        return _without_counts(evidence, policy, known)
    upper = lengths.upper_bound(needed, percentile, unseen=unsaid_needs(evidence))
    if upper is None:
        return _at_least(evidence, percentile, known, needed)
    scaled = upper * (1 + policy.length_margin)
    target = max(scaled, min(needed.largest, policy.step_limit * scaled))
    story = f"p{percentile:g} upper bound {upper:,} x {1 + policy.length_margin:g} = {scaled:,.0f}"
    if target > scaled:
        far = f" ({policy.step_limit:g} x that)" if needed.largest > target else ""
        story += f", raised to {target:,.0f}{far} because one request needed {needed.largest:,}"
    value, limits = _feasible(evidence, known, round_up(target))
    value_fact = computed(
        value, n=needed.n, source=f"{story}, rounded up to 1,024{limits}{_alternative(needed, value)}"
    )
    return value_fact, measured(upper, n=needed.n, source="order statistics, one-sided 95 %")


def _at_least(
    evidence: Evidence, percentile: float, known: Mapping[str, Fact], needed: TokenCounts
) -> tuple[Fact, Fact]:
    """The sample does not bound what requests need from above: only the largest one seen is certain."""
    low, limits = _feasible(evidence, known, round_up(needed.largest))
    floor = computed(None, low=low, n=needed.n, source=f"the largest request seen{limits}")
    unsaid = unsaid_needs(evidence)
    if lengths.upper_bound(needed, percentile) is not None:
        return floor, unknown(f"{unsaid:,} requests were refused for their length without saying what they needed")
    few = f"{needed.n:,} requests cannot bound a p{percentile:g}: more traffic or a longer window (--since)"
    return floor, unknown(few)


def _without_counts(evidence: Evidence, policy: Policy, known: Mapping[str, Fact]) -> tuple[Fact, Fact]:
    """From a stated percentile a value; from histograms alone only an interval, which may never shrink a limit."""
    percentile = policy.length_percentile
    p999 = _one_percentile(evidence, percentile, known)
    if p999.number is not None:
        scaled = p999.number * (1 + policy.length_margin)
        value, limits = _feasible(evidence, known, round_up(scaled))
        story = f"p{percentile:g} {p999.number:,.0f} x {1 + policy.length_margin:g} = {scaled:,.0f}"
        return computed(value, source=f"{story}, rounded up to 1,024{limits}"), p999
    if p999.low is None:
        # An upper bound alone cannot carry a limit.
        return unknown(p999.unknown or lengths.NO_LENGTHS), unknown(p999.unknown or lengths.NO_LENGTHS)
    high = (
        None if p999.high is None else _feasible(evidence, known, round_up(p999.high * (1 + policy.length_margin)))[0]
    )
    low = round_up(p999.low)
    story = f"{p999.source}: prompt and output of one request are not known together"
    limit = computed(None, low=low if high is None else min(low, high), high=high, n=p999.n, source=story)
    return limit, computed(None, low=p999.low, high=p999.high, n=p999.n, source=story)


def _one_percentile(evidence: Evidence, percentile: float, known: Mapping[str, Fact]) -> Fact:
    """That percentile of total tokens without counts of single requests; a higher one stands in, never a lower one."""
    stated = evidence.percentiles.total if evidence.percentiles else {}
    if percentile in stated:
        return measured(stated[percentile], source="percentile as stated")
    prompt, output = lengths.marginals(evidence)
    if prompt is not None and output is not None:
        return lengths.total_from_marginals(prompt, output, percentile)
    if percentile > 99.9:
        return unknown(f"p{percentile:g} of total tokens is not known: {lengths.NO_LENGTHS}")
    return known["total_tokens_p999"]


def _feasible(evidence: Evidence, known: Mapping[str, Fact], target: int) -> tuple[int, str]:
    """The target, cut to what the model supports and to what one request can be served from the pool."""
    pool = known["kv_pool_tokens"].number or known["kv_pool_tokens_predicted"].number
    block = evidence.count_flag("block_size") or 16
    limits = ""
    longest = model_maximum(evidence)
    if longest is not None and target > longest:
        target, limits = longest, f", cut to the model's maximum, {longest:,}"
    served = max(int(pool) - block, 1) if pool else None
    if served is not None and target > served:
        target = served // STEP * STEP or served
        limits = f", cut to what one request can be served from the pool, {target:,}"
    return target, limits


def _alternative(needed: TokenCounts, value: int) -> str:
    half = round_up(value / 2)
    above = needed.above(half)
    return f"; {half:,} would refuse {above / needed.n * 100:.2g} % ({above:,} of {needed.n:,})" if half < value else ""


def _refused_at(recommended: Fact, needed: TokenCounts | None, unsaid: int) -> Fact:
    if needed is None or recommended.number is None:
        return unknown("needs lengths of single requests: give a request log (--logs)")
    above, every = needed.above(recommended.number), needed.n + unsaid
    story = f"{above:,} of {every:,} requests are longer"
    if unsaid:
        story += f", and {unsaid:,} refused ones did not say what they needed"
        return computed(None, low=above / every, high=(above + unsaid) / every, n=every, source=story)
    return computed(above / every, n=every, source=story)


def _cost_ratio(evidence: Evidence, recommended: Fact) -> Fact:
    present, name = present_limit(evidence), "the present limit"
    if present is None:
        present, name = model_maximum(evidence), "the model's maximum"
    if recommended.number is None or present is None:
        return unknown("needs recommended_max_model_len and the present limit (--set max_model_len=N)")
    return computed(
        present / recommended.number,
        source=f"{name} {present:,} / {recommended.number:,.0f} (worst case of one sequence)",
    )


def _censoring(evidence: Evidence) -> dict[str, Fact]:
    return {
        "refused_share_now": _refused_now(evidence),
        "finish_length_share": _cut_share(evidence),
        "length_coverage": _coverage(evidence),
        "observed_days": _observed_days(evidence),
    }


def _refused_now(evidence: Evidence) -> Fact:
    log, http = evidence.log, evidence.http
    if log is not None and log.requests:
        return measured(log.refused / log.requests, n=log.requests, source=log.source)
    if http is not None and (answers := http.ok + http.client_errors + http.server_errors) > 0:
        n = round(answers)
        if http.client_errors == 0:
            return measured(0.0, n=n, source="http_requests_total: no 4xx answer")
        most = http.client_errors / answers
        return measured(
            None, low=0.0, high=most, n=n, source="http_requests_total: 4xx mixes refusals with other errors"
        )
    return unknown("no source counts refused requests: give a request log (--logs) or scrape http_requests_total")


def _cut_share(evidence: Evidence) -> Fact:
    limit, log = present_limit(evidence), evidence.log
    if log is not None and log.served.n:
        cut = log.cut.n if limit is None else log.cut.above(limit - 1)
        share = cut / log.served.n
        if limit is None and cut:
            return measured(
                None, low=0.0, high=share, n=log.served.n, source="finish_reason length; the limit is unknown"
            )
        return measured(share, n=log.served.n, source=f"{log.source}: finish_reason length at the limit")
    pairs = [(e.windows.total("finished"), e.windows.total("finished_length")) for e in evidence.engines]
    told = [(every, cut) for every, cut in pairs if every is not None and cut is not None]
    finished = sum(every for every, _ in told)
    if finished <= 0:
        return unknown("no finished requests seen: give a request log (--logs) or engine metrics")
    most = min(sum(cut for _, cut in told) / finished, 1.0)
    if most == 0:
        return measured(0.0, n=round(finished), source="request_success_total: none finished for length")
    story = "request_success_total: the client's max_tokens and max_model_len are not told apart"
    return measured(None, low=0.0, high=most, n=round(finished), source=story)


def _coverage(evidence: Evidence) -> Fact:
    prompt, _ = lengths.marginals(evidence)
    if evidence.log is None or not evidence.log.served.n:
        return unknown("no request log with token counts (--logs)")
    if prompt is None:
        return unknown("no engine metrics to compare the log with (--prometheus)")
    share = evidence.log.served.n / prompt.n
    if share > MOST_COVERAGE:
        story = f"the log has {share:.1f}x the requests that the engines finished"
        return unknown(f"{story}: they do not cover the same time or the same replicas, so its gaps cannot be told")
    return computed(
        min(share, 1.0), n=round(prompt.n), source="requests with usage in the log / finished by the engines"
    )


def _observed_days(evidence: Evidence) -> Fact:
    if evidence.log is None or evidence.log.last_seconds <= evidence.log.first_seconds:
        return unknown("no request log (--logs)")
    days = (evidence.log.last_seconds - evidence.log.first_seconds) / DAY
    return measured(days, source=evidence.log.source)
