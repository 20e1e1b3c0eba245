"""Measures sweeps: points per second by model, time against the number of points, and memory.

    python benchmarks/sweeps.py [--whole] [--figure docs/static/sweep-time.png]

The goals are for 2 cores: 1,000,000 points of the mini-cycle model in 10 s and 1 GB; 100,000 runs
of ``fluid`` (60 s, two flows) in 2 minutes; 10,000 runs of ``rounds`` in 10 minutes.  Without
``--whole``, only a part of the points is computed, and the line gives the time scaled to all of
them.  The code is compiled before the clock starts.
"""

import argparse
import os
import resource
import tempfile
import time
from pathlib import Path

import numpy as np

import vegasmodel as vm
from vegasmodel.plots import style

SCENARIO = """
name = "two flows"
packet_size = "500 B"
[[link]]
capacity = "250 pkt/s"
buffer = "20 pkt"
[[flow]]
law = "vegas"
send_jitter = "0 s"
variant = "{variant}"
rtt = "60 ms"
[[flow]]
law = "reno"
send_jitter = "0 s"
rtt = "60 ms"
[run]
duration = "60 s"
warmup = "20 s"
"""
OVER = ["link.buffer=5..60", "flow.rtt=20ms..200ms"]
# Model and variant; the goal: so many points in so many seconds; and the number by which the points
# are divided if only a part of them is run.
CASES = (
    ("minicycle", "paper", 1_000_000, 10.0, 1),
    ("minicycle", "ns2", 1_000_000, 10.0, 1),
    ("fluid", "paper", 100_000, 120.0, 10),
    ("rounds", "ns2", 10_000, 600.0, 100),
)
SIZES = (  # model, variant, numbers of points of the figure
    ("minicycle", "paper", (1_000, 10_000, 100_000, 300_000, 1_000_000)),
    ("fluid", "paper", (100, 300, 1_000, 3_000, 10_000)),
    ("rounds", "ns2", (10, 30, 100, 200)),
)
FIGURE = Path(__file__).parents[1] / "docs" / "static" / "sweep-time.png"


def timed(model: str, variant: str, points: int, folder: Path) -> tuple[float, float]:
    """The wall seconds and CPU seconds of a sweep of ``points`` random points.

    It is stored in a new folder below ``folder``.
    """
    scenario = vm.Scenario.from_toml(SCENARIO.format(variant=variant))
    began, worked = time.perf_counter(), time.process_time()
    vm.sweep(scenario, OVER, model, folder / f"{model}-{variant}-{points}.zarr", draw=points)
    return time.perf_counter() - began, time.process_time() - worked


def linear(folder: Path, picture: Path) -> None:
    """Draw CPU seconds against points, with a line through the first and the last measurement.

    If the time is in proportion to the points, up to a fixed start, the others lie on this line.
    """
    figure = style.figure()
    axes = figure.subplots()
    for model, variant, sizes in SIZES:
        timed(model, variant, 8, folder)
        n = np.array(sizes, dtype=float)
        worked = np.array([timed(model, variant, points, folder)[1] for points in sizes])
        each = (worked[-1] - worked[0]) / (n[-1] - n[0])
        fixed = worked[0] - each * n[0]
        off = np.abs(worked / (fixed + each * n) - 1.0).max()
        look, line = style.look(model), np.geomspace(n[0], n[-1], 200)
        axes.loglog(n, worked, look.marker, color=look.color, label=look.label)
        axes.loglog(line, fixed + each * line, color=look.color, linewidth=1)
        print(
            f"{model:<10} {fixed:.2f} CPU s and {1e6 * each:.3g} us a point; the sweeps between "
            f"are within {100 * off:.0f} % of that"
        )
    axes.set(xlabel="points of a sweep", ylabel="CPU seconds")
    axes.legend(frameon=False)
    style.tidy(axes)
    style.save(figure, picture)


def main() -> None:
    """Print a line for each case, then draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--figure", type=Path, default=FIGURE)
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before the first case")
    with tempfile.TemporaryDirectory(prefix="vegasmodel-sweeps-") as name:
        for model, variant, goal_points, goal_seconds, divisor in CASES:
            timed(model, variant, 8, Path(name))  # compiles, imports
            points = goal_points if options.whole else goal_points // divisor
            wall_seconds, cpu_seconds = timed(model, variant, points, Path(name))
            scaled_up = wall_seconds * goal_points / points
            print(
                f"{model:<10} {variant:<6} {points:>9} points: {wall_seconds:7.1f} s, "
                f"{cpu_seconds:7.1f} CPU s, {points / wall_seconds:9.0f}/s; "
                f"{goal_points} points: {scaled_up:.0f} s (goal {goal_seconds:.0f} s)"
            )
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"most memory of the process, all cases: {peak:.0f} MB")
        (Path(name) / "figure").mkdir()
        linear(Path(name) / "figure", options.figure)


if __name__ == "__main__":
    main()
