"""Runs the commands with which a new user begins: ``new``, ``inspect``, ``explain``.

``new`` writes a scenario file, ``inspect`` summarises a trace, and ``explain`` describes a model,
an assumption or a column of a table.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from vegasmodel.command_line import inputs
from vegasmodel.fields.errors import FieldError, printable
from vegasmodel.fields.units import format_time

MAX_FLOWS_SHOWN = 50  # flows in a table
LONG_NAME = 12  # characters; the table has numbers in place of longer names


@click.command()
@click.argument("file", metavar="[SCENARIO.toml]", required=False, type=inputs.FILE)
@click.option(
    "--from-trace",
    type=inputs.FILE,
    help="Fill in what this trace shows: flows, RTTs, capacity.",
)
@inputs.laws
@click.option("--force", is_flag=True, help="Write over a file that exists.")
@inputs.as_json
def new(
    file: Path | None,
    from_trace: Path | None,
    laws: tuple[Path, ...],
    force: bool,
    json: bool,
) -> None:
    """Write a scenario file with comments.

    The file is written to SCENARIO.toml; if you give no name, its text is printed.  With
    --from-trace, the values are estimated from a trace, and comments say what is doubtful.
    If a flow of the trace runs a law of your own, give the law's file by --laws.
    Every command that takes a scenario file accepts the file.

    Example: vegasmodel new mixed.toml --from-trace capture.pcap
    """
    from vegasmodel.command_line import newfile
    from vegasmodel.packets import inspection
    from vegasmodel.packets.reading import read
    from vegasmodel.report import console
    from vegasmodel.support.files import atomic_write

    if file is not None:
        console.output_path(file, "SCENARIO.toml", (".toml",))
        if file.exists() and not force:
            message = "give another name, or --force to replace it"
            raise FieldError("SCENARIO.toml", str(file), message, wrong="exists already")
    inputs.register(laws)
    name = _usable("new" if file is None else file.stem, "new")
    doubts: dict[str, str] = {}
    guesses: tuple[str, ...] = ()
    if from_trace is None:
        text, estimates = newfile.plain(name), []
    else:
        trace = read(from_trace)
        source = _usable(from_trace.name, "a trace")
        text, filled, guesses = newfile.from_trace(trace, name, source)
        estimates, doubts = [entry.to_json() for entry in filled], inspection.doubts(trace)
    if file is not None:
        with atomic_write(file) as part:
            part.write_text(text, encoding="utf-8")
    if json:
        path = None if file is None else str(file)
        document = {
            "file": path,
            "toml": text,
            "estimates": estimates,
            "doubts": doubts,
            "guesses": list(guesses),
        }
        console.print_json(document)
    elif file is None:
        click.echo(text, nl=False)
    else:
        if "no-idle-flows" in doubts:
            doubts["no-idle-flows"] += "; left out"
        if "same-ends" in doubts:
            doubts["same-ends"] += "; the file says so with `stop`"
        words = [str(file), "--model", "all"]
        words += [word for path in laws for word in ("--laws", str(path))]
        first = "first correct the laws in it, which are guesses; then "
        first = first if newfile.laws_guessed(guesses) else ""
        what = f"{file} is written; {first}try: vegasmodel predict {shlex.join(words)}"
        # no line is broken, so that the command can be copied
        console.console().print(console.plain(what), soft_wrap=True)
        lines = [f"{key}: {message}." for key, message in doubts.items()]
        if guesses:
            head = "Guesses, because the trace does not tell them; correct them in the file: "
            lines.append(f"{head}{', '.join(guesses)}.")
        console.paragraphs(lines, first=True)


def _usable(name: str, other: str) -> str:
    """``name`` if it can be the name of a scenario, else ``other``."""
    return name if name.isprintable() and 0 < len(name) <= 120 else other


@click.command()
@click.argument("trace", metavar="TRACE", type=inputs.FILE)
@inputs.trace_format
@inputs.as_json
def inspect(
    trace: Path,
    format: str,  # noqa: A002 - the option's name
    json: bool,
) -> None:
    """What a trace holds: flows, packets, RTTs and losses.

    Also prints the trace's format, and for each flow a line "match = ...". In a scenario file, this
    line says which flow of the trace a [[flow]] table describes.  TRACE may have any known format.

    Example: vegasmodel inspect capture.pcap
    """
    from vegasmodel.packets import inspection
    from vegasmodel.report import console

    found = inspection.inspect(trace, format)
    if json:
        console.print_json(found)
        return
    out = console.console()
    by = "" if found["engine"] == found["format"] else f", by {found['engine']}"
    out.print(console.plain(f"{trace}: {found['format']}{by}; {_time_span(found)}"))
    if found["capacity_pps"] is not None:
        out.print(console.plain(f"busiest link: {_capacity(found)}, an estimate"))
    out.print()
    out.print(_flow_table(found["flows"]))
    lines = [f"match = {_quoted(flow['match'])}" for flow in found["flows"][:MAX_FLOWS_SHOWN]]
    if not _names_fit(found["flows"]):
        lines = [f"{line}  # flow {i}" for i, line in enumerate(lines, start=1)]
    text = (
        "In a scenario file, one of these lines in a [[flow]] says which flow of the trace it is:"
    )
    console.paragraphs([text])
    for line in lines:
        out.print(console.plain(f"  {line}"), soft_wrap=True)
    console.paragraphs([f"{name}: {text}." for name, text in found["doubts"].items()])


def _time_span(found: dict[str, Any]) -> str:
    """The time that a trace covers, in words; ``found`` is the result of ``inspection.inspect``."""
    span = f"{found['begin_s']:.6g} to {found['end_s']:.6g} s in {found['bins']}"
    span += " time bin" if found["bins"] == 1 else " time bins"
    if (length := found["bin_s"]) is not None:
        span += f" of {format_time(float(f'{length:.4g}'))}"
    return span


def _capacity(found: dict[str, Any]) -> str:
    """The estimated capacity of a trace's busiest link, with the packet sizes that it refers to."""
    text = f"{found['capacity_pps']:.6g} pkt/s"
    sizes = sorted({f["packet_size_b"] for f in found["flows"] if f["packet_size_b"]})
    if sizes:
        to_largest = f" to {sizes[-1]:g}" if len(sizes) > 1 else ""
        text += f" of {sizes[0]:g}{to_largest} B"
    if found["capacity_bps"] is not None:
        text += f" ({found['capacity_bps'] / 1e6:.4g} Mbit/s)"
    return text


def _quoted(name: str) -> str:
    """A name as a text of TOML, in quotes."""
    return '"' + printable(name).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _names_fit(flows: list[dict[str, Any]]) -> bool:
    """Whether the names of all flows are short enough for the table; if not, it has numbers."""
    return max(len(flow["name"]) for flow in flows) <= LONG_NAME


def _flow_table(flows: list[dict[str, Any]]) -> Any:
    """The table that ``inspect`` prints, with a row for each of the first flows.

    A column without any value is left out, but never that of names or of delivered packets.
    """
    from vegasmodel.report import console

    rows = [
        [
            flow["name"] if _names_fit(flows) else str(i + 1),
            flow["control"] or "-",
            console.number(flow["packets"], 7),
            console.number(flow["throughput_pps"]),
            format_time(flow["first_s"]),
            format_time(flow["last_s"]),
            console.number(flow["packet_size_b"], 6),
            format_time(flow["rtt_mean_s"]),
            format_time(flow["rtt_min_s"]),
            format_time(flow["base_rtt_s"]),
            console.number(flow["lost"], 6),
            console.number(flow["retransmits"], 6),
            console.number(flow["packets_per_ack"], 6),
        ]
        for i, flow in enumerate(flows[:MAX_FLOWS_SHOWN])
    ]
    names = ["flow", "control", "delivered pkt", "pkt/s", "first", "last", "packet B"]
    names += ["RTT", "least RTT", "baseRTT", "lost pkt", "rexmit pkt", "pkt/ACK"]
    keep = [i for i in range(len(names)) if i in (0, 2) or any(row[i] != "-" for row in rows)]
    table = [[row[i] for i in keep] for row in rows]
    if len(flows) > MAX_FLOWS_SHOWN:
        table.append([f"... {len(flows) - MAX_FLOWS_SHOWN} more", *[""] * (len(keep) - 1)])
    return console.stacked([names[i] for i in keep], table)


def _names_to_offer(_: click.Context) -> list[str]:
    """The names that the tab key offers for the command ``explain``.

    Names of columns that contain spaces are left out: one word of such a name is enough for
    ``explain``.
    """
    from vegasmodel.laws import names
    from vegasmodel.report.explanations import EXPLANATIONS
    from vegasmodel.report.lookup import keys
    from vegasmodel.report.meanings import ASSUMPTIONS, COLUMNS, WORDS

    columns = [name for name in COLUMNS if " " not in name]
    return [*EXPLANATIONS, *names(), *ASSUMPTIONS, *columns, *WORDS, *keys()]


@click.command()
@click.argument(
    "name", metavar="[MODEL]", required=False, shell_complete=inputs.offer(_names_to_offer)
)
@inputs.laws
@inputs.as_json
def explain(name: str | None, laws: tuple[Path, ...], json: bool) -> None:
    """A model's equations, assumptions, source and accuracy.

    Without MODEL, all names are listed.  MODEL may also be the name of a law (cubic), of a key of a
    scenario file (send_jitter), of an assumption (phase-effects), of a column of a printed table
    (load) or of a verdict of the command paper (erratum).

    Example: vegasmodel explain minicycle
    """
    from vegasmodel.report import console, lookup

    inputs.register(laws)
    if name is None:
        _print_names(json)
        return
    try:
        text = lookup.explain(name)
    except FieldError as error:
        raise error.of("MODEL") from None
    if json:
        console.print_json(_facts(name))
    else:
        console.paragraphs(text.split("\n"), first=True)


def _print_names(json: bool) -> None:
    """Print the names that the command ``explain`` knows; as JSON, only the models and the laws."""
    from vegasmodel.laws import names as law_names
    from vegasmodel.report import console
    from vegasmodel.report.explanations import EXPLANATIONS
    from vegasmodel.report.lookup import keys
    from vegasmodel.report.meanings import ASSUMPTIONS, COLUMNS, WORDS

    if json:
        models = {name: explanation.to_json() for name, explanation in EXPLANATIONS.items()}
        console.print_json({"models": models, "laws": list(law_names())})
        return
    for name, explanation in EXPLANATIONS.items():
        console.wrapped(f"{name:16} {explanation.title}", indent=17)
    # a name with a comma has quotes, so that it is not read as two names
    listed = [_quoted(name) if "," in name else name for name in (*ASSUMPTIONS, *COLUMNS)]
    console.paragraphs([f"Laws: {', '.join(law_names())}."])
    console.paragraphs([f"Names of assumptions, columns and fields: {', '.join(listed)}."])
    console.paragraphs([f"Verdicts of paper, and other words: {', '.join(WORDS)}."])
    console.paragraphs([f"Keys of a scenario file: {', '.join(keys())}."])


def _facts(name: str) -> dict[str, Any]:
    """What the command ``explain`` prints about a name as JSON.

    Raises ``FieldError`` for a part of a name. Without ``--json`` the command accepts such a part.
    """
    from vegasmodel.laws import known as is_law
    from vegasmodel.report.explanations import EXPLANATIONS
    from vegasmodel.report.lookup import keys, keys_like, law_facts, models_with
    from vegasmodel.report.meanings import ASSUMPTIONS, COLUMNS, WORDS

    meaning = ASSUMPTIONS.get(name) or COLUMNS.get(name) or WORDS.get(name)
    if meaning is not None:
        return {"name": name, "meaning": meaning, "models": models_with(name)}
    if name in EXPLANATIONS:
        return {"model": name, **EXPLANATIONS[name].to_json()}
    if is_law(name):
        return law_facts(name)
    if (found := keys_like(name)) and found[0].endswith(name):
        return {"keys": {key: keys()[key] for key in found}}
    allowed = "the whole name of an assumption, column or key, with --json"
    raise FieldError("MODEL", name, allowed)
