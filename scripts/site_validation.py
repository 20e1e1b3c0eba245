"""Makes the page on validation: every model beside every stored run of ns-2 and the Linux kernel.

Answers are cached in out/validation.json until a source file of the package or a stored run
changes.
"""

import hashlib
import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import vegasmodel as vm
from vegasmodel.packets import reference

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / "out" / "validation.json"
ENGINES = {"ns2": "ns-2", "linux": "the Linux kernel"}
HEAD = """# How near the models come

The package has stored measurements of many scenarios.  This page compares every model with each of
them.  The error of a prediction is the root mean square error over the flows' throughputs, divided
by the mean throughput (NRMSE).  If an assumption of the model does not hold in a scenario, the
prediction says so; such predictions have columns of their own.  `bands` predicts a range for each
throughput, of which the middle is compared.

`make docs` computes this page anew.  We knew most of these scenarios while we built the models.
[Accuracy in random networks](accuracy.md) has the errors of the simulators in networks that nobody
had seen.
"""


class Case(NamedTuple):
    """A model's prediction for a measured scenario, and its error.

    ``error`` is the NRMSE of the throughputs: the root mean square error over their mean.
    ``broken`` has the names of the model's assumptions that do not hold.
    """

    engine: str
    run: str  # the stored run's name: scenarios may share theirs
    scenario: str
    flows: int
    model: str
    error: float
    broken: tuple[str, ...]


def page() -> tuple[str, dict[str, bytes]]:
    """The page in Markdown, and its pictures by name."""
    found, measured = cases()
    text = [HEAD]
    pictures = {}
    for engine, name in ENGINES.items():
        of_engine = [case for case in found if case.engine == engine]
        text.append(f"## Beside {name}: {measured[engine]} scenarios\n")
        text.append(table(of_engine, measured[engine]))
        pictures[f"validation-{engine}.png"] = picture(of_engine, f"Errors beside {name}")
        text.append(f"\n![Errors of each model; each dot is a scenario](validation-{engine}.png)\n")
    text.append("## Each scenario beside ns-2\n")
    text.append(
        "The errors of the best closed form, of `fluid` and of `rounds`.  In brackets: the first "
        "characters of the name of the stored run in `vegasmodel/packets/reference/`.\n"
    )
    text.append(each([case for case in found if case.engine == "ns2"]))
    return "\n".join(text), pictures


def table(found: Iterable[Case], measured: int) -> str:
    """A table with a row for each model.

    Half of the columns are for the scenarios in which all of the model's assumptions hold, half for
    the others. ``measured`` is the number of all scenarios.
    """
    rows = [
        "| model | answered | assumptions hold | mean error | largest | one does not | mean error "
        "| largest |",
        "| --- " + "| ---: " * 7 + "|",
    ]
    by_model: dict[str, list[Case]] = {}
    for case in found:
        by_model.setdefault(case.model, []).append(case)
    order = [name for name in vm.MODELS if name in by_model]
    for name in order:
        whole = [case.error for case in by_model[name] if not case.broken]
        broken = [case.error for case in by_model[name] if case.broken]
        cells = (*figures(whole), *figures(broken))
        answered = f"{len(by_model[name])} of {measured}"
        rows.append(f"| `{name}` | {answered} | {' | '.join(cells)} |")
    return "\n".join(rows)


def figures(errors: list[float]) -> tuple[str, str, str]:
    """Texts for a table: the number of errors, their mean and the largest."""
    if not errors:
        return "0", "", ""
    return str(len(errors)), f"{100 * np.mean(errors):.1f} %", f"{100 * max(errors):.1f} %"


def each(found: Iterable[Case]) -> str:
    """A table with a row for each scenario."""
    by_scenario: dict[str, list[Case]] = {}
    for case in found:
        by_scenario.setdefault(f"{case.scenario} {case.run}", []).append(case)
    rows = [
        "| scenario | flows | closed form | | fluid | rounds |",
        "| --- | ---: | --- " + "| ---: " * 3 + "|",
    ]
    for _, answers in sorted(by_scenario.items()):
        simulated = {case.model: f"{100 * case.error:.1f} %" for case in answers}
        closed = [case for case in answers if case.model not in ("fluid", "rounds")]
        best = min(closed, key=lambda case: case.error, default=None)
        cells = [f"`{best.model}`", f"{100 * best.error:.1f} %"] if best else ["", ""]
        cells += [simulated.get(model, "") for model in ("fluid", "rounds")]
        name = f"{answers[0].scenario} (`{answers[0].run[:6]}`)"
        rows.append(f"| {name} | {answers[0].flows} | {' | '.join(cells)} |")
    return "\n".join(rows)


def picture(found: Iterable[Case], title: str) -> bytes:
    """A picture with a dot for each scenario and a bar at each model's mean error."""
    errors: dict[str, list[float]] = {}
    for case in found:
        errors.setdefault(case.model, []).append(case.error)
    data = io.BytesIO()
    vm.plots.model_errors(errors, title=title).savefig(data, format="png", dpi=110)
    return data.getvalue()


def cases() -> tuple[list[Case], dict[str, int]]:
    """Every model's answer to every stored measurement, and the number of measurements."""
    key = digest()
    if CACHE.exists():
        kept = json.loads(CACHE.read_text(encoding="utf-8"))
        if kept["key"] == key:
            return [Case(*row[:6], tuple(row[6])) for row in kept["cases"]], kept["measured"]
    found, measured = [], dict.fromkeys(ENGINES, 0)
    for path in stored():
        scenario = vm.Scenario.from_dict(json.loads(path.read_text(encoding="utf-8"))["scenario"])
        run: Any = reference.lookup(scenario)
        measured[run.model] += 1
        for answer in vm.predict_all(scenario, vm.MODELS):
            if answer.applicable and answer.throughput is not None:
                error = float(vm.metrics.nrmse(answer.throughput, run.throughput))
                broken = tuple(a.name for a in answer.assumptions if a.holds is False)
                size = len(scenario.members)
                about = (run.model, path.stem, scenario.name, size)
                found.append(Case(*about, answer.model, error, broken))
    CACHE.parent.mkdir(exist_ok=True)
    CACHE.write_text(json.dumps({"key": key, "cases": found, "measured": measured}), "utf-8")
    return found, measured


def stored() -> list[Path]:
    """The files of the stored runs."""
    return sorted(reference.FOLDER.glob("*.json")) + sorted(
        (reference.FOLDER / "linux").glob("*.json")
    )


def digest() -> str:
    """A hash of the package's sources and of the stored runs."""
    sources = sorted(Path(vm.__file__).parent.rglob("*.py"))
    content = hashlib.sha256()
    for path in [*sources, Path(__file__), *stored()]:
        content.update(path.name.encode() + path.read_bytes())
    return content.hexdigest()
