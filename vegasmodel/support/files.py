"""Writes a file so that it appears complete or not at all, even if the process is killed."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["FULL", "PART", "atomic_write", "forget_parts", "named"]

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # errors of a write, which name no file
PART = ".part-"  # temporary files have this prefix
_numbers = itertools.count()
_parts: set[Path] = set()  # temporary files that are being written


@contextmanager
def atomic_write(path: str | Path) -> Iterator[Path]:
    """Yield the path of a temporary file in the folder of ``path``, for the caller to write.

    If the ``with`` block ends without an error, the temporary file is renamed to ``path``.
    Otherwise it is removed.  If ``path`` is a symbolic link, the file that it points to is
    replaced.  Errors of the block pass through; an ``OSError`` then names ``path``.
    """
    given, path = path, Path(os.path.realpath(path))
    part = path.with_name(f"{PART}{os.getpid()}-{next(_numbers)}{path.suffix}")
    _parts.add(part)
    try:
        with named(given):
            yield part
            part.replace(path)
    finally:
        part.unlink(missing_ok=True)
        _parts.discard(part)


@contextmanager
def named(path: str | Path) -> Iterator[None]:
    """Make an ``OSError`` of the ``with`` block name ``path``, which is known to the user.

    Two kinds of errors are changed: those of a full disk, which name no file, and those that name a
    temporary file or a file inside the folder ``path``.
    """
    try:
        yield
    except OSError as error:
        ours = str(error.filename).startswith(f"{path}{os.sep}") or PART in str(error.filename)
        if error.errno is None or not (ours or (error.filename is None and error.errno in FULL)):
            raise
        raise OSError(error.errno, os.strerror(error.errno), str(path)) from error


def forget_parts() -> None:
    """Remove the temporary files of ``atomic_write``, because the process is about to be ended."""
    for part in tuple(_parts):
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
