"""Falls of windows and additional packets at a full buffer, in ``fluid``'s sampled form."""

import numpy as np
import pytest

from tests.fluid.red_link import bottleneck, link_state
from vegasmodel.engines.fluid.sampled.drops import overflow
from vegasmodel.engines.fluid.sampled.records import FLOW, Bottleneck, LinkState, Sender
from vegasmodel.engines.tables import Table, jit


@jit
def _overflow(flows: Table[Sender], state: Table[LinkState], link: Bottleneck) -> bool:
    return overflow(flows, state[0], link, False)


@pytest.mark.parametrize(("fell", "lost"), [(0.03, False), (0.015, True), (0.005, True)])
def test_a_window_that_falls_makes_room_for_the_packets_after_it(fell: float, lost: bool) -> None:
    """Two flows fill the link of 100 packets/s and its buffer of 10 packets.

    At the full buffer the RTTs are 0.5 and 0.2 s. The window of the first flow grows from 25 to 27
    packets: it sends a packet more 0.02 and 0.01 s before the end of the step. That of the second
    one falls from 10 to 9 packets, ``fell`` seconds before the end. This makes room for 5 packets/s
    of the 2 + 2 packets/s that the first one adds.
    """
    flows, state = np.zeros(2, FLOW), link_state(step=0.05, delay=0.1)
    flows["active"], flows["rtt"] = True, (0.4, 0.1)
    flows["cwnd"] = flows["in_flight"] = (27.0, 9.0)
    flows["extra"], flows["interval"], flows["still"] = (2.0, 0.0), 0.01, 0.01
    flows["freed"], flows["freed_ago"] = (0.0, 1.0), (0.0, fell)
    assert _overflow(flows, state, bottleneck(red=0, room=10.0))
    assert bool(flows["lost"].sum()) is lost
