"""``python -m paper_checks.scenes KEY [ITEM ...] --out DIR`` writes scenario files of a paper.

They have the scenarios that the records of the items run in ns-2 or ns-3.  KEY is the paper's key.
An item is the beginning of its records' names: "table 3", "figure 4", "section 3.2.3".  Without
``--out`` only the names of the files are printed.  The list is complete if all runs of these
scenarios are stored.
"""

import argparse
import re
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from paper_checks import PAPERS, records
from paper_checks.checks import Record, judge
from paper_checks.files import to_toml
from paper_checks.runs import Runs
from vegasmodel.scenario import Scenario

__all__ = ["asked", "files", "matching", "scenarios"]


def asked(paper: str, runs: Runs) -> list[Scenario]:
    """The scenarios of which the records of a paper read runs.

    To find them, the verdict of each record is computed: ``runs`` notes what is read from it.
    """
    runs.scenarios.clear()
    for record in records(paper):
        judge(paper, record, runs)
    return list(runs.scenarios.values())


def matching(paper: str, items: Sequence[str]) -> list[Record]:
    """Records of ``paper`` whose name begins with one of ``items``; all of them without items.

    Raises ``ValueError`` if an item has no record.
    """
    found: dict[str, Record] = {}
    for item in items or [""]:
        begins = re.compile(re.escape(item) + r"(?!\d)")  # "table 1" does not match "table 10"
        matches = [record for record in records(paper) if begins.match(record.item)]
        if not matches:
            known = dict.fromkeys(record.item.split(",")[0] for record in records(paper))
            raise ValueError(f"{paper} has no item {item!r}; there are: {'; '.join(known)}")
        found |= {record.item: record for record in matches}
    return list(found.values())


def scenarios(paper: str, items: Sequence[str]) -> list[Scenario]:
    """The scenarios that the records of these items run, in the order in which they ask."""
    runs = Runs()
    for record in matching(paper, items):
        judge(paper, record, runs)
    return list(runs.scenarios.values())


def files(found: Sequence[Scenario]) -> dict[str, str]:
    """Text of each scenario file by the file's name.

    The name is that of the scenario.  If several scenarios have the same name, the scenario's
    fingerprint is added to the file's name.
    """
    slugs = [re.sub(r"[^A-Za-z0-9.]+", "-", scenario.name).strip("-") for scenario in found]
    times = Counter(slugs)  # how often each name occurs
    return {
        f"{slug}{f'-{scenario.fingerprint()}' if times[slug] > 1 else ''}.toml": to_toml(scenario)
        for slug, scenario in zip(slugs, found, strict=True)
    }


def main(arguments: Sequence[str]) -> int:
    """Write the files of the scenarios that some records run; without --out, list their names.

    Returns the exit status: 2 if an item has no record, or if a file cannot be written.
    """
    parser = argparse.ArgumentParser(prog="python -m paper_checks.scenes", description=__doc__)
    parser.add_argument("key", choices=PAPERS)
    parser.add_argument("item", nargs="*")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    try:
        texts = files(scenarios(options.key, options.item))
        if options.out is not None:
            options.out.mkdir(parents=True, exist_ok=True)
            for name, text in texts.items():
                (options.out / name).write_text(text, encoding="utf-8")
    except (ValueError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write("".join(f"{name}\n" for name in texts))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
