"""What a record is, and how its verdict is found."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

from paper_checks.runs import NoRun, Runs

__all__ = ["Check", "Found", "Record", "exactly", "judge", "rounding"]

Kind = Literal["equation", "table", "figure", "claim"]
Verdict = Literal["reproduced", "erratum", "discrepant", "blocked"]
Value: TypeAlias = "bool | int | float | str | Sequence[Value] | None"


@dataclass(frozen=True)
class Check:
    """One printed item beside what we compute.

    ``reproduced``: |computed - printed| <= tolerance (lists: every entry).  ``erratum``: it is
    not, and the note derives the right form.  ``discrepant``: computed and differs.  ``blocked``:
    cannot be computed, and the note says why.
    """

    paper: str
    item: str
    kind: Kind
    printed: Any
    computed: Any
    tolerance: float | None
    verdict: Verdict
    note: str

    def to_json(self) -> dict[str, Any]:
        """The entry of ``checks`` in the command line's JSON document."""
        return asdict(self)


@dataclass(frozen=True)
class Found:
    """A computed value; with the tolerance, where that comes from the evidence (a spread)."""

    value: Value
    tolerance: float | None = None
    detail: str = ""


@dataclass(frozen=True)
class Record:
    """One item of a paper: what is printed and what computes it.

    ``note`` says what computes the value and where ``tolerance`` comes from; ``erratum`` holds the
    corrected form and its derivation; ``blocked`` the reason why nothing can be computed;
    ``replayed``: the value comes packet by packet from a simulation of our own, not from ns-2.
    """

    item: str
    kind: Kind
    printed: Value
    compute: Callable[[Runs], Found | Value] | None = None
    tolerance: float = 0.0
    note: str = ""
    erratum: str = ""
    blocked: str = ""
    replayed: bool = False

    def __post_init__(self) -> None:
        if (self.compute is None) != bool(self.blocked):
            raise ValueError(f"{self.item}: either something computes it, or blocked says why not")


def rounding(unit: float) -> float:
    """Half a unit of the last printed digit, and a little for the binary form of the decimals."""
    return 0.5 * unit * (1 + 1e-9)


def exactly(value: Found | Value) -> Callable[[Runs], Found | Value]:
    """What follows without a run, from printed numbers or a formula."""
    return lambda runs: value


def judge(paper: str, record: Record, runs: Runs) -> Check:
    """Compute one record and compare."""
    if record.compute is None:
        return _check(paper, record, None, None, "blocked", f"{record.blocked} {record.note}")
    try:
        answer = record.compute(runs)
    except NoRun as missing:
        return _check(paper, record, None, None, "blocked", f"{missing}. {record.note}")
    found = answer if isinstance(answer, Found) else Found(answer)
    tolerance = record.tolerance if found.tolerance is None else found.tolerance
    note = " ".join(part for part in (record.note, found.detail) if part)
    if distance(found.value, record.printed) <= tolerance:
        return _check(paper, record, found.value, tolerance, "reproduced", note)
    if record.erratum:
        note = f"{record.erratum} {note}"
        return _check(paper, record, found.value, tolerance, "erratum", note)
    return _check(paper, record, found.value, tolerance, "discrepant", note)


def _check(
    paper: str,
    record: Record,
    computed: Value,
    tolerance: float | None,
    verdict: Verdict,
    note: str,
) -> Check:
    return Check(
        paper=paper,
        item=record.item,
        kind=record.kind,
        printed=_plain(record.printed),
        computed=_plain(computed),
        tolerance=tolerance,
        verdict=verdict,
        note=note.strip(),
    )


def distance(computed: Value, printed: Value) -> float:
    """Largest |computed - printed| over the entries; infinite where they cannot be compared."""
    if isinstance(computed, str) or isinstance(printed, str) or computed is None or printed is None:
        return 0.0 if computed == printed else math.inf
    if isinstance(computed, Sequence) or isinstance(printed, Sequence):
        if not (isinstance(computed, Sequence) and isinstance(printed, Sequence)):
            return math.inf
        if len(computed) != len(printed):
            return math.inf
        return max((distance(c, p) for c, p in zip(computed, printed, strict=True)), default=0.0)
    gap = abs(float(computed) - float(printed))
    return math.inf if math.isnan(gap) else gap


def _plain(value: Any) -> Any:
    """JSON-ready: lists for sequences, Python numbers for NumPy's, null for what is not finite."""
    if isinstance(value, (str, bool)) or value is None:
        return value
    if isinstance(value, Sequence):
        return [_plain(entry) for entry in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
