"""Draws random starts, from which a scenario is simulated to find its different outcomes.

A start consists of a start time and an initial window for each flow, and a seed.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from vegasmodel.fields.errors import FieldError
from vegasmodel.fields.rules import Boolean, Integer, Quantity, listed
from vegasmodel.scenario import Scenario
from vegasmodel.scenario.settle import MAX_GROUPS

__all__ = ["Start", "Starts", "starts"]

MAX_WINDOW = 1_000_000  # packets: the largest initial window
MAX_STARTS = 5_000  # starts; more would take long, as the outcomes of all pairs are compared


@dataclass(frozen=True)
class Start:
    """One start of a scenario: the flows' start times and initial windows, and the run's seed."""

    times: tuple[float, ...]  # s
    windows: tuple[int | None, ...]  # packets; None: the scenario's own
    seed: int

    def of(self, scenario: Scenario) -> Scenario:
        """A copy of the scenario with the start times, initial windows and seed of this start.

        The copy has one run and no ``start_jitter``.  Each of its flows has an entry ``[[flow]]``
        of its own, because each has its own start time.  Raises ``FieldError`` if a flow would
        start after its stop or after the end of the run.
        """
        groups = []
        given = zip(scenario.members, self.times, self.windows, strict=True)
        for member, time, window in given:
            keep = window is None
            groups.append(
                dataclasses.replace(
                    member.flow,
                    name=member.name,
                    count=1,
                    rtt=member.rtt,
                    start=time,
                    initial_window=member.flow.initial_window if keep else window,
                )
            )
        run = dataclasses.replace(scenario.run, seed=self.seed, runs=1, start_jitter=0.0)
        return dataclasses.replace(scenario, flows=tuple(groups), run=run)


@dataclass(frozen=True)
class Starts:
    """The distribution of random starts: of start times, initial windows and the seed."""

    phase: float  # s; every flow starts later by a random time, uniform from 0 to ``phase``
    windows: tuple[int, int] | None  # range of initial windows (whole); None: the scenario's own
    order: bool  # the flows exchange their start times at random

    def draw(self, scenario: Scenario, n: int, seed: int) -> list[Start]:
        """Draw ``n`` random starts: each has start times, initial windows and a seed.

        If the scenario gives a flow its exact baseRTT (``over_estimate = 0``), the flow's first
        window is not drawn, but stays as in the scenario.  The same ``seed`` gives the same starts;
        a larger ``n`` only adds starts at the end.  Raises ``FieldError`` if ``n`` or ``seed`` is
        out of range.
        """
        Integer(1, MAX_STARTS).check(n, "starts")
        Integer(0, 2**31 - 1).check(seed, "seed")
        members = scenario.members
        begin = np.array([member.start for member in members])
        # In ns-2, a flow with ``over_estimate = 0`` always begins with a window of 2 packets.
        window_drawn = [member.flow.over_estimate != 0.0 for member in members]
        found = []
        for k in range(n):
            rng = np.random.default_rng([seed, k])
            seed_of_run = int(rng.integers(0, 2**31 - 1))
            # with ``order``, each flow gets the start time of a flow that is drawn at random
            start_of = rng.permutation(len(members)) if self.order else np.arange(len(members))
            times = begin[start_of] + rng.uniform(0.0, self.phase, len(members))
            windows: list[int | None] = [None] * len(members)
            if self.windows is not None:
                sizes = rng.integers(self.windows[0], self.windows[1] + 1, len(members))
                windows = [int(w) if d else None for w, d in zip(sizes, window_drawn, strict=True)]
            found.append(Start(tuple(times.tolist()), tuple(windows), seed_of_run))
        return found


def starts(
    scenario: Scenario,
    phase: float | None = None,
    windows: tuple[int, int] | None = None,
    *,
    order: bool = False,
) -> Starts:
    """The distribution from which random starts of a scenario are drawn.

    - ``phase``: each flow starts later by a random time from 0 to ``phase``, in s.  The default is
      the longest RTT.
    - ``windows``: the least and the greatest initial window, in packets.  By default the least is
      1, and the greatest is about the bandwidth-delay product divided by the number of flows.
      (0, 0) keeps the scenario's initial windows.
    - ``order``: if True, the flows exchange their start times at random.

    Raises ``FieldError`` for a value out of range, and for a scenario of more than ``MAX_GROUPS``
    flows: each start is a scenario in which every flow has a ``[[flow]]`` table of its own.
    """
    members = scenario.members
    if len(members) > MAX_GROUPS:
        allowed = f"at most {MAX_GROUPS} flows, because each gets a random start of its own"
        raise FieldError("flows", len(members), allowed)
    longest = max(member.rtt for member in members)
    phase = longest if phase is None else phase
    Quantity("time", high=scenario.run.duration).check(phase, "phase")
    phase = abs(phase)  # -0.0 is allowed, but is no end of a range that begins at 0
    Boolean().check(order, "order")
    if windows is None:
        product = min(link.capacity for link in scenario.links) * longest  # bandwidth times delay
        greatest = int(min(max(2.0, math.ceil(product / len(members))), MAX_WINDOW))
        return Starts(phase=phase, windows=(1, greatest), order=order)
    ends = listed(windows, "windows", "two whole numbers")
    if len(ends) != 2:
        raise FieldError("windows", windows, "two whole numbers, (LOW, HIGH)")
    for end in ends:
        Integer(0, MAX_WINDOW).check(end, "windows")
    low, high = map(int, ends)
    if (low, high) == (0, 0):
        return Starts(phase=phase, windows=None, order=order)
    if not 1 <= low <= high:
        allowed = "LOW..HIGH with 1 <= LOW <= HIGH, such as 1..30, or 0..0 for the scenario's "
        raise FieldError("windows", f"{low}..{high}", f"{allowed}windows")
    return Starts(phase=phase, windows=(low, high), order=order)
