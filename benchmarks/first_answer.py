"""Measures how many CPU seconds commands of vegasmodel need until they have answered and ended.

    python -m benchmarks.first_answer [--runs 3] [--other PYTHON]

The commands are those in ``CASES``, such as ``ratio`` and ``predict``, and for comparison a few
imports.  Each runs in a new process, so its imports count.  But compilation does not count: before
the first timed run, the simulators' code is compiled and cached, and so is Python's bytecode.

The program prints a table with one row per command.  A row has the user and system time of the
process, the least of ``--runs`` runs, and our goal for it; the word "missed" marks a longer time.
At its end stand the libraries of ``HEAVY`` that the command imports, because imports of such large
libraries take much of a command's time.

The option ``--other`` compares two versions of vegasmodel.  PYTHON is the interpreter of an
environment in which the other version is installed.  The table then also has the times with this
interpreter.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.arguments import at_least

SCENARIO = """
packet_size = "500 B"
[[link]]
capacity = "1080 pkt/s"
buffer = "20 pkt"
[[flow]]
law = "vegas"
variant = "ns2"
rtt = "60 ms"
alpha = 3
beta = 3
[[flow]]
law = "reno"
rtt = "60 ms"
"""
RATIO = "ratio --capacity 1080pkt/s --rtt 60ms --buffer 20pkt vegas:alpha=3,beta=3 reno"
QUESTION = "design s.toml --solve link.buffer --for share:vegas=0.3"
CASES = {  # what is timed, and its goal in CPU seconds
    "python -c pass": (["-c", "pass"], None),
    "import numpy": (["-c", "import numpy"], None),
    "import numba": (["-c", "import numba"], None),
    "import vegasmodel": (["-c", "import vegasmodel"], 0.05),
    "ratio": (["-m", "vegasmodel", *RATIO.split()], 0.4),
    "predict --model fluid": (["-m", "vegasmodel", "predict", "s.toml", "--model", "fluid"], 1.0),
    "predict --model rounds": (["-m", "vegasmodel", "predict", "s.toml", "--model", "rounds"], 1.5),
    "design by rounds": (["-m", "vegasmodel", *QUESTION.split()], 5.0),
}
HEAVY = ("numpy", "pint", "scipy", "numba", "pandas", "xarray", "pydantic", "rich")  # slow to load

# of the timed processes: they may write bytecode, which later ones load
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


def cpu(python: str, arguments: list[str], runs: int, folder: str) -> float:
    """The least CPU seconds of ``runs`` processes of Python with these arguments."""
    least = float("inf")
    for _ in range(runs):
        before = os.times()
        subprocess.run(
            [python, *arguments], cwd=folder, check=True, stdout=subprocess.DEVNULL, env=ENVIRONMENT
        )
        after = os.times()
        used = after.children_user + after.children_system
        least = min(least, used - before.children_user - before.children_system)
    return least


def loaded(python: str, arguments: list[str], folder: str) -> list[str]:
    """The slow-loading libraries (``HEAVY``) that a command imports."""
    done = subprocess.run(
        [python, "-X", "importtime", *arguments], cwd=folder, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    names = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    return [name for name in HEAVY if name in names]


def main() -> None:
    """Print for each command in ``CASES`` its CPU seconds, our goal, and slow libraries it imports.

    With ``--other``, the CPU seconds in another checkout of the project stand in a second column.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=at_least(1), default=3)
    parser.add_argument(
        "--other", metavar="PYTHON", help="the Python of another checkout's environment"
    )
    options = parser.parse_args()
    if options.other and not shutil.which(options.other):
        parser.error(f"--other: '{options.other}' is not allowed; a Python interpreter")
    pythons = [sys.executable] + ([options.other] if options.other else [])
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "s.toml").write_text(SCENARIO)
        for python in pythons:
            for arguments, _ in CASES.values():
                cpu(python, arguments, 1, folder)  # not timed: it compiles, and fills the caches
        print(f"{'CPU seconds':24} {'here':>7} {'other' if options.other else '':>7} {'goal':>6}")
        for name, (arguments, goal) in CASES.items():
            found = [cpu(python, arguments, options.runs, folder) for python in pythons]
            figures = "".join(f" {value:7.2f}" for value in found) + " " * 8 * (2 - len(found))
            said = "" if goal is None else f" {goal:6.2f}{' missed' if found[0] > goal else ''}"
            print(
                f"{name:24}{figures}{said}  {' '.join(loaded(sys.executable, arguments, folder))}"
            )


if __name__ == "__main__":
    main()
