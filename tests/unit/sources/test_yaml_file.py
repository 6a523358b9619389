from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, SecretStr

from advisor.domain.errors import ConfigError
from advisor.sources.yaml_file import YamlDocument, load_yaml, validate


def document(text: str) -> YamlDocument:
    return YamlDocument(Path("a.yaml"), text)


def refusal(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        document(text)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("a: no\nb: yes\nc: on", {"a": "no", "b": "yes", "c": "on"}),
        ("a: 1e3\nb: 0o17\nc: 1_000\nd: .5", {"a": 1000.0, "b": 15, "c": 1000, "d": 0.5}),
        ("a: 2026-11-29\nb: 1h30m\n", {"a": "2026-11-29", "b": "1h30m"}),
        ("a: &x [1]\nb: *x\n", {"a": [1], "b": [1]}),
        ("99.9: 1\np99: ~", {"99.9": 1, "p99": None}),
        ("{a: 1} # a comment", {"a": 1}),
        ("", None),
    ],
)
def test_it_reads_yaml_1_2(text: str, data: object) -> None:
    assert document(text).data == data


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb:\n  c: 1\n  c: 2\n", "a.yaml:4:3: key 'c' is written twice"),
        ('{"a": 1,\n "a": 2}', "a.yaml:2:2: key 'a' is written twice"),
        ("a: [1,\nb: 2", "a.yaml:2:5: not valid YAML: expected ',' or ']'"),
        ("a:\n\t- b", "a.yaml:2:1: not valid YAML: found character '\\t' that cannot start any token"),
        ("a: *x", "a.yaml:1:4: not valid YAML: found undefined alias 'x'"),
        ("a\n---\nb", "a.yaml:2:1: not valid YAML: but found another document"),
        ("a: !!python/object:os.system 1", "a.yaml:1:4: tag 'tag:yaml.org,2002:python/object:os.system' is not read"),
        ("? [a, b]\n: 1", "a.yaml:1:3: a key must be one word"),
        ("a: " + "9" * 5000, f"a.yaml:1:4: '{'9' * 40}' is not a number that can be read"),
    ],
)
def test_it_refuses_with_the_place(text: str, message: str) -> None:
    assert refusal(text).startswith(message)


def test_it_stops_deep_nesting_in_every_form() -> None:
    assert "nested deeper than 40 levels" in refusal("a: " + "[" * 60 + "]" * 60)
    assert "nested deeper than 40 levels" in refusal("a: " + "[" * 5000 + "]" * 5000)
    assert "nested deeper than 40 levels" in refusal("[" * 60 + "]" * 60)
    assert "nested deeper than 40 levels" in refusal("&a [*a]")


def test_an_alias_bomb_stops_at_the_value_limit() -> None:
    doubling = "\n".join(f"x{i}: &x{i} [{', '.join([f'*x{i - 1}'] * 9)}]" for i in range(1, 9))
    assert refusal("x0: &x0 [1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + doubling).endswith("more than 200,000 values")


def test_a_long_yaml_file_is_asked_for_as_json() -> None:
    assert "write it as plain JSON" in refusal("- 1\n" * 300_000)
    assert len(document(json.dumps([1] * 600_000)).data) == 600_000


def test_place_is_of_the_key_or_of_the_nearest_part_that_exists() -> None:
    read = document("deployments:\n  chat-70b:\n    gpu: {memory: 80GB, headroom: 8GB}\n    sweep:\n      - {a: 1}\n")
    assert read.place(("deployments", "chat-70b", "gpu", "headroom")) == "a.yaml:3:25"
    assert read.place(("deployments", "chat-70b", "sweep", 0, "a")) == "a.yaml:5:10"
    assert read.place(("deployments", "chat-70b", "sweep", 7)) == "a.yaml:4:5"
    assert read.place(()) == "a.yaml:1:1"
    assert document("").place(("a",)) == "a.yaml"


class Gpu(BaseModel):
    model_config = ConfigDict(extra="forbid")
    memory: int
    headroom: int = 0
    key: SecretStr | None = None


class Fleet(BaseModel):
    model_config = ConfigDict(extra="forbid")
    gpus: dict[str, Gpu]
    labels: list[str] = []


def invalid(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        validate(document(text), Fleet)
    return str(caught.value)


def test_validation_names_place_key_and_expectation() -> None:
    assert invalid("gpus:\n  a:\n    memory: many") == ("a.yaml:3:5: gpus.a.memory: expected a valid integer, got text")
    assert invalid("gpus:\n  a: {}") == "a.yaml:2:3: gpus.a.memory: Field required"
    assert invalid("- 1") == "a.yaml:1:1: the file: expected a mapping, got a list"
    assert invalid("") == "a.yaml: gpus: Field required"


def test_validation_says_which_known_key_is_meant() -> None:
    assert invalid("gpus:\n  a: {memory: 1, headrom: 2}") == (
        "a.yaml:2:18: unknown key 'headrom' in gpus.a.headrom; did you mean 'headroom'?"
    )
    assert invalid("gpus: {}\nzzz: 1") == "a.yaml:2:1: unknown key 'zzz' in zzz; known are gpus, labels"


def test_validation_reports_the_first_of_several_and_never_a_value() -> None:
    message = invalid("labels: [1]\ngpus:\n  a: {memory: 1, key: {inner: hunter2}}\n")
    assert message == "a.yaml:1:10: labels.0: expected a valid string, got a number (and 1 more)"
    assert "hunter2" not in invalid("gpus:\n  a: {memory: 1, key: {inner: hunter2}}\n")


def test_it_reads_files_and_refuses_what_is_no_text(tmp_path: Path) -> None:
    good, binary, huge = tmp_path / "good.yaml", tmp_path / "binary.yaml", tmp_path / "huge.json"
    good.write_bytes(b"\xef\xbb\xbfa: 1")
    binary.write_bytes(b"a: \xff")
    huge.write_bytes(b"[" + b" " * 16 * 2**20)
    assert load_yaml(good).data == {"a": 1}
    for path, problem in (
        (binary, "not UTF-8 text (byte 3)"),
        (huge, "larger than 16 MiB"),
        (tmp_path, "no such file"),
    ):
        with pytest.raises(ConfigError) as caught:
            load_yaml(path)
        assert str(caught.value) == f"{path}: {problem}"


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(plain)
def test_every_json_document_reads_as_itself(data: object) -> None:
    assert document(json.dumps([data])).data == [data]


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_in_one_line(text: str) -> None:
    try:
        problem = ""
        document(text)
    except ConfigError as error:
        problem = str(error)
    assert not problem or problem.startswith("a.yaml")
    assert "\n" not in problem
