"""What many commands take: a scenario file, and Python files with laws of the user's own."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from vegasmodel.scenario import Scenario

__all__ = ["File", "Json", "Laws", "load", "register"]

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
File = Annotated[Path, typer.Argument(metavar="SCENARIO.toml", help="Scenario file.")]
Laws = Annotated[
    list[Path] | None,
    typer.Option("--laws", metavar="FILE.py", help="Run this file, which registers your own laws."),
]


def register(files: Iterable[Path] | None) -> None:
    """``--laws``: the laws of these files can be named from here on."""
    if files:
        from vegasmodel import laws

        for file in files:
            laws.register_file(file)


def load(scenario: Path, files: Iterable[Path] | None = None) -> Scenario:
    """The scenario of a file, which may name laws of ``files``."""
    from vegasmodel.scenario import load as read

    register(files)
    return read(scenario)
