"""Holds a derivation: its premises, steps and result, and the formula that the paper prints.

Tests compare the derived formula with the package's numeric code. The command ``vegasmodel paper
--html FILE`` shows both formulas where they differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sympy as sp

Expr = Any  # SymPy carries no types
NO_NUMBER = "-"  # in place of an equation's number, if the paper has no equation for the quantity


@dataclass(frozen=True)
class Derivation:
    """A formula, ``derived`` from ``premises`` by ``steps``.

    ``printed`` is the formula as the paper prints it, or None.
    """

    number: str  # of the paper's equation or section, or ``NO_NUMBER``
    symbol: str  # LaTeX of the quantity for which it is a formula
    premises: tuple[Expr, ...]
    derived: Expr
    printed: Expr = None
    note: str = ""  # why the two formulas differ, or what else the reader must know
    steps: tuple[Expr, ...] = ()  # intermediate results, in the order of the derivation

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
