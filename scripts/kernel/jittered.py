"""Draws random scenarios of Linux hosts that wait a random time before they send.

    .venv/bin/python scripts/kernel/jittered.py FOLDER [--seed 1] [--number 12] [--default-waits]

The link is drop-tail, with 100 to 700 packets/s.  There are eight families of flows (``FAMILIES``):
two CUBIC; CUBIC and Reno; CUBIC and Vegas; several CUBIC and Reno; two to four Reno; Vegas and
Reno; two Vegas and Reno; and 4 to 16 Vegas that arrive one after another.

With ``--default-waits`` senders wait as long as by default in a scenario: up to the time in which
the link sends a packet.  Without it, the longest wait is drawn from 0.1 to 1 ms in three quarters
of the scenarios, and in the others senders do not wait.

Every second scenario (``0``, ``2``, ...) may be looked at while a model is improved.  The others
serve only to judge the model.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from paper_checks.files import to_toml
from vegasmodel.scenario import Flow, Link, Run, Scenario

PACKET, ACK = 1500.0, 66.0  # bytes
# ranges from which the scenarios are drawn
CAPACITY = (100.0, 700.0)  # packets/s
SLOW = (100.0, 250.0)  # packets/s, capacities of the family ``arrivals``
RTT = (0.02, 0.15)  # seconds
BUFFER = (8, 60)  # packets
WAIT = (1e-4, 1e-3)  # seconds: the longest wait of a scenario's senders
WINDOWS = (2.0, 10.0)  # packets, the two initial windows
FAMILIES = (
    "cubic-cubic",
    "cubic-reno",
    "cubic-vegas",
    "cubics-renos",
    "renos",
    "vegas-reno",
    "vegases-reno",
    "arrivals",
)
BETWEEN = (2.0, 8.0)  # seconds between arrivals


def laws(family: str, rng: np.random.Generator) -> list[str]:
    """The law (congestion control) of each flow in a random scenario of a family."""
    more = int(rng.integers(0, 3))  # flows beyond the least number
    return {
        "cubics-renos": ["cubic"] * (2 + more) + ["reno"] * int(rng.integers(1, 3)),
        "renos": ["reno"] * (2 + more),
        "vegases-reno": ["vegas", "vegas", "reno"],
        "arrivals": ["vegas"] * int(rng.integers(4, 17)),
    }.get(family) or family.split("-")


def draw(family: str, seed: int, k: int, default_waits: bool = False) -> Scenario:
    """The ``k``-th random scenario of a family.

    It asks for two runs.  Each start is delayed by a random time of up to 5 s, or of up to 1 s in
    the family ``arrivals``.  The longest wait of the senders is drawn from ``WAIT``, or is 0 in a
    quarter of the scenarios.  With ``default_waits`` it is a packet's transmission time.
    """
    rng = np.random.default_rng([seed, FAMILIES.index(family), k])
    arrive = family == "arrivals"
    capacity = float(np.round(np.exp(rng.uniform(*np.log(SLOW if arrive else CAPACITY)))))
    buffer = float(rng.integers(BUFFER[0], BUFFER[1] + 1))
    wait = float(np.round(np.exp(rng.uniform(*np.log(WAIT))), 6)) if rng.random() < 0.75 else 0.0
    window, delayed_ack = float(rng.choice(WINDOWS)), bool(rng.integers(2))
    alpha = float(rng.integers(1, 5))
    beta = alpha + float(rng.choice((0.0, 2.0)))
    who = laws(family, rng)
    same_rtt = arrive or (family == "vegas-reno" and bool(rng.integers(2)))
    rtts = np.round(np.exp(rng.uniform(*np.log(RTT), 1 if same_rtt else len(who))), 4)
    between = float(np.round(rng.uniform(*BETWEEN), 1)) if arrive else 0.0
    flows = []
    for i, law in enumerate(who):
        thresholds = {"alpha": alpha, "beta": beta} if law == "vegas" else {}
        flow = Flow(
            law,
            float(rtts[i % len(rtts)]),
            name=f"{law}-{i}",
            variant="linux",
            send_jitter=1.0 / capacity if default_waits else wait,
            delayed_ack=delayed_ack,
            initial_window=window,
            start=i * between,
            **thresholds,
        )
        flows.append(flow)
    last_start = between * (len(who) - 1)
    warmup = last_start + 30.0 if arrive else 20.0
    jitter = 1.0 if arrive else 5.0
    run = Run(last_start + 80.0, warmup, runs=2, start_jitter=jitter)
    link = Link(capacity, buffer=buffer)
    return Scenario((link,), tuple(flows), PACKET, f"{family} {seed}/{k}", ACK, run)


def main() -> None:
    """Write the scenario files."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--number", type=int, default=12, help="how many networks of each family to draw"
    )
    parser.add_argument(
        "--default-waits",
        action="store_true",
        help="let senders wait for up to a transmission time",
    )
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for family in FAMILIES:
        for k in range(options.number):
            text = to_toml(draw(family, options.seed, k, options.default_waits))
            (options.folder / f"{k:02}-{family}.toml").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
