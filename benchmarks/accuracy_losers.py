"""Measures in ns-2 how often a source loses a packet that left the sender right after another.

    python -m benchmarks.accuracy_losers [--families NAME ...] [--cases N] [--seed S]

When a window grows, one ACK releases two packets at the same instant. The second of them is lost if
the queue is at its longest; otherwise a packet is lost later, where packets of two sources meet at
the full queue. The simulator ``fluid`` assumes that the first happens to a third of the losses if
there are two different RTTs (``LONGEST`` in ``engines/fluid/sampled/loser.py``). This program runs
the random networks with two different RTTs once in ns-2. It prints which part of the lost packets
the sender had sent at the same instant as the packet before.
"""

import argparse
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.accuracy_cases import CASES, case
from benchmarks.arguments import at_least
from vegasmodel.metrics import standard_error
from vegasmodel.packets import ns2_script, run_output
from vegasmodel.scenario import Scenario

DRAWN = {"losses-jitter": 28112741, "wide-jitter": 28112742}  # families of cases, and seeds
COLUMNS = ["what", "time", "flow", *"abcdefg", "seq", "id"]  # of rtt.txt; the letters are unused


def part_in_pairs(scenario: Scenario) -> tuple[float, int]:
    """The part of the lost packets that left together with the packet before; number of losses.

    ns-2 runs the scenario once, and writes each transmission of a sender and each drop.  A packet
    may have been sent several times: what counts is its last transmission before the drop.
    """
    made = ns2_script.script(scenario, interval=scenario.run.duration, rtts=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "run.tcl").write_text(made.text, encoding="ascii")
        subprocess.run(["ns", "run.tcl"], cwd=folder, check=True, capture_output=True)
        sizes = len(scenario.members), len(scenario.links)
        drops = run_output.read(folder, *sizes, made.origin, rtts=False).drops
        rows = pd.read_csv(folder / "rtt.txt", sep=" ", names=COLUMNS)
    sent = rows[rows["what"] == "+"]
    after = drops.time > scenario.run.warmup
    pairs = 0  # lost packets that left at the same instant as the packet before
    for f in range(sizes[0]):  # flow by flow
        of_flow = sent[sent["flow"] == f]
        time, seq = of_flow["time"].to_numpy() - made.origin, of_flow["seq"].to_numpy()
        with_former = np.concatenate([[False], time[1:] == time[:-1]])  # of each transmission
        last = {}  # by packet: whether it left with the packet before, when it was last sent
        lost = np.flatnonzero(after & (drops.flow == f))  # indices of ``drops``
        k = 0  # the next transmission of the flow
        for i in lost:
            while k < time.size and time[k] <= drops.time[i]:
                last[int(seq[k])] = bool(with_former[k])
                k += 1
            pairs += last[int(drops.packet[i])]
    return pairs / max(after.sum(), 1), int(after.sum())


def main() -> None:
    """Print which part of the lost packets left with the packet before.

    It has a line for each network with two different RTTs, and for the mean of each family.
    """
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--families", choices=tuple(DRAWN), nargs="*", default=tuple(DRAWN))
    parser.add_argument("--cases", type=at_least(1), default=CASES, help="cases of each family")
    parser.add_argument(
        "--seed", type=at_least(0), help="seed of all families; default: each has its own"
    )
    options = parser.parse_args()
    for family in options.families:
        seed = DRAWN[family] if options.seed is None else options.seed
        parts = []
        for index in range(options.cases):
            scenario = case(family, index, seed)
            if len({member.rtt for member in scenario.members}) == 2:
                in_pairs, losses = part_in_pairs(scenario)
                parts.append(in_pairs)
                name = f"{family}/{index} of seed {seed}"
                print(f"{name}: {in_pairs:.2f} of {losses} lost packets", flush=True)
        if len(parts) < 2:
            print(f"{family}: {len(parts)} networks with two different RTTs, too few for a mean")
            continue
        error = float(standard_error(np.array(parts)))
        print(f"{family}: mean {np.mean(parts):.2f} +- {error:.2f} of {len(parts)} networks")


if __name__ == "__main__":
    main()
