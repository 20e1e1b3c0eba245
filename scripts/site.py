"""Builds the documentation site in out/site/: pages of docs/, and pages generated from the code.

    scripts/site.py [--quick]

The generated pages are the commands (from ``--help``), the models (from ``vegasmodel explain``),
the Python reference (from docstrings), the gallery (from executed notebooks), and the models'
errors against stored measurements.  A notebook whose executed copy in out/notebooks/ is missing or
older is executed first.  ``--quick`` omits the errors and notebooks that are not executed yet.  The
site loads nothing from other servers.  The build fails on any warning of Sphinx.
"""

import argparse
import importlib
import inspect
import pkgutil
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import click
import nbformat
from nbconvert import MarkdownExporter

import vegasmodel as vm
from vegasmodel.command_line.commands import app
from vegasmodel.report.explanations import EXPLANATIONS

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "out" / "site-source"
SITE = ROOT / "out" / "site"
EXECUTED = ROOT / "out" / "notebooks"
# a page of docs/ that a text names, which becomes a link
PAGES = re.compile(r"`docs/([\w/-]+)\.md`")


def main() -> int:
    """Assemble the sources, then let Sphinx build them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="omit what takes long")
    quick = parser.parse_args().quick
    shutil.rmtree(SOURCE, ignore_errors=True)
    shutil.copytree(ROOT / "docs", SOURCE)
    for page in SOURCE.rglob("*.md"):
        page.write_text(linked(page), encoding="utf-8")
    write("reference/commands.md", commands())
    write("reference/models.md", models())
    for name, text in python_pages():
        write(f"reference/{name}", text)
    gallery(quick)
    write("validation.md", validation(quick))
    options = ["-W", "--keep-going", "-q", "-E", "-b", "html", "-d", ROOT / "out" / "site-trees"]
    done = subprocess.run([sys.executable, "-m", "sphinx", *options, SOURCE, SITE], check=False)
    if done.returncode == 0:
        pages = sum(1 for _ in SITE.rglob("*.html"))
        print(
            f"{pages} pages in {SITE.relative_to(ROOT)}/; open {SITE.relative_to(ROOT)}/index.html"
        )
    return done.returncode


def write(name: str, text: str) -> None:
    """Write a page to the folder of Sphinx's sources."""
    path = SOURCE / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def linked(page: Path) -> str:
    """The page's text, in which each path of another page of docs/ becomes a link to that page."""
    up = "../" * (len(page.relative_to(SOURCE).parts) - 1)

    def link(found: re.Match[str]) -> str:
        """A link to the page that the match names; if there is none, its own text."""
        name = found[1]
        known = (ROOT / "docs" / f"{name}.md").exists()
        return f"[`{name}`]({up}{name}.md)" if known else found[0]

    return PAGES.sub(link, page.read_text(encoding="utf-8"))


def commands() -> str:
    """The page of all commands and options, with the text of ``--help``."""
    names = sorted(app.commands)
    rows = [
        f"| [`{name}`](#vegasmodel-{name}) | {app.commands[name].get_short_help_str(80)} |"
        for name in names
    ]
    index = "\n".join(["| command | |", "| --- | --- |", *rows])
    with click.Context(app, info_name="vegasmodel", **app.context_settings) as above:
        return "\n\n".join(["# Commands", index, *(command(above, name) for name in names)])


def command(above: click.Context, name: str) -> str:
    """The section of one command: what it does, an example, and its options."""
    one = app.commands[name]
    context = click.Context(one, above, name)
    shown = context.make_formatter()
    one.format_usage(context, shown)
    one.format_options(context, shown)
    said, _, example = inspect.cleandoc(one.help or "").partition("Example: ")
    line = "$ " + " ".join(example.split())
    options = shown.getvalue().strip()
    head = f"## `vegasmodel {name}`\n\n{said}"
    return f"{head}```console\n{line}\n```\n\n```text\n{options}\n```"


def models() -> str:
    """The page of all models: equations, assumptions, source and accuracy."""
    parts = [
        "# Models\n\nThis page has what `vegasmodel explain MODEL` prints about each model.  If an "
        "assumption does not hold in a scenario, the model's prediction names it.  [The models and "
        "their equations](../models.md) explains the equations.\n"
    ]
    for name, known in EXPLANATIONS.items():
        parts.append(f"## `{name}`\n\n{known.title[0].upper()}{known.title[1:]}.\n")
        parts.append("```text\n" + "\n".join(known.equations) + "\n```\n")
        parts.append("| assumption | meaning |\n| --- | --- |")
        parts += [f"| `{key}` | {said} |" for key, said in known.hypotheses.items()]
        parts.append(f"\nSource: {known.source}.  Accuracy: {known.accuracy}.\n")
    return "\n".join(parts)


def python_pages() -> Iterator[tuple[str, str]]:
    """One page for each public package with its modules, and a page that lists them."""
    packages = [vm] + [
        importlib.import_module(info.name)
        for info in pkgutil.walk_packages(vm.__path__, "vegasmodel.")
        if info.ispkg
    ]
    packages = [package for package in packages if dir(package)]
    rows = []
    for package in packages:
        said = (package.__doc__ or "").split("\n")[0]
        rows.append(f"| [`{package.__name__}`](python/{package.__name__}.rst) | {said} |")
        yield f"python/{package.__name__}.rst", python_page(package)
    tree = "\n".join(f"python/{package.__name__}" for package in packages)
    yield (
        "python.md",
        "# Python\n\nThe public names of each package, from their docstrings.\n\n"
        "| package | |\n| --- | --- |\n"
        + "\n".join(rows)
        + "\n\n```{toctree}\n:hidden:\n\n"
        + tree
        + "\n```\n",
    )


def python_page(package: ModuleType) -> str:
    """The page of one package: its own names, then those of its public modules."""
    name = package.__name__
    parts = [name, "=" * len(name), "", f".. automodule:: {name}", "   :members:"]
    if package is not vm:
        again = [n for n in dir(package) if getattr(package, n) is getattr(vm, n, None)]
        parts += [f"   :exclude-members: {', '.join(again)}", ""] if again else [""]
        names = ", ".join(f"`vegasmodel.{n}`" for n in again)
        parts += [f"Shown at the top of the package: {names}.", ""] if again else []
    else:
        parts.append("")
    for inner in dir(package):
        module = getattr(package, inner)
        if isinstance(module, ModuleType) and not hasattr(module, "__path__"):
            title = f"{name}.{inner}"
            parts += [title, "-" * len(title), "", f".. automodule:: {title}", "   :members:"]
            again = [n for n in getattr(module, "__all__", ()) if shown_before(module, n)]
            parts += [f"   :exclude-members: {', '.join(again)}", ""] if again else [""]
    return "\n".join(parts)


def shown_before(module: ModuleType, name: str) -> bool:
    """Whether a name of a module is of another module, and is shown at the top of the package."""
    what = getattr(module, name)
    return what is getattr(vm, name, None) and what.__module__ != module.__name__


def gallery(quick: bool) -> None:
    """Write each executed notebook as a page, and an overview page with a picture of each."""
    notebooks = sorted((ROOT / "notebooks").glob("*.ipynb"))
    stale = [path for path in notebooks if not fresh(path)]
    if stale and not quick:
        subprocess.run([sys.executable, ROOT / "scripts" / "notebooks.py", *stale], check=True)
    rows, names = [], []
    for path in notebooks:
        executed = (EXECUTED / path.name).exists()
        text, picture = notebook_page(path) if executed else (f"# {path.stem}\n", "")
        write(f"gallery/{path.stem}.md", text)
        names.append(path.stem)
        title = text.partition("# ")[2].partition("\n")[0]
        question = re.search(r"^\*\*(.*?)\*\*", text, re.MULTILINE | re.DOTALL)
        rows.append(f"## [{title}]({path.stem}.md)\n\n{question[1] if question else ''}\n")
        rows.append(f"![{title}]({picture})\n" if picture else "")
    tree = "\n".join(names)
    write(
        "gallery/index.md",
        "# Notebooks\n\nEach notebook explains one subject, with pictures, a comparison with a "
        "packet simulator, and exercises with solutions.  These pages show the executed notebooks. "
        " To move their sliders, run `make notebooks` once, then `.venv/bin/jupyter lab "
        "notebooks`.\n\n" + "\n".join(rows) + "\n```{toctree}\n:hidden:\n\n" + tree + "\n```\n",
    )


def fresh(path: Path) -> bool:
    """Whether there is an executed copy that is at least as new as the notebook."""
    copy = EXECUTED / path.name
    return copy.exists() and copy.stat().st_mtime >= path.stat().st_mtime


def notebook_page(path: Path) -> tuple[str, str]:
    """An executed notebook as Markdown, and its first picture's name; also writes the pictures."""
    notebook = nbformat.read(EXECUTED / path.name, as_version=4)
    text, resources = MarkdownExporter().from_notebook_node(notebook)
    for name, data in resources["outputs"].items():
        unique = f"{path.stem}-{name}"
        (SOURCE / "gallery").mkdir(exist_ok=True)
        (SOURCE / "gallery" / unique).write_bytes(data)
        text = text.replace(f"({name})", f"({unique})")
    text = re.sub(r"```python\n", "```{code-block} python\n", text)
    text = re.sub(r"<style.*?</style>", "", text, flags=re.DOTALL)
    found = re.search(r"!\[[^]]*\]\(([^)]+\.png)\)", text)
    return text, found[1] if found else ""


def validation(quick: bool) -> str:
    """The page of the models' errors against stored measurements."""
    if quick:
        return "# How near the models come\n\nLeft out of this quick build.\n"
    from site_validation import page

    text, pictures = page()
    for name, data in pictures.items():
        (SOURCE / name).write_bytes(data)
    return text


if __name__ == "__main__":
    raise SystemExit(main())
