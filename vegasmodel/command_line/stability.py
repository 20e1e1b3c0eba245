"""Runs the command ``stability``, which tells whether a scenario's equilibrium is stable.

The command can also vary two fields of the scenario, such as two RTTs. It then prints at which
values of these fields the equilibrium becomes unstable.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vegasmodel.command_line import inputs
from vegasmodel.fields.errors import FieldError
from vegasmodel.support import progress

if TYPE_CHECKING:
    from vegasmodel.adapters.stability import StabilityVerdict
    from vegasmodel.scenario import Scenario
    from vegasmodel.study.boundary import StabilityBoundary


@click.command()
@inputs.scenario
@click.option(
    "--over",
    multiple=True,
    metavar="FIELD=LOW:HIGH",
    help="Given twice: trace the boundary of stability in the plane of two fields.",
)
@inputs.laws
@inputs.as_json
def stability(
    scenario: Path,
    over: tuple[str, ...],
    laws: tuple[Path, ...],
    json: bool,
) -> None:
    """Whether the equilibrium is stable under feedback delay.

    If it is unstable, the queue oscillates.  The link may be drop-tail or RED.  With two options
    --over, also traces the boundary between stable and unstable in the plane of two fields.

    Example: vegasmodel stability red.toml --over link.queue.weight=1e-4:0.1 --over
    flow.rtt=20ms:500ms
    """
    from vegasmodel.adapters.stability import stability as verdict
    from vegasmodel.report import console
    from vegasmodel.study.boundary import stability_boundary

    case = inputs.load(scenario, laws)
    spans = dict(_span(text, case) for text in over)
    if over and len(spans) != 2:
        allowed = (
            "two different fields, each with an option of its own: --over A=LOW:HIGH --over B=..."
        )
        raise FieldError("--over", " ".join(over), allowed)
    found = verdict(case)
    boundary = None
    if spans:
        with progress.series("tracing the boundary of stability"):
            boundary = stability_boundary(case, spans)
    if json:
        boundary_entry = {} if boundary is None else {"boundary": boundary.to_json()}
        console.print_json({**found.to_json(), **boundary_entry})
        return
    console.paragraphs(_sentences(found), first=True)
    if boundary is not None:
        _show(boundary)


SEPARATES = (  # explains the column ``separates`` of the table
    "separates: whether the equilibrium is stable on one side of the point and unstable on the "
    "other; if not, it is unstable on both."
)
JUMP = (  # behind a sentence on where the verdict changes
    "It jumps there, because the equations themselves change; for example, losses instead of alpha "
    "may begin to limit a window."
)


def _show(boundary: StabilityBoundary) -> None:
    """Print the boundary between stable and unstable: its curves as a table, and its jumps.

    If there is no curve, a sentence says so. At a jump the equilibrium changes between stable and
    unstable, although no root was found that crosses the imaginary axis.
    """
    from vegasmodel.report import console

    columns, rows = boundary.rows
    if rows:
        plural = "" if len(boundary.curves) == 1 else "s"
        title = f"Boundary of stability, {len(boundary.curves)} curve{plural}"
        console.console().print(console.stacked(columns, rows, title))
        console.paragraphs([SEPARATES])
    else:
        console.paragraphs([_without_curve(boundary)])
    for jump in boundary.jumps:
        ends = f"{console.number(jump.low, 6)} and {console.number(jump.high, 6)}"
        where = f"{columns[0]} between {ends}, {columns[1]} = {console.number(jump.y, 6)}"
        console.paragraphs([f"The verdict also changes at {where}. {JUMP}"])


def _without_curve(boundary: StabilityBoundary) -> str:
    """A sentence that says for how many of the tried pairs of values the equilibrium is stable.

    The sentence is printed if no curve of the boundary was found.
    """
    counts = {
        "stable": boundary.stable,
        "unstable": boundary.unstable,
        "without an equilibrium": boundary.without_equilibrium,
    }
    every = sum(counts.values())
    for word, count in counts.items():
        if count == every:
            is_so = f"is {word}" if word in ("stable", "unstable") else "does not exist"
            return f"No boundary was found: the equilibrium {is_so} at all {every} points tried."
    text = ", ".join(f"{count} are {word}" for word, count in counts.items() if count)
    return f"No curve of the boundary was found. Of {every} points tried, {text}."


def _span(text: str, scenario: Scenario) -> tuple[str, tuple[float, float]]:
    """Read the option ``--over``: the name of a field, and its least and greatest value."""
    from vegasmodel.study import fields

    name, equals, ends = text.partition("=")
    low, colon, high = ends.partition(":")
    if not equals or not colon:
        raise FieldError("--over", text, "FIELD=LOW:HIGH, such as flow.rtt=20ms:500ms")
    field = fields.find(scenario, name, "--over")
    if not field.number:
        raise FieldError("--over", text, "a field of numbers that need not be whole")
    span = float(field.read(low, scenario)), float(field.read(high, scenario))
    if not 0.0 < span[0] < span[1] < math.inf:
        raise FieldError("--over", text, "FIELD=LOW:HIGH with finite numbers and 0 < LOW < HIGH")
    return name, span


def _sentences(found: StabilityVerdict) -> list[str]:
    """Sentences on the verdict: queue, gain, and how fast a disturbance grows or shrinks."""
    if found.rest is None or found.stability is None:
        return [f"No verdict: {found.reason}."]
    s, queue = found.stability, found.scenario.links[0].capacity * found.rest.delay
    lines = [
        f"{'Stable' if s.stable else 'Unstable'}: the queue rests at {queue:.4g} packets"
        + (f", {100 * found.rest.loss:.3g} % of packets lost." if found.rest.loss else ".")
    ]
    if found.rest.loop.plain:
        lines.append(f"Gain {s.gain:.4g}: stable below 1.")
    if math.isfinite(s.root.real):
        word = "grows" if s.root.real > 0 else "shrinks"
        period_text = "" if math.isinf(s.period) else f", with a period of {s.period:.4g} s"
        time = 1 / max(abs(s.root.real), 1e-300)
        lines.append(f"A disturbance {word} by the factor e in {time:.4g} s{period_text}.")
    if not s.complete:
        lines.append("The count of roots does not agree with those found: some may be missing.")
    return lines
