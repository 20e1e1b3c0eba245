"""Counts the packets at a link whose packets have different sizes.

The simulator computes the sum of the sizes of the packets in a queue. But a buffer is limited to a
number of packets, whatever their sizes. To find how many packets are in the queue, the simulator
must know their sizes and their order. It keeps both in the table ``Queue.stock``. Each row stands
for neighbouring packets of one size. The row contains this size, the number of packets, and the sum
of their sizes.

There are two kinds of rows. In rows of the first kind the packets have arrived one by one. Their
number is rounded up, because a packet counts as one until its transmission ends. ``Queue.whole`` is
the number of packets in all rows of this kind. In rows of the second kind packets arrive evenly
over time, like a fluid, so their number need not be whole. ``Queue.fluid_rows`` is the number of
rows of the second kind.
"""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

import numpy as np

from vegasmodel.engines.rounds.state import Queue, apart, jit

NOTHING = 1e-9  # packets
ALIKE = 1e-9  # of a size: sizes that differ by less are equal
# A row of ``Queue.stock`` describes neighbouring packets of one size. Its columns are: the sum of
# their sizes, the size of one packet, whether they are whole packets (1) or arrive evenly like a
# fluid (0), and their number.
WORK, SIZE, DISCRETE, PACKETS = range(4)


@jit
def _whole(link: Queue, row: int) -> float:
    """The number of whole packets in a row of the table ``link.stock``.

    A row describes neighbouring packets of one size. The number is rounded up, because a packet
    counts as one until its transmission ends. If the packets of the row arrive evenly, like a
    fluid, the result is 0.
    """
    if link.stock[row, DISCRETE] == 0.0:
        return 0.0
    # a remainder smaller than ``instant`` is a rounding error, not a packet
    return np.ceil(link.stock[row, PACKETS] - link.instant)


@jit
def _update(link: Queue, row: int, work: float) -> None:
    """Set the sum of the packet sizes in a row of the table ``link.stock`` to ``work``.

    A row describes neighbouring packets of one size. ``work`` is in packets of the scenario's
    packet size, so it is the number of transmission times that the row still needs at the link. The
    function also updates the number of packets in this row, and the number of whole packets in all
    rows (``link.whole``).
    """
    stock, before = link.stock, _whole(link, row)
    stock[row, WORK], stock[row, PACKETS] = work, work / stock[row, SIZE]
    link.whole += _whole(link, row) - before


@jit
def _remove(link: Queue, row: int) -> None:
    """Update the counts of ``link`` for the removal of a row of the table ``link.stock``.

    A row describes neighbouring packets of one size. Only the first or the last row is removed. The
    counts are ``whole``, ``fluid_rows`` and ``rows``. If the first row is removed, the caller also
    moves ``link.oldest`` to the next row.
    """
    link.whole -= _whole(link, row)
    link.fluid_rows -= int(link.stock[row, DISCRETE] == 0.0)
    link.rows -= 1


@apart
def append(link: Queue, work: float, size: float, discrete: int) -> None:
    """Add packets of the size ``size`` to the end of the queue; ``work`` is the sum of their sizes.

    Sizes are in packets of the scenario's packet size. ``discrete`` is 1 for whole packets and 0
    for packets that arrive evenly, like a fluid. If the table ``link.stock`` is full, the packets
    join its last row, and the size in this row becomes their mean size.
    """
    if work <= NOTHING:
        return
    stock = link.stock
    rows = stock.shape[0]
    last = (link.oldest + link.rows - 1) % rows
    if link.rows > 0:
        alike = np.abs(stock[last, SIZE] - size) <= ALIKE * size
        # the packets join the last row, because they are like those in it or the table is full
        if (alike and stock[last, DISCRETE] == discrete) or link.rows == rows:
            packets = stock[last, PACKETS] + work / size
            if stock[last, SIZE] != size:
                stock[last, SIZE] = (stock[last, WORK] + work) / packets
            _update(link, last, stock[last, WORK] + work)
            return
    last = (link.oldest + link.rows) % rows  # a new row
    stock[last, SIZE], stock[last, DISCRETE], stock[last, PACKETS] = size, discrete, 0.0
    _update(link, last, work)
    link.fluid_rows += 1 - discrete
    link.rows += 1


@apart
def transmit(link: Queue, work: float) -> float:
    """Remove the packets that the link has sent from the front of the queue.

    A row of the table ``link.stock`` describes neighbouring packets of one size; the oldest row is
    at the front. ``work`` is the sum of the sizes of the packets sent, in packets of the scenario's
    packet size. While the link sends them, the number n of packets that have left rises from 0;
    fractions of a packet count. Returns the integral of n over the work w done so far, from w = 0
    to ``work``. The caller needs this integral for the mean number of packets at the link.

    ``link.leaving`` becomes the size of the last packet of which a part has left.
    """
    stock, sent, area = link.stock, 0.0, 0.0
    while work > 0.0 and link.rows > 0:
        front = link.oldest
        # the work and the number of packets that leave from this row: all of it, or a part
        part, packets = stock[front, WORK], stock[front, PACKETS]
        leaves = part <= work
        if not leaves:
            part, packets = work, work / stock[front, SIZE]
            _update(link, front, stock[front, WORK] - part)
        area += part * (sent + 0.5 * packets)
        if packets > link.instant:  # less than this is a rounding error
            link.leaving = stock[front, SIZE]
        sent += packets
        work -= part
        if leaves or stock[front, WORK] <= NOTHING:
            _remove(link, front)
            link.oldest = (front + 1) % stock.shape[0]
    return area


@apart
def remove_last(link: Queue, work: float) -> None:
    """Remove dropped packets from the end of the queue.

    ``work`` is the sum of their sizes, in packets of the scenario's packet size.
    """
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
    """How many packets of the same size are at the front of the queue, one behind the other.

    Of the packet in transmission only the unsent part counts. The result is 0 if the queue is
    empty. It is also 0 if these packets arrive evenly over time, like a fluid, and not one by one.
    """
    front = link.stock[link.oldest]
    return front[PACKETS] if link.rows > 0 and front[DISCRETE] else 0.0


@apart
def fluid(link: Queue) -> float:
    """How many packets the link has still to send, fractions included.

    Of the packet in transmission only the unsent part counts.
    """
    packets = 0.0
    for k in range(link.rows):
        row = (link.oldest + k) % link.stock.shape[0]
        packets += link.stock[row, PACKETS]
    return packets


@apart
def count(link: Queue, queue: float) -> None:
    """Set ``link.packets_per_work``: the number of packets at the link over the sum of their sizes.

    The packets at the link are those that wait and the one in transmission. ``queue`` is the sum of
    their sizes, in packets of the scenario's packet size.
    """
    packets = link.whole
    if link.fluid_rows > 0:
        packets = 0.0
        for k in range(link.rows):
            row = (link.oldest + k) % link.stock.shape[0]
            packets += _whole(link, row) if link.stock[row, DISCRETE] else link.stock[row, PACKETS]
    if queue > 1e-6 and packets > 0.0:  # otherwise the quotient would be mere rounding errors
        link.packets_per_work = packets / queue
