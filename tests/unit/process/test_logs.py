"""The log as journald gets it."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from advisor.process.logs import configure_logging


@pytest.fixture
def logging_restored() -> Iterator[None]:
    """Leaves logging as it was found."""
    handlers, level = logging.root.handlers[:], logging.root.level
    yield
    structlog.reset_defaults()
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)


@pytest.mark.usefixtures("logging_restored")
def test_a_line_is_key_and_value(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(level="info", as_json=False)
    log = structlog.get_logger()
    log.debug("unheard")
    log.info("step", kind="evaluate", seconds=2.5, detail='model "a"\nevil=1 \x1b[2J')
    assert capsys.readouterr().err == (
        'level=info event=step kind=evaluate seconds=2.5 detail="model \\"a\\" evil=1 \\\\x1b[2J"\n'
    )


@pytest.mark.usefixtures("logging_restored")
def test_json_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(level="warning", as_json=True)
    try:
        float("no number")
    except ValueError as error:
        structlog.get_logger().error("step crashed", exc_info=error)
    (line,) = capsys.readouterr().err.splitlines()
    event = json.loads(line)
    assert (event["level"], event["event"]) == ("error", "step crashed")
    assert "ValueError: could not convert string to float" in event["exception"]
    assert event["timestamp"].endswith("Z")


@pytest.mark.usefixtures("logging_restored")
def test_what_libraries_say_comes_out_in_the_same_form(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(level="info", as_json=False)
    logging.getLogger("urllib3").warning("retrying")
    logging.getLogger("urllib3").error("gave up on %s", "http://x")
    assert capsys.readouterr().err == 'level=error event=library logger=urllib3 message="gave up on http://x"\n'
