"""Checks predictions against a bound that a user requires, such as ``share:vegas>=0.25``."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from vegasmodel.fields.errors import FieldError
from vegasmodel.metrics import with_error
from vegasmodel.results.prediction import Prediction
from vegasmodel.scenario import Scenario
from vegasmodel.study import points, targets
from vegasmodel.study.points import Points
from vegasmodel.study.scatter import standard_error
from vegasmodel.study.targets import Target

__all__ = ["Verdict", "checked", "missed", "read"]


@dataclass(frozen=True)
class Verdict:
    """Whether the prediction of one model meets a bound.

    ``bound`` is the bound as text, such as ``share:vegas >= 0.25``. ``value`` is the model's value
    of the bounded quantity, in ``unit``, and ``se`` its standard error over the runs. Each of the
    two is ``None`` if it is not known. ``met`` is ``None`` if the value is not known.
    ``within_error`` says whether value and bound differ by at most the standard error.
    """

    model: str
    bound: str
    value: float | None
    se: float | None
    unit: str
    met: bool | None
    within_error: bool

    def __str__(self) -> str:
        if self.value is None:
            return f"{self.model} does not give it"
        text = f"{self.model} {with_error(self.value, self.se)} {self.unit}".strip()
        return f"{text} (by no more than the standard error)" if self.within_error else text

    def to_json(self) -> dict[str, Any]:
        """The verdict as plain Python types, which can be written as JSON."""
        return dataclasses.asdict(self)


def read(text: str, scenario: Scenario) -> Target:
    """Read a bound, such as ``delay<=20ms``, for a scenario; the words are those of ``targets``.

    Raises ``FieldError`` if the text is not a bound for this scenario.
    """
    bound = targets.read(text, scenario)
    if bound.sense == "=":
        raise FieldError("target", text, "a bound with >= or <= (in quotes in a shell)")
    return bound


def checked(bound: Target, scenario: Scenario, results: Sequence[Prediction]) -> list[Verdict]:
    """Compare each prediction of the scenario that has throughputs with a bound."""
    with_throughputs = [result for result in results if result.applicable]
    if not with_throughputs:
        return []
    values = bound.of(
        points.collected(Points(scenario, fields=(), columns=()), with_throughputs), scenario
    )
    found = []
    for result, value in zip(with_throughputs, values.tolist(), strict=True):
        text, known = f"{bound.name} {bound.sense} {bound.text(bound.value)}", math.isfinite(value)
        error = standard_error(bound, result) if known else None
        found.append(
            Verdict(
                model=result.model,
                bound=text,
                value=value if known else None,
                se=error,
                unit=bound.unit,
                met=bool(bound.within_bound(value)) if known else None,
                within_error=bool(error and abs(value - bound.value) <= error),
            )
        )
    return found


def missed(bound: Target, verdicts: Sequence[Verdict]) -> str:
    """One line if a prediction misses the bound, or if no prediction has its quantity; else empty.

    It names the models that miss the bound, with their values.
    """
    text = f"{bound.name} {bound.sense} {bound.text(bound.value)}"
    if not any(each.met is not None for each in verdicts):
        return f"no model asked gives {bound.name}, so {text} is not known to hold"
    wrong = [str(each) for each in verdicts if each.met is False]
    return f"{text} is missed: {'; '.join(wrong)}" if wrong else ""
