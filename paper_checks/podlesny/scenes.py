"""Scenarios of Podlesny and Williamson with one or two flows, without the paper's router.

``router`` has the other scenarios.
"""

import dataclasses
from functools import cache
from pathlib import Path

from vegasmodel.scenario import Scenario, load

__all__ = ["figure_1", "first_window", "sawtooth", "windowed"]


@cache
def figure_1(rtt: float, buffer: float = 62.0) -> Scenario:
    """The scenario of figure 1: one NewReno and one Vegas flow at a drop-tail queue.

    ``rtt`` is in s, ``buffer`` in packets, by default as many as the link sends in 250 ms.
    """
    base = load(Path(__file__).with_name("figure1.toml"))
    name = f"podlesny-figure-1-{1e3 * rtt:g}-ms"
    name += f"-buffer-{buffer:g}" * (buffer != base.links[0].buffer)
    return base.replace({"flow.rtt": rtt, "link.buffer": buffer}, name=name)


@cache
def windowed(window: float) -> Scenario:
    """One flow whose window stays at ``window`` packets, on figure 1's link, without loss."""
    base = figure_1(0.1)
    flow = dataclasses.replace(base.flows[0], max_window=window)
    run = dataclasses.replace(base.run, warmup=20.0, runs=1, ns2_defaults="papers")
    name = f"podlesny-window-{window:g}"
    return base.replace({"link.buffer": 1000.0}, name=name, flows=(flow,), run=run)


@cache
def first_window(law: str) -> Scenario:
    """The scenario of one flow of ``law`` in its first round trip with data.

    The RTT is 2 s.  The SYN takes the first round trip, so the second is measured.
    """
    base = figure_1(2.0)
    flow = next(flow for flow in base.flows if flow.law == law)
    run = dataclasses.replace(base.run, duration=3.9, warmup=2.5, runs=1, start_jitter=0.0)
    return dataclasses.replace(base, name=f"podlesny-first-window-{law}", flows=(flow,), run=run)


@cache
def sawtooth() -> Scenario:
    """One NewReno flow alone on figure 1's link."""
    base = figure_1(0.1)
    run = dataclasses.replace(base.run, warmup=20.0, runs=1, start_jitter=0.0)
    return dataclasses.replace(base, name="podlesny-sawtooth", flows=base.flows[:1], run=run)
