from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.engines.printed_arguments import printed_arguments


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("'a': 1, 'b': 'x, y', 'c': ['p', 'q']", {"a": 1, "b": "x, y", "c": ["p", "q"]}),
        (
            "host=None, port=8000, model='m', rope_scaling={'a': 1, 'b': 2}",
            {"host": None, "port": 8000, "model": "m", "rope_scaling": {"a": 1, "b": 2}},
        ),
        (
            "dtype=torch.bfloat16, kv_cache_dtype=auto, seed=0",
            {"dtype": "torch.bfloat16", "kv_cache_dtype": "auto", "seed": 0},
        ),
        ("'mode': <Mode.NONE: 0>, 'n': 2", {"mode": "<Mode.NONE: 0>", "n": 2}),
        (r"'a': 'it\'s, here', 'b': 2", {"a": "it's, here", "b": 2}),
        ("c=Config(method='eagle', n=3), d=1", {"c": "Config(method='eagle', n=3)", "d": 1}),
        ("", {}),
        ("nonsense", {}),
    ],
)
def test_it_reads_every_printed_form(text: str, arguments: dict[str, object]) -> None:
    assert printed_arguments(text) == arguments


def test_it_never_runs_what_it_reads_and_stays_within_bounds() -> None:
    assert printed_arguments("'a': __import__('os').getcwd()") == {"a": "__import__('os').getcwd()"}
    assert printed_arguments("'a': " + "[" * 90 + "]" * 90) == {"a": "[" * 90 + "]" * 90}
    assert len(str(printed_arguments("'a': '" + "x" * 10_000 + "'")["a"])) == 4096


@given(
    st.dictionaries(
        st.from_regex(r"[a-z_]{1,8}", fullmatch=True),
        st.integers() | st.text(max_size=30) | st.none() | st.lists(st.booleans()),
        max_size=6,
    )
)
def test_the_repr_of_any_plain_dict_reads_as_itself(arguments: dict[str, object]) -> None:
    assert printed_arguments(repr(arguments)[1:-1]) == arguments


@given(st.text(max_size=200))
def test_any_text_is_survived(text: str) -> None:
    assert isinstance(printed_arguments(text), dict)
