"""Defines arguments and options that several commands share, and reads scenario files."""

from __future__ import annotations

import errno
import os
import shlex
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vegasmodel.fields.errors import FieldError, printable

if TYPE_CHECKING:
    from vegasmodel.scenario import Scenario

__all__ = [
    "FILE", "NUMBER", "WHOLE", "alpha", "as_json", "capacity", "check_picture", "engine", "engines",
    "fields", "laws", "load", "model", "models", "no_trace", "of_models", "offer", "packet_size",
    "per_flow", "plot", "register", "runs", "scenario", "timeout", "trace_format", "uncertain",
    "variant",
]  # fmt: skip


class File(click.Path):
    """The type of an argument or option that names a file or folder.

    The name must not be empty, nor longer than the operating system allows.
    """

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value as a ``Path``.  By default, click takes empty text for the current folder."""
        name = param.make_metavar(ctx) if isinstance(param, click.Argument) and ctx else ""
        field = name.strip("[]") or str(param and param.name)
        if value == "":
            raise FieldError(field, value, "the name of a file")
        try:
            os.lstat(value)
        except OSError as error:  # of other errors, the command says what they prevent
            if error.errno == errno.ENAMETOOLONG:
                shorter = "a shorter name"
                raise FieldError(field, str(value), shorter, wrong="is too long") from None
        return super().convert(value, param, ctx)


FILE = File(path_type=Path)


class Number(click.types.FloatParamType):
    """The type of an option whose value is a number; errors and the help call it a number.

    Click's own type calls it a float.
    """

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, _: click.Context | None) -> Any:
        """The value as a float."""
        return _read(float, value, param, "a number")


class Whole(click.types.IntParamType):
    """The type of an option whose value is a whole number; errors say so."""

    def convert(self, value: Any, param: click.Parameter | None, _: click.Context | None) -> Any:
        """The value as an int."""
        return _read(int, value, param, "a whole number")


def _read(kind: type[float], value: Any, param: click.Parameter | None, allowed: str) -> float:
    """The value of an option as a number; if it is none, ``FieldError`` with ``allowed``."""
    try:
        return kind(value)
    except ValueError:
        raise FieldError(str(param and param.name), value, allowed) from None


NUMBER, WHOLE = Number(), Whole()


def offer(words: Callable[[click.Context], Iterable[str]]) -> Any:
    """Make the function for click's parameter ``shell_complete``, which completes words by tab.

    The function completes an option or an argument. ``words`` gets click's context, and returns all
    words that the shell may offer. If ``words`` fails, for example because a scenario file has a
    mistake, no word is offered.
    """

    def complete(context: click.Context, _: click.Parameter, begun: str) -> list[str]:
        """The words that complete ``begun``, the part that the user has typed."""
        try:
            return [word for word in words(context) if word.startswith(begun)]
        except Exception:  # a message would disturb the line that the user types
            return []

    return complete


def models(_: click.Context) -> list[str]:
    """The names of all models that predict throughputs."""
    from vegasmodel.predictor import MODELS

    return list(MODELS)


def engines(_: click.Context) -> Iterable[str]:
    """The names of the packet simulators."""
    from vegasmodel.measurement import ENGINES

    return ENGINES


def _variants(_: click.Context) -> Iterable[str]:
    """The names of the TCP implementations, which the tab key offers."""
    from vegasmodel.stacks import STACKS

    return STACKS


def _formats(_: click.Context) -> Iterable[str]:
    """The names of the formats of traces, which the tab key offers."""
    from vegasmodel.packets.reading import FORMATS

    return ("auto", *FORMATS)


def fields(context: click.Context) -> list[str]:
    """The names of the fields that ``sweep`` and ``design`` can vary, for completion by tab.

    They are the fields of the scenario file that the command line names.
    """
    from vegasmodel.study.fields import known

    # after an option without its value click leaves the arguments as they are
    return known(load(Path(context.params.get("scenario") or context.args[0])))


scenario = click.argument("scenario", metavar="SCENARIO.toml", type=FILE)
laws = click.option(
    "--laws",
    multiple=True,
    type=FILE,
    metavar="FILE.py",
    help="Run this file, which registers your own laws.",
)
as_json = click.option("--json", is_flag=True, help="Print one JSON document.")
plot = click.option("--plot", type=FILE, help="Write a picture (.png, .svg or .pdf).")
per_flow = click.option("--flows", is_flag=True, help="Print a row for every flow.")
uncertain = click.option(
    "--uncertain",
    multiple=True,
    metavar="FIELD=ERROR",
    help="Standard deviation of rtt, capacity, over_estimate or a field: rtt=5%, link.buffer=2pkt. "
    "For closed forms only.",
)
timeout = click.option(
    "--timeout",
    help="Stop a simulator's run after this time. Default: 120 s, and more if it has many packets.",
)
runs = click.option(
    "--runs",
    type=WHOLE,
    help="Number of runs to average, if chance decides them. Default: the file's runs, or one; "
    "fluid and rounds: up to five.",
)
engine_runs = click.option(
    "--runs",
    type=WHOLE,
    help="Number of runs of the packet simulator to average. Default: the file's runs; without "
    "them compare makes 3 if runs differ by chance, and measure one.",
)
trace_format = click.option(
    "--format",
    default="auto",
    shell_complete=offer(_formats),
    help="Format of the trace; auto: found from its content.",
)
of_models = click.option(
    "--model",
    multiple=True,
    shell_complete=offer(lambda context: [*models(context), "all"]),
    help="A model's name, or all; may be repeated. Default: every closed form, no simulator.",
)
model = click.option(
    "--model",
    default="rounds",
    shell_complete=offer(lambda context: [*models(context), *engines(context)]),
    help="A model that predict has, or ns2 or ns3.",
)
engine = click.option(
    "--engine",
    default="ns2",
    shell_complete=offer(engines),
    help="Packet-level simulator: ns2 or ns3.",
)

CAPACITY = 'Capacity of the bottleneck, such as 250pkt/s or "1.5 Mbit/s".'
capacity = click.option("--capacity", required=True, help=CAPACITY)
packet_size = click.option(
    "--packet-size", default="1000 B", help="Size of a data packet with its headers."
)
alpha = click.option(  # one number for alpha and beta, as in the models with one threshold
    "--alpha",
    default="2",
    help="Packets that Vegas keeps queued, one value or a list. If alpha < beta: "
    "(alpha + beta) / 2.",
)
variant = click.option(
    "--variant",
    default="paper",
    shell_complete=offer(_variants),
    help="Whose Vegas: paper, ns2 or linux.",
)


def register(files: Iterable[Path]) -> None:
    """Run the Python files of ``--laws``, which register the user's own laws."""
    if files:
        from vegasmodel import laws

        for file in files:
            laws.register_file(file)


def check_picture(path: Path | None) -> None:
    """Check, before a long computation, that ``--plot`` can write a picture to this path.

    Nothing is checked if ``path`` is ``None``, because no picture is wanted then.
    """
    if path is not None:
        from vegasmodel.report.console import output_path
        from vegasmodel.support import extras

        extras.need("plot", "--plot")
        output_path(path, "--plot", (".png", ".svg", ".pdf"))


def load(scenario: Path, files: Iterable[Path] = ()) -> Scenario:
    """Read a scenario file and return the scenario.

    ``files`` are Python files of the user that define congestion control laws. They are run first,
    because the scenario may use these laws.  Raises ``FieldError`` for a file that is not valid.
    """
    from vegasmodel.scenario import load as read

    register(files)
    with no_trace(scenario):
        return read(scenario)


@contextmanager
def no_trace(scenario: Path) -> Iterator[None]:
    """If the ``with`` block cannot read a scenario file, because it is a trace, say so."""
    try:
        yield
    except FieldError:
        if not _is_trace(scenario):
            raise
        name = printable(str(scenario))
        command = f"vegasmodel new SCENARIO.toml --from-trace {shlex.quote(name)}"
        advice = f"`{command}` writes one for it"
        wrong = "is a trace, not a scenario file"
        raise FieldError(name, scenario.name, advice, wrong=wrong) from None


def _is_trace(path: Path) -> bool:
    """Whether the file has one of the known formats of traces."""
    from vegasmodel.packets.reading import format_of

    try:
        return path.is_file() and bool(format_of(path))
    except FieldError:
        return False
