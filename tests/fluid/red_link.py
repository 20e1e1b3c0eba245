"""A link with a queue RED and flows at it, for tests that let single packets arrive by hand."""

from typing import Any

import numpy as np

from vegasmodel.engines.fluid.sampled import random_drops
from vegasmodel.engines.fluid.sampled.records import (
    FLOW,
    LINK_STATE,
    Bottleneck,
    LinkState,
    Sender,
)
from vegasmodel.engines.tables import Table, jit


def bottleneck(**fields: Any) -> Bottleneck:
    """A link with a queue RED: thresholds of 5 and 15 packets, and a large buffer."""
    red = {"red": 1, "min_threshold": 5.0, "max_threshold": 15.0, "max_probability": 0.1}
    values = {"capacity": 100.0, "room": 1e6, "loss": 0.0, "weight": 0.0, "gentle": 0}
    rest = {"max_wait": 0.0, "meet_at": 0, "drop_at": 0}
    return Bottleneck(**values | red | rest | fields)


def link_state(**fields: float) -> np.ndarray:
    """The state of a link at which RED has not yet dropped a packet."""
    state = np.zeros(1, LINK_STATE)
    for name, value in ({"red_count": -1.0, "red_passes": 1.0} | fields).items():
        state[name] = value
    return state


def bursting(packets: float) -> np.ndarray:
    """A flow with an RTT of 0.1 s that sends a burst."""
    flows = np.zeros(1, FLOW)
    flows["rtt"], flows["at_once"], flows["in_flight"] = 0.1, packets, packets
    return flows


def train(packets: float, transmissions: float, **fields: float) -> tuple[np.ndarray, np.ndarray]:
    """A flow whose slow start sends ``packets`` while the link can send ``transmissions``."""
    flows, state = np.zeros(1, FLOW), link_state(step=transmissions / 100.0, **fields)
    flows["active"], flows["rtt"], flows["in_flight"] = True, 100.0, packets
    flows["arrives"] = flows["train_sent"] = packets
    return flows, state


@jit
def arrive(flows: Table[Sender], state: Table[LinkState], link: Bottleneck) -> None:
    """Let the packets of a step arrive at RED."""
    random_drops.drop_at_random(flows, state[0], link, 0.0, 0.0)
