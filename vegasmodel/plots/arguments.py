"""Reads the arguments ``models``, ``measured`` and ``results`` of the figures in ``shares.py``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

from vegasmodel.fields.errors import FieldError
from vegasmodel.fields.rules import listed
from vegasmodel.plots.style import Look, look
from vegasmodel.results.many_predictions import Predictions
from vegasmodel.results.prediction import Prediction
from vegasmodel.scenario import Scenario


@runtime_checkable
class Compared(Protocol):
    """A comparison of models with a measurement, as ``vegasmodel.compare`` returns it."""

    @property
    def models(self) -> Sequence[Prediction]:
        """The predictions of the models."""

    @property
    def measured(self) -> Prediction:
        """The measurement with which the predictions are compared."""


# what a figure takes as ``models`` or ``measured``: one of these objects, or several of them
OneOrSeveral: TypeAlias = Prediction | Compared | Iterable[Prediction]
Answers: TypeAlias = OneOrSeveral | Iterable[OneOrSeveral]


class Drawn(NamedTuple):
    """A prediction or a measurement, and how a figure draws it."""

    result: Prediction
    look: Look  # its colour, line style and marker
    is_measurement: bool


def drawn_results(models: Answers, measured: Answers) -> list[Drawn]:
    """The predictions and measurements that have throughputs, and how to draw each of them.

    Raises ``FieldError`` if there are none.
    """
    predicted, compared_with = split(models, "models")
    results = [(p, False) for p in predicted]
    results += [(p, True) for part in (compared_with, *split(measured, "measured")) for p in part]
    known([p for p, _ in results], "throughput", "models, measured")
    return [
        Drawn(p, look(p.model), is_measurement)
        for p, is_measurement in results
        if p.throughput is not None
    ]


def split(given: object, where: str) -> tuple[list[Prediction], list[Prediction]]:
    """Split an argument of a figure into a list of predictions and a list of measurements.

    ``given`` may contain comparisons.  A comparison has predictions and one measurement.  Raises
    ``FieldError``, which names the argument ``where``, for anything but predictions and
    comparisons.
    """
    entries = [given] if isinstance(given, Prediction | Compared) else given
    predicted, measured = list[Prediction](), list[Prediction]()
    for entry in listed(entries, where, "predictions"):
        if isinstance(entry, Compared):
            predicted += entry.models
            measured.append(entry.measured)
        elif isinstance(entry, Predictions):
            predicted += entry
        elif isinstance(entry, Prediction):
            predicted.append(entry)
        else:
            raise FieldError(where, entry, "predictions, as vegasmodel.predict_all returns them")
    return predicted, measured


def known(results: Sequence[Prediction], what: str, where: str) -> list[Prediction]:
    """The predictions whose attribute ``what`` is known.  Raises ``FieldError`` if there are none.

    ``where`` names the argument with the predictions.
    """
    found = [p for p in results if getattr(p, what) is not None]
    if not found:
        text = ", ".join(p.model for p in results[:3]) or "no prediction"
        allowed = f"at least one prediction whose {what} is known"
        raise FieldError(where, text, allowed)
    return found


def groups_of(scenario: Scenario) -> list[str]:
    """The names of the scenario's flow groups."""
    return [group.name for group in scenario.flows]


def _flows(scenario: Scenario) -> list[str]:
    """The names of the scenario's flows."""
    return [member.name for member in scenario.members]


def expect_same_flows(drawn: Sequence[Drawn]) -> None:
    """Raise ``FieldError`` unless all results are for scenarios with the same flows."""
    found = [each.result for each in drawn]
    expect_same(_flows(found[0].scenario), found, _flows, "models, measured")


def expect_same(
    names: list[str],
    results: Sequence[Prediction],
    names_of: Callable[[Scenario], list[str]],
    where: str,
) -> None:
    """Raise ``FieldError`` unless every prediction is for flows or groups with these ``names``.

    ``names_of`` returns the names of the flows, or of the groups, of a scenario. The error names
    ``where``, the argument with the predictions.
    """
    for each in results:
        if names_of(each.scenario) != names:
            text = f"for {', '.join(names_of(each.scenario))[:80]}"
            raise FieldError(where, text, f"predictions for {', '.join(names)[:80]}")
