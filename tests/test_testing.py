"""The strategies keep the promises of their docstrings, and our answers satisfy the invariants."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vegasmodel as vm
from vegasmodel.predictor import CLOSED_FORMS
from vegasmodel.testing import invariants, strategies

fast = settings(max_examples=60, derandomize=True, deadline=None)


@fast
@given(strategies.equilibria(), st.randoms(use_true_random=False), st.floats(0.01, 100.0))
def test_invariants_of_the_steady_state(
    case: strategies.Equilibrium, random: object, k: float
) -> None:
    alpha, x, c = case
    rates = vm.equilibrium.rates(alpha, x, c)
    invariants.check_rates(rates, c)
    order = np.arange(alpha.size)
    random.shuffle(order)
    permuted = vm.equilibrium.rates(alpha[order], x[order], c)
    np.testing.assert_allclose(permuted, rates[order], rtol=1e-12)
    np.testing.assert_allclose(vm.equilibrium.rates(alpha, x / k, k * c), k * rates, rtol=1e-9)
    raised = x.copy()
    raised[0] += 0.1
    assert vm.equilibrium.rates(alpha, raised, c)[0] >= rates[0] * (1 - 1e-12)


@settings(max_examples=40, derandomize=True, deadline=None)
@given(strategies.scenarios(queue=strategies.queues(), max_links=2))
def test_closed_forms_keep_the_invariants(s: vm.Scenario) -> None:
    assert vm.Scenario.from_toml(s.to_toml()) == s
    for answer in vm.predict_all(s, CLOSED_FORMS):
        invariants.check(answer)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"throughput": np.array([700.0, 700.0])}, "at most its capacity"),
        ({"throughput": np.array([-1.0, 5.0])}, "at least 0"),
        ({"throughput": np.array([np.nan, 5.0])}, "finite"),
        ({"throughput": np.array([5.0])}, "one throughput a flow"),
        ({"loss_rate": np.array([1.5, 0.0])}, "probability"),
        ({"base_rtt": np.array([0.0, 1.0])}, "baseRTT"),
        ({"rtt_mean": np.array([0.11, 0.0999])}, "a mean RTT is at least"),
        ({"throughput": None, "applicable": False}, "says why"),
    ],
)
def test_a_wrong_answer_is_refused(wrong: dict[str, object], said: str) -> None:
    s = vm.Scenario([vm.Link(1000.0)], [vm.Flow("vegas", 0.1), vm.Flow("reno", 0.1)])
    right = vm.Prediction("rounds", s, np.array([400.0, 600.0]))
    invariants.check(right)
    with pytest.raises(AssertionError, match=said):
        invariants.check(dataclasses.replace(right, **wrong))


def test_whole_packets_may_pass_the_capacity_by_one_a_flow() -> None:
    s = vm.Scenario(
        [vm.Link(100.0)], [vm.Flow("reno", 0.1, count=3)], run=vm.Run("20 s", warmup="10 s")
    )
    counted = np.array([334.0, 335.0, 335.0]) / 10  # 1004 packets in 10 s
    invariants.check(vm.Prediction("rounds", s, counted))
    with pytest.raises(AssertionError):
        invariants.check(vm.Prediction("rounds", s, counted + 0.05))


def test_packets_count_as_late_as_their_way_back_takes() -> None:
    """10 s at 100 pkt/s: 2 flows, 20 packets in 200 ms, and windows of 30 and 7 behind a hole."""
    s = vm.Scenario(
        [vm.Link(100.0, buffer=7.0)],
        [
            vm.Flow("reno", 0.1, name="near", max_window=30.0),
            vm.Flow("reno", 0.3, name="far", max_window=7.0),
        ],
        run=vm.Run(duration="20 s", warmup="10 s"),
    )
    for model, packets in (("fluid", 3.0), ("rounds", 60.0), ("ns2", 60.0), ("bands", 3.0)):
        (found,) = invariants.counting(vm.Prediction(model, s, np.array([50.0, 50.0])))
        assert found == pytest.approx(packets / 1000)
    known = vm.Prediction("rounds", s, np.array([50.0, 50.0]), extra={"behind_holes": [4.0, 1.0]})
    (found,) = invariants.counting(known)
    assert found == pytest.approx(28.0 / 1000)


def test_a_receiver_holds_back_packets_that_count_later() -> None:
    """10 s at 100 pkt/s: one packet of each flow with delayed ACKs, and a queue at slow receivers.

    Behind a link whose queue lasts 80 ms, packets wait for at most 80 ms at slower access links.
    """
    scenario = vm.Scenario(
        [vm.Link(100.0, buffer=7.0)],
        [
            vm.Flow("reno", 0.1, count=2, delayed_ack=True, max_window=5.0),
            vm.Flow("newreno", 0.1),
        ],
        run=vm.Run(duration="20 s", warmup="10 s"),
    )
    none = {"behind_holes": [0.0, 0.0, 0.0]}
    slow = dataclasses.replace(scenario.flows[1], access=50.0)
    for flow, packets in ((scenario.flows[1], 4.0 + 2.0), (slow, 4.0 + 2.0 + 8.0)):
        s = scenario.replace(flows=(scenario.flows[0], flow))
        (found,) = invariants.counting(vm.Prediction("rounds", s, np.full(3, 33.0), extra=none))
        assert found == pytest.approx(packets / 1000)


def test_a_link_with_delayed_acks_and_slow_receivers_keeps_the_invariants() -> None:
    """4.24 packets more are counted than the link sends; without the two reasons, 4.20 may be."""
    both = {"variant": "ns2", "delayed_ack": True, "send_jitter": 0.0}
    flows = [
        vm.Flow("tahoe", "381.9 ms", delay_noise=0.0020477919242161617, **both),
        vm.Flow("tahoe", "378.8 ms", name="slow", count=2, access=49.755887832187305, **both),
    ]
    link = vm.Link(64.98401587138393, buffer=461.0)
    run = vm.Run(duration=20.0, warmup=5.0, seed=340, runs=1)
    found = vm.predict(vm.Scenario([link], flows, run=run), "rounds")
    more = (found.utilization[0] - 1.0) * 15.0 * link.capacity
    assert more > 3 + 1 + link.capacity * (0.3819 - 0.3788)  # else it would show nothing
    invariants.check(found)


def test_a_lost_retransmission_holds_back_more_than_the_path_and_its_buffer() -> None:
    """NewReno's duplicate ACKs release new packets until its timer expires after the warm-up.

    Of random runs only some are like this; with this seed, at least one of three is.
    """
    flows = [
        vm.Flow("reno", 0.1, count=8, variant="ns2", max_window=7.0, start=vm.Staggered(0.0, 0.5)),
        vm.Flow("newreno", 0.13, variant="ns2"),
    ]
    link = vm.Link(400.0, buffer=100.0, queue=vm.Red(5.0, 15.0))
    s = vm.Scenario([link], flows, run=vm.Run(duration=90.0, warmup=60.0, runs=3, seed=10))
    found = vm.predict(s, "rounds")
    behind = sum(found.extra["behind_holes"])
    assert behind > 400.0 * 0.13 + 100.0
    assert found.utilization[0] > 1.0 + 100.0 / (30.0 * 400.0)  # else it would show nothing
    invariants.check(found)


def test_with_infinite_buffers_the_warmup_bounds_what_counts_late() -> None:
    """An infinite bound would check nothing: 2 s of warm-up at 100 pkt/s are 200 packets."""
    flows = [vm.Flow("reno", 0.1), vm.Flow("vegas", 0.1, direction="reverse")]
    s = vm.Scenario([vm.Link(100.0, loss=0.01)], flows, run=vm.Run(duration="22 s", warmup="2 s"))
    for model in ("rounds", "ns2"):
        (found,) = invariants.counting(vm.Prediction(model, s, np.array([50.0, 50.0])))
        assert found == pytest.approx((3 + 200) / 2000)
    with pytest.raises(AssertionError, match="at most its capacity"):
        invariants.check(vm.Prediction("ns2", s, np.array([111.0, 50.0])))


def test_a_far_flow_that_leads_first_adds_to_a_near_one_that_leads_last() -> None:
    """Reno at 250 ms gives way to CUBIC at 56 ms; 26 packets more than 60 s at 200 pkt/s count."""
    s = vm.Scenario(
        [vm.Link(200.0, buffer=250.0)],
        [vm.Flow("reno", 0.25, variant="linux"), vm.Flow("cubic", 0.056, variant="linux")],
        run=vm.Run(duration="65 s", warmup="5 s", runs=1),
    )
    found = vm.predict(s, "rounds")
    assert found.utilization[0] > 1.0 + 3.5 / (60 * 200.0)  # else it would show nothing
    invariants.check(found)
