"""Measures the time that compilation adds to a model's first answer.

    python benchmarks/compile_time.py [--functions N]

Each model answers one scenario in a new process with an empty cache of compiled code, and again in
another process with that cache.  The scenario has two flows with equal RTTs at a drop-tail queue;
in the last two rows it has RED, or different RTTs.  The figures are CPU seconds of the whole
process: Python's start, imports, compilation and the answer.  Another column has the CPU seconds of
a fixed loop, which shows the machine's speed at that time.  Other work on the machine slows a core
down, and compilation more than this loop.  ``--functions N`` lists the N functions that took
longest to compile.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

CHILD = """
import json, sys, time
begun = time.process_time()
total = 0
for i in range(4_000_000):
    total += i * i % 7
pace = time.process_time() - begun
from numba.core import event

class Compilations(event.Listener):
    def __init__(self):
        # compilations in progress: start, and time of those within it; CPU seconds by function
        self.open, self.spent = [], {}
    def on_start(self, e):
        self.open.append([time.process_time(), 0.0])
    def on_end(self, e):
        start, inside = self.open.pop()
        took = time.process_time() - start
        if self.open:
            self.open[-1][1] += took
        name = e.data["dispatcher"].py_func
        name = f"{name.__module__.rpartition('.')[2]}.{name.__qualname__}"
        self.spent[name] = self.spent.get(name, 0.0) + took - inside

compilations = Compilations()
event.register("numba:compile", compilations)
import vegasmodel as vm
model, variant, feature = sys.argv[1:]
queue = vm.Red(min_threshold=5.0, max_threshold=15.0) if feature == "red" else vm.DropTail()
rtts = (0.08, 0.12 if feature == "rtts" else 0.08)
scenario = vm.Scenario(
    links=(vm.Link(capacity=400.0, buffer=20.0, queue=queue),),
    flows=tuple(
        vm.Flow(law, rtt, variant=variant, send_jitter=0.0)
        for law, rtt in zip(("vegas", "reno"), rtts)
    ),
    run=vm.Run(duration=30.0, warmup=10.0),
)
assert vm.predict(scenario, model).applicable
total = time.process_time() - pace
print(json.dumps([pace, total, sum(compilations.spent.values()), compilations.spent]))
"""
CASES = (  # model, variant, RED or different RTTs, goal for the first answer in CPU seconds
    ("rounds", "ns2", "", 10.0),
    ("fluid", "ns2", "", 2.0),
    ("fluid", "paper", "", 2.0),
    ("fluid", "ns2", "red", 2.0),
    ("fluid", "ns2", "rtts", 2.0),
)


def ask(
    model: str, variant: str, feature: str, cache: str
) -> tuple[float, float, float, dict[str, float]]:
    """Ask a model for one answer in a new process; return CPU seconds.

    They are those of the fixed loop (``pace``), of the process without this loop, and of Numba's
    compilations; the last result has the compilations by function.  ``variant`` is the TCP
    implementation of the two flows.  ``feature`` is "red" for RED, "rtts" for different RTTs, or
    empty.  ``cache`` is the folder for compiled code.
    """
    done = subprocess.run(
        [sys.executable, "-c", CHILD, model, variant, feature],
        env={**os.environ, "NUMBA_CACHE_DIR": cache},
        check=True,
        capture_output=True,
        text=True,
    )
    pace, total, compiling, functions = json.loads(done.stdout)
    return pace, total, compiling, functions


def main() -> None:
    """Print for each scenario of ``CASES`` what the model's first answers cost in CPU seconds.

    A line has the seconds of a first process, and the part of them that compiles.  Then it has the
    seconds of a second process, which uses the compiled code of the first, and those of a loop that
    shows the machine's speed (``pace``).
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--functions",
        type=int,
        default=0,
        help="how many of the functions that took longest to show",
    )
    most = parser.parse_args().functions
    print(f"{'model':<16}{'first, s':>10}{'compiling':>11}{'second, s':>11}{'pace, s':>9}   goal")
    for model, variant, feature, goal in CASES:
        with tempfile.TemporaryDirectory() as cache:
            pace, first, compiling, functions = ask(model, variant, feature, cache)
            _, second, _, _ = ask(model, variant, feature, cache)
        name = f"{model} {variant} {feature}"
        print(f"{name:<16}{first:>10.2f}{compiling:>11.2f}{second:>11.2f}{pace:>9.2f}   {goal:g}")
        for function, spent in sorted(functions.items(), key=lambda row: -row[1])[:most]:
            print(f"    {function:<40}{spent:>8.2f}")


if __name__ == "__main__":
    main()
