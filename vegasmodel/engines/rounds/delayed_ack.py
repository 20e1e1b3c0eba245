"""Simulates delayed ACKs (RFC 1122 4.2.3.2): a receiver answers two packets by one ACK.

After a packet has arrived, the receiver waits for a second one, for a limited time called the
pause. If no second packet comes, the receiver acknowledges the first one alone. While an earlier
packet is missing, the receiver does not wait. ``Sender.delack_packets`` is the number of packets (0
or 1) that have arrived and whose ACK is still delayed.

The simulator moves data packets and their ACKs together, in groups. It computes the delay of the
ACKs only when a group reaches the sender. So in this file a packet's arrival time means the time at
which its ACK would reach the sender if the receiver sent the ACK at once.

ACKs may cross a queue of data on their way back. At the first such queue ``silent_packets`` counts
the packets that the receiver does not acknowledge at once. (In this function a packet's arrival
time means the time at which its ACK would reach the queue.) For these packets no ACK joins the
queue. The receiver may still send an ACK for such a packet at the end of a pause. This ACK takes no
room in the queue. It gets the queueing delay of an ACK that joins the queue when the packet
arrives.

Linux adapts the pause to the flow (``adapts_ack_pause``). It keeps a value called ato
(``Sender.ack_ticks``), which begins at 40 ms and is at most the receiver's own retransmission
timeout:

* ato doubles whenever a pause ends without a second packet (tcp_delack_timer_handler).
* If a packet follows the one before it within 20 ms, ato falls towards 40 ms. If it follows later
  but within ato, the new ato is half the old one plus the gap between the two packets
  (tcp_event_data_recv).

The pause is the smallest of three times: ato, 200 ms, and the RTT of the handshake, which counts as
40 ms if it is shorter (tcp_send_delayed_ack).

At the start of a flow, Linux's receiver sends the first 16 ACKs without delay, one for each packet.
It does the same after a silence longer than its own retransmission timeout.
"""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

import numpy as np

from vegasmodel.engines.rounds.acks import acknowledge, received_beyond
from vegasmodel.engines.rounds.state import Parcel, Sender, jit, rare
from vegasmodel.engines.rounds.timer import (
    JIFFY,
    expiry,
    keeps_mean,
    rto_of,
    ticks_at,
    update_mean,
)
from vegasmodel.laws.packets import NEVER

DUPLICATES_AT_ONCE = 3.0  # duplicate ACKs per missing packet sent at once; TCP_FASTRETRANS_THRESH
LONGEST_PAUSE = 0.2  # seconds; TCP_DELACK_MAX
SETTLES = 8.0  # number of packets at equal gaps after which ato hardly changes any more


@jit
def packets_per_ack(f: Sender) -> float:
    """How many packets the next ACK of new data acknowledges: two if ACKs are delayed, else one.

    If the ACK of a packet that had arrived before is being delayed, the result is also one
    (``delay_duplicate``).
    """
    waits = f.delayed_ack and f.quick_acks_left <= 0.0 and not f.duplicate_held
    return 2.0 if waits else 1.0


@jit
def delack_expiry(f: Sender) -> float:
    """The time at which the delayed ACK is sent if no second packet arrives before.

    The result is ``NEVER`` if no ACK is being delayed.
    """
    return f.delack_expires if f.delack_packets > 0.0 or f.duplicate_held else NEVER


@rare
def _receiver_rto(f: Sender) -> float:
    """The receiver's own retransmission timeout, in ticks of Linux's clock.

    The receiver sends no data. So it has only one RTT sample, that of the handshake.
    """
    return np.ceil(rto_of(f.receiver_rtt, 0.5 * f.receiver_rtt) / JIFFY)


@jit
def adapt_ato(f: Sender, packets: float, begin: float, end: float) -> None:
    """Adapt ato, Linux's timeout for delayed ACKs, to packets that arrive in order.

    The kernel does so in tcp_event_data_recv. The first of the ``packets`` packets arrives at
    ``begin``, the last at ``end``, and the others at equal intervals between. If the receiver has
    heard nothing for longer than its own retransmission timeout, it sends its next ACKs without
    delay.
    """
    if not f.delayed_ack or not f.adapts_ack_pause or packets <= 0.0:
        return
    least_ato = np.rint(f.ack_pause / JIFFY)  # 40 ms, in ticks
    step = (end - begin) / max(packets - 1.0, 1.0)
    for k in range(int(min(packets, SETTLES))):  # after so many, further equal gaps change little
        at = begin + k * step
        gap = ticks_at(f, at) - ticks_at(f, f.heard_at)  # since the packet before
        f.heard_at = at
        if f.ack_ticks == 0.0:  # the first packet of the flow
            f.ack_ticks = least_ato
        elif gap <= np.floor(0.5 * least_ato):  # within 20 ms
            f.ack_ticks = np.floor(0.5 * f.ack_ticks) + np.floor(0.5 * least_ato)
        elif gap < f.ack_ticks:  # later, but within ato
            f.ack_ticks = min(np.floor(0.5 * f.ack_ticks) + gap, _receiver_rto(f))
        elif gap > _receiver_rto(f):
            f.quick_acks_left = max(f.quick_acks_left, f.quick_acks)  # tcp_incr_quickack
    f.heard_at = end


@jit
def use_quick_acks(f: Sender, acks: float) -> None:
    """Record that the receiver has sent ``acks`` ACKs (in Linux tcp_event_ack_sent).

    At the start of a flow and after a long silence, Linux's receiver sends a certain number of ACKs
    without delay. After the last of them it delays ACKs. The timeout for delayed ACKs (ato) then
    begins at 40 ms.
    """
    if not f.delayed_ack:
        return
    if f.adapts_ack_pause and 0.0 < f.quick_acks_left <= acks:
        f.ack_ticks = np.rint(f.ack_pause / JIFFY)
    f.quick_acks_left -= acks


@rare
def pause_ended(f: Sender) -> None:
    """Double ato, Linux's timeout for delayed ACKs: it has expired without a second packet."""
    if f.adapts_ack_pause:
        f.ack_ticks = min(2.0 * f.ack_ticks, _receiver_rto(f))


@jit
def _pause(f: Sender) -> float:
    """The pause: for how many seconds the receiver delays an ACK if no second packet arrives.

    It is the constant ``ack_pause`` unless the receiver adapts it, as Linux does.
    """
    if not f.adapts_ack_pause:
        return f.ack_pause
    return min(f.ack_ticks * JIFFY, max(f.receiver_rtt, f.ack_pause), LONGEST_PAUSE)


@jit
def _set_delack_timer(f: Sender, now: float) -> None:
    """Set the time at which the delayed ACK of a packet is sent if no second packet arrives.

    The packet has arrived at ``now``. There are two cases:

    - The receiver of Linux (``adapts_ack_pause``) sets a timer for the pause, which it adapts to
      the flow (tcp_send_delayed_ack). Such a timer expires only at a tick of the host's clock, so
      the ACK may leave later than after the pause (``timer.expiry``).
    - Other receivers send the ACK exactly after the constant pause ``ack_pause``.

    The function also stores the delay of this ACK (``delack_delay``). If no second packet arrives,
    the sender's RTT sample includes this delay (``sample_single``).
    """
    if f.adapts_ack_pause:
        f.delack_expires = expiry(f, now, _pause(f))
        f.delack_delay = f.delack_expires - now
    else:
        f.delack_expires = now + f.ack_pause
        f.delack_delay = f.ack_pause


@jit
def silent_packets(f: Sender, r: Sender, first: float, packets: float, at: float) -> float:
    """How many of ``packets`` arriving packets the receiver does not answer with an ACK at once.

    They arrive at time ``at``, and the first of them has the number ``first``. The receiver answers
    a packet at once in five cases:

    - It misses a packet with a lower number.
    - It has a packet with a higher number.
    - It is still delaying the ACK of an earlier packet.
    - It sends its ACKs without delay at this time (``use_quick_acks``).
    - It has this packet already. (But ns-2's receiver may delay this ACK, ``delay_duplicate``.)

    Otherwise it delays the ACK and waits for a second packet (``DelAckSink::recv`` in tcp-sink.cc).

    ``r`` is what the receiver knows before these packets arrive. ``f`` is the sender's record, from
    which the longest delay of an ACK follows. (Linux adapts this delay to the flow.)
    """
    if f.adapts_ack_pause and at - r.heard_at > _receiver_rto(f) * JIFFY:
        r.quick_acks_left = max(r.quick_acks_left, f.quick_acks)
    if r.delack_expires < at:
        r.delack_packets = 0.0  # its ACK has left, because no second packet came
    silent = 0.0
    if received_beyond(r) > 0.0 or first > r.acked:  # a packet is missing: all ACKs leave at once
        r.delack_packets = 0.0
    elif first == r.acked:  # packets in order
        quick = min(packets, r.quick_acks_left)  # packets answered at once
        r.quick_acks_left -= quick
        waiting = r.delack_packets + packets - quick
        answered = np.floor(0.5 * waiting)  # one ACK for two packets
        silent, r.delack_packets = packets - quick - answered, waiting - 2.0 * answered
        r.heard_at = at
    else:  # duplicates: ns-2's receiver may delay the ACK of the last packet in order
        last = f.delays_duplicates and first + packets == r.acked and r.quick_acks_left <= 0.0
        waits = last and (packets > 1.0 or r.delack_packets == 0.0)
        silent = r.delack_packets = 1.0 if waits else 0.0
    r.delack_expires = at + _pause(f)
    return silent


@jit
def delay_new_ack(f: Sender, p: Parcel, now: float) -> float:
    """Delay the ACK of the first packet of ``p``; the receiver misses no packet before it.

    If a second packet arrives before the delayed ACK is sent, one ACK acknowledges both. Only the
    second packet then gives an RTT sample. Returns the arrival time of the packet
    (``begin_ack_delay``).
    """
    arrived_at = begin_ack_delay(f, p, now)
    f.received, f.arrival_sent_at = f.acked + 1.0, p.sent_at  # record that the packet has arrived
    return arrived_at


@jit
def begin_ack_delay(f: Sender, p: Parcel, now: float) -> float:
    """Delay the ACK of the first packet of ``p``, and set the timer that ends the delay.

    The caller has checked that the receiver has no packet with a higher number. Returns the arrival
    time of the packet, as this file counts it: the time at which its ACK would reach the sender
    without the delay. From this time on the simulation looks for the flow's next event. This may be
    the arrival of a second packet or the end of the delay.

    If the packet was missing, it stays in the list of missing packets until the ACK is sent. Then
    ``losses.fill`` removes it.
    """
    arrived_at = acknowledge(f, p, 1.0, now, 0.0)  # without an RTT sample
    f.delack_packets = 1.0
    _set_delack_timer(f, arrived_at)
    return arrived_at


@rare
def delay_duplicate(f: Sender, p: Parcel, now: float) -> float:
    """Delay the ACK of a packet that ns-2's receiver has already.

    The receiver does so if it has no packet with a higher number. It treats the packet as the first
    of two packets in order (``DelAckSink::recv`` in tcp-sink.cc). When the next packet arrives, the
    receiver sends one ACK for both at once. Returns the arrival time of the packet, as
    ``begin_ack_delay`` does.
    """
    arrived_at = acknowledge(f, p, 1.0, now, 0.0)
    f.duplicate_held = True
    _set_delack_timer(f, arrived_at)
    return arrived_at


@jit
def hold_duplicate(f: Sender, acks: float) -> float:
    """Seconds for which Linux's receiver delays ``acks`` duplicate ACKs, to send fewer of them.

    For each missing packet the receiver sends the first three duplicate ACKs without delay (the
    kernel's __tcp_ack_snd_check). It delays later ones for ``late_duplicates`` seconds (1 ms), or
    for a twentieth of the RTT if this is less. While the receiver sends the ACKs of new data
    without delay (``use_quick_acks``), it also sends duplicate ACKs without delay.
    """
    if not f.delayed_ack or f.quick_acks_left > 0.0 or f.late_duplicates == 0.0:
        return 0.0
    if f.dups_for != f.acked:  # another packet is missing now: count its duplicate ACKs anew
        f.dups_for, f.dups_sent = f.acked, 0.0
    if f.dups_sent < DUPLICATES_AT_ONCE:
        f.dups_sent += acks
        return 0.0
    return min(f.late_duplicates, 0.05 * f.receiver_rtt)


@rare
def sample_single(f: Sender, delay: float) -> None:
    """Take the RTT sample of a delayed ACK that acknowledges only one packet.

    The receiver has delayed the ACK by ``delay`` seconds. The sample includes this delay. (When the
    packet arrived, ``acknowledge`` took no sample, and ``rtt_last`` is its RTT without the delay.)
    """
    f.rtt_total += delay
    f.rtt_sum += f.rtt_last + delay
    f.rtt_count += 1.0
    if keeps_mean(f):
        update_mean(f, f.rtt_last + delay, 1.0)
