"""Measures the simulators' errors against hosts with the Linux kernel.

    python -m benchmarks.accuracy_kernel

The measured runs are stored: ``scripts/kernel/jittered.py`` draws the cases, and docs/linux.md
describes the runs.  They use Debian's kernel in a virtual machine.  Hosts wait up to 1 ms before
they send or not at all, delay ACKs or not, and begin with windows of 2 or 10 packets.  The error of
a case is the largest error of a flow's rate, divided by the link's capacity.  Half of the cases
(``--half unseen``) serve only for the final judgement: the model was not changed after a look at
them.

The program prints a line for each case, and then a table with a row for each family of cases.  Its
columns ``mean``, ``median`` and ``largest`` have the errors of the family's cases.  ``uncertainty``
is that of the measured runs, two or six of them: the largest standard error of a flow's rate,
divided by the capacity; mean over the cases.  The columns ``beyond`` have the error beyond this
uncertainty: each flow's standard error is subtracted from its error before the largest is chosen.
The last line says whether the errors meet our goals: one for their mean, one for the largest.

The time at which a Vegas flow starts can decide its rate, because it decides the baseRTT that the
flow measures.  By default a model averages over random start times.  Those of the first two runs of
``rounds`` are the measured ones.  With ``--starts measured`` all runs of the model have the start
times of the measured runs, and it averages over the random waits of the senders only.

A round trip in the virtual machine takes a little longer than the scenario says, because its hosts
need time for each packet (``host_time``).  With ``--host-time`` the model gets RTTs that include
this time.
"""

import argparse
import dataclasses
import time
from typing import NamedTuple

import numpy as np

from benchmarks.arguments import at_least
from scripts.kernel.jittered import FAMILIES
from vegasmodel.engines.starts import start_times
from vegasmodel.metrics import Floats
from vegasmodel.packets import reference
from vegasmodel.predictor import predict
from vegasmodel.scenario import Scenario

LINUX = reference.FOLDER / "linux"
HALVES = ("seen", "unseen")  # of the cases: with even and with odd numbers; see above
WAIT_DRAWS = 8  # runs with other waits, for each of the measured starts
MEAN_GOAL, LARGEST_GOAL = 0.04, 0.1  # goals for the mean and for the largest error of the cases


def cases(family: str, halves: tuple[str, ...], seed: int | None) -> list[Scenario]:
    """The stored scenarios of a family, in the order in which they were drawn.

    Only those of the given halves, and of ``seed`` unless it is ``None``.  The ``k``-th scenario
    that a seed draws has the name "FAMILY SEED/k".
    """
    found = {}
    for scenario in reference.stored(LINUX):
        name, _, draw = scenario.name.partition(" ")
        if name == family and "/" in draw:
            which, k = map(int, draw.split("/"))
            if HALVES[k % 2] in halves and seed in (None, which):
                found[which, k] = scenario
    return [found[key] for key in sorted(found)]


def host_time() -> float:
    """Seconds by which a round trip in the virtual machine exceeds the scenario's ``rtt``.

    We read it from the stored runs in which Vegas flows arrive one after another.  There the first
    flow starts alone, and senders do not wait, so its baseRTT is the shortest round trip.  The
    result is the mean excess of these baseRTTs.
    """
    excess = []
    for scenario in reference.stored(LINUX):
        found = reference.lookup(scenario) if scenario.name.startswith("vegas_arrivals") else None
        if found is not None and found.base_rtt is not None:
            excess.append(found.base_rtt[0] - scenario.members[0].rtt)
    return float(np.mean(excess))


def longer_rtts(scenario: Scenario, seconds: float) -> Scenario:
    """The scenario with every RTT longer by ``seconds``."""
    flows = tuple(dataclasses.replace(group, rtt=group.rtt + seconds) for group in scenario.flows)
    return dataclasses.replace(scenario, flows=flows)


def parts(rates: Floats | None, scenario: Scenario) -> Floats:
    """Each flow's rate, divided by the link's capacity."""
    return np.asarray(rates, dtype=np.float64) / scenario.links[0].capacity


def answered(scenario: Scenario, model: str, starts: str) -> Floats | None:
    """Each flow's throughput by the model, pkt/s; ``None`` if the model has no answer.

    With ``starts`` = "drawn" the model averages over random start times.  With "measured" it has
    the start times of each measured run in turn, and averages over the waits of the senders.
    """
    if starts == "drawn":
        return predict(scenario.replace({"run.runs": None}), model=model).throughput
    changes = {"run.runs": WAIT_DRAWS, "run.start_jitter": 0.0}
    found = []
    for k in range(scenario.run.times):
        flows = tuple(
            dataclasses.replace(group, start=float(start))
            for group, start in zip(scenario.flows, start_times(scenario, k), strict=True)
        )
        found.append(predict(scenario.replace(changes, flows=flows), model).throughput)
    if any(rates is None for rates in found):
        return None
    return np.mean(np.array(found), axis=0)


class Figures(NamedTuple):
    """The numbers of a case in the table; the head of this file explains them."""

    error: float
    uncertainty: float  # of the measured runs
    beyond: float  # the part of the error beyond this uncertainty


def judged(scenario: Scenario, model: str, starts: str, extra: float) -> tuple[Figures, str]:
    """Judge the model by a case: the case's figures, and a text with the flows' rates.

    ``starts`` says whose start times the model gets: "drawn" or "measured" (``answered``).  The
    model's RTTs are longer than the scenario's by ``extra`` seconds.
    """
    found = reference.lookup(scenario)
    if found is None:
        raise RuntimeError(f"{scenario.name}: no stored run")
    begun = time.process_time()
    rates = answered(longer_rtts(scenario, extra), model, starts)
    took = time.process_time() - begun
    if rates is None:
        return Figures(np.nan, np.nan, np.nan), f"{model} does not answer"
    measured, predicted = parts(found.throughput, scenario), parts(rates, scenario)
    # of each flow
    errors, standard_errors = np.abs(measured - predicted), parts(found.throughput_se, scenario)
    figures = Figures(
        error=float(errors.max()),
        uncertainty=float(standard_errors.max()),
        beyond=float(np.maximum(errors - standard_errors, 0.0).max()),
    )
    text = f"{np.round(measured, 3)} +- {figures.uncertainty:.3f}, {model} {np.round(predicted, 3)}"
    return figures, f"{text}, {took:.1f} s"


def main() -> None:
    """Print a line for each case, the table, and whether the goals are met."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--half", choices=(*HALVES, "both"), default="both")
    parser.add_argument("--family", choices=FAMILIES, nargs="*", default=FAMILIES)
    parser.add_argument("--model", choices=("rounds", "fluid"), default="rounds")
    parser.add_argument("--starts", choices=("drawn", "measured"), default="drawn")
    parser.add_argument(
        "--seed", type=at_least(0), help="only the networks of this seed; default: of every seed"
    )
    parser.add_argument("--host-time", action="store_true", help="add the hosts' time to each RTT")
    options = parser.parse_args()
    extra = host_time() if options.host_time else 0.0
    if extra:
        print(f"the model's RTTs are {1e6 * extra:.1f} us longer than the scenarios'")
    halves = HALVES if options.half == "both" else (options.half,)
    rows: list[tuple[str, Floats]] = []  # a family, and [figure, case] the figures of its cases
    for family in options.family:
        of_cases = []
        for scenario in cases(family, halves, options.seed):
            figures, text = judged(scenario, options.model, options.starts, extra)
            of_cases.append(figures)
            print(f"{scenario.name}: {figures.error:.3f}  {text}", flush=True)
        if of_cases:
            rows.append((family, np.array(of_cases).T))
    if not rows:
        parser.error(f"no stored runs of seed {options.seed}")
    rows.append(("all", np.concatenate([row for _, row in rows], axis=1)))
    print(
        f"\n| {options.half} | cases | mean | median | largest | uncertainty "
        "| beyond: mean | largest |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for family, (errors, uncertainties, beyond) in rows:
        print(
            f"| {family} | {errors.size} | {errors.mean():.3f} | {np.median(errors):.3f} "
            f"| {errors.max():.3f} | {uncertainties.mean():.3f} | {beyond.mean():.3f} "
            f"| {beyond.max():.3f} |"
        )
    _, (all_errors, _, _) = rows[-1]
    mean, largest = _met(all_errors.mean() <= MEAN_GOAL), _met(all_errors.max() <= LARGEST_GOAL)
    print(f"goal {MEAN_GOAL} {mean}, {LARGEST_GOAL} {largest}")


def _met(yes: np.bool_) -> str:
    """Whether a goal is met, as a word."""
    return "met" if yes else "missed"


if __name__ == "__main__":
    main()
