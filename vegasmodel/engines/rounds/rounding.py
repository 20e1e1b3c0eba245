"""Makes a table of a network's capacities and delays, with rounding errors like those of ns-2.

ns-2 computes times as floating-point numbers, which are rounded. If two events should happen at the
same instant, the rounding errors decide which of them comes first. When the simulator ``rounds``
simulates ns-2, it imitates these errors, so that the same event comes first.
"""

from __future__ import annotations

import numpy as np

from vegasmodel.engines.rounds.route import INSTANT, Routes, has_ack_queue, wires_between
from vegasmodel.engines.rounds.state import FIRST_BINADE
from vegasmodel.metrics import Floats
from vegasmodel.scenario import Member, Scenario
from vegasmodel.scenario.placement import link_stack

# ns-2's clock is a floating-point number. So times are multiples of a unit, which doubles when the
# time passes a power of 2. A binade is the period from one power of 2 to the next.
BINADES = 32  # number of binades; the last ends at 2^19 s
# ``roundings`` enlarges the rounding errors, as if the unit of ns-2's clock were longer: so long
# that between 256 and 512 s the fastest link sends ``UNIT`` packets in one unit.
UNIT = 1e-7
# times that differ by fewer units of ns-2's clock, not enlarged, count as one instant: the rounding
# errors of this simulator itself are smaller
LEAST_UNITS = 8.0


def roundings(scenario: Scenario, members: list[Member], network: Routes) -> Floats:
    """A table of capacities and delays, changed so that times have rounding errors as in ns-2.

    ns-2 stores times as floating-point numbers. So it rounds times to a unit, and the unit doubles
    when the time passes 1, 2, 4 ... seconds. If an RTT is a whole number of transmission times,
    packets arrive exactly at the instants of departures. The rounding errors then decide whether
    the arrival or the departure comes first, and so whose packet finds the buffer full.

    Row k is for times between 2^(b-1) and 2^b seconds, where b is k + ``FIRST_BINADE``. In these
    periods the unit is constant. A hop is one queue on one flow's path. The row contains, in this
    order:

    - the capacity of each queue, in packets/s;
    - ``Queue.instant`` of each queue, in packets: two moments count as one instant if the link can
      serve fewer packets than this between them;
    - the size of a packet at each hop, changed so that its transmission time is rounded as in ns-2;
    - the delay from each hop to the next queue, in seconds.

    The rounding errors in the table are those of ns-2, but enlarged, so that they exceed the
    rounding errors of this simulator. They are still smaller than the difference between two RTTs
    that differ in the fourth digit. The table has no rows if the links do not behave as in ns-2, or
    if a flow has random delays (``delay_noise``).
    """
    links, hops = network.links, network.hops[network.first[0] :]
    if any(member.flow.delay_noise > 0.0 for member in members):
        return np.zeros((0, 2))
    if not link_stack(scenario).scheduled_ties:
        return np.zeros((0, 2))
    units = 2.0 ** (np.arange(BINADES)[:, None] + FIRST_BINADE - 53)  # seconds, [row, 1]
    # factor on rounding errors: the unit of the times from 256 s to 512 s, 2^-44 s, becomes so long
    # that the fastest link sends ``UNIT`` packets in it
    scale = UNIT / links["capacity"].max() / 2.0**-44

    def rounded(delays: Floats) -> Floats:
        """The ``delays``, in seconds, with ``scale`` times the rounding errors of ns-2's clock.

        The clock rounds to multiples of its unit. Row k of the result is for the period of time in
        which this unit is ``units[k]``, in seconds.
        """
        found: Floats = delays + scale * (np.rint(delays / units) * units - delays)
        return found

    # the size of the largest packet of each queue, or of both queues of a Rate-Delay link
    largest = np.zeros(len(links))
    np.maximum.at(largest, hops["link"], hops["work"])
    classes = np.flatnonzero(links["partner"] >= 0)
    largest[classes] = np.maximum(largest, largest[links["partner"]])[classes]
    # ns-2 rounds the transmission times of packets. For the largest packets of a queue, a changed
    # capacity has this effect. For smaller packets, their sizes (``works``) are changed.
    capacity = largest / rounded(largest / links["capacity"])
    # times that should be equal differ by less than a quarter of the enlarged unit
    instant = np.maximum(0.25 * scale, LEAST_UNITS) * units * links["capacity"]
    capacity_here = links["capacity"][hops["link"]]
    works = rounded(hops["work"] / capacity_here) * capacity[:, hops["link"]]
    works = np.where(hops["work"] == largest[hops["link"]], hops["work"], works)
    # for flows of one group and RTT, the rounding errors from each queue to the next, by row
    wire_errors: dict[tuple[int, float], list[Floats]] = {}
    queues = {key: k for k, key in enumerate(network.keys)}
    for member in members:
        if (member.group, member.rtt) not in wire_errors:
            legs = wires_between(scenario, member, has_ack_queue(scenario, member, queues))
            errors = [(rounded(wires) - wires).sum(axis=1) for wires in legs]
            wire_errors[member.group, member.rtt] = errors
    delays = hops["to_next"] + np.column_stack(
        [errors for member in members for errors in wire_errors[member.group, member.rtt]]
    )
    return np.hstack([capacity, np.minimum(instant, INSTANT), works, delays])
