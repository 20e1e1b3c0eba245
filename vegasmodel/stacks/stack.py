"""Defines ``Stack``, the details that an implementation of TCP adds to a congestion control law.

A law, such as Vegas, is the rule by which a window grows and shrinks. Examples of details are
timers and rounding. Each field of ``Stack`` switches a mechanism on or off, or gives a number, such
as the tick of a timer. The file of an implementation, such as ``linux.py``, sets these fields.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

MIN_RTO = 0.2  # seconds: ns-2's least timeout (minrto_), and Linux's least deviation (TCP_RTO_MIN)
# BSD's timeout exceeds a steady RTT by this many ticks of its clock. It is computed with integers,
# and at a steady RTT the integer rttvar stays 3.
TICKS = 3.0


@dataclass(frozen=True, kw_only=True)
class Mechanisms:
    """The mechanisms of one TCP implementation that act while a flow runs.

    Each field switches a mechanism on or off, or sets one of its numbers. ``Stack`` adds the fields
    for all other details.
    """

    # Vegas: how it decides
    # the backlog is W (RTT - baseRTT)/baseRTT; off: W (RTT - baseRTT)/RTT
    backlog_over_base: bool = False
    # After slow start Vegas does not round its backlog. If the backlog is above beta, the window
    # shrinks by 1/W at each ACK, as in the papers. Off: Vegas rounds the backlog, and the window
    # shrinks by a whole packet at once.
    real_numbers: bool = False
    whole_window: bool = False  # cwnd counts whole packets; ACKs are counted until it grows by one
    plain_sums: bool = False  # cwnd is summed ACK by ACK, with the same rounding errors as in ns-2
    # Vegas decides after it has used the RTT sample of the ACK that ends a round trip, so this
    # sample belongs to this round trip; off: it decides before, so the sample belongs to the next
    decides_late: bool = False
    restarts_rounds: bool = False  # recovery or idleness ends a round; idleness also resets baseRTT
    # baseRTT becomes the mean RTT of a round in which at most one packet is sent, even if this is
    # larger than baseRTT (tcp-vegas.cc: ``rttLen <= 1``)
    resets_base: bool = False
    # at a duplicate ACK, and at the next two new ACKs after a loss, Vegas sends the first missing
    # packet again if it was sent longer ago than a finely measured timeout
    overdue_checks: bool = False
    # a flow of Vegas begins with a window of 1, not ``first_window``, and keeps it until its second
    # packet is acknowledged
    second_packet_first: bool = False

    # CUBIC
    # CUBIC computes after how many ACKs the window grows by a packet, and counts them, as in
    # Linux's tcp_cubic.c; off: at each ACK the window grows by a part of a packet (RFC 9438)
    bictcp: bool = False
    hystart: bool = False  # CUBIC measures the least RTT, and HyStart may end its slow start
    # CUBIC also computes the window of an imagined Reno flow (RFC 9438, 4.3). It grows by a packet
    # when ``reno_windows`` windows of packets have been acknowledged: after 1.875 round trips
    reno_windows: float = 1.875
    packets_per_ack: float = 1.0  # CUBIC's estimate of the packets that an ACK acknowledges
    # ``cnt`` is CUBIC's number of ACKs for which the window grows by one packet
    least_cnt: float = 2.0  # least value of ``cnt``
    cnt_before_loss: float = 0.0  # value of ``cnt`` before the first loss; 0: as CUBIC computes it
    cnt_once_a_tick: bool = True  # ``cnt`` changes at most once per tick of CUBIC's clock
    # the window grows at the ACK that follows ``cnt`` others; off: at the ``cnt``-th ACK itself
    acks_before_growth: bool = False
    grows_when_full: bool = False  # an ACK grows cwnd only if at least cwnd packets are in flight
    passes_ssthresh: bool = False  # slow start goes on at cwnd = ssthresh, by one more packet
    cubic_tick: float = 0.004  # length of a tick of CUBIC's clock, seconds
    clock_from_zero: bool = False  # the sender's clock begins with the simulation, not at random

    # losses
    # RACK (RFC 8985): a packet counts as lost if a packet sent later has arrived, and the
    # reordering window, a part of the RTT, has passed, too
    rack: bool = False
    paced_recovery: bool = False  # recovery sends by proportional rate reduction (RFC 6937)
    limited_transmit: bool = False  # each duplicate ACK before ``dup_thresh`` releases a packet
    dup_thresh: float = 3.0  # number of duplicate ACKs that signal a loss
    counts_places: bool = False  # packets ``dup_thresh`` or more below the highest SACKed are lost
    halves_rate: bool = False  # after a cut two ACKs release a packet, until the window is reached
    clears_scoreboard: bool = False  # at its end, a recovery forgets what SACK blocks reported
    keeps_scoreboard: bool = False  # a timeout sends again only what SACK blocks do not report
    finds_lost_again: bool = False  # a lost retransmission is detected when a later packet arrives
    halves_in_slow_start: bool = False  # a cut in slow start at least halves the window
    fractional_cut: bool = False  # a cut does not round the window down to whole packets
    swells_uncut: bool = False  # three duplicate ACKs add 3 packets even without a cut
    must_pass_recover: bool = False  # a new cut needs an ACK beyond ``recover``, not just up to it
    sack_exit_rests: bool = False  # the ACK that ends a recovery with SACK does not grow the window
    partial_deflates: bool = False  # partial ACKs deflate (NewReno); the first restarts the timer
    partial_in_pipe: float = 1.0  # packets by which a partial ACK reduces ``pipe``
    least_after_loss: float = 1.0  # least window after a cut, packets
    one_cut_in_loss: bool = False  # a timeout in a recovery, or a second in a row, keeps ssthresh

    # the retransmission timer
    tick: float = 0.1  # tick of the clock that times one packet at a time, seconds
    timestamps: bool = False  # every ACK gives an RTT sample; off: only one packet is timed
    first_deviation: float = 0.25  # mean deviation after the first RTT sample, divided by this RTT
    idle_timer: bool = False  # the timer also runs, and restarts slow start, with nothing in flight
    every_ack_restarts: bool = False  # duplicate ACKs restart the timer; RTTs are timed in recovery
    first_rto: float = 6.0  # retransmission timeout before the first RTT sample, seconds
    longest_rto: float = 64.0  # longest retransmission timeout, seconds
    floor_before_backoff: bool = False  # the least timeout applies before the backoff (RFC 2988)
    estimates_first: bool = False  # the restarted timer uses the RTT sample of the same ACK
    timer_wheel: bool = False  # a timer expires only at a tick of the kernel's timer wheel
    tail_probe: bool = False  # before a timeout it sends one packet as a probe (RFC 8985)

    # ACKs, where a flow's receiver delays them
    ack_pause: float = 0.1  # seconds for which an ACK waits for a second packet
    adapts_ack_pause: bool = False  # this wait doubles when no second packet comes in time
    late_duplicates: float = 0.0  # most seconds by which duplicate ACKs after the third are delayed
    delays_duplicates: bool = False  # the ACK of a duplicate of the last packet is delayed, too
    quick_acks: float = 0.0  # ACKs that do not wait, at first and after a long silence
    counts_packets: bool = False  # windows grow by the packets acknowledged, not by the ACKs

    # the handshake
    third_ack: bool = False  # the last ACK of the handshake is sent ahead of the data
    lost_syn_resets: bool = False  # after a lost SYN the first window is one packet

    # the sender's way out
    bursts_at_once: bool = False  # the packets of a burst reach the first link at one instant
    stamps_departure: bool = False  # a packet's RTT counts from its own departure, not its burst's
    random_ties: bool = False  # chance decides which event of one instant comes first


@dataclass(frozen=True, kw_only=True)
class Stack(Mechanisms):
    """What one TCP implementation adds to the congestion control laws.

    These are mechanisms (``Mechanisms``), the thresholds and default values of Vegas, the way in
    which a flow begins, and the behaviour of links.
    """

    name: str
    laws: tuple[str, ...] | None = None  # the laws that it implements; None: every law

    # Vegas: its dead zone and its defaults
    below_alpha: float  # packets below alpha at which the dead zone of Vegas begins
    above_beta: float  # packets above beta at which the dead zone ends
    shared_thresholds: bool = False  # all flows of a host have the same alpha and beta
    upper_edge_rests: bool = False  # at the dead zone's upper end itself, Vegas keeps its window
    doubling: int  # round trips in which slow start of Vegas doubles the window
    alpha: float  # default thresholds of Vegas, packets
    beta: float
    gamma: float
    decrease: float  # factor on Vegas's window at a loss
    least_window: float  # least window of Vegas, packets
    least_of_round: bool = False  # Vegas decides on the least RTT of a round, not the mean
    untimed_first: bool = False  # packets of the first window give no RTT sample
    stale_ring: bool = False  # Vegas does not always clear its ring of ``max_window`` sending times
    probes_base: bool = False  # a flow with a given baseRTT first measures it by probes

    # its host
    waits_in_queue: bool = False  # ``send_jitter`` acts below TCP, so the RTT contains the wait

    # how a flow begins
    first_window: float = 1.0  # packets
    receiver_ssthresh: bool = False  # ssthresh begins at the receiver's window
    cubic_agent: tuple[tuple[str, float], ...] = ()  # mechanisms that only its CUBIC has
    own_packets: tuple[str, ...] = ()  # laws whose packets have no ECN, no SYN and no ``header``
    header: float = 0.0  # bytes of headers added to the packets of the other laws
    always_sack: bool = False  # the sender knows which packets are missing, whatever the law
    handshake: bool = False  # a flow begins with a handshake
    syn_is_ack: bool = False  # a handshake's packets are as long as an ACK; off: as ``header``

    # links
    limit_counts: float = 0.0  # packets in transmission that the limit of a drop-tail buffer counts
    marks_up_to: float = math.inf  # RED marks up to this drop probability, and drops above it
    class_based_queueing: bool = False  # CBQ stands in for the scheduler of Rate-Delay services
    scheduled_ties: bool = False  # events of one instant happen in the order of their scheduling

    def dead_zone(self, alpha: ArrayLike, beta: ArrayLike) -> tuple[Floats, Floats]:
        """The backlogs (low, high), packets, between which a Vegas source keeps its window."""
        return np.maximum(np.subtract(alpha, self.below_alpha), 0.0), np.add(beta, self.above_beta)

    def for_cubic(self) -> Stack:
        """The same TCP implementation with the mechanisms of its CUBIC (``cubic_agent``)."""
        own: dict[str, Any] = dict(self.cubic_agent)
        return replace(self, **own)

    @property
    def timer_slack(self) -> float:
        """By how much the retransmission timeout exceeds a steady RTT, seconds.

        Linux adds its smallest allowed RTT deviation to the RTT (the kernel's function
        ``tcp_rtt_estimator``). The field ``timestamps`` is True only for Linux. BSD's timer, which
        ns-2 has too, adds ``TICKS`` ticks.
        """
        return MIN_RTO if self.timestamps else TICKS * self.tick

    def steady_timeout(self, rtt: float) -> float:
        """The retransmission timeout at the steady RTT ``rtt`` without any backoff, in seconds.

        The timer of BSD and ns-2 measures the RTT in whole ticks, at least one. If the RTT is at
        most one tick, each sample is one tick, the integer rttvar stays 2, and the timeout is
        ``TICKS`` ticks (ns-2's tcp.cc: ``rtt_update``).
        """
        short = rtt <= self.tick and not self.timestamps
        return max((0.0 if short else rtt) + self.timer_slack, MIN_RTO)

    def recovery_of(self, recovery: str) -> str:
        """How a congestion control recovers from losses in this TCP: a value of ``Law.recovery``.

        ``recovery`` is the congestion control's own value. An implementation that always uses SACK,
        such as Linux, replaces it by "scoreboard". It keeps only the value "slow start", because
        Tahoe begins slow start after each loss.
        """
        known = self.always_sack and recovery != "slow start"
        return "scoreboard" if known else recovery

    def implements(self, law: str) -> bool:
        """Whether this TCP implementation includes the congestion control ``law``."""
        return self.laws is None or law in self.laws
