"""Senders that wait before they use an open window: phase effects at drop-tail disappear.

Expected values are those of ns-2, where the wait is `overhead_` of the TCP agents: 300 s, means and
standard errors of 5 to 8 runs.
"""

import dataclasses

import numpy as np
import pytest
from scipy import stats

from tests.helpers import as_measured, exact
from vegasmodel import predict, register_law
from vegasmodel.engines.rounds import phases
from vegasmodel.engines.rounds.answers import answer
from vegasmodel.engines.rounds.run import run
from vegasmodel.results.assumption import Assumption
from vegasmodel.scenario import Flow, Link, Run, Scenario

# rtt of the two SACK sources, wait, throughputs (ns-2), their standard error
TWO_SACKS = {
    "in step": (0.0, (415.7, 634.9), 8.8),
    "a wait of 0.5 ms": (5e-4, (709.4, 342.8), 7.5),
    "the usual wait": (1.0 / 1065.0, (723.0, 329.4), 2.8),  # 40 runs
    "a wait of 2 ms": (2e-3, (714.2, 336.9), 7.3),
}


def two_sacks(wait: float) -> Scenario:
    flows = tuple(
        Flow("sack", rtt, name=name, variant="ns2", send_jitter=wait)
        for name, rtt in (("near", 0.043), ("far", 0.099))
    )
    span = Run(duration=300.0, warmup=100.0, runs=5, start_jitter=0.5)
    return Scenario((Link(1065.0, buffer=45.0),), flows, run=span)


@pytest.mark.parametrize("case", TWO_SACKS)
def test_a_wait_names_the_other_winner_as_ns2_does(case: str) -> None:
    wait, measured, se = TWO_SACKS[case]
    found = answer(two_sacks(wait), runs=8)
    spread = np.hypot(se, np.asarray(found.throughput_se))
    assert np.all(np.abs(found.throughput - np.array(measured)) < 3.0 * spread)
    assert np.all(spread < 20.0)


def test_the_seed_of_a_scenario_decides_its_waits() -> None:
    """Without this, all starts of ``basins`` would have the same waits."""
    base = two_sacks(5e-4)
    span = dataclasses.replace(base.run, duration=30.0, warmup=5.0, runs=1, start_jitter=0.0)

    def rates(seed: int) -> tuple[float, ...]:
        case = dataclasses.replace(base, run=dataclasses.replace(span, seed=seed))
        return tuple(np.asarray(answer(case).throughput))

    assert rates(7) == rates(7)
    assert len({rates(seed) for seed in range(5)}) == 5


def test_the_differential_equations_too() -> None:
    """``fluid`` keeps within the goal for such cases, 15 % of the mean throughput."""
    wait, measured, _ = TWO_SACKS["a wait of 0.5 ms"]
    found = predict(two_sacks(wait), "fluid")
    apart = np.sqrt(np.mean((np.asarray(found.throughput) - measured) ** 2))
    assert apart < 0.15 * np.mean(measured)
    assert found.throughput_se is not None


def test_a_wait_delays_and_loses_nothing_where_there_is_room() -> None:
    """A window-limited source sends W packets every T + J/2, for W = 1, and never exceeds W."""
    base = two_sacks(0.0)
    wait = 0.04
    alone = dataclasses.replace(base.flows[0], send_jitter=wait, max_window=1.0)
    found = answer(dataclasses.replace(base, flows=(alone,)), runs=2)
    # the mean of a uniform draw up to ``wait`` comes on top of every round trip
    assert found.throughput[0] == pytest.approx(1.0 / (0.043 + 0.5 * wait), rel=0.02)
    assert found.loss_rate[0] == 0.0


@pytest.mark.parametrize(("rtt", "measured"), [(0.06, 999.65), (0.061, 999.15), (0.06001, 999.65)])
def test_one_source_loses_one_packet_where_the_rtt_is_whole_transmission_times(
    rtt: float, measured: float
) -> None:
    """Packets that did not wait would arrive at the instants of departures, and two be lost."""
    flows = (Flow("reno", rtt, variant="ns2"),)
    scenario = Scenario((Link(1000.0, buffer=60.0),), flows, run=Run(duration=200.0, warmup=50.0))
    assert answer(scenario).throughput[0] == pytest.approx(measured, abs=1.0)


@pytest.mark.parametrize(
    ("capacity", "rtt", "buffer", "measured", "se"),
    [
        (1000.0, 0.06, 60.0, (90.7, 909.0), (0.7, 1.0)),
        (1000.0, 0.06, 30.0, (198.3, 782.6), (0.1, 0.1)),
        (1250.0, 0.04, 50.0, (127.1, 1122.8), (0.4, 0.5)),
    ],
)
def test_a_pair_with_round_numbers(
    capacity: float,
    rtt: float,
    buffer: float,
    measured: tuple[float, float],
    se: tuple[float, float],
) -> None:
    flows = (
        Flow("vegas", rtt, alpha=1.0, beta=3.0, variant="ns2"),
        Flow("reno", rtt, variant="ns2"),
    )
    length = (600.0, 200.0) if capacity == 1250.0 else (250.0, 50.0)
    scenario = Scenario((Link(capacity, buffer=buffer),), flows, run=Run(*length, runs=4))
    found = answer(scenario)
    assert as_measured(found, measured, se, 0.5)


def test_below_linux_each_packet_of_a_burst_waits_for_itself() -> None:
    """netem_enqueue: those that leave together find one place in the buffer and one beyond it.

    Ten packets are sent at once, and none overtakes another.  So each leaves at the latest time
    that is due so far, and of those that leave at the same time two find room.  The first does not
    wait in ``rounds``, since the ACK that released it has.
    """
    rng, n = np.random.default_rng(1), 4000
    leave = np.maximum.accumulate(rng.uniform(size=(n, 9)), axis=1)
    together = [np.unique(row, return_counts=True)[1] for row in leave]
    kept = 1.0 + np.mean([np.minimum(some, 2).sum() for some in together])
    flow = exact("reno", 0.1, variant="linux", send_jitter=1e-3, initial_window=10.0)
    link = Link(1e7, buffer=1.0)
    lost = []
    for seed in range(60):
        runs = Run(duration=0.15, warmup=0.0, runs=1, seed=seed)
        lost.append(run(Scenario((link,), (flow,), ack_size=66.0, run=runs)).flows["lost"][0])
    assert np.mean(lost) == pytest.approx(10.0 - kept, abs=4.0 * np.std(lost) / np.sqrt(len(lost)))


@pytest.mark.parametrize(("wait", "there"), [(0.002, 895.4), (0.005, 566.0)])
def test_waits_longer_than_a_transmission_hold_a_sender_back_as_in_ns2(
    wait: float, there: float
) -> None:
    """ns-2's mean of eight runs, +- 1.5: some ACKs arrive during a wait, and do not begin one."""
    flow = Flow("vegas", 0.1, variant="ns2", alpha=1.0, beta=1.0, send_jitter=wait)
    link = Link(1000.0, buffer=50.0)
    case = Scenario((link,), (flow,), run=Run(100.0, 20.0, runs=4, start_jitter=0.5))
    assert answer(case).throughput[0] == pytest.approx(there, rel=0.02)


def test_long_waits_hold_back_senders_whose_round_trip_has_few_intervals() -> None:
    """Each round trip takes 14 ms more in ns-2: 362.3 pkt/s, the mean of eight runs, +- 0.1.

    If the simulator joined ACKs to groups, whose packets do not wait, each sender would send 150
    packets in 0.4 s.
    """
    flow = Flow("reno", 0.4, count=2, variant="ns2", send_jitter=0.02, max_window=150.0)
    link = Link(1000.0, buffer=400.0)
    case = Scenario((link,), (flow,), run=Run(duration=60.0, warmup=20.0, runs=2, start_jitter=0.5))
    assert answer(case).throughput == pytest.approx([362.3, 362.3], abs=1.0)


@pytest.mark.parametrize(
    ("law", "window", "rate", "again"),  # ns-2 2.35: pkt/s, and packets sent again
    [("reno", 2.0, 7.36, 0.0), ("reno", 8.0, 22.19, 0.0), ("cubic", 5.0, 8.44, 0.0),
     ("vegas", 5.0, 13.15, 16.1), ("newreno", 5.0, 14.69, 0.0)],
)  # fmt: skip
def test_ns2s_timer_expires_in_waits_longer_than_the_timeout(
    law: str, window: float, rate: float, again: float
) -> None:
    """Nothing is in flight then, so nothing is sent again. But the window falls.

    The values are ns-2's means of eight runs; the standard error of a rate is at most 0.3 pkt/s,
    and that of a number of packets is its root. Only Vegas sends packets again: its timer is not
    restarted when the first packet is sent after a wait (``VegasTcpAgent::output``).
    """
    flow = Flow(law, 0.0389, variant="ns2", max_window=window, send_jitter=0.4)
    link, span = Link(161.0, buffer=11.0), Run(duration=300.0, warmup=0.0, runs=8, start_jitter=0.5)
    found = answer(Scenario((link,), (flow,), run=span))
    assert found.throughput[0] == pytest.approx(rate, rel=0.03)
    assert found.retransmits[0] == pytest.approx(again, abs=3.0 * np.sqrt(2.0 * again / 8.0))


def test_draws_are_the_seeds() -> None:
    one, two, other = (run(two_sacks(5e-4), seed=seed).flows["delivered"] for seed in (1, 1, 2))
    assert np.array_equal(one, two)
    assert not np.array_equal(one, other)


def test_the_answer_says_where_exact_clocks_decide() -> None:
    """The result has both answers, with and without waits, whichever was requested.

    Where none were requested, the waits are the usual ones.
    """
    for wait, waiting in ((0.0, "the usual wait"), (5e-4, "a wait of 0.5 ms")):
        found = predict(two_sacks(wait), "rounds")
        (note,) = (a for a in found.assumptions if a.name == "phase-effects")
        assert note.holds is False
        random, locked = note.detail.split("; ")
        for words, measured in (
            (random, TWO_SACKS[waiting][1]),
            (locked, TWO_SACKS["in step"][1]),
        ):
            near, far = (float(word.split()[-1]) for word in words.split(": ")[1].split(", "))
            assert (near, far) == pytest.approx(measured, rel=0.12)


def test_who_cannot_lock_is_not_asked_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = (
        Flow("vegas", 0.06, alpha=3.0, variant="ns2"),
        Flow("sack", 0.06, variant="ns2"),
    )
    short = Run(duration=60.0, warmup=20.0)
    single = Scenario((Link(500.0, buffer=30.0),), pair[1:], run=short)
    endless = Scenario((Link(500.0),), (pair[0], dataclasses.replace(pair[0], name="b", rtt=0.1)))
    assert not phases.possible(single)
    assert not phases.possible(endless)
    assert phases.possible(two_sacks(0.0))
    found = answer(single)
    monkeypatch.setattr(phases, "answer", None)  # it would be called
    assert phases.effects(single, found) == Assumption("phase-effects", True)


def test_a_vegas_flow_beside_one_loss_based_flow_of_its_rtt_can_lock() -> None:
    """The growth is that of Hybla (Caini and Firrincieli 2004): 5.8 packets in a round trip."""
    register_law("bursts", lambda f: max(1.0, f.rtt / 0.025) ** 2)
    flows = (
        Flow("bursts", 0.06, name="bursts", variant="linux"),
        Flow("vegas", 0.06, name="vegas", variant="linux"),
    )
    link = Link("20 Mbit/s", buffer=20.0)
    case = Scenario((link,), flows, packet_size=1500.0, run=Run(100.0, 30.0, runs=6))
    (note,) = (a for a in predict(case, "rounds").assumptions if a.name == "phase-effects")
    assert note.holds is False


def test_flows_that_never_find_the_buffer_full_cannot_lock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The two windows together are smaller than the buffer, so it is never full.

    A third flow has no such limit. It stops before the warm-up ends, but may have decided for good
    which of the others is ahead.
    """
    small = tuple(dataclasses.replace(flow, max_window=10.0) for flow in two_sacks(0.0).flows)
    short = Flow("sack", 0.05, name="short", variant="ns2", stop=15.0)
    never, early = (
        Scenario((Link(1065.0, buffer=45.0, loss=0.001),), flows, run=Run(60.0, 20.0))
        for flows in (small, (*small, short))
    )
    assert phases.possible(never)
    assert phases.possible(early, answer(early))
    found = answer(never)
    assert np.all(np.asarray(found.loss_rate) > 0.0)  # at random
    assert not phases.possible(never, found)
    monkeypatch.setattr(phases, "answer", None)  # it would be called
    assert phases.effects(never, found) == Assumption("phase-effects", True)


def test_vegas_flows_that_lose_packets_can_lock() -> None:
    """The buffer is too small for six Vegas flows.

    ns-2's last flow, which starts at 10 s, gets 3.1 packets/s if they do not wait, and 161 if they
    wait up to a transmission time (the mean of five runs).
    """
    starts, alphas = (0.0, 5.0, 2.0, 3.0, 4.0, 10.0), (3.0, 1.0, 1.0, 2.0, 3.0, 2.0)
    betas = (3.0, 3.0, 3.0, 4.0, 3.0, 4.0)
    flows = tuple(
        Flow(
            "vegas",
            0.01,
            name=f"v{i}",
            start=start,
            alpha=alpha,
            beta=beta,
            variant="ns2",
            send_jitter=0.0,
        )
        for i, (start, alpha, beta) in enumerate(zip(starts, alphas, betas, strict=True))
    )
    link = Link("10 Mbit/s", buffer=20.0, delay=0.002)
    found = predict(Scenario((link,), flows, packet_size=1500.0, run=Run(240.0, 20.0)), "rounds")
    (note,) = (a for a in found.assumptions if a.name == "phase-effects")
    assert note.holds is False
    random, locked = (float(part.split()[-1]) for part in note.detail.split("; ")[:2])
    assert locked < 30.0 < 130.0 < random


def test_phase_effects_within_a_group_are_shown_for_a_flow() -> None:
    """The mean of a group hides that one of its flows loses and another one gains."""
    flows = tuple(
        Flow("sack", rtt, name=name, variant="ns2", count=3)
        for name, rtt in (("near", 0.043), ("far", 0.099))
    )
    scenario = Scenario((Link(1065.0, buffer=45.0),), flows, run=Run(duration=200.0, warmup=50.0))
    (note,) = (a for a in predict(scenario, "rounds").assumptions if a.name == "phase-effects")
    groups, most = note.detail.split("; ")[:2], note.detail.split("; ")[2]
    assert note.holds is False
    means = [[float(part.split()[-1]) for part in said.split(", ")] for said in groups]
    (flow,) = (each for each in scenario.members if each.name in most)
    one, other = (float(text) for text in most.split(": ")[1].split(" and "))
    assert abs(one - other) >= abs(means[0][flow.group] - means[1][flow.group])


def test_as_many_runs_as_the_scenario_says_or_as_are_needed() -> None:
    asked = two_sacks(5e-4)
    free = dataclasses.replace(asked, run=dataclasses.replace(asked.run, runs=None))
    assert answer(asked).extra["runs"] == 5
    found = answer(free)
    runs, se = found.extra["runs"], np.asarray(found.throughput_se)
    half = stats.t.ppf(0.975, runs - 1) * se / np.asarray(found.throughput)
    assert 3 <= runs <= 5
    assert half.max() <= 0.1 or runs == 5
    one = dataclasses.replace(asked, run=dataclasses.replace(asked.run, runs=1))
    assert answer(one).extra["runs"] == 1


@pytest.mark.parametrize(
    ("capacity", "rtt", "buffer", "rate"),
    [
        (263.0, 0.93, 175.0, 235.9),  # ± 0.2 packets/s
        (540.0, 0.542, 145.0, 524.4),  # ± 0.1
        (99.0, 1.392, 151.0, 91.0),  # ± 0.1
        (150.0, 1.6, np.inf, 101.5),  # ± 0.1
    ],
)
def test_waits_of_a_flow_alone_on_a_long_path(
    capacity: float, rtt: float, buffer: float, rate: float
) -> None:
    """A Vegas window that grows for minutes, with the default wait of a transmission time.

    If ``rounds`` takes several ACKs together, and so neglects some of the waits, the flow gets 8 to
    17 % too little.
    """
    flow = Flow("vegas", rtt, variant="ns2")
    span = Run(duration=300.0, warmup=100.0, runs=5, start_jitter=1.0)
    found = answer(Scenario((Link(capacity, buffer=buffer),), (flow,), run=span))
    assert found.throughput[0] == pytest.approx(rate, rel=0.01)
