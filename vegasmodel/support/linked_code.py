"""Links functions in LLVM's intermediate language into one program, which LLVM then optimises.

By default LLVM inlines small functions in their callers. The options in ``Marks`` change how it
treats a function:

- ``apart``: the function is not inlined, which makes the program smaller.
- ``rare``: the function is not inlined, and no function that it calls is inlined in it.
- ``quick``: LLVM optimises the function less, and so compiles it faster.
- ``distinct``: LLVM assumes that arrays that Python passes share no memory, so the code is faster.

Numba keeps the code of each function in an object that it calls a library. A library also lists the
libraries that it links: those of the functions that it calls.
"""

from __future__ import annotations

import functools
import itertools
import re
from typing import Any, NamedTuple

import llvmlite.binding as llvm
from numba.core.codegen import JITCodeLibrary

__all__ = ["NO_MARKS", "Marks", "Unfinished", "Whole"]


class Marks(NamedTuple):
    """Options with which a function is compiled; the docstring of the module explains them."""

    rare: bool = False  # inlined nowhere, and nothing is inlined in it
    apart: bool = False  # inlined nowhere
    quick: bool = False  # optimised less, and so compiled faster
    distinct: bool = False  # arrays that Python passes share no memory


NO_MARKS = Marks()
# Lines of LLVM's intermediate language. A function returns a status, ``ret i32 STATUS``. The status
# may be a variable whose value depends on the branch that the program took (``phi``). ``_VALUE``
# finds each of its possible values.
_STATUS = re.compile(r"^  ret i32 (\S+)$", re.MULTILINE)
_PHI = re.compile(r"^  (%\S+) = phi i32 (.*)$", re.MULTILINE)
_VALUE = re.compile(r"\[ (\S+),")
MAX_INLINED = 300  # LLVM instructions: a function that has no more is inlined


class _Simplified(JITCodeLibrary):  # type: ignore[misc]  # Numba has no types
    """Code in LLVM's intermediate language.

    Each function of the code is simplified before the code is linked.
    """

    marks = NO_MARKS

    def _optimize_functions(self, module: Any) -> None:
        """Simplify each function of ``module``; Numba calls this before it links the code."""
        if not _passes_can_be_chosen():
            super()._optimize_functions(module)
            return
        module.data_layout = self._codegen._data_layout
        builder = self._codegen._pass_builder()
        passes = llvm.create_new_function_pass_manager()
        passes.add_sroa_pass()  # variables become registers
        passes.add_instruction_combine_pass()  # fewer instructions do the same
        passes.add_simplify_cfg_pass()  # branches that are never taken are removed
        for function in module.functions:
            if not function.is_declaration:
                passes.run(function, builder)


class Unfinished(_Simplified):
    """The code of a function that only compiled code calls, in LLVM's intermediate language.

    Such a function is an object of the class ``whole_program.Part``. No machine code is made of it
    alone. Its code is linked into each ``WholeProgram`` that calls it, and the whole program is
    then translated to machine code.
    """

    def add_ir_module(self, module: Any) -> None:
        """Add the function's code in LLVM's language.

        A function marked ``rare`` seldom runs. So LLVM is told not to inline the compiled functions
        that it calls, which saves compile time.
        """
        if self.marks.rare:
            linked = [lib for lib in self._linking_libraries if isinstance(lib, Unfinished)]
            parts = {part.name for lib in linked for part in lib.get_defined_functions()}
            for block in (block for function in module.functions for block in function.blocks):
                for instruction in block.instructions:
                    if instruction.opname == "call" and instruction.callee.name in parts:
                        instruction.attributes.add("noinline")
        super().add_ir_module(module)

    @property
    def may_raise(self) -> bool:
        """Whether the compiled function may return a status other than 0.

        Such a status means that it has raised an exception, or that its result is ``None``.
        """
        code = str(self._final_module)
        # the variables whose value depends on the branch that the program took, with their values
        possible = {name: _VALUE.findall(text) for name, text in _PHI.findall(code)}
        return any(set(possible.get(one, [one])) != {"0"} for one in _STATUS.findall(code))

    def finalize(self) -> None:
        """Make no machine code, because the function's code becomes part of whole programs."""
        self._finalized = True

    def with_callees(self, needed: dict[Any, None]) -> None:
        """Add this function and all functions that it calls to ``needed``, each once.

        A function is added after those that it calls. ``needed`` is a dictionary whose values are
        not used: a set does not keep the order.
        """
        if self not in needed:
            for library in self._linking_libraries:
                if isinstance(library, Unfinished):
                    library.with_callees(needed)
                else:
                    needed.setdefault(library)
            needed[self] = None


class Whole(_Simplified):
    """The library of a ``whole_program.WholeProgram``, in LLVM's intermediate language.

    It contains the code of all functions that the program calls, directly or not. The library of
    each of these functions is an ``Unfinished``. Libraries of any other class hold code that Numba
    itself adds.
    """

    _parts: dict[str, Unfinished]  # by the names of their functions
    _linking_libraries: list[Any]  # Numba's name for the libraries that this one links

    def finalize(self) -> None:
        """Link the code of all functions that the program calls, and make machine code of it."""
        # each library once, those of callees first; a dictionary, since a set keeps no order
        needed: dict[Any, None] = {}
        for library in self._linking_libraries:
            if isinstance(library, Unfinished):
                library.with_callees(needed)
            else:
                needed.setdefault(library)
        parts = [library for library in needed if isinstance(library, Unfinished)]
        self._parts = {f.name: part for part in parts for f in part.get_defined_functions()}
        # LLVM's linker drops functions that no code calls so far. So callers are linked first.
        self._linking_libraries = list(reversed(needed))
        super().finalize()

    def _optimize_final_module(self) -> None:
        """Optimise the linked program; Numba calls this before it makes machine code."""
        for function in self._final_module.functions:
            if function.name in self._parts:
                function.linkage = "internal"  # not visible outside, so it is removed once inlined
                if _inlining_can_be_asked():
                    self._ask_for_inlining(function)
        if not _passes_can_be_chosen():
            super()._optimize_final_module()
            return
        # optimisations for vectors of numbers are left out, which saves compile time
        level = {"opt": 1} if self.marks.quick else {}
        passes, builder = self._codegen._module_pass_manager(
            loop_vectorize=False, slp_vectorize=False, **level
        )
        passes.run(self._final_module, builder)

    def _ask_for_inlining(self, function: Any) -> None:
        """Tell LLVM whether to inline a function into its callers.

        A function is never inlined if it has the mark ``rare`` (it seldom runs; LLVM is told this,
        too) or ``apart`` (the program is smaller if it is not inlined). Any other function of at
        most ``MAX_INLINED`` instructions is always inlined. For the rest, LLVM decides.
        """
        marks = self._parts[function.name].marks
        if marks.rare:
            function.add_function_attribute("cold")
        if marks.rare or marks.apart:
            function.add_function_attribute("noinline")
            return
        instructions = (one for block in function.blocks for one in block.instructions)
        if sum(1 for _ in itertools.islice(instructions, MAX_INLINED + 1)) <= MAX_INLINED:
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
