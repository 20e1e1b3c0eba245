"""Scenarios of ``boutremans`` 3.2.1: n Vegas sources that join a 1 Mbit/s link every 2 s."""

from __future__ import annotations

import dataclasses
from functools import cache
from pathlib import Path

from vegasmodel.scenario import Scenario, load

__all__ = ["CAPACITY", "SOURCES", "joining"]

CAPACITY = 125.0  # pkt/s: 1 Mbit/s of 1000 B, a size that the paper does not state
SOURCES = (10, 20, 40)


@cache
def joining(n: int, alpha: float, beta: float, known: bool = False) -> Scenario:
    """``known``: every source knows its propagation delay, so that no x_i is above 0."""
    base = load(Path(__file__).with_name("arrivals20.toml"))
    flow = dataclasses.replace(
        base.flows[0],
        count=n,
        alpha=alpha,
        beta=beta,
        over_estimate=0.0 if known else "measured",
    )
    # the last of 40 sources joins at 78 s
    run = dataclasses.replace(base.run, warmup=90.0)
    return dataclasses.replace(base, name="boutremans", flows=(flow,), run=run)
