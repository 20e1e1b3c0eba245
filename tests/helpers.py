"""Helpers for several test modules."""

import functools
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from vegasmodel.packets import reference
from vegasmodel.results.prediction import Prediction
from vegasmodel.scenario import Flow, Scenario

exact = functools.partial(Flow, send_jitter=0.0)
"""A flow whose senders never wait: its answer is exact and the same every time."""

MIXED = """
name = "mixed"
packet_size = "500 B"
[[link]]
capacity = "1080 pkt/s"
buffer = "20 pkt"
[[flow]]
law = "vegas"
variant = "ns2"
rtt = "60 ms"
send_jitter = "0 s"
alpha = 3
beta = 3
[[flow]]
law = "reno"
rtt = "60 ms"
send_jitter = "0 s"
"""
"""The scenario of the README, whose senders never wait: its answers are exact."""

PAIR = """
name = "pair"
packet_size = "500 B"
[[link]]
capacity = "250 pkt/s"
buffer = "40 pkt"
[[flow]]
law = "vegas"
count = 2
variant = "ns2"
rtt = "60 ms"
MORE
[run]
duration = "20 s"
warmup = "15 s"
"""


def scenario(*flows: dict[str, Any], run: dict[str, Any] | None = None, **link: Any) -> Scenario:
    """A scenario of one link from keys of the file; by default with 80 ms and 1080 pkt/s."""
    return Scenario.from_dict(
        {
            "packet_size": "500 B",
            "link": [{"capacity": "1080 pkt/s", **link}],
            "flow": [{"rtt": "80 ms", **flow} for flow in flows],
            "run": run or {},
        }
    )


def pair(more: str = 'send_jitter = "0 s"') -> Scenario:
    """Two Vegas flows of ns-2 with alpha = 1 and beta = 3; by default without random waits."""
    return Scenario.from_toml(PAIR.replace("MORE", more))


@functools.cache
def kernel_runs() -> tuple[Scenario, ...]:
    """The scenarios of all stored runs of the Linux kernel, read once in each process."""
    return tuple(reference.stored(reference.FOLDER / "linux"))


def as_measured(
    found: Prediction, measured: ArrayLike, se: ArrayLike, more: ArrayLike = 0.0
) -> bool:
    """Whether each flow's throughput is as measured, within three standard errors.

    ``se`` are the standard errors of ``measured``; those of ``found`` are combined with them. The
    throughputs may differ by ``more`` pkt/s beside.
    """
    error = np.abs(found.throughput - np.asarray(measured))
    return bool(np.all(error < 3.0 * np.hypot(found.throughput_se, se) + more))
