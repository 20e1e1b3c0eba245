"""Writes the state of a simulator as an array of numbers, so that two states can be compared.

A search for periodic motion writes and compares thousands of such arrays, so this code is compiled.
A state consists of records, for example one for each sender. ``fields`` makes a table of those
fields of a record that belong to the state. For each field, the table says where in the record it
is, and how it is written. A time, for example, is written relative to the present. ``write`` writes
the fields of such a table into an array. ``difference`` compares two arrays.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vegasmodel.engines.tables import jit
from vegasmodel.metrics import Floats

FAR = 1e6  # seconds: times that are farther in the future count as this far
_NUMBER, _INSTANT, _SPAN, _RATE, _PLAIN = range(5)  # indices of the fields of ``Kinds``
_FLAG = 255  # mask for the last byte of a word; a bool takes one byte


class Kinds(NamedTuple):
    """The names of those fields of a record that belong to the state, sorted into five kinds.

    A record is a row of a structured array, for example the row that describes one sender. If a
    simulation repeats itself, a field such as a time has grown since the last cycle, although the
    state is the same. So ``write`` converts the value of each field. How it does this depends on
    the field's kind.
    """

    numbers: tuple[str, ...] = ()  # sequence numbers; written relative to the last ACK
    instants: tuple[str, ...] = ()  # times in seconds; written relative to the present
    spans: tuple[str, ...] = ()  # durations in seconds
    rates: tuple[str, ...] = ()  # packets per second
    plain: tuple[str, ...] = ()  # packets, counts and flags; written as they are


class Memory(NamedTuple):
    """The memory of an array of records as words of 8 bytes, read as floats or as integers."""

    reals: Floats  # every word, read as a float
    integers: NDArray[np.int64]  # the same words, read as integers
    width: int  # number of words in a record


class Now(NamedTuple):
    """The present time, and two numbers with which ``write`` converts times, spans and rates."""

    time: float  # seconds
    ago: float  # seconds: a time longer ago than this counts as this long ago
    capacity: float  # pkt/s: turns seconds into packets


@jit
def memory(records: Any) -> Memory:
    """The memory of an array of records, as words of 8 bytes; nothing is copied."""
    reals = records.view(np.float64)
    return Memory(reals, records.view(np.int64), reals.shape[0] // max(records.shape[0], 1))


def fields(record: np.dtype[np.void], kinds: Kinds) -> NDArray[np.int64]:
    """A table of the fields that ``kinds`` names: a row with the place, type and kind of each.

    - The place is the index of the field's word (8 bytes) in the record.
    - The type is 1 for a float, 0 for an integer, and -1 - k for a bool in byte k of its word.
    - The kind is an index in ``Kinds``.

    A field that is an array has a row for each of its numbers.
    """
    rows, columns = [], dict(record.fields or {})
    for kind, names in enumerate(kinds):
        for name in names:
            column, offset = columns[name][:2]  # NumPy's type of the field, and its first byte
            form = {"f": 1, "i": 0, "b": -1 - offset % 8}[column.base.kind]
            rows += [(offset // 8 + k, form, kind) for k in range(math.prod(column.shape))]
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
    """Append the values of a record's fields to the ``n`` numbers that the array ``out`` holds.

    The record is number ``row`` in ``records``, and ``fields`` lists the fields. The values are
    converted so that a state that recurs later gives the same numbers again. Sequence numbers
    are written relative to ``acked``, and times relative to the present (``now``). Then times and
    durations are multiplied by the capacity, and rates are divided by it. Times far in the past
    (``now.ago``) or in the future (``FAR``) are limited, and so are sequence numbers below
    ``acked``. Returns ``n`` plus the number of fields, even if ``out`` has no room for all values.
    """
    begin = row * records.width
    for k in range(fields.shape[0]):
        word, form, kind = fields[k, 0], fields[k, 1], fields[k, 2]  # place, type and kind
        if form > 0:  # a float
            x = records.reals[begin + word]
        else:  # an integer, or a bool, which is one of the eight bytes of a word
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
    """Append ``x`` to the ``n`` numbers that ``out`` holds, if there is room; returns n + 1.

    Without room it also returns n + 1. So the caller learns how long ``out`` has to be.
    """
    if n < out.shape[0]:
        out[n] = x
    return n + 1


@jit
def difference(one: Floats, two: Floats, begin: int, enough: float) -> float:
    """The largest difference between two states, given as arrays: of elements in the same place.

    Elements before the index ``begin`` are left out. The result is infinite if it would exceed
    ``enough``, because the caller then counts the states as different. It is also infinite if the
    arrays differ in length.
    """
    worst = 0.0
    if one.shape[0] != two.shape[0]:
        return np.inf
    for k in range(begin, one.shape[0]):
        if one[k] != two[k]:
            distance = abs(one[k] - two[k])
            if not distance <= enough:  # true for NaN, too
                return np.inf
            worst = max(worst, distance)
    return worst
