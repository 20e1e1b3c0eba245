"""Computes fairness indices, ratios of throughputs, errors of predictions and standard errors."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vegasmodel.fields import kinds
from vegasmodel.fields.by_name import ByName
from vegasmodel.fields.errors import FieldError
from vegasmodel.fields.rules import Integer
from vegasmodel.fields.units import format_number

Floats = NDArray[np.float64]

ROUNDING = 1e-12  # throughputs whose relative difference is at most this differ by rounding only
ENOUGH_PRECISION = 0.1  # greatest ``relative_uncertainty`` at which there are enough runs


@kinds.checked
def jain(throughput: ArrayLike) -> float:
    """Jain's index ``(sum b_i)^2 / (n sum b_i^2)`` of n throughputs b_i.

    Throughputs that are NaN are left out. The index is NaN if no throughput is above 0.
    """
    return float(jains(np.ravel(throughput)))


@kinds.checked
def jains(throughput: ArrayLike) -> Floats:
    """Jain's fairness index for each set of n throughputs: ``[..., n] -> [...]``.

    A throughput is NaN if its flow is never active between warm-up and end. The index leaves such
    flows out. It is NaN if no throughput is above 0.
    """
    b = np.asarray(throughput, dtype=np.float64)
    known = ~np.isnan(b)
    b = np.where(known, b, 0.0)
    largest = b.max(axis=-1, initial=0.0, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        b = b / largest  # the index stays the same, and squares neither overflow nor underflow
        index: Floats = b.sum(axis=-1) ** 2 / (known.sum(axis=-1) * (b**2).sum(axis=-1))
    return index


@kinds.checked
def delivered(rates: ArrayLike) -> Floats:
    """Replace NaN by 0 in the rates [..., n] of n flows; if all n rates are NaN, they stay NaN.

    A flow's rate is NaN if the flow is never active between warm-up and end. Such a flow delivers
    nothing, so its rate becomes 0.
    """
    b = np.asarray(rates, dtype=np.float64)
    missing = np.isnan(b)
    known: Floats = np.where(missing & ~missing.all(axis=-1, keepdims=True), 0.0, b)
    return known


@kinds.checked
def group_means(
    throughput: ArrayLike, groups: Sequence[int], names: Sequence[str]
) -> dict[str, float]:
    """The mean throughput of the flows of each group, by the group's name.

    A group is a set of flows, such as an entry ``[[flow]]`` of a scenario. ``throughput`` and
    ``groups`` have one entry per flow. An entry of ``groups`` is the index of the flow's group in
    ``names``.

    A flow's throughput is NaN if the flow is never active between warm-up and end. The mean leaves
    such flows out. It is NaN if no flows are left. Raises ``FieldError`` unless ``throughput`` and
    ``groups`` have the same shape [n].
    """
    b, member = np.asarray(throughput, dtype=np.float64), np.asarray(groups)
    if b.ndim != 1 or b.shape != member.shape:
        shapes = f"shapes {b.shape}, {member.shape}"
        raise FieldError("throughput and groups", shapes, "one entry for each flow, [n]")
    return ByName((name, float(known_mean(b[member == i]))) for i, name in enumerate(names))


@kinds.checked
def loss_rates(lost: ArrayLike, sent: ArrayLike) -> Floats:
    """Packets lost over packets sent, elementwise, but at most 1; NaN where none was sent.

    Both are numbers of packets in the measured time. A packet that was sent before this time may be
    lost in it. So more packets may be lost than sent. Raises ``FieldError`` unless the two arrays
    broadcast.
    """
    lost, sent = (np.asarray(each, dtype=np.float64) for each in (lost, sent))
    try:
        np.broadcast_shapes(lost.shape, sent.shape)
    except ValueError:
        shapes = f"shapes {lost.shape} and {sent.shape}"
        raise FieldError("lost and sent", shapes, "arrays that broadcast") from None
    with np.errstate(divide="ignore", invalid="ignore"):
        rates: Floats = np.where(sent > 0.0, np.minimum(lost / sent, 1.0), np.nan)
    return rates


@kinds.checked
def known_mean(values: ArrayLike) -> Floats:
    """The mean over the first axis, without entries that are NaN; NaN if all entries are."""
    b = np.asarray(values, dtype=np.float64)
    known = ~np.isnan(b)
    with np.errstate(invalid="ignore"):
        mean: Floats = np.where(known, b, 0.0).sum(axis=0) / known.sum(axis=0)
    return mean


@kinds.checked
def group_ratios(means: Mapping[str, float]) -> dict[str, float | None]:
    """The ratios of the groups' mean throughputs, by names such as ``"a/b"``.

    A group is a set of flows, such as an entry ``[[flow]]`` of a scenario. ``"a/b"`` is the mean
    throughput of group a divided by that of group b. The result has ``"a/b"`` and ``"b/a"`` for
    every two groups. A ratio is ``None`` if its divisor is 0 or one of the two throughputs is NaN.
    """
    return ByName(
        (f"{a}/{b}", means[a] / means[b] if means[b] > 0 and not math.isnan(means[a]) else None)
        for a in means
        for b in means
        if a != b
    )


@kinds.checked
def nrmse(computed: ArrayLike, measured: ArrayLike) -> float | None:
    """The root mean square error of computed values, divided by the mean of the measured values.

    The result is ``None`` if this mean is not above 0, or a computed value is infinite or NaN.
    Raises ``FieldError`` if the two arrays differ in shape.
    """
    x, y = np.asarray(computed, dtype=np.float64), np.asarray(measured, dtype=np.float64)
    if x.shape != y.shape:
        raise FieldError("computed and measured", f"shapes {x.shape}, {y.shape}", "one shape")
    mean = float(np.mean(y)) if y.size else 0.0
    if not mean > 0 or not np.all(np.isfinite(x)):
        return None
    return float(np.sqrt(np.mean((x - y) ** 2)) / mean)


@kinds.checked
def log_ratio_error(
    computed: Mapping[str, float | None], measured: Mapping[str, float | None]
) -> float | None:
    """The largest error of a model's throughput ratios, with its sign.

    The error of a ratio is ``ln(computed ratio/measured ratio)``. The largest in magnitude counts.
    Both arguments map pairs of groups, such as ``"a/b"``, to their ratios. The result is ``None``
    if no pair has both a computed and a measured ratio above 0.
    """
    found = worst_ratio(computed, measured)
    return None if found is None else found[1]


@kinds.checked
def worst_ratio(
    computed: Mapping[str, float | None], measured: Mapping[str, float | None]
) -> tuple[str, float] | None:
    """The pair ``a/b`` of groups whose throughput ratio has the largest error, and that error.

    The error of a pair is ln(computed ratio / measured ratio).  The largest error is the one of the
    greatest magnitude; it is returned with its sign.  Returns ``None`` if no pair of groups has
    both a computed and a measured ratio above 0.
    """
    errors = []
    for pair, value in measured.items():
        other = computed.get(pair)
        if value and other:
            errors.append((pair, math.log(other / value)))
    # The errors of a/b and b/a are equal but for sign and rounding: the first one counts.
    return max(errors, key=lambda error: round(abs(error[1]), 12)) if errors else None


@kinds.checked
def percent(part: float) -> str:
    """A ratio as text, in percent with two significant digits: 0.0321 is "3.2 %", 2.14 "210 %"."""
    return f"{float(f'{100.0 * part:.2g}'):g} %"


@kinds.checked
def with_error(value: float, error: float | None) -> str:
    """A number and its standard error as text, such as ``125.3 ± 1.2``.

    ``value`` gets four significant digits (``format_number``), and the error two.  If the error is
    unknown, or 0 but for rounding, the text is the number alone.
    """
    text = format_number(value, 4)
    known = error is not None and math.isfinite(error) and error > ROUNDING * abs(value)
    return f"{text} ± {float(f'{error:.2g}'):g}" if known else text


@kinds.checked
def standard_error(rates: Floats) -> Floats:
    """The standard error of each mean throughput over the runs, [n].

    ``rates`` [runs, n] are the throughputs of flows, or of groups, in each run. Raises
    ``FieldError`` for fewer than two runs.
    """
    if rates.ndim < 1 or len(rates) < 2:
        raise FieldError("rates", f"shape {rates.shape}", "two or more runs, [runs, n]")
    found: Floats = np.std(rates, axis=0, ddof=1) / math.sqrt(len(rates))
    # 0 if the runs differ by rounding only; NaN stays NaN
    return np.where(np.ptp(rates, axis=0) > ROUNDING * rates[0], found, 0.0 * found)


@kinds.checked
def drift(means: Floats, least: float) -> NDArray[np.bool_]:
    """Whether values still drift to their steady state: [n] from their ``means`` [block, n].

    The means are over successive blocks of time. A value drifts if its means never fall, or never
    rise, and if the first and the last mean differ by more than ``least`` of the last one. If
    chance alone makes k means differ, they are in such an order with the probability 2/k!. Raises
    ``FieldError`` for fewer than two blocks.
    """
    if means.ndim < 1 or len(means) < 2:
        raise FieldError("means", f"shape {means.shape}", "two or more blocks, [block, n]")
    steps = np.diff(means, axis=0)
    one_way = np.all(steps >= 0.0, axis=0) | np.all(steps <= 0.0, axis=0)
    drifting: NDArray[np.bool_] = one_way & (np.abs(means[-1] - means[0]) > least * means[-1])
    return drifting


@kinds.checked
def relative_uncertainty(mean: Floats, error: Floats, runs: int) -> Floats:
    """The relative uncertainty of each flow's mean throughput: [flows].

    It is half the width of the 95 % confidence interval (Student's t), divided by the mean
    throughput.  ``mean`` [flows] has the mean throughputs over ``runs`` runs, and ``error`` [flows]
    their standard errors.  The result is 0 where the error is unknown.

    The divisor is at least a tenth of the mean over all flows.  So a flow with almost no throughput
    does not get a huge value.
    """
    if mean.shape != error.shape:
        raise FieldError("mean and error", f"shapes {mean.shape}, {error.shape}", "one shape")
    Integer(1).check(runs, "runs")
    known = mean[np.isfinite(mean)]
    scale = np.maximum(mean, 0.1 * known.mean() if known.size else 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        part = student_t(runs - 1) * error / scale
    return np.nan_to_num(part, nan=0.0, posinf=0.0)


@kinds.checked
def student_t(freedom: int, tests: int = 1) -> float:
    """The 0.975 quantile of Student's t distribution with ``freedom`` degrees of freedom.

    It gives the 95 % confidence interval of a mean over n runs: with ``freedom`` = n - 1, the
    interval reaches this number of standard errors to either side of the mean.  The result is NaN
    for 0 degrees of freedom.

    If k = ``tests`` means are tested together, the quantile is 1 - 0.025/k.  Then the probability
    that chance alone takes any of them out of its interval is at most 5 % (Bonferroni).
    """
    Integer(0).check(freedom, "freedom")
    Integer(1).check(tests, "tests")
    return student_quantile(freedom, 0.05 / tests) if freedom > 0 else math.nan


@functools.cache
def student_quantile(freedom: int, beyond: float) -> float:
    """The number that Student's t exceeds in magnitude with the probability ``beyond``.

    The angle a with tan(a) = t/sqrt(``freedom``) is found by bisection.
    """
    low, high = 0.0, 0.5 * math.pi
    while low < (angle := 0.5 * (low + high)) < high:
        if _student_beyond(freedom, angle) > beyond:
            low = angle
        else:
            high = angle
    return math.sqrt(freedom) * math.tan(low)


def _student_beyond(freedom: int, angle: float) -> float:
    """The probability that Student's t exceeds sqrt(``freedom``) tan(``angle``) in magnitude.

    Abramowitz and Stegun (1964), equations 26.7.3 (odd ``freedom``) and 26.7.4 (even), give 1 minus
    this probability as a finite sum.
    """
    odd = freedom % 2
    square = math.cos(angle) ** 2
    term = math.cos(angle) if odd else 1.0
    total = term if freedom > 1 else 0.0
    for j in range(2 + odd, freedom - 1, 2):
        term *= square * (j - 1) / j
        total += term
    within = math.sin(angle) * total
    return 1.0 - (2.0 / math.pi * (angle + within) if odd else within)
