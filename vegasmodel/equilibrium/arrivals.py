"""Computes the steady state after each arrival, if Vegas flows join a link one after another.

Let Delta_i be the queueing delay in the steady state after the arrival of flow i. When flow i
joins, it finds the queueing delay Delta_{i-1} of the earlier flows, and counts this delay as
propagation delay. So its baseRTT exceeds its propagation delay by x_i = Delta_{i-1}.

The model assumes that the earlier flows have reached their steady state when a flow joins. It also
assumes that the flow's first packets cause no queue of their own. Units: packets, seconds, packets
per second.

Source: Boutremans and Le Boudec (2000), section 3.1.2, after Bonald (1998).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vegasmodel.equilibrium import secular
from vegasmodel.equilibrium._checks import (
    VARIANTS,
    count,
    expect_broadcast,
    floats,
    numbers,
    ordered,
    positive,
    word,
)
from vegasmodel.equilibrium._jax_arrays import same_kind
from vegasmodel.fields import kinds
from vegasmodel.fields.errors import MISSING, FieldError
from vegasmodel.metrics import Floats
from vegasmodel.stacks import dead_zone, find

MANY_FLOWS = 1000  # for more flows ``_arrivals_many`` is faster, although it loads a compiler
LEAST_RATIO = 1e-12  # least threshold / greatest threshold: ``_arrivals_many`` needs this or more


class Arrivals(NamedTuple):
    """The equilibrium after n Vegas flows have joined a link one after another (see ``arrive``).

    ``delays[..., i]`` is the queueing delay in s after arrival number i + 1. ``rates`` and
    ``windows`` are those after the last arrival. ``x`` says by how much each flow's baseRTT exceeds
    its propagation delay.
    """

    x: Floats  # over-estimates, s [..., n]
    delays: Floats  # s [..., n]
    rates: Floats  # pkt/s [..., n]
    windows: Floats | None  # packets [..., n]; None where no rtt was given
    status: Any  # of the worst step [...], as in ``secular.Equilibrium``
    residual: Any  # largest |sum of the rates - c|/c after an arrival [...]


@same_kind
@kinds.checked
def arrive(
    alpha: ArrayLike,
    capacity: ArrayLike,
    *,
    beta: ArrayLike | None = None,
    rtt: ArrayLike | None = None,
    over_estimate: ArrayLike | None = None,
    variant: str = "paper",
    each: Callable[[Floats, Floats, Floats], None] | None = None,
) -> Arrivals:
    """The equilibrium after each arrival, if n Vegas flows join a link one after another.

    The last axis of each array is the order of arrival. ``alpha`` and ``beta`` [..., n] are the
    flows' thresholds in packets, and ``rtt`` [..., n] are their propagation delays in s.
    ``capacity`` [...] is in pkt/s.

    A new flow counts the queueing delay that it finds as propagation delay. So flow i
    over-estimates its propagation delay by

        x_i = Delta_{i-1},  Delta_0 = 0,

    where Delta_i is the queueing delay after the i-th arrival. ``over_estimate`` replaces these x.
    Set it to 0 if all flows know their propagation delays.

    A backlog here is the number of queued packets that the flow itself computes from its baseRTT:
    its rate times Delta - x, where Delta is the queueing delay. (The variant ``linux`` multiplies
    it by RTT/baseRTT.) A flow with x > 0 has more packets in the queue than that: its rate times
    Delta.

    Without ``beta`` every flow keeps the backlog alpha, so its rate is alpha/(Delta - x). The rates
    of the first i flows must add up to the capacity c, which determines Delta_i. This is equation
    (6) of Boutremans and Le Boudec, here for the first i flows:

        sum_{j<=i} alpha_j/(Delta_i - x_j) = c.

    With ``beta`` each flow keeps its window while its backlog is between two edges. They are alpha
    and beta in the variant ``paper``, alpha - 1/2 (at least 0) and beta + 1/2 in ``ns2``, and alpha
    and beta + 1 in ``linux``. Then there are many equilibria, and the order of arrival selects one:

    - The new flow raises its window until its backlog is at the lower edge. This raises the
      queueing delay.
    - An earlier flow keeps its window, so its backlog rises with the queueing delay. If the backlog
      reaches the upper edge, the flow reduces its window and stays at this edge.

    The two edges favour the early flows: their backlogs rise, but the last flow ends at its lower
    edge. Over-estimates favour the late flows: x_i is larger for them, and at the same backlog a
    larger x_i gives a higher rate.

    The model assumes that after an arrival the queueing delay rises to its new steady value, and
    never exceeds that value on the way.

    Two results depend on ``rtt``: the backlog in the variant ``linux``, and the rate of a flow that
    keeps its window. So ``FieldError`` is raised if ``rtt`` is missing in the variant ``linux``, or
    if the two edges of a flow differ.

    A threshold or a capacity out of range makes the rates of its link NaN, and the status of this
    link says why. But if ``beta`` is given, a threshold out of range or a beta below its alpha
    raises ``FieldError``.

    ``each(x, windows, delay)`` is called after each arrival, with the over-estimates and windows of
    the flows that have arrived. Without ``rtt`` these windows leave out the propagation delay.
    """
    word("variant", variant, VARIANTS)
    each_flow = {"alpha": alpha, "beta": beta, "rtt": rtt, "over_estimate": over_estimate}
    expect_broadcast(each_flow, {"capacity": capacity})
    lower, upper = (floats("alpha", alpha),) * 2
    if beta is not None:
        lower, upper = dead_zone(*ordered(numbers("alpha", alpha), numbers("beta", beta)), variant)
    if rtt is None and (find(variant).backlog_over_base or np.any(upper > lower)):
        allowed = (
            "it is needed for the variant linux, and if a flow keeps its window over a range of "
            "backlogs (ns2 with beta, or beta above alpha)"
        )
        raise FieldError("rtt", None, allowed, wrong=MISSING)
    d = np.zeros(1) if rtt is None else floats("rtt", rtt)
    x_given = np.full(1, math.nan)
    if over_estimate is not None:
        x_given = floats("over_estimate", over_estimate)
    c = floats("capacity", capacity)
    lower, upper, d, x_given, _ = np.broadcast_arrays(
        *(np.atleast_1d(a) for a in (lower, upper, d, x_given)), c[..., None]
    )
    shape, n = lower.shape[:-1], lower.shape[-1]
    one_threshold = (  # a single link, on which every flow keeps one backlog and measures its RTT
        over_estimate is None
        and each is None
        and not shape
        and find(variant).real_numbers
        and np.array_equal(lower, upper)
    )
    if one_threshold and n > MANY_FLOWS:
        in_range = lower.min() >= LEAST_RATIO * lower.max() > 0.0 and 0.0 < c < math.inf
        if in_range:
            return _arrive_many(lower, float(c), None if rtt is None else d)
    if lower.size * n > 100_000:
        secular.compile_kernel()
    found = _one_by_one(
        lower, upper, d, None if over_estimate is None else x_given, c, variant, each
    )
    return found if rtt is not None else found._replace(windows=None)


def _one_by_one(
    lower: Floats,
    upper: Floats,
    d: Floats,
    x: Floats | None,
    c: Floats,
    variant: str,
    each: Callable[[Floats, Floats, Floats], None] | None,
) -> Arrivals:
    """The equilibrium after each arrival of a Vegas flow, computed from the one before it.

    A flow holds its window while its backlog is between ``lower`` and ``upper`` [..., n], both in
    packets. ``d`` [..., n] are the propagation delays in s, and ``x`` [..., n] the over-estimates
    of them. If ``x`` is None, each flow's over-estimate is the queueing delay that it finds. ``c``
    [...] is the capacity in pkt/s. ``arrive`` explains ``variant`` and ``each``.
    """
    shape, n = lower.shape[:-1], lower.shape[-1]
    x_all, delays = np.empty(lower.shape) if x is None else np.array(x), np.empty(lower.shape)
    rates, windows = np.empty((*shape, 0)), np.empty((*shape, 0))
    status, delay, residual = np.zeros(shape, dtype=np.int64), np.zeros(shape), np.zeros(shape)
    for i in range(n):
        if x is None:
            x_all[..., i] = delay
        so_far = slice(0, i + 1)  # the flows that have arrived
        # earlier windows shrink until the backlog is ``upper``; the new one grows until ``lower``
        edge = np.concatenate([upper[..., :i], lower[..., i : i + 1]], axis=-1)
        # the earlier flows that may keep their windows: with alpha = beta there is only one edge
        may_keep = (upper > lower)[..., so_far] & (np.arange(i + 1) < i)
        state = _after_arrival(
            edge, windows, x_all[..., so_far], d[..., so_far], c, variant, may_keep
        )
        rates, delay = state.rates, np.asarray(state.delay)
        status, delays[..., i] = np.maximum(status, state.status), delay
        residual = np.maximum(residual, np.abs(state.residual))
        windows = rates * (d[..., so_far] + delay[..., None])
        if each is not None:
            each(x_all[..., so_far], windows, delay)
    return Arrivals(x_all, delays, rates, windows, status[()], residual[()])


def _arrive_many(alpha: Floats, c: float, rtt: Floats | None) -> Arrivals:
    """What ``arrive`` returns, for many flows on one link; each keeps ``alpha`` packets queued.

    ``c`` is the capacity in pkt/s, and ``rtt`` the flows' propagation delay in s, or None if
    unknown.
    """
    from vegasmodel.equilibrium import _arrivals_many  # loads a compiler

    delays, residuals = _arrivals_many.delays(alpha, c)
    x = np.concatenate([np.zeros(1), delays[:-1]])
    state = secular.solve(alpha, x, c)
    windows = None if rtt is None else state.rates * (rtt + state.delay)
    residual = max(float(np.abs(residuals).max()), abs(float(state.residual)))
    return Arrivals(x, delays, state.rates, windows, state.status, residual)


def _after_arrival(
    edge: Floats,
    windows: Floats,
    x: Floats,
    d: Floats,
    c: Floats,
    variant: str,
    may_keep: NDArray[np.bool_],
) -> secular.Equilibrium:
    """The equilibrium after an arrival, in which earlier flows keep or reduce their windows.

    The upper edge is the greatest backlog at which Vegas holds its window. An earlier flow keeps
    its window W while its backlog is below this edge. Its rate is then W/(Delta + d), where Delta
    is the queueing delay and d the propagation delay. Otherwise the flow reduces its window and
    stays at the edge. So its rate is the smaller of W/(Delta + d) and the rate at the upper edge.

    An iteration finds which flows are at the upper edge. It begins with all earlier flows there.
    Each pass computes the Delta at which the rates add up to the capacity. If W/(Delta + d) is now
    smaller than a flow's rate at the edge, the next passes use W/(Delta + d) for this flow.

    Delta never rises from one pass to the next, so a flow that has left the edge does not return
    to it. The iteration ends when no flow leaves the edge any more, after at most n passes.

    The last flow is the new one. ``edge`` holds its lower edge, and the upper edges of the others.
    ``windows`` are the flows' windows W in packets, ``d`` their propagation delays and ``x`` their
    over-estimates of them in s, and ``c`` is the capacity. ``may_keep`` marks the flows that may
    keep their windows: earlier flows whose two edges differ. ``variant`` is the TCP implementation.
    """
    n_earlier = windows.shape[-1]
    keep_window = np.zeros(x.shape, dtype=bool)  # the flows that keep their windows
    # the new flow has no window yet; it is not in ``may_keep``, so the 1 is never used
    w = np.concatenate([windows, np.ones((*x.shape[:-1], 1))], axis=-1)
    state = None
    for _ in range(n_earlier + 2):
        # W/(Delta + d) is the rate for a backlog W and an over-estimate -d
        state = secular.balance(
            np.where(keep_window, w, edge),
            np.where(keep_window, -d, x),
            c,
            rtt=np.where(keep_window, math.inf, d) if find(variant).backlog_over_base else None,
            variant=variant,
        )
        delay = np.asarray(state.delay)[..., None]
        # A flow measures the queueing delay y = Delta - x. Its rate at the edge is edge/y; if the
        # backlog is divided by baseRTT (Linux), it is smaller by ``factor`` = RTT/baseRTT. So
        # W/(Delta + d) is smaller than the rate at the edge if W y factor < edge (Delta + d).
        y = delay - x
        factor = 1.0 + y / (d + x) if find(variant).backlog_over_base else 1.0
        below_edge = (w * (y * factor) < edge * (d + delay)) & may_keep
        if np.array_equal(below_edge, keep_window):
            break
        keep_window = below_edge
    assert state is not None  # noqa: S101 - the loop runs at least once
    return state


@kinds.checked
def bonald(n: int, alpha: float, capacity: float) -> tuple[Floats, Floats]:
    """Bonald's closed form for n flows that arrive one after another.

    Boutremans and Le Boudec print it in section 3.1.2. Let c be the capacity, alpha the threshold
    of each flow, and S_i = 1 + 1/2 + ... + 1/i. Then flow i over-estimates its propagation delay by
    x_i and has the rate r_i:

        x_i = (alpha/c) (i-1) S_{i-1},   r_i = c/(n S_n - (i-1) S_{i-1}).

    Returns the x [n] in s and the rates [n] in pkt/s. Raises ``FieldError`` for arguments out of
    range.

    With two or more flows these rates add up to less than c. Two flows, for example, have the rates
    c/3 and c/2. But equation (6) of the same paper says that the sum is c. The rates of ``arrive``
    satisfy equation (6).
    """
    n = count("n", n)
    alpha, c = float(positive("alpha", alpha)), float(positive("capacity", capacity))
    i = np.arange(1, n + 1)
    steps = i * np.cumsum(1.0 / i)  # i S_i
    before = np.concatenate([[0.0], steps[:-1]])
    return alpha / c * before, c / (steps[-1] - before)


class Asymptotes(NamedTuple):
    """Approximate delay and rates for a large number of flows that arrive one after another.

    All flows have the same threshold alpha. ``delay`` is the queueing delay in s after the last
    arrival. ``first`` and ``last`` are the rates of the first and of the last flow, and ``total``
    is the sum of all rates, in pkt/s.
    """

    delay: float
    first: float  # rate of the first flow
    last: float  # rate of the last flow
    total: float


EULER = 0.57721566490153286061  # Euler's constant gamma
# the numerator of the term with 1/L^2 in ``asymptotes``: the sum of 1/(k^2 (k+1)) over all k >= 1
SECOND_ORDER = math.pi**2 / 6.0 - 1.0


@kinds.checked
def asymptotes(n: int, alpha: float, capacity: float, form: str = "exact") -> Asymptotes:
    """Approximates the results of ``arrive`` or ``bonald`` for many flows with the same alpha.

    With ``form="exact"`` the function approximates ``arrive``, with ``form="bonald"`` it
    approximates ``bonald``. The n flows arrive one after another, and compute their backlogs as in
    the papers. Let the queueing delay after the n-th arrival be

        Delta_n = (alpha/c) n (ln n + C)

    with the capacity c and a number C. The k-th flow from the end has the rate

        alpha/(Delta_n - Delta_{n-k}).

    With L = ln n + C and Euler's constant gamma these rates have the sum

        c ((ln n + gamma)/(L + 1) + (pi^2/6 - 1)/L^2 + O(1/L^3)).

    In ``arrive`` this sum is c, so C = gamma - 1 + (pi^2/6 - 1)/ln n + O(1/ln^2 n).

    In Bonald's form C = gamma. So for large n his queue is longer by about alpha packets per flow.
    His rates add up to less than c: about the fraction 1/(ln n + gamma + pi^2/6) is missing, up to
    O(1/ln^3 n). This fraction falls only as the logarithm of n grows. At 10,000 flows it is still
    9 %.

    Raises ``FieldError`` for arguments out of range; n must be at least 2.
    """
    word("form", form, ("exact", "bonald"))
    n = count("n", n, 2, 10**15)  # ln 1 = 0 divides
    alpha, c = float(positive("alpha", alpha)), float(positive("capacity", capacity))
    log = math.log(n)
    # L, and L + 1. The last arrival raises the delay by alpha (L + 1)/c, as the derivative of
    # n (ln n + C) by n is L + 1. So the last flow has the rate c/(L + 1).
    if form == "exact":
        L, L_1 = log + EULER - 1.0 + SECOND_ORDER / log, log + EULER + SECOND_ORDER / log
        total = c
    else:
        L, L_1 = log + EULER, log + EULER + 1.0
        total = c * (L / L_1 + SECOND_ORDER / L**2)
    delay = alpha / c * n * L
    return Asymptotes(delay, alpha / delay, c / L_1, total)
