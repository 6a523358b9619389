"""A clock that is set under the running daemon: no report is posted twice, none is lost, and the schedule goes on."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from tests.conftest import absent
from tests.slack_server import CHANNEL, TOKEN, SlackState, slack
from tests.unit.service.running import Running, configure, daemon, eventually
from tests.wall_clock import WallClock, wall_clock

pytestmark = pytest.mark.integration

HOUR, DAY = 3600.0, 86_400.0
SUNDAY = datetime.fromisoformat("2026-11-29T12:00:00Z").timestamp()
"""Of week 48; the report is due on Monday at 9, which begins week 49."""


@pytest.fixture
def clock(tmp_path: Path) -> WallClock:
    clock = wall_clock(tmp_path)
    if clock is None:
        absent("a C compiler, of Debian's packages gcc and libc6-dev")
    assert clock is not None
    clock.set(SUNDAY)
    return clock


@pytest.fixture
def workspace() -> Iterator[tuple[str, SlackState]]:
    """A local Slack: its address and what it holds."""
    with slack(SlackState(clock=SUNDAY)) as held:
        yield held


@pytest.fixture
def config(tmp_path: Path, workspace: tuple[str, SlackState]) -> Path:
    (tmp_path / "token").write_text(TOKEN, encoding="utf-8")
    told = {"channel": CHANNEL, "token_file": f"{tmp_path}/token", "api_url": f"{workspace[0]}/api/"}
    slack_options = json.dumps({**told, "collecting_days": 0, "settle_seconds": 1})
    return configure(tmp_path, f"slack: {slack_options}\nschedule: {{timezone: UTC}}\n")


def weeks(state: SlackState) -> list[str]:
    """The periods of the reports that were posted, in their order."""
    keys = (m["metadata"]["event_payload"]["key"] for m in state.messages if "thread_ts" not in m)
    return [key.removeprefix(f"{CHANNEL}/") for key in keys]


def times(running: Running, text: str) -> int:
    return running.log.count(text)


def sets_the_clock(running: Running, clock: WallClock, to: float) -> None:
    """Set it, and wait until the daemon has noticed and evaluated anew."""
    noticed, evaluated = times(running, "the clock was set"), times(running, "kind=evaluate outcome=ok")
    clock.set(to)
    eventually(lambda: times(running, "the clock was set") > noticed, "the daemon to notice its clock")
    eventually(lambda: times(running, "kind=evaluate outcome=ok") > evaluated, "an evaluation by the new clock")


def test_a_clock_that_is_set_forward_and_back(
    config: Path, clock: WallClock, workspace: tuple[str, SlackState]
) -> None:
    state = workspace[1]
    with daemon(config, clock.environment) as running:
        running.says("kind=evaluate outcome=ok")
        assert weeks(state) == [], "the first report waits for its day"

        sets_the_clock(running, clock, SUNDAY + DAY)
        eventually(lambda: times(running, "kind=report outcome=ok") == 1, "Monday's report")
        assert weeks(state) == ["2026-W49"]
        said = len(state.messages)

        # Back: everything the daemon did last now lies in the future.
        sets_the_clock(running, clock, SUNDAY)
        sets_the_clock(running, clock, SUNDAY + 2 * HOUR)
        assert times(running, "kind=report") == 1

        # Monday comes again, by a clock that is right now: what is there is not posted again.
        sets_the_clock(running, clock, SUNDAY + DAY - 2 * HOUR)
        eventually(lambda: times(running, "kind=report outcome=ok") == 2, "Monday's report, again")
        assert len(state.messages) == said

        sets_the_clock(running, clock, SUNDAY + 8 * DAY)
        eventually(lambda: times(running, "kind=report outcome=ok") == 3, "the report of the week after")
        assert weeks(state) == ["2026-W49", "2026-W50"]
        running.told.clear()
        running.hears("WATCHDOG=1")
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(30) == 0
    assert "Traceback" not in running.log


def test_after_a_restart_under_a_clock_that_was_ahead(
    config: Path, clock: WallClock, workspace: tuple[str, SlackState]
) -> None:
    """What the store remembers of the future must not hold up the present."""
    clock.set(SUNDAY + DAY)
    with daemon(config, clock.environment) as running:
        running.says("kind=evaluate outcome=ok")
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(30) == 0
    clock.set(SUNDAY)
    with daemon(config, clock.environment) as running:
        running.says("kind=evaluate outcome=ok")
        sets_the_clock(running, clock, SUNDAY + DAY)
        eventually(lambda: times(running, "kind=report outcome=ok") == 1, "Monday's report")
    assert weeks(workspace[1]) == ["2026-W49"]


def test_the_weekly_time_is_missed_while_the_daemon_is_down(
    config: Path, clock: WallClock, workspace: tuple[str, SlackState]
) -> None:
    state = workspace[1]
    with daemon(config, clock.environment) as running:
        running.says("kind=evaluate outcome=ok")
        sets_the_clock(running, clock, SUNDAY + DAY)
        eventually(lambda: times(running, "kind=report outcome=ok") == 1, "Monday's report")
        running.process.kill()
        running.process.wait(20)
    # Off over two Mondays, back on a Wednesday: one report, of the week that it is.
    clock.set(SUNDAY + 17 * DAY)
    with daemon(config, clock.environment) as running:
        eventually(lambda: times(running, "kind=report outcome=ok") == 1, "the report that was missed")
        assert weeks(state) == ["2026-W49", "2026-W51"]
        sets_the_clock(running, clock, SUNDAY + 17 * DAY + 2 * HOUR)
        assert times(running, "kind=report") == 1
