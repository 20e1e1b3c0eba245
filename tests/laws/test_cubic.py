"""CUBIC: RFC 9438, the kernel's and ns-2's CUBIC, and what the simulators give it."""

import dataclasses
import math

import numpy as np
import pytest

import vegasmodel as vm
from tests.laws.scenes import scenario
from vegasmodel.fields.errors import FieldError
from vegasmodel.scenario import Link, Run, Scenario


@pytest.mark.parametrize("rtt", [0.05, 0.1])
def test_cubic_grows_as_in_rounds_beside_a_law_that_empties_the_queue_often(rtt):
    """Beside a flow that grows by four packets per round trip, as `rounds` has it packet by packet.

    That flow halves its window again and again, so the RTT swings. The window that CUBIC takes from
    Reno counts round trips (RFC 9438 4.3).
    """
    vm.register_law("four", lambda _: 4.0)
    flows = tuple(vm.Flow(law, rtt, variant="ns2", send_jitter=0.0) for law in ("four", "cubic"))
    link = vm.Link(2000.0, buffer=1000.0 * rtt)
    case = vm.Scenario((link,), flows, run=vm.Run(duration=150.0, warmup=50.0, runs=1))
    rates = [vm.predict(case, model).throughput[0] for model in ("fluid", "rounds")]
    assert rates[0] == pytest.approx(rates[1], rel=0.12)


@pytest.mark.parametrize(("before", "now"), [(80.0, 100.0), (120.0, 100.0)])
def test_cubic_is_back_where_it_was_after_the_time_that_the_rfc_says(before, now):
    """RFC 9438 (2): at W_max after K = cbrt((W_max - beta W)/C); Reno would be below."""
    from vegasmodel.laws import Source, cubic

    rtt, lost = 0.5, Source(now, 0.5, 0.5, 0.0, 9.0, before, 1.0, 3.0)
    memory = cubic.remember(lost)
    highest = now if now >= before else 0.85 * now  # fast convergence
    k, step = math.cbrt((highest - 0.7 * now) / 0.4), 1e-3
    window, time = 0.7 * now, rtt  # recovery has taken a round trip
    while time < k + rtt:
        window += (
            step
            / rtt
            * cubic.drift(
                lost._replace(window=window, elapsed=time, memory=memory, round_trips=time / rtt)
            )
        )
        time += step
    assert window == pytest.approx(highest, rel=0.01)
    later = lost._replace(window=highest, elapsed=k + 3.0, memory=memory)
    assert highest + cubic.drift(later) == pytest.approx(highest + 0.4 * 3.0**3, rel=1e-9)


def test_cubic_at_a_short_rtt_is_fair_to_reno_on_average():
    """RFC 9438 4.3: AIMD(3 (1-b)/(1+b), b) has the throughput of AIMD(1, 1/2)."""
    from vegasmodel.laws import Source, cubic

    rtt, begin = 1e-3, Source(20.0, 1e-3, 1e-3, 0.0, 0.0, 0.0, 1.0, 3.0)
    memory = cubic.remember(begin)
    after = begin._replace(window=14.0, memory=memory)
    target = 14.0 + cubic.drift(after._replace(elapsed=5.0 * rtt, round_trips=5.0))
    assert target == pytest.approx(14.0 + 5.0 * 3.0 * 0.3 / 1.7, rel=1e-9)


def test_cubic_grows_by_at_most_half_of_its_window_in_a_round_trip():
    """RFC 9438 4.2: the target is at most 1.5 windows. tcp_cubic.c: two ACKs for a packet, or more.

    10 s after K the cubic function is at 400 packets above W_max.
    """
    from vegasmodel.laws import Source, cubic

    seen = Source(20.0, 0.1, 0.1, 0.0, 10.0 + math.cbrt(0.3 * 20.0 / 0.4), 20.0, 1.0, 3.0, 30.0)
    for rule in (cubic.drift, cubic.kernel_drift(1.875, True)):
        assert rule(seen) == pytest.approx(10.0)


@pytest.mark.parametrize("variant", ["linux", "ns2"])
def test_cubic_grows_in_a_round_trip_by_at_most_what_the_kernel_adds_at_its_acks(variant):
    """tcp_cubic.c at the least cnt: W ACKs come in a round trip.

    Linux 6.1 counts an ACK, and then compares the count with cnt. Linux 2.6, which ns-2 contains,
    compares first, and counts the ACK only if it adds no packet.
    """
    from vegasmodel.laws import Source, cubic
    from vegasmodel.stacks import STACKS

    stack, window, count, added = STACKS[variant], 20, 0, 0
    for _ in range(window):
        count += not stack.acks_before_growth
        if count >= stack.least_cnt:
            count, added = 0, added + 1
        else:
            count += stack.acks_before_growth
    seen = Source(window, 0.1, 0.1, 0.0, 10.0 + math.cbrt(0.3 * 20.0 / 0.4), 20.0, 1.0, 3.0, 30.0)
    rule = cubic.kernel_drift(stack.reno_windows, stack.whole_window)
    assert rule(seen) == pytest.approx(added)  # the cubic function is 400 packets above the window


@pytest.mark.parametrize(("cubic_beta", "variant"), [(717, "linux"), (819, "ns2")])
def test_the_kernels_cubic_grows_as_before_above_the_window_at_the_loss(cubic_beta, variant):
    """tcp_cubic.c: Reno's window grows by a packet per (W beta_scale) >> 3 ACKs, at any W.

    beta_scale is 8 (1024 + beta)/3/(1024 - beta), in whole numbers.  ns-2 computes it for its first
    beta, 819.  By RFC 9438 the window grows by one packet per round trip above that at the loss.
    """
    from vegasmodel.laws import Source, cubic
    from vegasmodel.stacks import STACKS

    windows = 8 * (1024 + cubic_beta) // 3 // (1024 - cubic_beta) / 8
    assert STACKS[variant].reno_windows == windows
    rule = cubic.kernel_drift(windows, STACKS[variant].whole_window)
    for trips in (5.0, 100.0):  # Reno's window is below that at the loss, and far above it
        seen = Source(14.0 + trips / windows - 1.0, 1e-3, 1e-3, 0.0, 0.0, 20.0, 1.0, 3.0)
        now, later = (
            rule(seen._replace(elapsed=1e-3 * t, round_trips=t)) for t in (trips, trips + windows)
        )
        assert later - now == pytest.approx(1.0, rel=1e-9)
    later = 20.0 + 100.0 - 6.0 / cubic.ALPHA  # by the RFC
    seen = seen._replace(elapsed=0.1, round_trips=100.0)
    assert cubic.drift(seen._replace(window=later)) == 0.0
    assert cubic.drift(seen._replace(window=later - 1.0)) == pytest.approx(1.0)


@pytest.mark.parametrize(("before", "target"), [(1.3, 27), (1.5, 26), (-1.3, 27), (-1.5, 28)])
def test_windows_of_linux_cubic_are_whole_packets(before, target):
    """tcp_cubic.c: cwnd and bic_target are integers; below W_max the target is rounded up.

    0.4 * 1.3^3 = 0.88 and 0.4 * 1.5^3 = 1.35 packets are between the cubic function and W_max, 1.3
    and 1.5 s before (after) the time K at which they are equal.
    """
    from vegasmodel.laws import Source, cubic

    rtt, begin, lost = 0.5, 18.0, 27.0  # floor(0.7 * 27) = 18
    elapsed = math.cbrt((lost - begin) / 0.4) - before  # recovery takes one RTT, look ahead another
    seen = Source(25.4, rtt, rtt, 0.0, elapsed, lost, 1.0, 3.0, elapsed / rtt)
    assert cubic.kernel_drift(1.875, True)(seen) == target - 25.0


def test_at_the_first_ack_of_a_train_linux_cubic_grows_by_whole_packets():
    """tcp_cubic.c: Reno's window grows by a whole packet per 15/8 windows of ACKs.

    The recovery takes the first round trip, and the count begins then, at 14 packets. At an RTT of
    1 ms CUBIC's own target stays at 15 packets.
    """
    from vegasmodel.laws import Source, cubic

    rule = cubic.kernel_drift(1.875, True, True)
    seen = Source(15.0, 1e-3, 1e-3, 0.0, 0.0, 20.0, 1.0, 3.0)
    grown = [rule(seen._replace(elapsed=1e-3 * t, round_trips=1.0 * t)) for t in range(1, 17)]
    reno = [14, 14, 15, 15, 16, 16, 17, 17, 18, 18, 19, 19, 20, 20, 21, 22]  # 8 in 15 round trips
    assert grown == [max(W, 15) - 15 for W in reno]


@pytest.mark.parametrize("loss", [0.002, 0.006, 0.02])
def test_cubic_at_random_loss_gets_in_the_fluid_what_it_gets_in_rounds(loss):
    """`rounds` counts ACKs as ns-2 does; by RFC 9438 the flow gets over a third more than that."""
    flow = vm.Flow("cubic", 0.06, variant="ns2", send_jitter=0.0)
    case = vm.Scenario((vm.Link(1500.0, buffer=40.0, loss=loss),), (flow,), run=vm.Run(400.0, 50.0))
    rates = [vm.predict(case, model).throughput[0] for model in ("fluid", "rounds")]
    assert rates[0] == pytest.approx(rates[1], rel=0.12)


@pytest.mark.parametrize(("rtt", "loss"), [(0.06, 0.005), (0.06, 0.01), (0.15, 0.01)])
def test_cubic_of_linux_at_random_loss_gets_in_the_fluid_what_it_gets_in_rounds(rtt, loss):
    """Without windows and targets in whole packets the flow gets 8 to 15 % too much."""
    flow = vm.Flow("cubic", rtt, variant="linux", send_jitter=0.0)
    run = vm.Run(50.0 + 45.0 * rtt / loss, 50.0, runs=10)  # about 4000 losses in all
    case = vm.Scenario((vm.Link(1500.0, buffer=40.0, loss=loss),), (flow,), run=run)
    rates = [vm.predict(case, model).throughput[0] for model in ("fluid", "rounds")]
    assert rates[0] == pytest.approx(rates[1], rel=0.06)


@pytest.mark.parametrize("model", ["rounds", "fluid"])
@pytest.mark.parametrize("variant", ["paper", "ns2"])
def test_simulators_know_cubic_and_closed_forms_say_that_they_do_not(model, variant):
    case = scenario("cubic", "reno", variant)
    share = np.asarray(vm.predict(case, model).throughput)
    assert share.sum() > 0.8 * 1080.0
    for found in vm.predict_all(case):
        assert found.applicable == (found.model in ("fluid", "rounds")), found.model
        assert found.applicable or "cubic" in found.reason
    with pytest.raises(ValueError, match="does not know the law cubic"):
        vm.limit_cycle(case, "fluid", losers="growing")


def test_what_cubic_lacks_in_a_stack_is_an_assumption_that_fails():
    slow = scenario("cubic", "reno", "linux")
    other = scenario("cubic", "reno", "ns2")
    other = other.replace(flows=(dataclasses.replace(other.flows[0], decrease=0.8), other.flows[1]))
    for case, word in ((slow, "HyStart"), (other, "0.7"), (scenario("cubic", "reno", "ns2"), "")):
        for model in ("rounds", "fluid"):
            failed = {a.name: a.detail for a in vm.predict(case, model).assumptions if not a.holds}
            expected = "" if model == "rounds" else word  # it runs tcp_cubic.c
            assert expected in failed.get("whole-laws", "")
            assert ("whole-laws" in failed) == bool(expected)
            assert ("whole-stack" in failed) == (model == "fluid" and case is slow)


def test_ns2_has_cubic_with_the_factor_of_the_scenario_and_ns3_with_its_own():
    from vegasmodel.packets import ns2_script, ns3_support

    case = scenario("cubic", "vegas", "ns2")
    text = ns2_script.script(case).text
    assert "Agent/TCP/Linux Agent/TCPSink/Sack1" in text
    assert "module cubic cubic_beta 717" in text
    ns3_support.check(case)
    cubic, vegas = case.flows
    own = dataclasses.replace(case, flows=(dataclasses.replace(cubic, decrease=0.6), vegas))
    with pytest.raises(FieldError, match=r"flow 1, decrease: 0.6"):
        ns3_support.check(own)


def test_cubic_on_a_very_fast_link():
    def case(capacity):
        flows = [vm.Flow("vegas", 0.05), vm.Flow("cubic", 0.05)]
        return Scenario([Link(capacity, buffer="1 BDP")], flows, run=Run(duration=10.0))

    slow = vm.predict(case("10 Mbit/s"), "fluid")
    fast = vm.predict(case("100 Gbit/s"), "fluid")
    capacity = case("100 Gbit/s").links[0].capacity
    assert 0.0 < fast.throughput.sum() <= capacity * (1.0 + 1e-9)
    np.testing.assert_array_equal(
        vm.predict(case("10 Mbit/s"), "fluid").throughput, slow.throughput
    )
