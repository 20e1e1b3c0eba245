"""Draws random scenarios of Linux's Vegas beside one or two Reno flows.

    .venv/bin/python scripts/kernel/drawn.py FOLDER [--seed 1] [--number 40]

The link is drop-tail.  One flow, drawn at random, starts at 0 s, and the others up to 15 s later.
The start times are the same in all runs of a scenario.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from paper_checks.files import to_toml
from vegasmodel.scenario import Flow, Link, Run, Scenario

RTTS = (0.03, 0.08)  # s
RATES = ((1e6, 1000.0), (3e6, 1000.0), (8e6, 1500.0))  # bit/s, bytes of a packet
BUFFERS = (5.0, 12.0, 25.0, 50.0)  # packets
THRESHOLDS = ((1.0, 3.0), (2.0, 4.0), (4.0, 4.0))  # alpha and beta, packets


def draw(seed: int, k: int) -> Scenario:
    """The ``k``-th random scenario; every third one has two Reno flows."""
    rng = np.random.default_rng([seed, k])
    rate, size = RATES[rng.integers(len(RATES))]
    rtt, buffer = RTTS[rng.integers(len(RTTS))], BUFFERS[rng.integers(len(BUFFERS))]
    alpha, beta = THRESHOLDS[rng.integers(len(THRESHOLDS))]
    names = ["vegas", "reno", *(["reno-2"] if k % 3 == 2 else [])]
    starts = np.zeros(len(names))
    starts[rng.permutation(len(names))[1:]] = np.round(rng.uniform(0.0, 15.0, len(names) - 1), 3)
    flows = [
        Flow(
            name.partition("-")[0],
            rtt,
            name=name,
            variant="linux",
            start=float(start),
            send_jitter=0.0,
        )
        if name != "vegas"
        else Flow(
            "vegas",
            rtt,
            variant="linux",
            start=float(start),
            alpha=alpha,
            beta=beta,
            send_jitter=0.0,
        )
        for name, start in zip(names, starts, strict=True)
    ]
    link = Link(rate / 8.0 / size, buffer=buffer)
    name, run = f"drawn {seed}/{k}", Run(duration=100.0, warmup=40.0)
    return Scenario((link,), tuple(flows), size, name, 66.0, run)


def main() -> None:
    """Write the scenario files."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--number", type=int, default=40)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for k in range(options.number):
        text = to_toml(draw(options.seed, k))
        (options.folder / f"{k:02}.toml").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
