"""Rule files -> rules: the pack that ships with the advisor, and directories of the user's own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from advisor.domain.errors import ConfigError
from advisor.rulebook import casebook, schema
from advisor.rulebook.schema import Rule
from advisor.sources.yaml_file import load_yaml, nearest, validate

TEST_SUFFIX = ".test.yaml"
MOST_FILES = 2000


@dataclass(frozen=True, slots=True)
class RuleFile:
    """A rule, where it is written, and its test cases where there are any."""

    rule: Rule
    path: Path
    cases: casebook.Casebook | None


def shipped_directory(name: str) -> Path:
    """A top-level folder (`rules`, `config`) as installed in the wheel, else as it lies in a checkout."""
    package = Path(__file__).parent
    installed = package / "_data" / name
    return installed if installed.is_dir() else package.parent / name


def load(directories: Iterable[Path] = ()) -> tuple[Rule, ...]:
    """The shipped rules and the user's; a user's rule of the same id replaces the shipped one.

    ConfigError where one gives way to a rule that does not exist, or rules give way to each other in a circle.
    """
    files = read([shipped_directory("rules"), *directories])
    before = {file.rule.id: file.rule.gives_way_to for file in files}
    for file in files:
        for other in (*file.rule.gives_way_to, *file.rule.after):
            if other not in before:
                hint = nearest(other[:60], before)
                raise ConfigError(f"{file.path}: it comes behind {other[:60]!r}, which is no rule: {hint}")
    try:
        TopologicalSorter(before).prepare()
    except CycleError as error:
        circle = ", ".join(error.args[1])
        raise ConfigError(f"rules that give way to each other would all be silent: {circle}: cut the circle") from None
    return tuple(file.rule for file in files)


def read(directories: Iterable[Path]) -> tuple[RuleFile, ...]:
    """Every rule file under the directories, in the order of ids; ConfigError names file, line and column."""
    found: dict[str, RuleFile] = {}
    for directory in directories:
        here: dict[str, RuleFile] = {}
        for file in _files(directory):
            if other := here.get(file.rule.id):
                raise ConfigError(f"{file.path}: the id {file.rule.id} is also that of {other.path}: rename one")
            here[file.rule.id] = file
        if not here:
            raise ConfigError(f"{directory}: no rule in it: rules are files such as AREA/NAME.yaml")
        found |= here
    return tuple(found[key] for key in sorted(found))


def lint(files: Iterable[RuleFile]) -> tuple[str, ...]:
    """What the authors should mend, one line each: schema advice, and a rule without cases."""
    lines: list[str] = []
    for file in files:
        lines += [f"{file.path}: {problem}" for problem in schema.problems(file.rule)]
        if file.cases is None:
            lines.append(f"{file.path}: no test cases beside it ({file.path.stem}{TEST_SUFFIX})")
    return tuple(lines)


def test(files: Iterable[RuleFile]) -> tuple[str, ...]:
    """What the rules' own cases contradict, one line each."""
    return tuple(line for f in files if f.cases is not None for line in casebook.failures(f.rule, f.cases))


def _files(directory: Path) -> Iterable[RuleFile]:
    if not directory.is_dir():
        raise ConfigError(f"{directory}: no such directory of rules: give one with --rules DIR")
    paths = sorted(p for p in directory.rglob("*.yaml") if not p.name.endswith(TEST_SUFFIX))
    if len(paths) > MOST_FILES:
        raise ConfigError(f"{directory}: {len(paths):,} rule files; at most {MOST_FILES:,} are read")
    for path in paths:
        document = load_yaml(path)
        rule = validate(document, Rule)
        if path.stem != rule.id.split("/")[1]:
            raise ConfigError(f"{document.place(['id'])}: the id {rule.id} does not match the file's name, {path.name}")
        test_path = path.with_name(path.stem + TEST_SUFFIX)
        cases = validate(load_yaml(test_path), casebook.Casebook) if test_path.is_file() else None
        yield RuleFile(rule, path, cases)
