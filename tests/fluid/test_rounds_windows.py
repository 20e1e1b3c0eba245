"""Windows and ACKs of one flow in `rounds`, by hand from the sources of ns-2 and of Linux."""

import numpy as np
import pytest

import vegasmodel as vm
from tests.fluid.records import sender
from vegasmodel.engines.rounds.delayed_ack import hold_duplicate
from vegasmodel.engines.rounds.laws import cut, grow


@pytest.mark.parametrize(("defaults", "left"), [("papers", 5.0), ("2.35", 5.25)])
def test_only_ns2_2_35_keeps_the_fraction_of_a_halved_window(defaults: str, left: float) -> None:
    """slowdown() in tcp.cc: (int)(window()/2), or windowd()/2 with precisionReduce_."""
    f = sender(
        "reno", "ns2", defaults,
        cwnd=10.5, ssthresh=8.0, decrease=0.5, max_window=100.0, acked=10.0, next=20.0, high=20.0,
    )  # fmt: skip
    assert cut(f)
    assert (f["cwnd"], f["ssthresh"]) == (left, 5.0)


@pytest.mark.parametrize(("ssthresh", "left"), [(15.0, 16.0), (64.0, 10.0)])
def test_a_loss_in_slow_start_halves_the_window_whatever_the_factor(
    ssthresh: float, left: float
) -> None:
    """slowdown() in tcp.cc: decrease_num_ times the window of 20, but half of it in slow start."""
    f = sender(
        "reno", "ns2",
        cwnd=20.0, ssthresh=ssthresh, decrease=0.8, max_window=100.0, acked=10.0, next=30.0,
        high=30.0,
    )  # fmt: skip
    assert cut(f)
    assert (f["cwnd"], f["ssthresh"]) == (left, left)


@pytest.mark.parametrize("model", ["fluid", "rounds"])
def test_the_factor_of_a_loss_matters_only_after_the_first_slow_start(model: str) -> None:
    """The first cut comes in slow start, and halves; the cuts after it multiply by the factor."""
    windows = []
    for factor in (0.5, 0.8):
        alone = (vm.Flow("sack", 0.08, variant="ns2", decrease=factor, send_jitter=0.0),)
        case = vm.Scenario((vm.Link(1000.0, buffer=20.0),), alone, run=vm.Run(10.0, 1.0))
        windows.append(vm.simulate(case, model).window.values[:, 0])
    first = np.flatnonzero(np.diff(windows[0]) < -2.0)[0] + 1  # just after the first cut
    np.testing.assert_array_equal(windows[1][: first + 1], windows[0][: first + 1])
    assert windows[1].mean() > 1.1 * windows[0].mean()


@pytest.mark.parametrize("law", ["reno", "newreno", "sack", "tahoe"])
@pytest.mark.parametrize("defaults", ["papers", "2.35"])
def test_a_second_loss_of_a_window_swells_it_only_by_old_defaults_of_two_laws(
    law: str, defaults: str
) -> None:
    """tcp-reno.cc, tcp-newreno.cc: dupwnd_ = numdupacks_, even where ``recover_`` forbids a cut."""
    f = sender(
        law, "ns2", defaults,
        cwnd=10.0, ssthresh=10.0, decrease=0.5, max_window=100.0, acked=10.0, recover=15.0,
        next=20.0, high=20.0,
    )  # fmt: skip
    assert not cut(f)
    swells = defaults == "papers" and law in ("reno", "newreno")
    assert (f["cwnd"], f["inflated"]) == (10.0, 3.0 if swells else 0.0)


def test_vegas_ceases_to_double_its_window_as_soon_as_it_reaches_ssthresh() -> None:
    """tcp-vegas.cc: v_incr_ is set once per round trip; at cwnd_ >= ssthresh_ it becomes 0."""
    f = sender(
        "vegas", "ns2",
        cwnd=8.0, ssthresh=10.0, growth=1.0, max_window=100.0, acked=12.0, next=20.0,
    )  # fmt: skip
    windows = []
    for _ in range(4):
        grow(f, 1.0, 0.0)
        f["acked"] += 1.0
        f["next"] = f["acked"] + f["cwnd"]
        windows.append(f["cwnd"].item())
    assert windows == [9.0, 10.0, 10.0, 10.0]


@pytest.mark.parametrize(("rtt", "delay"), [(0.1, 1e-3), (0.01, 5e-4)])
def test_linux_delays_duplicate_acks_after_the_third_of_a_missing_packet(
    rtt: float, delay: float
) -> None:
    """__tcp_ack_snd_check: TCP_FASTRETRANS_THRESH at once, then the lesser of 1 ms and RTT/20."""
    f = sender("reno", "linux", delayed_ack=1, receiver_rtt=rtt, acked=7.0)
    assert [hold_duplicate(f, 1.0) for _ in range(5)] == [0.0, 0.0, 0.0, delay, delay]
    f["acked"] = 9.0  # another packet is missing
    assert [hold_duplicate(f, 1.0) for _ in range(4)] == [0.0, 0.0, 0.0, delay]
    f["quick_acks_left"] = 2.0
    assert hold_duplicate(f, 1.0) == 0.0
