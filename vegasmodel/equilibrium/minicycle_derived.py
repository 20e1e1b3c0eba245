"""The mini-cycle model as derived from its premises: one cycle, phase by phase, without jumps.

Symbols are those of `devendictis`; mini-cycle ``i`` is taken as a real number.  Where the paper
adds up mini-cycles 1..N, a piecewise linear f obeys exactly (trapezoids, kinks at integers)

    sum_{i=1}^{N} f(i) = int_1^N f(i) di + (f(1) + f(N))/2,

and the right side is continuous in every argument.  The curved phase 3 obeys it up to 1/12 packet
a cycle (its slope lies between -1 and 0).  Windows here are totals per protocol: V over the
``n_V`` Vegas sources, R over the ``n_R`` Reno sources.

The equilibrium (7) reads V = h + X/q with X = A M, M = mu T, A = n_V threshold, and h = A for a
rule that divides by the RTT (paper, ns-2) or h = 0 for one that divides by baseRTT (Linux).  Vegas
grows below the lower threshold edge, holds between the edges, and follows the upper one.

The queue that Vegas sees is at most B: the packet number mu T + B + 1 is dropped.  So the last
mini-cycle, in which Reno goes from mu T + B to mu T + B + 1, leaves V at (7) with q = B.  With
that reading the paper's W_V(N), its W_R(N), its B_th and its appendix A join without a jump.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]

PHASES = ("fill", "grow", "hold", "lag", "follow", "overflow")


@dataclass(frozen=True)
class Edge:
    """One threshold edge: the equilibrium of Vegas at queue q is ``V = shift + pull/q``."""

    shift: Floats
    pull: Floats

    def window(self, q: Floats) -> Floats:
        """V at queue ``q``, (7)."""
        with np.errstate(divide="ignore"):
            return self.shift + self.pull / q

    def queue(self, v: Floats) -> Floats:
        """The queue at which ``v`` is in equilibrium; infinite where V is too small for any."""
        above = v > self.shift
        return np.where(above, self.pull / np.where(above, v - self.shift, 1.0), np.inf)


@dataclass(frozen=True)
class Path:
    """Inputs of one cycle, arrays of one shape: packets, and numbers of sources."""

    M: Floats  # bandwidth-delay product mu T
    B: Floats  # buffer
    lower: Edge  # Vegas grows below this edge
    upper: Edge  # and shrinks above this one
    cut: Floats  # lambda: Vegas's window after the loss over that before it
    n_vegas: Floats
    n_reno: Floats


@dataclass(frozen=True)
class Sums:
    """One cycle: the window total at each phase edge, and sums over its mini-cycles."""

    V: Floats  # [..., 7] at the phase edges, the paper's W_V(1), W_V(a), W_V(b), .., W_V(N)
    R: Floats  # [..., 7]
    length: Floats  # [..., 6] mini-cycles in each phase; they add up to N - 1
    rounds: Floats  # [..., 6] sum of max(W, mu T) over each phase, packets: mu times its duration
    count: Floats  # N
    sent_vegas: Floats
    sent_reno: Floats
    queue: Floats  # sum of q max(W, mu T): mu times the time integral of the queue
    growing: npt.NDArray[
        np.bool_
    ]  # True where Vegas still grows when the buffer overflows (appendix A)
    behind: npt.NDArray[
        np.bool_
    ]  # True where Vegas cannot follow Reno's growth up to the end of the cycle
    residual: Floats  # |sum of the phases' lengths - (N - 1)| / N


def positive_root(p: Floats, r: Floats, c: Floats) -> Floats:
    """The positive root of ``p x^2 + r x - c = 0`` for p, c >= 0, without cancellation."""
    s = np.sqrt(r * r + 4 * p * c)
    high = r > 0
    return np.where(high, 2 * c / np.where(high, r + s, 1.0), (s - r) / (2 * p))


def loss_limited_window(path: Path) -> Floats:
    """W_V(N) of appendix A, where both grow up to the loss.

    V (1 - lambda) = n_V (N - 1), R/2 = n_R (N - 1), V + R = mu T + B + 1; for one source each
    W_V(N) = (mu T + B + 1)/(3 - 2 lambda).
    """
    return (path.M + path.B + 1) * path.n_vegas / (path.n_vegas + 2 * path.n_reno * (1 - path.cut))


def final_window(path: Path) -> Floats:
    """V at the loss, the paper's W_V(N).

    Appendix A while that lies below the lower edge at q = B; the upper edge at q = B if Vegas
    gets there; between the two, the window at which Vegas holds.  It then left the lower edge at
    q_b = X/(V - h) with Reno at mu T + q_b - V, and both grew from lambda V and R(N)/2 in the same
    number of mini-cycles, so

        n_R (1 - lambda) V / n_V = mu T + X/(V - h) - V - (mu T + B + 1 - V)/2.
    """
    M, B, h = path.M, path.B, path.lower.shift
    k = path.n_reno * (1 - path.cut) / path.n_vegas + 0.5
    held = h + positive_root(k, k * h - (M - B - 1) / 2, path.lower.pull)
    held = np.maximum(held, path.lower.window(B))
    return np.minimum(np.minimum(loss_limited_window(path), path.upper.window(B)), held)


def cycle(path: Path) -> Sums:
    """The cycle of both protocols in closed form: phases, packets and durations."""
    M, B, n_V, n_R = path.M, path.B, path.n_vegas, path.n_reno
    V_N = final_window(path)
    R_N = M + B + 1 - V_N
    V_1, R_1 = path.cut * V_N, R_N / 2  # (8), (9)
    N = 1 + (R_N - R_1) / n_R  # (10)
    each = n_V + n_R

    # Phase 1, (11) and (12): a - 1 mini-cycles until V + R = mu T; none if the queue never empties
    deficit = M - V_1 - R_1
    fill = np.maximum(deficit, 0.0) / each
    q_1 = np.maximum(-deficit, 0.0)
    V_a = V_1 + n_V * deficit / each

    # Phase 2, (16): n = b - a mini-cycles after saturation V meets the lower edge, or the loss
    n = positive_root(n_V * each, each * (V_a - path.lower.shift), path.lower.pull)
    n = np.where(each * n <= B, n, (path.lower.window(B) - V_a) / n_V)
    last = N - 1 - deficit / each
    growing = n >= last
    n = np.minimum(n, last)
    q_b, V_b = each * n, V_a + n_V * n

    # Between the edges V holds and only Reno fills the queue
    q_c = path.upper.queue(V_b)
    q_c = np.where(q_c <= B, np.maximum(q_c, q_b), B + 1)
    # Vegas gives up at most one packet an RTT: while (17) falls faster, it lags above the curve
    # (V_b - h - n_V t)(q_c + (n_R - n_V) t) = X
    more = n_R > n_V
    surplus = np.where(more, n_R - n_V, 1.0)
    lag = np.where(more, (V_b - path.upper.shift) / n_V - q_c / surplus, 0.0)
    lag = np.where(q_c < B, np.maximum(lag, 0.0), 0.0)
    q_d = q_c + np.where(more, surplus, 0.0) * lag
    behind = q_d > B

    # Phase 3, (17), up to q = B, and the last mini-cycle
    q_e = np.maximum(q_d, B)
    queues = np.stack([np.zeros_like(q_1), q_1, q_b, q_c, q_d, q_e, B + 1], axis=-1)
    slopes = np.stack([each, each, n_R, surplus, n_R, n_R], axis=-1)
    length, flow, backlog = _filling(M, queues, slopes)
    bend, flow[..., 4], backlog[..., 4], V_follow = _following(path, q_d, q_e)
    length[..., 0], length[..., 3], length[..., 4] = fill, lag, bend
    backlog[..., 5] = B * flow[..., 5]  # what arrives above B is dropped
    edges_V = np.stack([V_1, np.maximum(V_a, V_1), V_b, V_b, V_b - n_V * lag, V_N, V_N], axis=-1)
    grown = np.cumsum(length, axis=-1) * n_R[..., None]
    edges_R = np.concatenate([R_1[..., None], R_1[..., None] + grown], axis=-1)
    flow[..., 0] = M * fill
    # trapezoids, and half of the first and of the last mini-cycle
    inner = (edges_V[..., :-1] + edges_V[..., 1:]) / 2 * length
    inner[..., 4] = V_follow
    first, final = np.maximum(V_1 + R_1, M), M + B + 1
    flow[..., 0] += first / 2
    flow[..., 5] += final / 2
    return Sums(
        V=edges_V,
        R=edges_R,
        length=length,
        rounds=flow,
        count=N,
        sent_vegas=inner.sum(axis=-1) + (V_1 + V_N) / 2,
        sent_reno=N * (R_1 + R_N) / 2,
        queue=backlog.sum(axis=-1) + (q_1 * first + B * final) / 2,
        growing=growing,
        behind=behind,
        residual=np.abs(length.sum(axis=-1) - (N - 1)) / N,
    )


def _filling(M: Floats, queues: Floats, slopes: Floats) -> tuple[Floats, Floats, Floats]:
    """Phases in which the queue grows by ``slopes`` packets a mini-cycle, from edge to edge.

    Their lengths, and the integrals of W = M + q and of q W over them.
    """
    q, p = queues[..., :-1], queues[..., 1:]
    length = (p - q) / slopes
    W = M[..., None] + (q + p) / 2
    return length, length * W, length * (M[..., None] * (q + p) / 2 + (q * q + q * p + p * p) / 3)


def _following(path: Path, q: Floats, p: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Phase 3 with the queue as parameter, from ``q`` to ``p``: all its sums are elementary.

    V = h + X/q and R = mu T + q - V by (17), so di = dR/n_R = (1 + X/q^2) dq / n_R.  Returns the
    length and the integrals of W = mu T + q, q W and V over i.
    """
    M, X, h = path.M, path.upper.pull, path.upper.shift
    safe = np.where(p > q, q, 1.0)  # an empty phase has no queue to divide by
    p = np.where(p > q, p, 1.0)
    q = safe
    step, log = p - q, np.log(p / q)
    inverse = step / (p * q)  # 1/q - 1/p
    square, cube = step * (p + q) / 2, step * (p * p + p * q + q * q) / 3
    length = step + X * inverse
    W = M * step + square + X * (M * inverse + log)
    qW = M * square + cube + X * (M * log + step)
    V = h * length + X * log + X * X * inverse * (1 / q + 1 / p) / 2
    return length / path.n_reno, W / path.n_reno, qW / path.n_reno, V / path.n_reno
