"""Losses and timers of the rounds engine: against stored ns-2 runs and by hand."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from vegasmodel.fluid import answer
from vegasmodel.fluid.rounds import run
from vegasmodel.fluid.rounds_laws import grow, window
from vegasmodel.fluid.rounds_state import FLOW, NS2, VEGAS
from vegasmodel.fluid.rounds_timer import back_off, heard
from vegasmodel.scenario import Flow, Link, Red, Run, Scenario

# Capacity, buffer, RED's lower threshold or None, rtt, alpha, number of Vegas sources, the other
# law; ns-2's ratio Vegas : other, a mean over 5 or 20 runs (benchmarks/reference/accuracy.json).
NS2_RUNS = {
    "Reno in timeouts": ((1974.0, 18.0, None, 0.0307, 5, 3, "reno"), 597.08 / 173.12),
    "RED, bursts": ((425.0, 100.0, 18.0, 0.0488, 2, 1, "newreno"), 56.60 / 368.35),
    "RED": ((235.0, 100.0, 19.0, 0.1417, 5, 1, "newreno"), 65.50 / 169.44),
}


def _scenario(name: str) -> Scenario:
    capacity, buffer, low, rtt, alpha, count, law = NS2_RUNS[name][0]
    link = Link(capacity, buffer=buffer)
    if low is not None:
        link = dataclasses.replace(link, queue=Red(low, 3.0 * low))
    vegas = Flow("vegas", rtt, count=count, alpha=alpha, beta=alpha, variant="ns2")
    runs = Run(300.0, 100.0, seed=3, start_jitter=0.5)
    return Scenario((link,), (vegas, Flow(law, rtt, variant="ns2")), run=runs)


@pytest.mark.parametrize("name", NS2_RUNS)
def test_stored_ns2_runs(name: str) -> None:
    prediction = answer(_scenario(name), runs=3)
    assert prediction.throughput is not None
    ratio = prediction.throughput[:-1].mean() / prediction.throughput[-1]
    assert ratio == pytest.approx(NS2_RUNS[name][1], rel=0.05)


def test_what_is_switched_off() -> None:
    """Without rounding the backlog is held at alpha, not half a packet above: Vegas gets less."""
    scenario = _scenario("RED, bursts")
    full, bare = (run(scenario, without=off).flows["delivered"][0] for off in ((), ("rounding",)))
    assert bare < full
    with pytest.raises(ValueError, match=r"without: .*gravity.* is not allowed"):
        run(scenario, without=("gravity",))


@pytest.mark.parametrize("packets", [7, 14, 49])
def test_the_window_opens_when_ns2s_sum_in_double_precision_does(packets: int) -> None:
    total = float(packets)
    for _ in range(packets):
        total += 1.0 / packets
    record = np.zeros(1, FLOW)
    for key, value in {
        "law": VEGAS,
        "variant": NS2,
        "cwnd": packets,
        "growth": 1.0 / packets,
        "ssthresh": 2.0,
        "next": packets,
        "max_window": np.inf,
    }.items():
        record[key] = value
    grow(record[0], float(packets))
    assert window(record[0]) == int(total)


def test_bsd_estimate_in_ticks() -> None:
    """First sample m: srtt = 8 m, rttvar = 2 m, so 3 m ticks; then gains 1/8 and 1/4."""
    record = np.zeros(1, FLOW)
    record["variant"], record["backoff"], record["acked"] = NS2, 4.0, 1.0
    f = record[0]
    f["rto"] = 6.0
    heard(f, 0.25)  # sent at 0: 2 ticks
    assert f["rto"] == pytest.approx(0.6)
    assert f["backoff"] == 1.0
    assert f["deadline"] == pytest.approx(0.25 + 4 * 6.0)  # set before the sample counts
    f["timed_at"], f["timed"], f["acked"] = 1.03, 1.0, 2.0
    heard(f, 1.48)  # 4 ticks: srtt 16 + 2, rttvar 4 + 2 - 1
    assert f["rto"] == pytest.approx((5 * 8 + 18) // 8 * 0.1)
    for factor in (2.0, 4.0, 8.0, 16.0):
        back_off(f)
        assert f["backoff"] == factor
    assert f["srtt"] == 0  # backed off that far, the mean is forgotten
