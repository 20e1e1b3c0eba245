"""A scenario's flows as the rounds engine's records, short ones that arrive at random included."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vegasmodel.engines.rounds.state import FLOW, LINUX, NS2, PAPER, START
from vegasmodel.engines.rounds.timer import MODERN_TICK, TICK
from vegasmodel.laws import find
from vegasmodel.metrics import Floats
from vegasmodel.placement import HEADER, ahead, empty_rtt, implementation, modern, work
from vegasmodel.scenario import Flow, Member, Pareto, ParetoArrivals, Poisson, Scenario

LAWS = {"vegas": 0, "reno": 1, "newreno": 2, "sack": 3, "tahoe": 4}
MAX_ARRIVALS = 200_000  # short flows of one group, expected
_VARIANTS = {"paper": PAPER, "ns2": NS2, "linux": LINUX}
_FIRST_RTO, _MODERN_RTO = 6.0, 3.0  # seconds; rtxcur_init_ of 1999 and since 2006
_BLOCK = 8.0  # bytes of a SACK block in an ACK
_MOST = 2.0**53  # packets; a Pareto tail has no end
# whose sender repairs losses as a law says that its own does
_RECOVERIES = {
    "scoreboard": "sack", "hole by hole": "newreno", "one hole": "reno", "slow start": "tahoe",
}  # fmt: skip
_COUNTS = ("sent", "lost", "retransmits", "acks", "timeouts", "delivered", "acks_lost")
_MARKS = ("mark_delivered", "mark_sent", "mark_lost", "mark_retransmits", "mark_acks")
_SUMS = (*_COUNTS, *_MARKS, "rtt_area", "rtt_samples")


def _law(group: Flow, record: Any) -> None:
    """The engine's own rules of a law, or the addresses of its compiled ones."""
    if group.law in LAWS:
        record["law"] = LAWS[group.law]
        return
    from vegasmodel.engines.outside import address

    law = find(group.law)
    record["law"] = LAWS[_RECOVERIES[law.recovery]]
    for name in ("drift", "cut", "remember"):
        record[f"{name}_at"] = address(law, name)
    record["once"], record["probes"] = law.once_a_round, law.slow_start == "gamma"


def _record(scenario: Scenario, member: Member, record: Any) -> None:
    group = member.flow
    variant = implementation(scenario, group)
    linux = variant == "linux"
    record["variant"] = _VARIANTS[variant]
    _law(group, record)
    record["rtt"] = empty_rtt(scenario, member)
    for key in ("alpha", "beta", "gamma", "decrease", "max_window"):
        record[key] = getattr(group, key)
    measured = group.over_estimate == "measured"
    record["known_base"] = math.nan if measured else member.rtt + float(group.over_estimate)
    record["stop"] = member.stop
    # ns-2's Vegas builds its packets itself, and does not say that they may be marked
    record["capable"] = not (variant == "ns2" and group.law == "vegas")
    # the kernel opens with a handshake; ns-2 of 1999 sends data at once
    record["syn"] = scenario.ack_size / scenario.packet_size if linux else 0.0
    record["first_window"] = 10.0 if linux else 1.0  # RFC 6928
    record["tick"], record["rto"] = TICK, _FIRST_RTO
    if modern(scenario, group):
        record["modern"], record["tick"], record["rto"] = 1, MODERN_TICK, _MODERN_RTO
        record["first_window"] = 2.0
        if group.law != "vegas":  # which builds its packets itself: no handshake, no headers
            record["syn"] = HEADER / scenario.packet_size
    record["ssthresh"], record["grow_next"] = 1e9, 1
    if variant == "ns2":
        record["ssthresh"] = math.floor(min(group.max_window, 1e9))  # ns-2's is the receiver's
        if group.law == "vegas" and not measured:
            # ns-2 measures baseRTT by a few packets in advance; its timer expires in the pause
            # that follows, so it starts with a window of 2, without slow start
            record["first_window"], record["ssthresh"] = 2.0, 2.0
            record["rtt_sum"], record["rtt_count"] = member.rtt, 1.0
        elif group.law == "vegas":
            # ns-2's clock of a Vegas source begins with its first packet, and a packet that was
            # sent at 0 counts as not sent: the first gives no RTT
            record["resent"] = 1.0
    if group.law not in LAWS and find(group.law).slow_start == "none":
        record["ssthresh"] = 0.0
    if group.initial_window is not None:
        record["first_window"] = group.initial_window
    # modern ns-2's has a window of 1 until its second packet is acknowledged (delay_growth_)
    late = record["modern"].any() and group.law == "vegas" and measured
    record["cwnd"] = 1.0 if late else record["first_window"]
    record["gap"] = work(scenario, group) / scenario.access_rate(group)
    if np.any(record["law"] == LAWS["sack"]):
        record["block"] = _BLOCK / scenario.packet_size / scenario.path(group)[0].capacity
    record["recover"], record["again"], record["timed_at"] = -1.0, -1.0, -1.0
    record["patience"] = 1.0
    # the others put in what is given at the end of a round
    record["base"] = record["known_base"] if linux and not measured else 1e300
    record["rtt_min"], record["least"] = 1e300, 1e300
    record["rtt_last"] = record["rtt"]
    record["backoff"], record["deadline"] = 1.0, 1e300
    record["jitter"], record["wake"] = scenario.jitter(group), 1e300
    record["event"] = START


def _sizes(group: Flow, n: int, rng: np.random.Generator) -> Floats:
    """Packets of ``n`` transfers."""
    if isinstance(group.size, Pareto):
        shape = group.size.shape
        least = group.size.mean * (shape - 1.0) / shape
        drawn: Floats = np.minimum(np.ceil(least * (1.0 + rng.pareto(shape, n))), _MOST)
        return drawn
    whole = (
        group.size if math.isinf(group.size) or group.arrivals == "once" else math.ceil(group.size)
    )
    return np.full(n, whole)


def _arrivals(group: Flow, begin: float, stop: float, rng: np.random.Generator) -> Floats:
    """Times of the arrivals in ``[begin, stop)``."""
    arrivals = group.arrivals
    if not isinstance(arrivals, (Poisson, ParetoArrivals)):
        return np.array([begin])
    times: list[Floats] = []
    time = begin
    while time < stop:
        n = int(arrivals.rate * (stop - time)) + 16
        if isinstance(arrivals, Poisson):
            gaps = rng.exponential(1.0 / arrivals.rate, n)
        else:  # mean 1/rate
            least = (arrivals.shape - 1.0) / arrivals.shape / arrivals.rate
            gaps = least * (1.0 + rng.pareto(arrivals.shape, n))
        times.append(time + np.cumsum(gaps))
        time = float(times[-1][-1])
    drawn: Floats = np.concatenate(times) if times else np.zeros(0)
    return drawn[drawn < stop]


def records(scenario: Scenario, starts: Floats | None, seed: int) -> NDArray[Any]:
    """One record a flow; a group that arrives at random has one for each of its short flows.

    ``starts`` [n_flows] overrides the start times; ``seed`` decides arrivals and random sizes,
    together with the scenario's own.
    """
    found = []
    rng = np.random.default_rng([scenario.run.seed, seed, len(scenario.flows)])
    for i, member in enumerate(scenario.members):
        begin = member.start if starts is None else float(starts[i])
        times = _arrivals(member.flow, begin, member.stop, rng)
        some = np.zeros(max(len(times), 1), FLOW)
        _record(scenario, member, some)
        some["member"], some["brief"] = i, member.flow.arrivals != "once"
        some["start"] = times + ahead(scenario, member) if len(times) else math.inf
        some["since"] = some["start"]
        some["size"] = _sizes(member.flow, len(some), rng)
        found.append(some)
    flows = np.concatenate(found)
    # packets of one instant, however the scenario orders its flows: ns-2 takes first what was
    # scheduled first, which is what comes over the longer last wire
    keys = ("stop", "beta", "alpha", "law", "start")
    flows = flows[np.lexsort((*(flows[key] for key in keys), -flows["rtt"]))]
    # every ns-2 agent's clock began at a time of its own (boot_time_)
    ticks = np.random.default_rng([scenario.run.seed, seed, len(flows), 0])
    flows["boot"] = ticks.uniform(0.0, 1.0, len(flows)) * flows["tick"]
    return flows


def fold(flows: NDArray[Any], n: int) -> NDArray[Any]:
    """One record for each of ``n`` members: short flows of a group are counted together."""
    if len(flows) == n:
        return flows[np.argsort(flows["member"])]
    out = np.zeros(n, FLOW)
    out[flows["member"][::-1]] = flows[::-1]
    for key in _SUMS:
        out[key] = np.bincount(flows["member"], flows[key], n)
    np.minimum.at(out["base"], flows["member"], flows["base"])
    return out
