"""Writes the state of a simulator as a row of numbers, so that two states can be compared.

Two states are the same if their rows are equal. To find out whether an earlier state returns, a
search writes and compares thousands of rows. So this code is compiled. ``fields`` lists the fields
of a record that belong to the row: the place of each in the record, and its kind. The kind says how
a field is written; a time, for example, is written relative to the present. ``write`` writes the
fields of such a list into a row.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vegasmodel.engines.tables import jit
from vegasmodel.metrics import Floats

FAR = 1e6  # seconds; beyond is never
_NUMBER, _INSTANT, _SPAN, _RATE, _PLAIN = range(5)  # the places in ``Kinds``
_FLAG = 255  # one byte of a word: a bool


class Kinds(NamedTuple):
    """The names of a record's fields, sorted into five kinds: times, rates and so on.

    The kind decides how ``write`` converts a field's value when it writes the state.
    """

    numbers: tuple[str, ...] = ()  # sequence numbers that matter from what is acknowledged on
    instants: tuple[str, ...] = ()
    spans: tuple[str, ...] = ()  # seconds
    rates: tuple[str, ...] = ()
    plain: tuple[str, ...] = ()  # packets, counts, flags


class Memory(NamedTuple):
    """The memory of an array of records as words of 8 bytes, read as real or as whole numbers."""

    reals: Floats
    integers: NDArray[np.int64]
    width: int  # words of a record


class Now(NamedTuple):
    """The moment at which a state is written; the times in the state count from this moment."""

    time: float
    ago: float  # seconds after which it is of no account when something was
    capacity: float  # pkt/s: turns seconds into packets


@jit
def memory(records: Any) -> Memory:
    """The memory of these records as words of 8 bytes, without a copy."""
    reals = records.view(np.float64)
    return Memory(reals, records.view(np.int64), reals.shape[0] // max(records.shape[0], 1))


def fields(record: np.dtype[np.void], kinds: Kinds) -> NDArray[np.int64]:
    """A table [field, 3] with a row for each named field of a record: its place, type and kind.

    The place is the number of the word (8 bytes) in the record.  The type is 1 for a real number, 0
    for an integer, and -1 - k for a bool in byte k of its word.  The kind is an index in ``Kinds``.
    """
    rows, columns = [], dict(record.fields or {})
    for kind, names in enumerate(kinds):
        for name in names:
            column, offset = columns[name][:2]
            form = {"f": 1, "i": 0, "b": -1 - offset % 8}[column.kind]
            rows.append((offset // 8, form, kind))
    return np.array(rows, np.int64).reshape(-1, 3)


@jit
def write(
    out: Floats,
    n: int,
    records: Memory,
    row: int,
    fields: NDArray[np.int64],
    acked: float,
    now: Now,
) -> int:
    """Append fields of record number ``row`` to ``out``, which already holds ``n`` numbers.

    Returns the new count.  Sequence numbers count from ``acked``, times from now.  Numbers beyond
    the end of ``out`` are counted but not written.
    """
    begin = row * records.width
    for k in range(fields.shape[0]):
        word, form, kind = fields[k, 0], fields[k, 1], fields[k, 2]
        if form > 0:
            x = records.reals[begin + word]
        else:
            whole = records.integers[begin + word]
            x = float(whole if form == 0 else whole >> (8 * (-1 - form)) & _FLAG)
        if kind == _NUMBER:
            x = max(x - acked, -1.0)
        elif kind == _INSTANT:
            x = min(max(x - now.time, -now.ago), FAR) * now.capacity
        elif kind == _SPAN:
            x = min(x, FAR) * now.capacity
        elif kind == _RATE:
            x = x / now.capacity
        n = put(out, n, x)
    return n


@jit
def put(out: Floats, n: int, x: float) -> int:
    """Append ``x`` to the first ``n`` numbers of ``out`` if there is room; returns n + 1."""
    if n < out.shape[0]:
        out[n] = x
    return n + 1


@jit
def apart(one: Floats, two: Floats, begin: int, enough: float) -> float:
    """The largest difference between numbers at the same place of two rows, from ``begin`` on.

    It is infinite if it exceeds ``enough`` or if the two rows differ in length.
    """
    worst = 0.0
    if one.shape[0] != two.shape[0]:
        return np.inf
    for k in range(begin, one.shape[0]):
        if one[k] != two[k]:
            far = abs(one[k] - two[k])
            if not far <= enough:
                return np.inf
            worst = max(worst, far)
    return worst
