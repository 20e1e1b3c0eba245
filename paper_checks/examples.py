"""``python -m paper_checks.examples``: write one scenario file for each item in ``EXAMPLES``.

An item is a table, a figure or a section of a paper.  The file has the first of the scenarios that
the item's records run; ``python -m paper_checks.scenes`` writes all of them.
"""

import sys
from pathlib import Path

from paper_checks.files import to_toml
from paper_checks.scenes import scenarios

__all__ = ["EXAMPLES", "example"]

FOLDER = Path(__file__).parent
# By paper and by the file's name: the item, as the beginning of its records' names.  Scenario files
# that the records read, such as boutremans/arrivals20.toml, are written by hand and not listed.
EXAMPLES = {
    "tsang": {"table3": "table 3", "table4": "table 4", "table6": "table 6"},
    "boutremans": {f"figure{n}": f"figure {n}" for n in (3, 4, 5, 7, 8)},
    "evaluation": {
        "table1": "table 1",
        "table3": "table 3",
        "table4": "table 4",
        "figure1": "figure 1",
        "droptail-delays": "section 3.2.3.1",
        "red-delays": "section 3.2.3.2, RED, ",
        "droptail-laws": "section 3.3.2.1",
        "red-laws": "section 3.3.2.2",
        "figure7": "figure 7, alpha 3",
        "figure8": "figure 8",
    },
    "devendictis": {"figure4": "figure 4"},
    "podlesny": {
        "experiment-a": "figure 4",
        "experiment-b": "figure 5",
        "experiment-c": "section IV-C",
        "experiment-d": "section IV-D, index at",
        "experiment-e": "section IV-E",
        "experiment-f": "section IV-F",
        "experiment-g": "section IV-G",
        "experiment-h": "section IV-H",
    },
}


def example(paper: str, item: str) -> str:
    """The text of a scenario file: the first scenario that the records of ``item`` run.

    ``paper`` is a paper's key; ``item`` is the beginning of records' names, such as "table 3".
    """
    return to_toml(scenarios(paper, [item])[0])


if __name__ == "__main__":
    for key, items in EXAMPLES.items():
        for name, what in items.items():
            (FOLDER / key / f"{name}.toml").write_text(example(key, what), encoding="utf-8")
            sys.stdout.write(f"{key}/{name}.toml\n")
