"""Simulates senders that share one queue and learn of it a round trip late (``delayed``).

Flow i has the propagation delay T_i (of a round trip), the window W_i (packets) and the
over-estimate x_i of the propagation delay: its baseRTT is T_i + x_i. The link has the capacity c
(packets per second) and the queueing delay s. A_i(t) is the number of packets that flow i has sent
by time t. A packet reaches the queue f_i seconds after it is sent.

Random loss and RED drop the fraction p of the packets that reach the queue. The others join the
queue, and the link sends c packets per second. So the queueing delay changes as follows, up to
s_max, the delay at a full buffer:

    c ds/dt = (1 - p) sum_i A_i'(t - f_i) - c,   0 <= s <= s_max                        (D1)

The queue is first in, first out: a packet that reaches it at time u leaves it at time u + s(u). The
ACK reaches the sender T_i - f_i seconds later. If the packet is dropped, the sender learns of this
at the time at which the ACK would have arrived. So at time t sender i knows the fate of its first
N_i(t) packets. The last of them reached the queue at time u_i:

    u_i + s(u_i) = t - (T_i - f_i),   N_i(t) = A_i(u_i - f_i)                           (D2)

The sender sends a packet whenever fewer packets are in flight than the window allows, that is,
until it has sent N_i + W_i packets. After a cut of the window, N_i + W_i is smaller than A_i, and
the sender waits for ACKs. So A_i is the largest value that N_i + W_i has had:

    A_i(t) = max over v <= t of N_i(v) + W_i(v)                                         (D3)

In the first round trip of a flow no ACKs arrive. The flow then sends its initial window at a
constant rate.

In congestion avoidance each ACK moves the window by m_i/W_i packets. So the window moves by m_i
packets per round trip, where m_i depends on the flow's backlog Diff_i:

    W_i dW_i = m_i dN_i,   m_i in Sgn_i(Diff_i),   Diff_i = W_i (s_i - x_i)/(T_i + s_i) (D4)

Here s_i = s(u_i) is the queueing delay that the ACK reports. Diff_i is the backlog as the sender
computes it from s_i. (Linux divides by its baseRTT, T_i + x_i, not by the RTT, T_i + s_i.)
Sgn_i(Diff_i) is the set of values that m_i may have. For Reno m_i is always 1 (1/2 if the receiver
delays ACKs). For Vegas m_i is 1 if Diff_i is below the threshold alpha, -1 if Diff_i is above the
threshold beta, and 0 in between. If Diff_i equals alpha, m_i may have any value from 0 to 1. If
Diff_i equals beta, m_i may have any value from -1 to 0. (If alpha = beta, the values are those from
-1 to 1.)

In slow start the window grows by the factor e^g per round trip: dW_i = (e^g - 1) dN_i, where the
constant g depends on the flow's law. A loss ends slow start. Vegas also ends it when Diff_i reaches
the threshold gamma.

After a loss at the full buffer a sender cuts its window once, however many packets of that window
were lost. The cut multiplies the window by the factor ``decrease``. After the cut the window stays
constant while the sender recovers from the loss. Random loss and RED reduce the window smoothly, by
the mean effect of their drops: dW_i = -p (1 - decrease) W_i dN_i. In slow start the window is not
reduced in this way. Instead, slow start ends with one cut as soon as the expected number
of drops reaches 1.

RED computes its drop probability from its average queue v. The present queue has c s packets. Each
packet that reaches the queue moves v towards c s, by the fraction w of the difference, where w is
RED's weight. While the queue is empty, the link could send more packets than arrive. For each
packet that the link could have sent in addition, v falls as if such a packet had arrived and found
the queue empty.

Sources:

- (D3): Jacobsson et al., "ACK-clocking dynamics", INFOCOM 2008.
- (D4): equation (1) of Boutremans and Le Boudec (2000).
- RED and the mean effect of drops: Misra, Gong and Towsley, SIGCOMM 2000.
- RED's average while the queue is empty: Floyd and Jacobson, "Random early detection gateways for
  congestion avoidance", IEEE/ACM Transactions on Networking, 1993.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vegasmodel.engines.delayed.march import march
from vegasmodel.engines.delayed.queue import drop_probability
from vegasmodel.engines.delayed.state import DropParameters, Past, Samples, Senders, Totals
from vegasmodel.engines.fluid import continuous
from vegasmodel.engines.fluid.pauses import running
from vegasmodel.engines.fluid.records import SPAN, WAITED, Flows
from vegasmodel.engines.starts import start_times
from vegasmodel.fields import kinds
from vegasmodel.fields.rules import MAX_SAMPLES, Choice, Integer, Quantity
from vegasmodel.metrics import Floats
from vegasmodel.scenario import Red, Scenario
from vegasmodel.scenario.placement import to_first_link
from vegasmodel.support.threads import check

__all__ = ["DelayedRun", "Equilibrium", "run", "unsupported"]

STEP = 1.0 / 32.0  # greatest length of a step, as a part of the shortest propagation RTT
# The history has room for ``ROOM`` / (number of flows) past steps at first, but at least for
# ``LEAST_ROOM``. The function ``room`` makes it larger when it is full.
ROOM, LEAST_ROOM = 1 << 14, 256
STEP_LIMIT = 3e9  # greatest number of steps times flows; so many take half an hour


@kinds.checked
@dataclass(frozen=True, eq=False)
class Equilibrium:
    """A run's initial equilibrium: up to time 0, queueing delay and windows are constant."""

    delay: float  # s, seconds
    window: Floats  # [flow] packets


@dataclass(frozen=True, eq=False)
class DelayedRun:
    """Result of the simulator ``delayed``: curves over time, and averages for flows and the link.

    The averages cover the time after warmup.  A flow's averages leave out the time in which it is
    inactive.
    """

    time: Floats  # [t] s
    window: Floats  # [t, flow] packets, 0 while inactive
    rtt: Floats  # [t, flow] s, of the packet whose ACK arrives now
    sent: Floats  # [t, flow] packets sent so far; retransmissions count, too
    delivered: Floats  # [t, flow] packets whose ACKs have arrived at the sender so far
    lost: Floats  # [t, flow] packets dropped at the queue so far
    queue: Floats  # [t, link] packets that wait
    throughput: Floats  # [flow] pkt/s
    base_rtt: Floats  # [flow] s; NaN if not Vegas
    rtt_mean: Floats  # [flow] s, mean over the packets
    queue_mean: Floats  # [link] packets
    cuts: Floats  # [flow] number of cuts of the window after warmup
    past: Past  # the curves over the last round trips


@kinds.checked
def unsupported(scenario: Scenario) -> str | None:
    """Why the simulator ``delayed`` cannot simulate the scenario; None if it can.

    It can simulate random loss and RED, which the equations without feedback delay
    (``continuous.py``) cannot. It cannot simulate RED that marks packets (ECN).
    """
    name = "the simulator `delayed`"
    return continuous.unsupported(scenario, random_loss=True, red=True, name=name)


@kinds.checked
def run(
    scenario: Scenario,
    samples: int = 1001,
    *,
    losers: str = "growing",
    step: float = STEP,
    begin: Equilibrium | None = None,
) -> DelayedRun:
    """Integrate the equations of the windows from time 0 to the scenario's ``duration``.

    - ``samples`` is the number of times, evenly spaced, at which the result gives the curves.
    - ``losers`` says which flows lose packets when the buffer overflows (``continuous.run`` lists
      its values).
    - ``step`` is the length of an integration step divided by the shortest propagation RTT.
    - ``begin`` is an equilibrium of all flows in which the run begins; the flows' start times then
      do not count.  Without it the network is empty at first.

    If start times are random (``start_jitter``), they are those of the first run of ``fluid``.

    The propagation delay from a sender to the queue, and that from the queue back to the sender,
    are made at least one step long, so that a step needs only what happened before it.  The sum of
    the two, the flow's propagation RTT, stays the same.

    Raises ``ValueError`` for a wrong argument, if the model cannot simulate the scenario
    (``unsupported`` says why), or if the run would take too long.
    """
    reason = unsupported(scenario)
    if reason is not None:
        raise ValueError(reason)
    Choice(continuous.LOSERS).check(losers, "losers")
    Integer(2, MAX_SAMPLES).check(samples, "samples")
    Quantity("fraction", high=0.5, low_open=True).check(step, "step")
    packets = continuous.in_packets(scenario, None)  # whether windows are whole packets
    limits = continuous.limits(scenario, packets)
    capacity, _ = limits
    flows = continuous.flows_of(scenario, packets)
    n, longest_step = flows.rtt.size, step * float(flows.rtt.min())
    if n * scenario.run.duration > STEP_LIMIT * longest_step:
        raise ValueError(
            f"the simulator `delayed` makes at most {STEP_LIMIT:g} steps of a flow; {n} flows over "
            f"{scenario.run.duration:g} s at round trips of {flows.rtt.min():g} s are more"
        )
    # the propagation delay from each sender to the queue
    forward_delay = np.array([to_first_link(scenario, member) for member in scenario.members])
    forward_delay = np.clip(forward_delay, longest_step, flows.rtt - longest_step)
    drops = drop_parameters(scenario)
    if begin is None:
        flows = flows._replace(start=start_times(scenario, 0))
        senders, past = empty_network(flows, forward_delay)
    else:
        flows = flows._replace(start=np.full(n, -np.inf))
        senders, past = in_equilibrium(flows, forward_delay, begin, capacity, drops)
    time = np.linspace(0.0, scenario.run.duration, samples)
    curves = Samples(time, np.full((samples, n, 5), np.nan), np.full(samples, np.nan))
    totals, past = _simulate(
        flows, senders, past, limits, drops, continuous.LOSERS.index(losers),
        (scenario.run.warmup, scenario.run.duration), longest_step, curves,
    )  # fmt: skip
    window, reported_delay, sent, delivered, lost = np.moveaxis(curves.values, 2, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        throughput, rtt_mean = totals.delivered / totals.active, totals.seconds / totals.acked
    return DelayedRun(
        time=time,
        window=window,
        rtt=flows.rtt + reported_delay,
        sent=sent,
        delivered=delivered,
        lost=lost,
        queue=capacity * curves.delay[:, None],
        throughput=throughput,
        base_rtt=np.where(flows.keeps_backlog, flows.rtt + senders.over_estimate, np.nan),
        rtt_mean=rtt_mean,
        queue_mean=totals.queue[[WAITED]] / totals.queue[SPAN],
        cuts=totals.cuts.astype(np.float64),
        past=past,
    )


def _simulate(
    flows: Flows, senders: Senders, past: Past, limits: tuple[float, float], drops: DropParameters,
    losers: int, ends: tuple[float, float], longest_step: float, samples: Samples,
) -> tuple[Totals, Past]:  # fmt: skip
    """Simulate from time 0 to the end of the run; ``ends`` are the ends of warm-up and run, in s.

    Returns the time integrals since the warm-up, from which averages are computed, and the history
    of the queue and of the flows (``Past``) that a further simulation would need. ``senders`` and
    ``past`` are the senders' state and the history at time 0. ``limits`` are the capacity in pkt/s
    and the queueing delay of a full buffer in s. ``losers`` says which flows lose packets at an
    overflow (``queue.drop``). A step lasts at most ``longest_step`` seconds. The function fills in
    the ``samples``.
    """
    n = flows.rtt.size
    last = 1  # index of the latest entry of the history
    k = 0  # index of the first of ``samples.times`` without a sample
    _, duration = ends
    with running(lambda: max(float(past.time[last]), 0.0), duration):
        for end in ends:  # the totals begin anew when the warm-up ends
            totals = Totals(
                np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n, np.int64),
                np.zeros(2),
            )  # fmt: skip
            while past.time[last] < end:
                check()  # lets Ctrl-C end the run
                if last + 1 == past.time.size:
                    past, last = room(senders, past, last)
                last, k = march(
                    flows, senders, past, last, *limits, drops, losers, end, longest_step, totals,
                    samples, k,
                )  # fmt: skip
    past, last = room(senders, past, last)  # the result keeps no more than is needed
    return totals, Past(*(curve[: last + 1] for curve in past))


def empty_network(flows: Flows, forward_delay: Floats) -> tuple[Senders, Past]:
    """The senders' state and the history (``Past``) at time 0, if the network is empty until then.

    ``forward_delay`` [flow] is the propagation delay from each sender to the queue, in seconds.
    """
    n = flows.rtt.size
    size = max(ROOM // n, LEAST_ROOM)
    senders = Senders(
        forward_delay=forward_delay,
        window=np.zeros(n),
        over_estimate=np.full(n, np.inf),
        in_slow_start=np.zeros(n, np.bool_),
        recovery_until=np.zeros(n),
        loss_heard=np.full(n, np.inf),
        same_loss_until=np.zeros(n),
        expected_drops=np.zeros(n),
        acked=np.zeros(n),
        known_lost=np.zeros(n),
        known_random_drops=np.zeros(n),
        reported_delay=np.zeros(n),
        backlog_share=np.zeros(n),
        sent_index=np.zeros(n, np.int64),
        arrived_index=np.zeros(n, np.int64),
    )
    past = Past(
        time=np.zeros(size),
        delay=np.zeros(size),
        exit=np.zeros(size),
        sent=np.zeros((size, n)),
        arrived=np.zeros((size, n)),
        lost=np.zeros((size, n)),
        random_drops=np.zeros((size, n)),
        mean=np.zeros(size),
        growing=np.zeros((size, n), np.bool_),
    )
    # the history begins before all times at which a sender may look back from time 0
    past.time[0] = past.exit[0] = -2.0 * float(flows.rtt.max())
    return senders, past


def room(senders: Senders, past: Past, last: int) -> tuple[Past, int]:
    """Make room for more entries in the arrays of the history (``past``).

    Its latest entry has the index ``last``.  Entries that no flow needs any more are removed.  If
    the other entries fill more than half of the arrays, the arrays become twice as long.  Returns
    the new arrays and the index of the latest entry in them.
    """
    oldest = min(last, int(senders.sent_index.min()), int(senders.arrived_index.min()))
    kept = last + 1 - oldest
    size = past.time.size * (2 if kept > past.time.size // 2 else 1)
    senders.sent_index[:] -= oldest
    senders.arrived_index[:] -= oldest

    def moved(old: NDArray[Any]) -> NDArray[Any]:
        """An array of the new size, which begins with the entries of ``old`` that are needed."""
        new = np.zeros((size, *old.shape[1:]), old.dtype)
        new[:kept] = old[oldest : last + 1]
        return new

    return Past(*map(moved, past)), kept - 1


def drop_parameters(scenario: Scenario) -> DropParameters:
    """The scenario's parameters of random loss and RED, by which the link drops packets."""
    link, queue = scenario.links[0], scenario.links[0].queue
    if not isinstance(queue, Red):
        return DropParameters(
            loss=link.loss, red=False, low=0.0, high=1.0, top=0.0, gentle=False, weight=1.0
        )
    return DropParameters(
        loss=link.loss,
        red=True,
        low=float(queue.min_threshold),
        high=float(queue.max_threshold),
        top=float(queue.max_probability),
        gentle=queue.gentle,
        weight=float(queue.weight),
    )


def in_equilibrium(
    flows: Flows, forward_delay: Floats, begin: Equilibrium, c: float, drops: DropParameters
) -> tuple[Senders, Past]:
    """The senders' state and the history (``Past``) at time 0, if a run begins in equilibrium.

    ``begin`` is the equilibrium, with the queueing delay s and the windows W.  All rates were
    constant before time 0, so two points in time describe the whole past: time 0, and one before
    all times at which a sender may look back.  ``forward_delay`` [flow] is the propagation delay
    from each sender to the queue in seconds, ``c`` the capacity in pkt/s, and ``drops`` has the
    parameters of random loss and RED.

    Flow i has sent A_i packets, and its sender knows the fate of the first N_i of them.  They are
    counted from time 0 on, so before it they are negative.  The classes ``Senders`` and ``Past``
    explain their fields.
    """
    senders, past = empty_network(flows, forward_delay)
    s, W = begin.delay, np.asarray(begin.window, dtype=np.float64)
    x = np.where(flows.measures_base, 0.0, flows.over_estimate)  # over-estimates, seconds
    rtt = flows.rtt + s
    rate, p = W / rtt, float(drop_probability(drops, c * s))
    backlog_share = np.maximum(s - x, 0.0) / np.where(flows.backlog_over_base, flows.rtt + x, rtt)
    # the two points in time: a sender looks back by one RTT, so 4 RTTs are ample
    time = np.array([-4.0 * float(rtt.max()), 0.0])
    arrived = rate * (time[:, None] - forward_delay)
    past.time[:2], past.delay[:2], past.exit[:2], past.mean[:2] = time, s, time + s, c * s
    past.sent[:2], past.arrived[:2] = rate * time[:, None], arrived
    past.lost[:2], past.random_drops[:2] = p * arrived, p * arrived
    past.growing[:2] = ~flows.keeps_backlog
    senders.window[:], senders.over_estimate[:] = W, x
    senders.reported_delay[:], senders.backlog_share[:] = s, backlog_share
    # at time 0 A_i is 0, and W_i packets are in flight, so N_i = A_i - W_i = -W_i
    senders.acked[:], senders.known_lost[:], senders.known_random_drops[:] = -W, -p * W, -p * W
    return senders, past
