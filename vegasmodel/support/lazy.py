"""Lets a package import each of its public names when the name is first used.

The package lists its public names in its stub, the file ``__init__.pyi``. Editors and mypy also
read this file. ``dir`` of the package shows only these names.
"""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["attach"]

Loader = Callable[[str], Any]  # the name of an attribute -> the attribute, which it imports


class _Package(ModuleType):
    """The class of a package; for each module of the package, ``dir`` lists only the public names.

    When Python has imported a module, it stores the module as an attribute of the package.  At this
    moment the module gets a function ``__dir__`` that lists its public names, unless it has one.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        """Store an attribute; a module gets its function ``__dir__`` before."""
        if isinstance(value, ModuleType) and "__dir__" not in vars(value):
            setattr(value, "__dir__", lambda: _public(value))  # noqa: B010 - mypy refuses the other
        super().__setattr__(name, value)


def _public(module: ModuleType) -> list[str]:
    """The names that ``dir`` shows for a module.

    These are the names in its ``__all__``, or else the functions and classes that it defines.
    """
    defined_here = {
        name
        for name, value in vars(module).items()
        if getattr(value, "__module__", None) == module.__name__ and not name.startswith("_")
    }
    return sorted(vars(module).get("__all__", defined_here))


def attach(
    package: str, file: str, before: Callable[[str], None] | None = None
) -> tuple[Loader, Callable[[], list[str]], list[str]]:
    """Make a package import each of its public names when the name is first used.

    ``package`` is the package's name, and ``file`` is its ``__init__.py``.  The package assigns the
    three results to ``__getattr__``, ``__dir__`` and ``__all__``.

    The public names are read from the stub ``__init__.pyi`` beside ``file``.  There each name has a
    line ``from PLACE import NAME as NAME``.  If PLACE is the package itself, NAME is one of its
    modules.

    ``before`` is an optional function that is called before each import.  Its argument is the full
    name, ``PACKAGE.NAME``.  For example, it raises an error if a library that the package needs is
    not installed.
    """
    # When Python has imported a module of the package, it stores the module as an attribute of the
    # package, by ``__setattr__``. Python looks for this method only in the class of the package. So
    # the package gets a class whose ``__setattr__`` also gives the module its ``__dir__``.
    sys.modules[package].__class__ = _Package
    stub = ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8"))
    module_of = {
        alias.name: str(node.module)
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname == alias.name
    }

    def load(name: str) -> Any:
        """Import the public name ``name``, and make it an attribute of the package.

        Python calls this function only for names that are not yet attributes of the package.
        """
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if before is not None:
            before(f"{package}.{name}")
        if module_of[name] == package:  # the name is that of a module of the package
            return importlib.import_module(f"{package}.{name}")
        value = getattr(importlib.import_module(module_of[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: sorted(module_of), sorted(module_of)
