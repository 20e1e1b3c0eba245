"""Simulates senders that share one link, with windows that change continuously.

``run`` integrates the differential equations in ``windows.py``, which have no feedback delay. Vegas
follows equation (1) of Boutremans and Le Boudec (2000). When Vegas's backlog reaches a threshold,
the backlog may stay there, while the window changes with the queue. This is a sliding mode: the
docstrings of this package say that the window slides on the threshold. Outside slow start the
window of a loss-based flow grows by one packet per round trip, or by half a packet if ACKs are
delayed. (CUBIC is not simulated here.) Losses occur when the queue fills the buffer.

A flow's ``variant`` names a TCP implementation. The equations take only parameters from it, such as
the backlogs at which Vegas's window grows and shrinks. A real implementation of Vegas also sends
whole packets, and decides once per round trip. The equations leave out both mechanisms. The package
``sampled`` and the simulator ``rounds`` include them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from vegasmodel.engines.fluid.late_decisions import less_found, resting_range
from vegasmodel.engines.fluid.pauses import running, whole
from vegasmodel.engines.fluid.records import (
    SPAN,
    TIME,
    WAITED,
    Flows,
    State,
    Tally,
    empty_state,
    empty_tally,
)
from vegasmodel.engines.starts import check_starts
from vegasmodel.fields import kinds
from vegasmodel.fields.errors import FieldError, exactly
from vegasmodel.fields.rules import MAX_SAMPLES, Choice, Quantity
from vegasmodel.laws import foreign
from vegasmodel.metrics import Floats
from vegasmodel.scenario import DropTail, Red, Scenario
from vegasmodel.stacks import STACKS
from vegasmodel.status import Status

if TYPE_CHECKING:
    from vegasmodel.scenario import Flow


__all__ = ["ContinuousRun", "run", "unsupported"]
LOSERS = ("growing", "all", "loss-based")  # values of ``losers``, in the order of ``march.GROWING``
# the fields of ``Flows`` that are true or false
BOOLEAN = ("keeps_backlog", "backlog_over_base", "in_trains", "measures_base")
STEP = 0.5  # usual length of a step, as a part of the shortest round trip


@dataclass(frozen=True, eq=False)
class ContinuousRun:
    """Result of the simulator ``fluid``: curves over time, and averages for flows and the link.

    The averages cover the time after warmup. A flow's averages leave out the time before its start
    and after its stop.

    If there were several runs, the curves (``time`` to ``delivered_so_far``) and ``kept`` are those
    of the first run. ``timeouts`` is a sum over all runs. ``throughput_runs`` and ``queue_runs``
    have one row per run. All other numbers are means over the runs. ``continuous.run`` leaves
    ``loss_rate``, ``timeouts`` and ``kept`` at None.

    A flow may lose several packets and react only once: ``lost`` counts the packets, ``losses`` the
    reactions. The equations of ``continuous.run`` do not say how many packets a flow loses when the
    buffer overflows. There ``lost`` grows by 1 for each flow that loses packets at an overflow.
    """

    time: Floats  # [t] s
    window: Floats  # [t, flow] packets, 0 while inactive
    rate: Floats  # [t, flow] window / rtt, pkt/s
    rtt: Floats  # [t, flow] s
    queue: Floats  # [t, link] packets that wait
    lost: Floats  # [t, flow] packets lost so far
    delivered_so_far: Floats  # [t, flow] packets that the link has delivered so far
    throughput: Floats  # [flow] pkt/s
    base_rtt: Floats  # [flow] s; NaN if loss-based
    rtt_mean: Floats  # [flow] s, mean over the packets
    queue_mean: Floats  # [link] packets
    losses: Floats  # [flow] how often it reacted to a loss after warmup
    delivered: Floats  # [flow] packets after warmup
    status: str  # "done", or why it ended early (then its averages are NaN)
    throughput_runs: Floats | None = None  # [run, flow] pkt/s, if runs can differ by chance
    queue_runs: Floats | None = None  # [run, link] packets, if runs can differ by chance
    loss_rate: Floats | None = None  # [flow] fraction of packets lost
    by_chance: bool = False  # whether runs differ by chance
    timeouts: Floats | None = None  # [flow] timeouts when more than one packet was lost
    kept: Floats | None = None  # [flow, number] numbers that the laws keep, at the end of the run


@kinds.checked
def unsupported(
    scenario: Scenario,
    *,
    random_loss: bool = False,
    red: bool = False,
    any_law: bool = False,
    name: str = "the continuous fluid",
) -> str | None:
    """Why the equations of this module cannot simulate the scenario; None if they can.

    Simulators that can do more call this function, too.  The flags say what they can simulate:
    random loss (``random_loss``), RED that does not mark packets (``red``), or any congestion
    control law (``any_law``).  The returned text calls the simulator ``name``.
    """
    queues = DropTail | Red if red else DropTail
    other = "a queue other than drop-tail or RED" if red else "a queue other than drop-tail"
    link, flows = scenario.links[0], scenario.flows
    reasons = {
        "more than one link": len(scenario.links) > 1,
        # only with ``red``: without it the next entry excludes every RED queue
        "RED that marks packets (ecn)": red and isinstance(link.queue, Red) and link.queue.ecn,
        other: not isinstance(link.queue, queues),
        "random loss": link.loss > 0 and not random_loss,
        "a link that loses every packet": link.loss == 1 and random_loss,
        "forced drops": bool(link.drops),
        "reverse traffic": any(f.direction == "reverse" for f in flows),
        "flows of finite size": not all(f.long_lived for f in flows),
        "noise on the delay": any(f.delay_noise > 0 for f in flows),
        "flows whose packet_size is not the scenario's": any(
            scenario.size_of(f) != scenario.packet_size for f in flows
        ),
    }
    found = [reason for reason, present in reasons.items() if present]
    said = [f"{name} does not simulate {' or '.join(found)}"] if found else []
    # The equations of this module are for Vegas, Reno, NewReno, SACK and Tahoe. ``foreign`` returns
    # a text if there are other laws, else None.
    if not any_law and foreign(group.law for group in flows):
        names = sorted({group.law for group in flows if foreign((group.law,))})
        said.append(f"{name} does not know the law {', '.join(names)}")
    return "; ".join(said) or None


def check_method(losers: str, step: float) -> None:
    """Raise ``FieldError`` unless these are arguments of ``run`` that it allows."""
    Choice(LOSERS).check(losers, "losers")
    Quantity("fraction", high=4.0, low_open=True).check(step, "step")


def thresholds(flow: Flow) -> tuple[float, float]:
    """The backlogs in packets below which a flow's window grows, and above which it shrinks.

    For a flow with a loss-based law both are infinite, so its window always grows.
    """
    if not flow.keeps_backlog:
        return math.inf, math.inf
    low, high = STACKS[flow.variant].dead_zone(flow.alpha, flow.beta)
    return float(low), float(high)


def flows_of(
    scenario: Scenario, packets: bool = False, trains: bool = False, starts: Floats | None = None
) -> Flows:
    """The properties of the scenario's flows as arrays, with one entry for each flow.

    If ``packets`` is True, a loss-based flow has a fast recovery: after a loss its window stays
    constant for one propagation RTT.  Otherwise the window grows again at once.  If ``trains`` is
    True, Vegas sends each window of its slow start as a train of packets (``slow_start.py``).
    Vegas then also decides late, which matters if all flows are Vegas flows of the papers
    (``late_decisions.py``).  ``starts`` [n] are start times in seconds that replace those of the
    scenario.
    """
    groups = [_group(group, packets, trains) for group in scenario.flows]
    rows = [(m.rtt, *groups[m.group].values(), m.start, m.stop) for m in scenario.members]
    flows = Flows(*np.array(rows, dtype=np.float64).T.copy())
    if starts is not None:
        flows = flows._replace(start=starts)
    if trains and all(g.keeps_backlog and STACKS[g.variant].real_numbers for g in scenario.flows):
        capacity = scenario.links[0].capacity
        less = less_found(flows, capacity)
        lower, upper = resting_range(flows.lower, flows.upper, flows.rtt, capacity)
        flows = flows._replace(lower=lower, upper=upper, less_found=less)
    return flows._replace(**{name: getattr(flows, name) != 0.0 for name in BOOLEAN})


def _group(flow: Flow, packets: bool, trains: bool) -> dict[str, float]:
    """The properties common to all flows of a group: fields of ``Flows``, in their order.

    A group is an entry of ``scenario.flows``, which may stand for several flows.  The flows of a
    group differ only in ``rtt``, ``start`` and ``stop``, so these three fields are left out.
    ``trains`` says whether slow start of Vegas sends each window as a train.
    """
    stack = STACKS[flow.variant]
    vegas = flow.keeps_backlog
    # an ACK acknowledges two packets, so the window grows half as fast
    delayed_acks = flow.delayed_ack and not vegas
    # Vegas doubles its window in every other round trip (equation (2) of De Vendictis and
    # Baiocchi), in Linux in every one
    rounds = float(stack.doubling) if vegas else 1.0
    over_estimate = 0.0 if flow.measures_base else float(flow.over_estimate)
    first = stack.least_window if flow.initial_window is None else flow.initial_window
    lower, upper = thresholds(flow)
    return {
        "keeps_backlog": vegas,
        "backlog_over_base": vegas and stack.backlog_over_base,
        "lower": lower,
        "upper": upper,
        "gamma": flow.gamma if vegas else math.inf,
        "in_trains": trains and vegas and not stack.least_of_round,
        "slow_start_growth": math.log(1.5 if delayed_acks else 2.0) / rounds,
        "growth": 0.5 if delayed_acks else 1.0,
        "decrease": flow.decrease,
        "min_window": stack.least_window,
        "max_window": flow.max_window,
        "initial_window": min(first, flow.max_window),
        "recovery": 1.0 if packets and not vegas else 0.0,
        "measures_base": vegas and flow.measures_base,
        "over_estimate": over_estimate if vegas else 0.0,
        "less_found": 0.0,
    }


def fresh(flows: Flows) -> tuple[State, Tally]:
    """The state before any flow starts, and the time integrals for averages, which start at 0."""
    n = flows.rtt.size
    return empty_state(n), empty_tally(n)


def averages(tally: Tally) -> dict[str, Any]:
    """Compute averages from the time integrals and counts in ``tally``.

    Returns a dictionary with the flows' throughputs, mean windows and mean RTTs, and the mean
    queue.  Its keys are names of fields of ``LimitCycle``.
    """
    duration = tally.queue[SPAN]
    with np.errstate(invalid="ignore", divide="ignore"):
        rtt_mean = tally.window / tally.delivered
    return {
        "throughput": tally.delivered / duration,
        "window": tally.window / duration,
        "rtt_mean": rtt_mean,
        "queue_mean": float(tally.queue[WAITED] / duration),
    }


def limits(scenario: Scenario, packets: bool) -> tuple[float, float]:
    """Capacity in pkt/s, and the queueing delay in seconds at which the buffer overflows.

    In section 3 of De Vendictis and Baiocchi a packet is lost when the windows of Vegas and Reno
    add up to mu T + B + 1.  Here mu T is the bandwidth-delay product and B the buffer in packets.
    So the buffer overflows at a queue of B + 1 packets.

    With ``packets`` a sender sends only whole packets: with a window w, floor(w) are in flight.
    While w grows, floor(w) is on average w - 1/2, and this average is the window of the equations.
    The buffer overflows when w reaches a whole number, because floor(w) then grows by one. At that
    moment w packets are in flight, and the window of the equations is w - 1/2. So in the equations
    the buffer overflows at a queue of B + 1/2 packets.
    """
    link = scenario.links[0]
    return link.capacity, (link.buffer + (0.5 if packets else 1.0)) / link.capacity


def in_packets(scenario: Scenario, packets: bool | None) -> bool:
    """Whether the simulation takes into account that windows are whole packets.

    Returns ``packets`` if it is True or False.  If it is None, returns True if a flow runs the TCP
    of ns-2 or Linux.
    """
    if packets is not None:
        return packets
    return any(not STACKS[flow.variant].real_numbers for flow in scenario.flows)


def instants(duration: float, sample: float | None) -> Floats:
    """The times of the samples in a run: every ``sample`` seconds, from 0 to its ``duration``.

    By default ``sample`` is a thousandth of the duration. If it is infinite, there are no samples.
    Raises ``FieldError`` if it is not positive, or if there would be more than ``MAX_SAMPLES``.
    """
    spacing = duration / 1000 if sample is None else sample
    if spacing == math.inf:
        return np.empty(0)
    if not spacing * MAX_SAMPLES >= duration:
        raise FieldError(
            "sample", spacing, f"a time of at least {exactly(duration / MAX_SAMPLES)} s"
        )
    spacings = math.floor(duration / spacing * (1 + 1e-12))  # in spite of rounding errors
    times: Floats = np.arange(spacings + 1.0) * spacing
    return times


@kinds.checked
def run(
    scenario: Scenario,
    sample: float | None = None,
    *,
    losers: str = "growing",
    packets: bool | None = None,
    step: float = STEP,
    starts: Floats | None = None,
    trains: bool = False,
) -> ContinuousRun:
    """Integrate the equations of the windows from time 0 to the scenario's ``duration``.

    - ``sample`` is the time in seconds between two samples of the curves (default: a thousandth of
      the duration).  If it is infinite, the curves are empty.
    - ``losers`` selects which flows lose packets when the buffer overflows: ``growing``, those
      whose windows grow at that moment; ``all``, every flow (hypothesis 5 of De Vendictis and
      Baiocchi); or ``loss-based``, the loss-based ones among those that grow.
    - ``packets`` says whether the simulation takes into account that windows are whole packets.  If
      it is True, the fast recovery of a loss-based flow takes one propagation RTT, and the buffer
      overflows at a queue that is half a packet shorter (``limits``).  By default it is True if a
      flow's variant is ns2 or linux.
    - ``step`` is the length of an integration step divided by the shortest RTT at that time.  Steps
      are longer where the queue changes slowly.  The error falls with the square of ``step``, with
      ``trains`` only in proportion to ``step``: slow start ends at the end of a step.
    - ``starts`` [flow] are start times in seconds that replace those of the scenario.
    - ``trains`` says whether slow start of Vegas sends each window as a train of packets
      (``slow_start.py``), and whether Vegas decides late (``late_decisions.py``), as in the
      simulator ``fluid``.  The papers' equations have neither.

    A cycle of the windows lasts from one overflow to the next.  If the windows after two successive
    overflows are equal (relative error 1e-9), the cycle between them is repeated, and no further
    cycle is computed until a flow starts or stops.

    Raises ``ValueError`` for a wrong argument, or if the model cannot simulate the scenario
    (``unsupported`` says why).
    """
    from vegasmodel.engines.fluid import march as windows_march

    reason = unsupported(scenario)
    if reason is not None:
        raise ValueError(reason)
    check_method(losers, step)
    duration, warmup = scenario.run.duration, scenario.run.warmup
    time = instants(duration, sample)
    packets = in_packets(scenario, packets)
    c, s_max = limits(scenario, packets)
    n = len(scenario.members)
    check_starts(scenario, starts)
    # the flows and the state at time 0; time integrals before and after the end of the warm-up
    flows = flows_of(scenario, packets, trains, starts)
    state, before = fresh(flows)
    after = empty_tally(n)
    arrays = windows_march.workspace(*fresh(flows))
    samples = windows_march.samples_at(time, flows, state, arrays)
    record = samples.values
    record[:, :1] = 0.0  # the first sample is at time 0
    # the simulation: first the warm-up, then the rest of the run
    stop_at_loss, skip_cycles = False, True
    code: int = Status.DONE
    with running(lambda: float(state.now[TIME]), duration):
        for end, tally in ((warmup, before), (duration, after)):
            if code == Status.DONE:
                code = whole(
                    windows_march.march, flows, state, c, s_max, LOSERS.index(losers), end, step,
                    stop_at_loss, skip_cycles, tally, samples, arrays,
                )  # fmt: skip
    # the curves, [flow, time]
    window, delay, lost, delivered = np.split(record, (n, n + 1, 2 * n + 1))
    # after the warm-up the counts begin anew; the curves count from the start of the run
    measured = time.searchsorted(warmup)
    lost[:, measured:] += before.losses[:, None]
    delivered[:, measured:] += before.delivered[:, None]
    # the averages; NaN if the simulation has failed
    if code != Status.DONE:
        after.delivered.fill(np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        throughput, rtt_mean = after.delivered / after.active, after.window / after.delivered
    rtt = flows.rtt[:, None] + delay
    base_rtt = flows.rtt + state.over_estimate
    base_rtt[~flows.keeps_backlog] = np.nan
    return ContinuousRun(
        time=time,
        window=window.T,
        rate=(window / rtt).T,
        rtt=rtt.T,
        queue=c * delay.T,
        lost=lost.T,
        delivered_so_far=delivered.T,
        throughput=throughput,
        delivered=after.delivered,
        base_rtt=base_rtt,
        rtt_mean=rtt_mean,
        queue_mean=after.queue[[WAITED]] / after.queue[SPAN]
        if code == Status.DONE
        else np.array([np.nan]),
        losses=after.losses.astype(np.float64),
        status=Status(code).reason,
    )
