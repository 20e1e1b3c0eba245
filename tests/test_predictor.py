"""Every model answers the same scenario and reports its assumptions; none guesses silently."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vegasmodel as vm
from tests.helpers import scenario
from tests.homes import HOME, RED, RENO, VEGAS
from vegasmodel.adapters import minicycle
from vegasmodel.adapters.warm_up import settles
from vegasmodel.engines.fluid.run import by_chance
from vegasmodel.predictor import CLOSED_FORMS, MODELS, check_models, predict_all


@pytest.mark.parametrize("model", CLOSED_FORMS)
def test_each_model_answers_its_own_scenario(model: str) -> None:
    s = HOME[model]
    p = vm.predict(s, model)
    assert p.model == model
    assert p.applicable, p.reason
    assert p.throughput is not None
    assert np.all(p.throughput > 0)
    assert p.throughput.sum() <= s.links[0].capacity * (1 + 1e-9)
    assert p.assumptions
    assert all(a.detail for a in p.assumptions if a.holds is False), p.assumptions


@pytest.mark.parametrize("model", ["fluid", "rounds"])
def test_what_an_assumption_that_holds_says_is_no_failure(model: str) -> None:
    held = [a for a in vm.predict(HOME["minicycle"], model).assumptions if a.holds]
    said = " ".join(a.detail for a in held)
    assert len(held) > 5
    assert not any(word in said for word in (" not ", "only roughly", "so many", "full queue"))


def test_every_model_has_a_home() -> None:
    assert set(HOME) == set(CLOSED_FORMS) == set(MODELS) - {"fluid", "rounds"}


@pytest.mark.parametrize("home", HOME)
def test_a_model_without_an_answer_says_why(home: str) -> None:
    for p in predict_all(HOME[home], CLOSED_FORMS):
        assert p.applicable == (p.throughput is not None)
        if not p.applicable:
            assert p.reason
            assert p.to_json()["flows"][0]["throughput_pps"] is None


UNKNOWN: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("no-delay-noise", {"delay_noise": "1 ms"}, {}),
    ("one-ack-a-packet", {"delayed_ack": True}, {}),
    ("long-lived-flows", {"size": "30 pkt"}, {}),
    ("no-random-loss", {}, {"loss": 0.01}),
    ("all-flows-present", {"stop": "500 s"}, {}),
]


@pytest.mark.parametrize(("name", "flow", "link"), UNKNOWN)
def test_a_feature_that_the_equations_lack_is_named(
    name: str, flow: dict[str, Any], link: dict[str, Any]
) -> None:
    p = vm.predict(scenario({**VEGAS, **flow}, RENO, buffer="20 pkt", **link), "minicycle")
    assert p.applicable
    assert name in [a.name for a in p.assumptions if a.holds is False]


@pytest.mark.parametrize("model", ["equilibrium", "bands", "arrivals", "minicycle"])
def test_random_starts_are_not_in_the_equations(model: str) -> None:
    """Who starts first over-estimates its baseRTT least, and a closed form does not know who."""
    case = HOME[model].replace({"run.start_jitter": "5 s"})
    for asked, holds in ((case, False), (case.replace({"flow.vegas.over_estimate": "0 s"}), True)):
        (starts,) = (a for a in vm.predict(asked, model).assumptions if a.name == "fixed-starts")
        assert starts.holds is holds
        assert holds or "5 s" in starts.detail


def test_fluid_moves_each_start_as_rounds_does() -> None:
    """Three equal flows: who starts when decides, so the runs differ, in both simulators."""
    flow = vm.Flow("vegas", 0.05, count=3, alpha=2.0, beta=2.0, send_jitter=0.0)
    case = vm.Scenario(
        (vm.Link(250.0, buffer=200.0),), (flow,), run=vm.Run(200.0, 100.0, start_jitter=5.0, runs=4)
    )
    shares = []
    for model in ("fluid", "rounds"):
        found = vm.predict(case, model)
        runs = np.asarray(found.extra["throughput_runs"])
        assert runs.shape == (4, 3)
        assert np.ptp(runs, axis=0).min() > 5.0
        np.testing.assert_allclose(runs.mean(axis=0), found.throughput)
        shares.append(np.argsort(runs, axis=1)[:, -1])
    batch = vm.batch([case, case.replace({"run.start_jitter": 0.0})], model="fluid")
    np.testing.assert_allclose(batch[0].throughput, vm.predict(case, "fluid").throughput)
    np.testing.assert_allclose(batch[1].throughput, 250.0 / 3.0, rtol=1e-6)
    # the same starts are drawn, and the last to start gets most
    np.testing.assert_array_equal(shares[0], shares[1])


@pytest.mark.parametrize(
    ("flow", "link", "why"),
    [
        ({"decrease": 1.0}, {"queue": RED}, "a loss does not reduce the window of vegas"),
        ({}, {"queue": RED, "buffer": "0 pkt"}, "no packet can wait"),
    ],
)
def test_red_without_a_mean_queue_leaves_the_other_models_their_answers(
    flow: dict[str, Any], link: dict[str, Any], why: str
) -> None:
    """``predict_all`` raised an error that named no field of the file."""
    case = scenario({**VEGAS, **flow}, RENO, **{"buffer": "20 pkt", **link})
    red, other = predict_all(case, ["red", "minicycle"])
    assert why in str(red.reason)
    assert other.applicable
    marks = {**link, "queue": {**RED, "ecn": True}, "buffer": "20 pkt"}
    assert vm.predict(scenario({**VEGAS, **flow}, RENO, **marks), "red").applicable


@pytest.mark.parametrize("variant", ["ns2", "linux"])
def test_red_knows_that_linux_grows_by_packets_and_ns2_by_acks(variant: str) -> None:
    plain = HOME["red"].replace({"flow.reno.variant": variant, "flow.vegas.variant": variant})
    late = plain.replace({"flow.reno.delayed_ack": True})
    rates = [vm.predict(case, "red").throughput for case in (plain, late)]
    assert np.allclose(*rates, rtol=1e-9) == (variant == "linux")


@pytest.mark.parametrize(("variant", "backlog"), [("paper", 3.0), ("ns2", 3.0), ("linux", 3.5)])
def test_red_takes_the_middle_of_the_band_in_which_a_window_rests(
    variant: str, backlog: float
) -> None:
    """With alpha 2 and beta 4 a window of Linux rests from 2 packets up to, not with, 5."""
    queue = {**RED, "min_threshold": "20 pkt", "max_threshold": "40 pkt"}
    flow = {"law": "vegas", "alpha": 2, "beta": 4, "variant": variant, "count": 2}
    found = vm.predict(scenario(flow, buffer="60 pkt", queue=queue), "red")
    assert found.queue_mean == pytest.approx([2.0 * backlog])


@pytest.mark.parametrize(
    ("flow", "loss", "why"),
    [
        (RENO, 1.0, "loses every packet"),
        # ns-2 rounds the backlog, so with alpha = 0.5 a window holds while nothing waits
        ({**VEGAS, "alpha": 0.5, "variant": "ns2"}, 0.0, "no packet of it waits"),
    ],
)
def test_where_nothing_can_rest_stability_says_so(
    flow: dict[str, Any], loss: float, why: str
) -> None:
    found = vm.stability(scenario(flow, buffer="20 pkt", queue=RED, loss=loss))
    assert not found.applicable
    assert why in str(found.reason)


@pytest.mark.parametrize("law", ["vegas", "reno"])
def test_where_every_packet_is_lost_fluid_says_so(law: str) -> None:
    """The first random loss was drawn again and again, for ever."""
    found = vm.predict(scenario({"law": law, "variant": "ns2"}, loss=1.0), "fluid")
    assert "loses every packet" in str(found.reason)


def test_linux_is_not_the_papers_equation_under_random_loss_either() -> None:
    for variant, holds in (("ns2", True), ("linux", False)):
        case = scenario({**VEGAS, "variant": variant}, buffer="20 pkt", loss=0.01)
        found = vm.predict(case, "random-loss").assumptions
        assert [a.holds for a in found if a.name == "paper-equation"] == [holds]


@pytest.mark.parametrize(
    ("laws", "buffer", "rtt", "loss", "holds"),
    [
        (("vegas", "newreno"), 10, 0.06, 1e-4, False),  # peaks of the windows fill the buffer
        (("newreno",), 10, 0.06, 1e-4, False),
        (("vegas", "reno"), 20, 0.06, 1e-3, False),
        (("reno", "newreno"), 6, 0.15, 1e-3, False),  # slow start fills it
        (("newreno",), 20, 0.06, 0.01, True),
        (("vegas", "reno", "sack"), 30, 0.06, 0.01, True),
        (("sack", "tahoe", "reno"), 60, 0.06, 6e-3, True),
    ],
)
def test_losses_are_random_only_where_rounds_loses_no_more(
    laws: tuple[str, ...], buffer: int, rtt: float, loss: float, holds: bool
) -> None:
    """The model tested the mean window only, so it said that the buffer never overflows."""
    capacity = 1500.0 if rtt > 0.1 else 500.0
    flows = tuple(vm.Flow(law, rtt, name=f"{i}", variant="ns2") for i, law in enumerate(laws))
    time = 60.0 + 2000.0 / (loss * capacity) if holds else 660.0
    case = vm.Scenario(
        (vm.Link(capacity, buffer=float(buffer), loss=loss),), flows, run=vm.Run(time, 60.0, runs=1)
    )
    found = {a.name: a for a in vm.predict(case, "random-loss").assumptions}
    rounds = vm.predict(case, "rounds")
    assert rounds.throughput is not None
    assert rounds.loss_rate is not None
    sent = rounds.throughput / (1.0 - rounds.loss_rate)
    more = float(sent @ rounds.loss_rate / sent.sum()) / loss
    assert (more > 1.2) is not holds, more
    assert found["losses-are-random-only"].holds is holds, found["losses-are-random-only"].detail


@pytest.mark.parametrize(
    ("capacity", "loss", "rtt", "buffer", "alpha", "lost"),
    [
        (1382.0, 0.01313, 0.026, 6.0, 3.0, 0.0211),
        (958.0, 0.01341, 0.2032, 8.0, 5.0, 0.0201),
        (1553.0, 0.01538, 0.146, 9.0, 4.0, 0.0198),
    ],
)
def test_a_vegas_flow_alone_overflows_a_small_buffer_by_bursts(
    capacity: float, loss: float, rtt: float, buffer: float, alpha: float, lost: float
) -> None:
    """``lost`` is ns-2's loss rate (5 runs of 300 s), far above that of the random losses."""
    flow = vm.Flow("vegas", rtt, alpha=alpha, beta=alpha, variant="ns2", send_jitter=0.0)
    link = vm.Link(capacity, buffer=buffer, loss=loss)
    found = vm.predict(vm.Scenario((link,), (flow,)), "random-loss")
    assert lost > 1.25 * loss
    assert "losses-are-random-only" in [a.name for a in found.broken]


@pytest.mark.parametrize(("buffer", "share", "holds"), [(50, 0.74, False), (80, 1.0, True)])
def test_the_delay_queue_needs_room_for_bursts(buffer: int, share: float, holds: bool) -> None:
    """``share``: of the rate that the closed form gives D, what its Vegas gets in ns-2 (3 runs).

    Vegas keeps 3 packets queued. The queue of class D holds 5 packets, or 8.
    """
    flows = [{**flow, "variant": "ns2", "rtt": "50 ms"} for flow in (VEGAS, RENO)]
    case = scenario(*flows, buffer=f"{buffer} pkt", queue={"discipline": "rd"})
    case = case.replace({"link.capacity": 1000.0})
    said = vm.predict(case, "rate-delay")
    (row,) = [a for a in said.assumptions if a.name == "delay-buffer-large-enough"]
    assert row.holds is holds
    if not holds:
        assert "holds 4 pkt, its flows want 3: bursts overflow it, below 7 pkt" in row.detail
    simulated = vm.predict(case, "rounds").throughput[0]
    assert simulated / said.throughput[0] == pytest.approx(share, abs=0.08)


@pytest.mark.parametrize(
    ("vegas", "reno", "buffer", "there"), [(0, 1, 15, 779.1), (1, 1, 40, 440.6), (2, 1, 100, None)]
)
def test_the_rate_class_needs_a_buffer_to_fill_its_part(vegas, reno, buffer, there) -> None:
    """``there``: packets/s of a NewReno flow of class R in ns-2; ``None``: it fills its part."""
    flows = [vm.Flow("newreno", "200 ms", count=reno, variant="ns2")]
    if vegas:
        flows.append(vm.Flow("vegas", "200 ms", count=vegas, variant="ns2", alpha=2, beta=2))
    queue = vm.RateDelay(delay_buffer=0.4)
    case = vm.Scenario([vm.Link("1000 pkt/s", buffer=buffer, queue=queue)], flows)
    said = vm.predict(case, "rate-delay")
    (row,) = [a for a in said.assumptions if a.name == "windows-fill-the-link"]
    assert row.holds is (there is None)
    if there is not None:
        part = int(row.detail.split("only ")[1].split("%")[0])
        assert part == pytest.approx(100 * there / said.throughput[0], abs=1.0)


def test_only_flows_of_the_delay_class_need_its_buffer() -> None:
    """One Vegas of five keeps 3 packets in the D queue of 7; the others are marked as class R."""
    flows = [{**VEGAS, "name": "d"}, {**VEGAS, "name": "r", "count": 4, "class": "rate"}]
    case = scenario(*flows, buffer="70 pkt", queue={"discipline": "rd"})
    held = {a.name: a.holds for a in vm.predict(case, "rate-delay").assumptions}
    assert held["delay-buffer-large-enough"] is True
    assert held["proper-marking"] is False


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"flow.far.rtt": "200 ms"}, "alike-in-class"),
        ({"flow.b.alpha": 6, "flow.b.beta": 6}, "alike-in-class"),
        ({"flow.a.beta": 4, "flow.b.beta": 4}, "single-threshold"),
    ],
)
def test_flows_of_a_class_divide_its_rate_equally_only_if_they_are_alike(change, name) -> None:
    """In ns-2 RTTs of 20 and 200 ms get 577 and 47 packets/s, and alphas of 1 and 6 106 and 519."""
    vegas = {"law": "vegas", "variant": "ns2", "alpha": 1, "beta": 1, "rtt": "20 ms"}
    reno = {"law": "newreno", "variant": "ns2", "rtt": "20 ms"}
    flows = [{**vegas, "name": "a"}, {**vegas, "name": "b"}]
    flows += [{**reno, "name": "near"}, {**reno, "name": "far"}]
    case = scenario(*flows, buffer="100 pkt", queue={"discipline": "rd", "delay_buffer": 0.3})
    assert not vm.predict(case, "rate-delay").broken
    assert name in [a.name for a in vm.predict(case.replace(change), "rate-delay").broken]


@pytest.mark.parametrize(("variant", "holds"), [("paper", True), ("ns2", False)])
def test_the_packet_in_transmission_takes_a_place_of_ns2s_buffer(variant: str, holds: bool) -> None:
    """19 packets can wait at ns-2's limit of 20, and 20 at the papers'."""
    flow = {"law": "vegas", "alpha": 19.4, "beta": 19.4, "variant": variant}
    found = vm.predict(scenario(flow, buffer="20 pkt"), "equilibrium").assumptions
    assert [a.holds for a in found if a.name == "infinite-buffer"] == [holds]


@pytest.mark.parametrize(
    ("kept", "variant", "buffer", "queue", "holds"),
    [
        (19.4, "ns2", 20.0, vm.DropTail(), False),  # the packet in transmission takes a place
        (19.4, "ns2", 20.0, vm.Red(30.0, 60.0), True),  # but not of RED's limit
        (20.4, "ns2", 20.9, vm.Red(30.0, 60.0), False),  # a limit is a whole number
        (20.4, "paper", 20.9, vm.DropTail(), False),
        (6.0, "paper", 50.0, vm.RateDelay(1.0, 0.1), False),  # Vegas's class has 5 of 50 places
        (5.0, "paper", 50.0, vm.RateDelay(1.0, 0.1), True),
    ],
)
@pytest.mark.parametrize("model", ["equilibrium", "network"])
def test_the_queue_itself_says_how_many_packets_can_wait(
    model: str,
    kept: float,
    variant: str,
    buffer: float,
    queue: vm.DropTail | vm.Red | vm.RateDelay,
    holds: bool,
) -> None:
    """The queue holds what the flow keeps; of two links, all of it waits at the narrow one."""
    narrow = vm.Link(1000.0, buffer=buffer, queue=queue)
    wide = [vm.Link(5000.0, name="wide", buffer=30.0)] if model == "network" else []
    flow = vm.Flow("vegas", 0.1, variant=variant, alpha=kept, beta=kept, over_estimate=0.0)
    found = vm.predict(vm.Scenario((narrow, *wide), (flow,)), model).assumptions
    (said,) = [a.holds for a in found if a.name == "infinite-buffer"]
    # of several links the network does not work out the queues before the steady state
    assert said is (None if holds and wide else holds)


def test_two_queues_are_not_one() -> None:
    answer = vm.predict(HOME["rate-delay"], "minicycle")
    assert not answer.applicable
    assert "one queue" in str(answer.reason)


def test_the_golden_section_of_two_arrivals() -> None:
    # boutremans (6) with x_2 = Delta_1: last/first = (1 + sqrt 5)/2
    s = scenario({**VEGAS, "count": 2, "start": {"every": "9 s"}})
    for model in ("equilibrium", "arrivals"):
        first, last = vm.predict(s, model).throughput
        assert last / first == pytest.approx((1 + math.sqrt(5)) / 2, rel=1e-12)


@settings(max_examples=25, derandomize=True, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=2, max_size=5), st.integers(0, 5))
def test_the_order_of_groups_does_not_matter(alphas: list[int], shift: int) -> None:
    flows = [
        {"law": "vegas", "name": f"v{i}", "alpha": a, "beta": a + i, "start": f"{3 * i} s"}
        for i, a in enumerate(alphas)
    ]
    turned = flows[shift % len(flows) :] + flows[: shift % len(flows)]
    for model in ("equilibrium", "arrivals", "bands", "network"):
        here, there = (vm.predict(scenario(*order), model) for order in (flows, turned))
        for name in here.groups:
            assert there.groups[name] == pytest.approx(here.groups[name], rel=1e-9)


@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_the_network_tests_the_buffer_of_either_direction(direction: str) -> None:
    """Three flows that keep 2 packets each queue 6; the buffer holds 3."""
    flows = tuple(
        vm.Flow("vegas", 0.05, name=f"v{i}", direction=direction, alpha=2.0, beta=2.0)
        for i in range(3)
    )
    found = vm.predict(vm.Scenario((vm.Link(250.0, buffer=3.0),), flows), "network")
    (buffer,) = (a for a in found.assumptions if a.name == "infinite-buffer")
    assert buffer.holds is False


@settings(max_examples=25, derandomize=True, deadline=None)
@given(st.lists(st.floats(0.5, 9), min_size=2, max_size=6), st.floats(0, 0.02))
def test_one_link_of_the_network_is_the_secular_equation(alphas: list[float], x: float) -> None:
    flows = [
        {"law": "vegas", "name": f"v{i}", "alpha": a, "beta": a, "over_estimate": f"{x * i!r} s"}
        for i, a in enumerate(alphas)
    ]
    s = scenario(*flows)
    one, other = vm.predict(s, "network"), vm.predict(s, "equilibrium")
    np.testing.assert_allclose(one.throughput, other.throughput, rtol=1e-9)
    band = vm.predict(s, "bands").throughput_range
    np.testing.assert_allclose(band, other.throughput[:, None] * [1, 1], rtol=1e-9)


def test_a_parking_lot_is_certified() -> None:
    names = [f"L{i}" for i in range(5)]
    s = vm.Scenario.from_dict(
        {
            "link": [{"name": n, "capacity": "12500 pkt/s"} for n in names],
            "flow": [
                {"law": "vegas", "name": "through", "count": 20, "rtt": "200 ms"},
                *(
                    {"law": "vegas", "name": n, "count": 20, "rtt": "60 ms", "path": [n]}
                    for n in names
                ),
            ],
        }
    )
    p = vm.predict(s, "network")
    assert p.extra["kkt_residual"] < 1e-10
    np.testing.assert_allclose(p.utilization, 1.0, rtol=1e-9)
    # five links at one price each: the long flow's backlog is split over five queues
    assert p.groups["L0"] / p.groups["through"] == pytest.approx(5.0, rel=1e-9)
    assert not vm.predict(s, "equilibrium").applicable


@pytest.mark.parametrize("every", ["0 s", "60 s"])
def test_the_papers_fluid_settles_at_the_steady_state(every: str) -> None:
    group = {**VEGAS, "count": 4, "start": {"every": every}}
    s = scenario(group, run={"duration": "600 s", "warmup": "400 s"})
    fluid, exact = vm.predict(s, "fluid"), vm.predict(s, "equilibrium")
    np.testing.assert_allclose(fluid.throughput, exact.throughput, rtol=1e-6)
    np.testing.assert_allclose(fluid.base_rtt, exact.base_rtt, rtol=1e-6)


@pytest.mark.parametrize("variant", ["paper", "ns2", "linux"])
def test_rounds_finds_the_base_rtt_that_packets_see(variant: str) -> None:
    red = {**VEGAS, "variant": variant}
    s = scenario(red, RENO, buffer="20 pkt", queue=RED, run={"duration": "60 s", "warmup": "9 s"})
    assert vm.predict(s, "rounds").base_rtt[0] >= 0.08 * (1 - 1e-9)


def test_many_arrivals_in_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    from vegasmodel.adapters import secular

    group = {**VEGAS, "alpha": 2, "beta": 2, "count": 60, "start": {"every": "1 s"}}
    s = scenario(group)
    slow = vm.predict(s, "equilibrium")
    monkeypatch.setattr(secular, "MAX_ORDER", 50)
    for model in ("equilibrium", "arrivals"):
        fast = vm.predict(s, model)
        assert fast.applicable
        np.testing.assert_allclose(fast.throughput, slow.throughput, rtol=1e-12)


def test_which_runs_differ_by_chance() -> None:
    """Senders wait at random by default; the fluid of the papers' law ignores that."""
    flows = [vm.Flow("vegas", "40 ms"), vm.Flow("reno", "40 ms")]
    plain = vm.Scenario([vm.Link(1000, buffer=20)], flows)
    still = plain.replace({"flow.send_jitter": 0})
    red = still.replace({"link.queue": vm.Red(5, 15)})
    sampled = plain.replace({"flow.variant": "ns2"})
    assert [s.by_chance for s in (plain, still, red, sampled)] == [True, False, True, True]
    assert [by_chance(s) for s in (plain, still, red, sampled)] == [False, False, True, True]


def test_no_such_model() -> None:
    with pytest.raises(vm.FieldError, match="did you mean 'minicycle'"):
        vm.predict(HOME["bands"], "minicycel")
    with pytest.raises(vm.FieldError, match=r"vegasmodel\.predict_all\(scenario"):
        vm.predict(HOME["bands"], "all")
    assert [p.model for p in vm.predict_all(HOME["bands"], ["bands", "red"])] == ["bands", "red"]
    assert [p.model for p in vm.predict_all(HOME["bands"], "bands")] == ["bands"]
    assert check_models("all") == list(vm.MODELS)


def test_more_than_a_model_takes_is_a_reason_and_no_error():
    link = '[[link]]\ncapacity = "1000 pkt/s"\n'
    many = vm.Scenario.from_toml(f'{link}[[flow]]\nlaw = "vegas"\nrtt = "80 ms"\ncount = 5000\n')
    assert "4000 flows" in (vm.predict(many, "bands").reason or "")
    start = "start = { every = '1 ms' }\n"
    ordered = f'{link}[[flow]]\nlaw = "vegas"\nrtt = "80 ms"\ncount = 11000\n{start}'
    queue = vm.Scenario.from_toml(ordered)  # alpha < beta
    assert "10000 flows" in (vm.predict(queue, "arrivals").reason or "")
    linux = vm.Scenario.from_toml(f'{ordered}variant = "linux"\n')
    assert "10000 moments" in (vm.predict(linux, "equilibrium").reason or "")
    short = 'size = "30 pkt"\narrivals = { poisson = "1e300 1/s" }\n'
    crowd = vm.Scenario.from_toml(f'{link}[[flow]]\nlaw = "reno"\nrtt = "80 ms"\n{short}')
    assert "200000" in (vm.predict(crowd, "rounds").reason or "")


@pytest.mark.parametrize("threads", [1, 3])
def test_a_batch_gives_what_its_scenarios_give_one_by_one(threads: int) -> None:
    cases = [HOME["minicycle"], HOME["bands"], scenario(VEGAS, RENO, buffer="30 pkt")]
    found = vm.batch(iter(cases), "minicycle", threads=threads)
    for case, answer in zip(cases, found, strict=True):
        alone = vm.predict(case, "minicycle")
        assert (answer.applicable, answer.reason) == (alone.applicable, alone.reason)
        np.testing.assert_array_equal(answer.throughput, alone.throughput)
    assert [answer.applicable for answer in found] == [True, False, True]
    assert vm.batch([]) == ()
    for wrong in ({"model": "no"}, {"threads": 0}):
        with pytest.raises(vm.FieldError):
            vm.batch(cases, **wrong)


def test_bands_that_reach_below_an_empty_queue_are_none() -> None:
    """In ns-2 the band begins at alpha - 1/2; an earlier version had this wrong."""
    low = scenario({"law": "vegas", "alpha": 0.25, "beta": 0.8, "variant": "ns2"})
    found = vm.predict(low, "bands")
    assert not found.applicable
    assert "queue" in str(found.reason)


def test_a_file_name_is_no_scenario():
    for ask in (vm.predict, vm.simulate, vm.compare):
        with pytest.raises(vm.FieldError, match=r"vegasmodel\.load\(FILE\)"):
            ask("mixed.toml")


@pytest.mark.parametrize("model", ["minicycle", "fluid"])
def test_a_buffer_of_few_packets_is_named(model):
    """With a buffer of 2 packets ns-2 gives the two flows 41 and 38 of 1080 packets/s."""
    scenario = vm.Scenario(
        [vm.Link("1080 pkt/s", buffer=2)],
        [vm.Flow("vegas", "60 ms", alpha=3, beta=3, variant="ns2"), vm.Flow("reno", "60 ms")],
    )
    for buffer, holds in ((2, False), (20, True)):
        said = vm.predict(scenario.replace({"link.buffer": buffer}), model).assumptions
        assert {a.name: a.holds for a in said}["buffer-holds-bursts"] is holds


@pytest.mark.parametrize(
    ("model", "gone"),
    [("rounds", {"stop": "5 s"}), ("rounds", {"size": 9}), ("fluid", {"stop": 5})],
)
def test_without_a_flow_after_the_warm_up_there_is_no_answer(model, gone) -> None:
    """There is nothing to average; with one flow that goes on, there is."""
    flows = [vm.Flow("vegas", "80 ms", name="gone", **gone), vm.Flow("reno", "80 ms", **gone)]
    scenario = vm.Scenario([vm.Link(300.0, buffer=20)], flows, run=vm.Run("40 s", "20 s"))
    none = vm.predict(scenario, model)
    assert not none.applicable
    assert "no flow sends" in none.reason
    some = dataclasses.replace(scenario, flows=(flows[0], vm.Flow("reno", "80 ms")))
    np.testing.assert_array_equal(np.isnan(vm.predict(some, model).throughput), [True, False])


def test_data_in_the_other_direction_takes_no_part_of_a_flows_share() -> None:
    """Alone on 2000 pkt/s and 100 ms a window is 200 packets: 100 round trips from half to all."""
    forward = vm.Flow("reno", "100 ms", name="a", variant="ns2")
    back = vm.Flow("reno", "100 ms", name="b", count=8, variant="ns2", direction="reverse")
    for flows in ([forward], [forward, back]):
        scenario = vm.Scenario([vm.Link(2000.0, buffer=20)], flows, run=vm.Run("60 s", "5 s"))
        slip = settles(scenario)
        assert slip.holds is False
        # 220 packets at the loss; 110 to 200 take 0.1 s each, 200 to 220 take 2.1 s
        assert "takes 11.1 s" in slip.detail


@pytest.mark.parametrize(("variant", "holds"), [("paper", True), ("ns2", False), ("linux", False)])
def test_a_threshold_that_is_no_whole_number_is_named(variant, holds):
    """2.5 packets: at a backlog of 2 packets the window grows, at 3 it shrinks."""
    pair = [
        vm.Flow("vegas", "60 ms", alpha=2.5, beta=2.5, variant=variant),
        vm.Flow("reno", "60 ms"),
    ]
    run = vm.Run(30.0, 10.0, runs=2)
    scenario = vm.Scenario([vm.Link("1080 pkt/s", buffer=20)], pair, run=run)
    for model in ("rounds", "fluid"):
        said = {a.name: a for a in vm.predict(scenario, model).assumptions}
        assert said["whole-thresholds"].holds is holds  # the papers' rule compares real numbers
        words = "grows below a backlog of 3 and shrinks above 2"
        assert (words in said["whole-thresholds"].detail) is not holds
    whole = scenario.replace({"flow.vegas.alpha": 2, "flow.vegas.beta": 3})
    said = {a.name: a.holds for a in vm.predict(whole, "fluid").assumptions}
    assert said["whole-thresholds"] is True


@pytest.mark.parametrize("beta", [3.0, 6.0])
def test_minicycle_solves_no_cycle_twice(monkeypatch, beta):
    """It solved each once more to say which hypotheses hold in it."""
    solved = []
    whole = minicycle.minicycle.solve
    monkeypatch.setattr(
        minicycle.minicycle, "solve", lambda *a, **k: solved.append(repr((a, k))) or whole(*a, **k)
    )
    flows = (vm.Flow("vegas", 0.08, alpha=3.0, beta=beta), vm.Flow("reno", 0.08))
    assert vm.predict(vm.Scenario((vm.Link(1080.0, buffer=3.0),), flows), "minicycle").applicable
    assert len(solved) == len(set(solved)) > 0


@pytest.mark.parametrize(("beta", "times"), [(3.0, 0), (6.0, 1)])
def test_minicycle_computes_the_first_window_only_where_it_decides(monkeypatch, beta, times):
    """It took most of the time, and has no effect unless a whole range of windows is steady."""
    calls = []
    whole = minicycle._start
    monkeypatch.setattr(minicycle, "_start", lambda *told: calls.append(1) or whole(*told))
    flows = (vm.Flow("vegas", 0.08, alpha=3.0, beta=beta), vm.Flow("reno", 0.08))
    case = vm.Scenario((vm.Link(1080.0, buffer=3.0),), flows)
    (found,) = vm.batch([case], "minicycle")
    assert len(calls) == times
    known = vm.equilibrium.minicycle.solve(1080.0, 0.08, 3.0, 3.0, flows[0].decrease, beta=beta)
    assert found.throughput == pytest.approx([float(known.vegas), float(known.reno)], rel=1e-12)
    other = vm.equilibrium.minicycle.solve(
        1080.0, 0.08, 3.0, 3.0, flows[0].decrease, beta=beta, losers="reno"
    )
    assert bool(other.vegas_range[0] < other.vegas_range[1]) == bool(times)
    assert found.throughput_range[0, 1] == pytest.approx(float(other.vegas_range[1]), rel=1e-12)
