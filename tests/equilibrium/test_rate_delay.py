"""Rate-Delay services against the paper's statements and an event-by-event simulation of AIMD."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from vegasmodel.equilibrium import rate_delay as rd

CHECKED = settings(deadline=None, max_examples=60, derandomize=True)
counts = st.just(0.0) | st.floats(1e-3, 1e6)
some = st.floats(0.1, 1e6)


@CHECKED
@given(counts, some, some, st.floats(0.01, 100.0))
def test_capacity_is_conserved_and_flows_stand_as_k_to_1(n_R, n_D, capacity, k):
    S_R, S_D = rd.service_rates(n_R, n_D, capacity, k)
    np.testing.assert_allclose(S_R + S_D, capacity, rtol=1e-14)
    rate, delay = rd.flow_rates(n_R, n_D, capacity, k)
    assert delay * n_D == pytest.approx(S_D, rel=1e-13)
    if n_R > 0:
        assert rate / delay == pytest.approx(k, rel=1e-13)
        np.testing.assert_allclose(S_D / S_R, rd.volume_ratio(n_R, n_D, k), rtol=1e-13)


@CHECKED
@given(some, some, some, st.floats(0.01, 100.0), st.floats(0.1, 10.0))
def test_scaling_and_exchange_of_the_classes(n_R, n_D, capacity, k, factor):
    S_R, S_D = rd.service_rates(n_R, n_D, capacity, k)
    np.testing.assert_allclose(
        rd.service_rates(n_R * factor, n_D * factor, capacity * factor, k),
        (S_R * factor, S_D * factor),
        rtol=1e-13,
    )
    np.testing.assert_allclose(rd.service_rates(n_D, n_R, capacity, 1 / k), (S_D, S_R), rtol=1e-13)
    more, _ = rd.service_rates(n_R * (1 + factor), n_D, capacity, k)
    assert more > S_R


def test_k_of_one_gives_every_flow_the_same():
    rate, delay = rd.flow_rates(300, 100, 12_500.0)
    assert rate == delay == 12_500.0 / 400


def test_a_class_without_flows_leaves_all_to_the_other():
    assert rd.service_rates(0, 3, 10.0) == (0.0, 10.0)
    assert rd.service_rates(3, 0, 10.0) == (10.0, 0.0)
    assert all(np.isnan(rd.service_rates(0, 0, 10.0)))
    assert np.isnan(rd.flow_rates(0, 3, 10.0)[0])


@pytest.mark.parametrize(("k", "rates"), [(1e-310, (0.0, 10.0)), (1e308, (10.0, 0.0))])
def test_an_extreme_k_leaves_all_to_one_class(k, rates):
    assert rd.service_rates(7, 3, 10.0, k) == pytest.approx(rates, abs=1e-300)


def test_arrays_broadcast():
    S_R, S_D = rd.service_rates(np.arange(1, 4)[:, None], np.arange(1, 6), 100.0)
    assert S_R.shape == S_D.shape == (3, 5)


@pytest.mark.parametrize(
    "arguments",
    [(-1, 1, 1.0), (1, math.nan, 1.0), (1, 1, -1.0), (1, 1, 1.0, 0.0), (math.inf, 1, 1)],
)
def test_misuse_is_an_error(arguments):
    with pytest.raises(ValueError, match=r"at least 0|more than 0"):
        rd.service_rates(*arguments)


@CHECKED
@given(counts, counts, counts, counts)
@example(0.1, 1e6, 1.0, 1e6)  # 0.1 + 1e6 - 1e6 is below 0.1 by rounding
@example(1e6, 0.1, 1e6, 1.0)
def test_the_link_is_work_conserving(S_R, S_D, d_R, d_D):
    x_R, x_D = rd.served(S_R, S_D, d_R, d_D)
    assert x_R <= d_R
    assert x_D <= d_D
    assert x_R >= min(d_R, S_R)
    assert x_D >= min(d_D, S_D)
    assert x_R + x_D == pytest.approx(min(S_R + S_D, d_R + d_D), rel=1e-12)


def test_relative_fairness_has_the_papers_worked_value():
    index = rd.relative_fairness(0.24, 100, 0.74, 300)
    assert round(float(index), 2) == 0.97


def test_relative_fairness_needs_flows_of_both_classes():
    no_vegas, no_newreno, silent = rd.relative_fairness(0.2, [0, 1, 1], [0.7, 0.7, 0.0], [3, 0, 3])
    assert np.isnan([no_vegas, no_newreno]).all()
    assert silent == np.inf


def test_a_buffer_is_divided_into_whole_packets():
    """Section IV-D: 10 Mbit/s for 250 ms, packets of 1 kB; a tenth is 31.25 kB, 31 packets."""

    def parts(buffer, delay_buffer):
        return tuple(map(float, rd.split_buffer(buffer, delay_buffer)))

    assert parts(312.5, 0.1) == parts(312.9, 0.1) == (281.0, 31.0)
    assert parts(math.inf, 0.1) == (math.inf, math.inf)
    assert (parts(math.inf, 0.0), parts(math.inf, 1.0)) == ((math.inf, 0.0), (0.0, math.inf))


def test_buffer_and_delay_bound_are_inverse():
    S_D = rd.service_rates(100, 100, 1250.0)[1]
    assert rd.buffer_for_delay(rd.delay_bound(31.0, S_D), S_D) == pytest.approx(31.0)
    assert rd.delay_bound(10.0, 0.0) == np.inf


def test_onset_of_loss_is_where_the_buffer_holds_alpha_of_each():
    onset = rd.loss_onset(31.25, 1.0)
    low, high = rd.needed_delay_buffer(onset, 1.0, 3.0)
    assert (onset, low, high) == (31.25, 31.25, 93.75)
    assert rd.delay_loss(31, 0.1, 31.25, 600.0) == 0
    assert rd.delay_loss(32, 0.1, 31.25, 600.0) > 0
    assert rd.delay_loss(31, 0.1, 31.0, 600.0) == 0  # room for one packet of each


def test_the_loss_probability_of_the_delay_class_is_at_most_1():
    """Its 100 flows share 100 packets/s for 0.1 s and a buffer of 5: windows of 0.15 packets."""
    assert rd.delay_loss(100, 0.1, 5.0, 100.0) == 1


@pytest.mark.parametrize("decrease", [0.3, 0.5, 0.75])
@pytest.mark.parametrize("excess", [0.0, 0.2, 0.6])
def test_utilization_against_a_window_counted_round_by_round(decrease, excess):
    """A window of 4e4 packets grows by 1 per round trip, which takes max(T, W/S)."""
    S, T = 1e6, 0.04
    top = S * T * (1 + excess)
    windows = np.arange(math.ceil(decrease * top), math.floor(top) + 1)
    counted = windows.sum() / np.maximum(T, windows / S).sum() / S
    assert rd.rate_utilization(T, S * T * excess, S, decrease) == pytest.approx(counted, abs=1e-4)


@CHECKED
@given(st.floats(0.001, 1.0), counts, some, st.floats(0.0, 0.95))
def test_utilization_is_a_fraction_grows_with_the_buffer_and_needs_no_scale(T, B, S, b):
    u = rd.rate_utilization(T, B, S, b)
    assert (1 + b) / 2 - 1e-12 <= u <= 1 + 1e-12
    assert rd.rate_utilization(T, 2 * B, S, b) >= u - 1e-12
    assert rd.rate_utilization(7 * T, B, S / 7, b) == pytest.approx(u, rel=1e-9)
    assert rd.rate_utilization(0.0, B + 1.0, S, b) == pytest.approx(1.0)  # any buffer is enough
    if b > 0:
        assert rd.rate_utilization(T, (1 / b - 1) * S * T, S, b) == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("decrease", [0.5, 0.75])
def test_loss_law_against_a_sawtooth_counted_round_by_round(decrease):
    """Each of n flows loses a packet per cycle; their mean window fills path and buffer."""
    windows = np.arange(4000 * decrease, 4000 + 1)
    n, T, B = 10, 0.1, 9000.0
    S = (windows.mean() * n - B) / T
    counted = 1 / windows.sum()
    assert rd.delay_loss(n, T, B, S, 1000.0, decrease) == pytest.approx(counted, rel=2e-3)
