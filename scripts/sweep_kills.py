"""Tests that sweeps survive SIGKILL: kills them at random moments and runs them again to the end.

    python scripts/sweep_kills.py --times 50

A sweep passes if two conditions hold, however often it was killed: after each kill its files can be
read, and its final files equal those of an undisturbed sweep byte for byte.  The exit status is 1
if a sweep fails.
"""

import argparse
import filecmp
import os
import signal
import tempfile
import time
from pathlib import Path

import numpy as np

import vegasmodel as vm
from vegasmodel.study import sweep as sweeps

SCENARIO = """
[[link]]
capacity = "250 pkt/s"
buffer = "20 pkt"
[[flow]]
law = "vegas"
rtt = "60 ms"
[[flow]]
law = "reno"
rtt = "60 ms"
"""
OVER = ["link.buffer=1:20:0.5", "flow.rtt=20ms:80ms:20ms", "flow.vegas.beta=2,3,4"]
POINTS = 12  # of a block, in which a sweep stores its results


def sweep(out: Path) -> None:
    """Run the test's sweep: many small blocks, in which some points have no answer."""
    sweeps.POINTS_PER_BLOCK["arrays"] = POINTS
    vm.sweep(vm.Scenario.from_toml(SCENARIO), OVER, "minicycle", out)


def _start(out: Path) -> int:
    """Start the sweep in a child process; return the number of the process."""
    child = os.fork()
    if not child:
        sweep(out)
        os._exit(0)
    return child


def killed(out: Path, moment: float) -> bool:
    """Start the sweep in a child process and kill it ``moment`` seconds later.

    Returns ``False`` if it had ended before.
    """
    child = _start(out)
    time.sleep(moment)
    done, _ = os.waitpid(child, os.WNOHANG)
    if done:
        return False
    os.kill(child, signal.SIGKILL)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def files(folder: Path) -> list[str]:
    """The paths of all files below the folder."""
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def same(a: Path, b: Path) -> bool:
    """Whether two folders contain the same files with the same content."""
    names = files(a)
    return names == files(b) and filecmp.cmpfiles(a, b, names, shallow=False)[1:] == ([], [])


def readable(out: Path) -> int:
    """The number of complete blocks that a sweep has stored in its folder ``out``.

    A sweep stores its points block by block; points that are not computed yet have a status below
    0.  Raises ``ValueError`` if a point has the status 0 (done) but no throughputs: its block would
    then be incomplete.
    """
    if not out.exists():
        return 0
    from vegasmodel.study import store

    data = store.dataset(out)
    status, rates = data["status"].values, data["throughput"].values
    if not np.isfinite(rates[status == 0]).all():
        raise ValueError(f"{out}: a status without its figures")
    return int((status >= 0).sum()) // POINTS


def main() -> int:
    """Kill sweeps, check what they leave, continue them and compare; return 1 if one fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    wrong = kills = sweeps_done = 0
    with tempfile.TemporaryDirectory(prefix="sweep kills ") as name:
        # a sweep that is not killed: how long it takes, and what it writes
        began = time.perf_counter()
        os.waitpid(_start(Path(name) / "whole"), 0)
        seconds = time.perf_counter() - began
        out = Path(name) / "0"
        while kills < options.times:
            kills += killed(out, rng.uniform(0.0, 0.5 * seconds))
            complete = readable(out)
            # the variable ``status`` of a finished sweep has a file for each block
            if complete == len(files(Path(name) / "whole" / "status" / "c")):
                sweeps_done += 1
                wrong += not same(out, Path(name) / "whole")
                out = Path(name) / str(sweeps_done)
        os.waitpid(_start(out), 0)  # the last sweep may continue to its end
        wrong += not same(out, Path(name) / "whole")
    print(f"{kills} kills of {sweeps_done + 1} sweeps of {seconds:.1f} s: {wrong} differ")
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
