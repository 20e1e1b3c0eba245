"""Finds the different steady states of a scenario, and how many random starts lead to each.

A start is a choice of start times, initial windows and a seed. From each start, a simulator looks
for a fixed point or a periodic motion. If it finds neither, the averages of the motion count as the
steady state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vegasmodel.fields.errors import FieldError
from vegasmodel.fields.rules import Choice
from vegasmodel.fields.units import format_time
from vegasmodel.metrics import Floats
from vegasmodel.predictor import workers
from vegasmodel.results.steady_state import LimitCycle
from vegasmodel.scenario import Scenario, expect
from vegasmodel.simulation import WITH_LIMIT_CYCLE, limit_cycle
from vegasmodel.status import Status
from vegasmodel.study.basins import (
    FLOW_COLUMNS,
    OUTCOME_HEADS,
    TOLERANCE,
    OfStarts,
    Outcome,
    check_tolerance,
    linked,
    outcomes,
)
from vegasmodel.study.starts import Start
from vegasmodel.study.starts import starts as distribution
from vegasmodel.support.shown import Table
from vegasmodel.support.threads import pool

__all__ = ["LimitCycles", "limit_cycles"]

KINDS = ("fixed point", "periodic", "neither found")


@dataclass(frozen=True, eq=False, repr=False)
class LimitCycles(OfStarts):
    """The steady states found for a scenario, and which random starts lead to each of them.

    ``table`` gives a text with a line for each steady state, and columns for up to six flows.

    A start consists of a start time and an initial window for each flow, and a seed. Steady states
    that differ by at most ``tolerance`` count as one (``limit_cycles`` has the exact rule).
    """

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
        """One steady state for each outcome, in the order of ``outcomes``.

        An outcome may consist of several similar steady states. Of these, the property has the one
        whose throughputs are nearest to the means over the outcome.
        """
        examples = (self.cycles[each.example] for each in self.outcomes)
        return tuple(cycle for cycle in examples if cycle is not None)

    def __repr__(self) -> str:
        """One line: the number of steady states, and the kinds and shares of up to six of them.

        A share is the fraction of the random starts that lead to the steady state.
        """
        pairs = zip(self.distinct[:6], self.outcomes, strict=False)
        shares = ", ".join(f"{cycle.kind} {each.share:.3g}" for cycle, each in pairs)
        return f"<LimitCycles {self.model}: {len(self.outcomes)}, shares of starts: {shares}>"

    @property
    def _shown(self) -> Table:
        """A row for each steady state: how many starts lead to it, its kind, and throughputs."""
        rows = []
        for cycle, each in zip(self.distinct, self.outcomes, strict=True):
            share, interval, *rates = each.cells(FLOW_COLUMNS)
            period = format_time(cycle.period) if cycle.kind == "periodic" else "-"
            rows.append([share, interval, cycle.kind, period, *rates])
        return self._listed([*OUTCOME_HEADS, "kind", "period"], rows)

    def to_json(self) -> dict[str, Any]:
        """The steady states as plain data, each with the share of the starts that lead to it.

        A start is a choice of start times, initial windows and a seed. Each steady state has the
        entries of ``LimitCycle.to_json`` for one of the starts that lead to it. Its entry
        ``outcome`` (``Outcome.to_json``) has the share, and mean throughputs over all these starts.
        """
        return {
            "scenario": self.scenario.name,
            "model": self.model,
            "tolerance": self.tolerance,
            "starts": len(self.starts),
            "answered": self.answered,
            "cycles": [
                {**cycle.to_json(), "outcome": each.to_json()}
                for cycle, each in zip(self.distinct, self.outcomes, strict=True)
            ],
            "reasons": list(self.reasons),
        }


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
    """Find the steady states of ``scenario``, and the share of random starts that lead to each.

    ``limit_cycle`` explains ``model``, ``losers``, ``packets`` and ``longest``.  The number of
    starts is ``starts``.  They are drawn as in ``basins``, which explains ``seed``, ``phase`` (s),
    ``windows`` (packets) and ``order``.  The shares hold only for starts that are drawn in this
    way.  A steady state is found only if a start leads to it.  So unstable ones are not found.

    A steady state is of one of three kinds: a fixed point, a periodic motion, or the averages of a
    motion that does not repeat.  Two steady states are close if all of the following hold:

    - Their kinds are equal.
    - The logarithms of their periods differ by at most ``tolerance``.
    - No flow's throughput differs by more than ``tolerance`` times the mean throughput of all flows
      and starts.  Averages may differ by more, according to their standard errors.

    Steady states that are close, directly or through a chain of others, count as one outcome.  So a
    range of fixed points without gaps is one outcome.

    ``threads`` is the number of threads (by default one per core).

    Raises ``FieldError`` for bad input, and ``ValueError`` if the model cannot simulate the
    scenario.
    """
    expect(scenario)
    Choice(WITH_LIMIT_CYCLE).check(model, "model")
    n_threads = workers(threads)
    check_tolerance(tolerance)
    random_starts = distribution(scenario, phase, windows, order=order).draw(scenario, starts, seed)

    def steady_state(start: Start) -> LimitCycle | str:
        """The steady state that the scenario reaches from a start, or why there is none."""
        try:
            begun = start.of(scenario)
        except FieldError as error:
            return str(error)
        found = limit_cycle(begun, model, losers=losers, packets=packets, longest=longest)
        return found if found.status == Status.DONE.reason else found.status

    # threads run at the same time, because compiled code frees Python's lock
    with pool(n_threads) as thread_pool:
        found = list(thread_pool.map(steady_state, random_starts))
    cycles = tuple(None if isinstance(each, str) else each for each in found)
    rates, features, errors = _table(cycles, len(scenario.members))
    outcome = linked(features, tolerance, errors)
    reasons = tuple(dict.fromkeys(each for each in found if isinstance(each, str)))
    return LimitCycles(
        scenario=scenario,
        model=model,
        tolerance=tolerance,
        starts=tuple(random_starts),
        cycles=cycles,
        outcome=outcome,
        outcomes=outcomes(rates, outcome),
        reasons=reasons,
    )


def _table(cycles: tuple[LimitCycle | None, ...], n: int) -> tuple[Floats, Floats, Floats]:
    """Numbers by which steady states are compared: throughputs, features, and standard errors.

    ``cycles`` has the steady state that each random start leads to.  A start is a choice of start
    times, initial windows and a seed.  The results are the throughputs [start, flow], and the
    features and their standard errors [start, feature].  A start without a result has NaN
    everywhere.  The function ``linked`` compares steady states by their features.  These are

    - each flow's throughput, divided by the mean throughput of all flows and starts;
    - the logarithm of the period (0 if there is none);
    - the index of the kind in ``KINDS``.
    """
    rates, spread = np.full((2, len(cycles), n), np.nan)  # ``spread``: their standard errors
    period_and_kind = np.full((len(cycles), 2), np.nan)  # features that have no standard error
    for k, cycle in enumerate(cycles):
        if cycle is not None:
            rates[k], spread[k] = cycle.throughput, cycle.spread
            period = np.log(cycle.period) if cycle.kind == "periodic" else 0.0
            period_and_kind[k] = period, KINDS.index(cycle.kind)
    scale = float(rates[np.isfinite(rates)].mean()) if np.isfinite(rates).any() else 1.0
    scale = scale if scale > 0 else 1.0
    features = np.column_stack([rates / scale, period_and_kind])
    # the period and the kind have an error of 0; without a result it is NaN, as they are
    errors = np.column_stack([spread / scale, 0.0 * period_and_kind])
    return rates, features, errors
