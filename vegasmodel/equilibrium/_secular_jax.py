"""Solves for Vegas's steady state in JAX, for jit, vmap and grad, on CPU and GPU.

The solver finds the queueing delay at which the rates of the flows add up to the capacity. It
solves the same equation as ``_secular_kernel.py``, but for many links at once, as arrays. The first
steps of the iteration add the rates in float64. The last steps also compute the rounding errors of
all quotients and sums, and correct the sum of the rates by these errors. In a valid result the
relative error of the sum is at most 1e-11.

The derivatives of the result come from the implicit function theorem (``custom_jvp``). They are
available in forward and in reverse mode. They keep all their digits even if one flow has nearly the
whole capacity.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from vegasmodel.equilibrium import _secular_kernel as kernel
from vegasmodel.equilibrium._checks import expect_broadcast, floats, some_flow
from vegasmodel.equilibrium._jax_arrays import is_jax, need_float64, sum_of_others
from vegasmodel.equilibrium._solution import Equilibrium
from vegasmodel.fields.errors import FieldError

ROUGH_PASSES = 60  # most passes over the flows in the stage that adds the rates in float64
EXACT_PASSES = 80  # most passes in the stage that corrects the sums by the rounding errors
RESIDUAL = 1e-11  # greatest relative error of the sum of the rates in a valid result

two_sum: Any = kernel.two_sum  # written for floats, just as right for arrays


def _real(name: str, value: Any) -> Any:
    """The JAX array ``value``; raises ``FieldError`` unless its entries are real numbers."""
    if value.dtype.kind not in "iuf":
        raise FieldError(name, value.dtype.name, "an array of real numbers")
    return value


def solve(alpha: Any, x: Any, c: Any, rtt: Any) -> Equilibrium:
    """The steady states of Vegas flows on many links, as by ``secular.balance``, for JAX arrays.

    In the steady state of a link, the rates of its n flows add up to the capacity ``c`` [...], in
    pkt/s. Flow i has the threshold ``alpha`` [..., n], in packets, and over-estimates its
    propagation delay by ``x`` [..., n], in s. The equation for its rate depends on how a sender
    computes its backlog from its window W: as W (RTT - baseRTT)/RTT, as in the paper of Boutremans
    and Le Boudec, or as W (RTT - baseRTT)/baseRTT, as in Linux. Only the second equation contains
    the propagation delay ``rtt`` [..., n], in s. So the first is solved if ``rtt`` is None, and the
    second otherwise.

    If a link has no valid solution, its delay, rates, gap and residual are NaN, and its status says
    why (``Equilibrium``). Raises ``FieldError`` if there is no flow, if the shapes do not
    broadcast, and for values that are not real numbers. Raises ``ValueError`` if JAX computes with
    32-bit floats.
    """
    linux = rtt is not None
    need_float64()
    # the solver needs four arrays; without an rtt, x stands in its place, and no equation uses it
    named = {"alpha": alpha, "x": x, "rtt": rtt if linux else x, "c": c}
    expect_broadcast({"alpha": alpha, "x": x, "rtt": rtt}, {"c": c})
    some_flow(alpha=alpha, x=x, rtt=rtt)
    args = [
        jnp.asarray(_real(name, a) if is_jax(a) else floats(name, a), dtype=jnp.float64)
        for name, a in named.items()
    ]
    # c gets an axis for the flows, so that it broadcasts with the other three
    alpha, x, rtt, c = jnp.broadcast_arrays(
        *(jnp.atleast_1d(a) for a in args[:3]), args[3][..., None]
    )
    c = c[..., 0]
    delay, _, rates, gap, passes, status = _delay(linux, alpha, x, rtt, c)
    # The residual consists of rounding errors. So it counts as a constant in derivatives.
    residual = jax.lax.stop_gradient((rates.sum(-1) - c) / c)
    good = (status == kernel.DONE) & (jnp.abs(residual) <= RESIDUAL)
    status = jnp.where((status == kernel.DONE) & ~good, kernel.ILL_CONDITIONED, status)
    delay, gap, residual = (jnp.where(good, part, jnp.nan) for part in (delay, gap, residual))
    return Equilibrium(
        delay, jnp.where(good[..., None], rates, jnp.nan), gap, residual, passes, status
    )


# solvers for backlogs as in the papers and for those as in Linux
_paper: Any = jax.custom_jvp(lambda *case: _state(False, *case))
_linux: Any = jax.custom_jvp(lambda *case: _state(True, *case))


def _delay(linux: bool, alpha: Any, x: Any, rtt: Any, c: Any) -> Any:
    """Solve for the queueing delay Delta of each link.

    Returns six arrays: Delta [...], Delta - x_i and the rate r_i of each flow i [..., n], the gap
    [...], the number of passes over the flows [...], and the status [...]. x_i is flow i's
    over-estimate of baseRTT. The gap is Delta less the largest x_i of the flows that are present
    (alpha > 0).

    ``alpha`` (packets), ``x`` and the propagation delay ``rtt`` (s) have the shape [..., n], and
    the capacity ``c`` (pkt/s) has the shape [...]. ``linux`` says whether the flows compute their
    backlogs as Linux does; only then ``rtt`` is used.
    """
    return (_linux if linux else _paper)(alpha, x, rtt, c)


def _present(y: Any, rtt: Any, x: Any) -> tuple[Any, Any, Any]:
    """Prepare ``y`` for divisions: replace infinite entries by 1, and say where they are.

    ``y`` is the queueing delay less the flow's over-estimate ``x`` of baseRTT. A flow with
    alpha = 0 is absent and has the rate 0. Its ``y`` is infinite if ``x`` is at least the queueing
    delay or out of range. Returns three arrays: ``y`` and baseRTT (``rtt + x``), both with 1 where
    ``y`` is infinite, and a mask that is true where ``y`` is finite.
    """
    finite = jnp.isfinite(y)
    return jnp.where(finite, y, 1.0), jnp.where(finite, rtt + x, 1.0), finite


def _implicit(linux: bool, primals: Any, tangents: Any) -> Any:
    """The results of ``_delay`` and their derivatives, by the implicit function theorem.

    ``primals`` are the arguments of ``_delay`` after ``linux``, and ``tangents`` their changes. A
    derivative is the change of a result that follows from these changes.

    The queueing delay Delta solves sum r_i = c, where r_i are the flows' rates and c is the
    capacity. Let f_i = |dr_i/dDelta|, S the sum of all f_i, and p_i the change of r_i at fixed
    Delta if the inputs change a little. Then Delta changes by

        dDelta = (sum_j p_j - dc)/S,

    and r_i by p_i - f_i dDelta. If flow i has nearly the whole capacity, f_i is nearly S, and this
    difference would lose digits. So we use sums over the flows j other than i:

        dr_i = p_i sum_j f_j/S - f_i/S (sum_j p_j - dc).

    The change of y_i = Delta - x_i would lose digits in the same way. Let a_i = p_i - f_i dx_i, the
    change of r_i at fixed y_i. With sums over the flows j other than i, the change of y_i is

        dy_i = dDelta - dx_i = (a_i + sum_j p_j - dc)/S - dx_i sum_j f_j/S.

    The gap is y_i of the flow with the largest x_i.
    """
    alpha, x, rtt, c = primals
    d_alpha, dx, d_rtt, dc = tangents
    out = _delay(linux, *primals)
    y, base, finite = _present(out[1], rtt, x)
    r_over_alpha, f = 1.0 / y, alpha / y**2
    a = r_over_alpha * d_alpha
    if linux:  # r = alpha (1/y - 1/z) with z = Delta + rtt
        z = y + base
        r_over_alpha = base / (y * z)
        f = alpha * r_over_alpha * (1.0 / y + 1.0 / z)
        a = r_over_alpha * d_alpha + alpha / z**2 * (dx + d_rtt)
    f, a, dx = (jnp.where(finite, part, 0.0) for part in (f, a, dx))
    S = f.sum(-1, keepdims=True)
    p, f_over_S = a + f * dx, f / S
    d_delay = (p.sum(-1) - dc) / S[..., 0]
    # for each flow i, sum_j f_j/S and sum_j p_j - dc over the other flows j
    others_f_over_S = sum_of_others(f_over_S, jnp)
    others_p_minus_dc = sum_of_others(p, jnp) - dc[..., None]
    d_rates = p * others_f_over_S - f_over_S * others_p_minus_dc
    d_y = (a + others_p_minus_dc) / S - others_f_over_S * dx
    # flows that share the largest x share the derivative of the gap, as in jnp.max
    present_x = jnp.where(alpha > 0, x, -jnp.inf)
    at_top = present_x == present_x.max(-1, keepdims=True)
    d_gap = jnp.where(at_top, d_y, 0.0).sum(-1) / at_top.sum(-1)
    # the numbers of passes and the status are integers, which have no derivatives
    integers = (jnp.zeros(c.shape, jax.dtypes.float0) for _ in range(2))
    return out, (d_delay, d_y, d_rates, d_gap, *integers)


_paper.defjvp(lambda primals, tangents: _implicit(False, primals, tangents))
_linux.defjvp(lambda primals, tangents: _implicit(True, primals, tangents))


def _state(linux: bool, alpha: Any, x: Any, rtt: Any, c: Any) -> Any:
    """The queueing delays, the rates and the other results of ``_delay``, without derivatives.

    ``linux`` says whether the flows compute their backlogs as Linux does; only then the propagation
    delays ``rtt`` are used. The backlogs ``alpha``, the over-estimates ``x`` and ``rtt`` have the
    shape [..., n], and the capacities ``c`` the shape [...].

    A link with a number out of range gets harmless numbers, so that the iteration ends, and the
    status INVALID. The caller replaces its other results by NaN.
    """
    present = alpha > 0  # a flow with alpha = 0 is absent
    # of each link: the largest over-estimate, and whether all numbers are in range
    top = jnp.where(present, x, -jnp.inf).max(-1)
    good = _in_range(linux, alpha, x, rtt, c)
    alpha = jnp.where(good[..., None], alpha, 1.0)
    x, c = jnp.where(good[..., None], x, 0.0), jnp.where(good, c, 1.0)
    rtt, top = jnp.where(good[..., None], rtt, 1.0), jnp.where(good, top, 0.0)
    present = alpha > 0
    gap, passes, done = _gap(linux, alpha, x, rtt, c, top, present)
    y = _sum(gap[..., None], *two_sum(top[..., None], -x))[0]
    usable = (rtt + x >= kernel.TINY) if linux else (x <= kernel.HUGE)
    # An absent flow whose x is at least Delta, or out of range, gets an infinite y, so that its
    # rate is 0 (``_present``).
    y = jnp.where(present | (y > 0) & usable, y, jnp.inf)
    status = jnp.where(done, kernel.DONE, kernel.NOT_CONVERGED)
    finite_y, base, finite = _present(y, rtt, x)
    bend = 1.0 + finite_y / base if linux else 1.0
    rates = jnp.where(finite, alpha / (finite_y * bend), 0.0)
    return top + gap, y, rates, gap, passes, jnp.where(good, status, kernel.INVALID)


def quotient(a: Any, s: Any, e: Any) -> tuple[Any, Any, Any]:
    """``a / (s + e)`` as two floats, and 1/s, as in ``kernel.quotient``, but safe with XLA.

    s + e is a divisor with extra digits: its rounded value s and the rounding error e. The two
    floats are the approximate quotient and its error.

    XLA is JAX's compiler. It may compute a product and a later sum in one operation, with one
    rounding instead of two. ``reduce_precision`` shortens the factors, so that their products are
    exact and the result is the same either way. The call of ``reduce_precision`` for the quotient q
    also keeps XLA from combining the computation of q with the sums that use q.
    """
    inverse = 1.0 / s
    q = jax.lax.reduce_precision(a * inverse, 11, 50)
    qh, sh = (jax.lax.reduce_precision(v, 11, 25) for v in (q, s))
    ql, sl = q - qh, s - sh
    remainder = (((a - qh * sh) - qh * sl) - ql * sh) - ql * sl  # a - q s, exactly
    return q, (remainder - q * e) * inverse, inverse


def _in_range(linux: bool, alpha: Any, x: Any, rtt: Any, c: Any) -> Any:
    """For each link, whether a flow is present and all numbers are in the solver's range."""
    greatest, smallest = kernel.HUGE, kernel.TINY
    in_range = (alpha >= smallest) & (alpha <= greatest) & (jnp.abs(x) <= greatest)
    if linux:
        in_range &= rtt + x >= smallest
    has_flow = (alpha > 0).any(-1)
    return ((alpha == 0) | in_range).all(-1) & has_flow & (c >= smallest) & (c <= greatest)


def _sum(g: Any, d: Any, d_low: Any) -> Any:
    """The sum g + d + d_low, where d_low is small, as two floats: the rounded sum and its error."""
    y, e = two_sum(g, d)  # g + d is exactly y + e
    e = e + d_low
    s = y + e
    return s, e - (s - y)  # s - y is exact, because e is small beside y


def _total(high: Any, low: Any) -> Any:
    """The sum of high + low over the last axis, as two floats: the rounded sum and its error.

    It adds the two halves of the axis, then the halves of the result, and so on.
    """
    n = high.shape[-1]
    while n > 1:
        half = n // 2
        s, e = two_sum(high[..., :half], high[..., half : 2 * half])
        e = e + low[..., :half] + low[..., half : 2 * half]
        if n % 2:
            s = jnp.concatenate([s, high[..., -1:]], -1)
            e = jnp.concatenate([e, low[..., -1:]], -1)
        high, low, n = s, e, s.shape[-1]
    return high[..., 0], low[..., 0]


def _gap(linux: bool, alpha: Any, x: Any, rtt: Any, c: Any, top: Any, present: Any) -> Any:
    """For each link the gap, the number of passes, and whether the iteration has converged.

    A first iteration adds the rates in float64 (``rough``). From the gap that it finds, a second
    one adds them with extra digits (``precise``).

    ``top`` is the largest over-estimate of the link's flows. ``present`` says which flows are
    present (alpha > 0). ``linux`` says whether the flows compute their backlogs as Linux does; only
    then their propagation delays ``rtt`` are used. The backlogs ``alpha``, the over-estimates ``x``
    and ``rtt`` have the shape [..., n], and the capacities ``c`` the shape [...].
    """
    # y_i = gap + d_i is the queueing delay minus flow i's over-estimate. ``pole`` is the sum of the
    # alphas of the flows with the largest one, whose rates have a pole at the gap 0.
    d, d_low = two_sum(top[..., None], -x)
    at_top = d == 0
    pole = jnp.where(at_top, alpha, 0.0).sum(-1)
    # ``alone`` is the y at which a flow fills the link alone, so y is at least so large. In the
    # papers it is alpha/c. In Linux it solves y (1 + y/base) = alpha/c, where base is the flow's
    # baseRTT. The bounds of the gap follow: ``floor`` and ``ceiling``.
    alone = alpha / c[..., None]
    if linux:
        alone = 2.0 * alone / (1.0 + jnp.sqrt(1.0 + 4.0 * alone / (rtt + x)))
    floor = jnp.where(present, alone - d, 0.0).max(-1)
    ceiling = 2.0 * alpha.sum(-1) / c

    def rough(g: Any) -> Any:
        """At the gap g: R and -R' of ``kernel.rough_sums``, and the excess of all rates over c.

        In the papers R leaves out the flows with the largest over-estimate, whose rates have the
        sum ``pole``/g. In Linux it contains all flows. An absent flow has alpha = 0.
        """
        y = jnp.where(present, g[..., None] + d, 1.0)
        if linux:
            base = rtt + x
            rate = alpha / (y * (1.0 + y / base))
            return rate.sum(-1), (rate * (1.0 / y + 1.0 / (y + base))).sum(-1), rate.sum(-1) - c
        rate = jnp.where(at_top, 0.0, alpha / y)
        return rate.sum(-1), (rate / y).sum(-1), (pole / g - c) + rate.sum(-1)

    def precise(g: Any) -> Any:
        """The same numbers as ``rough``; the excess is computed with extra digits.

        For this, sums and quotients are pairs of floats: the rounded value and its error.
        """
        # y, the queueing delay minus the over-estimate, is s + e; alpha/y is q + q_low
        s, e = _sum(g[..., None], d, d_low)
        s, e = jnp.where(present, s, 1.0), jnp.where(present, e, 0.0)
        q, q_low, inverse = quotient(alpha, s, e)
        high, low = _total(q, q_low)
        if linux:  # the rate is alpha/y - alpha/(y + base), where base is baseRTT
            base, base_low = two_sum(rtt, x)
            w, w_low, w_inverse = quotient(alpha, *_sum(s, base, base_low + e))
            minus, minus_low = _total(w, w_low)
            high, error = two_sum(high, -minus)
            low = low + error - minus_low
            rate = w * (base * inverse)
            rest, slope = rate.sum(-1), (rate * (inverse + w_inverse)).sum(-1)
        else:
            q = jnp.where(at_top, 0.0, q)
            rest, slope = q.sum(-1), (q * inverse).sum(-1)
        f, error = two_sum(high, -c)
        return rest, slope, f + (error + low)

    no_passes = jnp.zeros(c.shape, jnp.int64)
    g, used, _ = _iterate(
        linux, rough, kernel.ROUGH_STEP[0], ROUGH_PASSES, floor, no_passes, c, pole, ceiling
    )
    return _iterate(linux, precise, kernel.LAST_STEP[0], EXACT_PASSES, g, used, c, pole, ceiling)


def _iterate(
    linux: bool, evaluate: Any, accuracy: float, limit: int, g: Any, used: Any, c: Any, pole: Any,
    ceiling: Any,
) -> Any:  # fmt: skip
    """Repeat the solver's step for all links at once until each has converged, or ``limit`` times.

    The unknown of each link is its gap: the queueing delay less the largest over-estimate of
    baseRTT. ``g`` holds the first gaps. ``evaluate`` returns the sums of the rates at given gaps,
    and ``_step`` the change of the gaps that follows. A link has converged if this change is at
    most the fraction ``accuracy`` of its gap. Returns for each link the gap, the number of steps so
    far, and whether it has converged. ``used`` holds the numbers of steps before this call.

    ``linux`` says whether the flows compute their backlogs as Linux does. ``c`` are the capacities.
    ``pole`` is for each link the sum of alpha over the flows with the largest over-estimate, and
    ``ceiling`` an upper bound of its gap.
    """

    def unfinished(state: Any) -> Any:
        """Whether a link has not converged, and another step is allowed."""
        _, _, done, k, _, _ = state
        return ~done.all() & (k < limit)

    def advance(state: Any) -> Any:
        """Make one step for all links.

        The state has, for each link: the gap, the number of steps, whether it has converged, and a
        lower and an upper bound of the gap. Before the bounds it has ``k``, the number of steps in
        this call.
        """
        g, used, done, k, lower, upper = state
        rest, slope, f = evaluate(g)
        lower, upper = jnp.where(f > 0, g, lower), jnp.where(f > 0, upper, g)
        move = _step(linux, c, g, 0.0 * g if linux else pole / g, rest, slope, f)
        size = jnp.abs(move)
        # The geometric mean of the bounds replaces a step out of the interval. From pass 16 on it
        # also replaces every second large step, as many large steps may all be much too short.
        replaced = (k >= 16) & (k % 2 == 0) & (size >= 0.25 * g)
        inside_bounds = (lower < g + move) & (g + move < upper) & ~replaced
        converged = size <= accuracy * g
        new = jnp.where(inside_bounds | converged, g + move, jnp.sqrt(lower) * jnp.sqrt(upper))
        return (jnp.where(done, g, new), used + ~done, done | converged, k + 1, lower, upper)

    # ``g`` is a lower bound of the gap, or near it; the factor 0.25 leaves room below
    first = (g, used, jnp.zeros(g.shape, bool), 0, 0.25 * g, ceiling)
    return jax.lax.while_loop(unfinished, advance, first)[:3]


def _step(linux: bool, c: Any, g: Any, head: Any, rest: Any, slope: Any, f: Any) -> Any:
    """By how much one iteration of the solver changes the gap ``g``, for all links at once.

    The gap is the queueing delay less the largest over-estimate of baseRTT. ``f`` is the sum of the
    rates minus the capacity ``c``. ``head`` is the rate of the flows with the largest
    over-estimate, ``rest`` the sum of the other rates, and ``slope`` says how fast ``rest`` falls
    as the gap grows. For Linux (``linux`` is true) ``head`` is 0, and ``rest`` the sum S of all
    rates. The step delta is that of Newton's method for S^(-1/2) = c^(-1/2) (``kernel.newton``):

        delta = 2 S/slope (sqrt(S/c) - 1)

    For Vegas as in the papers it is the larger root of (``kernel.one_pole``)

        f = delta (head/(g + delta) + rest/(u + delta)),   u = rest/slope, or g if slope is 0
    """
    if linux:
        part = f / c  # S/c is 1 + part
        return 2.0 * rest / slope * (part / (1.0 + jnp.sqrt(jnp.maximum(1.0 + part, 0.0))))
    # Multiplied by both denominators, the equation is c delta^2 + b delta = k, because head + rest
    # - f is c. ``kernel.root`` computes its root in the same way.
    u = jnp.where(slope > 0, rest / jnp.where(slope > 0, slope, 1.0), g)
    b, k = head * u + rest * g - f * (g + u), f * g * u
    r = jnp.sqrt(jnp.maximum(b * b + 4.0 * c * k, 0.0))
    return jnp.where(b > 0, 2.0 * k / jnp.where(b > 0, b + r, 1.0), (r - b) / (2.0 * c))
