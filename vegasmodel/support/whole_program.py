"""Compiles a function and all the compiled functions that it calls as one program.

This makes the simulators compile faster. By default Numba compiles each function together with
copies of all functions that it calls, so one function may be compiled many times. Here each
function is first translated to LLVM's intermediate language. The function that Python calls is then
linked with one copy of each function that it needs. LLVM optimises this program once.

By default LLVM inlines small functions in their callers. The options in ``Marks`` change how it
treats a function:

- ``apart``: the function is not inlined, which makes the program smaller.
- ``rare``: the function is not inlined, and no function that it calls is inlined in it.
- ``quick``: LLVM optimises the function less, and so compiles it faster.
- ``distinct``: LLVM assumes that arrays that Python passes share no memory, so the code is faster.

To save more compile time, several steps of Numba and LLVM that bring nothing here are left out.
"""

from __future__ import annotations

import copy
import functools
import gc
import itertools
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import BuiltinFunctionType, NoneType
from typing import Any, NamedTuple

import llvmlite.binding as llvm
from numba.core import cgutils, ir, sigutils, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder, _LowerResult
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.cpu import CPUContext
from numba.core.funcdesc import PythonFunctionDescriptor
from numba.core.itanium_mangler import mangle
from numba.core.postproc import PostProcessor
from numba.core.registry import CPUDispatcher
from numba.core.transforms import canonicalize_cfg
from numba.core.typed_passes import (
    IRLegalization,
    NativeLowering,
    NoPythonBackend,
    NopythonTypeInference,
    PreLowerStripPhis,
)
from numba.core.types.misc import unliteral
from numba.core.typing.templates import ConcreteTemplate, _OverloadFunctionTemplate
from numba.core.untyped_passes import FixupArgs, IRProcessing, ReconstructSSA, TranslateByteCode

__all__ = ["Marks", "WholeProgram"]


class Marks(NamedTuple):
    """Options with which a function is compiled; the docstring of the module explains them."""

    rare: bool = False  # inlined nowhere, and nothing is inlined in it
    apart: bool = False  # inlined nowhere
    quick: bool = False  # optimised less, and so compiled faster
    distinct: bool = False  # arrays that Python passes share no memory


NO_MARKS = Marks()
# as LLVM writes them: a status that a function returns, a value by branches, a value of these
_STATUS = re.compile(r"^  ret i32 (\S+)$", re.MULTILINE)
_PHI = re.compile(r"^  (%\S+) = phi i32 (.*)$", re.MULTILINE)
_VALUE = re.compile(r"\[ (\S+),")
_NO_VARIABLE = frozenset((str, int, bool, NoneType, ir.Loc, BuiltinFunctionType))
_CALLED_BY_CODE = {"nopython": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
SMALL = 300  # LLVM instructions: a function of at most so many is inlined


class WholeProgram(CPUDispatcher):  # type: ignore[misc]  # Numba has no types
    """A compiled function that Python calls, in place of Numba's own class for such functions.

    The function and all compiled functions that it needs (objects of the class ``Part``) are one
    program. So each of them is compiled once, not once per caller.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        options: dict[str, Any],
        negative_indices: bool = True,
        marks: Marks = NO_MARKS,
    ) -> None:
        options = {**options, "nopython": True, "no_cfunc_wrapper": True}
        super().__init__(
            function, targetoptions=options, pipeline_class=_marked(_WholePasses, marks)
        )
        self._negative_indices = negative_indices
        self._part = Part(function, {**options, "no_cpython_wrapper": True}, marks)

    @property
    def _numba_type_(self) -> Any:
        return types.Dispatcher(self._part)

    def compile(self, sig: Any) -> Any:
        """Make the machine code for arguments of the types ``sig``, or load it from the cache.

        It contains the machine code of every ``Part`` that this function calls, directly or through
        other functions. (A ``Part`` is a function that only compiled code calls.)
        """
        with (
            global_compiler_lock,
            _without_garbage_collection(),
            _without_lock_events(),
            _with_shortcuts(),
            _with_short_indexing(),
            _with_numbas_functions_as_parts(),
            nullcontext() if self._negative_indices else _without_negative_indices(),
        ):
            return super().compile(sig)

    def address(self, kinds: tuple[Any, ...]) -> int:
        """The address in memory of the machine code for arguments of the types ``kinds``.

        A caller of this code must pass arguments by Numba's calling convention.  The code is made,
        or loaded from the cache, if it is not in memory yet.
        """
        self.compile(kinds)
        made = self.overloads[kinds]
        return int(made.library.get_pointer_to_function(made.fndesc.llvm_func_name))


class Part(CPUDispatcher):  # type: ignore[misc]
    """A function for Numba that only other compiled functions call, never Python.

    It is translated to LLVM's intermediate language only, which takes less time than translation to
    machine code. Each ``WholeProgram`` that uses the function translates its own copy of it to
    machine code.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        options: dict[str, Any],
        marks: Marks = NO_MARKS,
        passes: type[CompilerBase] | None = None,
    ) -> None:
        super().__init__(
            function, targetoptions=options, pipeline_class=passes or _marked(_PartPasses, marks)
        )

    def compile(self, sig: Any) -> Any:
        """Translate the function to LLVM's intermediate language for arguments of types ``sig``.

        Returns the key under which Numba finds the translated function.
        """
        arguments, result = sigutils.normalize_signature(sig)
        arguments = tuple(unliteral(kind) for kind in arguments)  # 0 is an integer like others
        with global_compiler_lock, self._compiling_counter:
            if tuple(arguments) not in self.overloads:
                made = self._compiler.compile(arguments, result)
                self.overloads[tuple(made.signature.args)] = made
            return self.overloads[tuple(arguments)].entry_point


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
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
def _without_lock_events() -> Iterator[None]:
    """Switch off the events that Numba records about LLVM's lock.

    Numba takes this lock many thousand times, and would record two events each time.
    """
    lock: Any = getattr(llvm.ffi.lib, "_lock", None)
    told = getattr(lock, "_cblist", None)
    if told is None:  # another version of llvmlite
        yield
        return
    lock._cblist = []
    try:
        yield
    finally:
        lock._cblist = told


@contextmanager
def _without_negative_indices() -> Iterator[None]:
    """Make Numba compile array accesses without a test for negative indices.

    A negative index counts from the end of the array, so Numba normally tests each index.  The code
    is faster without the tests, but then no index may be negative.
    """
    from numba.np import arrayobj

    plain = getattr(arrayobj, "fix_integer_index", None)
    if plain is None:  # another version of Numba
        yield
        return

    def place(context: Any, builder: Any, kind: Any, index: Any, _: Any) -> Any:
        return context.cast(builder, index, kind, types.intp)

    arrayobj.fix_integer_index = place
    try:
        yield
    finally:
        arrayobj.fix_integer_index = plain


class _Fields:
    """Gives the fields of an array's description in LLVM's language, such as its shape.

    Code that extracts a field is written only when the field is asked for.
    """

    def __init__(self, context: Any, builder: Any, kind: Any, value: Any) -> None:
        self._model, self._builder, self._value = context.data_model_manager[kind], builder, value

    def __getattr__(self, field: str) -> Any:
        return self._builder.extract_value(self._value, self._model.get_field_position(field))


@contextmanager
def _with_short_indexing() -> Iterator[None]:
    """Make Numba write less code in LLVM's language for each element of an array.

    Numba would copy the whole description of the array to memory, with all shapes and strides, each
    time an element is read or written. LLVM would then have to remove all this again.

    Only elements of arrays in C order are treated differently, if there is one integer index for
    each dimension and bounds are not checked.
    """
    from numba.np import arrayobj

    make, indexing = arrayobj.make_array, arrayobj.basic_indexing

    def fields(kind: Any) -> Any:
        def of(context: Any, builder: Any, value: Any = None, ref: Any = None) -> Any:
            if type(kind) is types.Array and value is not None and ref is None:
                return _Fields(context, builder, kind, value)
            return make(kind)(context, builder, value=value, ref=ref)

        return of

    def element(
        context: Any, builder: Any, kind: Any, array: Any, index_kinds: Any, indices: Any,
        boundscheck: Any = None,
    ) -> Any:  # fmt: skip
        whole = all(isinstance(one, types.Integer) for one in index_kinds)
        if boundscheck or kind.layout != "C" or len(indices) != kind.ndim or not whole:
            return indexing(context, builder, kind, array, index_kinds, indices, boundscheck)
        shape = cgutils.unpack_tuple(builder, array.shape, kind.ndim)
        places = [
            arrayobj.fix_integer_index(context, builder, *one)
            for one in zip(index_kinds, indices, shape, strict=True)
        ]
        found = cgutils.get_item_pointer2(context, builder, array.data, shape, (), "C", places)
        return found, [], []

    arrayobj.make_array, arrayobj.basic_indexing = fields, element
    try:
        yield
    finally:
        arrayobj.make_array, arrayobj.basic_indexing = make, indexing


@contextmanager
def _with_numbas_functions_as_parts() -> Iterator[None]:
    """Treat functions of Numba's own, such as ``min`` and ``round``, as parts of the program.

    Numba writes many of Python's and NumPy's functions in Python.  Otherwise each of them would be
    translated to machine code of its own first.
    """
    template: Any = _OverloadFunctionTemplate
    plain = template._get_jit_decorator

    def decorator(_: Any) -> Any:
        return lambda **options: functools.partial(
            Part, options={**options, **_CALLED_BY_CODE}, passes=_NumbasPasses
        )

    template._get_jit_decorator = decorator
    try:
        yield
    finally:
        template._get_jit_decorator = plain


@contextmanager
def _without_lifetimes() -> Iterator[None]:
    """Let Numba skip its search for the last use of each variable.

    Numba releases an array after the last use of its variable.  So the search can be skipped for
    functions that create no arrays.
    """
    plain = PostProcessor.run

    def run(self: Any, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:  # noqa: ARG001 - Numba's
        self.func_ir.blocks = canonicalize_cfg(self.func_ir.blocks)
        self.func_ir.generator_info = None

    PostProcessor.run = run
    try:
        yield
    finally:
        PostProcessor.run = plain


@contextmanager
def _with_shortcuts() -> Iterator[None]:
    """Replace four functions of Numba by faster ones while it compiles.

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
    in_parts, signature_of = instruction._rec_list_vars, function.get_call_type
    text, size_of = record.__repr__, CPUContext.get_abi_sizeof
    sizes: dict[Any, int] = {}
    known: dict[tuple[Any, ...], Any] = {}

    def variables(self: Any, part: Any) -> Any:
        kind = type(part)
        if kind is ir.Var:
            return [part]
        return [] if kind in _NO_VARIABLE else in_parts(self, part)

    def signature(self: Any, context: Any, arguments: Any, named: Any) -> Any:
        if named:
            return signature_of(self, context, arguments, named)
        key = (id(self), *arguments)
        if key not in known:
            known[key] = self, signature_of(self, context, arguments, named)
        return known[key][1]

    def size(self: Any, kind: Any) -> int:
        if kind not in sizes:
            sizes[kind] = size_of(self, kind)
        return sizes[kind]

    context: Any = CPUContext
    instruction._rec_list_vars, function.get_call_type = variables, signature
    record.__repr__, context.get_abi_sizeof = types.Type.__repr__, size
    try:
        yield
    finally:
        instruction._rec_list_vars, function.get_call_type = in_parts, signature_of
        record.__repr__, context.get_abi_sizeof = text, size_of


class _Simplified(JITCodeLibrary):  # type: ignore[misc]
    """Code in LLVM's intermediate language.

    Each function of the code is simplified before the code is linked.
    """

    marks = NO_MARKS

    def _optimize_functions(self, module: Any) -> None:
        if not _passes_can_be_chosen():
            super()._optimize_functions(module)
            return
        module.data_layout = self._codegen._data_layout
        builder = self._codegen._pass_builder()
        passes = llvm.create_new_function_pass_manager()
        passes.add_sroa_pass()  # variables become registers
        passes.add_instruction_combine_pass()
        passes.add_simplify_cfg_pass()
        for function in module.functions:
            if not function.is_declaration:
                passes.run(function, builder)


class _Unfinished(_Simplified):
    """The code of a function that only compiled code calls, in LLVM's intermediate language.

    No machine code is made of such a function alone (``Part``).  Its code is linked into each
    ``WholeProgram`` that calls it, and the whole program is then translated to machine code.
    """

    def add_ir_module(self, module: Any) -> None:
        """Add the function's code in LLVM's language.

        A function marked ``rare`` seldom runs. So LLVM is told not to inline the compiled functions
        that it calls (``Part``), which saves time when it is compiled.
        """
        if self.marks.rare:
            linked = [lib for lib in self._linking_libraries if isinstance(lib, _Unfinished)]
            parts = {part.name for lib in linked for part in lib.get_defined_functions()}
            blocks = (block for function in module.functions for block in function.blocks)
            for instruction in (one for block in blocks for one in block.instructions):
                if instruction.opname == "call" and instruction.callee.name in parts:
                    instruction.attributes.add("noinline")
        super().add_ir_module(module)

    @property
    def may_raise(self) -> bool:
        """Whether the function may return anything but the status 0.

        Another status means that it has raised an exception, or that its result is ``None``.
        """
        code = str(self._final_module)
        statuses = _STATUS.findall(code)
        phis = dict(_PHI.findall(code))
        return any(set(_VALUE.findall(phis.get(one, f"[ {one},"))) != {"0"} for one in statuses)

    def finalize(self) -> None:
        self._finalized = True

    def with_callees(self, found: dict[Any, None]) -> None:
        """Add this function and all functions that it calls to the dictionary ``found``.

        A function is added after those that it calls.
        """
        if self not in found:
            for library in self._linking_libraries:
                if isinstance(library, _Unfinished):
                    library.with_callees(found)
                else:
                    found.setdefault(library)
            found[self] = None


class _Whole(_Simplified):
    """The code of a ``WholeProgram`` in LLVM's intermediate language.

    It contains the code of all functions that the program calls, directly or not.
    """

    _parts: dict[str, _Unfinished]  # by the names of their functions
    _linking_libraries: list[Any]

    def finalize(self) -> None:
        found: dict[Any, None] = {}
        for library in self._linking_libraries:
            if isinstance(library, _Unfinished):
                library.with_callees(found)
            else:
                found.setdefault(library)
        parts = [library for library in found if isinstance(library, _Unfinished)]
        self._parts = {f.name: part for part in parts for f in part.get_defined_functions()}
        # callers first, because LLVM's linker drops functions that are not called yet
        self._linking_libraries = list(reversed(found))
        super().finalize()

    def _optimize_final_module(self) -> None:
        for function in self._final_module.functions:
            if function.name in self._parts:
                function.linkage = "internal"  # not visible outside, so it is removed once inlined
                if _inlining_can_be_asked():
                    self._ask_for_inlining(function)
        if not _passes_can_be_chosen():
            super()._optimize_final_module()
            return
        level = {"opt": 1} if self.marks.quick else {}
        passes, builder = self._codegen._module_pass_manager(
            loop_vectorize=False, slp_vectorize=False, **level
        )
        passes.run(self._final_module, builder)

    def _ask_for_inlining(self, function: Any) -> None:
        """Tell LLVM whether to inline a function into its callers.

        A function is never inlined if it has the mark ``rare`` (it seldom runs; LLVM is told this,
        too) or ``apart`` (the program is smaller if it is not inlined). Any other function of at
        most ``SMALL`` instructions is always inlined. For the rest, LLVM decides.
        """
        marks = self._parts[function.name].marks
        if marks.rare:
            function.add_function_attribute("cold")
        if marks.rare or marks.apart:
            function.add_function_attribute("noinline")
            return
        instructions = (one for block in function.blocks for one in block.instructions)
        if sum(1 for _ in itertools.islice(instructions, SMALL + 1)) <= SMALL:
            function.add_function_attribute("alwaysinline")


@functools.cache
def _passes_can_be_chosen() -> bool:
    """Whether the installed llvmlite lets its user choose LLVM's passes.

    If not, LLVM runs the passes that Numba chooses.
    """
    manager = getattr(llvm, "create_new_function_pass_manager", None)
    return manager is not None and hasattr(manager(), "add_sroa_pass")


@functools.cache
def _inlining_can_be_asked() -> bool:
    """Whether the installed llvmlite can ask LLVM to inline a function.

    Before version 0.48, llvmlite attaches the attribute ``alwaysinline`` to the function's return
    value and not to the function. LLVM rejects such code.
    """
    module = llvm.parse_assembly("define void @f() {\n ret void\n}\n")
    module.get_function("f").add_function_attribute("alwaysinline")
    try:
        module.verify()
    except RuntimeError:
        return False
    return True


def _symbol(name: str, arguments: Any, *, abi_tags: Any = (), uid: Any = None) -> str:  # noqa: ARG001 - Numba's
    """The name of a compiled function in LLVM's language: its Python name and a unique number.

    Numba itself would add the types of the function's arguments.  The type of a record lists all
    its fields, up to a hundred, so the name would have thousands of characters.
    """
    return str(mangle(name, (), uid=uid))


def _listed(context: Any, function: Any, arguments: Any) -> Any:
    """The signature of an operator for numbers, from Numba's own list of the operator's signatures.

    Returns ``None`` if there is no such list, or if it lacks these types of numbers. Without this
    function, Numba would first try the operator's signatures for lists, strings and dates.
    """
    plain = tuple(unliteral(kind) for kind in arguments)
    for template in function.templates:
        if issubclass(template, ConcreteTemplate):
            found = template(context)
            signature = found.apply(plain, {})
            if signature is not None:
                function._impl_keys[signature.args] = found.get_impl_key(signature)
                return signature
    return None


@register_pass(mutates_CFG=True, analysis_only=False)
class _Typing(NopythonTypeInference):  # type: ignore[misc]
    """Numba's type inference, but it remembers the signature of each operator that it has found.

    Without this memory, Numba would look for the signature again at each ``+`` and ``max`` of the
    program, among dozens of candidates.
    """

    _name = "whole_program_typing"
    _known: dict[tuple[Any, ...], Any] = {}  # noqa: RUF012 - one for all functions

    def run_pass(self, state: Any) -> Any:
        plain = state.typingctx

        def resolve(function: Any, arguments: Any, named: Any) -> Any:
            if named or not isinstance(function, types.Function | BuiltinFunctionType):
                return plain.resolve_function_type(function, arguments, named)
            key = (function, *arguments)
            if key not in self._known:
                scalars = all(isinstance(kind, (types.Number, types.Boolean)) for kind in arguments)
                listed = scalars and isinstance(function, types.Function)
                self._known[key] = (listed and _listed(plain, function, arguments)) or (
                    plain.resolve_function_type(function, arguments, named)
                )
            return self._known[key]

        state.typingctx = copy.copy(plain)
        state.typingctx.resolve_function_type = resolve
        try:
            return super().run_pass(state)
        finally:
            state.typingctx = plain


@register_pass(mutates_CFG=True, analysis_only=False)
class _LowerWhole(NativeLowering):  # type: ignore[misc]
    """The compiler pass that makes the machine code of a ``WholeProgram``."""

    _name = "whole_program_lowering"

    def run_pass(self, state: Any) -> Any:
        state.library = _Whole(state.targetctx.codegen(), state.func_id.func_qualname)
        marks = state.library.marks = state.pipeline.marks
        state.flags.noalias = marks.distinct  # so a change of one array leaves the others alone
        state.library.enable_object_caching()
        return super().run_pass(state)


def _caller(description: Any, library: _Unfinished) -> Callable[..., Any]:
    """What writes the calls, in LLVM's language, of a ``Part`` that raises no exceptions.

    Numba would test after each call whether there was an exception.  Before the call it would write
    zeros where the function then writes its result.
    """

    def call(context: Any, builder: Any, signature: Any, values: Any) -> Any:  # noqa: ARG001 - Numba's
        convention, result = context.call_conv, description.restype
        with builder.goto_entry_block():
            place = builder.alloca(convention.get_return_type(result).pointee)
        error = convention._get_excinfo_argument(builder.function)
        packed = context.get_arg_packer(description.argtypes).as_arguments(builder, values)
        callee = context.declare_function(builder.module, description)
        builder.call(callee, [place, error, *packed])
        return context.get_returned_value(builder, result, builder.load(place))

    setattr(call, "libs", (library,))  # noqa: B010 - a type checker knows no attribute of a function
    return call


@register_pass(mutates_CFG=True, analysis_only=False)
class _LowerPart(NativeLowering):  # type: ignore[misc]
    """The compiler pass that translates a function to LLVM's intermediate language.

    It is for a function that only compiled code calls (``Part``), so it makes no machine code.
    """

    _name = "whole_program_part"

    def run_pass(self, state: Any) -> Any:
        context, flags = state.targetctx, state.flags
        library = state.library = _Unfinished(context.codegen(), state.func_id.func_qualname)
        library.marks = state.pipeline.marks
        description = PythonFunctionDescriptor.from_specialized_function(
            state.func_ir,
            state.typemap,
            state.return_type,
            state.calltypes,
            mangler=_symbol,
            inline=flags.forceinline,
            noalias=flags.noalias,
            abi_tags=[flags.get_mangle_string()],
        )
        with context.push_code_library(library):
            lower = self.lowering_class(
                context, library, description, state.func_ir, metadata=state.metadata
            )
            lower.lower()
        name = object()  # a key instead of the function that Python would call
        if library.may_raise:
            context.insert_user_function(name, description, [library])
        else:
            context.insert_func_defn([(_caller(description, library), name, description.argtypes)])
        state["cr"] = _LowerResult(description, lower.call_helper, cfunc=name, env=lower.env)
        return True


class _Passes(PassManager):  # type: ignore[misc]
    """Runs a list of Numba's compiler passes without the additional work of Numba's pass manager.

    At every pass, Numba's pass manager would check the function, analyse it again and write its
    types as text for a log.
    """

    def _runPass(self, _: int, one: Any, state: Any) -> None:
        # type inference is an exception: it compiles other functions, which may create arrays
        spared = not state.flags.nrt and not isinstance(one, _Typing)
        lifetimes: AbstractContextManager[None] = _without_lifetimes() if spared else nullcontext()
        with global_compiler_lock, lifetimes:
            one.run_pass(state)


class _WholePasses(CompilerBase):  # type: ignore[misc]
    lowering: Any = _LowerWhole
    marks = NO_MARKS

    def define_pipelines(self) -> list[Any]:
        passes = _Passes("whole program")
        for one in (
            TranslateByteCode,
            FixupArgs,
            IRProcessing,
            ReconstructSSA,
            _Typing,
            PreLowerStripPhis,
            IRLegalization,
            self.lowering,
            NoPythonBackend,
        ):
            passes.add_pass(one, one.__name__)
        passes.finalize()
        return [passes]


class _PartPasses(_WholePasses):
    lowering = _LowerPart


class _NumbasPasses(CompilerBase):  # type: ignore[misc]
    """All of Numba's compiler passes, which its own functions need, but the last one is ours."""

    marks = NO_MARKS

    def define_pipelines(self) -> list[Any]:
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.passes = [
            (_LowerPart if one is NativeLowering else one, told) for one, told in passes.passes
        ]
        passes.finalize()
        return [passes]


@functools.cache
def _marked(passes: type[_WholePasses], marks: Marks) -> type[_WholePasses]:
    """The compiler passes ``passes``, changed as the options ``marks`` of a function say."""
    return type(passes.__name__, (passes,), {"marks": marks})
