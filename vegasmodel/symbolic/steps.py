"""The record of a derivation: its premises, steps and result, and the paper's printed form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sympy as sp

Expr = Any  # SymPy carries no types


@dataclass(frozen=True)
class Derivation:
    """``derived`` follows from ``premises`` by ``steps``; ``printed`` is the paper's or None."""

    number: str  # of the equation, or of the section it stands in
    symbol: str  # LaTeX of what it gives
    premises: tuple[Expr, ...]
    steps: tuple[Expr, ...]
    derived: Expr
    printed: Expr = None
    note: str = ""

    @property
    def difference(self) -> Expr:
        """Printed less derived, simplified: zero where the print is right, None without print."""
        return None if self.printed is None else sp.simplify(self.printed - self.derived)

    @property
    def latex(self) -> str:
        """The result as LaTeX."""
        return f"{self.symbol} = {sp.latex(self.derived)}"
