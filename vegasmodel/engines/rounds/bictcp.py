"""Linux's CUBIC (``tcp_cubic.c`` of 6.1): it counts ACKs in whole numbers and has HyStart.

RFC 9438 gives the window to reach one RTT ahead. The kernel turns it into ``cnt``, the number of
ACKs after which the window grows by a packet. It does so at most once a clock tick and in whole
numbers. It looks ahead by the least RTT that it has seen. From the end of a recovery it also
computes the window that Reno would have. HyStart ends slow start when the RTT has grown or when a
train of closely spaced ACKs is long.
"""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

import numpy as np

from vegasmodel.engines.rounds.state import Sender, jit
from vegasmodel.engines.rounds.timer import JIFFY

C = 410.0 / 1024.0  # packets/s^3: bic_scale 41, in tenths and in 1024ths of a second
SAME_WINDOW = 7.0  # ticks, HZ/32: so long an unchanged window keeps its count
FIRST = 20.0  # ACKs a packet, at most, while no loss is known
REST = 100.0  # windows of ACKs a packet, at or above the target
REALM = 15.0 / 8.0  # beta_scale/8: the Reno of equal throughput grows once in so many windows
FASTEST = 2.0  # ACKs a packet
CONVERGES = (1024.0 + 717.0) / 2048.0  # of a window that stayed below the last one
FEWEST, LOW_WINDOW = 8.0, 16.0  # HYSTART_MIN_SAMPLES; hystart_low_window, packets
TRAIN, ACK_DELAY = 0.002, 0.001  # seconds: hystart_ack_delta_us; hystart_ack_delay at most
LEAST_RISE, MOST_RISE = 0.004, 0.016  # seconds: HYSTART_DELAY_MIN, HYSTART_DELAY_MAX
SETTLES = 1.0  # seconds, HZ: after a loss the least RTT is not asked
NEVER = 1e300


@jit
def reset(f: Sender, now: float) -> None:
    """At the start and at a timeout: bictcp_reset and bictcp_hystart_reset of the kernel."""
    f.cnt, f.last_max, f.last_cwnd = 0.0, 0.0, 0.0
    f.delay_min, f.epoch, f.hystart_found = NEVER, NEVER, False
    _new_train(f, now)


@jit
def _new_train(f: Sender, now: float) -> None:
    f.train_start, f.train_last, f.train_end = now, now, f.next
    f.train_rtt, f.train_samples = NEVER, 0.0


@jit
def sample(f: Sender, rtt: float, now: float, acked: float, samples: float) -> None:
    """cubictcp_acked: read ``samples`` RTTs of ACKs up to ``acked``; HyStart may end slow start."""
    if now - f.epoch < SETTLES and f.epoch < NEVER:
        return
    f.delay_min = min(f.delay_min, rtt)
    if f.hystart_found or f.cwnd >= f.ssthresh:
        return
    if acked > f.train_end:
        _new_train(f, now)
    if f.cwnd < LOW_WINDOW:
        return
    if now - f.train_last <= TRAIN:
        f.train_last = now
        f.hystart_found = now - f.train_start > 0.5 * (f.delay_min + ACK_DELAY)
    f.train_rtt = min(f.train_rtt, rtt)
    f.train_samples += samples
    rise = min(max(f.delay_min / 8.0, LEAST_RISE), MOST_RISE)
    if f.train_samples > FEWEST and f.train_rtt > f.delay_min + rise:
        f.hystart_found = True
    if f.hystart_found:
        f.ssthresh = np.floor(f.cwnd)


@jit
def _target(f: Sender, now: float) -> float:
    """RFC 9438 (1), C (t - K)^3 + W_max, in whole packets; t is ahead by the least RTT seen."""
    ahead = np.ceil(f.delay_min / JIFFY) * JIFFY if f.delay_min < NEVER else 0.0
    offset = now - f.epoch + ahead - f.plateau
    delta = np.floor(C * abs(offset) ** 3)
    return f.origin - delta if offset < 0.0 else f.origin + delta


@jit
def _update(f: Sender, acks: float, now: float) -> None:
    """bictcp_update: compute anew after how many ACKs the window grows by a packet."""
    window = np.floor(f.cwnd)
    ticks = np.floor(now / JIFFY) - np.floor(f.counted / JIFFY)
    f.reno_acks += acks
    if f.last_cwnd == window and ticks <= SAME_WINDOW:
        return
    if f.epoch == NEVER or ticks > 0.0:
        f.last_cwnd, f.counted = window, now
        if f.epoch == NEVER:
            f.epoch, f.reno_acks, f.reno_cwnd = now, acks, window
            f.origin = max(f.last_max, window)
            f.plateau = ((f.origin - window) / C) ** (1.0 / 3.0)
        target = _target(f, now)
        f.cnt = np.floor(window / (target - window)) if target > window else REST * window
        if f.last_max == 0.0:
            f.cnt = min(f.cnt, FIRST)
    realm = np.floor(REALM * window)
    if f.reno_acks > realm:
        more = np.ceil(f.reno_acks / realm) - 1.0
        f.reno_acks -= more * realm
        f.reno_cwnd += more
    if f.reno_cwnd > window:
        f.cnt = min(f.cnt, np.floor(window / (f.reno_cwnd - window)))
    f.cnt = max(f.cnt, FASTEST)


@jit
def climb(f: Sender, acks: float, now: float) -> None:
    """Grow the window upon ACKs, outside slow start (cubictcp_cong_avoid, tcp_cong_avoid_ai)."""
    _update(f, acks, now)
    if f.credit >= f.cnt:
        f.credit = 0.0
        f.cwnd += 1.0
    f.credit += acks
    more = np.floor(f.credit / f.cnt)
    f.credit -= more * f.cnt
    f.cwnd += more


@jit
def remember(f: Sender, window: float) -> None:
    """cubictcp_recalc_ssthresh: a loss ends the epoch and sets W_max, with fast convergence."""
    f.epoch = NEVER
    f.last_max = window if window >= f.last_max else np.floor(CONVERGES * window)


@jit
def acks_to_packet(f: Sender) -> float:
    """ACKs until the window grows by a packet, if ``cnt`` does not change before."""
    return max(f.cnt - f.credit, 1.0)
