from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.outlets.slack.mrkdwn import bold, code, mention, prose
from tests.unit.outlets.samples import HOSTILE_NAMES

LIVE = re.compile(r"<[!@#]|<http|(?<!\w)[*_~`]|[*_~`](?!\w)")
"""What Slack would act upon: calls, links, and its markers at the edge of a word."""


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("<!channel>", "&lt;!channel&gt;"),
        ("a & b", "a &amp; b"),
        ("&lt;", "&amp;lt;"),
        ("*loud* _slanted_ ~gone~ `code`", "∗loud∗ ＿slanted＿ ∼gone∼ ˋcodeˋ"),
        ("kv_usage_p95 < 60%", "kv_usage_p95 &lt; 60%"),
        ("two\nlines", "two lines"),
        ("x" * 400, "x" * 299 + "…"),
    ],
)
def test_prose_is_shown_as_it_is(text: str, written: str) -> None:
    assert prose(text) == written


def test_a_code_span_ends_only_at_its_end() -> None:
    assert code("--max-num-seqs 24") == "`--max-num-seqs 24`"
    assert code("a`b <!here>") == "`aˋb &lt;!here&gt;`"
    assert code("") == "` `"


def test_an_owner_is_called_by_the_kind_of_the_id() -> None:
    assert mention("U0123ABC") == "<@U0123ABC>"
    assert mention("S0123ABC") == "<!subteam^S0123ABC>"


@given(st.one_of(st.text(max_size=60), st.sampled_from(HOSTILE_NAMES), st.text("<>!@#*_~`& a\n|", max_size=30)))
def test_nothing_from_outside_is_live(text: str) -> None:
    assert not LIVE.search(prose(text))
    assert not re.search(r"[<>`\n]", code(text)[1:-1])
    assert not LIVE.search(bold(text)[1:-1])
    assert "<" not in prose(text)
