"""Drops or marks packets at a queue at random: by random loss, and by RED."""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

import numpy as np

from vegasmodel.engines.rounds.queue import TOLERANCE, departure_due
from vegasmodel.engines.rounds.state import RED, Queue, apart, jit


@jit
def _red_probability(link: Queue) -> float:
    """RED's drop probability p_b, which depends only on the average queue.

    It is 0 below the lower threshold and rises linearly to ``max_probability`` at the upper
    threshold. Above the upper threshold it is 1. With the option "gentle" it rises linearly there
    and reaches 1 at twice the upper threshold.
    """
    low, high, top = link.min_threshold, link.max_threshold, link.max_probability
    if link.average < low:
        return 0.0
    if link.average < high:
        return top * (link.average - low) / (high - low)
    if link.gentle and link.average < 2.0 * high:
        return top + (1.0 - top) * (link.average - high) / high
    return 1.0


@jit
def _update_red_average(link: Queue, packets: float, queue: float) -> None:
    """Update RED's average queue when ``packets`` packets arrive at a queue of ``queue`` packets.

    The average is an exponential moving average with one step for each arriving packet. If the link
    has been idle, for ``link.idle`` seconds since the last arrival, the average first falls. It
    falls as if packets had arrived at an empty queue during this time, one per transmission time.
    """
    idle_steps = np.floor(link.capacity * link.idle)  # transmission times in the idle time
    link.idle = 0.0
    kept = 1.0 - link.weight  # weight of the old average when one packet arrives
    if idle_steps > 0.0:
        link.average *= kept**idle_steps
    if packets != 1.0:  # the power is left out for one packet, because it takes long to compute
        kept = kept**packets
    link.average += (1.0 - kept) * (queue - link.average)


@jit
def _red_picks(link: Queue, packets: float, p: float) -> float:
    """How many of ``packets`` arriving packets RED drops or marks, at its drop probability ``p``.

    The rule is that of ns-2 with the option ``wait_``. Packets are numbered from 1 after the last
    drop or mark. RED lets the packets before number n_0 pass; n_0 is 1/p, rounded up. A packet with
    a number n >= n_0 is dropped or marked with the probability p/(2 - n p). So the probability that
    the packets n_0 .. m all pass is (2 - (m+1) p)/(2 - n_0 p). The function uses this formula to
    draw the number of the next packet that is dropped or marked.
    """
    picked, rest = 0.0, packets
    while rest > 0.0:
        # ``first`` is n_0, or the next packet if RED has already counted beyond n_0
        first = max(link.passed + 1.0, np.ceil(1.0 / p - TOLERANCE))
        if first > link.passed + rest + TOLERANCE:
            break
        # the probability that the packets up to m pass is a uniform random number; solved for m
        m = (2.0 - np.random.random() * (2.0 - first * p)) / p - 1.0
        number = max(np.ceil(m), first)  # of the packet that is dropped or marked
        if number > link.passed + rest + TOLERANCE:
            break
        rest -= number - link.passed
        picked += 1.0
        link.passed = 0.0
    link.passed += max(rest, 0.0)
    return min(picked, packets)


@apart
def _red(link: Queue, packets: float, before: float, precedes: int) -> tuple[float, float]:
    """How many of ``packets`` arriving packets RED drops or marks, and RED's drop probability.

    The probability is 0 while at most one packet waits behind the one in transmission. The first
    packet that finds a probability above 0 passes, as in ns-2.

    ``before`` is the queue that the first arrival finds, the packet in transmission included: the
    sum of the packets' sizes, in packets of the scenario's packet size. ``precedes`` matters if a
    packet departs at the instant of the arrivals. It is 1 if the arrivals precede this departure in
    ns-2; they then still find the departing packet in the queue.
    """
    # RED looks at the packets that wait, without the one in transmission
    at_link = before * link.packets_per_work
    single = np.ceil(at_link - TOLERANCE) - 1.0  # what one arriving packet finds
    if precedes and departure_due(link, at_link, TOLERANCE):
        single += 1.0  # ``before`` is without the packet that departs now, but it is still there
    # Several packets: the first of them finds ``before``, and the last ``link.queue`` - 1, as
    # ``link.queue`` contains the arrivals. RED does not count the packet in transmission. So
    # ``mean`` is the mean of these two numbers, less 1.
    mean = 0.5 * (before + link.queue) * link.packets_per_work - 1.5
    waiting = max(single if packets <= 1.0 else mean, 0.0)
    _update_red_average(link, packets, waiting)
    p = _red_probability(link) if waiting > 1.0 else 0.0
    if p <= 0.0:
        link.early = 0
        return 0.0, p
    if not link.early:  # the first packet that finds p above 0 passes
        link.early, link.passed, packets = 1, 1.0, packets - 1.0
    return _red_picks(link, packets, p), p


@jit
def draw_next_loss(link: Queue) -> None:
    """Draw the number of the packet that random loss hits next, counted from the last such loss.

    With the loss probability p, this number exceeds n with the probability (1 - p)^n. An
    exponential random number exceeds -n ln(1 - p) with this probability. So the result is such a
    random number divided by -ln(1 - p) (``loss_hazard``), and rounded up.
    """
    draw = np.random.exponential()  # also without random loss
    if link.loss_hazard > 0.0:
        link.next_loss = max(np.ceil(draw / link.loss_hazard), 1.0)


@jit
def random_drops(
    link: Queue, packets: float, before: float, data: int, precedes: int, capable: int
) -> tuple[float, float]:
    """Decide by chance how many of ``packets`` arriving packets are dropped, and how many marked.

    Returns these two numbers. Random loss drops packets; RED drops or marks them. Random loss hits
    each packet with the same probability. The number of packets from one such loss to the next is
    drawn at random (``draw_next_loss``).

    - ``before``: the queue that the first arrival finds, the packet in transmission included. It is
      the sum of the packets' sizes, in packets of the scenario's packet size.
    - ``data``: 1 for data packets, 0 for ACKs; random loss does not affect ACKs.
    - ``precedes``: 1 if these arrivals precede a departure at the same instant. They then still
      find the departing packet in the queue (``_red``).
    - ``capable``: 1 if the packets can be marked (ECN). If the queue has ECN, too, RED marks them
      instead of dropping them, but only while its drop probability is at most ``mark_limit``.

    ``loss_hazard`` is above 0 if the link has random loss (``draw_next_loss``).
    """
    lost, picked = 0.0, 0.0
    if link.loss_hazard > 0.0 and data:
        link.since_loss += packets
        while link.since_loss >= link.next_loss - TOLERANCE and lost < packets:
            lost += 1.0
            link.since_loss = max(link.since_loss - link.next_loss, 0.0)
            draw_next_loss(link)
    if link.discipline == RED:
        picked, p = _red(link, packets, before, precedes)
        picked = min(picked, packets - lost)
        if not (link.ecn and capable and p <= link.mark_limit):
            lost, picked = lost + picked, 0.0
    return lost, picked
