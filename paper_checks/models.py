"""``python -m paper_checks.models``: every model against ns-2 on the papers' scenarios.

A record compares one item of a paper, such as a table cell, with our result.  Many records need
runs of ns-2.  The scenarios of these runs are compared here, except for those that average over
less than ``LEAST_ROUND_TRIPS`` round trips.

The output is a Markdown table with a row for each family of scenarios and each model.  The error of
a model in a scenario is the NRMSE of its throughputs (``error``).  In a family, the model with the
least mean error comes first.  Each row names the model's assumption that fails in most of the
family's scenarios.
"""

import contextlib
import dataclasses
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from paper_checks import PAPERS, web
from paper_checks.answers import MANY_FLOWS, answer, by_group, prime
from paper_checks.runs import NoRun, Runs
from paper_checks.scenes import asked
from vegasmodel.metrics import nrmse
from vegasmodel.predictor import MODELS
from vegasmodel.queues import DropTail
from vegasmodel.scenario import LAWS, Run, Scenario

__all__ = ["Row", "error", "families", "family", "markdown", "remarks", "rows"]

LEAST_ROUND_TRIPS = 10.0  # a scenario's rates must be averages over at least so many
# s, the same duration for all scenarios that are compared; longer than any of the runs, so that no
# start of a flow lies after the end
LONG = 1e4


@dataclass(frozen=True)
class Row:
    """One model on one family of scenarios: the errors of its throughputs against ns-2."""

    family: str
    model: str
    errors: tuple[float, ...]  # NRMSE in each scenario that the model answers
    asked: int  # number of scenarios
    broken: str  # the model's assumption that fails most often, with the number of scenarios

    @property
    def mean(self) -> float:
        """Mean error over the scenarios that the model answers."""
        return float(np.mean(self.errors))

    @property
    def worst(self) -> float:
        """Largest error among the scenarios that the model answers."""
        return max(self.errors)


def families(papers: Iterable[str] = PAPERS, runs: Runs | None = None) -> dict[str, list[Scenario]]:
    """The scenarios that the records of ``papers`` run, by family.

    If scenarios differ only in how they are run (seeds, jitter, time span), only the one with the
    most runs is taken.  Scenarios with averages over less than ``LEAST_ROUND_TRIPS`` (slow start,
    single round trips) are left out, because models predict mean rates.
    """
    found: dict[str, dict[str, Scenario]] = {}
    for paper in papers:
        for scenario in asked(paper, runs or Runs()):
            if _round_trips(scenario) < LEAST_ROUND_TRIPS:
                continue
            scenarios = found.setdefault(f"{paper}: {family(scenario)}", {})
            # the same for scenarios that differ only in how they are run
            key = dataclasses.replace(scenario, run=Run(duration=LONG)).fingerprint()
            if key not in scenarios or scenario.run.times > scenarios[key].run.times:
                scenarios[key] = scenario
    return {name: list(scenarios.values()) for name, scenarios in found.items()}


def _round_trips(scenario: Scenario) -> float:
    """Number of round trips of the flow with the longest RTT during which rates are averaged."""
    span = scenario.run.duration - scenario.run.warmup
    return span / max(member.rtt for member in scenario.members)


def family(scenario: Scenario) -> str:
    """The family of a scenario as text, by which the table of errors groups scenarios.

    It names the laws and what is special about the flows, the link and the traffic.
    """
    flows, link = scenario.flows, scenario.links[0]
    parts = [" and ".join(sorted({flow.law for flow in flows}, key=LAWS.index))]
    vegas = [flow for flow in flows if flow.law == "vegas"]
    if vegas:
        equal = all(flow.alpha == flow.beta for flow in vegas)
        parts[0] += " (alpha = beta)" if equal else " (alpha < beta)"
    if len({member.rtt for member in scenario.members}) == 2:
        parts.append("two RTTs")
    if len({member.start for member in scenario.members}) > 2:
        parts.append("arrivals")
    if vegas and not any(flow.measures_base for flow in vegas):
        parts.append("true baseRTTs")
    if any(flow.delay_noise for flow in flows):
        parts.append("random delay")
    if scenario.random_arrivals:
        parts.append("Web traffic")
    if len(scenario.links) > 1:
        parts.append("several links")
    if not isinstance(link.queue, DropTail):
        parts.append(link.queue.discipline.upper())
    if link.loss:
        parts.append("random loss")
    if link.drops:
        parts.append("forced losses")
    return ", ".join(parts)


def rows(
    runs: Runs,
    models: Sequence[str] = MODELS,
    chosen: Mapping[str, Sequence[Scenario]] | None = None,
) -> list[Row]:
    """The rows of the table of errors against ns-2: by family, then by the mean error.

    ``chosen`` has the scenarios of each family, by default those of all papers.  A model has no row
    for a family if it answers none of the scenarios of which a run of ns-2 is stored.
    """
    found = []
    chosen = families() if chosen is None else chosen
    if "rounds" in models:
        prime(scenario for scenarios in chosen.values() for scenario in scenarios)
    for name, scenarios in chosen.items():
        rated = [_row(name, model, scenarios, runs) for model in models]
        found += sorted((row for row in rated if row is not None), key=lambda row: row.mean)
    return found


def _row(name: str, model: str, scenarios: Sequence[Scenario], runs: Runs) -> Row | None:
    """The row of ``model`` for the family ``name``; ``None`` if it answers none of ``scenarios``.

    Scenarios without a stored run of ns-2 are left out.
    """
    errors, asked = [], 0  # of the scenarios answered; number of scenarios with a stored run
    broken = Counter[str]()  # in how many scenarios an assumption of the model fails, by its name
    for scenario in scenarios:
        with contextlib.suppress(NoRun):
            found = error(scenario, model, runs)
            asked += 1
            if found is not None:
                errors.append(found)
                assumptions = answer(scenario, model).assumptions
                broken.update(a.name for a in assumptions if a.holds is False)
    if not errors:
        return None
    most_common = "none"
    for assumption, times in broken.most_common(1):
        most_common = f"{assumption} ({times})"
    return Row(name, model, tuple(errors), asked, most_common)


def error(scenario: Scenario, model: str, runs: Runs) -> float | None:
    """NRMSE of a model's throughputs against ns-2: root mean square error over the mean.

    The mean is over the flows.  If only the means of groups of flows are stored of ns-2's run, it
    is over the groups.  The result is ``None`` if the model has no answer.  Raises ``NoRun`` if no
    run of ns-2 is stored.
    """
    try:
        measured, per_flow = runs(scenario).mean, True
    except NoRun:
        measured, per_flow = runs.groups(scenario).mean, False
    found = answer(scenario, model)
    if not found.applicable or found.throughput is None:
        return None
    return nrmse(found.throughput if per_flow else by_group(scenario, found.throughput), measured)


def markdown(found: Iterable[Row]) -> str:
    """The table in Markdown, with a line for each of the rows ``found``.

    Errors are in percent of the mean throughput.
    """
    head: Mapping[str, str] = {
        "scenarios": "---",
        "model": "---",
        "answered": "---:",
        "mean error, %": "---:",
        "worst, %": "---:",
        "assumption broken most": "---",
    }
    lines = [f"| {' | '.join(head)} |", f"| {' | '.join(head.values())} |"]
    lines += [
        f"| {r.family} | {r.model} | {len(r.errors)} of {r.asked} | {100 * r.mean:.1f} "
        f"| {100 * r.worst:.1f} | {r.broken} |"
        for r in found
    ]
    return "\n".join(lines) + "\n"


def remarks() -> str:
    """Sentences below the table: how the predictions of ``rounds`` in it were computed."""
    older = "" if web.current() else ", which an earlier version of the simulator computed"
    return (
        f"If a scenario has more than {MANY_FLOWS} flows, the simulator rounds runs it with only "
        "one seed of the random numbers, to save time.  For Web traffic the table has stored "
        f"predictions of rounds (python -m paper_checks.web){older}.\n"
    )


if __name__ == "__main__":
    sys.stdout.write(markdown(rows(Runs())) + "\n" + remarks())
