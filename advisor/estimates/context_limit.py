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
from advisor.engines import flags_of

from . import censoring, length_bound, lengths
from .kv.config_fields import language_part
from .length_bound import Bound
from .length_sample import TELL_LENGTHS, LengthSample, length_sample

STEP = 1024
STRETCHED = ("yarn", "linear", "dynamic")
MOST_STRETCH = 1024
CONTEXT_KEYS = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "model_max_length")


def facts(evidence: Evidence, policy: Policy, known: Mapping[str, Fact]) -> dict[str, Fact]:
    """The limit advised, what it refuses, how much worst case it saves, and whether the sample may shrink anything."""
    out = censoring.facts(evidence, present_limit(evidence))
    sample = length_sample(evidence)
    recommended, upper = _recommended(evidence, policy, known, sample)
    out["recommended_max_model_len"] = recommended
    out["needed_tokens_p999_upper"] = upper
    out["refused_share_at_recommended"] = _refused_at(evidence, recommended, sample)
    out["max_model_len_cost_ratio"] = _cost_ratio(evidence, recommended)
    return out


def needs(evidence: Evidence) -> TokenCounts | None:
    """Total tokens of served requests together with what refused ones would have needed; None where nobody counts."""
    sample = length_sample(evidence)
    return None if sample is None else sample.needs


def present_limit(evidence: Evidence) -> int | None:
    """max_model_len, where it is known; -1 and 0 leave it to the engine and say nothing."""
    limit = evidence.count_flag("max_model_len")
    return limit if limit is not None and limit > 0 else None


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
    evidence: Evidence, policy: Policy, known: Mapping[str, Fact], sample: LengthSample | None
) -> tuple[Fact, Fact]:
    if sample is None:
        return _without_counts(evidence, policy, known)
    percentile, needed = policy.length_percentile, sample.needs
    bound = length_bound.upper(needed, sample.slots, percentile, unseen=sample.unsaid)
    if bound.tokens is None:
        return _at_least(evidence, percentile, known, sample, bound)
    target, story = _target(evidence, policy, needed, bound.tokens, bound.drift)
    declared = declared_upper(evidence, sample, policy.length_percentile)
    if declared is not None and declared > target:
        target = declared
        story += f"; raised to {declared:,}, what clients declare, because this release refuses by that"
    value, limits = _feasible(evidence, known, round_up(target))
    story += f", rounded up to 1,024{limits}{_alternative(needed, value)}"
    return computed(value, n=needed.n, source=story), measured(bound.tokens, n=needed.n, source=bound.story)


def _target(evidence: Evidence, policy: Policy, needed: TokenCounts, upper: int, drift: float) -> tuple[float, str]:
    """What the limit should hold before it is rounded, and how that came about."""
    factor, why = 1 + policy.length_margin, ""
    if drift > factor:
        factor, why = min(drift, policy.step_limit * factor), f" (later requests outgrew earlier ones {drift:.3g}x)"
    if evidence.workload == "batch":
        longest = max(needed.largest, upper)
        return longest * factor, f"batch, so the longest document, {longest:,} x {factor:.4g}{why}"
    scaled = upper * factor
    story = f"p{policy.length_percentile:g} upper bound {upper:,} x {factor:.4g}{why} = {scaled:,.0f}"
    target = max(scaled, min(needed.largest, policy.step_limit * scaled))
    if target > scaled:
        far = f" ({policy.step_limit:g} x that)" if needed.largest > target else ""
        story += f", raised to {target:,.0f}{far} because one request needed {needed.largest:,}"
    return target, story


def refuses_by_declared(evidence: Evidence) -> bool:
    """Whether the engine is known to refuse a request by prompt plus declared output."""
    flags = flags_of(evidence.engine)
    return flags is not None and flags.counts_declared_output(evidence.engine_version) is True


def declared_upper(evidence: Evidence, sample: LengthSample, percentile: float) -> int | None:
    """Upper bound of what that percentile of requests declares (prompt + max tokens), where the engine refuses by it.

    A request that declares nothing is given the room that is left and is never refused for it: None where so many are
    silent that all others may be refused.
    """
    if not sample.declared.n or not refuses_by_declared(evidence):
        return None
    silent = max(sample.totals.n - sample.declared.n, 0)
    everybody = TokenCounts.merge([TokenCounts.of([0], [silent]), sample.declared])
    return lengths.upper_bound(everybody, percentile) or None


def _at_least(
    evidence: Evidence, percentile: float, known: Mapping[str, Fact], sample: LengthSample, bound: Bound
) -> tuple[Fact, Fact]:
    """The sample does not bound what requests need from above: only the largest one seen is certain."""
    needed, unsaid = sample.needs, sample.unsaid
    low, limits = _feasible(evidence, known, round_up(needed.largest))
    floor = computed(None, low=low, n=needed.n, source=f"the largest request seen{limits}")
    if lengths.upper_bound(needed, percentile) is not None and unsaid:
        return floor, unknown(f"{unsaid:,} requests were refused for their length without saying what they needed")
    few = f"{needed.n:,} requests"
    if bound.worth < needed.n:
        few += f", which count like {bound.worth:,} because long ones come in bursts,"
    return floor, unknown(f"{few} cannot bound a p{percentile:g}: more traffic or a longer window (--since)")


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


def _refused_at(evidence: Evidence, recommended: Fact, sample: LengthSample | None) -> Fact:
    if sample is None or recommended.number is None:
        return unknown(f"needs lengths of single requests: give {TELL_LENGTHS}")
    needed, unsaid = sample.needs, sample.unsaid
    above, every = needed.above(recommended.number), needed.n + unsaid
    story = f"{above:,} of {every:,} requests are longer"
    if sample.declared.n and refuses_by_declared(evidence):
        above = max(above, sample.declared.above(recommended.number))
        story = f"{above:,} of {every:,} requests declare more, and this release refuses by that"
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
