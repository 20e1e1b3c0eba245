"""Computes CUBIC's window as the Linux kernel does (``tcp_cubic.c``), versions 6.1 and 2.6.

The version of Linux 2.6 is the one that ns-2 contains.

CUBIC of RFC 9438 computes a target: the window that it wants to reach one RTT later. For this RTT
the kernel uses the least RTT that it has measured. From the target the kernel computes a whole
number ``cnt``. After ``cnt`` ACKs the window grows by one packet. Linux 6.1 computes ``cnt`` at
most once per clock tick.

Before the first loss, CUBIC does not know at which window packets are lost. After a timeout it has
forgotten this window. In both cases, until the next loss, ``cnt`` is at most 20 in Linux 6.1, and
always 50 in Linux 2.6 (``Sender.cnt_before_loss``).

The kernel also computes the window that a Reno flow would have reached since the last recovery. If
this window is larger than CUBIC's, the kernel lowers ``cnt``, so that CUBIC's window reaches Reno's
within a round trip. The growth is limited: ``cnt`` is at least ``Sender.least_cnt``.

HyStart (only in Linux 6.1) may end slow start before a loss. It does so when the RTT has grown, or
when a long train of ACKs has arrived. In a train each ACK comes at most 2 ms after the previous
one. A train is long if it lasts longer than (least RTT + 1 ms)/2.
"""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

import numpy as np

from vegasmodel.engines.rounds.rules import rule
from vegasmodel.engines.rounds.state import Sender, jit, rare
from vegasmodel.laws.cubic import SAME_WINDOW
from vegasmodel.laws.packets import NEVER, SLACK, count_acked

_count_acked = rule(count_acked)

CUBE_RTT_SCALE = 410.0  # bic_scale 41 in tenths: C is 410/1024 packets/s^3
CUBE_FACTOR = 2**40 // 410  # 1/C, with seconds counted in 1024ths
SECOND = 1024.0  # BICTCP_HZ: the kernel counts seconds in 1024ths
# about 64 times the cube root of x, at x = 0, 1, 2 ...: the kernel's table (cubic_root)
ROOTS = (
    0, 54, 54, 54, 118, 118, 118, 118, 123, 129, 134, 138, 143, 147, 151, 156,
    157, 161, 164, 168, 170, 173, 176, 179, 181, 185, 187, 190, 192, 194, 197, 199,
    200, 202, 204, 206, 209, 211, 213, 215, 217, 219, 221, 222, 224, 225, 227, 229,
    231, 232, 234, 236, 237, 239, 240, 242, 244, 245, 246, 248, 250, 251, 252, 254,
)  # fmt: skip
CNT_BEFORE_LOSS = 20.0  # largest ``cnt`` while no loss is known
WINDOWS_AT_TARGET = 100.0  # windows of ACKs per packet of growth, at or above the target
HYSTART_MIN_SAMPLES = 8.0  # with more RTT samples in a round trip, a longer RTT ends slow start
HYSTART_LOW_WINDOW = 16.0  # packets: HyStart does not end slow start below this window
HYSTART_ACK_DELTA = 0.002  # seconds: longest gap between two ACKs of a train
HYSTART_ACK_DELAY = 0.001  # seconds, added to the least RTT for the length of a long train
HYSTART_DELAY_MIN, HYSTART_DELAY_MAX = 0.004, 0.016  # seconds: bounds of the growth of the RTT
AFTER_LOSS = 1.0  # seconds (HZ ticks) after a recovery in which RTT samples are ignored


@rare
def reset(f: Sender, now: float) -> None:
    """Reset CUBIC's variables at a timeout, as the kernel's bictcp_reset does.

    This includes the variables of HyStart (bictcp_hystart_reset in the kernel).
    """
    f.cnt, f.last_max, f.last_cwnd = 0.0, 0.0, 0.0
    f.delay_min, f.epoch_start, f.hystart_found = NEVER, NEVER, False
    _hystart_reset(f, now)


@jit
def _hystart_reset(f: Sender, now: float) -> None:
    """Begin a round of HyStart: it ends when the next packet that is sent is acknowledged."""
    f.train_start, f.train_last, f.train_end = now, now, f.next
    f.train_rtt, f.train_samples = NEVER, 0.0


@jit
def sample(f: Sender, rtt: float, now: float, acked: float, samples: float) -> None:
    """Process ``samples`` RTT samples of ``rtt`` seconds, as the kernel's cubictcp_acked does.

    ``acked`` is the number of the first packet that is not yet acknowledged. The samples update the
    least RTT, and HyStart may end slow start because of them. In the first second after a recovery
    the samples are ignored. During a recovery they count; they then come from the packets that SACK
    reports.
    """
    if now - f.epoch_start < AFTER_LOSS and f.epoch_start < NEVER:
        return
    f.delay_min = min(f.delay_min, rtt)
    if f.hystart_found or f.cwnd >= f.ssthresh:
        return
    if acked > f.train_end:  # a round of HyStart is over
        _hystart_reset(f, now)
    if f.cwnd < HYSTART_LOW_WINDOW:
        return
    if now - f.train_last <= HYSTART_ACK_DELTA:  # the ACK belongs to the train
        f.train_last = now
        f.hystart_found = now - f.train_start > 0.5 * (f.delay_min + HYSTART_ACK_DELAY)
    f.train_rtt = min(f.train_rtt, rtt)
    f.train_samples += samples
    # slow start ends, too, if the least RTT of a round exceeds the least RTT of all by ``rise``
    rise = min(max(f.delay_min / 8.0, HYSTART_DELAY_MIN), HYSTART_DELAY_MAX)
    if f.train_samples > HYSTART_MIN_SAMPLES and f.train_rtt > f.delay_min + rise:
        f.hystart_found = True
    if f.hystart_found:
        f.ssthresh = np.floor(f.cwnd)


@jit
def _ticks_at(f: Sender, now: float) -> float:
    """The number of ticks of CUBIC's clock at time ``now``, counted from the clock's start.

    The clock started ``boot_time`` seconds before the simulation.
    """
    return np.floor((now + f.boot_time) / f.cubic_tick)


@rare
def cubic_root(a: int) -> int:
    """The cube root of ``a`` as the kernel computes it in cubic_root, in whole numbers.

    The kernel looks up a first value and makes one step of Newton's method. The result is off by
    about 0.2 %, which moves the end of CUBIC's plateau by some milliseconds.
    """
    bits = 0  # number of binary digits of ``a``
    while a >> bits > 0:
        bits += 1
    if bits < 7:
        return (ROOTS[a] + 35) >> 6
    b = ((bits * 84) >> 8) - 1  # about a third of the digits; 84/256 stands for 1/3
    x = ((ROOTS[a >> (3 * b)] + 10) << b) >> 6
    # Newton's step x = (2 x + a/x^2)/3; 341/1024 stands for 1/3
    x = 2 * x + a // (x * (x - 1))
    return (x * 341) >> 10


@jit
def _target(f: Sender, now: float) -> float:
    """CUBIC's target window C (t - K)^3 + W_max, in whole packets (RFC 9438, equation 1).

    C is 410/1024 packets/s^3. An epoch starts with the first ACK in congestion avoidance after a
    cut. The time t is the time since this start plus the least RTT. It is computed in 1024ths of a
    second, as in the kernel. At t = K the target reaches W_max, which was set at the last loss. If
    the window is already above W_max when the epoch starts, the formula has this window in place of
    W_max.
    """
    min_rtt = np.ceil(f.delay_min / f.cubic_tick) if f.delay_min < NEVER else 0.0
    ticks = _ticks_at(f, now) - _ticks_at(f, f.epoch_start) + min_rtt
    offset = np.floor(ticks * f.cubic_tick * SECOND + SLACK) - f.cubic_k
    delta = np.floor(CUBE_RTT_SCALE * abs(offset) ** 3 / 2.0**40)
    return f.origin_point - delta if offset < 0.0 else f.origin_point + delta


@jit
def _update(f: Sender, acks: float, now: float) -> None:
    """Compute ``cnt``, the number of ACKs after which the window grows by a packet.

    The function follows bictcp_update in the kernel. ``acks`` ACKs have arrived until ``now``.

    A window W below the target (``_target``) has to reach it within a round trip, in which W ACKs
    come. So ``cnt`` is W/(target - W). At or above the target, ``cnt`` is so large that the window
    hardly grows. The top of this file says what ``cnt`` is before the first loss. If a Reno flow
    would now have a larger window, ``cnt`` is at most so large that W reaches this window within a
    round trip. All quotients are rounded down, as in the kernel.

    If the window has not changed, nothing is computed for ``SAME_WINDOW`` seconds. With
    ``cnt_once_a_tick``, as in Linux 6.1, ``cnt`` follows the target only once per clock tick.
    """
    window = np.floor(f.cwnd)
    ticks = _ticks_at(f, now) - _ticks_at(f, f.counted)  # since ``cnt`` was last computed
    f.reno_acks += acks
    if f.last_cwnd == window and ticks * f.cubic_tick <= SAME_WINDOW:  # ``cnt`` is still valid
        return
    if f.epoch_start == NEVER or ticks > 0.0 or not f.cnt_once_a_tick:
        # by the target window
        f.last_cwnd, f.counted = window, now
        if f.epoch_start == NEVER:  # the first ACKs after a loss: CUBIC's curve begins
            f.epoch_start, f.reno_acks, f.reno_cwnd = now, acks, window
            f.origin_point = max(f.last_max, window)
            # the time K after which the target is ``origin_point``
            f.cubic_k = float(cubic_root(CUBE_FACTOR * int(f.origin_point - window)))
        target = _target(f, now)
        f.cnt = WINDOWS_AT_TARGET * window
        if target > window:
            f.cnt = np.floor(window / (target - window))
        if f.last_max == 0.0:  # no loss yet, or the last one was forgotten at a timeout
            f.cnt = f.cnt_before_loss or min(f.cnt, CNT_BEFORE_LOSS)
    # the window that a Reno flow would have: it grows by a packet per ``acks_per_reno_packet`` ACKs
    acks_per_reno_packet = np.floor(f.reno_windows * window)
    if f.reno_acks > acks_per_reno_packet:
        more = np.ceil(f.reno_acks / acks_per_reno_packet) - 1.0
        f.reno_acks -= more * acks_per_reno_packet
        f.reno_cwnd += more
    if f.reno_cwnd > window:  # reach Reno's window within a round trip
        f.cnt = min(f.cnt, np.floor(window / (f.reno_cwnd - window)))
    f.cnt = max(np.floor(f.cnt / f.packets_per_ack), f.least_cnt)


@jit
def cong_avoid(f: Sender, acks: float, now: float) -> None:
    """Grow the window upon ``acks`` ACKs of new data, outside slow start.

    In the kernel, cubictcp_cong_avoid and tcp_cong_avoid_ai do this.
    """
    if f.passes_ssthresh and f.cwnd <= f.ssthresh:
        f.cwnd += 1.0  # ``acks_to_packet`` lets only one ACK come here at a time
        return
    _update(f, acks, now)
    if f.acks_before_growth:  # Linux 2.6: the ACK after the ``cnt``-th one adds the packet
        grows = f.cwnd_cnt + acks > f.cnt
        f.cwnd += 1.0 if grows else 0.0
        f.cwnd_cnt = 0.0 if grows else f.cwnd_cnt + acks
        return
    _count_acked(f, f.cnt, acks)


@rare
def recalc_ssthresh(f: Sender, window: float) -> None:
    """At a loss, end CUBIC's epoch and set W_max, as the kernel's cubictcp_recalc_ssthresh does.

    W_max is the window at which CUBIC's curve is flat. It becomes ``window``, the window at the
    loss. If ``window`` is smaller than the last W_max, W_max becomes (1 + beta)/2 times ``window``
    instead (fast convergence). Here beta is the factor on the window at a loss (``decrease``).
    """
    f.epoch_start = NEVER
    f.last_max = window if window >= f.last_max else np.floor(0.5 * (1.0 + f.decrease) * window)


@jit
def acks_to_packet(f: Sender) -> float:
    """Number of further ACKs after which CUBIC's window grows by a packet, if ``cnt`` stays.

    The window grows by a packet for every ``cnt`` ACKs. ``cwnd_cnt`` of them have arrived already.
    In Linux 6.1 the last of the ``cnt`` ACKs adds the packet. In Linux 2.6
    (``acks_before_growth``) the ACK after it does.
    """
    if f.passes_ssthresh and f.cwnd <= f.ssthresh:  # slow start adds one more packet, at once
        return 1.0
    remaining = f.cnt - f.cwnd_cnt
    return max(remaining, 0.0) + 1.0 if f.acks_before_growth else max(remaining, 1.0)
