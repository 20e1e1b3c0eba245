"""Computes the equilibrium of Vegas flows over several links, as the maximum of a sum of utilities.

Flow i has the rate r_i, the threshold alpha_i, and the over-estimate x_i of its propagation delay.
q_i is the queueing delay of its path, the sum over the links. In equilibrium the backlog that the
flow computes is at the threshold: r_i (q_i - x_i) = alpha_i. This is the optimality condition of
the problem

    maximise  sum_i (alpha_i ln r_i + x_i r_i)    subject to  A r <= c.

c is the vector of the links' capacities. The matrix A shows which flows cross which links. The
queueing delays of the links are the prices (Lagrange multipliers) of this problem. The equilibrium
exists, because the capacities bound all rates. Its rates are unique, because the objective is
strictly concave. The queueing delays are unique if the rows of A for the full links are linearly
independent. Otherwise ``solve`` returns one of the possible sets of queueing delays.

The model has one threshold per flow. A flow with alpha < beta may keep any backlog between alpha
and beta. For such flows, solve once with alpha and once with beta as the threshold. In the model no
buffer overflows and no ACK waits in a queue. Propagation delays have no effect on the result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vegasmodel.equilibrium._checks import (
    MAX_COUNT,
    count,
    floats,
    numbers,
    positive,
    routing_matrix,
)
from vegasmodel.fields import kinds
from vegasmodel.fields.errors import FieldError
from vegasmodel.metrics import Floats
from vegasmodel.status import Status
from vegasmodel.support.extras import need

__all__ = ["Certificate", "Equilibrium", "certificate", "parking_lot", "solve"]

Routing = ArrayLike | NDArray[np.bool_]  # [link, flow], whether or how often the flow crosses
ACCURATE = 1e-10  # a result is ``DONE`` if its ``Certificate.residual`` is below this


@dataclass(frozen=True)
class Certificate:
    """How much rates and queueing delays violate the four optimality (KKT) conditions.

    The conditions are those of the problem in the module's docstring, whose solution is the
    equilibrium. Each field is a relative error, at least 0. Small errors prove that the solution is
    optimal, since the problem is convex. A price is a link's queueing delay.

    - ``stationarity``: the largest ``|r_i (q_i - x_i) / alpha_i - 1|`` of all flows i. r_i is the
      rate, q_i the queueing delay of the path, x_i the over-estimate of baseRTT and alpha_i the
      threshold.
    - ``primal``: the largest excess of a link's load over its capacity, divided by the capacity.
    - ``dual``: the magnitude of the most negative price, divided by the largest magnitude of a
      price.
    - ``complementarity``: the largest product of a link's price and its idle capacity, divided by
      the sum of all links' queues in packets.
    """

    stationarity: float
    primal: float
    dual: float
    complementarity: float

    @property
    def residual(self) -> float:
        """The largest violation of the four optimality conditions; NaN if one of them is NaN."""
        return float(np.max([self.stationarity, self.primal, self.dual, self.complementarity]))

    @property
    def holds(self) -> bool:
        """Whether all four optimality conditions hold with an error below 1e-10."""
        return self.residual < ACCURATE


@dataclass(frozen=True, eq=False)
class Equilibrium:
    """The flows' rates, and the links' queueing delays, in equilibrium.

    ``rates`` [flow] are in pkt/s. ``prices`` [link] are the queueing delays of the links, and
    ``path_delay`` [flow] those of the flows' whole paths, in seconds. ``status`` is ``DONE``, or
    ``INACCURATE`` if the optimality conditions are violated by too much (``Certificate``).
    """

    rates: Floats
    prices: Floats
    path_delay: Floats
    certificate: Certificate
    status: Status


@kinds.checked
def solve(
    routing: Routing, capacity: ArrayLike, alpha: ArrayLike, over_estimate: ArrayLike = 0.0
) -> Equilibrium:
    """Rates and queueing delays of Vegas flows over several links, in equilibrium.

    - ``routing`` [link, flow]: how often the flow crosses the link, usually 0 or 1.
    - ``capacity`` [link]: pkt/s.
    - ``alpha`` [flow]: the flow's threshold, packets. In equilibrium the flow's own estimate of the
      number of its packets in the queues equals it.
    - ``over_estimate`` [flow]: by how many seconds the flow over-estimates its propagation delay.

    In place of each of the last three arrays, one number may be given for all entries.

    The solver Clarabel finds approximate queueing delays, and Newton steps make them more exact,
    as a rule up to rounding. If the result then fails a check (``certificate``), its status is
    ``INACCURATE``. Raises ``ValueError`` for arrays whose shapes do not fit, numbers out of range,
    or a flow without links, and ``ExtraMissing`` if Clarabel is not installed.
    """
    need("network", "the equilibrium of several links")
    A, c, a, x = _checked(routing, capacity, alpha, over_estimate)
    # For the solvers all numbers should be near 1. So the unit of rates is the largest capacity,
    # and the unit of packets is the mean alpha. The unit of times is the time in which a link with
    # the largest capacity sends the mean alpha.
    rate_unit, packet_unit = float(c.max()), float(a.mean())
    scaled = (A, c / rate_unit, a / packet_unit, x * rate_unit / packet_unit)
    # a price is the queueing delay of a link
    prices = _polish(*scaled, _interior_point(*scaled)) * packet_unit / rate_unit
    path_delay = prices @ A  # queueing delay of each flow's path: the sum over its links
    with np.errstate(divide="ignore", invalid="ignore"):
        rates = a / (path_delay - x)
    check = certificate(A, c, a, x, rates, prices)
    return Equilibrium(
        rates, prices, path_delay, check, Status.DONE if check.holds else Status.INACCURATE
    )


@kinds.checked
def certificate(
    routing: Routing,
    capacity: ArrayLike,
    alpha: ArrayLike,
    over_estimate: ArrayLike,
    rates: ArrayLike,
    prices: ArrayLike,
) -> Certificate:
    """How far given rates and prices are from the optimality (KKT) conditions; no solver is used.

    ``rates`` [flow] are in pkt/s. A price is a link's queueing delay in s; ``prices`` are [link].
    ``routing`` [link, flow] says how often a flow crosses a link, and ``capacity`` [link] is in
    pkt/s. ``alpha`` [flow] are the flows' thresholds in packets. ``over_estimate`` [flow] says by
    how many seconds the flows over-estimate their propagation delays. Raises ``ValueError`` for
    arrays whose shapes do not fit, and for numbers out of range.
    """
    A, c, a, x = _checked(routing, capacity, alpha, over_estimate)
    r, price = floats("rates", rates), floats("prices", prices)
    for name, array, n in (("rates", r, A.shape[1]), ("prices", price, A.shape[0])):
        if array.shape != (n,):
            raise FieldError(name, f"shape {array.shape}", f"{n} numbers")
    idle = c - A @ r  # the part of each link's capacity that no flow uses
    return Certificate(
        stationarity=float(np.abs(r * (price @ A - x) / a - 1).max()),
        primal=float(np.maximum(-idle / c, 0).max()),
        dual=float(np.maximum(-price, 0).max() / np.abs(price).max()),
        complementarity=float(np.abs(price * idle).max() / np.abs(price @ c)),
    )


def parking_lot(links: int, long: int = 1, cross: int = 1) -> Floats:
    """The routing matrix of ``long`` flows over all ``links``, then ``cross`` flows on each link.

    It has one row per link and one column per flow. Podlesny and Williamson use this parking-lot
    topology in section IV-H, with 5 links, 20 long flows and 20 cross flows on each link, all
    Vegas. Raises ``FieldError`` for numbers out of range and for a matrix that is too large.
    """
    links, long, cross = count("links", links), count("long", long, 0), count("cross", cross, 0)
    if links * (long + links * cross) > MAX_COUNT:
        size = f"{links} links and {long + links * cross} flows"
        raise FieldError("links, long, cross", size, f"a matrix of at most {MAX_COUNT} entries")
    cross_columns = np.kron(np.eye(links), np.ones((1, cross)))
    return np.hstack([np.ones((links, long)), cross_columns])


def _checked(
    routing: Routing, capacity: ArrayLike, alpha: ArrayLike, over_estimate: ArrayLike
) -> tuple[Floats, Floats, Floats, Floats]:
    """The arguments of ``solve`` as arrays; ``FieldError`` if their shapes or values are wrong."""
    A = routing_matrix(routing)
    if A.ndim != 2 or 0 in A.shape:
        raise FieldError("routing", f"shape {A.shape}", "a matrix [link, flow]")
    if not np.all(A.any(axis=0)):
        raise FieldError("routing", routing, "a matrix in which every flow crosses a link")
    sizes = {"capacity": (capacity, A.shape[0]), "alpha": (alpha, A.shape[1])}
    sizes["over_estimate"] = (over_estimate, A.shape[1])
    arrays = []
    for name, (value, size) in sizes.items():
        array = numbers(name, value) if name == "over_estimate" else positive(name, value)
        if array.shape not in ((), (size,)):
            raise FieldError(name, f"shape {array.shape}", f"one number, or {size} of them")
        arrays.append(np.broadcast_to(array, (size,)))
    return A, arrays[0], arrays[1], arrays[2]


def _interior_point(A: Floats, c: Floats, a: Floats, x: Floats) -> Floats:
    """Approximate queueing delays of the links, s, from which ``_polish`` starts Newton's method.

    Clarabel, a solver for convex problems, minimises -sum_i (alpha_i t_i + x_i r_i), where t_i <=
    ln r_i and no link is overloaded. Flow i has the rate r_i, the threshold alpha_i (``a``) and the
    over-estimate x_i of baseRTT. At the minimum t_i = ln r_i. The queueing delays are the Lagrange
    multipliers of the links. ``A`` [link, flow] says how often a flow crosses a link, and ``c`` has
    the capacities.

    Rates are divided by the flow's fair share and loads by the link's capacity, because Clarabel
    sometimes fails otherwise. If it fails all the same, the result is only a rough estimate.
    """
    import clarabel
    from scipy import sparse

    links, flows = A.shape
    # each flow's fair share: the least, over its links, of the capacity over the number of flows
    share = np.where(A > 0, (c / np.maximum(A.sum(axis=1), 1e-300))[:, None], np.inf).min(axis=0)
    # Clarabel minimises b . v subject to G v + s = h, where s lies in a product of cones. Here v
    # has the flows' rates and then their t_i. For each link, s has the idle capacity, which must
    # not be negative. For each flow, s has (t_i, 1, r_i), and the exponential cone means exp(t_i)
    # <= r_i.
    G: list[Any] = [
        [sparse.csc_matrix(A * share / c[:, None]), sparse.csc_matrix((links, flows))],
        [_minus_ones(flows, 2), _minus_ones(flows, 0)],
    ]
    h = np.concatenate([np.ones(links), np.tile([0.0, 1.0, 0.0], flows)])
    cones = [clarabel.NonnegativeConeT(links)] + [clarabel.ExponentialConeT()] * flows
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    no_quadratic_terms = sparse.csc_matrix((2 * flows, 2 * flows))
    b = np.concatenate([-x * share, -a])
    G_matrix = sparse.csc_matrix(sparse.block_array(G))
    solver = clarabel.DefaultSolver(no_quadratic_terms, b, G_matrix, h, cones, settings)
    found = np.asarray(solver.solve().z[:links], dtype=np.float64) / c
    # Newton's method needs rates alpha_i/(q_i - x_i) > 0, so each path's delay q_i must exceed x_i
    if np.all(np.isfinite(found) & (found > 0)) and np.all(found @ A > x):
        return found
    # Clarabel failed. If a link's flows crossed no other link, its queueing delay would be at most
    # their largest over-estimate plus the time in which it sends all their backlogs. Take this sum
    # for each link; Newton's method is slow from there.
    largest_x = np.where(A > 0, x / np.where(A > 0, A, 1.0), 0.0).max(axis=1)
    return np.asarray(largest_x + (A > 0) @ a / c)


def _minus_ones(flows: int, position: int) -> Any:
    """A sparse matrix that ``_interior_point`` needs for its constraints on single flows.

    It has three rows and one column for each flow. Column i holds -1 in row ``3 i + position``, and
    is 0 elsewhere.
    """
    from scipy import sparse

    rows = 3 * np.arange(flows) + position
    return sparse.csc_matrix(
        (np.full(flows, -1.0), (rows, np.arange(flows))), shape=(3 * flows, flows)
    )


def _polish(A: Floats, c: Floats, a: Floats, x: Floats, prices: Floats) -> Floats:
    """Make the links' queueing delays ``prices`` (s) exact, by projected Newton steps (Bertsekas).

    The steps solve the dual problem: minimise c . prices - sum_i alpha_i ln(q_i - x_i) for prices
    >= 0. c is the vector of the capacities. alpha_i is the threshold of flow i, q_i the queueing
    delay of its path, and x_i its over-estimate of baseRTT. The steps end when the error is below
    1e-11 and no longer falls, or after 200 steps. ``A`` [link, flow] says how often a flow crosses
    a link, and ``a`` and ``x`` hold the alpha_i and x_i.
    """
    B = A / c[:, None]  # B @ rates: the loads of the links, as parts of their capacities
    y = prices * c  # the unknowns of the steps: packets queued at each link

    def value(y: Floats) -> float:
        """The function to minimise, at the queues ``y``; infinite where it is not defined."""
        above = y @ B - x  # q_i - x_i
        return float(y.sum() - a @ np.log(above)) if above.min() > 0 else np.inf

    best, best_error = y, np.inf
    for _ in range(200):
        r = a / (y @ B - x)  # the flows' rates
        idle = 1.0 - B @ r  # the gradient: what each link has left
        error = float(np.abs(np.minimum(y / y.sum(), idle)).max())
        if error < best_error:
            best, best_error = y, error
        elif best_error < 1e-11:
            break
        # Newton's step for the links that have a queue, or get one because they are overloaded
        selected = (y > min(error, 1e-6) * y.sum()) | (idle < 0)
        step = -y  # the queues of all other links become 0
        hessian = (B[selected] * (r**2 / a)) @ B[selected].T
        step[selected] = -np.linalg.lstsq(hessian, idle[selected], rcond=1e-14)[0]
        length, value_now = 1.0, value(y)
        moved = np.maximum(y + step, 0.0)
        # the step is halved until the function falls by a part of what its gradient promises
        while value(moved) > value_now + 1e-4 * float(idle @ (moved - y)) + 1e-13 * abs(value_now):
            length /= 2
            if length < 1e-14:
                break
            moved = np.maximum(y + length * step, 0.0)
        if np.any(moved @ B <= x):
            break
        y = moved
    return best / c
