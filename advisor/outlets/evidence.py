"""What is known of a deployment as an evidence file, so that somebody else can try the case without any server."""

from __future__ import annotations

import math
from io import StringIO
from typing import Any

from ruamel.yaml import YAML

from advisor.domain.catalogue import CATALOGUE
from advisor.domain.evidence import Slo
from advisor.domain.report import DeploymentReport

_PERCENTILES = {"p50": "p50", "p90": "p90", "p99": "p99", "p999": "p99.9"}
_TOLD_ELSEWHERE = frozenset(
    {
        "max_num_seqs",
        "max_model_len",
        "max_num_batched_tokens",
        "replicas",
        "running_max",
        "kv_pool_tokens",
        "kv_bytes_per_token",
        "slo_target",
        "refused_share_at_recommended",
        *(f"total_tokens_{p}" for p in _PERCENTILES),
    }
)
_LARGEST = 1e15


def render_evidence(deployment: DeploymentReport) -> str:
    """YAML that `advisor check --evidence` reads: flags, lengths, pool, and as stated facts whatever was measured.

    What was computed is left out: whoever reads the file computes it again. Ends without a newline.
    """
    yaml: Any = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.allow_unicode = False
    yaml.sort_base_mapping_type_on_output = False
    yaml.width = 120
    stream = StringIO()
    yaml.dump({"deployments": {deployment.evidence.name: _deployment(deployment)}}, stream)
    return stream.getvalue().rstrip("\n")


def _deployment(deployment: DeploymentReport) -> dict[str, Any]:
    evidence, facts = deployment.evidence, deployment.facts
    pool, per_token = facts["kv_pool_tokens"].number, facts["kv_bytes_per_token"].number
    seen = facts["running_max"].number
    parts = {
        "engine": evidence.engine,
        "engine_version": evidence.engine_version,
        "workload": evidence.workload,
        "replicas": evidence.replicas or None,
        "slo": _slo(evidence.slo),
        "flags": {name: flag.value for name, flag in evidence.flags.items() if flag.source != "default"},
        "model": {"kv_per_token": per_token} if per_token else None,
        "reported": {"kv_pool_tokens": int(pool)} if pool else None,
        "total_tokens": _total_tokens(deployment),
        "max_concurrency_seen": math.ceil(seen) if seen else None,
        "facts": _stated(deployment),
    }
    return {name: part for name, part in parts.items() if part not in (None, {})}


def _slo(slo: Slo) -> dict[str, Any]:
    targets = {"tpot": slo.tpot_seconds, "itl": slo.itl_seconds, "ttft": slo.ttft_seconds}
    given: dict[str, Any] = {name: f"{1000 * value:g}ms" for name, value in targets.items() if value is not None}
    return {**given, "percentile": slo.percentile} if given else {}


def _total_tokens(deployment: DeploymentReport) -> dict[str, int]:
    known = {name: deployment.facts[f"total_tokens_{p}"].number for p, name in _PERCENTILES.items()}
    return {name: math.ceil(value) for name, value in known.items() if value is not None and value >= 1}


def _stated(deployment: DeploymentReport) -> dict[str, float]:
    return {
        name: number
        for name, fact in deployment.facts.items()
        if name not in _TOLD_ELSEWHERE
        and fact.basis != "computed"
        and (number := fact.number) is not None
        and _can_be_stated(number, CATALOGUE[name].unit)
    }


def _can_be_stated(number: float, unit: str) -> bool:
    return math.isfinite(number) and 0 <= number <= _LARGEST and unit != "-"
