"""The periodic steady state against closed forms, long runs and its own invariants."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fluid.scenes import reno, scenario, steady_state, vegas
from vegasmodel import simulation
from vegasmodel.engines.fluid import continuous
from vegasmodel.engines.fluid import cycle as return_map
from vegasmodel.engines.starts import start_times
from vegasmodel.fields.errors import FieldError
from vegasmodel.scenario import Flow

limit_cycle = return_map.limit_cycle


@pytest.mark.parametrize(("c", "T", "B"), [(1000.0, 0.1, 30.0), (1000.0, 0.02, 50.0)])
def test_one_reno_source(c, T, B):
    # W runs from W_m/2 to W_m = cT + B + 1; dt = RTT dW with RTT = max(T, W/c)
    top = c * T + B + 1
    full = max(top / 2, c * T)  # where the queue begins
    period = T * (full - top / 2) + (top**2 - full**2) / (2 * c)
    answer = limit_cycle(scenario([reno(T)], c, B), step=0.01)
    assert answer.kind == "periodic"
    assert answer.period == pytest.approx(period, rel=1e-6)
    assert answer.throughput[0] == pytest.approx(3 * top**2 / 8 / period, rel=1e-6)
    assert answer.multipliers.size == 0


def test_fast_recovery_adds_a_round_trip_at_half_the_window():
    # in packets: W from W_m/2 to W_m = cT + B + 1/2, after one round trip of rest at W_m/2
    c, T, B = 1000.0, 0.1, 30.0
    top = c * T + B + 0.5
    climb = T * (c * T - top / 2) + (top**2 - (c * T) ** 2) / (2 * c)
    answer = limit_cycle(scenario([reno(T)], c, B), packets=True, step=0.01)
    assert answer.period == pytest.approx(climb + T, rel=1e-6)
    sent = 3 * top**2 / 8 + top / 2
    assert answer.throughput[0] == pytest.approx(sent / (climb + T), rel=1e-6)


def test_two_equal_sources_forget_half_of_their_difference_a_cycle():
    answer = limit_cycle(scenario([reno(name="a"), reno(name="b", start=1.0)]))
    assert answer.kind == "periodic"
    np.testing.assert_allclose(answer.multipliers, [0.5], atol=1e-6)
    np.testing.assert_allclose(answer.throughput[0], answer.throughput[1], rtol=1e-6)


def test_vegas_pressed_to_its_threshold_forgets_everything():
    # devendictis (7): at the loss W_V stands on its equilibrium, whatever it was before
    answer = limit_cycle(scenario([vegas(), reno()]))
    np.testing.assert_allclose(answer.multipliers, [0.0], atol=1e-6)
    assert list(answer.losses) == [0, 1]


@pytest.mark.parametrize("losers", continuous.LOSERS)
def test_same_averages_as_a_long_run(losers):
    flows = [vegas(), vegas(rtt=0.05, name="v2"), reno(0.11), reno(0.07, name="r2")]
    s = scenario(flows, 1500.0, 30.0, 2200.0, 200.0)
    answer, run = limit_cycle(s, losers=losers), continuous.run(s, losers=losers)
    assert answer.kind == "periodic"
    # a run ends inside a cycle: one in two hundred
    np.testing.assert_allclose(answer.throughput, run.throughput, rtol=5e-3)
    np.testing.assert_allclose(answer.rtt_mean, run.rtt_mean, rtol=5e-3)
    assert answer.queue_mean == pytest.approx(run.queue_mean[0], rel=0.02)


def test_error_falls_with_the_square_of_the_step():
    s = scenario([vegas(), reno(0.13)])
    values = [limit_cycle(s, step=h).throughput[0] for h in (0.8, 0.4, 0.2, 0.1)]
    errors = np.abs(np.diff(values))
    assert 3.3 < errors[0] / errors[1] < 4.7
    assert 3.3 < errors[1] / errors[2] < 4.7


def test_vegas_alone_rests_at_the_steady_state_equation():
    flows = [vegas(2.0, name="a"), vegas(2.0, name="b", start=40.0, rtt=0.2)]
    answer = limit_cycle(scenario(flows, 250.0, math.inf))
    assert answer.kind == "fixed point"
    assert answer.period == 0.0
    x = answer.base_rtt - np.array([0.08, 0.2])
    np.testing.assert_allclose(answer.throughput, steady_state([2.0] * 2, x, 250.0), rtol=1e-9)
    # the thresholds are reached in finite time: nothing is left of a small displacement
    np.testing.assert_allclose(answer.multipliers, 0.0, atol=1e-6)


def test_a_dead_band_remembers():
    flows = [vegas(1.0, 3.0, name="a"), vegas(1.0, 3.0, name="b", start=40.0)]
    answer = limit_cycle(scenario(flows, 250.0, math.inf))
    assert answer.kind == "fixed point"
    assert not np.any(np.abs(answer.multipliers) < 1.0)


def test_at_an_end_of_its_dead_band_a_window_has_no_multiplier():
    """Into the band a disturbance lasts (1), out of it none is left (0); it said 0.5, the mean."""
    alone = scenario([vegas(3.0, 9.0)], 250.0, math.inf)
    answer = limit_cycle(alone)
    # two packets late by the RTT, as a part 20/26 of the packets in flight, and half a decision
    assert answer.queue_mean == pytest.approx(3.0 + 2.0 * 20.0 / 26.0 + 0.5, rel=1e-6)
    assert np.isnan(answer.multipliers).all()
    # the queue of the second flow, with alpha = beta, brings the backlog of the first to 5 packets
    later = vegas(1.0, name="b", start=40.0, over_estimate=0.0)
    inside = [vegas(2.0, 8.0, name="a"), later]
    values = limit_cycle(scenario(inside, 250.0, math.inf)).multipliers
    np.testing.assert_allclose(values, [1.0, 0.0], atol=1e-6)


def test_only_flows_that_stay_count():
    gone = reno(name="gone", stop=50.0)
    answer = limit_cycle(scenario([vegas(), reno(), gone]))
    alone = limit_cycle(scenario([vegas(), reno()]))
    np.testing.assert_allclose(answer.throughput[:2], alone.throughput, rtol=1e-6)
    assert answer.throughput[2] == 0


def test_a_transient_of_more_overflows_than_are_averaged():
    # Reno's overflows are a sixth of Vegas's round trip apart, until Vegas alone fills the buffer
    s = scenario([reno(0.0139, start=3.66), vegas(2.0, 3.0, rtt=0.2481, start=3.16)], 204.0, 1.0)
    assert "no window can shrink" in limit_cycle(s, losers="loss-based").status


def test_a_buffer_that_vegas_alone_keeps_full_has_no_cycle():
    rows = ((0.1733, 1.0, 3.0, 0.0), (0.0433, 5.0, 7.0, 6.01), (0.1174, 4.0, 6.0, 9.08))
    sources = [vegas(a, b, rtt=T, name=f"v{a:g}", start=t) for T, a, b, t in rows]
    s = scenario([reno(0.1787, start=1.5), *sources], 268.0, 13.0)
    answer = limit_cycle(s, losers="loss-based")
    assert "no window can shrink" in answer.status
    assert continuous.run(s, losers="loss-based").status == answer.status


LAWS = ("vegas", "reno", "newreno", "sack", "tahoe")


@settings(deadline=None, max_examples=40, derandomize=True)
@given(
    c=st.floats(200, 3000),
    B=st.floats(12, 80),
    flows=st.lists(
        st.tuples(
            st.sampled_from(LAWS), st.floats(0.03, 0.2), st.integers(1, 5), st.integers(0, 2)
        ),
        min_size=2,
        max_size=4,
    ),
    losers=st.sampled_from(("growing", "all")),
)
def test_any_sources_have_the_averages_of_a_long_run(c, B, flows, losers):
    groups = [
        vegas(float(a), float(a + band), rtt=rtt, name=f"v{i}", start=2.0 * i)
        if law == "vegas"
        else Flow(law=law, rtt=rtt, name=f"f{i}", start=2.0 * i)
        for i, (law, rtt, a, band) in enumerate(flows)
    ]
    s = scenario(groups, c, B, 4000.0, 2000.0)
    answer, run = limit_cycle(s, losers=losers), continuous.run(s, losers=losers)
    assert (answer.status, run.status) == ("done", "done")
    # the run ends inside a cycle; where nothing repeats both are means of finite stretches
    cut = 2.0 * (0.0 if math.isnan(answer.period) else answer.period) / 2000.0
    allowed = cut * run.throughput + 4.0 * answer.spread + 1e-4 * c
    assert np.all(np.abs(answer.throughput - run.throughput) <= allowed)
    if answer.kind != "neither found":
        assert not np.any(np.abs(answer.multipliers) > 1.0 + 1e-6)  # those at a kink are NaN


def test_no_answer_is_said():
    answer = limit_cycle(scenario([reno(0.05, count=20)], 100.0, 0.0))
    assert answer.kind == "neither found"
    assert answer.status != "done"
    assert np.all(np.isnan(answer.throughput))
    short = limit_cycle(scenario([reno(0.1)], 1e6, 1e5), longest=100.0)
    assert short.kind == "neither found"
    assert "time" in short.status


def test_without_a_period_there_are_no_losses_per_period(monkeypatch):
    """Earlier the result had the losses of a run over many overflows.

    No motion returns to within less than 0.
    """
    monkeypatch.setattr(return_map, "CLOSE", -1.0)
    answer = limit_cycle(scenario([vegas(), reno()]))
    assert (answer.kind, answer.status) == ("neither found", "done")
    assert np.all(np.isnan(answer.losses))


def test_misuse():
    with pytest.raises(ValueError, match="random loss"):
        limit_cycle(scenario([vegas()], loss=0.1), losers="growing")
    with pytest.raises(ValueError, match="losers"):
        limit_cycle(scenario([vegas()]), losers="me")
    with pytest.raises(ValueError, match="step"):
        limit_cycle(scenario([vegas()]), step=0.0)
    with pytest.raises(FieldError, match=r"^model"):
        simulation.limit_cycle(scenario([vegas()]), "fast")


@settings(deadline=None, max_examples=25, derandomize=True)
@given(
    c=st.floats(200, 3000),
    rtts=st.lists(st.floats(0.03, 0.2), min_size=2, max_size=4),
    B=st.floats(12, 80),
    alpha=st.floats(2, 5),
    scale=st.floats(0.2, 5.0),
)
def test_invariants(c, rtts, B, alpha, scale):
    def at(order, k):
        flows = [
            vegas(alpha, rtt=rtts[i] * k, name="v") if i == 0 else reno(rtts[i] * k, name=f"r{i}")
            for i in order
        ]
        return limit_cycle(scenario(flows, c / k, B))

    n = len(rtts)
    answer, turned = at(range(n), 1.0), at(range(n - 1, -1, -1), 1.0)
    assert answer.status == "done"
    assert answer.throughput.sum() <= c * (1 + 1e-12)
    assert answer.queue_mean <= B + 1
    if answer.kind == "periodic":
        assert answer.residual < 1e-5
        assert np.all(np.abs(answer.multipliers) < 1)
        np.testing.assert_allclose(turned.throughput[::-1], answer.throughput, rtol=1e-5)
        slower = at(range(n), scale)
        np.testing.assert_allclose(slower.throughput * scale, answer.throughput, rtol=1e-5)


@pytest.mark.parametrize("model", ["fluid", "rounds"])
def test_random_starts_are_those_of_the_first_run(model):
    """As ns-2's, they follow from ``run.seed`` and the number of the run."""
    flows = [vegas(9.0, name="a"), vegas(9.0, name="b", rtt=0.2)]
    asked = scenario(flows, 250.0, math.inf)
    asked = dataclasses.replace(asked, run=dataclasses.replace(asked.run, start_jitter=30.0))
    moved = dataclasses.replace(
        asked,
        flows=tuple(
            dataclasses.replace(group, start=start)
            for group, start in zip(asked.flows, start_times(asked, 0), strict=True)
        ),
        run=dataclasses.replace(asked.run, start_jitter=0.0),
    )
    found, there = (simulation.limit_cycle(one, model) for one in (asked, moved))
    np.testing.assert_allclose(found.throughput, there.throughput, rtol=1e-9)
    still = dataclasses.replace(asked, run=moved.run)
    assert not np.allclose(simulation.limit_cycle(still, model).throughput, found.throughput)
