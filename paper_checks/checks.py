"""Defines a record, which compares one printed item of a paper with our value.

An item is an equation, a table cell, a figure or a claim.  ``judge`` computes the record's verdict,
which says how the printed value and ours compare.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Concatenate, Literal, ParamSpec, TypeAlias, TypeVar, get_args

from paper_checks.runs import NoRun, Runs

__all__ = [
    "ARITHMETIC",
    "FORMULA_AT_OUR_NUMBERS",
    "Check",
    "Found",
    "Record",
    "agrees",
    "by_theory",
    "formula",
    "from_printed_numbers",
    "judge",
    "of_runs",
    "open_question",
    "rises",
    "rounding",
]

# the value of ``Record.prints`` for a printed formula, evaluated with numbers that we chose
FORMULA_AT_OUR_NUMBERS: tuple[str, ...] = ()
ARITHMETIC = "Tolerance: rounding of the arithmetic."
OURS = "We chose the numbers: printed is what the printed formula gives with them."

Kind = Literal["equation", "table", "figure", "claim"]
Verdict = Literal["reproduced", "consistent", "erratum", "discrepant", "blocked"]  # see ``Check``
# Where the computed value comes from
Source = Literal[
    "print",  # arithmetic on printed numbers
    "theory",  # a derivation or a model
    "replay",  # a simulation of our own, packet by packet
    "packets",  # ns-2 or ns-3
]
Value: TypeAlias = "bool | int | float | str | Sequence[Value] | None"


@dataclass(frozen=True)
class Check:
    """One printed item beside the value that we compute, and the verdict about it.

    The verdict is one of these:

    - ``reproduced``: |computed - printed| <= tolerance (for lists: in every entry), and
      ``computed`` comes from a derivation, a model or a packet simulation.
    - ``consistent``: the same, but ``computed`` is arithmetic on printed numbers only.
    - ``erratum``: the values differ, and the note derives the right one.  ``statement`` then names
      the wrong statement of the paper; several records may show the same one.
    - ``discrepant``: the values differ, and the evidence shows that the print is wrong.
    - ``blocked``: the value cannot be computed, or the evidence does not decide whether it agrees;
      the note says what is missing.

    ``share``: if phase effects may decide, we run several seeds, which move the flows' starts a
    little.  ``share`` is then the fraction of the seeds that are within the tolerance.  Most of the
    seeds give the verdict, and ``computed`` is their median.  Otherwise ``share`` is ``None``.
    """

    paper: str  # the paper's key
    item: str  # the record's name
    kind: Kind
    printed: Any
    computed: Any
    tolerance: float | None
    verdict: Verdict
    note: str
    source: Source  # where ``computed`` comes from
    packets: Any = None  # a packet simulation's value, if ``computed`` has another source
    share: float | None = None
    statement: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The entry of ``checks`` in the command line's JSON document."""
        return asdict(self)


@dataclass(frozen=True)
class Found:
    """A computed value, and what the verdict about the printed value needs besides.

    ``tolerance``: it is here, and not in the record, if it follows from the spread of our runs.
    ``detail``: text for the note.  ``packets``: the value of a packet simulation, if ``value``
    comes from something else.  ``share``: the fraction of the seeds that agree with the print (see
    ``Check``).

    Two reasons lead to the verdict ``blocked``.  ``missing`` is a reason why a difference would not
    show that the print is wrong, such as a setting that the paper does not state: it counts only if
    the value differs from the print.  ``undecided`` is a reason why the value shows nothing,
    whether it differs or not.
    """

    value: Value
    tolerance: float | None = None
    detail: str = ""
    packets: Value = None
    share: float | None = None
    missing: str = ""
    undecided: str = ""


@dataclass(frozen=True)
class Known:
    """The ``compute`` function of a record whose value is known without a run of ns-2 or ns-3."""

    value: Found | Value
    source: Source  # where the value comes from

    def __call__(self, _: Runs) -> Found | Value:
        """The value; the argument is not used."""
        return self.value


@dataclass(frozen=True)
class Record:
    """One item of a paper: the printed value and the function that computes it.

    ``kind``: by default the first word of ``item`` if this is a kind, and otherwise "claim".
    ``printed`` is by default ``True``: the paper says that something is so, and ``compute`` tests
    whether it is.  ``note`` says how the value is computed and where ``tolerance`` comes from.
    ``erratum`` has the corrected form and its derivation.  If several records show the same wrong
    statement, ``statement`` is its name.  ``blocked`` is the reason why nothing can be computed; a
    record has either this reason or the function.

    ``prints``: the words or numbers as they stand in the paper, if ``printed`` has another form (10
    ms for 0.01 s); ``FORMULA_AT_OUR_NUMBERS`` if ``printed`` is a printed formula, evaluated with
    numbers that we chose.
    """

    item: str  # the record's name
    kind: Kind | None = None
    printed: Value = True
    compute: Callable[[Runs], Found | Value] | None = None
    tolerance: float = 0.0
    note: str = ""
    erratum: str = ""
    blocked: str = ""
    source: Source = "packets"  # where the computed value comes from
    statement: str = ""
    prints: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if (self.compute is None) != bool(self.blocked):
            raise ValueError(f"{self.item}: either something computes it, or blocked says why not")

    @property
    def evidence(self) -> Source:
        """Where the computed value comes from."""
        return self.compute.source if isinstance(self.compute, Known) else self.source


# A record of a printed formula, evaluated with numbers that we chose
formula = partial(Record, kind="equation", prints=FORMULA_AT_OUR_NUMBERS)


P = ParamSpec("P")
T = TypeVar("T")


def of_runs(function: Callable[Concatenate[Runs, P], T]) -> Callable[P, Callable[[Runs], T]]:
    """Decorate ``function``, whose first argument is ``runs``: it gets the other arguments first.

    A call with these other arguments returns the ``compute`` function of a record.
    """
    return lambda *arguments, **options: lambda runs: function(runs, *arguments, **options)


def rounding(unit: float) -> float:
    """Half a unit of the last printed digit, plus a little for binary rounding."""
    return 0.5 * unit * (1 + 1e-9)


def by_theory(value: Found | Value) -> Known:
    """Wrap a value that follows from a derivation or a model, without a run of ns-2 or ns-3."""
    return Known(value, "theory")


def from_printed_numbers(value: Found | Value) -> Known:
    """Wrap a value that follows by arithmetic from numbers that the paper prints."""
    return Known(value, "print")


def rises(values: Iterable[float]) -> bool:
    """Whether each of ``values`` is larger than the one before it."""
    return all(before < after for before, after in itertools.pairwise(values))


def open_question(why: str) -> Found:
    """A result without a value, because the evidence decides neither for nor against the print.

    ``why`` is the reason as text.
    """
    return Found(None, undecided=f"{why.rstrip('.')}.")


def in_every_case(cases: Sequence[bool], decides: str, detail: str) -> Found:
    """Whether a claim is right in all of ``cases``, with ``detail`` as a text about them.

    The result is left open if the claim is right in some of the cases only. ``decides`` then says
    what distinguishes them, and that the paper does not state it.
    """
    if any(cases) and not all(cases):
        return open_question(f"{decides}. {detail}")
    return Found(all(cases), detail=f"{detail}.")


def judge(paper: str, record: Record, runs: Runs) -> Check:
    """Compute the value of one record of ``paper`` and compare it with the printed value.

    ``Check`` says what each verdict means.  If the values differ, the record's own derivation of
    the right value comes first: with it the verdict is ``erratum``, even if the computed value
    comes with a reason why a difference would show nothing (``missing``).
    """
    if record.compute is None:
        return _check(paper, record, Found(None), "blocked", f"{record.blocked} {record.note}")
    try:
        answer = record.compute(runs)
    except NoRun as missing:
        why = str(missing).rstrip(".")
        return _check(paper, record, Found(None), "blocked", f"{why}. {record.note}")
    found = answer if isinstance(answer, Found) else Found(answer)
    if found.tolerance is None:
        found = replace(found, tolerance=record.tolerance)
    ours = OURS if record.prints == FORMULA_AT_OUR_NUMBERS else ""
    note = " ".join(part for part in (record.note, found.detail, ours) if part)
    if found.undecided:
        return _check(paper, record, Found(None), "blocked", f"{found.undecided} {note}")
    if agrees(found, record.printed):
        verdict: Verdict = "consistent" if record.evidence == "print" else "reproduced"
        return _check(paper, record, found, verdict, note)
    if record.erratum:
        return _check(paper, record, found, "erratum", f"{record.erratum} {note}")
    if found.missing:
        undecided = f"{found.missing} {_as_text(found.value)}".strip()
        return _check(paper, record, Found(None), "blocked", f"{undecided} {note}")
    return _check(paper, record, found, "discrepant", note)


def agrees(found: Found, printed: Value) -> bool:
    """Whether the computed value is the printed one.

    If ``found`` says which fraction of the seeds agrees, most of them must; otherwise the value
    must be within the tolerance.
    """
    if found.share is not None:
        return found.share > 0.5
    return distance(found.value, printed) <= (found.tolerance or 0.0)


def _check(paper: str, record: Record, found: Found, verdict: Verdict, note: str) -> Check:
    """The ``Check`` of ``record``, whose computed value is ``found``, with a verdict and a note."""
    return Check(
        paper=paper,
        item=record.item,
        kind=record.kind or _kind_by_name(record.item),
        printed=_plain(record.printed),
        computed=_plain(found.value),
        tolerance=found.tolerance,
        verdict=verdict,
        note=note.strip(),
        source=record.evidence,
        packets=_plain(found.packets),
        share=found.share,
        statement=(record.statement or record.item) if verdict == "erratum" else None,
    )


def _kind_by_name(item: str) -> Kind:
    """The kind of a record with this name: its first word if that is a kind, otherwise "claim"."""
    first = item.split()[0]
    return next((kind for kind in get_args(Kind) if kind == first), "claim")


def distance(computed: Value, printed: Value) -> float:
    """Largest |computed - printed| over the entries; infinite if they cannot be compared.

    Texts and ``None`` have a distance of 0 if they are equal, and otherwise an infinite one.
    """
    if isinstance(computed, str) or isinstance(printed, str) or computed is None or printed is None:
        return 0.0 if computed == printed else math.inf
    if isinstance(computed, Sequence) or isinstance(printed, Sequence):
        if not (isinstance(computed, Sequence) and isinstance(printed, Sequence)):
            return math.inf
        if len(computed) != len(printed):
            return math.inf
        return max((distance(c, p) for c, p in zip(computed, printed, strict=True)), default=0.0)
    difference = abs(float(computed) - float(printed))
    return math.inf if math.isnan(difference) else difference


def _as_text(value: Value) -> str:
    """A sentence with the computed number or numbers; empty if an entry is no number.

    A blocked record has no value, so its note names the value that was found.
    """
    entries = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    if any(isinstance(entry, (bool, str)) or entry is None for entry in entries):
        return ""
    text = ", ".join(f"{entry:.4g}" for entry in entries)
    noun = "value is" if len(entries) == 1 else "values are"
    return f"The computed {noun} {text}."


def _plain(value: Any) -> Any:
    """The value in a form for JSON: lists, Python's own numbers, ``None`` for NaN and infinity."""
    if isinstance(value, (str, bool)) or value is None:
        return value
    if isinstance(value, Sequence):
        return [_plain(entry) for entry in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
