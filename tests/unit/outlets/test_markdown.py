from __future__ import annotations

import re

import pytest
from syrupy.assertion import SnapshotAssertion

from advisor.outlets.markdown import code, prose, render_markdown
from tests.unit.outlets import samples


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("max_num_seqs <= 24", "max_num_seqs &lt;= 24"),
        ("<b>*x*</b> & `y`", "&lt;b>\\*x\\*&lt;/b> &amp; \\`y\\`"),
        ("_emphasis_ [a](http://e) ![i](x)", "\\_emphasis\\_ \\[a\\](http\\://e) !\\[i\\](x)"),
        ("a|b ~~c~~ @team www.example.org", "a\\|b \\~\\~c\\~\\~ \\@team www\\.example.org"),
        ("back\\slash", "back\\\\slash"),
        ("two\n# lines", "two # lines"),
    ],
)
def test_prose_shows_literally(text: str, literal: str) -> None:
    assert prose(text) == literal


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("chat-70b", "`chat-70b`"),
        ("a`b", "`` a`b ``"),
        ("a``b`", "``` a``b` ```"),
        ("a|b", "`a¦b`"),
        ("a\\|b", "`a\\¦b`"),
        ("", "` `"),
        ("\x1b[2J", "`\\x1b[2J`"),
    ],
)
def test_a_code_span_holds_any_name(text: str, span: str) -> None:
    assert code(text) == span


@pytest.mark.parametrize("name", samples.HOSTILE_NAMES)
def test_a_hostile_name_forges_no_line_no_cell_and_no_markup(name: str) -> None:
    honest = render_markdown(samples.report(samples.hostile("honest"))).split("\n")
    lines = render_markdown(samples.report(samples.hostile(name))).split("\n")
    assert len(lines) == len(honest)
    for line, model in zip(lines, honest, strict=True):
        assert line.isprintable()
        assert len(re.findall(r"(?<!\\)\|", line)) == len(re.findall(r"(?<!\\)\|", model))
        outside_code = re.sub(r"(`+)[^`].*?[^`]?\1(?!`)", "", line)
        assert not re.search(r"<(?!br>)|(?<!\\)\[", outside_code)


def test_the_throttled_deployment_in_markdown(snapshot: SnapshotAssertion) -> None:
    assert render_markdown(samples.report(samples.throttled())) == snapshot


def test_the_fleet_in_markdown(snapshot: SnapshotAssertion) -> None:
    assert render_markdown(samples.fleet()) == snapshot
