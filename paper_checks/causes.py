"""``python -m paper_checks.causes``: the causes of discrepant items, as a Markdown table."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable

from paper_checks.checks import Check

__all__ = ["CAUSES", "cause", "markdown"]

TWICE = "the print contradicts itself: the text and its own example"
AGAINST = "the text contradicts its own formulas"
CLAIM = "the text says more than its own equation or table"
PHASE = (
    "the accident of phase: of five seeds, whose starts move by a packet's time, one or two have "
    "the figure"
)
UNKNOWN = "not found: phase tried; for Vegas also other starts, buffers, the rule without rounding"
RED = "not found: phase and three settings of RED tried"
LATER = "the second source starts 0.5 s later, as stated; with both at once ns-2 has the print"
TIMEOUT = "5 % loss is decided by timers: with 2.35's own the link is used to 56, 84 and 62 %"
LAW = "ns-2 2.35's Vegas or SACK fares otherwise there"
NO_T = "T is not stated; 40 to 160 ms tried in packets, all T in the formulas"
HYPOTHESIS = "the paper's hypothesis or statement does not hold in ns-2"
DEFAULTS = "ns-2 2.35's own first windows"
BOTH_MISS = (
    "not found: the paper's router with ns-3's TCP and CBQ with ns-2's both miss it, at a fifth of "
    "the scale; CBQ at full scale as well"
)

# paper, beginning of the items, why
CAUSES = (
    ("tsang", r"section 3\.4, shares", TWICE),
    ("evaluation", r"table 1|section 3\.1\.1", TIMEOUT),
    ("evaluation", r"figure 3a", LATER),
    ("evaluation", r"table [23]|figure 5|section 3\.2\.3\.1", UNKNOWN),
    ("evaluation", r"table 4", RED),
    ("evaluation", r"section 4", CLAIM),
    ("evaluation", r"section 3\.3\.2\.1|section 3\.3\.3", LAW),
    ("devendictis", r"figure 4, the", AGAINST),
    ("devendictis", r"section 4, ratio", NO_T),
    (
        "devendictis",
        r"section 3, hyp",
        HYPOTHESIS,
    ),
    ("podlesny", r"section II-B", DEFAULTS),
    ("podlesny", r"section IV-[AE]", BOTH_MISS),
)


def cause(check: Check) -> str:
    """Why a discrepant item differs.  Raises ``LookupError`` if the list of causes lacks it."""
    if check.share:
        return PHASE
    for paper, item, why in CAUSES:
        if check.paper == paper and re.match(item, check.item):
            return why
    raise LookupError(f"{check.paper}, {check.item}: discrepant, and no cause is named")


def markdown(checks: Iterable[Check]) -> str:
    """Discrepant items by paper and cause, in the order of the papers."""
    counts = Counter((c.paper, cause(c)) for c in checks if c.verdict == "discrepant")
    lines = ["| paper | discrepant | because |", "| --- | ---: | --- |"]
    lines += [f"| {paper} | {n} | {why} |" for (paper, why), n in counts.items()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    from paper_checks import run

    sys.stdout.write(markdown(run()))
