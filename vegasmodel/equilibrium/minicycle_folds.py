"""Finds the steady cycles of Vegas and Reno at each buffer size, and the sizes where they vanish.

Vegas and Reno share a drop-tail link with a buffer of B packets (the model of De Vendictis and
Baiocchi 2002). A cycle lasts from one overflow of the buffer to the next. At an overflow a source
loses a packet only if its window still grows. So there may be two steady cycles. In the first
cycle, Vegas still grows at every overflow, and every overflow multiplies its window by a factor
lambda below 1. In the second cycle, Vegas has stopped growing before every overflow, and loses no
packets.

To connect the two cycles, suppose that a fraction p of the overflows cuts Vegas's window. Then an
overflow multiplies this window by lambda^p on average (geometric mean). Let V(p) be the window that
Vegas would reach at the next overflow if it grew all the time. Let E be the window at which Vegas's
backlog equals its lower threshold when B packets are in the queue. If Vegas reacts ``response``
round trips late, E is computed from the queue as it was that long before the overflow. As long as
V(p) < E, Vegas's window still grows at the overflow, and is cut. If V(p) > E, the window has
stopped growing before. So

    p = 1 where V(p) < E,    p = 0 where V(p) > E,    any p from 0 to 1 where V(p) = E.

Let z be a real number, and let p be z limited to the range from 0 to 1. Then the three conditions
are one equation for z (the normal map, Robinson 1992):

    ln(V(p)/E) + z - p = 0.

As B varies, the solutions z form a curve with two folds, at which the curve turns back. At the
upper fold p = 1; for larger buffers the first cycle does not exist. (The paper calls this buffer
B_th.) At the lower fold p = 0; for smaller buffers the second cycle does not exist. For a buffer
between those of the two folds there are three solutions. The third one, with 0 < p < 1, is an
unstable cycle. It separates the initial windows that lead to the first cycle from those that lead
to the second.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vegasmodel.equilibrium import minicycle, minicycle_start
from vegasmodel.equilibrium._checks import VARIANTS, floats, numbers, positive, word
from vegasmodel.equilibrium.continuation import follow
from vegasmodel.equilibrium.minicycle_derived import Edge, loss_limited_window
from vegasmodel.fields import kinds
from vegasmodel.fields.errors import FieldError
from vegasmodel.metrics import Floats
from vegasmodel.stacks import Variant
from vegasmodel.status import Status

__all__ = ["Cycles", "cycles"]


@dataclass(frozen=True, eq=False)
class Cycles:
    """Steady cycles of Vegas and Reno at different buffer sizes: arrays with one entry per cycle.

    The entries follow the curve of solutions from the smallest buffer on. Where the curve turns
    back, the buffer size falls again. So there may be several cycles for one buffer size.
    Throughputs are those of one flow.
    """

    buffer: Floats  # packets
    cut: Floats  # p: the part of the overflows in which Vegas is cut
    vegas: Floats  # pkt/s
    reno: Floats
    attracts: npt.NDArray[np.bool_]  # True: the cycle is stable (p is 0 or 1)
    residual: Floats  # the left side of the equation ln(V(p)/E) + z - p = 0, as a magnitude
    folds: Floats  # [fold] buffers at which the curve turns back, in order along the curve
    fold_residual: Floats  # [fold]
    status: Status  # of ``continuation.follow``


@dataclass(frozen=True)
class _Equation:
    """The equation ln(V(p)/E) + z - p = 0 for z; its solutions are the steady cycles.

    p is z limited to the range from 0 to 1. It is the fraction of the overflows that cut Vegas's
    window. V(p) is the sum of the Vegas windows at an overflow if they grow all the time between
    overflows (``window``), and E the sum at which they would stop growing (``edge_window``). Both
    depend on the buffer B, and are in packets, as B is.
    """

    M: float  # bandwidth-delay product, packets
    lam: float  # lambda, the factor on Vegas's window at a cut
    n_vegas: float  # numbers of Vegas and of Reno flows
    n_reno: float
    edge: Edge  # Vegas's window at its lower threshold, for a given queue
    offset: float  # the queue that Vegas sees at an overflow is B + offset, but at most B

    def seen(self, B: float) -> float:
        """The queue in packets that Vegas sees when a buffer of B packets overflows.

        If the result is 0 or less, Vegas sees no queue.
        """
        return min(B + self.offset, B)

    def window(self, B: float, p: float) -> float:
        """V(p), packets: the sum of the Vegas windows at an overflow.

        The windows grow all the time between overflows. A fraction p of the overflows cuts them by
        the factor ``lam``, so the geometric mean of the factor is ``lam``^p. B is the buffer in
        packets.
        """
        mean_cut = self.lam**p
        arguments = (self.M, B, mean_cut, self.n_vegas, self.n_reno)
        return float(loss_limited_window(*(np.array(a) for a in arguments)))

    def edge_window(self, B: float) -> float:
        """E, packets: the sum of the Vegas windows at which each backlog is at the lower threshold.

        It is for the queue that Vegas sees when a buffer of B packets overflows (``seen``), which
        must be above 0.
        """
        return float(self.edge.window(np.array(self.seen(B))))

    def __call__(self, z: Floats, B: float) -> Floats:
        """The left side of the class's equation, ln(V(p)/E) + z - p = 0, at the buffer B.

        It is NaN if Vegas sees no queue.
        """
        p = np.clip(z, 0.0, 1.0)
        ratio = self.window(B, float(p[0])) / self.edge_window(B) if self.seen(B) > 0.0 else 0.0
        return np.asarray((math.log(ratio) if ratio > 0.0 else math.nan) + z - p)

    def slopes(self, z: Floats, B: float) -> Floats:
        """The derivatives of the equation's left side with respect to z and to B, [1, 2].

        For 0 < z < 1 the first is the derivative of ln V with respect to p; otherwise it is 1. Both
        are NaN if Vegas sees no queue.
        """
        p, q, n_R = float(np.clip(z[0], 0.0, 1.0)), self.seen(B), self.n_reno
        # V is (M + B + 1) n_V/(n_V + 2 n_R (1 - cut)) with cut = lambda^p, and E is h + X/q
        cut, X = self.lam**p, float(self.edge.pull)
        by_p = 2.0 * n_R * cut * math.log(self.lam) / (self.n_vegas + 2.0 * n_R * (1.0 - cut))
        inside = 0.0 < z[0] < 1.0
        if q <= 0.0:  # a step may end where Vegas sees no queue
            return np.full((1, 2), math.nan)
        by_buffer = 1.0 / (self.M + B + 1.0) + X / q / q / self.edge_window(B)
        return np.array([[by_p if inside else 1.0, by_buffer]])


@kinds.checked
def cycles(
    capacity: float,
    rtt: float,
    alpha: float = 3.0,
    decrease: float = 0.75,
    *,
    buffers: tuple[float, float] = (1.0, 30.0),
    variant: Variant = "paper",
    response: float = 0.0,
    n_vegas: int = 1,
    n_reno: int = 1,
    step: float = 0.02,
) -> Cycles:
    """The steady cycles of Vegas and Reno at many buffer sizes, with throughputs.

    A cycle lasts from one overflow of the buffer to the next. A loss multiplies Vegas's window by
    lambda = ``decrease``, which is below 1. Vegas loses a packet at a fraction p of the overflows,
    so an overflow multiplies its window by lambda^p on average.

    This p is not an argument. It determines how large Vegas's window is at an overflow, and this
    window determines whether Vegas loses a packet there, which gives p again. A cycle is steady
    only if both values of p agree. This condition is one equation for the buffer size and p (it is
    in the text at the top of this module). So its solutions form a curve in the plane of buffer
    size and p. The curve has folds: points at which it turns back, so that one buffer size has
    several steady cycles. Therefore the function does not solve the equation at given buffer sizes.
    It takes steps along the curve, from the smallest buffer, where p = 1, and past the folds.
    `minicycle.solve`, called with ``decrease`` = lambda^p, gives the throughputs of each cycle.

    ``capacity`` is in pkt/s, ``rtt`` in s, and ``alpha``, the lower threshold, in packets.
    ``buffers`` are the least and the greatest buffer in packets. If Vegas would see an empty queue
    at the least buffer, the curve begins at a larger one. The curve's last point may lie outside
    ``buffers``. ``variant``, ``response``, ``n_vegas`` and ``n_reno`` are as in `minicycle.solve`.
    ``step`` is the greatest length of a step along the curve; a step that changes only p, by 1,
    would have the length 1. No step is longer than the range of buffers.

    Raises ``FieldError`` for arguments out of range, and for a least buffer so large that no cycle
    has p = 1.
    """
    M = float(positive("capacity", capacity) * positive("rtt", rtt))
    A, lag = float(positive("alpha", alpha)), float(numbers("response", response))
    lam = float(numbers("decrease", decrease, high=1.0, above=True))
    if lam == 1.0:
        raise FieldError("decrease", lam, "below 1: without a cut there is one cycle and no fold")
    word("variant", variant, VARIANTS)
    positive("step", step)
    n_V, n_R = float(numbers("n_vegas", n_vegas, 1.0)), float(numbers("n_reno", n_reno, 1.0))
    edge, _ = minicycle_start.edges(np.array(A), np.array(A), variant, np.array(n_V), np.array(M))
    # At the overflow the queue has ``buffer`` + 1 packets. It grows by one packet per source and
    # round trip, and Vegas reacts ``lag`` round trips late: to ``buffer`` + ``offset`` packets.
    offset = 1.0 - lag * (n_V + n_R)
    limits = floats("buffers", buffers).ravel().tolist()
    # the buffer at which the curve begins: with it Vegas sees a queue of 0.001 packets or more
    low = max([*limits[:1], 1e-3 - min(offset, 0.0)])
    if len(limits) != 2 or not low < limits[1] < math.inf:
        raise FieldError("buffers", buffers, "(least, greatest), greatest above least and finite")

    # the first point of the curve: with p = 1 the equation gives z at the least buffer
    equation = _Equation(M, lam, n_V, n_R, edge, offset)
    first_z = 1.0 + math.log(equation.edge_window(low) / equation.window(low, 1.0))
    # Steps measure the buffer in this unit, in packets. With it the curve turns by less than a
    # right angle at its corners, where p becomes 0 or 1, so that ``follow`` can pass them.
    unit = 1.5 * A * (n_V + 2.0 * n_R * (1.0 - lam))
    if first_z < 1.0:
        raise FieldError("buffers", buffers, "a least buffer below B_th, the upper fold")
    branch = follow(
        equation, [first_z], low, (low, limits[1]), slopes=equation.slopes, scale=[1.0, unit],
        step=min(step, max((limits[1] - low) / unit, 1.0)),  # a longer one leaves the range at once
    )  # fmt: skip
    p = np.clip(branch.x[:, 0], 0.0, 1.0)
    rates = minicycle.solve(
        capacity, rtt, branch.parameter, alpha, lam**p, losers="both", variant=variant,
        response=response, n_vegas=n_vegas, n_reno=n_reno,
    )  # fmt: skip
    return Cycles(
        branch.parameter, p, rates.vegas, rates.reno, (p == 0.0) | (p == 1.0), branch.residual,
        np.array([fold.parameter for fold in branch.folds]),
        np.array([fold.residual for fold in branch.folds]), branch.status,
    )  # fmt: skip
