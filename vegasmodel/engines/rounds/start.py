"""Starts a flow, and starts it again after a timeout.

A flow begins with a TCP handshake, if its TCP implementation has one, and then sends its first
window.

In the functions, ``net`` is the simulated network, and ``f`` is the record of the flow. ``holes``
is the table of the packets that the flow's receiver misses (``acks.add_hole``), and ``now`` is the
time in seconds.
"""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

import numpy as np

from vegasmodel.engines.rounds.acks import send_nothing, usable_window
from vegasmodel.engines.rounds.laws import idle_timeout, retransmission_timeout, window
from vegasmodel.engines.rounds.losses import early_timer_expired
from vegasmodel.engines.rounds.queue import (
    advance,
    enqueue_handshake,
    never_full,
    room_for,
    share_by_flows,
    waiting,
)
from vegasmodel.engines.rounds.repair import send_in_recovery
from vegasmodel.engines.rounds.scoreboard import take_all_for_lost
from vegasmodel.engines.rounds.state import (
    CONNECTED,
    DATA,
    RECOVERY,
    START,
    TIMER,
    Group,
    Net,
    Sender,
    rare,
)
from vegasmodel.engines.rounds.timer import arm, syn_acknowledged, syn_lost, time_one_packet
from vegasmodel.engines.rounds.turns import join
from vegasmodel.engines.rounds.wait import begin_wait
from vegasmodel.laws.packets import NEVER
from vegasmodel.metrics import Floats


@rare
def _handshake_rtt(net: Net, f: Sender) -> float:
    """The RTT in seconds of a packet of the TCP handshake, with the present queues."""
    rtt = f.rtt
    for e in range(f.hop, f.hop + f.hops):
        h = net.hops[e]
        link = net.links[h.link]
        if h.data:  # it waits behind all packets there, and its own transmission is shorter
            rtt += waiting(net.links, h.link, link.queue, 0.0)
            rtt -= (h.work - f.syn) / link.capacity
    return rtt


@rare
def _send_handshake_packet(net: Net, f: Sender) -> None:
    """Add a packet of the TCP handshake, of size ``Sender.syn``, to the flow's first queue."""
    k = net.hops[f.hop].link
    link = net.links[k]
    if link.partner < 0:
        enqueue_handshake(link, f.syn)
        return
    link.arrived += f.syn
    # at a Rate-Delay link it is a group of one packet, which goes to no further hop
    packet, no_hop, silent = Group(0.0, 1.0, 0.0, 0.0, 0.0, 0, link.now), -1, 0.0
    join(net, k, no_hop, link.now, packet, f.syn, silent)


@rare
def _handshake(net: Net, f: Sender) -> float:
    """Simulate the TCP handshake; returns the seconds that it takes.

    The SYN joins the flow's first queue. The time is computed from the present queues.
    """
    rtt = _handshake_rtt(net, f)
    if net.hops[f.hop].data:
        _send_handshake_packet(net, f)
    syn_acknowledged(f, f.time, rtt)
    return rtt


@rare
def _syn_fits(net: Net, f: Sender) -> bool:
    """Whether the flow's SYN finds room in the first queue of its path that can be full.

    The function looks at this queue at the time when the SYN is sent, not when it arrives.
    """
    clock = f.time + net.links[net.hops[f.hop].link].shift
    for e in range(f.hop, f.hop + f.hops):
        k = net.hops[e].link
        if net.hops[e].data and not never_full(net.links[k]):
            advance(net.links, k, clock - net.links[k].shift)
            precedes = 0  # a packet that departs at this instant makes room
            return room_for(net.links[k], 1.0, precedes) >= 1.0
    return True


@rare
def _send_missing(f: Sender, holes: Floats, now: float) -> None:
    """After a timeout of ns-2's CUBIC, begin to send the missing packets again.

    If the sender waits a random time before it sends, this function begins the wait instead.
    """
    f.event, f.late = DATA, 0.0
    send_nothing(f)
    arm(f, now)
    if f.jitter > 0.0:
        begin_wait(f, holes, now)
    else:
        send_in_recovery(f, holes, usable_window(f, now), 0.0)


@rare
def _restart(net: Net, f: Sender, holes: Floats, now: float) -> None:
    """Send what the window allows, at the flow's start or after a timeout.

    Linux has two timers that expire before the retransmission timer: the reordering timer of RACK,
    and the timer of the tail loss probe. If one of them has expired, ``early_timer_expired``
    decides what the flow sends. After a timeout ns-2's CUBIC begins a recovery: it retransmits only
    the packets that SACK has not reported as arrived. If the sender waits a random time before it
    sends, this function begins the wait and sends nothing.
    """
    if f.event == TIMER:
        if early_timer_expired(f, holes, now):
            f.event = DATA
            return
        if f.acked >= f.high and f.wait_ends < NEVER:  # it waits to send, and none is in flight
            idle_timeout(f, now)
            f.event, f.late = DATA, 0.0
            return
        retransmission_timeout(f, now)
        if f.phase == RECOVERY:
            take_all_for_lost(f, holes)
            _send_missing(f, holes, now)
            return
    if f.next == 0.0:  # no packet was sent yet: the first round trip of Vegas begins
        f.round_start = now
    if f.event == CONNECTED and f.third_ack:  # the handshake's last ACK leaves before the data
        f.receiver_rtt = _handshake_rtt(net, f)  # from the SYN-ACK to this ACK
        _send_handshake_packet(net, f)
    # the flow sends ``burst`` packets back to back, from number ``next`` on, and none evenly
    f.event, f.first, f.spread, f.retransmit, f.late = DATA, f.next, 0.0, -1.0, 0.0
    f.burst = min(np.floor(window(f)), f.size - f.next)
    arm(f, now)  # the retransmission timer
    if f.jitter > 0.0:  # the sender waits a random time first
        f.burst = 0.0
        begin_wait(f, holes, now)
    time_one_packet(f)
    f.next += f.burst


@rare
def count_active(net: Net, f: Sender, change: int) -> None:
    """Record that a flow starts (``change`` is 1) or ends (``change`` is -1).

    A link with Rate-Delay services divides its capacity between two classes of flows: those that
    get a high rate, and those that get a low delay. The shares depend on the numbers of active
    flows. So this function updates the shares of each such link on the flow's path. If the links
    behave as in ns-2, the shares change at given times instead (``turns.begin_shares``).
    """
    f.active += change
    for e in range(f.hop, f.hop + f.hops):
        k = net.hops[e].link
        if net.hops[e].data and net.links[k].partner >= 0 and not net.links[k].class_based:
            advance(net.links, k, net.links[k].now)
            net.links[k].active += change
            share_by_flows(net.links, k)


@rare
def start_or_restart(net: Net, f: Sender, holes: Floats, now: float) -> None:
    """Handle the flow's start, the end of its TCP handshake, or the expiry of a timer.

    At its start the flow sends a SYN. If the buffer is full, the SYN is lost, and the flow sends
    another SYN after a pause. After the handshake the flow sends its first window. A flow without a
    handshake sends its first window at its start.
    """
    if f.event == START and not f.active:
        count_active(net, f, 1)
    if f.event != START or f.syn == 0.0:
        _restart(net, f, holes, now)
    elif not _syn_fits(net, f):
        f.time = now + syn_lost(f)  # its SYN is lost
    else:
        f.time = now + _handshake(net, f)
        f.event = CONNECTED
