"""The arithmetic of ``secular.py``: sum alpha_i / (Delta - x_i) = c, solved for g = Delta - max x.

Every function here is plain Python on floats and indexable rows.  ``_compiled.py`` also compiles
the very same source with Numba for large batches; neither uses fused operations that could differ,
so both give the same bits.

Why double-double: where a tiny alpha sits at the largest x and the others fill c, g follows from
the small difference c - sum of the others, and plain float64 sums lose up to ten of its digits.
Float64 passes find g roughly; the last one or two passes add exact differences and the quotients
with their remainders, as unevaluated sums of two floats (Dekker 1971, Knuth TAOCP 4.2.2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

Row = Sequence[float]

OK, NOT_CONVERGED, INVALID, ILL_CONDITIONED = 0, 1, 2, 3
CHUNK = 4096  # partial sums: the order of additions, so the bits, do not depend on threads
LIMIT = 220  # passes: quadratic steps, halvings of the exponent range in the worst case
ROUGH_LIMIT = 60
ROUGH_STEP = 3e-5  # relative; the error after a step is at most its square
LAST_STEP = 3e-9
UNIT = 2.0**-53
LEAST, MOST = 1e-100, 1e100  # no overflow or underflow in the squares and splits below

prange = range  # Numba's prange in the compiled copies that use threads


def two_sum(a: float, b: float) -> tuple[float, float]:
    """``a + b`` exactly, as rounded sum and error."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def split(a: float) -> tuple[float, float]:
    """``a`` as two floats of at most 26 bits, so that products of such halves are exact."""
    t = 134217729.0 * a
    high = t - (t - a)
    return high, a - high


def quotient(a: float, s: float, e: float) -> tuple[float, float, float]:
    """``a / (s + e)`` as two floats, and 1/s; ``e`` is less than a unit in the last place of s."""
    inverse = 1.0 / s
    q = a * inverse
    qh, ql = split(q)
    sh, sl = split(s)
    # a - q s: every product and every difference is exact, fused or not
    rest = (((a - qh * sh) - qh * sl) - ql * sh) - ql * sl
    return q, (rest - q * e) * inverse, inverse


def survey(
    alpha: Row, x: Row, rtt: Row, linux: bool, low: int, high: int
) -> tuple[float, float, float]:
    """(max x, max alpha, 1 if all is in range) of one chunk; alpha = 0 is an absent flow."""
    top, most, good = -math.inf, 0.0, 1.0
    for i in range(low, high):
        a, over = alpha[i], x[i]
        if a > 0.0:
            if not (LEAST <= a <= MOST and -MOST <= over <= MOST):
                good = 0.0
            if linux and not (rtt[i] + over >= LEAST):  # the base RTT, maybe inf
                good = 0.0
            top = max(top, over)
            most = max(most, a)
        elif a != 0.0:  # negative or not a number
            good = 0.0
    return top, most, good


def start(
    alpha: Row, x: Row, rtt: Row, linux: bool, c: float, top: float, low: int, high: int
) -> tuple[float, float, float, float]:
    """(sum of alpha at the largest x, sum of the others, their sum of alpha d, least gap)."""
    pole, others, moment, least = 0.0, 0.0, 0.0, 0.0
    for i in range(low, high):
        a, d = alpha[i], top - x[i]
        if a > 0.0:
            if d == 0.0:
                pole += a
            else:
                others += a
                moment += a * d
            y = a / c  # the flow alone at c: y (1 + y/base) = alpha/c
            if linux:
                y = 2.0 * y / (1.0 + math.sqrt(1.0 + 4.0 * y / (rtt[i] + x[i])))
            least = max(least, y - d)
    return pole, others, moment, least


def rough(
    alpha: Row, x: Row, rtt: Row, linux: bool, top: float, g: float, low: int, high: int
) -> tuple[float, float]:
    """(sum of rates, minus its derivative) at gap g, in float64; without the pole for ``paper``."""
    total, slope = 0.0, 0.0
    for i in range(low, high):
        a, d = alpha[i], top - x[i]
        if linux:
            if a > 0.0:
                y = g + d
                base = rtt[i] + x[i]
                rate = a / (y * (1.0 + y / base))
                total += rate
                slope += rate * (1.0 / y + 1.0 / (y + base))
        elif d > 0.0:
            inverse = 1.0 / (g + d)
            rate = a * inverse
            total += rate
            slope += rate * inverse
    return total, slope


def precise(
    alpha: Row, x: Row, rtt: Row, linux: bool, top: float, g: float, low: int, high: int
) -> tuple[float, float, float, float]:
    """``rough`` with the sum over all flows in double-double: (total, slope, high, low part)."""
    total, slope, sum_high, sum_low = 0.0, 0.0, 0.0, 0.0
    for i in range(low, high):
        a = alpha[i]
        if a > 0.0:
            d, d_low = two_sum(top, -x[i])
            y, e = two_sum(g, d)
            e += d_low
            s = y + e
            e -= s - y
            q, q_low, inverse = quotient(a, s, e)
            sum_high, error = two_sum(sum_high, q)
            sum_low += error + q_low
            if linux:
                base, base_low = two_sum(rtt[i], x[i])
                rate, bend = q, inverse
                if base < math.inf:
                    # alpha base / (y (y + base)) = alpha/y - alpha/(y + base)
                    z, z_low = two_sum(s, base)
                    z_low += e + base_low
                    t = z + z_low
                    z_low -= t - z
                    w, w_low, w_inverse = quotient(a, t, z_low)
                    sum_high, error = two_sum(sum_high, -w)
                    sum_low += error - w_low
                    rate, bend = w * (base * inverse), inverse + w_inverse
                total += rate
                slope += rate * bend
            elif d > 0.0:
                total += q
                slope += q * inverse
    return total, slope, sum_high, sum_low


def spread(
    alpha: Row, x: Row, rtt: Row, linux: bool, top: float, g: float, rates: Any, low: int, high: int
) -> tuple[float, float]:
    """Write the rates of one chunk; their sum as two floats."""
    total, rest = 0.0, 0.0
    for i in range(low, high):
        a, rate = alpha[i], 0.0
        if a > 0.0:
            d, d_low = two_sum(top, -x[i])
            y, e = two_sum(g, d)
            y += e + d_low
            rate = a / (y * (1.0 + y / (rtt[i] + x[i]))) if linux else a / y
        rates[i] = rate
        total, error = two_sum(total, rate)
        rest += error
    return total, rest


def survey_all(
    alpha: Row, x: Row, rtt: Row, linux: bool, n: int, work: Any
) -> tuple[float, float, bool]:
    """``survey`` over every chunk."""
    chunks = (n + CHUNK - 1) // CHUNK
    for k in prange(chunks):
        top, most, good = survey(alpha, x, rtt, linux, k * CHUNK, min(n, (k + 1) * CHUNK))
        work[k, 0], work[k, 1], work[k, 2] = top, most, good
    top, most, fine = -math.inf, 0.0, True
    for k in range(chunks):
        top = max(top, float(work[k, 0]))
        most = max(most, float(work[k, 1]))
        fine = fine and work[k, 2] > 0.0
    return top, most, fine


def start_all(
    alpha: Row, x: Row, rtt: Row, linux: bool, c: float, top: float, n: int, work: Any
) -> tuple[float, float, float, float]:
    """``start`` over every chunk."""
    chunks = (n + CHUNK - 1) // CHUNK
    for k in prange(chunks):
        a, b, m, g = start(alpha, x, rtt, linux, c, top, k * CHUNK, min(n, (k + 1) * CHUNK))
        work[k, 0], work[k, 1], work[k, 2], work[k, 3] = a, b, m, g
    pole, others, moment, least = 0.0, 0.0, 0.0, 0.0
    for k in range(chunks):
        pole += float(work[k, 0])
        others += float(work[k, 1])
        moment += float(work[k, 2])
        least = max(least, float(work[k, 3]))
    return pole, others, moment, least


def rough_all(
    alpha: Row, x: Row, rtt: Row, linux: bool, top: float, g: float, n: int, work: Any
) -> tuple[float, float]:
    """``rough`` over every chunk."""
    chunks = (n + CHUNK - 1) // CHUNK
    for k in prange(chunks):
        a, b = rough(alpha, x, rtt, linux, top, g, k * CHUNK, min(n, (k + 1) * CHUNK))
        work[k, 0], work[k, 1] = a, b
    total, slope = 0.0, 0.0
    for k in range(chunks):
        total += float(work[k, 0])
        slope += float(work[k, 1])
    return total, slope


def precise_all(
    alpha: Row, x: Row, rtt: Row, linux: bool, c: float, top: float, g: float, n: int, work: Any
) -> tuple[float, float, float]:
    """``precise`` over every chunk: (total, slope, sum of all rates - c)."""
    chunks = (n + CHUNK - 1) // CHUNK
    for k in prange(chunks):
        a, b, h, r = precise(alpha, x, rtt, linux, top, g, k * CHUNK, min(n, (k + 1) * CHUNK))
        work[k, 0], work[k, 1], work[k, 2], work[k, 3] = a, b, h, r
    total, slope, high, low = 0.0, 0.0, -c, 0.0
    for k in range(chunks):
        total += float(work[k, 0])
        slope += float(work[k, 1])
        high, error = two_sum(high, float(work[k, 2]))
        low += error + float(work[k, 3])
    return total, slope, high + low


def spread_all(
    alpha: Row, x: Row, rtt: Row, linux: bool, c: float, top: float, g: float,
    n: int, rates: Any, work: Any,
) -> float:  # fmt: skip
    """``spread`` over every chunk; the relative residual (sum of the rates - c) / c."""
    chunks = (n + CHUNK - 1) // CHUNK
    for k in prange(chunks):
        a, b = spread(alpha, x, rtt, linux, top, g, rates, k * CHUNK, min(n, (k + 1) * CHUNK))
        work[k, 0], work[k, 1] = a, b
    high, low = -c, 0.0
    for k in range(chunks):
        high, error = two_sum(high, float(work[k, 0]))
        low += error + float(work[k, 1])
    return (high + low) / c


def root(a: float, b: float, k: float) -> float:
    """The larger root of a t^2 + b t = k (real: rounding apart), without cancellation."""
    r = math.sqrt(max(b * b + 4.0 * a * k, 0.0))
    if b > 0.0:
        return 2.0 * k / (b + r)
    return (r - b) / (2.0 * a)


def step(
    linux: bool, c: float, g: float, pole: float, rest: float, slope: float, f: float
) -> float:
    """How far to move g, given f = sum of rates - c.  Converges quadratically, from the left.

    ``paper``: keep the pole p = A_0/g of the largest x and stand in for the rest R by the one pole
    q/(...) of the same value and slope, at distance u = R/|R'|.  1/R is concave (a harmonic mean),
    so the stand-in never exceeds R: the root of the model never passes the true one.
    f = delta (p/(g + delta) + R/(u + delta)) is the quadratic below.

    ``linux``: r^(-1/2) of a flow is the square root of y + y^2/base, concave in g, and the power
    mean of order -2 keeps that, so Newton on S^(-1/2) never passes the root either.
    """
    if linux:
        # 2 S/|S'| (sqrt(S/c) - 1), the difference without cancellation
        part = f / c
        return 2.0 * rest / slope * (part / (1.0 + math.sqrt(max(1.0 + part, 0.0))))
    u = rest / slope if slope > 0.0 else g
    return root(c, pole * u + rest * g - f * (g + u), f * g * u)


def find_gap(
    alpha: Row, x: Row, rtt: Row, linux: bool, c: float, top: float, n: int, work: Any
) -> tuple[float, int, int]:
    """(gap, passes, status) of one case whose values are in range."""
    pole, others, moment, least = start_all(alpha, x, rtt, linux, c, top, n, work)
    g = least
    if not linux:
        # Jensen: the others' sum is at least B/(g + mean d), so this root is a lower bound
        mean = moment / others if others > 0.0 else 0.0
        g = max(g, root(c, c * mean - pole - others, pole * mean)) if others > 0.0 else pole / c
    floor, ceiling = 0.5 * g, 2.0 * (pole + others) / c
    lower, upper, exact = floor, ceiling, False
    for passes in range(1, LIMIT):
        head = 0.0 if linux else pole / g
        if exact:
            rest, slope, f = precise_all(alpha, x, rtt, linux, c, top, g, n, work)
        else:
            rest, slope = rough_all(alpha, x, rtt, linux, top, g, n, work)
            f = (head - c) + rest
        if f > 0.0:
            lower = g
        else:
            upper = g
        move = step(linux, c, g, head, rest, slope, f)
        size = abs(move)
        if exact and size <= LAST_STEP * g:
            # the sum is off by a few units of double-double a flow; what does that do to g?
            doubt = (8.0 + min(n, CHUNK)) * UNIT * UNIT * c
            if doubt > UNIT * (head + slope * g):
                return g, passes, ILL_CONDITIONED
            return g + move, passes, OK
        if not exact and (size <= ROUGH_STEP * g or passes == ROUGH_LIMIT):
            exact, lower, upper = True, floor, ceiling  # float64 signs near the root may be wrong
            if lower < g + move < upper:
                g += move
            continue
        if lower < g + move < upper and (passes < 16 or passes % 2 or size < 0.25 * g):
            g += move
        else:
            g = math.sqrt(lower) * math.sqrt(upper)
    return g, LIMIT, NOT_CONVERGED


def solve_case(
    alpha: Row, x: Row, rtt: Row, linux: bool, c: float, n: int, rates: Any, work: Any
) -> tuple[float, float, float, int, int]:
    """One case: writes ``rates`` and returns (delay, gap, residual, passes, status)."""
    top, most, fine = survey_all(alpha, x, rtt, linux, n, work)
    gap, passes, status = math.nan, 0, INVALID
    if fine and most > 0.0 and LEAST <= c <= MOST:
        gap, passes, status = find_gap(alpha, x, rtt, linux, c, top, n, work)
    if status != OK:
        for i in range(n):
            rates[i] = math.nan
        return math.nan, math.nan, math.nan, passes, status
    residual = spread_all(alpha, x, rtt, linux, c, top, gap, n, rates, work)
    return top + gap, gap, residual, passes, status


def solve_batch(
    alpha: Any, x: Any, rtt: Any, linux: bool, c: Any, rates: Any, floats: Any, integers: Any
) -> None:
    """Every row of a batch; ``floats`` [m, 3] = delay, gap, residual; ``integers`` [m, 2]."""
    n = alpha.shape[1]
    for k in prange(len(c)):
        work = np.empty(((n + CHUNK - 1) // CHUNK, 4))
        delay, gap, residual, passes, status = solve_case(
            alpha[k], x[k], rtt[k], linux, c[k], n, rates[k], work
        )
        floats[k, 0], floats[k, 1], floats[k, 2] = delay, gap, residual
        integers[k, 0], integers[k, 1] = passes, status
