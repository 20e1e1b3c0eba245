"""Scenarios of Tsang and Chang, for ns-2: two Vegas sources with different delays share a link."""

from functools import cache
from pathlib import Path

from paper_checks.topology import USUAL_DELAY, link_by_link
from vegasmodel.scenario import Scenario, load

__all__ = [
    "BITS_PER_PACKET",
    "CAPACITY",
    "FROM_10_MS",
    "X2_IN_MS",
    "base_rtt",
    "two_connections",
]

BITS_PER_PACKET = 8000.0
CAPACITY = 1.5e6 / BITS_PER_PACKET  # pkt/s
# x2, the delay of the second connection's last link, in ms and in the order of the paper's tables
X2_IN_MS = (110, 100, 90, 80, 70, 60, 50, 40, 30, 20, 10, 5, 1)
FROM_10_MS = tuple(x2 for x2 in X2_IN_MS if x2 >= 10)
# s, of a data packet and its ACK (4 % of its size) at the shared link and at two access links
TRANSMISSION = 1.04 * BITS_PER_PACKET * (1 / 1.5e6 + 2 / 1e7)


def base_rtt(x: float) -> float:
    """Least round-trip time with a last link of ``x`` ms, s: 2 (x + 2) ms and the transmissions."""
    return 2e-3 * (x + 2) + TRANSMISSION


@cache
def two_connections(
    x2: float, alpha: float = 1.0, beta: float = 3.0, warmup: float = 0.01
) -> Scenario:
    """The scenario of two Vegas connections that start at 0.

    The second one's last link has a delay of ``x2`` ms; ``alpha`` and ``beta`` are in packets.
    Means are over the time from ``warmup`` seconds on.
    """
    base = load(Path(__file__).with_name("two.toml"))
    changes = {"flow.alpha": float(alpha), "flow.beta": float(beta), "run.warmup": warmup}
    name = f"tsang-vegas-{alpha:g}-{beta:g}-x2-{x2:g}-ms-from-{warmup:g}-s"
    return link_by_link(base.replace(changes, name=name), (USUAL_DELAY, x2 * 1e-3))
