"""Runs ns-2 on many scenarios, on all cores, and stores each result in a file.

    python -m vegasmodel.packets.campaign FOLDER FILE.toml ... [--each link.0.buffer=5 pkt,10 pkt]

One run of this command is called a campaign. ``--each`` runs every scenario once with each of the
given values of a field. The results depend only on the scenarios and their seeds, not on their
order or the number of processes.

The result files have the format of ``vegasmodel.packets.reference``. The function
``reference.lookup(scenario, FOLDER)`` reads the result of one scenario.

If a campaign is killed, its ns-2 processes end with it, and its finished results remain in FOLDER.
The same command continues the campaign: it skips the scenarios that have a result. It also removes
``FOLDER/.work``, the folder of temporary files, which the killed campaign left behind.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from vegasmodel.fields import kinds
from vegasmodel.fields.errors import FieldError
from vegasmodel.fields.rules import MAX_RUNS, Integer
from vegasmodel.packets import reference
from vegasmodel.scenario import Scenario
from vegasmodel.support import children
from vegasmodel.support.files import PART

__all__ = ["run"]

WORK = ".work"  # subfolder for the temporary files of the runs


@kinds.checked
def run(
    tables: Sequence[dict[str, Any]], folder: str | Path, *, processes: int | None = None
) -> Iterator[tuple[Scenario, Path]]:
    """Run ns-2 on each scenario that has no valid result in ``folder``; yield all results.

    ``tables`` are the contents of scenario files.  The function yields each scenario with the path
    of its result file, as soon as the file is ready.  It also yields results that existed before.
    Scenarios that differ only in their names are run once and share a file.  ``processes`` is the
    number of ns-2 processes that run at the same time (default: one per core).

    Raises ``FieldError``, before the first run, if the folder cannot be used or a scenario is
    invalid.  Also raises the errors of ``ns2.run``.
    """
    if processes is not None:
        Integer(1, MAX_RUNS).check(processes, "processes")
    folder = Path(folder)
    scenarios = [Scenario.from_dict(table) for table in tables]
    # fingerprint of a scenario -> the indices of scenarios that differ only in their names
    alike: dict[str, list[int]] = {}
    for i, scenario in enumerate(scenarios):
        alike.setdefault(scenario.fingerprint(), []).append(i)
    with _locked(folder), ThreadPoolExecutor(processes or os.cpu_count()) as pool:
        jobs = {
            pool.submit(
                _run_unless_done, tables[numbers[0]], scenarios[numbers[0]], folder
            ): numbers
            for numbers in alike.values()
        }
        try:
            with children.interruptible():
                for job in as_completed(jobs):
                    for i in jobs[job]:
                        yield scenarios[i], job.result()
        finally:
            pool.shutdown(cancel_futures=True)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock ``folder``, so that only one campaign (a call of ``run``) at a time writes to it.

    Temporary files that a killed campaign left in the folder are removed.  The kernel releases the
    lock when this process ends, even if it is killed.  Some network file systems have no locks; on
    these the folder is not locked.

    Raises ``FieldError`` if another campaign has locked the folder, or if the folder cannot be
    used.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise FieldError("folder", str(folder), f"a usable folder ({error.strerror})") from None
    try:
        _lock(descriptor, folder)
        for stale in folder.glob(f"{PART}*"):
            stale.unlink(missing_ok=True)
        shutil.rmtree(folder / WORK, ignore_errors=True)
        (folder / WORK).mkdir(exist_ok=True)
        try:
            yield
        finally:
            shutil.rmtree(folder / WORK, ignore_errors=True)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, folder: Path) -> None:
    """Lock the folder that is open as file descriptor ``descriptor``, or raise ``FieldError``."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        allowed = "a folder in which no other campaign is running"
        raise FieldError("folder", str(folder), allowed) from None
    except OSError:  # some network file systems have no locks
        pass


def _run_unless_done(table: dict[str, Any], scenario: Scenario, folder: Path) -> Path:
    """Run ns-2 on one scenario, unless ``folder`` has its result; return the result's path."""
    path = folder / f"{scenario.fingerprint()}.json"
    try:
        done = reference.lookup(scenario, folder) is not None
    except ValueError:  # the file is damaged, so run the scenario again
        done = False
    return path if done else reference.make(table, folder, processes=1, scratch=folder / WORK)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command of this module, which simulates scenarios in ns-2.

    It shows a progress bar on standard error, and writes one line per result to standard output.

    ``arguments`` are those of the command line; ``None`` takes them from ``sys.argv``.  Returns the
    exit status: 0, 2 after an error or 130 after Ctrl-C.
    """
    from rich.console import Console
    from rich.progress import Progress

    parser = argparse.ArgumentParser(prog="python -m vegasmodel.packets.campaign")
    parser.add_argument("folder", type=Path)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--each", help="key=value,value: one run for each")
    parser.add_argument("--processes", type=int, help="default: one a core")
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
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; started again, the campaign goes on from here\n")
        return 130
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
