from __future__ import annotations

import json
from pathlib import Path

import pytest

from advisor.backtest import moments, replay
from advisor.domain.errors import UsageError
from advisor.domain.replayed import Replayed
from advisor.outlets.replayed import render_replayed, replayed_document
from advisor.settings import Settings

pytestmark = pytest.mark.slow

DAY = 86_400.0
START = 1_795_392_000.0  # 2026-11-23T00:00:00Z
A_DAY = 1_200


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nine days of 1,000 tokens a request; from the seventh on every hundredth request needs 3,000."""
    path = tmp_path_factory.mktemp("log") / "requests.jsonl"
    with path.open("w") as file:
        for number in range(9 * A_DAY):
            output = 2_100 if number >= 6 * A_DAY and number % 100 == 0 else 100
            line = {"ts": START + number * DAY / A_DAY, "model": "chat", "status": 200}
            line["usage"] = {"prompt_tokens": 900, "completion_tokens": output}
            file.write(json.dumps(line) + "\n")
    return path


@pytest.fixture(scope="module")
def rows(log: Path) -> list[Replayed]:
    settings = Settings.model_validate({"logs": {"paths": [str(log)]}, "since": "3d"})
    at = moments(START + 9 * DAY, 6 * DAY, DAY)
    return [row for group in replay(settings, at) for row in group]


def test_each_moment_sees_only_its_past(rows: list[Replayed]) -> None:
    # 1,000 x 1.25 = 1,250 -> 2,048; with 12 of 3,600 requests at 3,000: 3,750 -> 4,096.
    # A day of them among three is a burst: it bounds nothing yet, and that is said.
    limits = {(row.at - START) / DAY: row.max_model_len for row in rows}
    assert limits == {3: 2048, 4: 2048, 5: 2048, 6: 2048, 7: None, 8: 4096, 9: 4096}


def test_a_limit_is_held_against_the_requests_that_followed(rows: list[Replayed]) -> None:
    after = {(row.at - START) / DAY: row.refused_after for row in rows}
    # The windows after days 3 to 6 hold 0, 1, 2 and 3 of the later days in 3: a hundredth of those requests.
    assert after[3] == 0
    assert after[4] == pytest.approx(0.01 / 3)
    assert after[5] == pytest.approx(0.02 / 3)
    assert after[6] == pytest.approx(0.01)
    assert after[7] is after[8] is after[9] is None  # nothing followed yet


def test_moments_that_said_the_same_are_one_line(rows: list[Replayed]) -> None:
    lines = render_replayed(rows).splitlines()
    assert lines[0].startswith("chat   7 evaluations, ")
    assert "0-1 %" in "\n".join(lines)


def test_scripts_get_every_moment(rows: list[Replayed]) -> None:
    told = replayed_document(rows)["evaluations"]
    assert isinstance(told, list)
    assert [entry["at"][:10] for entry in told] == [f"2026-11-{day}" for day in range(26, 31)] + [
        "2026-12-01",
        "2026-12-02",
    ]
    assert told[3]["refused_share_after"] == pytest.approx(0.01)


@pytest.mark.parametrize(("since", "every"), [(DAY, 2 * DAY), (DAY, 0.0), (DAY, -1.0), (1000 * DAY, 60.0)])
def test_impossible_spans_are_refused(since: float, every: float) -> None:
    with pytest.raises(UsageError, match=r"--every|--since"):
        moments(START, since, every)


def test_a_deployment_without_logs_is_not_held_against_anything(tmp_path: Path) -> None:
    path = tmp_path / "chat.yaml"
    path.write_text("deployments:\n  chat:\n    total_tokens: {p99.9: 9500}\n    model: {max_context: 1048576}\n")
    settings = Settings.model_validate({"evidence": [str(path)]})
    (group,) = replay(settings, moments(START, DAY, DAY)[-1:])
    # 9,500 x 1.25 = 11,875 -> 12,288
    assert (group[0].max_model_len, group[0].refused_after) == (12_288, None)
