"""Entry to the simulator ``fluid``: computes averages and trajectories of flows over one link.

There are two methods:

* ``continuous.py`` integrates windows that change at every instant. It is used if every flow runs
  TCP as in the papers (``variant = "paper"``) with a congestion control law of this package other
  than CUBIC, and if the link is drop-tail without random loss.
* The package ``sampled`` proceeds in small steps of time. It is used in all other cases: for RED,
  for random loss, for CUBIC, for laws that the user has written, and for the TCP of ns-2 or Linux.
  (Their TCP sends whole packets, and their Vegas changes its window once per round trip.)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_args

import numpy as np

from vegasmodel.engines.fluid import continuous
from vegasmodel.engines.fluid.continuous import ContinuousRun
from vegasmodel.engines.fluid.pauses import running, whole
from vegasmodel.fields import kinds
from vegasmodel.fields.rules import MAX_RUNS, Integer
from vegasmodel.fields.units import FieldError
from vegasmodel.laws import find, foreign
from vegasmodel.laws.faults import LawFault
from vegasmodel.laws.law import Law, Recovery, SlowStart, ask, place
from vegasmodel.metrics import Floats
from vegasmodel.placement import held_by_receiver, link_stack, stack
from vegasmodel.scatter import MIN_RUNS, enough
from vegasmodel.scenario import DropTail, Flow, Red, Scenario
from vegasmodel.stacks import STACKS
from vegasmodel.stacks.stack import Stack
from vegasmodel.status import Status
from vegasmodel.support.progress import series

__all__ = ["run", "unsupported"]

CHECKS = 2.0  # ACKs after a retransmission at each of which Vegas may retransmit one more packet
STEP = 0.5  # length of a step of ``sampled``, as a part of the shortest round trip
CONTINUOUS_STEP = 1.0 / 64.0  # the same if windows change at every instant
_RECOVERIES: tuple[str, ...] = get_args(Recovery)
_SLOW_STARTS = get_args(SlowStart)
_MECHANISMS = (
    "backlog_over_base",
    "real_numbers",
    "whole_window",
    "least_of_round",
    "rack",
    "doubling",
    "partial_deflates",
    "restarts_rounds",
)


def papers_only(scenario: Scenario) -> bool:
    """Whether all flows run TCP as in the papers (``variant = "paper"``).

    Their windows are then real numbers that change at every instant. The TCPs of ns-2 and Linux
    send whole packets instead, and their Vegas changes its window once per round trip.
    """
    return all(STACKS[group.variant].real_numbers for group in scenario.flows)


@kinds.checked
def unsupported(scenario: Scenario) -> str | None:
    """Why the simulator ``fluid`` cannot simulate the scenario; None if it can."""
    queue, name = scenario.links[0].queue, "the fluid"
    if isinstance(queue, Red) and queue.ecn:
        return f"{name} does not simulate RED that marks packets (ecn)"
    return continuous.unsupported(scenario, random_loss=True, red=True, any_law=True, name=name)


def all_continuous(scenario: Scenario) -> bool:
    """Whether ``continuous.py`` simulates the scenario, and not the package ``sampled``.

    It does if every flow runs TCP as in the papers, with a law of this package other than CUBIC,
    and if the link is drop-tail without random loss.
    """
    link = scenario.links[0]
    plain = isinstance(link.queue, DropTail) and link.loss == 0
    known = not foreign(group.law for group in scenario.flows)
    return papers_only(scenario) and plain and known


def one_run_suffices(scenario: Scenario) -> bool:
    """Whether ``continuous.py`` simulates the scenario and its start times are not random."""
    return all_continuous(scenario) and scenario.run.start_jitter == 0.0


@kinds.checked
def run(
    scenario: Scenario, sample: float | None = None, *, runs: int | None = None
) -> ContinuousRun:
    """Simulate the scenario from time 0 to its ``duration`` by the equations of the windows.

    The result holds one sample of each trajectory every ``sample`` seconds (default: a thousandth
    of the duration). If ``sample`` is infinite, there are none.

    Runs may differ by chance, for one of these reasons: start times are random, senders wait a
    random time before they send, the link has RED or random loss, or random numbers decide which
    flow loses a packet at the full buffer. If ``continuous.py`` simulates the scenario
    (``all_continuous``), only start times can be random.

    Averages are means over ``runs`` runs. By default there is one run if runs do not differ by
    chance. If they do, there are as many as the scenario states, or else 3 to 5
    (``scatter.enough``). If ``continuous.py`` simulates the scenario and start times are not
    random, there is one run, whatever ``runs`` is. The trajectories are those of the first run.

    Raises ``ValueError`` for a wrong argument, if the model cannot simulate the scenario, or if a
    function of a user's law returns an unusable number.
    """
    if runs is not None:
        Integer(1, MAX_RUNS).check(runs, "runs")
    reason = unsupported(scenario)
    if reason is not None:
        raise ValueError(reason)
    if all_continuous(scenario):
        smooth = _continuous(scenario, sample, runs)
        sound(scenario)
        return smooth
    time = continuous.instants(scenario.run.duration, sample)
    fresh = senders(scenario)
    with series() as under_way:
        found = [_one(scenario, fresh.copy(), 0, time)]
        chance = by_chance(scenario) or found[0]["draws"] > 0
        asked = runs or (scenario.run.runs if chance else 1)
        while not _done(found, asked):
            under_way.wanted = max(asked or MIN_RUNS, len(found) + 1)
            found.append(_one(scenario, fresh.copy(), len(found), np.empty(0)))
    sound(scenario)
    record = found[0]["record"]
    averages = [name for name in found[0] if name not in ("record", "draws", "timeouts")]
    mean = {name: np.mean([each[name] for each in found], axis=0) for name in averages}
    propagation = np.array([member.rtt for member in scenario.members])
    n, room = propagation.size, _bottleneck(scenario, papers_only(scenario)).room
    queueing = record[:, n : n + 1]
    return ContinuousRun(
        time=time,
        window=record[:, :n],
        rate=record[:, :n] / (fresh["rtt"] + queueing),
        rtt=propagation + queueing,
        queue=np.minimum(scenario.links[0].capacity * queueing, room),
        lost=record[:, n + 1 :],
        status=Status.DONE.reason,
        throughput_runs=np.array([each["throughput"] for each in found]),
        queue_runs=np.array([each["queue_mean"] for each in found]),
        by_chance=chance,
        timeouts=np.sum([each["timeouts"] for each in found], axis=0),
        **mean,
    )


def _continuous(scenario: Scenario, sample: float | None, runs: int | None) -> ContinuousRun:
    """Simulate the scenario by ``continuous.py``, whose windows change at every instant.

    If start times are random, there are several runs (``run`` says how many). The averages are then
    means over the runs, and the trajectories are those of the first run. If a run fails, the result
    is that run alone.
    """
    if one_run_suffices(scenario):
        return continuous.run(scenario, sample)
    times = np.array([member.start for member in scenario.members])
    found: list[ContinuousRun] = []
    asked = runs or scenario.run.runs
    with series() as under_way:
        while not found or not _done([vars(each) for each in found], asked):
            under_way.wanted = max(asked or MIN_RUNS, len(found) + 1)
            _, late = random_starts(scenario, len(found))
            spacing = sample if not found else math.inf  # curves of the first run only
            found.append(continuous.run(scenario, spacing, starts=times + late))
            if found[-1].status != Status.DONE.reason:
                return found[-1]
    averages = ("throughput", "base_rtt", "rtt_mean", "queue_mean", "losses")
    mean = {name: np.mean([getattr(each, name) for each in found], axis=0) for name in averages}
    by_run: dict[str, Any] = {
        "throughput_runs": np.array([each.throughput for each in found]),
        "queue_runs": np.array([each.queue_mean for each in found]),
    }
    return replace(found[0], **mean, **by_run, by_chance=True)


def _done(found: list[dict[str, Any]], asked: int | None) -> bool:
    """Whether no further run of the simulation is needed.

    ``asked`` is the number of runs to make. If it is None, ``scatter.enough`` decides by the
    throughputs of the runs ``found`` so far.
    """
    if asked is not None:
        return len(found) >= asked
    return enough(np.array([each["throughput"] for each in found]))


def sound(scenario: Scenario) -> None:
    """Raise ``LawFault`` if a function of a user's law or of CUBIC returned an unusable number.

    The functions of all other laws are compiled into the simulator and are not checked.
    """
    flows = [group for group in scenario.flows if foreign((group.law,))]
    laws = {_law(scenario, group, _runs(scenario, group)) for group in flows}
    for law in sorted(laws, key=lambda law: law.name):
        from vegasmodel.engines.outside import sound

        sound(law)


def advance(
    scenario: Scenario, march: Callable[..., int], flows: np.ndarray, state: np.ndarray, *told: Any
) -> int:
    """Call ``march`` of the package ``sampled`` until the simulation ends; returns its last code.

    ``told`` are the further arguments of ``march``. Raises ``LawFault`` if a flow sends far more
    packets at once than the link and its buffer hold.
    """
    code = whole(march, flows, state, *told)
    if code == Status.TOO_MANY_EVENTS:
        raise _too_many(scenario, flows, state)
    return code


def _too_many(scenario: Scenario, flows: np.ndarray, state: np.ndarray) -> LawFault:
    """The error for a law that has enlarged a window without bound; it names the law's function."""
    from vegasmodel.engines.fluid.sampled.law import source

    i = int(flows["extra"].argmax())
    flow, now = flows.view(np.recarray)[i], state.view(np.recarray)[0]
    seen = source(flow, now, papers_only(scenario))
    W, trip, law = seen.window, flow.rtt - flow.wait, find(scenario.members[i].flow.law)
    name, allowed = "drift", "a growth per round trip that link and buffer can take"
    try:
        found = ask(law, "drift", seen)
        if law.cut is not None and ask(law, "cut", seen) > W:
            name, found = "cut", ask(law, "cut", seen)
            allowed = "after a loss a window that is not above the one before it"
    except FieldError as error:
        return LawFault.of_error(error)
    fits = scenario.links[0].capacity * trip + scenario.links[0].buffer
    said = f"{scenario.members[i].name} has a window of {W:.3g} packets, and link and buffer hold "
    said = f"{allowed} ({place(getattr(law, name))}): {said}{fits:.3g}"
    return LawFault(f"law {law.name}: {name}", float(f"{found:.3g}"), said)


def by_chance(scenario: Scenario) -> bool:
    """Whether runs of the simulator ``fluid`` differ by chance because the scenario says so.

    The conditions are those of ``Scenario.by_chance``, with one exception. If all flows run TCP as
    in the papers, ``fluid`` ignores the random waits of senders (``send_jitter``).
    """
    if papers_only(scenario):
        scenario = scenario.replace({"flow.send_jitter": 0.0})
    return scenario.by_chance


def _one(scenario: Scenario, flows: np.ndarray, k: int, time: Floats) -> dict[str, Any]:
    """Simulate run number k of the scenario.

    Returns the averages after warmup, and samples at the times ``time``: the windows, the queueing
    delay and the losses so far. Also returns how many random numbers were drawn (``draws``), and
    each flow's timeouts.
    """
    from vegasmodel.engines.fluid.sampled import march

    n, state = flows.size, begin(scenario, flows, k)
    record = np.full((time.size, 2 * n + 1), np.nan)
    before, after = continuous.empty_tally(n), continuous.empty_tally(n)
    with running(lambda: float(state["time"][0]), scenario.run.duration):
        for end, out in ((scenario.run.warmup, before), (scenario.run.duration, after)):
            lost, told = flows["lost"].copy(), (*frame(scenario, flows), False, out, time, record)
            advance(scenario, march.march, flows, state, end, *told)
    delay_based = np.array([find(member.flow.law).delay_based for member in scenario.members])
    propagation = flows["rtt"] - flows["wait"]
    with np.errstate(invalid="ignore", divide="ignore"):
        return {
            "throughput": after.delivered / after.active,
            "delivered": after.delivered,
            "rtt_mean": after.window / after.delivered - flows["wait"],
            "base_rtt": np.where(delay_based, propagation + flows["over_estimate"], np.nan),
            "queue_mean": after.queue[:1] / after.queue[1],
            "loss_rate": (flows["lost"] - lost) / (flows["lost"] - lost + after.delivered),
            "losses": after.losses.astype(np.float64),
            "record": record,
            "draws": int(state[0]["draws"]),
            "timeouts": flows["timeouts"].copy(),
        }


def random_starts(scenario: Scenario, k: int) -> tuple[np.random.Generator, Floats]:
    """The random generator of run number ``k``, and each flow's random delay of its start, in s.

    The delays are at most ``start_jitter``; they are to be added to the scenario's start times.
    """
    rng = np.random.default_rng([scenario.run.seed, k])
    rng.integers(1, 2**31 - 1)  # as the packet engines draw
    return rng, rng.uniform(0.0, 1.0, len(scenario.members)) * scenario.run.start_jitter


def begin(scenario: Scenario, flows: np.ndarray, k: int) -> np.ndarray:
    """Prepare run number k of a scenario, and return the link's state at time 0.

    The function also adds a random delay to each start time in ``flows``, and seeds the random
    numbers of the run.
    """
    from vegasmodel.engines.fluid.sampled import chance, records

    rng, late = random_starts(scenario, k)
    flows["start"] += late
    state = np.zeros(1, records.LINK_STATE)
    state["red_gap"], state["loss_gap"] = rng.random(), rng.exponential()
    state["red_count"] = -1.0
    chance.seed(int(rng.integers(2**31)))
    return state


def frame(scenario: Scenario, flows: np.ndarray) -> tuple[Any, float, bool]:
    """What ``march`` of the package ``sampled`` needs to know beside the flows.

    Returns the link's constants, the length of a step divided by the shortest round trip, and the
    flag ``smooth``. This is true if all flows run TCP as in the papers: windows are then real
    numbers that change at every instant. ``flows`` are the scenario's ``senders``.
    """
    smooth = papers_only(scenario)
    link = _with_steps(_bottleneck(scenario, smooth), flows, smooth)
    return link, CONTINUOUS_STEP if smooth else STEP, smooth


def _bottleneck(scenario: Scenario, smooth: bool) -> Any:
    from vegasmodel.engines.fluid.sampled.records import Bottleneck

    link, queue = scenario.links[0], scenario.links[0].queue
    if smooth:
        room = continuous.limits(scenario, False)[1] * link.capacity
    else:
        room = queue.room(link.buffer, link_stack(scenario))
    wait = link.capacity * max(scenario.jitter(group) for group in scenario.flows)
    red = (0, 0.0, 1.0, 0.0, 0.0, 0)
    if isinstance(queue, Red):
        red = (
            1,
            queue.min_threshold,
            queue.max_threshold,
            queue.max_probability,
            queue.weight,
            int(queue.gentle),
        )
    return Bottleneck(link.capacity, room, link.loss, *red, wait, 0, 0)


def _with_steps(link: Any, flows: np.ndarray, smooth: bool) -> Any:
    """Add the addresses of two compiled functions to the link's constants, if they are needed.

    ``trains.meet`` drops packets where the flows' trains of packets meet at the queue.
    ``drops.drop_at_random`` drops packets by random loss and RED. Many scenarios need neither. To
    save time, each function is compiled only at the first scenario that needs it (``on_demand``).
    """
    from vegasmodel.engines import on_demand
    from vegasmodel.engines.fluid.sampled import random_drops, records, trains

    now = np.zeros(1, records.LINK_STATE)[0]
    if not smooth and trains.meetings_matter(flows, link.room, link.capacity):
        link = link._replace(meet_at=on_demand.address(trains.meet, flows, now, link, 0.0))
    if link.red or link.loss > 0.0:
        step = on_demand.address(random_drops.drop_at_random, flows, now, link, 0.0, 0.0)
        link = link._replace(drop_at=step)
    return link


def _runs(scenario: Scenario, group: Flow) -> Stack:
    """The TCP implementation that the flows of ``group`` have in the simulator ``fluid``."""
    return STACKS[group.variant] if papers_only(scenario) else stack(scenario, group)


def _in_line(scenario: Scenario) -> bool:
    """Whether the order is known in which packets of Linux senders pass a full queue (``line.py``).

    All RTTs must be equal, and each packet must be acknowledged at once. If receivers delay ACKs,
    an ACK releases several packets. If all laws are such as Vegas, the queue seldom fills. Random
    loss and RED drop packets elsewhere, and their repairs split the trains.
    """
    flows, link = scenario.flows, scenario.links[0]
    fills = not all(find(group.law).delay_based for group in flows)
    alike = len({member.rtt for member in scenario.members}) == 1
    elsewhere = link.loss > 0.0 or isinstance(link.queue, Red)
    return fills and alike and not elsewhere and not any(group.delayed_ack for group in flows)


def _law(scenario: Scenario, group: Flow, runs: Stack) -> Law:
    """The congestion control law of ``group``, for senders with the TCP implementation ``runs``.

    If this implementation has a CUBIC of its own, the growth of CUBIC's window (the law's function
    ``drift``) is that of this implementation.
    """
    law = find(group.law)
    if law.kernel_drift is None or not runs.bictcp:
        return law
    known = runs.reno_windows, runs.whole_window, _in_line(scenario)
    return replace(law, drift=law.kernel_drift(*known))


def _grows_by_acks(law: Law, runs: Stack) -> bool:
    """Whether each ACK adds a part of a packet to the window.

    ``law`` is the flow's congestion control, and ``runs`` its TCP implementation. The result is
    False in three cases:

    - Vegas and some other laws change the window only once per round trip.
    - Linux and ns-2's CUBIC count ACKs, and then let the window grow by a whole packet.
    - TCP as in the papers lets the window grow at every instant.
    """
    whole = runs.whole_window or (law.is_cubic and len(runs.cubic_agent) > 0)
    return not (law.once_a_round or whole or runs.real_numbers)


def _most_holes(law: Law, runs: Stack) -> float:
    """How many lost packets a recovery can repair; if there are more, a timeout follows.

    Reno repairs the first lost packet only. ns-2's Vegas repairs three: at each of the next two
    ACKs (``CHECKS``) it retransmits one more packet if that packet is overdue (tcp-vegas.cc:
    ``v_worried_``; Brakmo and Peterson 1995, 3.1).
    """
    if runs.recovery_of(law.recovery) == "one hole":
        return 1.0
    checks = law.overdue_checks and runs.overdue_checks and not runs.real_numbers
    return 1.0 + CHECKS if checks else math.inf


def _group(scenario: Scenario, group: Flow) -> dict[str, Any]:
    """The fields of ``sampled.records.Sender`` that are the same for all flows of a group."""
    from vegasmodel.engines.fluid.sampled.law import DRIFTS

    runs, smooth = _runs(scenario, group), papers_only(scenario)
    rules = _law(scenario, group, runs)
    lower, upper = runs.dead_zone(group.alpha, group.beta)
    own = runs.overdue_checks and not runs.real_numbers
    probed = group.law in runs.own_packets and runs.probes_base
    probed = probed and not isinstance(group.over_estimate, str)
    first = group.initial_window or (runs.least_window if probed else runs.first_window)
    late = group.delayed_ack and not (rules.delay_based and runs.real_numbers)
    if late and not runs.decides_late:  # an ACK of two leaves a packet less to be seen outstanding
        lower, upper = lower + 1.0, upper + 1.0
    row: dict[str, Any] = {
        "drift": DRIFTS.index(rules.drift) if rules.drift in DRIFTS else -1,
        **{name: getattr(runs, name) for name in _MECHANISMS},
        "cut_rounds_up": own and rules.slow_start == "gamma",
        "once_a_round": rules.once_a_round,
        "grows_if_few": runs.whole_window and rules.per_ack == "thresholds",
        "acked_at_once": 2.0 if group.delayed_ack else 1.0,
        "grows_by_acks": _grows_by_acks(rules, runs),
        "most_holes": _most_holes(rules, runs),
        "halves_in_slow_start": runs.halves_in_slow_start
        and not (rules.overdue_checks or rules.is_cubic or rules.cut is not None),
        "first_rto": 0.0 if smooth or runs.handshake else runs.first_rto,
        "sack_exit_rests": runs.sack_exit_rests and rules.recovery == "scoreboard",
        "recovery": _RECOVERIES.index(runs.recovery_of(rules.recovery)),
        "slow_start": _SLOW_STARTS.index(rules.slow_start),
        "lower": lower,
        "upper": upper if runs.upper_edge_rests else np.nextafter(upper, 0.0),
        "gamma": group.gamma,
        "drift_factor": 0.5 if late and not runs.counts_packets else 1.0,
        "steps_down": rules.per_ack == "thresholds",
        "counts_train": late and rules.per_ack == "thresholds" and not runs.decides_late,
        "ack_pause": runs.ack_pause,
        "delays_acks": group.delayed_ack and not runs.real_numbers,
        "decrease": group.decrease,
        "min_window": runs.least_window if rules.delay_based else 1.0,
        "max_window": group.max_window,
        "initial_window": first,
        "starts_slowly": rules.slow_start != "none" and not probed,
        "measures_base": isinstance(group.over_estimate, str),
        "untimed_first": runs.untimed_first and group.law in runs.own_packets,
    }
    if foreign((group.law,)):
        from vegasmodel.engines.outside import address

        row |= {f"{name}_at": address(rules, name) for name in ("drift", "cut", "remember")}
        row["lower"], row["upper"] = group.alpha, group.beta
    return row


def senders(scenario: Scenario) -> np.ndarray:
    """The scenario's flows as records (``sampled.records.Sender``), before any flow has started.

    A sender may wait a random time before it sends a packet (``send_jitter``). During the wait the
    packet counts as in flight, but it is not in the queue. ns-2's Vegas measures its RTT from the
    end of the wait. So if all flows are Vegas, these waits make the queue shorter, by half a packet
    at the default ``send_jitter``. To simulate this, ``rtt`` then contains the mean wait
    (``wait``). If a flow is loss-based, ``wait`` is 0, and the random waits decide which flow loses
    a packet (``loser``).
    """
    from vegasmodel.engines.fluid.sampled.records import FLOW

    flows = np.zeros(len(scenario.members), FLOW)
    smooth = papers_only(scenario)
    # If all RTTs are equal, the packets that a sender has in flight follow one another as a train.
    # With `samples_train`, a sender that decides once per round trip, such as ns-2's Vegas, samples
    # the queueing delay only while its train passes the queue. This needs the short steps that the
    # simulator makes while the buffer is nearly full. If all flows are delay-based, the buffer
    # seldom fills (`fills` is False). Then the delay is sampled over the whole round trip.
    fills = not all(find(group.law).delay_based for group in scenario.flows)
    rows = [_group(scenario, group) for group in scenario.flows]
    for i, member in enumerate(scenario.members):
        for name, value in rows[member.group].items():
            flows[i][name] = value
        fixed = member.flow.over_estimate
        flows[i]["over_estimate"] = math.inf if isinstance(fixed, str) else fixed
        if not (fills or smooth or stack(scenario, member.flow).waits_in_queue):
            flows[i]["wait"] = 0.5 * scenario.jitter(member.flow)
        flows[i]["rtt"] = member.rtt + flows[i]["wait"]
        flows[i]["start"], flows[i]["stop"] = member.start, member.stop
        flows[i]["held"] = 0.0 if smooth else held_by_receiver(scenario, member)
    decides = flows["once_a_round"] & ~flows["whole_window"]
    together = bool(np.all(flows["rtt"] == flows["rtt"][0]))
    flows["in_train"] = together
    flows["in_line"] = flows["whole_window"] & _in_line(scenario)
    cubic = [find(member.flow.law).is_cubic for member in scenario.members]
    flows["compares"] = flows["in_line"] & cubic
    flows["samples_train"] = decides & (together and fills and not smooth)
    return flows
