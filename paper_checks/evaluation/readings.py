"""Start times and ns-2's timers, which the paper ``evaluation`` does not state.

A reading is one choice of what the paper does not state.  Here a record's value is computed with
two readings: if only one of them gives the printed value, the record stays undecided.  (``red``
does so for RED's settings.)
"""

import dataclasses
from collections.abc import Callable
from typing import cast

from paper_checks.checks import Found, Value, agrees, of_runs
from paper_checks.runs import Measured, Runs
from vegasmodel.scenario import Scenario

__all__ = ["STARTS", "TIMERS", "with_both_starts", "with_both_timers"]

TWO_STARTS = ("all starts at 0", "starts 0.5 s apart")
LATE = 0.5  # s, by which each source of section 3.2.1 starts after the one before
STARTS = (
    "Section 3.3 does not say when its sources start. The record's figure is with all starts at 0; "
    "the note also has the figure with starts 0.5 s apart, as in section 3.2.1. If only one of "
    "them gives the print, the record is blocked."
)
TIMERS = (
    "The paper names no version of ns-2, whose timers changed from 2001 to 2007. The record's "
    "figure is with the older timers (clock of 0.1 s, no least timeout); the note also has the "
    "figure with those of 2.35 (clock of 0.01 s, least timeout 0.2 s, RFC 2988). If only one of "
    "them gives the print, the record is blocked."
)


def one_by_one(scenario: Scenario) -> Scenario:
    """The scenario in which each source starts ``LATE`` s after the one before."""
    flows = tuple(dataclasses.replace(f, start=LATE * i) for i, f in enumerate(scenario.flows))
    return dataclasses.replace(scenario, name=f"{scenario.name}-one-by-one", flows=flows)


class _OneByOne:
    """Like ``runs``, but the sources of each scenario start one after the other."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs

    def __call__(self, scenario: Scenario) -> Measured:
        """The measurement of ``scenario`` with these start times."""
        return self._runs(one_by_one(scenario))

    def automatic(self, scenario: Scenario) -> Measured:
        """The measurement with these start times and the RED of ns-2 2.35."""
        return self._runs.automatic(one_by_one(scenario))

    def unspaced(self, scenario: Scenario) -> Measured:
        """The measurement with these start times and RED as published in 1993."""
        return self._runs.unspaced(one_by_one(scenario))


@of_runs
def with_both_starts(runs: Runs, compute: Callable[[Runs], Found], printed: Value = True) -> Found:
    """The value with all starts at 0, beside the value with sources that start one by one.

    ``compute`` computes a record's value from the runs of ns-2.  The result is undecided if only
    one of the two values agrees with the printed one, because the paper does not say when sources
    start.
    """
    at_once, apart = compute(runs), compute(cast("Runs", _OneByOne(runs)))
    text = f"All at 0: {at_once.detail} 0.5 s apart: {apart.detail}"
    return _both(at_once, apart, printed, text, "The starts decide", *TWO_STARTS)


@of_runs
def with_both_timers(runs: Runs, compute: Callable[[Runs], Found], printed: Value) -> Found:
    """The value with ns-2's older timers, beside the value with the timers of ns-2 2.35.

    ``compute`` computes a record's value from the runs of ns-2.  The result is undecided if only
    one of the two values agrees with the printed one, because the paper does not name its version
    of ns-2.
    """
    older, of_2_35 = compute(runs), compute(cast("Runs", runs.later_timers))
    text = f"{older.detail} With 2.35's timers {of_2_35.value:.4g}, +- {of_2_35.tolerance:.2g}: "
    text += of_2_35.detail
    names = "the older timers", "the timers of 2.35"
    return _both(older, of_2_35, printed, text, "ns-2's timers decide", *names)


def _both(one: Found, other: Found, printed: Value, text: str, what: str, *names: str) -> Found:
    """The value ``one`` of the first of two readings, beside the value ``other`` of the second.

    A reading is a choice of what the paper does not state.  The result is undecided if only one of
    the two values agrees with ``printed``, or if one of them is itself undecided.  ``text``
    describes both values, and ``names`` are the names of the readings.  ``what`` begins the reason
    why the result is undecided, for example "The starts decide".
    """
    agreeing = [
        name
        for name, found in zip(names, (one, other), strict=True)
        if agrees(found, printed) and not found.undecided
    ]
    undecided = next(
        (
            f"With {name}: {found.undecided}"
            for name, found in zip(names, (one, other), strict=True)
            if found.undecided
        ),
        "",
    )
    if len(agreeing) == 1:
        (differing,) = (name for name in names if name not in agreeing)
        undecided = (
            f"{what}, and the paper does not state them: with {agreeing[0]} the print comes out, "
            f"with {differing} " + ("it may or may not." if undecided else "it does not.")
        )
    missing = one.missing or other.missing
    return dataclasses.replace(one, detail=text, undecided=undecided, missing=missing)
