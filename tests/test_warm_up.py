"""Whether windows reach the steady state within the warm-up: ``settles-in-time``."""

import math

import numpy as np
import pytest

import vegasmodel as vm
from vegasmodel.adapters import rest
from vegasmodel.adapters.warm_up import _slow_start_reaches, settles


def test_a_run_that_ends_before_windows_have_grown_is_named():
    """60 s instead of 60 ms: the warm-up has 3.3 round trips; 32,400 packets need 15 doublings."""
    pair = [vm.Flow("vegas", "60 ms", variant="ns2"), vm.Flow("reno", "60 ms", variant="ns2")]
    scenario = vm.Scenario([vm.Link("1080 pkt/s", buffer=20)], pair)

    def said(model, changes):
        notes = vm.predict(scenario.replace(changes), model).assumptions
        return {a.name: a for a in notes}["settles-in-time"]

    for model in ("rounds", "fluid"):
        slip = said(model, {"flow.rtt": "60 s"})
        assert slip.holds is False
        assert "vegas has 3.33 round trips of 60 s" in slip.detail
        assert "needs 15 " in slip.detail
    assert (
        "needs 14 " in said("fluid", {"flow.rtt": "60 s", "run.ns2_defaults": "2.35"}).detail
    )  # of 2
    assert said("fluid", {}).holds is True
    assert said("fluid", {"run.warmup": 0}).holds is None  # the beginning counts, on purpose
    assert said("fluid", {"run.warmup": "1.5 s"}).holds is None  # 25 trips, 32 packets a flow
    assert said("fluid", {"flow.rtt": "60 s", "flow.max_window": "8 pkt"}).holds is None
    # 1 Gbit/s, 200 ms, 1500 B: a fair share is 8333 packets; the warm-up has 200 s / 0.2 s
    long = {"link.capacity": 1e9 / 12000, "link.buffer": 1667, "flow.rtt": "200 ms"}
    for model in ("rounds", "fluid"):
        slip = said(model, long | {"run.duration": "201 s", "run.warmup": "200 s"})
        assert slip.holds is False
        # at the loss W = 41667 pkt/s (0.2 s + 0.02 s) = 9167; W/2 to 8333 take 0.2 s a packet, the
        # rest w/41667 s: 750 s + 175 s
        assert "takes 925" in slip.detail
        assert "the warm-up of reno is 200 s" in slip.detail
    assert said("fluid", long | {"link.loss": 0.001, "run.duration": "201 s"}).holds is None


@pytest.mark.parametrize(
    ("rtt", "takes", "later"), [("57.23 ms", 5.957, None), ("1 ms", 0.0399, True)]
)
def test_a_warm_up_in_which_cubic_cannot_grow_back_is_named(rtt, takes, later):
    """CUBIC alone gets 981 packets/s in ns-2 from 1 to 3 s; ``fluid`` gives it 4314.

    W = 4664 pkt/s RTT + 15: 281.9 or 19.7. By the cubic function cbrt(0.3 W/0.4) = 5.957 s or
    2.45 s. As Reno's window, at an RTT of 1 ms: from 13.8 packets to 19.7 in (19.7^2 - 13.8^2) /
    (2 4664) s, divided by 0.529 packets a round trip: 0.0400 s.
    """
    flow, link = vm.Flow("cubic", rtt), vm.Link("4664 pkt/s", buffer=15)
    for warm_up, holds in ((0.99 * takes, False), (1.01 * takes, later)):
        run = vm.Run(duration=10.0 * takes, warmup=warm_up)
        said = vm.predict(vm.Scenario([link], [flow], run=run), "fluid").assumptions
        [note] = [a for a in said if a.name == "settles-in-time"]
        assert note.holds is holds


def test_a_buffer_that_cannot_fill_within_the_warm_up_is_named():
    """At 500 packets/s a queue grows by at most 500 packets in a second: 50,000 in 100 s."""
    reno = vm.Flow("reno", "60 ms", variant="ns2")
    flows = [reno, vm.Flow("vegas", "60 ms", variant="ns2")]
    for buffer, flow, late in (
        (49_000, {}, False),
        (51_000, {}, True),
        (50_003.9, {}, False),  # 50,002 can wait: a whole number, and one is in transmission
        (math.inf, {}, False),  # losses-end-growth is about it
        (51_000, {"flow.reno.max_window": 30}, False),  # which ends the growth
        (51_000, {"link.loss": 0.01}, False),
        (51_000, {"flow.reno.initial_window": 2000}, False),
    ):
        link = vm.Link("500 pkt/s", buffer=buffer)
        run = vm.Run(duration="300 s", warmup="100 s")
        slip = settles(vm.Scenario([link], flows, run=run).replace(flow))
        said = "cannot be full by the end of the warm-up" in slip.detail
        assert said is late, (buffer, flow)
        slow = "grow back" in slip.detail  # a cycle of losses at such a buffer takes days
        assert slow is (buffer < 51_000 or "flow.reno.initial_window" in flow)
        assert slip.holds is not (late or slow)
    one = vm.Scenario([vm.Link("500 pkt/s", buffer=51_000)], flows[1:], run=run)
    assert settles(one).holds is True  # Vegas does not fill it
    for buffer, holds in ((30, True), (90_000, False)):
        links = [vm.Link(500, "a", 51_000), vm.Link(400, "b", buffer)]
        assert settles(vm.Scenario(links, [reno], run=run)).holds is holds


@pytest.mark.parametrize(("rate", "holds"), [(40.0, True), (42.0, False)])
def test_short_flows_that_bring_more_than_the_link_sends_never_settle(rate, holds) -> None:
    """20 packets a flow: 40 flows/s bring 800 packets/s, 42 bring 840; the link sends 833.3."""
    flows = [
        vm.Flow("vegas", "40 ms"),
        vm.Flow("sack", "40 ms", name="web", size="30 kB", arrivals=vm.Poisson(rate)),
    ]
    slip = settles(
        vm.Scenario(
            [vm.Link("10 Mbit/s", buffer=20)], flows, packet_size="1500 B", run=vm.Run(60, 20)
        )
    )
    assert slip.holds is holds
    assert ("bring 840 packets per second" in slip.detail) is not holds


@pytest.mark.parametrize(("size", "holds"), [(1499.0, True), (1500.0, False)])
def test_short_flows_that_bring_just_what_the_link_sends_never_settle(size, holds) -> None:
    """50 flows/s of 10 packets of 1500 B bring 750 packets/s of 1000 B; the link sends 750."""
    web = vm.Flow("sack", "40 ms", "web", size=10.0, arrivals=vm.Poisson(50.0), packet_size=size)
    long = vm.Flow("vegas", "40 ms")
    slip = settles(vm.Scenario([vm.Link(750.0, buffer=20)], [long, web], run=vm.Run(60, 20)))
    assert slip.holds is holds
    assert ("bring 750 packets per second" in slip.detail) is not holds


@pytest.mark.parametrize(("warm_up", "late"), [(1.9, True), (1.98, False)])
def test_random_losses_bound_the_window_that_has_to_grow_back(warm_up, late) -> None:
    """With a loss of 0.001 the mean window is sqrt(1500) = 38.73, and not the 100 of the link.

    Half of it grows back at a packet per round trip of 100 ms, in 1.936 s.
    """
    link = vm.Link(1000.0, buffer=20, loss=0.001)
    slip = settles(vm.Scenario([link], [vm.Flow("reno", "100 ms")], run=vm.Run(60, warm_up)))
    assert (slip.holds is False) is late
    assert ("takes 1.936 s to grow back" in slip.detail) is late


FAST = vm.Scenario(
    [vm.Link("100 Mbit/s", buffer=200)], [vm.Flow("vegas", "200 ms", alpha=3, beta=3, gamma=1)]
)


@pytest.mark.parametrize("variant", ["paper", "ns2", "linux"])
def test_a_vegas_window_that_still_grows_when_the_averages_begin_is_named(variant):
    """2500 packets fill the link, and slow start ends far below, at 100 to 520 packets.

    ns-2 delivers about 10,000 packets/s from 200 s to 600 s, and the closed forms say 12,500.
    """
    case = FAST.replace({"flow.vegas.variant": variant})
    slip = settles(case)
    assert slip.holds is False
    assert "has 1000 round trips until the end of the warm-up" in slip.detail
    for model in ("equilibrium", "bands"):
        if (found := vm.predict(case, model)).applicable:
            assert "settles-in-time" in [a.name for a in found.broken]
    assert settles(case.replace({"run.duration": "900 s", "run.warmup": "600 s"})).holds is True
    for known in (
        {"link.loss": 0.001},  # it may keep windows small
        {"flow.vegas.max_window": 1000},
        {"flow.vegas.initial_window": 2000},
        {"flow.vegas.send_jitter": "50 ms"},  # waits spread the bursts that end slow start
    ):
        assert settles(case.replace(known)).holds is not False
    both = vm.Scenario(FAST.links, [*case.flows, vm.Flow("vegas", "200 ms", name="few", alpha=1)])
    assert settles(both).holds is not False  # their shares are not equal


@pytest.mark.parametrize("variant", ["paper", "ns2", "linux"])
@pytest.mark.parametrize("buffer", [20, 60, 200])
def test_slow_start_of_vegas_ends_between_the_bounds(variant, buffer):
    """``rounds`` simulates the packets of slow start; then a window grows by 5 packets a second."""
    changes = {"flow.vegas.variant": variant, "link.buffer": buffer}
    case = FAST.replace(changes | {"run.duration": "15 s", "run.warmup": "5 s"})
    window = float(vm.simulate(case, "rounds").window.values.ravel()[-1])
    [member] = case.members
    least = rest._windows_after_slow_start(case, np.array([2500.0]))[0]
    most = _slow_start_reaches(case, member, case.links[0])
    assert least < window < most + 15.0 / 0.2


def test_newreno_that_repairs_the_losses_of_its_slow_start_beyond_the_warm_up_is_named() -> None:
    """In ns-2 (3 runs) the flow gets 38 packets/s from 83 to 123 s, and 679 from 130 to 170 s.

    The path holds n = 679 pkt/s 238.2 ms = 161.7 packets, and 177 wait: ns-2's limit of 178 counts
    the one in transmission. So 2 n + 177 = 500.5 round trips of 238.2 ms are 119.2 s.
    """
    flow = vm.Flow("newreno", "238.2 ms", variant="ns2")
    link = vm.Link("679 pkt/s", buffer=178)
    for warm_up, holds in ((83.0, False), (130.0, True)):
        run = vm.Run(duration=warm_up + 40.0, warmup=warm_up)
        said = settles(vm.Scenario([link], [flow], run=run))
        assert said.holds is holds
        assert ("takes about 119.2 s" in said.detail) != holds
    short = vm.Run(duration=123.0, warmup=83.0)
    fits = vm.Link("679 pkt/s", buffer=150)  # less than n: slow start loses fewer packets
    for links, flows in (
        ([link], [vm.Flow("sack", "238.2 ms", variant="ns2")]),  # repairs all in a few round trips
        ([link], [vm.Flow("newreno", "238.2 ms", variant="linux")]),  # has SACK
        ([link], [flow, vm.Flow("sack", "238.2 ms", variant="ns2")]),
        ([link], [vm.Flow("newreno", "238.2 ms", variant="ns2", delayed_ack=True)]),
        ([link], [vm.Flow("newreno", "238.2 ms", variant="paper")]),  # only cuts the window
        ([fits], [flow]),
    ):
        assert settles(vm.Scenario(links, flows, run=short)).holds is not False
