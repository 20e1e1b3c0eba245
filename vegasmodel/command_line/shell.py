"""Runs the command ``completion``, which prints a script for completion in the shell.

With this script, the tab key completes the commands and options of ``vegasmodel``.
"""

from __future__ import annotations

import click
from click.shell_completion import BashComplete, FishComplete, ZshComplete

from vegasmodel.command_line import inputs
from vegasmodel.fields.rules import Choice

# environment variable with which a shell asks for completions
COMPLETION_VARIABLE = "_VEGASMODEL_COMPLETE"
SHELLS = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}


@click.command()
@click.argument("name", metavar="SHELL", shell_complete=inputs.offer(lambda _: SHELLS))
@inputs.as_json
@click.pass_context
def completion(context: click.Context, name: str, json: bool) -> None:
    """Print a script that completes commands by the tab key.

    SHELL is bash, zsh or fish.  Add this line to the shell's start-up file:

    eval "$(vegasmodel completion bash)"

    Example: vegasmodel completion bash
    """
    Choice(tuple(SHELLS)).check(name, "name")
    completer = SHELLS[name](context.find_root().command, {}, "vegasmodel", COMPLETION_VARIABLE)
    # the method ``source`` of click would run a shell first
    lines = completer.source_template % completer.source_vars()
    if json:
        from vegasmodel.report.console import print_json

        print_json({"shell": name, "lines": lines})
    else:
        click.echo(lines)
