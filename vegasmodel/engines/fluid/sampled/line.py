"""Finds the order in which the packets of Linux senders of equal RTTs arrive at the full queue.

When a window grows at the full queue, a packet is lost soon after. The order of the packets decides
which flow this packet belongs to (``follower.follower``).

If all RTTs are equal, the packets of a sender follow one another as a train (Jacobson 1988,
self-clocking). At a full queue the trains of all senders follow one another without a gap. They
form one line, which contains as many packets as the link sends in a round trip. A packet is
followed by the rest of its own train, and then by the next train.

In Linux a window grows by a whole packet, at one ACK of a round trip. The congestion control
decides which ACK of the train this is:

- Reno counts ACKs. When it has counted W of them, its window W grows by one packet, and the count
  begins anew (``tcp_cong_avoid_ai``). Reno then counts to W + 1, and the train has W + 1 packets.
  So the window grows at the same place in each train: the number of ACKs that follow in the train
  is always the same. This place depends on the ACK that ended the last recovery, because the count
  began at this ACK.
- CUBIC compares its window with its target and with its estimate of Reno's window
  (``bictcp_update``). While the window is constant, CUBIC compares at most once per 1/32 s. So the
  window grows at the first ACK of the train if the last comparison was at least 1/32 s ago.
  Otherwise it grows at the first ACK that comes 1/32 s after the last comparison or later.
- Vegas's window grows at the end of a round trip, at the ACK of the packet that began it.

In the functions, ``now`` is the link's present state, and ``c`` its capacity in pkt/s.
"""

from __future__ import annotations

import numpy as np

from vegasmodel.engines.fluid.sampled.law import decide, drift
from vegasmodel.engines.fluid.sampled.records import DUPLICATES, LinkState, Sender
from vegasmodel.engines.tables import Table, jit, rare
from vegasmodel.laws.cubic import SAME_WINDOW


@jit
def length(flow: Sender, now: LinkState, c: float) -> float:
    """How many packets the line of all flows' packets in flight holds.

    At a full queue they follow one another without a gap. So there are as many as the link sends in
    a round trip.
    """
    return c * (flow.rtt + now.delay)


@jit
def since_begin(flow: Sender, now: LinkState, ago: float) -> float:
    """How much of this step is over at the time ``ago`` seconds before its end, in round trips.

    The packets of all flows form one line. The place of a flow's packets in it (``Sender.place``)
    is stored for the beginning of the step. The result of this function is added to the place, to
    get the place at a later time in the step.
    """
    return max(now.step - ago, 0.0) / (flow.rtt + now.delay)


@rare
def line_up(flows: Table[Sender], grew: int, now: LinkState, c: float, ago: float) -> None:
    """Let the trains of all flows follow one another without gaps, in their present order.

    A train is the packets in flight of one flow. Its place in the line (``Sender.place``) is the
    part of a round trip since its first packet arrived at the queue.

    One ACK to flow ``grew`` has released two packets, which arrive ``ago`` seconds before the end
    of this step. ``spare_acks`` packets of the same train come after them. So it is known how many
    come before them, and this gives the place of the train. The function then puts the other trains
    behind it. The round trip of a Vegas sender ends at a certain packet of its train. So if its
    train moves, the end of the round trip moves, too. ``c`` is the capacity in pkt/s.
    """
    first = flows[grew]
    L = length(first, now, c)
    # its place when the two packets arrive, and then its place when the step begins
    first.place = max(first.in_flight - 1.0 - first.spare_acks, 0.0) / L
    first.place -= since_begin(first, now, ago)
    before = first.in_flight  # packets of the trains that have their new places
    for i in range(len(flows)):
        flows[i].in_place = i == grew or not flows[i].active
    while True:
        which, least = -1, np.inf  # the flow whose train comes next in line
        for i in range(len(flows)):
            behind = (first.place - flows[i].place) % 1.0
            if not flows[i].in_place and behind < least:
                which, least = i, behind
        if which < 0:
            return
        # Its new place is ``before`` packets behind that of flow ``grew``. The place is cyclic, so
        # the train moves forwards or backwards, by at most half a round trip.
        flow = flows[which]
        moved = first.place - before / L - flow.place
        moved -= np.rint(moved)
        flow.place, flow.in_place = flow.place + moved, True
        flow.round_part += moved
        before += flow.in_flight


@jit
def silence(flow: Sender, now: LinkState, lost_at: float, c: float) -> float:
    """The time from when the ACK of a lost packet was due to the detection of the loss.

    The result is in round trips. The packet is lost ``lost_at`` round trips after this step begins.
    The sender detects the loss when SACK has reported three packets sent later
    (``tcp_rack_detect_loss``). Fewer than three packets may follow the lost one in its train (the
    flow's packets in flight). Then the report of the first packet of the next train is enough,
    because this packet is sent much later. ``c`` is the capacity in pkt/s.
    """
    L = length(flow, now, c)
    ahead = (flow.place + lost_at) % 1.0 * L  # packets of its train ahead of the lost one
    few_follow = flow.in_flight - DUPLICATES - 1.0 < ahead < flow.in_flight
    # the first packet of the next train passes L packets after that of this train
    return (L - ahead + 0.5 if few_follow else DUPLICATES) / L


@jit
def begin_recovery(flow: Sender, now: LinkState, before: float, ago: float, c: float) -> None:
    """Set the place in line of a sender that has just detected a loss and cut its window.

    The sender's packets in flight follow one another as a train. Its place in line is the part of a
    round trip since the first packet of the train arrived at the queue. The sender had ``before``
    packets in flight. It detected the loss ``ago`` round trips before the end of this step.

    During the recovery the sender sends fewer packets than it receives ACKs, and spreads them
    evenly over a round trip (Linux: ``tcp_cwnd_reduction``). So its train gets shorter, all parts
    in the same proportion. The recovery ends at the ACK of packet P, the last one sent before the
    recovery. The function computes how many packets are ahead of P in the shorter train, and from
    this the train's place.

    If the law counts ACKs as Reno does, it begins to count at the ACK of P. So in the next train
    the window grows one ACK earlier. The function stores how many ACKs come after that one
    (``spare_acks``). ``c`` is the capacity in pkt/s.
    """
    L = length(flow, now, c)  # the packets of all trains
    # packets ahead of P: as large a part of the shorter train (``cwnd``) as of the old one
    ahead = min((flow.place - ago) % 1.0 * L / before, 1.0) * flow.cwnd
    # afterwards all trains have fewer packets, but still enough to keep the link busy
    L_after = max(L - before + flow.cwnd, c * flow.rtt)
    flow.place = ahead / L_after + ago  # P arrives at the detection, ``ago`` before the step ends
    # with no packet ahead in this train, the window grows at the last ACK of the train: none follow
    flow.spare_acks = flow.cwnd - ahead if ahead >= 1.0 else 0.0


@jit
def end_recovery_in_line(flow: Sender, now: LinkState, c: float) -> None:
    """At the end of a recovery, raise the window a little, if the sender counts ACKs as Reno does.

    In this model a window grows evenly: by the law's drift per round trip, one packet for Reno. In
    TCP, the first growth after a recovery comes k transmission times sooner than after a round
    trip. So the function adds k/L of the drift to the window. A round trip lasts as long as the
    link takes to send L packets (``length``).

    The number k follows from the ACKs that Reno counts. A window of W packets has a train of W
    ACKs, one behind the other, and then come the trains of the other flows. The first ACK that Reno
    counts is the one that ends the recovery. At the W-th one the window grows by a packet. There
    are two cases:

    - The recovery ends at a later ACK of a train than its first, for example at the third. The W-th
      ACK is then the second of the next train. It comes L - 1 transmission times later, so k = 1.
    - The recovery ends at the first ACK of a train (``spare_acks`` is 0). The W-th ACK is then the
      last of the same train. It comes W - 1 transmission times later, so k = L - W + 1.

    ``c`` is the link's capacity in pkt/s.
    """
    # no law that decides once per round trip, as Vegas does, and not CUBIC
    counts_acks = not (flow.once_a_round or flow.compares)
    if counts_acks:
        L = length(flow, now, c)
        k = 1.0 if flow.spare_acks > 0.0 else max(L - np.floor(flow.cwnd), 0.0) + 1.0
        flow.cwnd += drift(flow, now, False) * k / L


@jit
def to_comparison(flow: Sender, now: LinkState, c: float) -> float:
    """Round trips until the next ACK at which CUBIC compares its window with its target.

    CUBIC must not compare for another ``rests_for`` seconds. At the end of this time an ACK comes
    only if the flow's train is passing. Otherwise the next ACK is the first of the next train.
    ``c`` is the capacity in pkt/s.
    """
    # ``at``: the end of this time, in round trips since the train's first packet arrived
    at = flow.place + flow.rests_for / (flow.rtt + now.delay)
    train = flow.in_flight / length(flow, now, c)  # round trips that the train takes to pass
    if at % 1.0 >= train:
        at = np.ceil(at)
    due: float = at - flow.place
    return due


@jit
def grow_here(flow: Sender, now: LinkState, ago: float, c: float) -> None:
    """Store in ``flow.spare_acks`` how many ACKs follow the ACK at which the flow's window grows.

    In each round trip the ACKs of the flow's packets in flight come one behind the other, as a
    train. The function counts the ACKs from the one at which the window grows to the end of the
    train. The window grows ``ago`` round trips before the end of the simulation's present step.
    ``c`` is the capacity in pkt/s.
    """
    at = (flow.place - ago) % 1.0 * length(flow, now, c)
    flow.spare_acks = max(flow.in_flight - at, 0.0)


@jit
def compare(flow: Sender, now: LinkState, ago: float, c: float) -> None:
    """Let CUBIC compare its window with its target, ``ago`` round trips before the end of the step.

    If the window is smaller than the target, it grows at once. CUBIC then makes no comparison for
    ``SAME_WINDOW`` seconds. ``c`` is the capacity in pkt/s.
    """
    flow.rests_for = SAME_WINDOW
    grow_here(flow, now, ago, c)
    decide(flow, now, c)
