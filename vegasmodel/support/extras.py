"""Checks whether optional dependencies ("extras"), such as matplotlib, are installed.

If one is missing, an error says in one line how to install it.
"""

from __future__ import annotations

import importlib.util

__all__ = ["MODULES", "ExtraMissing", "need", "need_papers"]

MODULES = {  # for each extra, the modules of it that vegasmodel imports
    "dask": ("distributed", "zarr"),
    "jax": ("jax",),
    "network": ("clarabel",),
    "plot": ("matplotlib",),
    "report": ("jinja2", "matplotlib", "markdown_it", "sympy"),
    "sweep": ("zarr",),
    "symbolic": ("sympy",),
    "testing": ("hypothesis",),
}


class ExtraMissing(ImportError):  # noqa: N818 - an error even without "Error" in its name
    """Raised if an optional package is missing; the message says in one line how to install it."""


def need_papers(what: str) -> None:
    """Raise ``ExtraMissing`` unless the package ``vegasmodel-papers`` is installed.

    ``what`` is the name of the command that needs the package, for the error message.
    """
    if importlib.util.find_spec("paper_checks") is None:
        raise ExtraMissing(
            f"{what} needs vegasmodel-papers, a distribution of its own: in a checkout of "
            "vegasmodel, pip install ./paper_checks"
        )


def need(extra: str, what: str) -> None:
    """Raise ``ExtraMissing`` unless all modules of the optional dependency ``extra`` are installed.

    The modules are looked up, but not imported.  ``what`` is the option or function that needs
    them, for the error message.
    """
    missing = [name for name in MODULES[extra] if importlib.util.find_spec(name) is None]
    if missing:
        raise ExtraMissing(
            f"{what} needs {' and '.join(missing)}, which the extra {extra!r} brings: "
            f"pip install 'vegasmodel[{extra}]'"
        )
