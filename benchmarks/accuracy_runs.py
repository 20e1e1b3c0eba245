"""Reads stored runs of ns-2 for ``benchmarks.accuracy``, and makes those that are not stored yet.

They are runs of the random networks of ``accuracy_cases``.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.accuracy_cases import CASES, FAMILIES, SEED, case

FOLDER = Path(__file__).parent / "reference"


def _store(seed: int) -> Path:
    """The file that holds the runs of the cases drawn with ``seed``."""
    return FOLDER / ("accuracy.json" if seed == SEED else f"accuracy-{seed}.json")


def load(seed: int) -> dict[str, Any]:
    """The stored runs of a seed's cases, by keys such as ``pair/3``; empty if there are none."""
    return json.loads(_store(seed).read_text()) if _store(seed).exists() else {}


def _keep(stored: dict[str, Any], seed: int) -> None:
    """Write the runs of a seed's cases to their file, one case a line."""
    lines = [f"{json.dumps(k)}: {json.dumps(stored[k])}" for k in sorted(stored)]
    _store(seed).write_text("{\n" + ",\n".join(lines) + "\n}\n")


def spread_of(runs: np.ndarray) -> float:
    """The largest coefficient of variation of a flow's throughput, over the runs [runs, flows]."""
    mean = runs.mean(axis=0)
    return float(np.max(runs.std(axis=0, ddof=1) / np.maximum(mean, 1e-9)))


def measure(
    *, refine: bool, processes: int = 2, seed: int = SEED, families: Sequence[str] = tuple(FAMILIES)
) -> None:
    """Run ns-2 for the cases that are not stored, 5 times each, and store the results.

    ``seed`` drew the cases of the ``families``.  ``processes`` runs go on at the same time.

    With ``refine``, stored cases whose 5 runs differ much are run 20 times.  So are all cases with
    RED: in some networks Vegas measures a far too small baseRTT in about half of the runs.  By
    chance, all of five runs may be of one kind.
    """
    from vegasmodel.packets import ns2

    stored = load(seed)
    for family in families:
        for index in range(CASES):
            scenario, key = case(family, index, seed), f"{family}/{index}"
            known = stored.get(key)
            runs = 5
            if known and known["fingerprint"] == scenario.fingerprint():
                uncertain = spread_of(np.array(known["runs"])) > 0.02 or family == "red"
                too_few = len(known["runs"]) < 20 and uncertain
                if not (refine and too_few):
                    continue
                runs = 20
            many = scenario.replace({"run.runs": runs})
            out = ns2.run(many, processes=processes, rtts=family == "arrivals")
            base = None if out.base_rtt is None else np.round(out.base_rtt, 6).tolist()
            stored[key] = {
                "fingerprint": scenario.fingerprint(),
                "ns": out.extra["version"],
                "runs": np.round(out.extra["throughput_runs"], 4).tolist(),
                "base": base,
            }
            _keep(stored, seed)
            print(key, "measured", flush=True)
