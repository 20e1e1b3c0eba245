"""RED's fixed point: one certified root, against brentq, scans, and simulations of RED's rule."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

import vegasmodel as vm
from vegasmodel.equilibrium import random_loss, red
from vegasmodel.scenario import Flow, Link, Red, Run, Scenario

CHECKED = settings(deadline=None, max_examples=40, derandomize=True)
C = 625.0


@st.composite
def cases(draw):
    n = draw(st.integers(1, 6))
    column = lambda low, high: draw(st.lists(st.floats(low, high), min_size=n, max_size=n))  # noqa: E731 - one line used three times
    flows = red.Flows(
        vegas=np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n))),
        rtt=np.array(column(0.01, 0.3)),
        alpha=np.array(column(0.5, 5.0)),
        over_estimate=np.array(column(0.0, 0.01)),
        max_window=draw(st.sampled_from([math.inf, 64.0, 8.0])),
        ack_every=draw(st.sampled_from([1.0, 2.0])),
    )
    low = draw(st.floats(0.0, 20.0))
    curve = red.Curve(
        low,
        low + draw(st.floats(0.5, 50.0)),
        draw(st.floats(0.01, 1.0)),
        gentle=draw(st.booleans()),
        ecn=draw(st.booleans()),
        buffer=draw(st.sampled_from([math.inf, 15.0])),
        spacing=draw(st.sampled_from(["wait", "uniform", "independent"])),
    )
    return flows, curve


@CHECKED
@given(cases())
def test_the_one_root_fills_the_link_and_carries_its_proof(case):
    flows, curve = case
    found = red.equilibria(flows, curve, C)
    if not found:
        q, p = curve.corners()[-1]
        least = red.demand(flows, curve, q, float(red.effective(p, curve.spacing)), C)
        assert curve.ecn
        assert least.sum() > C
        return
    (root,) = found
    assert root.certified
    assert root.residual == pytest.approx(root.rates.sum() / C - 1)
    if root.kind == "underloaded":
        assert root.queue == 0
        assert root.rates.sum() <= C
        return
    assert abs(root.residual) < 1e-9
    above, below = (red.demand(flows, curve, q, p, C).sum() for q, p in root.interval)
    # the doubt about a sum of rates, from rounding, but for that of this comparison
    doubt = 0.9 * (root.rates.size + 64) * np.finfo(float).eps * C
    assert above > C + doubt
    assert below < C - doubt
    assert np.all(root.interval[0] <= root.interval[1])
    np.testing.assert_allclose(root.interval[0], root.interval[1], rtol=1e-6, atol=1e-9)


@CHECKED
@given(cases(), st.floats(0, 1), st.floats(0, 1), st.floats(0, 30), st.floats(0, 30))
def test_demand_falls_in_queue_and_in_loss(case, p1, p2, q1, q2):
    """The premise of the proof that the root is unique."""
    flows, curve = case
    p, q = sorted((p1, p2)), sorted((q1, q2))
    little = red.demand(flows, curve, q[0], p[0], C)
    assert np.all(red.demand(flows, curve, q[1], p[0], C) <= little * (1 + 1e-12))
    assert np.all(red.demand(flows, curve, q[0], p[1], C) <= little * (1 + 1e-12))


def test_a_scan_of_the_curve_finds_the_same_root_and_no_other():
    flows = red.Flows([True, True, False, False], [0.05, 0.1, 0.05, 0.2])
    curve = red.Curve(5, 15, 0.1)
    (root,) = red.equilibria(flows, curve, C)

    def excess(q):
        p = 2 * (0.1 * max(q - 5, 0) / 10) / (3 - 0.1 * max(q - 5, 0) / 10)
        return red.demand(flows, curve, q, p, C).sum() - C

    scan = np.linspace(5.0001, 15, 2000)
    signs = np.sign([excess(q) for q in scan])
    assert np.count_nonzero(np.diff(signs)) == 1
    assert root.kind == "on-curve"
    assert root.queue == pytest.approx(brentq(excess, 5.0001, 15, xtol=1e-13), rel=1e-10)


@pytest.mark.parametrize("T", [0.1, 10.0, 1000.0])
@pytest.mark.parametrize("capacity", [1e3, 1e6, 1e9])
def test_losses_far_below_one_in_1e16_packets_are_found(T, capacity):
    """Marks only: c = K/(R sqrt p).  The rates once missed a large capacity by up to 90 %."""
    curve = red.Curve(33837.5, 909182.0, ecn=True)
    (root,) = red.equilibria(red.Flows([False], T), curve, capacity)
    R = T + root.queue / capacity
    p = (float(random_loss.square_root(1.0, R)) / capacity) ** 2
    assert root.kind == "on-curve"
    assert root.loss == pytest.approx(p, rel=1e-9)
    assert root.rates[0] == pytest.approx(capacity, rel=1e-9)
    assert root.certified


@pytest.mark.parametrize(("wait", "name"), [(True, "wait"), (False, "uniform")])
@pytest.mark.parametrize("base", [0.05, 0.25, 1.0])
def test_effective_loss_is_that_of_the_counting_rule(wait, name, base):
    """RED as in ns-2: count = packets since the last drop, this one included; mean gap as a sum."""
    gap, alive, count = 0.0, 1.0, 0
    while alive > 1e-12:
        gap += alive  # P(more than count packets pass)
        count += 1
        scaled = count * base
        if wait:
            p = 0.0 if scaled < 1 - 1e-9 else base / (2 - scaled) if scaled < 2 - 1e-9 else 1.0
        else:
            p = base / (1 - scaled) if scaled < 1 - 1e-9 else 1.0
        alive *= 1 - p
    assert 1 / gap == pytest.approx(float(red.effective(base, name)), rel=1e-9)


def test_vegas_alone_keeps_alpha_packets_each_below_the_threshold():
    alpha = np.array([1.0, 2.0, 3.0])
    (root,) = red.equilibria(red.Flows(True, 0.05, alpha), red.Curve(10, 30), C)
    assert root.kind == "no-loss"
    assert root.queue == pytest.approx(6.0)
    np.testing.assert_allclose(root.rates, alpha * C / 6)


def test_many_flows_hang_at_the_jump_of_the_curve():
    flows = red.Flows([False] * 50, 0.05)
    (root,) = red.equilibria(flows, red.Curve(5, 15), C)
    assert root.kind == "at-threshold"
    assert root.queue == 15
    assert root.loss > red.effective(0.1)
    (gentle,) = red.equilibria(flows, red.Curve(5, 15, gentle=True), C)
    assert gentle.kind == "on-curve"
    assert 15 < gentle.queue < 30
    (full,) = red.equilibria(flows, red.Curve(5, 15, buffer=10), C)
    assert (full.kind, full.queue) == ("at-buffer", 10)
    (below,) = red.equilibria(flows, red.Curve(5, 15, gentle=True, buffer=gentle.queue + 1e-6), C)
    assert (below.kind, below.queue) == ("on-curve", pytest.approx(gentle.queue, rel=1e-12))
    assert red.equilibria(flows, red.Curve(5, 15, ecn=True), C / 10) == ()


def test_window_limits_leave_the_link_idle():
    (root,) = red.equilibria(red.Flows(False, [0.1, 0.2], max_window=5), red.Curve(5, 15), C)
    assert root.kind == "underloaded"
    np.testing.assert_allclose(root.rates, [50, 25])


@pytest.mark.parametrize("d", [0.5, 0.75])
@pytest.mark.parametrize("limit", [2.0, 5.0, 9.0, 12.0])
def test_a_limit_below_the_peaks_takes_a_part_of_each_window(limit, d):
    """A window that sends packet by packet, and loses every 100th, needs as many round trips."""
    window, trips = limit, 0.0
    for k in range(1, 20_001):
        trips += 1.0 / window if k > 10_000 else 0.0
        window = d * window if k % 100 == 0 else min(window + 1.0 / window, limit)
    found = red.limited(0.01, np.array(limit), np.array(1.0), np.array(d))
    assert found == pytest.approx(trips / 10_000, rel=0.01)


def test_the_rate_falls_smoothly_to_the_limit_as_losses_vanish():
    flows = red.Flows(False, 0.1, max_window=np.array([10.0]))
    marks = red.Curve(5, 15, ecn=True)
    losses = np.geomspace(1e-6, 0.2, 4000)
    rates = np.array([red.demand(flows, marks, 10.0, p, 1000.0)[0] for p in losses])
    assert rates[0] == pytest.approx(10.0 / 0.11, rel=1e-3)
    assert np.all(np.diff(rates) <= 0.0)
    assert np.abs(np.diff(np.log(rates))).max() < 0.002  # no jump
    [free] = red.demand(red.Flows([False], [0.1]), marks, 10.0, 0.2, 1000.0)
    assert rates[-1] == pytest.approx(free, rel=1e-12)


@CHECKED
@given(cases(), st.randoms(use_true_random=False), st.floats(0.2, 5.0))
def test_order_and_unit_of_time_do_not_matter(case, random, factor):
    flows, curve = case
    found = red.equilibria(flows, curve, C)
    n = len(flows.rtt)
    order = list(range(n))
    random.shuffle(order)
    timeout = np.full(n, 0.3)

    def variant(pick, scale):
        return red.Flows(
            flows.vegas[pick],
            flows.rtt[pick] * scale,
            flows.alpha[pick],
            flows.over_estimate[pick] * scale,
            max_window=flows.max_window,
            ack_every=flows.ack_every,
            timeout=timeout * scale,
        )

    plain = red.equilibria(variant(np.arange(n), 1.0), curve, C)
    shuffled = red.equilibria(variant(order, 1.0), curve, C)
    scaled = red.equilibria(variant(np.arange(n), factor), curve, C / factor)
    assert len(plain) == len(shuffled) == len(scaled)
    assert len(found) <= 1
    for one, two, three in zip(plain, shuffled, scaled, strict=True):
        np.testing.assert_allclose(two.rates, one.rates[order], rtol=1e-8)
        np.testing.assert_allclose(three.rates * factor, one.rates, rtol=1e-8)


def test_more_alpha_or_over_estimate_takes_from_the_others():
    def rates(alpha, x):
        flows = red.Flows([True, True, False], 0.05, [alpha, 1, 1], [x, 0, 0])
        return red.equilibria(flows, red.Curve(5, 15), C)[0].rates

    plain = rates(1.0, 0.0)
    for other in (rates(2.0, 0.0), rates(1.0, 0.002)):
        assert other[0] > plain[0]
        assert np.all(other[1:] < plain[1:])


# ns-2 2.35, papers' defaults, rtt 50 ms, 5 Mbit/s, 1000 B, thresholds 5 and 15, 400 s: mean queue
@pytest.mark.parametrize(
    ("vegas", "reno", "queue"), [(5, 5, 10.53), (10, 20, 13.75), (1, 10, 10.95), (1, 1, 5.38)]
)
def test_mean_queue_beside_packets(vegas, reno, queue):
    flows = red.Flows([True] * vegas + [False] * reno, 0.05)
    (root,) = red.equilibria(flows, red.Curve(5, 15), C)
    assert root.queue == pytest.approx(queue, rel=0.15)


@pytest.mark.parametrize(
    "call",
    [
        lambda: red.Curve(15, 5),
        lambda: red.Curve(5, 15, 0.0),
        lambda: red.Curve(5, 15, buffer=0),
        lambda: red.effective(0.1, "sometimes"),
        lambda: red.equilibria(red.Flows(True, 0.1), red.Curve(5, 15), 0.0),
    ],
)
def test_misuse_is_an_error(call):
    with pytest.raises(ValueError, match=r"^\w+: "):
        call()


@pytest.mark.parametrize("model", ["red", "fluid"])
@pytest.mark.parametrize(
    ("max_window", "rtt", "measured"),
    [(3.0, 0.02, 96.2), (5.0, 0.02, 192.2), (3.0, 0.06, 32.9), (3.0, 0.25, 10.6)],
)
def test_the_last_packet_of_an_odd_window_waits_for_its_delayed_ack(
    model: str, max_window: float, rtt: float, measured: float
) -> None:
    """Reno on an idle link of 5 Mbit/s: ns-2's packets/s, with the receiver's timer of 0.1 s.

    The models leave out the sender's random wait, which costs ns-2 up to 4 %.
    """
    flow = Flow("reno", rtt, variant="ns2", delayed_ack=True, max_window=max_window)
    link = Link(625.0, buffer=60.0, queue=Red(30.0, 50.0))
    found = vm.predict(Scenario((link,), (flow,), run=Run(duration=60.0, warmup=20.0)), model)
    np.testing.assert_allclose(found.throughput, [measured], rtol=0.05)
