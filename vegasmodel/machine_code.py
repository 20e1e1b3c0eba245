"""Numba keeps compiled functions on disk; here the stale ones are thrown away.

Numba checks a function's own file only.  A function that calls into another file keeps the old
machine code of its callee when that file changes, so wrong numbers could outlive their repair.
"""

from __future__ import annotations

from pathlib import Path


def forget_stale(file: str) -> None:
    """Remove the compiled functions of a file's folder that are older than any source in it.

    Call it with ``__file__`` before the first function is compiled.  A folder that cannot be
    written holds no compiled functions of ours: Numba then keeps them elsewhere, by itself.
    """
    folder = Path(file).parent
    newest = max(source.stat().st_mtime for source in folder.glob("*.py"))
    for index in (folder / "__pycache__").glob("*.nbi"):
        try:
            if index.stat().st_mtime < newest:
                index.unlink()
        except OSError:  # another process was faster, or the folder is not ours
            continue
