"""Runs the command ``design``, which finds the values of a scenario's field that meet a target.

For example, it finds the buffer with which a flow gets 30 % of the total throughput.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vegasmodel.command_line import inputs
from vegasmodel.fields.errors import FieldError
from vegasmodel.fields.units import format_time

if TYPE_CHECKING:
    from vegasmodel.scenario import Scenario
    from vegasmodel.study.solutions import Design


@click.command()
@inputs.scenario
@click.option(
    "--solve",
    required=True,
    shell_complete=inputs.offer(inputs.fields),
    help="Field to find: link.buffer, flow.NAME.alpha, link.queue.k, ... "
    "If alpha = beta in the scenario, alpha changes both.",
)
@click.option(
    "target",
    "--for",
    required=True,
    help="ratio:a/b=1, share:GROUP=0.3, throughput:GROUP=5Mbit/s, jain=0.95, delay=20ms or "
    "utilization=0.95. A share is one of all delivered bytes, not one of the capacity. "
    "Of several groups, or of all flows of a law: share:A+B=0.3, share:law:LAW=0.3, "
    "ratio:A+B/law:LAW=1. "
    "Of another link than the first: delay:LINK=20ms, utilization:LINK=0.95. "
    "At least or at most, in quotes: 'share:GROUP>=0.3', 'delay<=20ms'.",
)
@inputs.model
@click.option(
    "--verify",
    multiple=True,
    help="Also check each solution with a model, ns2 or ns3; none: not even by rounds.",
)
@click.option(
    "--between", metavar="LOW:HIGH", help="Range of the search. Default: the field's usual range."
)
@click.option(
    "--within",
    default="5 %",
    help="If no value meets the target exactly: the greatest relative error of a solution.",
)
@inputs.laws
@inputs.as_json
def design(
    scenario: Path,
    solve: str,
    target: str,
    model: str,
    verify: tuple[str, ...],
    between: str | None,
    within: str,
    laws: tuple[Path, ...],
    json: bool,
) -> None:
    """Find the value of a field that meets a target.

    A model's predictions decide which values meet the target.  The simulator called rounds then
    checks each solution, unless rounds is the model itself.  A value at which the check disagrees
    by more than the whole target is no solution, unless the check meets a bound, too.

    Example: vegasmodel design mixed.toml --solve link.buffer --for share:vegas=0.3 --verify ns2
    """
    from vegasmodel.fields.units import parse
    from vegasmodel.report import console
    from vegasmodel.study.design import design as solve_for

    within_fraction = parse(within, "fraction", field="--within", high=0.5)
    case = inputs.load(scenario, laws)
    verifiers = [] if verify == ("none",) else ["rounds", *verify]
    ends = None if between is None else _ends(between, solve, case)
    found = solve_for(
        case, solve, target, model, between=ends, verify=verifiers, within=within_fraction
    )
    if json:
        console.print_json({"scenario": case.name, **found.to_json()})
        return
    if found.solutions:
        _show_solutions(found)
    console.paragraphs(_sentences(found, case), first=not found.solutions)


def _show_solutions(found: Design) -> None:
    """Print a table of the solutions: each value, and the target's quantity by each model."""
    from vegasmodel.report import console

    rows = [
        [
            f"{each.value:.6g} {each.unit}".strip(),
            _with_error(each.achieved, each.achieved_se, found.target_unit),
            *(
                _with_error(each.verified[name], each.verified_se[name], found.target_unit)
                for name in each.verified
            ),
            *([console.number(each.utilization, 3)] if found.shows_load else []),
        ]
        for each in found.solutions
    ]
    verifying_models = list(found.solutions[0].verified)
    title = found.target if found.sense == "=" else found.asked
    load_column = ["load"] if found.shows_load else []
    heads = [found.field, found.model, *verifying_models, *load_column]
    console.console().print(console.stacked(heads, rows, title))


def _sentences(found: Design, case: Scenario) -> list[str]:
    """Sentences on the solutions: intervals, units, notes, and what the search may have missed."""
    from vegasmodel.report import console

    texts = [f"{found.field} meets the target {found.where}."] if found.intervals else []
    texts += _in_other_units(case, found.field, [each.value for each in found.solutions])
    texts += [
        f"{each.value:.6g} {each.unit}: {each.note}." for each in found.solutions if each.note
    ]
    texts += [f"No value is found: {found.reason}."] if found.reason else []
    texts += [f"{each}." for each in found.rejections]
    if any(each.achieved_se or any(each.verified_se.values()) for each in found.solutions):
        texts.append(console.PLUS_MINUS)
    texts += [f"{note}." for note in found.notes]
    if all_tried := (*found.solutions, *found.rejected):
        low, high = (f"{end:.6g} {all_tried[0].unit}".strip() for end in found.scanned)
        missed = "solutions" if found.sense == "=" else "intervals, and gaps in them"
        texts.append(
            f"{found.model} was evaluated at {found.tried} values of {found.field} from {low} to "
            f"{high}.  Between them the search may miss {missed}; --between LOW:HIGH searches a "
            "narrower range."
        )
    return texts


def _in_other_units(case: Scenario, solve: str, buffers: list[float]) -> list[str]:
    """A sentence with buffers, which are in packets, as times and in bytes.

    The list is empty if the field ``solve`` is no buffer, or that of links of different capacities.
    """
    from vegasmodel.study import fields

    field = fields.find(case, solve, "solve")
    rates = {case.links[i].capacity for i in field.indices} if field.part == "link" else set()
    if field.key != "buffer" or len(rates) != 1 or not buffers:
        return []
    (rate,) = rates
    each = [
        f"{n:.6g} pkt in {format_time(float(f'{n / rate:.3g}'))} ({round(n * case.packet_size)} B)"
        for n in buffers
    ]
    return [f"The link sends {'; '.join(each)}."]


def _with_error(figure: float | None, error: float | None, unit: str) -> str:
    """A figure with its unit as text, and with its standard error if this is known and not 0.

    If the figure is unknown, the text is a dash.
    """
    from vegasmodel.report import console

    if figure is not None and unit == "s":
        error_text = f" ± {format_time(float(f'{error:.2g}'))}" if error else ""
        return f"{format_time(figure)}{error_text}"
    text = console.number(figure, 6)
    text += f" ± {console.number(error, 2)}" if error else ""
    return text if figure is None else f"{text} {unit}".strip()


def _ends(text: str, solve: str, scenario: Scenario) -> tuple[float, float]:
    """Read the option ``--between``: the least and the greatest value of the field ``solve``."""
    from vegasmodel.study import fields

    low, colon, high = text.partition(":")
    if not colon:
        raise FieldError("--between", text, "LOW:HIGH, such as 5pkt:100pkt")
    field = fields.find(scenario, solve, "solve")
    try:
        ends = [float(field.read(end, scenario)) for end in (low, high)]
        fields.expect_units(field, (low, high), ends, "between")
    except FieldError as error:
        raise error.of("--between") from None
    if not ends[0] < ends[1] < math.inf:
        allowed = "two finite numbers, LOW:HIGH, the lower end first"
        raise FieldError("--between", text, allowed)
    return ends[0], ends[1]
