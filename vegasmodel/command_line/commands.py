"""Runs the command ``vegasmodel``: calls a subcommand and ends with an exit status.

Results go to standard output, all other text goes to standard error. The module ``support.exits``
lists the exit statuses.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from typing import NoReturn

import click
from click.shell_completion import shell_complete

from vegasmodel.command_line import (
    basins,
    closed_forms,
    design,
    maps,
    papers,
    predictions,
    scenario_files,
    shell,
    stability,
    sweep,
    traces,
)
from vegasmodel.fields.errors import MISSING, FieldError
from vegasmodel.fields.rules import nearest
from vegasmodel.support import exits, progress

NAME = "vegasmodel"
ONLY_IN_PYTHON = (  # functions without a command of the same name
    "batch", "limit_cycle", "limit_cycles", "predict_all", "sensitivity", "uncertainty"
)  # fmt: skip

INSTEAD = {  # of an option that takes one value: what to do if a user wants several
    "--for": " design takes one target. To meet several at once, sweep the field with the command "
    "sweep, and choose the values that meet them all."
}


def _version(context: click.Context, _: click.Parameter, asked: bool) -> None:
    """Print the version and end the command, if the option ``--version`` is given."""
    if asked:
        from vegasmodel import __version__

        click.echo(f"vegasmodel {__version__}")
        context.exit()


class _Commands(click.Group):
    """A group of commands that refuse an option given twice, unless it may have several values.

    By default click would use the last value.  If an unknown command is a function that exists in
    Python only, the error says so.
    """

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that ``args`` begin with; raise click's ``UsageError`` for bad words."""
        name_in_python = args[0].replace("-", "_")
        if name_in_python in ONLY_IN_PYTHON and self.get_command(ctx, args[0]) is None:
            in_python = f"In Python there is vegasmodel.{name_in_python}."
            raise click.UsageError(f"No such command {args[0]!r}. {in_python}")
        if not ctx.resilient_parsing and self.get_command(ctx, args[0]) is None:
            hint = nearest(args[0], self.list_commands(ctx)).removeprefix("; ").capitalize()
            listed = "'vegasmodel --help' lists the commands."
            raise click.UsageError(f"No such command {args[0]!r}. {hint or listed}")
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None and not ctx.resilient_parsing:
            own_context = click.Context(command, parent=ctx)
            _, _, given = command.make_parser(own_context).parse_args(args=list(rest))
            for option in given:
                may_repeat = (
                    not isinstance(option, click.Option) or option.multiple or option.is_flag
                )
                if not may_repeat and given.count(option) > 1:
                    text = f"Option '{option.opts[0]}' is given more than once."
                    raise click.UsageError(text + INSTEAD.get(option.opts[0], ""))
        return name, command, rest


@click.group(
    cls=_Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
)
@click.option("--version", is_flag=True, callback=_version, is_eager=True, expose_value=False,
              help="Print the version.")  # fmt: skip
@click.pass_context
def app(context: click.Context) -> None:
    """How TCP Vegas and its rivals share a bottleneck: predicted, simulated, measured."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


for command in (
    predictions.ratio,
    predictions.predict,
    traces.simulate,
    predictions.measure,
    predictions.compare,
    traces.convert,
    papers.paper,
    scenario_files.new,
    scenario_files.inspect,
    scenario_files.explain,
    closed_forms.equilibrium,
    closed_forms.arrivals,
    closed_forms.rd,
    design.design,
    sweep.sweep,
    basins.basins,
    stability.stability,
    maps.draw_map,
    shell.completion,
):
    app.add_command(command)


def main() -> NoReturn:
    """Run the command that the process's arguments name, and exit with its status."""
    progress.of_a_command()
    exits.main(run)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit status.

    ``arguments`` are those of the process by default.  An expected failure, such as bad input,
    prints one line on standard error.
    """
    try:
        if asked := os.environ.get(shell.COMPLETION_VARIABLE):
            return shell_complete(app, {}, NAME, shell.COMPLETION_VARIABLE, asked)
        given = sys.argv[1:] if arguments is None else arguments
        with app.make_context(NAME, list(given)) as context:
            _invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.NoSuchOption as error:
        return exits.status_of(_hinted(error, given))
    except click.MissingParameter as error:
        return exits.status_of(_missing(error))
    except (Exception, KeyboardInterrupt, SystemExit) as error:
        return exits.status_of(error)
    return exits.DONE


def _hinted(error: click.NoSuchOption, given: Sequence[str]) -> click.UsageError:
    """The error about an unknown option, with a hint on what the user may have meant.

    ``given`` are the words of the command line. There is a hint in four cases:

    - The option is ``--set``, with which other programs change a value of their input file: the
      hint names the command that does so.
    - The option is ``--runs`` of ``basins``: the hint names ``--starts``.
    - The option is a key of a scenario file, such as ``--seed``: the hint names the key's table.
    - The word has one dash, such as ``-model``: the hint says that options have two. If a file has
      this name, the hint says instead how to write the name as an argument.
    """
    from vegasmodel.scenario.other_tables import tables_with

    if error.option_name == "--runs" and given[0] == "basins":
        text = "It makes one run from each random start; --starts says how many."
        return click.UsageError(f"No such option '--runs'. {text}")
    if error.option_name == "--set":
        text = "'vegasmodel sweep FILE --over FIELD=VALUE,VALUE' predicts with other values."
        return click.UsageError(f"No such option '--set'. {text}")
    tables = tables_with(error.option_name.removeprefix("--").replace("-", "_"))
    if tables and error.option_name.startswith("--"):
        text = f"In a scenario file it is a key of {tables}."
        return click.UsageError(f"No such option {error.option_name!r}. {text}")
    word = next((each for each in given if re.match("-[A-Za-z]{2}", each)), "")
    if error.option_name.startswith("--") or error.option_name[1:] not in word:
        return error
    name = word.partition("=")[0]
    if os.path.lexists(word):
        return click.UsageError(f"No such option {name!r}. For the file, write './{word}'.")
    return click.UsageError(f"No such option {name!r}. Options have two dashes: '-{name}'.")


def _missing(error: click.MissingParameter) -> Exception:
    """The error about a missing option or argument, with the help of the option or the usage."""
    if isinstance(error.param, click.Option) and error.param.help:
        # the help without its full stop, and without the capital letter at its beginning
        first, *words = re.sub(r"(?<!\.)\.$", "", error.param.help).split(" ")
        text = " ".join([first if first.isupper() else first.lower(), *words])
        name = " ".join(filter(None, [error.param.opts[0], error.param.metavar]))
        return FieldError(name, None, text, wrong=MISSING)
    if error.param is None or error.ctx is None:
        return error
    usage = error.ctx.get_usage().replace("Usage:", "usage:")
    name = str(error.param.metavar).strip("[]")
    return FieldError(name, None, " ".join(usage.split()), wrong=MISSING)


def _invoke(context: click.Context) -> None:
    """Run the command; if an argument is wrong, the error names the command-line option.

    The command may raise a ``FieldError`` that names one of its Python arguments. This function
    replaces that name by the option, such as ``--runs``, or by the word in the help that stands for
    the argument, such as ``PAPER``.  A key of a file keeps its name.
    """
    try:
        app.invoke(context)
    except FieldError as error:
        name, comma, rest = error.field.partition(",")
        command = app.commands[str(context.invoked_subcommand)]
        words = {
            each.name: each.opts[0]
            if isinstance(each, click.Option)
            else str(each.metavar).strip("[]")
            for each in command.params
        }
        if error.file or name not in words:
            raise
        raise error.of(f"{words[name]}{comma}{rest}") from None
