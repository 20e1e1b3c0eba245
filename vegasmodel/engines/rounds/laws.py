"""Changes a sender's window at ACKs, ends of round trips, losses, ECN marks and timeouts.

- ``grow`` changes the window when ACKs of new data arrive.
- ``end_round`` changes the window at the end of a round trip.
- ``cut`` changes the window at a loss. But for ns-2's Vegas and the Vegas of the papers (variants
  ``ns2`` and ``paper``) the function for losses is ``cut_overdue``.
- ``enter_cwr`` changes the window when an ACK reports an ECN mark.
- ``retransmission_timeout`` and ``idle_timeout`` change the window at a timeout.

All laws of congestion control share these functions. Each law says in its file in ``laws/`` by how
much the window changes. TCP implementations differ in details. A flow's ``variant`` selects the
implementation, for example that of the Linux kernel (``linux``).
"""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

import math

import numpy as np

from vegasmodel.engines.kept_numbers import kept_at
from vegasmodel.engines.outside import call
from vegasmodel.engines.rounds.bictcp import acks_to_packet, cong_avoid, recalc_ssthresh, reset
from vegasmodel.engines.rounds.rules import BY_ADDRESS, choice, rule
from vegasmodel.engines.rounds.state import (
    OPEN,
    RECOVERY,
    SLOW_START,
    WITHOUT_ROUNDING,
    Sender,
    jit,
    rare,
)
from vegasmodel.engines.rounds.timer import arm, back_off, reordering_window, stop_timing
from vegasmodel.laws import packets
from vegasmodel.laws.packets import NEVER, SLACK, Round
from vegasmodel.laws.source import Source

CALLS_PER_WINDOW = 8.0  # least number of calls of a user's law per window of ACKs
cwnd_packets = rule(packets.cwnd_packets)
keeps_up = rule(packets.keeps_up)


@jit
def in_flight(f: Sender) -> float:
    """The number of packets that the flow has sent and that are not yet acknowledged."""
    return f.next - f.acked


@jit
def has_pipe(f: Sender) -> bool:
    """Whether the sender now counts the packets that it thinks to be in the network (``pipe``).

    A sender with SACK does so during a recovery. ns-2's CUBIC does so whenever a packet is missing.
    """
    return f.scoreboard and (f.phase == RECOVERY or (f.counts_places and f.holes > 0))


@jit
def outstanding(f: Sender) -> float:
    """The number of packets that count against the window.

    If the sender counts the packets that it thinks to be in the network (``has_pipe``), it is this
    count. Otherwise it is the number of packets that were sent and are not yet acknowledged.
    """
    return f.pipe if has_pipe(f) else in_flight(f)


@jit
def window(f: Sender) -> float:
    """The window in packets: cwnd in whole packets, plus what fast recovery has added to it.

    The result is at most the flow's ``max_window``.
    """
    return min(cwnd_packets(f) + f.inflated, np.floor(f.max_window))


@rare
def _before_cut(f: Sender) -> float:
    """The window before a cut, in whole packets: cwnd, but at most the flow's ``max_window``.

    What fast recovery has added to the window does not count. Most cuts multiply this window
    (``_decreased`` has the exception).
    """
    return min(cwnd_packets(f), np.floor(f.max_window))


@jit
def in_slow_start(f: Sender) -> bool:
    """Whether the flow is in slow start, so that each ACK of new data adds a packet to its window.

    Vegas (variants ``ns2`` and ``paper``) enlarges its window only in every second round trip of
    slow start. In the other round trips the result is False.
    """
    if f.overdue_checks:
        return f.growth == 1.0 and f.cwnd < f.ssthresh
    return f.cwnd < f.ssthresh


@jit
def _round_trips(f: Sender, rtt: float) -> float:
    """Round trips since the flow's last loss, for a user's law; ``rtt`` is the present RTT, s."""
    return f.trips + max(f.time - f.trips_at, 0.0) / rtt


@jit
def _source(f: Sender, rtt: float) -> Source:
    """The state of a flow, in the form that the functions of a user's congestion control read.

    These functions are those of ``laws.law.FUNCTIONS``. ``rtt`` is the RTT in seconds that they
    read. At the end of a round trip it is the mean RTT of that round trip, otherwise the last RTT.
    The backlog follows from it: (RTT - baseRTT) W/RTT, but in Linux (RTT - baseRTT) W/baseRTT
    (``backlog_over_base``). ``f.memory`` and ``f.since`` are from the last loss.
    """
    base = min(f.min_rtt, rtt) if math.isnan(f.known_base) else f.known_base
    backlog = cwnd_packets(f) * (rtt - base) / (base if f.backlog_over_base else rtt)
    elapsed, trips = max(f.time - f.since, 0.0), _round_trips(f, rtt)
    return Source(f.cwnd, rtt, base, backlog, elapsed, f.memory, f.alpha, f.beta, trips)


@jit
def _per_ack(f: Sender) -> float:
    """The packets by which one ACK changes the window of a flow with a user's congestion control.

    The user's function ``drift`` returns the change of the window W per round trip. One ACK makes
    1/W of this change. Some laws decide at each ACK, not once per round trip. For these, W is in
    whole packets if the flow runs on Linux (tcp_cong_avoid_ai).
    """
    if f.once:
        return f.growth
    acks_per_round = cwnd_packets(f) if f.whole_window else f.cwnd
    return call(f.drift_at, _source(f, f.rtt_last), kept_at(f)) / acks_per_round


@jit
def _acks_to_change(f: Sender) -> float:
    """How many ACKs the simulator processes together, at least 1, with a user's congestion control.

    A group of such ACKs ends at the latest when the window grows to its next whole number of
    packets, or falls below its present one. A law that decides at each ACK has shorter groups,
    because the simulator calls its function ``drift`` only once per group: a group has at most
    1/``CALLS_PER_WINDOW`` of the ACKs of a window, but at least one ACK.
    """
    step = _per_ack(f)
    # packets by which the window has to grow or to fall before the number of whole ones changes
    distance = cwnd_packets(f) + 1.0 - f.cwnd if step > 0.0 else f.cwnd - cwnd_packets(f) + SLACK
    acks = max(1.0, np.ceil(distance / abs(step) - SLACK)) if step != 0.0 else NEVER
    return acks if f.once else min(acks, max(1.0, np.floor(f.cwnd / CALLS_PER_WINDOW)))


@jit
def _upon_acks(f: Sender, acks: float) -> None:
    """Change the window of a flow with a user's congestion control, at ``acks`` ACKs of new data.

    The function also counts the round trips since the last loss, which the user's law may ask for.
    """
    f.cwnd = min(max(f.cwnd + acks * _per_ack(f), 1.0), f.max_window)
    f.trips, f.trips_at = _round_trips(f, f.rtt_last), f.time
    f.ssthresh = min(f.ssthresh, f.cwnd)  # slow start ends if the window falls (tcp_vegas)


@jit
def _upon_round(f: Sender, over: Round) -> None:
    """At the end of a round trip, ask a user's congestion control how the window is to change.

    ``over`` describes the round trip that is over. Slow start ends if the law ends it as Vegas does
    (``f.probes``) and the backlog exceeds gamma. Then the law's function ``update`` stores new
    values of the numbers that the law keeps. Its function ``drift`` returns the packets by which
    the window is to change in the next round trip.
    """
    source = _source(f, over.rtt)
    if f.probes and f.cwnd < f.ssthresh and source.backlog > f.gamma:
        f.ssthresh = max(cwnd_packets(f), 2.0)
    if f.update_at != 0:
        call(f.update_at, source, kept_at(f))
    drift = call(f.drift_at, source, kept_at(f))
    f.growth = drift / f.cwnd  # packets by which each ACK of the next round trip changes cwnd
    f.trips, f.trips_at = source.round_trips, f.time


@jit
def _upon_each(f: Sender, exact: bool) -> None:
    """Do nothing: a user's congestion control has no rule that ``decide_per_ack`` could call.

    Both arguments are those of the rules of other laws, and are not used.
    """


_laws_acks_to_change = choice("acks_to_change", _acks_to_change)
_laws_acks = choice("upon_acks", _upon_acks)
_laws_round = choice("upon_round", _upon_round)
_laws_each = choice("upon_each", _upon_each)


@jit
def acks_to_change(f: Sender) -> float:
    """How many ACKs of new data the simulator may process together, at least 1.

    ACKs that are processed together must have the same effect. So the last of them is at the latest
    one of these ACKs:

    - in slow start, the ACK that ends slow start;
    - otherwise, the ACK at which the window grows to its next whole number of packets. (With a
      user's congestion control the window may fall. Then it is the ACK at which the window falls
      below its present whole number.)
    """
    if in_slow_start(f):
        return max(1.0, np.ceil(f.ssthresh - f.cwnd - SLACK))
    if f.bictcp:
        return acks_to_packet(f)
    return _laws_acks_to_change(f)


@jit
def grow(f: Sender, acks: float, now: float) -> None:
    """Change the window when ``acks`` ACKs of new data arrive, the last of them at ``now``.

    In slow start each ACK adds a packet (in ns-2's Vegas only if the window is nearly full).
    Otherwise the flow's congestion control law decides. If an ECN mark has cut the window, the
    window does not change until a packet sent after the cut is acknowledged.
    """
    if in_cwr(f):
        return
    if in_slow_start(f):
        f.cwnd += acks if keeps_up(f, acks) else 0.0
    elif f.bictcp:
        cong_avoid(f, acks, now)
    else:
        _laws_acks(f, acks)


@jit
def decide_per_ack(f: Sender) -> None:
    """Let Vegas, which usually decides once per round trip, decide at this ACK.

    This is for experiments: the function is called only if the argument ``without`` of ``run.run``
    has the entry ``"rounds"``. A comparison with a usual run shows how much it matters that Vegas
    decides only once per round trip.
    """
    _laws_each(f, (f.without & WITHOUT_ROUNDING) != 0)


@rare
def end_round(f: Sender, now: float, outstanding: float, acked: float) -> None:
    """End a round trip: the congestion control law decides how the window changes in the next one.

    ``outstanding`` is the number of packets in flight as the law counts it. ns-2's Vegas counts
    from the last packet acknowledged on, so it counts one packet more than are in flight after the
    ACK. ``acked`` is the number of packets that the last ACK of the round trip acknowledges.
    """
    rtt = f.rtt_sum / f.rtt_count if f.rtt_count > 0.0 else now - f.round_start
    length = f.next - f.round_end  # packets sent in this round
    if length <= 1.0 and f.next < f.size:  # not at the end of its data
        f.lone_rtt = max(f.lone_rtt, rtt)
    exact = (f.without & WITHOUT_ROUNDING) != 0
    _laws_round(f, Round(rtt, outstanding, length, f.phase == OPEN, exact, acked))
    f.round_end, f.round_start = f.next, now
    f.rtt_sum, f.rtt_count, f.rtt_min = 0.0, 0.0, NEVER


@jit
def _factor(f: Sender) -> float:
    """The factor by which a loss multiplies the window; in slow start ns-2 uses at most 1/2."""
    halves = f.halves_in_slow_start and f.cwnd < f.ssthresh
    return min(f.decrease, 0.5) if halves else f.decrease


@rare
def _decreased(f: Sender, factor: float) -> float:
    """The window after a cut: the window before it, at most ``max_window``, times ``factor``.

    The window before the cut and the result are rounded down to whole packets, unless the sender's
    TCP implementation keeps fractions of packets after a cut (``fractional_cut``).
    """
    if f.fractional_cut:
        return factor * min(f.cwnd, f.max_window)
    return np.floor(factor * _before_cut(f))


@rare
def _window_after_loss(f: Sender) -> float:
    """The window after a loss or an ECN mark; the caller raises it if it is below the minimum."""
    if f.bictcp:
        recalc_ssthresh(f, cwnd_packets(f))
    if f.rules != BY_ADDRESS or f.bictcp:
        return _decreased(f, _factor(f))
    source, before = _source(f, f.rtt_last), min(f.cwnd, f.max_window)
    f.memory = call(f.remember_at, source, kept_at(f)) if f.remember_at != 0 else before
    f.since, f.trips, f.trips_at = f.time, 0.0, f.time
    return call(f.cut_at, source, kept_at(f)) if f.cut_at != 0 else _decreased(f, _factor(f))


@jit
def dupack_threshold(f: Sender, later: float) -> float:
    """The number of duplicate ACKs that signal a loss: DupThresh, in Linux sometimes fewer.

    ``later`` is the time in seconds from the sending of the missing packet to the sending of the
    packet that caused the duplicate ACK. Linux allows a certain time for reordering (RACK, RFC
    8985). If ``later`` is at least this time, the duplicate ACKs received so far signal a loss.
    """
    early = f.rack and f.dupacks < 3.0 and later >= reordering_window(f)
    return f.dupacks if early else f.dup_thresh


@rare
def cut(f: Sender) -> bool:
    """Cut the window because of a loss and begin a recovery, but only once per window of data.

    Returns True if the caller must now retransmit the first missing packet. There are three cases:

    - A loss has cut cwnd, and a packet sent before this cut is not yet acknowledged. The result is
      False. With ns-2's old defaults (``swells_uncut``) the window grows by three packets, for the
      three duplicate ACKs.
    - An ECN mark has cut cwnd, and a packet sent before this cut is not yet acknowledged. cwnd is
      not cut again, but a recovery begins, and the result is True.
    - Otherwise cwnd is cut, a recovery begins, and the result is True.

    Tahoe begins slow start instead of a recovery. Slow start sends the missing packet, so the
    result is False for Tahoe.
    """
    # Whether a packet sent before the last cut is not yet acknowledged. ns-2 needs an ACK beyond
    # ``recover``; for Linux with SACK an ACK up to it suffices (tcp_try_undo_recovery).
    cut_before = f.acked < f.recover or (f.acked == f.recover and f.must_pass_recover)
    if cut_before and not f.echoed:  # it was a loss that cut the window, not an ECN mark
        if f.swells_uncut:
            f.inflated = 3.0
        return False
    before = _before_cut(f)
    if not in_cwr(f):  # else the window has been cut already, and the packet is sent again
        f.cwnd = max(_window_after_loss(f), f.least_after_loss)
        f.ssthresh = max(np.floor(f.cwnd), 2.0)
        f.cwnd_cnt = 0.0
        f.recover = f.high
    # neither a timeout nor an ECN mark has caused this cut, and no partial ACK has come since
    f.timed_out, f.echoed, f.partial = 0, 0, 0
    if f.recovery == SLOW_START:
        f.cwnd, f.next = 1.0, f.acked
        return False  # slow start sends the missing packet
    f.phase = RECOVERY
    f.inflated = 0.0 if f.scoreboard else 3.0  # one packet for each of the three duplicate ACKs
    f.pipe = f.high - f.acked - f.dupacks  # each duplicate ACK reports a packet that has arrived
    f.probed = 0.0  # Linux may send a tail loss probe again
    # proportional rate reduction (RFC 6937) begins to count packets
    f.recover_in_flight, f.prr_delivered, f.prr_out = before, 1.0, 1.0
    f.flight_limit = before  # for ns-2's CUBIC (``acks.limit_flight``)
    return True


@rare
def cut_overdue(f: Sender, sent_at: float, now: float) -> bool:
    """Cut Vegas's window before the retransmission of its first missing packet.

    Vegas has the variant ``ns2`` or ``paper``. The missing packet was sent at the time ``sent_at``.
    If the window has been cut since then, it is not cut again. A cut multiplies the window by
    ``decrease``, usually 3/4. If the packet counts as sent twice, the variant ``ns2`` halves the
    window instead. The window does not fall below 2 packets. After the cut one packet is added for
    each duplicate ACK that has arrived.

    Returns True if the caller is to retransmit the packet. If the packet was sent before a timeout,
    the function does nothing and returns False.
    """
    if f.timed_out and f.acked <= f.recover:
        return False
    # the first missing packet was sent twice, or ns-2's Vegas takes it for such a packet
    sent_twice = f.acked < f.resent or f.stale <= f.acked < f.stale_end
    f.recover, f.timed_out = f.high, 0  # packets below ``high`` were sent before this cut
    # at so many of the next ACKs of new data Vegas checks for further losses
    f.rechecks = min(2.0, f.next - f.acked + 1.0)
    f.overdue_factor *= 2.0 if sent_twice else 1.125  # lengthens the fine timeout
    if f.changed < sent_at:  # the window has not been cut since the packet was sent
        win = window(f)
        if f.real_numbers:
            f.deflated = max(f.decrease * f.cwnd, 2.0)
        elif win <= 3.0:
            f.deflated = 2.0
        else:
            f.deflated = win - np.floor((0.5 if sent_twice else 1.0 - f.decrease) * win)
        f.cwnd, f.changed = f.deflated + f.dupacks, now
    back_off(f)
    arm(f, now)
    stop_timing(f)
    f.resent = max(f.resent, f.acked + 1.0)
    if not sent_twice:
        f.dupacks = 3.0  # each further duplicate ACK enlarges the window (``check_at_duplicate``)
    return True


@jit
def deflate(f: Sender) -> None:
    """At an ACK of new data, undo what duplicate ACKs have added to Vegas's window.

    Vegas has the variant ``ns2`` or ``paper``. The window changes only if there were more than
    three duplicate ACKs. In this case ssthresh becomes 2 packets. The count of duplicate ACKs
    returns to 0 in any case.
    """
    if f.dupacks > 3.0 and f.cwnd > f.deflated:
        f.cwnd, f.ssthresh = f.deflated, 2.0
    f.dupacks = 0.0


@rare
def restart_when_idle(f: Sender) -> None:
    """Begin a new round trip of Linux's Vegas when it sends while nothing is in flight.

    Vegas discards the RTT samples of this round trip and the baseRTT that it has measured. The
    kernel does so at its event CA_EVENT_TX_START. Other senders do nothing.
    """
    if f.restarts_rounds:
        f.round_end, f.rtt_count, f.rtt_min = f.high, 0.0, NEVER
        if math.isnan(f.known_base):
            f.base = NEVER


@jit
def prr_allowance(f: Sender, acks: float, advanced: float) -> float:
    """How many packets Linux may send in recovery when ``acks`` ACKs arrive (PRR, RFC 6937).

    Let W be the window after the cut and F the window before it. While more than W packets are in
    flight, Linux sends W/F packets for each packet delivered. Afterwards it sends one packet for
    each packet delivered, and one more at a partial ACK (``advanced`` is 1), but only until W
    packets are in flight.
    """
    f.prr_delivered += acks
    if f.pipe > f.cwnd:
        allowed = np.ceil(f.prr_delivered * f.cwnd / f.recover_in_flight - SLACK) - f.prr_out
    else:
        allowed = min(f.cwnd - f.pipe, max(f.prr_delivered - f.prr_out, acks) + advanced)
    return max(np.floor(allowed + SLACK), 0.0)


@rare
def enter_cwr(f: Sender) -> None:
    """Cut the window because of an ECN mark, but only once per window of data.

    The window is not cut while a packet that was sent before the last cut is unacknowledged, unless
    that cut was at a timeout. CUBIC and users' laws cut the window as at a loss. All other laws
    halve it.
    """
    if f.acked >= f.recover or f.timed_out:
        before = _before_cut(f)
        f.cwnd = max(_decreased(f, 0.5) if f.rules != BY_ADDRESS else _window_after_loss(f), 1.0)
        f.ssthresh = max(np.floor(f.cwnd), 2.0)
        f.recover, f.timed_out, f.echoed = f.high, 0, 1
        f.flight_limit = before


@jit
def in_cwr(f: Sender) -> bool:
    """Whether an ECN mark has cut the window and no packet sent after the cut is acknowledged."""
    return f.echoed == 1 and f.acked <= f.recover


@rare
def retransmission_timeout(f: Sender, now: float) -> None:
    """Handle a retransmission timeout: begin slow start at the first unacknowledged packet.

    The sender will then send all packets again from that packet on. ns-2's CUBIC
    (``keeps_scoreboard``) begins a recovery instead, in which it sends again only the packets that
    SACK has not reported.

    The retransmission timeout is doubled, up to a limit. This function sends no packets. The caller
    sends what the new window allows.
    """
    # Linux has cut already if the timeout comes within a recovery or is the second in a row
    if not f.one_cut_in_loss or not (f.phase == RECOVERY or (f.timed_out and f.backoff > 1.0)):
        half = np.floor(_before_cut(f) / 2.0)
        f.ssthresh = max(half if f.rules != BY_ADDRESS else np.floor(_window_after_loss(f)), 2.0)
    if f.bictcp:
        reset(f, now)
    # slow start begins with one packet, with two for Vegas of ns-2 and of the papers
    f.cwnd, f.cwnd_cnt = 2.0 if f.overdue_checks else 1.0, 0.0
    # for Vegas: the window without duplicate ACKs, the time of its last cut, and the first packet
    # that cannot have been sent twice
    f.deflated, f.changed, f.resent = 0.0, now, f.high
    # duplicate ACKs no longer count; packets below ``high`` were sent before this cut, a timeout
    f.inflated, f.dupacks, f.flight_limit = 0.0, 0.0, 0.0
    f.recover, f.timed_out, f.echoed = f.high, 1, 0
    if f.keeps_scoreboard and f.high > f.acked:
        f.phase = RECOVERY
    else:
        f.phase, f.next = OPEN, f.acked
    back_off(f)
    stop_timing(f)
    f.timeouts += 1.0
    restart_when_idle(f)


@rare
def idle_timeout(f: Sender, now: float) -> None:
    """Handle the expiry of ns-2's retransmission timer while no packet is in flight.

    The sender has waited for a random time that is longer than its timeout. It goes on waiting, and
    then sends no packet again. But its window becomes one packet, or that of its start with CUBIC.
    ssthresh and the timeout stay (``restart_bugfix_`` in tcp.cc and tcp-linux.cc). Only ns-2's
    Vegas makes no difference between this timeout and any other (tcp-vegas.cc).
    """
    if f.overdue_checks:
        retransmission_timeout(f, now)
    elif f.keeps_scoreboard:
        f.cwnd, f.flight_limit = f.first_window, 0.0
    else:
        f.cwnd, f.inflated, f.dupacks = 1.0, 0.0, 0.0
        f.recover, f.timed_out = f.high, 1
    stop_timing(f)
    arm(f, now)
