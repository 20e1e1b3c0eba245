"""Write a file so that it appears whole or not at all, even if the process is killed."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["PART", "forget_parts", "whole"]

PART = ".part-"  # what a killed process leaves behind begins so
_numbers = itertools.count()
_parts: set[Path] = set()  # those being written


@contextmanager
def whole(path: str | Path) -> Iterator[Path]:
    """Yield a new name beside ``path`` to write to.

    At the end, without error, rename it to ``path``.

    If ``path`` is a link, the file behind it is replaced.  Raises what the writing raises.
    """
    path = Path(os.path.realpath(path))
    part = path.with_name(f"{PART}{os.getpid()}-{next(_numbers)}{path.suffix}")
    _parts.add(part)
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
        _parts.discard(part)


def forget_parts() -> None:
    """Remove half-written files, since this process ends at once."""
    for part in tuple(_parts):
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
