"""Writes a file so that it appears complete or not at all, even if the process is killed.

``expect_writable`` tells before a long computation whether a file can be written.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = [
    "FULL", "PART", "atomic_write", "expect_writable", "forget_parts", "is_special", "named",
]  # fmt: skip

# a write fails because the disk or a quota is full, or the file is too large; Python's exception
# then does not say which file it was
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
PART = ".part-"  # temporary files have this prefix
_numbers = itertools.count()  # gives each temporary file of this process a name of its own
_parts: set[Path] = set()  # temporary files that are being written


@contextmanager
def atomic_write(path: str | Path) -> Iterator[Path]:
    """Yield the path of a temporary file, which the caller writes and which then replaces ``path``.

    The temporary file is in the same folder as ``path``.  If the ``with`` block ends without an
    error, it is renamed to ``path``.  Otherwise it is removed, and ``path`` stays as it was.  If
    ``path`` is a symbolic link, the file that it points to is replaced.

    If the temporary file cannot be written, the ``OSError`` names ``path``.  Raises ``OSError``,
    too, if ``path`` is special (``is_special``), because a plain file would take its place.
    """
    if is_special(path):
        raise OSError(errno.EINVAL, "a device, pipe or socket, which is not replaced", str(path))
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


def expect_writable(path: str | Path) -> None:
    """Raise the ``OSError`` with which ``atomic_write`` would fail to write ``path``.

    It writes one byte to a temporary file, and removes this file. So it also finds a folder in
    which nobody can make files, a symbolic link into a folder that does not exist, and a full disk.
    """
    with contextlib.suppress(_Tried), atomic_write(path) as part:
        part.write_bytes(b" ")
        raise _Tried


class _Tried(Exception):  # noqa: N818 - an outcome, not an error
    """Raised so that ``atomic_write`` removes its temporary file and leaves the path as it was."""


def is_special(path: str | Path) -> bool:
    """Whether ``path`` exists and is neither a file nor a folder: a device, a pipe or a socket."""
    path = Path(path)
    return path.exists() and not (path.is_file() or path.is_dir())


@contextmanager
def named(path: str | Path) -> Iterator[None]:
    """Make an ``OSError`` of the ``with`` block name ``path``, which the user knows.

    This is done in two cases:

    - The error names a temporary file, or a file inside the folder ``path``.
    - The error names no file, and says that the disk is full or that a file is too large.
    """
    try:
        yield
    except OSError as error:
        internal = str(error.filename).startswith(f"{path}{os.sep}") or PART in str(error.filename)
        unnamed = error.filename is None and error.errno in FULL
        if error.errno is None or not (internal or unnamed):
            raise
        reason = os.strerror(error.errno)
        # a temporary file is only written, so say this: the user might think of reading
        if PART in str(error.filename) and error.errno not in FULL:
            reason = f"cannot be written: {reason}"
        raise OSError(error.errno, reason, str(path)) from error


def forget_parts() -> None:
    """Remove the temporary files of ``atomic_write``; called just before the process is ended."""
    for part in tuple(_parts):
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
