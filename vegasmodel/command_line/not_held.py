"""Writes the sentences that say in how many cases each assumption of a model does not hold.

The cases are, for example, the points of a sweep (the combinations of the values that are varied),
or the random starts of one scenario. Commands such as ``sweep`` print these sentences below their
results.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["letters", "sentences"]


def letters(counts: Mapping[str, int]) -> dict[str, str]:
    """Give each assumption in ``counts`` a letter for a table: a, b, ..., z, aa, bb, ..."""
    return {name: chr(97 + i % 26) * (1 + i // 26) for i, name in enumerate(counts)}


def sentences(
    counts: Mapping[str, int], of: str, marks: Mapping[str, str] | None = None
) -> list[str]:
    """Sentences for the user that say in how many cases each assumption does not hold.

    ``counts`` maps an assumption's name to the number of these cases.  ``of`` says how many cases
    there are in all, such as ``24 points``.  ``marks`` maps assumptions to letters (see
    ``letters``); if it is given, each sentence begins with its letter.  A last sentence names the
    command that explains an assumption.  If ``counts`` is empty, there are no sentences.
    """
    lines = [
        f"{f'{marks[name]}: ' if marks else ''}{name} does not hold at {count} of {of}."
        for name, count in counts.items()
    ]
    return [*lines, "vegasmodel explain NAME says what an assumption means."] if lines else []
