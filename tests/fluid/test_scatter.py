"""What ``fluid`` says where starts and losses decide, beside what ns-2 measured there."""

import dataclasses

import numpy as np
import pytest

from vegasmodel.engines.fluid.one_run import begin, march_arguments
from vegasmodel.engines.fluid.sampled import drops, random_drops
from vegasmodel.engines.fluid.sampled.records import Bottleneck
from vegasmodel.engines.fluid.sampled.recovery import on_loss
from vegasmodel.engines.fluid.sampled.round_trip import on_acks, sample_delay
from vegasmodel.engines.fluid.senders import senders
from vegasmodel.engines.tables import Table, jit
from vegasmodel.predictor import predict
from vegasmodel.results import scatter
from vegasmodel.results.prediction import Prediction
from vegasmodel.scenario import Flow, Link, Red, Run, Scenario

RANDOM = Run(duration=300.0, warmup=100.0, start_jitter=0.5)


def _held(found: Prediction) -> dict[str, bool | None]:
    return {a.name: a.holds for a in found.assumptions}


def test_a_starving_flow_scatters_as_in_ns2() -> None:
    """Six Vegas keep the buffer full.  In 20 runs of ns-2 the SACK flow got 0.6 +- 0.8 pkt/s."""
    flows = (
        Flow("vegas", 0.0451, count=6, alpha=3, beta=3, variant="ns2", send_jitter=0),
        Flow("sack", 0.0451, variant="ns2", send_jitter=0),
    )
    run = Run(duration=300.0, warmup=100.0, start_jitter=0.5, runs=20)
    found = predict(Scenario((Link(252.0, buffer=20.0),), flows, run=run), "fluid")
    assert 0.0 < found.throughput[-1] < 0.6 + 2.0 * 0.8
    assert found.throughput_se[-1] > 0.1 * found.throughput[-1]
    assert _held(found)["insensitive-to-starts"] is False
    (said,) = (a.detail for a in found.assumptions if a.name == "insensitive-to-starts")
    assert "`vegasmodel basins` counts the outcomes" in said


def test_a_pair_whose_runs_agree_in_ns2_is_insensitive_to_starts() -> None:
    """ns-2's five runs of this pair have a coefficient of variation of 0.0003."""
    flows = (
        Flow("vegas", 0.1382, alpha=5, beta=5, variant="ns2", send_jitter=0),
        Flow("sack", 0.1382, variant="ns2", send_jitter=0),
    )
    found = predict(Scenario((Link(2277.0, buffer=59.0),), flows, run=RANDOM), "fluid")
    held = _held(found)
    assert held["insensitive-to-starts"]
    assert held["enough-runs"]
    assert held["windows-fill-the-link"]
    assert held["base-rtt-above-propagation"]
    assert found.extra["runs"] == 3


def test_the_standard_error_of_two_runs_is_half_of_what_they_differ_by() -> None:
    """A single run has none."""
    link, flow = Link(1000.0, buffer=20.0, loss=0.01), Flow("sack", 0.05, variant="ns2")

    def answer(runs: int) -> Prediction:
        return predict(Scenario((link,), (flow,), run=Run(20.0, 5.0, runs=runs)), "fluid")

    one, two = answer(1), answer(2)
    assert len(one.extra["throughput_runs"]) == 1
    assert one.throughput_se is None
    [[first], [second]] = two.extra["throughput_runs"]
    assert first != second
    assert two.throughput_se == pytest.approx([abs(first - second) / 2.0])


def test_runs_follow_where_only_the_losers_are_drawn() -> None:
    """Nothing in the scenario is random, but which of two flows loses is drawn."""
    flows = tuple(
        Flow("sack", rtt, name=f"rtt {rtt}", variant="ns2", send_jitter=0) for rtt in (0.043, 0.099)
    )
    scenario = Scenario((Link(1065.0, buffer=45.0),), flows, run=Run(duration=100.0, warmup=50.0))
    found = predict(scenario, "fluid")
    assert found.extra["runs"] >= 3
    assert found.throughput_se.min() > 0.0
    assert predict(scenario.replace({"run.runs": 2}), "fluid").extra["runs"] == 2
    said = "all runs start at the same times"
    for case, told in ((scenario, True), (scenario.replace({"run.start_jitter": "1 s"}), False)):
        notes = {a.name: a.detail for a in predict(case, "fluid").assumptions}
        assert (said in notes["insensitive-to-starts"]) == told


@pytest.mark.parametrize("variant", ["paper", "ns2"])
def test_different_rtts_at_a_drop_tail_queue_are_said_to_bring_bunches(variant: str) -> None:
    """ns-2's long flow gets 12.8 +- 0.1 pkt/s; the equations give it two to five times as much."""
    flows = tuple(Flow("sack", rtt, name=f"rtt {rtt}", variant=variant) for rtt in (0.02, 0.2))
    scenario = Scenario((Link(1250.0, buffer=30.0),), flows, run=Run(duration=100.0, warmup=50.0))
    (said,) = (
        a for a in predict(scenario, "fluid").assumptions if a.name == "packets-spread-evenly"
    )
    assert said.holds is False
    assert "the longest RTT exceeds the shortest, 20 ms, by 180 ms" in said.detail
    for change in (
        {"flow.rtt": 0.1},  # all RTTs are equal
        {
            "link.queue": Red(5.0, 15.0),
            "link.buffer": 100.0,
        },  # losses do not wait for a full buffer
        {"link.buffer": 1e6},  # nothing is lost
    ):
        assert _held(predict(scenario.replace(change), "fluid"))["packets-spread-evenly"]


def test_vegas_flows_alone_that_overflow_the_buffer_send_in_bunches_too() -> None:
    """The thresholds add up to 15 packets, and 13 have room. ``fluid`` lets one flow lose packets.

    Its RTT is twice that of the others. ns-2 gives it 14.7 +- 4.5 pkt/s, and ``rounds`` 17.
    """
    given = ((0.06, 4, 4, 0.0), (0.06, 3, 3, 0.0), (0.06, 4, 7, 0.0), (0.12, 4, 5, 2.0))
    flows = tuple(
        Flow("vegas", rtt, name=f"f{i}", alpha=alpha, beta=beta, start=start)
        for i, (rtt, alpha, beta, start) in enumerate(given)
    )
    scenario = Scenario((Link(500.0, buffer=13.0),), flows, run=Run(duration=100.0, warmup=30.0))
    found = predict(scenario, "fluid")
    assert found.throughput[3] > 2.0 * 17.0  # far too much
    assert not _held(found)["packets-spread-evenly"]
    assert _held(predict(scenario.replace({"flow.rtt": 0.06}), "fluid"))["packets-spread-evenly"]


def test_trains_that_meet_overflow_a_small_buffer() -> None:
    """Three Reno flows get 491, 66 and 171 pkt/s in ns-2, 28 % of the link."""
    flows = tuple(
        Flow("reno", rtt, name=f"f{i}", variant="ns2", send_jitter=0.00022)
        for i, rtt in enumerate((0.0793, 0.2265, 0.1639))
    )
    found = predict(Scenario((Link(2623.0, buffer=18.0),), flows, run=RANDOM), "fluid")
    np.testing.assert_allclose(found.throughput, (491, 66, 171), rtol=0.25)
    assert _held(found)["windows-fill-the-link"] is False


def test_the_slow_start_of_one_tahoe_flow_meets_the_train_of_vegas_if_the_link_idles() -> None:
    """In ns-2 Vegas gets 1189 and Tahoe 885 pkt/s: Vegas loses packets in Tahoe's bursts.

    In ``fluid`` it loses none, and gets 13 to 16 % too much beside Tahoe. At a larger buffer the
    link hardly idles.
    """
    flows = tuple(
        Flow(law, 0.0561, alpha=5, beta=5, variant="ns2", send_jitter=0.000201)
        for law in ("vegas", "tahoe")
    )
    scenario = Scenario((Link(2498.0, buffer=16.0),), flows, run=RANDOM)
    found = predict(scenario, "fluid")
    assert found.throughput[0] / found.throughput[1] > 1.1 * 1189.0 / 885.0
    assert _held(found)["windows-fill-the-link"] is False
    assert _held(predict(scenario.replace({"link.buffer": 80.0}), "fluid"))["windows-fill-the-link"]


def test_vegas_reacts_late_to_a_buffer_of_few_packets_per_flow() -> None:
    """Each Vegas flow gets 158 and each NewReno flow 60 pkt/s in ns-2 (means over 20 runs).

    Six windows fill 16 places in less than 3 round trips. ``fluid`` then lets Vegas lose too often.
    They fill 24 places in 4 round trips; in ns-2 one packet fewer can wait than ``buffer`` says.
    """

    def scenario(first: str, second: str, buffer: float) -> Scenario:
        flows = tuple(
            Flow(
                law, 0.0455, name=name, count=3, alpha=3, beta=3, variant="ns2", send_jitter=403e-6
            )
            for name, law in (("first", first), ("second", second))
        )
        return Scenario((Link(655.0, buffer=buffer),), flows, run=RANDOM)

    found = predict(scenario("vegas", "newreno", 17.0), "fluid")
    ratio = found.throughput[:3].mean() / found.throughput[3:].mean()
    assert ratio < 0.85 * 158.0 / 60.0
    for first, second, buffer, holds in (
        ("vegas", "newreno", 17.0, False),
        ("vegas", "newreno", 24.0, False),
        ("vegas", "newreno", 25.0, True),
        ("vegas", "vegas", 17.0, True),
        ("newreno", "newreno", 17.0, True),
    ):
        held = _held(predict(scenario(first, second, buffer), "fluid"))
        assert held["vegas-acts-in-time"] is holds


def test_red_may_take_the_base_rtt_of_ns2s_vegas() -> None:
    """Vegas gets 11 pkt/s in 18 of 20 runs of ns-2 and 145 in the others (docs/ns2.md)."""
    flows = (
        Flow("vegas", 0.1739, alpha=2, beta=2, variant="ns2", send_jitter=0),
        Flow("newreno", 0.1739, variant="ns2", send_jitter=0),
    )
    link = Link(666.0, buffer=100.0, queue=Red(17.0, 51.0))
    assert not _held(predict(Scenario((link,), flows, run=RANDOM), "fluid"))[
        "base-rtt-above-propagation"
    ]


@pytest.mark.parametrize("delayed_ack", [False, True])
def test_vegas_keeps_its_base_rtt_where_no_two_successive_packets_are_lost(
    delayed_ack: bool,
) -> None:
    """ns-2's Vegas loses its baseRTT if a queue drops successive packets before a timeout.

    A drop-tail queue does not if ACKs come one a departure and all RTTs are equal. ``rounds``
    copies the rule of ns-2's code by which Vegas measures a too small baseRTT, and finds none.
    """

    def said(rtt: float, model: str) -> bool | None:
        flows = (
            Flow("vegas", 0.0451, count=6, alpha=3, beta=3, variant="ns2", send_jitter=0),
            Flow("sack", rtt, variant="ns2", send_jitter=0),
        )
        flows = tuple(dataclasses.replace(f, delayed_ack=delayed_ack) for f in flows)
        case = Scenario((Link(252.0, buffer=20.0),), flows, run=RANDOM)
        return _held(predict(case, model)).get("base-rtt-above-propagation", True)

    assert said(0.0451, "fluid") is not delayed_ack
    assert said(0.06, "fluid") is False  # Vegas has timeouts
    if not delayed_ack:
        assert said(0.0451, "rounds")


@jit
def _lose(flows: Table, state: Table) -> None:
    on_loss(flows[0], state[0], 0.0, 1000.0, False)


@pytest.mark.parametrize(("in_flight", "ago"), [(2.0, 0.05), (1.0, 0.1)])
@pytest.mark.parametrize(("timer", "backoff"), [(1.0, 1.0), (8.0, 8.0), (8.0, 1.0)])
def test_a_timeout_lasts_as_long_as_the_last_ack_has_set_the_timer(
    in_flight: float, ago: float, timer: float, backoff: float
) -> None:
    """In ns-2 an ACK first restarts the timer, and then may end the backoff (tcp.cc: ``newack``).

    Without backoff the timeout is 3 ticks of 0.1 s, because the RTT is one tick. The last ACK came
    ``ago`` seconds before. That is a round trip if the only packet in flight is lost, and half of
    one if the first of two packets has arrived.
    """
    flow = Flow("sack", 0.1, variant="ns2", send_jitter=0)
    scenario = Scenario((Link(100.0, buffer=20.0),), (flow,))
    flows = senders(scenario)
    state = begin(scenario, flows, 0)
    sender = flows[0]
    sender["active"], sender["cwnd"], sender["in_flight"] = True, 2.0, in_flight
    sender["undetected"], sender["ssthresh"] = 1.0, 2.0
    sender["timer"], sender["backoff"] = timer, backoff
    sender["heard"] = True  # before the first ACK the timeout would be ns-2's first one
    _lose(flows, state)
    assert flows[0]["timeout_ends"] == pytest.approx(timer * 3 * 0.1 - ago)
    assert flows[0]["backoff"] == flows[0]["timer"] == 2.0 * backoff


@jit
def _hear_acks(flows: Table, state: Table) -> None:
    on_acks(flows[0], state[0], 0.1, 100.0, False)


def test_losses_do_not_prolong_the_wait_for_the_timer() -> None:
    """After the timeout all packets are sent again, so losses in the wait change nothing."""
    flow = Flow("newreno", 0.1, variant="ns2", send_jitter=0)
    scenario = Scenario((Link(100.0, buffer=20.0),), (flow,))
    flows = senders(scenario)
    state = begin(scenario, flows, 0)
    flows["active"], flows["cwnd"], flows["in_flight"], flows["undetected"] = True, 1.0, 2.0, 2.0
    flows["detection_in"], flows["timeout_ends"], flows["backoff"] = 0.05, 0.4, 2.0
    _hear_acks(flows, state)
    assert flows[0]["timeout_ends"] == 0.4
    assert flows[0]["backoff"] == 2.0
    assert flows[0]["undetected"] == flows[0]["in_flight"] == flows[0]["detection_in"] == 0.0


@pytest.mark.parametrize(("lost", "waits"), [(3.0, False), (4.0, True)])
def test_ns2s_vegas_repairs_three_losses_without_a_timeout(lost: float, waits: bool) -> None:
    """tcp-vegas.cc: after a fast retransmit, ``v_worried_`` lets two more packets be sent again."""
    flow = Flow("vegas", 0.1, variant="ns2", send_jitter=0)
    scenario = Scenario((Link(1000.0, buffer=20.0),), (flow,))
    flows = senders(scenario)
    state = begin(scenario, flows, 0)
    flows["active"], flows["cwnd"], flows["in_flight"] = True, 40.0, 40.0
    flows["undetected"], flows["timer"], flows["backoff"] = lost, 1.0, 1.0
    _lose(flows, state)
    assert (flows[0]["timeout_ends"] > 0.0) == waits


def test_a_flow_that_starves_in_fluid_is_named() -> None:
    """50 Vegas flows want the whole buffer; `rounds` gives a fifth of the link to the 50 Reno."""
    flows = (
        Flow("vegas", 0.05, count=50, alpha=3, beta=3, variant="ns2"),
        Flow("reno", 0.05, count=50, variant="ns2"),
    )
    case = Scenario((Link(2500.0, buffer=150.0),), flows, run=Run(duration=100.0, warmup=40.0))
    assert _held(predict(case, "fluid"))["nobody-starves"] is False
    case = case.replace({"link.buffer": 400})
    assert _held(predict(case, "fluid"))["nobody-starves"] is True


def test_flows_in_step_lose_one_packet_each() -> None:
    """ns-2 gives 597.1 pkt/s to each Vegas and 173.1 to Reno: all four lose at each overflow."""
    flows = (
        Flow("vegas", 0.0307, count=3, alpha=5, beta=5, variant="ns2", send_jitter=0),
        Flow("reno", 0.0307, variant="ns2", send_jitter=0),
    )
    run = Run(duration=100.0, warmup=40.0, start_jitter=0.5, runs=2)
    found = predict(Scenario((Link(1974.0, buffer=18.0),), flows, run=run), "fluid")
    np.testing.assert_allclose(found.throughput[:3], 597.1, rtol=0.03)


@jit
def _admit(flows: Table, state: Table, link: Bottleneck, often: int) -> tuple[int, int]:
    taken, lost = 0, 0
    for _ in range(often):
        flows[0].extra, flows[1].lost = 1.0, 0.0
        drops.admit_alone(flows, 0, state[0], link)
        taken += flows[0].extra == 0.0
        lost += flows[1].lost > 0.0
    return taken, lost


@pytest.mark.parametrize("free", [0.37, 1.2])
def test_a_packet_that_takes_the_last_place_makes_another_flow_lose(free: float) -> None:
    """The last place is free from a departure to the arrival that it clocks out."""
    flow = Flow("sack", 0.1, count=2, variant="ns2", send_jitter=0)
    scenario = Scenario((Link(100.0, buffer=20.0),), (flow,))
    flows = senders(scenario)
    state, link = begin(scenario, flows, 0), march_arguments(scenario, flows)[0]
    flows["active"], flows["in_flight"] = True, (1.0, 1e6)
    state["delay"] = (link.room - free) / link.capacity
    taken, lost = _admit(flows, state, link, 4000)
    assert taken / 4000 == pytest.approx(min(free, 1.0), abs=0.03)
    assert lost == (taken if free < 1.0 else 0)


@jit
def _lost(flows: Table, state: Table, link: Bottleneck, packets: int) -> float:
    for _ in range(2 * packets):
        random_drops.drop_at_random(flows, state[0], link, 0.5, 0.0)
    return flows[0].lost / packets


def _lossy(p: float) -> tuple[Table, Table, Bottleneck]:
    """A SACK sender, the state and the link, which loses packets with the probability ``p``."""
    scenario = Scenario((Link(100.0, loss=p),), (Flow("sack", 0.1, variant="ns2", send_jitter=0),))
    flows = senders(scenario)
    flows["active"], flows["in_flight"] = True, 1e9
    return flows, begin(scenario, flows, 0), march_arguments(scenario, flows)[0]


@jit
def _survivals(flows: Table, state: Table, link: Bottleneck, packets: int) -> int:
    survived = 0
    for _ in range(packets):
        flows[0].lost = 0.0
        for _ in range(4):
            random_drops.drop_at_random(flows, state[0], link, 0.25, 0.0)
        survived += flows[0].lost == 0.0
    return survived


@pytest.mark.parametrize("p", [0.1, 0.5, 1.0])
def test_a_lone_packet_survives_random_loss_with_the_probability_1_minus_p(p: float) -> None:
    """The packet arrives in parts, one in each step; 1 - p is not exp(-p)."""
    n = 40_000
    error = 4.0 * np.sqrt(p * (1.0 - p) / n)
    assert _survivals(*_lossy(p), n) / n == pytest.approx(1.0 - p, abs=error)


@jit
def _resend(flows: Table, state: Table, link: Bottleneck, often: int) -> int:
    lost = 0
    for _ in range(often):
        flows[0].detection_in, flows[0].undetected, flows[0].resend_lost = 0.5, 1.0, False
        random_drops.drop_at_random(flows, state[0], link, 0.0, 0.0)
        lost += flows[0].resend_lost
    return lost


def test_random_loss_hits_a_retransmission_too() -> None:
    """The sender then waits for its timer (``on_loss``)."""
    flows, state, link = _lossy(0.2)
    state["step"] = 0.1
    flows["cwnd"], flows["in_flight"] = 10.0, 10.0
    assert _resend(flows, state, link, 10_000) / 10_000 == pytest.approx(0.2, abs=0.016)


@pytest.mark.parametrize("p", [0.01, 0.1, 0.5])
def test_random_loss_takes_its_part_of_the_packets(p: float) -> None:
    n = 100_000
    assert _lost(*_lossy(p), n) == pytest.approx(p, abs=4.0 * np.sqrt(p / n))


@jit
def _mean_delay(flows: Table, state: Table, c: float) -> float:
    sample_delay(flows, state[0], 0.01, c)
    return flows[0].delay_sum / flows[0].round_sent


def test_additional_packets_delay_the_rest_of_a_train() -> None:
    """Each of five windows grows by a packet per round trip and fills half of the link."""
    flow, c = Flow("sack", 0.1, count=5, variant="ns2", send_jitter=0), 1000.0
    scenario = Scenario((Link(c, buffer=20.0),), (flow,))
    flows = senders(scenario)
    state = begin(scenario, flows, 0)
    flows["active"], flows["in_flight"], flows["growth"] = True, 10.0, 1.0 / 0.1
    rng, waits = np.random.default_rng(1), []
    for _ in range(2000):  # a train of 50 packets, one per departure, and five that go in between
        arrivals = np.sort(np.concatenate([np.arange(50.0), rng.uniform(0.0, 50.0, 5)]))
        ends = np.maximum.accumulate(arrivals - np.arange(55.0)) + np.arange(55.0)
        waits.append((ends - arrivals).mean())
    assert _mean_delay(flows, state, c) * c == pytest.approx(np.mean(waits), rel=0.1)


@pytest.mark.parametrize(("law", "least", "most"), [("vegas", 1.1, 1.8), ("sack", 0.75, 1.25)])
def test_frequent_random_losses_are_reported_by_the_equations(
    law: str, least: float, most: float
) -> None:
    """Each tenth packet is lost, so flows wait for their timers; Vegas too rarely in ``fluid``."""
    there = {"vegas": 24.5, "sack": 25.2}[law]  # in ns-2, pkt/s, means of 40 runs

    def found(model: str, loss: float) -> Prediction:
        link = Link(1000.0, buffer=60.0, loss=loss)
        return predict(Scenario((link,), (Flow(law, 0.05, variant="ns2"),), run=RANDOM), model)

    often = found("fluid", 0.1)
    assert least * there < often.throughput[0] < most * there
    assert _held(often)["fast-retransmit"] is False
    assert _held(found("fluid", 0.0003))["fast-retransmit"] is True
    assert _held(found("random-loss", 0.2))["windows-above-three"] is False
    assert _held(found("random-loss", 0.01))["windows-above-three"] is True


def test_waits_that_lengthen_the_round_trip_are_reported() -> None:
    """Two SACK flows, windows of 5 packets, waits of up to 50 ms: 47 pkt/s each in ns-2."""
    flow = Flow("sack", 0.0755, count=2, max_window=5.0, variant="ns2", send_jitter=0.05)
    case = Scenario((Link(1000.0, buffer=50.0),), (flow,), run=RANDOM)
    found = predict(case, "fluid")
    assert found.throughput[0] > 1.3 * 47.0
    assert _held(found)["short-waits"] is False
    assert _held(predict(case.replace({"flow.send_jitter": None}), "fluid"))["short-waits"]


def test_first_windows_that_the_buffer_cannot_hold_are_reported() -> None:
    """Three first windows of 10 packets at a pipe of 4.3 and a buffer of 4."""
    flow = Flow("tahoe", 0.43, count=3, variant="linux")
    case = Scenario((Link(10.0, buffer=4.0),), (flow,), run=Run(duration=30.0, warmup=10.0))
    assert _held(predict(case, "fluid"))["first-windows-fit"] is False
    assert _held(predict(case.replace({"link.buffer": 30.0}), "fluid"))["first-windows-fit"]


@pytest.mark.parametrize(("part", "holds"), [(0.09, True), (0.11, False)])
def test_starts_matter_where_runs_differ_by_more_than_a_tenth(part: float, holds: bool) -> None:
    """The throughputs 1 - d, 1 and 1 + d have the mean 1 and the standard deviation d."""
    scenario = Scenario((Link(100.0),), (Flow("reno", 0.1), Flow("sack", 0.1)), run=RANDOM)
    rates = np.array([[1.0 - part, 1.0], [1.0, 1.0], [1.0 + part, 1.0]])
    found = scatter.insensitive(scenario, rates)
    assert found.holds is holds
    said = f"over 3 runs the standard deviation of reno's throughput is {100 * part:.0f} %"
    assert said in found.detail
    same = scatter.insensitive(scenario.replace({"run.start_jitter": 0.0}), rates).detail
    assert "random waits or losses alone made these differences" in same


def test_a_mean_that_is_not_precise_comes_with_the_number_of_runs_to_ask_for() -> None:
    """Student's t is 4.303 for 3 runs: with the error 10 the interval reaches 43 to either side."""
    scenario = Scenario((Link(1000.0),), (Flow("vegas", 0.1), Flow("reno", 0.1)), run=RANDOM)
    means, error = np.array([100.0, 900.0]), np.array([10.0, 10.0])
    note = scatter.of_means(scenario, means, error, 3)
    assert note.holds is False
    assert "vegas's mean is 43 % to either side; `runs = 20` in the file" in note.detail
    assert "`runs = 40` in" in scatter.of_means(scenario, means, 3 * error, 10).detail
    assert "runs =" not in scatter.of_means(scenario, means, error / 10, 3).detail
    # vegas gets less than a tenth of the mean, 500 pkt/s; a tenth of this tenth is precise enough
    few = scatter.of_means(scenario, np.array([10.0, 990.0]), np.array([2.0, 1.0]), 3)
    assert few.holds is False
    assert (
        "vegas's mean is 10 ± 8.6 pkt/s; ± 5 would do, 1 % of the mean over all flows" in few.detail
    )


def test_a_flow_that_has_a_throughput_in_some_runs_only_needs_more_of_them() -> None:
    """The flow ends before the warm-up in one run of three; the mean of two runs says little."""
    flows = (Flow("reno", 0.05), Flow("cubic", 0.15, size=700.0))
    scenario = Scenario((Link(700.0, buffer=35.0),), flows, run=Run(duration=30.0, warmup=10.0))
    rates = np.array([[700.0, 75.0], [705.0, np.nan], [702.0, 74.0]])
    note = scatter.enough_runs(scenario, rates, chance=True)
    assert note.holds is False
    assert "cubic" in note.detail
    assert not scatter.certain(rates)
    never = np.where(np.isnan(rates).any(axis=0), np.nan, rates)  # ``sends-after-warm-up`` says so
    assert scatter.enough_runs(scenario, never, chance=True).holds
    assert scatter.certain(never)


@pytest.mark.parametrize("variant", ["paper", "ns2"])
def test_a_receivers_window_below_twice_vegas_own_limits_its_recoveries(variant: str) -> None:
    """Two Vegas get 150 and 161 pkt/s in ns-2 with ``max_window`` 35; windows have a mean of 23.

    Without a limit each gets about 240. ``fluid`` has neither the limit in recoveries nor ns-2's
    memory of ``max_window`` packets, and says 245 to 250 with either limit.
    """
    flow = Flow("vegas", 0.08, count=2, variant=variant, alpha=6, beta=8, max_window=35)
    link = Link(500.0, loss=0.002, buffer=15.0, queue=Red(5.0, 25.0, gentle=True))
    scenario = Scenario((link,), (flow,), run=Run(duration=150.0, warmup=50.0, runs=1))
    assert _held(predict(scenario, "fluid"))["whole-stack"] is False
    lossless = Scenario((Link(500.0, buffer=1000.0),), (flow,), run=scenario.run)
    for harmless in (scenario.replace({"flow.vegas.max_window": 60}), lossless):
        assert "whole-stack" not in _held(predict(harmless, "fluid"))
