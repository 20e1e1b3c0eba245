"""Tells whether random losses keep the flows' windows so small that the buffer seldom overflows.

Every packet is lost with probability p, independently. ``random_loss`` computes the flows' mean
rates, but a buffer overflows at the peaks of the windows. There are three kinds of peaks:

- The windows of all flows together fill the link and the buffer (``load``).
- One flow sends a burst in slow start (``slow_start_queue``).
- One Vegas flow sends a burst after it has repaired two losses of one window (``recovery_burst``).

Units: packets, seconds, packets per second.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from vegasmodel.equilibrium._checks import numbers, positive
from vegasmodel.equilibrium._loss_formulas import hold_window, random_factor
from vegasmodel.equilibrium.loss_rounds import LAWS
from vegasmodel.equilibrium.random_loss import Sender, throughput
from vegasmodel.fields import kinds
from vegasmodel.fields.errors import FieldError
from vegasmodel.laws import find

__all__ = ["load", "recovery_burst", "slow_start_queue"]

DEVIATIONS = 3.0  # standard deviations from the mean to a peak that is seldom exceeded
SELDOM = 0.05  # probability of a larger window than in ``slow_start_queue``, if losses halve it


@kinds.checked
def load(flows: Sequence[Sender], p: float, capacity: float, buffer: float) -> float:
    """The highest likely sum of the flows' rates with a full buffer, divided by the capacity.

    Let W be the window of a flow, and R its RTT with a full queue. The buffer overflows as soon as
    the sum of W/R over all flows exceeds the capacity. If the result is below 1, the buffer seldom
    overflows, because the random losses alone keep the windows small enough.

    The highest likely sum is its mean plus ``DEVIATIONS`` standard deviations. The mean is computed
    by ``random_loss.throughput``, without a limit of buffer or capacity. The variance of the sum is
    the sum of the flows' variances, because each flow has its own losses.

    The variance of one window follows from the balance of growth and cuts. In a round trip a window
    grows by 1/b packets, where b is the number of packets per ACK (1 if the window grows by
    acknowledged packets, as in Linux). In the same time p W packets are lost on average, and each
    loss takes (1 - d) W from the window, where d is the flow's ``decrease``. So in the mean over
    time

        p (1 - d) E[W^2] = 1/b.

    By ``random_loss.square_root`` the mean window is E[W] = 1/((1 - d) m(d) sqrt(2 b p)), where m
    is ``random_loss.random_factor``. So the coefficient of variation v of the window is given by

        v^2 = E[W^2]/E[W]^2 - 1 = 2 (1 - d) m(d)^2 - 1.

    For d = 1/2, v is 0.41. A window cannot exceed the flow's ``max_window`` or, for Vegas,
    ``random_loss.hold_window``. So a flow's rate cannot exceed the rate at this limit. If this rate
    is less than ``DEVIATIONS`` standard deviations above the flow's mean rate, the difference of
    the two rates takes the place of the flow's ``DEVIATIONS`` standard deviations.

    Raises ``FieldError`` if ``flows`` is empty, or unless 0 < p <= 1, the capacity is positive and
    the buffer is at least 0. The buffer may be infinite; the result is then 0.
    """
    _check(flows, p, capacity)
    full = float(numbers("buffer", buffer, infinite=True)) / capacity
    if math.isinf(full):
        return 0.0
    mean = deviation = 0.0
    for flow in flows:
        R = flow.rtt + full
        rate = throughput(flow, p, queueing=full)
        peak_above_mean = min(
            DEVIATIONS * _variation(flow) * rate, max(_limit(flow, full) / R - rate, 0.0)
        )
        mean, deviation = mean + rate, math.hypot(deviation, peak_above_mean)
    return (mean + deviation) / capacity


def _variation(flow: Sender) -> float:
    """The coefficient of variation of the flow's window over time: v in ``load``."""
    d = LAWS[flow.law].decrease if flow.decrease is None else flow.decrease
    if d == 1.0:
        return math.inf
    return math.sqrt(2.0 * (1.0 - d) * float(random_factor(d)) ** 2 - 1.0)


def _limit(flow: Sender, queueing: float, capacity: float = math.inf) -> float:
    """The largest window of the flow; infinite if only losses limit it.

    ``queueing`` is the queueing delay that other flows cause, in s, and ``capacity`` is in pkt/s.
    """
    if not find(flow.law).keeps_backlog:
        return flow.max_window
    held = hold_window(flow.rtt, queueing, flow.alpha, flow.over_estimate, capacity)
    return min(flow.max_window, float(held))


@kinds.checked
def slow_start_queue(flows: Sequence[Sender], p: float, capacity: float) -> float:
    """The largest queue, in packets, that a slow start after a timeout is likely to cause.

    Slow start ends at half of the window W at the loss. Each ACK releases two packets, and ACKs
    arrive at the rate of the link. So in the last round trip W/2 packets reach the link twice as
    fast as they leave it, and half of them, W/4, have to wait.

    The window at a loss varies. Let V = b p W^2/2, where p is the loss probability, and one ACK
    acknowledges b packets. If losses halve the window, the probability that V exceeds v is about c
    exp(-v). Here c is the product of 1/(1 - 4^-k) over k = 1, 2, ..., which is 1.452
    (``random_loss.random_factor`` has the equation for V). The result is W/4 for the W at which
    this probability is ``SELDOM``. The same W is taken if losses multiply the window by another
    factor, though a factor above 1/2 makes larger windows more likely. W is also limited to the
    flow's ``max_window`` and, for Vegas, to ``random_loss.hold_window``.

    Raises ``FieldError`` if ``flows`` is empty, or unless 0 < p <= 1 and the capacity is positive.
    """
    _check(flows, p, capacity)
    return max(_window_at_loss(flow, p, capacity) for flow in flows) / 4.0


@kinds.checked
def recovery_burst(flows: Sequence[Sender], p: float, capacity: float) -> float:
    """The longest burst, in packets, that a Vegas flow is likely to send at the end of a recovery.

    If two packets of a window W are lost, Vegas deflates its window to d W at the ACK of the first
    retransmission (d is the flow's ``decrease``). This ACK acknowledges only the packets before the
    second lost one. If more than d W packets are then still unacknowledged, Vegas sends none. The
    ACK of the second retransmission acknowledges all of them at once. Then no packet is in flight,
    and the whole window of d W packets leaves in one burst.

    The result is d W for the large window W of ``slow_start_queue``. The result is 0 without Vegas
    flows. Raises the errors of ``slow_start_queue``.
    """
    _check(flows, p, capacity)
    bursts = (
        (LAWS[flow.law].decrease if flow.decrease is None else flow.decrease)
        * _window_at_loss(flow, p, capacity)
        for flow in flows
        if find(flow.law).keeps_backlog
    )
    return max(bursts, default=0.0)


def _window_at_loss(flow: Sender, p: float, capacity: float) -> float:
    """A window, in packets, so large that a loss seldom finds a larger one.

    If losses halve the window, it exceeds the result with the probability ``SELDOM`` at a loss.
    """
    product = math.prod(1.0 / (1.0 - 4.0**-k) for k in range(1, 30))
    v = math.log(product / SELDOM)
    return min(math.sqrt(2.0 * v / (flow.counted_every * p)), _limit(flow, 0.0, capacity))


def _check(flows: Sequence[Sender], p: float, capacity: float) -> None:
    """Raise ``FieldError`` without flows, unless 0 < p <= 1, and unless the capacity is above 0."""
    if len(flows) == 0:
        raise FieldError("flows", flows, "one or more flows")
    numbers("p", p, high=1.0, above=True)
    positive("capacity", capacity)
