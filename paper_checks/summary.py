"""``python -m paper_checks.summary``: numbers of verdicts by paper, as a Markdown table."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping

from paper_checks.checks import Check

__all__ = ["VERDICTS", "markdown", "statements", "summary"]

VERDICTS = ("reproduced", "consistent", "erratum", "discrepant", "blocked")


def summary(checks: Iterable[Check]) -> dict[str, dict[str, int]]:
    """Number of checks by paper and verdict; every verdict has an entry."""
    counts: dict[str, Counter[str]] = {}
    for check in checks:
        counts.setdefault(check.paper, Counter())[check.verdict] += 1
    return {paper: {v: count[v] for v in VERDICTS} for paper, count in counts.items()}


def statements(checks: Iterable[Check]) -> dict[str, int]:
    """Number of different wrong statements by paper; several records may show the same one."""
    found: dict[str, set[str]] = {}
    for check in checks:
        own = found.setdefault(check.paper, set())
        if check.statement is not None:
            own.add(check.statement)
    return {paper: len(names) for paper, names in found.items()}


def markdown(counts: Mapping[str, Mapping[str, int]], wrong: Mapping[str, int]) -> str:
    """The table of docs/paper-checks.md: records by paper and verdict, and the distinct errata."""
    total = {v: sum(row[v] for row in counts.values()) for v in VERDICTS}
    lines = [
        f"| paper | {' | '.join(VERDICTS)} | records | distinct errata |",
        f"| --- |{' ---: |' * (len(VERDICTS) + 2)}",
    ]
    errata = {**wrong, "all": sum(wrong.values())}
    for paper, row in [*counts.items(), ("all", total)]:
        cells = " | ".join(str(row[v]) for v in VERDICTS)
        lines.append(f"| {paper} | {cells} | {sum(row.values())} | {errata[paper]} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    from paper_checks import run

    found = run()
    sys.stdout.write(markdown(summary(found), statements(found)))
