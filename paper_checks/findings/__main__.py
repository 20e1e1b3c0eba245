"""Writes the pages in ``docs/findings``; each is on a conclusion of a paper that we tested.

    python -m paper_checks.findings [NAME ...] [--live]

Without a NAME all pages are written, each as Markdown with a picture.  The figures come from stored
runs of ns-2; with ``--live`` ns-2 runs again.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from paper_checks.findings import NAMES, page
from paper_checks.findings.page import Page, prose
from paper_checks.runs import Runs
from vegasmodel.plots.style import save
from vegasmodel.support.files import atomic_write

OUT = Path(__file__).parents[2] / "docs" / "findings"


def markdown(name: str, made: Page) -> str:
    """The page ``made`` as Markdown, with its picture and the command that writes the page."""
    stem = name.replace("_", "-")
    return (
        f"# {made.title}\n\n{prose(made.text)}\n\n![{made.caption}]({stem}.png)\n\n"
        f"{made.caption}\n\n"
        f"    python -m paper_checks.findings {name}\n"
    )


def main(arguments: Sequence[str]) -> int:
    """Write the pages of the findings that ``arguments`` name, or all; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m paper_checks.findings", description=__doc__.split("\n")[0]
    )
    parser.add_argument("name", nargs="*", choices=[*NAMES, []], default=[])
    parser.add_argument("--live", action="store_true", help="run ns-2 again")
    options = parser.parse_args(arguments)
    runs = Runs(live=options.live)
    for name in options.name or NAMES:
        made = page(name, runs)
        stem = name.replace("_", "-")
        save(made.figure, OUT / f"{stem}.png")
        with atomic_write(OUT / f"{stem}.md") as part:
            part.write_text(markdown(name, made), encoding="utf-8")
        sys.stdout.write(f"docs/findings/{stem}.md\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
