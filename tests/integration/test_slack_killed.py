"""A poster that is killed at random moments, with the real store, against a Slack that accepts slowly."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.slack_server import CHANNEL, TOKEN, SlackState, slack

pytestmark = pytest.mark.integration

ROUNDS = int(os.environ.get("KILL_ROUNDS", "6"))
ROOT = Path(__file__).parent.parent.parent
ANSWERS = 3

POSTER = """
import sys, time
from pathlib import Path
from advisor.domain.pictures import Pictures
from advisor.outlets.slack.options import SlackOptions
from advisor.outlets.slack.post import Message, Picture, Post, section
from advisor.outlets.slack.poster import PACE_SECONDS, SlackPoster
from advisor.store import Store

url, folder, channel, period, answers = sys.argv[1:]
options = SlackOptions(
    channel=channel, token_file=Path(folder) / "token", api_url=url + "/api/", timeout_seconds=5, settle_seconds=1
)
key = f"{channel}/{period}"
def message(name):
    return Message(name, name, (section(name),), Picture(name, Pictures(), name))
post = Post(channel, message(key), tuple(message(f"{key}/{n}") for n in range(int(answers))))
store = Store.open(Path(folder) / "advisor.db")
print("ready", flush=True)
def paced(seconds):  # the pace of one message a second is for the real Slack
    time.sleep(0.02 if seconds == PACE_SECONDS else seconds)
poster = SlackPoster(options, draw=lambda wanted: [b"picture" for _ in wanted], sleep=paced)
outcome = poster.post(post, store.delivery_log, time.time())
store.close()
sys.exit(0 if outcome.complete else str(outcome))
"""


def _poster(url: str, folder: Path, period: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", POSTER, url, str(folder), CHANNEL, period, str(ANSWERS)]
    child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    return child


def test_whenever_it_is_killed_every_message_and_picture_is_there_once(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(TOKEN)
    chance = random.Random(48)
    with slack(SlackState(accept_delay_seconds=0.05, clock=time.time())) as (url, state):
        for round_ in range(ROUNDS):
            with _poster(url, tmp_path, f"week-{round_}") as child:
                time.sleep(chance.uniform(0.0, 1.2))
                child.kill()
            with _poster(url, tmp_path, f"week-{round_}") as child:
                assert child.wait(60) == 0
    keys = [f"{CHANNEL}/week-{n}{part}" for n in range(ROUNDS) for part in ("", *(f"/{a}" for a in range(ANSWERS)))]
    posted = Counter(m["text"] for m in state.messages if "files" not in m)
    assert posted == dict.fromkeys(keys, 1)
    shared = Counter(share["files"][0]["title"] for share in state.shares())
    assert shared == dict.fromkeys(keys, 1)
