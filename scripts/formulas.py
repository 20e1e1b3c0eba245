"""Converts formulas from TeX to MathML, which browsers display without fetching anything."""

from latex2mathml.converter import convert

__all__ = ["mathml"]


def mathml(tex: str, *, block: bool = False) -> str:
    """The formula as one line of MathML: inline, or with ``block`` displayed on its own line."""
    tex = tex.replace(r"\mathit", r"\mathrm")  # MathML spaces the letters of italics apart
    if not block:
        return " ".join(convert(tex).split())
    shown = convert(tex.replace(r"\tag", r"\qquad\tag"), display="block")
    return " ".join(shown.replace(" display=", ' style="margin: 0.6em 0" display=').split())
