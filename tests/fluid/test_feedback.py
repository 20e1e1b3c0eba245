"""The fluid with feedback delay against closed forms, two other integrators and the plain fluid."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fluid.scenes import reno, scenario, steady_state, vegas
from vegasmodel.engines.delayed import feedback
from vegasmodel.engines.delayed.integrator import Event, integrate
from vegasmodel.engines.fluid import continuous
from vegasmodel.scenario import Drop, Flow, Red
from vegasmodel.simulation import simulate


def test_the_cycle_of_one_reno_source_in_closed_form():
    # The queue never empties, so N = c t and W^2 grows by 2 c t.  The buffer overflows when packets
    # sent at W = cT + B + 1 reach it.  The sender hears of this after T + s_max, in which one
    # packet is lost.
    c, T, B = 1000.0, 0.05, 80.0
    full = c * T + B + 1
    top = math.sqrt(full**2 + 2 * full)  # window when the news comes
    lost = top - full
    period = (0.375 * top**2 - lost) / c  # the lost ones are heard of too
    run = feedback.run(scenario([reno(T)], c, B, 80.0, 20.0), 8001)
    later = run.time > 20.0
    t, W = run.time[later], run.window[later, 0]
    assert W.max() == pytest.approx(top, abs=0.2)  # a sample is 10 ms, a window grows 0.08 in it
    cuts = np.flatnonzero(np.diff(W) < -20.0)
    i = cuts + 20  # 0.2 s later the lost ones have been heard of
    begun = t[i] - (W[i] ** 2 - (top / 2) ** 2) / (2 * c)
    np.testing.assert_allclose(np.diff(begun), period, atol=1e-5)
    np.testing.assert_allclose(np.diff(run.lost[later][i, 0]), lost, atol=1e-5)
    assert run.queue.max() == pytest.approx(B + 1, abs=1e-9)
    assert run.throughput[0] == pytest.approx(c, rel=1e-9)


def test_how_much_of_the_past_is_stored_changes_no_bit(monkeypatch):
    """A run stops to make room for more of the past, and goes on from the same state."""
    flows = [vegas(2, rtt=0.02), reno(0.035, name="near"), reno(0.6, name="far")]
    case = scenario(flows, 1000.0, 20.0, 40.0, 10.0, queue=Red(5, 15, max_probability=0.1))
    often = []
    room = feedback.room
    monkeypatch.setattr(feedback, "room", lambda *past: often.append(1) or room(*past))
    whole = feedback.run(case, 777)
    few = len(often)
    monkeypatch.setattr(feedback, "ROOM", 1)
    pieces = feedback.run(case, 777)
    assert len(often) > few + 10
    for name in ("window", "rtt", "sent", "lost", "queue", "throughput", "rtt_mean", "cuts"):
        np.testing.assert_array_equal(getattr(pieces, name), getattr(whole, name))


def test_the_limit_cycle_of_vegas_agrees_with_the_general_integrator():
    # One source, busy link: the state consists of W, the delay s that its ACK reports, and m = +-1.
    # s(u) follows W(u - f), so s' = g/(1 + g), where g is W'/c a round trip T + s earlier.
    c, T, alpha = 1000.0, 0.06, 4.0
    case = scenario([vegas(alpha, rtt=T, over_estimate=0.0)], c, math.inf, 8.0, 0.0)
    run = feedback.run(case, 801, step=1 / 128)
    j = 120  # after slow start the window falls: m = -1 for longer than a round trip
    t0, W0, s0 = run.time[j], run.window[j, 0], run.rtt[j, 0] - T

    def past(t):
        return np.array([math.sqrt(W0**2 - 2 * c * (t - t0)), s0, -1.0])

    def right(t, y, z):
        g = z[0, 2] / z[0, 0]
        return np.array([c * y[2] / y[0], g / (1 + g), 0.0])

    def excess(t, y):
        return y[0] * y[1] / (T + y[1]) - alpha

    def turn(m):
        return lambda t, y: np.array([y[0], y[1], m])

    found = integrate(
        right, (t0, 8.0), past, [lambda t, y, _: T + y[1]], sample=run.time[j:],
        events=[Event(excess, 1, turn(-1.0)), Event(excess, -1, turn(1.0))],
        rtol=1e-8, atol=1e-9, keep=0.5, max_step=0.03,
    )  # fmt: skip
    assert found.success
    assert len(found.events) > 50
    np.testing.assert_allclose(run.window[j:, 0], found.sample[:, 0], atol=1e-4)
    np.testing.assert_allclose(run.rtt[j:, 0] - T, found.sample[:, 1], atol=1e-7)


@pytest.mark.filterwarnings("ignore")
def test_agrees_with_jitcdde_and_is_of_second_order():
    # Reno under random loss with a queue of hundreds of packets that drains
    jitcdde = pytest.importorskip("jitcdde")
    y, t = jitcdde.y, jitcdde.t
    c, T, p = 1000.0, 0.06, 1e-3
    acks, q = c / (1 - p), p / 2
    case = scenario([reno(T)], c, math.inf, 6.0, 0.0, loss=p)
    errors = []
    for step in (1 / 16, 1 / 32, 1 / 64):
        run = feedback.run(case, 601, step=step)
        j = 350
        W0, s0 = run.window[j, 0], run.rtt[j, 0] - T

        def past(u, W0=W0, s0=s0):
            return np.array([math.sqrt(2 / p + (W0**2 - 2 / p) * math.exp(-2 * q * acks * u)), s0])

        delayed = y(0, t - T - y(1))
        g = (1 - p) / c * acks * (1 / delayed - q * delayed)
        slopes = [acks * (1 / y(0) - q * y(0)), g / (1 + g)]
        system = jitcdde.jitcdde(slopes, max_delay=2.0, verbose=False)
        system.past_from_function(past)
        system.set_integration_parameters(rtol=1e-9, atol=1e-10)
        system.generate_lambdas(simplify=False)
        system.initial_discontinuities_handled = True
        steps = np.arange(j + 10, 561, 50)
        theirs = np.array([system.integrate(run.time[k] - run.time[j]) for k in steps])
        errors.append(np.abs(theirs[:, 0] - run.window[steps, 0]).max())
        assert theirs[0, 1] - theirs[-1, 1] > 0.08  # seconds by which the delay itself moves
        np.testing.assert_allclose(run.rtt[steps, 0] - T, theirs[:, 1], atol=2e-7)
    assert errors[-1] < 1e-5
    for coarse, fine in itertools.pairwise(errors):
        assert 3.5 < coarse / fine < 4.5


def naive(T, way, c, h, end):
    """(D1) to (D3) in slow start, dW = dN, by Euler steps over whole arrays without event location.

    Returns the packets sent and the queue at ``end``.
    """
    n, back, steps = T.size, 2 * round(T.max() / h), round(end / h)
    time = np.arange(-back, steps + 1) * h
    sent, came = np.zeros((n, time.size)), np.zeros((n, time.size))
    s = np.zeros(time.size)
    for k in range(back, time.size - 1):
        now, old, new = time[k] + h, slice(k + 1), slice(k + 2)
        came[:, k + 1] = [np.interp(now - way[i], time[old], sent[i, old]) for i in range(n)]
        rate = (came[:, k + 1] - came[:, k]).sum() / h
        s[k + 1] = max(s[k] + h * (rate / c - 1.0), 0.0)
        for i in range(n):
            acked = np.interp(now - T[i] + way[i], time[new] + s[new], came[i, new])
            sent[i, k + 1] = max(sent[i, k], now / T[i] if now < T[i] else 2.0 * acked + 1.0)
    return np.append(sent[:, -1], c * s[-1])


def test_two_sources_agree_with_a_naive_integration():
    # slow start of two sources with round trips of their own, up to a queue of 105 packets
    case = scenario([reno(0.05, name="a"), reno(0.08, name="b")], 500.0, math.inf, 0.5, 0.0)
    way = [feedback.to_first_link(case, member) for member in case.members]
    rough = [naive(np.array([0.05, 0.08]), way, 500.0, h, 0.5) for h in (4e-4, 1e-4)]
    run = feedback.run(case, 2, step=1 / 1024)
    found = np.append(run.sent[-1], run.queue[-1, 0])
    assert np.abs(found - rough[1]).max() < 0.4 * np.abs(found - rough[0]).max()
    np.testing.assert_allclose(found, rough[1], rtol=5e-4)
    assert found[-1] > 100


def test_random_starts_are_those_of_the_other_simulators():
    case = scenario([vegas(), reno()], duration=5.0, warmup=1.0).replace({"run.start_jitter": 3.0})

    def begun(model):
        window = simulate(case, model, samples=5001)["window"].values
        return (window > 0).argmax(axis=0) * 1e-3

    found = begun("delayed")
    np.testing.assert_allclose(found, begun("fluid"), atol=2e-3)
    assert found.min() > 0.1
    assert np.ptp(found) > 0.1


@pytest.mark.parametrize("kind", ["vegas and reno", "two reno"])
def test_it_tends_to_the_plain_fluid_as_a_round_trip_moves_windows_less(kind):
    # With k times the capacity, buffer and threshold, windows are k times as large.  They still
    # change by a packet per round trip, so every process takes k times as many round trips.
    apart = []
    for k in (1.0, 2.0, 4.0):
        both = (
            [vegas(3.0 * k), reno()]
            if kind == "vegas and reno"
            else [reno(0.05), reno(0.13, name="b")]
        )
        case = scenario(both, 1000.0 * k, 30.0 * k, 600.0 * k, 200.0 * k)
        plain, late = continuous.run(case), feedback.run(case, 2, step=1 / 16)
        apart.append(np.abs(late.throughput / plain.throughput - 1.0).max())
    assert apart[0] > 0.02
    for wide, near in itertools.pairwise(apart):
        assert 1.6 < wide / near < 2.4


def test_vegas_that_the_delay_lets_rest_is_at_the_steady_state_equation():
    # the thresholds' slope over the sum of windows is below 1: no cycle
    x, T, c, alpha = np.array([0.0, 0.01]), np.array([0.08, 0.08]), 60.0, 5.0
    flows = [vegas(alpha, rtt=0.08, name=f"v{i}", over_estimate=float(v)) for i, v in enumerate(x)]
    run = feedback.run(scenario(flows, c, math.inf, 200.0, 100.0), 1001)
    rates = steady_state([alpha] * 2, x, c)
    windows = np.tile(rates * (T + alpha / rates + x), (501, 1))
    np.testing.assert_allclose(run.window[500:], windows, rtol=1e-9)
    # the ACK clock keeps packets in bunches: counts over 100 s are off by less than one
    assert np.abs(run.throughput - rates).max() * 100.0 < 1.0


@settings(deadline=None, max_examples=12, derandomize=True)
@given(
    c=st.floats(200, 3000),
    T=st.lists(st.floats(0.03, 0.2), min_size=1, max_size=5),
    alpha=st.floats(2, 5),
    x=st.floats(0.0, 1.0),
)
def test_vegas_cycles_about_the_steady_state_equation(c, T, alpha, x):
    # the window follows the queue of a round trip ago by a packet each way, so after the start the
    # mean is off only by terms of second order in 1/W
    over = [x * alpha / c * i for i in range(len(T))]
    flows = [vegas(alpha, rtt=rtt, name=f"v{i}", over_estimate=over[i]) for i, rtt in enumerate(T)]
    run = feedback.run(scenario(flows, c, math.inf, 240.0, 120.0), 2)
    expected = steady_state([alpha] * len(T), over, c)
    np.testing.assert_allclose(run.throughput, expected, rtol=0.02)


def test_one_vegas_source_swings_by_a_packet_each_way():
    # its threshold is steep in the queue (cT/alpha = 70), so the window runs on for the round
    # trip that the news takes: a packet
    run = feedback.run(scenario([vegas(3.0, rtt=0.1)], 2100.0, math.inf, 200.0, 100.0), 20001)
    assert np.ptp(run.window[10000:]) / 2 == pytest.approx(1.0, abs=0.05)


def balance(run, flows, way, c):
    """Number of packets unaccounted for at the end, for each flow and in the queue."""
    past, t = run.past, run.past.time[-1]
    u = np.array(
        [np.interp(t - T + f, past.exit, past.time) for T, f in zip(flows, way, strict=True)]
    )
    head = np.interp(t, past.exit, past.time)  # when what leaves the queue now came
    rows = []
    for i in range(len(flows)):
        came = past.arrived[:, i]
        parts = (
            past.sent[-1, i] - came[-1],  # on the way to the queue
            came[-1] - np.interp(head, past.time, came),  # in it, or dropped there
            np.interp(head, past.time, came) - np.interp(u[i], past.time, came),  # and back
            run.delivered[-1, i],
        )
        heard = np.interp(u[i], past.time, past.lost[:, i])
        rows.append(past.sent[-1, i] - heard - sum(parts))
    kept = past.arrived - past.lost
    waiting = sum(kept[-1, i] - np.interp(head, past.time, kept[:, i]) for i in range(len(flows)))
    return np.array([*rows, waiting - c * past.delay[-1]])


@settings(deadline=None, max_examples=40, derandomize=True)
@given(
    c=st.floats(100, 5000),
    T=st.lists(st.floats(0.02, 0.3), min_size=1, max_size=5),
    B=st.floats(3, 200),
    laws=st.integers(0, 31),
    variant=st.sampled_from(["paper", "ns2", "linux"]),
    losers=st.sampled_from(continuous.LOSERS),
    loss=st.sampled_from([0.0, 0.01]),
)
def test_invariants(c, T, B, laws, variant, losers, loss):
    flows = [
        vegas(2.0, 3.0, rtt, name=f"f{i}", variant=variant, start=0.7 * i)
        if laws >> i & 1
        else reno(rtt, name=f"f{i}", start=0.7 * i)
        for i, rtt in enumerate(T)
    ]
    case = scenario(flows, c, B, 20.0, 10.0, loss=loss)
    run = feedback.run(case, losers=losers)
    for values in (run.window, run.rtt, run.sent, run.delivered, run.lost, run.queue):
        assert np.all(np.isfinite(values))
        assert np.all(values >= 0)
    for count in (run.sent, run.delivered, run.lost):
        assert np.diff(count, axis=0).min() >= -1e-9 * c
    assert run.queue.max() <= B + 1 + 1e-9
    assert run.delivered[-1].sum() <= c * 20.0
    whole = min(T) / 32
    way = np.array([feedback.to_first_link(case, m) for m in case.members])
    way = np.clip(way, whole, np.array(T) - whole)
    assert np.abs(balance(run, T, way, c)).max() <= 1e-9 * run.sent[-1].sum()


def test_only_the_longest_round_trip_is_kept():
    sizes = []
    for duration in (40.0, 400.0):
        case = scenario([vegas(), reno(0.2, name="r")], duration=duration, warmup=10.0)
        past = feedback.run(case, 2).past
        assert past.time[-1] - past.time[0] < 5 * 0.22
        sizes.append(past.time.size)
    assert max(sizes) <= 1024


def test_starts_stops_and_losses_at_random():
    flows = [vegas(start=5.0, stop=20.0, name="late"), reno(name="first")]
    run = feedback.run(scenario(flows, 1080.0, math.inf, 40.0, 0.0, loss=1e-3), 401)
    on = (run.time > 5.0) & (run.time <= 20.0)
    assert np.all(run.window[on, 0] > 0)
    assert np.all(run.window[~on, 0] == 0)
    assert np.ptp(run.sent[run.time > 20.1, 0]) == 0
    assert run.sent[-1, 0] - run.delivered[-1, 0] - run.lost[-1, 0] == pytest.approx(0, abs=1e-9)
    np.testing.assert_allclose(run.lost[-1] / run.sent[-1], 1e-3, rtol=0.02)


def test_reno_under_random_loss_rests_at_the_square_root_of_two_over_p():
    # Misra, Gong and Towsley: 1/W = p W/2
    run = feedback.run(scenario([reno()], 3000.0, math.inf, 120.0, 60.0, loss=1e-3), 2)
    assert run.window[-1, 0] == pytest.approx(math.sqrt(2 / 1e-3), rel=1e-3)


def test_reds_average_falls_while_the_link_is_idle():
    # Floyd and Jacobson 1993: as if the link had sent c packets per second, none of which waited
    c, w = 100.0, 1e-3
    queue = Red(min_threshold=5, max_threshold=50, max_probability=0.1, weight=w)
    flow = reno(stop=10.0)

    def average(end):
        return feedback.run(scenario([flow], c, 100.0, end, 0.0, queue=queue), 2).past.mean[-1]

    assert average(20.0) > 1.0
    assert average(25.0) / average(20.0) == pytest.approx((1 - w) ** (5.0 * c), rel=1e-9)


def test_red_that_dropped_all_packets_lets_some_pass_again():
    # slow start brings RED's average above the threshold at which RED drops every packet; at the
    # small windows that are left, arrivals alone would bring it down only after the end of the run
    queue = Red(3.4618, 11.1317, 0.2849, weight=0.0016882)
    flow = reno(0.28829, variant="ns2")
    run = feedback.run(scenario([flow], 1083.0, 263.0, 40.0, 10.0, queue=queue), 2)
    assert run.throughput[0] == pytest.approx(284.0, rel=0.25)  # ns-2 2.35: 284 +- 24


def test_trajectories_with_delay():
    case = scenario([vegas(), reno()], duration=60.0, warmup=20.0)
    data = simulate(case, "delayed", samples=601)
    assert data.attrs["model"] == "delayed"
    assert float(data["base_rtt"][-1, 0]) == pytest.approx(0.08, abs=1e-6)
    assert np.isnan(data["base_rtt"][:, 1]).all()
    # 80 ms later everything sent is on the way no more
    ahead = data["rate"].cumsum("time")[-1] * 0.1 - data["delivered"][-1] - data["lost"][-1]
    assert np.all(ahead >= 0)
    assert np.all(ahead <= data["window"].max("time") + 1)


@pytest.mark.parametrize(("variant", "said"), [("paper", ""), ("ns2", "whole-stack")])
def test_trajectories_with_delay_say_that_windows_change_continuously(
    variant: str, said: str
) -> None:
    """In ns-2 Vegas changes its window once per round trip; this simulator ignores that."""
    case = scenario([vegas(variant=variant)], duration=20.0, warmup=5.0)
    assert simulate(case, "delayed", samples=50).attrs["left_out"] == said


@pytest.mark.parametrize(
    ("model", "law", "variant", "reason"),
    [
        ("fluid", "tahoe", "paper", "Tahoe starts again from one packet; with variant"),
        ("fluid", "tahoe", "ns2", ""),  # this form of fluid includes each law's recovery
        ("delayed", "newreno", "paper", "NewReno repairs one lost packet a round trip"),
        ("delayed", "newreno", "linux", "packets in a round trip (linux has SACK)"),
    ],
)
def test_trajectories_say_whose_recovery_the_equations_lack(
    model: str, law: str, variant: str, reason: str
) -> None:
    flows = [vegas(variant=variant), Flow(law, 0.08, variant=variant)]
    data = simulate(scenario(flows, duration=20.0, warmup=5.0), model, samples=50)
    assert data["lost"][-1, 1] > 0
    assert ("recovery-as-taken" in data.attrs["left_out"].split(", ")) == bool(reason)
    assert reason in data.attrs["left_out_reasons"]


@pytest.mark.parametrize("model", ["rounds", "fluid", "delayed"])
@pytest.mark.parametrize("variant", ["paper", "ns2"])
def test_trajectories_show_the_base_rtt_that_the_scenario_fixes(model: str, variant: str) -> None:
    given = vegas(rtt=0.06, over_estimate=0.003, stop=15.0, variant=variant)
    measured = vegas(rtt=0.06, start=5.0, name="late", variant=variant)
    case = scenario([given, measured], duration=20.0, warmup=10.0)
    base = simulate(case, model, samples=201)["base_rtt"].values
    np.testing.assert_allclose(base[5:, 0], 0.063, rtol=0, atol=1e-12)  # also after it has stopped
    assert np.isnan(base[:50, 1]).all()
    assert 0.06 <= base[70, 1] < 0.07


def test_what_the_model_has_no_equation_for_is_refused():
    for bad in (
        scenario([vegas()], queue=Red(min_threshold=5.0, max_threshold=15.0, ecn=True)),
        scenario([vegas()], drops=(Drop("vegas", (3,)),)),
        scenario([vegas(direction="reverse")]),
    ):
        with pytest.raises(ValueError, match="the simulator `delayed` does not simulate"):
            feedback.run(bad)
    with pytest.raises(ValueError, match="the window of tahoe starts again from one packet"):
        simulate(scenario([vegas(), Flow("tahoe", 0.1)]), "delayed")
    with pytest.raises(ValueError, match="the simulator `delayed` does not know the law cubic"):
        feedback.run(scenario([vegas(), Flow("cubic", 0.1)]))
    with pytest.raises(ValueError, match="at most 3e\\+09 steps"):
        feedback.run(scenario([vegas(rtt=1e-6)], 1e12, delay=0.0))
    for options in ({"losers": "nobody"}, {"samples": 1}, {"step": 0.0}, {"step": 1.0}):
        with pytest.raises(ValueError, match=rf"^{next(iter(options))}: "):
            feedback.run(scenario([vegas()]), **options)


def test_a_throughput_is_a_mean_over_the_time_in_which_the_flow_is_active():
    """The second flow stops after 10 of the 40 s; the curves tell what it delivers in them."""
    flows = [vegas(name="a"), vegas(name="b", stop=30.0)]
    case = scenario(flows, 500.0, 50.0, duration=60.0, warmup=20.0)
    found = feedback.run(case, samples=61)
    delivered = found.delivered[60] - found.delivered[20]
    assert found.throughput == pytest.approx(delivered / [40.0, 10.0], rel=0.02)
    assert found.throughput[1] == pytest.approx(250.0, rel=0.5)
