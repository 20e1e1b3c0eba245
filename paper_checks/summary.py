"""``python -m paper_checks.summary``: verdicts counted by paper, as a Markdown table."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping

from paper_checks.checks import Check

__all__ = ["markdown", "summary"]

VERDICTS = ("reproduced", "erratum", "discrepant", "blocked")


def summary(checks: Iterable[Check]) -> dict[str, dict[str, int]]:
    """Number of checks by paper and verdict; every verdict has an entry."""
    counts: dict[str, Counter[str]] = {}
    for check in checks:
        counts.setdefault(check.paper, Counter())[check.verdict] += 1
    return {paper: {v: count[v] for v in VERDICTS} for paper, count in counts.items()}


def markdown(counts: Mapping[str, Mapping[str, int]]) -> str:
    """The table of the README: one row a paper, and their sum."""
    total = {v: sum(row[v] for row in counts.values()) for v in VERDICTS}
    lines = [f"| paper | {' | '.join(VERDICTS)} | all |", f"| --- |{' ---: |' * 5}"]
    for paper, row in [*counts.items(), ("all", total)]:
        cells = " | ".join(str(row[v]) for v in VERDICTS)
        lines.append(f"| {paper} | {cells} | {sum(row.values())} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    from paper_checks import run

    sys.stdout.write(markdown(summary(run())))
