"""The rounds engine's door: a scenario in, trajectories and totals out.

A round trip costs a bounded number of events, so the cost does not grow with the capacity.  Where
a round holds no more packets than that number, every packet is its own event: small windows, where
whole packets decide the outcome, are treated packet by packet.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vegasmodel.fluid.rounds_state import (
    DROPTAIL,
    FLOW,
    LINK,
    LINUX,
    NS2,
    PAPER,
    PARCEL,
    RED,
    START,
)
from vegasmodel.metrics import Floats
from vegasmodel.scenario import DropTail, Member, Red, Scenario

FINE, COARSE = 256, 64  # events per flow and round trip, at most about
_LAWS = {"vegas": 0, "reno": 1, "newreno": 2, "sack": 3, "tahoe": 4}
_VARIANTS = {"paper": PAPER, "ns2": NS2, "linux": LINUX}
_HOLES = 256
_RING = 2**16  # parcels of one flow on their way, at most
_FIRST_RTO = 6.0  # seconds; rtxcur_init_ of 1999, and RFC 6298's order


@dataclass(frozen=True)
class Totals:
    """What one run counted between warm-up and end; arrays [n_flows], in packets."""

    status: int
    events: int
    flows: NDArray[Any]  # the final records, ``rounds_state.FLOW``
    link: Any  # the final record, ``rounds_state.LINK``
    times: Floats
    per_flow: Floats  # [time, flow, (window, sent, rtt, delivered, base)]
    queue: Floats  # [time]

    @functools.cached_property
    def base(self) -> Floats:
        """BaseRTT that each flow has measured, NaN where its law keeps none."""
        vegas = self.flows["law"] == _LAWS["vegas"]
        known = np.where(np.isnan(self.flows["known_base"]), self.flows["base"], self.flows["rtt"])
        fixed = ~np.isnan(self.flows["known_base"])
        known = np.where(fixed, self.flows["known_base"], known)
        return np.where(vegas & (known < 1e9), known, np.nan)


def _flow_record(member: Member, record: Any, start: float, syn: float) -> None:
    group = member.flow
    linux = group.variant == "linux"
    record["law"], record["variant"] = _LAWS[group.law], _VARIANTS[group.variant]
    record["rtt"] = member.rtt
    for key in ("alpha", "beta", "gamma", "decrease", "max_window"):
        record[key] = getattr(group, key)
    record["first_window"] = 10.0 if linux else 1.0
    measured = group.over_estimate == "measured"
    record["known_base"] = math.nan if measured else member.rtt + float(group.over_estimate)
    record["start"], record["stop"] = start, member.stop
    # the kernel opens with a handshake; ns-2 of 1999 sends data at once
    record["syn"] = syn if linux else 0.0
    record["size"] = group.size
    record["ssthresh"], record["grow_next"] = 1e9, 1
    record["recover"], record["again"] = -1.0, -1.0
    record["base"], record["rtt_min"] = 1e300, 1e300
    record["rtt_last"] = member.rtt
    record["rto"], record["backoff"], record["deadline"] = _FIRST_RTO, 1.0, 1e300
    record["event"] = START


def _link_record(scenario: Scenario) -> NDArray[Any]:
    record = np.zeros(1, LINK)
    link = scenario.path(scenario.flows[0])[0]
    record["capacity"], record["buffer"], record["loss"] = link.capacity, link.buffer, link.loss
    record["discipline"] = DROPTAIL
    if isinstance(link.queue, DropTail) and any(g.variant == "ns2" for g in scenario.flows):
        # ns-2.35's DropTail refuses a packet that would bring the waiting ones to the limit
        record["buffer"] = max(link.buffer - 1.0, 0.0)
    if isinstance(link.queue, Red):
        record["discipline"] = RED
        for key in (
            "min_threshold",
            "max_threshold",
            "max_probability",
            "weight",
            "ecn",
            "gentle",
        ):
            record[key] = getattr(link.queue, key)
    return record


def ahead(scenario: Scenario, member: Member) -> float:
    """Seconds from the sender to the link: one of four equal access legs, and its transmission."""
    group = member.flow
    links = scenario.path(group)
    delays = 2.0 * sum(link.delay for link in links)
    legs = member.rtt - scenario.transmission(group) - delays
    return legs / 4.0 + 1.0 / scenario.access_rate(group)


def resolution(scenario: Scenario) -> int:
    """Events per flow and round trip that the scenario needs.

    With different RTTs at a finite buffer, whose packet arrives first after each departure decides
    who loses (the phase effects of drop-tail): that takes packets.  Else stretches will do.
    """
    rtts = {member.rtt for member in scenario.members}
    overflows = math.isfinite(scenario.path(scenario.flows[0])[0].buffer)
    return FINE if len(rtts) > 1 and overflows else COARSE


def run(
    scenario: Scenario,
    *,
    parts: int | None = None,
    samples: int = 0,
    starts: Floats | None = None,
    first_window: float | None = None,
    seed: int = 1,
    synchronised: bool = False,
) -> Totals:
    """Run a one-link scenario once; ``samples`` instants evenly over the duration are kept.

    ``parts``: at most about so many events per flow and round trip (default: ``resolution``);
    ``starts`` [n_flows] overrides the flows' start times, seconds; ``first_window`` the initial
    window; ``synchronised``: when a flow loses, all do, as ``devendictis`` assumes, not only the
    one whose packet met the full buffer.  Raises ``ValueError`` for ``parts`` below 1.
    """
    from vegasmodel.fluid.rounds_kernel import march

    if parts is None:
        parts = resolution(scenario)
    if parts < 1:
        raise ValueError(f"parts: {parts} is not allowed; at least 1")
    members = scenario.members
    n = len(members)
    flows = np.zeros(n, FLOW)
    syn = scenario.ack_size / scenario.packet_size
    for i, member in enumerate(members):
        start = member.start if starts is None else float(starts[i])
        _flow_record(member, flows[i], start + ahead(scenario, member), syn)
    # events at one instant are taken in an order that does not depend on the scenario's
    order = np.argsort(flows, order=("start", "rtt", "law", "alpha", "beta", "stop"))
    flows = flows[order]
    if first_window is not None:
        flows["first_window"] = first_window
    flows["cwnd"] = flows["first_window"]
    link = _link_record(scenario)
    rings = np.zeros((n, min(16 * parts + 8192, _RING)), PARCEL)
    holes = np.zeros((n, _HOLES, 3))
    duration = scenario.run.duration
    times = np.linspace(0.0, duration, samples) if samples else np.zeros(0)
    per_flow, queue = np.zeros((samples, n, 5)), np.zeros(samples)
    status, events = march(
        flows,
        rings,
        holes,
        link[0],
        times,
        per_flow,
        queue,
        scenario.run.warmup,
        duration,
        parts,
        seed,
        synchronised,
    )
    back = np.argsort(order)
    return Totals(int(status), int(events), flows[back], link[0], times, per_flow[:, back], queue)
