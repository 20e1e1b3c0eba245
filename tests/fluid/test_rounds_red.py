"""RED in ``rounds``: by hand against ns-2's queue/red.cc, and against runs of ns-2."""

from typing import Any

import numba
import numpy as np
import pytest

from tests.helpers import exact
from vegasmodel.engines.rounds.random_drops import _red_picks, random_drops
from vegasmodel.engines.rounds.run import run
from vegasmodel.engines.rounds.state import LINK, RED
from vegasmodel.engines.starts import start_times
from vegasmodel.scenario import Link, Red, Run, Scenario


@numba.njit
def _seed() -> None:
    np.random.seed(1)  # noqa: NPY002 - compiled code draws from it


@pytest.mark.parametrize("stretch", [1, 7])
@pytest.mark.parametrize("top", [0.05, 0.02])
def test_packets_between_two_drops_are_as_red_cc_draws_them(stretch: int, top: float) -> None:
    """modify_p: the n-th packet is dropped with p/(2 - n p) if 1 <= n p < 2.

    Here p changes with n.
    """
    draws, longest = 4000, 140

    def p(n: int) -> float:  # of the stretch in which the n-th packet comes
        return 0.02 + (top - 0.02) * min((n - 1) // stretch * stretch / 60.0, 1.0)

    survive, alive = [], 1.0
    for n in range(1, longest):
        x = n * p(n)
        alive *= 1.0 if x < 1.0 else (1.0 - p(n) / (2.0 - x) if x < 2.0 - 1e-9 else 0.0)
        survive.append(max(alive, 0.0))
    _seed()
    gaps = []
    for _ in range(draws):
        link = np.zeros(1, LINK)[0]
        n = 0
        while True:
            picked = _red_picks(link, float(stretch), p(n + 1))
            if picked:
                gaps.append(n + stretch - link["passed"])
                break
            n += stretch
    at = np.arange(10, 110, 10)
    found = np.array([np.mean(np.array(gaps) > n) for n in at])
    expected = np.array(survive)[at - 1]
    np.testing.assert_allclose(found, expected, atol=4.0 * 0.5 / np.sqrt(draws))


def _red_queue(average: float, **fields: Any) -> Any:
    link = np.zeros(1, LINK)[0]
    values = {"discipline": RED, "packets_per_work": 1.0, "capacity": 100.0, "min_threshold": 5.0}
    values |= {"max_threshold": 15.0, "max_probability": 0.1, "average": average, "early": 1}
    for name, value in (values | fields).items():
        link[name] = value
    return link


@pytest.mark.parametrize(
    ("average", "capable", "lost", "marked"),
    [(16.0, 1, 1.0, 0.0), (14.9, 1, 0.0, 1.0), (14.9, 0, 1.0, 0.0)],
)
def test_marks_up_to_mark_p_and_for_those_that_said_so(
    average: float, capable: int, lost: float, marked: float
) -> None:
    # 19 packets have passed, so that the next one falls: 2 <= 20 p
    fields = {"passed": 21.0, "ecn": 1, "mark_limit": 0.1, "gentle": 1, "queue": 9.0}
    link = _red_queue(average, **fields)
    assert random_drops(link, 1.0, 9.0, 1, 0, capable) == (lost, marked)


def test_the_first_packet_beyond_the_threshold_passes() -> None:
    link = _red_queue(40.0, early=0, queue=9.0)
    assert random_drops(link, 1.0, 9.0, 1, 0, 0) == (0.0, 0.0)
    assert random_drops(link, 1.0, 9.0, 1, 0, 0) == (1.0, 0.0)


def test_a_packet_in_step_with_a_departure_sees_one_more() -> None:
    one, other = _red_queue(0.0, weight=0.5), _red_queue(0.0, weight=0.5)
    random_drops(one, 1.0, 4.0, 1, 0, 0)
    random_drops(other, 1.0, 4.0, 1, 1, 0)
    assert (one["average"], other["average"]) == (1.5, 2.0)


@pytest.mark.parametrize(("before", "lost"), [(2.0, 0.0), (3.0, 1.0)])
def test_red_drops_no_packet_while_at_most_one_waits(before: float, lost: float) -> None:
    """red.cc: ``qavg >= edp_.th_min && qlen > 1``; one of the packets is in transmission."""
    link = _red_queue(40.0, queue=before + 1.0)
    assert random_drops(link, 1.0, before, 1, 0, 0) == (lost, 0.0)


@pytest.mark.parametrize("idle", [0.021, 0.029])
def test_the_average_falls_by_whole_packets_while_the_link_is_idle(idle: float) -> None:
    """red.cc: ``m = int(edv_.ptc * (now - idletime))``, 2 packets of 10 ms; then one arrives."""
    link = _red_queue(8.0, weight=0.5, idle=idle)
    random_drops(link, 1.0, 0.0, 1, 0, 0)
    assert link["average"] == 1.0


def test_a_packet_that_random_loss_and_red_both_hit_is_one_loss() -> None:
    link = _red_queue(40.0, queue=9.0, loss_hazard=1.0, next_loss=1.0)
    assert random_drops(link, 1.0, 9.0, 1, 0, 0) == (1.0, 0.0)


# A Vegas source with alpha = beta = 3 and a NewReno source at 800 pkt/s, 81.3 ms and thresholds
# of 8 and 24 packets: ns-2's throughputs, means over 20 runs whose standard error is 0.3 % or less.
NS2_RUNS = {
    "ecn": (Red(8.0, 24.0, ecn=True), (307.14, 455.01)),
    "long memory": (Red(8.0, 24.0, weight=0.0002), (250.91, 517.71)),
}


def _pair(queue: Red) -> Scenario:
    flows = (
        exact("vegas", 0.0813, alpha=3.0, beta=3.0, variant="ns2"),
        exact("newreno", 0.0813, variant="ns2"),
    )
    link = Link(800.0, buffer=100.0, queue=queue)
    return Scenario((link,), flows, run=Run(duration=300.0, warmup=100.0, seed=3, start_jitter=0.5))


@pytest.mark.parametrize("name", NS2_RUNS)
def test_runs_of_ns2(name: str) -> None:
    # the median: in a run now and then Vegas loses its baseRTT (docs/ns2.md)
    queue, measured = NS2_RUNS[name]
    rates = []
    for seed in range(1, 8):
        scenario = _pair(queue)
        flows = run(scenario, starts=start_times(scenario, seed), seed=seed).flows
        rates.append((flows["delivered"] - flows["mark_delivered"]) / 200.0)
    np.testing.assert_allclose(np.median(rates, axis=0), measured, rtol=0.01)


def test_ns2s_vegas_loses_where_newreno_is_marked() -> None:
    flows = run(_pair(Red(8.0, 24.0, ecn=True)), seed=2).flows
    lost = flows["lost"] - flows["mark_lost"]
    assert lost[0] > 10
    assert lost[1] == 0
