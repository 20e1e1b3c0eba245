"""Many ns-2 runs over all cores: each result is a file, so a killed campaign goes on where it was.

    python -m vegasmodel.packets.campaign FOLDER FILE.toml ... [--each link.0.buffer=5 pkt,10 pkt]

Results are those of ``vegasmodel.packets.reference``: read them with ``lookup(scenario, FOLDER)``.
They depend on the scenarios (their seeds) alone, not on the order or number of processes.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from vegasmodel.packets import reference
from vegasmodel.scenario import Scenario

__all__ = ["run"]


def run(
    tables: Sequence[dict[str, Any]], folder: str | Path, *, processes: int | None = None
) -> Iterator[tuple[Scenario, Path]]:
    """Run every scenario that ``folder`` has no whole result for; yields each when it is there.

    ``tables``: keys and values of scenario files; ``processes``: default one a core.  Raises
    ``FieldError`` for the first bad scenario before anything runs, and what ``ns2.run`` raises.
    """
    folder = Path(folder)
    scenarios = [Scenario.from_dict(table) for table in tables]
    for stale in folder.glob(".*.part"):  # of a campaign that was killed while it wrote
        stale.unlink(missing_ok=True)
    with ThreadPoolExecutor(processes or os.cpu_count()) as pool:
        jobs = {
            pool.submit(_one, table, scenario, folder): scenario
            for table, scenario in zip(tables, scenarios, strict=True)
        }
        try:
            for job in as_completed(jobs):
                yield jobs[job], job.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _one(table: Mapping[str, Any], scenario: Scenario, folder: Path) -> Path:
    path = folder / f"{scenario.fingerprint()}.json"
    try:
        done = reference.lookup(scenario, folder) is not None
    except ValueError:  # damaged: make it again
        done = False
    return path if done else reference.make(dict(table), folder, processes=1)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; a progress bar on standard error, one line a result on standard output."""
    from rich.console import Console
    from rich.progress import Progress

    parser = argparse.ArgumentParser(prog="python -m vegasmodel.packets.campaign")
    parser.add_argument("folder", type=Path)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--each", help="key=value,value: one run for each")
    parser.add_argument("--processes", type=int)
    options = parser.parse_args(arguments)
    try:
        tables = reference.tables(options.files, options.each)
        with Progress(console=Console(stderr=True)) as progress:
            task = progress.add_task("ns-2", total=len(tables))
            for scenario, path in run(tables, options.folder, processes=options.processes):
                progress.advance(task)
                sys.stdout.write(f"{path.name}  {scenario.name}\n")
    except (ValueError, RuntimeError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
