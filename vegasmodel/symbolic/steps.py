"""Holds a derivation: its premises, steps and result, and the formula that the paper prints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sympy as sp

Expr = Any  # SymPy carries no types


@dataclass(frozen=True)
class Derivation:
    """A formula, ``derived`` from ``premises`` by ``steps``.

    ``printed`` is the formula as the paper prints it, or None.
    """

    number: str  # of the equation, or of the section it stands in; "-" if the paper lacks it
    symbol: str  # LaTeX of what it gives
    premises: tuple[Expr, ...]
    derived: Expr
    printed: Expr = None
    note: str = ""
    steps: tuple[Expr, ...] = ()

    @property
    def difference(self) -> Expr:
        """The printed formula minus the derived one, simplified: zero if the paper is right.

        It is None if the paper prints none.
        """
        return None if self.printed is None else sp.simplify(self.printed - self.derived)

    @property
    def latex(self) -> str:
        """The derived formula as LaTeX."""
        return f"{self.symbol} = {sp.latex(self.derived)}"
