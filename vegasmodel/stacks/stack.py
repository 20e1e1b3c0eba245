"""The form of a stack: the mechanisms that an implementation of TCP adds to a law.

Each mechanism is a field. It is off unless the stack's file turns it on. The file then cites a line
of that TCP's source code or an RFC. A simulator reads these fields and never asks for a stack by
its name.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Mechanisms:
    """What a sender of one TCP implementation does when an ACK arrives or its timer expires.

    Each field switches one mechanism on or off, or sets a number of a mechanism, in packets or
    seconds.  ``engines/rounds``, the packet simulator, copies each field into its record of a flow.
    """

    # Vegas: how it decides
    backlog_over_base: bool = False  # Diff = W (RTT - baseRTT)/baseRTT, not over RTT
    real_numbers: bool = False  # on Diff as it is; a packet less is spread over a round, too
    whole_window: bool = False  # cwnd is a whole number, and ACKs are counted towards the next
    plain_sums: bool = False  # cwnd is a sum of doubles, and its own rounding counts
    decides_late: bool = False  # the ACK on which a round ends belongs to that round
    restarts_rounds: bool = False  # after a recovery or a silence its round and baseRTT begin anew
    resets_base: bool = False  # baseRTT becomes the RTT of a round in which one packet was out
    overdue_checks: bool = False  # a law's own check at an ACK whether a packet is overdue
    second_packet_first: bool = False  # its window is 1 until the second packet is acknowledged

    # CUBIC
    bictcp: bool = False  # it counts ACKs in whole numbers, as the kernel does
    hystart: bool = False  # it measures RTTs, and HyStart may end its slow start
    reno_windows: float = 1.875  # of ACKs, in which the Reno of equal throughput grows by a packet
    packets_per_ack: float = 1.0  # that an ACK stands for, as it estimates
    least_cnt: float = 2.0  # ACKs per packet of growth
    acks_before_growth: bool = False  # the window grows at the ACK after them
    passes_ssthresh: bool = False  # slow start takes a last step where cwnd is ssthresh
    cubic_tick: float = 0.004  # seconds, of its clock

    # losses
    rack: bool = False  # what was sent before a packet that arrived is lost after a while
    paced_recovery: bool = False  # proportional rate reduction
    limited_transmit: bool = False  # the first two duplicate ACKs let a packet go each
    dup_thresh: float = 3.0  # duplicate ACKs that signal a loss
    halves_rate: bool = False  # after a cut a packet for two ACKs, until a window is in flight
    finds_lost_again: bool = False  # a lost retransmission, once a packet sent later arrives
    fractional_cut: bool = False  # a cut window is no whole number
    swells_uncut: bool = False  # a third duplicate that does not cut swells the window
    must_pass_recover: bool = False  # an ACK of exactly ``recover`` allows no new cut
    sack_exit_rests: bool = False  # the ACK that ends a recovery with SACK grows nothing
    partial_deflates: bool = False  # NewReno: a partial ACK deflates, the first restarts the timer
    partial_in_pipe: float = 1.0  # packets that an ACK takes off ``pipe`` if it is partial
    least_after_loss: float = 1.0
    one_cut_in_loss: bool = False  # no second cut where a recovery ends in a timeout

    # the retransmission timer
    tick: float = 0.1  # of a clock that times one packet at a time,
    timestamps: bool = False  # ... or every ACK gives a sample
    first_deviation: float = 0.25  # of the first RTT
    every_ack_restarts: bool = False  # also duplicates, and a recovery does not end the timing
    longest_rto: float = 64.0
    floor_before_backoff: bool = False
    estimates_first: bool = False  # a sample counts for the timer that it starts
    timer_wheel: bool = False  # it rings at ticks of a wheel
    tail_probe: bool = False  # before it gives up it sends the last packet again

    # ACKs, where a flow's receiver delays them
    ack_pause: float = 0.1  # an ACK waits for a second packet,
    adapts_ack_pause: bool = False  # ... longer if the second one did not come in time
    late_duplicates: float = 0.0  # seconds that it holds duplicate ACKs after the third
    quick_acks: float = 0.0  # so many at first do not wait, nor after a long silence
    counts_packets: bool = False  # and windows grow by packets, not by ACKs

    # the handshake
    third_ack: bool = False  # its last ACK goes ahead of the data
    lost_syn_resets: bool = False  # if a SYN is lost the flow opens with one packet

    # the sender's way out
    bursts_at_once: bool = False  # a burst reaches the link in one go,
    stamps_departure: bool = False  # ... each packet stamped as it leaves
    random_ties: bool = False  # chance decides between timers of one instant


@dataclass(frozen=True, kw_only=True)
class Stack(Mechanisms):
    """What one implementation of TCP adds to every law: its rounding, its timers, its defaults."""

    name: str
    laws: tuple[str, ...] | None = None  # the laws that it implements; None: every law

    # Vegas: its dead zone and its defaults
    below_alpha: float  # the window of Vegas rests from this much below alpha ...
    above_beta: float  # ... to this much above beta,
    upper_edge_rests: bool = False  # ... at which it rests, too
    doubling: int  # round trips in which slow start of Vegas doubles the window
    alpha: float
    beta: float
    gamma: float
    decrease: float  # window factor after a loss
    least_window: float
    least_of_round: bool = False  # it decides on the least RTT of a round, not the mean
    untimed_first: bool = False  # the first window's packets give no RTT
    probes_base: bool = False  # a known baseRTT is measured by packets sent in advance

    # its host
    waits_in_queue: bool = False  # ``send_jitter`` is below TCP: for each packet, part of its RTT

    # how a flow begins
    first_window: float = 1.0
    receiver_ssthresh: bool = False  # ssthresh begins at the receiver's window
    cubic_agent: tuple[tuple[str, float], ...] = ()  # mechanisms that only its CUBIC has
    own_packets: tuple[str, ...] = ()  # laws whose agents build packets: no ECN, SYN or headers
    header: float = 0.0  # bytes that the other laws' packets are longer
    always_sack: bool = False  # the sender knows which packets are missing, whatever the law
    first_rto: float = 6.0
    handshake: bool = False
    syn_is_ack: bool = False  # its packets are as long as an ACK, else as ``header``

    # links
    limit_counts: float = 0.0  # packets in transmission that the limit of a drop-tail buffer counts
    marks_up_to: float = math.inf  # drop probability of RED up to which packets are marked
    scheduled_ties: bool = False  # events of one instant in the order in which they were scheduled

    def dead_zone(self, alpha: float, beta: float) -> tuple[float, float]:
        """The backlogs (low, high), packets, between which the window of one Vegas source rests."""
        return max(alpha - self.below_alpha, 0.0), beta + self.above_beta

    def implements(self, law: str) -> bool:
        """Whether this TCP implementation has code for sources of that law."""
        return self.laws is None or law in self.laws
