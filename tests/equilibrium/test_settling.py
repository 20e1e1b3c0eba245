"""Times until windows rest, and longest queues: by hand, by root finding, by differences."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from vegasmodel.equilibrium import settling


def array(*values):
    return np.array(values, dtype=np.float64)


@pytest.mark.parametrize(("gamma", "product"), [(1.5, 10.0), (1.5, 400.0), (3.0, 50.0)])
def test_slow_start_ends_where_the_mean_packet_sees_gamma(gamma, product):
    """The mean packet of a train of W finds W/4 in the queue; the window is then cut to 7/8."""

    def above(W):
        return W * (W / 4.0) / (product + W / 4.0) - gamma

    found = settling.slow_start_ends(array(gamma), array(product))
    assert found == pytest.approx([7.0 / 8.0 * brentq(above, 1e-3, 1e4)])


def test_an_overflow_in_slow_start_bounds_the_window():
    """A buffer of 10: rounds end at 20, then 30 at the overflow, 60 when it is known; halved."""
    assert settling.slow_start_overflows(10.0, 0.5) == 30.0
    assert settling.slow_start_overflows(10.0, 0.0) == 0.0
    assert settling.slow_start_overflows(math.inf, 0.75) == math.inf


def test_a_flow_alone_doubles_in_two_round_trips_and_then_fills_its_backlog():
    """64 packets are 6 doublings, so 12 round trips; 32 packets are 10."""
    windows, trips, backlog = array(64.0, 32.0), array(0.1, 0.2), array(3.0, 1.0)
    assert settling.alone(windows[:1], trips[:1], backlog[:1]) == pytest.approx(15.0 * 0.1)
    assert settling.alone(windows, trips, backlog) == pytest.approx(11.0 * 0.2)
    left = array(24.0, 31.5)  # slow start ends there, so 40 packets are left to the first
    assert settling.alone(windows, trips, backlog, left) == pytest.approx(52.0 * 0.1)


def test_flows_that_start_together_swing_from_the_whole_link_or_from_nothing():
    """The link holds 32 and 64 packets: from 32 to 8, or from 0 to 48, after slow start."""
    windows, trips = array(8.0, 48.0), array(0.1, 0.2)
    first, second = (24.0 + 10.0) * 0.1, (48.0 + 12.0) * 0.2
    assert settling.together(windows[:1], trips[:1], np.asarray(320.0)) == pytest.approx(first)
    assert settling.together(windows, trips, np.asarray(320.0)) == pytest.approx(second)
    own = array(320.0, 320.0)
    assert settling.together(windows, trips, own) == pytest.approx(second)


def test_earlier_flows_shrink_when_the_new_ones_have_grown():
    """The new flows take 4 and 3 round trips, the earlier ones 2 and 5."""
    before, after = array(5.0, 0.0, 9.0, 0.0), array(3.0, 4.0, 4.0, 3.0)
    trips = array(0.1, 0.2, 0.3, 0.5)
    assert settling.later(before, after, trips) == pytest.approx(3 * 0.5 + 5 * 0.3)
    assert settling.later(array(5.0), array(3.0), array(0.1)) == pytest.approx(0.2)


def test_the_longest_delay_is_where_the_rates_add_up_to_the_capacity():
    windows, rtt, c = array(30.0, 12.0), array(0.1, 0.05), 500.0
    backlog, x = array(3.0, 4.0), array(0.01, 0.02)

    def excess(delay):
        return (windows / (rtt + delay)).sum() + (backlog / (delay - x)).sum() - c

    found = settling.peak(windows, rtt, c, (backlog, x))
    assert found == pytest.approx(brentq(excess, 0.02 + 1e-9, 10.0))

    def at_first(delay):
        return c * 0.1 / (0.1 + delay) + 7.0 / delay - c

    found = settling.first_peak(backlog, array(0.05, 0.1), c)
    assert found == pytest.approx(brentq(at_first, 1e-9, 10.0))
    assert settling.first_peak(array(3.0), array(0.1), c) == pytest.approx(3.0 / 500.0)


@pytest.mark.parametrize("gamma", [0.0, 1.5])
def test_the_speed_at_which_windows_must_fall_by_differences(gamma):
    """One earlier flow keeps 3 packets queued, the other keeps its window of 20 packets.

    The new window follows from the rate that they leave, and grows by a packet per round trip, or
    in slow start doubles in 2. The speeds are differences of the windows.
    """
    c, d, over, own_rtt, doubling = 500.0, array(0.05, 0.1), array(0.002, 0.0), 0.08, 2.0
    first, last, h = 0.012, 0.04, 1e-7

    def earlier(delay):
        return 3.0 * (d[0] + delay) / (delay - over[0])  # packets

    def new(delay):
        left = c - 3.0 / (delay - over[0]) - 20.0 / (d[1] + delay)
        return left * (own_rtt + delay), left * (delay - 0.005)  # the window, the backlog

    fastest, most = 0.0, 0.0
    for delay in np.linspace(first, last, 401)[1:]:
        (W, backlog), T_n = new(delay), own_rtt + delay
        slow = backlog <= gamma
        growth = max(W * math.log(2.0) / doubling, 1.0) if slow else 1.0
        per_delay = (new(delay + h)[0] - new(delay - h)[0]) / (2.0 * h)
        falls = (earlier(delay - h) - earlier(delay + h)) / (2.0 * h)
        fastest = max(fastest, falls * growth / T_n / per_delay * (d[0] + delay))
        most = max(most, W if slow else 0.0)
    flows = settling.Earlier(array(3.0, 1e9), array(1e9, 20.0), over, d, c)
    arguments = flows, settling.Newcomer(0.005, own_rtt, gamma), (first, last)
    assert settling.lag(*arguments, doubling) == pytest.approx(fastest, rel=1e-5)
    wanted = 2.0 * 7.0 / 8.0 * most / new(last)[0]
    assert settling.overstep(*arguments) == pytest.approx(wanted, rel=1e-9)
