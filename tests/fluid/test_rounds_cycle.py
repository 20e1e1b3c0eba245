"""The steady state of ``rounds`` against long runs of the same simulator, and its consistency."""

import functools
from typing import Any

import numpy as np
import pytest

from tests.helpers import exact
from vegasmodel.engines.rounds import cycle, snapshot
from vegasmodel.engines.rounds import run as rounds
from vegasmodel.engines.rounds.answers import answer
from vegasmodel.engines.rounds.run import Simulation, run
from vegasmodel.engines.rounds.state import FLOW, HOP, LINK, PARCEL
from vegasmodel.engines.states import Kinds
from vegasmodel.scenario import Link, Red, Run, Scenario
from vegasmodel.simulation import limit_cycle

steady = functools.partial(limit_cycle, model="rounds")


def pair(capacity: float, rtt: float, buffer: float, alpha: float, law: str) -> Scenario:
    vegas = exact("vegas", rtt, alpha=alpha, beta=alpha, variant="ns2")
    return Scenario(
        (Link(capacity, buffer=buffer),),
        (vegas, exact(law, rtt, start=0.21)),
        run=Run(duration=600.0, warmup=200.0),
    )


@pytest.mark.parametrize(
    "scenario",
    [
        pair(1080.0, 0.08, 20.0, 3.0, "newreno"),
        pair(449.0, 0.083, 60.0, 2.0, "sack"),
        pair(1534.0, 0.12, 34.0, 4.0, "reno"),
    ],
)
def test_a_cycle_has_the_averages_of_a_long_run(scenario: Scenario) -> None:
    found, long = steady(scenario), answer(scenario, runs=1)
    # half a cycle more or less in 400 s, or the standard error where nothing repeats
    part = found.period / 400.0 if found.kind == "periodic" else 0.0
    allowed = part * long.throughput + 4.0 * found.spread + 2e-3 * scenario.links[0].capacity
    assert np.all(np.abs(found.throughput - long.throughput) <= allowed)
    assert found.queue_mean == pytest.approx(long.queue_mean[0], abs=1.0)


def test_a_cycle_ends_where_the_loss_based_source_loses() -> None:
    found = steady(pair(482.0, 0.065, 48.0, 3.0, "reno"))
    assert found.kind == "periodic"
    assert found.losses[0] == 0.0
    # one packet an overflow, and the window climbs back from half by about a packet a round trip
    between = found.period / np.round(found.losses[1])
    assert between == pytest.approx(found.window[1] * 2 / 3 * found.rtt_mean[1], rel=0.15)
    np.testing.assert_allclose(found.multipliers, 0.0, atol=1e-6)


def test_vegas_alone_rests() -> None:
    vegas = tuple(
        exact("vegas", 0.08, name=f"v{i}", variant="ns2", start=5.0 * i) for i in range(3)
    )
    found = steady(Scenario((Link(500.0),), vegas))
    assert (found.kind, found.period) == ("fixed point", 0.0)
    assert list(found.losses) == [0.0, 0.0, 0.0]
    assert found.throughput.sum() == pytest.approx(500.0, rel=2e-3)


RANDOM = Scenario(
    (Link(400.0, buffer=40.0, queue=Red(5.0, 15.0)),),
    (exact("vegas", 0.08, variant="ns2"), exact("newreno", 0.08, start=1.0)),
)
TIMED_OUT = Scenario(
    (Link(400.0, buffer=400.0, queue=Red(5.0, 15.0, ecn=True)),),
    tuple(exact("sack", 0.08, name=n, start=s, variant="ns2") for n, s in (("a", 0.0), ("b", 1.0))),
)


def test_what_is_tossed_for_does_not_repeat() -> None:
    found = steady(RANDOM)
    assert found.kind == "neither found"
    assert np.isnan(found.period)
    assert np.all(found.spread > 0.0)
    assert found.multipliers.size == 0


def test_sources_that_end_have_no_steady_state() -> None:
    with pytest.raises(ValueError, match="flows end: short"):
        steady(Scenario((Link(400.0),), (exact("reno", 0.08, name="short", size=30.0),)))


def alike(law: str, n: int, rtt: float, capacity: float, buffer: float) -> Scenario:
    flows = tuple(exact(law, rtt, name=f"{law}-{k}") for k in range(n))
    return Scenario((Link(capacity, buffer=buffer),), flows, run=Run(duration=1000.0, warmup=100.0))


@pytest.mark.parametrize(
    "scenario",
    [
        alike("reno", 3, 0.08, 1000.0, 20.0),
        alike("sack", 4, 0.055, 302.0, 4.0),
        alike("sack", 4, 0.105, 196.0, 43.0),
    ],
    ids=["three Reno", "four SACK", "four SACK in a long queue"],
)
def test_a_repeat_is_one_of_the_whole_state(
    scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows that repeat to a packet are no cycle if the queue's phase drifts.

    In the long queue the flows come to their cycle late, so the search is a long one.
    """
    monkeypatch.setattr(cycle, "FIRST_TRIPS", 5000)
    found, long = steady(scenario), answer(scenario, runs=1)
    assert found.kind == "periodic"
    assert found.residual < 1e-6
    allowed = 2e-3 * scenario.links[0].capacity + found.period / 900.0 * long.throughput
    assert np.all(np.abs(found.throughput - long.throughput) <= allowed)


def test_a_source_that_waits_for_its_timer_is_waited_for() -> None:
    """SACK lost its first packets, so its timer takes seconds; the others repeat meanwhile."""
    flows = (
        exact("tahoe", 0.026, start=0.08, variant="ns2"),
        exact("sack", 0.026, start=4.14, variant="ns2"),
        exact("reno", 0.026, start=2.43, variant="ns2"),
    )
    scenario = Scenario((Link(194.0, buffer=11.0),), flows, run=Run(duration=2000.0, warmup=100.0))
    found, long = steady(scenario), run(scenario).flows
    rates = (long["delivered"] - long["mark_delivered"]) / 1900.0
    np.testing.assert_allclose(found.throughput, rates, atol=0.01 * 194.0)


@pytest.mark.parametrize(
    ("scenario", "longest", "waits", "tries"),
    [
        (RANDOM, None, False, [1280]),
        (RANDOM, 2000.0, False, [1280, 2000]),
        (TIMED_OUT, None, True, [1280, 2560, 5120, 8000]),  # 640 s of 80 ms
        (TIMED_OUT, 1000.0, True, [1000]),
    ],
)
def test_without_a_drift_only_a_timer_or_the_caller_makes_the_search_longer(
    scenario: Scenario,
    longest: float | None,
    waits: bool,
    tries: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first try has 1280 round trips, each further one twice as many, up to the longest."""
    made: list[Simulation] = []

    class Kept(Simulation):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            made.append(self)

    monkeypatch.setattr(rounds, "Simulation", Kept)
    assert steady(scenario, longest=longest).kind == "neither found"
    assert np.any(made[0].totals(0).flows["timeouts"] > 0) == waits
    # the averages begin after a quarter of a try
    spans = [(each.scenario.run.duration - each.scenario.run.warmup) / 0.75 for each in made]
    np.testing.assert_allclose(np.array(spans) / 0.08, tries)


def test_a_window_that_still_grows_gives_no_averages() -> None:
    """Vegas alone needs a window of cT = 1000, to which it grows by a packet per round trip.

    Slow start ends far below it: the window keeps more than gamma = 1 packet queued too early,
    because it is sent in bursts. So the window still grows after a quarter of 1280 round trips, the
    part of a try that is left out.
    """
    scenario = Scenario((Link(5000.0),), (exact("vegas", 0.2, variant="ns2"),))
    short = steady(scenario, longest=1280.0)
    assert short.status == "the windows did not settle in the time allowed"
    assert np.all(np.isnan(short.throughput))
    assert short.kind == "neither found"
    # without a limit, the search goes on until Vegas fills the link
    found = steady(scenario)
    assert (found.kind, found.status) == ("fixed point", "done")
    assert found.throughput[0] == pytest.approx(5000.0, rel=1e-4)


def test_what_waits_at_rest_is_what_the_engine_counts() -> None:
    vegas = tuple(
        exact("vegas", 0.08, name=f"v{i}", variant="ns2", start=5.0 * i) for i in range(3)
    )
    scenario = Scenario((Link(500.0),), vegas, run=Run(duration=120.0, warmup=60.0))
    long = answer(scenario)
    assert steady(scenario).queue_mean == pytest.approx(long.queue_mean[0], abs=0.05)


@pytest.mark.parametrize(("rates", "waiting"), [((200.0, 800.0), 20.0), ((800.0, 200.0), 0.0)])
def test_the_queue_at_rest_is_that_of_the_first_of_two_links(
    rates: tuple[float, float], waiting: float
) -> None:
    """Of 40 packets in flight, 20 wait at the link of 200 pkt/s: the empty RTT is 0.1 s."""
    links = tuple(Link(rate, f"l{i}", buffer=50.0) for i, rate in enumerate(rates))
    flow = exact("reno", 0.1, variant="ns2", max_window=40.0)
    found = steady(Scenario(links, (flow,), run=Run(duration=60.0, warmup=20.0)))
    assert found.queue_mean == pytest.approx(waiting, abs=1e-6)


def names(*parts: Kinds) -> list[str]:
    return [name for part in parts for kind in part for name in kind]


@pytest.mark.parametrize(
    ("record", "fields", "compared"),
    [
        (
            "flow",
            FLOW,
            [
                *names(snapshot.SENDER, snapshot.ROUND, snapshot.CUBIC, snapshot.LINUX_RECEIVER),
                *names(snapshot.TIMER, snapshot.LAW),
                "round_end",
                "epoch_start",
            ],
        ),
        ("hop", HOP, names(snapshot.ARRIVALS)),
        ("link", LINK, [*names(snapshot.QUEUE, snapshot.CLASS), "idle", "stock"]),
        ("parcel", PARCEL, [*names(snapshot.GROUP), "first", "hop", "work"]),
    ],
)
def test_every_field_is_of_the_state_or_left_out(
    record: str, fields: np.dtype[np.void], compared: list[str]
) -> None:
    assert sorted([*compared, *snapshot.LEFT_OUT[record]]) == sorted(fields.names)
