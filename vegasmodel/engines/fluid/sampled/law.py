"""Asks a flow's congestion control how the window grows, and how far a loss cuts it.

In the functions, ``now`` is the link's present state, and ``c`` its capacity in pkt/s. ``smooth``
says whether windows are real numbers that change at every instant, as in the papers.
"""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

from typing import Any

import numpy as np

from vegasmodel.engines.fluid.sampled.records import WINDOW_ERROR, LinkState, Sender
from vegasmodel.engines.kept_numbers import kept_at
from vegasmodel.engines.outside import call
from vegasmodel.engines.tables import jit, rare
from vegasmodel.laws import BUILT_IN, foreign
from vegasmodel.laws.source import Source
from vegasmodel.support.machine_code import part

FEW_SAMPLES = 2.0  # Linux's Vegas ignores the backlog if a round trip had at most 2 RTT samples


def _chain(functions: list[Any]) -> Any:
    """Combine several functions into one compiled function, which calls number k of the list.

    Each of the ``functions`` takes a ``Source``, the state of a sender. The compiled function takes
    k and a ``Source``. It finds number k by a chain of comparisons, so that the compiler can inline
    all functions.
    """

    def link(k: int, function: Any, rest: Any) -> Any:
        """A compiled call of ``function``, which is number k, or of ``rest``: the later ones."""
        if rest is None:
            return part(lambda _, f: function(f), error_model="numpy")
        return part(lambda i, f: function(f) if i == k else rest(i, f), error_model="numpy")

    chain = None
    for k in range(len(functions) - 1, -1, -1):
        chain = link(k, part(functions[k], error_model="numpy"), chain)
    return chain


# The functions ``drift`` of the papers' laws, each once. Those of all other laws are called by
# their addresses in memory (``Sender.drift_at``).
DRIFTS = list(dict.fromkeys(law.drift for law in BUILT_IN if not foreign((law.name,))))
_built_in = _chain(DRIFTS)


@jit
def source(flow: Sender, now: LinkState, smooth: bool) -> Source:
    """The sender's state as its congestion control sees it: window, RTT, baseRTT, backlog and more.

    If windows change at every instant, as in the papers (``smooth``), the window is a real number,
    and the sender knows the present queueing delay at once. Otherwise the window is rounded down,
    and the sender knows the delay that ACKs report.
    """
    return source_at(flow, now, smooth, now.delay if smooth else flow.acked_delay)


@jit
def source_at(flow: Sender, now: LinkState, smooth: bool, s: float) -> Source:
    """The state that a congestion control sees if its sender measures the queueing delay ``s``.

    ``smooth`` says whether windows are real numbers, as in the papers.
    """
    W = flow.cwnd if smooth else np.floor(flow.cwnd + WINDOW_ERROR)
    T = flow.rtt - flow.wait  # a sender measures its RTT from the end of its random wait
    rtt, base = T + s, T + flow.over_estimate
    backlog = W * (s - flow.over_estimate) / (base if flow.backlog_over_base else rtt)
    if flow.counts_sent:  # tcp-vegas.cc: rttLen, the packets sent in a round trip
        backlog += flow.held_back * base / rtt
    elapsed = now.time - flow.last_loss
    return Source(
        flow.cwnd,
        rtt,
        base,
        backlog,
        elapsed,
        flow.memory,
        flow.lower,
        flow.upper,
        flow.trips,
    )


@jit
def drift(flow: Sender, now: LinkState, smooth: bool) -> float:
    """How much the flow's congestion control lets the window grow, in packets per round trip.

    This is m in equation (S2) of the package ``sampled``. ``smooth`` says whether windows change at
    every instant, as in the papers.
    """
    seen = source(flow, now, smooth)
    if flow.drift_at != 0:
        return flow.drift_factor * call(flow.drift_at, seen, kept_at(flow))
    return flow.drift_factor * _built_in(flow.drift, seen)


@rare
def update(flow: Sender, now: LinkState, smooth: bool) -> None:
    """Let a user's law change the numbers that it keeps, at the end of a round trip.

    The function does nothing if the law has no function ``update``. ``smooth`` says whether windows
    change at every instant, as in the papers. The numbers change only once per round trip even so.
    """
    if flow.update_at != 0:
        call(flow.update_at, source(flow, now, smooth), kept_at(flow))


@jit
def allowed_in_flight(flow: Sender, smooth: bool) -> float:
    """The number of packets that the window allows in flight: the window rounded down.

    If ``smooth``, windows are real numbers, and the result is the window itself.
    """
    return flow.cwnd if smooth else np.floor(flow.cwnd + WINDOW_ERROR)


@jit
def cut(flow: Sender, now: LinkState, smooth: bool) -> float:
    """Compute the window to which a loss cuts the present window; the caller then sets it.

    The function ``cut`` of the flow's congestion control (its law) gives this window. If the law
    has no such function, the window is multiplied by the factor ``decrease``, and rounded to whole
    packets unless ``smooth`` is True. Unless ``smooth``, the law sees the RTT that the duplicate
    ACKs report: that of the packets sent after the lost one.

    The function stores the time of the cut (``last_loss``), and ``trips`` begins to count round
    trips from there. It also stores in the flow's field ``memory`` the result of the law's function
    ``remember``, or the window before the cut if the law has no such function.
    """
    W = allowed_in_flight(flow, smooth)
    if flow.whole_window:  # such a sender counts ACKs, not parts of a packet
        flow.cwnd = W
    seen = source_at(flow, now, smooth, now.delay if smooth else flow.later_delay)
    if flow.remember_at != 0:
        flow.memory = call(flow.remember_at, seen, kept_at(flow))
    else:
        flow.memory = W
    flow.last_loss, flow.trips = now.time, 0.0
    if flow.cut_at != 0:
        return call(flow.cut_at, seen, kept_at(flow))
    if smooth:
        return W * flow.decrease
    if flow.cut_rounds_up:
        return W - np.floor((1.0 - flow.decrease) * W)
    return np.floor(flow.decrease * W)


@jit
def counted(flow: Sender, apart: float) -> float:
    """The part of the ACKs at which a window that grows is enlarged: below 1 only in ns-2's Vegas.

    ``apart`` is the time in seconds from one packet of the flow to the next. ns-2's Vegas enlarges
    its window at an ACK only if it has kept up with the window: at most three packets that the
    window allows are not sent yet (tcp-vegas.cc: "incr cwnd unless we havent been able to keep up
    with it"). A part of a packet counts, too, so without delayed ACKs two acknowledged packets may
    wait to be replaced, but not three.

    The sender waits a random time, uniform from 0 to J, before it sends what ACKs allow. The wait
    begins with an ACK. If ACKs are t seconds apart, ACK k + 1 of a wait comes k t after the first.
    It comes before the wait ends with the probability 1 - k t/J. The sum of these probabilities
    over k = 0, 1, 2 ... is the mean number of ACKs in a wait. Its first two terms are the mean
    number of those ACKs that enlarge the window (only the first term if an ACK acknowledges two
    packets). A wait has at most as many ACKs as a round trip.
    """
    longest = 2.0 * (flow.wait + flow.wait_in_host)  # J
    spacing = flow.acked_at_once * apart  # t
    if not flow.must_keep_up or longest <= spacing:
        return 1.0
    most = 2.0 if flow.acked_at_once == 1.0 else 1.0
    in_round = max(np.floor(flow.in_flight / flow.acked_at_once), 1.0)  # ACKs of a round trip
    before_end = min(np.ceil(longest / spacing), in_round)  # terms of the sum that are above 0
    if before_end <= most:
        return 1.0
    part = 0.5 * spacing / longest  # the sum of 1 - k t/J over k = 0 ... n - 1: n - n (n-1) t/(2 J)
    acks = before_end * (1.0 - part * (before_end - 1.0))
    return most * (1.0 - part * (most - 1.0)) / acks


@jit
def decide(flow: Sender, now: LinkState, c: float) -> None:
    """Let the congestion control decide, at a round trip's end, by how much the window changes.

    - In Linux the window changes at once.
    - In ns-2 it shrinks at once, but grows evenly over the next round trip.
    - In TCP as in the papers it shrinks and grows evenly over the next round trip.

    If at most two ACKs arrive in a round trip, Linux's Vegas does not use the backlog
    (``tcp_vegas_cong_avoid``: ``cntRTT``). Its window W then grows as Reno's does, by one packet
    for W acknowledged packets. But Vegas counts only the packets that the last ACK of each round
    trip acknowledges. With delayed ACKs, 5 packets in flight bring only two ACKs, too, because one
    packet waits at the receiver (``queue.hold_back``). ``c`` is the capacity in pkt/s.
    """
    W = np.floor(flow.cwnd + WINDOW_ERROR)
    samples = (W - flow.lacks) / flow.acked_at_once  # ACKs of the round trip
    few = flow.grows_if_few and samples <= FEW_SAMPLES
    m = flow.acked_at_once / W if few else drift(flow, now, False)  # change of the window, packets
    if m < 0.0 and flow.steps_down:  # it falls by a whole packet, also with delayed ACKs
        m /= flow.drift_factor
    flow.round_drift = 0.0
    if flow.whole_window or (not flow.real_numbers and m < 0.0):
        flow.cwnd = min(max(flow.cwnd + m, flow.min_window), flow.max_window)
    else:
        flow.round_drift = m
        if m > 0.0:
            # time from one packet to the next: those of a train follow one another closely
            apart = 1.0 / c if flow.in_train else (flow.rtt + now.delay) / max(flow.in_flight, 1.0)
            flow.round_drift *= counted(flow, apart)
