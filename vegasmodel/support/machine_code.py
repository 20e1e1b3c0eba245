"""Keeps the functions that Numba compiles in a cache on disk, to load them in later runs.

Numba's own cache checks only the source file of the function itself. If the function calls a
function in another file and that file changes, Numba still loads the old machine code.

Here the name of a cached file contains a hash of all source files whose functions the machine code
may contain. If one of these files changes, the hash changes, so the function is compiled again.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import hashlib
import inspect
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numba
from numba.core import event
from numba.core.caching import FunctionCache, IndexDataCacheFile

from vegasmodel.support.linked_code import NO_MARKS, Marks
from vegasmodel.support.whole_program import Part, WholeProgram

__all__ = ["a_law", "compiled", "compiling", "compiling_a_law", "kept", "part"]

ROOT = Path(__file__).parents[1]  # the folder of the package
# a file with one of these words may import modules without an import statement
_HIDDEN_IMPORT = re.compile(r"\b(importlib|pkgutil|__import__|exec|eval)\b")
# what looks like an import statement, perhaps with names in parentheses on several lines
_IMPORT = re.compile(
    r"(?:^|[:;])[ \t]*((?:from[ \t]*[\w.]+[ \t]*)?import\b[ \t]*(?:\([^)]*\)|[^\n;#]*))",
    re.MULTILINE,
)
MARK = ".of-"  # in a cached file's name, before the digest of the sources
# the end of a cached file's name: Python's version, and then any digest
_ANY_DIGEST = r"\w+" + re.escape(MARK) + r"[0-9a-f]{16}\."


class _CompileListener(event.Listener):  # type: ignore[misc]  # Numba has no types
    """Counts the compilations that Numba is carrying out at this moment (``depth``).

    Loading compiled code from the cache does not count.
    """

    depth = 0

    def on_start(self, event: Any) -> None:  # noqa: ARG002 - Numba's signature
        self.depth += 1

    def on_end(self, event: Any) -> None:  # noqa: ARG002 - likewise
        self.depth -= 1


def _spare_blas() -> None:
    """Keep Numba from loading BLAS, the library of linear algebra that SciPy contains.

    When Numba is first used, it tests whether SciPy contains BLAS.  The test loads BLAS, which
    takes 0.2 s.  No compiled function of this package needs BLAS.  Numba still loads BLAS for a
    user's function that multiplies matrices.
    """
    from numba.np import linalg

    test_for_blas = linalg.ensure_blas
    linalg.ensure_blas = lambda: None
    try:
        from numba.np import arraymath  # noqa: F401 - it tests for BLAS on import
    finally:
        linalg.ensure_blas = test_for_blas


with contextlib.suppress(ImportError, AttributeError):  # another version of Numba
    _spare_blas()
_not_cached: list[str] = []  # names of functions that have no cache: no folder can be written
a_law = threading.Lock()  # held while a function of a user's law is compiled
_listener = _CompileListener()
event.register("numba:compile", _listener)


def compiling() -> bool:
    """Whether Numba is compiling a function at this moment, in any thread."""
    return _listener.depth > 0


def compiling_a_law() -> bool:
    """Whether a thread holds ``a_law``: it compiles a function of a user's law."""
    return a_law.locked()


def kept() -> bool:
    """Whether machine code is kept on disk, so that the next process need not compile again."""
    return not _not_cached


def compiled(
    function: Callable[..., Any],
    signature: Any = None,
    made_of: tuple[str, ...] = (),
    *,
    whole_program: bool = False,
    negative_indices: bool = True,
    marks: Marks = NO_MARKS,
    **options: Any,
) -> Any:
    """Compile ``function`` with Numba at its first call, or now if a ``signature`` is given.

    - ``signature``: the types of the arguments.  The function then takes no other types.
    - ``made_of``: further source files whose functions become part of the machine code.  The
      function is compiled again if one of these files changes, or its own file, or a file of this
      package that one of them imports.
    - ``whole_program``: compile the function and all compiled functions that it calls as one
      program.  The next two options have an effect only in such a program.
    - ``negative_indices``: if False, the code is faster, but array indices, and the ends and the
      step of a slice, must not be negative.
    - ``marks``: what LLVM inlines, how much it optimises, and what it may assume.
    - ``options``: options of ``numba.njit``.

    The machine code is kept on disk, in the first of these folders that can be written: the one
    that the environment variable ``NUMBA_CACHE_DIR`` names, a folder beside the source file, the
    user's cache folder.  If it cannot be kept or read there, the function is compiled again.
    """
    dispatcher: Any
    if whole_program and not numba.config.DISABLE_JIT:
        dispatcher = WholeProgram(function, options, negative_indices, marks)
    else:
        dispatcher = numba.njit(**options)(function)
    try:
        dispatcher._cache = _DiskCache(function, made_of)
    except (RuntimeError, OSError):  # no writable folder: no cache
        _not_cached.append(function.__name__)
    if signature is not None:
        dispatcher.compile(signature)
        dispatcher.disable_compile()
    return dispatcher


def part(function: Callable[..., Any], **options: Any) -> Any:
    """Prepare ``function`` for calls from compiled functions only, not from Python code.

    With the option ``whole_program``, ``compiled`` makes one program of a function and all compiled
    functions that it calls.  The machine code of ``function`` becomes part of each program that
    calls it, and is not compiled on its own.  If Numba is switched off (``NUMBA_DISABLE_JIT``), the
    function is returned as it is.
    """
    if numba.config.DISABLE_JIT:
        return function
    return Part(function, {**options, "nopython": True, "no_cpython_wrapper": True})


class _DiskCache(FunctionCache):  # type: ignore[misc]  # Numba has no types
    """Numba's cache of machine code on disk, for one function.

    The names of the cache's files contain a digest of all source files from which the code was
    made. So code from other versions of the sources is never loaded.  If the cache cannot be read
    or written, the function is compiled as if there were no cache.
    """

    def __init__(self, function: Callable[..., Any], made_of: tuple[str, ...]) -> None:
        super().__init__(function)
        self._digest = digest(inspect.getfile(function), *made_of)
        name = f"{self._impl.filename_base}{MARK}{self._digest}"
        self._cache_file = IndexDataCacheFile(self._cache_path, name, self._digest)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The machine code for arguments of the types ``sig``; ``None`` if it cannot be read."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # damaged in any way: compile again
            self._remove(self._cache_file._index_name)
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store machine code, and remove that of other versions of the function's sources."""
        try:
            super().save_overload(sig, data)
            base = self._impl.filename_base  # module.function-line.python
            # the function may have stood on another line of its file
            older = re.compile(re.escape(base.rpartition("-")[0]) + r"-\d+\." + _ANY_DIGEST)
            for path in Path(self._cache_path).iterdir():
                if older.match(path.name) and f"{MARK}{self._digest}." not in path.name:
                    self._remove(path.name)
        except Exception:  # for example a full disk; the compiled function works without the cache
            return

    def _remove(self, name: str) -> None:
        """Remove a file of the cache, if possible."""
        try:
            (Path(self._cache_path) / name).unlink(missing_ok=True)
        except OSError:
            return


@functools.cache
def digest(*files: str | Path) -> str:
    """A hash of the contents of these files and of all files of this package that they import.

    Files that are imported indirectly count, too.
    """
    found = {path for file in files for path in sources(Path(file))}
    total = hashlib.sha256()
    for path in sorted(found, key=str):
        status = path.stat()
        content = _content(path, status.st_mtime_ns, status.st_size)
        total.update(f"{path.name} {content}\n".encode())
    return total.hexdigest()[:16]


@functools.cache
def _content(path: Path, changed: int, size: int) -> str:  # noqa: ARG001 - a changed file is read again
    """A hash of the content of a file.

    The hash is kept, and computed again if the file has another ``size`` or was ``changed`` at
    another time, in ns.
    """
    return hashlib.sha256(path.read_bytes()).hexdigest()


@functools.cache
def sources(file: Path) -> frozenset[Path]:
    """The file, and all files of this package that it imports, directly or indirectly.

    Stored machine code is out of date if one of these files has changed.  If the imports cannot be
    determined, the result is the file and all files of this package.
    """
    found, to_read = set[Path](), {file} if file.is_file() else set()
    while to_read:
        path = to_read.pop()
        found.add(path)
        imported = _imports(path)
        if imported is None:
            return frozenset({file, *_all_sources()})
        to_read |= imported - found
    return frozenset(found)


@functools.cache
def _all_sources() -> frozenset[Path]:
    """All files of this package."""
    return frozenset(ROOT.rglob("*.py"))


@functools.cache
def _imports(path: Path) -> frozenset[Path] | None:
    """The files of this package that a file imports; ``None`` if they cannot be determined.

    They cannot if the file may import by other means than statements, such as ``importlib``.
    """
    text = path.read_text(encoding="utf-8")
    if _HIDDEN_IMPORT.search(text) and path != Path(__file__):
        return None
    found = set()
    for node in _import_statements(text):
        if isinstance(node, ast.Import):
            found |= {_module_file(alias.name) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            package = ""  # for a relative import, the package from which it starts
            if node.level and path.is_relative_to(ROOT):
                package = ".".join(path.relative_to(ROOT.parent).parts[: -node.level])
            start = ".".join(filter(None, (package, node.module)))
            # the imported name is a module of ``start``, or defined in the file of ``start``
            found |= {
                _module_file(f"{start}.{alias.name}") or _module_file(start) for alias in node.names
            }
    return frozenset(filter(None, found))


def _import_statements(text: str) -> Iterator[ast.AST]:
    """Yield the import statements of a Python program, perhaps among statements of other kinds.

    To save time, only text that looks like import statements is parsed. If some of it, such as a
    sentence in a docstring, cannot be parsed, the whole program is parsed instead.
    """
    statements = (found[1] for found in _IMPORT.finditer(text.replace("\\\n", " ")))
    try:
        yield from ast.parse("\n".join(statements)).body
    except SyntaxError:
        yield from _statements(ast.parse(text).body)


def _statements(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield the statements ``nodes`` of a Python program, and all statements inside them.

    Expressions are left out, because the caller looks for imports, which are statements.
    """
    for node in nodes:
        yield node
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            inside = getattr(node, part, ())
            yield from _statements(inside if isinstance(inside, list) else ())


def _module_file(name: str) -> Path | None:
    """The file of the module ``name`` of this package; ``None`` if there is no such module."""
    path = ROOT.parent.joinpath(*name.split("."))
    choices = (path.with_name(f"{path.name}.py"), path / "__init__.py")
    return next((p for p in choices if p.is_relative_to(ROOT) and p.is_file()), None)
