"""A scenario file as the table that stands in it, before anything is made of it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from vegasmodel.units import FieldError

__all__ = ["parse", "read"]

MAX_FILE = 4_000_000  # bytes


def parse(text: str, where: str, value: str) -> dict[str, Any]:
    """The table of a TOML text.  ``FieldError`` with ``where`` and ``value`` if it is none."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        reason = " ".join(str(error).split())[:200]
        raise FieldError(where, value, f"valid TOML is: {reason}") from None


def read(path: str | Path) -> dict[str, Any]:
    """The table of a file.  ``FieldError``: it cannot be read, is too large, or is no TOML."""
    path = Path(path)
    where = ascii(str(path))[1:-1]
    try:
        if path.stat().st_size > MAX_FILE or not path.is_file():
            raise FieldError(where, path.name, f"a regular file of at most {MAX_FILE} bytes")
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise FieldError(where, path.name, "a text file in UTF-8") from None
    except (OSError, ValueError) as error:
        if isinstance(error, FieldError):
            raise
        reason = getattr(error, "strerror", None) or "not a usable path"
        raise FieldError(where, path.name, f"a readable scenario file ({reason})") from None
    return parse(text, where, path.name)
