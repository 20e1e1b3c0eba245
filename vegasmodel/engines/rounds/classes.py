"""Makes the records with which ``rounds`` simulates a link with Rate-Delay services.

On such a link two queues, one for each class of flows, take turns (``turns.py``). ``class_record``
fills in the record of a class's queue. ``class_stores`` makes the records that hold the waiting
packets. In ns-2 the classes' shares of the capacity change during a run, by the script with which
this package runs ns-2. For links that behave as in ns-2, ``share_changes`` lists the times of these
changes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vegasmodel.engines.rounds.state import HOP
from vegasmodel.metrics import Floats
from vegasmodel.scenario import Link, Scenario
from vegasmodel.scenario.placement import bytes_per_turn, class_shares, link_stack

Key = tuple[str, str, str]  # of a queue: its link, direction and class
# The limits on idle times that ``class_record`` explains, in units of the time that a class's turn
# takes. For a class with the part p of the capacity, ns-queue.tcl takes the larger of the numbers
# (1/p - 1) (1 - G)/G and 1 - g. Here g = 0.9375 is ns-2's automaxidle_gain_, and G = g^8 for a
# class of priority 1. The first number is larger if p = 1/2, the second if p = 1.
_GAIN = 0.9375**8
IDLE_LIMIT, IDLE_LIMIT_OF_ALL = (1.0 - _GAIN) / _GAIN, 1.0 - 0.9375


def class_record(
    scenario: Scenario, link: Link, key: Key, k: float, record: NDArray[np.void]
) -> None:
    """Fill in the record of one class of a Rate-Delay link, for the scheduler in ``turns.py``.

    Such a link has two classes of flows, one with a high rate and one with a low delay. ``key``
    names the class, and ``k`` is the rate of a flow of the first class over that of a flow of the
    second.

    In ns-2's class-based queueing, a class that was idle may later send more than its share of the
    capacity. How much more depends on the idle time, of which only a limited part counts.
    ns-queue.tcl computes this limit when it makes the class (automaxidle). At that time each class
    has half of the capacity; ``IDLE_LIMIT`` is the limit for this half. Both classes together have
    the whole capacity, and ``IDLE_LIMIT_OF_ALL`` is their limit. The unit of both limits is the
    time in which the link sends the bytes of one turn of a class.
    """
    _, direction, service = key
    record["class_weight"] = k if service == "rate" else 1.0
    record["share"], record["shares_sum"], record["turn"] = 0.5, 1.0, 1
    record["class_based"] = link_stack(scenario).class_based_queueing
    record["exact_capacity"] = link.capacity
    turn = bytes_per_turn(scenario, link, direction)
    record["round_bytes"], record["packet_bytes"] = 2.0 * turn, scenario.packet_size
    turn_time = turn / scenario.packet_size / link.capacity
    record["idle_limit"] = IDLE_LIMIT * turn_time
    record["all_limit"] = IDLE_LIMIT_OF_ALL * turn_time


def class_stores(links: NDArray[np.void], hops: NDArray[np.void]) -> NDArray[np.void]:
    """Make the records that hold the waiting packets of Rate-Delay links, one for each class.

    The records have the type ``state.HOP``.

    The function also sets the field ``lead`` of all ``hops`` at these links (a hop is one queue on
    one flow's path). Of several events at one instant, the simulator handles the one with the
    greatest ``lead`` first. This matters if a packet arrives at the very instant at which a
    transmission ends. In ns-2 some of these arrivals are handled before the end of the
    transmission, and the others after it. The field ``precedes`` of a hop says which.
    """
    classes = np.flatnonzero(links["partner"] >= 0)
    links["store"][classes] = np.arange(len(classes))
    at_classes = np.isin(hops["link"], classes)
    hops["lead"][at_classes] = (0.5 * hops["lead"] + hops["precedes"])[at_classes]
    # Arrivals that precede the end of a transmission now have a lead of at least 1, and all other
    # arrivals a lead of at most 1/2. The end of the transmission gets 3/4, and so comes in between.
    stores = np.zeros(len(classes), HOP)
    stores["link"], stores["stores"], stores["lead"] = classes, 1, 0.75
    return stores


def share_changes(scenario: Scenario, queues: dict[Key, int], links: NDArray[np.void]) -> Floats:
    """The times at which ns-2's script changes how the classes of a link share its capacity.

    A link with Rate-Delay services has two classes of flows: one with a high rate, and one with a
    low delay. The result, [change, 3], becomes ``state.Net.shares``. A row has the index of the
    delay class's queue, the time in seconds, and the new share of the rate class. There are no rows
    if the links do not behave as in ns-2. ``links`` are the records of all queues, and ``queues``
    gives the index of a queue in ``links`` by the queue's link, direction and class.
    """
    rows: list[tuple[float, ...]] = []
    by_name = {link.name: link for link in scenario.links}
    for (name, direction, service), k in queues.items():
        if service == "delay" and links[k]["class_based"]:
            links[k]["change"] = len(rows)  # the first row about this link
            changes = class_shares(scenario, by_name[name], direction)
            rows += [(k, *change) for change in changes]
    return np.array(rows).reshape(-1, 3)
