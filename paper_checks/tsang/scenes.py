"""Scenarios of Tsang and Chang, for ns-2: two Vegas sources with different delays share a link."""

from __future__ import annotations

import dataclasses
from functools import cache
from pathlib import Path

from paper_checks.topology import SHORT, link_by_link
from vegasmodel.scenario import Scenario, load

__all__ = ["BITS", "CAPACITY", "DELAYS", "base_rtt", "two_connections"]

BITS = 8000.0  # the size of a packet
CAPACITY = 1.5e6 / BITS  # pkt/s
DELAYS = (110, 100, 90, 80, 70, 60, 50, 40, 30, 20, 10, 5, 1)  # x2 in ms, in the tables' order
TRANSMISSION = 1.04 * BITS * (1 / 1.5e6 + 2 / 1e7)  # s: data and ACK over the three links


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
    flows = tuple(dataclasses.replace(f, alpha=float(alpha), beta=float(beta)) for f in base.flows)
    run = dataclasses.replace(base.run, warmup=warmup)
    name = f"tsang-vegas-{alpha:g}-{beta:g}-x2-{x2:g}-ms-from-{warmup:g}-s"
    base = dataclasses.replace(base, name=name, flows=flows, run=run)
    return link_by_link(base, (SHORT, x2 * 1e-3))
