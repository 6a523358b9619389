"""Facts as lines to follow: the value, and the arithmetic or the reading that it comes from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from advisor.domain.advice import Advice
from advisor.domain.fact import Fact, FactSheet
from advisor.domain.numbers import figure, interval

from .layout import figures, grid, hanging

_LIMIT = (
    ("runs now", "max_model_len"),
    ("refused for length now", "refused_share_now"),
    ("cut at the limit now", "finish_length_share"),
    ("p99.9 needed, 95 % upper", "needed_tokens_p999_upper"),
    ("p99.9 declared", "declared_tokens_p999"),
    ("proposal", "recommended_max_model_len"),
    ("longer than the proposal", "refused_share_at_recommended"),
    ("worst case now / then", "max_model_len_cost_ratio"),
)
_CEILINGS = (
    ("KV of one token", "kv_bytes_per_token"),
    ("pool tokens, reported", "kv_pool_tokens"),
    ("pool tokens, predicted", "kv_pool_tokens_predicted"),
    ("predicted - reported", "kv_pool_relative_error"),
    ("memory, guaranteed", "memory_ceiling_guaranteed"),
    ("memory, expected", "memory_ceiling_expected"),
    ("memory, twice the GPUs", "memory_ceiling_at_double_tp"),
    ("latency", "latency_ceiling"),
    ("token budget", "budget_ceiling"),
    ("highest that fits", "recommended_max_num_seqs"),
    ("binding", "binding_ceiling"),
    ("next step", "next_max_num_seqs"),
    ("prefill tokens a step", "prefill_tokens_per_step_left"),
)
_ALWAYS = frozenset(
    {
        "recommended_max_model_len",
        "memory_ceiling_guaranteed",
        "memory_ceiling_expected",
        "latency_ceiling",
        "budget_ceiling",
        "recommended_max_num_seqs",
    }
)
_KINDS = ("prompt", "output", "total")
_PERCENTILES = ("p50", "p90", "p99", "p999")


def derived(advice: Iterable[Advice]) -> tuple[tuple[str, str], ...]:
    """What is derived for the two limits, as (label, fact)."""
    return _LIMIT + _ceilings(advice)


def _ceilings(advice: Iterable[Advice]) -> tuple[tuple[str, str], ...]:
    """A step towards the highest cap that fits is one to take only where advice takes it: elsewhere it may do harm."""
    takes_it = any(a.knob == "max_num_seqs" and a.state in ("open", "queued") for a in advice)
    return tuple(row for row in _CEILINGS if takes_it or row[1] != "next_max_num_seqs")


def limit(facts: FactSheet, width: int, *, verbose: bool) -> Iterator[str]:
    """How the length limit follows; Unknown side figures only with `verbose`."""
    yield "LIMIT on max_model_len"
    yield from _derived(facts, _LIMIT, width, verbose=verbose)


def ceilings(facts: FactSheet, advice: Iterable[Advice], width: int, *, verbose: bool) -> Iterator[str]:
    """How the sequence cap follows; Unknown side figures only with `verbose`."""
    yield "CEILINGS on max_num_seqs"
    yield from _derived(facts, _ceilings(advice), width, verbose=verbose)


def lengths(facts: FactSheet, width: int) -> Iterator[str]:
    """Percentiles of lengths as a table, with the interval of the highest; what is Unknown below, with the reason."""
    head, *rows = length_rows(facts)
    shown = [facts[f"{kind}_tokens_{percentile}"] for kind, *_ in rows for percentile in _PERCENTILES]
    yield from hanging("LENGTHS   ", _sample(shown), width=width)
    if rows:
        table = grid([head, *rows])
        yield from table if max(map(len, table)) <= width else _listed(head, rows, width)
    reasons: dict[str, list[str]] = {}
    for kind in _KINDS:
        if not _known(kind, facts):
            reasons.setdefault(facts[f"{kind}_tokens_p999"].unknown or "", []).append(kind)
    for reason, kinds in reasons.items():
        yield from hanging("  ", f"{', '.join(kinds)} unknown: {reason}", width=width)


def length_rows(facts: FactSheet) -> list[tuple[str, ...]]:
    """A head, and a row for each kind of length that is known: percentiles, and the interval of the p99.9."""
    rows: list[tuple[str, ...]] = [("tokens", "p50", "p90", "p99", "p99.9", "95 % interval")]
    for kind in _KINDS:
        if _known(kind, facts):
            names = [f"{kind}_tokens_{percentile}" for percentile in _PERCENTILES]
            rows.append((kind, *(_brief(n, facts[n]) for n in names), interval(names[-1], facts[names[-1]])))
    return rows


def _derived(facts: FactSheet, rows: tuple[tuple[str, str], ...], width: int, *, verbose: bool) -> list[str]:
    shown = [row for row in rows if verbose or row[1] in _ALWAYS or not facts[row[1]].is_unknown]
    return figures([(label, figure(name, facts[name]), story(name, facts[name])) for label, name in shown], width=width)


def story(name: str, fact: Fact) -> str:
    """Where a figure comes from, its bounds, and what is told but not believed; the reason of an Unknown one."""
    if fact.unknown is not None:
        return fact.unknown
    around = interval(name, fact)
    parts = ("assumed:" if fact.basis == "assumed" else "", fact.source or "", f"({around})" if around else "")
    told = " ".join(part for part in parts if part)
    return "; not believed: ".join([told, *(f"{figure(name, rival)} ({rival.source})" for rival in fact.rivals)])


def _listed(head: tuple[str, ...], rows: list[tuple[str, ...]], width: int) -> list[str]:
    """The table's cells under each other, for when they are too wide to stand beside each other."""
    *percentiles, around = head[1:]
    values = [(kind, dict(zip(head[1:], row, strict=True))) for kind, *row in rows]
    last = percentiles[-1]
    return figures(
        ((f"{kind} {p}", cells[p], cells[around] if p == last else "") for kind, cells in values for p in percentiles),
        width=width,
    )


def _brief(name: str, fact: Fact) -> str:
    return figure(name, fact).replace("at least", ">=").replace("at most", "<=")


def _known(kind: str, facts: FactSheet) -> bool:
    return not all(facts[f"{kind}_tokens_{percentile}"].is_unknown for percentile in _PERCENTILES)


def _sample(facts: list[Fact]) -> str:
    """How many requests lengths were taken from, and who says so."""
    requests = max((fact.n or 0 for fact in facts), default=0)
    sources = list(dict.fromkeys(fact.source for fact in facts if fact.source))
    return " · ".join([f"{requests:,} requests", *sources] if requests else sources)
