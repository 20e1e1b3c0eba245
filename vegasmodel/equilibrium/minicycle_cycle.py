"""Defines the class ``Cycle``, which ``minicycle.solve`` returns: one cycle of Vegas and Reno.

The cycle lasts from one overflow of the buffer to the next.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vegasmodel.equilibrium import minicycle_derived as derived
from vegasmodel.metrics import Floats
from vegasmodel.status import Status

__all__ = ["Cycle", "cycle_of"]


@dataclass(frozen=True, eq=False)
class Cycle:
    """The steady cycle from one loss to the next; windows and packets are per flow.

    A cycle consists of mini-cycles. A mini-cycle is one round trip. It has six phases (``PHASES``
    in ``minicycle``). In the first the queue is empty. Then Vegas grows, holds its window, shrinks
    too slowly, shrinks as its backlog demands, and no longer reacts, because the buffer is full. A
    phase that does not occur has the length 0.

    The arguments of ``solve`` may be arrays, which are broadcast as in NumPy. Each field has one
    entry for each combination of arguments.

    ``a``, ``b`` and ``N`` are the symbols of De Vendictis and Baiocchi. They are numbers of
    mini-cycles: 1 is the first mini-cycle after the loss, and N the last one before the next loss.
    In the comments on the fields, numbers such as (11) are equations of their paper.

    ``residual`` is the larger of two relative errors. The first is the difference between the sums
    of the Vegas windows at the two losses, which should be equal. The second is the difference
    between the sum of the phases' lengths and N - 1, where N is the number of mini-cycles.
    """

    vegas: Floats  # throughput of one Vegas flow, pkt/s
    reno: Floats  # throughput of one Reno flow, pkt/s
    vegas_range: Floats  # [..., 2] least and greatest; equal if there is only one steady cycle
    reno_range: Floats  # [..., 2]
    window_vegas: Floats  # [..., 7] at the start of each phase, and at the end, packets
    window_reno: Floats  # [..., 7]
    length: Floats  # [..., 6] mini-cycles in each phase; they add up to N - 1
    duration: Floats  # [..., 6] seconds; half of the first and of the last mini-cycle included
    # the mini-cycle in which the sum of all windows has grown to mu T, the bandwidth-delay product,
    # (11); below 1 if the sum is larger than mu T throughout the cycle
    a: Floats
    b: Floats  # the mini-cycle in which Vegas stops growing, (16), or that of the loss
    N: Floats  # mini-cycles in a cycle, (10)
    period: Floats  # seconds from loss to loss
    packets_vegas: Floats  # sent by one Vegas flow in a cycle
    packets_reno: Floats  # sent by one Reno flow in a cycle
    loss_rate_vegas: Floats  # packets lost over packets sent; NaN if less than one is sent a cycle
    loss_rate_reno: Floats
    queue_mean: Floats  # time average of the waiting packets
    utilization: Floats  # packets sent in a cycle over those that the link can send in this time
    regime: NDArray[np.str_]  # how Vegas meets the loss, see `solve`
    queue_empties: NDArray[np.bool_]  # False: the small bandwidth-delay regime
    residual: Floats  # the larger of the two relative errors in the docstring
    status: NDArray[np.int_]  # DONE, or UNDEFINED: infinite buffer, or not solved


def cycle_of(
    path: derived.Path,
    sums: derived.Sums,
    ends: list[derived.Sums],
    mu: Floats,
    solved: NDArray[np.bool_],
    loses: NDArray[np.bool_],
) -> Cycle:
    """Turn sums over all flows into the per-flow values that ``minicycle.solve`` returns.

    ``sums`` describes a steady cycle: what all Vegas flows and all Reno flows send in it, the sums
    of their windows just after the loss and at the end of each phase, and the phases' lengths.
    ``path`` has the numbers of flows and the constants of the link. ``mu`` is the capacity in
    pkt/s.

    If Vegas can stay at any window in a whole range, there are many steady cycles. Then ``sums`` is
    from the cycle that ``solve`` has chosen, and ``ends`` has those with the least and with the
    greatest Vegas window. Otherwise both entries of ``ends`` are ``sums``.

    ``loses`` says whether Vegas loses a packet in a cycle. Where ``solved`` is false, the numbers
    of the result are NaN.
    """
    n_V, n_R = path.n_vegas, path.n_reno

    def known(x: Floats) -> Floats:
        """``x`` where the cycle is solved, else NaN; x may have one more axis, such as phases."""
        return np.where(solved if x.ndim == solved.ndim else solved[..., None], x, np.nan)

    total = sums.mu_duration.sum(axis=-1)  # mu times the period
    sent_V, sent_R = sums.sent_vegas / n_V, sums.sent_reno / n_R  # per flow, in a cycle
    # One packet is lost of those that the flow sends in a cycle. If it sends less than one, this
    # has no meaning.
    loss_V, loss_R = (
        np.where(sent >= 1.0, 1.0 / np.maximum(sent, 1.0), np.nan) for sent in (sent_V, sent_R)
    )
    # the bandwidth-delay product M = mu T minus the sum of all windows after the loss; if it is
    # above 0, the queue is then empty
    deficit = path.M - sums.V[..., 0] - sums.R[..., 0]
    vegas_range, reno_range = _throughput_ranges(path, ends, mu)
    return Cycle(
        vegas=known(mu * sent_V / total),
        reno=known(mu * sent_R / total),
        vegas_range=known(vegas_range),
        reno_range=known(reno_range),
        window_vegas=known(sums.V / n_V[..., None]),
        window_reno=known(sums.R / n_R[..., None]),
        length=known(sums.length),
        duration=known(sums.mu_duration / mu[..., None]),
        # (11): each of the windows grows by a packet per mini-cycle until they add up to mu T
        a=known(1 + deficit / (n_V + n_R)),
        # (16): the phases "fill" and "grow" follow the first mini-cycle
        b=known(1 + sums.length[..., 0] + sums.length[..., 1]),
        N=known(sums.count),
        period=known(total / mu),
        packets_vegas=known(sent_V),
        packets_reno=known(sent_R),
        loss_rate_vegas=known(np.where(loses, loss_V, 0.0)),
        loss_rate_reno=known(loss_R),
        queue_mean=known(sums.mu_queue / total),
        utilization=known((sums.sent_vegas + sums.sent_reno) / total),
        regime=_regime(path, V_N=sums.V[..., -1]),
        queue_empties=deficit > 0,
        residual=known(sums.residual),
        status=np.where(solved, Status.DONE, Status.UNDEFINED),
    )


def _regime(path: derived.Path, V_N: Floats) -> NDArray[np.str_]:
    """Where Vegas's backlog is at the loss; `minicycle.solve` explains the words.

    ``V_N`` is the sum of the Vegas windows at the loss, in packets.
    """
    V_upper = path.upper.window(path.B)  # the same sum if the backlogs are at their upper limit
    return np.select(
        [path.grows, V_upper > V_N, (V_upper < V_N) & (path.floor >= V_N), V_upper < V_N],
        ["loss-limited", "hold", "least-window", "lagging"],
        "equilibrium",
    )


def _throughput_ranges(path: derived.Path, ends: list[derived.Sums], mu: Floats) -> Floats:
    """The throughputs of one Vegas and of one Reno flow at both ``ends``, pkt/s.

    The result is [law, ..., 2]: first Vegas, then Reno; the least, then the greatest throughput.
    ``cycle_of`` explains ``ends`` and the capacity ``mu``.
    """
    throughputs = []
    for end in ends:
        total = end.mu_duration.sum(axis=-1)  # mu times the period
        throughputs.append(
            [mu * end.sent_vegas / path.n_vegas / total, mu * end.sent_reno / path.n_reno / total]
        )
    return np.moveaxis(np.sort(np.array(throughputs), axis=0), 0, -1)
