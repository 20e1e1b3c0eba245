"""Laws of random loss against simulations of their premises, mpmath and known limits."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vegasmodel as vm
from vegasmodel.equilibrium import loss_peaks, rate_delay
from vegasmodel.equilibrium import random_loss as rl
from vegasmodel.equilibrium.loss_rounds import LAWS
from vegasmodel.status import Status

CHECKED = settings(deadline=None, max_examples=25, derandomize=True)
laws = st.sampled_from(sorted(LAWS))
probability = st.floats(1e-4, 0.3)
methods = st.sampled_from(["rounds", "pftk", "square-root"])


@pytest.mark.parametrize("decrease", [0.0, 0.5, 0.75, 0.9])
def test_random_factor_is_the_mean_root_of_the_fixed_point_in_law(decrease):
    """V = d^2 V + E is simulated; and the product is computed to 30 digits."""
    rng = np.random.default_rng(7)
    v = np.ones(200_000)
    for _ in range(2 if decrease == 0 else math.ceil(-16 / math.log(decrease) / 2)):
        v = decrease**2 * v + rng.exponential(size=v.size)
    exact = mpmath.sqrt(mpmath.pi) / 2
    if decrease:
        d = mpmath.mpf(decrease)
        exact *= mpmath.nprod(
            lambda k: (1 - d ** (2 * k + 1)) / (1 - d ** (2 * k)), [1, mpmath.inf]
        )
    assert rl.random_factor(decrease) == pytest.approx(float(exact), rel=1e-9)
    assert np.sqrt(v).mean() == pytest.approx(float(exact), rel=0.005)


def test_square_root_constants():
    assert rl.square_root(1.0, 1.0, losses="periodic") == pytest.approx(math.sqrt(1.5))
    assert rl.square_root(1.0, 1.0) == pytest.approx(1.3098, abs=5e-5)  # Ott, Kemperman, Mathis
    assert rl.square_root(0.0, 1.0) == math.inf


def test_periodic_law_counts_a_sawtooth():
    windows = np.arange(3000, 4001)
    rate = windows.sum() / windows.size / 0.1
    assert rl.square_root(1 / windows.sum(), 0.1, 1, 0.75, "periodic") == pytest.approx(
        rate, rel=1e-3
    )


def _pftk_printed(p, rtt, timeout, b, limit):
    """Padhye and others (1998), equation (32), for one set of numbers."""
    window = (2 + b) / (3 * b) + math.sqrt(8 * (1 - p) / (3 * b * p) + ((2 + b) / (3 * b)) ** 2)

    def q(w):
        top = (1 - (1 - p) ** 3) * (1 + (1 - p) ** 3 * (1 - (1 - p) ** (w - 3)))
        return min(1, top / (1 - (1 - p) ** w)) if w > 3 else 1

    f = 1 + p + 2 * p**2 + 4 * p**3 + 8 * p**4 + 16 * p**5 + 32 * p**6
    if window < limit:
        top = (1 - p) / p + window + q(window) / (1 - p)
        return top / (rtt * (b / 2 * window + 1) + q(window) * timeout * f / (1 - p))
    top = (1 - p) / p + limit + q(limit) / (1 - p)
    rounds = b / 8 * limit + (1 - p) / (p * limit) + 2
    return top / (rtt * rounds + q(limit) * timeout * f / (1 - p))


@pytest.mark.parametrize("p", [1e-4, 0.01, 0.05, 0.3])
@pytest.mark.parametrize("b", [1, 2])
@pytest.mark.parametrize("limit", [6.0, 33.0, 1e9])
def test_pftk_is_the_published_one(p, b, limit):
    assert rl.pftk(p, 0.2, 1.5, b, limit) == pytest.approx(
        _pftk_printed(p, 0.2, 1.5, b, limit), rel=1e-12
    )


def test_pftk_tends_to_the_periodic_square_root_law():
    for decrease in (0.5, 0.75):
        ratio = rl.pftk(1e-9, 0.1, 0.3, 2, math.inf, decrease) / rl.square_root(
            1e-9, 0.1, 2, decrease, "periodic"
        )
        assert ratio == pytest.approx(1.0, abs=1e-3)


def test_chain_tends_to_the_random_square_root_law():
    for law, decrease in (("sack", 0.5), ("vegas", 0.75)):
        rate = rl.throughput(rl.Sender(law, 0.1), 1e-6)
        assert rate == pytest.approx(float(rl.square_root(1e-6, 0.1, 1, decrease)), rel=0.03)


@CHECKED
@given(laws, methods, probability, st.floats(1.05, 3.0), st.floats(0.0, 0.2))
def test_goodput_falls_with_loss_and_with_delay(law, method, p, more, queueing):
    flow = rl.Sender(law, 0.05, max_window=40.0 if method != "pftk" else math.inf, timeout=0.3)
    rate = rl.throughput(flow, p, 500.0, 20.0, queueing, method)
    assert rate <= 500.0 * (1 + 1e-9)
    assert rl.throughput(flow, min(1.0, p * more), 500.0, 20.0, queueing, method) <= rate * (
        1 + 1e-9
    )
    assert rl.throughput(flow, p, 500.0, 20.0, queueing + 0.02, method) <= rate * (1 + 1e-9)


@CHECKED
@given(laws, methods, probability, st.floats(0.1, 10.0))
def test_goodput_scales_with_time(law, method, p, factor):
    flow = rl.Sender(law, 0.05, timeout=0.3)
    slow = rl.Sender(law, 0.05 * factor, timeout=0.3 * factor)
    rate = rl.throughput(flow, p, 500.0, 20.0, 0.01, method)
    slower = rl.throughput(slow, p, 500.0 / factor, 20.0, 0.01 * factor, method)
    assert slower * factor == pytest.approx(rate, rel=1e-6)


@pytest.mark.parametrize("method", ["rounds", "pftk", "square-root"])
@pytest.mark.parametrize("law", ["reno", "newreno", "sack", "tahoe"])
def test_a_queue_of_others_lengthens_round_trip_and_timeout(law, method):
    """A queueing delay of 20 ms is as 20 ms more of propagation, for the timer, too."""
    waits = rl.throughput(rl.Sender(law, 0.05, timeout=0.3), 0.05, queueing=0.02, method=method)
    far = rl.throughput(rl.Sender(law, 0.07, timeout=0.32), 0.05, method=method)
    assert waits == pytest.approx(far, rel=1e-12)


def test_no_loss_and_total_loss():
    vegas = rl.Sender("vegas", 0.05)
    assert rl.throughput(vegas, 0.0, 500.0) == pytest.approx(500.0)
    assert rl.throughput(rl.Sender("reno", 0.05, max_window=10), 0.0, 500.0) == pytest.approx(200.0)
    assert rl.throughput(rl.Sender("reno", 0.05), 0.0) == math.inf
    for law in LAWS:
        assert rl.throughput(rl.Sender(law, 0.05), 1.0, 500.0) == 0.0


def test_lossless_vegas_flows_share_as_the_steady_state_equation_says():
    """alpha_i / (q - x_i), whose sum is c; this test solves the equation itself."""
    from scipy.optimize import brentq

    alpha, x, c = np.array([10.0, 20.0, 30.0]), np.array([0.0, 0.01, 0.002]), 1000.0
    flows = [
        rl.Sender("vegas", 0.05, alpha=a, over_estimate=e) for a, e in zip(alpha, x, strict=True)
    ]
    q = brentq(lambda q: (alpha / (q - x)).sum() - c, 0.0101, 10.0, xtol=1e-15)
    found = rl.share(flows, 0.0, c)
    assert (found.status, found.regime) == (Status.DONE, "capacity-limited")
    assert found.queueing == pytest.approx(q, rel=1e-9)
    np.testing.assert_allclose(found.rates, alpha / (q - x), rtol=1e-9)


@settings(CHECKED, max_examples=12)
@given(
    st.lists(st.tuples(laws, st.floats(0.01, 0.3)), min_size=1, max_size=3),
    methods,
    st.floats(1e-3, 0.1),
    st.sampled_from([10.0, 100.0, math.inf]),
    st.randoms(use_true_random=False),
)
def test_sharing_fits_the_link_whatever_the_order(flows, method, p, buffer, random):
    sources = [rl.Sender(law, rtt) for law, rtt in flows]
    found = rl.share(sources, p, 300.0, buffer, method)
    assert found.status == Status.DONE
    assert found.rates.sum() <= 300.0 * (1 + 1e-6)
    if found.regime != "loss-limited":
        assert found.rates.sum() == pytest.approx(300.0, rel=1e-6)
        assert 0 <= found.queueing * 300.0 <= buffer * (1 + 1e-9)
    order = list(range(len(sources)))
    random.shuffle(order)
    again = rl.share([sources[i] for i in order], p, 300.0, buffer, method)
    np.testing.assert_allclose(again.rates, found.rates[order], rtol=1e-5)


def test_one_flow_alone_is_throughput():
    flow = rl.Sender("newreno", 0.05)
    found = rl.share([flow], 0.01, 625.0, 20.0)
    assert found.rates[0] == rl.throughput(flow, 0.01, 625.0, 20.0)
    assert found.queueing == 0.0


def test_no_loss_and_no_buffer_is_no_equilibrium():
    found = rl.share([rl.Sender("reno", 0.05), rl.Sender("sack", 0.1)], 0.0, 625.0)
    assert found.status == Status.NOT_CONVERGED
    assert np.all(np.isnan(found.rates))


def test_square_root_laws_may_not_fit_a_link_whatever_the_loss():
    """At p = 1 and a full buffer, 0.1 s, each flow would still send more than 1/0.11 packets/s."""
    flows = [rl.Sender("reno", 0.01)] * 3
    found = rl.share(flows, 0.01, 10.0, 1.0, "square-root")
    assert (found.status, found.loss) == (Status.NOT_CONVERGED, 1.0)
    assert np.all(np.isnan(found.rates))


# Measured with ns-2 2.35, the papers' defaults, one flow, 3000 s: goodput in pkt/s.
MEASURED = [  # law, p, rtt, capacity, buffer, pkt/s
    ("reno", 0.01, 0.1, 1250.0, 1000.0, 102.2),
    ("reno", 0.1, 0.05, 625.0, 20.0, 23.78),
    ("newreno", 0.003, 0.05, 625.0, 20.0, 412.9),
    ("newreno", 0.06, 0.02, 187.5, 10.0, 81.5),
    ("sack", 0.03, 0.02, 187.5, 10.0, 149.5),
    ("sack", 0.001, 0.1, 1250.0, 1000.0, 404.0),
    ("vegas", 0.001, 0.1, 1250.0, 1000.0, 608.2),
    ("vegas", 0.01, 0.05, 625.0, 20.0, 326.1),
    ("vegas", 0.01, 0.02, 187.5, 10.0, 184.9),
    ("vegas", 0.03, 0.05, 625.0, 20.0, 156.5),
    ("vegas", 0.06, 0.1, 1250.0, 1000.0, 39.66),
    ("tahoe", 0.001, 0.02, 187.5, 10.0, 178.1),
    ("tahoe", 0.03, 0.1, 1250.0, 1000.0, 47.9),
]


@pytest.mark.parametrize(("law", "p", "rtt", "capacity", "buffer", "measured"), MEASURED)
def test_chain_against_packets(law, p, rtt, capacity, buffer, measured):
    rate = rl.throughput(rl.Sender(law, rtt), p, capacity, buffer)
    assert rate == pytest.approx(measured, rel=0.08)


@pytest.mark.parametrize("buffer", [0.0, 50.0, 100.0, 300.0])
def test_without_random_loss_the_chain_is_the_sawtooth_under_a_full_buffer(buffer):
    """Another model of the same case: the utilization of AIMD with a small buffer."""
    rate = rl.throughput(rl.Sender("sack", 0.5), 0.0, 625.0, buffer)
    expected = rate_delay.rate_utilization(0.5, buffer + 1, 625.0)
    assert rate / 625.0 == pytest.approx(float(expected), rel=2e-3)


@pytest.mark.parametrize(
    ("law", "p", "printed"),
    [
        ("reno", 0.01, 0.894),
        ("reno", 0.05, 0.455),
        ("sack", 0.01, 0.977),
        ("sack", 0.05, 0.537),
        ("vegas", 0.01, 0.955),
        ("vegas", 0.05, 0.637),
    ],
)
def test_table_1_of_evaluation(law, p, printed):
    """1.5 Mbit/s, packets of 1000 B, 13.2 ms, buffer 6: the printed utilization, within 8 %."""
    found = rl.share([rl.Sender(law, 0.0132)], p, 187.5, 6.0)
    assert found.rates[0] / 187.5 == pytest.approx(printed, rel=0.08)


def test_the_likely_peak_of_the_load_is_that_of_simulated_windows():
    """Four flows whose windows grow by one packet a round trip and halve at random losses.

    Each entry of ``windows`` is one round trip of one flow. The losses are Poisson, so rare that
    fast retransmit repairs each.
    """
    p, rtt, flows, capacity = 1e-5, 0.1, 4, 100_000.0
    rng = np.random.default_rng(5)
    window, windows = np.full((flows, 2000), 400.0), []
    for step in range(4000):
        lost = rng.random(window.shape) < -np.expm1(-p * window)
        window = np.where(lost, window / 2, window + 1)
        if step > 1500:
            windows.append(window.sum(axis=0))
    rates = np.array(windows) / rtt
    senders = [rl.Sender("sack", rtt)] * flows
    found = loss_peaks.load(senders, p, capacity, 0.0) * capacity
    assert found == pytest.approx(rates.mean() + 3 * rates.std(), rel=0.02)
    with_full_queue = loss_peaks.load(senders, p, capacity, rtt * capacity) * capacity
    assert with_full_queue == pytest.approx(found / 2, rel=0.01)


def test_a_window_that_is_limited_has_no_peaks_beyond_its_limit():
    senders = [rl.Sender("sack", 0.1, max_window=20.0)] * 5
    assert loss_peaks.load(senders, 1e-5, 1000.0, 0.0) <= 5 * 20 / 0.1 / 1000
    assert loss_peaks.load(senders, 1e-5, 1000.0, 0.0) == pytest.approx(1.0, rel=0.01)
    assert loss_peaks.slow_start_queue(senders, 1e-5, 1000.0) == 5.0
    assert loss_peaks.load(senders, 1e-5, 1000.0, math.inf) == 0.0


def test_the_window_that_vegas_sends_after_a_recovery_is_three_quarters_of_that_at_the_loss():
    limited = rl.Sender("vegas", 0.1, max_window=20.0)
    assert loss_peaks.recovery_burst([limited], 1e-5, 1000.0) == 15.0
    assert loss_peaks.recovery_burst([rl.Sender("reno", 0.1)], 1e-5, 1000.0) == 0.0


@pytest.mark.parametrize(
    "call",
    [
        lambda: rl.square_root(-0.1, 1.0),
        lambda: rl.square_root(0.1, 0.0),
        lambda: rl.pftk(0.1, 1.0, 1.0, b=0),
        lambda: rl.pftk(0.1, 1.0, 1.0, decrease=1.0),
        lambda: rl.throughput(rl.Sender("cubic", 0.1), 0.1),
        lambda: rl.throughput(rl.Sender("reno", 0.1), math.nan),
    ],
)
def test_misuse_is_an_error(call):
    with pytest.raises(ValueError, match=r"^\w+: "):
        call()


@pytest.mark.parametrize(
    ("law", "rtt", "p", "there"),
    [
        ("sack", 0.1, 0.001, 271.0),
        ("sack", 0.1, 0.01, 70.6),
        ("sack", 0.02, 0.003, 721.7),
        ("reno", 0.1, 0.003, 140.2),
        ("reno", 0.1, 0.03, 31.2),
        ("reno", 0.02, 0.01, 306.8),
        ("tahoe", 0.1, 0.01, 62.4),
    ],
)
def test_delayed_acks_hold_back_the_last_packet_of_a_window(law, rtt, p, there):
    """Goodputs of ns-2 (3 runs of 600 s) on a fast link: 3 to 20 % less without this mechanism."""
    capacity = 625.0 if law == "tahoe" else 6250.0
    goodput = rl.throughput(rl.Sender(law, rtt, ack_every=2.0), p, capacity, 1000.0)
    assert goodput == pytest.approx(there, rel=0.09)


def test_waits_of_hosts_are_part_of_the_round_trip():
    """Window 6, 10 ms, 625 packets/s: ns-2 gives 539.7 and, with delayed ACKs, 478.2, not 600."""
    for delayed, there in ((False, 539.7), (True, 478.2)):
        flow = vm.Flow("sack", "10 ms", max_window=6, delayed_ack=delayed)
        s = vm.Scenario([vm.Link("5 Mbit/s", buffer=1000, loss=1e-4)], [flow])
        assert vm.predict(s, "random-loss").throughput[0] == pytest.approx(there, rel=0.03)


@pytest.mark.parametrize("law", ["reno", "vegas"])
def test_delayed_acks_hardly_slow_a_window_of_linux(law):
    """Linux counts the packets that an ACK acknowledges; ns-2 counts the ACKs.

    In ns-2 half the growth means sqrt(1/2) of the rate (square-root law). The simulator ``rounds``
    moves packets and ACKs, and gives 346 packets/s for Reno in Linux; the model said 233.
    """

    def rate(variant, delayed, model="random-loss"):
        flow = vm.Flow(law, "80 ms", variant=variant, delayed_ack=delayed)
        link = vm.Link("4000 pkt/s", buffer=80, loss=0.002)
        run = vm.Run(duration="200 s", warmup="50 s", runs=2)
        return vm.predict(vm.Scenario([link], [flow], run=run), model).throughput[0]

    assert rate("linux", True) == pytest.approx(rate("linux", True, "rounds"), rel=0.1)
    assert rate("linux", True) == pytest.approx(rate("linux", False), rel=0.05)
    assert rate("ns2", True) / rate("ns2", False) == pytest.approx(math.sqrt(0.5), rel=0.05)


@pytest.mark.parametrize("law", ["reno", "newreno"])
def test_linux_repairs_all_losses_in_a_round_trip_whatever_the_law(law):
    """Linux has SACK. The simulator ``rounds`` moves packets, and gives 207 packets/s for Reno.

    The model said 176: it took a second loss in a window for a timeout, as in ns-2's Reno.
    """

    def found(law, variant, model="random-loss"):
        link, run = vm.Link("2000 pkt/s", buffer=400, loss=0.01), vm.Run("200 s", "20 s", runs=3)
        s = vm.Scenario([link], [vm.Flow(law, "60 ms", variant=variant)], run=run)
        return vm.predict(s, model)

    linux, sack = found(law, "linux"), found("sack", "linux")
    assert linux.throughput == pytest.approx(found(law, "linux", "rounds").throughput, rel=0.1)
    assert linux.throughput == pytest.approx(sack.throughput)
    assert found(law, "ns2").throughput < sack.throughput
    assert [a.name for a in linux.broken] == ["whole-stack"]
    assert found(law, "ns2").broken == ()


@pytest.mark.parametrize("method", ["pftk", "square-root"])
def test_a_formula_that_counts_packets_takes_one_packet_per_ack(method):
    delayed = rl.Sender("reno", 0.1, ack_every=2.0, counts_packets=True)
    alone = rl.Sender("reno", 0.1)
    assert rl.throughput(delayed, 0.01, method=method) == rl.throughput(alone, 0.01, method=method)


def _broken(scenario):
    return {a.name for a in vm.predict(scenario, "random-loss").broken}


def test_random_losses_that_are_too_few_for_a_mean_are_told():
    """NewReno over a satellite gets 3.3 packets/s in ns-2: it repairs its first slow start."""
    link = vm.Link("5 Mbit/s", buffer="2 BDP", loss=1e-4)
    run = vm.Run(duration="400 s", warmup="120 s")
    s = vm.Scenario([link], [vm.Flow("newreno", "600 ms")], run=run)
    assert _broken(s) == {"settles-in-time"}
    long = {"run.duration": "3000 s", "run.warmup": "1000 s"}
    assert _broken(s.replace(long)) == set()
    sack = s.replace({"flow.law": "sack", "run.duration": "600 s"})  # repairs them at once
    assert _broken(sack) == set()
    assert _broken(sack.replace({"run.duration": "300 s"})) == {"settles-in-time"}  # 4 losses
    limited = {"run.duration": "300 s", "flow.max_window": 20}  # whatever the losses
    assert _broken(sack.replace(limited)) == set()


def test_pauses_for_delayed_acks_that_last_longer_than_from_loss_to_loss_are_told():
    """Tahoe over 5 ms gets 866 packets/s in ns-2, a loss in 12 ms; the equations say 1100."""
    link = vm.Link("20 Mbit/s", buffer=200, loss=0.01)
    s = vm.Scenario([link], [vm.Flow("tahoe", "5 ms", delayed_ack=True)], packet_size="500 B")
    assert _broken(s) == {"short-ack-pauses"}
    assert _broken(s.replace({"flow.rtt": "50 ms"})) == set()
    assert _broken(s.replace({"flow.delayed_ack": False})) == set()
