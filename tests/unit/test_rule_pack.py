"""Rule files: where they may lie, which one wins, and what is said of one that cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor import rule_pack
from advisor.domain.errors import ConfigError

pytestmark = pytest.mark.slow

RULE = """id: {id}
title: A title
severity: info
when:
  - running_p95 >= 1
reason: a reason
what: What.
why: Why.
evidence: Evidence.
change: Change.
verify: Verify.
undo: Undo.
limits: Limits.
"""
CASES = """cases:
  - {name: a, expect: fires, facts: {running_p95: 8}}
  - {name: b, expect: not_fires, facts: {running_p95: 0}}
  - {name: c, expect: undetermined}
"""


def written(folder: Path, rule_id: str, *, at: str = "", cases: str | None = CASES, text: str = RULE) -> Path:
    path = folder / at / f"{rule_id.split('/')[1]}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.format(id=rule_id))
    if cases is not None:
        path.with_name(f"{path.stem}.test.yaml").write_text(cases)
    return path


def test_rules_are_read_in_the_order_of_their_ids(tmp_path: Path) -> None:
    for rule_id in ("b/two", "a/three", "b/one"):
        written(tmp_path, rule_id, at=rule_id.split("/", maxsplit=1)[0])
    files = rule_pack.read([tmp_path])
    assert [file.rule.id for file in files] == ["a/three", "b/one", "b/two"]
    assert rule_pack.lint(files) == rule_pack.test(files) == ()


def test_a_rule_of_the_users_replaces_the_shipped_one(tmp_path: Path) -> None:
    written(tmp_path, "health/idle-seats")
    shipped, both = rule_pack.load(), rule_pack.load([tmp_path])
    assert len(both) == len(shipped)
    assert {rule.id: rule.title for rule in both}["health/idle-seats"] == "A title"


def test_the_last_directory_wins(tmp_path: Path) -> None:
    written(tmp_path / "one", "a/a")
    written(tmp_path / "two", "a/a", text=RULE.replace("A title", "Another"))
    (file,) = rule_pack.read([tmp_path / "one", tmp_path / "two"])
    assert file.rule.title == "Another"


def test_one_directory_does_not_say_a_thing_twice(tmp_path: Path) -> None:
    written(tmp_path, "a/a", at="one")
    written(tmp_path, "a/a", at="two")
    with pytest.raises(ConfigError, match=r"two/a\.yaml: the id a/a is also that of .*one/a\.yaml: rename one"):
        rule_pack.read([tmp_path])


def test_a_directory_without_rules_is_a_slip(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no rule in it"):
        rule_pack.read([tmp_path])
    with pytest.raises(ConfigError, match="no such directory of rules"):
        rule_pack.read([tmp_path / "missing"])


def test_the_name_of_the_file_is_the_second_half_of_the_id(tmp_path: Path) -> None:
    written(tmp_path, "a/a").rename(tmp_path / "b.yaml")
    with pytest.raises(ConfigError, match=r"b\.yaml:1:1: the id a/a does not match the file's name, b\.yaml"):
        rule_pack.read([tmp_path])


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("running_p95 >= 1", "runing_p95 >= 1", r'a\.yaml:5:5: when\.0: unknown fact "runing_p95"'),
        ("severity: info", "severity: fatal", r"a\.yaml:3:1: severity: expected"),
        ("reason: a reason", "reason: '{{nothing}}'", r'a\.yaml:6:1: reason: unknown fact "nothing"'),
        ("limits: Limits.", "limit: Limits.", r"a\.yaml"),
        ("what: What.", "what: [What", r"a\.yaml:\d+:\d+: not valid YAML"),
    ],
)
def test_a_mistake_is_named_with_its_place(tmp_path: Path, old: str, new: str, place: str) -> None:
    written(tmp_path, "a/a", text=RULE.replace(old, new))
    with pytest.raises(ConfigError, match=place):
        rule_pack.read([tmp_path])


def test_a_mistake_in_a_case_is_named_with_its_place(tmp_path: Path) -> None:
    written(tmp_path, "a/a", cases=CASES.replace("running_p95: 8", "running_p59: 8"))
    with pytest.raises(ConfigError, match=r'a\.test\.yaml:2:\d+: .*unknown fact "running_p59"'):
        rule_pack.read([tmp_path])


def test_the_linter_wants_cases(tmp_path: Path) -> None:
    path = written(tmp_path, "a/a", cases=None)
    files = rule_pack.read([tmp_path])
    assert rule_pack.lint(files) == (f"{path}: no test cases beside it (a.test.yaml)",)
    assert rule_pack.test(files) == ()


def test_a_contradiction_is_reported(tmp_path: Path) -> None:
    written(tmp_path, "a/a", cases=CASES.replace("running_p95: 0", "running_p95: 9"))
    found = rule_pack.test(rule_pack.read([tmp_path]))
    assert found == ("a/a: case 'b' expects not_fires, the rule says fires",)


def test_a_rule_gives_way_only_to_one_that_exists(tmp_path: Path) -> None:
    written(tmp_path, "a/a", text=RULE + "gives_way_to: [health/idle-seat]\n")
    with pytest.raises(ConfigError, match=r"a\.yaml: it comes behind 'health/idle-seat'.*mean 'health/idle-seats'\?"):
        rule_pack.load([tmp_path])


def test_rules_that_give_way_in_a_circle_are_refused(tmp_path: Path) -> None:
    written(tmp_path, "a/a", text=RULE + "gives_way_to: [b/b]\n")
    written(tmp_path, "b/b", text=RULE + "gives_way_to: [a/a]\n")
    with pytest.raises(ConfigError, match="would all be silent: "):
        rule_pack.load([tmp_path])
