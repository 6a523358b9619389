"""The command line. Each command is a file, imported when it is called, so that help and version answer at once."""

from __future__ import annotations

import importlib
import os
import sys
from io import TextIOWrapper
from pathlib import Path
from typing import Any, NoReturn

import click

from advisor import __version__
from advisor.domain.errors import AdvisorError, SourceError

COMMANDS = {
    "check": "one evaluation: gathers from the sources named, prints the advice",
    "run": "the daemon",
    "status": "current advice of every deployment, one line each",
    "show": "everything about one deployment, with its charts",
    "explain": "what a rule checks, why it costs, how to change, verify and undo",
    "history": "advice over time, and how its predictions scored",
    "snooze": "silence a piece of advice until a date",
    "reject": "silence a piece of advice while it is the same",
    "reopen": "let snoozed or rejected advice speak again",
    "report": "the weekly report, now: to look at, or --post to Slack",
    "rules": "the rule packs: list, lint, test",
    "backtest": "what would have been advised, replayed over history",
    "sweep": "the load test to run, with the deployment's own lengths; its result",
    "exporter": "the host agent: this host's logs as histograms on /metrics",
    "doctor": "sources reachable, metrics present, missing or renamed, coverage",
    "config": "the configuration: check, schema, show",
    "completion": "the script by which bash, zsh or fish completes commands",
}
USAGE, NOT_JUDGED, INTERRUPTED = 2, 3, 130


class LazyGroup(click.Group):
    """A group whose commands are modules of this package, named as they are."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """The commands in the order of the contract."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import the module of one command."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"advisor.cli.{cmd_name}").command
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. A reader that has gone ends it before click takes that for an error (exit code 1)."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            _discard_stdout()
            return 0

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="advisor", message="%(prog)s %(version)s")
def cli() -> None:
    """Which flags should these LLM servers run with? Reads, advises, never acts."""


def main() -> NoReturn:
    """Run the command line; every error is one line on stderr."""
    _accept_any_text()
    try:
        code = cli.main(prog_name="advisor", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        sys.exit(USAGE)
    except click.ClickException as error:
        _fail(_with_hint(error), USAGE)
    except (click.Abort, KeyboardInterrupt):
        _fail("interrupted", INTERRUPTED)
    except BrokenPipeError:
        _discard_stdout()
        sys.exit(0)
    except SourceError as error:
        _fail(str(error), NOT_JUDGED)
    except AdvisorError as error:
        _fail(str(error), USAGE)
    except OSError as error:
        _discard_stdout()
        _fail(f"{error.filename or 'standard output'} cannot be used: {error.strerror}", USAGE)
    sys.exit(code if isinstance(code, int) else 0)


def _accept_any_text() -> None:
    """A terminal that cannot show a character of a model's name gets it spelled out; it is no reason to stop."""
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - stands in until the end
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _discard_stdout() -> None:
    """Nobody reads it any more; the interpreter must not complain once more when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str, code: int) -> NoReturn:
    from advisor.outlets.plain import plain

    click.echo(f"advisor: {plain(message)}", err=True)
    sys.exit(code)


def _with_hint(error: click.ClickException) -> str:
    where = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "advisor"
    return f"{error.format_message().rstrip('.')}: see {where} --help"
