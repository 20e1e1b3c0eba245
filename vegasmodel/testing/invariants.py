"""Checks for tests: statements that every answer of a model satisfies within stated tolerances."""

from __future__ import annotations

import math

import numpy as np

from vegasmodel.fields import kinds
from vegasmodel.metrics import Floats
from vegasmodel.prediction import Prediction, silent
from vegasmodel.predictor import MODELS
from vegasmodel.scenario import Link, Scenario

__all__ = ["check", "check_rates", "counting"]

SUM_TOLERANCE = 1e-9  # rounding of sums in double precision
NOT_CONSERVED = ("arrivals-bonald",)  # a printed closed form whose rates do not add up


@kinds.checked
def counting(prediction: Prediction) -> Floats:
    """By what fraction of a link's capacity the packets counted may exceed it, [n_links].

    Packets are counted during the time T from warm-up to end. The link has the capacity c.  Three
    effects make the count larger than the packets that crossed the link in T:

    - Ends of packets.  In T the link sends at most ``c T`` packets, and one more that was already
      in transmission when T began.  Besides, the count of each of n flows may begin and end in the
      middle of a packet.  These are n + 1 packets, or more if a flow has packets larger than the
      scenario's.  In a closed form and in ``fluid`` there is no other effect.
    - Late counts.  A simulation of packets counts a packet when its ACK is back, a time d after the
      packet has passed the link.  So packets that passed it before T began may count within T.  If
      d differs between flows, this adds up to ``c (max d - min d)`` packets (``_lag``).
    - Order.  ns-2, ns-3 and measurements count packets in order.  So the packets behind a lost
      packet count only when the lost one has been sent again.  If packets can be lost, up to
      ``c max(RTT)`` packets and as many as the buffer holds can wait in this way.  ``rounds``
      counts such packets as they arrive.

    The packets of the last two effects passed the link after the run began and before T began.
    So they are at most ``c warmup`` packets in all. If a buffer is infinite, the bounds above may
    be infinite, and only this bound remains.

    The result is the largest possible number of packets of all three effects, divided by ``c T``.
    """
    scenario, links = prediction.scenario, prediction.scenario.links
    span = scenario.run.duration - scenario.run.warmup
    largest = max(scenario.size_of(group) for group in scenario.flows) / scenario.packet_size
    capacity = np.array([link.capacity for link in links])
    packets = np.full(len(links), (len(scenario.members) + 1) * max(largest, 1.0))
    earlier = np.zeros(len(links))  # packets that had passed the link before T began
    if prediction.model == "rounds" or prediction.model not in MODELS:
        earlier += capacity * np.array([_lag(scenario, link) for link in links])
    if prediction.model not in MODELS:
        earlier += [_behind_a_hole(scenario, link) for link in links]
    packets += np.minimum(earlier, capacity * scenario.run.warmup)
    return packets / (capacity * span)


def _lag(scenario: Scenario, link: Link) -> float:
    """How much the time from the link to the count can differ between packets at this link, s.

    A packet is counted when its ACK is back at the sender.  On one link with data in one direction,
    the times differ by at most the difference of the RTTs.  With several links, or with data in
    both directions, packets or their ACKs also wait in other queues.  The result is then the sum of
    the longest RTT and of the times in which these queues, if full, empty.
    """
    rtts = [m.rtt for m in scenario.members if link in scenario.path(m.flow)]
    one_way = len({group.direction for group in scenario.flows}) == 1
    if not rtts:
        return 0.0
    if one_way and len(scenario.links) == 1:
        return max(rtts) - min(rtts)
    others = [other for other in scenario.links if other != link or not one_way]
    return max(rtts) + sum(other.buffer / other.capacity for other in others)


def _behind_a_hole(scenario: Scenario, link: Link) -> float:
    """The greatest number of packets that may wait to be counted behind a lost packet.

    These packets have passed the link, but a receiver counts packets in order.
    """
    rtts = [m.rtt for m in scenario.members if link in scenario.path(m.flow)]
    lossless = all(other.lossless and not other.drops for other in scenario.links)
    if not rtts or lossless:
        return 0.0
    return link.capacity * max(rtts) + link.buffer


@kinds.checked
def check(prediction: Prediction) -> None:
    """Raise ``AssertionError`` unless the prediction satisfies the following statements.

    - It has a finite throughput of at least 0 for every flow, or else a reason why there is no
      answer. The throughput may be missing for a flow that may send nothing between warm-up and
      end.
    - No link carries more than its capacity, within the error of counting packets (``counting``).
    - Each baseRTT is positive, and each loss rate lies between 0 and 1.
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
        most = 1.0 + SUM_TOLERANCE + counting(prediction)
        carried = np.nan_to_num(prediction.utilization)
        assert np.all(carried <= most), "a link carries at most its capacity"
    if prediction.base_rtt is not None:
        assert np.all(np.isnan(prediction.base_rtt) | (prediction.base_rtt > 0)), "baseRTT > 0"
    if prediction.loss_rate is not None:
        known = prediction.loss_rate[np.isfinite(prediction.loss_rate)]
        assert np.all((known >= 0) & (known <= 1)), "a loss rate is a probability"


@kinds.checked
def check_rates(rates: Floats, capacity: float) -> None:
    """Raise ``AssertionError`` unless steady rates of Vegas are positive and fill the link.

    The sum of the rates must equal the capacity within a relative error of 1e-12, the rounding
    error of a sum of up to 100 rates.
    """
    assert np.all(rates > 0), "each flow has a rate"
    total = math.fsum(np.ravel(rates))
    assert abs(total - capacity) <= 1e-12 * capacity, "the rates add up to the capacity"
