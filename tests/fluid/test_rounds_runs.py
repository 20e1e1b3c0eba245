"""How many runs a default answer takes, and how long they are."""

import dataclasses
import subprocess
import sys

import numpy as np
import pytest
import scipy.stats

import vegasmodel as vm
from vegasmodel.engines.fluid.run import run as by_fluid
from vegasmodel.engines.rounds import answers, phases
from vegasmodel.engines.rounds import run as simulator
from vegasmodel.engines.rounds.answers import answer
from vegasmodel.engines.rounds.cycle import steady
from vegasmodel.engines.rounds.run import run
from vegasmodel.engines.starts import start_times
from vegasmodel.engines.tables import array
from vegasmodel.results import scatter
from vegasmodel.scenario import Flow, Link, Run, Scenario
from vegasmodel.status import Status

T_4 = 2.776  # Student's t, 0.975, 4 degrees of freedom, from a table


def _pair(**more: float) -> Scenario:
    """A Vegas and a SACK source whose senders wait.

    With this seed the first half of the first run gives the throughputs of the whole run.
    """
    flows = (Flow("vegas", 0.06, variant="ns2"), Flow("sack", 0.05, variant="ns2", **more))
    return Scenario((Link(500.0, buffer=20.0),), flows, run=Run(duration=60.0, warmup=20.0, seed=2))


def _locking(*more: Flow, runs: int | None = None) -> Scenario:
    """Two SACK sources that lock into phases if they do not wait, and further flows."""
    flows = tuple(Flow("sack", rtt, name=f"{rtt}", variant="ns2") for rtt in (0.043, 0.099))
    run = Run(duration=100.0, warmup=50.0, runs=runs)
    return Scenario((Link(1065.0, buffer=45.0),), (*flows, *more), run=run)


@pytest.mark.parametrize("part", [0.98, 1.02])
def test_runs_end_where_five_would_not_be_enough(part: float) -> None:
    """Of five runs with standard deviation s, the interval is T_4 s / sqrt(5) to either side."""
    s = part * 0.1 * np.sqrt(5.0) / T_4
    rates = 1.0 + s * np.array([[-1.0], [0.0], [1.0]])
    assert np.std(rates, ddof=1) == pytest.approx(s)
    assert not scatter.certain(rates)
    assert scatter.hopeless(rates) is (part > 1.0)
    assert not scatter.hopeless(rates[:2])


def test_a_half_that_differs_by_more_than_chance_does_not_suffice() -> None:
    """A drift of 2 % is small; of 10 % it is not, but the same pieces in turn do not drift."""
    sign = np.repeat([1.0, -1.0], 6)
    for d, suffices in ((0.01, True), (0.05, False)):
        drifting = 1.0 + d * sign[:, None]
        assert scatter.half_suffices(drifting) is suffices
        assert scatter.half_suffices(1.0 + d * np.tile([1.0, -1.0], 6)[:, None])
    rng = np.random.default_rng(5)
    passed = [scatter.half_suffices(rng.normal(1.0, 0.06, (12, 1))) for _ in range(2000)]
    # Student's t for independent pieces: 95 %
    assert 0.92 < np.mean(passed) < 0.98


@pytest.mark.parametrize("scatters", [0.03, 0.1, 0.3, 1.0])
def test_scatter_does_not_hide_a_difference_that_matters(scatters: float) -> None:
    """The half differs from the whole by a tenth; at most 2.5 % of all samples miss that."""
    rng = np.random.default_rng(7)
    drift = 1.0 + 0.1 * np.repeat([1.0, -1.0], 6)
    samples = drift + scatters * rng.normal(size=(4000, 12))
    missed = np.mean([scatter.half_suffices(pieces[:, None]) for pieces in samples])
    assert missed <= 0.025 + 3.0 * np.sqrt(0.025 * 0.975 / 4000)


def test_two_bursts_do_not_hide_that_a_flow_has_slowed_down() -> None:
    """Beside a flow that fills the link, a flow sends a third less, but for bursts in two pieces.

    The bursts make the pieces scatter so much that chance explains every difference.
    """
    slowing = np.repeat([25.0, 15.0], 6) + np.array([0, 0, 60, 0, 0, 0, 0, 0, 0, 60, 0, 0])
    assert not scatter.half_suffices(np.column_stack([1000.0 - slowing, slowing]))


def test_the_halves_of_many_flows_are_tested_together() -> None:
    """If each of 100 flows were tested by itself, about 5 would be outside their 95 % intervals."""
    rng = np.random.default_rng(6)
    passed = [scatter.half_suffices(rng.normal(1.0, 0.03, (12, 100))) for _ in range(400)]
    assert np.mean(passed) > 0.92
    assert not scatter.half_suffices(np.repeat([1.0, 0.9], 6)[:, None] * np.ones(100))


@pytest.mark.parametrize("slow", [1, 2, 3])
def test_a_slow_beginning_is_not_chance(slow: int) -> None:
    """The slow beginning is most of the scatter of all pieces, which would hide it."""
    pieces = np.tile([1.01, 0.99], 6)[:, None]
    assert scatter.half_suffices(pieces)
    pieces[:slow] *= 0.4
    assert not scatter.half_suffices(pieces)


def test_a_slow_first_third_of_the_measured_time_makes_all_runs_whole() -> None:
    """Vegas alone has timeouts after slow start; from then on it fills the link."""
    flow = Flow("vegas", 0.05514, variant="ns2", alpha=6.0, beta=18.0, delayed_ack=True)
    link = Link(551.9, buffer=6.0)
    found = answer(Scenario((link,), (flow,), run=Run(duration=20.0, warmup=2.0, seed=4190)))
    assert set(found.extra["durations"]) == {20.0}


def test_later_runs_are_the_first_halves_of_whole_runs() -> None:
    asked = _pair()
    found = answer(asked)
    lengths = found.extra["durations"]
    assert lengths[0] == 60.0
    assert set(lengths[1:]) == {40.0}
    whole = run(asked, starts=start_times(asked, 1), seed=2, samples=np.array([20.0, 40.0]))
    first_half = np.diff(whole.delivered, axis=0)[0] / 20.0
    assert found.extra["throughput_runs"][1] == pytest.approx(first_half, rel=1e-3)
    # counts are of the whole time
    assert found.acks.sum() == pytest.approx(40.0 * found.throughput.sum(), rel=0.02)


def test_runs_are_whole_where_flows_come_or_go_or_their_number_is_given() -> None:
    base = _pair()
    given = dataclasses.replace(base, run=dataclasses.replace(base.run, runs=2))
    for asked in (_pair(start=30.0), _pair(stop=50.0), given):
        assert set(answer(asked).extra["durations"]) == {60.0}


def test_chance_may_hide_a_phase_effect() -> None:
    """The answers of two SACK sources differ; with a wide interval it is not known."""
    asked = _locking()
    found = answer(asked)
    assert phases.effects(asked, found).holds is False
    unsure = dataclasses.replace(found, throughput_se=np.asarray(found.throughput))
    note = phases.effects(asked, unsure)
    assert note.holds is None
    assert "the difference may be due to chance" in note.detail


@pytest.mark.parametrize(
    ("off", "runs", "differs"),
    [(0.05, 3, False), (3.0, 3, None), (5.0, 3, True), (2.5, 20, True), (1.9, 20, None)],
)
def test_few_runs_show_a_phase_effect_only_beyond_students_t(
    monkeypatch: pytest.MonkeyPatch, off: float, runs: int, differs: bool | None
) -> None:
    """Student's t is 4.3 for 3 runs and 2.09 for 20; the runs without waits are all the same."""
    asked = _locking(runs=runs)
    error = 60.0
    found = vm.Prediction(
        "rounds", asked, np.array([500.0, 500.0]), throughput_se=np.full(2, error),
        extra={"durations": [asked.run.duration] * runs},
    )  # fmt: skip
    locked = vm.Prediction("rounds", asked, np.array([500.0, 500.0 - off * error]))
    monkeypatch.setattr(phases, "answer", lambda *_, **__: locked)
    holds = {True: False, False: True, None: None}[differs]
    assert phases.effects(asked, found).holds is holds


def test_waits_may_be_too_short_to_prevent_phase_effects(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits of a fifth of a transmission time change nothing here; the usual ones do."""
    base = _locking(runs=3)
    wait = 0.2 * base.usual_jitter(base.flows[0])
    asked = base.replace({"flow.send_jitter": wait})

    def made(scenario: vm.Scenario, **_: object) -> vm.Prediction:
        locked = scenario.jitter(scenario.flows[0]) <= wait
        rates = np.array([700.0, 300.0] if locked else [500.0, 500.0])
        durations = {"durations": [scenario.run.duration] * 3}
        return vm.Prediction(
            "rounds", scenario, rates, throughput_se=np.full(2, 1.0), extra=durations
        )

    monkeypatch.setattr(phases, "answer", made)
    note = phases.effects(asked, made(asked))
    assert note.holds is False
    longer, less = note.detail.split("; if they wait less, as here: ")
    assert longer.startswith("pkt/s if senders wait up to a packet's transmission time: ")
    assert "500" in longer
    assert "700" in less


def test_the_interval_of_a_difference_is_welchs() -> None:
    """The test of SciPy has the p-value 5 % at the interval's end, if its freedom is whole."""
    one, other = np.array([1.0, 2.0, 4.0]), np.array([3.0, 4.0, 6.0])
    errors = [float(each.std(ddof=1)) / np.sqrt(3) for each in (one, other)]
    moved = other - other.mean() + one.mean() + phases._reach(*errors, 3, 3)
    assert scipy.stats.ttest_ind(one, moved, equal_var=False).pvalue == pytest.approx(0.05)


def test_many_alike_flows_seldom_differ_by_chance() -> None:
    """In at most 5 % of 400 draws any of 40 flows differs, although all have one distribution."""
    asked = vm.Scenario((vm.Link(1000.0, buffer=20.0),), (Flow("sack", 0.05, count=40),))
    random = np.random.default_rng(30)

    def means(runs: int) -> tuple[np.ndarray, np.ndarray]:
        rates = random.normal(25.0, 10.0, (runs, 40))
        return rates.mean(0), rates.std(0, ddof=1) / np.sqrt(runs)

    alarms = 0
    for _ in range(400):
        (mean, error), (changed, other) = means(5), means(3)
        times = {"durations": [asked.run.duration] * 5}
        found = vm.Prediction("rounds", asked, mean, throughput_se=error, extra=times)
        alarms += phases._differ(found, changed, other, 3) is True
    assert alarms <= 0.05 * 400 + 2.0 * np.sqrt(0.05 * 0.95 * 400)


def test_a_flow_that_sends_at_no_time_that_counts_hides_no_phase_effect() -> None:
    """A Vegas source beside the two stops before the warm-up ends."""
    asked = _locking(Flow("vegas", 0.05, variant="ns2", stop=20.0))
    note = phases.effects(asked, answer(asked))
    assert note.holds is False
    assert "vegas 0;" in note.detail


def test_a_single_run_that_chance_decides_tells_of_no_phase_effect() -> None:
    """With ``runs = 1`` the scatter is not known, so no difference is more than chance."""
    asked = _locking(runs=1)
    assert phases.effects(asked, answer(asked)).holds is None


def test_a_comparison_that_fails_tells_of_no_phase_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = _pair()
    found = answer(asked)
    failed = dataclasses.replace(
        found, throughput=np.full(2, np.nan), extra=found.extra | {"status": "too many events"}
    )
    monkeypatch.setattr(phases, "answer", lambda *_, **__: failed)
    note = phases.effects(asked, found)
    assert note.holds is None
    assert "too many events" in note.detail


def test_runs_that_all_start_alike_do_not_tell_what_other_starts_would_give() -> None:
    """Of two Vegas sources of Linux the later one gets nearly all, whichever of them it is."""
    shares = []
    for starts in ((0.0, 1.0), (1.0, 0.0)):
        flows = tuple(
            Flow("vegas", 0.04, name=name, variant="linux", start=start)
            for name, start in zip("ab", starts, strict=True)
        )
        asked = Scenario((Link(1000.0),), flows, run=Run(duration=90.0, warmup=30.0))
        found = answer(asked)
        shares.append(found.shares["a"])
        held = {a.name: a.holds for a in found.assumptions}
        assert held["insensitive-to-starts"] is None
    assert shares[0] < 0.1
    assert shares[1] > 0.9
    run = dataclasses.replace(asked.run, start_jitter=2.0, runs=4, seed=2)  # draws both orders
    drawn = dataclasses.replace(asked, run=run)
    held = {a.name: a.holds for a in answer(drawn).assumptions}
    assert held["insensitive-to-starts"] is False


@pytest.mark.parametrize(
    ("law", "size", "packet", "delayed", "measured"),
    [
        ("vegas", "1 MB", "1500 B", False, 467.61076837),
        ("reno", "100 kB", "1500 B", False, 236.24823695),
        ("reno", "100 pkt", "1000 B", False, 323.83419689),
        ("reno", "11 pkt", "1000 B", True, 54.67196819),
        ("cubic", "30 pkt", "1000 B", True, 78.20646507),
    ],
)
def test_a_flow_of_finite_size_ends_when_it_does_in_ns2(
    law: str, size: str, packet: str, delayed: bool, measured: float
) -> None:
    """ns-2 sends whole packets, and its sink acknowledges packet 0 at once (SYN_immediate_ack_)."""
    capacity, buffer = ("20 Mbit/s", "1000 pkt") if delayed else ("10 Mbit/s", "20 pkt")
    flow = vm.Flow(law, "40 ms", variant="ns2", size=size, delayed_ack=delayed, send_jitter=0.0)
    link, length = vm.Link(capacity=capacity, buffer=buffer), vm.Run(duration=600.0, warmup=0.0)
    scenario = vm.Scenario(links=(link,), flows=(flow,), packet_size=packet, run=length)
    assert answer(scenario).throughput[0] == pytest.approx(measured, rel=1e-6)


def test_a_run_that_fails_is_the_last_and_its_answer_is_a_reason_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """CUBIC's window grows for ever in an infinite buffer, until the simulator has no more room."""
    flow = vm.Flow("cubic", "40 ms", variant="linux")
    case = vm.Scenario([vm.Link("250 pkt/s")], [flow], run=vm.Run("600 s", "200 s", runs=4))
    tried: list[int] = []
    monkeypatch.setattr(answers, "run", lambda *a, **k: tried.append(1) or run(*a, **k))
    found = vm.predict(case, "rounds")
    assert len(tried) == 1
    assert (found.applicable, found.assumptions) == (False, ())
    assert "nothing ends the growth" in found.reason
    assert "give a buffer or a max_window" in found.reason


@pytest.mark.parametrize(
    ("queue", "endless"),
    [
        (vm.RateDelay(delay_buffer=0.1), True),
        (vm.RateDelay(delay_buffer=1.0), False),  # class R has no buffer
        (vm.Red(5.0, 15.0), False),
    ],
)
def test_an_infinite_buffer_of_a_rate_delay_router_loses_nothing(
    queue: vm.RateDelay | vm.Red, *, endless: bool
) -> None:
    link = vm.Link("250 pkt/s", queue=queue)
    assert link.lossless is endless
    case = vm.Scenario([link], [vm.Flow("reno", "40 ms")], run=vm.Run("600 s", "200 s"))
    if endless:
        found = vm.predict(case, "rounds")
        assert found.loss_rate.tolist() == [0.0]
        (growth,) = (one for one in found.assumptions if one.name == "losses-end-growth")
        assert growth.holds is False
        plain = vm.predict(case.replace(links=(vm.Link("250 pkt/s"),)), "rounds")
        assert found.queue_mean == pytest.approx(plain.queue_mean, rel=1e-3)


_MANY_FLOWS = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
import vegasmodel as vm
link = vm.Link("100 Mbit/s", buffer=3125.0, queue=vm.RateDelay(delay_buffer=0.05))
flows = [vm.Flow(law, "300 ms", count=400, access=25000.0) for law in ("newreno", "vegas")]
print(vm.predict(vm.Scenario([link], flows, run=vm.Run("2 s", "1 s")), "rounds").applicable)
"""


def test_many_flows_reserve_less_memory_than_a_computer_has() -> None:
    """Each flow's packets may fill the buffer, but not those of all flows at once."""
    told = subprocess.run(
        [sys.executable, "-c", _MANY_FLOWS], capture_output=True, text=True, check=False
    )
    assert told.stdout == "True\n", told.stderr


@pytest.mark.parametrize("runs", [0, -1])
def test_there_is_at_least_one_run(runs: int) -> None:
    scenario = Scenario((Link(500.0, buffer=20.0),), (Flow("reno", 0.05, variant="ns2"),))
    for simulate in (answers.answer, by_fluid):
        with pytest.raises(
            ValueError, match=rf"runs: {runs} is not allowed; a whole number from 1"
        ):
            simulate(scenario, runs=runs)


@pytest.mark.parametrize("samples", [0, 500])
def test_pauses_change_nothing(samples: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random numbers, samples and ns-2's rounding go on after a pause as without one."""
    whole = simulator.run(_pair(), samples=samples)
    monkeypatch.setattr(simulator, "PAUSE", 97)
    paused = simulator.run(_pair(), samples=samples)
    assert paused.events == whole.events > 100 * 97
    for name in whole.flows.dtype.names:
        np.testing.assert_array_equal(paused.flows[name], whole.flows[name])
    for name in ("times", "per_flow", "queues"):
        np.testing.assert_array_equal(getattr(paused, name), getattr(whole, name))


@pytest.mark.parametrize("kind", ["drop-tail", "sizes", "rate-delay", "red", "two links"])
def test_samples_change_nothing(kind: str) -> None:
    """A sample only reads: flows, queues and the number of events are the same to the last bit."""
    flows = [Flow("cubic", 0.02, count=3, variant="ns2"), Flow("vegas", 0.06, count=2)]
    links = [Link(1000.0, buffer=25.0)]
    if kind == "sizes":
        flows[1] = dataclasses.replace(flows[1], packet_size=300.0)
    elif kind == "rate-delay":
        links = [Link(1000.0, buffer=25.0, queue=vm.RateDelay(delay_buffer=0.2))]
    elif kind == "red":
        links = [Link(1000.0, buffer=25.0, queue=vm.Red(5.0, 15.0, ecn=True))]
    elif kind == "two links":
        links = [Link(1000.0, buffer=25.0, name="a"), Link(900.0, buffer=20.0, name="b")]
        flows = [dataclasses.replace(flow, path=("a", "b")) for flow in flows]
    case = Scenario(tuple(links), tuple(flows), run=Run(duration=12.0, warmup=5.0))
    whole = simulator.run(case)
    for samples in (7, 1001):
        sampled = simulator.run(case, samples=samples)
        assert sampled.events == whole.events > 1000
        for name in whole.flows.dtype.names:
            np.testing.assert_array_equal(sampled.flows[name], whole.flows[name], name)
        for name in set(whole.routes.links.dtype.names) - {"sampled"}:
            of = (sampled.routes.links[name], whole.routes.links[name])
            np.testing.assert_array_equal(*of, name)


def test_pauses_change_no_steady_state(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = _pair().replace({"flow.sack.rtt": 0.06})
    whole = steady(scenario)
    monkeypatch.setattr(simulator, "PAUSE", 97)
    paused = steady(scenario)
    assert paused.kind == whole.kind
    for name in ("period", "throughput", "window", "rtt_mean", "queue_mean", "residual"):
        np.testing.assert_array_equal(getattr(paused, name), getattr(whole, name))


def test_a_run_has_a_greatest_number_of_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulator, "PAUSE", 100)
    monkeypatch.setattr(simulator, "MOST_EVENTS", 1000)
    found = simulator.run(_pair())
    assert found.status == Status.TOO_MANY_EVENTS
    assert 1000 < found.events <= 1100


def test_a_run_fails_if_a_count_is_not_a_number() -> None:
    simulation = simulator.Simulation(_pair())
    assert simulation.proceed()[0] == Status.DONE
    simulation = simulator.Simulation(_pair())
    simulation.routes.links["queue"] = np.nan
    assert simulation.proceed()[0] == Status.NOT_A_NUMBER


def test_a_run_fails_if_a_sender_waits_for_nothing() -> None:
    """Half a packet is left, which no sender sends.  (The sizes of scenarios are whole packets.)"""
    for left, status in ((0.0, Status.DONE), (0.5, Status.STALLED)):
        simulation = simulator.Simulation(_pair(max_window=1.0))
        array(simulation.net.flows)["size"] = 10.0 + left
        assert simulation.proceed()[0] == status


def test_a_run_that_fails_gives_no_throughput(monkeypatch):
    """It is stopped after 100 events, in its first second."""
    case = Scenario((Link(1000.0, buffer=20.0),), (Flow("reno", 0.1), Flow("vegas", 0.1)))
    monkeypatch.setattr(simulator, "PAUSE", 100)
    monkeypatch.setattr(simulator, "MOST_EVENTS", 50)
    found = answer(case, runs=2)
    assert np.isnan(found.throughput).all()
    assert np.isnan(found.extra["throughput_runs"]).all()
    assert found.extra["status"] == Status.TOO_MANY_EVENTS.reason
    assert found.extra["runs"] == 1  # no further run is made


def test_the_scenarios_seed_decides_the_waits_of_a_run():
    """Nothing else differs from run to run: no packet is lost, so no timer expires."""
    flows = [Flow("vegas", rtt, f"{rtt}", variant="ns2") for rtt in (0.1, 0.05)]
    run = Run(duration=30.0, warmup=10.0)
    rates = [
        answer(
            Scenario([Link(500.0)], flows, run=dataclasses.replace(run, seed=seed)),
            runs=2,
        ).extra["throughput_runs"]
        for seed in (1, 1, 2)
    ]
    np.testing.assert_array_equal(rates[0], rates[1])
    assert np.all(rates[0][0] != rates[0][1])  # two runs of one seed
    assert all(np.any(one != other) for one in rates[2] for other in rates[0])


def test_a_queue_that_is_full_but_for_a_rounding_error_has_a_finite_mean():
    """The mean was NaN: the queue was full, and neither grew nor fell, so 0 was divided by."""
    flows = [Flow("vegas", 0.04), Flow("reno", 0.04)]
    case = Scenario([Link(1000.0, buffer=20.0)], flows, run=Run(duration=60.0, warmup=20.0))
    found = answer(case, parts=3, runs=1)
    assert 0.0 < found.queue_mean[0] < 20.0
