"""Table 3 of ``tsang`` by the theory of ``boutremans``: why a connection gets less.

The printed expected rates imply whole windows, and baseRTTs that connection 2 over-estimates (see
``table3``).  The longer connection gets less because its backlog is smaller.
"""

from __future__ import annotations

from paper_checks.checks import Found, Record, by_print
from paper_checks.tsang.scenes import DELAYS
from paper_checks.tsang.table3 import backlogs


def conclusion() -> tuple[Record, ...]:
    """The reason why the longer connection gets less."""
    ratios = [first / second for first, second in map(backlogs, DELAYS[:-2])]
    return (
        Record(
            "section 3.2, one cause is the difference in alpha_i, even when x_i is zero",
            "claim",
            True,
            by_print(
                Found(
                    min(ratios) > 1,
                    detail=f"alpha_1/alpha_2 from {min(ratios):.2f} to {max(ratios):.2f}.",
                )
            ),
            note="The alpha_i behind the printed rates of the 11 cases in which the longer loses. "
            "With x_i = 0 the rates are in the ratio of the alpha_i (the section's rate_i), so "
            "the longer loses by them alone.",
        ),
    )


RECORDS = conclusion()
