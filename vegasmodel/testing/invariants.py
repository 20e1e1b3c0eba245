"""Checks that the predictions of every model must pass, such as: no link exceeds its capacity.

The checks allow for rounding errors, and for errors in counting packets. For example, a simulator
may count a packet only when its ACK comes back, some time after the link has sent the packet. So
packets that the link sent before the measured time may be counted, too (``counting``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from vegasmodel.fields import kinds
from vegasmodel.metrics import Floats
from vegasmodel.predictor import MODELS
from vegasmodel.results.prediction import Prediction
from vegasmodel.scenario import Link, Scenario
from vegasmodel.scenario.active_time import silent
from vegasmodel.scenario.placement import access_ratio

__all__ = ["check", "check_rates", "counting"]

SUM_TOLERANCE = 1e-9  # rounding of sums in double precision
NOT_CONSERVED = ("arrivals-bonald",)  # a printed closed form whose rates do not add up


@kinds.checked
def counting(prediction: Prediction) -> Floats:
    """By what fraction the packets counted may exceed those that a link can send, [n_links].

    Packets are counted during a time T, which begins at the end of the warm-up. The link has the
    capacity c, so it sends at most ``c T`` packets in T. For four reasons more may be counted:

    - Parts of packets. One packet may already be in transmission when T begins. The count of each
      of n flows may begin or end in the middle of a packet. This makes n + 1 packets, or more if
      packets of a flow are larger than the scenario's. This is the only reason that applies to
      models in closed form and to ``fluid``.
    - Late counts. ``rounds``, ns-2, ns-3 and measurements count a packet when its ACK is back. So
      packets that the link sent before T may count in T. On one link with data in one direction,
      these are at most ``c (max RTT - min RTT)`` packets (``_lag`` has the other cases).
    - Delayed ACKs. When T begins, a receiver with ``delayed_ack`` may hold back the ACK of one
      packet (RFC 5681, 4.2).
    - Order. ``rounds``, ns-2, ns-3 and measurements count packets in order. So packets behind a
      lost packet count only after its retransmission. ``rounds`` knows how many these are
      (``_behind_a_hole``). Otherwise each flow may have a whole window of them: if the
      retransmission is lost, too, duplicate ACKs enlarge the window and release new packets until
      the retransmission timer expires (RFC 5681 3.2).

    The packets of the last three kinds were sent by the link before T began, in the warm-up. So
    they are at most ``c warmup`` packets. The result is the sum over all four kinds, divided by
    ``c T``.
    """
    scenario, links = prediction.scenario, prediction.scenario.links
    span = scenario.run.duration - scenario.run.warmup
    largest = max(scenario.size_of(group) for group in scenario.flows) / scenario.packet_size
    capacity = np.array([link.capacity for link in links])
    packets = np.full(len(links), (len(scenario.members) + 1) * max(largest, 1.0))
    earlier = np.zeros(len(links))  # packets that had passed the link before T began
    if prediction.model == "rounds" or prediction.model not in MODELS:
        earlier += capacity * np.array([_lag(scenario, link) for link in links])
        earlier += [_behind_a_hole(prediction, link) + _held_back(scenario, link) for link in links]
    packets += np.minimum(earlier, capacity * scenario.run.warmup)
    return packets / (capacity * span)


def _lag(scenario: Scenario, link: Link) -> float:
    """By how many seconds the delay from a packet's transmission to its count can vary.

    The delay begins when ``link`` transmits the packet. It ends when the ACK is back at the sender,
    because only then the packet is counted. With one link and data in one direction, these delays
    differ by at most the difference of the RTTs. Otherwise packets and ACKs also wait in other
    queues. The result is then the longest RTT plus the times that these queues, if full, need to
    empty. In both cases packets may wait at a slow access link of the receiver, too
    (``_at_receivers``).
    """
    rtts = [m.rtt for m in scenario.members if link in scenario.path(m.flow)]
    one_way = len({group.direction for group in scenario.flows}) == 1
    if not rtts:
        return 0.0
    if one_way and len(scenario.links) == 1:
        return max(rtts) - min(rtts) + _at_receivers(scenario, link)
    others = [other for other in scenario.links if other != link or not one_way]
    waits = sum(other.buffer / other.capacity for other in others)
    return max(rtts) + waits + _at_receivers(scenario, link)


def _at_receivers(scenario: Scenario, link: Link) -> float:
    """The longest time, s, for which a packet waits at its receiver's access link.

    Only packets that cross ``link`` count. The sender and the receiver of a flow have access links
    of the same rate. The sender's link spaces the packets so that the receiver's link could send
    each of them at once. But the queues on the path can let packets out closer together: in a time
    t at most those that came in a time t + w, where w is the longest wait in these queues. So at
    the receiver's access link a packet waits for at most w. If the access link is at least as fast
    as the slowest link of the path, no packet waits there.
    """
    slow = [
        scenario.path(group)
        for group in scenario.flows
        if link in scenario.path(group) and access_ratio(scenario, group) < 1.0
    ]
    largest = max(scenario.size_of(group) for group in scenario.flows) / scenario.packet_size
    waits = (sum((one.buffer + 1.0) * largest / one.capacity for one in path) for path in slow)
    return max(waits, default=0.0)


def _held_back(scenario: Scenario, link: Link) -> float:
    """The most packets that had crossed the link when T began, and whose ACKs were being delayed.

    A receiver that delays ACKs holds back at most one. The result is in packets of the scenario's
    packet size.
    """
    return sum(
        scenario.size_of(member.flow) / scenario.packet_size
        for member in scenario.members
        if member.flow.delayed_ack and link in scenario.path(member.flow)
    )


def _behind_a_hole(prediction: Prediction, link: Link) -> float:
    """The most packets that the link sent before T began, but that count in T because of a loss.

    T is the time from the end of the warm-up to the end of the run. The throughput of a flow counts
    packets in order: it counts a packet only when the receiver has all earlier packets. So if a
    packet is lost before T begins and is sent again in T, the packets behind it count in T,
    although the link sent them before T. The result is an upper bound for the number of these
    packets on ``link``, in packets of the scenario's packet size. It is 0 if no link loses packets.

    For each flow, the simulator ``rounds`` has the number of these packets in
    ``extra["behind_holes"]``. For other predictions, the bound is the flow's ``max_window``.
    """
    scenario = prediction.scenario
    if all(each.lossless and not each.drops for each in scenario.links):
        return 0.0
    flows = [member.flow for member in scenario.members]
    behind: Sequence[float] = prediction.extra.get("behind_holes", [f.max_window for f in flows])
    return sum(
        packets * scenario.size_of(flow) / scenario.packet_size
        for packets, flow in zip(behind, flows, strict=True)
        if link in scenario.path(flow)
    )


@kinds.checked
def check(prediction: Prediction) -> None:
    """Raise ``AssertionError`` unless the prediction satisfies the following statements.

    - If the model cannot predict (``applicable`` is False), there are no throughputs, but a reason.
    - Otherwise every flow has a finite throughput of at least 0. An exception is a flow that may
      send nothing after the warm-up: its throughput may be NaN.
    - No link carries more than its capacity. A little more is allowed, because packets that the
      link sent before the measurement may be counted in it (``counting`` says how many). The model
      ``arrivals-bonald`` is exempt, because its printed formula does not satisfy this.
    - Each baseRTT is positive, and each loss rate lies between 0 and 1.
    - No mean RTT is below the RTT with empty queues, if the propagation delay is constant
      (``delay_noise`` is 0).  A measurement is exempt: it may contain smaller packets.
    """
    if not prediction.applicable:
        assert prediction.throughput is None, "an answer that is not applicable has no throughput"
        assert prediction.reason, "a model without an answer says why"
        return
    assert prediction.throughput is not None
    rates = prediction.throughput
    assert rates.shape == (len(prediction.scenario.members),), "one throughput a flow"
    known = np.isfinite(rates)
    assert np.all(known | (np.isnan(rates) & silent(prediction.scenario))), "throughputs are finite"
    assert np.all(rates[known] >= 0.0), "throughputs are at least 0"
    if prediction.model not in NOT_CONSERVED and prediction.utilization is not None:
        limit = 1.0 + SUM_TOLERANCE + counting(prediction)
        carried = np.nan_to_num(prediction.utilization)
        assert np.all(carried <= limit), "a link carries at most its capacity"
    if prediction.base_rtt is not None:
        assert np.all(np.isnan(prediction.base_rtt) | (prediction.base_rtt > 0)), "baseRTT > 0"
    if prediction.loss_rate is not None:
        known = prediction.loss_rate[np.isfinite(prediction.loss_rate)]
        assert np.all((known >= 0) & (known <= 1)), "a loss rate is a probability"
    if prediction.rtt_mean is not None and prediction.model in MODELS:
        members = prediction.scenario.members
        empty_rtts = np.array([-np.inf if m.flow.delay_noise else m.rtt for m in members])
        mean = prediction.rtt_mean
        enough = mean >= empty_rtts * (1.0 - SUM_TOLERANCE)
        assert np.all(np.isnan(mean) | enough), "a mean RTT is at least that with empty queues"


@kinds.checked
def check_rates(rates: Floats, capacity: float) -> None:
    """Raise ``AssertionError`` unless steady rates of Vegas are positive and fill the link.

    The sum of the rates must equal the capacity within a relative error of 1e-12, the rounding
    error of a sum of up to 100 rates.
    """
    assert np.all(rates > 0), "each flow has a rate"
    total = math.fsum(np.ravel(rates))
    assert abs(total - capacity) <= 1e-12 * capacity, "the rates add up to the capacity"
