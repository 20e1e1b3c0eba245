"""A dead zone, a buffer's limit and its division are the same for every model and driver."""

import ast
import math
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

import numpy as np
import pytest

import vegasmodel as vm
from vegasmodel import queues
from vegasmodel.adapters import minicycle_inputs, rate_delay
from vegasmodel.engines.fluid import continuous, one_run, senders
from vegasmodel.engines.rounds.flows import mechanisms
from vegasmodel.engines.rounds.route import routes
from vegasmodel.engines.rounds.state import FLOW
from vegasmodel.equilibrium import bands
from vegasmodel.equilibrium import rate_delay as closed_form
from vegasmodel.laws import find
from vegasmodel.laws.packets import Round
from vegasmodel.packets import ns2_script, ns2_support, ns3_script, ns3_support
from vegasmodel.queues.rate_delay import split
from vegasmodel.stacks import STACKS, Variant, dead_zone

RATE_DELAY = """
packet_size = "500 B"
[[link]]
capacity = "1080 pkt/s"
buffer = "%d pkt"
queue = { discipline = "rd" }
[[flow]]
law = "vegas"
rtt = "80 ms"
alpha = 2
beta = 2
count = 2
variant = "%s"
[[flow]]
law = "newreno"
rtt = "80 ms"
"""


def test_a_queue_holds_whole_packets_and_ns2_counts_the_one_in_transmission() -> None:
    """ns-2's drop-tail limit counts the packet in transmission; RED's does not (docs/ns2.md)."""
    assert vm.DropTail().limits(2.7) == vm.Red(1.0, 2.0).limits(2.7) == (2.0,)
    limits = [0.0, 1.0, 20.0]
    for queue, variant, room in (
        (vm.DropTail(), "ns2", [0.0, 0.0, 19.0]),
        (vm.DropTail(), "paper", limits),
        (vm.Red(1.0, 2.0), "ns2", limits),
    ):
        assert queue.waiting(limits, STACKS[variant]).tolist() == room


def test_the_thresholds_of_red_differ() -> None:
    with pytest.raises(
        vm.FieldError,
        match=r"^max_threshold: '5 pkt' is not allowed; more than min_threshold, 5 pkt$",
    ):
        vm.Red(5.0, 5.0)


@pytest.mark.parametrize(("buffer", "rate", "delay"), [(27, 24, 3), (125, 113, 12), (312, 281, 31)])
def test_every_source_splits_a_rate_delay_buffer_alike(buffer: int, rate: int, delay: int) -> None:
    """Class D gets a tenth of the buffer, rounded to whole packets (ties to even), R the rest."""
    s = vm.Scenario.from_toml(RATE_DELAY % (buffer, "linux"))
    assert tuple(map(float, closed_form.split_buffer(buffer, 0.1))) == (rate, delay)
    way = routes(s, list(s.members), 0.01)
    held = {key[2]: float(link["buffer"]) for key, link in zip(way.keys, way.links, strict=True)}
    assert held == {"rate": rate, "delay": delay}
    ns2 = vm.Scenario.from_toml(RATE_DELAY % (buffer, "ns2"))
    classes = [
        line
        for line in ns2_script.script(ns2, interval=1.0).text.splitlines()
        if line.startswith("classes ")
    ]
    assert classes
    assert all(line.split()[-2:] == [str(rate), str(delay)] for line in classes)
    links = [
        line
        for line in ns3_script.script(ns2, interval=1.0).splitlines()
        if line.startswith("link ")
    ]
    assert f" {rate} {delay}" in links[0]


def test_the_closed_form_says_how_many_packets_the_delay_queue_holds() -> None:
    s = vm.Scenario.from_toml(RATE_DELAY % (27, "paper"))
    (row,) = [a for a in rate_delay.answer(s).assumptions if a.name == "delay-buffer-large-enough"]
    assert row.holds is False
    assert "room for 3 pkt, its flows keep 4 there" in row.detail


def test_an_infinite_buffer_stays_infinite_and_no_part_is_nothing() -> None:
    assert tuple(map(float, split(math.inf, 0.1))) == (math.inf, math.inf)
    assert tuple(map(float, split(math.inf, 0.0))) == (math.inf, 0.0)
    R, D = split(np.arange(2.0, 50.0), 0.3)
    np.testing.assert_array_equal(R + D, np.arange(2.0, 50.0))


class Unknown(queues.Discipline):
    """A discipline that the scenario accepts, and no simulator implements."""

    discipline = "unknown"


def test_no_simulator_takes_an_unknown_queue_for_drop_tail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queues, "Queue", queues.Queue | Unknown)
    s = vm.Scenario([vm.Link(1000.0, queue=Unknown())], [vm.Flow("vegas", 0.1)])
    for model, said in (
        ("fluid", "does not simulate a queue other than drop-tail or RED"),
        ("rounds", "does not know the queue discipline unknown"),
    ):
        found = vm.predict(s, model)
        assert not found.applicable
        assert found.reason.endswith(said)
    for support, engine in ((ns2_support, "ns-2"), (ns3_support, "ns-3")):
        with pytest.raises(vm.FieldError, match=f"queue: 'unknown' .* in {engine}"):
            support.check(s)


def test_the_dead_zone_is_where_the_implementations_rest() -> None:
    """Counted: ns-2 rounds Diff to the nearest integer, Linux rounds it down."""
    backlog = np.linspace(0.0, 8.0, 8001)
    seen = {"paper": backlog, "ns2": np.floor(backlog + 0.5), "linux": np.floor(backlog)}
    for variant, diff in seen.items():
        rests = backlog[(diff >= 2.0) & (diff <= 4.0)]
        lower, upper = dead_zone(2.0, 4.0, variant)
        assert rests[0] == pytest.approx(float(lower), abs=2e-3)
        assert rests[-1] == pytest.approx(float(upper), abs=2e-3)
        flow = vm.Flow("vegas", 0.1, alpha=2.0, beta=4.0, variant=variant)
        assert continuous.thresholds(flow) == (float(lower), float(upper))


def test_only_ns2_counts_the_packet_in_transmission() -> None:
    waiting = vm.DropTail().waiting
    assert {name: float(waiting(27.0, stack)) for name, stack in STACKS.items()} == ROOM
    text = RATE_DELAY.replace('queue = { discipline = "rd" }\n', "")
    for variant, room in (("ns2", 19.0), ("linux", 20.0)):
        s = vm.Scenario.from_toml(text % (20, variant))
        assert float(routes(s, list(s.members), 0.01).links[0]["buffer"]) == room
        assert float(minicycle_inputs.room(s, 20.0)) == room


@pytest.mark.parametrize(
    ("buffer", "queue", "room"),
    [(20.0, vm.DropTail(), 19.0), (20.5, vm.DropTail(), 19.0), (20.5, vm.Red(5.0, 15.0), 20.0)],
)
def test_fluid_and_rounds_count_the_same_room(buffer: float, queue: object, room: float) -> None:
    """In ns-2: whole packets, and at a drop-tail queue one of them is in transmission."""
    flows = (vm.Flow("vegas", 0.08, variant="ns2"), vm.Flow("newreno", 0.08, variant="ns2"))
    link = vm.Link(1000.0, buffer=buffer, queue=queue)
    s = vm.Scenario((link,), flows, run=vm.Run(duration=20.0, warmup=5.0))
    assert float(routes(s, list(s.members), 0.01).links[0]["buffer"]) == room
    assert one_run.march_arguments(s, senders.senders(s))[0].room == room


@pytest.mark.parametrize("queue", [vm.DropTail(), vm.Red(5.0, 15.0)])
@pytest.mark.parametrize("others", ["paper", "ns2", "linux"])
@pytest.mark.parametrize("vegas", ["paper", "ns2", "linux"])
def test_minicycle_counts_the_room_that_the_link_has(
    vegas: Variant, others: Variant, queue: object
) -> None:
    """The link decides, not the variant of Vegas; RED counts no packet in transmission."""
    flows = (vm.Flow("vegas", 0.08, variant=vegas), vm.Flow("newreno", 0.08, variant=others))
    s = vm.Scenario((vm.Link(1000.0, buffer=20.0, queue=queue),), flows)
    room = float(routes(s, list(s.members), 0.01).links[0]["buffer"])
    assert float(minicycle_inputs.room(s, 20.0)) == room
    assert room == 20.0 - (queue == vm.DropTail() and "ns2" in (vegas, others))


def test_tahoe_begins_anew_in_every_stack() -> None:
    """It does so even in Linux, where every other law recovers with SACK."""
    for stack in STACKS.values():
        assert stack.recovery_of("slow start") == "slow start"
    assert STACKS["linux"].recovery_of("hole by hole") == "scoreboard"


EVERY_SOURCE = """
packet_size = "500 B"
[[link]]
capacity = "1080 pkt/s"
buffer = "27 pkt"
[[flow]]
law = "vegas"
rtt = "80 ms"
alpha = 2
beta = 4
variant = "%s"
[[flow]]
law = "newreno"
rtt = "80 ms"
variant = "%s"
"""
# by hand: the papers' Diff is a real number, ns-2 rounds it, and Linux drops its fraction; only
# ns-2's limit counts the packet in transmission
DEAD_ZONE = {"paper": (2.0, 4.0), "ns2": (1.5, 4.5), "linux": (2.0, 5.0)}
ROOM = {"paper": 27.0, "ns2": 26.0, "linux": 27.0}


def rests_in_rounds(s: vm.Scenario, backlog: float) -> bool:
    """Whether the rule that ``rounds`` compiles keeps a window of 20 packets."""
    group = s.flows[0]
    record = np.zeros(1, FLOW)
    mechanisms(find(group.law), STACKS[group.variant], record)
    flow = SimpleNamespace(**{name: record[0][name].tolist() for name in FLOW.names})
    flow.alpha, flow.beta, flow.gamma, flow.known_base = group.alpha, group.beta, 1.0, math.nan
    flow.cwnd, flow.ssthresh, flow.growth, flow.base, flow.rtt_count = 20.0, 2.0, 0.0, 0.1, 9.0
    if flow.backlog_over_base:  # W (RTT - base)/base
        flow.rtt_min = 0.1 * (1.0 + backlog / 20.0)
        rtt = flow.rtt_min
    else:  # W (RTT - base)/RTT
        rtt = 2.0 / (20.0 - backlog)
    assert find(group.law).packets is not None
    find(group.law).packets.upon_round(flow, Round(rtt, 20.0, 20.0, True, False))
    return flow.cwnd == 20.0 and flow.growth == 0.0


@pytest.mark.parametrize("variant", STACKS)
def test_every_source_has_one_dead_zone(variant: str) -> None:
    s = vm.Scenario.from_toml(EVERY_SOURCE % (variant, variant))
    group, (low, high) = s.flows[0], DEAD_ZONE[variant]
    band = bands.equilibria([2.0], [4.0], [0.0], 1080.0, rtt=[0.08], variant=variant)
    assert (band.lower[0], band.upper[0]) == (low, high)  # closed form
    assert continuous.thresholds(group) == (low, high)  # fluid, and its batches
    shared = senders._group(s, group)
    assert (shared["lower"], shared["upper"]) == pytest.approx((low, high), abs=1e-12)
    inside, outside = (low + 0.01, high - 0.01), (low - 0.01, high + 0.01)
    assert [rests_in_rounds(s, b) for b in (*inside, *outside)] == [True, True, False, False]
    if variant != "linux":  # packet engines round for themselves: they are given alpha, beta
        lines = ns2_script.script(s, interval=1.0).text.splitlines()
        flow = next(x for x in lines if x.startswith("connection 0"))
        assert "v_alpha_ 2 v_beta_ 4" in flow
    if variant == "ns2":
        lines = ns3_script.script(s, interval=1.0).splitlines()
        assert next(x for x in lines if x.startswith("flow ")).split()[-4:-1] == ["2", "4", "1"]


@pytest.mark.parametrize("variant", STACKS)
def test_every_source_has_one_limit_of_the_buffer(variant: str) -> None:
    s = vm.Scenario.from_toml(EVERY_SOURCE % (variant, variant))
    room = ROOM[variant]
    assert float(minicycle_inputs.room(s, 27.0)) == room  # closed form
    assert float(routes(s, list(s.members), 0.01).links[0]["buffer"]) == room  # rounds
    if variant == "paper":  # fluid: the windows hold a packet more, that in transmission
        assert one_run._bottleneck(s, smooth=True).room == room + 1.0
    else:
        assert one_run._bottleneck(s, smooth=False).room == room
    if variant == "ns2":  # the packet engine counts for itself: it is given the buffer
        lines = ns2_script.script(s, interval=1.0).text.splitlines()
        assert any(x.startswith("shape 0 forward") and "limit_ 27" in x for x in lines)


def test_few_files_of_rounds_know_of_buffers() -> None:
    """``route.py`` asks how many packets can wait; ``queue.py`` compares the queue with this.

    ``ack_queues.py`` asks only whether a link and its buffer hold few packets.
    """

    def readers(name: str) -> set[str]:
        folder = Path(routes.__code__.co_filename).parent
        return {
            path.name
            for path in folder.glob("*.py")
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Attribute) and node.attr == name
        }

    assert readers("room") == {"route.py"}
    assert readers("buffer") == {"ack_queues.py", "queue.py"}


def test_annotations_name_every_stack() -> None:
    assert get_args(Variant) == tuple(STACKS)


def test_an_unknown_stack_is_named() -> None:
    with pytest.raises(
        ValueError, match=r"^variant: 'bsd' is not allowed; one of paper, ns2, linux"
    ):
        dead_zone(1.0, 3.0, "bsd")


@pytest.mark.parametrize(("rtt", "ticks"), [(0.03, 3.0), (0.1, 3.0), (0.25, 5.5), (0.42, 7.2)])
def test_the_timeout_at_a_steady_rtt_is_that_of_bsds_integers(rtt: float, ticks: float) -> None:
    """srtt in eighths and rttvar in quarters of a tick of 0.1 s; packets leave at random times.

    An RTT of at most a tick is always one tick, and the timeout exactly three.
    """
    rng, srtt, rttvar, found = np.random.default_rng(2), 0, 0, []
    for phase in rng.random(20_000):
        sample = max(math.floor(rtt / 0.1 + phase), 1)
        if srtt == 0:
            srtt, rttvar = 8 * sample, 2 * sample
        error = sample - (srtt >> 3)
        srtt, rttvar = max(srtt + error, 1), max(rttvar + abs(error) - (rttvar >> 2), 1)
        found.append(((rttvar << 3) + srtt) >> 3)
    assert np.mean(found[100:]) == pytest.approx(ticks, abs=0.0 if ticks == 3.0 else 0.7)
    assert STACKS["ns2"].steady_timeout(rtt) == pytest.approx(0.1 * ticks)
