"""Lists the flows of each group, the links that a flow crosses, and packets' transmission times.

The arguments are parts of a scenario, such as its links, and not a whole ``Scenario``. The reason
is the module ``settle``, which fills in what a scenario file leaves out: it needs these functions
before the ``Scenario`` exists. All other code calls the methods of ``Scenario`` that have the same
names.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from vegasmodel.scenario.parts import Flow, Link, Member, Run
from vegasmodel.scenario.varying import Staggered, Uniform

__all__ = ["access_rate", "members", "path", "size_of", "transmission"]


def members(flows: Sequence[Flow], run: Run) -> tuple[Member, ...]:
    """All flows, group by group; random RTTs are drawn with the seed of ``run``."""
    return tuple(m for i, group in enumerate(flows) for m in _of_group(i, group, run))


def _of_group(index: int, group: Flow, run: Run) -> list[Member]:
    """The flows of a group; ``index`` is the group's index among all groups.

    The flows of a group of several are named ``GROUP[0]``, ``GROUP[1]`` and so on. They may have
    random RTTs, and they may start one after another at equal intervals.
    """
    if isinstance(group.rtt, Uniform):
        # drawn with the index, so that the groups of a scenario have different RTTs
        rng = np.random.default_rng([run.seed, index])
        rtts = rng.uniform(group.rtt.low, group.rtt.high, group.count)
    else:
        rtts = np.full(group.count, group.rtt)
    # if ``start`` is a single time, ``Staggered(start)`` starts all flows at this time
    start = group.start if isinstance(group.start, Staggered) else Staggered(group.start)
    stop = run.duration if group.stop is None else group.stop
    return [
        Member(
            name=f"{group.name}[{i}]" if group.count > 1 else group.name,
            group=index,
            flow=group,
            rtt=float(rtts[i]),
            start=start.first + i * start.every,
            stop=stop,
        )
        for i in range(group.count)
    ]


def path(links: Sequence[Link], group: Flow) -> tuple[Link, ...]:
    """The links that a group's data packets cross, in the order in which they cross them."""
    crossed = tuple(links)
    if group.path is not None:
        by_name = {link.name: link for link in links}
        crossed = tuple(by_name[name] for name in group.path)
    return crossed if group.direction == "forward" else crossed[::-1]


def size_of(group: Flow, packet_size: float) -> float:
    """Bytes of one data packet of this group; ``packet_size`` is that of the scenario."""
    return packet_size if group.packet_size is None else group.packet_size


def access_rate(links: Sequence[Link], group: Flow) -> float:
    """The rate of the group's own access links, pkt/s."""
    if group.access is not None:
        return group.access
    return 200.0 * min(link.capacity for link in path(links, group))


def transmission(links: Sequence[Link], group: Flow, packet_size: float, ack_size: float) -> float:
    """The sum of all transmission times of a data packet and its ACK in a round trip, s."""
    packets = (size_of(group, packet_size) + ack_size) / packet_size
    rates = [link.capacity for link in path(links, group)] + [access_rate(links, group)] * 2
    return packets * math.fsum(1.0 / rate for rate in rates)
