"""Takes the arguments of the mini-cycle model from a scenario, such as capacity, buffer and RTT.

The model predicts how Vegas and Reno share a drop-tail buffer. One of its arguments says which of
the flows lose packets when the buffer overflows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from vegasmodel.equilibrium import minicycle
from vegasmodel.metrics import Floats
from vegasmodel.scenario import Flow, Scenario
from vegasmodel.scenario.placement import link_stack
from vegasmodel.stacks import STACKS


def given(scenario: Scenario) -> dict[str, Floats]:
    """The values of the scenario that the mini-cycle model takes, by the names of their fields.

    They are those of the link and of the Vegas flows, and the RTT, which all flows share.
    """
    link, vegas = scenario.links[0], vegas_group(scenario)
    first = vegas.initial_window
    values = {
        "capacity": link.capacity,
        "buffer": link.buffer,
        "rtt": scenario.members[0].rtt,
        "alpha": vegas.alpha,
        "beta": vegas.beta,
        "gamma": vegas.gamma,
        "decrease": vegas.decrease,
        "initial_window": minicycle.INITIAL[vegas.variant] if first is None else first,
    }
    return {name: np.asarray(value, dtype=np.float64) for name, value in values.items()}


def vegas_group(scenario: Scenario) -> Flow:
    """The first group of Vegas flows.

    A group is an entry ``[[flow]]`` of the scenario.  In the model all groups of Vegas flows have
    the same parameters (``minicycle.reason``).
    """
    return next(group for group in scenario.flows if group.keeps_backlog)


def counts(scenario: Scenario) -> tuple[int, int]:
    """The numbers of Vegas and of loss-based flows."""
    vegas = sum(m.flow.keeps_backlog for m in scenario.members)
    return vegas, len(scenario.members) - vegas


def losing(scenario: Scenario) -> minicycle.Losers:
    """Which sources lose packets when the buffer overflows (``losers`` of ``minicycle.solve``).

    With the variant ``paper`` both sources lose packets ("both"). With the variants ``ns2`` and
    ``linux`` only sources whose windows grow at that moment lose packets ("growing").
    """
    return "both" if STACKS[vegas_group(scenario).variant].real_numbers else "growing"


def room(scenario: Scenario, buffer: ArrayLike) -> Floats:
    """How many packets can wait at the scenario's link if it has this ``buffer``.

    At a drop-tail link that behaves as in ns-2, one packet fewer than ``buffer`` can wait. The
    simulators round the buffer down to whole packets; this function does not. So the closed form is
    a smooth function of the buffer, and can be differentiated (``sensitivity``).
    """
    return scenario.links[0].queue.waiting(buffer, link_stack(scenario))
