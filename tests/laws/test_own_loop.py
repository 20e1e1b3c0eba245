"""Laws of a user that move the window up and down, because they learn of the queue a round late."""

import numpy as np
import pytest
from scipy.optimize import brentq

import vegasmodel as vm
from vegasmodel.adapters.own_loop import delay_of, moves
from vegasmodel.results.assumption import Assumption

NAME = "own-law-swings-little"
C, T = 1500.0, 0.06  # the link's capacity, packets/s, and the RTT with empty queues, s


def to_target(f):
    """Copa's target window, to which the window may double or halve in a round trip."""
    target = f.rtt / (0.5 * max(f.rtt - f.base_rtt, 1e-6))
    return min(max(target - f.window, -0.5 * f.window), f.window)


def flow(name: str, drift, **options) -> vm.Flow:
    vm.register_law(name, drift, delay_based=True, **options)
    return vm.Flow(name, T, variant="ns2")


def said_by_fluid(*flows: vm.Flow, buffer: float = 100.0) -> Assumption:
    case = vm.Scenario([vm.Link(C, buffer=buffer)], flows, run=vm.Run(duration=60.0, warmup=20.0))
    (said,) = [a for a in vm.predict(case, "fluid").assumptions if a.name == NAME]
    return said


@pytest.mark.parametrize("once", [False, True])
def test_fluid_warns_of_a_law_that_halves_and_doubles_its_window(once):
    """Here the two simulators differ by a half; earlier no assumption of ``fluid`` failed."""
    vm.register_law("to-target", to_target, delay_based=True, once_a_round=once)
    said = said_by_fluid(vm.Flow("to-target", T, count=2, variant="ns2"))
    assert said.holds is False
    assert "to-target" in said.detail


@pytest.mark.parametrize(
    ("drift", "options"),
    [
        (lambda f: min(f.window, 0.5 * (8.0 - f.backlog)), {"once_a_round": True}),  # FAST
        (lambda f: 1.0, {}),  # grows until a loss
        (lambda f: 0.01 * f.window, {}),
        (lambda f: 1.0 if f.backlog < 4.0 else -1.0, {"once_a_round": True}),
    ],
)
def test_fluid_does_not_warn_of_laws_that_swing_little(drift, options):
    assert said_by_fluid(flow("calm", drift, **options)).holds is True


def test_beside_vegas_a_swing_of_more_than_beta_packets_counts():
    """A tenth of this window is 17 packets or more, but Vegas keeps at most 3 packets queued."""
    vm.register_law("signs", lambda f: 6.0 if f.rtt - f.base_rtt < 4e-3 else -6.0, delay_based=True)
    own = vm.Flow("signs", 0.25, variant="ns2")
    assert said_by_fluid(own).holds is True
    assert said_by_fluid(own, vm.Flow("vegas", 0.25, variant="ns2")).holds is False


@pytest.mark.parametrize("model", ["fluid", "rounds"])
def test_a_law_that_still_grows_when_averages_begin_is_named(model):
    """Its window grows by at most half a packet a round trip, 0.2 * 2.4 packets.

    Slow start ends at about half of the c T = 184 packets that fill the link. The other half takes
    about 190 round trips of 184 ms, that is 35 s; the warm-up is 20 s. Later the law keeps 2.4
    packets queued, so the link is full.
    """
    vm.register_law("slow", lambda f: 0.2 * (2.4 - f.backlog), delay_based=True)
    said, rates = [], []
    for duration in (60.0, 600.0):
        flow = vm.Flow("slow", 0.184, variant="ns2")
        run = vm.Run(duration=duration, warmup=duration / 3.0)
        found = vm.predict(vm.Scenario([vm.Link(1000.0, buffer=57.0)], [flow], run=run), model)
        said += [a for a in found.assumptions if a.name == "settles-in-time"]
        rates.append(float(np.asarray(found.throughput)[0]))
    assert rates[0] < 900.0
    assert rates[1] == pytest.approx(1000.0, rel=0.01)
    assert [each.holds for each in said] == [False, True]
    assert "the law of slow moves the window to" in said[0].detail


@pytest.mark.parametrize("model", ["fluid", "rounds"])
def test_a_law_at_rest_counts_as_settled(model):
    vm.register_law("rests", lambda f: 1.0 if f.backlog < 4.0 else -1.0, delay_based=True)
    for flows in ([vm.Flow("rests", T, count=2)], [vm.Flow("rests", T), vm.Flow("vegas", T)]):
        found = vm.predict(vm.Scenario([vm.Link(C, buffer=100.0)], flows), model)
        assert {a.name: a.holds for a in found.assumptions}["settles-in-time"] is not False


@pytest.mark.parametrize("model", ["fluid", "rounds"])
@pytest.mark.parametrize(
    "options",
    [
        [{"max_window": 40.0}],  # less than the link holds
        [{"access": 500.0}],  # its queue forms before the link
        [{"delay_noise": 2e-3}],  # the law takes some of it for a queue
        [{"name": "a"}, {"name": "b", "stop": 40.0}],
        [{"name": "a"}, {"name": "b", "start": 30.0}],
    ],
)
def test_windows_that_something_else_limits_do_not_count_as_unsettled(model, options):
    """Without a limit of its own, or beside fewer flows, such a window would be larger or smaller.

    But in this scenario a longer run would not change it.
    """

    def fast(f):
        return min(f.window, 0.5 * (8.0 - f.backlog))

    vm.register_law("fast", fast, delay_based=True, once_a_round=True)
    flows = [vm.Flow("fast", 0.1, variant="ns2", **each) for each in options]
    run = vm.Run(duration=60.0, warmup=20.0)
    found = vm.predict(vm.Scenario([vm.Link(1000.0, buffer=50.0)], flows, run=run), model)
    names = {a.name: a.holds for a in found.assumptions}
    assert names.get("settles-in-time") is not False


def test_the_test_ends_early_only_if_nothing_moves_any_more():
    """A law that rests for 30 round trips, by a number that it keeps, moves in the others."""

    def rest(f):
        return 0.0 if f.age < 30.0 else 2.0

    calls = []

    def counted(f):
        calls.append(f.window)
        return 0.0

    case = vm.Scenario([vm.Link(C, buffer=100.0)], (flow("at-rest", counted),))
    calls.clear()  # those of the registration
    found = moves(case, np.array([50.0]), np.array([T]), trips=1000)
    assert len(calls) < 10
    assert found.later == pytest.approx([51.0])  # the test adds a packet at first
    ages = {"state": {"age": 0.0}, "update": lambda f: f.age + 1.0}
    case = vm.Scenario([vm.Link(C, buffer=100.0)], (flow("wakes", rest, **ages),))
    found = moves(case, np.array([50.0]), np.array([T]), trips=40)
    # the window counts from round trip 21 on, and grows from round trip 30 on, to 73 packets
    assert found.later == pytest.approx(
        [(9 * 51.0 + sum(51.0 + 2.0 * k for k in range(1, 12))) / 20]
    )


@pytest.mark.parametrize(("k", "swinging"), [(0.7, False), (1.4, True)])
def test_windows_swing_if_the_gain_of_the_loop_exceeds_one(k, swinging):
    """A law adds k times the packets that are missing in the queue.

    Alone on the link, W packets make a queue of W - c T. So the distance x of W from its
    equilibrium follows x(n + 1) = x(n) - k x(n - 1). The roots of z^2 - z + k = 0 have the
    magnitude sqrt(k) if k > 1/4. So x decays if k < 1, and grows if k > 1.
    """
    own = flow("queue", lambda f: k * (20.0 - C * (f.rtt - f.base_rtt)))
    case = vm.Scenario([vm.Link(C, buffer=100.0)], (own,))
    (found,) = moves(case, np.array([C * T + 20.0]), np.array([T])).swings
    assert (found > 20.0) if swinging else (found < 1.4 * np.sqrt(k) ** 20)


def test_the_queueing_delay_makes_the_rates_fill_the_link():
    windows, rtt = np.array([40.0, 90.0, 10.0]), np.array([0.02, 0.1, 0.2])
    for c in (900.0, 1500.0):
        exact = brentq(lambda s, c=c: (windows / (rtt + s)).sum() - c, 0.0, 1.0, xtol=1e-14)
        assert delay_of(windows, rtt, c, np.inf) == pytest.approx(exact, rel=1e-6)
        assert delay_of(windows, rtt, c, 0.5 * exact) == 0.5 * exact  # a full buffer
    assert delay_of(windows, rtt, 4000.0, np.inf) == 0.0  # 40/0.02 + 90/0.1 + 10/0.2 = 2950
    assert delay_of(0.0 * windows, rtt, 4000.0, np.inf) == 0.0  # all flows starve
