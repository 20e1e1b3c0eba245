"""How far a simulated value may be from a printed one, and whether phase effects decide.

The papers ran most cases once, with sources that start at the same instant.  By phase effects the
exact start times decide which packet meets a full queue, and so may decide the value.  So we run
such a case with several seeds.  Each seed moves the start of every flow by up to one packet's
transmission time.  The case agrees with the paper if the values of most seeds do.

Other values are means over the runs of a case.  Their tolerance is the rounding of the print plus
two standard errors of the difference from the paper's value or mean.  In each case the tolerance
is at most ``LARGEST_TOLERANCE`` times the printed value, but at least the rounding.
"""

from collections.abc import Callable, Sequence

import numpy as np

from paper_checks.checks import Found, Value, distance, of_runs, rounding
from paper_checks.runs import Runs
from vegasmodel.metrics import Floats, standard_error
from vegasmodel.scenario import Scenario

__all__ = [
    "AS_DESCRIBED",
    "SEEDS",
    "difference_and_error",
    "for_each_seed",
    "jittered",
    "majority_of_seeds",
    "mean_beside_print",
    "mean_of_runs",
    "median_of_seeds",
    "one_scenario_per_seed",
    "plus_minus",
    "tolerance_by_spread",
]

SEEDS = 5  # runs of a case, each with other start times
LARGEST_TOLERANCE = 0.1  # largest tolerance, as a part of the printed value
MAJORITY_NOTE = "ns-2 2.35; the majority of 5 seeds, whose starts move by up to one packet's time."
SOURCE = (
    f"{MAJORITY_NOTE} Computed: their median. Tolerance: rounding of the print and two standard "
    "deviations over the seeds, but at most 10 %."
)
SOURCE_WORD = SOURCE.replace(
    "rounding of the print", "the print is a word, read as a ratio that rounds to 1.0,"
)
SOURCE_MEAN = (
    "ns-2 2.35, mean of 20 seeds. Tolerance: rounding of the print and two standard errors of the "
    "difference between one run, since the paper has one, and that mean, but at most 10 %."
)
# Why seeds that do not agree with the print are no evidence against it
AS_DESCRIBED = (
    "Phase effects decide: the run whose starts do not move gives the print, and most of the runs "
    "whose starts move by up to a packet's time do not."
)
SEEDS_AROUND_PRINT = (
    "Phase effects decide: most of the runs do not give the print, but they scatter around it "
    "(some give it, or it is within two standard errors of the difference between one run and "
    "their mean)."
)

MEANS_NEAR_PRINT = (
    "The runs do not decide: the print differs from their mean by no more than rounding and two "
    "standard errors of the difference, but by more than the tolerance, which is at most 10 %."
)

Statistic = Callable[[Floats], float]  # of the throughputs of one run, [flows] pkt/s


def jittered(scenario: Scenario) -> Scenario:
    """The scenario with five runs, in which each start moves by up to a packet's transmission time.

    The runs show whether a result depends on which packet meets the full queue.
    """
    changes = {"run.runs": SEEDS, "run.start_jitter": 1.0 / scenario.links[0].capacity}
    return scenario.replace(changes, name=f"{scenario.name}-jittered")


def one_scenario_per_seed(scenario: Scenario) -> tuple[Scenario, ...]:
    """``jittered`` as ``SEEDS`` scenarios of one run each.

    They are for quantities, such as retransmissions, of which a stored result has only the mean
    over its runs: so the value of each single run is known.
    """
    moved = jittered(scenario)
    return tuple(
        moved.replace({"run.runs": 1, "run.seed": seed}, name=f"{moved.name}-seed-{seed}")
        for seed in range(1, SEEDS + 1)
    )


def for_each_seed(
    runs: Runs, scenarios: Sequence[Scenario], statistic: Callable[..., Value]
) -> list[Value]:
    """The value of ``statistic`` for each of the seeds of ``jittered``.

    ``statistic`` has an argument for each of ``scenarios``: the throughputs of this scenario's
    flows in the seed's run, [flows] pkt/s.
    """
    rows = [runs(jittered(scenario)).throughput for scenario in scenarios]  # [seeds, flows] each
    return [statistic(*(row[k] for row in rows)) for k in range(len(rows[0]))]


def majority_of_seeds(
    values: Sequence[Value],
    printed: Value = True,
    tolerance: float = 0.0,
    detail: str = "",
    described: Value = None,
) -> Found:
    """The median of the seeds' values, and the fraction of the seeds that agree with the print.

    ``values`` has one value for each seed.  A seed agrees if its value differs from ``printed`` by
    at most ``tolerance``.  ``detail`` is text for the record's note.  The median of truth values is
    what most of them say. ``described`` is the value of the run whose starts do not move, as the
    paper describes the case.

    If most seeds differ from the print, it need not be wrong: not if ``described`` agrees with it,
    nor if the seeds' values scatter around it.  ``missing`` of the result then says so.
    """
    share = sum(distance(value, printed) <= tolerance for value in values) / len(values)
    # a seed's value is one number, a truth value or None, never a list; None counts as infinite
    sizes = [float("inf") if value is None else float(np.asarray(value)) for value in values]
    median = values[int(np.argsort(sizes, kind="stable")[len(values) // 2])]
    count = f"{round(share * len(values))} of {len(values)} seeds agree."
    missing = SEEDS_AROUND_PRINT if share > 0 or _within_chance(values, printed) else ""
    if distance(described, printed) <= tolerance:
        missing = AS_DESCRIBED
    return Found(median, tolerance, f"{count} {detail}".strip(), share=share, missing=missing)


def _within_chance(values: Sequence[Value], printed: Value) -> bool:
    """Whether the printed value may be that of just another run, so near is it to the runs' mean.

    That is within two standard errors of the difference between one run and the mean.  The result
    is false if some value is no number, but a truth value or ``None``.
    """
    numbers = [
        value
        for value in (*values, printed)
        if isinstance(value, float | int) and not isinstance(value, bool)
    ]
    if len(numbers) < len(values) + 1:  # some value or the printed one is no number
        return False
    *runs, target = map(float, numbers)
    chance = 2 * float(np.std(runs, ddof=1)) * (1 + 1 / len(runs)) ** 0.5
    return bool(abs(np.mean(runs) - target) <= chance)


@of_runs
def median_of_seeds(
    runs: Runs, scenario: Scenario, statistic: Statistic, printed: float, unit: float
) -> Found:
    """The median of ``statistic`` over the seeds, whose starts move a little.

    ``statistic`` is a function of the throughputs of one run.  The majority of the seeds decides
    whether the printed value is reproduced.  ``unit`` is that of the last printed digit.
    """
    described = statistic(runs(scenario).throughput[0])  # of the run whose starts do not move
    rows = runs(jittered(scenario)).throughput  # [seed, flow] pkt/s
    values = np.array([statistic(row) for row in rows])
    detail = (
        f"Over the seeds {values.min():.4g} to {values.max():.4g}; the run as described "
        f"{described:.4g}."
    )
    tolerance = tolerance_by_spread(values, unit=unit, printed=printed)
    return majority_of_seeds(
        values.tolist(),
        printed=printed,
        tolerance=tolerance,
        detail=detail,
        described=described,
    )


@of_runs
def mean_of_runs(
    runs: Runs, scenario: Scenario, statistic: Statistic, printed: float, unit: float
) -> Found:
    """The mean of ``statistic`` over the scenario's runs.

    It is for scenarios in which something is random, such as losses, so that their runs differ even
    if starts do not move.  ``unit`` is that of the last printed digit.
    """
    values = np.array([statistic(row) for row in runs(scenario).throughput])
    detail = f"Over the seeds {values.min():.4g} to {values.max():.4g}."
    chance = 2 * float(values.std(ddof=1)) * (1 + 1 / len(values)) ** 0.5
    tolerance = max(rounding(unit), min(rounding(unit) + chance, LARGEST_TOLERANCE * abs(printed)))
    return Found(float(values.mean()), tolerance, detail)


def difference_and_error(one: Floats, other: Floats) -> tuple[float, float]:
    """By how much the mean of the runs ``one`` exceeds that of ``other``, and its standard error.

    Each argument has one value for each run.
    """
    error = np.hypot(standard_error(one), standard_error(other))
    return float(one.mean() - other.mean()), float(error)


def plus_minus(values: Floats, digits: int = 2) -> str:
    """The mean of the runs and its standard error, as text."""
    return f"{values.mean():.{digits}f} +- {standard_error(values):.{digits}f}"


def tolerance_by_spread(values: Floats, unit: float, printed: float) -> float:
    """Tolerance: rounding of ``printed`` plus two standard deviations of ``values``.

    It is at most ``LARGEST_TOLERANCE`` times ``printed``, but at least the rounding.  ``unit`` is
    that of the last printed digit.
    """
    limited = min(rounding(unit) + 2 * float(values.std(ddof=1)), LARGEST_TOLERANCE * abs(printed))
    return max(rounding(unit), limited)


def mean_beside_print(
    values: Floats, printed: float | Sequence[float], unit: float, detail: str = "", of: int = SEEDS
) -> Found:
    """Means of ``values`` [runs] or [runs, entries], beside the paper's means over ``of`` runs.

    ``detail`` is text for the record's note.  ``unit`` is that of the last printed digit.  Two
    means of few runs differ by chance.  So the tolerance is the rounding of the print plus two
    standard errors of the difference of two such means.  All entries have the same tolerance, the
    least that any of them needs, and at most ``LARGEST_TOLERANCE`` times the smallest printed
    entry.

    So an entry can differ from the print by more than this tolerance, and yet by no more than
    rounding and chance explain.  If rounding and chance explain the differences of all entries, the
    runs do not decide against the print, and ``missing`` of the result says so.
    """
    values = np.asarray(values, dtype=np.float64)
    chance = rounding(unit) + 2 * values.std(axis=0, ddof=1) * np.sqrt(1 / len(values) + 1 / of)
    entries = np.minimum(chance, LARGEST_TOLERANCE * np.abs(np.asarray(printed)))
    tolerance = max(rounding(unit), float(np.min(entries)))
    mean = values.mean(axis=0)
    near = bool(np.all(np.abs(mean - np.asarray(printed)) <= chance))
    return Found(
        mean.tolist() if mean.ndim else float(mean),
        tolerance,
        detail,
        missing=MEANS_NEAR_PRINT if near else "",
    )
