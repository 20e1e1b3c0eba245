"""The steady state of windows that change once per round trip, for any law."""

import dataclasses
import math

import numpy as np
import pytest

import vegasmodel as vm
from tests.fluid.scenes import reno, scenario, vegas
from vegasmodel.engines.fluid import batch, run, steady
from vegasmodel.metrics import standard_error
from vegasmodel.scenario import Flow, Red

limit_cycle = vm.limit_cycle


def waitless(*flows, **link):
    """Senders that do not wait before they send."""
    return scenario([dataclasses.replace(flow, send_jitter=0.0) for flow in flows], **link)


@pytest.mark.parametrize("once", [False, True])
def test_two_fast_sources_rest_where_each_keeps_its_packets_in_the_queue(once):
    """FAST (Wei, Jin, Low and Hegde 2006): each has alpha packets queued, so s = sum alpha/c."""
    vm.register_law(
        "fast", lambda f: 0.5 * (f.alpha - f.backlog), delay_based=True, once_a_round=once
    )
    alpha, c = np.array([3.0, 6.0]), 1000.0
    flows = [
        Flow("fast", rtt, name=f"{a:g}", alpha=a, beta=a, over_estimate=0.0)
        for a, rtt in zip(alpha, (0.1, 0.05), strict=True)
    ]
    answer = limit_cycle(waitless(*flows, capacity=c, buffer=math.inf))
    assert answer.kind == "fixed point"
    np.testing.assert_allclose(answer.throughput, alpha * c / alpha.sum(), rtol=1e-6)
    assert answer.queue_mean == pytest.approx(alpha.sum(), rel=1e-6)


def test_a_drift_of_one_packet_a_round_trip_has_the_averages_of_reno():
    # between cT + B + 1 and half of it; dt = RTT dW with RTT = max(T, W/c)
    vm.register_law("by-one", lambda _: 1.0)
    c, T, B = 1000.0, 0.1, 30.0
    top = c * T + B + 1
    period = T * (c * T - top / 2) + (top**2 - (c * T) ** 2) / (2 * c)
    answer = limit_cycle(waitless(Flow("by-one", T), capacity=c, buffer=B))
    expected = 3 * top**2 / 8 / period
    assert abs(answer.throughput[0] - expected) < 4 * answer.spread[0] + c / 1000


def test_vegas_of_ns2_rests_on_whole_packets_between_its_thresholds():
    """ns-2 (tcp-vegas.cc): delta = int((1 - baseRTT/RTT) W + 0.5) is between alpha and beta."""
    flows = [vegas(1.0, 3.0, rtt=T, name=f"{T}", variant="ns2") for T in (0.1, 0.05)]
    answer = limit_cycle(waitless(*flows, capacity=1000.0, buffer=math.inf))
    assert (answer.kind, answer.period, answer.residual) == ("fixed point", 0.0, 0.0)
    np.testing.assert_allclose(answer.window, np.round(answer.window), rtol=1e-12)
    assert answer.throughput.sum() == pytest.approx(1000.0)
    delta = np.floor((1.0 - answer.base_rtt / answer.rtt_mean) * answer.window + 0.5)
    assert np.all((delta >= 1.0) & (delta <= 3.0))


@pytest.mark.parametrize(
    ("variant", "capacity", "near"), [("ns2", 400.0, 0.02), ("linux", 250.0, 0.002)]
)
def test_a_period_is_one_in_the_trajectory_too(variant, capacity, near):
    """In ns-2's stack several cycles are possible, whose averages differ by up to 2 %."""
    more = {"variant": variant, "initial_window": 2.0 if variant == "linux" else None}
    pair = waitless(vegas(**more), reno(**more), capacity=capacity)
    answer = limit_cycle(pair)
    assert answer.kind == "periodic"
    long = dataclasses.replace(pair, run=vm.Run(duration=200 * answer.period, warmup=0.0))
    window = run.run(long, answer.period / 64).window[-64 * 20 :]
    np.testing.assert_allclose(window[:-64], window[64:], atol=1e-3)
    # it is the shortest: half of it is none
    assert np.abs(window[:-32] - window[32:]).max() > 0.9
    after = dataclasses.replace(long, run=vm.Run(long.run.duration, 100 * answer.period))
    np.testing.assert_allclose(answer.throughput, run.run(after).throughput, rtol=near)
    assert answer.throughput.sum() < capacity * (1 + 1e-12)


@pytest.mark.parametrize(("rtt", "buffer"), [(0.06, 40.0), (0.04, 35.0)])
def test_a_recovery_is_no_rest(rtt, buffer):
    """NewReno repairs one loss in each round trip: for dozens of them its window does not move."""
    flows = [Flow("newreno", rtt, variant="ns2"), vegas(3.0, rtt=rtt, variant="ns2")]
    pair = waitless(*flows, capacity=1000.0, buffer=buffer, duration=100.0, warmup=30.0)
    answer = limit_cycle(pair)
    assert (answer.kind, answer.status) == ("periodic", "done")
    assert answer.residual < 1e-6
    np.testing.assert_allclose(answer.throughput, run.run(pair).throughput, rtol=0.02)


def test_a_window_that_moves_after_a_long_wait_was_not_at_rest():
    """For one of these waits the window begins to grow just after the search has looked at it."""
    vm.register_law("waits", lambda f: 1.0 if f.elapsed > f.alpha else 0.0)
    for wait in np.arange(1.5, 3.0, 0.04):
        flow = Flow("waits", 0.06, alpha=wait, beta=wait)
        answer = limit_cycle(waitless(flow, capacity=1000.0, buffer=40.0))
        assert answer.kind != "fixed point" or answer.residual <= 1e-6, wait


def test_the_stack_counts():
    """ns-2's Vegas has other edges than the papers' rule, because it rounds the backlog."""
    by_stack = [
        limit_cycle(waitless(vegas(variant=v), reno(variant=v))).throughput
        for v in ("paper", "ns2", "linux")
    ]
    assert np.ptp([rates[0] for rates in by_stack]) > 20.0
    pair = waitless(vegas(variant="ns2"), reno(variant="ns2"))
    at_every_instant = limit_cycle(pair, losers="growing")
    assert at_every_instant.multipliers.size == 1
    assert limit_cycle(pair).multipliers.size == 0


def test_what_chance_decides_does_not_repeat():
    """Waits make the order of packets at the full buffer random, and RED drops at random."""
    pair = scenario([vegas(variant="ns2"), reno(0.11, variant="ns2")], 400.0)
    assert limit_cycle(pair).kind == "neither found"
    red = waitless(vegas(variant="ns2"), reno(variant="ns2"), buffer=100.0, queue=Red(5.0, 15.0))
    answer = limit_cycle(red)
    assert answer.kind == "neither found"
    seen = run.run(dataclasses.replace(red, run=vm.Run(duration=1000.0, warmup=200.0, seed=7)))
    apart = np.abs(answer.throughput - seen.throughput)
    assert np.all(apart < 5 * np.hypot(answer.spread, standard_error(seen.throughput_runs)))


def test_growth_without_end_is_no_steady_state():
    answer = limit_cycle(waitless(reno(variant="ns2"), buffer=math.inf), longest=100.0)
    assert answer.status != "done"
    assert np.isnan(answer.throughput).all()


def test_batches_decide_as_the_stack_does():
    cases = [
        waitless(vegas(variant=v), reno(variant=v), duration=60.0, warmup=20.0, **link)
        for v in ("ns2", "paper", "linux")
        for link in ({}, {"queue": Red(5.0, 15.0)})
    ]
    cases += [waitless(vegas(), vegas(name="b"), reno(), duration=60.0, warmup=20.0)]
    found = batch.run(cases, threads=2)
    for i, case in enumerate(cases):
        alone = run.run(case)
        n = alone.throughput.size
        np.testing.assert_allclose(found.throughput[i, :n], alone.throughput, rtol=1e-8)
        np.testing.assert_allclose(found.base_rtt[i, :n], alone.base_rtt, rtol=1e-8)
        assert np.isnan(found.throughput[i, n:]).all()
    assert found.ok.all()
    with pytest.raises(ValueError, match=r"scenario 1: .*change continuously"):
        batch.run([cases[2], cases[0]], engine="jax")
    with pytest.raises(ValueError, match=r"scenario 1: .*ecn"):
        batch.run([cases[0], waitless(vegas(), queue=Red(5.0, 15.0, ecn=True))])


def test_a_longer_search_finds_longer_periods(monkeypatch):
    """A given ``longest`` made only the averages longer."""
    pair = waitless(vegas(variant="ns2"), reno(variant="ns2"))
    monkeypatch.setattr(steady, "SEARCH", 20.0)
    monkeypatch.setattr(steady, "FIRST", 20.0)
    assert limit_cycle(pair).kind == "neither found"
    assert limit_cycle(pair, longest=1280.0).kind == "periodic"


def test_throughputs_that_drift_for_the_whole_search_give_no_averages():
    """Slow start carries the first window far beyond cT = 20,000 packets.

    The second flow takes over the first one's share, as its baseRTT is larger. But a window falls
    by at most a packet per round trip, so this takes longer than the search.
    """
    flows = [
        vegas(1.0, 3.0, rtt=0.2, name=f"v{k}", variant="linux", start=20.0 * k) for k in (0, 1)
    ]
    short = limit_cycle(scenario(flows, capacity=1e5, buffer=math.inf))
    assert short.status == "the windows did not settle in the time allowed"
    assert np.all(np.isnan(short.throughput))
    settled = limit_cycle(scenario(flows, capacity=1e5, buffer=math.inf), longest=80_000.0)
    assert settled.status == "done"
    assert settled.throughput.sum() == pytest.approx(1e5, rel=1e-3)
