"""Adapter of the fluid simulator."""

from __future__ import annotations

from vegasmodel.fluid.answers import answer

__all__ = ["answer"]
