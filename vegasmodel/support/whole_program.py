"""Compiles a function and all the compiled functions that it calls as one program.

This makes the simulators compile faster. By default Numba compiles each function together with
copies of all functions that it calls, so one function may be compiled many times. Here each
function is first translated to LLVM's intermediate language. The function that Python calls is then
linked with one copy of each function that it needs. LLVM optimises this program once
(``linked_code``).

To save more compile time, several steps of Numba and LLVM that are not needed here are left out
(``numba_shortcuts``).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from numba.core import sigutils, types
from numba.core.compiler import CompilerBase, DefaultPassBuilder, _LowerResult
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.funcdesc import PythonFunctionDescriptor
from numba.core.itanium_mangler import mangle
from numba.core.registry import CPUDispatcher
from numba.core.typed_passes import (
    IRLegalization,
    NativeLowering,
    NoPythonBackend,
    PreLowerStripPhis,
)
from numba.core.types.misc import unliteral
from numba.core.typing.templates import _OverloadFunctionTemplate
from numba.core.untyped_passes import FixupArgs, IRProcessing, ReconstructSSA, TranslateByteCode

from vegasmodel.support.linked_code import NO_MARKS, Marks, Unfinished, Whole
from vegasmodel.support.numba_shortcuts import (
    Typing,
    with_short_indexing,
    with_shortcuts,
    without_garbage_collection,
    without_lifetimes,
    without_lock_events,
    without_negative_indices,
)

__all__ = ["Part", "WholeProgram"]

# options of Numba for a function that only compiled code calls
_CALLED_BY_CODE = {"nopython": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


class WholeProgram(CPUDispatcher):  # type: ignore[misc]  # Numba has no types
    """A compiled function that Python calls; takes the place of Numba's ``CPUDispatcher``.

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
        """Prepare ``function``; Numba compiles it at its first call.

        ``options`` are those of ``numba.njit``.  ``machine_code.compiled`` explains the others.
        """
        # no entry point by C's calling convention, because nothing calls the program so
        options = {**options, "nopython": True, "no_cfunc_wrapper": True}
        super().__init__(
            function, targetoptions=options, pipeline_class=_marked(_WholePasses, marks)
        )
        self._negative_indices = negative_indices
        self._part = Part(function, {**options, "no_cpython_wrapper": True}, marks)

    @property
    def _numba_type_(self) -> Any:
        """What Numba calls if compiled code calls this function: the function as a ``Part``."""
        return types.Dispatcher(self._part)

    def compile(self, sig: Any) -> Any:
        """Make the machine code for arguments of the types ``sig``, or load it from the cache.

        It contains the machine code of every ``Part`` that this function calls, directly or through
        other functions. (A ``Part`` is a function that only compiled code calls.)
        """
        with (
            global_compiler_lock,
            without_garbage_collection(),
            without_lock_events(),
            with_shortcuts(),
            with_short_indexing(),
            _with_numbas_functions_as_parts(),
            nullcontext() if self._negative_indices else without_negative_indices(),
        ):
            return super().compile(sig)

    def address(self, kinds: tuple[Any, ...]) -> int:
        """The address in memory of the machine code for arguments of the types ``kinds``.

        A caller of this code must pass arguments by Numba's calling convention.  The code is made,
        or loaded from the cache, if it is not in memory yet.
        """
        if kinds not in self.overloads:
            self.compile(kinds)
        made = self.overloads[kinds]
        return int(made.library.get_pointer_to_function(made.fndesc.llvm_func_name))


class Part(CPUDispatcher):  # type: ignore[misc]  # Numba has no types
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
        """Prepare ``function``; ``passes`` replace the usual compiler passes for a ``Part``."""
        super().__init__(
            function, targetoptions=options, pipeline_class=passes or _marked(_PartPasses, marks)
        )

    def compile(self, sig: Any) -> Any:
        """Translate the function to LLVM's intermediate language for arguments of types ``sig``.

        Returns the key under which Numba finds the translated function.
        """
        arguments, result = sigutils.normalize_signature(sig)
        # the type of a constant such as 0 becomes that of any integer
        arguments = tuple(unliteral(kind) for kind in arguments)
        with global_compiler_lock, self._compiling_counter:
            if tuple(arguments) not in self.overloads:
                made = self._compiler.compile(arguments, result)
                self.overloads[tuple(made.signature.args)] = made
            return self.overloads[tuple(arguments)].entry_point


@contextmanager
def _with_numbas_functions_as_parts() -> Iterator[None]:
    """Make Numba compile functions of its own, such as ``min`` and ``round``, as a ``Part`` each.

    Many of these functions are written in Python, and compiled code calls them.  By default Numba
    translates each of them to machine code.  A ``Part`` is translated to LLVM's intermediate
    language only, which takes less time.  This is enough, because the machine code is made of the
    whole program that calls it.
    """
    template: Any = _OverloadFunctionTemplate
    plain = template._get_jit_decorator

    def decorator(_: Any) -> Any:
        """What Numba applies to its own functions in place of its usual decorator."""
        return lambda **options: functools.partial(
            Part, options={**options, **_CALLED_BY_CODE}, passes=_NumbasPasses
        )

    template._get_jit_decorator = decorator
    try:
        yield
    finally:
        template._get_jit_decorator = plain


def _symbol(name: str, arguments: Any, *, abi_tags: Any = (), uid: Any = None) -> str:  # noqa: ARG001 - Numba's
    """The name of a compiled function in LLVM's language: its Python name and a unique number.

    Numba itself would add the types of the function's arguments.  The type of a record lists all
    its fields, up to a hundred, so the name would have thousands of characters.
    """
    return str(mangle(name, (), uid=uid))


@register_pass(mutates_CFG=True, analysis_only=False)
class _LowerWhole(NativeLowering):  # type: ignore[misc]  # Numba has no types
    """The compiler pass that makes the machine code of a ``WholeProgram``."""

    _name = "whole_program_lowering"

    def run_pass(self, state: Any) -> Any:
        """Translate the function that ``state`` describes to machine code."""
        state.library = Whole(state.targetctx.codegen(), state.func_id.func_qualname)
        marks = state.library.marks = state.pipeline.marks
        # if set, LLVM assumes that the arrays that Python passes share no memory
        state.flags.noalias = marks.distinct
        state.library.enable_object_caching()
        return super().run_pass(state)


def _call_writer(description: Any, library: Unfinished) -> Callable[..., Any]:
    """A function that writes a call of a ``Part`` in LLVM's language.

    ``description`` has the function's name in this language, and the types of its arguments and of
    its result.  ``library`` has its code.  The ``Part`` must be one that raises no exceptions.
    Numba's own calls would test for an exception after each call, and first write zeros where the
    ``Part`` then writes its result.
    """

    def call(context: Any, builder: Any, signature: Any, values: Any) -> Any:  # noqa: ARG001 - Numba's
        """Write the call with the arguments ``values``, and return its result."""
        convention, result = context.call_conv, description.restype
        with builder.goto_entry_block():
            result_slot = builder.alloca(convention.get_return_type(result).pointee)
        error = convention._get_excinfo_argument(builder.function)
        packed = context.get_arg_packer(description.argtypes).as_arguments(builder, values)
        callee = context.declare_function(builder.module, description)
        builder.call(callee, [result_slot, error, *packed])
        return context.get_returned_value(builder, result, builder.load(result_slot))

    setattr(call, "libs", (library,))  # noqa: B010 - a type checker knows no attribute of a function
    return call


@register_pass(mutates_CFG=True, analysis_only=False)
class _LowerPart(NativeLowering):  # type: ignore[misc]  # Numba has no types
    """The compiler pass that translates a function to LLVM's intermediate language.

    It is for a function that only compiled code calls (``Part``), so it makes no machine code.
    """

    _name = "whole_program_part"

    def run_pass(self, state: Any) -> Any:
        """Translate the function that ``state`` describes, and tell Numba how code calls it.

        "To lower" is to translate to a language nearer to the machine's.
        """
        context, flags = state.targetctx, state.flags
        library = state.library = Unfinished(context.codegen(), state.func_id.func_qualname)
        library.marks = state.pipeline.marks
        # the function's name in LLVM's language, and the types of its arguments and its result
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
            translator = self.lowering_class(
                context, library, description, state.func_ir, metadata=state.metadata
            )
            translator.lower()
        # Numba finds by this key how code calls the function. For a function that Python calls, the
        # key would be its machine code.
        key = object()
        if library.may_raise:  # calls as Numba writes them, which test for an exception
            context.insert_user_function(key, description, [library])
        else:
            write_call = _call_writer(description, library)
            context.insert_func_defn([(write_call, key, description.argtypes)])
        state["cr"] = _LowerResult(
            description, translator.call_helper, cfunc=key, env=translator.env
        )
        return True


class _Passes(PassManager):  # type: ignore[misc]  # Numba has no types
    """Runs a list of Numba's compiler passes without the additional work of Numba's pass manager.

    At every pass, Numba's pass manager would check the function, analyse it again and write its
    types as text for a log.
    """

    def _runPass(self, _: int, compiler_pass: Any, state: Any) -> None:
        """Run one compiler pass."""
        # Numba frees an array after the last use of its variable. It need not search for that use
        # if the function creates no arrays (``nrt`` is false). Type inference is an exception: it
        # compiles other functions, which may create arrays.
        spared = not state.flags.nrt and not isinstance(compiler_pass, Typing)
        lifetimes: AbstractContextManager[None] = without_lifetimes() if spared else nullcontext()
        with global_compiler_lock, lifetimes:
            compiler_pass.run_pass(state)


class _WholePasses(CompilerBase):  # type: ignore[misc]  # Numba has no types
    """The compiler passes for a ``WholeProgram``, from byte code to machine code."""

    lowering: Any = _LowerWhole
    marks = NO_MARKS  # options for LLVM; ``_marked`` makes a class with others

    def define_pipelines(self) -> list[Any]:
        """The passes in their order; Numba calls this before it compiles a function.

        The first four passes translate byte code to Numba's own intermediate language. ``Typing``
        finds the types. The next two prepare the translation to LLVM's language, which ``lowering``
        makes. ``NoPythonBackend`` then makes the object that Numba stores for a compiled function.

        Numba's own list has more passes, for example for functions inside functions. Our functions
        do not need them, and are compiled faster without them.
        """
        passes = _Passes("whole program")
        for compiler_pass in (
            TranslateByteCode,
            FixupArgs,
            IRProcessing,
            ReconstructSSA,
            Typing,
            PreLowerStripPhis,
            IRLegalization,
            self.lowering,
            NoPythonBackend,
        ):
            passes.add_pass(compiler_pass, compiler_pass.__name__)
        passes.finalize()
        return [passes]


class _PartPasses(_WholePasses):
    """The compiler passes for a ``Part``, which end with LLVM's intermediate language."""

    lowering = _LowerPart


class _NumbasPasses(CompilerBase):  # type: ignore[misc]  # Numba has no types
    """The compiler passes for functions of Numba that compiled code calls, such as ``min``.

    They are Numba's usual passes, except for one: ``_LowerPart`` translates the function to LLVM's
    intermediate language only, in place of ``NativeLowering``, which would make machine code.
    """

    marks = NO_MARKS

    def define_pipelines(self) -> list[Any]:
        """Numba's own passes, with ``_LowerPart`` in place of ``NativeLowering``."""
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.passes = [
            (_LowerPart if compiler_pass is NativeLowering else compiler_pass, name)
            for compiler_pass, name in passes.passes
        ]
        passes.finalize()
        return [passes]


@functools.cache
def _marked(passes: type[_WholePasses], marks: Marks) -> type[_WholePasses]:
    """A class like ``passes`` for functions with the options ``marks``.

    Numba makes an object of this class for each function, and ``state.pipeline`` is this object.
    """
    return type(passes.__name__, (passes,), {"marks": marks})
