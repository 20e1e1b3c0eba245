"""``python -m paper_checks.record [--again]``: run ns-2 for every record and store the results.

Runs that are stored already stay, unless ``--again``; runs that no record uses go.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from paper_checks import PAPERS, records
from paper_checks.checks import judge
from paper_checks.runs import FILE, Runs


def main(arguments: Sequence[str]) -> int:
    """Fill ``reference.json``; returns the exit status."""
    runs = Runs(live="--again" in arguments, keep=True)
    for paper in PAPERS:
        for record in records(paper):
            judge(paper, record, runs)
        sys.stderr.write(f"{paper}: {len(runs.used)} runs so far\n")
    runs.save()
    sys.stderr.write(f"wrote {FILE.name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
