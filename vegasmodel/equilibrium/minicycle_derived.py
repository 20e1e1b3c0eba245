"""Computes one cycle of Vegas and Reno from loss to loss, by equations that we derived ourselves.

`minicycle` describes the model. We derived the equations from the premises of its paper, De
Vendictis and Baiocchi (2002). The symbols are those of the paper. mu is the capacity in packets per
second, T the RTT without queueing, B the buffer in packets, and M = mu T. V is the sum of the
windows of n_V Vegas sources, R that of n_R Reno sources. A mini-cycle is one RTT.

Vegas compares its backlog, the number of its own packets in the queue, with two thresholds, alpha
and beta. Let q packets be in the queue. By the paper's equation (7), the backlog of every Vegas
source is at one of the thresholds if

    V = h + A M/q,   where A = n_V * threshold.

Here h = A in the paper and in ns-2. In Linux h = 0, because Linux divides by baseRTT, and not by
the RTT, when it computes the backlog. For alpha the equation gives a curve of V over q, the lower
curve. For beta it gives the upper curve. Vegas grows below the lower curve and holds its window
between the curves. Reno makes the queue grow until V meets the upper curve. Then V moves down along
this curve. (If there are more Reno than Vegas sources, Vegas may shrink too slowly at first, and V
then stays above the curve for a while.)

The number of packets sent in a cycle is the sum of the windows f(i) in the mini-cycles i = 1 to
N. But N, the length of the cycle, need not be a whole number. So the sum is replaced by

    int_1^N f(i) di + (f(1) + f(N))/2.

If N is whole and f is linear between whole i, this is equal to the sum. A cycle consists of phases.
In each phase f is linear, except in the one in which Vegas moves down along the upper curve. For
one Vegas and one Reno source, this phase causes an error of at most 1/12 packet per cycle. If the
slope of f changes from one phase to the next, and i is not whole there, this change causes an error
of at most 1/8 packet.

The path and the buffer together hold M + B packets. So a packet is dropped as soon as
V + R = M + B + 1. Vegas never sees more than B queued packets, so V moves down along the upper
curve only until q = B. After that only Reno grows, until the drop.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vegasmodel.metrics import Floats

# The phases of a cycle: the queue is empty ("fill"); then Vegas grows, holds its window, shrinks
# too slowly, follows the upper curve, and no longer reacts because the buffer is full ("overflow").
PHASES = ("fill", "grow", "hold", "lag", "follow", "overflow")
FOLLOW = PHASES.index("follow")  # of the phases only this one has windows that are not linear


@dataclass(frozen=True)
class Edge:
    """The sum V of the Vegas windows as a function of the queue q, at a given backlog per flow.

    By equation (7) of De Vendictis and Baiocchi, V = ``shift`` + ``pull``/q with two constants.
    Vegas keeps its window while its backlog is between a lower and an upper limit. There is one
    ``Edge`` for each of the two limits.
    """

    shift: Floats
    pull: Floats

    def window(self, q: Floats) -> Floats:
        """The sum V of the Vegas windows if ``q`` packets are in the queue, at this edge's backlog.

        If the backlog is 0, both constants of the ``Edge`` are 0, and so is V, even if q is 0.
        """
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            return self.shift + np.where(self.pull > 0.0, self.pull / q, 0.0)

    def queue(self, v: Floats) -> Floats:
        """The queue q, in packets, at which the Vegas windows add up to ``v`` packets.

        At the queue q they add up to ``shift`` + ``pull``/q, which exceeds ``shift`` at any finite
        q. So the result is infinite if ``v`` is at most ``shift``.
        """
        above = v > self.shift
        return np.where(above, self.pull / np.where(above, v - self.shift, 1.0), np.inf)


@dataclass(frozen=True)
class Path:
    """The parameters that determine a cycle of Vegas and Reno windows from one loss to the next.

    They describe the link, the sources, and the two limits between which Vegas keeps its window.
    All are arrays of one shape. Windows, queues and the buffer are in packets. V is the sum of the
    Vegas windows.
    """

    M: Floats  # bandwidth-delay product mu T
    B: Floats  # buffer
    lower: Edge  # Vegas grows below this edge
    upper: Edge  # and shrinks above this one
    cut: Floats  # lambda: Vegas's window after the loss over that before it
    n_vegas: Floats
    n_reno: Floats
    floor: Floats  # the least V: Vegas never shrinks its windows further
    grows: npt.NDArray[np.bool_]  # Vegas still grows when the buffer overflows: appendix A


@dataclass(frozen=True)
class Course:
    """The phases of a cycle from one loss to the next.

    The fields give the queue, its growth, and the sum of the Vegas windows in each phase.
    """

    fill: Floats  # number of mini-cycles with an empty queue, without the first mini-cycle
    queue: Floats  # [..., 6] q at the start of each phase but the first, and at the end
    slope: Floats  # [..., 5] packets by which q grows per mini-cycle in each phase but the first
    V: Floats  # [..., 7] V at the start of each phase, and at the end
    misfit: Floats  # V at the loss that ends the cycle, minus V at the loss that begins it


@dataclass(frozen=True)
class Sums:
    """One cycle from loss to loss, with the sums over all Vegas flows and over all Reno flows.

    Most fields are totals of the whole cycle, such as the packets sent. ``V`` and ``R`` are sums
    over flows at single times, and two fields have a value for each phase of the cycle. ``V`` is
    the sum of all Vegas windows at the ends of the phases, and ``R`` that of all Reno windows.
    """

    V: Floats  # [..., 7] at the phase edges, the paper's W_V(1), W_V(a), W_V(b), .., W_V(N)
    R: Floats  # [..., 7]
    length: Floats  # [..., 6] mini-cycles in each of the PHASES; they add up to N - 1
    # [..., 6] mu times the duration of each of the PHASES, packets: the sum of max(W, mu T) over
    # the phase, where W is the sum of all windows
    mu_duration: Floats
    count: Floats  # N, the number of mini-cycles (round trips) in the cycle
    sent_vegas: Floats  # packets sent by all Vegas flows
    sent_reno: Floats  # packets sent by all Reno flows
    mu_queue: Floats  # mu times the time integral of the queue q: the sum of q max(W, mu T)
    residual: Floats  # relative misfit of V, and of the phases' lengths with N


def positive_root(p: Floats, r: Floats, c: Floats) -> Floats:
    """The positive root x of ``p x^2 + r x - c = 0`` for p, c >= 0.

    The formula depends on the sign of r, so that it never subtracts two nearly equal numbers.
    """
    s = np.sqrt(r * r + 4 * p * c)
    positive = r > 0
    return np.where(positive, 2 * c / np.where(positive, r + s, 1.0), (s - r) / (2 * p))


def loss_limited_window(M: Floats, B: Floats, cut: Floats, n_V: Floats, n_R: Floats) -> Floats:
    """The sum V of the Vegas windows at the loss, if Vegas and Reno both grow up to it.

    This is W_V(N) of appendix A of De Vendictis and Baiocchi; N is the number of mini-cycles (round
    trips) in a cycle. A loss multiplies V by lambda (``cut``) and halves the sum R of the Reno
    windows. In the first mini-cycle after the loss the windows are those after the cut. In each of
    the other N - 1 mini-cycles each window is one packet larger, until the next loss. With n_V
    Vegas and n_R Reno sources,

        V (1 - lambda) = n_V (N - 1),
        R/2 = n_R (N - 1),
        V + R = mu T + B + 1.

    mu T is the bandwidth-delay product (``M``) and B the buffer. For one source of each law, the
    solution is V = (mu T + B + 1)/(3 - 2 lambda).
    """
    total = M + B + 1
    grown: Floats = total * n_V / (n_V + 2 * n_R * (1 - cut))
    return np.minimum(grown, total)  # rounding may have made V larger, and so R negative


def still_grows(
    M: Floats, B: Floats, cut: Floats, n_V: Floats, n_R: Floats, lower: Edge, response: Floats
) -> npt.NDArray[np.bool_]:
    """Whether Vegas's backlog is still below its lower limit when the buffer overflows.

    If it is, the Vegas windows at the overflow add up to the V of ``loss_limited_window``, which
    also explains M, B, ``cut``, n_V and n_R. ``lower`` gives the sum of the Vegas windows whose
    backlog is at the lower limit, as a function of the queue. So the result is true if V is not
    above this sum. Vegas sees the queue as it was ``response`` round trips ago. Since then the
    queue has grown by n_V + n_R packets per round trip, one for each source.
    """
    queue_seen = np.clip(B + 1 - response * (n_V + n_R), 0.0, B)
    return loss_limited_window(M, B, cut, n_V, n_R) <= lower.window(queue_seen)


def held_window(path: Path) -> Floats:
    """The sum V of the Vegas windows at the loss, if Vegas stops growing and never has to shrink.

    mu T is the bandwidth-delay product, B the buffer, and q_b the queue when Vegas stops growing.
    Let lambda be the factor of Vegas's window at a loss. After the last loss the Vegas windows
    added up to lambda V. They have grown to V by one packet each per round trip. At the loss the
    Reno windows added up to mu T + B + 1 - V, and after it to half of that. While the Vegas windows
    grew, the sum of the Reno windows grew from this half to mu T + q_b - V.

    Vegas stops at the lower limit of its backlog. There V = h + X/q_b, where ``path.lower`` gives
    the constants h (``shift``) and X (``pull``). Each Reno window, too, has grown by one packet per
    round trip. So the growth of the sum of the Reno windows is

        n_R (1 - lambda) V / n_V = mu T + X/(V - h) - V - (mu T + B + 1 - V)/2.

    If this gives q_b >= B, Vegas stops at q = B, the longest queue that it sees, and V is h + X/B.
    """
    M, B, h = path.M, path.B, path.lower.shift
    k = path.n_reno * (1 - path.cut) / path.n_vegas + 0.5
    held = h + positive_root(k, k * h - (M - B - 1) / 2, path.lower.pull)
    return np.maximum(held, path.lower.window(B))


def final_windows(path: Path) -> tuple[Floats, Floats]:
    """The least and the greatest sum V of the Vegas windows at the loss; mostly they are equal.

    V is W_V(N) in De Vendictis and Baiocchi. There are three cases:

    - Vegas grows up to the loss. V is then given by appendix A of the paper.
    - Vegas's backlog reaches its upper limit. V is then given by equation (7) for a full buffer, or
      is the least window of Vegas if that is larger.
    - Vegas's backlog stays between its two limits. V is then the window that Vegas holds.

    If no loss cuts Vegas's window (lambda = 1) and it stops growing, many V are possible. At the
    least V, Vegas's backlog is at its lower limit when the queue is shortest. At the greatest V,
    its backlog is at its upper limit when the queue is longest.
    """
    grown = loss_limited_window(path.M, path.B, path.cut, path.n_vegas, path.n_reno)
    greatest = np.minimum(grown, np.maximum(path.upper.window(path.B), path.floor))
    held = held_window(path)
    uncut = (path.cut == 1.0) & ~path.grows
    least = np.minimum(np.where(uncut, np.maximum(held, path.floor), held), greatest)
    low = np.where(path.grows, grown, least)
    return low, np.where(uncut, greatest, low)


def cycle(path: Path, V_N: Floats) -> Sums:
    """Packets sent, durations and windows in a steady cycle from one loss to the next.

    A cycle is steady if the sum V of the Vegas windows is the same at both losses. ``V_N`` is the V
    at a loss if Vegas always shrinks fast enough to keep its backlog at or below its upper limit
    (``final_windows``). The function follows a cycle that begins with this V.

    If Vegas cannot shrink fast enough, V is larger than ``V_N`` when the cycle ends. ``V_N`` is
    then replaced by the V of a steady cycle (``_lagging_window``).
    """
    M, B, n_R = path.M, path.B, path.n_reno
    course = _course(path, V_N)
    # Vegas's backlog is above its upper limit when the buffer overflows. (A misfit of less than the
    # fraction 1e-10 comes from rounding.)
    late = course.misfit > 1e-10 * V_N
    if np.any(late):
        V_N = np.where(late, _lagging_window(path, V_N), V_N)
        course = _course(path, V_N)
    R_N = M + B + 1 - V_N  # the Reno windows at the loss
    V_1, R_1 = path.cut * V_N, R_N / 2  # and the windows just after the loss
    N = 1 + (R_N - R_1) / n_R  # mini-cycles; in each, Reno's windows grow by n_R packets
    length, mu_duration, mu_queue = _filling(M, B, course)
    q_d, q_e = course.queue[..., 3], course.queue[..., 4]  # where "follow" begins and ends
    follow_length, follow_duration, follow_queue, follow_V = _following(path, q_d, q_e)
    length[..., FOLLOW], mu_duration[..., FOLLOW] = follow_length, follow_duration
    mu_queue[..., FOLLOW] = follow_queue
    # The integrals of V over the phases; where V is linear, they are areas of trapezoids. In each
    # sum, half of the first and of the last mini-cycle is added (see the module's docstring).
    sent_V = (course.V[..., :-1] + course.V[..., 1:]) / 2 * length
    sent_V[..., FOLLOW] = follow_V
    # max(W, mu T) in the first and in the last mini-cycle, where W is the sum of all windows
    first, final = np.maximum(V_1 + R_1, M), M + B + 1
    mu_duration[..., 0] += first / 2
    mu_duration[..., -1] += final / 2
    grown = np.cumsum(length, axis=-1) * n_R[..., None]  # growth of R from the start
    misfit = np.abs(length.sum(axis=-1) - (N - 1)) / N
    return Sums(
        V=course.V,
        R=np.concatenate([R_1[..., None], R_1[..., None] + grown], axis=-1),
        length=length,
        mu_duration=mu_duration,
        count=N,
        sent_vegas=sent_V.sum(axis=-1) + (V_1 + V_N) / 2,
        sent_reno=N * (R_1 + R_N) / 2,
        mu_queue=mu_queue.sum(axis=-1) + (np.minimum(first - M, B) * first + B * final) / 2,
        residual=np.maximum(misfit, np.abs(course.misfit) / V_N),
    )


def _lag_of_vegas(path: Path, V_b: Floats, q_c: Floats) -> tuple[Floats, Floats]:
    """For how many round trips Vegas's windows fall too slowly to keep the backlog at its limit.

    V is the sum of the n_V Vegas windows, R that of the n_R Reno windows, q the number of packets
    in the queue, and M the bandwidth-delay product. So V + R = M + q while the queue is not empty.
    While Vegas's backlog is at its upper limit (beta in the paper), V = h + X/q (equation (17) of
    De Vendictis and Baiocchi). Here h is upper.shift and X is upper.pull. At q = q_c and V = V_b
    the backlog reaches this limit. From then on V should fall along this curve, as R and q grow.

    Can V fall fast enough? Each window changes by at most one packet per round trip, so R grows
    by n_R packets and V falls by at most n_V. On the curve V falls by less than R grows, because
    q = V + R - M grows. So V can follow the curve if n_R <= n_V. If n_R > n_V, the curve
    may be too steep at first. Then V falls by n_V packets per round trip and q grows by
    n_R - n_V. V stays above the curve for ``lag`` round trips, and is on it again when

        (V_b - n_V lag - h) (q_c + (n_R - n_V) lag) = X = (V_b - h) q_c.

    One solution is lag = 0, the start. The other is lag = (V_b - h)/n_V - q_c/(n_R - n_V). If
    this is negative, V can follow the curve from the start, and there is no lag.

    Returns ``lag``, and by how many packets the queue grows in each of these round trips (1 if
    there are none).
    """
    B, n_V, n_R, upper = path.B, path.n_vegas, path.n_reno, path.upper
    # more Reno than Vegas sources, and the buffer is not full yet
    may_lag = (n_R > n_V) & (q_c < B)
    surplus = np.where(may_lag, n_R - n_V, 1.0)  # growth of the queue in a round trip
    lag = np.maximum((V_b - upper.shift) / n_V - q_c / surplus, 0.0)
    # At most B packets wait, so V falls no further than h + X/B.
    lag = np.where(q_c + surplus * lag <= B, lag, (V_b - upper.window(B)) / n_V)
    # V falls no further than the least window. The lag ends early if a packet is lost (q = B + 1).
    lag = np.minimum(lag, np.maximum(V_b - path.floor, 0.0) / n_V)
    lag = np.where(may_lag, np.minimum(lag, (B + 1 - q_c) / surplus), 0.0)
    return lag, surplus


def _growth(path: Path, V_a: Floats, q_1: Floats, to_loss: Floats) -> Floats:
    """The number n of mini-cycles (round trips) of the phase "grow", in which all windows grow.

    It is the paper's phase 2, from mini-cycle a, in which the windows just fill the link, to
    mini-cycle b. It ends when Vegas's backlog reaches its lower limit (equation (16)), or at the
    loss, ``to_loss`` mini-cycles after mini-cycle a. ``path.grows`` says where Vegas grows up to
    the loss. ``V_a`` is the sum of the Vegas windows in mini-cycle a.

    At the lower limit V_a + n_V n = h + X/q with the queue q = (n_V + n_R) n. ``path.lower`` gives
    the constants h (``shift``) and X (``pull``). Vegas sees at most B queued packets. If the
    limit is not reached before, then V_a + n_V n = h + X/B.

    If the queue never empties, it has ``q_1`` > 0 packets at the start of the cycle. Then n counts
    from the (imagined) mini-cycle in which it would be empty. So n is at least q_1/(n_V + n_R):
    then Vegas does not grow.
    """
    each = path.n_vegas + path.n_reno  # growth of all windows in a mini-cycle
    n = positive_root(path.n_vegas * each, each * (V_a - path.lower.shift), path.lower.pull)
    n = np.where(each * n <= path.B, n, (path.lower.window(path.B) - V_a) / path.n_vegas)
    n = np.maximum(n, q_1 / each)
    return np.where(path.grows, to_loss, np.minimum(n, to_loss))


def _course(path: Path, V_N: Floats) -> Course:
    """Follow the windows and the queue through the phases of a cycle, from one loss to the next.

    ``V_N`` is the sum of the Vegas windows in packets just before the loss with which the cycle
    begins. V_1, V_a, .. V_e are this sum where the phases begin and end, and q_1, q_b, .. q_e the
    queue there.
    """
    M, B, n_V, n_R, upper = path.M, path.B, path.n_vegas, path.n_reno, path.upper
    V_1, R_1 = path.cut * V_N, (M + B + 1 - V_N) / 2  # (8), (9)
    N = 1 + R_1 / n_R  # (10)
    each = n_V + n_R  # growth of all windows in a mini-cycle (round trip)

    # "fill", the paper's phase 1, equations (11) and (12): the queue is empty, until the sum of all
    # windows has grown to mu T, the bandwidth-delay product. If the queue never empties, the phase
    # has the length 0.
    deficit = M - V_1 - R_1
    V_a = V_1 + n_V * deficit / each

    # "grow", the paper's phase 2, equation (16): all windows grow, and so does the queue.
    q_1 = np.clip(-deficit, 0.0, B + 1)
    n = _growth(path, V_a, q_1, to_loss=N - 1 - deficit / each)
    q_b, V_b = np.clip(each * n, q_1, B + 1), V_a + n_V * n

    # "hold": between the two limits of its backlog Vegas keeps its window, and only Reno makes the
    # queue grow. q_c is the queue at which the backlog reaches its upper limit. If it never does,
    # q_c is B + 1.
    q_c = upper.queue(V_b)
    q_c = np.where((q_c <= B) & (V_b > path.floor), np.maximum(q_c, q_b), B + 1)

    # "lag": Vegas's backlog has reached its upper limit. If there are more Reno than Vegas sources,
    # the Vegas windows may fall too slowly to keep the backlog at this limit. They then fall by a
    # packet per round trip for ``lag`` round trips, until the backlog is at the limit again.
    lag, surplus = _lag_of_vegas(path, V_b, q_c)
    q_d, V_d = q_c + surplus * lag, V_b - n_V * lag

    # "follow", the paper's phase 3, equation (17): the queue grows, and the Vegas windows fall so
    # that Vegas's backlog stays at its upper limit. The phase ends when the buffer is full (q = B),
    # or when the Vegas windows have their least sum, ``path.floor``. If the buffer is full before
    # the phase could begin (q_d >= B), it has the length 0.
    q_e = np.where(q_d < B, np.clip(upper.queue(path.floor), q_d, B), np.maximum(q_d, B))
    V_e = np.where(q_d < B, np.maximum(upper.window(B), np.minimum(path.floor, V_d)), V_d)

    # "overflow": the Vegas windows are constant, until a packet is lost at q = B + 1.
    return Course(
        fill=np.maximum(deficit, 0.0) / each,
        queue=np.stack([q_1, q_b, q_c, q_d, q_e, B + 1], axis=-1),
        slope=np.stack([each, n_R, surplus, n_R, n_R], axis=-1),
        V=np.stack([V_1, np.maximum(V_a, V_1), V_b, V_b, V_d, V_e, V_e], axis=-1),
        misfit=V_e - V_N,
    )


def _lagging_window(path: Path, least: Floats) -> Floats:
    """The sum V of the Vegas windows at a loss, if Vegas's backlog then exceeds its upper limit.

    Reno fills the queue, so Vegas's backlog rises above the limit. Each Vegas window then shrinks,
    but by at most one packet per round trip. So the next loss may come before the backlog is back
    at the limit.

    A cycle begins with one loss and ends with the next. In a steady cycle V is the same at both.
    The function searches for this V between two bounds. A cycle that begins with the lower bound,
    ``least``, ends with a larger V. The upper bound is V at the loss if Vegas never has to shrink;
    a cycle that begins with it ends with a smaller V. The result is NaN if no solution is found.
    """
    from scipy.optimize import elementwise  # heavy, and rarely needed

    # ``find_root`` passes plain arrays to the function, only those of the cycles that it still
    # works on. So the function puts the ``Path`` together again.
    numbers = (path.M, path.B, path.cut, path.n_vegas, path.n_reno, path.floor)
    edges = (path.lower.shift, path.lower.pull, path.upper.shift, path.upper.pull)

    def misfit(V: Floats, *arrays: Floats) -> Floats:
        """V at the end of a cycle that begins with the given V, minus this V."""
        M, B, cut, n_V, n_R, floor, lower_shift, lower_pull, upper_shift, upper_pull = arrays
        lower, upper = Edge(lower_shift, lower_pull), Edge(upper_shift, upper_pull)
        grows = np.zeros(V.shape, dtype=np.bool_)
        return _course(Path(M, B, lower, upper, cut, n_V, n_R, floor, grows), V).misfit

    without_shrinking = loss_limited_window(path.M, path.B, path.cut, path.n_vegas, path.n_reno)
    greatest = np.minimum(without_shrinking, held_window(path))
    root = elementwise.find_root(misfit, (least, greatest), args=numbers + edges)
    return np.where(root.success, root.x, np.nan)


def _filling(M: Floats, B: Floats, course: Course) -> tuple[Floats, Floats, Floats]:
    """Length and two integrals of each phase in which the queue is empty or grows linearly.

    The length is in mini-cycles (round trips). The first integral, of mu T + q over the
    mini-cycles, is mu times the phase's duration. The second, of (mu T + q) min(q, B), is mu times
    the time integral of the queue. mu T is the bandwidth-delay product and B the buffer. q is the
    sum of all windows less mu T, at least 0. Of these q packets, min(q, B) wait in the buffer.
    """
    # In each phase but the first, the queue grows from s to e. From b on it is more than B.
    s, e = course.queue[..., :-1], course.queue[..., 1:]
    M, B = M[..., None], B[..., None]
    b = np.clip(B, s, e)
    length = (e - s) / course.slope
    # the integrals of (M + q) q over q from s to b, and of (M + q) B over q from b to e
    up_to_b = (b - s) * (M * (s + b) / 2 + (s * s + s * b + b * b) / 3)
    from_b = B * (e - b) * (M + (b + e) / 2)
    fill = course.fill[..., None]  # length of the first phase, in which the queue is empty
    return (
        np.concatenate([fill, length], axis=-1),
        np.concatenate([M * fill, length * (M + (s + e) / 2)], axis=-1),
        np.concatenate([np.zeros_like(fill), (up_to_b + from_b) / course.slope], axis=-1),
    )


def _following(path: Path, q: Floats, p: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Length and integrals of the phase in which Vegas's backlog stays at its upper limit.

    In this phase the queue grows from ``q`` to ``p`` packets. By equation (17) of De Vendictis and
    Baiocchi, the Vegas windows add up to V = h + X/q. ``path.upper`` gives the constants h
    (``shift``) and X (``pull``). The Reno windows add up to R = mu T + q - V, where mu T is the
    bandwidth-delay product.

    R grows by n_R packets in each mini-cycle (round trip) i. So di = dR/n_R = (1 + X/q^2) dq/n_R,
    and every integral over i becomes an integral over q.

    Returns the length in mini-cycles, and the integrals of W = mu T + q, of q W and of V over i.
    """
    M, X, h = path.M, path.upper.pull, path.upper.shift
    # if there is no such phase, q and p become 1, so that nothing is divided by 0
    q, p = np.where(p > q, q, 1.0), np.where(p > q, p, 1.0)
    step, log = p - q, np.log(p / q)
    inverse = step / (p * q)  # 1/q - 1/p
    square, cube = step * (p + q) / 2, step * (p * p + p * q + q * q) / 3
    length = step + X * inverse
    W = M * step + square + X * (M * inverse + log)
    qW = M * square + cube + X * (M * log + step)
    V = h * length + X * log + X * X * inverse * (1 / q + 1 / p) / 2
    return length / path.n_reno, W / path.n_reno, qW / path.n_reno, V / path.n_reno
