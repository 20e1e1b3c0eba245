"""Counts the waiting packets of a queue, if packets have different sizes.

A buffer is limited to a number of packets, whatever their sizes. The queue is first in, first out.
Each row of ``stock`` describes neighbouring packets of one size by the sum of their sizes. A row is
one of two kinds. In a row of whole packets, the packet in transmission counts as one until its
transmission ends. In a row of packets that arrive evenly, like a fluid, fractions of a packet
count. ``Queue.whole`` is the number of packets in the rows of the first kind, and
``Queue.fluid_rows`` the number of rows of the second.
"""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

import numpy as np

from vegasmodel.engines.rounds.state import Queue, apart, jit

NOTHING = 1e-9  # packets
ALIKE = 1e-9  # of a size: rounding
WORK, SIZE, DISCRETE, PACKETS = range(4)
ROUNDING = 1e-6  # packets


@jit
def _whole(link: Queue, row: int) -> float:
    """The number of packets in a row, if it is a row of whole packets; else 0."""
    if link.stock[row, DISCRETE] == 0.0:
        return 0.0
    return np.ceil(link.stock[row, PACKETS] - ROUNDING)


@jit
def _update(link: Queue, row: int, work: float) -> None:
    """Set the sum ``work`` of the sizes of the packets in a row, and what follows from it."""
    stock, before = link.stock, _whole(link, row)
    stock[row, WORK], stock[row, PACKETS] = work, work / stock[row, SIZE]
    link.whole += _whole(link, row) - before


@jit
def _remove(link: Queue, row: int) -> None:
    """Remove the first or the last row, which has become empty."""
    link.whole -= _whole(link, row)
    link.fluid_rows -= int(link.stock[row, DISCRETE] == 0.0)
    link.rows -= 1


@apart
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
            packets = stock[last, PACKETS] + work / size
            if stock[last, SIZE] != size:
                stock[last, SIZE] = (stock[last, WORK] + work) / packets
            _update(link, last, stock[last, WORK] + work)
            return
    last = (link.oldest + link.rows) % rows
    stock[last, SIZE], stock[last, DISCRETE], stock[last, PACKETS] = size, discrete, 0.0
    _update(link, last, work)
    link.fluid_rows += 1 - discrete
    link.rows += 1


@apart
def transmit(link: Queue, work: float) -> float:
    """Remove from the queue's front the packets that the link has sent, of size ``work`` in all.

    Let n(w) be the number of packets that make up the first w of this size.  Returns the integral
    of n(w) from w = 0 to ``work``.
    """
    stock, sent, area = link.stock, 0.0, 0.0
    while work > 0.0 and link.rows > 0:
        part = min(work, stock[link.oldest, WORK])
        packets = part / stock[link.oldest, SIZE]
        area += part * (sent + 0.5 * packets)
        sent += packets
        _update(link, link.oldest, stock[link.oldest, WORK] - part)
        work -= part
        if stock[link.oldest, WORK] <= NOTHING:
            _remove(link, link.oldest)
            link.oldest = (link.oldest + 1) % stock.shape[0]
    return area


@apart
def remove_last(link: Queue, work: float) -> None:
    """Remove dropped packets of the size ``work`` in all from the end of the queue."""
    stock = link.stock
    while work > 0.0 and link.rows > 0:
        last = (link.oldest + link.rows - 1) % stock.shape[0]
        part = min(work, stock[last, WORK])
        _update(link, last, stock[last, WORK] - part)
        work -= part
        if stock[last, WORK] <= NOTHING:
            _remove(link, last)


@jit
def front_packets(link: Queue) -> float:
    """How many packets of the same size stand at the front of the queue.

    The result is 0 if the queue is empty, or if its front arrived evenly, not as whole packets.
    """
    front = link.stock[link.oldest]
    return front[PACKETS] if link.rows > 0 and front[DISCRETE] else 0.0


@apart
def fluid(link: Queue) -> float:
    """How many packets the link still has to send, with the unsent part of the one on the link."""
    packets = 0.0
    for k in range(link.rows):
        row = (link.oldest + k) % link.stock.shape[0]
        packets += link.stock[row, PACKETS]
    return packets


@apart
def count(link: Queue, queue: float) -> None:
    """Set ``packets_per_work``: the number of packets at the link, divided by their size in all.

    They are the waiting packets and the one in transmission; ``queue`` is their size in all, in
    packets of the scenario's packet size.
    """
    packets = link.whole
    if link.fluid_rows > 0:
        packets = 0.0
        for k in range(link.rows):
            row = (link.oldest + k) % link.stock.shape[0]
            packets += _whole(link, row) if link.stock[row, DISCRETE] else link.stock[row, PACKETS]
    if queue > 1e-6 and packets > 0.0:
        link.packets_per_work = packets / queue
