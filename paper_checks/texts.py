"""Checks that printed values stand in the papers: ``vegasmodel paper --texts FOLDER``.

The papers' texts are not part of the project.  A folder with them has one ``.txt`` file per paper,
named by the paper's key or beginning with its title.  Every printed number and word is looked up
there.  Claims that we state in our own words ("Vegas never loses") cannot be looked up; such
records are counted.
"""

import dataclasses
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from paper_checks import PAPERS, records
from paper_checks.checks import FORMULA_AT_OUR_NUMBERS, Record, Value
from vegasmodel.fields.errors import FieldError
from vegasmodel.report import console
from vegasmodel.support.exits import Shortfall

__all__ = ["Looked", "absent", "look", "read", "show", "summary"]

HEAD = 600  # characters at the beginning of a text, which contain the paper's title
TITLES = {  # by paper: words of its title, by which its text is recognised
    "tsang": r"simulation study on the throughput fairness of tcp vegas",
    "boutremans": r"a note on the fairness of tcp vegas",
    "evaluation": r"reno, sack and vegas",
    "devendictis": r"modeling a mixed tcp vegas and tcp reno scenario",
    "podlesny": r"providing fairness between tcp newreno and tcp vegas",
}
WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


@dataclass(frozen=True)
class Looked:
    """The result of looking up one paper's records."""

    paper: str
    found: int  # records whose every printed value stands in the text
    missing: Sequence[tuple[str, Sequence[str]]]  # item, and what does not stand there
    derived: int  # records of printed formulas, evaluated with numbers that we chose
    in_words: int  # records of what the paper says in words, without a number or quoted word


def read(folder: Path) -> dict[str, str]:
    """The texts in a folder by the paper's key.  Raises ``FieldError`` if it contains none."""
    if not folder.is_dir():
        raise FieldError("--texts", str(folder), "a folder with the papers' texts (.txt)")
    texts = {}
    for path in sorted(folder.glob("*.txt")):
        text = path.read_text(encoding="utf-8", errors="replace")
        head = re.sub(r"\s+", " ", text[:HEAD]).lower()
        for paper in PAPERS:
            if path.stem == paper or re.search(TITLES[paper], head):
                texts[paper] = text
    return texts


def look(paper: str, text: str) -> Looked:
    """The result of looking up every record of ``paper`` in the paper's text."""
    found, derived, in_words, missing = 0, 0, 0, []
    for record in records(paper):
        if record.prints == FORMULA_AT_OUR_NUMBERS:
            derived += 1
        elif not _fragments(record):
            in_words += 1
        elif not_there := absent(record, text):
            missing.append((record.item, not_there))
        else:
            found += 1
    return Looked(paper, found, missing, derived, in_words)


def summary(found: Sequence[Looked], skipped: Sequence[str]) -> str:
    """The results as lines of text; ``skipped`` has the papers whose text is missing."""
    lines = []
    for one in found:
        lines.append(
            f"{one.paper}: the printed values of {one.found} records stand in the text, those of "
            f"{len(one.missing)} do not. Not looked up: {one.derived} records of printed formulas, "
            f"evaluated with numbers that we chose, and {one.in_words} of what is said in words\n"
        )
        lines += [f"  {item}: {', '.join(values)}\n" for item, values in one.missing]
    lines += [f"{paper}: skipped, the folder has no text of it\n" for paper in skipped]
    return "".join(lines)


def show(folder: Path, papers: Sequence[str], json: bool) -> None:
    """Look up the papers' records in the texts of ``folder``; print the results as text or JSON.

    Raises ``Shortfall`` if a value is missing.
    """
    known = read(folder)
    found = [look(paper, known[paper]) for paper in papers if paper in known]
    skipped = [paper for paper in papers if paper not in known]
    if json:
        rows = [dataclasses.asdict(one) for one in found]
        console.print_json({"texts": rows, "skipped": skipped})
    else:
        sys.stdout.write(summary(found, skipped))
    missing = sum(len(one.missing) for one in found)
    if missing:
        raise Shortfall(f"{missing} records' printed values do not stand in the papers' texts")


def absent(record: Record, text: str) -> list[str]:
    """Printed values of the record that do not stand in the text."""
    plain = re.sub(r"[\s$\\*_]+", " ", text).lower()
    return [
        spellings[0]
        for spellings in _fragments(record)
        if not any(_stands(one, plain) for one in spellings)
    ]


def _stands(fragment: str, text: str) -> bool:
    """Whether the text has the fragment (a number or words), but not as a part of a longer number.

    For example, 2.5 does not stand in 12.5.
    """
    before, after = r"(?<![\d.])(?<!\d,)", r"(?!\d|\.\d|,\d{3})"
    return re.search(before + re.escape(fragment.lower()) + after, text) is not None


def _fragments(record: Record) -> list[list[str]]:
    """The strings to look up for a record, each as a list of all its spellings."""
    if record.prints is not None:
        return [[fragment] for fragment in record.prints]
    return [_spellings(value) for value in _flat(record.printed)]


def _flat(value: Value) -> list[str | int | float]:
    """The numbers and texts in a value or a nested list, without truth values."""
    if value is None or isinstance(value, bool):
        return []
    if isinstance(value, (str, int, float)):
        return [value]
    return [part for entry in value for part in _flat(entry)]


def _spellings(value: str | int | float) -> list[str]:
    """The ways to print a number, such as 1000, 1,000 and 1000.0; a paper uses one of them."""
    if isinstance(value, str):
        return [value]
    found = [f"{value:g}", f"{value!r}", *(f"{value:.{k}f}" for k in (1, 2, 3))]
    if value == int(value):
        whole = int(value)
        found += [str(whole), f"{whole:,}"]
        if 0 <= whole < len(WORDS):
            found.append(WORDS[whole])
    # a text with too few decimals is another number, and left out; a word has no number
    return [text for text in dict.fromkeys(found) if float_of(text) in (value, None)]


def float_of(text: str) -> float | None:
    """The number that a spelling means; ``None`` for words."""
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None
