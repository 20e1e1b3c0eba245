"""Which assumptions of a model hold in a scenario, and what it says of those that do not."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import vegasmodel as vm
from tests.helpers import scenario
from tests.homes import HOME, RENO, VEGAS
from vegasmodel.adapters import fluid_assumptions
from vegasmodel.adapters.warm_up import settles
from vegasmodel.packets import ns2
from vegasmodel.scenario import Flow, Link, Run, Scenario
from vegasmodel.scenario.active_time import active_part


@pytest.mark.parametrize("model", ["fluid", "rounds"])
def test_what_an_assumption_that_holds_says_is_no_failure(model: str) -> None:
    held = [a for a in vm.predict(HOME["minicycle"], model).assumptions if a.holds]
    said = " ".join(a.detail for a in held)
    assert len(held) > 5
    assert not any(word in said for word in (" not ", "only roughly", "so many", "full queue"))


UNKNOWN: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("no-delay-noise", {"delay_noise": "1 ms"}, {}),
    ("window-not-limited", {"max_window": "30 pkt"}, {}),
    ("one-ack-a-packet", {"delayed_ack": True}, {}),
    ("long-lived-flows", {"size": "30 pkt"}, {}),
    ("no-random-loss", {}, {"loss": 0.01}),
    ("all-flows-present", {"stop": "500 s"}, {}),
]


@pytest.mark.parametrize(("name", "flow", "link"), UNKNOWN)
def test_a_feature_that_the_equations_lack_is_named(
    name: str, flow: dict[str, Any], link: dict[str, Any]
) -> None:
    """It is named whichever group has it, and not without it."""
    for flows in (({**VEGAS, **flow}, RENO), (VEGAS, {**RENO, **flow})):
        p = vm.predict(scenario(*flows, buffer="20 pkt", **link), "minicycle")
        assert p.applicable
        assert name in [a.name for a in p.assumptions if a.holds is False]
    without = vm.predict(scenario(VEGAS, RENO, buffer="20 pkt"), "minicycle")
    assert name in [a.name for a in without.assumptions if a.holds is True]


@pytest.mark.parametrize(("start", "warmup", "holds"), [(0, 0, True), (5, 5, True), (6, 5, False)])
def test_a_flow_that_starts_as_the_averages_begin_is_there_all_the_time(
    start: float, warmup: float, holds: bool
) -> None:
    run = {"duration": "60 s", "warmup": f"{warmup} s"}
    case = scenario(VEGAS, {**RENO, "start": f"{start} s"}, run=run, buffer="20 pkt")
    assert bool(active_part(case).min() == 1.0) is holds
    [row] = [a for a in vm.predict(case, "minicycle").assumptions if a.name == "all-flows-present"]
    assert row.holds is holds


EARLY = {"discipline": "red", "min_threshold": "5 pkt", "max_threshold": "15 pkt"}


@pytest.mark.parametrize(
    ("model", "flows", "link", "holds"),
    [
        # tcp.cc: useHeaders_ adds 40 B to the packets of all agents but Vegas
        ("minicycle", [VEGAS, RENO], {"buffer": "20 pkt"}, False),
        ("fluid", [VEGAS, RENO], {"buffer": "20 pkt"}, False),
        ("red", [RENO], {"buffer": "40 pkt", "queue": EARLY}, False),
        ("random-loss", [RENO], {"buffer": "50 pkt", "loss": 0.05}, False),
        ("rate-delay", [VEGAS, RENO], {"buffer": "40 pkt", "queue": {"discipline": "rd"}}, False),
        # tcpTick_: the timers of Vegas are finer, too, where it loses packets
        ("random-loss", [{**VEGAS, "variant": "ns2"}], {"buffer": "50 pkt", "loss": 0.05}, False),
        ("red", [{**VEGAS, "variant": "ns2"}], {"buffer": "40 pkt", "queue": EARLY}, False),
        # fluid has the timers of each version, but not the headers
        ("fluid", [{**VEGAS, "variant": "ns2"}], {"buffer": "50 pkt", "loss": 0.05}, True),
        ("fluid", [{**VEGAS, "variant": "ns2"}, RENO], {"buffer": "50 pkt", "loss": 0.05}, False),
        # neither matters for Vegas alone at a drop-tail queue, nor for the TCP of Linux
        ("equilibrium", [{**VEGAS, "variant": "ns2"}], {"buffer": "50 pkt"}, True),
        (
            "minicycle",
            [{**f, "variant": "linux"} for f in (VEGAS, RENO)],
            {"buffer": "20 pkt"},
            True,
        ),
        ("fluid", [{**f, "variant": "linux"} for f in (VEGAS, RENO)], {"buffer": "20 pkt"}, True),
    ],
)
def test_a_model_says_if_it_leaves_the_later_defaults_of_ns2_out(
    model: str, flows: list[dict[str, Any]], link: dict[str, Any], holds: bool
) -> None:
    """With ``ns2_defaults = "2.35"``; with those of the papers' time nothing is left out."""
    run = {"duration": "60 s", "warmup": "20 s"}
    for defaults, expected in (("2.35", holds), ("papers", True)):
        case = scenario(*flows, run={**run, "ns2_defaults": defaults}, **link)
        said = [
            a for a in vm.predict(case, model).assumptions if a.name == "defaults-of-the-papers"
        ]
        assert [a.holds for a in said] == [expected]


PAIR = [VEGAS, RENO]
LATER = {**VEGAS, "count": 3, "start": {"every": "2 s"}}
CROWD = {"buffer": "40 pkt", "queue": {**EARLY, "max_probability": 0.1}}


@pytest.mark.parametrize(
    ("model", "name", "with_it", "without_it", "link"),
    [
        ("minicycle", "one-source-of-each-kind", PAIR, [VEGAS, RENO, RENO], {"buffer": "20 pkt"}),
        ("random-loss", "mean-field", [RENO], PAIR, {"buffer": "20 pkt", "loss": 0.01}),
        ("arrivals-bonald", "one-arrival-at-a-time", [LATER], [{**LATER, "start": "0 s"}], {}),
        ("arrivals-bonald", "base-rtt-measured", [LATER], [{**LATER, "over_estimate": "0 s"}], {}),
        # 40 Reno flows have windows W of at most 2.5 packets, so their loss probability 1.5/W^2 is
        # above 0.2; that of RED jumps from 0.1 to 1 at the maximum threshold
        ("red", "steady-queue", PAIR, [{**RENO, "count": 40}], CROWD),
    ],
)
def test_what_the_equations_need_of_the_scenario_is_tested(
    model: str,
    name: str,
    with_it: list[dict[str, Any]],
    without_it: list[dict[str, Any]],
    link: dict[str, Any],
) -> None:
    for flows, holds in ((with_it, True), (without_it, False)):
        named = [{**flow, "name": f"flow {i}"} for i, flow in enumerate(flows)]
        answer = vm.predict(scenario(*named, **link), model)
        [row] = [a for a in answer.assumptions if a.name == name]
        assert row.holds is holds
        assert bool(row.detail) is not holds


@pytest.mark.parametrize(
    ("window", "loss", "waits"),
    [
        (10.0, 0.01, 0.09 / 1.09),  # the fraction 3/10 of 1 loss/s
        (10.0, 0.005, 0.045 / 1.045),
        (2.0, 0.01, 0.06 / 1.06),  # each of 0.2 losses/s, because the window is below 3 packets
        (2.0, 0.0075, 0.045 / 1.045),
    ],
)
def test_the_equations_bear_waits_for_the_timer_for_a_twentieth_of_the_time(
    window: float, loss: float, waits: float
) -> None:
    """Padhye et al.: the fraction 3/W of the losses lead to a timeout, here of 0.3 s.

    Linux waits for the RTT, 0.1 s, and 0.2 s more. The time without waits is counted, too, so w
    seconds of waits for each second without them are the fraction w/(1 + w).
    """
    case = vm.Scenario([Link(1e4, loss=loss)], [Flow("reno", 0.1, variant="linux")])
    run = SimpleNamespace(throughput=np.array([window / 0.1]), rtt_mean=np.array([0.1]))
    said = fluid_assumptions._timers(case, run)
    assert said.holds is (waits < 0.05)
    assert said.holds or f"for {waits:.0%} of its time" in said.detail


def test_fluid_says_where_its_equations_lack_the_delayed_acks_of_vegas() -> None:
    """With the variant ``paper`` Vegas's window does not depend on how many ACKs come."""
    both = scenario(VEGAS, RENO, run={"duration": "60 s"}, buffer="20 pkt")

    def predict(**changes: Any) -> tuple[list[float], list[str]]:
        p = vm.predict(both.replace({f"flow.{k}": v for k, v in changes.items()}), "fluid")
        return list(p.throughput), [a.name for a in p.assumptions if a.holds is False]

    plain, late = predict(), predict(**{"vegas.delayed_ack": True})
    assert late[0] == plain[0]
    assert "one-ack-a-packet" in set(late[1]) - set(plain[1])
    for known in ({"reno.delayed_ack": True}, {"vegas.delayed_ack": True, "variant": "ns2"}):
        rates, broken = predict(**known)
        assert rates != plain[0]
        assert "one-ack-a-packet" not in broken


@pytest.mark.parametrize("model", ["equilibrium", "bands", "arrivals", "minicycle"])
def test_random_starts_are_not_in_the_equations(model: str) -> None:
    """Who starts first over-estimates its baseRTT least, and a closed form does not know who."""
    case = HOME[model].replace({"run.start_jitter": "5 s"})
    for asked, holds in ((case, False), (case.replace({"flow.vegas.over_estimate": "0 s"}), True)):
        (starts,) = (a for a in vm.predict(asked, model).assumptions if a.name == "fixed-starts")
        assert starts.holds is holds
        assert holds or "5 s" in starts.detail


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
    sent = rounds.throughput / (1.0 - rounds.loss_rate)
    more = float(sent @ rounds.loss_rate / sent.sum()) / loss
    assert bool(more > 1.2) is (not holds), more
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
    run = vm.Run(duration=30.0, warmup=10.0, runs=2)
    scenario = vm.Scenario([vm.Link("1080 pkt/s", buffer=20)], pair, run=run)
    for model in ("rounds", "fluid"):
        said = {a.name: a for a in vm.predict(scenario, model).assumptions}
        assert said["whole-thresholds"].holds is holds  # the papers' rule compares real numbers
        words = "grows below a backlog of 3 and shrinks above 2"
        assert (words in said["whole-thresholds"].detail) is not holds
    whole = scenario.replace({"flow.vegas.alpha": 2, "flow.vegas.beta": 3})
    said = {a.name: a.holds for a in vm.predict(whole, "fluid").assumptions}
    assert said["whole-thresholds"] is True


def test_models_of_one_direction_say_how_many_flows_go_the_other_way():
    forth, back = vm.Flow("vegas", "60 ms"), vm.Flow("reno", "60 ms", direction="reverse")
    for flows, some in (([forth, back], "some"), ([back], "all")):
        case = vm.Scenario([vm.Link("500 pkt/s")], flows)
        said = f"the equations are for the forward direction only; {some} flows are in reverse"
        assert vm.predict(case, "equilibrium").reason == said


def behind_access(access: str | None) -> vm.Scenario:
    """SACK, with this ``access``, and three Reno flows at a buffer that overflows often."""
    sack = vm.Flow("sack", "57 ms", variant="ns2", access=access)
    reno = vm.Flow("reno", "57 ms", count=3, start="0.5 s", variant="ns2")
    run = vm.Run(duration=400.0, warmup=100.0, runs=3, start_jitter=0.5)
    return vm.Scenario([vm.Link("60 pkt/s", buffer=24)], [sack, reno], run=run)


@pytest.mark.ns2
def test_fluid_does_not_know_what_an_access_link_does_that_spreads_out_bursts() -> None:
    """In ns-2 it brings SACK more than a tenth, but to ``fluid`` both access links are the same."""
    default, slow = behind_access(None), behind_access("150 pkt/s")
    found = [ns2.run(each, rtts=False).throughput[0] for each in (default, slow)]
    assert found[1] > 1.1 * found[0]
    of_fluid = [vm.predict(each, "fluid") for each in (default, slow)]
    assert of_fluid[0].throughput[0] == of_fluid[1].throughput[0]
    rows = [{a.name: a for a in each.assumptions}["bottleneck-is-the-link"] for each in of_fluid]
    assert [row.holds for row in rows] == [True, None]
    assert "bursts of sack (150 pkt/s)" in rows[1].detail


@pytest.mark.parametrize(
    ("key", "value", "holds"),
    [
        ("flow.sack.access", "600 pkt/s", True),  # ten times as fast: bursts arrive nearly at once
        ("flow.sack.access", "119 pkt/s", False),  # below twice: a queue may stand at the link
        ("flow.reno.max_window", 2, True),  # no packet is lost at the buffer
    ],
)
def test_fluid_knows_access_links_that_are_fast_or_whose_bursts_lose_nothing(
    key: str, value: str | float, holds: bool
) -> None:
    limit = {"flow.sack.max_window": 2} if "max_window" in key else {}
    case = behind_access("150 pkt/s").replace({key: value, **limit})
    rows = {a.name: a.holds for a in vm.predict(case, "fluid").assumptions}
    assert rows["bottleneck-is-the-link"] is holds


@pytest.mark.ns2
@pytest.mark.parametrize(
    ("capacity", "rtt", "buffer", "holds"),
    [(508.5, 0.032, 40.0, False), (257.4, 0.047, 25.0, True)],
)
def test_a_motion_without_chance_may_depend_on_estimates(
    capacity: float, rtt: float, buffer: float, holds: bool
) -> None:
    """Without waits one run is exact, but only for exact values; ns-2 shows how starts matter."""
    flows = (
        Flow("vegas", rtt, alpha=1.0, beta=3.0, start=0.71, variant="ns2", send_jitter=0.0),
        Flow("sack", rtt, start=0.47, variant="ns2", send_jitter=0.0),
    )
    exact = Scenario((Link(capacity, buffer=buffer),), flows, run=Run(duration=200.0, warmup=60.0))
    estimated = replace(exact, estimated_from="run.tr")
    [said] = [
        note.holds
        for note in vm.predict(estimated, "rounds").assumptions
        if note.name == "insensitive-to-starts"
    ]
    assert said is holds
    moved = replace(exact, run=replace(exact.run, start_jitter=rtt, runs=10))
    runs = ns2.run(moved, rtts=False).extra["throughput_runs"]
    spread = runs.std(axis=0, ddof=1) / runs.mean(axis=0)
    assert bool(spread.max() <= 0.1) is holds
    unknown = [n for n in vm.predict(exact, "rounds").assumptions if n.holds is None]
    assert [note.name for note in unknown] == ["insensitive-to-starts"]
