"""How Sphinx builds the site; ``scripts/site.py`` calls it with the generated pages in place."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import Any

import vegasmodel

sys.path.insert(0, str(Path(vegasmodel.__file__).parents[1] / "scripts"))
from formulas import mathml

project = "vegasmodel"
author = copyright = "The vegasmodel authors"  # noqa: A001 - Sphinx's name
version = release = vegasmodel.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
default_role = "code"  # a name in single quotes of a docstring
smartquotes_action = "qe"  # quotes and ellipses; two hyphens begin an option, and are no dash
add_module_names = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
autodoc_default_options = {"inherited-members": True}
maximum_signature_line_length = 60
toc_object_entries = False
highlight_language = "none"
html_theme = "furo"
html_title = "vegasmodel"
html_math_renderer = "mathml"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_theme_options = {"top_of_page_buttons": []}

suppress_warnings = ["ref.python"]  # a `Flow` of a model beside that of a scenario

BLOCK = re.compile(r"^ +\S")  # a line that is indented
BAR = re.compile(r"(``[^`]+``)|\|")  # a code in backquotes, or a bar, which Sphinx takes for markup
LITERAL = re.compile(r"(``[^`]+``)(\w?)")  # a code, and a letter right behind it
ALIAS = "Alias for field number"  # Python's own docstring of a field of a named tuple


def as_printed(lines: list[str]) -> list[str]:
    """The lines of a docstring, changed so that Sphinx shows the text as we have written it.

    Sphinx would join the lines of an indented block, which is mostly an equation. So the line
    ``::`` is put before the block, unless the block belongs to an item of a list, or the line above
    it ends with ``::`` already. Sphinx reads some characters as markup, so backslashes are put
    before bars, and between a code in backquotes and a letter right behind it.
    """
    shown: list[str] = []
    lines = [LITERAL.sub(lambda m: m[1] + (m[2] and "\\ " + m[2]), line) for line in lines]
    lines = [
        line if BLOCK.match(line) else BAR.sub(lambda found: found[1] or r"\|", line)
        for line in lines
    ]
    for i, line in enumerate(lines):
        before = lines[i - 1] if i else ""
        if BLOCK.match(line) and not before.strip():
            above = next((text for text in reversed(shown) if text.strip()), "")
            inside = BLOCK.match(above) or re.match(r"\s*([*-]|\d+\.) ", above)
            if not inside and not above.endswith("::"):
                shown += ["::", ""]
        elif BLOCK.match(line) and not BLOCK.match(before) and before[:2] not in ("* ", "- "):
            shown[-1:] = [before, "", "::", ""]  # an equation right below its sentence
        shown.append(line)
    return shown


def _docstring(
    _app: Any, _what: str, _name: str, _thing: Any, _opts: Any, lines: list[str]
) -> None:
    """Change the lines of a docstring that Sphinx is about to show (``as_printed``).

    A field of a named tuple gets no text of its own, because the tuple's docstring explains it.
    """
    lines[:] = [] if lines and lines[0].startswith(ALIAS) else as_printed(lines)


def _not_ours(_app: Any, what: str, _name: str, thing: Any, _skip: bool, _opts: Any) -> bool | None:
    """Whether Sphinx leaves out a member of a class; ``None`` leaves the decision to Sphinx.

    Members that a class inherits from a class of Python or of a library are left out. Those that it
    inherits from one of our classes are shown.
    """
    owner = getattr(thing, "__objclass__", None) or getattr(thing, "func", thing)
    outside = not str(getattr(owner, "__module__", "")).startswith("vegasmodel")
    slot = inspect.isgetsetdescriptor(thing) or inspect.ismemberdescriptor(thing)
    part = what in ("class", "exception") and (inspect.isroutine(thing) or slot)
    return True if part and outside else None


def _inline(writer: Any, node: Any) -> None:
    """Write a formula within a line of text as MathML."""
    from docutils import nodes

    writer.body.append(mathml(node.astext()))
    raise nodes.SkipNode


def _block(writer: Any, node: Any) -> None:
    """Write a formula that stands by itself as MathML."""
    from docutils import nodes

    writer.body.append(f'<div class="formula">{mathml(node.astext(), block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Any) -> None:
    """Tell Sphinx, which calls this function, to use the functions above."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    app.connect("autodoc-process-docstring", _docstring)
    app.connect("autodoc-skip-member", _not_ours)
