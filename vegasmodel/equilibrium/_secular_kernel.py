"""Computes the queueing delay at which the rates of the Vegas flows of a link fill its capacity.

Flow i keeps its backlog at alpha_i packets, its threshold. It over-estimates its propagation delay
by x_i. The capacity is c, the queueing delay is Delta. The rates of the flows add up to c:

    sum_i alpha_i / (Delta - x_i) = c.

In Linux each term has one more factor (see ``secular.rates``). The functions solve for the gap
g = Delta - max x instead of Delta, because g suffers less from rounding errors.

Many functions have the same arguments. ``alpha``, ``x`` and ``rtt`` hold the thresholds (packets),
the over-estimates and the propagation delays (s) of all flows. If there are several links, their
flows follow one another in these arrays. A function computes for one link: ``first`` is the index
of the link's first flow, and ``n`` the number of its flows. ``linux`` says whether the flows
compute their backlogs as in Linux; only then ``rtt`` is used. ``c`` is the capacity in pkt/s,
``top`` the largest over-estimate, and ``g`` the gap. ``work`` is scratch space.

All functions are plain Python. ``_compiled.py`` compiles them with Numba, and ``_secular_lanes.py``
does the same arithmetic for many links at once. All three ways give the same results to the last
bit.

The first steps of the iteration use one float per number, which is fast. The last steps need about
twice as many digits. There each number is the sum of two floats (Dekker 1971, Knuth TAOCP 4.2.2).
The extra digits matter if a flow with a tiny alpha has the largest x. The rate of this flow is the
small difference between c and the sum of the other rates. With one float per number, this
difference would lose up to ten digits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from vegasmodel.status import Status

Row = Sequence[float]

DONE, PENDING = int(Status.DONE), int(Status.PENDING)  # plain integers for Numba and JAX
NOT_CONVERGED, INVALID = int(Status.NOT_CONVERGED), int(Status.INVALID)
ILL_CONDITIONED = int(Status.ILL_CONDITIONED)
CHUNK = 4096  # flows of a partial sum; a fixed number, so that results do not depend on threads
WIDTH = 6  # columns of the scratch space: a chunk has at most six results
# Most passes. A pass is a step of the iteration, which goes over all flows. In the worst case many
# passes only halve the range of exponents in which the solution lies.
MAX_PASSES = 220
MAX_ROUGH_PASSES = 60  # most passes of the rough stage
# `find_gap` finds the gap g (see the docstring above) by iteration, in two stages. The rough stage
# computes in float64, the last stage with twice as many digits. A stage ends after a step that
# changes g by at most a certain fraction of g: ROUGH_STEP in the rough stage, LAST_STEP in the last
# stage. (The rough stage also ends after MAX_ROUGH_PASSES steps.) ROUGH_STEP and LAST_STEP are
# pairs of fractions, because the fraction depends on the method of the step:
# - The first fraction is for steps by `newton` and `one_pole`. These methods converge
#   quadratically: the relative error of g after the step is about the square of the fraction.
# - The second fraction is for steps by `two_poles`. This method converges cubically: the relative
#   error of g after the step is about the cube of the fraction. So the fraction may be larger.
ROUGH_STEP = (3e-5, 1e-2)
LAST_STEP = (3e-9, 1e-6)
UNIT = 2.0**-53  # the greatest relative rounding error of float64
RESIDUAL = 64.0 * UNIT  # greatest relative error of the sum of the rates in a valid result
TINY, HUGE = 1e-100, 1e100  # no overflow or underflow in the squares and splits below

prange = range  # Numba's prange in the compiled copies that use threads


def two_sum(a: float, b: float) -> tuple[float, float]:
    """The exact sum of a and b: the rounded sum and its error."""
    s = a + b
    t = s - a  # the part of s that comes from b; s - t is the part that comes from a
    return s, (a - (s - t)) + (b - t)  # what s lacks of a, and what it lacks of b


def split(a: float) -> tuple[float, float]:
    """``a`` as the sum of two floats of at most 26 bits each; products of such halves are exact."""
    t = 134217729.0 * a  # 2^27 + 1 times a
    high = t - (t - a)  # a, rounded to 26 bits
    return high, a - high


def remainder(a: float, q: float, s: float) -> float:
    """The remainder ``a - q s`` of the division of a by s, where q is the rounded quotient.

    The result is exact if q differs from a/s by at most a few units in the last place.
    """
    qh, ql = split(q)
    sh, sl = split(s)
    return (((a - qh * sh) - qh * sl) - ql * sh) - ql * sl


def quotient(a: float, s: float, e: float) -> tuple[float, float, float]:
    """The quotient ``a / (s + e)`` as the sum of two floats; also returns 1/s.

    The divisor, too, is given as the sum of two floats: its rounded value ``s`` and the rounding
    error ``e``. The three results are the approximate quotient, its error, and 1/s.
    """
    inverse = 1.0 / s
    q = a * inverse
    return q, (remainder(a, q, s) - q * e) * inverse, inverse


def distance(top: float, x: float, g: float) -> tuple[float, float]:
    """The queueing delay Delta minus a flow's over-estimate x of baseRTT, as two floats.

    The difference is computed as g + (top - x). ``top`` is the largest over-estimate of all flows,
    and g is the gap Delta - top. The two floats are the rounded difference and its rounding error.
    """
    d, d_low = two_sum(top, -x)  # top - x is exactly d + d_low
    y, e = two_sum(g, d)  # g + d is exactly y + e
    e += d_low
    s = y + e
    return s, e - (s - y)  # s - y is exact, because e is small beside y


def survey(
    alpha: Row, x: Row, rtt: Row, linux: bool, c: float, low: int, high: int
) -> tuple[float, float, float, float, float, float]:
    """Check the flows ``low`` to ``high`` - 1, and return six numbers that describe them.

    From these numbers ``first_gap`` computes bounds of the gap g = Delta - max x, and the value of
    g at which the iteration starts. Delta is the queueing delay. Each flow has a threshold alpha
    and an over-estimate x of baseRTT. A flow with alpha = 0 is absent, and is left out. c is the
    link's capacity.

    Linux's bounds use that at the solution no flow has a rate above c. A flow's rate falls as Delta
    grows. So Delta is at least the value at which the flow's rate alone is c.

    The numbers are, in this order:

    - ``top``: the largest x, or NaN if an input is out of range;
    - ``pole``: the sum of alpha over the flows whose x is the largest. By the papers' equation
      their rates add up to pole/g, a term with a pole at g = 0;
    - ``gap_bound``, only for Linux: a lower bound of g, the largest one that follows from a single
      flow with the largest x;
    - ``total``: the sum of alpha over all flows. Then g is at most total/c;
    - ``moment``: the sum of alpha x over all flows. It gives the mean of x, weighted by alpha;
    - ``delay_bound``, only for Linux: a lower bound of Delta, the largest one that follows from a
      single flow.

    ``linux`` says whether the flows compute their backlogs as in Linux.
    """
    top, pole, gap_bound, total, moment, delay_bound = -math.inf, 0.0, 0.0, 0.0, 0.0, -math.inf
    in_range = True
    for i in range(low, high):
        a, x_i = alpha[i], x[i]
        if a > 0.0:
            in_range = in_range and TINY <= a <= HUGE and -HUGE <= x_i <= HUGE
            total += a
            moment += a * x_i
            if x_i > top:
                top, pole, gap_bound = x_i, 0.0, 0.0
            if x_i == top:
                pole += a
            if linux and rtt[i] + x_i >= TINY:
                # Let y be Delta - x, and ``base`` the flow's estimate of baseRTT, which is too long
                # by x. In Linux the flow's rate is alpha/(y (1 + y/base)). This is c if y is the
                # positive root of y (1 + y/base) = alpha/c.
                base, k = rtt[i] + x_i, a / c
                y = 2.0 * k / (1.0 + math.sqrt(max(1.0 + 4.0 * k / base, 0.0)))
                delay_bound = max(delay_bound, x_i + y)
                if x_i == top:
                    gap_bound = max(gap_bound, y)
            elif linux:
                in_range = False
        elif a != 0.0:  # negative or not a number
            in_range = False
    return top if in_range else math.nan, pole, gap_bound, total, moment, delay_bound


def rough_sums(
    alpha: Row, x: Row, rtt: Row, linux: bool, top: float, g: float, low: int, high: int
) -> tuple[float, float, float]:
    """A sum R of rates of the flows ``low`` to ``high`` - 1, and its derivatives, in float64.

    Returns (R, -R', R''/2). The derivatives are with respect to the gap g, the queueing delay minus
    ``top``, the largest over-estimate of baseRTT of all flows. For Vegas as in the papers, R leaves
    out the flows whose over-estimate is ``top``; the caller adds their rates. For Linux R contains
    all flows, and the third number is 0. ``linux`` says whether the flows compute their backlogs as
    in Linux.
    """
    total, slope, bend = 0.0, 0.0, 0.0
    for i in range(low, high):
        a, d = alpha[i], top - x[i]
        if linux:
            if a > 0.0:
                y = g + d  # the queueing delay minus the flow's over-estimate
                base = rtt[i] + x[i]
                rate = a / (y * (1.0 + y / base))
                total += rate
                slope += rate * (1.0 / y + 1.0 / (y + base))
        elif d > 0.0:
            inverse = 1.0 / (g + d)
            rate = a * inverse
            fall = rate * inverse  # how fast the rate falls as g grows
            total += rate
            slope += fall
            bend += fall * inverse
    return total, slope, bend


def precise_sums(
    alpha: Row, x: Row, rtt: Row, linux: bool, top: float, g: float, low: int, high: int
) -> tuple[float, float, float, float, float]:
    """Two sums of rates of the flows ``low`` to ``high`` - 1, the second with extra digits.

    The gap g is the queueing delay minus the largest over-estimate of baseRTT. Returns five
    numbers:

    - the three numbers that ``rough_sums`` returns: a sum R of rates, and its derivatives with
      respect to g in the form -R' and R''/2. For Vegas as in the papers, R leaves out the flows
      with the largest over-estimate.
    - the sum of the rates of all flows ``low`` to ``high`` - 1 as two floats: the rounded sum and
      its error.

    ``top`` is the largest over-estimate, and ``linux`` says whether the flows compute their
    backlogs as in Linux.
    """
    total, slope, bend, sum_high, sum_low = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(low, high):
        a = alpha[i]
        if a > 0.0:
            # y, the queueing delay minus the flow's over-estimate, is s + e; q + q_low is alpha/y
            s, e = distance(top, x[i], g)
            q, q_low, inverse = quotient(a, s, e)
            sum_high, error = two_sum(sum_high, q)
            sum_low += error + q_low
            if linux:
                base, base_low = two_sum(rtt[i], x[i])
                rate, fall_rate = q, inverse
                if base < math.inf:
                    # In Linux the rate is alpha base / (y (y + base)) = alpha/y - alpha/(y + base).
                    # The first term is in the sum; w + w_low is the second. If base is infinite,
                    # the second is 0. Callers use this for flows whose windows do not change.
                    z, z_low = two_sum(s, base)
                    z_low += e + base_low
                    t = z + z_low
                    z_low -= t - z
                    w, w_low, w_inverse = quotient(a, t, z_low)
                    sum_high, error = two_sum(sum_high, -w)
                    sum_low += error - w_low
                    rate, fall_rate = w * (base * inverse), inverse + w_inverse
                total += rate
                slope += rate * fall_rate
            elif x[i] < top:
                fall = q * inverse
                total += q
                slope += fall
                bend += fall * inverse
    return total, slope, bend, sum_high, sum_low


def write_rates(
    alpha: Row, x: Row, rtt: Row, linux: bool, top: float, g: float, rates: Any, low: int, high: int
) -> tuple[float, float]:
    """Write the rates of the flows ``low`` to ``high`` - 1 into ``rates``, in pkt/s.

    Returns the sum of these rates as two floats: the rounded sum and its rounding error. The gap g
    is the queueing delay minus ``top``, the largest over-estimate of baseRTT. ``linux`` says
    whether the flows compute their backlogs as in Linux.
    """
    total, total_error = 0.0, 0.0
    for i in range(low, high):
        a, rate = alpha[i], 0.0
        if a > 0.0:
            y = g + (top - x[i])
            rate = a / (y * (1.0 + y / (rtt[i] + x[i]))) if linux else a / y
        rates[i] = rate
        total, error = two_sum(total, rate)
        total_error += error
    return total, total_error


def survey_all(
    alpha: Row, x: Row, rtt: Row, linux: bool, c: float, first: int, n: int, work: Any
) -> tuple[float, float, float, float, float, float]:
    """The six numbers that ``survey`` returns, for all flows of the link.

    A large number of flows is split into chunks, so that threads can share the work. ``work`` is
    scratch space for the results of the chunks. The link has ``n`` flows, from number ``first`` on.
    ``survey`` explains the other arguments.
    """
    if n <= CHUNK:
        return survey(alpha, x, rtt, linux, c, first, first + n)
    chunks, last = (n + CHUNK - 1) // CHUNK, first + n
    for k in prange(chunks):
        part = survey(
            alpha, x, rtt, linux, c, first + k * CHUNK, min(last, first + (k + 1) * CHUNK)
        )
        work[k, 0], work[k, 1], work[k, 2], work[k, 3], work[k, 4], work[k, 5] = part
    # Combine the results of the chunks: ``pole`` and ``gap_bound`` are only for the flows with the
    # largest x.
    top, pole, gap_bound, total, moment, delay_bound = -math.inf, 0.0, 0.0, 0.0, 0.0, -math.inf
    for k in range(chunks):
        largest = float(work[k, 0])
        if largest > top or math.isnan(largest):
            top, pole, gap_bound = largest, 0.0, 0.0
        if largest == top:
            pole += float(work[k, 1])
            gap_bound = max(gap_bound, float(work[k, 2]))
        total += float(work[k, 3])
        moment += float(work[k, 4])
        delay_bound = max(delay_bound, float(work[k, 5]))
    return top, pole, gap_bound, total, moment, delay_bound


def rough_sums_all(
    alpha: Row, x: Row, rtt: Row, linux: bool, top: float, g: float, first: int, n: int, work: Any
) -> tuple[float, float, float]:
    """The three numbers that ``rough_sums`` returns, for all flows of the link.

    Many flows are summed in chunks, because threads can compute the chunks in parallel. The link
    has ``n`` flows, from number ``first`` on. ``work`` is scratch space for the sums of the chunks.
    ``rough_sums`` explains the other arguments.
    """
    if n <= CHUNK:
        return rough_sums(alpha, x, rtt, linux, top, g, first, first + n)
    chunks, last = (n + CHUNK - 1) // CHUNK, first + n
    for k in prange(chunks):
        low, high = first + k * CHUNK, min(last, first + (k + 1) * CHUNK)
        work[k, 0], work[k, 1], work[k, 2] = rough_sums(alpha, x, rtt, linux, top, g, low, high)
    total, slope, bend = 0.0, 0.0, 0.0
    for k in range(chunks):
        total += float(work[k, 0])
        slope += float(work[k, 1])
        bend += float(work[k, 2])
    return total, slope, bend


def precise_sums_all(
    alpha: Row, x: Row, rtt: Row, linux: bool, c: float, top: float, g: float, first: int, n: int,
    work: Any,
) -> tuple[float, float, float, float]:  # fmt: skip
    """Sums over all flows: R, -R', R''/2, and the excess of all rates over the capacity c.

    R is a sum of rates. For Vegas as in the papers it leaves out the flows with the largest
    over-estimate of baseRTT. For Linux it contains all flows, and the third number is 0. R' and R''
    are the derivatives of R with respect to the gap: the queueing delay minus the largest
    over-estimate.

    The excess is a small difference of large numbers. So it is computed with about twice the digits
    of float64, and then rounded. Many flows are summed in chunks, because threads can compute the
    chunks in parallel; ``work`` gets a row for each chunk. The link has ``n`` flows, from number
    ``first`` on. ``precise_sums`` explains the other arguments.
    """
    # ``high`` + ``low`` is a sum with twice the digits: the rounded sum, and its rounding error
    if n <= CHUNK:
        total, slope, bend, high, low = precise_sums(alpha, x, rtt, linux, top, g, first, first + n)
        high, error = two_sum(high, -c)
        return total, slope, bend, high + (error + low)
    chunks, last = (n + CHUNK - 1) // CHUNK, first + n
    for k in prange(chunks):
        start, end = first + k * CHUNK, min(last, first + (k + 1) * CHUNK)
        part = precise_sums(alpha, x, rtt, linux, top, g, start, end)
        work[k, 0], work[k, 1], work[k, 2], work[k, 3], work[k, 4] = part
    total, slope, bend, high, low = 0.0, 0.0, 0.0, -c, 0.0
    for k in range(chunks):
        total += float(work[k, 0])
        slope += float(work[k, 1])
        bend += float(work[k, 2])
        high, error = two_sum(high, float(work[k, 3]))
        low += error + float(work[k, 4])
    return total, slope, bend, high + low


def write_all_rates(
    alpha: Row, x: Row, rtt: Row, linux: bool, c: float, top: float, g: float,
    first: int, n: int, rates: Any, work: Any,
) -> float:  # fmt: skip
    """Write the rates of all flows to ``rates``.

    Returns the relative error (sum of the rates - c) / c, where c is the link's capacity. The link
    has ``n`` flows, from number ``first`` on. ``work`` is scratch space, with a row for each chunk
    of flows. ``write_rates`` explains the other arguments.
    """
    # ``high`` + ``low``: the sum of the rates as two floats, the rounded sum and its error
    if n <= CHUNK:
        high, low = write_rates(alpha, x, rtt, linux, top, g, rates, first, first + n)
        high, error = two_sum(high, -c)
        return (high + (error + low)) / c
    chunks, last = (n + CHUNK - 1) // CHUNK, first + n
    for k in prange(chunks):
        start, end = first + k * CHUNK, min(last, first + (k + 1) * CHUNK)
        work[k, 0], work[k, 1] = write_rates(alpha, x, rtt, linux, top, g, rates, start, end)
    high, low = -c, 0.0
    for k in range(chunks):
        high, error = two_sum(high, float(work[k, 0]))
        low += error + float(work[k, 1])
    return (high + low) / c


def root(a: float, b: float, k: float) -> float:
    """The larger root t of a t^2 + b t = k, for a > 0, without loss of digits to cancellation.

    If rounding makes the discriminant negative, it counts as 0.
    """
    r = math.sqrt(max(b * b + 4.0 * a * k, 0.0))
    if b > 0.0:
        return 2.0 * k / (b + r)
    return (r - b) / (2.0 * a)


def newton(c: float, total: float, slope: float, f: float) -> float:
    """By how much the gap g changes in one step of Newton's method, for Vegas of Linux.

    The gap g is the queueing delay minus the largest over-estimate of baseRTT. The sum S of all
    rates (``total``) falls as g grows. The step leads towards the g at which S is the capacity c.
    ``slope`` is -dS/dg, a positive number, and f is the excess S - c.

    Newton's method is applied to the equation S^(-1/2) = c^(-1/2). Its step is

        (c^(-1/2) - S^(-1/2)) / (d S^(-1/2)/dg) = 2 S/slope (sqrt(S/c) - 1).

    The method converges quadratically. If it starts below the root, it never passes the root,
    because S^(-1/2) is concave in g.

    Proof: Let y be the queueing delay minus a flow's over-estimate, base its baseRTT and alpha its
    threshold. Its rate r satisfies r^(-1/2) = ((y + y^2/base)/alpha)^(1/2), which is concave in y.
    Up to a constant factor, S^(-1/2) is the power mean of order -2 of these functions. Such a mean
    of concave functions is concave.
    """
    # S/c is 1 + f/c. The difference sqrt(1 + part) - 1 would lose digits to cancellation if part is
    # small, but part/(1 + sqrt(1 + part)) is the same number, and loses none.
    part = f / c
    return 2.0 * total / slope * (part / (1.0 + math.sqrt(max(1.0 + part, 0.0))))


def one_pole(c: float, g: float, pole: float, rest: float, slope: float, f: float) -> float:
    """The next change of the gap g in the iteration for Vegas as in the papers.

    The iteration converges quadratically to the g at which the rates of all flows add up to the
    capacity c. The gap is the queueing delay minus the largest over-estimate of baseRTT. The flows
    with this over-estimate together have the rate p = A_0/g (``pole``), where A_0 is the sum of
    their thresholds. R (``rest``) is the sum of the other rates, R' its derivative with respect to
    g, and ``slope`` is |R'|. f = p + R - c is the excess of all rates over the capacity.

    A step by delta changes p to A_0/(g + delta). R becomes approximately

        R u/(u + delta)   with u = R/|R'|,

    a function with the same value and slope as R at delta = 0. (If R' is 0, u is g.) Then the rates
    add up to the capacity if

        f = delta (p/(g + delta) + R/(u + delta)).

    This is a quadratic equation; the function returns its larger root delta.

    If g is below the solution, the step does not pass the solution. Proof: up to a factor, 1/R is a
    harmonic mean of linear functions of g, and therefore concave. So it lies below its tangent. The
    approximation of R is the reciprocal of this tangent, so it is never larger than R. So the
    approximate rates fall to c at a smaller g than the true ones, or at the same g.
    """
    u = rest / slope if slope > 0.0 else g
    # the quadratic equation c delta^2 + (p u + R g - f (g + u)) delta = f g u
    return root(c, pole * u + rest * g - f * (g + u), f * g * u)


def two_poles(g: float, pole: float, slope: float, bend: float, f: float) -> float:
    """The next change of the gap g for Vegas as in the papers, with cubic convergence.

    The gap is the queueing delay minus the largest over-estimate of baseRTT. ``pole`` is the sum of
    the rates of the flows with this over-estimate, and R the sum of all other rates. ``slope`` is
    |R'|, and ``bend`` is R''/2, where R' and R'' are derivatives with respect to g. ``f`` is the
    excess of all rates over the capacity. When the gap changes by delta, R becomes approximately

        k + q w/(w + delta)   with w = 2 |R'|/R'',  q = |R'| w,  k = R - q.

    This approximation has the same value and the same first two derivatives as R at delta = 0. The
    result is the delta at which the rates then add up to the capacity c, or 0 if none is found.
    The sum ``pole`` is proportional to 1/g. So with a = c - k the equation is

        pole g/(g + delta) + q w/(w + delta) = a.
    """
    if not bend > 0.0:
        return 0.0
    w = slope / bend
    q = slope * w
    a = pole + q - f
    if a <= 0.0:
        return 0.0
    # the same equation, as a delta^2 + (pole w + q g - f (g + w)) delta = f g w
    return root(a, pole * w + q * g - f * (g + w), f * g * w)


def first_gap(
    linux: bool, c: float, top: float, pole: float, gap_bound: float, total: float,
    moment: float, delay_bound: float,
) -> tuple[float, float, float]:  # fmt: skip
    """Where the iteration for the gap starts: a lower bound, an upper bound, and the first value.

    The gap is the queueing delay less the largest over-estimate of baseRTT. The three values, in s,
    follow from the capacity ``c`` and the six numbers that ``survey`` returns: ``top``, ``pole``,
    ``gap_bound``, ``total``, ``moment`` and ``delay_bound``, in this order. ``linux`` says whether
    the flows compute their backlogs as in Linux.
    """
    if linux:
        g = max(gap_bound, delay_bound - top)
    else:
        # With the gap G, the rates of all flows add up to the capacity c. Let x be a flow's
        # over-estimate, and ``top`` the largest x. The flow's rate is alpha/(G + top - x).
        # ``pole`` is the sum of alpha over the flows with x = top, so the sum of their rates is
        # pole/G. The rates of the other flows have the sum R(G), so pole/G + R(G) = c. The first
        # value g of the iteration is found as follows. For the other flows let ``others`` be the
        # sum of alpha, and ``mean`` the mean of top - x, weighted by alpha. By Jensen's inequality
        # R(G) >= others/(G + mean). So pole/G + others/(G + mean) <= c. The left side falls as G
        # grows. So G is at least the root g of pole/g + others/(g + mean) = c.
        gap_bound, others = pole / c, total - pole
        g = gap_bound
        if others > 0.0:
            mean = max(top * total - moment, 0.0) / others
            g = max(g, root(c, c * mean - total, pole * mean))
    # At the gap ``gap_bound`` one or more flows fill the link alone, so G is not below it. If all
    # flows had the largest x, G would be total/c (in Linux less), so G is not above total/c. The
    # factors 0.5 and 2 leave room for rounding errors.
    return 0.5 * gap_bound, 2.0 * total / c, min(g, total / c)


def advance(
    linux: bool, c: float, n: int, floor: float, ceiling: float, passes: int,
    g: float, lower: float, upper: float, exact: bool,
    head: float, rest: float, slope: float, bend: float, f: float,
) -> tuple[float, float, float, bool, int]:  # fmt: skip
    """The next gap after a pass over the flows, and whether the iteration ends.

    The gap is the queueing delay minus the largest over-estimate of baseRTT. The arguments from
    ``head`` on are the results of the pass at the gap ``g``. ``head`` is the sum of the rates of
    the flows with the largest over-estimate (in Linux 0), and ``rest`` is the sum R of the others.
    ``slope`` is -R', ``bend`` is R''/2, and ``f`` is the excess of all rates over the capacity c.
    ``exact`` says whether the pass computed with two floats per number. ``passes`` is the number of
    passes so far. The solution lies between ``lower`` and ``upper``, which begin as ``floor`` and
    ``ceiling``. Near the solution one float may give ``f`` the wrong sign. So before the first pass
    with two floats per number, ``lower`` and ``upper`` are set to ``floor`` and ``ceiling`` again.
    ``n`` is the number of the link's flows.

    Returns five values:

    - the next gap;
    - the two ends of an interval that contains the solution;
    - whether the next pass must compute with two floats per number;
    - the status: PENDING means that another pass must follow.
    """
    lower, upper = (g, upper) if f > 0.0 else (lower, g)
    # ``order`` selects the fraction in ROUGH_STEP and LAST_STEP: 1 for ``two_poles``, else 0.
    move, order = 0.0 if linux else two_poles(g, head, slope, bend, f), 1
    if move == 0.0 or not lower < g + move < upper:
        move = newton(c, rest, slope, f) if linux else one_pole(c, g, head, rest, slope, f)
        order = 0
    size = abs(move)
    if exact and size <= LAST_STEP[order] * g:
        # Are all digits of the gap g valid? ``doubt`` estimates the rounding error of the sum of
        # all rates, in packets per second. (UNIT is the relative rounding error of float64. With
        # two floats per number it is UNIT^2. It is counted once for each flow of a chunk, and for
        # some other operations.) If g grows by dg, the sum of the rates falls by
        # (head/g + slope) dg. The term head/g is for the flows with the largest over-estimate:
        # their rates add up to ``head``, and are proportional to 1/g. The term ``slope`` is for the
        # other flows. So the rounding error of the sum makes g uncertain by
        # doubt/(head/g + slope). If this uncertainty is more than UNIT g, not all digits of g are
        # valid in float64.
        doubt = (8.0 + min(n, CHUNK)) * UNIT * UNIT * c
        if doubt > UNIT * (head + slope * g):
            return g, lower, upper, exact, ILL_CONDITIONED
        return g + move, lower, upper, exact, DONE
    rough_ends = not exact and (size <= ROUGH_STEP[order] * g or passes == MAX_ROUGH_PASSES)
    if rough_ends:
        exact, lower, upper = True, floor, ceiling  # float64 signs near the root may be wrong
    # The geometric mean of ``lower`` and ``upper`` halves the range of exponents. It replaces a
    # step that leads out of the interval. From pass 16 on it also replaces every second large step,
    # as many large steps may all be much too short.
    allowed = rough_ends or passes < 16 or passes % 2 == 1 or size < 0.25 * g
    if lower < g + move < upper and allowed:
        g += move
    elif not rough_ends:
        g = math.sqrt(lower) * math.sqrt(upper)
    return g, lower, upper, exact, PENDING


def find_gap(
    alpha: Row, x: Row, rtt: Row, linux: bool, c: float, first: int, n: int, work: Any
) -> tuple[float, float, int, int]:
    """Find the gap for one link: the queueing delay less the largest over-estimate of baseRTT.

    Returns four values: the largest over-estimate in s, the gap in s, the number of passes over the
    flows, and the status.

    The thresholds ``alpha``, the over-estimates ``x`` and the propagation delays ``rtt`` are those
    of the flows of several links. This link has ``n`` flows, from number ``first`` on, and the
    capacity ``c``. ``linux`` says whether the flows compute their backlogs as in Linux; ``work`` is
    scratch space.
    """
    top, pole, gap_bound, alphas, moment, delay_bound = survey_all(
        alpha, x, rtt, linux, c, first, n, work
    )
    if not alphas > 0.0 or math.isnan(top):
        return math.nan, math.nan, 0, INVALID
    floor, ceiling, g = first_gap(linux, c, top, pole, gap_bound, alphas, moment, delay_bound)
    lower, upper, exact = floor, ceiling, False
    for passes in range(1, MAX_PASSES):
        head = 0.0 if linux else pole / g  # rate of the flows with the largest over-estimate
        if exact:
            rest, slope, bend, f = precise_sums_all(alpha, x, rtt, linux, c, top, g, first, n, work)
        else:
            rest, slope, bend = rough_sums_all(alpha, x, rtt, linux, top, g, first, n, work)
            f = (head - c) + rest
        g, lower, upper, exact, status = advance(
            linux, c, n, floor, ceiling, passes, g, lower, upper, exact, head, rest, slope, bend, f
        )
        if status != PENDING:
            return top, g, passes, status
    return top, g, MAX_PASSES, NOT_CONVERGED


def solve_case(
    alpha: Row, x: Row, rtt: Row, linux: bool, c: float, first: int, n: int, rates: Any, work: Any
) -> tuple[float, float, float, int, int]:
    """Find the steady state of one link, and write the rates of its n flows into ``rates``.

    Returns five values:

    - the queueing delay in s;
    - the gap in s: the queueing delay minus the largest over-estimate of baseRTT;
    - the relative error (sum of the rates - c) / c, where c is the capacity;
    - the number of passes over the flows;
    - the status.

    If the status is not DONE, the first three values and all rates are NaN.

    ``linux`` says whether the flows compute their backlogs as in Linux; ``work`` is scratch space.
    """
    top, gap, residual, passes, status = math.nan, math.nan, math.nan, 0, INVALID
    if TINY <= c <= HUGE:
        top, gap, passes, status = find_gap(alpha, x, rtt, linux, c, first, n, work)
    if status == DONE:
        residual = write_all_rates(alpha, x, rtt, linux, c, top, gap, first, n, rates, work)
        # the residual is too large if squares overflow or underflow, which no step detects
        status = DONE if abs(residual) <= RESIDUAL else ILL_CONDITIONED
    if status != DONE:
        for i in range(first, first + n):
            rates[i] = math.nan
        return math.nan, math.nan, math.nan, passes, status
    return top + gap, gap, residual, passes, status
