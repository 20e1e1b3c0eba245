"""``python -m paper_checks.models``: every model against ns-2 on the papers' scenarios.

One Markdown table: a row for each family of scenarios and model, best model first, with the
assumption that the scenarios break most often.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from paper_checks.boutremans.scenes import SOURCES, joining
from paper_checks.devendictis.validation import BUFFERS, TIMES
from paper_checks.devendictis.validation import scene as mixed
from paper_checks.evaluation.figures import AXIS
from paper_checks.evaluation.scenes import pair, single, stored, trio
from paper_checks.evaluation.tables import TABLE_2, TABLE_3, delays, red
from paper_checks.podlesny.scenes import figure_1, parking_lot, queue
from paper_checks.runs import NoRun, Runs
from paper_checks.spread import SEEDS
from paper_checks.tsang.scenes import DELAYS, two
from vegasmodel.metrics import nrmse
from vegasmodel.predictor import MODELS, predict
from vegasmodel.scenario import Scenario

__all__ = ["Row", "families", "markdown", "rows"]


@dataclass(frozen=True)
class Row:
    """One model on one family: NRMSE of the throughputs, mean and largest over the scenarios."""

    family: str
    model: str
    answered: int  # scenarios that the model answers
    asked: int
    mean: float
    worst: float
    broken: str  # the assumption that fails most often, with the number of scenarios


def families() -> dict[str, list[Scenario]]:
    """The scenarios of the papers that ns-2 has run, by what they are about."""
    return {
        "tsang, Vegas 1/3, two delays": [two(x2) for x2 in DELAYS],
        "tsang, Vegas with alpha = beta": [two(x2, d, d) for x2 in DELAYS for d in (1, 2, 3)],
        "boutremans, arrivals, alpha = beta": [
            joining(n, a, a) for n in SOURCES for a in (1.0, 3.0, 5.0)
        ],
        "boutremans, arrivals, alpha < beta": [
            joining(n, 1.0, b) for n in SOURCES for b in (3.0, 5.0)
        ],
        "boutremans, true baseRTTs": [
            joining(10, a, b, True) for a, b in ((1.0, 3.0), (1.0, 5.0), (2.0, 4.0))
        ],
        "evaluation, one source, random loss": [
            single(law, loss=loss, runs=SEEDS)
            for law in ("reno", "sack", "vegas")
            for loss in (0.01, 0.05)
        ],
        "evaluation, table 2": [stored(name) for name in TABLE_2],
        "evaluation, one law, two delays": [
            delays(law, X * 1e-3) for law in ("reno", "sack", "vegas") for X in TABLE_3
        ],
        "evaluation, Vegas and another, DropTail": [
            *(pair(law, "vegas", buffer=B) for law in ("reno", "sack") for B in AXIS),
            *(trio(B) for B in (15.0, 30.0)),
        ],
        "evaluation, Vegas and another, RED": [
            red(law, top) for law in ("reno", "sack") for top in (10.0, 20.0, 40.0, 80.0)
        ],
        "devendictis, figures 3 and 4": [
            *(mixed(T, B) for T in TIMES for B in BUFFERS),
            *(mixed(0.08, 20.0, mu) for mu in (2160.0, 4320.0)),
        ],
        "podlesny, figure 1": [figure_1(rtt) for rtt in (0.03, 0.1, 0.2)],
        "podlesny, R queue, NewReno": [queue("rate", n, 10, n, 0) for n in (10, 30, 70)],
        "podlesny, D queue, Vegas": [queue("delay", 10, n, 0, n) for n in (10, 30, 70)],
        "podlesny, parking lot": [parking_lot()],
    }


def rows(
    runs: Runs, models: Sequence[str] = MODELS, only: Iterable[str] | None = None
) -> list[Row]:
    """Errors of ``models`` by family, best first; families without stored runs are left out."""
    found = []
    for family, scenarios in families().items():
        if only is not None and family not in only:
            continue
        rated = [_row(family, model, scenarios, runs) for model in models]
        found += sorted((row for row in rated if row is not None), key=lambda row: row.mean)
    return found


def _row(family: str, model: str, scenarios: Sequence[Scenario], runs: Runs) -> Row | None:
    errors, broken = [], Counter[str]()
    for scenario in scenarios:
        try:
            measured = runs(scenario).mean
        except NoRun:
            continue
        answer = predict(scenario, model)
        if not answer.applicable or answer.throughput is None:
            continue
        error = nrmse(answer.throughput, measured)
        if error is not None:
            errors.append(error)
            broken.update(a.name for a in answer.assumptions if a.holds is False)
    if not errors:
        return None
    common = broken.most_common(1)
    return Row(
        family=family,
        model=model,
        answered=len(errors),
        asked=len(scenarios),
        mean=float(np.mean(errors)),
        worst=max(errors),
        broken=f"{common[0][0]} ({common[0][1]})" if common else "none",
    )


def markdown(found: Iterable[Row]) -> str:
    """The table: errors in percent of the mean throughput."""
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
        f"| {r.family} | {r.model} | {r.answered} of {r.asked} | {100 * r.mean:.1f} "
        f"| {100 * r.worst:.1f} | {r.broken} |"
        for r in found
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(markdown(rows(Runs())))
