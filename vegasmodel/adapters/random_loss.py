"""Computes the rates of flows on a link that loses packets at random (model ``random-loss``).

The rate of each flow comes from a Markov chain for its window (``equilibrium/loss_rounds.py``).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from vegasmodel.adapters import waits
from vegasmodel.adapters.common import CYCLES, left_out, one_link, paper_equation, plain_queue
from vegasmodel.adapters.warm_up import settles
from vegasmodel.fields.lists import few
from vegasmodel.laws import find
from vegasmodel.metrics import Floats
from vegasmodel.results.assumption import Assumption
from vegasmodel.results.prediction import Prediction
from vegasmodel.scenario import Flow, Member, Scenario
from vegasmodel.scenario.placement import stack
from vegasmodel.status import Status

if TYPE_CHECKING:
    from vegasmodel.equilibrium.random_loss import Sender

NAME = "random-loss"
LITTLE_LOWERED = 0.9  # of the rate without losses: if a flow gets more, its losses hardly matter


def answer(scenario: Scenario) -> Prediction:
    """Each flow's rate at a link that loses packets at random, by a Markov chain of its window.

    If the rates without queueing add up to more than the capacity, packets queue. The mean queueing
    delay is then the one at which the rates add up to the capacity. If they exceed the capacity
    even with a full buffer, the buffer overflows. The model then raises the loss probability until
    the rates add up to the capacity.
    """
    reason = one_link(scenario)
    if reason is None and scenario.links[0].loss == 0:
        reason = "the link loses no packets at random"
    if reason is None and scenario.links[0].loss == 1:
        reason = "the link loses every packet"
    if reason is not None:
        return Prediction.not_applicable(NAME, scenario, reason)
    from vegasmodel.equilibrium import loss_peaks, random_loss  # only for a link that needs them

    link = scenario.links[0]
    flows = [_sender(scenario, member) for member in scenario.members]
    share = random_loss.share(flows, link.loss, link.capacity, link.buffer)
    if share.status != Status.DONE:
        detail = (
            "the solver found no queueing delay at which the flows' rates add up to the capacity; "
            "the simulator rounds can answer instead"
        )
        return Prediction.not_applicable(NAME, scenario, detail)
    # three figures that tell whether the buffer may overflow (``_never_full`` explains them)
    load = loss_peaks.load(flows, link.loss, link.capacity, link.buffer)
    burst = loss_peaks.slow_start_queue(flows, link.loss, link.capacity)
    recovery_burst = loss_peaks.recovery_burst(flows, link.loss, link.capacity)
    # RTTs without queueing; in ``round_trips`` they include the time that packets wait at the
    # sender or for a delayed ACK (``_round_trip``)
    rtt, round_trips = (np.array([x.rtt for x in each]) for each in (scenario.members, flows))
    delay = share.queueing
    # A single flow's packets queue whenever its window exceeds the capacity times the RTT, even if
    # its mean rate is below the capacity.
    if len(flows) == 1:
        delay = random_loss.own_queueing(flows[0], share.loss, link.capacity, link.buffer)
    return Prediction(
        NAME,
        scenario,
        share.rates,
        rtt_mean=rtt + delay,
        loss_rate=np.full(rtt.size, share.loss),
        assumptions=(
            _never_full(scenario, share.regime, load, burst, recovery_burst),
            _mean_field(scenario),
            _several_packets(scenario, share.rates * (round_trips + delay)),
            _whole_stack(scenario),
            paper_equation(scenario),
            plain_queue(link),
            waits.small_bursts(scenario, share.rates, longest=True),
            _short_pauses(scenario, share.rates),
            _settles(scenario, flows, share.rates),
            *_left_out_here(scenario),
        ),
    )


def _sender(scenario: Scenario, member: Member) -> Sender:
    """The properties of one flow as the model's equations take them."""
    from vegasmodel.equilibrium.random_loss import Sender

    flow = member.flow
    return Sender(
        law=flow.law,
        rtt=_round_trip(scenario, member),
        alpha=flow.alpha,
        over_estimate=_over_estimate(flow),
        decrease=flow.decrease,
        max_window=flow.max_window,
        ack_every=2.0 if flow.delayed_ack else 1.0,
        counts_packets=stack(scenario, flow).counts_packets,
        scoreboard=_recovery(scenario, flow) == "scoreboard",
    )


def _round_trip(scenario: Scenario, member: Member) -> float:
    """The time in s from a packet to the packet that its ACK releases, without a queue.

    Beside the flow's ``rtt`` it has the mean of the sender's random wait (``send_jitter``). If the
    receiver sends one ACK for two packets, the first of them waits until the second has crossed the
    slowest link.
    """
    flow = member.flow
    pair = scenario.usual_jitter(flow) if flow.delayed_ack else 0.0
    return member.rtt + scenario.jitter(flow) / 2.0 + pair


def _recovery(scenario: Scenario, flow: Flow) -> str:
    """How the flow recovers from losses: a value of ``Law.recovery``."""
    return stack(scenario, flow).recovery_of(find(flow.law).recovery)


def _over_estimate(flow: Flow) -> float:
    """The flow's over-estimate of its baseRTT, s; 0 if the flow measures its baseRTT.

    A measured baseRTT is taken as exact, because losses let the link's queue empty now and then.
    """
    return 0.0 if flow.measures_base else float(flow.over_estimate)


def _never_full(
    scenario: Scenario, regime: str, load: float, burst: float, recovery_burst: float
) -> Assumption:
    """The assumption that no packet is lost at a full buffer.

    ``regime`` says what limits the rates: the losses, the capacity or the buffer
    (``random_loss.Share``).  The other three arguments are results of functions in ``loss_peaks``:

    - ``load``: the highest likely sum of the flows' rates with a full buffer, divided by the
      capacity.
    - ``burst``: the largest queue after a timeout, in packets (``slow_start_queue``).
    - ``recovery_burst``: the longest burst of Vegas after a recovery, in packets
      (``recovery_burst``).
    """
    detail = ""
    if regime == "buffer-limited":
        detail = "the buffer overflows too; its losses are taken as random ones"
    elif load >= 1.0:
        # the equations for a single flow include the window cut by an overflow, but not its loss
        alone = len(scenario.members) == 1
        missing = "not in the loss rate" if alone else "not in the equations"
        detail = (
            "random losses are too rare to keep the windows small; peaks of the windows overflow "
            f"the buffer, and these losses are {missing}"
        )
    elif burst > scenario.links[0].buffer:
        detail = (
            f"slow start after a timeout can bring {burst:.2g} packets into the queue, more than "
            "the buffer holds"
        )
    elif recovery_burst > scenario.links[0].buffer + 1.0:
        detail = (
            f"after two losses in one window Vegas can send a burst of {recovery_burst:.2g} "
            "packets, more than the buffer holds"
        )
    return Assumption("losses-are-random-only", not detail, detail)


def _mean_field(scenario: Scenario) -> Assumption:
    """The assumption that a flow is alone; else the others act on it by their mean queue only."""
    alone = len(scenario.members) == 1
    detail = "" if alone else "each flow sees the others' mean queue only"
    return Assumption("mean-field", alone, detail)


def _several_packets(scenario: Scenario, windows: Floats) -> Assumption:
    """The assumption that windows exceed 3 packets, so that fast retransmit can repair a loss.

    If a packet of a smaller window is lost, fewer than three duplicate ACKs return. The flow then
    often waits for a timeout, and its rate depends on details of its timer.
    """
    smallest = int(np.argmin(windows))
    holds = bool(windows[smallest] > 3.0)
    name = scenario.members[smallest].name
    detail = (
        f"{name} has a mean window of {windows[smallest]:.2g} packets, so "
        "its rate depends on details of its timer that are not in the equations"
    )
    return Assumption("windows-above-three", holds, "" if holds else detail)


def _whole_stack(scenario: Scenario) -> Assumption:
    """The assumption that all flows have ns-2's timers, which the equations contain."""
    with_other_timers = [g.name for g in scenario.flows if stack(scenario, g).rack]
    detail = (
        f"the equations lack the probes and timers of the TCP of {few(with_other_timers)}"
        if with_other_timers
        else ""
    )
    return Assumption("whole-stack", not with_other_timers, detail)


def _short_pauses(scenario: Scenario, rates: Floats) -> Assumption:
    """The assumption that receivers that delay ACKs seldom wait in vain for a second packet.

    After a loss a single packet may be in flight. The receiver then acknowledges it only when its
    timer for delayed ACKs expires. The equations contain delayed ACKs, but not these pauses. The
    assumption fails if such a pause is longer than the mean time between two losses of a flow.
    ``rates`` [n] are the flows' predicted rates, pkt/s.
    """
    from vegasmodel.equilibrium.loss_rounds import ACK_PAUSE

    p = scenario.links[0].loss
    pausing = [
        f"{m.name} loses a packet in {1.0 / (p * rate):.2g} s"
        for m, rate in zip(scenario.members, rates, strict=True)
        if m.flow.delayed_ack and ACK_PAUSE * p * rate > 1.0
    ]
    detail = (
        f"{pausing[0]}, and the pause for a delayed ACK may be {ACK_PAUSE} s" if pausing else ""
    )
    return Assumption("short-ack-pauses", not pausing, detail)


def _settles(scenario: Scenario, flows: list[Sender], rates: Floats) -> Assumption:
    """The assumption that the run is long enough for the mean over random losses.

    It fails in three cases: if ``warm_up.settles`` does; if NewReno may still repair the losses of
    its first slow start when the warm-up ends (``_long_repair``); or if a flow loses few packets
    after the warm-up (``_few_losses``). ``rates`` [n] are the flows' predicted rates, pkt/s.
    """
    known = settles(scenario)
    if known.holds is False:
        return known
    for member, flow, rate in zip(scenario.members, flows, rates.tolist(), strict=True):
        fair_share = scenario.links[0].capacity / len(flows)
        reason = _long_repair(scenario, member, flow) or _few_losses(
            scenario, member, flow, rate, fair_share
        )
        if reason:
            return Assumption("settles-in-time", False, reason)
    return Assumption("settles-in-time", True)


def _long_repair(scenario: Scenario, member: Member, flow: Sender) -> str:
    """Why a flow may still repair the losses of its first slow start when the warm-up ends.

    The text is empty if it does not. Slow start sends two packets per ACK. Once the buffer is full,
    one of each two finds no room for a round trip. So about as many packets are lost as the window
    has when the buffer overflows. NewReno repairs one per round trip.
    """
    from vegasmodel.equilibrium import loss_peaks

    link = scenario.links[0]
    if _recovery(scenario, member.flow) != "hole by hole" or member.flow.keeps_backlog:
        return ""
    # packets, with an equal part of the link and the buffer for each flow
    window_at_overflow = (link.capacity * flow.rtt + link.buffer) / len(scenario.members)
    # Slow start may end before the overflow: at a random loss, or because ``max_window`` is
    # reached. While the window doubles again and again, about twice its last size is sent.
    no_loss_before = math.exp(-2.0 * link.loss * window_at_overflow)  # probability
    overflows = no_loss_before > loss_peaks.SELDOM and flow.max_window > window_at_overflow
    repair = window_at_overflow * flow.rtt  # s
    if not overflows or scenario.run.warmup >= member.start + repair:
        return ""
    return (
        f"the first slow start of {member.name} may lose {window_at_overflow:.0f} packets "
        f"at the full buffer; NewReno repairs one a round trip, which takes {repair:.4g} s"
    )


def _few_losses(
    scenario: Scenario, member: Member, flow: Sender, rate: float, fair_share: float
) -> str:
    """Why the mean over a flow's random losses depends on chance; empty if it does not.

    It does if the flow loses fewer than ``CYCLES`` packets after the warm-up, unless losses hardly
    lower its rate. ``rate`` is its predicted rate and ``fair_share`` an equal part of the
    capacity, both in pkt/s.
    """
    from vegasmodel.equilibrium import random_loss

    run = scenario.run
    losses = scenario.links[0].loss * rate * (run.duration - run.warmup)
    if losses >= CYCLES:
        return ""
    if rate >= LITTLE_LOWERED * random_loss.throughput(flow, 0.0, fair_share):
        return ""  # the rate is nearly that without losses
    return (
        f"{member.name} loses about {losses:.2g} packets at random after the warm-up; a "
        f"mean over fewer than {CYCLES} depends on chance"
    )


def _left_out_here(scenario: Scenario) -> list[Assumption]:
    """The assumptions of ``left_out``, except those about receivers' windows and delayed ACKs.

    These two do not matter here, because the model's equations contain both features.
    """
    in_equations = ("window-not-limited", "one-ack-a-packet")
    return [a for a in left_out(scenario, random_loss=True) if a.name not in in_equations]
