"""Compiled functions kept on disk, each by the content of the sources that it was made from.

Numba's own cache looks at the file of the function alone: when another file changes that the
function calls into, the old machine code of its callee would answer on.  Times cannot tell either:
a source that was rolled back is older than the code made of its successor.  So what is kept
carries a digest of the package's sources in its name, and other digests are never read.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile

__all__ = ["compiled"]

ROOT = Path(__file__).parent
# What stands on the layers above the models enters no compiled function (``make lint``), so an
# edit there need not cost a compilation.
ABOVE = (
    "cli", "cli_forms", "comparison", "completion", "predictor", "console", "plots", "flowspec",
    "trajectories", "adapters",
)  # fmt: skip
MARK = ".of-"  # in a kept file's name: the digest follows
_OTHER = re.compile(re.escape(MARK) + r"[0-9a-f]{16}\.")


def compiled(function: Callable[..., Any], signature: Any = None, **options: Any) -> Any:
    """``function`` compiled by Numba when it is first called, or at once for a ``signature``.

    Whatever is wrong with the place where compiled code is kept (``NUMBA_CACHE_DIR``, beside the
    sources or in the user's cache: the first that can be written) costs time, never an answer.
    A function of another package may come along; what it calls itself must stand in its own file.
    """
    dispatcher = numba.njit(**options)(function)
    with contextlib.suppress(RuntimeError, OSError):  # no place to write: kept nowhere
        dispatcher._cache = _Kept(function)
    if signature is not None:
        dispatcher.compile(signature)
        dispatcher.disable_compile()
    return dispatcher


class _Kept(FunctionCache):  # type: ignore[misc]  # Numba has no types
    """Numba's cache under names that hold the digest, and forgiving."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._digest = digest(function)
        name = f"{self._impl.filename_base}{MARK}{self._digest}"
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
                if _OTHER.search(path.name) and f"{MARK}{self._digest}." not in path.name:
                    self._forget(path.name)
        except Exception:  # a full disk, another process at work: the answer needs no cache
            return

    def _forget(self, name: str) -> None:
        try:
            (Path(self._cache_path) / name).unlink(missing_ok=True)
        except OSError:
            return


def digest(function: Callable[..., Any]) -> str:
    """Of the sources that ``function`` may be made from."""
    file = Path(inspect.getfile(function))
    if file.is_relative_to(ROOT) or not file.is_file():
        return _package()[:16]
    return hashlib.sha256(_package().encode() + file.read_bytes()).hexdigest()[:16]


@functools.cache
def _package() -> str:
    """Of every source of the package below the layers ``ABOVE``."""
    total = hashlib.sha256()
    for path in sorted(ROOT.rglob("*.py")):
        place = path.relative_to(ROOT)
        if place.parts[0].removesuffix(".py") not in ABOVE:
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            total.update(f"{place.as_posix()} {content}\n".encode())
    return total.hexdigest()
