"""Turns the output of one run of ns-2 or ns-3 into a ``Trace``: packet counts and means over time.

The function ``record`` makes the run and returns its trace. In the other functions, ``edges`` are
the times in seconds that bound the trace's intervals.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vegasmodel.fields import kinds
from vegasmodel.fields.rules import Choice, Integer
from vegasmodel.metrics import Floats
from vegasmodel.packets import ns2, ns3
from vegasmodel.packets.engine import sampling_interval
from vegasmodel.packets.gaps import last_deliveries
from vegasmodel.packets.run_output import Output, RoundTrips
from vegasmodel.packets.trace import Trace, make
from vegasmodel.scenario import Scenario

__all__ = ["record", "to_trace"]


@kinds.checked
def record(
    scenario: Scenario,
    interval: float | None = None,
    *,
    number: int = 0,
    engine: str = "ns2",
    timeout: float | None = None,
) -> Trace:
    """Simulate ``scenario`` once, with the seed of run ``number``, and return the run's trace.

    ``engine`` is the simulator, ``ns2`` or ``ns3``.  ``interval`` is the length of the trace's
    intervals, s (default: ``default_interval``).  ``timeout`` and the errors are those of
    ``ns2.run`` or ``ns3.run``.
    """
    simulator = ns3 if engine == "ns3" else ns2
    Choice(("ns2", "ns3")).check(engine, "engine")
    Integer(0, 2**31 - 1).check(number, "number")
    every = sampling_interval(scenario, interval)
    output = simulator.run_trace(scenario, every, number=number, timeout=timeout)
    source = f"ns-{engine.removeprefix('ns')} {simulator.version()}, run {number}"
    return to_trace(scenario, output, engine=engine, source=source)


@kinds.checked
def to_trace(scenario: Scenario, output: Output, *, engine: str, source: str) -> Trace:
    """Convert the output of one run of ns-2 or ns-3 to a trace.

    Each interval of the trace lies between two successive samples of the run. ``engine`` is ``ns2``
    or ``ns3``, and ``source`` a note on how the trace was made.

    The variable ``first`` of the trace, the time of a flow's first packet, is the flow's start. If
    starts are random (``start_jitter``), the output does not tell it; ``first`` is then the start
    of the interval in which the flow sends its first packet. The variable ``last``, the time of the
    last packet, is exact if the flow has a finite size and finishes. Otherwise it is the end of the
    last interval in which the flow delivers packets, but not later than the flow's ``stop``.
    """
    samples = output.samples
    edges = samples.time
    step = np.diff(edges)[:, None]
    # by how much each counter grows in each interval, [interval, flow] or [interval, link]
    acked, resent, sent = np.moveaxis(np.diff(samples.flows, axis=0), 2, 0)
    waited, served, _ = np.moveaxis(np.diff(samples.links, axis=0), 2, 0)
    variables = {
        "throughput": acked / step,
        "acks": acked,
        "retransmits": resent,
        "sent": sent,
        "loss": _lost(output, edges, len(scenario.members)),
        "window": samples.window[1:],
        "queue": waited / step,  # the integral of the queue over time, divided by the time
        "served": served / step,
        "first": _first(scenario, edges, sent),
        "last": _last(scenario, output, acked),
        "packet_size": np.array([scenario.size_of(m.flow) for m in scenario.members]),
    }
    if output.round_trips is not None:
        vegas = [member.flow.law == "vegas" for member in scenario.members]
        variables |= _rtts(output.round_trips, edges, np.array(vegas))
    return make(
        engine,
        edges[1:],
        [member.name for member in scenario.members],
        variables,
        begin=float(edges[0]),
        links=[link.name for link in scenario.links],
        scenario=scenario.fingerprint(),
        controls={member.name: member.flow.law for member in scenario.members},
        provenance={
            "source": source,
            "window": "congestion window at the end of the interval",
            "acks": "packets newly acknowledged",
            "base_rtt": "smallest RTT of the flow so far",
        },
    )


def _first(scenario: Scenario, edges: Floats, sent: Floats) -> Floats:
    """The time of each flow's first packet, s: the flow's start in the scenario.

    If starts are randomly delayed (``start_jitter``), it is the beginning of the first interval in
    which the flow sends a packet, but not before the start in the scenario. It is NaN if the flow
    sends no packet.  ``sent`` [interval, flow] has the packets that each flow sends in each
    interval.  ``edges`` are the times at which intervals begin or end, s.
    """
    starts = np.array([member.start for member in scenario.members])
    if scenario.run.start_jitter == 0.0:
        return starts
    begin = np.maximum(edges[np.argmax(sent > 0, axis=0)], starts)
    return np.where(np.any(sent > 0, axis=0), begin, np.nan)


def _last(scenario: Scenario, output: Output, delivered: Floats) -> Floats:
    """The time of each flow's last packet, s; NaN if the flow delivers none.

    ``delivered`` [interval, flow] has the packets that each flow delivers in each interval.
    """
    stops = np.array([member.stop for member in scenario.members])
    found = np.minimum(last_deliveries(output.samples.time, delivered), stops)
    return np.where(np.isfinite(output.finished), output.finished, found)


def _lost(output: Output, edges: Floats, n_flows: int) -> Floats:
    """The number of dropped data packets in each interval, [time, flow]."""
    flow_edges = np.arange(n_flows + 1) - 0.5
    counts, _, _ = np.histogram2d(output.drops.time, output.drops.flow, bins=(edges, flow_edges))
    return np.asarray(counts, dtype=np.float64)


def _rtts(
    trips: tuple[RoundTrips, ...], edges: Floats, vegas: NDArray[np.bool_]
) -> dict[str, Floats]:
    """The mean and the smallest RTT in each interval, and the baseRTT of Vegas flows, s.

    ``trips`` are the RTTs of each flow, and ``vegas`` [flow] says which flows are Vegas.  RTTs with
    ACKs that the receiver may have held back are left out, as in a capture: the time for which it
    held them back is no queueing delay.

    Each array is [time, flow].  An RTT is NaN if no ACK gave one in the interval.  The baseRTT is
    the smallest RTT of the flow up to the end of the interval; it is NaN for flows that are not
    Vegas.  ``edges`` are the times at which intervals begin or end, s.
    """
    shape = (edges.size - 1, len(trips))
    mean, least, base = np.full((3, *shape), np.nan)
    for f, of_flow in enumerate(trips):
        time, rtt = of_flow.time[~of_flow.held], of_flow.rtt[~of_flow.held]
        # the index of the interval in which each ACK came; -1: before the first edge
        interval_of_ack = np.searchsorted(edges, time, side="left") - 1
        inside = (interval_of_ack >= 0) & (interval_of_ack < shape[0])
        number = np.bincount(interval_of_ack[inside], minlength=shape[0])
        total = np.bincount(interval_of_ack[inside], weights=rtt[inside], minlength=shape[0])
        measured = number > 0
        mean[measured, f] = total[measured] / number[measured]
        lowest = np.full(shape[0], np.inf)
        np.minimum.at(lowest, interval_of_ack[inside], rtt[inside])
        least[measured, f] = lowest[measured]
        if vegas[f]:
            # the smallest RTT before the trace begins; infinite if there is none
            before = rtt[interval_of_ack < 0].min(initial=np.inf)
            smallest = np.minimum.accumulate(np.minimum(lowest, before))
            base[:, f] = np.where(np.isfinite(smallest), smallest, np.nan)
    return {"rtt": mean, "rtt_min": least, "base_rtt": base}
