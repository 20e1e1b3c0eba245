"""Counts the waiting packets of a queue, if packets have different sizes.

A buffer is limited to a number of packets, whatever their sizes. The queue is first in, first out.
Each row of ``stock`` describes neighbouring packets of one size by the sum of their sizes. A row is
one of two kinds. In a row of whole packets, the packet in transmission counts as one until its
transmission ends. In a row of packets that arrive evenly, like a fluid, fractions of a packet
count.
"""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

import numpy as np

from vegasmodel.engines.rounds.state import Queue, jit

NOTHING = 1e-9  # packets
ALIKE = 1e-9  # of a size: rounding
WORK, SIZE, DISCRETE = range(3)


@jit
def append(link: Queue, work: float, size: float, discrete: int) -> None:
    """Add packets to the end of the queue: each has the size ``size``, all together ``work``.

    Sizes are in packets of the scenario's packet size.
    """
    if work <= NOTHING:
        return
    stock = link.stock
    rows = stock.shape[0]
    last = (link.oldest + link.rows - 1) % rows
    if link.rows > 0:
        alike = np.abs(stock[last, SIZE] - size) <= ALIKE * size
        if (alike and stock[last, DISCRETE] == discrete) or link.rows == rows:
            packets = stock[last, WORK] / stock[last, SIZE] + work / size
            stock[last, WORK] += work
            if stock[last, SIZE] != size:
                stock[last, SIZE] = stock[last, WORK] / packets
            return
    last = (link.oldest + link.rows) % rows
    stock[last, WORK], stock[last, SIZE], stock[last, DISCRETE] = work, size, discrete
    link.rows += 1


@jit
def transmit(link: Queue, work: float) -> float:
    """Remove packets of the size ``work`` in all from the queue's front: the link has sent them.

    Returns the integral, over the work sent, of the number of packets that have been sent before.
    """
    stock, sent, area = link.stock, 0.0, 0.0
    while work > 0.0 and link.rows > 0:
        part = min(work, stock[link.oldest, WORK])
        packets = part / stock[link.oldest, SIZE]
        area += part * (sent + 0.5 * packets)
        sent += packets
        stock[link.oldest, WORK] -= part
        work -= part
        if stock[link.oldest, WORK] <= NOTHING:
            link.oldest = (link.oldest + 1) % stock.shape[0]
            link.rows -= 1
    return area


@jit
def remove_last(link: Queue, work: float) -> None:
    """Remove dropped packets of the size ``work`` in all from the end of the queue."""
    stock = link.stock
    while work > 0.0 and link.rows > 0:
        last = (link.oldest + link.rows - 1) % stock.shape[0]
        part = min(work, stock[last, WORK])
        stock[last, WORK] -= part
        work -= part
        if stock[last, WORK] <= NOTHING:
            link.rows -= 1


@jit
def front_packets(link: Queue) -> float:
    """How many packets of the same size stand at the front of the queue.

    The result is 0 if the queue is empty, or if its front arrived evenly, not as whole packets.
    """
    front = link.stock[link.oldest]
    return front[WORK] / front[SIZE] if link.rows > 0 and front[DISCRETE] else 0.0


@jit
def fluid(link: Queue) -> float:
    """How many packets the link still has to send, with the unsent part of the one on the link."""
    packets = 0.0
    for k in range(link.rows):
        row = (link.oldest + k) % link.stock.shape[0]
        packets += link.stock[row, WORK] / link.stock[row, SIZE]
    return packets


@jit
def count(link: Queue, queue: float) -> None:
    """Set ``packets_per_work``: the number of packets at the link, divided by their size in all.

    They are the waiting packets and the one in transmission; ``queue`` is their size in all, in
    packets of the scenario's packet size.
    """
    packets = 0.0
    for k in range(link.rows):
        row = (link.oldest + k) % link.stock.shape[0]
        share = link.stock[row, WORK] / link.stock[row, SIZE]
        packets += np.ceil(share - 1e-6) if link.stock[row, DISCRETE] else share
    if queue > 1e-6 and packets > 0.0:
        link.packets_per_work = packets / queue
