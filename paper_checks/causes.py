"""``python -m paper_checks.causes`` prints why records are discrepant, as a Markdown table.

A record compares a value that a paper prints with ours.  It is discrepant if the two differ, and if
the evidence shows that the printed one is wrong.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterable

from paper_checks.checks import Check

__all__ = ["CAUSES", "cause", "markdown"]

SELF_CONTRADICTION = "the text contradicts its own formulas"
OVERSTATED = "the text claims more than its own equation or table shows"
NO_T = (
    "the paper does not state T, the round trip without queueing; we tried every T in the "
    "formulas, and 40 to 160 ms in ns-2"
)
HYPOTHESIS = "the paper's hypothesis or statement does not hold in ns-2"
BOTH_MISS = (
    "not found: at a fifth of the scale (flows, capacity and buffers), the printed value differs "
    "from our values by the paper's router with ns-3's TCP and by CBQ with ns-2's TCP; at full "
    "scale, it differs from our value by CBQ"
)

# paper, pattern of the items' names, why
CAUSES = (
    ("evaluation", r"section 4", OVERSTATED),
    ("devendictis", r"figure 4, the", SELF_CONTRADICTION),
    ("devendictis", r"section 4, ratio", NO_T),
    ("devendictis", r"section 3, hyp", HYPOTHESIS),
    ("podlesny", r"section IV-A", BOTH_MISS),
)


def cause(check: Check) -> str:
    """Why a discrepant record differs.  Raises ``LookupError`` if the list of causes lacks it."""
    for paper, item, why in CAUSES:
        if check.paper == paper and re.match(item, check.item):
            return why
    raise LookupError(f"{check.paper}, {check.item}: discrepant, and no cause is named")


def markdown(checks: Iterable[Check]) -> str:
    """The table of the discrepant records among ``checks``, by paper and cause."""
    counts = Counter((c.paper, cause(c)) for c in checks if c.verdict == "discrepant")
    lines = ["| paper | discrepant | because |", "| --- | ---: | --- |"]
    lines += [f"| {paper} | {n} | {why} |" for (paper, why), n in counts.items()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    from paper_checks import run

    sys.stdout.write(markdown(run()))
