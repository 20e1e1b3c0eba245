"""Defines the state of the simulator ``delayed``.

The state consists of the present state of the senders, the past of the queue and the flows, and
totals. The totals are sums and time integrals, from which averages are computed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vegasmodel.engines.tables import jit
from vegasmodel.metrics import Floats


class Past(NamedTuple):
    """The history of the queue and of the flows: one entry for each step that is still needed.

    Past steps are needed because a sender learns of the queue and of losses a round trip late.
    Arrays about the queue have the shape [step], and arrays about the flows have [step, flow].
    """

    time: Floats  # t, seconds
    delay: Floats  # s(t), the queueing delay
    exit: Floats  # t + s(t): when a packet that arrives at t leaves the queue; it never falls
    sent: Floats  # A_i(t): packets sent by time t
    arrived: Floats  # A_i(t - f_i): packets that have reached the queue by time t
    lost: Floats  # packets of ``arrived`` that were dropped
    random_drops: Floats  # packets of ``lost`` that random loss or RED dropped, not a full buffer
    mean: Floats  # v(t), RED's average queue, packets
    growing: np.ndarray  # bool: the window grew in the step that ends at t


class Senders(NamedTuple):
    """The senders' state: arrays with one entry per flow, which the simulation changes in place."""

    forward_delay: Floats  # f_i: seconds from the sender to the queue
    window: Floats  # W_i, packets; 0 while the flow is inactive
    over_estimate: Floats  # x_i, seconds by which its baseRTT exceeds the propagation delay
    in_slow_start: np.ndarray  # bool: in slow start
    recovery_until: Floats  # time until which the window stays constant
    loss_heard: Floats  # time at which the sender learns of a loss; inf: there is none to learn of
    same_loss_until: Floats  # losses at the queue before this time cause no further cut
    expected_drops: Floats  # mean number of drops by random loss and RED so far in slow start
    acked: Floats  # N_i: packets that the sender knows to be delivered or lost
    known_lost: Floats  # packets of ``acked`` that were lost
    known_random_drops: Floats  # packets of ``known_lost`` that random loss or RED dropped
    reported_delay: Floats  # s_i: queueing delay of the packet whose ACK arrives now, seconds
    backlog_share: Floats  # part of the window that is backlog at this delay: Diff_i / W_i
    sent_index: np.ndarray  # index of the past step whose sent packets reach the queue now
    arrived_index: np.ndarray  # index of the past step whose arrived packets are acknowledged now


class DropParameters(NamedTuple):
    """The parameters of random loss and RED, which drop packets although the buffer has room."""

    loss: float  # probability that a packet is lost at random
    red: bool  # whether the queue is RED, which drops packets, too
    low: float  # RED's lower threshold, packets
    high: float  # RED's upper threshold, packets
    top: float  # RED's probability at ``high``
    gentle: bool  # above ``high`` RED's probability rises to 1 gradually; else it jumps to 1
    weight: float  # weight of one packet in RED's average queue


class Totals(NamedTuple):
    """Sums and time integrals for averages; they are set to 0 at the end of the warm-up."""

    delivered: Floats  # [flow] packets
    acked: Floats  # [flow] packets, lost ones among them
    seconds: Floats  # [flow] sum of the packets' round-trip times
    active: Floats  # [flow] seconds
    cuts: np.ndarray  # [flow] cuts of the window
    queue: Floats  # [2] as in ``fluid.records.Tally``


class Samples(NamedTuple):
    """Samples of the state of senders and queue, in arrays that the simulation fills."""

    times: Floats  # [sample] seconds
    values: Floats  # [sample, flow, 5] as ``march.note_values`` lists them
    delay: Floats  # [sample] queueing delay of the link, seconds


@jit
def between(times: Floats, values: Floats, k: int, last: int, t: float) -> float:
    """The value at time t of a curve of the history, by linear interpolation.

    Straight lines join the points (``times``, ``values``).  ``times[k]`` is the last of the times
    up to t.  ``last`` is the index of the last point; after it the curve is constant.
    """
    if k >= last:
        return float(values[last])
    part = (t - times[k]) / (times[k + 1] - times[k])
    return float(values[k] + part * (values[k + 1] - values[k]))


@jit
def index(times: Floats, k: int, last: int, t: float) -> int:
    """The index of the last entry of ``times`` that is not after t.

    Only the entries from index k to index ``last`` are searched.  The caller knows k from its last
    search: t grows from step to step, so the result never falls.
    """
    while k < last and times[k + 1] <= t:
        k += 1
    return k
