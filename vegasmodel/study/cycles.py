"""The steady states of one scenario as a set, and the share of starts that lead to each.

``basins`` compares what runs of a given length deliver.  Here each start is followed to its steady
state, so what is compared has no transient and no end: rests, cycles with their period, or averages
of motions that do not repeat.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vegasmodel.fields.rules import Choice
from vegasmodel.fields.units import FieldError
from vegasmodel.metrics import Floats
from vegasmodel.prediction import LimitCycle
from vegasmodel.scenario import Scenario
from vegasmodel.simulation import STEADY, limit_cycle
from vegasmodel.status import Status
from vegasmodel.study.basins import TOLERANCE, Outcome, check_tolerance, linked, outcomes
from vegasmodel.study.starts import Start
from vegasmodel.study.starts import starts as distribution

__all__ = ["LimitCycles", "limit_cycles"]

KINDS = ("fixed point", "periodic", "neither found")


@dataclass(frozen=True, eq=False)
class LimitCycles:
    """The steady states of a scenario; which one a start leads to, and how many starts each has."""

    scenario: Scenario
    model: str
    tolerance: float
    starts: tuple[Start, ...]
    cycles: tuple[LimitCycle | None, ...]  # [start]; None where there is no answer
    outcome: NDArray[np.intp]  # [start] index into ``outcomes``; -1 where there is no answer
    outcomes: tuple[Outcome, ...]  # range of throughputs and share of the starts; most starts first
    reasons: tuple[str, ...]  # why there is no answer, each once

    @property
    def distinct(self) -> tuple[LimitCycle, ...]:
        """One steady state for each outcome: the one nearest to the outcome's mean throughput."""
        examples = (self.cycles[each.example] for each in self.outcomes)
        return tuple(cycle for cycle in examples if cycle is not None)

    @property
    def answered(self) -> int:
        """The number of starts for which the model has an answer."""
        return int((self.outcome >= 0).sum())

    def __repr__(self) -> str:
        """One line: the kind of each steady state with its share of the starts."""
        pairs = zip(self.distinct[:6], self.outcomes, strict=False)
        shares = ", ".join(f"{cycle.kind} {each.share:.3g}" for cycle, each in pairs)
        return f"<LimitCycles {self.model}: {len(self.outcomes)}, shares of starts: {shares}>"


def limit_cycles(
    scenario: Scenario,
    model: str = "fluid",
    *,
    starts: int = 40,
    seed: int = 1,
    phase: float | None = None,
    windows: tuple[int, int] | None = None,
    order: bool = False,
    tolerance: float = TOLERANCE,
    losers: str | None = None,
    packets: bool | None = None,
    longest: float | None = None,
    threads: int | None = None,
) -> LimitCycles:
    """The steady states that the starts of ``scenario`` lead to, and the share of starts of each.

    ``model``, ``losers``, ``packets`` and ``longest`` are those of ``limit_cycle``.  ``starts``
    starts are drawn as by ``basins``, whose arguments are ``seed``, ``phase`` (s), ``windows``
    (packets) and ``order``.  The shares hold for starts drawn in this way, and for no others.  A
    steady state that no start leads to is not found, and an unstable one never is.

    Two steady states count as one if they are of one kind, neither the period nor any flow's
    throughput differs by more than ``tolerance`` (a part of the period, and of the mean throughput
    of all flows and starts), or if a chain of steady states that near to one another links them.
    So a range of rests without gaps is one outcome, with two ends.  To averages of motions that do
    not repeat, the standard errors that each has are added.  ``threads``: default one a core.

    Raises ``FieldError`` for bad input, and ``ValueError`` if the model has no equation for the
    scenario.
    """
    Choice(STEADY).check(model, "model")
    check_tolerance(tolerance)
    drawn = distribution(scenario, phase, windows, order=order).draw(scenario, starts, seed)

    def one(start: Start) -> LimitCycle | str:
        try:
            begun = start.of(scenario)
        except FieldError as error:
            return str(error)
        found = limit_cycle(begun, model, losers=losers, packets=packets, longest=longest)
        return found if found.status == Status.DONE.reason else found.status

    with ThreadPoolExecutor(threads or os.cpu_count()) as pool:  # the march lets others run
        found = list(pool.map(one, drawn))
    cycles = tuple(None if isinstance(each, str) else each for each in found)
    rates, features, errors = _table(cycles, len(scenario.members))
    outcome = linked(features, tolerance, errors)
    reasons = tuple(dict.fromkeys(each for each in found if isinstance(each, str)))
    return LimitCycles(
        scenario, model, tolerance, tuple(drawn), cycles, outcome, outcomes(rates, outcome), reasons
    )


def _table(cycles: tuple[LimitCycle | None, ...], n: int) -> tuple[Floats, Floats, Floats]:
    """Rates [start, flow], and features with standard errors [start, feature].

    The features of two steady states are as far apart as they differ: rates over their mean, the
    logarithm of the period, and the kind, which differs by 1.
    """
    rates, spread = np.full((2, len(cycles), n), np.nan)
    more = np.full((len(cycles), 2), np.nan)
    for k, cycle in enumerate(cycles):
        if cycle is not None:
            rates[k], spread[k] = cycle.throughput, cycle.spread
            period = np.log(cycle.period) if cycle.kind == "periodic" else 0.0
            more[k] = period, KINDS.index(cycle.kind)
    scale = float(rates[np.isfinite(rates)].mean()) if np.isfinite(rates).any() else 1.0
    scale = scale if scale > 0 else 1.0
    errors = np.column_stack([spread / scale, 0.0 * more])
    return rates, np.column_stack([rates / scale, more]), errors
