"""Runs the command ``basins``, which finds the different outcomes that a scenario may have.

The command simulates the scenario many times, each time with other start times and first windows,
drawn at random. If two of these simulations have nearly the same throughputs, they have the same
outcome. The command prints which share of the simulations has each outcome.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vegasmodel.command_line import inputs, not_held
from vegasmodel.fields.errors import FieldError

if TYPE_CHECKING:
    from vegasmodel.scenario import Scenario
    from vegasmodel.study.agreement import Agreement
    from vegasmodel.study.basins import Basins


@click.command()
@inputs.scenario
@inputs.model
@click.option("--starts", type=inputs.WHOLE, default=200, help="Number of random starts.")
@click.option("--phase", help="Longest extra wait before a start. Default: the longest RTT.")
@click.option(
    "--windows",
    metavar="LOW..HIGH",
    help="Range of the first windows; 0..0: the scenario's windows.",
)
@click.option("--order", is_flag=True, help="Also exchange the flows' start times at random.")
@click.option(
    "--tolerance", default="5 %", help="Throughputs that differ by at most this are one outcome."
)
@click.option("--seed", type=inputs.WHOLE, default=1, help="Seed of the random starts.")
@click.option(
    "--against",
    shell_complete=inputs.offer(
        lambda context: [*inputs.models(context), *inputs.engines(context)]
    ),
    help="Another model, or ns2 or ns3, to run from the same starts.",
)
@inputs.laws
@inputs.as_json
def basins(
    scenario: Path,
    model: str,
    starts: int,
    phase: str | None,
    windows: str | None,
    order: bool,
    tolerance: str,
    seed: int,
    against: str | None,
    laws: tuple[Path, ...],
    json: bool,
) -> None:
    """The possible outcomes of a scenario.

    Simulates the scenario from many random starts (start times and first windows).  Two starts have
    the same outcome if each flow gets nearly the same throughput after both (--tolerance).  For
    each outcome, prints the share of the starts that lead to it, with its standard error and its
    95 % interval (Wilson).

    Example: vegasmodel basins band.toml --starts 200 --windows 1..30 --against ns2
    """
    from vegasmodel.fields.units import parse
    from vegasmodel.report import console
    from vegasmodel.same_case import other_vegas
    from vegasmodel.study import basins as study
    from vegasmodel.study.agreement import agreement
    from vegasmodel.study.meter import meter
    from vegasmodel.study.models import check_model, ready

    case = inputs.load(scenario, laws)
    models = [model] if against is None else [model, against]
    if against is not None:
        check_model(against, "--against")
    ready(*models)
    tolerance_fraction = parse(tolerance, "fraction", field="--tolerance", high=1.0, low_open=True)
    if tolerance_fraction == 1.0:
        allowed = 'a fraction above 0 and below 1, or a percentage such as "5 %"'
        raise FieldError("--tolerance", tolerance, allowed)
    longest = case.run.duration
    wait = None if phase is None else parse(phase, "time", field="--phase", high=longest)
    first = None if windows is None else _whole_range(windows)
    with meter(what="starts") as report:
        found: list[Basins] = []

        def progress(done: int, total: int) -> None:
            """Report how many starts are done, of this model and of those before it."""
            report(len(found) * total + done, len(models) * total)

        progress(0, starts)
        for each in models:
            outcomes = study.basins(
                case, each, starts=starts, seed=seed, phase=wait, windows=first, order=order,
                tolerance=tolerance_fraction, progress=progress,
            )  # fmt: skip
            found.append(outcomes)
    comparison = agreement(found[0], found[-1])
    if json:
        document = found[0].to_json()
        document["sets"] = [answer.to_json() for answer, _ in study.sets(case)]
        if against is not None:
            document["against"] = {**found[-1].to_json(), "agreement": comparison.to_json()}
        console.print_json(document)
        return
    for of_model in found:
        _show_outcomes(of_model)
    agreement_text = [] if against is None else [_agreement(found, comparison)]
    warned = [f"{note}." for note in other_vegas(case, models)]
    console.paragraphs([*_doubts(found), *_ranges(case), *agreement_text, *warned])


def _doubts(found: Sequence[Basins]) -> list[str]:
    """Sentences on what limits the results of the models.

    They say why a model gives no result from some starts (at most three reasons per model), and
    which of its assumptions do not hold.
    """
    lines = [f"No answer: {reason}." for each in found for reason in each.reasons[:3]]
    for of_model in found:
        lines += not_held.sentences(
            of_model.broken, f"{of_model.answered} starts with {of_model.model}"
        )
    return lines


def _ranges(case: Scenario) -> list[str]:
    """Sentences with the ranges of the flows' throughputs, one for each closed form with ranges.

    A second sentence follows if some of the closed form's assumptions do not hold; it names them.
    """
    from vegasmodel.study.basins import sets

    lines = []
    for answer, ends in sets(case):
        spans = [
            f"{name} {low:.4g}..{high:.4g}"
            for name, (low, high) in zip(answer.names, ends, strict=True)
        ]
        lines.append(f"The set by {answer.model}, pkt/s: {', '.join(spans[:8])}.")
        if answer.broken:
            names = ", ".join(each.name for each in answer.broken)
            lines.append(f"These assumptions behind the set do not hold: {names}.")
    return lines


def _agreement(found: Sequence[Basins], comparison: Agreement) -> str:
    """A sentence on how well two models agree on the outcomes of the random starts.

    It gives the result of a chi-squared test of the shares of starts that lead to each outcome.
    """
    if math.isnan(comparison.p):
        none = " and ".join(each.model for each in found if not each.answered)
        return f"Shares of starts are not compared: no answer by {none}."
    return (
        f"Shares of starts by {found[0].model} and {found[1].model}: chi-squared "
        f"{comparison.statistic:.4g}, {comparison.freedom} degrees of freedom, p = "
        f"{comparison.p:.3g}; {100 * comparison.alike:.3g} % of the starts lead to the same "
        "outcome by both."
    )


def _show_outcomes(found: Basins) -> None:
    """Print a table of a model's outcomes, the most frequent first, and what it leaves out."""
    from vegasmodel.report import console
    from vegasmodel.study.basins import OUTCOME_HEADS

    max_rows, max_flows = 12, 3  # of the table: a row for each outcome, a column for each flow
    names = [member.name for member in found.scenario.members]
    rows = [each.cells(max_flows) for each in found.outcomes[:max_rows]]
    text = f"{found.model}: {found.answered} starts, outcomes: {len(found.outcomes)}, pkt/s"
    heads = [*OUTCOME_HEADS, *names[:max_flows]]
    grid, narrow = console.fitting(heads, rows, 3, text)
    console.console().print(grid)
    not_shown = found.outcomes[max_rows:]
    lines = []
    if not_shown:
        part = 100 * sum(each.share for each in not_shown)
        lines.append(f"And {len(not_shown)} more, {part:.3g} % of the starts; --json lists all.")
    lines += console.left_out(narrow + len(names[max_flows:]), "--json lists all")
    console.paragraphs(lines)


def _whole_range(text: str) -> tuple[int, int]:
    """Read the option ``--windows``: the ends of a range of whole numbers of packets."""
    low, dots, high = text.partition("..")
    if not (dots and low.strip().isdecimal() and high.strip().isdecimal()):
        raise FieldError("--windows", text, "LOW..HIGH, whole packets, such as 1..30")
    return int(low), int(high)
