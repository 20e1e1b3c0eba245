"""The command that teaches a shell to complete the others: ``completion``."""

from __future__ import annotations

import click
from click.shell_completion import BashComplete, FishComplete, ZshComplete

ASKS = "_VEGASMODEL_COMPLETE"  # the variable by which a shell asks for completions
SHELLS = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}


@click.command()
@click.argument("name", metavar="SHELL", type=click.Choice(list(SHELLS)))
@click.pass_context
def completion(context: click.Context, name: str) -> None:
    """Print what lets a shell complete commands by tab.

    SHELL is bash, zsh or fish.  Have it read the lines at its start:

    eval "$(vegasmodel completion bash)"

    Example: vegasmodel completion bash
    """
    app = context.find_root().command
    click.echo(SHELLS[name](app, {}, "vegasmodel", ASKS).source())
