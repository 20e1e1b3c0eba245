"""The random draws of ``fluid``'s sampled form, against their probabilities."""

import math

import numpy as np

from tests.fluid.red_link import link_state
from vegasmodel.engines.fluid.sampled.chance import seed, victim
from vegasmodel.engines.fluid.sampled.records import FLOW


def test_a_packet_belongs_to_a_flow_in_proportion_to_its_rate() -> None:
    """A flow's rate is the number of its packets in flight over its RTT, here 50, 25 and 0 pkt/s.

    The third flow has only lost packets in flight, and the fourth has stopped.
    """
    flows, state = np.zeros(4, FLOW), link_state(delay=0.1)
    flows["active"], flows["in_flight"] = (True, True, True, False), (10.0, 13.0, 6.0, 10.0)
    flows["rtt"], flows["undetected"] = (0.1, 0.3, 0.1, 0.1), (0.0, 2.0, 6.0, 0.0)
    flows["held_back"] = (0.0, 1.0, 0.0, 0.0)
    seed(4)
    draws = 3000
    drawn = np.bincount([victim(flows, state[0]) for _ in range(draws)], minlength=4) / draws
    error = math.sqrt(2.0 / 9.0 / draws)
    np.testing.assert_allclose(drawn, (2.0 / 3.0, 1.0 / 3.0, 0.0, 0.0), atol=4.0 * error)
    assert not drawn[2:].any()
