"""Stored predictions of ``rounds`` on Web traffic: ``python -m paper_checks.web [--check]``.

Web traffic consists of short flows that arrive at random.  Scenarios with it take the simulator
``rounds`` longer than the others of the paper ``podlesny``.  So its predictions are stored
(``web.json``), with a hash of the source code of ``rounds``.  After a change of ``rounds`` the old
predictions are still shown, with a remark, until this command makes them again.  A change of
comments or docstrings does not count.  ``--check`` exits with 1 if the predictions are from an
earlier version.
"""

import argparse
import concurrent.futures
import json
import multiprocessing
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from paper_checks.code_hash import code_hash
from vegasmodel import engines, laws, queues, stacks
from vegasmodel.engines import rounds
from vegasmodel.predictor import predict
from vegasmodel.results.assumption import Assumption
from vegasmodel.results.prediction import Prediction
from vegasmodel.scenario import Scenario
from vegasmodel.support.files import atomic_write

__all__ = ["FILE", "current", "store", "stored"]

FILE = Path(__file__).with_name("web.json")
RESULTS = ("throughput", "loss_rate", "utilization_links", "queue_mean")  # those that are stored
OLDER = "stored answer of an earlier version of the model: python -m paper_checks.web"
ABSENT = "Web traffic takes long, and no answer is stored: python -m paper_checks.web"


@cache
def version() -> str:
    """A hash of the code of ``rounds``, and of the laws, stacks and queues that it runs."""
    folders = [Path(package.__path__[0]) for package in (engines, rounds, laws, stacks, queues)]
    return code_hash(path for folder in folders for path in sorted(folder.glob("*.py")))


@cache
def _file() -> dict[str, Any]:
    """The content of ``FILE``: predictions, and the version of ``rounds`` that computed them."""
    found: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def current() -> bool:
    """Whether the stored predictions come from the present version of ``rounds``."""
    return bool(_file()["version"] == version())


def stored(scenario: Scenario) -> Prediction:
    """The stored prediction of ``rounds`` for ``scenario``.

    If none is stored, the result says that ``rounds`` is not applicable, and why.  If the
    prediction is by an earlier version of ``rounds``, its ``reason`` says so.
    """
    entry = _file()["answers"].get(scenario.fingerprint())
    if entry is None:
        return Prediction.not_applicable("rounds", scenario, ABSENT)
    results: dict[str, Any] = {key: np.array(entry[key], dtype=np.float64) for key in RESULTS}
    assumptions = tuple(Assumption(name, holds) for name, holds in entry["assumptions"])
    reason = None if current() else OLDER
    return Prediction("rounds", scenario, reason=reason, assumptions=assumptions, **results)


def _computed(scenario: Scenario) -> dict[str, Any]:
    """The prediction of ``rounds`` as an entry of the file.

    To save time it is of a single run, since the scenarios have many flows.
    """
    found = predict(scenario.replace({"run.runs": 1}), "rounds")
    results: dict[str, Any] = {key: _digits(getattr(found, key)) for key in RESULTS}
    assumptions = [(a.name, a.holds) for a in found.assumptions]
    return {"name": scenario.name, "assumptions": assumptions} | results


def _digits(values: Any) -> list[float]:
    """The values with six digits for the file."""
    return [float(f"{v:.6g}") for v in np.asarray(values)]


def store(scenarios: Sequence[Scenario], processes: int = 2) -> None:
    """Compute the predictions for ``scenarios`` in parallel processes, and write the file."""
    before = version()  # a change of the sources while this runs must not pass unnoticed
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(processes, mp_context=context) as pool:
        found = list(pool.map(_computed, scenarios))
    entries = sorted(zip((s.fingerprint() for s in scenarios), found, strict=True))
    lines = ",\n".join(f'"{key}": {json.dumps(entry)}' for key, entry in entries)
    with atomic_write(FILE) as part:
        text = f'{{"version": "{before}", "answers": {{\n{lines}\n}}}}\n'
        part.write_text(text, encoding="utf-8")


def main(arguments: Sequence[str]) -> int:
    """Predict podlesny's scenarios with Web traffic by ``rounds``, and store the predictions.

    With ``--check``, only print whether the stored predictions are from the present version of
    ``rounds``.  The result is the exit status: 1 if ``--check`` finds an earlier version, else 0.
    """
    from paper_checks.runs import Runs
    from paper_checks.scenes import asked

    parser = argparse.ArgumentParser(prog="python -m paper_checks.web", description=__doc__)
    parser.add_argument(
        "--check",
        action="store_true",
        help="only say whether the stored predictions are from the present version of rounds",
    )
    if parser.parse_args(arguments).check:
        sys.stdout.write("current\n" if current() else "of an earlier version\n")
        return int(not current())
    with_web_traffic = [s for s in asked("podlesny", Runs()) if s.random_arrivals]
    store(with_web_traffic)
    sys.stdout.write(f"{len(with_web_traffic)} predictions in {FILE.name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
