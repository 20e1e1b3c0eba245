"""Makes Numba compile faster: leaves out some steps, and does others in a faster way.

For example, ``without_garbage_collection`` leaves out Python's garbage collection, and
``with_short_indexing`` accesses an element of an array with fewer instructions.

Each context manager of this module replaces functions of Numba until its ``with`` block ends.
"""

from __future__ import annotations

import copy
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from types import BuiltinFunctionType, NoneType
from typing import Any

import llvmlite.binding as llvm
from numba.core import cgutils, ir, types
from numba.core.compiler_machinery import register_pass
from numba.core.cpu import CPUContext
from numba.core.postproc import PostProcessor
from numba.core.transforms import canonicalize_cfg
from numba.core.typed_passes import (
    NopythonTypeInference,
)
from numba.core.types.misc import unliteral
from numba.core.typing.templates import ConcreteTemplate

__all__ = [
    "Typing", "with_short_indexing", "with_shortcuts", "without_garbage_collection",
    "without_lifetimes", "without_lock_events", "without_negative_indices",
]  # fmt: skip

# types of the parts of an instruction that contain no variable
_NO_VARIABLE = frozenset((str, int, bool, NoneType, ir.Loc, BuiltinFunctionType))


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Switch off Python's garbage collector while Numba compiles.

    It would search Numba's many objects again and again, and find nothing to free.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def without_lock_events() -> Iterator[None]:
    """Switch off the events that Numba records about LLVM's lock.

    Numba takes this lock many thousand times, and would record two events each time.
    """
    lock: Any = getattr(llvm.ffi.lib, "_lock", None)
    listeners = getattr(lock, "_cblist", None)
    if listeners is None:  # another version of llvmlite
        yield
        return
    lock._cblist = []
    try:
        yield
    finally:
        lock._cblist = listeners


@contextmanager
def without_negative_indices() -> Iterator[None]:
    """Make Numba compile array accesses without a test for negative indices.

    A negative index counts from the end of the array, so Numba normally tests each index, and both
    ends of each slice. The code is faster without the tests. But then no index, no end and no step
    of a slice may be negative. (A slice still ends where the array ends.)
    """
    from numba.np import arrayobj

    usual_index = getattr(arrayobj, "fix_integer_index", None)
    slicing: Any = getattr(arrayobj, "slicing", None)
    usual_slice = getattr(slicing, "fix_slice", None)
    if usual_index is None or usual_slice is None:  # another version of Numba
        yield
        return

    def index_as_it_is(context: Any, builder: Any, kind: Any, index: Any, _: Any) -> Any:
        """The index as an integer of the right size, whatever the array's length."""
        return context.cast(builder, index, kind, types.intp)

    def end_of_slice(builder: Any, part: Any, size: Any) -> None:
        """Let the slice ``part`` end where the array of this ``size`` ends."""
        too_far = builder.icmp_signed(">", part.stop, size)
        part.stop = builder.select(too_far, size, part.stop)

    arrayobj.fix_integer_index, slicing.fix_slice = index_as_it_is, end_of_slice
    try:
        yield
    finally:
        arrayobj.fix_integer_index, slicing.fix_slice = usual_index, usual_slice


class _Fields:
    """Gives the fields of an array's description in LLVM's language, such as its shape.

    Code that extracts a field is written only when the field is asked for.
    """

    def __init__(self, context: Any, builder: Any, kind: Any, value: Any) -> None:
        self._model, self._builder, self._value = context.data_model_manager[kind], builder, value

    def __getattr__(self, field: str) -> Any:
        return self._builder.extract_value(self._value, self._model.get_field_position(field))


@contextmanager
def with_short_indexing() -> Iterator[None]:
    """Make Numba write less code in LLVM's language for each access to an array's element.

    Numba would copy the whole description of the array to memory, with all shapes and strides, each
    time an element is read or written. LLVM would then have to remove all this again.

    The change applies only to arrays in C order, if there is one integer index for each dimension
    and bounds are not checked.
    """
    from numba.np import arrayobj

    usual_make_array, usual_indexing = arrayobj.make_array, arrayobj.basic_indexing

    def make_array(kind: Any) -> Any:
        """Numba's ``make_array`` for arrays of this type, without the copy to memory."""

        def make(context: Any, builder: Any, value: Any = None, ref: Any = None) -> Any:
            """The fields of one array: of ``value``, or of the array at the address ``ref``."""
            if type(kind) is types.Array and value is not None and ref is None:
                return _Fields(context, builder, kind, value)
            return usual_make_array(kind)(context, builder, value=value, ref=ref)

        return make

    def basic_indexing(
        context: Any, builder: Any, kind: Any, array: Any, index_kinds: Any, indices: Any,
        boundscheck: Any = None,
    ) -> Any:  # fmt: skip
        """Write code that computes an element's address; Numba's function does all other cases.

        Numba expects three results: the address, and the shape and strides of the array at this
        address. These are empty for a single element.
        """
        integers = all(isinstance(index_kind, types.Integer) for index_kind in index_kinds)
        if boundscheck or kind.layout != "C" or len(indices) != kind.ndim or not integers:
            return usual_indexing(context, builder, kind, array, index_kinds, indices, boundscheck)
        shape = cgutils.unpack_tuple(builder, array.shape, kind.ndim)
        as_integers = [
            arrayobj.fix_integer_index(context, builder, index_kind, index, length)
            for index_kind, index, length in zip(index_kinds, indices, shape, strict=True)
        ]
        pointer = cgutils.get_item_pointer2(
            context, builder, array.data, shape, (), "C", as_integers
        )
        return pointer, [], []

    arrayobj.make_array, arrayobj.basic_indexing = make_array, basic_indexing
    try:
        yield
    finally:
        arrayobj.make_array, arrayobj.basic_indexing = usual_make_array, usual_indexing


@contextmanager
def without_lifetimes() -> Iterator[None]:
    """Let Numba skip its search for the last use of each variable.

    Numba frees an array after the last use of its variable.  Functions that create no arrays have
    nothing to free, so the search can be skipped for them.
    """
    usual_run = PostProcessor.run

    def run(self: Any, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:  # noqa: ARG001 - Numba's
        self.func_ir.blocks = canonicalize_cfg(self.func_ir.blocks)
        self.func_ir.generator_info = None

    PostProcessor.run = run
    try:
        yield
    finally:
        PostProcessor.run = usual_run


@contextmanager
def with_shortcuts() -> Iterator[None]:
    """Replace four functions of Numba by faster ones while Numba compiles.

    The compiled code stays the same.

    - One function lists the variables in an instruction.  The faster one skips parts that contain
      no variable, such as strings.
    - One function finds the signature of a call from the types of its arguments.  The faster one
      keeps each signature, and returns it when the same function is called with the same types.
    - One function writes the type of a record as text, with all its fields.  The faster one returns
      the type's name, which is a text that exists already.
    - One function asks LLVM for the size of a type, for each variable.  The faster one keeps sizes.
    """
    instruction: Any = ir.Inst
    function: Any = types.BaseFunction
    record: Any = types.Record
    usual_variables, usual_signature = instruction._rec_list_vars, function.get_call_type
    usual_text, usual_size = record.__repr__, CPUContext.get_abi_sizeof
    sizes: dict[Any, int] = {}
    known: dict[tuple[Any, ...], Any] = {}

    def variables(self: Any, part: Any) -> Any:
        """The variables in ``part`` of an instruction."""
        kind = type(part)
        if kind is ir.Var:
            return [part]
        return [] if kind in _NO_VARIABLE else usual_variables(self, part)

    def signature(self: Any, context: Any, arguments: Any, named: Any) -> Any:
        """The signature of a call with ``arguments``; calls with named arguments are not kept."""
        if named:
            return usual_signature(self, context, arguments, named)
        key = (id(self), *arguments)
        if key not in known:
            known[key] = self, usual_signature(self, context, arguments, named)
        return known[key][1]

    def size(self: Any, kind: Any) -> int:
        """The size of the type ``kind``, in bytes."""
        if kind not in sizes:
            sizes[kind] = usual_size(self, kind)
        return sizes[kind]

    context: Any = CPUContext
    instruction._rec_list_vars, function.get_call_type = variables, signature
    record.__repr__, context.get_abi_sizeof = types.Type.__repr__, size
    try:
        yield
    finally:
        instruction._rec_list_vars, function.get_call_type = usual_variables, usual_signature
        record.__repr__, context.get_abi_sizeof = usual_text, usual_size


def _number_signature(context: Any, function: Any, arguments: Any) -> Any:
    """The signature of an operator for numbers, from Numba's own list of the operator's signatures.

    Returns ``None`` if there is no such list, or if it lacks these types of numbers. Without this
    function, Numba would first try the operator's signatures for lists, strings and dates.
    """
    types_of_arguments = tuple(unliteral(kind) for kind in arguments)
    for template in function.templates:
        if issubclass(template, ConcreteTemplate):
            found = template(context)
            signature = found.apply(types_of_arguments, {})
            if signature is not None:
                # Numba finds the operator's code for these types by this key
                function._impl_keys[signature.args] = found.get_impl_key(signature)
                return signature
    return None


@register_pass(mutates_CFG=True, analysis_only=False)
class Typing(NopythonTypeInference):  # type: ignore[misc]  # Numba has no types
    """Numba's type inference, with a memory for the signatures of operators and functions.

    Without this memory, Numba would search dozens of candidates for the signature again at each
    ``+`` and ``max`` of the program.
    """

    _name = "whole_program_typing"
    _known: dict[tuple[Any, ...], Any] = {}  # noqa: RUF012 - one for all functions

    def run_pass(self, state: Any) -> Any:
        """Determine the types of all variables of a function, as Numba does.

        Numba asks its typing context for the signature of each operator and function that is
        called. In this pass it gets a copy of the context, which looks up a signature that was
        found before in the table ``_known``.
        """
        usual_context = state.typingctx

        def resolve(function: Any, arguments: Any, named: Any) -> Any:
            """The signature of ``function`` for ``arguments``, from ``_known`` if it is there."""
            if named or not isinstance(function, types.Function | BuiltinFunctionType):
                return usual_context.resolve_function_type(function, arguments, named)
            key = (function, *arguments)
            if key not in self._known:
                scalars = all(isinstance(kind, (types.Number, types.Boolean)) for kind in arguments)
                found = None
                if scalars and isinstance(function, types.Function):
                    found = _number_signature(usual_context, function, arguments)
                self._known[key] = found or usual_context.resolve_function_type(
                    function, arguments, named
                )
            return self._known[key]

        state.typingctx = copy.copy(usual_context)
        state.typingctx.resolve_function_type = resolve
        try:
            return super().run_pass(state)
        finally:
            state.typingctx = usual_context
