"""Puts a model in the place of ns-2: computes a record's value from the model's predictions.

A record is one item of a paper: a printed value, and a function that computes the same value from
measurements of scenarios.  The function asks ``Runs`` for these measurements.  ``Answers`` gives it
a model's prediction of the same scenarios instead.  So the printed value can be compared with the
values from a closed form, from the simulators ``fluid`` and ``rounds``, and from ns-2.
"""

import concurrent.futures
import contextlib
import dataclasses
import multiprocessing
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, cast

import numpy as np

from paper_checks import topology, web
from paper_checks.checks import Found, Record
from paper_checks.runs import Groups, Measured, NoRun, Runs, mean_and_range
from vegasmodel.metrics import Floats, jain, standard_error
from vegasmodel.predictor import CLOSED_FORMS, SIMULATED, predict
from vegasmodel.results.prediction import Prediction
from vegasmodel.scenario import Scenario

__all__ = [
    "Answers",
    "answer",
    "best_closed_form",
    "by_group",
    "by_simulator",
    "measurement",
    "prime",
    "value",
]

# If equally many assumptions of several closed forms fail, the first of them in this list answers.
SPECIAL_FIRST = (
    "rate-delay",
    "red",
    "random-loss",
    "minicycle",
    "arrivals",
    "equilibrium",
    "bands",
    "network",
)
MANY_FLOWS = 20  # with more flows, ``rounds`` runs one seed only, to save time
OVER_TIME = ("window", "rate")  # the results of ``mean_and_range_over_time``, in its order
PROCESSES = 2  # in parallel
FEW_SCENARIOS = 40  # so few take less time than processes need to start
# A prediction is given as so many equal runs: then the standard deviation over the runs is 0.  (Of
# one run it would not be defined.)
EQUAL_RUNS = 2


_predictions: dict[tuple[str, str], Prediction] = {}  # computed so far, by fingerprint and model


class _ModelResults:
    """A model's results, with the attributes that ``Measured`` or ``Groups`` have for ns-2.

    ``results`` has the results by name, ``None`` for those that the model does not give.  Access to
    one of these raises ``NoRun``, so the record that needs it has no value from this model.

    ``window`` and ``rate`` of a simulator need a run that records them over time.  Such a run takes
    long and is seldom needed, so it is made only when one of them is read.
    """

    def __init__(self, scenario: Scenario, model: str, **results: Any) -> None:
        self._scenario, self._model = scenario, model
        self.__dict__.update({name: v for name, v in results.items() if v is not None})

    def __getattr__(self, name: str) -> Any:
        """The result ``name``; Python calls this only if the instance has no such attribute."""
        if self._model in SIMULATED and name in OVER_TIME:
            return mean_and_range_over_time(self._scenario, self._model)[OVER_TIME.index(name)]
        raise NoRun(f"{self._model} gives no {name}")


def answer(scenario: Scenario, model: str) -> Prediction:
    """The prediction of a model for a scenario, computed once and then kept.

    Three cases are special.  With many flows the simulator ``rounds`` takes seconds for a run, so
    it makes only one.  With short flows that arrive at random ``rounds`` takes minutes, so its
    stored predictions are used (``web``).  The simulator ``fluid`` has only one link, so it gets
    the scenario without the links at which no packet waits (``topology.shared``).
    """
    key = scenario.fingerprint(), model
    if key not in _predictions:
        _predictions[key] = _predict(scenario, model)
    # the kept prediction may be for the same scenario under another name
    return dataclasses.replace(_predictions[key], scenario=scenario)


def prime(scenarios: Iterable[Scenario]) -> None:
    """Compute predictions of ``rounds`` in parallel processes, for ``answer`` to find later.

    Predictions that were computed already are not computed again.  Scenarios with short flows that
    arrive at random are left out, because their predictions are stored.  If at most
    ``FEW_SCENARIOS`` scenarios remain, nothing is done: ``answer`` then computes them one by one,
    which is faster than starting processes.
    """
    new = (s for s in scenarios if (s.fingerprint(), "rounds") not in _predictions)
    # the scenarios to predict, each once
    todo = list({s.fingerprint(): s for s in new if not s.random_arrivals}.values())
    if len(todo) <= FEW_SCENARIOS:
        return
    # the longest runs come first, so that none runs alone at the end
    todo.sort(key=_work, reverse=True)
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(PROCESSES, mp_context=context) as pool:
        for scenario, found in zip(todo, pool.map(_by_rounds, todo), strict=True):
            _predictions[scenario.fingerprint(), "rounds"] = found


def _work(scenario: Scenario) -> float:
    """An estimate of how long ``rounds`` takes: the packets that all links can carry in all runs.

    With more than ``MANY_FLOWS`` flows ``rounds`` makes only one run, so only one counts.
    """
    runs = 1 if len(scenario.members) > MANY_FLOWS else scenario.run.times
    return runs * scenario.run.duration * sum(link.capacity for link in scenario.links)


def _by_rounds(scenario: Scenario) -> Prediction:
    """The prediction of ``rounds``: a function of one argument, which a process pool can call."""
    return _predict(scenario, "rounds")


def _predict(scenario: Scenario, model: str) -> Prediction:
    """The prediction of a model for a scenario, with the special cases that ``answer`` names."""
    if model == "rounds" and scenario.random_arrivals:
        return web.stored(scenario)
    if model == "rounds" and len(scenario.members) > MANY_FLOWS:
        return predict(scenario.replace({"run.runs": 1}), model)
    if model == "fluid":  # it has one link
        return predict(topology.shared(scenario), model)
    return predict(scenario, model)


@cache
def mean_and_range_over_time(scenario: Scenario, model: str) -> tuple[Floats, Floats]:
    """How far windows and rates move after the warm-up, by the simulator ``model``.

    The first array has the mean, least and largest window of each flow, in packets.  The second has
    the same of its rate, window over RTT, in pkt/s.  Each array is [3, flows].  Raises ``NoRun`` if
    the simulator cannot simulate the scenario.
    """
    from vegasmodel.simulation import simulate

    try:
        data = simulate(scenario, model)
    except ValueError as refusal:
        raise NoRun(str(refusal)) from None
    late = data["time"].values >= scenario.run.warmup
    window, rtt = data["window"].values[late], data["rtt"].values[late]
    return mean_and_range(window), mean_and_range(window / rtt)


def by_simulator(model: str) -> Callable[[Scenario], Prediction | None]:
    """A function that returns the prediction of ``fluid`` or ``rounds`` for a scenario.

    It returns ``None`` if the simulator gives no throughputs.
    """

    def predicts(scenario: Scenario) -> Prediction | None:
        """The simulator's prediction; ``None`` if it has no throughputs."""
        found = answer(scenario, model)
        return found if found.applicable and found.throughput is not None else None

    return predicts


def best_closed_form(scenario: Scenario) -> Prediction | None:
    """The prediction of the closed form with the fewest assumptions that fail in the scenario.

    The result is ``None`` if no closed form gives all throughputs.
    """
    found = [answer(scenario, model) for model in SPECIAL_FIRST if model in CLOSED_FORMS]
    found = [
        p
        for p in found
        if p.applicable and p.throughput is not None and np.all(np.isfinite(p.throughput))
    ]
    # among equals ``min`` takes the first, the most special one
    return min(found, key=lambda p: sum(a.holds is False for a in p.assumptions), default=None)


class Answers(Runs):
    """Has the methods of ``Runs``, but all results come from a model instead of ns-2 or ns-3.

    ``predicts`` is the function that gives the model's prediction for a scenario, or ``None``.
    ``models`` lists the names of the models whose predictions were used.

    A model has one result, where ns-2 has one for each of several runs. So the result of the model
    is given as that of ``EQUAL_RUNS`` equal runs.
    """

    def __init__(self, predicts: Callable[[Scenario], Prediction | None]) -> None:
        super().__init__()
        self.predicts = predicts
        self.models: dict[str, None] = {}  # only the keys count: a set that keeps its order

    def __call__(self, scenario: Scenario) -> Measured:
        """The model's results per flow.  Raises ``NoRun`` if the model gives none."""
        found, rates = self._predicted(scenario)
        # utilization and queue are those of the slowest link
        slowest = int(np.argmin([link.capacity for link in scenario.links]))
        spans = np.array(  # s in which each flow is active after the warm-up
            [max(m.stop - max(m.start, scenario.run.warmup), 0.0) for m in scenario.members]
        )
        results = _ModelResults(
            scenario,
            found.model,
            throughput=np.tile(rates, (EQUAL_RUNS, 1)),
            mean=rates,
            jain=np.full(EQUAL_RUNS, jain(rates)),
            acks=rates * spans,  # one for each packet delivered
            retransmits=found.retransmits,
            loss_rate=found.loss_rate,
            utilization=_of(found.utilization, slowest),
            queue=_of(found.queue_mean, slowest),
            base_rtt=found.base_rtt,
        )
        return cast("Measured", results)

    def groups(self, scenario: Scenario) -> Groups:
        """The model's results per group of flows.  Raises ``NoRun`` if the model gives none."""
        found, rates = self._predicted(scenario)
        means = by_group(scenario, rates)
        losses = None if found.loss_rate is None else by_group(scenario, found.loss_rate)
        results = _ModelResults(
            scenario,
            found.model,
            throughput=np.tile(means, (EQUAL_RUNS, 1)),
            mean=means,
            jain=np.full(EQUAL_RUNS, jain(rates)),
            loss_rate=losses,
            utilization=found.utilization,
            queue=found.queue_mean,
        )
        return cast("Groups", results)

    def unspaced(self, scenario: Scenario) -> Measured:
        """The model's results per flow, as ``self(scenario)``: a model has only one form of RED."""
        return self(scenario)

    def automatic(self, scenario: Scenario) -> Measured:
        """The model's results per flow, as ``self(scenario)``: a model has only one form of RED."""
        return self(scenario)

    def groups_automatic(self, scenario: Scenario) -> Groups:
        """The model's results per group of flows: a model has only one form of RED."""
        return self.groups(scenario)

    def later_timers(self, scenario: Scenario) -> Measured:
        """The model's results per flow: a model has only one set of timers."""
        return self(scenario)

    def with_router(self, scenario: Scenario) -> Groups:
        """The model's results per group of flows: they do not depend on a packet simulator."""
        return self.groups(scenario)

    def _predicted(self, scenario: Scenario) -> tuple[Prediction, Floats]:
        """The prediction and its throughputs.  Raises ``NoRun`` if there are none."""
        found = self.predicts(scenario)
        if found is None or found.throughput is None:
            raise NoRun("no model answers this scenario")
        self.models[found.model] = None
        return found, found.throughput


def value(record: Record, answers: Answers) -> tuple[Any, str]:
    """The value that ``record`` computes from predictions, and the names of the models used.

    If a model lacks a result that the record needs, the value is ``None``, and the second result
    is the reason.
    """
    if record.compute is None:
        return None, record.blocked
    answers.models.clear()
    try:
        with np.errstate(all="ignore"):
            found = record.compute(answers)
    except NoRun as missing:
        return None, str(missing)
    except ArithmeticError as error:  # a model's 0 where packets never give one
        return None, str(error)
    result = found.value if isinstance(found, Found) else found
    return result, ", ".join(answers.models)


def measurement(scenario: Scenario, runs: Runs) -> Prediction:
    """ns-2's stored measurement of a scenario as a ``Prediction``, with standard errors.

    A measurement of many flows is stored per group of flows; then every flow gets the mean of its
    group.  Raises ``NoRun`` if no measurement is stored.
    """
    group = np.array([m.group for m in scenario.members])  # of each flow
    with contextlib.suppress(NoRun):
        flows = runs(scenario)
        return _prediction(scenario, flows.throughput, base_rtt=flows.base_rtt)
    return _prediction(scenario, runs.groups(scenario).throughput[:, group])


def _prediction(scenario: Scenario, rows: Floats, base_rtt: Floats | None = None) -> Prediction:
    """The ``Prediction`` with the throughputs ``rows`` [runs, flows], pkt/s, and baseRTTs in s."""
    error = standard_error(rows) if len(rows) > 1 else None
    return Prediction("ns2", scenario, rows.mean(axis=0), throughput_se=error, base_rtt=base_rtt)


def by_group(scenario: Scenario, flows: Floats) -> Floats:
    """The means of ``flows``, one value per flow, over the flows of each group of the scenario."""
    group = np.array([m.group for m in scenario.members])  # of each flow
    return np.array([flows[group == g].mean() for g, _ in enumerate(scenario.flows)])


def _of(values: Floats | None, index: int) -> float | None:
    """The entry ``index`` of ``values``; ``None`` if there is no such finite number."""
    return None if values is None or not np.isfinite(values[index]) else float(values[index])
