"""Writes one scenario as the text that our ns-3 program reads.

Each line is a word followed by numbers. Links and flows are numbered in the scenario's order. The
text contains no names that the user chose.
"""

from __future__ import annotations

import math

import numpy as np

from vegasmodel.fields.errors import FieldError
from vegasmodel.packets import arrivals, ns3_support
from vegasmodel.packets.engine import UNLIMITED, queue_limits, window_limit
from vegasmodel.scenario import Link, RateDelay, Red, Scenario
from vegasmodel.scenario.placement import stack

__all__ = ["script"]

# Type of service (DSCP 46, expedited forwarding) in packets of flows that want a low delay. By it a
# Rate-Delay link tells them from flows that want a high rate.
LOW_DELAY_MARK = 46 << 2


def script(scenario: Scenario, run: int = 0, *, interval: float, rtts: bool = False) -> str:
    """The input of our ns-3 program for one run of ``scenario``, with the seed of run ``run``.

    The program samples windows and queues every ``interval`` seconds.  With ``rtts`` it records
    when each packet is sent and each ACK arrives, but not for short flows that arrive at random.
    Raises ``FieldError`` if ns-3 cannot simulate the scenario.
    """
    ns3_support.check(scenario)
    rng = np.random.default_rng([scenario.run.seed, run])
    seed = int(rng.integers(1, 2**31 - 1))
    lines = [_line("run", seed, scenario.run.warmup, scenario.run.duration, interval, int(rtts))]
    for link in scenario.links:
        crossing = {g.direction for g in scenario.flows if link in scenario.path(g)}
        lines.append(_link(scenario, link, 0, shaped=True))
        lines.append(_link(scenario, link, 1, shaped="reverse" in crossing))
    flows, shorts = [], []
    for f, _ in enumerate(scenario.members):
        flow, short_lines = _flow(scenario, f, rng)
        flows.append(flow)
        shorts += short_lines
    if len(flows) + len(shorts) > ns3_support.MAX_PORTS:
        allowed = f"at most {ns3_support.MAX_PORTS} flows in ns-3, short ones counted"
        raise FieldError("flow.arrivals", len(shorts), allowed)
    return "\n".join([*lines, *flows, *shorts, ""])


def _line(word: str, *numbers: float) -> str:
    """A line of the ns-3 program's input: a word, then numbers in as many digits as they have."""
    return " ".join([word, *(repr(n) if isinstance(n, int) else repr(float(n)) for n in numbers)])


def _link(scenario: Scenario, link: Link, reverse: int, *, shaped: bool) -> str:
    """The line of the ns-3 program's input that describes one direction of a link.

    ``reverse`` is 1 for the reverse direction, else 0.  ``shaped`` is false if only ACKs cross the
    link in this direction.  The queue is then unlimited and no packet is lost, as in our runs of
    ns-2.
    """
    bits = link.capacity * scenario.packet_size * 8
    limits = queue_limits(link)
    queue = link.queue if shaped else None
    red = queue if isinstance(queue, Red) else Red(min_threshold=0.0, max_threshold=1.0)
    kind = ns3_support.QUEUES[link.queue.discipline] if shaped else 0
    return _line(
        "link",
        reverse,
        bits,
        link.delay,
        link.loss if shaped else 0.0,
        sum(limits) if shaped else UNLIMITED,
        kind,
        red.min_threshold,
        red.max_threshold,
        red.max_probability,
        red.weight,
        int(red.ecn),
        int(red.gentle),
        scenario.packet_size,
        queue.k if isinstance(queue, RateDelay) else 1.0,
        limits[0],
        sum(limits[1:]),  # 0 if the link has one queue
    )


def _flow(scenario: Scenario, f: int, rng: np.random.Generator) -> tuple[str, list[str]]:
    """The line of flow number f in the ns-3 program's input, and the lines of its short flows.

    The flow's line has its congestion control, the routers where it enters and leaves, its access
    links and its times.

    In the scenario, flow number f may stand for short flows that arrive at random.  Each short flow
    then has a line of its own, with its start and size.  All of them run between the same two
    hosts.
    """
    member, run = scenario.members[f], scenario.run
    group = member.flow
    path = scenario.path(group)
    size = round(scenario.size_of(group))
    segment = size - ns3_support.HEADERS
    # The propagation delay of the access links is what the links of the path and the transmissions
    # leave of the RTT.  ACKs have a fixed size in ns-3, which may differ from the scenario's.  So
    # the time to transmit a packet and its ACK is that of the scenario times ``ratio``.
    ratio = (size + ns3_support.ACK) / (scenario.size_of(group) + scenario.ack_size)
    links = 2 * math.fsum(link.delay for link in path)
    access = member.rtt - ratio * scenario.transmission(group) - links
    begin = arrivals.start(run, member, rng)
    shorts: list[str] = []
    if group.arrivals == "once":
        packets = int(arrivals.sizes(group, 1, rng)[0])
    else:
        packets = 0
        begins = arrivals.times(group, begin, member.stop, rng)
        each = zip(begins, arrivals.sizes(group, len(begins), rng), strict=True)
        shorts = [_line("short", f, float(time), int(size)) for time, size in each]
    # A source waits at random before it sends: above TCP, as ns-2's overhead_ does, or below TCP,
    # as Linux's netem does. The line has both longest waits, and one of them is 0.
    wait = scenario.jitter(group)
    line = _line(
        "flow",
        ns3_support.LAWS[group.law],
        *ns3_support.stretch(scenario, group),
        scenario.access_rate(group) * scenario.packet_size * 8,
        max(access, 0.0) / 4,  # four legs: both ways at both ends
        segment,  # bytes of data in a packet
        begin,
        member.stop,
        min(max(run.warmup, begin), member.stop),  # when the flow's measurement begins
        packets,  # to send; for short flows their own lines say how many
        min(window_limit(scenario, f), ns3_support.MAX_BYTES // size),
        2 if group.delayed_ack else 1,  # packets per ACK
        *((0.0, wait) if stack(scenario, group).waits_in_queue else (wait, 0.0)),
        int(any(isinstance(x.queue, Red) and x.queue.ecn for x in path)),
        LOW_DELAY_MARK if group.service == "delay" else 0,
        int(group.alpha),
        int(group.beta),
        int(group.gamma),
        int(group.initial_window or (2 if group.law == "vegas" else 1)),
    )
    return line, shorts
