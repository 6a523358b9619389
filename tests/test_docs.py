"""README.md cannot rot: its commands, names and paths exist, its numbers follow, and its output is the real output.

What stands between `<!-- begin WHAT -->` and `<!-- end -->`, in it or in rules/README.md, is generated, and `make
snapshots` writes it anew. WHAT is `rules`, or `COMMAND: WORD WORD`: the sections of the command's output that begin
with these words. `advisor report` is asked of a service that has judged the day of `make demo`.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import click
import pytest
import time_machine
from click.testing import CliRunner

from advisor import rule_pack
from advisor.cli import cli
from advisor.domain.advice import AdviceState, Status, Verdict
from advisor.domain.catalogue import CATALOGUE
from advisor.engines.vllm.flags import FLAGS
from advisor.rulebook.schema import Rule
from advisor.service.steps import evaluate
from advisor.settings import Config, read_settings
from advisor.sources.evidence_parts import EvidenceFile
from advisor.sources.yaml_file import load_yaml
from tests.conftest import absent
from tests.integration import test_systemd
from tests.prometheus_server import PrometheusMissingError, serve

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
TEXT = README.read_text(encoding="utf-8")
PROGRAMS = Path(sys.executable).parent
SEARCH_PATH = f"{PROGRAMS}:{os.environ['PATH']}"

GENERATED = re.compile(r"<!-- begin (?P<what>.+?) -->\n(?P<body>.*?)<!-- end -->", re.DOTALL)
FENCED = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
OTHER_PROGRAMS = {".", "jq"}
INSTALLING = {
    "apt-get",
    "python3",
    "/opt/serving-advisor/bin/pip",
    "ln",
    "install",
    "mkdir",
    "printf",
    "usermod",
    "editor",
}
SYSTEMD = {"systemctl", "systemd-sysusers", "systemd-tmpfiles"}
OPTIONS_OF_OTHERS = {"--now", "--create", "--log-requests"}
FIELDS_OF_A_REQUEST = {"stream_options", "include_usage"}
DEMO = ROOT / "config/demo"
END_OF_THE_DEMO = datetime(2026, 11, 27, tzinfo=UTC)
ADVISED: Mapping[Verdict, str] = {
    "change_flag": "`{}`",
    "add_replicas": "more replicas",
    "remove_replicas": "fewer replicas",
    "reshard": "other sharding",
    "split_workload": "a pool of its own",
    "run_sweep": "a load test",
    "fix_instrumentation": "better instrumentation",
    "investigate": "to look into it",
}


def fenced(language: str) -> list[str]:
    return [body for kind, body in FENCED.findall(TEXT) if kind == language]


def commands() -> Iterator[list[str]]:
    """Every command of the README's shell blocks, in words."""
    for line in "\n".join(fenced("sh")).replace("\\\n", " ").replace("|\n", "|").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words: list[str] = []
        for word in lexer:
            if word in {"&&", "|"}:
                yield words
                words = []
            else:
                words.append(word)
        if words:
            yield words


def command_line(words: list[str]) -> click.Context:
    """Parse a command of the advisor without running it; click refuses what does not exist."""
    command: click.Command = cli
    while isinstance(command, click.Group):
        name = words.pop(0)
        found = command.get_command(click.Context(command), name)
        assert found is not None, f"there is no command {name}"
        command = found
    return command.make_context(command.name, words)


def every_command(command: click.Command = cli) -> Iterator[click.Command]:
    yield command
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            found = command.get_command(click.Context(command), name)
            assert found is not None
            yield from every_command(found)


def weekly_report() -> str:
    """What `advisor report` prints once a service has judged the day of the demo from its sources."""
    with tempfile.TemporaryDirectory() as folder, serve(DEMO / "metrics.om.gz") as url:
        config = Path(folder, "advisor.yaml")
        sources = {
            "prometheus": {"url": url},
            "logs": {"paths": [str(DEMO / "requests.jsonl.gz")]},
            "startup_logs": [str(DEMO / "startup.log")],
            "since": "1d",
            "slo": {"tpot": "40ms", "ttft": "2s"},
            "store": {"path": f"{folder}/advisor.db"},
            "slack": {"channel": "C0EXAMPLE", "token_file": "token", "collecting_days": 0},
        }
        config.write_text(json.dumps(sources), encoding="utf-8")
        assert evaluate.run(read_settings(config), END_OF_THE_DEMO.timestamp(), None).problems == []
        with time_machine.travel(END_OF_THE_DEMO, tick=False):
            return CliRunner().invoke(cli, ["report", "-c", str(config)], catch_exceptions=False).stdout


def output_of(command: str) -> str:
    if command == "advisor report":
        try:
            return weekly_report()
        except PrometheusMissingError as error:
            absent(str(error))
    words = (
        ["/bin/sh", "config/demo/run"] if command == "make demo" else [str(PROGRAMS / "advisor"), *command.split()[1:]]
    )
    if command == "make demo" and shutil.which("prometheus", path=SEARCH_PATH) is None:
        absent("prometheus is not installed: run .ci/install-prometheus")
    environment = {"PATH": SEARCH_PATH, "HOME": os.environ.get("HOME", "/"), "LC_ALL": "C.UTF-8"}
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout


def excerpt(output: str, beginnings: list[str]) -> str:
    """The sections (between empty lines) that begin with one of these words; `...` for those between them."""
    parts: list[str] = []
    for section in output.strip("\n").split("\n\n"):
        if section.split()[0] in beginnings:
            parts.append(section)
        elif parts[-1:] != ["..."]:
            parts.append("...")
    missing = set(beginnings) - {part.split()[0] for part in parts}
    assert not missing, f"no section of the output begins with {missing}"
    return "```\n" + "\n\n".join(parts) + "\n```\n"


def table_of_rules() -> str:
    rows = ["| rule | severity | it says | it advises |", "| --- | --- | --- | --- |"]
    rows += [f"| `{rule.id}` | {rule.severity} | {rule.title} | {advised(rule)} |" for rule in rule_pack.load()]
    return "\n".join(rows) + "\n"


def advised(rule: Rule) -> str:
    return "nothing" if rule.advise is None else ADVISED[rule.advise.verdict].format(rule.advise.knob)


def generated(what: str) -> str:
    command, _, beginnings = what.rpartition(": ")
    return table_of_rules() if what == "rules" else excerpt(output_of(command), beginnings.split())


def generated_parts() -> Iterator[tuple[Path, str]]:
    for page in (README, ROOT / "rules" / "README.md"):
        yield from ((page, match["what"]) for match in GENERATED.finditer(page.read_text(encoding="utf-8")))


@pytest.mark.parametrize(("page", "what"), list(generated_parts()), ids=str)
def test_what_is_generated_is_current(page: Path, what: str, request: pytest.FixtureRequest) -> None:
    body = generated(what)
    text = page.read_text(encoding="utf-8")
    (start, end) = next(match.span("body") for match in GENERATED.finditer(text) if match["what"] == what)
    if request.config.getoption("update_snapshots"):
        page.write_text(text[:start] + body + text[end:], encoding="utf-8")
        return
    assert text[start:end] == body, f"{page} shows something else: run make snapshots and read the difference"


def test_an_excerpt_marks_what_it_leaves_out() -> None:
    assert excerpt("A 1\n\nB\nb\n\nC\n\n  D 2\n", ["A", "D"]) == "```\nA 1\n\n...\n\n  D 2\n```\n"


@pytest.mark.parametrize("words", list(commands()), ids=" ".join)
def test_commands_exist(words: list[str]) -> None:
    if words[0] == "runuser":
        words = words[words.index("--") + 1 :]
    program, *arguments = words
    if program == "advisor":
        command_line(arguments)
    elif program != "make":
        assert program in OTHER_PROGRAMS | INSTALLING | SYSTEMD


def test_a_command_that_does_not_exist_is_noticed() -> None:
    with pytest.raises(click.NoSuchOption):
        command_line(["check", "--prometeus", "http://prometheus:9090"])


def test_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = set(re.findall(r"(?:`|^)make ([a-z]+)", TEXT, re.MULTILINE))
    assert {"demo", "test", "setup"} <= named <= targets


def test_options_exist() -> None:
    options = {word for command in every_command() for option in command.params for word in option.opts}
    flags = {"--" + flag.replace("_", "-") for flag in FLAGS}
    assert {"--slo-tpot", "--until"} <= options
    assert set(re.findall(r"(?<![\w<-])--[a-z][a-z-]+", TEXT)) - options - flags == OPTIONS_OF_OTHERS


def test_paths_exist() -> None:
    paths = set(re.findall(r"(?<![\w/-])(?:advisor|config|rules|systemd|tests)/[\w./-]+\.\w+", TEXT))
    assert len(paths) >= 3
    assert [path for path in paths if not (ROOT / path).exists()] == []


def keys(document: Any) -> Iterator[str]:
    """Every property that a JSON schema names."""
    if isinstance(document, dict):
        yield from document.get("properties", {})
        yield from (key for value in document.values() for key in keys(value))


def test_names_exist() -> None:
    named = set(re.findall(r"`(?:[^`\n]*[^\w`\n])??([a-z][a-z0-9]*(?:_[a-z0-9]+)+)", TEXT))
    settings = {*keys(Config.model_json_schema()), *keys(EvidenceFile.model_json_schema())}
    known = {*CATALOGUE, *FLAGS, *settings, *Rule.model_fields, *get_args(Status), *FIELDS_OF_A_REQUEST}
    assert {"max_num_seqs", "sample_budget", "total_tokens", "cannot_tell"} <= named
    assert named - known == set()


def test_the_numbers_of_the_worked_example_follow() -> None:
    ran = CliRunner().invoke(
        cli, ["check", "--evidence", str(ROOT / "config/examples/chat-70b.yaml"), "-o", "json"], catch_exceptions=False
    )
    facts = json.loads(ran.stdout)["deployments"][0]["facts"]
    whole = ("recommended_max_model_len", "kv_pool_tokens_predicted", "memory_ceiling_guaranteed", "latency_ceiling")
    numbers = {f"{facts[name]['value']:,.0f}" for name in (*whole, "prefill_tokens_per_step_left")}
    numbers.add(f"{facts['max_model_len_cost_ratio']['value']:.2f}")
    assert set(re.findall(r"\*\*([\d.,]+)\*\*", TEXT)) == numbers


def test_it_installs_what_the_tests_boot() -> None:
    """systemd's own tests put the same files in the same places, and start the program that pip puts there."""
    copied = {words[-1]: words[-2] for words in commands() if words[0] == "install"}
    for target in test_systemd.FILES:
        if target.endswith((".conf", ".service")) and ".service.d/" not in target:
            assert (ROOT / copied[target]).read_text(encoding="utf-8") == test_systemd.FILES[target]
    unit = test_systemd.UNIT.read_text(encoding="utf-8")
    assert "ExecStart=/opt/serving-advisor/bin/advisor run -c /etc/advisor/advisor.yaml\n" in unit
    assert "/etc/advisor/advisor.yaml" in copied
    assert "#LoadCredential=slack-token:/etc/advisor/slack.token\n" in unit
    assert repr(test_systemd.WITH_TOKEN)[1:-1] in TEXT


def test_the_configuration_that_it_shows_is_read(tmp_path: Path) -> None:
    (body,) = [body for body in fenced("yaml") if body.startswith("# /etc/advisor/advisor.yaml\n")]
    (tmp_path / "advisor.yaml").write_text(body, encoding="utf-8")
    settings = read_settings(tmp_path / "advisor.yaml")
    assert settings.slack is not None
    assert str(settings.slack.token_file) == "/run/credentials/serving-advisor.service/slack-token"
    assert settings.schedule.timezone == "Europe/Berlin"


def test_prometheus_scrapes_the_job_that_the_alerts_watch(tmp_path: Path) -> None:
    (body,) = [body for body in fenced("yaml") if body.startswith("# prometheus.yml\n")]
    (tmp_path / "prometheus.yml").write_text(body, encoding="utf-8")
    scraped = load_yaml(tmp_path / "prometheus.yml").data
    (job,) = scraped["scrape_configs"]
    (rules,) = scraped["rule_files"]
    assert f'up{{job="{job["job_name"]}"}}' in (ROOT / rules).read_text(encoding="utf-8")
    assert job["static_configs"] == [{"targets": [read_settings(None).web.listen]}]


def test_every_state_of_advice_is_explained_once() -> None:
    assert re.findall(r"^\| `(\w+)` \| [^|]+ \| [^|]* \|$", TEXT, re.MULTILINE) == list(get_args(AdviceState))


def test_what_it_says_of_keeping_is_the_default() -> None:
    store = read_settings(None).store
    assert f"`{store.path}`" in TEXT
    assert f"deleted after {store.retention_days} days (`retention_days`)" in " ".join(TEXT.split())
