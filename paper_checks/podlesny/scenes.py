"""Scenarios of ``podlesny``: figure 1, and the two RD queues taken apart.

Stock ns-2 has no RD queue.  While both queues are backlogged the scheduler gives each its service
rate, (6) and (7), and they are two links of their own.  What one leaves unused would go to the
other; here it is lost, so that shares are a lower bound.
"""

from __future__ import annotations

import dataclasses
from functools import cache
from pathlib import Path

from vegasmodel.scenario import Scenario, load

__all__ = ["CAPACITY", "figure_1", "parking_lot", "queue", "windowed"]

FOLDER = Path(__file__).parent
SCALE = 0.1  # of the paper's flows and capacity; buffers follow the capacity
CAPACITY = SCALE * 100e6 / 8000  # pkt/s
BUFFER = CAPACITY * 0.25  # packets: 250 ms
DELAY_PART = 0.1  # of the buffer, for the D queue


@cache
def figure_1(rtt: float) -> Scenario:
    """One NewReno and one Vegas flow, no RD."""
    base = load(FOLDER / "figure1.toml")
    flows = tuple(dataclasses.replace(f, rtt=rtt) for f in base.flows)
    name = f"podlesny-figure-1-{1e3 * rtt:g}-ms"
    return dataclasses.replace(base, name=name, flows=flows)


@cache
def windowed(window: float) -> Scenario:
    """One flow whose window stays at ``window``, on figure 1's link without loss."""
    base = figure_1(0.1)
    link = dataclasses.replace(base.links[0], buffer=1000.0)
    flow = dataclasses.replace(base.flows[0], max_window=window)
    run = dataclasses.replace(base.run, warmup=20.0, runs=1, ns2_defaults="papers")
    name = f"podlesny-window-{window:g}"
    return dataclasses.replace(base, name=name, links=(link,), flows=(flow,), run=run)


@cache
def queue(which: str, n_rate: int, n_delay: int, newreno: int, vegas: int) -> Scenario:
    """One queue, "rate" or "delay", of a router that counts ``n_rate`` and ``n_delay`` flows.

    ``newreno`` and ``vegas`` flows use it.
    """
    base = load(FOLDER / "queue.toml")
    n = n_rate if which == "rate" else n_delay
    share = n / (n_rate + n_delay)  # (6), (7) with k = 1
    part = DELAY_PART if which == "delay" else 1 - DELAY_PART
    link = dataclasses.replace(
        base.links[0], capacity=share * CAPACITY, buffer=float(int(part * BUFFER))
    )
    counts = (newreno, vegas)
    flows = tuple(
        dataclasses.replace(f, count=k) for f, k in zip(base.flows, counts, strict=True) if k
    )
    return dataclasses.replace(base, links=(link,), flows=flows)


@cache
def parking_lot() -> Scenario:
    """Section IV-H with DropTail: the file's flows, and 2 of each kind over each link alone."""
    base = load(FOLDER / "parking-lot.toml")
    cross = [
        dataclasses.replace(flow, name=f"{flow.law} {link.name}", path=(link.name,))
        for link in base.links
        for flow in base.flows[:2]
    ]
    return dataclasses.replace(base, flows=(*base.flows, *cross))
