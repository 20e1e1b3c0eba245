"""Finds stored results of ns-2 and Linux, so that users need to install neither of them.

The command ``vegasmodel compare`` compares models with a measurement of a scenario. If the user
gives no trace, the measurement is a stored run of exactly this scenario, if there is one.

Each run is one JSON file. Its name is the scenario's ``fingerprint``, a hash of the scenario. The
file holds the scenario as its user wrote it, the version of ns-2 or Linux, the results, and a
checksum (SHA-256). Runs of ns-2 are in the folder ``reference/``. Runs of the Linux kernel,
measured with ``scripts/kernel``, are in ``reference/linux/``. This folder also has a few traces of
the kernel (Parquet files).

This module has two commands of its own. The command ``make`` runs ns-2 and stores the result. Its
option ``--each`` makes one file per value of a field. With ``--runs`` a file has means over several
runs, and their standard errors. The command ``check`` repeats all stored runs of ns-2 and compares
the new throughputs with the stored ones.

    python -m vegasmodel.packets.reference make FILE.toml [--each link.0.buffer=5,10,20] [--runs 5]
    python -m vegasmodel.packets.reference check        # runs ns-2 again and compares
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import json
import math
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vegasmodel.fields import kinds, toml_file
from vegasmodel.fields.errors import FieldError
from vegasmodel.packets import ns2_support
from vegasmodel.packets.trace import Trace, TraceError
from vegasmodel.packets.trace_file import read_parquet, scenario_of
from vegasmodel.results.prediction import Prediction
from vegasmodel.scenario import Scenario
from vegasmodel.scenario.placement import forward_load
from vegasmodel.support.files import atomic_write
from vegasmodel.support.json_numbers import all_finite

__all__ = ["DamagedError", "check", "lookup", "make", "stored"]


class DamagedError(ValueError):
    """Raised if the file of a stored run has a wrong checksum, format version or scenario."""


FOLDER = Path(__file__).parent / "reference"
SCHEMA = 1  # version of the files' format
_FIGURES = (  # the fields of a ``Prediction`` that a file holds
    "throughput",
    "throughput_se",
    "base_rtt",
    "rtt_mean",
    "loss_rate",
    "acks",
    "retransmits",
    "queue_mean",
    "utilization_links",
)


@kinds.checked
def lookup(scenario: Scenario, folder: Path = FOLDER) -> Prediction | None:
    """Find the stored run of exactly this scenario; ``None`` if there is none.

    A stored run is a file with the results of an earlier run. The scenario's name does not matter.
    ``folder`` has the stored runs of ns-2; those of the Linux kernel are in its subfolder
    ``linux``. In the result, ``extra["stored"]`` is the name of the file. If the file has means
    over several runs, the result's ``scenario`` has their number in its field ``run.runs``. Raises
    ``DamagedError`` if the file is damaged.
    """
    begun = time.perf_counter()
    name = f"{scenario.fingerprint()}.json"
    path = next((p for p in (folder / name, folder / "linux" / name) if p.is_file()), None)
    if path is None:
        return None
    record = _read(path)
    figures: dict[str, Any] = {
        key: None if values is None else np.array(values, dtype=np.float64)  # null becomes NaN
        for key, values in record["figures"].items()
    }
    if record["engine"] != "linux":  # a simulator's "acks" are packets acknowledged, not ACKs
        figures["delivered"] = figures["acks"]
        if figures["acks"] is not None:
            # computed again, because older files count retransmissions and ACKs in it, too
            figures["utilization_links"] = forward_load(
                scenario,
                figures["acks"],
                scenario.run.duration - scenario.run.warmup,
                headers=record["engine"] == "ns2",
            )
    extra = {"stored": path.name, "version": record["version"]}
    if "runs" in record:
        scenario = scenario.replace({"run.runs": record["runs"]})
    return Prediction(
        model=record["engine"],
        scenario=scenario,
        assumptions=ns2_support.remarks(scenario) if record["engine"] == "ns2" else (),
        seconds=time.perf_counter() - begun,
        extra=extra,
        **figures,
    )


def traces(scenario: Scenario) -> tuple[list[tuple[str, Trace]], list[str]]:
    """Find the stored traces of the Linux kernel for exactly this scenario.

    Returns two lists. The first has a pair for each trace: the file's name and the trace. The
    second has the names of files that cannot be read; these, too, may hold a trace of the scenario.
    """
    wanted, found, damaged = scenario.fingerprint(), [], []
    for path in sorted((FOLDER / "linux").glob("*.parquet")):
        try:
            if scenario_of(path) == wanted:
                found.append((path.name, read_parquet(path)))
        except TraceError:
            damaged.append(path.name)
    return found, damaged


@kinds.checked
def make(
    table: dict[str, Any],
    folder: Path = FOLDER,
    *,
    runs: int | None = None,
    processes: int = 2,
    scratch: Path | None = None,
) -> Path:
    """Run ns-2 on a scenario and store the result in a file of ``folder``; return the file's path.

    ``table`` is the content of the scenario's TOML file. ``runs`` is the number of runs, 1 by
    default; it must be ``None`` if the scenario states a number of runs itself. ``processes`` and
    ``scratch`` are passed on to ``ns2.run``. An interrupted call leaves no incomplete file. The
    same scenario and the same version of ns-2 always give the same file.
    """
    from vegasmodel.packets import ns2

    scenario = Scenario.from_dict(table)
    if runs is not None:
        if scenario.run.runs is not None:
            raise FieldError(
                "--runs", runs, f"no --runs, because the file has runs = {scenario.run.runs}"
            )
        scenario = scenario.replace({"run.runs": runs})
    measured = ns2.run(scenario, processes=processes, scratch=scratch)
    return store(table, "ns2", measured.extra["version"], measured, folder)


def store(
    table: dict[str, Any], engine: str, version: str, measured: Prediction, folder: Path
) -> Path:
    """Write the results of a run to a file in ``folder``; return the file's path.

    ``table`` is the content of the scenario's TOML file. ``engine`` is what ran the scenario, such
    as ``ns2``, and ``version`` is its version. ``measured`` has the results.
    """
    scenario, runs = Scenario.from_dict(table), measured.scenario.run.runs
    record = {
        "schema": SCHEMA,
        "engine": engine,
        "version": version,
        "scenario": _plain(table),
        **({} if runs == scenario.run.runs else {"runs": runs}),
        "figures": {key: _plain(getattr(measured, key)) for key in _FIGURES},
    }
    record["sha256"] = _digest(record)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{scenario.fingerprint()}.json"
    with atomic_write(path) as part:
        part.write_text(_write(record), encoding="ascii")
    return path


@kinds.checked
def stored(folder: Path = FOLDER) -> list[Scenario]:
    """The scenarios of all runs stored in ``folder`` itself, but not in its subfolders."""
    return [Scenario.from_dict(_read(path)["scenario"]) for path in sorted(folder.glob("*.json"))]


@kinds.checked
def check(scenario: Scenario, folder: Path = FOLDER) -> float:
    """Run ns-2 again on a scenario, and compare the throughputs with those of the stored run.

    Returns the largest change of a flow's throughput, divided by the largest stored throughput.
    Raises ``FieldError`` if there is no stored run of the scenario.
    """
    from vegasmodel.packets import ns2

    old = lookup(scenario, folder)
    new = ns2.run(scenario if old is None else old.scenario)
    if old is None or old.throughput is None or new.throughput is None:
        raise FieldError("scenario", scenario.name, "one with a stored run")
    return float(np.max(np.abs(new.throughput - old.throughput)) / np.max(old.throughput))


def _read(path: Path) -> dict[str, Any]:
    """Read the file of a stored run; raise ``DamagedError`` if it is damaged."""
    try:
        record: dict[str, Any] = json.loads(path.read_text(encoding="ascii"))
    except (ValueError, RecursionError):
        record = {}
    good = isinstance(record, dict) and record.get("schema") == SCHEMA
    if not good or record.get("sha256") != _digest(record):
        raise DamagedError(f"{path.name}: not a stored run, or damaged; make it again")
    fingerprint = Scenario.from_dict(record["scenario"]).fingerprint()
    if fingerprint != path.stem:
        raise DamagedError(
            f"{path.name}: a stored run of another scenario, {fingerprint}; make it again"
        )
    return record


def _digest(record: dict[str, Any]) -> str:
    """The checksum of a stored run: SHA-256 of all entries except the checksum itself."""
    entries = {key: value for key, value in record.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(entries, sort_keys=True).encode()).hexdigest()


def _plain(value: Any) -> Any:
    """Convert a value to JSON data, in which NaN and infinity cannot be written.

    In an array of results, both become null. An infinite number of a scenario becomes ``"inf"``.
    """
    if isinstance(value, np.ndarray):
        return all_finite(value)
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    return "inf" if value == math.inf else value


def _write(record: dict[str, Any]) -> str:
    """The text of a stored run's file: JSON with one top-level key per line.

    So a tool such as ``diff`` shows which keys differ between two versions of the file.
    """
    lines = [f'  "{key}": {json.dumps(record[key], allow_nan=False)}' for key in record]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def variants(table: dict[str, Any], each: str | None) -> Iterator[dict[str, Any]]:
    """Yield copies of a scenario, each with another value of one key.

    ``table`` is the content of the scenario's TOML file. ``each`` states the key and its values.
    For example, ``link.0.buffer=5 pkt,10 pkt`` gives two copies, with a buffer of 5 and of 10
    packets at the first link. A value of digits alone becomes a whole number, any other value stays
    text. If ``each`` is None, ``table`` itself is the only result.

    Raises ``FieldError`` if ``table`` lacks the part that holds the key, such as the first link.
    """
    if each is None:
        yield table
        return
    place, _, values = each.partition("=")
    *outer_keys, last_key = place.split(".")
    for text in values.split(","):
        variant = copy.deepcopy(table)
        node: Any = variant
        try:
            for key in outer_keys:
                node = node[int(key) if isinstance(node, list) else key]
            node[last_key] = int(text) if text.isdigit() else text
        except (KeyError, IndexError, ValueError, TypeError):
            raise FieldError("--each", each, "a place such as link.0.buffer=5 pkt,10 pkt") from None
        yield variant


def tables(files: Sequence[Path], each: str | None) -> list[dict[str, Any]]:
    """Read scenario files; return their contents as dictionaries.

    With ``each``, such as ``link.0.buffer=5 pkt,10 pkt``, there is one dictionary for each file and
    each of these values (see ``variants``).  Raises ``FieldError`` for a file that is not a valid
    scenario.
    """
    found = []
    for file in files:
        table = toml_file.read(file)
        Scenario.from_dict(table)  # raises FieldError for a bad file
        found += list(variants(table, each))
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command ``make`` or ``check`` of ``python -m vegasmodel.packets.reference``.

    The exit status is 1 if ``check`` finds that a throughput has changed by more than 1 % of the
    largest throughput in the stored run.  It is 2 for bad input, or if ns-2 is missing or fails.
    """
    parser = argparse.ArgumentParser(prog="python -m vegasmodel.packets.reference")
    commands = parser.add_subparsers(dest="command", required=True)
    maker = commands.add_parser("make", help="run scenario files and store the results")
    maker.add_argument("files", nargs="+", type=Path)
    maker.add_argument("--each", help="key=value,value: one file for each")
    maker.add_argument("--runs", type=int, help="how many runs, if the file does not say it")
    commands.add_parser("check", help="run all stored scenarios again and compare")
    options = parser.parse_args(arguments)
    try:
        if options.command == "check":
            return _check_all()
        return _make(options.files, options.each, options.runs)
    except (ValueError, RuntimeError) as error:
        sys.stderr.write(f"{error}\n")
        return 2


def _make(files: Sequence[Path], each: str | None, runs: int | None) -> int:
    """The command ``make``: run ns-2, store the results and print their file names."""
    for table in tables(files, each):
        sys.stdout.write(f"{make(table, runs=runs).name}  {table.get('name', '')}\n")
    return 0


def _check_all() -> int:
    """The command ``check``: run ns-2 again for each stored run; 1 if a throughput has changed."""
    worst = 0.0
    for scenario in stored():
        worst = max(worst, difference := check(scenario))
        sys.stdout.write(f"{scenario.fingerprint()}  {scenario.name}: {100 * difference:.3g} %\n")
    return int(worst > 0.01)


if __name__ == "__main__":
    raise SystemExit(main())
