"""A simulator's state as a row of numbers, according to the kinds of its fields."""

from __future__ import annotations  # ``layout`` reads the names of kinds

import math

import numpy as np

from vegasmodel.engines.states import Kinds, Memory, Now, difference, fields, write
from vegasmodel.engines.tables import layout


class Record:
    flag: bool
    other: bool
    sent: float
    count: int
    due: float
    rate: float


def test_a_row_counts_from_the_moment_and_holds_what_was_asked_for():
    records = np.zeros(2, layout(Record))
    records[1] = (False, True, 17.0, -3, 2.5, 40.0)
    kinds = Kinds(("sent",), ("due",), (), ("rate",), ("count", "flag", "other"))
    width = records.dtype.itemsize // 8
    memory = Memory(records.view(np.float64), records.view(np.int64), width)
    told = memory, 1, fields(records.dtype, kinds), 12.0, Now(2.0, 1.0, 100.0)
    row = np.full(7, np.nan)
    assert write(row, 1, *told) == 7
    np.testing.assert_array_equal(row, [np.nan, 17 - 12, (2.5 - 2) * 100, 40 / 100, -3, 0, 1])
    # a row without room keeps what it has, and says how much it would need
    short = np.zeros(2)
    assert write(short, 1, *told) == 7
    np.testing.assert_array_equal(short, [0, 5])


def test_states_differ_by_their_largest_difference():
    one, two = np.array([5.0, 1.0, math.inf, 3.0]), np.array([0.0, 1.0, math.inf, 3.25])
    assert difference(one, two, 1, 0.5) == 0.25
    assert difference(one, two, 1, 0.2) == math.inf
    assert difference(one, two, 0, 0.5) == math.inf
    assert difference(one, two[:3], 1, 0.5) == math.inf
    assert difference(one, np.array([5.0, math.nan, math.inf, 3.0]), 0, 0.5) == math.inf
