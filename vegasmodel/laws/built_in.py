"""Lists the congestion control laws that come with the package."""

from __future__ import annotations

from vegasmodel.laws import cubic, newreno, reno, sack, tahoe, vegas
from vegasmodel.laws.law import Law

BUILT_IN: tuple[Law, ...] = (
    vegas.LAW,
    reno.LAW,
    newreno.LAW,
    sack.LAW,
    tahoe.LAW,
    cubic.LAW,
)
"""The package's own laws, one line each; the simulators number them in this order."""
