"""Measures accuracy and speed of each model beside ns-2, on cases drawn after ``rounds`` was built.

    python -m benchmarks.beside_rivals [--seed 90125]      # the table of the README

The error is that of the throughput ratio Vegas : loss-based, the model's ratio over ns-2's, as the
mean over the cases that the model answers.  The time is the CPU seconds of one answer, as the
median over the cases.  An answer is one evaluation of a closed form, as many runs of a simulator as
were measured (5, or 20 if the runs differ), or five runs of ns-2.
"""

import argparse
import os

import numpy as np

from benchmarks.accuracy import judge, outcomes
from benchmarks.accuracy_cases import CASES, case
from benchmarks.accuracy_runs import load
from benchmarks.arguments import at_least
from vegasmodel.metrics import standard_error

# families of cases (``accuracy_cases``), and their names in the table
FAMILIES = {"pair": "one Vegas, one other", "mixed": "2 to 8, mixed"}
MODELS = {"minicycle": "closed form `minicycle`", "fluid": "`fluid`", "rounds": "`rounds`"}
TIMED = 4  # cases of a family that ns-2 runs again, for its time


def main() -> None:
    """Print the table, with a row for each model and one for ns-2."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=at_least(0), default=90125)
    seed = parser.parse_args().seed
    if not load(seed):
        parser.error(f"--seed: no stored runs of seed {seed} (benchmarks/reference)")
    heads = [f"{title}: error | answered | CPU s" for title in FAMILIES.values()]
    print(f"| | {' | '.join(heads)} |\n| --- " + "| ---: " * 6 + "|")
    for model, name in MODELS.items():
        cells = [cell for family in FAMILIES for cell in cells_of(model, family, seed)]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    cells = [cell for family in FAMILIES for cell in ("", "", f"{cpu_of_ns2(family, seed):.1f}")]
    print(f"| ns-2, five runs | {' | '.join(cells)} |")


def cells_of(model: str, family: str, seed: int) -> tuple[str, str, str]:
    """Three cells of the table for a model and a family of cases, as texts.

    They are the mean error with its standard error, the number of cases that the model answers, and
    the median of the CPU seconds of an answer.
    """
    judge(family, 0, load(seed)[f"{family}/0"], seed, model)  # compiles or loads once
    found = outcomes(1, seed, (family,), model=model)
    errors = np.array([abs(o.error) for o in found if not np.isnan(o.error)])
    se = float(standard_error(errors))
    cpu = float(np.median([o.cpu for o in found if not np.isnan(o.error)]))
    return f"{errors.mean():.1%} ± {se:.1%}", f"{errors.size} of {len(found)}", f"{cpu:.2g}"


def cpu_of_ns2(family: str, seed: int) -> float:
    """The CPU seconds that five runs of ns-2 take: the median over a few cases of the family.

    ``family`` is a kind of random scenarios (``FAMILIES``), and ``seed`` the seed of their draw.
    """
    from vegasmodel.packets import ns2

    used = []  # CPU s of the ns-2 processes, by case
    for index in range(min(TIMED, CASES)):
        scenario = case(family, index, seed)
        before = os.times()
        ns2.run(scenario.replace({"run.runs": 5}), processes=1)
        after = os.times()
        used.append(
            after.children_user
            + after.children_system
            - before.children_user
            - before.children_system
        )
    return float(np.median(used))


if __name__ == "__main__":
    main()
