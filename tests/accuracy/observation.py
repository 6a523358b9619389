"""What the product says of a recorded deployment: recorded, served by a real Prometheus, gathered, estimated."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from advisor.domain.evidence import Slo, Window
from advisor.domain.fact import FactSheet
from advisor.domain.policy import Policy
from advisor.estimates import estimate
from advisor.gather import gather
from advisor.settings import read_settings
from tests.prometheus_server import serve
from tests.recording.deployment import Deployment, record
from tests.recording.situations import RECORDED_AT


def observe(deployment: Deployment, slo: Slo, *, logged: bool) -> FactSheet:
    """The facts about a deployment, with its request log or from its metrics alone."""
    with tempfile.TemporaryDirectory() as folder:
        recording = record(deployment, RECORDED_AT, Path(folder))
        logs = {"logs": {"paths": [str(recording.log)]}} if logged else {}
        with serve(recording.metrics) as url:
            settings = read_settings(None, _stated(deployment, slo) | logs | {"prometheus": {"url": url}})
            found = gather(settings, Window(recording.start, recording.end))
    return estimate(found.deployments[deployment.model], Policy())


def _stated(deployment: Deployment, slo: Slo) -> dict[str, Any]:
    """What no metric of an engine tells: its objectives, and flags; the simulated one admits only whole prompts."""
    flags = deployment.engine
    objectives = {"tpot": slo.tpot_seconds, "ttft": slo.ttft_seconds}
    return {
        "flags": {
            "max_num_seqs": flags.max_num_seqs,
            "max_num_batched_tokens": flags.max_num_batched_tokens,
            "scheduler_reserve_full_isl": True,
        },
        "slo": {name: seconds for name, seconds in objectives.items() if seconds is not None},
    }
