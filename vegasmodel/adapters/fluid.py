"""Adapter of the fluid simulator."""

from __future__ import annotations

from vegasmodel.fluid.simulate import answer

__all__ = ["answer"]
