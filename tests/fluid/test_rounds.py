"""The simulator ``rounds``: invariants over random scenarios, and cases with a known answer."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers import exact
from vegasmodel.adapters.rounds import figures
from vegasmodel.engines.rounds.answers import answer
from vegasmodel.engines.rounds.resolution import SINGLY, resolution
from vegasmodel.engines.rounds.run import run
from vegasmodel.engines.rounds.state import LOST
from vegasmodel.scenario import Drop, DropTail, Flow, Link, Poisson, Red, Run, Scenario
from vegasmodel.simulation import simulate

LAWS = ("vegas", "reno", "newreno", "sack", "tahoe")


def flows(draw: st.DrawFn, count: int) -> tuple[Flow, ...]:
    made = []
    for i in range(count):
        alpha = draw(st.integers(1, 4))
        made.append(
            exact(
                draw(st.sampled_from(LAWS)),
                rtt=draw(st.floats(0.03, 0.3)),
                name=f"f{i}",
                start=draw(st.floats(0.0, 3.0)),
                alpha=float(alpha),
                beta=float(alpha + draw(st.integers(0, 2))),
                variant=draw(st.sampled_from(("paper", "ns2", "linux"))),
                max_window=draw(st.sampled_from((math.inf, 40.0))),
                access=draw(st.sampled_from((None, 400.0))),  # slow beside a fast link
            )
        )
    return tuple(made)


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    link = Link(
        draw(st.floats(50.0, 2000.0)),
        buffer=float(draw(st.sampled_from((5, 12, 40, math.inf)))),
        queue=draw(st.sampled_from((DropTail(), Red(5.0, 15.0), Red(5.0, 15.0, ecn=True)))),
        loss=draw(st.sampled_from((0.0, 0.0, 0.01))),
    )
    made = flows(draw, draw(st.integers(1, 4)))
    return Scenario((link,), made, run=Run(duration=20.0, warmup=5.0))


@settings(deadline=None, max_examples=60, derandomize=True)
@given(scenarios(), st.sampled_from((1, 4, 16)))
def test_packets_are_conserved_and_nothing_is_negative(scenario: Scenario, parts: int) -> None:
    out = run(scenario, parts=parts, samples=101)
    assert out.status == 0
    assert np.all(np.isfinite(out.per_flow[..., :4]))
    assert np.all(out.per_flow[..., :4] >= -1e-9)
    assert np.all(out.queues >= 0)
    f, link = out.flows, out.first_queue
    assert link["arrived"] == pytest.approx(
        link["served"] + link["queue"] + link["excess"] + link["lost"], rel=1e-9, abs=1e-6
    )
    assert f["lost"].sum() == pytest.approx(link["lost"], rel=1e-9)
    np.testing.assert_array_equal(out.per_flow[-1, :, LOST], f["lost"])
    # every packet sent is delivered, was lost, was a duplicate, or is on its way
    assert np.all(f["delivered"] + f["lost"] <= f["sent"] + 1e-6)
    assert f["delivered"].sum() <= scenario.links[0].capacity * 20.0
    buffer = scenario.links[0].buffer
    assert np.all(out.queues[:, 0] <= buffer + 1 + 1e-6)  # the others are those of access links


@settings(deadline=None, max_examples=30, derandomize=True)
@given(scenarios())
def test_the_order_of_the_flows_does_not_matter(scenario: Scenario) -> None:
    if scenario.links[0].loss or isinstance(scenario.links[0].queue, Red):
        return  # chance picks victims by order
    other = Scenario(scenario.links, scenario.flows[::-1], run=scenario.run)
    one, two = run(scenario).flows["delivered"], run(other).flows["delivered"]
    starts = [m.start for m in scenario.members]
    if len(set(starts)) == len(starts):
        np.testing.assert_allclose(one, two[::-1], rtol=1e-9)


def test_a_lone_reno_flow_keeps_a_link_with_a_full_buffer_busy() -> None:
    """If B exceeds the bandwidth-delay product, a halved window never empties the queue."""
    link = Link(500.0, buffer=60.0)
    scenario = Scenario((link,), (exact("reno", 0.08, variant="ns2"),))
    assert answer(scenario).throughput == pytest.approx(500.0, rel=2e-3)


def test_a_window_limit_sets_the_rate() -> None:
    """max_window is below the bandwidth-delay product, so the rate is W/T."""
    scenario = Scenario((Link(1000.0),), (exact("reno", 0.1, max_window=20.0),))
    assert answer(scenario).throughput == pytest.approx(200.0, rel=1e-6)


def test_a_packet_may_arrive_in_the_midst_of_anothers_burst() -> None:
    """40 packets come over an access link of 4 times the rate, one every 2.5 ms.

    After 51.25 ms, 21 of them have arrived and 5.125 have left.
    """
    alike = exact("reno", 0.1, variant="ns2", access=400.0, name="burst")
    burst = replace(alike, size=40.0, initial_window=40.0)
    late = replace(alike, size=1.0, start=0.05125, name="late")
    out = run(Scenario((Link(100.0),), (burst, late), run=Run(duration=2.0, warmup=0.0)))
    took = out.flows["rtt_total"] / out.flows["rtt_packets"]
    assert took[1] == pytest.approx(0.1 + (21.0 - 5.125) / 100.0, abs=1e-9)


def test_loss_based_sources_run_where_the_others_do() -> None:
    """``paper`` is a rule for Vegas only.

    A source without a variant follows ns-2, or Linux beside it.
    """
    link = (Link(300.0, buffer=15.0),)
    for vegas in (
        (),
        (exact("vegas", 0.09, variant="ns2"),),
        (exact("vegas", 0.09, variant="linux"),),
    ):
        stated = vegas[0].variant if vegas else "ns2"
        rates = [
            answer(
                Scenario(link, (*vegas, exact("reno", 0.07, variant=variant)), run=Run(60.0, 20.0))
            )
            for variant in ("paper", stated)
        ]
        np.testing.assert_array_equal(rates[0].throughput, rates[1].throughput)


def test_a_mean_where_chance_has_a_part() -> None:
    red = Link(300.0, buffer=40.0, queue=Red(5.0, 15.0))
    flows = (exact("vegas", 0.08, variant="ns2"), exact("newreno", 0.1, start=1.0))
    several = answer(Scenario((red,), flows, run=Run(duration=60.0, warmup=20.0)))
    assert 3 <= several.extra["runs"] <= 20
    assert several.throughput_se is not None
    calm = answer(Scenario((Link(300.0),), flows[:1], run=Run(duration=60.0, warmup=20.0)))
    assert calm.extra["runs"] == 1


def test_random_loss_follows_the_square_root_law() -> None:
    """``W = sqrt(3/(2p))`` (one ACK a packet): 10 % at p = 0.001, where timeouts are rare."""
    scenario = Scenario(
        (Link(1e5, loss=1e-3),), (exact("sack", 0.1, variant="ns2"),), run=Run(4000.0, 100.0)
    )
    expected = math.sqrt(1.5 / 1e-3) / 0.1
    assert answer(scenario).throughput == pytest.approx(expected, rel=0.1)


@pytest.mark.parametrize("capacity", [125.0, 1.25e4, 1.25e7])
def test_a_round_trip_costs_a_bounded_number_of_events(capacity: float) -> None:
    """The number does not depend on the packets: 12.5 or a million per round trip here."""
    link = Link(capacity, buffer=round(capacity * 0.05))
    pair = (exact("vegas", 0.1, variant="ns2"), exact("reno", 0.1, variant="ns2"))
    out = run(Scenario((link,), pair, run=Run(duration=500.0, warmup=50.0)), parts=8)
    rounds = 2 * 500.0 / 0.1
    assert out.events < 2 * 8 * rounds


def _at(
    capacity: float, rtt: float, buffer: float, duration: float, rival: str = "reno"
) -> Scenario:
    """A Vegas flow and another flow, with the variant ns2."""
    pair = tuple(exact(law, rtt, alpha=3.0, beta=3.0, variant="ns2") for law in ("vegas", rival))
    return Scenario((Link(capacity, buffer=buffer),), pair, run=Run(duration, duration / 4.0))


def test_the_first_overflow_of_a_very_large_window_fits() -> None:
    """At 100 Gbit/s a million packets are lost at once, among others that are delivered."""
    out = run(_at(2.5e7, 0.1, 7.5e5, 20.0))
    assert out.status == 0
    assert out.flows["lost"].sum() > 1e6


@pytest.mark.parametrize("capacity", [2.5e5, 2.5e6, 2.5e7])
def test_so_does_filling_the_holes_of_the_first_overflow(capacity: float) -> None:
    """After the timeout thousands to millions of packets are sent again, with far fewer events."""
    scenario = _at(capacity, 0.1, 0.03 * capacity, 6.0)
    out = run(scenario)
    assert out.flows["timeouts"].max() >= 1.0  # of Reno, whose slow start it was
    assert out.flows["retransmits"].max() > 0.05 * capacity
    fine, _ = resolution(scenario)
    assert out.events < 2 * fine * 6.0 / 0.1


def test_near_a_loss_large_windows_cost_few_events_and_tell_what_packets_tell() -> None:
    """The room in the buffer falls by a packet per round trip, and intervals shrink with it.

    The limit is that of 25 events per flow and round trip, near losses and far from them.
    """
    scenario = _at(25000.0, 0.1, 750.0, 400.0)
    out, fine = run(scenario), run(scenario, parts=SINGLY)
    assert out.flows["lost"].sum() == fine.flows["lost"].sum() > 1000.0
    assert out.events < 50 * 400.0 / 0.1
    assert out.flows["delivered"] == pytest.approx(fine.flows["delivered"], rel=1e-3)


def test_long_stretches_tell_what_packets_tell() -> None:
    """Far from losses a stretch has about 15 packets here, and the shares agree within 0.1 %."""
    scenario = _at(2000.0, 0.15, 40.0, 200.0, "sack")
    shares = []
    for parts in (None, 10_000):
        delivered = np.zeros(2)
        for starts in ((0.0, 0.1), (0.2, 0.0), (0.45, 0.3)):
            out = run(scenario, parts=parts, starts=np.array(starts))
            delivered += out.flows["delivered"] - out.flows["mark_delivered"]
        shares.append(delivered[0] / delivered.sum())
        events = out.events
    assert events > 300_000  # each packet is one
    assert shares[0] == pytest.approx(shares[1], rel=0.001)


def test_features_it_lacks_are_named() -> None:
    short = exact("reno", 0.1, arrivals=Poisson(5000.0), size=30.0)
    many = Scenario((Link(100.0),), (short,))
    out = answer(many)
    assert not out.applicable
    assert "short flows" in str(out.reason)
    with pytest.raises(ValueError, match="short flows"):
        simulate(many)
    forced = Scenario((Link(100.0, drops=(Drop("reno", (9,)),)),), (exact("reno", 0.1),))
    flags = {a.name: a.holds for a in answer(forced).assumptions}
    assert flags["no-forced-drops"] is False
    assert simulate(forced, samples=3).attrs["left_out"] == "no-forced-drops"


def test_runs_of_flows_that_arrive_at_random_are_as_many_as_asked() -> None:
    web = exact("reno", 0.05, name="web", size=10.0, arrivals=Poisson(4.0))
    once = Scenario((Link(300.0, buffer=20.0),), (exact("sack", 0.1), web), run=Run(30.0, 5.0))
    one, three = answer(once), answer(once.replace({"run.runs": 3}))
    known = [next(a.holds for a in p.assumptions if a.name == "enough-runs") for p in (one, three)]
    assert one.extra["runs"] == 1
    assert one.throughput_se is None
    assert known[0] is None  # the other flows of another run would give other rates
    assert three.extra["runs"] == 3
    assert three.throughput_se.max() > 0.0  # each run draws arrivals of its own


@pytest.mark.parametrize(
    ("n", "capacity", "rtt"), [(1, 1200.0, 0.089), (2, 1001.0, 0.092), (3, 1287.0, 0.188)]
)
def test_waiting_packets_are_their_rate_times_their_wait(n: int, capacity: float, rtt: float):
    """Little's law; the packet in transmission does not wait, and its time is part of the RTT."""
    flows = tuple(exact("vegas", rtt, name=f"flow-{i}", variant="ns2") for i in range(n))
    case = Scenario((Link(capacity, buffer=100.0),), flows, run=Run(duration=60.0, warmup=20.0))
    found = answer(case, runs=1)
    wait = np.asarray(found.rtt_mean) - rtt
    assert np.asarray(found.queue_mean)[0] == pytest.approx(wait @ found.throughput, abs=0.01)


def test_waiting_packets_of_two_sizes_are_their_rate_times_their_wait() -> None:
    """The packet in transmission is one packet of its size, and does not wait either."""
    sizes = {"small": ("250 B", 0.06), "usual": ("500 B", 0.08)}
    flows = tuple(
        exact("vegas", rtt, name=name, packet_size=size, variant="ns2")
        for name, (size, rtt) in sizes.items()
    )
    case = Scenario((Link(400.0, buffer=50.0),), flows, packet_size=500.0, run=Run(90.0, 30.0))
    found = answer(case, runs=1)
    wait = np.asarray(found.rtt_mean) - [rtt for _, rtt in sizes.values()]
    assert np.asarray(found.queue_mean)[0] == pytest.approx(wait @ found.throughput, abs=0.02)


@pytest.mark.parametrize("law", ["vegas", "reno"])
def test_samples_of_the_queue_have_its_mean(law: str) -> None:
    """A sample counts the packets that wait at that moment: seven samples to a service time."""
    case = Scenario(
        (Link(400.0, buffer=20.0),), (exact(law, 0.08, variant="ns2"),), run=Run(30.0, 10.0)
    )
    data = simulate(case, samples=84_001)
    late = data["queue"].values[data["time"].values >= 10.0, 0]
    mean = np.asarray(answer(case, runs=1).queue_mean)[0]
    assert mean > 2.0
    assert late.mean() == pytest.approx(mean, abs=0.02)
    assert np.array_equal(late, np.round(late))


def test_one_run_does_not_tell_how_far_another_would_differ() -> None:
    """Each run of this scenario draws its own starts, but for one run there is nothing to compare.

    Without a random part another run gives the same; then one suffices.
    """
    pair = (exact("vegas", 0.1, name="near"), exact("vegas", 0.12, name="far"))
    fixed = Scenario((Link(300.0),), pair, run=Run(30.0, 5.0, start_jitter=0.0))  # no timeouts
    said = {}
    for jitter in (0.0, 0.01):
        one = answer(fixed.replace({"run.runs": 1, "run.start_jitter": jitter}))
        said[jitter] = {a.name: (a.holds, a.detail) for a in one.assumptions}
        assert one.extra["runs"] == 1
        assert said[jitter]["insensitive-to-starts"][0] is None
    assert "`start_jitter` above 0 in the file" in said[0.0]["insensitive-to-starts"][1]
    assert "a larger `runs` in the file" in said[0.01]["insensitive-to-starts"][1]
    assert said[0.0]["enough-runs"][0] is True
    assert said[0.01]["enough-runs"][0] is None
    assert "'s mean" not in said[0.0]["enough-runs"][1]  # which names no flow


def test_trajectories_carry_units_and_provenance() -> None:
    pair = (exact("vegas", 0.1, variant="ns2"), exact("reno", 0.1, max_window=20.0))
    scenario = Scenario((Link(100.0),), pair)
    data = simulate(scenario, samples=11)
    assert data.attrs["model"] == "rounds"
    assert dict(data.sizes) == {"time": 11, "flow": 2, "link": 1}
    assert data.window.attrs["units"] == "packets"
    step = float(data.time[1] - data.time[0])
    # nothing is lost here: what was sent is delivered or among a window of packets on their way
    gap = data.rate.sum("time") * step - data.delivered.isel(time=-1)
    assert np.all(gap >= 0)
    assert np.all(gap <= 20)
    assert data.attrs["fingerprint"] == scenario.fingerprint()
    assert np.isnan(data.base_rtt.sel(flow="reno")).all()


def test_the_papers_law_moves_continuously() -> None:
    scenario = Scenario((Link(100.0),), (exact("vegas", 0.1, count=2, alpha=2.0, beta=2.0),))
    data = simulate(scenario, "fluid", samples=601)
    assert data.attrs["model"] == "fluid"
    assert data.attrs["status"] == "done"
    assert set(data.data_vars) == {
        "window", "rate", "rtt", "base_rtt", "delivered", "lost", "queue",
    }  # fmt: skip
    # boutremans (4): each flow keeps alpha packets queued, 4 in all, once it has settled
    assert float(data.queue[-1, 0]) == pytest.approx(4.0, rel=1e-6)
    assert np.allclose(data.base_rtt[-1], 0.1, rtol=1e-3)
    total = float(data.delivered[-1].sum())
    assert total == pytest.approx(100.0 * 600.0, rel=0.02)  # the link is full but for the start


def test_a_part_of_a_packets_room_holds_no_packet() -> None:
    """The fraction of a buffer is dropped, as in ns-2's driver.

    One more packet changes the answer.
    """
    got = {}
    for buffer in (19.0, 19.99, 20.0):
        pair = (exact("vegas", rtt=0.05, variant="ns2"), exact("reno", rtt=0.08))
        case = Scenario((Link(500.0, buffer=buffer),), pair, run=Run(duration=60.0, warmup=20.0))
        got[buffer] = answer(case, runs=1).throughput
    np.testing.assert_array_equal(got[19.0], got[19.99])
    assert np.abs(got[20.0] - got[19.0]).max() > 1.0
    # 4 packets are so few beside the 90 of the empty way that single packets are simulated
    equal = (exact("vegas", rtt=0.05, variant="ns2"), exact("reno", rtt=0.05))
    small = [Scenario((Link(1800.0, buffer=b),), equal, run=Run(60.0, 20.0)) for b in (4.0, 4.9)]
    rates = [answer(one, runs=1).throughput for one in small]
    np.testing.assert_array_equal(rates[0], rates[1])


@pytest.mark.parametrize("rtt", [0.005, 0.05])
def test_a_queue_without_end_delivers_no_more_than_the_link_serves(rtt):
    """Reno with an infinite buffer: intervals last seconds, and the link is never idle."""
    link = Link(name="bottleneck", capacity=1250.0, buffer=np.inf)
    scenario = Scenario(links=(link,), flows=(Flow(law="reno", rtt=rtt),), run=Run(600.0, 200.0))
    found = figures(scenario)
    assert found.throughput[0] == pytest.approx(1250.0, abs=2.0 / 400.0)  # a packet at each end
    notes = {a.name: a.holds for a in found.assumptions}
    assert notes["losses-end-growth"] is False
    held = replace(scenario.flows[0], max_window=50.0)  # now its receiver ends the growth
    notes = {a.name: a.holds for a in figures(replace(scenario, flows=(held,))).assumptions}
    assert notes["losses-end-growth"] is True


def test_the_window_includes_what_duplicate_acks_add() -> None:
    """As its docstring says.  80 packets fill the link, and 20 the buffer: SACK has no more."""
    flow = Flow("reno", "80 ms", name="one", variant="ns2", send_jitter=0.0)
    case = Scenario([Link(1000.0, buffer=20.0)], [flow], run=Run(duration=60.0, warmup=10.0))
    most = {}
    for law in ("reno", "sack"):
        paths = simulate(case.replace({"flow.one.law": law}), "rounds", samples=6001)
        most[law] = float(paths["window"].sel(time=slice(10.0, None)).max())
    assert most["sack"] < 105.0
    assert most["reno"] > 125.0


def test_vegas_shrinks_its_window_although_a_limit_keeps_packets_in_flight_below_it() -> None:
    """A late flow lengthens the queue, so the limited flow shrinks: no limit counts at the end.

    The late flow finds 65 - 60 = 5 packets in the queue. So 10/s + 3/(s - 5/c) is the capacity c.
    """
    limited, late = (
        exact("vegas", 0.06, alpha=a, beta=a, name=name, variant="paper", **more)
        for a, name, more in ((10.0, "first", {"max_window": 65.0}), (3.0, "late", {"start": 8.0}))
    )
    out = answer(Scenario((Link(1000.0, buffer=400.0),), (limited, late), run=Run(80.0, 40.0)))
    delay = max(np.roots([1000.0, -18.0, 0.05]))
    assert out.queue_mean[0] == pytest.approx(1000.0 * delay, rel=0.03)
    assert out.throughput[0] == pytest.approx(10.0 / delay, rel=0.03)
