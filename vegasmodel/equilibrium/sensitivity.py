"""Computes how Vegas flows' rates depend on the flows' over-estimates of propagation delays.

Flow i keeps its backlog at alpha_i packets. It has the rate r_i, and over-estimates its propagation
delay by x_i. Delta is the queueing delay. Let y_i = Delta - x_i. If x_k changes, the queueing delay
changes by

    dDelta/dx_k = w_k = (alpha_k/y_k^2) / sum_j (alpha_j/y_j^2).

The relative changes of the rates follow, in 1/s. The function ``own`` returns (dr_i/dx_i)/r_i,
``cross`` returns (dr_i/dx_k)/r_i for another flow k, and ``delay`` returns (dr_i/dDelta)/r_i.

These functions use formulas that we derived from the model of Boutremans and Le Boudec. For each
function there is another one, ``..._printed``, which uses the formula as their paper prints it. The
printed formulas are for flows that all have the same alpha. All formulas are for Vegas as in the
papers, which divides by the RTT when it computes the backlog. (Linux divides by baseRTT.)

The arguments alpha and x have the shape [..., n], and the capacity c has the shape [...]. The
argument y of the functions ``..._printed`` is positive, in s, and has the shape [..., n]. A flow
with alpha = 0 is absent: its rate and all its derivatives are 0. If there is no steady state, the
result is NaN.

Source: Boutremans and Le Boudec (2000), section 3.1.3, equations (7) to (9).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from vegasmodel.equilibrium import secular
from vegasmodel.equilibrium._checks import positive
from vegasmodel.equilibrium._jax_arrays import same_kind, sum_of_others
from vegasmodel.metrics import Floats


@same_kind
def own(alpha: Any, x: Any, c: Any) -> Floats:
    """Relative change of a flow's rate r_i per second of its own over-estimate x_i, [..., n], 1/s.

    x_i is flow i's over-estimate of baseRTT, alpha_i its backlog, and y_i = Delta - x_i, where
    Delta is the queueing delay. By equation (7) of Boutremans and Le Boudec,
    (dr_i/dx_i)/r_i = (1 - w_i)/y_i with w_i = (alpha_i/y_i^2) / sum_j (alpha_j/y_j^2).

    ``alpha`` [..., n] is in packets, ``x`` [..., n] in s, and the capacity ``c`` [...] in pkt/s.
    The errors are those of ``secular.solve``.
    """
    y, w = _parts(alpha, x, c)
    # 1 - w_i is the sum of the other weights. If w_i is 0 (absent) or NaN, so is the result.
    return np.asarray(np.where(w > 0, sum_of_others(w, np) / y, w))


@same_kind
def cross(alpha: Any, x: Any, c: Any) -> Floats:
    """Relative change of a flow's rate r_i per second of another flow's over-estimate x_k, 1/s.

    The result has the shape [..., i, k]. x_k is flow k's over-estimate of baseRTT, alpha_k its
    backlog, and y_k = Delta - x_k, where Delta is the queueing delay. For k other than i,
    (dr_i/dx_k)/r_i = -w_k/y_i with w_k = (alpha_k/y_k^2) / sum_j (alpha_j/y_j^2). This corrects
    equation (8) of Boutremans and Le Boudec. For k = i the result is that of ``own``. ``alpha``
    [..., n] is in packets, ``x`` [..., n] in s, and the capacity ``c`` [...] in pkt/s.
    """
    y, w = _parts(alpha, x, c)
    w_i, w_k, y_i = w[..., :, None], w[..., None, :], y[..., :, None]
    out = np.where(w_i > 0, -w_k / y_i, w_i)  # if w_i is 0 (absent) or NaN, so is the result
    i = np.arange(y.shape[-1])
    out[..., i, i] = np.where(w > 0, sum_of_others(w, np) / y, w)
    return np.asarray(out)


@same_kind
def delay(alpha: Any, x: Any, c: Any) -> Floats:
    """Relative change of a rate r_i per second of the queueing delay Delta, [..., n], 1/s.

    The flows' over-estimates x_i of baseRTT do not change. By equation (9) of Boutremans and Le
    Boudec, (dr_i/dDelta)/r_i = -1/y_i with y_i = Delta - x_i. The backlogs ``alpha`` [..., n] are
    in packets, the over-estimates ``x`` [..., n] in s, and the capacity ``c`` [...] in pkt/s.
    The errors are those of ``secular.solve``.
    """
    y, w = _parts(alpha, x, c)
    return np.asarray(np.where(w > 0, -1.0 / y, w))  # 0 for absent flows, NaN without steady state


@same_kind
def own_printed(y: Any) -> Floats:
    """Equation (7) of Boutremans and Le Boudec as printed: (dr_i/dx_i)/r_i, per second.

    r_i is flow i's rate and x_i its over-estimate of baseRTT. The argument is y_i = Delta - x_i in
    seconds, where Delta is the queueing delay. The equation is y_i S/(1 + y_i^2 S), where S is the
    sum of 1/y_k^2 over all k other than i. It holds if all flows have the same alpha. Then it
    agrees with ``own``.
    """
    y = np.atleast_1d(positive("y", y))
    S = sum_of_others(1.0 / y**2, np)
    return np.asarray(y * S / (1.0 + y**2 * S))


@same_kind
def cross_printed(y: Any) -> Floats:
    """Equation (8) of Boutremans and Le Boudec as printed, which is wrong: (dr_i/dx_k)/r_i, in 1/s.

    r_i is flow i's rate and x_k flow k's over-estimate of baseRTT. The argument is
    y_i = Delta - x_i, where Delta is the queueing delay. The equation is

        (dr_i/dx_k)/r_i = -1/(y_i + sum over j != k of y_k^2 y_j/y_j^2).

    It is wrong if the y_j differ. The correct equation has y_i in the numerator where the paper has
    y_j.

    The result has the shape [..., i, k]. For i = k it is NaN.
    """
    y = np.atleast_1d(positive("y", y))
    out = -1.0 / (y[..., :, None] + y[..., None, :] ** 2 * sum_of_others(1.0 / y, np)[..., None, :])
    i = np.arange(y.shape[-1])
    out[..., i, i] = np.nan
    return np.asarray(out)


@same_kind
def delay_printed(y: Any) -> Floats:
    """Equation (9) of Boutremans and Le Boudec as printed: -1/y_i, as in ``delay``.

    The argument is y_i = Delta - x_i. Delta is the queueing delay and x_i flow i's over-estimate of
    baseRTT.
    """
    return np.asarray(-1.0 / positive("y", y))


def _parts(alpha: Any, x: Any, c: Any) -> tuple[Floats, Floats]:
    """For each flow i, y_i = Delta - x_i and the weight w_i, two arrays [..., n].

    Delta is the queueing delay, x_i flow i's over-estimate of baseRTT, alpha_i its backlog, and
    w_i = (alpha_i/y_i^2) / sum_j (alpha_j/y_j^2).

    An absent flow (alpha = 0) has y = 1 and w = 0. If there is no steady state, all weights are
    NaN.

    ``c`` is the capacity in pkt/s.
    """
    state = secular.solve(alpha, x, c)
    x = np.broadcast_to(np.asarray(x, dtype=np.float64), state.rates.shape)
    present = np.broadcast_to(np.asarray(alpha, dtype=np.float64), state.rates.shape) != 0
    largest_x = np.where(present, x, -np.inf).max(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore"):  # infinite over-estimates have no steady state
        # from the gap Delta - top, which has smaller rounding errors than Delta
        delay_above_x = np.asarray(state.gap)[..., None] + np.where(present, largest_x - x, 0.0)
        y = np.where(present, delay_above_x, 1.0)
    r_over_y = state.rates / y  # alpha_i/y_i^2
    return np.asarray(y), np.asarray(r_over_y / r_over_y.sum(axis=-1, keepdims=True))
