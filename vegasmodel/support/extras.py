"""Optional dependencies: an option that needs one that is missing fails at once, in one line."""

from __future__ import annotations

import importlib.util

__all__ = ["MODULES", "ExtraMissing", "need", "need_papers"]

MODULES = {  # of each extra, what the package imports of it
    "dask": ("distributed", "zarr"),
    "jax": ("jax",),
    "network": ("clarabel",),
    "plot": ("matplotlib",),
    "report": ("jinja2", "matplotlib", "markdown_it", "sympy"),
    "sweep": ("zarr",),
    "symbolic": ("sympy",),
    "testing": ("hypothesis",),
}


class ExtraMissing(ImportError):  # noqa: N818 - the name says it
    """What was asked for needs an extra that is not installed: one line that says how to get it."""


def need_papers(what: str) -> None:
    """Raise ``ExtraMissing``, in ``what``'s name, unless the paper checks are installed."""
    if importlib.util.find_spec("paper_checks") is None:
        raise ExtraMissing(
            f"{what} needs vegasmodel-papers, a distribution of its own: in a checkout of "
            "vegasmodel, pip install ./paper_checks"
        )


def need(extra: str, what: str) -> None:
    """Raise ``ExtraMissing``, in ``what``'s name, unless the extra is there.  Imports nothing."""
    missing = [name for name in MODULES[extra] if importlib.util.find_spec(name) is None]
    if missing:
        raise ExtraMissing(
            f"{what} needs {' and '.join(missing)}, which the extra {extra!r} brings: "
            f"pip install 'vegasmodel[{extra}]'"
        )
