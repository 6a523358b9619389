"""`advisor completion`: the script by which a shell completes commands and options."""

from __future__ import annotations

import click

VARIABLE = "_ADVISOR_COMPLETE"


@click.command(name="completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script of a shell.

    \b
    bash: advisor completion bash > ~/.local/share/bash-completion/completions/advisor
    zsh:  advisor completion zsh > DIRECTORY-OF-FPATH/_advisor
    fish: advisor completion fish > ~/.config/fish/completions/advisor.fish
    """
    from click.shell_completion import ShellComplete, get_completion_class

    from advisor.cli import cli

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"no completion for {shell}")
    # Not the shell's own class: for bash it would ask the bash that is installed here for its version.
    click.echo(ShellComplete.source(kind(cli, {}, "advisor", VARIABLE)))
