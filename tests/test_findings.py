"""The findings' pages are those that the code writes from the stored runs."""

import pytest

from paper_checks.findings import NAMES, page
from paper_checks.findings.__main__ import OUT, markdown
from paper_checks.findings.page import prose, table
from paper_checks.runs import Runs


@pytest.mark.parametrize("name", NAMES)
def test_a_page_says_what_is_computed(name: str) -> None:
    stem = name.replace("_", "-")
    assert (OUT / f"{stem}.png").stat().st_size > 10_000
    assert (OUT / f"{stem}.md").read_text() == markdown(name, page(name, Runs()))


def test_prose_fills_paragraphs_and_leaves_tables() -> None:
    rows = table(["a", "b"], [[1, "x" * 200]])
    text = prose(f"one\ntwo\n\n{rows}\n\n{'word ' * 40}")
    first, second, third = text.split("\n\n")
    assert first == "one two"
    assert second == rows
    assert max(map(len, third.splitlines())) <= 100


def test_prose_does_not_break_a_word_at_its_hyphen() -> None:
    """A browser would show a space after the hyphen."""
    text = prose("over-estimates " * 20)
    assert set(text.split()) == {"over-estimates"}
