"""The option ``--uncertain`` of ``ratio`` and ``predict``: fields that are known only roughly.

For them the commands print standard deviations of the predicted throughput ratios.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from vegasmodel.fields.errors import FieldError

if TYPE_CHECKING:
    from vegasmodel.results.prediction import Prediction
    from vegasmodel.scenario import Scenario
    from vegasmodel.study.uncertainty_results import Uncertainty


def read_errors(uncertain: Sequence[str], models: Sequence[str]) -> dict[str, str]:
    """Read the option --uncertain: the standard deviation of each field, as text.

    ``uncertain`` has texts of the form ``FIELD=ERROR``.  The function is called before the models
    run.  Raises ``FieldError`` if a text has another form, or if there is a text but none of
    ``models`` is a closed form.
    """
    from vegasmodel.predictor import CLOSED_FORMS

    errors = {}
    for text in uncertain:
        name, equals, error = text.partition("=")
        if not equals:
            raise FieldError("--uncertain", text, "FIELD=ERROR, such as rtt=5%")
        errors[name] = error
    if errors and not set(models) & set(CLOSED_FORMS):
        allowed = "it needs a closed form; ask for one, such as --model minicycle"
        raise FieldError("--uncertain", uncertain[0], allowed)
    return errors


def check_errors(scenario: Scenario, errors: Mapping[str, str]) -> None:
    """Raise ``FieldError`` before the models run if --uncertain has a wrong field or deviation."""
    if not errors:
        return
    from vegasmodel.study.uncertain_inputs import of_errors

    try:
        of_errors(scenario, errors)
    except FieldError as error:
        field = error.field.removeprefix("uncertain ")
        raise error.of("--uncertain" if field == "errors" else f"--uncertain, {field}") from None


def uncertainties(
    scenario: Scenario, results: Sequence[Prediction], errors: Mapping[str, str]
) -> list[Uncertainty]:
    """How uncertain the predicted throughput ratios are, if fields of the scenario are uncertain.

    ``errors`` has the standard deviations of the fields.  The result has one ``Uncertainty``, with
    the standard deviations of the ratios, for each closed form that predicts throughputs.  Raises
    ``FieldError`` if there is no such closed form.
    """
    from vegasmodel.predictor import CLOSED_FORMS
    from vegasmodel.study.uncertainty import uncertainty

    answering = [p.model for p in results if p.applicable and p.model in CLOSED_FORMS]
    if not answering:
        allowed = "it needs a closed form, and none that was asked for has an answer here"
        raise FieldError("--uncertain", "=".join(next(iter(errors.items()))), allowed)
    return [uncertainty(scenario, model, errors) for model in answering]


def print_uncertainty(found: Uncertainty) -> None:
    """Print the throughput ratios of a model with their standard deviations, and their limits."""
    from vegasmodel.report import console

    rows = [
        [
            name,
            console.number(value),
            console.number(sd),
            console.number(100.0 * sd / value if value else None, 3),
        ]
        for name, (value, sd) in found.ratios.items()
    ]
    console.console().print()
    console.console().print(console.stacked([found.model, "ratio", "sd", "sd, %"], rows))
    text = "sd: to first order in the errors. It does not count the model's own error"
    if found.reason is not None:
        text = f"No sd: {found.reason}"
    elif found.rough:
        rough = ", ".join(found.rough)
        text += f", and is rough: over two sd of {rough} a ratio is not linear, or has no value"
    if found.broken:
        text += f". Does not hold: {', '.join(found.broken)}"
    console.paragraphs([f"{text}."])
