"""Formulas in TeX as MathML, which a browser sets by itself: no page of ours fetches anything."""

from __future__ import annotations

from latex2mathml.converter import convert

__all__ = ["mathml"]


def mathml(tex: str, *, block: bool = False) -> str:
    """One line of MathML, within a line of text or, with ``block``, on a line of its own."""
    tex = tex.replace(r"\mathit", r"\mathrm")  # MathML spaces the letters of italics apart
    if not block:
        return " ".join(convert(tex).split())
    shown = convert(tex.replace(r"\tag", r"\qquad\tag"), display="block")
    return " ".join(shown.replace(" display=", ' style="margin: 0.6em 0" display=').split())
