"""Measures the error of a simulator against ns-2, over random cases of several families.

    python -m benchmarks.accuracy                 # rounds: table of both halves, from stored runs
    python -m benchmarks.accuracy --model fluid   # the same for the differential equations
    python -m benchmarks.accuracy --measure       # first runs ns-2 for the cases not stored yet
    python -m benchmarks.accuracy --refine        # more ns-2 seeds for cases that spread over 2 %
    python -m benchmarks.accuracy --ablations     # the error with each mechanism switched off
    python -m benchmarks.accuracy --fresh 31415   # the same for another seed's cases
    python -m benchmarks.accuracy --same-starts   # the model has the start times of ns-2's runs
    python -m benchmarks.accuracy --again 40 red/6 red/10   # 40 runs of both for two cases

A case is a random network.  A family has networks of one kind, for example one Vegas and one other
source at a drop-tail link.  Cases are drawn by ``default_rng([seed, family, index])``.  The cases
of ``SEED`` were looked at while the simulator was built, the even-numbered half more than the
odd-numbered half.  The cases of ``--fresh`` were not.

A measurement is the mean of 5 runs of ns-2.  It is the mean of 20 runs if the queue is RED, or if a
throughput's coefficient of variation over 5 runs is above 2 %.  In each run, each flow starts later
by a random time of up to 0.5 s.  The simulator draws start times of its own (``OTHER_DRAWS``),
because a user does not know those of a measurement either.
"""

import argparse
import dataclasses
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np

from benchmarks.accuracy_cases import CASES, FAMILIES, OTHER_DRAWS, SEED, case, with_seed
from benchmarks.accuracy_runs import load, measure, spread_of
from benchmarks.arguments import at_least
from vegasmodel.engines.rounds.answers import answer
from vegasmodel.metrics import standard_error
from vegasmodel.predictor import predict
from vegasmodel.results.prediction import Prediction
from vegasmodel.scenario import Scenario

# families whose error is that of the ratio Vegas : loss-based, not of the throughputs
JUDGED_BY_RATIO = (
    "pair",
    "mixed",
    "crowd",
    "round_numbers",
    "pair-jitter",
    "mixed-jitter",
    "round_numbers-jitter",
)
GOALS = {  # goals for the mean error of each family, by model
    "rounds": {
        "pair": 0.05,
        "mixed": 0.05,
        "arrivals": 0.1,
        "bands": 0.1,
        "losses": 0.2,
        "red": 0.15,
        "pair-jitter": 0.04,
        "mixed-jitter": 0.04,
        "losses-jitter": 0.08,
        "round_numbers": 0.05,
        "round_numbers-jitter": 0.04,
        "wide-jitter": 0.08,
    },
    "fluid": {
        "pair": 0.06,
        "mixed": 0.1,
        "arrivals": 0.12,
        "bands": 0.12,
        "red": 0.08,
        "pair-jitter": 0.08,
        "mixed-jitter": 0.08,
        "losses-jitter": 0.15,
        "round_numbers": 0.06,
        "round_numbers-jitter": 0.08,
        "wide-jitter": 0.15,
    },
}


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The result of one case: the model's error, and the measurement's standard error.

    If the model has no answer, all numbers but ``cpu`` are NaN.
    """

    family: str
    index: int
    error: float  # of the ratio Vegas : loss-based, or the NRMSE of the throughputs
    se: float  # standard error of the measurement, in the units of ``error``
    spread: float  # largest coefficient of variation of a throughput over ns-2's runs
    base_error: float  # NRMSE of the over-estimates of baseRTT; NaN if not measured
    cpu: float  # CPU seconds of the model's answer


def _answer(scenario: Scenario, model: str, options: dict[str, Any]) -> Prediction:
    """The model's answer; ``options`` switch off mechanisms, which only ``rounds`` can do."""
    if model == "rounds":
        return answer(scenario, **options)
    if options:
        raise ValueError(f"{', '.join(options)}: of the model rounds alone")
    return predict(scenario, model)


def judge(
    family: str,
    index: int,
    known: dict[str, Any],
    seed: int = SEED,
    model: str = "rounds",
    **options: Any,
) -> Outcome:
    """The model's error on one case; NaN if the model has no answer.

    In the families ``JUDGED_BY_RATIO`` this is the relative error of a ratio, that of Vegas's
    throughput to the throughput of the other flows.  In the other families it is the root mean
    square error of the flows' throughputs, divided by their mean.

    ``known`` is the stored measurement by ns-2: "runs" are the flows' throughputs in each run, and
    "base" the flows' mean baseRTTs, or ``None``.  Of ``options``, ``change`` is a function that
    changes the scenario for the model, and with ``same_draws`` the model gets the start times of
    ns-2's runs.  The other options switch off mechanisms of ``rounds``.
    """
    change = options.pop("change", None)
    scenario = case(family, index, seed)
    asked = scenario if options.pop("same_draws", False) else with_seed(scenario, OTHER_DRAWS)
    # a mean over as many runs as the measurement has, so that both have the same noise
    asked = asked.replace({"run.runs": len(known["runs"])})
    began = time.process_time()
    prediction = _answer(change(asked) if change else asked, model, options)
    cpu = time.process_time() - began
    if prediction.throughput is None or not np.isfinite(prediction.throughput).all():
        return Outcome(
            family=family,
            index=index,
            error=np.nan,
            se=np.nan,
            spread=np.nan,
            base_error=np.nan,
            cpu=cpu,
        )
    rates, runs = np.asarray(prediction.throughput), np.array(known["runs"])
    error_and_se = _ratio_error if family in JUDGED_BY_RATIO else _rate_error
    error, se = error_and_se(scenario, rates, runs)
    base_error = np.nan
    if known["base"] is not None:
        rtt = np.array([member.rtt for member in scenario.members])
        by_ns2 = np.array(known["base"], dtype=float) - rtt  # over-estimates, s
        by_model = np.asarray(prediction.base_rtt) - rtt
        base_error = float(np.sqrt(np.mean((by_model - by_ns2) ** 2)) / by_ns2.mean())
    return Outcome(
        family=family,
        index=index,
        error=error,
        se=se,
        spread=spread_of(runs),
        base_error=base_error,
        cpu=cpu,
    )


def _ratio_error(scenario: Scenario, rates: np.ndarray, runs: np.ndarray) -> tuple[float, float]:
    """The relative error of the ratio of Vegas's throughput to that of the other flows.

    ``rates`` are the model's, [flows], and ``runs`` those of ns-2, [runs, flows].  The second value
    is the relative standard error of ns-2's ratio.
    """
    vegas = np.array([member.flow.law == "vegas" for member in scenario.members])
    mean = runs.mean(axis=0)
    measured = mean[vegas].mean() / mean[~vegas].mean()
    with np.errstate(divide="ignore"):  # infinite where the model starves the others
        error = float(rates[vegas].mean() / rates[~vegas].mean() / measured - 1.0)
    means = np.array([runs[:, which].mean(axis=1) for which in (vegas, ~vegas)])
    relative = standard_error(means.T) / means.mean(axis=1)
    return error, float(np.hypot(*relative))  # of a ratio of two means, to first order


def _rate_error(_: Scenario, rates: np.ndarray, runs: np.ndarray) -> tuple[float, float]:
    """The root mean square error of the flows' throughputs, over their mean.

    ``rates`` are the model's, [flows], and ``runs`` those of ns-2, [runs, flows].  The second value
    is the root mean square of the standard errors of ns-2's means, over the same mean.
    """
    mean, se = runs.mean(axis=0), standard_error(runs)
    error = float(np.sqrt(np.mean((rates - mean) ** 2)) / mean.mean())
    return error, float(np.sqrt(np.mean(se**2)) / mean.mean())


def _judge_job(job: tuple[str, int, dict[str, Any], dict[str, Any]]) -> Outcome:
    """``judge`` for a process of a pool, which gets all arguments as one tuple."""
    family, index, known, options = job
    return judge(family, index, known, **options)


def outcomes(
    processes: int = 2,
    seed: int = SEED,
    families: Sequence[str] = tuple(FAMILIES),
    **options: Any,
) -> list[Outcome]:
    """The results of ``judge`` for every case of the families whose run of ns-2 is stored.

    ``seed`` is that which drew the cases. ``options`` go to ``judge``, for example the ``model``.
    The work is shared among ``processes`` processes.
    """
    stored = load(seed)
    jobs = [
        (family, index, stored[f"{family}/{index}"], {"seed": seed} | options)
        for family in families
        for index in range(CASES)
        if f"{family}/{index}" in stored
    ]
    if jobs and options.get("model") == "fluid":
        _judge_job(jobs[0])  # compiles the simulator, whose compilation must not count as CPU time
    if processes == 1:
        return [_judge_job(job) for job in jobs]
    with ProcessPoolExecutor(processes) as pool:
        return list(pool.map(_judge_job, jobs, chunksize=4))


def _row(name: str, chosen: list[Outcome], goal: float | None) -> str:
    """A line of the table: errors of the cases ``chosen``, and the goal for their mean.

    ``goal`` is ``None`` for a family without a goal.  ``report`` explains the columns.
    """
    answered = [o for o in chosen if not np.isnan(o.error)]
    if not answered:
        return f"{name:22s}{0:5d}  no answer"
    errors = np.array([abs(o.error) for o in answered])
    # the part of each error that chance in ns-2's runs does not explain
    beyond = np.maximum(errors - 2 * np.array([o.se for o in answered]), 0.0)
    base_errors = np.array([o.base_error for o in answered if np.isfinite(o.base_error)])
    unanswered = len(chosen) - len(answered)
    tail = f"  baseRTT {base_errors.mean():6.1%}" if base_errors.size else ""
    tail += f"  {unanswered} without an answer" if unanswered else ""
    se = float(standard_error(errors)) if errors.size > 1 else np.nan
    return (
        f"{name:22s}{errors.size:5d}{errors.mean():9.1%} +- {se:5.1%}"
        f"{np.quantile(beyond, 0.95):9.1%}"
        f"{np.mean([o.se for o in answered]):9.1%}{np.max([o.spread for o in answered]):9.1%}"
        f"{1e3 * np.median([o.cpu for o in answered]):9.1f}"
        f"{'' if goal is None else format(goal, '.0%'):>7s}{tail}"
    )


def report(
    results: list[Outcome], *, model: str = "rounds", fresh: bool = False, cases: bool = False
) -> None:
    """Print a table of the errors of ``model``, by family of cases.

    A family has a row for its even-numbered cases, one for the odd-numbered and one for all.  While
    the simulators were built, the even-numbered half was looked at more.  ``fresh`` is True for
    cases of another seed, of which neither half was looked at.  These have only the row for all.
    With ``cases`` each case is printed, too.

    The column "95 % > 2se" has the 95th percentile of the part of an error that is beyond two
    standard errors of the measurement.  "max cv" has the largest coefficient of variation of a
    throughput over ns-2's runs, and "CPU ms" the median time of an answer.
    """
    print(
        f"{'family':22s}{'cases':>5s}{'mean error':>18s}{'95 % > 2se':>9s}"
        f"{'ns-2 se':>9s}{'max cv':>9s}{'CPU ms':>9s}{'goal':>7s}"
    )
    for family in FAMILIES:
        halves = {"fresh": (0, 1)} if fresh else {"even": (0,), "odd": (1,), "all": (0, 1)}
        for name, half in halves.items():
            chosen = [o for o in results if o.family == family and o.index % 2 in half]
            if chosen:
                print(_row(f"{family} ({name})", chosen, GOALS[model].get(family)))
    if cases:
        for o in results:
            print(
                f"{o.family}/{o.index} error {o.error:+.3f} se {o.se:.3f} cv {o.spread:.3f} "
                f"CPU {1e3 * o.cpu:.1f} ms"
            )


def _true_base(scenario: Scenario) -> Scenario:
    """The scenario in which each Vegas flow knows its propagation delay."""
    vegas = [group.name for group in scenario.flows if group.law == "vegas"]
    return scenario.replace({f"flow.{name}.over_estimate": 0.0 for name in vegas})


def _one_recovery(scenario: Scenario) -> Scenario:
    """The scenario in which each loss-based flow recovers from losses as SACK does."""
    groups = tuple(
        g if g.law == "vegas" else dataclasses.replace(g, law="sack", name=g.name)
        for g in scenario.flows
    )
    return dataclasses.replace(scenario, flows=groups)


# a line of the table of ``--ablations``: arguments of ``judge``
ABLATIONS: dict[str, dict[str, Any]] = {
    "everything": {},
    "backlog not rounded": {"without": ("rounding",)},
    "a decision every ACK": {"without": ("rounds",)},
    "baseRTT = rtt": {"change": _true_base},
    "recovery of SACK for all": {"change": _one_recovery},
    "timeouts without ticks": {"without": ("ticks",)},
    "all lose when one does": {"synchronised": True},
    "16 parts a round": {"parts": 16},
    "one start, not a mean": {"runs": 1},
    "the measured runs' starts": {"same_draws": True},
}


def ablations(processes: int = 2, seed: int = SEED) -> None:
    """Print the mean error per family with each mechanism of ``rounds`` switched off in turn.

    ``ABLATIONS`` lists the mechanisms. ``seed`` drew the cases, and ``processes`` processes share
    the work.
    """
    print(f"{'':28s}" + "".join(f"{family:>10s}" for family in FAMILIES))
    for name, options in ABLATIONS.items():
        results = outcomes(processes, seed, **({"runs": 5} | options))
        cells = ""
        for family in FAMILIES:
            errors = [abs(o.error) for o in results if o.family == family]
            cells += f"{np.mean(errors):10.1%}" if errors else f"{'':>10s}"
        print(f"{name:28s}{cells}", flush=True)


def again(runs: int, keys: Sequence[str], seed: int = SEED) -> None:
    """Run some cases ``runs`` times in ns-2 and in ``rounds``; print the flows' shares of the link.

    ``keys`` name the cases, such as "red/6".  A run of some cases ends in one of two ways, for
    example if Vegas may measure a far too small baseRTT.  Then five runs are too few for the mean.
    """
    from vegasmodel.packets import ns2

    for key in keys:
        family, index = key.split("/")
        scenario = with_seed(case(family, int(index), seed), OTHER_DRAWS)
        many = scenario.replace({"run.runs": runs})
        measured = np.array(ns2.run(many, rtts=False).extra["throughput_runs"])
        model = answer(many, runs=runs)
        capacity = scenario.links[0].capacity
        for name, mean, se in (
            ("ns-2", measured.mean(axis=0), standard_error(measured)),
            ("rounds", np.asarray(model.throughput), np.asarray(model.throughput_se)),
        ):
            cells = "  ".join(
                f"{m:.3f} +- {s:.3f}" for m, s in zip(mean / capacity, se / capacity, strict=True)
            )
            print(f"{key:10s} {name:8s}{cells}", flush=True)


def _runs_and_cases(
    words: Sequence[str], parser: argparse.ArgumentParser
) -> tuple[int, Sequence[str]]:
    """The number of runs and the cases from the words after ``--again``, as in "40 red/6".

    If the words are wrong, ``parser`` prints a message and ends the program.
    """
    runs, *keys = words
    possible = {f"{family}/{index}" for family in FAMILIES for index in range(CASES)}
    wrong = [key for key in keys if key not in possible]
    if wrong or not keys:
        said = f"{wrong[0]!r} is not allowed" if wrong else "no case is named"
        parser.error(f"--again: {said}; a case is like mixed/0 or mixed/19")
    try:
        return at_least(2)(runs), keys
    except argparse.ArgumentTypeError as error:
        parser.error(f"--again: {error}")


def main() -> None:
    """Run ns-2 if it is asked for, then print the errors of a model in each family."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--measure", action="store_true", help="run ns-2 where nothing is stored")
    parser.add_argument(
        "--refine", action="store_true", help="run ns-2 20 times where 5 runs differ much"
    )
    parser.add_argument("--ablations", action="store_true", help="switch mechanisms off in turn")
    parser.add_argument("--cases", action="store_true", help="print every case")
    parser.add_argument(
        "--fresh",
        type=at_least(0),
        default=SEED,
        metavar="SEED",
        help="draw the cases from this seed",
    )
    parser.add_argument(
        "--same-starts", action="store_true", help="use the start times of ns-2's runs"
    )
    parser.add_argument(
        "--again",
        nargs="+",
        metavar=("RUNS", "CASE"),
        help="run ns-2 again: how often, then which cases",
    )
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=list(FAMILIES))
    parser.add_argument("--processes", type=at_least(1), default=2)
    parser.add_argument(
        "--model", choices=tuple(GOALS), default="rounds", help="the model to judge"
    )
    options = parser.parse_args()
    if options.again:
        runs, keys = _runs_and_cases(options.again, parser)
        again(runs, keys, options.fresh)
        return
    if options.measure or options.refine:
        # cases without a stored run come first: only stored cases can be refined
        for refine in (False, True) if options.refine else (False,):
            measure(
                refine=refine,
                processes=options.processes,
                seed=options.fresh,
                families=options.families,
            )
    if not load(options.fresh):
        parser.error(f"--fresh: no stored runs of seed {options.fresh}; --measure makes them")
    if options.ablations:
        if options.model != "rounds":
            parser.error("--ablations: the model rounds alone has mechanisms to switch off")
        ablations(options.processes, options.fresh)
    else:
        results = outcomes(
            options.processes,
            options.fresh,
            options.families,
            model=options.model,
            same_draws=options.same_starts,
        )
        fresh = options.fresh != SEED
        report(results, model=options.model, fresh=fresh, cases=options.cases)


if __name__ == "__main__":
    main()
