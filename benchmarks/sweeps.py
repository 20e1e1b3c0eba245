"""Sweeps: points a second by kind of model, time against the number of points, memory.

    python benchmarks/sweeps.py [--whole]

The bars are for 2 cores: 1,000,000 points of the mini-cycle in 10 s and 1 GB, 100,000 runs of 60 s
of ``fluid`` with two flows in 2 minutes, 10,000 of ``rounds`` in 10.  Without ``--whole`` the last
two are run on a tenth and a hundredth of that, and the line says what it amounts to.  Compiled
code is made before the clock starts.
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import time
from pathlib import Path

import vegasmodel as vm

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
CASES = (  # model, variant, points of the bar, seconds of the bar, part of it that is run
    ("minicycle", "paper", 1_000_000, 10.0, 1),
    ("minicycle", "ns2", 1_000_000, 10.0, 1),
    ("fluid", "paper", 100_000, 120.0, 10),
    ("rounds", "ns2", 10_000, 600.0, 100),
)


def timed(model: str, variant: str, points: int, folder: Path) -> tuple[float, float]:
    """Seconds by the clock and of the processor for a sweep into a new folder."""
    scenario = vm.Scenario.from_toml(SCENARIO.format(variant=variant))
    began, worked = time.perf_counter(), time.process_time()
    vm.sweep(scenario, OVER, model, folder / f"{model}-{variant}-{points}.zarr", draw=points)
    return time.perf_counter() - began, time.process_time() - worked


def main() -> None:
    """Print a line a case."""
    whole = "--whole" in sys.argv[1:]
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before the first case")
    with tempfile.TemporaryDirectory(prefix="vegasmodel-sweeps-") as name:
        for model, variant, bar, seconds, part in CASES:
            timed(model, variant, 8, Path(name))  # compiles, imports
            points = bar if whole else bar // part
            clock, worked = timed(model, variant, points, Path(name))
            scale = bar / points
            print(
                f"{model:<10} {variant:<6} {points:>9} points: {clock:7.1f} s, "
                f"{worked:7.1f} CPU s, {points / clock:9.0f}/s; "
                f"{bar} points: {clock * scale:.0f} s (bar {seconds:.0f} s)"
            )
        for points in (10_000, 100_000, 1_000_000):
            clock, worked = timed("minicycle", "linux", points, Path(name))
            print(f"minicycle  linux  {points:>9} points: {1e6 * worked / points:6.2f} CPU us each")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"most memory of the process, all cases: {peak:.0f} MB")


if __name__ == "__main__":
    main()
