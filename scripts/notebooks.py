"""Executes every notebook as a newcomer would and writes it as a page to out/notebooks/.

Each runs in a Jupyter kernel of its own, two at a time.  Any error fails, with the cell's
traceback.  A page holds its figures as they stand before a slider is moved, so that it can be
read without Jupyter and without a network.  Beside it lies the executed notebook, from which
`site.py` makes the gallery; the notebooks in notebooks/ are left as they are.

    scripts/notebooks.py [NOTEBOOK.ipynb ...]
"""

from __future__ import annotations

import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import nbformat
from formulas import mathml
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError
from nbclient.output_widget import OutputWidget
from nbconvert import HTMLExporter

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "out" / "notebooks"
LIMIT = 600  # s a cell, and for a kernel to start: the first call of a model compiles it
WIDGET = "application/vnd.jupyter.widget-view+json"
STATE = "application/vnd.jupyter.widget-state+json"
FORMULA = re.compile(r"\$\$(.+?)\$\$|\$(.+?)\$", re.DOTALL)
SLIDERS = ("FloatSliderModel", "IntSliderModel", "DropdownModel", "CheckboxModel")


def main(arguments: list[str]) -> int:
    """Execute all, report each, and count the failures."""
    paths = [Path(a) for a in arguments] or sorted((ROOT / "notebooks").glob("*.ipynb"))
    OUT.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(2) as pool:  # threads: kernels end with the process that began them
        reports = list(pool.map(run, paths))
    for path, (seconds, error) in zip(paths, reports, strict=True):
        print(f"{path.name}: {seconds:.0f} s{', FAILED' if error else ''}")
        if error:
            print(error, file=sys.stderr)
    failed = sum(error is not None for _, error in reports)
    print(f"{len(paths) - failed} of {len(paths)} notebooks ran; pages in {OUT.relative_to(ROOT)}/")
    return int(failed > 0 or not paths)


def run(path: Path) -> tuple[float, str | None]:
    """Execute one notebook and write its page: seconds taken, and what went wrong."""
    began = time.perf_counter()
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=LIMIT,
        startup_timeout=LIMIT,
        resources={"metadata": {"path": OUT}},
        extra_arguments=["--log-level=ERROR", "--HistoryManager.enabled=False"],  # share nothing
    )
    client.widget_registry["@jupyter-widgets/output"]["OutputModel"] = Screen
    try:
        client.execute()
    except (CellExecutionError, CellTimeoutError, RuntimeError) as error:  # last: a dead kernel
        return time.perf_counter() - began, f"{path.name}\n{error}"
    still(notebook)
    nbformat.write(notebook, OUT / path.name)
    set_formulas(notebook)
    page, _ = HTMLExporter().from_notebook_node(notebook, {"metadata": {"name": path.stem}})
    (OUT / f"{path.stem}.html").write_text(page, encoding="utf-8")
    return time.perf_counter() - began, None


def set_formulas(notebook: Any) -> None:
    """Each formula of the text, and of what cells show as text, by `typeset`."""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = FORMULA.sub(typeset, cell.source)
        for output in cell.get("outputs", []):
            if "text/markdown" in output.get("data", {}):
                output.data["text/markdown"] = FORMULA.sub(typeset, output.data["text/markdown"])


def typeset(found: re.Match[str]) -> str:
    """A formula as MathML: block or inline."""
    shown, within = found.groups()
    return mathml(shown or within, block=bool(shown))


class Screen(OutputWidget):
    """What a widget shows.  The kernel is not told: no notebook here asks.

    nbclient tells it on the socket on which it awaits the cell's reply.  The send takes the
    wake-up of a reply that is already there, and both wait for ever (nbclient, issue 312).
    """

    def sync_state(self) -> None:
        """Send nothing."""


def still(notebook: Any) -> None:
    """Each widget as its sliders' values and what it shows: a page has no kernel to ask."""
    widgets = notebook.metadata.pop("widgets", {}).get(STATE, {}).get("state", {})
    for cell in notebook.cells:
        shown: list[Any] = []
        for output in cell.get("outputs", []):
            view = output.get("data", {}).get(WIDGET)
            shown += [output] if view is None else frozen(widgets, view["model_id"])
        if "outputs" in cell:
            cell.outputs = shown


def frozen(widgets: dict[str, Any], identity: str) -> list[Any]:
    """The outputs within a widget, after a line that says where its sliders stand."""
    model = widgets[identity]
    kind, state = model["model_name"], model["state"]
    if kind == "OutputModel":
        return [nbformat.from_dict(output) for output in state["outputs"]]
    children = [child.removeprefix("IPY_MODEL_") for child in state.get("children", [])]
    found = [output for child in children for output in frozen(widgets, child)]
    places = [where(widgets[c]["state"]) for c in children if widgets[c]["model_name"] in SLIDERS]
    if places:
        text = "Sliders, to be moved in Jupyter: " + ", ".join(places)
        found.insert(0, nbformat.v4.new_output("stream", name="stdout", text=text + "\n"))
    return found


def where(state: dict[str, Any]) -> str:
    """A slider's name and value."""
    if "index" in state:
        return f"{state['description']} = {state['_options_labels'][state['index']]}"
    return f"{state['description']} = {state['value']:g}"


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
