"""Searches for all equilibria of Vegas, Reno and CUBIC flows over a small network of links.

Vegas reacts to the queueing delay of its path, Reno and CUBIC react to loss. With RED, a link's
loss probability rises with its queue along RED's curve. A drop-tail buffer loses nothing until it
is full; then any loss probability is possible. The rate x_i of flow i depends on the queueing delay
q_i and the loss p_i of its path, which are sums over the links. For each link l the rates of the
flows that cross it satisfy

    sum_i x_i(q_i, p_i) <= c_l,   with equality if link l has a queue

where c_l is the capacity. The formulas below are for one flow and leave out the index i. T is the
round trip without queues, and R = T + q is the round trip with queues. square_root(p, R) is the
rate by the square-root law for random losses (``random_loss``). Vegas's baseRTT exceeds T by d. So
Vegas computes its backlog as if the queueing delay were q - d. It keeps this computed backlog at e
packets. Linux computes the backlog by another formula. The rates are

    Vegas            x = e/(q - d), but at most square_root(p, R)
    Vegas of Linux   x = e (T + d)/((q - d) R), but at most square_root(p, R)
    Reno             x = square_root(p, R)
    CUBIC            x = max((C (3 + b)/(4 (1 - b)))^1/4 (R/p)^3/4, (3/(2 p))^1/2)/R

with CUBIC's constants C = 0.4 and b = 0.7 (RFC 9438 4.3, 5.1). Losses cut Vegas's window, too, so
its rate is at most that of the square-root law. If q is at most d, the backlog that Vegas computes
is 0 or negative. Then only losses limit its window, and its rate is that of the square-root law.
This law also depends on the factor by which a loss multiplies the window (``Flows.decrease``).

If all flows reacted to delay only, there would be one equilibrium (``network``). If some flows
react to delay and others to loss, there may be several equilibria, and some may be unstable (Tang,
Wang, Low and Chiang, IEEE/ACM Transactions on Networking 15(4), 2007).

Each equilibrium has an index, the number 1 or -1: the sign of a determinant (``Equilibrium``). The
indices of all equilibria add up to 1. So if the indices of the equilibria found have another sum,
some equilibria are missing. If the sum is 1, as many of index 1 as of -1 may still be missing.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vegasmodel.equilibrium._checks import count, numbers, positive, routing_matrix, word
from vegasmodel.equilibrium._loss_formulas import square_root
from vegasmodel.equilibrium.network import Routing
from vegasmodel.equilibrium.red import Curve, effective
from vegasmodel.fields import kinds
from vegasmodel.fields.errors import FieldError
from vegasmodel.metrics import Floats

__all__ = ["Equilibria", "Equilibrium", "Flows", "droptail", "equilibria", "red"]

LAWS = ("vegas", "vegas-linux", "reno", "cubic")
C, BETA = 0.4, 0.7  # CUBIC's constants C and b (RFC 9438)
NEWTON_STEPS = 50  # most steps of Newton's method
# A link's curve of loss over queue consists of straight pieces. A combination is a choice of one
# piece for each link, or of no queue.
STARTS = 12  # random points from which a search starts in each combination
MAX_STARTS = 2e6  # greatest number of starts in all combinations together
MAX_LOAD_ERROR = 1e-9  # greatest relative error of a link's load at an equilibrium
# A price is a number for a link's point on its curve (``_Network``). Two results whose prices
# differ by a smaller fraction than this are one equilibrium.
SAME_PRICE = 1e-6
# Newton's method moves no point closer to the start of a piece than this fraction of the piece.
LEAST_PART = 1e-12
NEARLY_CONSTANT = 1e-12  # s; stands for a change of the queueing delay that is 0, in a division


@kinds.checked
@dataclass(frozen=True, eq=False)
class Flows:
    """The flows of a network; each field has one entry per flow.

    - ``law``: vegas, vegas-linux, reno or cubic. Use reno for NewReno and SACK as well.
    - ``rtt``: the round trip without queues, s.
    - ``edge``: only for Vegas, the backlog that the flow keeps, packets.
    - ``over_estimate``: only for Vegas, by how much baseRTT exceeds ``rtt``, s.
    - ``decrease``: the factor by which a loss multiplies the window. If it is None, the factor is
      0.75 for Vegas and 0.5 for Reno. For CUBIC it is always 0.7.

    A number in place of an array holds for all flows. Raises ``FieldError`` for values out of
    range.

    A real Vegas flow may keep any backlog between two edges (``stacks.dead_zone``). If packets are
    lost on its path, the losses pull the backlog to the lower edge. If none is lost, there are many
    equilibria, and ``edge`` selects one of them.
    """

    law: Sequence[str]
    rtt: ArrayLike
    edge: ArrayLike = 1.0
    over_estimate: ArrayLike = 0.0
    decrease: ArrayLike | None = None

    def __post_init__(self) -> None:
        """Check all fields."""
        for law in self.law:
            word("law", law, LAWS)
        positive("rtt", self.rtt)
        positive("edge", self.edge)
        numbers("over_estimate", self.over_estimate)
        if self.decrease is not None:
            numbers("decrease", self.decrease, high=1.0, below=True)
        for name in ("rtt", "edge", "over_estimate", "decrease"):
            shape = np.shape(getattr(self, name))
            if shape not in ((), (1,), (len(self.law),)):
                raise FieldError(name, f"shape {shape}", f"one number, or {len(self.law)} of them")


@dataclass(frozen=True, eq=False)
class Equilibrium:
    """One equilibrium of a network.

    ``rates`` [flow] are in pkt/s. ``queue`` [link] is in packets, and ``loss`` [link] is the loss
    probability. ``full`` [link] says whether the link is full, that is, whether it has a queue.
    ``residual`` is the largest relative error of a link's load. For a full link with the capacity c
    this error is |load/c - 1|. For any other link it is load/c - 1, or 0 if that is negative.

    ``index`` is the sign of det(-dy/dprice), 1 or -1 (0: degenerate). Here y are the loads of the
    full links. The price of a link is a number that gives its queue and its loss (``_Network``).

    ``modes`` and ``stable_without_delay`` are for the network without feedback delay. The windows
    then follow the queueing delays at once. The queueing delay s_l of a full link l, with the load
    y_l and the capacity c_l, changes by ds_l/dt = y_l/c_l - 1. These equations are linearised at
    the equilibrium. ``modes`` are their eigenvalues in 1/s, one for each full link. If a drop-tail
    buffer is full, its queue is constant, and the loss adapts almost at once. Such a link has an
    eigenvalue of huge magnitude. The equilibrium is stable if all eigenvalues have negative real
    parts. With feedback delay it may still oscillate.
    """

    rates: Floats
    queue: Floats
    loss: Floats
    full: NDArray[np.bool_]
    index: int
    modes: NDArray[np.complex128]
    stable_without_delay: bool
    residual: float


@dataclass(frozen=True, eq=False)
class Equilibria:
    """The equilibria of a network that a search has found, and whether these are probably all.

    Each equilibrium has an index: 1, -1 or, if it is degenerate, 0 (see ``Equilibrium``). The
    indices of all equilibria of a network add up to 1. ``complete`` is true if the indices of those
    in ``found`` add up to 1, no index is 0, and the last search found no new equilibrium. Even then
    two equilibria of opposite index may be missing.
    """

    found: tuple[Equilibrium, ...]
    complete: bool

    @property
    def index_sum(self) -> int:
        """The sum of the indices of the equilibria that were found.

        Each index is 1, -1 or 0 (see ``Equilibrium``). If no equilibrium is missing, the sum is 1.
        The sum is also 1 if only two equilibria with opposite indices are missing.
        """
        return sum(each.index for each in self.found)


@kinds.checked
def droptail(buffer: float) -> Floats:
    """A drop-tail link's loss as a function of its queue: a curve, as rows (queue, loss).

    The queue and ``buffer`` are in packets. The loss probability is 0 while the queue is shorter
    than the buffer. At the full buffer it can have any value from 0 to 1. Raises ``FieldError``
    unless ``buffer`` is positive and finite.
    """
    full = float(positive("buffer", buffer))
    return np.array([(0.0, 0.0), (full, 0.0), (full, 1.0)])


@kinds.checked
def red(curve: Curve) -> Floats:
    """RED's loss as a function of its average queue: rows (queue, loss), to be joined by lines.

    The loss is the fraction of the packets that RED drops. It depends on RED's drop probability and
    on the way in which RED spaces its drops (``red.effective``).
    """
    queue, base = curve.corners().T  # ``base``: RED's base drop probability
    rows = np.column_stack([queue, effective(base, curve.spacing)])
    return np.asarray(rows[np.append(True, np.diff(rows, axis=0).sum(axis=1) > 0)])


@kinds.checked
def equilibria(
    routing: Routing,
    capacity: ArrayLike,
    curves: Sequence[ArrayLike],
    flows: Flows,
    starts: int = STARTS,
    seed: int = 1,
) -> Equilibria:
    """Search for all equilibria of a small network, by Newton's method from many starts.

    - ``routing`` [link, flow]: 1 where the flow crosses the link, else 0.
    - ``capacity`` [link]: pkt/s.
    - ``curves``: for each link, rows (queue, loss) that rise from (0, 0) to loss 1 (``droptail``,
      ``red``). Straight pieces join the rows.
    - ``flows``: the law and the parameters of each flow.
    - ``starts``: the number of random points from which Newton's method starts in each combination.
      A combination says which links are full, and on which piece of its curve each full link
      operates.
    - ``seed``: the seed of the random points.

    A search tries all combinations. The first search is followed by a second one from as
    many other points. Then three conditions are checked:

    - The last search has found no further equilibrium.
    - The indices of the equilibria (see ``Equilibrium``) add up to 1.
    - No index is 0.

    If one of them does not hold, a third search starts from four times as many points. If one of
    them does not hold after the third search either, ``complete`` is False.

    Raises ``FieldError`` for values out of range and for networks too large.
    """
    net = _Network(routing, capacity, curves, flows)
    starts, seed = count("starts", starts), count("seed", seed, 0)
    if net.combinations * starts > MAX_STARTS:
        allowed = f"at most {MAX_STARTS:g} in all: {net.combinations} combinations of pieces"
        raise FieldError("starts", starts, allowed)
    rng = np.random.default_rng(seed)
    found: list[Floats] = []
    complete = False
    for size in (starts, starts, 4 * starts):  # up to three searches
        before = len(found)
        found = net.search(rng, size, found)
        known = [net.describe(price) for price in found]
        # whether the indices add up to 1, and none is 0
        index_one = sum(each.index for each in known) == 1 and all(each.index for each in known)
        if complete := index_one and before == len(found):
            break
    order = np.argsort([-float(each.rates.sum()) for each in known], kind="stable")
    return Equilibria(tuple(known[i] for i in order), complete)


class _Network:
    """The equations of a network, for Newton's method.

    Each link has a curve of loss over queue, which consists of straight pieces, numbered from 0.
    The link operates at one point of this curve, which a single number describes: its price. The
    price is the number of the piece with this point, plus ``part``. ``part`` is the fraction of the
    piece that lies before the point.
    """

    def __init__(
        self, routing: Routing, capacity: ArrayLike, curves: Sequence[ArrayLike], flows: Flows
    ) -> None:
        """Check the arguments of ``equilibria``, and store them as arrays.

        ``A`` is the routing, ``c`` the capacities, and ``combinations`` the number of choices of
        one piece, or no queue, for each link.
        """
        self.A = routing_matrix(routing, 1.0)
        if self.A.ndim != 2 or not np.all(self.A.any(axis=0)):
            allowed = "a matrix [link, flow], each flow over a link at least"
            raise FieldError("routing", routing, allowed)
        links, n = self.A.shape  # numbers of links and of flows
        c = positive("capacity", capacity)
        if c.shape not in ((), (1,), (links,)):
            raise FieldError("capacity", f"shape {c.shape}", f"one number, or {links} of them")
        self.c = np.array(np.broadcast_to(c, (links,)))
        if len(curves) != links:
            raise FieldError("curves", len(curves), f"{links} curves, one for each link")
        if len(flows.law) != n:
            raise FieldError("flows", len(flows.law), f"{n} flows, as routing has columns")
        self.curves = [_checked_curve(curve) for curve in curves]
        self.law = np.array(flows.law)
        # of each flow: the round trip without queues, s; Vegas's backlog, packets; and its
        # over-estimate of baseRTT, s
        self.T, self.e, self.d = (
            np.array(np.broadcast_to(np.asarray(v, dtype=np.float64), (n,)))
            for v in (flows.rtt, flows.edge, flows.over_estimate)
        )
        # the factor by which a loss multiplies each flow's window (``Flows.decrease``)
        vegas = np.isin(self.law, ("vegas", "vegas-linux"))
        decrease = np.where(vegas, 0.75, 0.5) if flows.decrease is None else flows.decrease
        decrease = np.broadcast_to(np.asarray(decrease, dtype=np.float64), (n,))
        # of the square-root law, x = K/(R sqrt p)
        self.K = square_root(p=1.0, rtt=1.0, b=1.0, decrease=decrease)
        self.combinations = math.prod(len(curve) for curve in self.curves)

    def on_curves(
        self, piece: NDArray[np.intp], part: Floats
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """Each link's queueing delay (s) and loss at a point of its curve, and their derivatives.

        The curve gives loss over queue, and consists of straight pieces. ``piece`` is the number of
        the piece on which the point lies, and ``part`` is the fraction of this piece before the
        point. The derivatives are with respect to ``part``.

        All four results are [case, link]. A case is one choice of a point for each link.
        """
        s, p, s_by, p_by = np.zeros((4, *part.shape))
        for k, curve in enumerate(self.curves):
            # both ends of the piece, as rows (queue, loss)
            low, high = curve[piece[:, k]], curve[np.minimum(piece[:, k] + 1, len(curve) - 1)]
            (queue, loss), (queue_rise, loss_rise) = low.T, (high - low).T
            s[:, k] = (queue + part[:, k] * queue_rise) / self.c[k]
            p[:, k] = loss + part[:, k] * loss_rise
            s_by[:, k], p_by[:, k] = queue_rise / self.c[k], loss_rise
        return s, p, s_by, p_by

    def rates_at(self, q: Floats, p: Floats) -> tuple[Floats, Floats, Floats]:
        """The flows' rates, if their paths have the queueing delays q and the losses p.

        The top of this file has the formulas. The rates are [case, flow]; each case has its own q
        and p. Also returns ``by_q`` and ``by_p``, the derivatives of the rates' logarithms with
        respect to q and p.

        In its Reno-friendly region CUBIC gets 6.5 % less than Reno at the same p. The cause is only
        that two formulas with different assumptions are combined. The square-root law of Reno is
        for random losses, with the constant 1.31. The law of CUBIC in this region is for periodic
        losses, with the constant sqrt(3/2) = 1.22 (RFC 9438 4.3).
        """
        R = self.T + q
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            # Reno, and what losses allow Vegas: the square-root law with its constant K
            rate = self.K / (R * np.sqrt(p))
            by_q, by_p = -1.0 / R, -0.5 / p
            # Vegas: the rate with the backlog e, if it is less than the losses allow
            vegas, linux = self.law == "vegas", self.law == "vegas-linux"
            gap = q - self.d
            by_delay = np.where(gap > 0, self.e / gap, np.inf)
            by_delay = np.where(linux, by_delay * (self.T + self.d) / R, by_delay)
            limited = (vegas | linux) & (by_delay <= rate)
            by_delay_q = -1.0 / gap - np.where(linux, 1.0 / R, 0.0)
            rate, by_q = np.where(limited, by_delay, rate), np.where(limited, by_delay_q, by_q)
            by_p = np.where(limited, 0.0, by_p)
            # CUBIC: the larger of its own window and that of its Reno-friendly region, over R
            cubic = self.law == "cubic"
            cubic_window = (C * (3 + BETA) / (4 * (1 - BETA))) ** 0.25 * (R / p) ** 0.75
            friendly = np.sqrt(1.5 / p)
            by_cubic_window = cubic & (cubic_window > friendly)
            rate = np.where(cubic, np.maximum(cubic_window, friendly) / R, rate)
            by_q = np.where(by_cubic_window, -0.25 / R, by_q)
            by_p = np.where(by_cubic_window, -0.75 / p, by_p)
        return rate, by_q, by_p

    def loads(self, piece: NDArray[np.intp], part: Floats) -> tuple[Floats, Floats, Floats]:
        """Rates [case, flow], relative loads [case, link], and the derivatives of these loads.

        A relative load is load/capacity. Each link operates at a point of its curve of loss over
        queue, which consists of straight pieces. ``piece`` is the number of the piece, and ``part``
        is the fraction of this piece before the point. A case is one choice of a point for each
        link.

        The derivatives [case, link, link] are with respect to the ``part`` of each link.
        """
        s, p, s_by, p_by = self.on_curves(piece, part)
        rate, by_q, by_p = self.rates_at(s @ self.A, np.minimum(p @ self.A, 1.0))
        with np.errstate(invalid="ignore", over="ignore"):
            load = rate @ self.A.T / self.c
            # The derivatives of the rates by the delay and the loss of their paths. Where
            # ``by_q`` or ``by_p`` is 0, the rate may be infinite, and the product would be NaN.
            rate_q = np.where(by_q == 0, 0.0, rate * by_q)
            rate_p = np.where(by_p == 0, 0.0, rate * by_p)
            # of the load of link l by the ``part`` of link m: over all flows f that cross both
            slopes = np.einsum("lf,bf,mf->blm", self.A, rate_q, self.A) * s_by[:, None, :]
            slopes += np.einsum("lf,bf,mf->blm", self.A, rate_p, self.A) * p_by[:, None, :]
        return rate, load, slopes / self.c[:, None]

    def search(self, rng: np.random.Generator, size: int, known: list[Floats]) -> list[Floats]:
        """Search for equilibria from ``size`` random points in each combination of curve pieces.

        Each link has a curve of loss over queue, which consists of straight pieces. A combination
        selects, for each link, one of these pieces or an empty queue.

        Returns the equilibria in ``known``, and then the new ones. Each equilibrium is an array
        with the price of each link: a number that gives the link's operating point on its curve.
        """
        found = list(known)
        for pieces in itertools.product(*(range(-1, len(curve) - 1) for curve in self.curves)):
            full = np.array(pieces) >= 0
            if not full.any():
                prices = np.zeros((1, len(pieces)))
            else:
                prices = self.newton(rng, np.array(pieces), full, size)
            for price in prices:
                known_already = any(self.is_same(price, other) for other in found)
                if not known_already and self.is_equilibrium(price, full):
                    found.append(price)
        return found

    def newton(
        self, rng: np.random.Generator, pieces: NDArray[np.intp], full: NDArray[np.bool_], size: int
    ) -> Floats:
        """Run Newton's method from ``size`` random points; returns the prices at which it ends.

        Each link has a curve of loss over queue, which consists of straight pieces. ``pieces``
        selects one piece for each link (-1: no queue). A full link operates at a point of its
        piece. Its price is the number of the piece plus ``part``, the fraction of the piece before
        this point. The price of a link without a queue is 0.

        For each full link the unknown is u = ln part, and the equation is ln(load/capacity) = 0. A
        result is left out if a part is above 1, because the point is then not on its piece. Starts
        from which the method fails are left out, too.
        """
        links = full.size
        piece = np.tile(np.maximum(pieces, 0), (size, 1))
        # the first parts: from 1e-5 to 1, spread evenly over the orders of magnitude
        u = np.log(10.0 ** rng.uniform(-5, 0, (size, links)))
        active = np.flatnonzero(full)
        for _ in range(NEWTON_STEPS):
            part = np.where(full, np.exp(u), 0.0)
            _, load, slopes = self.loads(piece, part)
            with np.errstate(all="ignore"):
                f = np.log(load[:, active])
                # df/du: d ln(load)/d ln(part)
                J = slopes[:, active][:, :, active] * part[:, None, active] / load[:, active, None]
            # from here on without the starts at which the equations for the step cannot be solved
            solvable = np.all(np.isfinite(f), axis=1) & np.all(np.isfinite(J), axis=(1, 2))
            solvable &= np.abs(np.linalg.det(np.where(solvable[:, None, None], J, 0.0))) > 1e-300
            u, piece, f, J = u[solvable], piece[solvable], f[solvable], J[solvable]
            if u.shape[0] == 0 or np.abs(f).max() < 1e-14:
                break
            step = np.linalg.solve(J, f[:, :, None])[:, :, 0]
            longest = np.abs(step).max(axis=1, keepdims=True)
            # shorten a step in which a part would change by more than the factor e
            u[:, active] -= step / np.maximum(1.0, longest)
            # a part may pass 1 a little, and come back later
            u = np.clip(u, math.log(LEAST_PART), 0.5)
        part = np.where(full, np.exp(u), 0.0)
        return np.where(full, pieces + part, 0.0)[np.all(part <= 1.0 + SAME_PRICE, axis=1)]

    def piece_and_part(self, price: Floats) -> tuple[NDArray[np.intp], Floats]:
        """Split each link's ``price`` into its whole part ``piece`` and its fraction ``part``.

        A link operates at a point of its curve of loss over queue. The curve consists of straight
        pieces, numbered from 0. The point lies on piece number ``piece``, and ``part`` is the
        fraction of this piece before the point. Both results are [1, link]: one case, as in
        ``on_curves``.
        """
        last_pieces = np.array([len(curve) - 2 for curve in self.curves])
        piece = np.minimum(np.floor(price).astype(np.intp), last_pieces)
        return piece[None], (price - piece)[None]

    def is_equilibrium(self, price: Floats, full: NDArray[np.bool_]) -> bool:
        """Whether the links' prices are an equilibrium in which the links of ``full`` are full.

        A price says where on its curve of loss over queue a link operates. A full link's load must
        equal its capacity within the relative error ``MAX_LOAD_ERROR``.
        """
        _, load, _ = self.loads(*self.piece_and_part(price))
        return bool(np.all(_misfit(load[0], full) <= MAX_LOAD_ERROR))

    def is_same(self, one: Floats, other: Floats) -> bool:
        """Whether two arrays of link prices belong to one equilibrium, and differ only by rounding.

        A link's price gives its operating point on its curve of loss over queue. A corner of the
        curve belongs to two straight pieces, but has only one price.
        """
        return bool(np.all(np.abs(one - other) <= SAME_PRICE * np.maximum(np.abs(one), 1e-6)))

    def describe(self, price: Floats) -> Equilibrium:
        """The record ``Equilibrium``, computed from the links' prices.

        A price is a number that says where on its curve of loss over queue the link operates.
        """
        point = self.piece_and_part(price)
        s, p, _, _ = self.on_curves(*point)
        rate, load, slopes = self.loads(*point)
        full = price > 0.0
        # the derivatives of the full links' loads, in units of the capacity, by their prices
        J = slopes[0][np.ix_(full, full)]
        sign = int(np.sign(np.linalg.det(-J))) if full.any() else 1
        modes = np.linalg.eigvals(self.delay_jacobian(point, full, J))
        stable = bool(np.all(modes.real < 0.0))
        misfit = float(_misfit(load[0], full).max())
        return Equilibrium(rate[0], s[0] * self.c, p[0], full, sign, modes, stable, misfit)

    def delay_jacobian(
        self, point: tuple[NDArray[np.intp], Floats], full: NDArray[np.bool_], J: Floats
    ) -> Any:
        """The Jacobian of the full links' queueing delays, if there is no feedback delay.

        The queueing delay s of a full link then changes by ds/dt = load/capacity - 1. So the
        Jacobian has the derivatives of each load/capacity with respect to each s.

        ``J`` has the derivatives of load/capacity with respect to ``part`` instead. A link operates
        at a point of its curve of loss over queue, which consists of straight pieces. ``part`` is
        the fraction of the piece before this point. So the method divides each column of ``J`` by
        the link's ds/dpart, or by ``NEARLY_CONSTANT`` if it is 0.

        ``point`` has the piece and ``part`` of each link (the method ``piece_and_part``).
        ``full`` [link] says which links are full.
        """
        _, _, s_by, _ = self.on_curves(*point)
        moves = s_by[0][full]
        # on a vertical piece the queue is constant, and the loss adapts almost at once
        return J / np.where(moves > 0.0, moves, NEARLY_CONSTANT)


def _checked_curve(curve: ArrayLike) -> Floats:
    """The rows (queue, loss) of a curve; ``FieldError`` unless they rise from (0, 0) to loss 1."""
    rows = numbers("curves", curve)
    if rows.ndim != 2 or rows.shape[1] != 2 or len(rows) < 2:
        raise FieldError("curves", f"shape {rows.shape}", "two or more rows (queue, loss)")
    steps = np.diff(rows, axis=0)
    rises = np.all(steps >= 0) and np.all(steps.sum(axis=1) > 0)
    if np.any(rows[0] != 0) or rows[-1, 1] != 1 or not rises:
        raise FieldError("curves", rows, "rows (queue, loss) that rise from (0, 0) to loss 1")
    return rows


def _misfit(load: Floats, full: NDArray[np.bool_]) -> Floats:
    """By how much each link's load contradicts an equilibrium; 0 if it does not.

    ``load`` is in units of the link's capacity. At an equilibrium the links in ``full`` have a load
    of 1, and the others of at most 1.
    """
    return np.where(full, np.abs(load - 1.0), np.maximum(load - 1.0, 0.0))
