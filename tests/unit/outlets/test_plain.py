from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.outlets.plain import cells, plain

# Surrogates included: JSON may carry half a pair.
any_text = st.text(st.characters(codec=None, exclude_categories=()), max_size=200)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("chat-70b", "chat-70b"),
        ("  two\n\tlines \r", "two lines"),
        ("\x1b[2Jgone", "\\x1b[2Jgone"),
        ("\x1bc\x9b31m", "\\x1bc\\x9b31m"),
        ("evil\u202egnp", "evil\\u202egnp"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("half \ud800", "half \\ud800"),
        ("tag \U000e0041", "tag \\U000e0041"),
        ("模型 é", "模型 é"),
    ],
)
def test_it_spells_out_what_cannot_be_seen(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_a_long_text_ends_with_an_ellipsis() -> None:
    assert plain("a" * 300, limit=10) == "aaaaaaaaa…"
    assert plain("a" * 10, limit=10) == "a" * 10


@given(any_text)
def test_the_result_is_printable_one_line_and_stable(text: str) -> None:
    shown = plain(text)
    assert shown.isprintable()
    assert len(shown) <= 2_000
    assert plain(shown) == shown


@pytest.mark.parametrize(("text", "columns"), [("abc", 3), ("模型", 4), ("e\u0301", 1), ("", 0)])
def test_cells_counts_terminal_columns(text: str, columns: int) -> None:
    assert cells(text) == columns
