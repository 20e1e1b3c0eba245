"""The end of NewReno's recovery at RED in ``fluid``, and Vegas's baseRTT after it.

By hand against ns-2's tcp-newreno.cc and tcp-vegas.cc, and against runs of ns-2.
"""

import math

import numpy as np
import pytest

from tests.fluid.red_link import arrive, bottleneck, link_state
from vegasmodel.engines.fluid.run import run
from vegasmodel.engines.fluid.sampled import growth, holes, short_round
from vegasmodel.engines.fluid.sampled.records import FLOW, NEVER, Sender
from vegasmodel.engines.fluid.senders import senders
from vegasmodel.engines.tables import Table, jit
from vegasmodel.metrics import Floats
from vegasmodel.scenario import DropTail, Flow, Link, Red, Run, Scenario


@jit
def new_packets(flows: Table[Sender], gaps: Floats, found: Floats) -> None:
    """Fill holes at these distances; ``found`` gets the new packets in flight after each."""
    for k in range(gaps.size):
        holes.next_hole(flows[0], gaps[k])
        found[k] = flows[0].new_in_flight


@pytest.mark.parametrize(
    ("gaps", "packets"),
    [
        ([90.0] * 4, [2.0, 6.0, 14.0, 30.0]),  # two at the ACK, and two at each duplicate ACK
        ([1.0] * 7, [1.0, 2.0, 2.0, 1.0, 0.0, 0.0, 1.0]),  # as in ns-2, a period of six
        ([90.0, 90.0, 1.0, 1.0], [2.0, 6.0, 14.0, 30.0]),  # the room of before is still there
        ([4.0, 1.0], [2.0, 5.0]),  # room for 3 at the ACK; the second duplicate ACK sends one
    ],
)
def test_new_packets_in_a_recovery_double_while_the_window_has_room(
    gaps: list[float], packets: list[float]
) -> None:
    """Counted by hand by the rules of ns-2 1999 (tcp-newreno.cc; no partial deflation)."""
    found = np.zeros(len(gaps))
    new_packets(np.zeros(1, FLOW), np.array(gaps), found)
    assert found.tolist() == packets


@jit
def drop_two(flows: Table[Sender], first: float, second: float) -> None:
    """Record drops ``first`` and then ``second`` seconds before the end of a step of 1 s."""
    holes.count_hole(flows[0], 1.0, first)
    flows[0].detection_in = 1.0
    holes.count_hole(flows[0], 1.0, second)


@pytest.mark.parametrize("agos", [(0.8, 0.5), (0.5, 0.8)])
def test_the_order_in_which_two_drops_of_a_step_are_recorded_does_not_matter(
    agos: tuple[float, float],
) -> None:
    """Of 100 packets the 20th and the 50th are lost, so the next hole comes after 30 packets.

    At the ACK of the filled hole NewReno sends two new packets. At the end of the step it has sent
    50 packets since the last drop.
    """
    flows = np.zeros(1, FLOW)
    flows["arrives"] = 100.0
    drop_two(flows, *agos)
    assert flows["new_in_flight"][0] == pytest.approx(2.0)
    assert flows["new_beyond"][0] == pytest.approx(-28.0)
    assert flows["sent_since"][0] + flows["arrives"][0] == pytest.approx(50.0)


@jit
def flight(flows: Table[Sender]) -> float:
    """Packets in flight in the recovery of the first flow."""
    return growth.recovering(flows[0])


def test_new_packets_in_flight_grow_up_to_the_end_of_a_recovery() -> None:
    """Backwards from 30: 14, 6, 2, none. The packet that is sent again comes on top."""
    flows, found = np.zeros(1, FLOW), []
    flows["holes"], flows["cwnd"], flows["new_at_end"] = 200.0, 100.0, 30.0
    for left in (0.5, 1.5, 2.5, 3.5, 4.5, 100.5):
        flows["recovery_left"] = left
        found.append(flight(flows))
    assert found == [31.0, 15.0, 7.0, 3.0, 1.0, 1.0]


@jit
def acks_after(flows: Table[Sender], packets: int, doubles: int) -> float:
    """The ACKs of the short round trip after a run of ``packets`` losses, window 160."""
    flows[0].run, flows[0].doubles = packets, doubles
    return short_round.acks_of_train(flows[0], 160.0)


@pytest.mark.parametrize(
    ("packets", "doubles", "acks"),
    # trains of 2, 2, 4, 4, 8: the 20th packet is the last of its train, the 9th the first
    [(20, 1, 7.0), (2, 1, 1.0), (9, 1, 0.0), (1, 1, 0.0), (6, 0, 3.0), (7, 0, 0.0)],
)
def test_short_round_ends_with_the_last_packet_of_a_run(
    packets: int, doubles: int, acks: float
) -> None:
    """A run of ns-2 (baseRTT 7 ACKs = 8.5 ms at 819 pkt/s) and runs counted by hand."""
    assert acks_after(np.zeros(1, FLOW), packets, doubles) == acks


@jit
def note_block(flows: Table[Sender], block: int, fates: Floats) -> None:
    """Let a block of these packets arrive at RED: 1 is a packet that RED drops."""
    flow = flows[0]
    flow.block, flow.passed, flow.clean = block, 0.0, -1.0
    for fate in fates:
        short_round.count_block_packet(flow, fate == 1.0)
        flow.undetected += fate


@pytest.mark.parametrize(
    ("blocks", "before", "beyond", "run", "acks"),
    [
        # the round trip ends with the first packet of block 2: block 1 loses two before it
        (["0101", "11110"], 2.0, 4.0, 0.0, 1.0),  # trains of 2 and 2: the 4th ends the second
        (["01", "0110"], 1.0, 2.0, 0.0, 1.0),  # a train of 2
        (["01", "0111"], 1.0, 3.0, 3.0, 0.0),  # no packet behind the run has passed yet
        (["01", "010"], 1.0, 1.0, 0.0, 0.0),  # the first of its train: no ACK of it comes before
        (["1110"], 0.0, 3.0, 0.0, 0.0),  # the round trip ends with the first lost packet itself
        (["11110"], 0.0, 4.0, 0.0, 1.0),
        (["01", "01101110"], 1.0, 5.0, 0.0, 1.0),  # the first run decides
        (["01", "010110"], 1.0, 3.0, 0.0, 1.0),  # or the next, if the first gives no short round
    ],
)
def test_vegas_s_losses_are_counted_before_and_beyond_the_end_of_its_round_trip(
    blocks: list[str], before: float, beyond: float, run: float, acks: float
) -> None:
    """Counted by hand by the rules of ns-2 (tcp-vegas.cc: ``v_begseq_``), with a window of 20."""
    flows = np.zeros(1, FLOW)
    flows["in_flight"], flows["doubles"], flows["first_block"] = 20.0, 1, NEVER
    for number, fates in enumerate(blocks, start=1):
        note_block(flows, number, np.array([float(fate) for fate in fates]))
    flow = flows[0]
    assert (flow["lost_before"], flow["lost_beyond"]) == (before, beyond)
    assert (flow["run"], flow["short_round"]) == (run, acks)
    last = blocks[-1]
    first = last.index("1") if "1" in last else -1.0
    assert (flow["clean"], flow["passed"]) == (first, last.count("0"))


def test_losses_of_an_earlier_recovery_do_not_count() -> None:
    """The sender has detected them, so the next loss is a first one again."""
    flows = np.zeros(1, FLOW)
    flows["in_flight"], flows["doubles"], flows["first_block"] = 20.0, 1, NEVER
    note_block(flows, 1, np.array([0.0, 1.0]))
    note_block(flows, 2, np.array([1.0, 1.0, 0.0]))
    flows["undetected"] = 0.0
    note_block(flows, 7, np.array([0.0, 1.0, 1.0]))
    assert (flows["lost_before"][0], flows["lost_beyond"][0]) == (2.0, 0.0)
    assert flows["short_round"][0] == 0.0


@jit
def base_after(flows: Table[Sender], c: float, W: float, arrived: float, *, fast: bool) -> float:
    """Vegas's baseRTT after a timeout, in seconds."""
    flow = flows[0]
    short_round.lose_base(flow, c, W, arrived, fast)
    return flow.rtt - flow.wait + flow.over_estimate


@pytest.mark.parametrize(
    ("fields", "arrived", "fast", "acks"),  # acks: those whose time becomes baseRTT; 0: it stays
    [
        ({"short_round": 7.0}, 10.0, False, 7.0),  # Vegas repairs nothing before its timeout
        ({"short_round": 0.0, "run": 8.0}, 15.0, False, 0.0),  # nothing behind the run has arrived
        # Vegas repairs two losses. The third ends the round trip; else the packet behind two of
        # them does, and its ACK comes before the timeout.
        ({"short_round": 7.0, "lost_before": 2.0, "from_begin": True}, 10.0, True, 7.0),
        ({"short_round": 7.0, "lost_before": 1.0, "from_begin": True}, 10.0, True, 0.0),
        ({"short_round": 7.0, "lost_before": 2.0, "from_begin": False}, 10.0, True, 0.0),
        ({"short_round": 7.0, "lost_before": 3.0, "from_begin": False}, 10.0, True, 7.0),
        # a cut by 5 of 20 packets: the sixth duplicate ACK is the first to release a packet
        ({"run": 4.0, "doubles": 1, "lost_before": 3.0}, 6.0, True, 1.0),
        ({"run": 4.0, "doubles": 1, "lost_before": 3.0}, 5.0, True, 0.0),
    ],
)
def test_a_short_round_becomes_the_base_rtt_after_a_timeout(
    fields: dict[str, float], arrived: float, acks: float, *, fast: bool
) -> None:
    """By hand by the rules of tcp-vegas.cc; ACKs come at the link's rate of 1000 packets/s."""
    flows = np.zeros(1, FLOW)
    flows["rtt"], flows["wait"], flows["over_estimate"], flows["decrease"] = 0.1, 0.01, 0.02, 0.75
    for name, value in fields.items():
        flows[name] = value
    base = base_after(flows, 1000.0, 20.0, arrived, fast=fast)
    assert base == pytest.approx(acks / 1000.0 if acks else 0.09 + 0.02, rel=1e-12)


@pytest.mark.parametrize(
    ("capacity", "low", "alpha", "rtt", "least", "most"),
    # in ns-2 Vegas's baseRTT is far too small in 18 of 20 runs, and in none of 20
    [(586.0, 13.0, 5.0, 0.1389, 0.6, 1.0), (408.0, 9.0, 3.0, 0.146, 0.0, 0.25)],
)
def test_vegas_loses_its_base_rtt_as_often_as_in_ns2(
    capacity: float, low: float, alpha: float, rtt: float, least: float, most: float
) -> None:
    """One Vegas and one NewReno source under RED: ``red/11`` and ``red/13`` of the benchmark."""
    link = Link(capacity, buffer=100.0, queue=Red(low, 3.0 * low))
    vegas = Flow("vegas", rtt, alpha=alpha, beta=alpha, variant="ns2", send_jitter=0.0)
    flows = (vegas, Flow("newreno", rtt, variant="ns2", send_jitter=0.0))
    timing = Run(duration=90.0, warmup=70.0, runs=20, start_jitter=0.5)
    rates = run(Scenario((link,), flows, run=timing), math.inf).throughput_runs[:, 0]
    lost = np.mean(rates < (alpha + 2.0) / rtt)
    assert least <= lost <= most


@pytest.mark.parametrize(
    ("changes", "may"),
    [
        ({}, [True, False]),
        ({"flow.vegas.variant": "linux"}, [False, False]),
        ({"flow.vegas.variant": "paper"}, [False, False]),
        ({"flow.vegas.over_estimate": 0.0}, [False, False]),  # knows its baseRTT
        ({"flow.newreno.rtt": 0.2}, [False, False]),
        ({"flow.newreno.count": 2}, [False, False, False]),
        ({"link.queue": DropTail()}, [False, False]),
    ],
)
def test_only_ns2s_vegas_beside_one_flow_of_its_rtt_at_red_may_lose_its_base_rtt(
    changes: dict[str, object], may: list[bool]
) -> None:
    flows = tuple(Flow(law, 0.1, name=law, variant="ns2") for law in ("vegas", "newreno"))
    s = Scenario((Link(1000.0, buffer=100.0, queue=Red(10.0, 30.0)),), flows)
    assert senders(s.replace(changes))["loses_base"].tolist() == may


def test_packets_that_a_timer_sends_are_the_next_block() -> None:
    """The timer of a flow expires in this step. While it waited, its blocks had no packets."""
    flows, state = np.zeros(2, FLOW), link_state(step=0.1, time=5.0, ordered_until=5.2)
    flows["active"], flows["rtt"], flows["in_flight"] = True, 0.1, 2.0
    flows["block_began"], flows["block_next"] = 4.9, 5.05
    flows[0]["timeout_ends"], flows[1]["timeout_ends"] = 4.945, 5.5  # the other's comes later
    arrive(flows, state, bottleneck())
    assert flows["sent_since"].tolist() == [2.0, 0.0]
    assert flows[0]["block_next"] == pytest.approx(4.945 + 0.1)
    assert state["ordered_until"][0] == 5.2
