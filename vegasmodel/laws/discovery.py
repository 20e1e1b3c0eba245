"""Finds laws of congestion control outside this package: in a Python file or an installed package.

A scenario file can name a law, but not a Python file. So a user who reads somebody's scenario runs
none of that person's code. Code from outside this package runs only if the user names a Python file
(option ``--laws``) or has installed a package with the law.
"""

from __future__ import annotations

import functools
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from vegasmodel.fields.errors import FieldError, printable

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "vegasmodel.laws"
"""The group of entry points: a law's name, and the module that registers it."""
NOT_LOADED = "cannot be loaded"  # as ``wrong`` of a ``FieldError`` about an installed law
ALLOWED = "a Python file that runs and calls vegasmodel.register_law"


class CodeError(FieldError):
    """Code from outside this package has failed.

    The message says where the error occurred, what it was, and what is expected.
    """

    def __init__(self, place: str, error: BaseException, expected: str) -> None:
        said = " ".join(f"{type(error).__name__}: {getattr(error, 'msg', error)}".split())
        super().__init__(place, said, f"expected {expected}")
        self.args = (f"{place}: {printable(said)}; expected {expected}",)


@functools.cache
def installed() -> Mapping[str, tuple[EntryPoint, ...]]:
    """The congestion controls that installed packages offer: a map from names to entry points.

    If several packages offer a congestion control of the same name, the name has several entry
    points.
    """
    from importlib.metadata import entry_points

    found: dict[str, tuple[EntryPoint, ...]] = {}
    for entry in entry_points(group=GROUP):
        others = found.get(entry.name, ())
        if entry.value not in [other.value for other in others]:
            found[entry.name] = (*others, entry)
    return found


def load(name: str) -> None:
    """Import the installed module that registers the law ``name``.

    Raises ``FieldError`` if the import fails, or if several packages offer a law of this name.
    """
    entry, *others = installed()[name]
    if others:
        packages = ", ".join(each.value for each in (entry, *others))
        raise FieldError("law", name, f"the law of one installed package, not of {packages}")
    try:
        entry.load()
    except (Exception, SystemExit) as error:  # whatever that package raises
        raised = printable(" ".join(f"{type(error).__name__}: {error}".split()))
        said = f"{should_register(name)}, but raised {raised}"
        raise FieldError("law", name, said, wrong=NOT_LOADED) from error


def should_register(name: str) -> str:
    """A text for error messages: which installed module should register the law ``name``."""
    module = installed()[name][0].value
    return f"the module {module} of an installed package should register it"


def run(path: Path) -> None:
    """Run a user's Python file, which registers laws.

    Raises ``FieldError`` if there is no such file or its code fails. If the code fails, the message
    names the file, the line and the error.
    """
    import runpy

    try:
        path.stat()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a usable path"
        raise FieldError("laws", str(path), f"{ALLOWED} ({reason})") from None
    if not path.is_file():
        raise FieldError("laws", str(path), ALLOWED)
    try:
        runpy.run_path(str(path), run_name=path.stem)
    except FieldError as error:  # by ``register_law``: add the line of the file to its message
        raise error.of(f"{_place(path, error)}: {error.field}") from error
    except (Exception, SystemExit) as error:  # whatever the user's file raises
        raise CodeError(_place(path, error), error, ALLOWED) from error


def _place(path: Path, error: BaseException) -> str:
    """The path of the user's file and the line in it at which the error occurred, as a text."""
    lines = [
        line
        for frame, line in traceback.walk_tb(error.__traceback__)
        if frame.f_code.co_filename == str(path)
    ]
    if isinstance(error, SyntaxError) and error.filename == str(path) and error.lineno:
        lines.append(error.lineno)
    return f"{path}, line {lines[-1]}" if lines else str(path)
