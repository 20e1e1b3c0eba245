"""Mathematics for the HTML report: symbols in a line of text, and equations as MathML.

Notes are plain text ("W_V(N)", "alpha <= 3"), so that a terminal can show them.  On the page names
of Greek letters become letters, and indices become subscripts.  The equations come from the SymPy
derivations.
"""

import importlib
import re
from dataclasses import dataclass
from typing import Any

import markupsafe

__all__ = ["Equation", "equations", "inline"]

GREEK = {
    name: chr(code)
    for name, code in (
        ("alpha", 0x3B1), ("beta", 0x3B2), ("gamma", 0x3B3), ("delta", 0x3B4), ("lambda", 0x3BB),
        ("mu", 0x3BC), ("Delta", 0x394), ("Lambda", 0x39B), ("sum", 0x2211),
    )
}  # fmt: skip
SIGNS = {  # as notes write a sign, and as the page shows it
    "<=": "≤",
    ">=": "≥",
    "!=": "≠",
    "+-": "±",
    " - ": " − ",
    " * ": " · ",
    "sqrt ": "√",
    "sqrt": "√",
}
# an index or a power: in braces, in parentheses, one of some words, or a single character
INDEX = r"\{[^{}]*\}|\([^()]*\)|th\b|max\b|Vegas\b|Reno\b|[A-Za-z0-9](?![A-Za-z0-9])"
# what ``inline`` sets as HTML: a name with an index, a power, a Greek letter's name, a sign
TOKEN = re.compile(
    rf"(?<![\w.])(?P<base>[A-Za-z]{{1,7}})_(?P<index>{INDEX})(?!_|\w*/\w*\.py)"
    rf"|\^(?P<power>{INDEX}|\d+)"
    r"|(?<![\w.])(?P<greek>alpha|beta|gamma|delta|lambda|mu|Delta|Lambda)(?!\w)"
    r"|(?P<sign><=|>=|!=|\+-|(?<=\S) - (?=\S)| \* |\bsqrt ?(?=[\d(]))"
)
# by paper: the function of its module in vegasmodel/symbolic that returns the formulas
MODULES = {"boutremans": "derivations", "devendictis": "formulas", "podlesny": "derivations"}


def inline(text: str) -> markupsafe.Markup:
    """A note's text as HTML: each symbol as the page shows it, and all else escaped.

    For example, ``W_V <= 3`` becomes ``<i>W</i><sub>V</sub> ≤ 3``.  ``TOKEN`` matches a symbol.
    """
    parts, end = [], 0
    for token in TOKEN.finditer(text):
        parts += [markupsafe.escape(text[end : token.start()]), _set(token)]
        end = token.end()
    return markupsafe.Markup("").join([*parts, markupsafe.escape(text[end:])])


def _set(token: re.Match[str]) -> markupsafe.Markup:
    """A match of ``TOKEN`` as HTML: a name with an index, a power, a Greek letter or a sign."""
    if token["base"] is not None:
        name = markupsafe.Markup("<i>{}</i><sub>{}</sub>")
        return name.format(GREEK.get(token["base"], token["base"]), _index(token["index"]))
    if token["power"] is not None:
        return markupsafe.Markup("<sup>{}</sup>").format(_index(token["power"]))
    if token["greek"] is not None:
        return markupsafe.Markup("<i>{}</i>").format(GREEK[token["greek"]])
    return markupsafe.escape(SIGNS[token["sign"]])


def _index(text: str) -> markupsafe.Markup:
    """An index or a power as HTML, without the braces or parentheses around it."""
    bare = text[1:-1] if text[0] in "{(" else text
    return inline(bare.replace("-", "−"))


@dataclass(frozen=True)
class Equation:
    """One printed formula: its name, the printed form, and the derived form if they differ."""

    number: str  # of the equation or the section in the paper
    symbol: markupsafe.Markup  # of the quantity that the formula gives
    printed: markupsafe.Markup
    derived: markupsafe.Markup | None
    note: str  # why the two forms differ; may be empty


def equations(paper: str) -> list[Equation]:
    """The printed formulas of a paper that SymPy derives; empty if there are none."""
    if paper not in MODULES:
        return []
    module = importlib.import_module(f"vegasmodel.symbolic.{paper}")
    found = []
    for formula in getattr(module, MODULES[paper])():
        if formula.printed is None or formula.number == "-":  # the paper has no such equation
            continue
        same = (formula.printed - formula.derived).equals(0)
        found.append(
            Equation(
                number=formula.number,
                symbol=inline(formula.symbol.replace("\\sum ", "sum of ").replace("\\", "")),
                printed=mathml(formula.printed),
                derived=None if same else mathml(formula.derived),
                note=formula.note,
            )
        )
    return found


def mathml(expression: Any) -> markupsafe.Markup:
    """A SymPy expression as MathML.

    The names of windows in a mini-cycle are changed: W_V1 and W_RN are shown as W_V(1) and W_R(N).
    """
    from sympy.printing.mathml import mathml as presentation

    named = {
        symbol: type(symbol)(re.sub(r"^(W_[VR])([1abN])$", r"\1(\2)", symbol.name))
        for symbol in expression.free_symbols
    }
    body = presentation(expression.xreplace(named), printer="presentation")
    return markupsafe.Markup(f'<math displaystyle="true">{body}</math>')  # noqa: S704 - SymPy's markup, no user's text
