"""What tests of several rooms share: situations behind a real Prometheus, and how its absence is treated."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.prometheus_server import PrometheusMissingError, serve
from tests.recording.deployment import Deployment, Recording, record
from tests.recording.situations import RECORDED_AT

NEWER = ("prometheus-3", "victoria-metrics-new")
"""Programs of Debian suites that still move, so that nobody can rely on getting them."""


def absent(what: str, program: str = "") -> None:
    """A test cannot run because `what` is not there: skipped on a developer's machine, a failure in CI.

    Without a `program` of NEWER it is skipped everywhere.
    """
    if os.environ.get("CI") and program not in NEWER:
        pytest.fail(f"CI must have it: {what}")
    pytest.skip(what)


@dataclass(frozen=True, slots=True)
class Served:
    """A recorded deployment and the URL of the Prometheus that has its metrics."""

    url: str
    recording: Recording


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Deployment], Recording]:
    """Records a deployment so that it ends at RECORDED_AT; each one is played once a session."""
    done: dict[str, Recording] = {}

    def once(deployment: Deployment) -> Recording:
        key = repr(deployment)
        if key not in done:
            done[key] = record(deployment, RECORDED_AT, tmp_path_factory.mktemp("recording"))
        return done[key]

    return once


@pytest.fixture(scope="session")
def served(recorded: Callable[[Deployment], Recording]) -> Iterator[Callable[[Deployment], Served]]:
    """Records a deployment and serves it from a real Prometheus, which all tests of the session share."""
    running: dict[Path, Served] = {}
    with ExitStack() as servers:

        def once(deployment: Deployment) -> Served:
            recording = recorded(deployment)
            if recording.metrics not in running:
                try:
                    url = servers.enter_context(serve(recording.metrics))
                except PrometheusMissingError as error:
                    absent(str(error))
                running[recording.metrics] = Served(url, recording)
            return running[recording.metrics]

        yield once
