"""Translates compiled functions to LLVM's language in fewer instructions than Numba does.

LLVM's time grows with the number of instructions that it gets, and so does the time that Numba
takes to write them.  Numba's code is general: each local variable has a place in memory, each loop
over a ``range`` counts its turns beforehand, each call of a compiled function is followed by a test
for an exception.  The functions that ``ShortCode`` translates need none of this.  They own no
memory that must be freed (``_nrt`` is off), and most of them raise no exceptions.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from llvmlite.ir import IRBuilder
from numba.core import cgutils, ir
from numba.core import types as numba_types
from numba.core.callconv import CPUCallConv
from numba.core.cgutils import alloca_once_value
from numba.core.imputils import fix_returning_optional
from numba.core.lowering import Lower
from numba.core.typing import signature
from numba.np import arrayobj

__all__ = ["CompiledPart", "PartCode", "ShortCode", "signature_of_extreme"]

types: Any = numba_types  # type checkers see only a part of it
_PLAIN = (types.Integer, types.Float)  # their values look the same in memory
_FLOATS = {
    operator.add: "fadd",
    operator.sub: "fsub",
    operator.mul: "fmul",
    operator.truediv: "fdiv",
}
_COMPARISONS = {
    operator.lt: "<",
    operator.le: "<=",
    operator.gt: ">",
    operator.ge: ">=",
    operator.eq: "==",
}
_EXTREMES = {max: ">", min: "<"}
_RANGE = types.range_state64_type
_Found = tuple[Any, Any] | None  # a value and its type


@dataclass(frozen=True, eq=False)
class CompiledPart:
    """A function that other compiled functions call: how to declare it, and its code."""

    description: Any
    library: Any
    raises: bool  # a call may end with an exception

    def call(self, context: Any, builder: Any, asked: Any, args: Any) -> Any:
        """Write a call; the status that it returns is tested only if the part may raise."""
        told, convention = self.description, PartConvention(context)
        context.add_linking_libs([self.library])
        code = convention.declare(builder.module, told)
        if self.raises:
            kinds = told.argtypes
            status, value = convention.call_function(builder, code, told.restype, kinds, args)
            with cgutils.if_unlikely(builder, status.is_error):
                convention.return_status_propagate(builder, status)
            return fix_returning_optional(context, builder, asked, status, value)
        values = _Arguments(context.data_model_manager, told.argtypes).as_arguments(builder, args)
        place = cgutils.alloca_once(builder, code.args[0].type.pointee)
        error = convention._get_excinfo_argument(builder.function)
        builder.call(code, [place, error, *values])
        value = builder.load(place)
        if told.restype == types.boolean:
            return _truth(builder, value)
        return context.get_returned_value(builder, told.restype, value)


class PartConvention(CPUCallConv):  # type: ignore[misc]  # Numba has no types
    """How parts are called: a named tuple is passed by its address, all else as it is.

    Numba would pass each number of a tuple or of an array as an argument of its own.
    """

    def _get_arg_packer(self, kinds: Any) -> _Arguments:
        return _Arguments(self.context.data_model_manager, kinds)

    def declare(self, module: Any, told: Any) -> Any:
        """The declaration of a part in LLVM's language; compare Numba's ``declare_function``."""
        kind = self.get_function_type(told.restype, told.argtypes)
        function = cgutils.get_or_insert_function(module, kind, told.mangled_name)
        self.decorate_function(function, told.args, told.argtypes)
        if told.inline:
            function.attributes.add("alwaysinline")
        return function


class _Arguments:
    """The arguments of a part; compare Numba's ``ArgPacker``."""

    def __init__(self, manager: Any, kinds: Any) -> None:
        values = [manager[kind].get_value_type() for kind in kinds]
        self._by_address = [isinstance(kind, types.BaseNamedTuple) for kind in kinds]
        pairs = zip(values, self._by_address, strict=True)
        self.argument_types = tuple(v.as_pointer() if far else v for v, far in pairs)

    def as_arguments(self, builder: Any, values: Any) -> list[Any]:
        pairs = zip(values, self._by_address, strict=True)
        return [_address(v) or alloca_once_value(builder, v) if far else v for v, far in pairs]

    def from_arguments(self, builder: Any, args: Any) -> list[Any]:
        pairs = zip(args, self._by_address, strict=True)
        return [builder.load(_stays(arg)) if far else arg for arg, far in pairs]

    def assign_names(self, args: Any, names: Any) -> None:
        for arg, name, far in zip(args, names, self._by_address, strict=True):
            arg.name = name
            if far:  # nothing changes a tuple
                arg.add_attribute("noalias")


def _stays(place: Any) -> Any:
    """Mark the address of a named tuple which nothing changes while the function runs."""
    place.stays = True
    return place


def _address(tuple_: Any) -> Any:
    """The address of a named tuple that the function was given, or of one in it; else ``None``."""
    place = tuple_.operands[0] if getattr(tuple_, "opname", "") == "load" else None
    return place if getattr(place, "stays", False) else None


def _truth(builder: Any, byte: Any) -> Any:
    return builder.icmp_unsigned("!=", byte, byte.type(0))


def signature_of_extreme(context: Any, function: Any, kinds: tuple[Any, ...]) -> Any:
    """The signature of ``max`` or ``min`` of numbers; ``None`` where Numba must find it.

    Numba would compile a function for each combination of types.
    """
    extreme = getattr(function, "typing_key", None) in _EXTREMES and len(kinds) > 1
    if not extreme or not all(isinstance(kind, _PLAIN) for kind in kinds):
        return None
    found = context.unify_types(*kinds)
    return signature(found, *kinds) if found in (types.int64, types.float64) else None


class ShortCode(Lower):  # type: ignore[misc]  # Numba has no types
    """Numba's translation of one function, with short code for what the simulators do most."""

    @property
    def raises(self) -> bool:
        """Whether the translated function may end with an exception."""
        ends = [block.terminator for block in self.function.blocks]
        codes = [end.operands[0] for end in ends if end is not None and end.opname == "ret"]
        return any(getattr(code, "constant", None) != 0 for code in codes)

    def extract_function_arguments(self) -> Any:
        """The arguments as values; a named tuple is also stored, where parts can be told of it."""
        values = super().extract_function_arguments()
        for i, kind in enumerate(self.fndesc.argtypes):
            if isinstance(kind, types.BaseNamedTuple) and _address(values[i]) is None:
                place = alloca_once_value(self.builder, values[i])  # once, for all calls of parts
                values[i] = self.builder.load(_stays(place))
        return values

    # local variables: one that is assigned once is a value, without a place in memory

    def _find_singly_assigned_variable(self) -> None:
        statements = [inst for block in self.blocks.values() for inst in block.body]
        targets = Counter(one.target.name for one in statements if isinstance(one, ir.Assign))
        self._singly_assigned_vars = {name for name, times in targets.items() if times == 1}
        self._blk_local_varmap: dict[str, Any] = {}

    def loadvar(self, name: str) -> Any:
        """The value of a variable."""
        if name not in self._blk_local_varmap:  # in a loop, its assignment may come later
            self._singly_assigned_vars.discard(name)
        return super().loadvar(name)

    def storevar(self, value: Any, name: str, argidx: int | None = None) -> None:  # noqa: ARG002
        """Give a variable its value."""
        if name in self._singly_assigned_vars:
            self._blk_local_varmap[name] = value
        else:
            self.builder.store(value, self.getvar(name))

    def delvar(self, name: str) -> None:
        """Nothing is freed."""

    # statements and expressions

    def lower_block(self, block: Any) -> None:
        """Translate the statements between two branches."""
        for statement in block.body:
            self.loc = statement.loc
            self.lower_inst(statement)

    def lower_expr(self, resty: Any, expr: Any) -> Any:
        """Translate an expression: by ``_SHORT``, or as Numba does."""
        short = _SHORT.get(expr.op)
        found = short(self, expr) if short else None
        if found is None:
            return super().lower_expr(resty, expr)
        value, kind = found
        return self.context.cast(self.builder, value, kind, resty)

    def lower_setitem(self, target_var: Any, index_var: Any, value_var: Any, signature: Any) -> Any:
        """Store an element of an array."""
        place = self._place(target_var, index_var)
        if place is None:
            return super().lower_setitem(target_var, index_var, value_var, signature)
        kind = self.typeof(target_var.name).dtype
        self.context.pack_value(self.builder, kind, self._cast_var(value_var, kind), place)
        return None

    def _attribute(self, expr: Any) -> _Found:
        """A field of a record, or the shape of an array."""
        kind, value = self.typeof(expr.value.name), self.loadvar(expr.value.name)
        if isinstance(kind, types.Array) and expr.attr == "shape":
            return self._part(kind, value, "shape"), types.UniTuple(types.intp, kind.ndim)
        if isinstance(kind, types.BaseNamedTuple) and (whole := _address(value)) is not None:
            at = kind.fields.index(expr.attr)
            place = _stays(cgutils.gep_inbounds(self.builder, whole, 0, at))
            return self.builder.load(place), kind[at]
        if not isinstance(kind, types.Record) or not kind.aligned:
            return None
        field = kind.typeof(expr.attr)
        if isinstance(field, types.NestedArray):
            return None
        stored = self.context.get_data_type(field)
        place = cgutils.get_record_member(self.builder, value, kind.offset(expr.attr), stored)
        return self._at(place, field), field

    def _element(self, expr: Any) -> _Found:
        """An element of an array."""
        kind = self.typeof(expr.value.name)
        place = self._place(expr.value, expr.index if expr.op == "getitem" else expr.index_var)
        return None if place is None else (self._at(place, kind.dtype), kind.dtype)

    def _place(self, array: Any, index: Any) -> Any:
        """Where an element of an array is; ``None`` if the index names more than one element."""
        kind = self.typeof(array.name)
        if index is None or not isinstance(kind, types.Array) or self.context.enable_boundscheck:
            return None
        named = self.typeof(index.name)
        kinds = named.types if isinstance(named, types.BaseTuple) else (named,)
        whole = all(isinstance(one, types.Integer) for one in kinds) and len(kinds) == kind.ndim
        if not whole or not kind.aligned or kind.layout == "F":
            return None
        build, value, at = self.builder, self.loadvar(array.name), self.loadvar(index.name)
        indices = cgutils.unpack_tuple(build, at) if isinstance(named, types.BaseTuple) else [at]
        data, shape = self._part(kind, value, "data"), self._part(kind, value, "shape")
        strides = self._part(kind, value, "strides") if kind.layout == "A" else None
        place = None  # elements, or bytes where the array has gaps
        for axis, one in enumerate(indices):
            size = build.extract_value(shape, axis)
            one = arrayobj.fix_integer_index(self.context, build, kinds[axis], one, size)
            if strides is not None:
                one = build.mul(one, build.extract_value(strides, axis))
                place = one if place is None else build.add(place, one)
            else:
                place = one if place is None else build.add(build.mul(place, size), one)
        if strides is not None:
            return cgutils.pointer_add(build, data, place)
        return build.gep(data, [place])

    def _part(self, kind: Any, value: Any, name: str) -> Any:
        return self.context.data_model_manager[kind].get(self.builder, value, name)

    def _at(self, place: Any, kind: Any) -> Any:
        """The value of type ``kind`` that is stored at a place."""
        if isinstance(kind, _PLAIN):
            return self.builder.load(place)
        if isinstance(kind, types.Boolean):
            return _truth(self.builder, self.builder.load(place))
        return self.context.unpack_value(self.builder, kind, place)

    def _binary(self, expr: Any) -> _Found:
        """Arithmetic and comparisons of two floats."""
        function = expr.fn if expr.op == "binop" else expr.immutable_fn
        if self.fndesc.calltypes[expr].args != (types.float64, types.float64):
            return None
        if function is operator.truediv and self.context.error_model.raise_on_fp_zero_division:
            return None
        values = [self._cast_var(one, types.float64) for one in (expr.lhs, expr.rhs)]
        if function in _FLOATS:
            return getattr(self.builder, _FLOATS[function])(*values), types.float64
        if function in _COMPARISONS:
            sign = _COMPARISONS[function]
            return self.builder.fcmp_ordered(sign, *values), types.boolean
        return None

    # loops: ``range`` is (start, stop, step), its iterator (place of the next number, stop, step)

    def _iterator(self, expr: Any) -> _Found:
        if self.typeof(expr.value.name) != _RANGE:
            return None
        start, stop, step = cgutils.unpack_tuple(self.builder, self.loadvar(expr.value.name))
        place = alloca_once_value(self.builder, start)
        unused = place.type(None)
        value = cgutils.pack_struct(self.builder, [place, stop, step, unused])
        return value, _RANGE.iterator_type

    def _next(self, expr: Any) -> _Found:
        if self.typeof(expr.value.name) != _RANGE.iterator_type:
            return None
        build = self.builder
        place, stop, step, _ = cgutils.unpack_tuple(build, self.loadvar(expr.value.name))
        number = build.load(place)
        up = build.icmp_signed(">", step, step.type(0))
        left = [build.icmp_signed(sign, number, stop) for sign in "<>"]
        build.store(build.add(number, step), place)
        pair = cgutils.pack_struct(build, [number, build.select(up, *left)])
        return pair, types.Pair(types.int64, types.boolean)

    def _half(self, expr: Any) -> _Found:
        kind = self.typeof(expr.value.name)
        place = int(expr.op == "pair_second")
        value = self.builder.extract_value(self.loadvar(expr.value.name), place)
        return value, kind.second_type if place else kind.first_type

    # calls

    def _call(self, expr: Any) -> _Found:
        function, found = self.typeof(expr.func.name), self.fndesc.calltypes[expr]
        key = getattr(function, "typing_key", None)
        if key is range and found.return_type == _RANGE:
            return self._range(expr.args)
        if key is bool and self.typeof(expr.args[0].name) == types.boolean:
            return self.loadvar(expr.args[0].name), types.boolean
        if key in _EXTREMES and len(expr.args) == len(found.args):
            return self._extreme(_EXTREMES[key], expr.args, found.return_type)
        if isinstance(function, types.Dispatcher):
            part = function.get_impl_key(found)
            if isinstance(part, CompiledPart):
                args = self.fold_call_args(function, found, expr.args, expr.vararg, expr.kws)
                value = part.call(self.context, self.builder, found, args)
                return value, part.description.restype
        return None

    def _range(self, args: Any) -> _Found:
        values = [self._cast_var(one, types.int64) for one in args]
        if len(values) == 1:
            values.insert(0, values[0].type(0))
        if len(values) == 2:
            values.append(values[0].type(1))
        return cgutils.pack_struct(self.builder, values), _RANGE

    def _extreme(self, sign: str, args: Any, kind: Any) -> _Found:
        """``max`` and ``min`` as in Python: the first of equal numbers, also beside a NaN."""
        compare = {types.int64: "icmp_signed", types.float64: "fcmp_ordered"}.get(kind)
        if compare is None:
            return None
        best, *rest = [self._cast_var(one, kind) for one in args]
        for one in rest:
            best = self.builder.select(getattr(self.builder, compare)(sign, one, best), one, best)
        return best, kind


class PartCode(ShortCode):
    """The translation of a part."""

    @property
    def call_conv(self) -> Any:
        """The calling convention of this function."""
        return PartConvention(self.context)

    def setup_function(self, fndesc: Any) -> None:
        """Begin the function."""
        self.function = self.call_conv.declare(self.module, fndesc)
        self.entry_block = self.function.append_basic_block("entry")
        self.builder = IRBuilder(self.entry_block)
        self.call_helper = self.call_conv.init_call_helper(self.builder)


_SHORT: dict[str, Callable[[ShortCode, Any], _Found]] = {
    "getattr": ShortCode._attribute,
    "getitem": ShortCode._element,
    "static_getitem": ShortCode._element,
    "binop": ShortCode._binary,
    "inplace_binop": ShortCode._binary,
    "getiter": ShortCode._iterator,
    "iternext": ShortCode._next,
    "pair_first": ShortCode._half,
    "pair_second": ShortCode._half,
    "call": ShortCode._call,
}
