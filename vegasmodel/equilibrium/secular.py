"""Computes the steady state of Vegas flows on one link, if they over-estimate propagation delays.

Flow i has the propagation delay d_i, but its baseRTT is d_i + x_i. So the backlog that it computes
is not the real one. In the steady state the computed backlog is alpha_i, and the rate of the flow
is alpha_i/(Delta - x_i). (In Linux the rate has one more factor, see ``rates``.) Delta is the
queueing delay, the same for all flows. It solves equation (6) of Boutremans and Le Boudec (2000):

    sum_i alpha_i / (Delta - x_i) = c                                           (6)

where c is the capacity. The solver finds the gap g = Delta - max x, because the gap suffers less
from rounding errors than Delta.

``_secular_kernel.py`` contains the arithmetic. For NumPy input it runs as plain Python, or as
compiled code if the input is large. For JAX input ``_secular_jax.py`` is used instead.

Source: Boutremans and Le Boudec (2000), equations (2) to (6).
"""

from __future__ import annotations

import functools
import math
import sys
from typing import Any, cast

import numpy as np

from vegasmodel.equilibrium import _secular_kernel as kernel
from vegasmodel.equilibrium._checks import (
    VARIANTS,
    expect_broadcast,
    floats,
    rtt_of,
    some_flow,
    word,
)
from vegasmodel.equilibrium._jax_arrays import is_jax
from vegasmodel.equilibrium._solution import Equilibrium as Equilibrium
from vegasmodel.stacks import find
from vegasmodel.status import Status

_MIN_COMPILED = 30_000  # flows in all: below, interpreting takes less time than importing Numba
_MIN_THREADED = 300_000  # flows, in all or on one link: from there on threads share the work


def queueing_delay(
    alpha: Any, x: Any, c: Any, rtt: Any = None, variant: str = "paper"
) -> Any:  # fmt: skip
    """The queueing delay, in s, of Vegas flows on one link at the steady state.

    At this delay the rates of the flows add up to the capacity. For the variant ``paper`` this
    condition is equation (6) of Boutremans and Le Boudec.

    ``alpha`` [..., n] holds the backlogs in packets that the n flows keep, and ``x`` [..., n] their
    over-estimates of baseRTT in s. ``c`` [...] is the capacity in pkt/s. The arguments broadcast.
    ``rtt`` and ``variant`` are as in ``rates``.

    The result has the shape [...]. It is NaN if the solver finds no steady state. The errors are
    those of ``rates``.
    """
    return solve(alpha, x, c, rtt=rtt, variant=variant).delay


def rates(alpha: Any, x: Any, c: Any, rtt: Any = None, variant: str = "paper") -> Any:
    """The rates of Vegas flows on one link at the steady state, pkt/s [..., n].

    The error of a rate is at most 8 units in the last place; for the variant ``linux`` this holds
    if the queueing delay is at most 1e15 times the least baseRTT. For JAX arrays the relative error
    is at most 1e-11. ``alpha``, ``x`` and ``c`` are as in ``queueing_delay``.

    In the steady state the backlog that Vegas computes is alpha. ``variant`` says how Vegas
    computes it from the window W, the baseRTT and the RTT. The rate r follows from the queueing
    delay Delta, the propagation delay ``rtt`` and its over-estimate x = baseRTT - rtt:

    - ``paper``: the backlog is W (RTT - baseRTT)/RTT, equation (3) of Boutremans and Le Boudec. So
      r = alpha/(Delta - x), equation (5).
    - ``ns2``: the same as ``paper``. But ns-2 rounds the backlog. So even with beta = alpha a real
      flow may keep any backlog in [alpha - 0.5, alpha + 0.5). The module ``bands`` computes the
      rates for all these backlogs.
    - ``linux``: the backlog is W (RTT - baseRTT)/baseRTT. So
      r = alpha (rtt + x)/((Delta - x)(rtt + Delta)). This variant needs ``rtt`` [..., n] in s.
      Linux truncates the backlog. So even with beta = alpha a real flow may keep any backlog in
      [alpha, alpha + 1).

    A flow with alpha = 0 is absent: its rate is 0, and its x and rtt are ignored. All rates are NaN
    if the solver finds no steady state; the status of ``solve`` gives the reason. Raises
    ``FieldError`` for shapes that do not fit, for no flow, for an unknown variant, for ``linux``
    without ``rtt``, and for arguments that are not numbers. Raises ``ValueError`` if JAX computes
    with 32-bit floats.
    """
    return solve(alpha, x, c, rtt=rtt, variant=variant).rates


def solve(alpha: Any, x: Any, c: Any, rtt: Any = None, variant: str = "paper") -> Equilibrium:
    """The steady state of Vegas flows on one link: ``Equilibrium``, with delay, rates and status.

    ``alpha`` [..., n] are thresholds in packets, ``x`` [..., n] over-estimates of baseRTT in s, and
    ``c`` [...] the capacities in pkt/s. ``variant`` says how Vegas computes its backlog (``rates``
    explains this). Only the variant "linux" needs ``rtt`` [..., n], the propagation delays in s.

    The status says whether the solver has found the steady state. If all x are negative, the flows
    may leave a part of the link idle. There is then no such steady state, and the status is 2. The
    errors are those of ``rates``.
    """
    state = balance(alpha, x, c, rtt=rtt, variant=variant)
    idle = state.delay < 0.0  # links that the flows do not fill
    xp: Any = np
    if is_jax(idle):
        xp = sys.modules["jax"].numpy
    elif not np.any(idle):
        return state
    delay, gap, residual = (
        xp.where(idle, xp.nan, part)[()] for part in (state.delay, state.gap, state.residual)
    )
    return state._replace(
        delay=delay,
        rates=xp.where(idle[..., None], xp.nan, state.rates),
        gap=gap,
        residual=residual,
        status=xp.where(idle, int(Status.INVALID), state.status)[()],
    )


def balance(alpha: Any, x: Any, c: Any, rtt: Any = None, variant: str = "paper") -> Equilibrium:
    """The solution of the equations of ``solve``, even if its queueing delay Delta is negative.

    ``solve`` takes a negative Delta for no steady state. But callers also use the equation for
    flows whose windows do not change. A flow with the constant window W and the propagation delay d
    has the rate W/(Delta + d). This is alpha/(Delta - x) with alpha = W and x = -d. ``c`` is the
    capacity in pkt/s; ``rtt`` and ``variant`` matter as in ``solve``, and the errors are the same.
    """
    word("variant", variant, VARIANTS)
    linux = find(variant).backlog_over_base  # whether the backlog is W (RTT - baseRTT)/baseRTT
    rtt_of(variant, rtt)
    if any(is_jax(a) for a in (alpha, x, c, rtt)):
        return cast("Equilibrium", _jax().solve(alpha, x, c, rtt if linux else None))
    if rtt is not None:
        rtt = floats("rtt", rtt)
    # m links with n flows each; the solver gets the flows of all links in one row
    alpha, x, rtt, c = _broadcast(alpha, x, rtt if linux else None, c)
    shape, n = alpha.shape[:-1], alpha.shape[-1]
    alpha, x, rtt = (np.ascontiguousarray(a).reshape(-1) for a in (alpha, x, rtt))
    m = math.prod(shape)
    # the solver's results: rates; delay, gap and residual; numbers of iterations and status
    out = np.empty(m * n)
    reals, integers = np.empty((m, 3)), np.empty((m, 2), dtype=np.int64)
    _run(alpha, x, rtt, linux, np.ascontiguousarray(c).reshape(-1), out, reals, integers)
    delay, gap, residual = (reals[:, k].reshape(shape)[()] for k in range(3))
    passes, status = (integers[:, k].reshape(shape)[()] for k in range(2))
    return Equilibrium(delay, out.reshape(*shape, n), gap, residual, passes, status)


def compile_kernel() -> None:
    """Load the compiled version of the solver, so that smaller inputs use it, too.

    Normally only inputs of 30 000 flows or more use the compiled version. After this call, or after
    the first such input, all inputs of more than 100 flows use it.

    The call takes a second, and several seconds the first time on a machine. It saves time only if
    thousands of small inputs follow.
    """
    _compiled().batch(threads=False)


def _broadcast(alpha: Any, x: Any, rtt: Any, c: Any) -> tuple[np.ndarray[Any, Any], ...]:
    """The solver's inputs, broadcast to the shapes [..., n] (alpha, x and rtt) and [...] (c).

    If rtt is ``None``, no equation needs it, and x is returned in its place, only because the
    solver expects an array. Raises ``FieldError`` if there is no flow.
    """
    alpha, x, c = floats("alpha", alpha), floats("x", x), floats("c", c)
    expect_broadcast({"alpha": alpha, "x": x, "rtt": rtt}, {"c": c})
    some_flow(alpha=alpha, x=x, rtt=rtt)
    rtt = x if rtt is None else floats("rtt", rtt)
    shape = np.broadcast_shapes((1,), alpha.shape, x.shape, rtt.shape, (*c.shape, 1))
    alpha, x, rtt = (np.broadcast_to(a, shape) for a in (alpha, x, rtt))
    c = np.broadcast_to(c, shape[:-1])
    return alpha, x, rtt, c


def _jax() -> Any:
    """The solver for JAX arrays, which is loaded only when it is needed."""
    from vegasmodel.equilibrium import _secular_jax

    return _secular_jax


@functools.cache
def _compiled() -> Any:
    """The compiled solver, which is loaded only when it is needed, because it loads Numba."""
    from vegasmodel.equilibrium import _compiled as module

    return module


def _run(
    alpha: Any, x: Any, rtt: Any, linux: bool, c: Any, out: Any, floats: Any, integers: Any
) -> None:
    """Compute the steady states of m links with n Vegas flows each.

    The solver exists in Python and in compiled form. This function uses the faster of the two for
    the given number of flows.

    ``c`` holds the capacities of the m links. ``alpha``, ``x`` and ``rtt`` have the length m n:
    first the n flows of the first link, then those of the second, and so on. The function writes
    its results into three arrays:

    - ``out``, of length m n: the rates.
    - ``floats`` [m, 3]: the queueing delay, the queueing delay minus the largest x, and the
      residual.
    - ``integers`` [m, 2]: the number of iterations and the status.
    """
    m, size = c.size, alpha.size
    n = size // max(m, 1)
    work = np.empty((-(-n // kernel.CHUNK), kernel.WIDTH))
    numba_loaded = _compiled.cache_info().currsize > 0
    if size < _MIN_COMPILED and not (size > 100 and numba_loaded):
        # lists: Python reads their floats five times faster than an array's
        a, over, d, rates = alpha.tolist(), x.tolist(), rtt.tolist(), [0.0] * size
        for k, capacity in enumerate(c.tolist()):
            *floats[k], integers[k, 0], integers[k, 1] = kernel.solve_case(
                a, over, d, linux, capacity, k * n, n, rates, work
            )
        out[:] = rates
    elif n < _MIN_THREADED:
        threads = m > 1 and size > _MIN_THREADED
        _compiled().batch(threads=threads)(alpha, x, rtt, linux, c, n, out, floats, integers)
    else:
        solve_one = _compiled().case()
        for k in range(m):
            *floats[k], integers[k, 0], integers[k, 1] = solve_one(
                alpha, x, rtt, linux, c[k], k * n, n, out, work
            )
