"""The stored scenario files of the papers' items are those that the command writes."""

from pathlib import Path

import pytest

import paper_checks
from paper_checks.examples import EXAMPLES, example

FOLDER = Path(paper_checks.__file__).parent


@pytest.mark.parametrize(
    ("paper", "name"), [(paper, name) for paper, items in EXAMPLES.items() for name in items]
)
def test_example(paper: str, name: str) -> None:
    text = (FOLDER / paper / f"{name}.toml").read_text(encoding="utf-8")
    assert text == example(paper, EXAMPLES[paper][name])


def test_every_simulated_experiment_has_one() -> None:
    """A list typed from the papers; table 2 and figures 1 and 3 are base files."""
    wanted = {
        "tsang": ("table3", "table4", "table6"),
        "boutremans": ("figure3", "figure4", "figure5", "figure7", "figure8"),
        "evaluation": ("table1", "table3", "table4", "figure1", "figure7", "figure8"),
        "devendictis": ("figure3", "figure4"),
        "podlesny": ("figure1", *(f"experiment-{letter}" for letter in "abcdefgh")),
    }
    for paper, names in wanted.items():
        assert not [name for name in names if not (FOLDER / paper / f"{name}.toml").is_file()]
    assert len(list((FOLDER / "evaluation").glob("table2-*.toml"))) == 6
