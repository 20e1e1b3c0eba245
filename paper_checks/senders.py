"""The behaviour of a single source in ns-2: slow start, growth per round trip, a timeout.

Records of several papers test it.  Each passes a scenario ``base``, which has the link of its paper
and the defaults of ns-2 at its time.  ``law`` is the congestion control of one of the flows of
``base``, which we then run alone.
"""

import dataclasses
import itertools
import math
from functools import cache

from paper_checks.checks import Found
from paper_checks.runs import Runs
from vegasmodel.scenario import Drop, Scenario

__all__ = ["doubling", "growth", "least_after_timeout", "windows"]

RTT = 2.0  # s: so long that the bursts of successive round trips of slow start do not overlap
LOST = 20  # packets: a whole window, which is lost
FIRST_LOST = 1000  # the sequence number of the first packet that is lost


def _alone(base: Scenario, law: str, rtt: float, max_window: float = math.inf) -> Scenario:
    """The source of ``law`` alone on the link of ``base``, with a buffer that does not overflow.

    The buffer has 1000 packets. ``rtt`` is in s.  ``max_window`` is the receiver's window in
    packets.
    """
    flow = next(flow for flow in base.flows if flow.law == law)
    flow = dataclasses.replace(flow, name=law, rtt=rtt, max_window=max_window)
    changes = {"link.buffer": 1000.0, "run.runs": 1, "run.start_jitter": 0.0}
    return base.replace(changes, flows=(flow,))


@cache
def slow_start(base: Scenario, law: str, number: int) -> Scenario:
    """A source alone in slow start, measured late in round trip ``number`` (from 0).

    By then all ACKs of the round trip have arrived.
    """
    scenario = _alone(base, law, RTT)
    changes = {"run.duration": RTT * (number + 0.95), "run.warmup": RTT * (number + 0.5)}
    return scenario.replace(changes, name=f"{base.name}-{law}-round-{number}")


@cache
def timeout(base: Scenario, law: str) -> Scenario:
    """A source with a window of 20 packets that loses all of them, so no ACK reports a loss."""
    scenario = _alone(base, law, 0.2, float(LOST))
    lost = Drop(flow=law, packets=tuple(range(FIRST_LOST, FIRST_LOST + LOST)))
    changes = {"link.drops": (lost,), "run.duration": 25.0, "run.warmup": 5.0}
    return scenario.replace(changes, name=f"{base.name}-{law}-timeout")


def windows(runs: Runs, base: Scenario, law: str, rounds: range) -> list[float]:
    """The window late in each of the round trips ``rounds`` of slow start, packets.

    The source has the congestion control ``law``, and is alone on the link of ``base``.
    """
    largest, flow = 2, 0  # indices of ``window``
    return [float(runs(slow_start(base, law, k)).window[largest, flow]) for k in rounds]


def doubling(runs: Runs, base: Scenario, law: str, rounds: range) -> Found:
    """Ratio of the window in each round trip of slow start to that in the one before.

    ``rounds`` are these round trips, and the first of them has no ratio.  The source has the
    congestion control ``law``, and is alone on the link of ``base``.
    """
    W = windows(runs, base, law, rounds)
    text = ", ".join(f"{w:g}" for w in W)
    return Found([b / a for a, b in itertools.pairwise(W)], detail=f"Windows: {text}.")


def growth(window: float) -> float:
    """By how many packets a Reno window grows in a round trip, if each ACK adds 1/W to it.

    ``window`` is W at the beginning of the round trip, a whole number of packets.
    """
    W = window
    for _ in range(int(window)):  # the ACKs of one round trip
        W += 1 / W
    return W - window


def least_after_timeout(runs: Runs, base: Scenario, law: str) -> float:
    """Least window, packets, of a source that loses all packets in flight and so has a timeout.

    The source has the congestion control ``law``, and is alone on the link of ``base``.
    """
    least, flow = 1, 0  # indices of ``window``
    return float(runs(timeout(base, law)).window[least, flow])
