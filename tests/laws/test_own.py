"""A law that a user registers, against the same law of the package."""

import numpy as np
import pytest

import vegasmodel as vm
from tests.laws.scenes import by_rounds, rates, scenario
from vegasmodel.scenario import Link, Red, Run, Scenario


def test_a_registered_law_gives_what_the_exact_integration_of_the_same_law_gives():
    """``continuous.py`` solves for thresholds and ``sampled.py`` steps; both give one motion."""
    for pair in (("vegas", "reno"), ("reno", "reno"), ("vegas", "vegas")):
        own = tuple(f"own-{name}" for name in pair)
        np.testing.assert_allclose(rates(*own), rates(*pair), rtol=3e-3)


def test_a_registered_law_runs_in_a_stack_as_the_law_of_the_package_does():
    same = rates("vegas", "sack", "ns2")
    np.testing.assert_array_equal(rates("vegas", "own-reno", "ns2"), same)


def test_an_aimd_law_takes_the_share_that_its_averages_say():
    """AIMD(a, b) against AIMD(1, 1/2) is fair where a = 3 b/(2 - b) (Yang and Lam, 2000)."""

    @vm.register_law("aimd", decrease=0.875)
    def drift(f):
        return 0.2  # 3 (1/8)/(2 - 1/8)

    one, two = rates("aimd", "reno", buffer=40.0)
    assert one / two == pytest.approx(1.0, abs=0.1)


def test_rules_of_a_loss_see_what_they_ask_for():
    """A cut to one half, written as a rule, equals the cut by the factor."""

    @vm.register_law("half", cut=lambda f: 0.5 * f.window, remember=lambda f: f.window)
    def drift(f):
        return 1.0 if f.memory >= 0.0 and f.elapsed >= 0.0 else -1.0

    np.testing.assert_allclose(rates("half", "reno"), rates("own-reno", "reno"), rtol=1e-12)


@pytest.mark.parametrize("buffer", [20.0, 40.0, 80.0])
def test_a_cut_sees_the_round_trip_time_of_the_full_queue(buffer):
    """Recoveries end with so many packets that the queue fills at once. ``rounds`` sends each."""
    vm.register_law(
        "westwood",
        lambda _: 1.0,
        cut=lambda f: max(2.0, f.window * f.base_rtt / f.rtt),
        recovery="hole by hole",
    )
    flows = [
        vm.Flow("westwood", 0.06, variant="ns2", send_jitter=0.0),
        vm.Flow("vegas", 0.06, variant="ns2", alpha=3.0, send_jitter=0.0),
    ]
    pair = Scenario([Link(1000.0, buffer=buffer)], flows, run=Run(100.0, 30.0, 1))
    expected = vm.predict(pair, "rounds").throughput
    np.testing.assert_allclose(vm.predict(pair, "fluid").throughput, expected, atol=10.0)


def test_a_window_that_a_law_lowers_does_not_start_slowly_again_by_rounds():
    """Linux's tcp_vegas lowers ssthresh with the window, so slow start does not begin again."""
    vm.register_law("modest", lambda f: 4.0 - f.window, once_a_round=True)
    low = by_rounds("modest", "own-reno", "ns2")[0] * 0.08
    assert 3.0 <= low <= 4.5


@pytest.mark.parametrize("variant", ["ns2", "linux"])
def test_rounds_gives_a_registered_law_what_it_gives_the_same_law_of_the_package(variant):
    """Only the last digits differ: W ACKs in a stretch add W/W at once, not one by one."""
    vm.register_law("own-newreno", lambda _: 1.0, recovery="hole by hole")
    for law, own in (("sack", "own-reno"), ("newreno", "own-newreno")):
        if variant == "linux" and law == "newreno":
            continue  # there the kernel's own Reno has a scoreboard, too
        expected = by_rounds("vegas", law, variant)
        np.testing.assert_allclose(by_rounds("vegas", own, variant), expected, rtol=0.02)
    limit = vm.limit_cycle(scenario("vegas", "own-reno", variant), "rounds")
    same = vm.limit_cycle(scenario("vegas", "sack", variant), "rounds")
    np.testing.assert_allclose(limit.throughput, same.throughput, rtol=0.04)


@pytest.mark.parametrize("defaults", ["papers", "2.35"])
def test_a_loss_leaves_a_registered_law_the_window_that_it_leaves_the_law_of_the_package(defaults):
    """ns-2 2.35 keeps fractions of packets after a cut; with the old defaults it rounds down."""

    def throughputs(law):
        flows = [
            vm.Flow(name, 0.05, variant="ns2", send_jitter=0.0, name=name) for name in (law, "reno")
        ]
        run = Run(duration=60.0, warmup=20.0, start_jitter=0.0, ns2_defaults=defaults)
        return vm.predict(Scenario([Link(1250.0, buffer=38)], flows, run=run), "rounds").throughput

    np.testing.assert_allclose(throughputs("own-reno"), throughputs("sack"), rtol=1e-9)


def test_a_registered_vegas_holds_its_packets_in_the_queue_by_rounds():
    """Alone, it keeps a backlog between alpha and beta and loses nothing."""

    @vm.register_law("own-band", delay_based=True, once_a_round=True)
    def drift(f):
        return 1.0 if f.backlog < f.alpha else (-1.0 if f.backlog > f.beta else 0.0)

    run = vm.simulate(scenario("own-band", "own-band", "ns2", buffer=np.inf), "rounds")
    queue = float(run.queue.values[-500:].mean())
    assert 2.0 * 3.0 - 2.0 <= queue <= 2.0 * 3.0 + 2.0
    assert (run.lost.values == 0.0).all()


def test_rules_of_a_loss_are_asked_by_rounds():
    """A law that grows only by what it remembers, and sets the window after a loss itself."""
    vm.register_law(
        "mindful",
        lambda f: f.memory / 7.0 if f.elapsed > 0.0 else -1.0,
        remember=lambda _: 7.0,
        cut=lambda f: 0.5 * f.window // 1.0,
    )
    expected = by_rounds("own-reno", "own-reno", "ns2")
    np.testing.assert_array_equal(by_rounds("mindful", "own-reno", "ns2"), expected)


@pytest.mark.parametrize("model", ["rounds", "fluid"])
def test_a_law_sees_how_many_round_trips_have_passed_since_its_start(model):
    """The window grows for 30 round trips, from 10 packets.

    From N packets to N + 1 it needs N + 1/2 ACKs, so it grows to 39 in 29.7 round trips.
    """

    @vm.register_law("ramp", slow_start="none")
    def ramp(f):
        return 1.0 if f.round_trips < 30.0 else 0.0

    flow = vm.Flow("ramp", 0.1, variant="ns2", initial_window=10.0, send_jitter=0.0)
    case = vm.Scenario((vm.Link(10000.0),), (flow,), run=vm.Run(duration=30.0, warmup=10.0))
    assert vm.predict(case, model).throughput[0] == pytest.approx(39.0 / 0.1, rel=0.03)


def test_an_aimd_law_takes_by_rounds_what_it_takes_in_the_fluid():
    """On average over ten drawn networks: which flow loses next depends on details in each."""
    vm.register_law("aimd", lambda _: 0.2, decrease=0.875)
    rng = np.random.default_rng(20)
    shares = []
    for _ in range(10):
        link = vm.Link(float(rng.integers(300, 2000)), buffer=float(rng.integers(12, 60)))
        rtt = float(rng.uniform(0.03, 0.15))
        flows = tuple(vm.Flow(law, rtt, variant="ns2") for law in ("aimd", "sack"))
        case = vm.Scenario((link,), flows, run=vm.Run(120.0, 40.0, runs=3, start_jitter=0.5))
        both = (vm.predict(case, model).throughput for model in ("rounds", "fluid"))
        shares.append([float(found[0] / found.sum()) for found in both])
    assert np.abs(np.diff(shares)).mean() <= 0.08


def test_trajectories_of_a_registered_law():
    found = vm.simulate(scenario("own-vegas", "own-reno"), "fluid", samples=101)
    assert np.isfinite(found.window.values).all()


@pytest.mark.parametrize("model", ["fluid", "rounds"])
@pytest.mark.parametrize("buffer", [20, 40])
def test_a_cut_in_slow_start_halves_the_window_as_in_ns2(model, buffer):
    """tcp.cc, ``slowdown``: in slow start the factor is 1/2 even if ``decrease_num_`` is not.

    At the end of slow start the window is twice what fits. A cut to 0.95 of it left the sender in
    one recovery after another.
    """
    vm.register_law("gentle", lambda f: 1.0, recovery="hole by hole", decrease=0.95)
    for law in ("gentle", "newreno"):
        alone = vm.Flow(law, 0.06, variant="ns2", decrease=0.95)
        case = vm.Scenario((vm.Link(1000.0, buffer=buffer),), (alone,), run=vm.Run(120.0, 40.0))
        assert vm.predict(case, model).throughput == pytest.approx(1000.0, rel=0.01)


def test_what_the_fluid_has_not_is_said():
    marks = scenario("vegas", "reno", queue=Red(5.0, 15.0, ecn=True))
    assert "ecn" in vm.predict(marks, "fluid").reason
    endless = vm.predict(scenario("vegas", "reno", "ns2", buffer=np.inf), "fluid")
    assert not {a.name: a.holds for a in endless.assumptions}["losses-end-growth"]


@pytest.mark.parametrize(
    ("changes", "holds"),
    [
        ({"decrease": 1}, False),
        ({"cut": lambda f: f.window}, False),
        ({"cut": lambda f: f.window - 1.0}, True),
        ({"decrease": 0.9}, True),
        ({"decrease": 1, "recovery": "slow start"}, True),
        ({"decrease": 1, "delay_based": True}, True),  # the queueing delay may end its growth
        ({"cut": lambda f: f.memory * f.window, "remember": lambda _: 0.5}, True),
        ({"cut": lambda f: f.k * f.window, "state": {"k": 1}, "remember": lambda _: 0.5}, True),
        ({"cut": lambda f: f.k * f.window, "state": {"k": 0.5}, "update": lambda _: 1.0}, False),
        ({"cut": lambda f: 150.0 - f.window}, True),  # it fails at windows that the run never has
    ],
)
def test_a_law_that_losses_do_not_cut_is_told(changes, holds):
    vm.register_law("bold", lambda f: 1.0, **changes)
    run = vm.Run(duration=10.0, warmup=5.0, runs=1)
    case = vm.Scenario([vm.Link(250.0, buffer=20.0)], [vm.Flow("bold", 0.08)], run=run)
    for model in ("fluid", "rounds"):
        said = {a.name: a for a in vm.predict(case, model).assumptions}["losses-end-growth"]
        assert said.holds is holds
        assert ("the window of bold" in said.detail) is not holds


@pytest.mark.parametrize(
    ("ecn", "law", "holds"),
    [(False, "reno", False), (True, "reno", True), (True, "cubic", False), (True, "tahoe", True)],
)
def test_a_mark_halves_a_window_that_a_loss_leaves_as_it_is(ecn, law, holds):
    """CUBIC multiplies its window by ``decrease`` at a mark, too (RFC 9438, section 4.6)."""
    queue = vm.Red(5.0, 15.0, ecn=ecn)
    flow = vm.Flow(law, 0.08, decrease=1, variant="ns2")
    case = vm.Scenario(
        [vm.Link(250.0, buffer=40.0, queue=queue)], [flow], run=vm.Run(10.0, 5.0, runs=1)
    )
    said = {a.name: a.holds for a in vm.predict(case, "rounds").assumptions}
    assert said["losses-end-growth"] is holds


def test_an_own_law_does_not_lose_its_base_rtt_as_vegas_of_ns2_does():
    """``fluid`` said of a law of the user how ns-2's Vegas loses its baseRTT."""
    vm.register_law("keeps-its-base", lambda f: 1.0 if f.backlog < 2.0 else -1.0, delay_based=True)
    for law, holds in (("keeps-its-base", True), ("vegas", False)):
        case = scenario(law, "newreno", "ns2", queue=Red(3.0, 9.0))
        found = vm.predict(case, "fluid").assumptions
        assert [a.holds for a in found if a.name == "base-rtt-above-propagation"] == [holds]


def test_like_sources_get_like_rates_in_the_fluid():
    """Sources of the same law and RTT differ only in their order in the file.

    In one run of ns-2 one SACK source may get 167 pkt/s and two others 63 and 75.
    """
    groups = [("vegas", 3.0), ("sack", 1.0)]
    flows = tuple(
        vm.Flow(law, 0.169, count=3, alpha=alpha, beta=3.0, variant="ns2", send_jitter=0.0)
        for law, alpha in groups
    )
    run = Run(duration=300.0, warmup=100.0, runs=40, start_jitter=0.5)
    case = Scenario((Link(405.0, buffer=57.0),), flows, run=run)
    rates = np.asarray(vm.predict(case, "fluid").throughput)
    for like in (rates[:3], rates[3:]):
        np.testing.assert_allclose(like, like.mean(), rtol=0.2)


def test_reno_brought_by_a_user_gets_in_linux_what_reno_gets() -> None:
    """Linux counts ACKs up to its whole window for a packet more, whichever law asks for it."""
    vm.register_law("my-reno", lambda _: 1.0, decrease=0.5, recovery="one hole")
    vm.register_law("gentle", lambda _: 0.5, decrease=0.8)
    got = []
    for law in ("reno", "my-reno"):
        flows = [vm.Flow(name, "40 ms", variant="linux") for name in ("gentle", law)]
        case = vm.Scenario([vm.Link(1250.0, buffer=60)], flows, run=vm.Run(40.0, 10.0, runs=2))
        got.append(vm.predict(case, "rounds").throughput)
    np.testing.assert_array_equal(*got)
