"""The command line. Each command is a file, imported when it is called, so that help and version answer at once."""

from __future__ import annotations

import importlib
import os
import sys
from typing import NoReturn

import click

from advisor import __version__
from advisor.domain.errors import AdvisorError, SourceError

COMMANDS = {
    "check": "one evaluation: gathers from the sources named, prints the advice",
    "explain": "what a rule checks, why it costs, how to change, verify and undo",
    "rules": "the rule packs: list, lint, test",
    "doctor": "sources reachable, metrics present, missing or renamed, coverage",
    "config": "the configuration: check, schema, show",
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
    try:
        code = cli.main(prog_name="advisor", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        _fail(_with_hint(error), USAGE)
    except (click.Abort, KeyboardInterrupt):
        _fail("interrupted", INTERRUPTED)
    except BrokenPipeError:
        # The reader has gone; the interpreter must not complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except SourceError as error:
        _fail(str(error), NOT_JUDGED)
    except AdvisorError as error:
        _fail(str(error), USAGE)
    sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str, code: int) -> NoReturn:
    from advisor.outlets.plain import plain

    click.echo(f"advisor: {plain(message)}", err=True)
    sys.exit(code)


def _with_hint(error: click.ClickException) -> str:
    where = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "advisor"
    return f"{error.format_message().rstrip('.')}: see {where} --help"
