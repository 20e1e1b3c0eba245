"""Adds up the counts of a trace per flow and link in intervals of time, in bounded memory.

These intervals, called bins, are 0.1 ms long at first. When the trace goes beyond the last bin,
neighbouring bins are merged in pairs. Each bin is then twice as long as before, and the bins cover
twice the time. Bins are also merged if many flows or links would need too much memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from vegasmodel.metrics import Floats
from vegasmodel.packets.trace import Trace, assemble

# The first index of ``Bins.flow``, [quantity, flow, bin]. The last quantity is a minimum, the
# others are sums (``_FLOW_SUMS``). Data are counted in packets, or in bytes by readers of captures:
# - DELIVERED: data that reached the receiver, or data acknowledged, as the reader says;
# - ARRIVED, in captures only: data that passed the place of the capture, without repetitions;
# - SENT, RETRANSMITTED, LOST: data sent (retransmissions included), retransmitted and dropped;
# - ACKS: the number of ACKs;
# - RTT_SUM, RTT_N, RTT_MIN: the sum of the RTTs in s, their number, and the smallest;
# - WINDOW_SUM, WINDOW_N: the sum of the values of the window (or of the data in flight), and their
#   number.
DELIVERED, ARRIVED, SENT, RETRANSMITTED, LOST, ACKS = range(6)
RTT_SUM, RTT_N, WINDOW_SUM, WINDOW_N, RTT_MIN = range(6, 11)
# The first index of ``Bins.link``, [quantity, link, bin]. WAITED is the integral of the queue over
# time (packets times s), SERVED the number of packets that left the queue for transmission, CARRIED
# their bytes, and QUEUE_MAX the longest queue in packets. The last is a maximum, the others are
# sums (``_LINK_SUMS``).
WAITED, SERVED, CARRIED, QUEUE_MAX = range(4)
_FLOW_SUMS, _LINK_SUMS = slice(RTT_MIN), slice(QUEUE_MAX)  # all quantities but the last

MAX_BINS = 4096  # the number of bins, unless many flows or links leave memory for fewer only
MAX_CELLS = 2**19  # the most flows (or links) times bins
FIRST_WIDTH = 1e-4  # s, the length of a bin at first
FIRST_ITEMS = 16  # flows, and links, for which there is room at first


class Bins:
    """Sums per interval of time, such as packets delivered, that a reader makes of a trace file.

    The intervals are called bins.  Bin i begins at ``begin + i width``, in s.  The array ``flow``
    has the indices [quantity, flow, bin], and ``link`` has [quantity, link, bin].  The index of a
    quantity is a constant such as ``DELIVERED``.  All quantities are sums, except ``RTT_MIN``, a
    minimum, and ``QUEUE_MAX``, a maximum.  The method ``trace`` makes a ``Trace`` of the sums.

    ``cells`` is a ``memoryview`` of the array ``flow``. It is there for speed: to change a single
    number takes half as long through ``cells`` as through the array.
    """

    def __init__(self, begin: float = 0.0) -> None:
        self.begin, self.width, self.count = begin, FIRST_WIDTH, MAX_BINS
        self.flow: Floats = _empty(RTT_MIN + 1, FIRST_ITEMS, MAX_BINS)
        self.cells: memoryview[Any] = self.flow.data
        self.link: Floats = _empty(QUEUE_MAX + 1, FIRST_ITEMS, MAX_BINS)
        self.flow[RTT_MIN] = np.inf

    def reach(self, time: float) -> int:
        """Return the index of the bin (interval of time) that contains ``time``, s.

        If ``time`` is after the last bin, neighbouring bins are first merged in pairs, as often as
        needed.  Each time the bins become twice as long.
        """
        while time >= self.begin + self.count * self.width:
            self._merge(then=self.count)
        return self.index(time)

    def grow_flows(self) -> None:
        """Make room for twice as many flows.

        If this takes too much memory, merge neighbouring bins (intervals of time) first.
        """
        self._shrink(2 * self.flow.shape[1])
        flows = self.flow.shape[1]
        wider = _empty(RTT_MIN + 1, 2 * flows, self.count)  # uses no memory until it is written to
        wider[:, :flows] = self.flow
        wider[RTT_MIN, flows:] = np.inf
        self.flow, self.cells = wider, wider.data

    def grow_links(self) -> None:
        """Make room for twice as many links.

        If this takes too much memory, merge neighbouring bins (intervals of time) first.
        """
        self._shrink(2 * self.link.shape[1])
        links = self.link.shape[1]
        wider = _empty(QUEUE_MAX + 1, 2 * links, self.count)
        wider[:, :links] = self.link
        self.link = wider

    def _shrink(self, items: int) -> None:
        """Merge bins (intervals of time) until ``items`` flows or links fit into the memory."""
        while items * self.count > MAX_CELLS:
            self._merge(then=self.count // 2)

    def _merge(self, *, then: int) -> None:
        """Merge neighbouring bins (intervals of time) in pairs.

        ``then`` is the number of bins after that. It is half of the number so far to save memory,
        or the same number to cover twice the time; then the second half of the bins is empty.
        """
        half = self.count // 2
        flow = _empty(RTT_MIN + 1, self.flow.shape[1], then)
        link = _empty(QUEUE_MAX + 1, self.link.shape[1], then)
        flow[RTT_MIN] = np.inf  # no RTT so far
        # [quantity, flow or link, pair]: the first and the second bin of each pair
        first, second = self.flow[:, :, ::2], self.flow[:, :, 1::2]
        flow[_FLOW_SUMS, :, :half] = first[_FLOW_SUMS] + second[_FLOW_SUMS]
        np.minimum(first[RTT_MIN], second[RTT_MIN], out=flow[RTT_MIN, :, :half])
        first, second = self.link[:, :, ::2], self.link[:, :, 1::2]
        link[_LINK_SUMS, :, :half] = first[_LINK_SUMS] + second[_LINK_SUMS]
        np.maximum(first[QUEUE_MAX], second[QUEUE_MAX], out=link[QUEUE_MAX, :, :half])
        self.flow, self.cells, self.link = flow, flow.data, link
        self.count, self.width = then, 2 * self.width

    def index(self, time: float) -> int:
        """The index of the bin (interval of time) that contains ``time``, s.

        The caller must have called ``reach`` with this time or a later one.
        """
        i = int((time - self.begin) / self.width)
        return i if i < self.count else self.count - 1

    def trace(
        self,
        engine: str,
        last: float,
        flows: list[str],
        chosen: list[int],
        variables: Mapping[str, Floats],
        provenance: Mapping[str, str],
        *,
        links: list[str] | None = None,
        known: tuple[str, ...] = (),
        doubts: Mapping[str, str] | None = None,
    ) -> Trace:
        """Make a trace of some flows, from the start of the first bin to the time ``last``, in s.

        - ``flows``, ``chosen``: the names of these flows, and their indices in ``Bins.flow``.
        - ``links``: the names of all links.
        - ``known``: which of the variables "sent", "retransmits", "loss" and "acks" the file shows.
          The trace leaves out the others.
        - ``variables``: more variables of the trace, which do not come from the bins.

        ``packets.trace.Trace`` explains ``engine``, ``provenance`` and ``doubts``.
        """
        used = self.index(last) + 1  # bins up to the one that contains the time ``last``
        ends = self.begin + self.width * np.arange(1, used + 1)
        start = self.begin + self.width * (used - 1)
        ends[-1] = last if last > start else ends[-1]  # the last bin ends with the trace
        lengths = np.diff(ends, prepend=self.begin)[:, None]
        # [quantity, flow, bin] becomes [quantity, bin, flow], as a trace has the time first
        flow = self.flow[:, chosen, :used].swapaxes(1, 2)
        rtt, window = _mean(flow, RTT_SUM), _mean(flow, WINDOW_SUM)
        # a bin without an RTT has the least RTT infinity here, and NaN in the trace
        rtt_min = np.where(np.isinf(flow[RTT_MIN]), np.nan, flow[RTT_MIN])
        entries: dict[str, Floats] = {
            "throughput": flow[DELIVERED] / lengths,
            "rtt": rtt,
            "rtt_min": rtt_min,
            "window": window,
        }
        rows = {"sent": SENT, "retransmits": RETRANSMITTED, "loss": LOST, "acks": ACKS}
        entries |= {name: flow[row] for name, row in rows.items() if name in known}
        if links:
            link = self.link[:, : len(links), :used].swapaxes(1, 2)
            entries["queue"] = link[WAITED] / lengths
            entries["queue_max"] = link[QUEUE_MAX]
            entries["served"] = link[SERVED] / lengths
            if link[CARRIED].any():
                with np.errstate(invalid="ignore"):  # NaN if no packet was sent
                    entries["served_size"] = link[CARRIED] / link[SERVED]
        entries |= variables
        return assemble(
            engine,
            ends,
            flows,
            entries,
            begin=self.begin,
            links=links,
            provenance=provenance,
            doubts=doubts,
        )


def _empty(quantities: int, items: int, bins: int) -> Floats:
    """Zeros with the shape of ``Bins.flow`` or ``Bins.link``; ``items`` are flows or links."""
    return np.zeros((quantities, items, bins))


def _mean(flow: Floats, quantity: int) -> Floats:
    """The mean of a quantity, such as the RTT, in each bin; NaN in a bin without a value of it.

    ``quantity`` is the first index of the sum in ``flow``; the number of values follows it there.
    """
    total, count = flow[quantity], flow[quantity + 1]
    mean: Floats = np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)
    return mean
