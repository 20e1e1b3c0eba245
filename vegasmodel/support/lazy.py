"""Lets a package import its public names only when they are used, and show no other names.

A package lists its public names once, in the stub ``__init__.pyi``.  Editors and mypy read the same
stub.
"""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["attach"]

Loader = Callable[[str], Any]


def attach(
    package: str, file: str, before: Callable[[str], None] | None = None
) -> tuple[Loader, Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` for the package whose ``__init__`` is ``file``.

    The stub has lines ``from PLACE import NAME as NAME``.  If PLACE is the package itself, NAME is
    one of its modules.  Before a name is imported, ``before`` is called with its full name.
    """
    stub = ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8"))
    places = {
        alias.name: str(node.module)
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname == alias.name
    }

    def load(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if before is not None:
            before(f"{package}.{name}")
        if places[name] == package:
            return importlib.import_module(f"{package}.{name}")
        value = getattr(importlib.import_module(places[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: sorted(places), sorted(places)
