"""The closed form ``rate-delay``: what its two classes need to get their rates."""

import math

import pytest

import vegasmodel as vm
from tests.helpers import scenario
from tests.homes import HOME, RENO, VEGAS


@pytest.mark.parametrize(("buffer", "share", "holds"), [(50, 0.56, False), (80, 1.0, True)])
def test_the_delay_queue_needs_room_for_bursts(buffer: int, share: float, holds: bool) -> None:
    """``share``: of the rate that the closed form gives D, what its Vegas gets in ns-2 (12 runs).

    Vegas keeps 3 packets queued. The queue of class D holds 5 packets, or 8. With 5 the runs differ
    much: the standard error is 0.06 in ns-2, and as large in 20 runs of ``rounds``.
    """
    flows = [{**flow, "variant": "ns2", "rtt": "50 ms"} for flow in (VEGAS, RENO)]
    case = scenario(*flows, buffer=f"{buffer} pkt", queue={"discipline": "rd"})
    case = case.replace({"link.capacity": 1000.0})
    said = vm.predict(case, "rate-delay")
    (row,) = [a for a in said.assumptions if a.name == "delay-buffer-large-enough"]
    assert row.holds is holds
    if not holds:
        assert "room for 4 pkt, its flows keep 3 there; bursts need 7 pkt of room" in row.detail
    simulated = vm.predict(case.replace({"run.runs": 20}), "rounds").throughput[0]
    two_errors = 0.08 if holds else 2.0 * math.hypot(0.06, 0.06)
    assert simulated / said.throughput[0] == pytest.approx(share, abs=two_errors)


def test_a_flow_of_the_rate_class_gets_k_times_as_much() -> None:
    """The weights are 2 each for two Reno flows and 1 each for three Vegas flows, so 7 in all."""
    flows = [vm.Flow("reno", 0.1, count=2), vm.Flow("vegas", 0.1, count=3)]
    link = vm.Link(700.0, buffer=200, queue=vm.RateDelay(k=2.0))
    found = vm.predict(vm.Scenario([link], flows), "rate-delay")
    assert found.throughput == pytest.approx([200.0, 200.0, 100.0, 100.0, 100.0])


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


def test_two_queues_are_not_one() -> None:
    answer = vm.predict(HOME["rate-delay"], "minicycle")
    assert not answer.applicable
    assert "one queue" in str(answer.reason)


def test_a_vegas_flow_that_starts_after_others_of_its_class_is_told() -> None:
    """Three start 3 s apart, and ns-2 gives them 124, 132 and 209 packets/s, not 155 each."""
    queue = vm.RateDelay(k=0.5, delay_buffer=0.4)
    flows = [
        vm.Flow("sack", "70 ms", name="r", count=2, variant="ns2"),
        vm.Flow("vegas", "70 ms", name="d", count=3, variant="ns2", alpha=7, beta=7),
    ]
    case = vm.Scenario([vm.Link(618.0, buffer=82.0, queue=queue)], flows)

    def row(**changes: object) -> vm.Assumption:
        said = vm.predict(
            case.replace({f"flow.d.{k}": v for k, v in changes.items()}), "rate-delay"
        )
        return next(a for a in said.assumptions if a.name == "base-rtt-is-the-rtt")

    assert row().holds
    late = {"first": "0 s", "every": "3 s"}
    assert row(start=late).holds is False
    assert "d[2] starts after other Vegas flows of class D" in row(start=late).detail
    more = int(row(start=late).detail.split("may get ")[1].split("%")[0])
    assert more == pytest.approx(100 * (209 / 155 - 1), abs=4)
    assert row(start=late, over_estimate="0 s").holds
    assert row(start=late, count=1).holds


@pytest.mark.parametrize(("rivals", "held"), [(2, True), (0, False)])
def test_a_new_vegas_flow_raises_the_rate_of_its_class_and_may_find_the_queue_empty(
    rivals: int, held: bool
) -> None:
    """Beside two flows of R, the second flow of D raises the rate of D from a third to a half.

    So D sends 167 packets/s more, or 8 in a round trip, and only 3 are queued. Without flows of
    class R, D has the whole link before and after. The golden ratio is that of the flows then.
    """
    flows = [vm.Flow("vegas", "50 ms", name="d", count=2, variant="ns2", alpha=3, beta=3)]
    flows += [vm.Flow("newreno", "50 ms", count=rivals, variant="ns2")] if rivals else []
    queue = vm.RateDelay(delay_buffer=0.3)
    case = vm.Scenario([vm.Link(1000.0, buffer=100.0, queue=queue)], flows)
    case = case.replace({"flow.d.start": {"first": "10 s", "every": "10 s"}, "run.runs": 1})
    said = vm.predict(case, "rate-delay")
    (row,) = [a for a in said.assumptions if a.name == "base-rtt-is-the-rtt"]
    assert row.holds is held
    early, late = vm.predict(case, "rounds").throughput[:2]
    assert late / early == pytest.approx(1.0 if held else (1 + 5**0.5) / 2, rel=0.1)
