"""Functions that are compiled as part of the function that Python calls."""

import functools
import gc
import itertools
import math
import operator
import re
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import numba
import numpy as np
import pytest
from numba.core import types
from numba.core.codegen import JITCodeLibrary
from numba.core.errors import TypingError
from numba.core.registry import cpu_target
from numba.core.runtime import _nrt_python, rtsys

from vegasmodel.engines import on_demand
from vegasmodel.support import linked_code, numba_shortcuts
from vegasmodel.support.linked_code import Marks
from vegasmodel.support.machine_code import compiled
from vegasmodel.support.whole_program import Part, WholeProgram

ROW = np.dtype([("calls", "i8"), ("length", "f8")], align=True)


def whole(function: Callable[..., Any]) -> Any:
    return compiled(function, whole_program=True, error_model="numpy", _nrt=False)


@whole
def leaf(row, x):
    row.calls += 1
    return math.sqrt(row.length * x) / 3.0


@whole
def middle(row, n):
    total = 0.0
    for k in range(n):
        total += leaf(row, k + 0.1) - np.floor(row.length)
    return total + leaf(row, 1)


@whole
def top(rows, n):
    np.random.seed(n)  # noqa: NPY002 - compiled code has no generators
    drawn = np.random.random()  # noqa: NPY002 - compiled code has no generators
    return max(middle(rows[0], n), leaf(rows[1], 2.0)) + drawn


@whole
def wrong(row):
    return np.floor("nothing") + row.length


@whole
def calls_wrong(rows):
    return wrong(rows[0])


def rows() -> np.ndarray:
    made = np.zeros(2, ROW)
    made["length"] = 2.7, 1e-3
    return made


def test_answers_are_those_of_plain_python_bit_for_bit() -> None:
    mine, theirs = rows(), rows().view(np.recarray)
    plain: dict[str, Any] = {"math": math, "np": np, "max": max, "range": range}
    for function in (leaf, middle, top):
        source = function.py_func
        plain[source.__name__] = type(source)(source.__code__, plain)
    state = np.random.get_state()  # noqa: NPY002 - the plain run draws as `top` does
    expected = plain["top"](theirs, 7)
    np.random.set_state(state)  # noqa: NPY002 - the plain run draws as `top` does
    assert top(mine, 7) == expected
    assert mine["calls"].tolist() == theirs["calls"].tolist() == [8, 1]


def test_python_may_call_a_part_too() -> None:
    row = rows()
    top(row, 3)
    assert leaf(row[0], 3.0) == math.sqrt(2.7 * 3.0) / 3.0


def test_only_what_python_calls_is_machine_code() -> None:
    assert type(top) is WholeProgram
    anew = WholeProgram(top.py_func, {"error_model": "numpy", "_nrt": False})  # nothing was kept
    anew(rows(), 3)
    assert isinstance(middle._part, Part)
    assert middle._part.overloads
    assert not middle.overloads
    kinds = {type(made.library).__name__ for made in middle._part.overloads.values()}
    assert kinds == {"Unfinished"}


def test_an_llvmlite_that_cannot_ask_for_inlining(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any) -> None:
        raise RuntimeError("Attribute 'alwaysinline' does not apply to function return values")

    expected = top(rows(), 7)
    monkeypatch.setattr(linked_code, "_inlining_can_be_asked", lambda: False)
    monkeypatch.setattr(llvm.ValueRef, "add_function_attribute", never)
    again = WholeProgram(top.py_func, {"error_model": "numpy", "_nrt": False})
    assert again(rows(), 7) == expected


def test_only_where_an_index_may_be_negative_is_the_length_added() -> None:
    def at(values, k):
        return values[k]

    values, options = np.arange(4.0), {"error_model": "numpy", "_nrt": False}
    either, place = (WholeProgram(at, options, negative) for negative in (True, False))
    assert [either(values, k) for k in range(-4, 4)] == [*values, *values]
    assert [place(values, k) for k in range(4)] == [*values]
    additions = [
        len(re.findall(r"= (ashr|select|add)", *f.inspect_llvm().values())) for f in (either, place)
    ]
    assert additions[0] > additions[1]


def test_only_where_an_end_of_a_slice_may_be_negative_is_it_tested() -> None:
    def total(values, a, b):
        found = 0.0
        for part in (values[a:b], values[a:], values[:]):
            for k in range(len(part)):
                found += part[k]
        return found

    values, options = 2.0 ** np.arange(4), {"error_model": "numpy", "_nrt": False}
    either, within = (WholeProgram(total, options, negative) for negative in (True, False))
    ends = [*itertools.product(range(-5, 7), repeat=2)]
    assert [either(values, *one) for one in ends] == [total(values, *one) for one in ends]
    ends = [*itertools.product(range(7), repeat=2)]
    assert [within(values, *one) for one in ends] == [total(values, *one) for one in ends]
    tests = [len(re.findall(r"= icmp", *f.inspect_llvm().values())) for f in (either, within)]
    assert tests[0] > tests[1]


def test_what_seldom_runs_is_not_inlined_and_inlines_nothing() -> None:
    options = {"error_model": "numpy", "_nrt": False}
    often = WholeProgram(middle.py_func, options)
    seldom = WholeProgram(middle.py_func, options, marks=Marks(rare=True))
    first = WholeProgram(lambda rows, n: often(rows[0], n), options)
    second = WholeProgram(lambda rows, n: seldom(rows[0], n), options)
    assert first(rows(), 7) == second(rows(), 7)
    functions = [
        re.findall(r"define internal .*\d(leaf|middle)B", *f.inspect_llvm().values())
        for f in (first, second)
    ]
    assert set(functions[0]) == set()
    assert set(functions[1]) == {"leaf", "middle"}


def test_what_stands_apart_is_not_inlined_but_inlines_others() -> None:
    options = {"error_model": "numpy", "_nrt": False}
    alone = WholeProgram(middle.py_func, options, marks=Marks(apart=True))
    whole = WholeProgram(lambda rows, n: alone(rows[0], n), options)
    often = WholeProgram(middle.py_func, options)
    assert whole(rows(), 7) == WholeProgram(lambda rows, n: often(rows[0], n), options)(rows(), 7)
    functions = re.findall(r"define internal .*\d(leaf|middle)B", *whole.inspect_llvm().values())
    assert functions == ["middle"]


def test_a_call_writes_no_zeros_where_the_result_will_be() -> None:
    options = {"error_model": "numpy", "_nrt": False}
    alone = WholeProgram(middle.py_func, options, marks=Marks(apart=True))
    program = WholeProgram(lambda rows, n: alone(rows[0], n) + alone(rows[1], n), options)
    assert program(rows(), 7) == middle(rows()[0], 7) + middle(rows()[1], 7)
    code = program.inspect_llvm(program.signatures[0])
    caller = re.findall(r"define [^\n]*i32 @[^\n]*lambda.*?\n}", code, re.DOTALL)[0]
    assert len(re.findall(r"call [^\n]*middle", caller)) == 2
    assert re.findall(r"store \S+ (?:null|zeroinitializer|0)", caller) == []


def test_an_exception_in_a_part_reaches_python() -> None:
    options = {"error_model": "numpy", "_nrt": False}

    def steps(n: int) -> int:
        total = 0
        for k in range(0, 6, n):
            total += k
        return total

    part = WholeProgram(steps, options)
    program = WholeProgram(lambda n: part(n) + part(n - 1), options)
    assert program(3) == steps(3) + steps(2)
    with pytest.raises(ValueError, match="must not be zero"):
        program(1)


def test_after_a_call_that_cannot_fail_nothing_is_tested() -> None:
    options = {"error_model": "numpy", "_nrt": False}

    def loops(n: int) -> int:
        total = 0
        for k in range(n):
            if k % 3 == 1:
                continue
            total += k
        return total

    def calls(n: int) -> int:
        return alone(n) + alone(n + 1)

    alone = WholeProgram(loops, options, marks=Marks(apart=True))
    program = WholeProgram(calls, options)
    assert program(7) == calls(7) == loops(7) + loops(8)
    code = program.inspect_llvm(program.signatures[0])
    caller = re.findall(r"define [^\n]*i32 @[^\n]*calls.*?\n}", code, re.DOTALL)[0]
    assert len(re.findall(r"call [^\n]*loops", caller)) == 2
    assert re.findall(r" (?:icmp|br) ", caller) == []


def test_a_function_that_numba_writes_in_python_is_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    plain = JITCodeLibrary._finalize_specific

    def counted(library: Any) -> None:
        made.append(library.name)
        plain(library)

    def several(x: float, n: int) -> float:
        most = max(x, 1.0, 2.0, n, 3.0, 4.0, 5.0)  # no other test has so many
        return min(most, x, 1.0, 2.0, n, 3.0, 4.0, 5.0) + (n, n + 1, n)[1]

    monkeypatch.setattr(JITCodeLibrary, "_finalize_specific", counted)
    program = WholeProgram(several, {"error_model": "numpy", "_nrt": False})
    assert program(2.345, 2) == several(2.345, 2)
    assert len(made) == 1
    monkeypatch.undo()
    assert numba.njit(several)(2.345, 2) == several(2.345, 2)


def test_arrays_that_a_program_makes_are_freed() -> None:
    @functools.partial(WholeProgram, options={"error_model": "numpy"})
    def makes(n: int) -> float:
        total = 0.0
        for k in range(n):
            values = np.full(8, 1.0 * k)
            total += values.sum()
        return total

    assert makes(3) == 24.0
    _nrt_python.memsys_enable_stats()
    try:
        before = rtsys.get_allocation_stats()
        assert makes(100) == 8.0 * 4950
        after = rtsys.get_allocation_stats()
    finally:
        _nrt_python.memsys_disable_stats()
    assert after.alloc - before.alloc == after.free - before.free > 0


def test_an_llvmlite_whose_passes_cannot_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linked_code, "_passes_can_be_chosen", lambda: False)
    again = WholeProgram(top.py_func, {"error_model": "numpy", "_nrt": False})
    assert again(rows(), 7) == top(rows(), 7)


@pytest.mark.parametrize("operator_", [operator.add, operator.truediv, operator.lt, operator.neg])
def test_an_operator_on_numbers_has_the_types_that_numba_finds(operator_: Any) -> None:
    context = cpu_target.typing_context
    context.refresh()
    function = context.resolve_value_type(operator_)
    kinds = (types.float64, types.int64, types.boolean, types.literal(3))
    for arguments in itertools.product(kinds, repeat=1 if operator_ is operator.neg else 2):
        mine = numba_shortcuts._number_signature(context, function, arguments)
        assert mine == context.resolve_function_type(function, arguments, {})


def test_an_error_in_a_part_is_told_and_leaves_the_collector_on() -> None:
    assert gc.isenabled()
    told = llvm.ffi.lib._lock._cblist
    for _ in range(2):
        with pytest.raises(TypingError, match="floor"):
            calls_wrong(rows())
        assert gc.isenabled()
        assert llvm.ffi.lib._lock._cblist is told


@pytest.mark.parametrize("negative", [True, False])
@pytest.mark.parametrize("order", ["C", "F", "strided"])
def test_elements_of_arrays_are_read_and_written(negative: bool, order: str) -> None:
    def swap(values, row, i, j):
        kept = values[i, j]
        values[i, j] = row[j]
        row[j] = kept
        return values[i].sum() + values.shape[1] * row[i : j + 1].size

    program = WholeProgram(swap, {"error_model": "numpy"}, negative)
    pairs = itertools.product(range(2), range(3))
    for i, j in [*pairs, *([(-1, -2), (1, -3)] if negative else [])]:
        wide = np.arange(24.0).reshape(4, 6)
        values = {"C": wide[:2, :3].copy(), "F": np.asfortranarray(wide[:2, :3])}.get(
            order, wide[::2, ::2]
        )
        row, expected, other = np.arange(3.0) + 0.5, values.copy(), np.arange(3.0) + 0.5
        assert program(values, row, i, j) == swap(expected, other, i, j)
        np.testing.assert_array_equal(values, expected)
        np.testing.assert_array_equal(row, other)


def test_a_step_is_compiled_for_numbas_types_of_its_arguments() -> None:
    @whole
    def step(row, table, part, fixed, values, x):
        row.calls += table.size + part.size + fixed.size + values.size + int(x)

    fixed = rows()
    fixed.flags.writeable = False
    arguments = rows()[1], rows(), np.zeros(4, ROW)[::2], fixed, np.zeros(3), 0.5
    for _ in range(2):
        on_demand.address(step, *arguments)
    assert list(step.overloads) == [tuple(numba.typeof(one) for one in arguments)]


def test_a_step_is_compiled_on_demand_and_called_by_its_address() -> None:
    @whole
    def step(row, values, x):
        row.calls += 1
        values[row.calls] += middle(row, 3) * x

    @whole
    def loop(rows, values, at):
        for k in range(3):
            if at != 0:
                on_demand.call(at, (rows[1], values, 0.5 * k))

    made, expected, values, others = rows(), rows(), np.zeros(99), np.zeros(99)
    loop(made, values, 0)
    assert not values.any()
    loop(made, values, on_demand.address(step, made[1], values, 0.0))
    for k in range(3):
        step(expected[1], others, 0.5 * k)
    np.testing.assert_array_equal(values, others)
    assert made[1] == expected[1]
