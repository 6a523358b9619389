"""What sources say of the same flag: where two differ, somebody believes in a setting that does not run."""

from __future__ import annotations

import math
from dataclasses import replace

from advisor.domain.evidence import Disagreement, Evidence, FlagValue
from advisor.domain.fact import Fact, measured, unknown

AS_TOLD = frozenset(
    {
        "max_model_len",
        "max_num_seqs",
        "max_num_batched_tokens",
        "max_num_active_seqs",
        "gpu_memory_utilization",
        "tensor_parallel_size",
        "pipeline_parallel_size",
        "data_parallel_size",
        "enable_prefix_caching",
        "enable_chunked_prefill",
    }
)
"""Flags that an engine takes as it is told; of others (block_size, dtype) it makes what its hardware asks for."""
OF_WHAT_RUNS = frozenset({"server_info", "models_endpoint", "startup_log", "metrics", "process", "inferred"})
ROUNDED = 1e-6


def facts(evidence: Evidence) -> dict[str, Fact]:
    """How many flags two sources tell differently, and which: each with both values, the believed one first.

    max_num_seqs 64 by the start-up log and 256 by a manifest, with all other flags alike, is 1.
    """
    disputed = [d for d in evidence.disagreements if _is_dispute(d)]
    names = dict.fromkeys(d.flag for d in disputed)
    if not names and not evidence.flags:
        return dict.fromkeys(("flags_in_dispute", "disputed_flags"), unknown("no source tells any flag"))
    if not names:
        agree = "sources that tell the same flag agree"
        return {"flags_in_dispute": measured(0, source=agree), "disputed_flags": unknown(agree)}
    told = "; ".join(dict.fromkeys(map(_told, disputed)))
    found = measured(len(names), source="what sources tell")
    return {"flags_in_dispute": found, "disputed_flags": replace(found, value=told)}


def missing(evidence: Evidence, flag: str) -> str:
    """What would tell a flag that nobody tells; where a start-up log was read, not another one."""
    if any(known.source == "startup_log" for known in evidence.flags.values()):
        return f"{flag} is in no metric, and the start-up log given does not print it: --set {flag}=N"
    return f"{flag} is in no metric: give a start-up log (--startup-log) or --set {flag}=N"


def _is_dispute(one: Disagreement) -> bool:
    """Between sources of two kinds, one of them of what runs. Replicas that differ from each other are canaries."""
    kinds = {one.believed.source, one.other.source}
    return (
        one.flag in AS_TOLD
        and len(kinds) == 2
        and "default" not in kinds
        and not kinds.isdisjoint(OF_WHAT_RUNS)
        and not _same(one.believed.value, one.other.value)
    )


def _same(one: FlagValue, other: FlagValue) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return one == other or "auto" in (one, other)
    return math.isclose(one, other, rel_tol=ROUNDED)


def _told(one: Disagreement) -> str:
    believed, other = (flag.source.replace("_", " ") for flag in (one.believed, one.other))
    return f"{one.flag} is {one.believed.value} by {believed}, which is believed, and {one.other.value} by {other}"
