"""Lists all models (closed forms and simulators), and evaluates them for a scenario."""

from __future__ import annotations

import dataclasses
import importlib
import os
import time
from collections.abc import Callable, Iterable, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from vegasmodel.fields.errors import FieldError
from vegasmodel.fields.rules import Choice, Integer, listed
from vegasmodel.laws import foreign
from vegasmodel.laws.faults import LawFault
from vegasmodel.results.many_predictions import Batch, Predictions
from vegasmodel.results.prediction import Prediction
from vegasmodel.results.scatter import SIMULATED as SIMULATED
from vegasmodel.scenario import Scenario, expect
from vegasmodel.scenario.active_time import active_part
from vegasmodel.scenario.placement import with_crossed_link
from vegasmodel.support.extras import ExtraMissing

# model name -> module and function that evaluate the model; the module is imported when needed
_MODELS = MappingProxyType(
    {
        "equilibrium": ("vegasmodel.adapters.secular", "equilibrium"),
        "bands": ("vegasmodel.adapters.bands", "bands"),
        "arrivals": ("vegasmodel.adapters.arrivals", "arrivals"),
        "arrivals-bonald": ("vegasmodel.adapters.arrivals", "arrivals_bonald"),
        "minicycle": ("vegasmodel.adapters.minicycle", "answer"),
        "red": ("vegasmodel.adapters.red", "answer"),
        "random-loss": ("vegasmodel.adapters.random_loss", "answer"),
        "rate-delay": ("vegasmodel.adapters.rate_delay", "answer"),
        "network": ("vegasmodel.adapters.network", "answer"),
        "fluid": ("vegasmodel.adapters.fluid", "answer"),
        "rounds": ("vegasmodel.adapters.rounds", "answer"),
    }
)
# simulator -> module and function that tell why it cannot simulate a scenario, or None
_OBSTACLES = MappingProxyType(
    {
        "fluid": ("vegasmodel.engines.fluid.methods", "unsupported"),
        "rounds": ("vegasmodel.engines.rounds.answers", "obstacle"),
    }
)
MODELS = tuple(_MODELS)
"""Names of all models: the closed forms, then the simulators ``fluid`` and ``rounds``."""
_SEVERAL_LINKS = ("network", "rounds")  # the models for several links; all others are for one
CLOSED_FORMS = tuple(name for name in MODELS if name not in SIMULATED)


def choose(models: Sequence[str]) -> tuple[str, ...]:
    """The names of the models to evaluate.

    - If ``models`` lists names of models, the result has these names, each once.
    - If ``models`` contains the word ``all``, the result has all models.
    - If ``models`` is empty, the result has all models except the simulators ``fluid`` and
      ``rounds``.

    Raises ``FieldError`` for any other value.
    """
    for model in models:
        if isinstance(model, str) and "," in model:
            raise FieldError("model", model, "one name; write --model NAME for each model")
        Choice(("all", *MODELS)).check(model, "model")
    if "all" in models:
        return MODELS
    return tuple(dict.fromkeys(models)) or CLOSED_FORMS


def able(scenario: Scenario) -> tuple[str, ...]:
    """Which of the simulators ``fluid`` and ``rounds`` can predict the scenario's throughputs.

    Neither can if no flow sends after the warm-up.
    """
    if not active_part(scenario).any():
        return ()
    return tuple(
        name
        for name, (module, function) in _OBSTACLES.items()
        if getattr(importlib.import_module(module), function)(
            scenario if name in _SEVERAL_LINKS else with_crossed_link(scenario)
        )
        is None
    )


def check_model(model: str) -> None:
    """Raise ``FieldError`` unless ``model`` is the name of a model."""
    if not isinstance(model, str) or model == "all":
        allowed = "one model; vegasmodel.predict_all(scenario, [MODEL, ...]) asks several or all"
        raise FieldError("model", model, allowed)
    Choice(MODELS).check(model, "model")


def check_models(models: str | Sequence[str]) -> list[str]:
    """The names of models as a list; ``models`` may also be a single name, or ``all``.

    Raises ``FieldError`` unless each is the name of a model.
    """
    if isinstance(models, str):
        models = MODELS if models == "all" else (models,)
    found: list[str] = listed(models, "models", "models")
    for model in found:
        check_model(model)
    return found


def predict(scenario: Scenario, model: str = "rounds") -> Prediction:
    """The prediction of one model for the scenario.

    ``model`` is one of ``MODELS``.  The default is the simulator ``rounds``, because it can
    simulate almost every scenario.

    If the model cannot be evaluated for the scenario, no error is raised: the prediction then has
    ``applicable=False``, and ``reason`` says why.  One possible reason is an error in a congestion
    control law that the user has written.  Raises ``FieldError`` for an unknown model, and
    ``ExtraMissing`` if the model needs an optional package that is not installed.
    """
    expect(scenario)
    check_model(model)
    reason = foreign(group.law for group in scenario.flows)
    if reason is not None and model not in SIMULATED:
        return Prediction.not_applicable(model, scenario, f"{reason}; simulators do")
    asked = scenario if model in _SEVERAL_LINKS else with_crossed_link(scenario)
    module, function = _MODELS[model]
    answer: Callable[[Scenario], Prediction] = getattr(importlib.import_module(module), function)
    start = time.perf_counter()
    try:
        prediction = _of_all_links(answer(asked), scenario)
    except LawFault as fault:
        prediction = Prediction.not_applicable(model, scenario, str(fault))
    seconds = time.perf_counter() - start
    return dataclasses.replace(prediction, model=model, seconds=seconds)


def _of_all_links(found: Prediction, scenario: Scenario) -> Prediction:
    """The prediction ``found``, with values for all links of ``scenario``.

    A model of one link is given a scenario without the links that no flow crosses
    (``with_crossed_link``). In the result, the queue and the utilization of those links are 0.
    """
    if found.scenario is scenario:
        return found
    index = [link.name for link in scenario.links].index(found.scenario.links[0].name)

    def widened(values: Any) -> Any:
        """An array [..., 1] of the crossed link as an array [..., link] of all links."""
        if values is None:
            return None
        wide = np.zeros((*np.shape(values)[:-1], len(scenario.links)))
        wide[..., index] = np.asarray(values)[..., 0]
        return wide

    extra = found.extra
    if "queue_runs" in extra:
        extra = extra | {"queue_runs": widened(extra["queue_runs"])}
    of_links = {name: widened(getattr(found, name)) for name in ("queue_mean", "utilization_links")}
    return dataclasses.replace(found, scenario=scenario, extra=extra, **of_links)


def predict_all(scenario: Scenario, models: str | Sequence[str] = MODELS) -> Predictions:
    """The predictions of several models for the scenario, in the order of ``models``.

    ``models`` may also be a single name, or ``all``.  The result is a list, with the methods
    ``table`` and ``to_dataframe``.  ``predict_all(scenario)["rounds"]`` is the prediction of one
    model.

    If a model cannot be evaluated for the scenario, its prediction has ``applicable=False``, and
    ``reason`` says why.  One possible reason is that an optional package is not installed.  Raises
    ``FieldError`` for an unknown model.
    """
    return Predictions(_predict_or_say(scenario, model) for model in check_models(models))


def _predict_or_say(scenario: Scenario, model: str) -> Prediction:
    """The prediction of a model; if an optional package is missing, the prediction says so."""
    try:
        return predict(scenario, model)
    except ExtraMissing as missing:
        empty = Prediction.not_applicable(model, scenario, str(missing))
        return dataclasses.replace(empty, extra={"missing": missing})


def workers(threads: int | None) -> int:
    """The number of threads to use: ``threads``, or one per core if ``threads`` is ``None``.

    Raises ``FieldError`` unless ``threads`` is ``None`` or a whole number from 1 to 10000.
    """
    if threads is None:
        return os.cpu_count() or 1
    Integer(1, 10_000).check(threads, "threads")
    return threads


def batch(
    scenarios: Iterable[Scenario], model: str = "rounds", threads: int | None = None
) -> Batch:
    """The predictions of one model for many scenarios, in the order of the scenarios.

    The result is a tuple, with the methods ``table``, ``to_dataframe`` and ``to_json``.

    The first prediction is computed alone, because a simulator may have to be compiled.  The others
    are computed in parallel on ``threads`` threads, by default one per core.  The results do not
    depend on the number of threads.  If the model cannot be evaluated for a scenario, the
    prediction has ``applicable=False``, and ``reason`` says why.

    Raises the same errors as ``predict``, and ``FieldError`` for an invalid number of threads.
    """
    from vegasmodel.support.progress import counting
    from vegasmodel.support.threads import pool

    check_model(model)
    n_threads = workers(threads)
    cases = listed(scenarios, "scenarios", "scenarios")
    if not cases:
        return Batch()
    first = predict(cases[0], model)  # compiles, or raises an error of the model
    with counting(len(cases), done=1) as count, pool(n_threads) as threads_pool:

        def one(case: Scenario) -> Prediction:
            """The prediction for one scenario, which then counts as done."""
            found = predict(case, model)
            count.done += 1
            return found

        return Batch((first, *threads_pool.map(one, cases[1:])))
