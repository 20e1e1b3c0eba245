"""Scenarios of Boutremans and Le Boudec, 3.2.1: a Vegas source joins a 1 Mbit/s link every 2 s.

The records run them in ns-2, and compare the results with those of the paper.
"""

import math
from functools import cache
from pathlib import Path

from vegasmodel.scenario import Flow, Scenario, Staggered, load

__all__ = [
    "CAPACITY",
    "NOISE_DEVIATION",
    "NOISE_DEVIATIONS",
    "SMALL_BUFFERS",
    "SOURCE_COUNTS",
    "finite",
    "joining",
    "one_by_one",
]

CAPACITY = 125.0  # pkt/s: 1 Mbit/s of 1000 B, a size that the paper does not state
SOURCE_COUNTS = (10, 20, 40)  # numbers of sources
SMALL_BUFFERS = (5.0, 20.0)  # packets, buffers smaller than n alpha = 30
LOAD = 0.9  # rho of the M/M/1 queue below
# s, standard deviations of the random part of the delay.  The paper states a variance of 90: it is
# that of the number of packets in an M/M/1 queue, rho/(1 - rho)^2, so the standard deviation is 9.5
# packets.  The paper states neither the time that a packet takes nor the packet size.  The first
# three values fit the text's "very small variations" beside d = 0.2 s; the last assumes 1000 B at
# the link's rate.
NOISE_DEVIATIONS = (0.005, 0.0095, 0.020, math.sqrt(LOAD) / (1 - LOAD) / CAPACITY)
NOISE_DEVIATION = NOISE_DEVIATIONS[1]  # 9.5 packets of 1 ms


@cache
def joining(
    n: int,
    alpha: float,
    beta: float,
    known: bool = False,
    noise: float = 0.0,
    until: float = 120.0,
) -> Scenario:
    """The scenario in which ``n`` Vegas sources join one after another, with thresholds in packets.

    With ``known`` each source knows its propagation delay.  ``noise`` is the standard deviation of
    the random part of the delay, and ``until`` the end of the run, both in s.
    """
    base = load(Path(__file__).with_name("arrivals20.toml"))
    changes = {
        "flow.count": n,
        "flow.alpha": alpha,
        "flow.beta": beta,
        "flow.over_estimate": 0.0 if known else "measured",
        "flow.delay_noise": noise,
        "run.duration": until,
        "run.warmup": min(90.0, until - 1.0),  # the last of 40 sources joins at 78 s
    }
    name = f"boutremans-{n}-sources-{alpha:g}-{beta:g}"
    name += f"{'-known' * known}{f'-noise-{1e3 * noise:.3g}-ms' * bool(noise)}"
    name += f"-until-{until:g}-s" * (until != 120.0)
    return base.replace(changes, name=name)


@cache
def one_by_one(n: int, alpha: float, every: float) -> Scenario:
    """The scenario in which one of ``n`` sources joins every ``every`` seconds, with alpha = beta.

    There are ten runs, because with alpha = 1 runs differ much.  Rates are measured for 60 s, from
    ``every`` seconds after the start of the last source on.
    """
    base = joining(n, alpha, alpha)
    changes = {"flow.start": Staggered(first=0.0, every=every), "run.runs": 10}
    changes |= {"run.warmup": n * every, "run.duration": n * every + 60.0}
    name = f"boutremans-{n}-sources-{alpha:g}-every-{every:g}-s"
    return base.replace(changes, name=name)


@cache
def finite(law: str, buffer: float) -> Scenario:
    """Ten joining sources of one law with a finite buffer; for Vegas alpha = beta = 3."""
    base = joining(n=10, alpha=3.0, beta=3.0)
    vegas = base.flows[0]
    flow = vegas
    if law != "vegas":
        flow = Flow(law=law, rtt=vegas.rtt, count=vegas.count, start=vegas.start)
    name = f"boutremans-10-{law}-sources-buffer-{buffer:g}"
    return base.replace({"link.buffer": buffer, "run.warmup": 60.0}, name=name, flows=(flow,))
