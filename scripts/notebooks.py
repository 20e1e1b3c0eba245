"""Executes every notebook and writes it as a page to out/notebooks/.

    scripts/notebooks.py [NOTEBOOK.ipynb ...]

Each notebook runs in a Jupyter kernel of its own, two at a time.  An error in a cell makes the
script fail and print the cell's traceback.  A page contains the figures as they are before a slider
is moved, so it can be read without Jupyter and without a network.  The executed notebook is stored
beside the page, and `site.py` makes the gallery from it.  The files in notebooks/ do not change.
"""

import os
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
    """Execute all notebooks, print a line for each, and return 1 if one fails."""
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
    """Execute one notebook and write its page; return the seconds taken and the error, if any."""
    began = time.perf_counter()
    notebook = nbformat.read(path, as_version=4)
    os.environ["VEGASMODEL_PROGRESS"] = "no"  # a page shows no line that comes and goes
    client = NotebookClient(
        notebook,
        timeout=LIMIT,
        startup_timeout=LIMIT,
        resources={"metadata": {"path": OUT}},
        extra_arguments=["--log-level=ERROR", "--HistoryManager.enabled=False"],  # share nothing
    )
    client.widget_registry["@jupyter-widgets/output"]["OutputModel"] = SilentOutput
    try:
        client.execute()
    except (CellExecutionError, CellTimeoutError, RuntimeError) as error:  # last: a dead kernel
        return time.perf_counter() - began, f"{path.name}\n{error}"
    replace_widgets(notebook)
    nbformat.write(notebook, OUT / path.name)
    set_formulas(notebook)
    page, _ = HTMLExporter().from_notebook_node(notebook, {"metadata": {"name": path.stem}})
    (OUT / f"{path.stem}.html").write_text(page, encoding="utf-8")
    return time.perf_counter() - began, None


def set_formulas(notebook: Any) -> None:
    """Replace each formula, in the notebook's text and in cells' Markdown output, by MathML."""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = FORMULA.sub(typeset, cell.source)
        for output in cell.get("outputs", []):
            if "text/markdown" in output.get("data", {}):
                output.data["text/markdown"] = FORMULA.sub(typeset, output.data["text/markdown"])


def typeset(found: re.Match[str]) -> str:
    """The formula that was found, as displayed or inline MathML."""
    shown, within = found.groups()
    return mathml(shown or within, block=bool(shown))


class SilentOutput(OutputWidget):
    """An output widget that does not send its state to the kernel; no notebook here needs that.

    nbclient sends it on the socket on which it waits for the cell's reply.  If the reply is already
    there, the sending consumes its wake-up, and both sides wait forever (nbclient, issue 312).
    """

    def sync_state(self) -> None:
        """Send nothing."""


def replace_widgets(notebook: Any) -> None:
    """Replace each widget by its sliders' values and its output, because a page has no kernel."""
    widgets = notebook.metadata.pop("widgets", {}).get(STATE, {}).get("state", {})
    for cell in notebook.cells:
        shown: list[Any] = []
        for output in cell.get("outputs", []):
            view = output.get("data", {}).get(WIDGET)
            shown += [output] if view is None else values_and_outputs(widgets, view["model_id"])
        if "outputs" in cell:
            cell.outputs = shown


def values_and_outputs(widgets: dict[str, Any], identity: str) -> list[Any]:
    """A line with the values of a widget's sliders, followed by the outputs inside the widget.

    ``widgets`` has the state of each widget of the notebook, by its identity.
    """
    model = widgets[identity]
    kind, state = model["model_name"], model["state"]
    if kind == "OutputModel":
        return [nbformat.from_dict(output) for output in state["outputs"]]
    children = [child.removeprefix("IPY_MODEL_") for child in state.get("children", [])]
    found = [output for child in children for output in values_and_outputs(widgets, child)]
    sliders = [widgets[c]["state"] for c in children if widgets[c]["model_name"] in SLIDERS]
    if sliders:
        text = "Sliders, to be moved in Jupyter: " + ", ".join(map(slider_value, sliders))
        found.insert(0, nbformat.v4.new_output("stream", name="stdout", text=text + "\n"))
    return found


def slider_value(state: dict[str, Any]) -> str:
    """A slider's name and value, such as ``alpha = 3``."""
    if "index" in state:
        return f"{state['description']} = {state['_options_labels'][state['index']]}"
    return f"{state['description']} = {state['value']:g}"


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
