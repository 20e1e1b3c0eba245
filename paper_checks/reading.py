"""Records printed in full, so that a reader with the paper can recompute them.

``vegasmodel paper --draw N --seed S`` draws them at random, for a reader who did not write them.
``vegasmodel paper --item TEXT`` prints those whose item has the text, such as "equation 5".
"""

import re
import sys
from collections.abc import Sequence

import numpy as np

import paper_checks
from paper_checks.checks import Check, Record, judge
from paper_checks.runs import Runs
from vegasmodel.fields.errors import FieldError
from vegasmodel.report import console

__all__ = ["drawn", "of_item", "show", "text"]


def drawn(papers: Sequence[str], number: int, seed: int) -> list[Check]:
    """``number`` different records of the papers, drawn by ``seed``, in the papers' order.

    Raises ``FieldError`` if there are fewer records, or for a number below 1 or a negative seed.
    """
    known: list[tuple[str, Record]] = [(p, r) for p in papers for r in paper_checks.records(p)]
    if not 1 <= number <= len(known):
        raise FieldError("--draw", number, f"from 1 to {len(known)}, the number of records")
    if seed < 0:
        raise FieldError("--seed", seed, "a whole number, 0 or more")
    chosen = np.random.default_rng(seed).choice(len(known), number, replace=False)
    runs = Runs()
    return [judge(paper, record, runs) for paper, record in (known[k] for k in sorted(chosen))]


def of_item(papers: Sequence[str], item: str, live: bool) -> list[Check]:
    """The records of the papers whose item has the words ``item``, in small or capital letters.

    With ``live``, ns-2 and ns-3 run again instead of reading their stored results.  Raises
    ``FieldError`` if there is no such record.
    """
    words = re.compile(rf"(?<!\w){re.escape(item.strip())}(?!\w)", re.IGNORECASE)
    known: list[tuple[str, Record]] = [(p, r) for p in papers for r in paper_checks.records(p)]
    chosen = [(paper, record) for paper, record in known if words.search(record.item)]
    if not item.strip() or not chosen:
        items = list(dict.fromkeys(record.item for _, record in known))
        raise FieldError("--item", item, f"words of an item, such as {items[0]!r}")
    runs = Runs(live=live)
    return [judge(paper, record, runs) for paper, record in chosen]


def show(found: Sequence[Check], json: bool) -> None:
    """Print the records as text or as JSON."""
    if json:
        console.print_json({"checks": [check.to_json() for check in found]})
    else:
        sys.stdout.write(text(found))


def text(checks: Sequence[Check]) -> str:
    """Each record as lines of text: item, verdict, both values, tolerance, evidence and note."""
    return "\n".join(
        f"{k}. {check.paper}, {check.item} ({check.kind}): {check.verdict}\n"
        f"   printed    {check.printed}\n"
        f"   computed   {check.computed}\n"
        f"   tolerance  {check.tolerance}\n"
        f"   evidence   {'none' if check.verdict == 'blocked' else SOURCES[check.source]}"
        f"{'' if check.share is None else f', {check.share:.0%} of the seeds agree'}\n"
        f"   note       {check.note}\n"
        for k, check in enumerate(checks, 1)
    )


SOURCES = {
    "print": "arithmetic on printed numbers",
    "theory": "a derivation or a model",
    "replay": "our own simulation of single packets",
    "packets": "ns-2 or ns-3",
}
