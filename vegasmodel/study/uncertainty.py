"""Computes how a closed form's throughputs depend on the fields of a scenario, such as an RTT.

``sensitivity`` computes the slope d ln(throughput)/d(field) as a finite difference: the field's
value is changed by small steps, and the throughputs are compared. The slope is computed with one
size of the steps, and again with half this size. The second result is returned. If the two slopes
differ clearly, the slope may jump near the scenario's value, and the result's field ``smooth`` is
False. ``smooth`` is also False if the slope from below differs from the slope from above.

``uncertainty`` tells how uncertain the ratio of two groups' throughputs is if the fields are known
only with errors. Let the errors be independent, with the standard deviations u_k. Then, to first
order, the logarithm of the ratio has the variance

    variance = sum_k (d ln(ratio)/d field_k)^2 u_k^2

(JCGM 100:2008, equation (10)). This formula is right only where the ratio is nearly linear over the
range of the errors. So the ratio is also computed at one and at two standard deviations above and
below each field's value. The result's field ``rough`` names the fields of the scenario for which
the ratio is far from linear over this range, or whose slope may jump near the scenario's value.

Both functions neglect the error of the model itself. To show when it may be large, the field
``broken`` of their results names the assumptions of the model that do not hold in the scenario. It
also names assumptions that hold there, but fail if a field changes by one standard deviation
(``uncertainty``) or by a small step (``sensitivity``).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence

import numpy as np

from vegasmodel.fields.by_name import ByName
from vegasmodel.fields.errors import FieldError
from vegasmodel.fields.lists import few
from vegasmodel.fields.rules import listed
from vegasmodel.metrics import Floats
from vegasmodel.predictor import CLOSED_FORMS, predict
from vegasmodel.scenario import Scenario, expect
from vegasmodel.study.uncertain_inputs import Input, numbers, of_errors
from vegasmodel.study.uncertainty_results import Sensitivity, Uncertainty

__all__ = ["sensitivity", "uncertainty"]

# the step of the finite differences, as a fraction of the field's value, or of its standard
# deviation if that is larger
STEP = 2e-3
# relative difference up to which slopes with two step sizes, or from two sides, count as equal
MAX_SLOPE_DIFFERENCE = 1e-3
ROUNDING_OF_LOG = 1e-14  # a smaller change of a logarithm over a step is a rounding error
# A ratio is nearly linear in a field if, after a change by one standard deviation of the field, it
# differs from the linear function by at most MAX_NONLINEARITY standard deviations of the ratio. A
# difference of up to the fraction ROUNDING of the ratio may be a rounding error.
ROUNDING = 1e-9
MAX_NONLINEARITY = 0.25
# ``sensitivity`` takes steps in proportion to a field's value. If this is 0, they are in proportion
# to this amount, in the field's unit.
SCALE_OF_ZERO = 1e-3


def sensitivity(scenario: Scenario, model: str, names: str | Sequence[str]) -> Sensitivity:
    """Slopes d ln(throughput)/d(field) of a closed form's throughputs, for fields of a scenario.

    A closed form is a model that is not a simulator, such as ``minicycle``.

    ``names`` is the name of one field or a list of names, such as ``["link.buffer", "flow.rtt"]``.
    ``flow.rtt`` stands for the RTTs of all groups (``[[flow]]`` tables), which change together, and
    ``link.buffer`` for the buffers of all links.  Such a field must have the same value in all
    groups or links.  If a group has alpha = beta, a change of its alpha also changes its beta, as
    in ``Scenario.replace``.

    If the closed form has no result for nearby values of a field, the field's slopes are NaN, and
    ``reason`` of the result says why.  For example, ``minicycle`` needs one RTT for all flows, so
    it has slopes for ``flow.rtt``, but not for the RTT of a single group.

    Raises ``FieldError`` if ``model`` is not a closed form, if a field is unknown, if it takes only
    whole numbers or words, if its value is not a finite number, or if it differs between groups or
    links.
    """
    expect(scenario)
    names = [names] if isinstance(names, str) else listed(names, "names", "fields")
    inputs = []
    for name in names:
        parts, known = numbers(scenario, name)
        if len(set(known)) > 1:
            each = f"name one of them, such as {parts[0].name}"
            everywhere = "links" if parts[0].part == "link" else "groups"
            allowed = f"the same value in all {everywhere}, to have one slope; {each}"
            raise FieldError(name, list(known), allowed)
        scale = abs(known[0]) or SCALE_OF_ZERO
        inputs.append(Input(name, parts, known, share=False, sd=scale))
    slopes, agree, reason = _slopes(scenario, model, inputs)
    values = np.array([each.values[0] for each in inputs])
    of_flows = slopes[: len(scenario.members)]  # without those of the ratios
    kinks = [_has_kink(scenario, model, each) for each in inputs]
    smooth = tuple(
        same_with_both_steps and not kink
        for same_with_both_steps, kink in zip(agree, kinks, strict=True)
    )
    flows = tuple(member.name for member in scenario.members)
    broken = _broken_assumptions(scenario, model, inputs, STEP)
    return Sensitivity(
        model,
        fields=tuple(names),
        values=values,
        slopes=of_flows,
        smooth=smooth,
        reason=reason,
        names=flows,
        broken=broken,
    )


def uncertainty(scenario: Scenario, model: str, errors: Mapping[str, str | float]) -> Uncertainty:
    """How uncertain a closed form's throughput ratios are if fields of the scenario have errors.

    A closed form is a model that is not a simulator, such as ``minicycle``.

    ``errors`` maps each uncertain field to the standard deviation of its error, as in
    ``{"link.capacity": "5 %", "flow.rtt": "2 ms"}``.  The text ``"5 %"`` is a fraction of the
    field's value, and ``"2 ms"`` is an amount.  A number is a fraction, too, and never an amount:
    0.05 means 5 %.  A number above 1 was probably meant as an amount or in percent, so it is
    refused.

    The key ``rtt`` stands for the RTTs of all groups, which then share one error.  In the same way,
    ``over_estimate`` stands for this field of all Vegas groups, and ``capacity`` for the capacities
    of all links.  Another field of several groups or links, such as ``flow.alpha``, has one error,
    too.  Each group keeps its own value, to which the same error is added: the same amount, or, if
    the deviation is a fraction, the same fraction of each value.  The errors of different keys
    are independent.

    The standard deviations of the ratios follow from equation (10) of JCGM 100:2008, to first order
    in the errors.  If the ratios are not nearly linear over the range of the errors, these standard
    deviations are wrong.  The result's ``smooth`` is then False, and ``rough`` names the fields.
    The error of the model itself is not counted; ``broken`` names its assumptions that do not hold.

    Raises ``FieldError`` for a deviation that is not above 0, for a number above 1, and in the same
    cases as ``sensitivity``.
    """
    inputs = of_errors(scenario, errors)
    slopes, agree, reason = _slopes(scenario, model, inputs)
    # [ratio, input] d ln(ratio)/d(input); the rows before these are for the flows' throughputs
    by_ratio = slopes[len(scenario.members) :]
    sds, answer = np.array([each.sd for each in inputs]), predict(scenario, model)
    variances = (by_ratio * sds) ** 2
    totals = np.asarray(np.sqrt(variances.sum(axis=1)))  # [ratio] relative standard deviation
    ratios, parts = ByName[tuple[float, float]](), ByName[Floats]()
    for variance, total, name in zip(variances, totals, _pairs(scenario), strict=True):
        value = answer.ratios.get(name)
        ratios[name] = (math.nan, math.nan) if value is None else (value, value * float(total))
        parts[name] = np.zeros(len(inputs)) if total == 0.0 else variance / total**2
    rough = tuple(
        each.name
        for each, same_with_both_steps, slope in zip(inputs, agree, by_ratio.T, strict=True)
        if not (same_with_both_steps and _nearly_linear(scenario, model, each, slope, totals))
    )
    broken = _broken_assumptions(scenario, model, inputs, 1.0)
    return Uncertainty(
        model,
        fields=tuple(errors),
        deviations=sds,
        ratios=ratios,
        parts=parts,
        rough=rough,
        reason=reason,
        broken=broken,
    )


def _nearly_linear(
    scenario: Scenario, model: str, varied: Input, slope: Floats, totals: Floats
) -> bool:
    """Whether the ratios are nearly linear in one input, over two standard deviations up and down.

    ``varied`` is this input: one field, or several fields with the same error. ``slope`` [ratio]
    has the derivatives of the ratios' logarithms with respect to the input, and ``totals`` [ratio]
    the relative standard deviations of the ratios. The result is False if the model has no result
    after a change.

    The scenario may allow a change by one standard deviation in one direction only. The input's
    error then has only this sign, so its true standard deviation is smaller than the given one. So
    the result is False, unless the slope says that the ratios hardly change. A change by two
    standard deviations that is not allowed is left out, because few errors are as large.
    """
    unchanged = _log_results(scenario, model)[0]
    for k in (1, -1, 2, -2):
        try:
            changed = varied.moved(scenario, k * varied.sd)
        except FieldError:
            if abs(k) == 2:
                continue
            change = np.zeros_like(slope)
        else:
            change = np.expm1(
                (_log_results(changed, model)[0] - unchanged)[len(scenario.members) :]
            )
        # a bend of the ratio's curve grows with the square of the change
        limit = MAX_NONLINEARITY * k**2 * totals + ROUNDING
        if not np.all(np.abs(change - k * varied.sd * slope) <= limit):
            return False
    return True


def _broken_assumptions(
    scenario: Scenario, model: str, inputs: Sequence[Input], by: float
) -> tuple[str, ...]:
    """The names of the assumptions that do not hold, in the scenario or if an input changes.

    Each input changes by ``by`` times its ``sd``, up and down.  For example, suppose that ``loss``
    is 0 in the scenario, and that the model ignores losses.  Its results then do not change with
    ``loss``.  The user is warned by the name of the assumption that fails if ``loss`` changes.
    """
    cases = [scenario]
    for each in inputs:
        for change in (by * each.sd, -by * each.sd):
            with contextlib.suppress(FieldError):
                cases.append(each.moved(scenario, change))
    return tuple(dict.fromkeys(one.name for case in cases for one in predict(case, model).broken))


def _slopes(
    scenario: Scenario, model: str, inputs: list[Input]
) -> tuple[Floats, tuple[bool, ...], str | None]:
    """The derivatives of ln(throughput) and ln(ratio) with respect to each input, [result, input].

    An input is one field, or several fields with the same error.  The results are the throughputs
    of all flows, followed by the throughput ratios of all pairs of groups.

    The second value that is returned tells, for each input, whether two step sizes give nearly the
    same derivatives; if they do not, the derivatives cannot be trusted.  The third value says why
    some derivatives are NaN; it is ``None`` if none is.
    """
    if not isinstance(model, str) or model not in CLOSED_FORMS:
        raise FieldError("model", model, f"a closed form: {', '.join(CLOSED_FORMS)}")
    columns, agree, reasons = [], [], list[str]()
    for each in inputs:
        scale = 1.0 if each.share else max(*map(abs, each.values), each.sd)
        steps = (STEP * scale, STEP / 2 * scale)
        (wide, _), (narrow, why) = (_slope(scenario, model, each, step) for step in steps)
        reasons += [why] if why else []
        columns.append(narrow)
        with np.errstate(invalid="ignore"):  # slopes are NaN where a flow gets nothing
            difference = np.abs(wide - narrow) * scale
        agree.append(
            bool(np.all(difference <= MAX_SLOPE_DIFFERENCE * (1.0 + np.abs(narrow) * scale)))
        )
    # if the unchanged scenario has no results either, this is the reason to report
    why_without_change = _log_results(scenario, model)[1] if reasons else ""
    return (
        np.array(columns).T,
        tuple(agree),
        why_without_change or few(reasons, clauses=True) or None,
    )


def _slope(scenario: Scenario, model: str, varied: Input, step: float) -> tuple[Floats, str]:
    """The derivatives of ln(throughput) and ln(ratio) with respect to one input, [result].

    The results are the throughputs of all flows, followed by the throughput ratios of all pairs of
    groups.  ``varied`` is the input, and ``step`` is the step by which its value is changed.

    The derivatives are central differences of fourth order.  If the scenario does not allow a value
    two steps below or above the input's own, they are one-sided differences of third order.

    The second value that is returned is a text.  It says why some derivatives are NaN, or is empty.
    """
    # the derivative is the sum of weight times result, divided by the step; ``weights`` has for
    # each k the weight of the result k steps from the input's own value
    weights = {-2: 1 / 12, -1: -8 / 12, 1: 8 / 12, 2: -1 / 12}  # central differences
    upward = {0: -11 / 6, 1: 3.0, 2: -1.5, 3: 1 / 3}  # one-sided, if smaller values are not allowed
    downward = {-k: -weight for k, weight in upward.items()}  # if larger values are not allowed
    for steps, one_sided in ((-2.0, upward), (2.0, downward)):
        try:
            varied.moved(scenario, steps * step)
        except FieldError:
            weights = one_sided
            break
    parts, reason = [], ""
    for k, weight in weights.items():
        logs, why = _log_results(varied.moved(scenario, k * step), model)
        parts.append(weight * logs)
        if why and not reason:
            reason = f"if {varied.name} changes by {varied.amount(k * step)}, {why}"
    with np.errstate(invalid="ignore"):
        change = np.sum(parts, axis=0)
        slope = np.where(np.abs(change) <= ROUNDING_OF_LOG, 0.0, change) / step
    return np.where(np.isfinite(slope), slope, np.nan), reason


def _has_kink(scenario: Scenario, model: str, varied: Input) -> bool:
    """Whether the throughputs have a kink at the input's value: different slopes below and above.

    ``_slope`` cannot see a kink: whatever its step, it returns the mean of the two slopes.  If the
    scenario allows values on one side only, there is only one slope, and no kink.
    """
    step, sides = STEP / 2 * varied.sd, []
    for side in (-step, step):
        try:
            one_step = _log_results(varied.moved(scenario, side), model)[0]
            two_steps = _log_results(varied.moved(scenario, 2 * side), model)[0]
        except FieldError:
            return False
        with np.errstate(invalid="ignore"):  # a flow may get nothing
            # one-sided difference of second order, from the values at 0, 1 and 2 steps
            sides.append(
                (4.0 * one_step - two_steps - 3.0 * _log_results(scenario, model)[0]) / (2.0 * side)
            )
    below, above = (side[: len(scenario.members)] * varied.sd for side in sides)
    return bool(np.any(np.abs(above - below) > MAX_SLOPE_DIFFERENCE * (1.0 + np.abs(above))))


def _pairs(scenario: Scenario) -> list[str]:
    """The names of all throughput ratios: ``a/b`` for any two groups a and b."""
    names = [group.name for group in scenario.flows]
    return [f"{a}/{b}" for a in names for b in names if a != b]


def _log_results(scenario: Scenario, model: str) -> tuple[Floats, str]:
    """The logarithms of the flows' throughputs, followed by those of the groups' throughput ratios.

    An entry is NaN if the model has no result for it, and infinite for a throughput of 0.  The text
    that is returned says why, or is empty if all entries are finite.
    """
    answer = predict(scenario, model)
    pairs = _pairs(scenario)
    if answer.throughput is None:
        nothing = np.full(len(scenario.members) + len(pairs), np.nan)
        return nothing, f"{model} has no answer: {answer.reason}"
    rates = zip(answer.names, answer.throughput, strict=True)
    silent = [name for name, rate in rates if not 0.0 < rate < math.inf]
    why = f"the throughput of {few(silent)} is not above 0" if silent else ""
    ratios = [answer.ratios.get(name) for name in pairs]
    known = [math.nan if value is None else value for value in ratios]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.log([*answer.throughput, *known])), why
