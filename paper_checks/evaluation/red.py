"""Settings of RED that the paper ``evaluation`` does not state; we try several of them.

If only some of them give the value that the paper prints, its record stays undecided.

ns-2 had a weight of 0.002 until 29 December 2001, and ``gentle_`` was off until 23 April 2001
(tcl/lib/ns-default.tcl, whose comments date the changes).  ns-2 2.35 computes the weight from the
link's rate and has ``gentle_`` on.  In both versions every drop comes at least 1/p packets after
the drop before (``wait_``), where RED computes p from its average queue.  RED as Floyd and Jacobson
published it in 1993 may drop two packets in a row.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import cast

from paper_checks.checks import Found, Value, agrees
from paper_checks.runs import Measured, Runs
from vegasmodel.queues import DropTail
from vegasmodel.scenario import Scenario

__all__ = ["SETTINGS", "with_each_red"]

OLDER = "ns-2's defaults of before April 2001"
AUTOMATIC = "ns-2 2.35's"
UNSPACED = "RED of 1993"
SETTINGS = (
    "RED has settings that the paper does not state. We ran three: ns-2's defaults of before April "
    "2001 (weight 0.002, probability 0.1, wait_ true, gentle_ false), which give the record's "
    "figure; those of ns-2 2.35 (weight from the link's rate, here 0.0053; gentle_ true); and RED "
    "of 1993, which may drop the packet after a drop (wait_ false, all else as in the first). If "
    "some of them give the print and some do not, the record is blocked."
)


class _Other:
    """Stored runs, like ``runs``, but those with another setting of RED.

    ``other`` finds the run of a scenario with this setting.  A drop-tail scenario has the same run
    with every setting.
    """

    def __init__(self, runs: Runs, other: Callable[[Scenario], Measured]) -> None:
        self._runs, self._other = runs, other

    def __call__(self, scenario: Scenario) -> Measured:
        """The measurement of ``scenario``, with the other setting if its queue is RED."""
        plain = isinstance(scenario.links[0].queue, DropTail)
        return self._runs(scenario) if plain else self._other(scenario)


def with_each_red(
    compute: Callable[[Runs], Found], printed: Value = True
) -> Callable[[Runs], Found]:
    """A function that calls ``compute``, a record's function, with each of three settings of RED.

    The value is that with the first setting, ns-2's older defaults.  The result is undecided if
    some of the settings give the printed value and some do not.
    """

    def each(runs: Runs) -> Found:
        """The value with ns-2's older defaults of RED; undecided if RED's settings decide."""
        found = {
            OLDER: compute(runs),
            AUTOMATIC: compute(cast("Runs", _Other(runs, runs.automatic))),
            UNSPACED: compute(cast("Runs", _Other(runs, runs.unspaced))),
        }
        text = " ".join(f"By {name}: {result.detail}" for name, result in found.items())
        agreeing = [name for name, result in found.items() if agrees(result, printed)]
        undecided = ""
        if 0 < len(agreeing) < len(found):
            those = " and with ".join(agreeing)
            undecided = f"RED's settings decide: the print comes out only with {those}."
        missing = next((result.missing for result in found.values() if result.missing), "")
        return dataclasses.replace(found[OLDER], detail=text, undecided=undecided, missing=missing)

    return each
