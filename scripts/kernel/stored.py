"""Stores the measurements of ``debian.py``, and compares stored ones with the simulator ``rounds``.

    .venv/bin/python scripts/kernel/stored.py store RESULTS FILE.toml [--each link.0.buffer=...]
    .venv/bin/python scripts/kernel/stored.py table
    .venv/bin/python scripts/kernel/stored.py arrivals

``store`` adds the runs in the folder RESULTS to the package. ``table`` compares the shares of the
first flow, ``arrivals`` the rates of Vegas flows that start one after another.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import Any, NamedTuple

import debian
import numpy as np
from jittered import FAMILIES

from vegasmodel import packets
from vegasmodel.fields.errors import FieldError
from vegasmodel.metrics import standard_error
from vegasmodel.packets import measured, reference
from vegasmodel.predictor import predict
from vegasmodel.results.prediction import Prediction
from vegasmodel.scenario import Scenario

LINUX = reference.FOLDER / "linux"
GOAL = 0.05  # goal for the error of a share
# how the names of scenarios begin: Vegas sources that start one after another; those of jittered.py
ARRIVALS = "vegas_arrivals"
HOSTS = tuple(f"{family} " for family in FAMILIES)
# the fields of a ``Prediction`` of which the mean over the runs is stored
MEANS = ("throughput", "base_rtt", "rtt_mean", "loss_rate", "retransmits")


def mean(scenario: Scenario, results: Path) -> tuple[Prediction, str]:
    """The means over the scenario's runs, and a text on the kernel that ran them."""
    names = [f"{scenario.fingerprint()}.{k}" for k in range(scenario.run.times)]
    counted = [json.loads((results / f"{name}.counted").read_text()) for name in names]
    logs = [packets.read(results / f"{name}.log") for name in names]
    runs = [measured.to_prediction(trace, scenario) for trace in logs]
    figures: dict[str, Any] = {
        key: np.mean([getattr(run, key) for run in runs], axis=0)
        for key in MEANS
        if getattr(runs[0], key) is not None
    }
    rates = np.array([run.throughput for run in runs])
    if len(runs) > 1:
        figures["throughput_se"] = standard_error(rates)
    kernels = {
        f"{one['kernel']}, link by {one['link']}, delays by {one['delay']}" for one in counted
    }
    made = f"{'; '.join(sorted(kernels))}; {debian.PACKAGE} {debian.VERSION} by scripts/kernel"
    return Prediction("linux", scenario, **figures), made


def store(results: Path, tables: list[dict[str, Any]]) -> None:
    """Write a file for each scenario to the package's reference runs."""
    for table in tables:
        figures, kernel = mean(Scenario.from_dict(table), results)
        path = reference.store(table, "linux", kernel, figures, LINUX)
        print(f"{path.name}  {table['name']}, buffer {table['link'][0]['buffer']}")


class Row(NamedTuple):
    """The first flow's share of the throughput in a scenario, by the kernel and by ``rounds``."""

    name: str  # of the scenario
    buffer: float  # packets
    measured: float  # the share by the kernel
    se: float  # standard error of ``measured``; 0 if there was one run
    by_model: float  # the share by ``rounds``
    ratio_error: float  # error of ln(throughput of the first flow / that of all others)
    resent: np.ndarray  # [flow] packets that the kernel sent again, 1/s


def show() -> None:
    """Print the first flow's share by the kernel and by ``rounds``, for each stored scenario.

    Scenarios in which Vegas flows arrive one after another are left out, and those of
    ``jittered.py``.
    """
    rows = []
    for scenario in reference.stored(LINUX):
        if scenario.name.startswith(ARRIVALS) or scenario.name.startswith(HOSTS):
            continue  # benchmarks/accuracy_kernel.py has those of jittered.py
        found, model = reference.lookup(scenario), predict(scenario, model="rounds")
        if found is None or found.throughput is None or model.throughput is None:
            continue
        total, se = found.throughput.sum(), found.throughput_se
        share, share_se = found.throughput[0] / total, 0.0 if se is None else se[0] / total
        by_model = model.throughput[0] / model.throughput.sum()
        ratio_error = math.log(by_model / (1.0 - by_model) * (1.0 - share) / share)
        resent = np.nan_to_num(found.retransmits) / (scenario.run.duration - scenario.run.warmup)
        buffer = scenario.links[0].buffer
        rows.append(
            Row(
                name=scenario.name,
                buffer=buffer,
                measured=share,
                se=share_se,
                by_model=by_model,
                ratio_error=ratio_error,
                resent=resent,
            )
        )
    print("scenario                buffer  share measured   rounds  ln ratio error  resent 1/s")
    for row in sorted(rows, key=lambda row: (row.name, row.buffer)):
        print(
            f"{row.name:24}{row.buffer:5g}   {row.measured:.3f} +- {row.se:.3f}   "
            f"{row.by_model:.3f}  {row.ratio_error:+.2f}            "
            f"{' '.join(f'{x:.2f}' for x in row.resent)}"
        )
    errors = np.abs([row.ratio_error for row in rows])
    print(f"mean |ln ratio error| {errors.mean():.3f}, largest {errors.max():.3f}")
    single = [row for row in rows if row.se == 0.0]  # the scenarios with one run
    for drawn, what in ((False, "runs with fixed start times"), (True, "drawn runs")):
        off = np.array(
            [
                abs(row.by_model - row.measured)
                for row in single
                if row.name.startswith("drawn") is drawn
            ]
        )
        print(
            f"error of the share in {off.size} {what}: mean {off.mean():.3f}, median "
            f"{np.median(off):.4f}, beyond 0.05 {np.sum(off > GOAL)}, largest {off.max():.3f}"
        )


def arrivals() -> None:
    """Print a table of Vegas flows that arrive in turn: rates by the kernel and by ``rounds``."""
    print("| flows | | throughput in order of arrival, pkt/s |")
    print("| ---: | --- | --- |")
    largest, largest_base = 0.0, 0.0  # differences of rates and of baseRTTs
    for scenario in sorted(reference.stored(LINUX), key=lambda s: len(s.members)):
        found, model = reference.lookup(scenario), predict(scenario, model="rounds")
        if not scenario.name.startswith(ARRIVALS) or found is None:
            continue
        for who, one in (("kernel", found), ("rounds", model)):
            rates = " ".join(f"{x:.1f}" for x in np.asarray(one.throughput))
            print(f"| {len(scenario.members) if one is found else ''} | {who} | {rates} |")
        apart = np.asarray(model.throughput) - np.asarray(found.throughput)
        apart_base = np.asarray(model.base_rtt) - np.asarray(found.base_rtt)
        largest = max(largest, np.abs(apart).max())
        largest_base = max(largest_base, np.abs(apart_base).max())
    print(f"\nlargest difference {largest:.2f} pkt/s; of a baseRTT {1e3 * largest_base:.1f} ms")


def main() -> int:
    """Run the command; the exit status is 2, with one line of error, for bad input."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    keeper = commands.add_parser("store")
    keeper.add_argument("results", type=Path)
    keeper.add_argument("files", nargs="+", type=Path)
    keeper.add_argument("--each", help="the key and its values, as given to debian.py run")
    commands.add_parser("table")
    commands.add_parser("arrivals")
    options = parser.parse_args()
    try:
        if options.command == "store":
            store(options.results, reference.tables(options.files, options.each))
        elif options.command == "table":
            show()
        else:
            arrivals()
    except (FieldError, OSError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
