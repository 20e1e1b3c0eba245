"""Reads a TOML file as a dictionary, and converts a dictionary to the text of a TOML file."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from vegasmodel.fields.errors import FieldError, printable

__all__ = ["keys_of", "parse", "piped", "read", "write"]

MAX_FILE = 4_000_000  # bytes


def piped(what: str) -> str:
    """A text for error messages: pipes are not read, so the user needs a file for ``what``."""
    return f"standard input and pipes are not read: write the {what} to a file first"


def parse(text: str, where: str, value: str) -> dict[str, Any]:
    """Convert TOML text to a dictionary.

    Raises ``FieldError`` if the text is not TOML, or if it has a whole number of more than 4300
    digits, which Python does not read. The message begins with ``where`` and ``value``, to tell the
    user which text is wrong. For a file they are the file's path and name.
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = " ".join(str(error).split())[:200]
        reason = message + _without_quotes(text, message) + _single_brackets(text)
    except RecursionError:
        reason = "it has lists inside lists, too deep"
    except ValueError:  # Python reads no whole number of more than 4300 digits
        reason = "it has a whole number of thousands of digits"
    raise FieldError(where, value, reason, wrong="is not TOML")


def _without_quotes(text: str, message: str) -> str:
    """A hint for an error message if a line of TOML text is ``law = reno``, without quotes.

    ``message`` is that of TOML's parser, which gives the number of the line that it could not
    read. The hint shows that line with quotes. It is empty if quotes would not mend the line.
    """
    line_number = re.search(r"\(at line (\d+)", message)
    line = text.splitlines()[int(line_number[1]) - 1 :][:1] if line_number else []
    unquoted = re.fullmatch(r"\s*([\w.-]+\s*=\s*)([^\W_][^\"'#=,{}\[\]\\]*)(#.*)?", "".join(line))
    if not line_number or not unquoted or not re.search(r"[^\W\d_]", unquoted[2]):
        return ""
    quoted = printable(f'{unquoted[1]}"{unquoted[2].strip()}"')
    return (
        f"; text needs quotes: write {quoted} in line {line_number[1]}"
        if len(quoted) <= 100
        else ""
    )


def _single_brackets(text: str) -> str:
    """A hint for an error message if TOML text has ``[flow]`` or ``[link]`` with single brackets.

    The hint says that these headings need double brackets. It is empty if the text has none of
    them.
    """
    found = re.search(r"^\s*\[\s*(flow|link)\s*\]", text, re.MULTILINE)
    if not found:
        return ""
    line = text.count("\n", 0, found.start(1)) + 1
    return f"; line {line}: write [[{found[1]}]], not [{found[1]}]"


def read(path: str | Path) -> dict[str, Any]:
    """Read a TOML file; return its content as a dictionary.

    Raises ``FieldError`` if the file cannot be read, is larger than ``MAX_FILE``, is not TOML, or
    has no keys.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise FieldError("path", path, "the name of a scenario file")
    if "\n" in str(path):
        raise FieldError(
            "path", path, "the name of a scenario file; Scenario.from_toml reads its text"
        )
    path = Path(path)
    where, name = _shown(path), path.name or str(path)
    table = parse(_text(path, where, name), where, name)
    if not table:
        raise FieldError(where, name, "a scenario has links and flows", wrong="has no keys")
    return table


def _text(path: Path, where: str, name: str) -> str:
    """The text of a scenario file; ``FieldError`` if it cannot be read.

    ``where`` and ``name`` are the file's path and name for the error message.
    """
    try:
        if path.stat().st_size > MAX_FILE or not path.is_file():
            allowed = f"a scenario is a regular file of at most {MAX_FILE} bytes"
            if not path.is_file() and not path.is_dir():
                allowed += f"; {piped('scenario')}"
            raise FieldError(where, name, allowed, wrong="cannot be read")
        return path.read_text(encoding="utf-8-sig")  # some editors write a mark first
    except UnicodeDecodeError:
        message = "a scenario is a text file in UTF-8"
        raise FieldError(where, name, message, wrong="cannot be read as text") from None
    except FileNotFoundError:
        message = "there is no such file"
        message += f"; {piped('scenario')}" if name == "-" else ""
        raise FieldError(where, name, message, wrong="cannot be read") from None
    except (OSError, ValueError) as error:
        if isinstance(error, FieldError):
            raise
        reason = getattr(error, "strerror", None) or "not a usable path"
        raise FieldError(where, name, reason, wrong="cannot be read") from None


@contextlib.contextmanager
def keys_of(path: str | Path, keys: Collection[str] = ()) -> Iterator[None]:
    """Add the file's path to the message of each ``FieldError`` raised in the ``with`` block.

    With ``keys``, the path is added only if the error's field is one of these keys, or is inside
    one of them. For example, ``flow[1].rtt`` is inside ``flow``.
    """
    try:
        yield
    except FieldError as error:
        if keys and re.split(r"[.\[]", error.field)[0] not in keys:
            raise
        raise error.in_file(_shown(path)) from None


def _shown(path: str | Path) -> str:
    """The path for an error message, with control characters escaped."""
    return printable(str(path))


def write(table: Mapping[str, Any]) -> str:
    """Convert a dictionary to TOML text.

    A table gets the heading ``[key]``. In a list of tables, each table gets the heading
    ``[[key]]``. Every other value stands on a line of the form ``key = value``.
    """
    plain = {key: value for key, value in table.items() if not _heading(value)}
    blocks = ["".join(f"{key} = {_inline(value)}\n" for key, value in plain.items())]
    for key, value in table.items():
        if _heading(value):
            head, rows = (
                (f"[{key}]", [value]) if isinstance(value, Mapping) else (f"[[{key}]]", value)
            )
            for row in rows:
                lines = "".join(f"{name} = {_inline(held)}\n" for name, held in row.items())
                blocks.append(f"{head}\n{lines}")
    return "\n".join(block for block in blocks if block)


def _heading(value: object) -> bool:
    """Whether a value is written under a heading: it is a table, or a nonempty list of tables."""
    rows = value if isinstance(value, list) and value else [value]
    return all(isinstance(row, Mapping) for row in rows)


def _inline(value: Any) -> str:
    """A value as TOML writes it on one line."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_inline(held)}" for key, held in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_inline(held) for held in value) + "]"
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return json.dumps(value, ensure_ascii=False)  # JSON writes these as TOML does
