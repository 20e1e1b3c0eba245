"""Evaluates a model at many points of a study, or for many scenarios.

A point is a copy of a scenario in which some fields have other values. To save time, two models
compute many points in one call where they can: the closed form ``minicycle`` and the simulator
``fluid``. Where ``fluid`` cannot, and with the other simulators, several points run at the same
time, in threads. All other models evaluate one point after the other.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from vegasmodel import measurement, predictor
from vegasmodel.fields.errors import FieldError
from vegasmodel.fields.rules import nearest
from vegasmodel.packets.engine import EngineFailed
from vegasmodel.results.prediction import Prediction
from vegasmodel.scenario import Scenario
from vegasmodel.scenario.active_time import silent
from vegasmodel.study import together
from vegasmodel.study.points import FAILED, NO_ANSWER, NOT_ALLOWED, Figures, Points, collected
from vegasmodel.support.threads import pool

if TYPE_CHECKING:
    from vegasmodel.engines.rounds.answers import Enough

__all__ = ["answers", "at_once", "check_model", "predictions", "ready"]


def check_model(model: str, field: str = "model") -> None:
    """Raise ``FieldError`` unless ``model`` is the name of a model or of a packet-level simulator.

    The error names ``field`` as the wrong argument.
    """
    known = (*predictor.MODELS, *measurement.ENGINES)
    if not isinstance(model, str) or model not in known:
        raise FieldError(field, model, f"one of {', '.join(known)}{nearest(model, known)}")


def ready(*models: str) -> None:
    """Check before a long computation that the models exist, and that ns-2 and ns-3 are installed.

    Raises ``FieldError`` for an unknown name, and ``EngineMissing`` if ns-2 or ns-3 is among
    ``models`` and is not installed.
    """
    for model in models:
        check_model(model)
    for engine in set(models) & set(measurement.ENGINES):
        from vegasmodel.packets import ns2, ns3

        (ns3 if engine == "ns3" else ns2).version()


def answers(points: Points, model: str, threads: int | None = None) -> Figures:
    """The model's results at every point of a study, as arrays.

    A point is a copy of a scenario in which some fields have other values.  If the model has no
    result at a point, ``status`` says so, and the other points are not affected.  ``threads`` is
    the number of threads of a simulator; by default there is one per core.  Raises
    ``ExtraMissing`` or ``EngineMissing`` if the model needs something that is not installed.
    """
    found = at_once(points, model, threads)
    if found is None:
        return collected(points, predictions(points.scenarios(), model, threads))
    return found


def at_once(points: Points, model: str, threads: int | None) -> Figures | None:
    """The model's results at all points of a study, if it can compute them together; else ``None``.

    A point is a copy of a scenario in which some fields have other values.  Points are computed
    together only if one run at each is enough.
    """
    if model == "minicycle":
        return together.by_minicycle(points)
    if model != "fluid" or points.by_group:
        return None
    scenarios = points.scenarios()
    return (
        together.by_fluid(points, scenarios, threads)
        if together.fits_one_batch(scenarios)
        else None
    )


def predictions(
    scenarios: Sequence[Scenario | str],
    model: str,
    threads: int | None,
    *,
    brief: bool = False,
    enough: Enough | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Prediction | tuple[int, str]]:
    """Evaluate one model for each scenario; return its prediction, or a status and a reason.

    A study evaluates a model for copies of a scenario with other values.  If the values of a copy
    are not valid, its entry in ``scenarios`` is a text that says why.  This text is returned as the
    reason.

    ``threads`` is the number of threads of a simulator; by default there is one per core.

    ns-2 and ns-3 make as many runs as a scenario says (``run.runs``), or one if it does not say.
    Like the predictions of ``fluid`` and ``rounds``, theirs have the assumption ``enough-runs``.

    With ``brief``, ns-2 and ns-3 save time: they record no round-trip times, and sample windows and
    queues only at the start and at the end of a run.

    Only ``rounds`` uses the function ``enough``.  From the second run on, ``rounds`` calls it with
    one prediction for each run so far.  ``enough`` returns True if no further run is needed.

    After each scenario, ``progress`` is called with two numbers: the scenarios done so far, and all
    scenarios.
    """
    n_threads, evaluate = predictor.workers(threads), _evaluator(model, enough, brief=brief)

    def evaluated(scenario: Scenario | str) -> Prediction | tuple[int, str]:
        """The prediction for one scenario, or the status of its point and a reason."""
        if isinstance(scenario, str):
            return NOT_ALLOWED, scenario
        try:
            found = evaluate(scenario)
        except FieldError as error:  # the simulator lacks a feature of the scenario
            return NO_ANSWER, str(error)
        except (EngineFailed, ValueError, ArithmeticError) as error:
            return FAILED, str(error)
        if not found.applicable or found.throughput is None:
            return NO_ANSWER, found.reason or "no throughput"
        if np.any(~np.isfinite(found.throughput) & ~silent(scenario)):
            return FAILED, "the throughputs are not numbers"
        return found

    found = []
    with contextlib.ExitStack() as stack:
        results: Iterator[Prediction | tuple[int, str]] = map(evaluated, scenarios)
        if model in (*predictor.SIMULATED, *measurement.ENGINES):  # threads help these
            results = stack.enter_context(pool(n_threads)).map(evaluated, scenarios)
        for answer in results:
            found.append(answer)
            if progress is not None:
                progress(len(found), len(scenarios))
    return found


def _evaluator(
    model: str, enough: Enough | None, *, brief: bool
) -> Callable[[Scenario], Prediction]:
    """The function that evaluates a model, such as ``fluid``, or runs ns-2 or ns-3 for a scenario.

    It does not modify any data that threads share, so several threads may call it at the same time.
    ``predictions`` explains ``enough`` and ``brief``.
    """
    if model in measurement.ENGINES:  # ns-2 or ns-3
        return lambda scenario: measurement.with_enough_runs(
            measurement.run_engine(scenario, model, brief=brief)
        )
    if model == "rounds":
        from vegasmodel.adapters import rounds  # loads its machine code

        return functools.partial(rounds.figures, enough=enough)
    if model == "fluid":
        import numba  # noqa: F401 - two threads that import it at the same time would fail
    return functools.partial(predictor.predict, model=model)
