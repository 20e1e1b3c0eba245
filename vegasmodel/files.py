"""Files that appear whole or not at all, whenever the process is killed."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["PART", "whole"]

PART = ".part-"  # what a killed process leaves behind begins so
_numbers = itertools.count()


@contextmanager
def whole(path: str | Path) -> Iterator[Path]:
    """A new name beside ``path`` to write to; it becomes ``path`` at the end, if no error came.

    A link is followed, as it is when its file is opened.  Raises what the writing raises.
    """
    path = Path(os.path.realpath(path))
    part = path.with_name(f"{PART}{os.getpid()}-{next(_numbers)}{path.suffix}")
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
