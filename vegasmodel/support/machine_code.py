"""A cache of compiled functions on disk, keyed by the content of their sources.

Numba's own cache looks at the file of the function alone: when another file changes that the
function calls into, the old machine code of its callee would answer on.  Times cannot tell either:
a source that was rolled back is older than the code made of its successor.  So what is kept
carries a digest of the sources it may be made from in its name, and other digests are not read.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import hashlib
import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numba
from numba.core import event
from numba.core.caching import FunctionCache, IndexDataCacheFile

from vegasmodel.support.whole_program import Part, WholeProgram

__all__ = ["compiled", "compiling", "part"]

ROOT = Path(__file__).parents[1]
_ANYTHING = re.compile(r"\b(importlib|pkgutil|__import__|exec|eval)\b")
MARK = ".of-"  # in a kept file's name: the digest follows
_OTHER = r"\w+" + re.escape(MARK) + r"[0-9a-f]{16}\."  # Python's version, then any digest


class _Ear(event.Listener):  # type: ignore[misc]  # Numba has no types
    """Hears when Numba compiles; kept code is loaded without a word."""

    depth = 0

    def on_start(self, event: Any) -> None:  # noqa: ARG002 - Numba's signature
        self.depth += 1

    def on_end(self, event: Any) -> None:  # noqa: ARG002
        self.depth -= 1


def _spare_blas() -> None:
    """Keep SciPy's linear algebra from being imported with the first code that is loaded.

    Numba asks then whether there is a BLAS, and so loads one.  Nothing here needs it, and code of
    a user's that multiplies matrices loads it when it is compiled.  It is 0.2 s of processor time.
    """
    from numba.np import linalg

    asked = linalg.ensure_blas
    linalg.ensure_blas = lambda: None
    try:
        from numba.np import arraymath  # noqa: F401 - which asks as it is imported
    finally:
        linalg.ensure_blas = asked


with contextlib.suppress(ImportError, AttributeError):  # another Numba
    _spare_blas()
_ear = _Ear()
event.register("numba:compile", _ear)


def compiling() -> bool:
    """Whether some thread is compiling now."""
    return _ear.depth > 0


def compiled(
    function: Callable[..., Any],
    signature: Any = None,
    made_of: tuple[str, ...] = (),
    *,
    whole_program: bool = False,
    **options: Any,
) -> Any:
    """``function`` compiled by Numba when it is first called, or at once for a ``signature``.

    It may be made of its own file, of the files ``made_of`` and of what all these import.
    ``whole_program``: compiled functions that it calls become machine code within it only.

    Whatever is wrong with the place where compiled code is kept (``NUMBA_CACHE_DIR``, beside the
    sources or in the user's cache: the first that can be written) costs time, never an answer.
    """
    whole_program = whole_program and not numba.config.DISABLE_JIT
    made = WholeProgram(function, options) if whole_program else None
    dispatcher = made or numba.njit(**options)(function)
    with contextlib.suppress(RuntimeError, OSError):  # no place to write: kept nowhere
        dispatcher._cache = _Kept(function, made_of)
    if signature is not None:
        dispatcher.compile(signature)
        dispatcher.disable_compile()
    return dispatcher


def part(function: Callable[..., Any], **options: Any) -> Any:
    """``function`` as compiled code with ``whole_program`` takes it in; Python never calls it."""
    if numba.config.DISABLE_JIT:
        return function
    return Part(function, {**options, "nopython": True, "no_cpython_wrapper": True})


class _Kept(FunctionCache):  # type: ignore[misc]  # Numba has no types
    """Numba's cache under names that hold the digest, and forgiving."""

    def __init__(self, function: Callable[..., Any], made_of: tuple[str, ...]) -> None:
        super().__init__(function)
        self._digest = digest(inspect.getfile(function), *made_of)
        base = self._impl.filename_base  # module.function-line.python
        self._older = re.compile(re.escape(base.rpartition("-")[0]) + r"-\d+\." + _OTHER)
        name = f"{base}{MARK}{self._digest}"
        self._cache_file = IndexDataCacheFile(self._cache_path, name, self._digest)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # damaged in any way: compile again
            self._forget(self._cache_file._index_name)
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
            for path in Path(self._cache_path).iterdir():
                if self._older.match(path.name) and f"{MARK}{self._digest}." not in path.name:
                    self._forget(path.name)
        except Exception:  # a full disk, another process at work: the answer needs no cache
            return

    def _forget(self, name: str) -> None:
        try:
            (Path(self._cache_path) / name).unlink(missing_ok=True)
        except OSError:
            return


@functools.cache
def digest(*files: str | Path) -> str:
    """Of the sources that code in these files may be made from."""
    found = {path for file in files for path in sources(Path(file))}
    total = hashlib.sha256()
    for path in sorted(found):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        total.update(f"{path.name} {content}\n".encode())
    return total.hexdigest()[:16]


@functools.cache
def sources(file: Path) -> frozenset[Path]:
    """The file and all of this package that it imports, directly or not.

    The whole package for what could load anything.
    """
    found, left = set[Path](), {file} if file.is_file() else set()
    while left:
        path = left.pop()
        found.add(path)
        imported = _imports(path)
        if imported is None:
            return frozenset({file, *ROOT.rglob("*.py")})
        left |= imported - found
    return frozenset(found)


@functools.cache
def _imports(path: Path) -> frozenset[Path] | None:
    """The files of this package that a file imports; ``None``: that cannot be told."""
    text = path.read_text(encoding="utf-8")
    if _ANYTHING.search(text) and path != Path(__file__):
        return None
    found = set()
    for node in _statements(ast.parse(text).body):
        if isinstance(node, ast.Import):
            found |= {_file(alias.name) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            inside = ""
            if node.level and path.is_relative_to(ROOT):
                inside = ".".join(path.relative_to(ROOT.parent).parts[: -node.level])
            start = ".".join(filter(None, (inside, node.module)))
            found |= {_file(f"{start}.{alias.name}") or _file(start) for alias in node.names}
    return frozenset(filter(None, found))


def _statements(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """These and all inside them; an import is one, so expressions need not be looked through."""
    for node in nodes:
        yield node
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            inside = getattr(node, part, ())
            yield from _statements(inside if isinstance(inside, list) else ())


def _file(name: str) -> Path | None:
    """Where a module of this package stands."""
    place = ROOT.parent.joinpath(*name.split("."))
    choices = (place.with_name(f"{place.name}.py"), place / "__init__.py")
    return next((p for p in choices if p.is_relative_to(ROOT) and p.is_file()), None)
