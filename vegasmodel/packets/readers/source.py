"""Opens a trace file for the readers, limits the length of its lines, and reports errors in it."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from vegasmodel.fields.errors import exactly
from vegasmodel.fields.toml_file import piped
from vegasmodel.packets.trace import TraceError

MAX_LINE = 65_536  # bytes
BOM = b"\xef\xbb\xbf"  # the mark with which some programs begin a text in UTF-8
MAX_TIME = 1e10  # seconds: over 300 years; as a time since 1970 it is after the year 2200


class Source:
    """An open trace file.

    - ``head``: its first bytes, by which the readers recognise its format.
    - ``start``: the byte at which the content begins: 0, or 3 if the file has a byte order mark.
    - ``file``: the binary stream.
    - ``lines()``: the content as text lines.
    - ``cut_short``: true if the file ends in the middle of a packet or a row.
    - ``unended``: true if the line that ``lines()`` gave last has no line break at its end.
    """

    def __init__(self, path: str | Path) -> None:
        """Open the file; raise ``TraceError`` if it cannot be read or is not a regular file."""
        self.path, self.cut_short, self.unended = Path(path), False, False
        try:
            regular = stat.S_ISREG(self.path.stat().st_mode)
            if regular:
                self.file = self.path.open("rb")
                self.head = self._head()
        except FileNotFoundError:
            hint = f"; {piped('trace')}" if str(path) == "-" else ""
            raise TraceError.unreadable(path, f"there is no such file{hint}") from None
        except OSError as error:
            reason = error.strerror or "not a usable path"
            raise TraceError.unreadable(path, reason) from None
        except (ValueError, TypeError):
            raise TraceError.unreadable(path, "not a usable path") from None
        if not regular:
            folder = self.path.is_dir()
            found = "a folder" if folder else "a pipe or device"
            hint = "" if folder else f"; {piped('trace')}"
            raise TraceError(path, "", found, f"a regular file{hint}")

    def _head(self) -> bytes:
        """The first ``MAX_LINE`` bytes, without a byte order mark; also sets ``start``."""
        try:
            head = self.file.read(MAX_LINE)
            self.start = len(BOM) if head.startswith(BOM) else 0
            self.file.seek(self.start)
        except OSError:
            self.file.close()
            raise
        return head[self.start :]

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *unused: object) -> None:
        self.file.close()

    def fail(self, place: str, value: object, expected: str) -> NoReturn:
        """Raise ``TraceError``: the file has ``value`` at ``place``, but should have ``expected``.

        ``place`` is a place in the file, such as "line 12" or "byte 4096".
        """
        raise TraceError(self.path, place, value, expected)

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield the lines of the file without line breaks, each with its number, counted from 1.

        Raises ``TraceError`` for a line of more than ``MAX_LINE`` bytes.
        """
        self.file.seek(self.start)
        number = 0
        while raw := self.file.readline(MAX_LINE + 1):
            number += 1
            if len(raw) > MAX_LINE:
                self.fail(f"line {number}", raw[:40], f"lines of at most {MAX_LINE} bytes")
            self.unended = not raw.endswith(b"\n")
            yield number, raw.rstrip(b"\r\n").decode("utf-8", "backslashreplace")

    def number(self, text: str, line: int, what: str, low: float, high: float) -> float:
        """Convert ``text`` to a number; raise ``TraceError`` unless it lies in ``[low, high]``.

        The error states what number it is (``what``) and its line in the file (``line``).
        """
        try:
            value = float(text)
        except ValueError:
            self.fail(f"line {line}", text[:60], f"{what}, a number")
        if not low <= value <= high:
            self.fail(f"line {line}", text[:60], f"{what} from {exactly(low)} to {exactly(high)}")
        return value
