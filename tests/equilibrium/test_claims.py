"""Every assumption that an adapter reports as holding is checked against ``fluid``."""

import collections

import numpy as np
import pytest

import vegasmodel as vm
from benchmarks.closed_forms import ACCURATE, MODELS, gather
from tests.helpers import scenario
from vegasmodel.engines.fluid import continuous

VEGAS = {"law": "vegas", "alpha": 3, "beta": 3}


def broken(s, model):
    """Names of the assumptions that are not reported as holding."""
    return {a.name for a in vm.predict(s, model).assumptions if a.holds is not True}


@pytest.mark.parametrize("seed", [1, 2])
def test_where_every_assumption_holds_the_fluid_agrees(seed):
    """250 random scenarios: within 2 % of the continuous fluid, or a range that contains it."""
    found = gather(250, seed)
    wrong = [(c.model, c.error, c.scenario) for c in found if not c.error <= ACCURATE]
    assert not wrong
    count = collections.Counter(c.model for c in found)
    assert set(count) == set(MODELS)
    assert min(count.values()) >= 5
    # not only where there is nothing to tell: several flows, and bands that the order decides
    several = [c.model for c in found if len(c.scenario.members) > 1]
    assert collections.Counter(several)["equilibrium"] >= 15
    arrived = [c.scenario.flows for c in found if c.model == "arrivals"]
    assert sum(len(f) > 1 and any(g.alpha < g.beta for g in f) for f in arrived) >= 2


def three_arrivals(**keys):
    """Three Vegas flows, 100 s apart; ``keys`` are values that all of them have in place of these.

    They get 952, 620 and 952 packets/s by the recursion, 1079, 366 and 1079 in ``fluid``.
    """
    flows = [
        {
            "law": "vegas",
            "name": f"v{i}",
            "rtt": rtt,
            "alpha": a,
            "beta": b,
            "start": f"{100 * i} s",
            **keys,
        }
        for i, (rtt, a, b) in enumerate([("108 ms", 2, 3), ("89 ms", 1, 2), ("56 ms", 3, 3)])
    ]
    return scenario(*flows, capacity="2524 pkt/s", run={"duration": "900 s", "warmup": "600 s"})


def test_bands_doubts_the_base_rtts_of_late_flows_if_rtts_differ():
    def told(**keys):
        found = vm.predict(three_arrivals(**keys), "bands").assumptions
        return [a.holds for a in found if a.name == "quasi-static"]

    assert told() == [None]
    assert told(rtt="89 ms") == []  # equal RTTs: the ranges hold all the same
    assert told(start="0 s") == told(over_estimate="0 s") == []  # no baseRTT depends on a queue


def test_a_newcomer_that_outruns_the_others_is_not_quasi_static():
    s = three_arrivals()
    assert "quasi-static" in broken(s, "arrivals")
    p = vm.predict(s, "arrivals")
    assert all(
        "Vegas shrinks it by 1" in a.detail for a in p.assumptions if a.name == "quasi-static"
    )
    low, high = vm.predict(s, "bands").throughput_range.T
    fluid = continuous.run(s).throughput
    assert np.all((low <= fluid * 1.001) & (fluid <= high * 1.001))


def test_a_slow_start_that_steps_past_its_band_is_not_quasi_static():
    """The model takes a new flow to stay at the lower edge of its band, and slow start passes it.

    Three flows, 40 s apart, get 433, 366 and 452 packets/s by the recursion, and 326, 417 and 508
    in ns-2. With Linux's Vegas they get 355, 404 and 491 by the recursion, and 139, 278 and 833 in
    ``rounds``.
    """
    flow = {"law": "vegas", "rtt": "10 ms", "variant": "ns2"}
    run = {"duration": "220 s", "warmup": "160 s"}

    def said(*flows):
        return broken(scenario(*flows, capacity="1250 pkt/s", run=run), "arrivals")

    for keys in ({"alpha": 3, "beta": 5}, {"alpha": 2, "beta": 4, "variant": "linux"}):
        first = {**flow, **keys, "name": "first"}
        later = [{**flow, **keys, "name": f"v{t}", "start": f"{t} s"} for t in (40, 80)]
        assert said(first, *later) - {"many-packets-queued"} == {"quasi-static"}
        assert said(first) == set()  # there is no other flow
    wide = {**flow, "alpha": 12, "beta": 14}  # one doubling does not reach 11.5 packets
    assert said({**wide, "name": "first"}, {**wide, "start": "40 s"}) == set()


def test_a_late_flow_that_finds_only_a_few_packets_is_told():
    """Two flows, 30 s apart, with alpha = 1: the closed forms give them 955 and 1545 packets/s.

    In ``rounds`` the second flow now and then sees an empty queue, although one packet waits in the
    mean. So it knows its true baseRTT, and they get 1234 and 1258. With alpha = 10 they get 985 and
    1515.
    """
    run = {"duration": "300 s", "warmup": "150 s"}
    for alpha, told in ((1, {"many-packets-queued"}), (10, set())):
        flow = {"law": "vegas", "rtt": "40 ms", "alpha": alpha, "beta": alpha}
        flows = [{**flow, "name": "first"}, {**flow, "name": "next", "start": "30 s"}]
        s = scenario(*flows, capacity="2500 pkt/s", run=run)
        for model in ("equilibrium", "arrivals", "network"):
            assert broken(s, model) == told
        together = scenario(*[{**f, "start": "0 s"} for f in flows], capacity="2500 pkt/s", run=run)
        assert broken(together, "equilibrium") == set()  # no flow finds a queue


@pytest.mark.parametrize("capacity", ["49 pkt/s", "100 pkt/s"])
def test_one_packet_less_is_told_in_words(capacity):
    """49 times 1/49 is less than 1 in floats, and the message had "up to 1 packets less"."""
    run = {"duration": "900 s", "warmup": "400 s"}
    group = {**VEGAS, "alpha": 2, "beta": 2, "variant": "ns2", "count": 3}
    s = scenario(group | {"start": {"every": "60 s"}}, capacity=capacity, run=run)
    found = {a.name: a for a in vm.predict(s, "equilibrium").assumptions}["many-packets-queued"]
    assert found.detail.startswith("with one packet less in the queue")


def test_waves_of_earlier_windows_are_told_where_a_late_flow_finds_their_trough():
    """Five flows, 150 s apart: in ``rounds`` the last gets 791 packets/s, by the closed forms 981.

    Each earlier window moves the queue by two packets to either side, because Vegas decides late.
    One packet less would change a rate by only 5 % of the mean rate. ns-2's Vegas rounds its
    backlog, so its windows rest. Where alpha < beta, they rest with the variant ``paper``, too.
    """
    run = {"duration": "1200 s", "warmup": "800 s"}

    def said(model, **keys):
        flow = {"law": "vegas", "rtt": "100 ms", "alpha": 5, "beta": 5, "variant": "paper"} | keys
        group = {**flow, "count": 5, "start": {"every": "150 s"}}
        s = scenario(group, capacity="2400 pkt/s", run=run)
        return [a for a in vm.predict(s, model).assumptions if a.name == "many-packets-queued"]

    for model in ("equilibrium", "arrivals", "network", "bands"):
        [found] = said(model)
        assert found.holds is False
        assert "with up to 2 packets less in the queue" in found.detail
    assert [a.holds for a in said("equilibrium", variant="ns2")] == [True]
    assert said("bands", beta=7) == said("bands", variant="ns2") == []


def test_starts_too_near_to_one_another_are_told():
    slow = {**VEGAS, "rtt": "300 ms"}
    group = {**slow, "count": 2, "start": {"every": "2 s"}}
    s = scenario(group, capacity="5000 pkt/s", run={"duration": "2000 s", "warmup": "1500 s"})
    for model in ("equilibrium", "arrivals", "network", "bands"):
        assert broken(s, model) == {"settles-in-time"}
    rushed = scenario(slow, capacity="5000 pkt/s", run={"duration": "99 s", "warmup": "2 s"})
    for model in ("equilibrium", "arrivals-bonald"):
        assert broken(rushed, model) == {"settles-in-time"}


def test_a_warm_up_in_which_no_window_can_grow_so_far_is_told():
    """ns-2: 42 and 327 packets/s with Rate-Delay services, not 500 each; 338 with RED, not 400."""
    run = {"duration": "30 s", "warmup": "2 s"}
    rd = {"capacity": "1000 pkt/s", "buffer": "500 pkt", "queue": {"discipline": "rd"}}
    both = ({**VEGAS, "rtt": "1 s"}, {"law": "reno", "rtt": "1 s"})
    assert "settles-in-time" in broken(scenario(*both, run=run, **rd), "rate-delay")
    slow = {**run, "duration": "3000 s", "warmup": "1500 s"}
    assert broken(scenario(*both, run=slow, **rd), "rate-delay") == set()
    queue = {"discipline": "red", "min_threshold": "50 pkt", "max_threshold": "150 pkt",
             "max_probability": 0.02, "weight": 0.0002, "gentle": True}  # fmt: skip
    red = {"capacity": "2000 pkt/s", "buffer": "500 pkt", "queue": queue}
    flow = {"law": "reno", "rtt": "100 ms", "count": 5, "variant": "ns2"}
    short = scenario(flow, run={"duration": "12 s", "warmup": "2 s"}, **red)
    assert "settles-in-time" in broken(short, "red")
    assert "settles-in-time" not in broken(scenario(flow, run=slow, **red), "red")


def test_a_slow_start_that_ends_before_the_link_is_full_is_part_of_the_time():
    """In ns-2 the window is 32 packets at the end of slow start; the link and the queue hold 155.

    The first flow needs 17 s. If the second one starts after 10 s, it finds no queue, and gets 451
    packets/s, below the least rate of ``bands``; if it starts after 22 s, it gets 629.
    """
    flow = {"law": "vegas", "rtt": "120 ms", "alpha": 3, "beta": 5}
    run = {"duration": "200 s", "warmup": "150 s"}

    def said(start, **keys):
        flows = [{**flow, **keys, "name": "first"}, {**flow, **keys, "name": "next"} | start]
        return broken(scenario(*flows, capacity="1250 pkt/s", run=run), "bands")

    for variant in ("ns2", "paper"):  # both decide on the mean RTT of a round trip
        assert said({"start": "10 s"}, variant=variant) == {"settles-in-time"}
        assert said({"start": "22 s"}, variant=variant) == set()
    assert said({"start": "10 s"}, variant="linux") == set()  # on the least: full within 1 s
    # a flow with a known baseRTT starts without slow start in ns-2: 153 round trips
    given = {"variant": "ns2", "over_estimate": "0 s"}
    assert said({"start": "18 s", "over_estimate": "measured"}, **given) == {"settles-in-time"}
    assert said({"start": "22 s", "over_estimate": "measured"}, **given) == set()


def test_given_over_estimates_are_part_of_what_others_measure():
    flows = [
        {**VEGAS, "name": "first"},
        {**VEGAS, "name": "given", "start": "60 s", "over_estimate": "0 s"},
        {**VEGAS, "name": "last", "start": "120 s"},
    ]
    s = scenario(*flows, capacity="300 pkt/s", run={"duration": "900 s", "warmup": "400 s"})
    p = vm.predict(s, "equilibrium")
    assert broken(s, "equilibrium") == {"many-packets-queued"}  # ``rounds`` gives the last 137
    np.testing.assert_allclose(p.throughput, continuous.run(s).throughput, rtol=1e-6)
    np.testing.assert_allclose(p.throughput, vm.predict(s, "network").throughput, rtol=1e-9)


def test_a_buffer_that_only_holds_the_rest_is_not_known_to_be_large_enough():
    """A fast newcomer's queue overflows before the equilibrium, and its baseRTT differs then."""
    flows = [
        {"law": "vegas", "name": "a", "alpha": 5, "beta": 8, "rtt": "287 ms"},
        {"law": "vegas", "name": "b", "alpha": 6, "beta": 7, "rtt": "224 ms", "start": "300 s"},
    ]
    run = {"duration": "820 s", "warmup": "620 s"}
    link = {"capacity": "973 pkt/s", "buffer": "21.5 pkt"}
    assert "infinite-buffer" in broken(scenario(*flows, run=run, **link), "bands")
    wide = scenario(*flows, run=run, **link | {"buffer": "60 pkt"})
    assert "infinite-buffer" not in broken(wide, "bands")


@pytest.mark.parametrize("variant", ["ns2", "linux"])
def test_equal_thresholds_leave_a_set_where_the_rule_rounds(variant):
    s = scenario({**VEGAS, "variant": variant, "count": 2}, run={"warmup": "200 s"})
    for model in ("equilibrium", "network"):
        assert not vm.predict(s, model).applicable or "single-threshold" in broken(s, model)


def test_the_printed_arrival_form_does_not_fill_the_link():
    group = {**VEGAS, "count": 2, "start": {"every": "60 s"}}
    s = scenario(group, run={"duration": "600 s", "warmup": "300 s"})
    assert broken(s, "arrivals-bonald") == {"rates-fill-the-link"}
    assert broken(s, "arrivals") == set()


def test_two_cycles_that_both_repeat_are_a_range():
    """alpha < B < B_th: a loss always cuts Vegas, or never does; the start decides which."""
    vegas = {"law": "vegas", "alpha": 4, "beta": 4, "rtt": "39.4 ms"}
    run = {"duration": "500 s", "warmup": "300 s"}
    link = {"capacity": "1345 pkt/s", "buffer": "5.08 pkt"}
    s = scenario(vegas, {"law": "reno", "rtt": "39.4 ms"}, run=run, **link)
    p = vm.predict(s, "minicycle")
    assert broken(s, "minicycle") == {"one-cycle", "buffer-holds-bursts"}
    low, high = p.throughput_range[0]
    assert low == pytest.approx(p.throughput[0])
    assert low < continuous.run(s).throughput[0] < high


def test_acks_that_take_longer_to_send_than_their_data_are_told():
    """ns-2: 200 of 500 packets/s; 100 ACKs of 200 B a second fill the link, each for 2 packets."""
    flow = {**VEGAS, "rtt": "50 ms", "variant": "ns2", "delayed_ack": True}
    table = scenario(flow, capacity="500 pkt/s", buffer="20 pkt").to_dict()
    slow = vm.Scenario.from_dict({**table, "packet_size": "40 B", "ack_size": "200 B"})
    just = vm.Scenario.from_dict({**table, "packet_size": "40 B", "ack_size": "80 B"})
    for model in ("equilibrium", "network", "fluid"):
        assert "no-queueing-of-acks" in broken(slow, model)
        assert "no-queueing-of-acks" not in broken(just, model)
    assert vm.predict(slow, "rounds").throughput[0] == pytest.approx(200.0, rel=0.01)


@pytest.mark.parametrize(("rtt", "sure"), [("128.6 ms", False), ("31.73 ms", True)])
def test_a_base_rtt_measured_between_bursts_of_slow_start_is_not_sure(rtt, sure):
    """ns-2: 396, 476 and 535 packets/s (standard errors 10, 12, 21); ``bands``: 618 for the last.

    The last flow measures an over-estimate of 7 packets; in the equilibria it is 14 or more.
    """
    rule = {"law": "vegas", "variant": "ns2", "alpha": 6, "beta": 6}
    rtts = ("31.73 ms", "74.24 ms" if rtt != "31.73 ms" else rtt, rtt)
    flows = [
        {**rule, "name": f"v{i}", "rtt": each, "start": f"{60 * i} s"}
        for i, each in enumerate(rtts)
    ]
    s = scenario(*flows, capacity="1406 pkt/s", run={"duration": "300 s", "warmup": "240 s"})
    assert ("quasi-static" not in broken(s, "bands")) == sure


@pytest.mark.parametrize(
    ("variant", "rtt", "more", "sure"),
    [
        ("linux", "100 ms", {}, False),
        ("linux", "50 ms", {}, False),
        ("linux", "50 ms", {"start": "40 s"}, True),
        ("linux", "100 ms", {"start": "40 s"}, True),  # of another assumption
        ("linux", "100 ms", {"over_estimate": "0 s"}, False),  # the other flow measures
        ("ns2", "100 ms", {}, True),
        ("ns2", "100 ms", {"initial_window": 10}, False),
        ("ns2", "50 ms", {"initial_window": 10}, True),
    ],
)
def test_base_rtts_of_flows_that_start_together_with_bursts_are_not_sure(variant, rtt, more, sure):
    """Packets of the flow with the longer RTT always find a burst of the other in the queue."""
    rule = {"law": "vegas", "variant": variant, "alpha": 6, "beta": 6}
    flows = [{**rule, "name": "a", "rtt": "50 ms"}, {**rule, "name": "b", "rtt": rtt, **more}]
    s = scenario(*flows, capacity="250 pkt/s", buffer="100 pkt", run={"duration": "200 s"})
    for model in ("equilibrium", "bands", "fluid"):
        said = {a.name: a.holds for a in vm.predict(s, model).assumptions}
        # by `rounds` Linux's slow start usually fills the queue for good, and ns-2's sometimes does
        expected = True if sure else (False if variant == "linux" else None)
        assert said["queue-empties-at-start"] is expected
    if variant == "linux" and not (sure or more) and rtt == "100 ms":
        rates = vm.predict(s, "rounds")
        low, high = vm.predict(s, "bands").throughput_range[1]
        assert rates.base_rtt[1] > 0.11  # its propagation delay is 0.1 s
        assert not low <= rates.throughput[1] <= high


@pytest.mark.parametrize(("variant", "holds"), [("linux", False), ("ns2", True)])
def test_the_queue_does_not_run_empty_after_the_slow_starts_of_linux(variant, holds):
    """Without waits each first window of 10 packets finds the first windows before it, by `rounds`.

    The rates differ, although the flows are alike: `fluid` gives each the same.
    """
    rule = {"law": "vegas", "variant": variant, "rtt": "100 ms", "alpha": 4, "beta": 4}
    flow = {**rule, "send_jitter": "0 s", "initial_window": 10}
    flows = [{**flow, "name": f"v{i}"} for i in range(3)]
    s = scenario(*flows, capacity="400 pkt/s", run={"duration": "100 s", "runs": 1})
    rounds, fluid = vm.predict(s, "rounds"), vm.predict(s, "fluid")
    over = 400.0 * np.sort(rounds.base_rtt - 0.1)  # packets
    assert over == pytest.approx([0.0, 10.0, 20.0] if variant == "linux" else 0.0, abs=0.5)
    assert fluid.throughput == pytest.approx(400.0 / 3.0, rel=0.01)
    assert (np.ptp(rounds.throughput) < 0.1 * 400.0) == holds
    assert ("queue-empties-at-start" not in broken(s, "fluid")) == holds
