"""Shortens a list for a message: names its first entries, and says how many more there are."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["few"]


def few(texts: Sequence[str], most: int = 3, *, clauses: bool = False) -> str:
    """Join the first ``most`` texts for a message, as in ``a, b, c and 2 more``.

    ``clauses`` is for longer texts. It separates them by semicolons: ``a; b; c; and 2 more``.
    """
    shown = ("; " if clauses else ", ").join(texts[:most])
    not_shown = len(texts) - most
    return f"{shown}{';' if clauses else ''} and {not_shown} more" if not_shown > 0 else shown
