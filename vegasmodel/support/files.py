"""Write a file so that it appears whole or not at all, even if the process is killed."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["FULL", "PART", "atomic_write", "forget_parts", "named"]

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # a write fails with these; it names no file
PART = ".part-"  # what a killed process leaves behind begins so
_numbers = itertools.count()
_parts: set[Path] = set()  # those being written


@contextmanager
def atomic_write(path: str | Path) -> Iterator[Path]:
    """Yield a new name beside ``path`` to write to.

    At the end, without error, rename it to ``path``.

    If ``path`` is a link, the file behind it is replaced.  Raises what the writing raises; an
    ``OSError`` names ``path``.
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
    """Let an ``OSError`` within name ``path`` if it names nothing, or a file that is our affair.

    A write to a full disk names nothing; libraries and ``atomic_write`` use names of their own.
    """
    try:
        yield
    except OSError as error:
        ours = str(error.filename).startswith(f"{path}{os.sep}") or PART in str(error.filename)
        if error.errno is None or not (ours or (error.filename is None and error.errno in FULL)):
            raise
        raise OSError(error.errno, os.strerror(error.errno), str(path)) from error


def forget_parts() -> None:
    """Remove half-written files, since this process ends at once."""
    for part in tuple(_parts):
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
