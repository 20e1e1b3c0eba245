"""The packet-by-packet simulation of ``tsang``'s network, against ns-2 and by hand."""

import itertools

import numpy as np
import pytest

from paper_checks.runs import Runs
from paper_checks.tsang.replay import DURATION, replay
from paper_checks.tsang.scenes import CAPACITY, X2_IN_MS, base_rtt, two_connections

CASES = [(x2, pair) for x2 in X2_IN_MS for pair in ((1, 3), (1, 1), (2, 2), (3, 3))]


@pytest.mark.parametrize(("x2", "pair"), CASES)
def test_with_rounding_it_is_ns2(x2: int, pair: tuple[int, int]) -> None:
    """Both connections have as many ACKs in 60 s as in ns-2 2.35."""
    ours = replay(x2, *pair, rounded=True, start=0.0)
    ns2 = Runs()(two_connections(x2, *pair)).acks
    assert [len(c.received) for c in ours] == ns2.tolist()


@pytest.mark.parametrize("x2", X2_IN_MS)
def test_with_rounding_the_windows_are_those_of_ns2(x2: int) -> None:
    late = [c.rounds[-1].window for c in replay(x2, rounded=True, start=0.0)]
    assert late == pytest.approx(Runs()(two_connections(x2, warmup=30.0)).window[0], rel=1e-5)


def test_the_link_is_full_and_never_fuller() -> None:
    for longer_first, rounded in itertools.product((False, True), repeat=2):
        both = replay(30, longer_first=longer_first, rounded=rounded)
        assert sum(c.rate(10.0) for c in both) == pytest.approx(CAPACITY, rel=1e-3)
        acks = np.sort(np.concatenate([c.received for c in both]))
        assert acks[-1] <= DURATION
        assert len(acks) <= CAPACITY * DURATION


def test_no_round_trip_is_shorter_than_the_way() -> None:
    for c, x2 in zip(replay(70), (1, 70), strict=True):
        assert c.base >= base_rtt(x2) - 1e-12


def test_any_start_but_zero_gives_the_same() -> None:
    for start in (0.001, 0.5):
        for one, other in zip(replay(40), replay(40, start=start), strict=True):
            assert one.rounds[-1].window == pytest.approx(other.rounds[-1].window, rel=1e-12)


def test_no_case_is_replayed_twice() -> None:
    """However the arguments of a case are written; a replay takes a good part of a second."""
    assert replay(110) is replay(110, 1, 3, longer_first=False)
    assert replay(110) is replay(x2=110, beta=3.0, alpha=1.0)
