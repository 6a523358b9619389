from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from advisor.outlets.layout import figures, fitted, grid, hanging, left, right, wrapped
from advisor.outlets.plain import cells, plain

words = st.text(st.characters(codec=None, exclude_categories=()), max_size=300)
widths = st.integers(min_value=4, max_value=120)


def test_lines_break_at_blanks() -> None:
    assert wrapped("requests wait behind the cap", 14) == ["requests wait", "behind the cap"]


def test_a_number_stays_with_its_unit() -> None:
    assert wrapped("the cache is 4 % full", 14) == ["the cache is", "4 % full"]
    assert wrapped("first token 1.8 s late", 14) == ["first token", "1.8 s late"]
    assert wrapped("beyond 10 millions", 11) == ["beyond 10", "millions"]


def test_a_word_longer_than_the_line_is_cut() -> None:
    assert wrapped("see abcdefghij", 4) == ["see", "abcd", "efgh", "ij"]


def test_what_does_not_fit_the_lines_ends_with_an_ellipsis() -> None:
    assert wrapped("one two three four", 7, most=2) == ["one two", "three…"]
    assert wrapped("one two three x four", 7, most=2) == ["one two", "three…"]
    assert wrapped("a wait of 1.8 s and more", 11, most=1) == ["a wait of…"]
    assert wrapped("abcdefghij klm", 6, most=1) == ["abcde…"]


def test_a_long_name_loses_its_middle() -> None:
    assert fitted("meta/Llama-3.1-70B", 11) == "meta/…1-70B"
    assert fitted("chat", 11) == "chat"


def test_wide_characters_take_two_columns() -> None:
    assert left("模型", 6) == "模型  "
    assert right("模型", 6) == "  模型"
    assert wrapped("模型模型", 5) == ["模型", "模型"]


def test_a_paragraph_hangs_under_its_head() -> None:
    assert hanging("why   ", "one two three", width=13) == ["why   one two", "      three"]


def test_figures_align_values_right_and_stories_under_themselves() -> None:
    rows = [("pool", "587,158", "192.4 GB / 327,680"), ("memory", "47", "587,158 / 12,288")]
    assert figures(rows, width=35) == [
        "  pool    587,158   192.4 GB /",
        "                    327,680",
        "  memory       47   587,158 /",
        "                    12,288",
    ]


def test_a_grid_aligns_numbers_right() -> None:
    assert grid([("tokens", "p50"), ("total", "1,412")]) == ["  tokens    p50", "  total   1,412"]


@given(words, widths)
def test_nothing_is_wider_than_asked_or_unprintable(text: str, width: int) -> None:
    lines = [*wrapped(text, width), *wrapped(text, width, most=2), fitted(text, width)]
    assert all(cells(line) <= width and line.isprintable() for line in lines)


@given(words, widths)
def test_wrapping_loses_nothing(text: str, width: int) -> None:
    assert "".join(wrapped(text, width)).replace(" ", "") == plain(text).replace(" ", "")
