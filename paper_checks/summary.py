"""The verdicts of checks: tables for the terminal, numbers by paper.

A check is a printed value of a paper beside ours, with a verdict on how they compare.  ``python -m
paper_checks.summary`` prints the numbers of verdicts by paper as a Markdown table.
"""

import sys
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from paper_checks.checks import Check
from vegasmodel.report.console import console, paragraphs, table

__all__ = ["VERDICTS", "markdown", "print_checks", "statements", "summary"]

VERDICTS = ("reproduced", "consistent", "erratum", "discrepant", "blocked")
_AGREE = ("reproduced", "consistent")  # the verdicts of values that agree with the print


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
        names = found.setdefault(check.paper, set())
        if check.statement is not None:
            names.add(check.statement)
    return {paper: len(names) for paper, names in found.items()}


def markdown(counts: Mapping[str, Mapping[str, int]], wrong: Mapping[str, int]) -> str:
    """The table of docs/paper-checks.md: records by paper and verdict, and the distinct errata.

    ``counts`` comes from ``summary``, ``wrong`` from ``statements``.
    """
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


def print_checks(checks: Sequence[Mapping[str, Any]], verdicts: Collection[str] = VERDICTS) -> None:
    """Print the values that the papers state beside those that this package computes.

    Each paper has a table with a row for each record whose verdict is among ``verdicts``.  Notes
    under the table explain those that are neither "reproduced" nor "consistent".  A last table
    counts all records of each paper by verdict.
    """
    out = console()
    papers = list(dict.fromkeys(check["paper"] for check in checks))
    for name in papers:
        chosen = [c for c in checks if c["paper"] == name and c["verdict"] in verdicts]
        if not chosen:
            continue
        rows = [
            [str(c["item"]), _brief(c["printed"]), _brief(c["computed"]), str(c["verdict"])]
            for c in chosen
        ]
        out.print(table(["record", "printed", "computed", "verdict"], rows, name))
        paragraphs([f"{c['item']}: {c['note']}" for c in chosen if c["verdict"] not in _AGREE])
        out.print()
    rows = [
        [
            name,
            *(str(sum(c["paper"] == name and c["verdict"] == v for c in checks)) for v in VERDICTS),
        ]
        for name in papers
    ]
    out.print(table(["paper", *VERDICTS], rows))
    paragraphs(
        [
            "docs/errata.md lists the formulas that are wrong; `--verdict erratum` prints only "
            "their records. `vegasmodel explain erratum` says what this verdict means."
        ]
    )


def _brief(value: Any) -> str:
    """The text that stands for ``value`` in a table; a text of more than 24 characters is cut."""
    if isinstance(value, float):
        text = f"{value:.4g}"
    elif isinstance(value, (list, tuple)):
        text = ", ".join(_brief(entry) for entry in value)
    else:
        text = "-" if value is None else str(value)
    return text if len(text) <= 24 else text[:21] + "..."


if __name__ == "__main__":
    from paper_checks import run

    found = run()
    sys.stdout.write(markdown(summary(found), statements(found)))
