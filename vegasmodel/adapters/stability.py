"""Tells whether a scenario's equilibrium is stable under feedback delay.

A sender learns of a change of the queue one round trip later, so the windows follow delay
differential equations (those of the simulator ``delayed``). This module linearises the equations at
the equilibrium. The equilibrium is stable if all characteristic roots have negative real parts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from vegasmodel.adapters.common import column, rtts
from vegasmodel.adapters.rest import given as given_over_estimates
from vegasmodel.adapters.rest import measures as measures_base
from vegasmodel.adapters.rest import starts as start_times
from vegasmodel.engines.delayed import feedback
from vegasmodel.engines.fluid import continuous
from vegasmodel.equilibrium import loop_rest
from vegasmodel.equilibrium.loop_rest import Rest, Sources
from vegasmodel.equilibrium.red import Curve
from vegasmodel.equilibrium.stability import Stability, assess
from vegasmodel.fields.units import format_number, format_time
from vegasmodel.laws import find
from vegasmodel.queues import Red
from vegasmodel.scenario import Scenario, expect
from vegasmodel.stacks import STACKS
from vegasmodel.support.shown import Shown, Table

__all__ = ["StabilityVerdict", "equilibrium_of", "stability"]


@dataclass(frozen=True, eq=False, repr=False)
class StabilityVerdict(Shown):
    """Whether a scenario's equilibrium is stable under feedback delay.

    ``applicable`` is False if this cannot be decided, for example because there is no equilibrium.
    ``reason`` then says why.

    ``table`` gives a text with a line for each figure of the verdict.
    """

    scenario: Scenario
    applicable: bool
    reason: str | None = None
    rest: Rest | None = None
    stability: Stability | None = None

    @property
    def stable(self) -> bool | None:
        """Whether the equilibrium is stable; ``None`` if ``applicable`` is False."""
        return None if self.stability is None else self.stability.stable

    def __repr__(self) -> str:
        """One line: whether the equilibrium is stable, its queue, and how fast deviations grow."""
        figures = [f"{name} {value}" for name, value in self._figures.items()]
        return f"<StabilityVerdict of {self.scenario.name}: {', '.join([self._verdict, *figures])}>"

    @property
    def _shown(self) -> Table:
        """The table that ``table`` writes as text."""
        title = f"Equilibrium of {self.scenario.name}: {self._verdict}"
        rows = [[name, value] for name, value in self._figures.items()]
        return Table(title, ["figure", "value"] if rows else [], rows)

    @property
    def _verdict(self) -> str:
        """The text "stable" or "unstable", or why there is no verdict."""
        if self.stability is None:
            return f"no verdict, {self.reason}"
        return "stable" if self.stability.stable else "unstable"

    @property
    def _figures(self) -> dict[str, str]:
        """The queue, the growth rate of a disturbance and its period, as texts with units.

        What is infinite or unknown is left out.
        """
        if self.rest is None or self.stability is None:
            return {}
        s, queue = self.stability, self.scenario.links[0].capacity * self.rest.delay
        figures = {
            "queue": f"{format_number(queue)} pkt",
            "growth rate": f"{format_number(s.root.real)}/s" if math.isfinite(s.root.real) else "",
            "period": format_time(s.period) if math.isfinite(s.period) else "",
        }
        return {name: value for name, value in figures.items() if value}

    def to_json(self) -> dict[str, Any]:
        """The JSON document of the command ``stability``.

        The growth rate and the characteristic roots are in 1/s.  Of each pair of conjugate roots,
        one is given.
        """
        found: dict[str, Any] = {
            "schema": 1,
            "scenario": self.scenario.name,
            "applicable": self.applicable,
            "reason": self.reason,
            "stable": self.stable,
        }
        if self.rest is None or self.stability is None:
            return found
        s, c = self.stability, self.scenario.links[0].capacity
        windows = zip(self.scenario.members, self.rest.window, strict=True)
        return found | {
            "gain": s.gain if self.rest.loop.plain else None,
            "growth_per_s": None if math.isnan(s.root.real) else s.root.real,
            "period_s": s.period if math.isfinite(s.period) else None,
            "roots": [[float(root.real), float(root.imag)] for root in s.roots],
            "residual": s.residual,
            "complete": s.complete,
            "searched": {"right_of_per_s": s.left, "below_per_s": s.top},
            "queue_pkt": c * self.rest.delay,
            "loss": self.rest.loss,
            "windows_pkt": {member.name: float(W) for member, W in windows},
        }


def stability(scenario: Scenario) -> StabilityVerdict:
    """Whether the equilibrium of the equations of the simulator ``delayed`` is stable.

    The equations are linearised at the equilibrium (``vm.equilibrium.stability``). They describe
    one drop-tail or RED link (without marks) and long-lived flows that all cross it in the forward
    direction. Each flow's law must be Vegas, Reno, NewReno or SACK.
    """
    expect(scenario)
    found = equilibrium_of(scenario)
    if isinstance(found, str):
        return StabilityVerdict(scenario, applicable=False, reason=found)
    verdict = assess(found.loop)
    if verdict.stable is None:
        reason = "the search did not find all characteristic roots, and one that it did not find "
        reason += "may be an oscillation that grows"
        if not verdict.roots.size:
            reason = "no characteristic root was found, and there may be some: more periods of the "
            reason += "longest round trip are to be searched than fit"
        return StabilityVerdict(scenario, applicable=False, reason=reason)
    return StabilityVerdict(
        scenario=scenario, applicable=True, reason=None, rest=found, stability=verdict
    )


def equilibrium_of(scenario: Scenario) -> Rest | str:
    """The scenario's equilibrium, by the equations of the simulator ``delayed``.

    ``loop_rest.rest`` computes it. If these equations have no equilibrium for the scenario, or more
    than one, the result is a text that says why.
    """
    reason = _unsupported(scenario)
    if reason is not None:
        return reason
    link, queue = scenario.links[0], scenario.links[0].queue
    # None: the TCP implementations of the flows decide whether windows are whole packets
    whole_packets = continuous.in_packets(scenario, None)
    # capacity, pkt/s, and the queueing delay at which the buffer overflows, s
    c, s_max = continuous.limits(scenario, whole_packets)
    edges = [continuous.thresholds(member.flow) for member in scenario.members]
    vegas = [member.flow.keeps_backlog for member in scenario.members]
    halved = [  # delayed ACKs halve the growth of a loss-based window
        member.flow.delayed_ack and not member.flow.keeps_backlog for member in scenario.members
    ]
    sources = Sources(
        rtt=rtts(scenario),
        # a loss cuts the backlog, and Vegas then raises it only to the lower threshold
        edge=np.array([lower for lower, _ in edges]),
        # 0 for a Vegas flow that measures its baseRTT: no flow starts before it, so it finds an
        # empty queue (``_unsupported`` refuses a later start). Loss-based flows need no baseRTT.
        over_estimate=np.where(vegas, given_over_estimates(scenario), 0.0),
        # Linux's Vegas divides by baseRTT when it computes the backlog, all others by the RTT
        linux=np.array(
            [
                m.flow.keeps_backlog and STACKS[m.flow.variant].backlog_over_base
                for m in scenario.members
            ]
        ),
        climb=np.where(halved, 0.5, 1.0),
        decrease=column(scenario, lambda flow: flow.decrease),
        least=column(scenario, lambda flow: STACKS[flow.variant].least_window),
        most=column(scenario, lambda flow: flow.max_window),
    )
    curve, weight = None, 1.0
    if isinstance(queue, Red):
        curve = Curve(
            queue.min_threshold, queue.max_threshold, queue.max_probability, gentle=queue.gentle
        )
        weight = float(queue.weight)
    found = loop_rest.rest(sources, c, c * s_max, link.loss, curve, weight)
    if isinstance(found, str):
        return found
    # Without losses, any backlog between the thresholds is an equilibrium. ``found`` has the lower
    # threshold, and is only one of many.
    if found.loss == 0.0 and any(lower < upper for lower, upper in edges):
        return _band(scenario)
    return found


def _band(scenario: Scenario) -> str:
    """A text on why there are many equilibria: Vegas keeps its window over a range of backlogs."""
    vegas = [group for group in scenario.flows if group.keeps_backlog]
    leaves = "leaves a set of equilibria; each holds its windows"
    if any(not group.one_threshold for group in vegas):
        return f"without losses a band alpha < beta {leaves}"
    group = next(g for g in vegas if not STACKS[g.variant].real_numbers)
    lower, upper = continuous.thresholds(group)
    return (
        f"without losses the variant {group.variant} {leaves}: it counts the backlog in whole "
        f"packets, so {group.name} keeps its window at any backlog from {lower:g} to {upper:g} "
        'packets, although alpha = beta; variant = "paper" does not round'
    )


def _unsupported(scenario: Scenario) -> str | None:
    """The reason why the scenario has no single equilibrium; ``None`` if it may have one.

    In an equilibrium all windows rest. A Vegas window rests where the backlog that Vegas computes
    from its baseRTT reaches a threshold. So the baseRTT must be known.
    """
    reason = feedback.unsupported(scenario)
    if reason is not None:
        return reason
    if any(find(group.law).recovery == "slow start" for group in scenario.flows):
        return "a window that starts again from one packet does not rest"
    vegas = (g for g in scenario.flows if g.keeps_backlog)
    if any(continuous.thresholds(group)[0] <= 0.0 for group in vegas):
        return "Vegas may keep its window without a packet in the queue, so there may be no queue"
    # A flow that starts after others finds a queue, so its least RTT is longer than without one.
    starts, by_chance = start_times(scenario), scenario.run.start_jitter > 0.0
    late = (starts > starts.min()) | (by_chance and starts.size > 1)
    when = "at a random time (start_jitter)" if by_chance else "after other flows"
    for member, measuring in zip(scenario.members, measures_base(scenario) & late, strict=True):
        if member.flow.keeps_backlog and measuring:
            return (
                f"{member.name} starts {when} and measures its baseRTT, which is not known: give "
                f"the over_estimate of {member.flow.name}"
            )
    return None
