"""Tests the assumption that random waits of senders are too short to change the throughputs.

With the scenario key ``send_jitter``, each sender waits for a random time before it sends.
"""

from __future__ import annotations

import numpy as np

from vegasmodel.metrics import Floats
from vegasmodel.results.assumption import Assumption
from vegasmodel.scenario import Member, Scenario

NAME = "short-waits"  # of the assumption
LONGEST = 0.1  # of an RTT: a wait of up to this hardly lengthens the round trip


def short(scenario: Scenario, rates: Floats) -> Assumption:
    """The assumption that the random waits of senders (``send_jitter``) hardly matter.

    It fails if they lengthen round trips much (``short_trips``), or make Vegas send large bursts
    (``small_bursts``).  ``rates`` [n_flows] are the predicted throughputs, pkt/s.
    """
    trips = short_trips(scenario)
    return small_bursts(scenario, rates) if trips.holds else trips


def short_trips(scenario: Scenario) -> Assumption:
    """The assumption that no sender's random wait (``send_jitter``) lengthens the round trip much.

    A packet that waits in its sender belongs to the window, but its wait is not part of the RTT. So
    the rate of a window W is W/(RTT + w/2) if waits are uniform from 0 to w. The assumption fails
    if some w exceeds the fraction ``LONGEST`` of the RTT with empty queues. By default w is the
    transmission time of a packet (``Scenario.usual_jitter``), and such a w never counts as long.

    The rates of Vegas flows alone do not depend on this: they enlarge their windows until their
    backlogs are the same as without waits.
    """
    late = any(
        scenario.jitter(m.flow) > LONGEST * m.rtt and _unusual(scenario, m)
        for m in scenario.members
    )
    detail = (
        "a sender's longest wait (send_jitter) is more than a tenth of its RTT; the equations do "
        "not add such waits to the round trip"
    )
    return Assumption(NAME, not late, detail if late else "")


def small_bursts(scenario: Scenario, rates: Floats, *, longest: bool = False) -> Assumption:
    """The assumption that few packets collect while a Vegas sender waits (``send_jitter``).

    A sender that has waited sends all packets that its window then allows, in one burst. At the
    rate r, r w/2 packets collect in a mean wait, and r w in the longest wait w. In the link's queue
    the packets of a burst wait for one another. Vegas cannot distinguish this delay from that of a
    steady queue. So if more than alpha packets collect, Vegas reduces its window, although the link
    idles between the bursts.

    The assumption fails if more than alpha packets collect in a mean wait. With ``longest``, it
    fails if more than alpha packets collect in the longest wait. This is for a link that idles at
    times: it has no other queue, so single bursts decide when the window stops growing.

    ``rates`` [n_flows] are the predicted throughputs, pkt/s.
    """
    part = 1.0 if longest else 0.5
    for member, rate in zip(scenario.members, np.nan_to_num(rates).tolist(), strict=True):
        flow = member.flow
        packets = part * rate * scenario.jitter(flow)
        if flow.keeps_backlog and packets > flow.alpha and _unusual(scenario, member):
            detail = (
                f"while {member.name} waits (send_jitter), {packets:.3g} packets collect, and "
                "leave in one burst; Vegas takes the queue of a burst for a backlog above alpha = "
                f"{flow.alpha:g}"
            )
            return Assumption(NAME, False, detail)
    return Assumption(NAME, True)


def _unusual(scenario: Scenario, member: Member) -> bool:
    """Whether the flow's packets may wait for longer than by default."""
    return scenario.jitter(member.flow) > scenario.usual_jitter(member.flow)
