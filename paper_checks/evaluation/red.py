"""Computes a record's value with three settings of RED, because ``evaluation`` does not state any.

A record compares a value that the paper ``evaluation`` prints with ours.  If some of the settings
give the printed value, and the others do not, the record is undecided: we cannot tell whether the
printed value is right.

By default, RED in ns-2 waits after a drop: at least 1/p packets must pass before the next drop,
where p is the drop probability that RED computes from its average queue.  ns-2's parameter
``wait_`` switches this on.  RED as Floyd and Jacobson published it in 1993 does not wait, so it may
drop two packets in a row.

The three settings are:

- The defaults of ns-2 before 23 April 2001: the weight of RED's average queue is 0.002,
  ``gentle_`` is off, and ``wait_`` is on.
- The defaults of ns-2 2.35: the weight is computed from the link's rate, ``gentle_`` is on, and
  ``wait_`` is on.
- RED of 1993: ``wait_`` is off.  All else is as in the first setting.

The comments in ns-2's tcl/lib/ns-default.tcl date the changes of its defaults: ``gentle_`` on 23
April 2001, and the weight on 29 December 2001.
"""

import dataclasses
from collections.abc import Callable
from typing import cast

from paper_checks.checks import Found, Value, agrees, of_runs
from paper_checks.runs import Measured, Runs
from vegasmodel.queues import DropTail
from vegasmodel.scenario import Scenario

__all__ = ["SETTINGS", "with_each_red"]

OLDER = "ns-2's defaults of before April 2001"
NEWER = "ns-2 2.35's"
UNSPACED = "RED of 1993"
SETTINGS = (
    "RED has settings that the paper does not state. We ran three: ns-2's defaults of before April "
    "2001 (weight 0.002, probability 0.1, wait_ true, gentle_ false), which give the record's "
    "figure; those of ns-2 2.35 (weight from the link's rate, here 0.0053; gentle_ true); and RED "
    "of 1993, which may drop the packet after a drop (wait_ false, all else as in the first). If "
    "some of them give the print and some do not, the record is blocked."
)


class _OtherRed:
    """Stored runs of ns-2 with another setting of RED; used in place of ``runs``.

    ``other`` finds the stored run of a scenario with this setting.  A scenario without RED has only
    one run, which ``runs`` finds.
    """

    def __init__(self, runs: Runs, other: Callable[[Scenario], Measured]) -> None:
        self._runs, self._other = runs, other

    def __call__(self, scenario: Scenario) -> Measured:
        """The measurement of ``scenario``, with the other setting if its queue is RED."""
        plain = isinstance(scenario.links[0].queue, DropTail)
        return self._runs(scenario) if plain else self._other(scenario)


@of_runs
def with_each_red(runs: Runs, compute: Callable[[Runs], Found], printed: Value = True) -> Found:
    """The result of ``compute``, a record's function, with three settings of RED.

    The value is that with the first setting, ns-2's older defaults.  The result is undecided if
    some of the settings give the printed value and some do not.
    """
    found = {
        OLDER: compute(runs),
        NEWER: compute(cast("Runs", _OtherRed(runs, runs.automatic))),
        UNSPACED: compute(cast("Runs", _OtherRed(runs, runs.unspaced))),
    }
    text = " ".join(f"By {name}: {result.detail}" for name, result in found.items())
    agreeing = [name for name, result in found.items() if agrees(result, printed)]
    undecided = ""
    if 0 < len(agreeing) < len(found):
        those = " and with ".join(agreeing)
        undecided = f"RED's settings decide: the print comes out only with {those}."
    missing = next((result.missing for result in found.values() if result.missing), "")
    return dataclasses.replace(found[OLDER], detail=text, undecided=undecided, missing=missing)
