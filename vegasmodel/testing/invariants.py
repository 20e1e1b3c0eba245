"""Invariants: statements that hold for every answer, each within a stated tolerance."""

from __future__ import annotations

import math

import numpy as np

from vegasmodel.metrics import Floats
from vegasmodel.prediction import Prediction

__all__ = ["check", "check_rates", "counting"]

SUM_TOLERANCE = 1e-9  # rounding of sums in double precision
NOT_CONSERVED = ("arrivals-bonald",)  # a printed closed form whose rates do not add up


def counting(prediction: Prediction) -> float:
    """The fraction of a link's capacity by which counts of whole packets may exceed it.

    In a time T, a link of capacity c sends at most ``c T`` packets, and one more that was already
    in transmission when T began.  Besides, the count of each of n flows may begin and end in the
    middle of a packet.  So the fraction is ``(n + 1) / (c T)``.  It is larger in proportion if a
    flow has packets larger than the scenario's.
    """
    scenario = prediction.scenario
    run, slowest = scenario.run, min(link.capacity for link in scenario.links)
    largest = max(scenario.size_of(group) for group in scenario.flows) / scenario.packet_size
    flows = len(scenario.members)
    return (flows + 1) * max(largest, 1.0) / (slowest * (run.duration - run.warmup))


def check(prediction: Prediction) -> None:
    """Raise ``AssertionError`` unless the prediction satisfies these statements.

    - It has a finite throughput of at least 0 for every flow, or a reason why there is no answer.
    - No link carries more than its capacity, apart from whole-packet counting (``counting``).
    - Each baseRTT is positive, and each loss rate lies between 0 and 1.
    """
    if not prediction.applicable:
        assert prediction.throughput is None, "an answer that is not applicable has no throughput"
        assert prediction.reason, "a model without an answer says why"
        return
    assert prediction.throughput is not None
    rates = prediction.throughput
    assert rates.shape == (len(prediction.scenario.members),), "one throughput a flow"
    assert np.all(np.isfinite(rates)), "throughputs are finite"
    assert np.all(rates >= 0.0), "throughputs are at least 0"
    if prediction.model not in NOT_CONSERVED and prediction.utilization is not None:
        most = 1.0 + SUM_TOLERANCE + counting(prediction)
        assert np.nanmax(prediction.utilization) <= most, "a link carries at most its capacity"
    if prediction.base_rtt is not None:
        assert np.all(np.isnan(prediction.base_rtt) | (prediction.base_rtt > 0)), "baseRTT > 0"
    if prediction.loss_rate is not None:
        known = prediction.loss_rate[np.isfinite(prediction.loss_rate)]
        assert np.all((known >= 0) & (known <= 1)), "a loss rate is a probability"


def check_rates(rates: Floats, capacity: float) -> None:
    """Raise ``AssertionError`` unless steady rates of Vegas flows are positive and fill the link.

    Their sum must equal the capacity within a relative error of 1e-12, the rounding error of a sum
    of up to 100 rates.
    """
    assert np.all(rates > 0), "each flow has a rate"
    total = math.fsum(np.ravel(rates))
    assert abs(total - capacity) <= 1e-12 * capacity, "the rates add up to the capacity"
