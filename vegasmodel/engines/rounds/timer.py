"""Simulates the timers of a sender, which expire when ACKs do not come.

When the retransmission timer expires, the sender takes all packets in flight for lost. In BSD and
ns-2 this timer counts coarse clock ticks, and the RTT of one packet at a time is measured. Linux
measures the RTT with every ACK.

Linux has two more timers, which usually expire earlier. One is the timer of the tail loss probe
(TLP, ``tcp_schedule_loss_probe``). When it expires, the sender sends one more packet, the probe.
The other is the reordering timer. When it expires, the sender takes the first missing packet for
lost.

The Vegas of ns-2 and that of the papers (``variant = "ns2"`` or ``"paper"``) also have a fine
timeout, which is not rounded to clock ticks. No timer runs for it. Vegas only tests at certain ACKs
whether a packet was sent longer ago than this timeout: at each duplicate ACK, and at the first two
ACKs of new data after a retransmission.
"""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

import numpy as np

from vegasmodel.engines.rounds.state import (
    OPEN,
    REORDERING,
    RETRANSMIT,
    TAIL_PROBE,
    WITHOUT_TICKS,
    Sender,
    jit,
    rare,
)
from vegasmodel.metrics import Floats
from vegasmodel.stacks.stack import MIN_RTO

TIMEOUT_MIN = 0.002  # seconds that Linux adds to its two early timers; TCP_TIMEOUT_MIN_US
JIFFY = 0.004  # seconds; Debian's kernel has 250 ticks a second
LEVELS = 63.0, 504.0  # ticks: for longer pauses, timers expire at fewer ticks only (``expiry``)
GRAINS = 64.0  # ticks: for pauses from ``LEVELS[1]`` on, at multiples of this number only
# the weight of the old smoothed RTT, and of its old mean deviation, after 0, 1, 2 ... samples
MEAN_KEPT, DEVIATION_KEPT = (np.array([kept**k for k in range(65)]) for kept in (0.875, 0.75))
INITIAL_RTO = 1.0  # seconds until a lost SYN is sent again; TCP_TIMEOUT_INIT


@jit
def ticks_at(f: Sender, now: float) -> float:
    """The number of ticks of Linux's clock at time ``now``, counted from the clock's start.

    A tick is ``JIFFY`` seconds. The clock started ``boot_time`` seconds before the simulation.
    """
    return np.floor((now + f.boot_time) / JIFFY)


@jit
def expiry(f: Sender, now: float, pause: float) -> float:
    """The time at which a timer of Linux expires if it is set at ``now`` for ``pause`` seconds.

    The timer never expires before the pause is over, and only at a tick of the host's clock, every
    ``JIFFY`` seconds. If the pause is at least 63 ticks, the timer expires only at a tick whose
    number is a multiple of 8. If it is at least 504 ticks, the number is a multiple of 64 (the
    kernel's calc_index). For pauses of 4032 ticks (16 s) or more the kernel takes multiples of 512;
    this is neglected here. The clock started at a random time (``boot_time``).
    """
    ticks = np.ceil(pause / JIFFY - 1e-9)  # a rounding error must not add a tick
    grain = 1.0 if ticks < LEVELS[0] else (8.0 if ticks < LEVELS[1] else GRAINS)
    last = np.floor((ticks_at(f, now) + ticks) / grain)
    return (last + 1.0) * grain * JIFFY - f.boot_time


@jit
def rto_of(rtt: float, deviation: float) -> float:
    """Linux's retransmission timeout for a smoothed RTT and its mean deviation, all in seconds."""
    return rtt + max(4.0 * deviation, MIN_RTO)


@jit
def timeout(f: Sender) -> float:
    """The retransmission timeout (RTO) in seconds.

    It is at least ``MIN_RTO`` (0.2 s) and at most ``longest_rto``. With ``floor_before_backoff``
    the minimum applies to the timeout before it is multiplied by the backoff, as in RFC 2988
    (``rfc2988_`` and ``minrto_`` in ns-2). Otherwise it applies to the product.
    """
    if f.floor_before_backoff:
        return min(f.backoff * max(f.rto, MIN_RTO), f.longest_rto)
    return min(max(f.backoff * f.rto, MIN_RTO), f.longest_rto)


@jit
def arm(f: Sender, now: float) -> None:
    """Restart the retransmission timer at the time ``now``.

    In ns-2 it expires exactly when the timeout is over. A timer of Linux (``timer_wheel``) expires
    only at certain ticks of the host's clock (``expiry``).

    Linux may send a tail loss probe before the timeout; the timer is then set for the probe
    instead. The probe is sent two smoothed RTTs from now, plus ``TIMEOUT_MIN`` (2 ms). If the
    window is below two packets, only one packet is in flight, and the receiver may delay its ACK.
    So the sender then adds ``MIN_RTO`` (0.2 s) in place of ``TIMEOUT_MIN``. Linux sends no probe

    - before its first RTT sample,
    - in a recovery, or while it knows of missing packets,
    - while it sends the packets again that were in flight at a timeout,
    - while a packet up to the last probe is not acknowledged.
    """
    pause = timeout(f)
    f.deadline, f.timer_kind = now + pause, RETRANSMIT
    if not f.timer_wheel:
        return
    f.deadline = expiry(f, now, pause)
    if not f.tail_probe or f.phase != OPEN or f.holes > 0 or f.mean_rtt == 0.0:
        return
    to_probe = 2.0 * f.mean_rtt + (MIN_RTO if f.cwnd < 2.0 else TIMEOUT_MIN)  # seconds
    after_timeout = f.timed_out and f.acked < f.recover
    if to_probe < pause and f.acked >= f.probed and not after_timeout:
        f.deadline, f.timer_kind = expiry(f, now, to_probe), TAIL_PROBE


@rare
def syn_lost(f: Sender) -> float:
    """The time in seconds after which the sender retransmits a lost SYN; each loss doubles it.

    In ns-2 a lost SYN also sets the first window to one packet and ssthresh to two
    (``bugfix_ss_``).
    """
    factor = f.backoff
    f.backoff *= 2.0
    if not f.lost_syn_resets:
        return INITIAL_RTO * factor
    f.cwnd, f.ssthresh = 1.0, 2.0
    return min(f.rto * factor, f.longest_rto)


@rare
def syn_acknowledged(f: Sender, now: float, rtt: float) -> None:
    """Take the flow's first RTT sample, which comes from the handshake.

    The handshake begins at ``now`` and takes ``rtt`` seconds. If a SYN was lost, only a sender with
    timestamps takes the sample.
    """
    if not f.timestamps:
        if f.backoff == 1.0:  # a SYN that was sent again gives no RTT
            f.timed_at = now
            update_ticks(f, now + rtt)
            stop_timing(f)
        return
    f.backoff, f.min_rtt = 1.0, rtt
    begin_mean(f, rtt)
    f.rto = rto_of(rtt, f.rtt_deviation)


@jit
def reordering_window(f: Sender) -> float:
    """The seconds that Linux waits for a reordered packet before the packet counts as lost.

    Linux waits only outside of a recovery, and only while fewer than three duplicate ACKs have
    arrived (tcp_rack_reo_wnd).
    """
    return min(0.25 * f.min_rtt, f.mean_rtt)  # the kernel's srtt_us >> 3 is the mean RTT


@rare
def arm_reordering_timer(f: Sender, now: float, pause: float) -> None:
    """Set Linux's reordering timer (RACK) to expire about ``pause`` seconds after ``now``.

    When it expires, the first missing packet counts as lost.
    """
    f.deadline, f.timer_kind = expiry(f, now, pause + TIMEOUT_MIN), REORDERING


@rare
def back_off(f: Sender) -> None:
    """Double the retransmission timeout after it has expired.

    The function is also called when Vegas with the variant ``ns2`` or ``paper`` retransmits a
    packet before the timeout (``laws.cut_overdue``).

    The timeout is multiplied by a factor, the backoff. Each call doubles the backoff until it is
    64. With ``floor_before_backoff`` it doubles further, until the timeout is ``longest_rto``
    seconds. When the backoff has reached 16, the sender discards its smoothed RTT (``srtt``), as in
    BSD.
    """
    if f.backoff < 64.0 or (f.floor_before_backoff and timeout(f) < f.longest_rto):
        f.backoff *= 2.0
    if f.backoff > 8.0:
        f.rttvar += f.srtt >> 3
        f.srtt = 0


@jit
def stop_timing(f: Sender) -> None:
    """Cancel the RTT measurement in progress: a retransmitted packet has no clear RTT (Karn)."""
    f.timed_at = -1.0


@jit
def time_one_packet(f: Sender) -> None:
    """Begin to measure the RTT of one packet that is being sent, if no measurement is in progress.

    The packet must be sent for the first time: its number is at least ``high``.
    """
    # the packets being sent have the numbers from ``first`` to ``last`` - 1
    last = f.first + f.spread + f.burst
    if f.timed_at < 0.0 and last > f.high:
        # The measurement begins at ``time``, the end of the interval of sending. So it must be of a
        # packet that leaves then. If packets leave evenly in the interval, that is the last one. If
        # all leave together at its end, it is the first of them that was never sent before.
        f.timed = last - 1.0 if f.spread > 0.0 else max(f.high, f.first)
        f.timed_at = f.time


@jit
def restart_timer(f: Sender, now: float) -> None:
    """Restart the retransmission timer at an ACK of new data, and take the RTT sample of the ACK.

    There is a sample only if the ACK acknowledges the packet that is being timed. As in ns-2 until
    2001, the timer is restarted before the sample is taken, so it uses the old estimate of the RTT.
    With ``estimates_first`` the timer is restarted once more after the sample (``timerfix_`` in
    ns-2). For Linux the function only restarts the timer; ``update_mean`` takes Linux's samples.
    """
    arm(f, now)
    if f.timestamps or f.timed_at < 0.0 or f.acked <= f.timed:
        return
    if (f.without & WITHOUT_TICKS) != 0:  # an experiment without clock ticks
        f.rto = rto_of(f.mean_rtt, f.rtt_deviation)
        arm(f, now)
    else:
        update_ticks(f, now)
    f.backoff, f.timed_at = 1.0, -1.0
    if f.estimates_first:
        arm(f, now)


@jit
def update_ticks(f: Sender, now: float) -> None:
    """Update BSD's smoothed RTT, its mean deviation, and the RTO with the timed packet's RTT.

    The RTT is the number of clock ticks from the sending of the packet to ``now``, but at least 1.
    As in BSD, the smoothed RTT ``srtt`` is a whole number of eighths of a tick, and the deviation
    ``rttvar`` one of quarters of a tick.
    """
    # the part of a tick that was over when the packet was sent counts, too
    sample = max(int((now - f.timed_at + (f.timed_at + f.boot_time) % f.tick) / f.tick), 1)
    if f.srtt == 0:  # the first sample, and half of it as the deviation
        f.srtt, f.rttvar = sample * 8, sample * 2
    else:
        error = sample - (f.srtt >> 3)
        f.srtt = max(f.srtt + error, 1)
        f.rttvar = max(f.rttvar + abs(error) - (f.rttvar >> 2), 1)
    f.rto = (((f.rttvar << 3) + f.srtt) >> 3) * f.tick


@jit
def _power(base: float, powers: Floats, exponent: float) -> float:
    """``base`` to the power ``exponent``; the table ``powers`` has small powers, to save time."""
    k = int(exponent)
    return powers[k] if k == exponent and k < powers.shape[0] else base**exponent


@jit
def begin_mean(f: Sender, rtt: float) -> None:
    """Set the first smoothed RTT to ``rtt`` seconds, and its mean deviation to a part of it.

    ns-2's Vegas sets them at its first ACK, even if this ACK gives no RTT sample (``v_sa_`` and
    ``v_sd_`` in tcp-vegas.cc).
    """
    f.mean_rtt, f.rtt_deviation = rtt, f.first_deviation * rtt


@jit
def keeps_mean(f: Sender) -> bool:
    """Whether the sender keeps its smoothed RTT in seconds, and updates it with each RTT sample.

    Two kinds of senders keep it (``mean_rtt``): those of Linux, and Vegas with the variant ``ns2``
    or ``paper``. All others measure the RTT of one packet at a time, in clock ticks, as BSD does
    (``update_ticks``). A run may switch these ticks off (``WITHOUT_TICKS``); all senders then keep
    the smoothed RTT in seconds.
    """
    return f.overdue_checks or f.timestamps or (f.without & WITHOUT_TICKS) != 0


@jit
def update_mean(f: Sender, rtt: float, samples: float) -> None:
    """Update the smoothed RTT (gain 1/8) and its mean deviation (gain 1/4) with RTT samples.

    ``samples`` is the number of samples; each is ``rtt`` seconds. A Linux sender also updates its
    RTO and ends its backoff.
    """
    if f.mean_rtt == 0.0:
        begin_mean(f, rtt)
    error = rtt - f.mean_rtt
    f.mean_rtt += (1.0 - _power(0.875, MEAN_KEPT, samples)) * error
    f.rtt_deviation += (1.0 - _power(0.75, DEVIATION_KEPT, samples)) * (
        abs(error) - f.rtt_deviation
    )
    f.overdue_factor = 1.0  # retransmissions had lengthened Vegas's fine timeout (``overdue``)
    if f.timestamps:  # tcp_ack_update_rtt, by the timestamp of every ACK
        f.rto, f.backoff = rto_of(f.mean_rtt, f.rtt_deviation), 1.0


@jit
def overdue(f: Sender, elapsed: float) -> bool:
    """Whether a packet sent ``elapsed`` seconds ago is overdue, so that Vegas resends it.

    Only Vegas with the variant ``ns2`` or ``paper`` does so. A packet is overdue if ``elapsed`` is
    at least the fine timeout: 17/16 times a factor (``overdue_factor``) times the sum of the
    smoothed RTT and two mean deviations. The factor is 1 after an RTT sample. It grows with each
    retransmission that no timeout causes.
    """
    if not f.overdue_checks or f.mean_rtt == 0.0:
        return False
    return elapsed >= (f.mean_rtt + 2.0 * f.rtt_deviation) * (1.0 + 1.0 / 16.0) * f.overdue_factor
