"""Finds the flows of a trace that have little to send, such as iperf3's control connection.

Most models assume that a flow always has data to send. By Little's law, a flow that always has data
to send delivers about one window per round trip. A flow with little to send delivers less. If a
flow of a scenario is compared with such a flow of the trace, a note says so (``no-idle-flows``). A
scenario file that is made from the trace leaves such flows out.
"""

from __future__ import annotations

import numpy as np

from vegasmodel.metrics import Floats
from vegasmodel.packets.gaps import first_and_last_packets, packets_in_all
from vegasmodel.packets.trace import Trace

__all__ = ["SAME_TIME", "ends_early", "idle_flows", "windows_a_round_trip"]

# The three limits of ``idle_flows``. A flow with little to send exceeds none of them.
MAX_PART_OF_LARGEST = 0.01  # its bytes, as a part of those of the flow that delivers most
MIN_WINDOWS_PER_RTT = 0.5  # the windows that it delivers per round trip
MAX_LOSS_RATE = 0.05  # the part of its packets that it loses

SAME_TIME = 1.0  # s: times closer than this count as the same
FIRST_WINDOW = 10  # packets: the initial window of today's TCP (RFC 6928)


def idle_flows(trace: Trace) -> dict[str, str]:
    """Find the flows of a trace that have little to send.

    The result maps the name of each of these flows to a reason, such as "delivers 2 packets in all:
    it has little to send". A flow is in the result if it meets all of these conditions:

    - The flow delivers less than 1 % of the bytes of the flow that delivers most.
    - It loses at most 5 % of its packets. A flow that loses more may have much to send, but wait
      for its retransmission timer.
    - From its first packet to the end of the trace it delivers less than half a window per RTT. (If
      its window or RTT is unknown, the condition is that it delivers fewer than 10 packets in all.)

    A flow is left out if its throughput is never known. The result is empty if the trace has no
    throughputs, or only one flow.
    """
    packets = packets_in_all(trace)
    if packets is None or packets.size < 2:
        return {}
    payload = trace.known("payload")
    payload = np.full(packets.size, np.nan) if payload is None else payload
    # bytes of data in a packet; a flow of unknown size counts as that with the largest packets
    size = np.where(np.isfinite(payload), payload, np.nanmax(payload, initial=1.0))
    # each flow's lost packets: its drops or its retransmissions, whichever are more
    counts = [trace.known(key) for key in ("loss", "retransmits")]
    totals = [np.nansum(count, axis=0) for count in counts if count is not None]
    lost = np.max(totals or [0 * packets], axis=0)
    windows = windows_a_round_trip(trace, to_end=True)
    delivers_little = packets * size < MAX_PART_OF_LARGEST * np.nanmax(packets * size, initial=0.0)
    seldom_sends = np.where(
        np.isnan(windows), packets < FIRST_WINDOW, windows < MIN_WINDOWS_PER_RTT
    )
    loses_few = lost <= MAX_LOSS_RATE * packets
    result = {}
    for i in np.flatnonzero(delivers_little & loses_few & seldom_sends):
        part = "" if np.isnan(windows[i]) else f", {windows[i]:.2g} windows in a round trip"
        reason = f"delivers {packets[i]:.3g} packets in all{part}: it has little to send"
        result[trace.flows[i]] = reason
    return result


def ends_early(trace: Trace) -> dict[str, float]:
    """Find the flows that end before the trace does.

    The result maps a flow's name to the time of its end, s. This is the time of its last packet,
    with the exception below.

    A flow ends before the trace if the time from its last packet to the end of the trace is longer
    than a second (``SAME_TIME``), and longer than every pause between its packets. A flow is left
    out if the trace does not tell its last packet, or its throughput in every interval.

    In a trace of the kernel's counters the time of the last packet may be much too late: samples go
    on while a connection is open, even if it sends nothing. So if the trace counts retransmissions,
    the function looks at the last interval in which the flow delivers packets. If the flow
    retransmits nothing after this interval, it is taken to end with the interval at the latest. If
    it does retransmit, its sender was still waiting for an ACK, so the flow had not ended.
    """
    last, delivered = trace.known("last"), trace.known("throughput")
    resent = trace.known("retransmits")
    if last is None or delivered is None:
        return {}
    result, end = {}, float(trace.edges[-1])
    for i, name in enumerate(trace.flows):
        # the ends of the intervals in which the flow delivers packets
        times = trace.edges[1:][delivered[:, i] > 0]
        if not times.size or np.isnan(delivered[:, i]).any():
            continue
        stop, pause = float(last[i]), float(np.diff(times).max(initial=0.0))
        if resent is not None and np.all(resent[trace.edges[1:] > times[-1], i] == 0):
            stop = min(stop, float(times[-1]))
        if end - stop > max(SAME_TIME, pause):
            result[name] = stop
    return result


def windows_a_round_trip(trace: Trace, *, to_end: bool = False) -> Floats:
    """The number of windows that each flow delivers per RTT: [flow].

    This number is the flow's mean throughput divided by its mean of window / RTT. By Little's law
    it is about 1 for a flow that always has data to send. It is NaN if the throughput, the RTT or
    the window is unknown or 0. The mean throughput is over the time from the flow's first to its
    last packet, or to the end of the trace if ``to_end`` is true.
    """
    packets, rtt, window = packets_in_all(trace), trace.known("rtt"), trace.known("window")
    if packets is None or rtt is None or window is None:
        return np.full(len(trace.flows), np.nan)
    first, last = first_and_last_packets(trace).T
    last = np.full(packets.size, float(trace.edges[-1])) if to_end else last
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        known = (rtt > 0) & (window > 0)
        # the mean of window / RTT: the throughput of a flow that always has data to send
        pace = np.where(known, window / rtt, 0.0).sum(axis=0) / known.sum(axis=0)
        defined = (packets > 0) & (last > first)
        windows: Floats = np.where(defined, packets / (pace * (last - first)), np.nan)
    return windows
