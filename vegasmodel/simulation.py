"""Simulates a scenario with the simulator that the caller names.

``simulate`` returns windows, rates and queues over time, and ``limit_cycle`` the steady state.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from vegasmodel.fields.errors import FieldError
from vegasmodel.fields.rules import MAX_SAMPLES, Boolean, Choice, Integer, Quantity
from vegasmodel.laws import find
from vegasmodel.metrics import Floats
from vegasmodel.results.assumption import Assumption
from vegasmodel.results.steady_state import LimitCycle
from vegasmodel.scenario import Scenario, expect
from vegasmodel.scenario.placement import implementation, with_crossed_link
from vegasmodel.status import Status
from vegasmodel.support.progress import series

if TYPE_CHECKING:
    import xarray

    from vegasmodel.engines.fluid.continuous import ContinuousRun

SIMULATORS = ("rounds", "fluid", "delayed")
ABOUT_AVERAGES = (  # assumptions on means over runs or over time, which a trajectory does not have
    "enough-runs",
    "insensitive-to-starts",
    "sends-after-warm-up",
    "settles-in-time",
    "thresholds-reached",
)
WITH_LIMIT_CYCLE = ("rounds", "fluid")  # the simulators that find a limit cycle
USUAL_SAMPLES = 2001  # default number of samples of a trajectory
MAX_SAMPLES_IN_ALL = 4_000_000  # limit for all flows together in ``samples_for_cycles``


def simulate(
    scenario: Scenario,
    model: str = "rounds",
    *,
    samples: int = USUAL_SAMPLES,
    parts: int | None = None,
) -> xarray.Dataset:
    """Simulate the scenario; return trajectories at ``samples`` instants, evenly over the duration.

    ``model`` is one of

    - ``rounds``: a simulator of packets in a network of links;
    - ``fluid``: a fluid model of one link, without feedback delay;
    - ``delayed``: a fluid model of one link, with feedback delay; it cannot simulate Tahoe.

    The variables, with their dimensions, are

    - ``window`` (time, flow): packets.  In ``rounds``, fast recovery without SACK adds one packet
      to the window for each duplicate ACK, until the lost packets are repaired.  So the window may
      rise far above the packets that link and buffer hold;
    - ``rate`` (time, flow): packets per second. In ``rounds`` and ``delayed`` this is the mean
      sending rate since the sample before. In ``fluid`` it is the window divided by the RTT at that
      time; while a sender repairs losses, or waits for its retransmission timer, it may send fewer
      packets;
    - ``rtt`` (time, flow): the round trip of a packet sent at that time, s (in ``delayed``, of the
      packet whose ACK arrives at that time);
    - ``base_rtt`` (time, flow): the baseRTT that Vegas or a delay-based law of your own uses, s.
      This is the least RTT that the flow has seen, or the value that the scenario fixes by
      ``over_estimate``.  In ``fluid`` and ``delayed`` the least RTT is that of the samples so far.
      If senders in ``fluid`` send whole packets (see below), they may compute with a longer
      baseRTT: a sender learns an RTT a round trip late, and it learns the mean RTT of all packets
      of a round trip.  At a RED queue, ns-2's Vegas may also compute with a far too small baseRTT
      after a timeout.  ``predict`` returns the baseRTT with which a sender computes at the end.
      The value is NaN for loss-based laws, and before the flow starts;
    - ``delivered``, ``lost`` (time, flow): packets so far (in ``fluid``, ``delivered`` counts each
      packet that has crossed the link);
    - ``queue`` (time, link): packets that wait to cross a link forward.

    Each variable's ``attrs`` hold its unit.  The dataset's ``attrs`` hold the model, the scenario's
    name and fingerprint, the version of this package, and how the simulation ended (``status``).
    If it ended early, the values after that time are NaN.  With ``rounds``, ``attrs`` also hold
    ``parts`` (see below) and the number of simulated ``events``.  ``left_out`` has the names of
    assumptions that do not hold, because the simulator leaves something out; it is empty if there
    are none.  ``left_out_reasons`` has a line for each of them, which says why.
    The coordinates ``law``, ``variant`` and ``packet_size`` (bytes) describe each flow.  The
    coordinates ``start`` and ``end`` say from when to when it sends, s.  ``start`` includes the
    random delay of the start.  ``end`` is the flow's ``stop``, the time at which it has delivered
    its ``size``, or the end of the run.

    ``rounds`` may simulate several successive packets of a flow as one event.  ``parts`` is the
    approximate greatest number of events per flow and round trip.  By default ``rounds`` chooses it
    for the scenario.  The other models ignore ``parts``.

    ``fluid`` has two methods.  If every flow has the variant ``paper`` and a law of this package
    other than CUBIC, and the link is drop-tail without random loss, windows change continuously.
    When the buffer overflows, every flow whose window is growing then loses one packet.  In all
    other cases ``fluid`` follows each flow's law and TCP implementation in small steps of time, and
    random numbers may decide which flow loses a packet.

    Raises ``FieldError`` for an unknown model or a wrong argument, and ``ValueError`` if the model
    cannot simulate the scenario.
    """
    expect(scenario)
    Choice(SIMULATORS).check(model, "model")
    Integer(2, MAX_SAMPLES).check(samples, "samples")
    if parts is not None:
        Integer(1).check(parts, "parts")
    import xarray

    import vegasmodel

    if model == "delayed":
        found = _delayed(with_crossed_link(scenario), samples)
    elif model == "fluid":
        found = _fluid(with_crossed_link(scenario), samples)
    else:
        found = _rounds(scenario, samples, parts)
    left_out = [each for each in found.pop("assumptions") if each.holds is False]
    attrs = {
        "model": model,
        "scenario": scenario.name,
        "fingerprint": scenario.fingerprint(),
        "version": vegasmodel.__version__,
        **found.pop("attrs"),
        "left_out": ", ".join(each.name for each in left_out),
        "left_out_reasons": "\n".join(each.detail for each in left_out),
    }
    units = {"rate": "packets/s", "rtt": "s", "base_rtt": "s"}
    times, links = found.pop("time"), found.pop("link")
    ends = _activity(scenario, found.pop("finished", np.inf))
    return xarray.Dataset(
        {
            name: (
                ("time", "link" if name == "queue" else "flow"),
                values,
                {"units": units.get(name, "packets")},
            )
            for name, values in found.items()
        },
        coords={
            "time": ("time", times, {"units": "s"}),
            "flow": [member.name for member in scenario.members],
            **_flow_properties(scenario),
            **ends,
            "link": links,
        },
        attrs=attrs,
    )


def _flow_properties(scenario: Scenario) -> dict[str, tuple[str, list[Any]]]:
    """For each flow, its law, TCP implementation and packet size (bytes), as xarray coordinates."""
    groups = [member.flow for member in scenario.members]
    return {
        "law": ("flow", [group.law for group in groups]),
        "variant": ("flow", [implementation(scenario, group) for group in groups]),
        "packet_size": ("flow", [scenario.size_of(group) for group in groups]),
    }


def _activity(scenario: Scenario, finished: Floats | float) -> dict[str, tuple[str, Floats, Any]]:
    """From when to when each flow sends, as the xarray coordinates ``start`` and ``end``.

    ``finished`` is the time at which each flow has delivered its ``size``, or infinity if it has
    not. All times are in seconds. The random part of a start time (``start_jitter``) is that of the
    scenario's first run, which has the number 0.
    """
    from vegasmodel.engines.starts import start_times

    end = np.minimum([member.stop for member in scenario.members], finished)
    times = {"start": start_times(scenario, 0), "end": np.minimum(end, scenario.run.duration)}
    return {name: ("flow", values, {"units": "s"}) for name, values in times.items()}


def samples_for_cycles(scenario: Scenario) -> int:
    """A number of samples over the duration that should show every rise and fall of the windows.

    There are two samples per shortest RTT.  If all flows together would have more than
    ``MAX_SAMPLES_IN_ALL`` samples, there are fewer.  But there are never fewer than
    ``USUAL_SAMPLES``.
    """
    shortest = min(member.rtt for member in scenario.members)
    wanted = math.ceil(2.0 * scenario.run.duration / shortest) + 1
    return max(USUAL_SAMPLES, min(wanted, MAX_SAMPLES_IN_ALL // len(scenario.members)))


def _rounds(scenario: Scenario, samples: int, parts: int | None) -> dict[str, Any]:
    """What ``simulate`` returns for ``rounds`` with ``samples`` samples, as a dictionary.

    ``parts`` is about the greatest number of events per flow and round trip. With ``None``,
    ``rounds`` chooses it.

    It has the dataset's variables by name, and the coordinates ``time`` and ``link``.  Three more
    entries are no variables: ``attrs``, ``assumptions``, and ``finished``, the times in s at which
    flows of finite size have delivered all their packets.
    """
    from vegasmodel.engines.rounds import answers
    from vegasmodel.engines.rounds.assumptions import left_out
    from vegasmodel.engines.rounds.resolution import resolution
    from vegasmodel.engines.rounds.run import run
    from vegasmodel.engines.starts import start_times

    reason = answers.obstacle(scenario)
    if reason is not None:
        raise ValueError(f"the model rounds cannot simulate this scenario: {reason}")
    starts = start_times(scenario, 0)
    totals = run(scenario, parts=parts, samples=samples, starts=starts)
    if totals.status != Status.DONE:
        missing = totals.times > totals.routes.links["now"].max()  # after the simulation's end
        totals.per_flow[missing], totals.queues[missing] = np.nan, np.nan
    window, sent, rtt, delivered, base, lost = np.moveaxis(totals.per_flow, 2, 0)
    step = totals.times[1] if samples > 1 else np.inf
    return {
        "time": totals.times,
        "window": window,
        "rate": np.diff(sent, axis=0, prepend=0.0) / step,
        "rtt": rtt,
        # before the first RTT of a flow, the simulator's baseRTT is a huge number
        "base_rtt": np.where(_delay_based(scenario) & (base < 1e9), base, np.nan),
        "delivered": delivered,
        "lost": lost,
        "finished": answers.finished(totals),
        "queue": totals.of_links(totals.queues),
        "link": [link.name for link in scenario.links],
        "assumptions": left_out(scenario),
        "attrs": {
            "parts": resolution(scenario)[0] if parts is None else parts,
            "status": Status(totals.status).reason,
            "events": totals.events,
        },
    }


def _fluid(scenario: Scenario, samples: int) -> dict[str, Any]:
    """What ``simulate`` returns for ``fluid`` with ``samples`` samples, as a dictionary.

    It has the dataset's variables by name, the coordinates ``time`` and ``link``, and the entries
    ``attrs`` and ``assumptions``.
    """
    from vegasmodel.engines.fluid.run import run as by_fluid

    run = by_fluid(scenario, sample=scenario.run.duration / (samples - 1), runs=1)
    return {
        "time": run.time,
        "window": run.window,
        "rate": run.rate,
        "rtt": run.rtt,
        "base_rtt": _base_rtt(scenario, run.rtt, run.window > 0),
        "delivered": run.delivered_so_far,
        "lost": run.lost,
        "queue": run.queue,
        "link": [scenario.path(scenario.flows[0])[0].name],
        "assumptions": _assumptions_of_fluid(scenario, run),
        "attrs": {"status": run.status},
    }


def _delayed(scenario: Scenario, samples: int) -> dict[str, Any]:
    """What ``simulate`` returns for ``delayed`` with ``samples`` samples, as a dictionary.

    It has the dataset's variables by name, the coordinates ``time`` and ``link``, and the entries
    ``attrs`` and ``assumptions``. ``delayed`` takes laws in continuous time only, so no law whose
    window starts again from one packet.
    """
    from vegasmodel.engines.delayed import feedback

    restarts = [group.law for group in scenario.flows if find(group.law).recovery == "slow start"]
    if restarts:
        raise ValueError(
            "the model delayed cannot simulate this scenario: after a loss the window of "
            f"{restarts[0]} starts again from one packet"
        )
    run = feedback.run(scenario, samples)
    return {
        "time": run.time,
        "window": run.window,
        # packets sent from sample to sample; the samples are evenly spaced, from time 0 on
        "rate": np.diff(run.sent, axis=0, prepend=0.0) / run.time[1],
        "rtt": run.rtt,
        "base_rtt": _base_rtt(scenario, run.rtt, (run.window > 0) & (run.delivered > 0)),
        "delivered": run.delivered,
        "lost": run.lost,
        "queue": run.queue,
        "link": [scenario.path(scenario.flows[0])[0].name],
        "assumptions": _assumptions_of_delayed(scenario, run.lost[-1]),
        "attrs": {"status": "done"},
    }


def _assumptions_of_fluid(scenario: Scenario, run: ContinuousRun) -> Sequence[Assumption]:
    """What ``fluid`` assumes about the scenario, apart from assumptions about averages over time.

    Each assumption says whether it holds.  There are none if the run failed, or if no flow has a
    throughput.
    """
    from vegasmodel.adapters import fluid

    if run.status != "done" or np.isnan(run.throughput).all():
        return ()
    known = fluid.of_run(scenario, run).assumptions
    return [each for each in known if each.name not in ABOUT_AVERAGES]


def _assumptions_of_delayed(scenario: Scenario, lost: Floats) -> Sequence[Assumption]:
    """What ``delayed`` assumes about the scenario, and whether each assumption holds.

    ``lost`` [flow] are the packets that each flow lost in the simulation.
    """
    from vegasmodel.adapters import common, fluid_assumptions
    from vegasmodel.engines.fluid.continuous import in_packets

    lost_by_loss_based = lost[[not member.flow.delay_based for member in scenario.members]]
    smooth = "windows change at every instant, as in the papers' equations"
    recovery = "every sender recovers from a loss within a round trip"
    left_out = common.left_out(scenario, random_loss=True)
    return [
        Assumption("whole-stack", not in_packets(scenario, None), smooth),
        common.one_recovery(scenario, recovery, lost=bool(lost_by_loss_based.any())),
        *(each for each in left_out if each.name not in fluid_assumptions.IN_EQUATIONS),
    ]


def _base_rtt(scenario: Scenario, rtt: Floats, sees_rtt: np.ndarray) -> Floats:
    """The baseRTT that each delay-based flow uses at the samples, s; NaN for loss-based flows.

    ``rtt`` [sample, flow] are the RTTs, and ``sees_rtt`` [sample, flow] says whether the flow
    measures an RTT then: it does while it sends. The baseRTT is the least RTT that the flow has
    measured so far, unless the scenario fixes it.
    """
    base = np.fmin.accumulate(np.where(sees_rtt, rtt, np.inf), axis=0)
    for i, member in enumerate(scenario.members):
        if not member.flow.measures_base:
            base[np.isfinite(base[:, i]), i] = member.rtt + float(member.flow.over_estimate)
    return np.where(_delay_based(scenario) & np.isfinite(base), base, np.nan)


def _delay_based(scenario: Scenario) -> Any:
    """Whether the law of each flow is delay-based: [n_flows]."""
    return np.array([member.flow.delay_based for member in scenario.members])


def limit_cycle(
    scenario: Scenario,
    model: str = "fluid",
    *,
    losers: str | None = None,
    packets: bool | None = None,
    longest: float | None = None,
) -> LimitCycle:
    """The steady state of the scenario: a fixed point, a periodic motion, or averages if neither.

    ``model`` is ``fluid``, for one link, or ``rounds``, for one or more links.  Neither takes flows
    of finite size.  The default is ``fluid`` here, unlike that of ``predict``, for two reasons: its
    continuous equations give Floquet multipliers, and in ``rounds`` random waits of the senders
    hide periodic motions (see below).  But throughputs of ``rounds`` are nearer to those of ns-2.

    ``fluid`` has two methods:

    - Its continuous equations change all windows at every instant.  They are used if three
      conditions hold: every flow has the variant ``paper``; its law is Vegas, Reno, NewReno, SACK
      or Tahoe; and the link is drop-tail without random loss.  They are also used if ``losers`` or
      ``packets`` is given.
    - In all other cases ``fluid`` changes each window as the flow's law and TCP implementation
      prescribe, for example once per round trip.

    ``losers`` and ``packets`` are options of the continuous equations
    (``engines.fluid.continuous.run`` has the details):

    - ``losers`` says which flows lose packets when the buffer overflows: those whose windows grow
      at that moment (``growing``, the default), all flows (``all``), or the loss-based ones among
      those that grow (``loss-based``).
    - ``packets`` says whether the equations take into account that a sender sends only whole
      packets.  The default is True if a flow has the variant ``ns2`` or ``linux``.

    If neither option is given, ``fluid`` adds two properties of real senders to the equations of
    the papers.  In slow start, Vegas sends the packets of each window as a train, so the queue is
    longer just after a train has arrived.  And if all flows are Vegas flows, each adjusts its
    window some time after the queue has changed, because it decides only once per round trip.  With
    either option the equations are those of the papers, without these two properties.

    A small deviation from a fixed point or a periodic motion grows or shrinks by certain factors
    per period, the Floquet multipliers. Only the continuous equations give them. The result of
    ``rounds`` has the multipliers of the continuous equations under two conditions: these equations
    can describe the scenario, and the results of ``rounds`` and of the equations are both fixed
    points or both periodic motions.

    In ``rounds``, and in ``fluid`` for the variants ``ns2`` and ``linux``, senders wait for random
    times.  So a motion with losses never repeats exactly.  To find periodic motions there, give
    every flow ``send_jitter = "0 s"``; the result's ``hint`` says so.

    ``longest`` limits the search, in round trips.  The continuous equations need this limit only
    while the buffer does not overflow: if the windows still change after ``longest`` round trips
    without an overflow, the search fails.  In all other cases ``longest`` is the length of the
    longest run.  A longer run can find longer periods, and its averages have smaller standard
    errors.

    The search begins when the last flow has started.  It leaves out a time of its own in which
    windows settle, so the scenario's ``warmup`` does not matter.  If windows still drift one way in
    the longest run, there is no result: the numbers are NaN, and ``status`` says why.

    If the search finds only averages, the result's ``hint`` says what to try next.  The hint is
    empty if every motion is random, for example under random loss.

    Raises ``FieldError`` for an unknown model and for a wrong argument, and ``ValueError`` if the
    model cannot simulate the scenario.
    """
    expect(scenario)
    Choice(WITH_LIMIT_CYCLE).check(model, "model")
    if packets is not None:
        Boolean().check(packets, "packets")
    if longest is not None:
        Quantity("fraction", low=1.0).check(longest, "longest")
    if model == "rounds":
        for name, value in (("losers", losers), ("packets", packets)):
            if value is not None:
                raise FieldError(name, value, "nothing with the model rounds; fluid takes it")
    with series("looking for a steady state"):
        if model == "rounds":
            found = _steady_by_rounds(scenario, longest)
        else:
            from vegasmodel.engines.fluid.cycle import limit_cycle as by_fluid

            asked = with_crossed_link(scenario)
            found = by_fluid(asked, losers=losers, packets=packets, longest=longest)
    names = tuple(member.name for member in scenario.members)
    continuous = False
    if model == "fluid":
        from vegasmodel.engines.fluid.methods import papers_only

        continuous = losers is not None or packets is not None or papers_only(scenario)
    in_vain = found.kind == "neither found" and found.status == Status.DONE.reason
    hint = _what_may_repeat(scenario, continuous) if in_vain else ""
    return dataclasses.replace(found, names=names, hint=hint)


def _what_may_repeat(scenario: Scenario, continuous: bool) -> str:
    """A hint on how a periodic motion may be found.

    The hint is empty if chance keeps motions from repeating even without random waits of the
    senders, for example by random losses. ``continuous`` says whether the search was by the
    continuous equations of ``fluid``.
    """
    # a motion may repeat after random starts: the search draws them only once
    started = scenario.replace({"run.start_jitter": 0.0})
    if started.replace({"flow.send_jitter": 0.0}).by_chance:
        return ""
    if continuous:
        jitter = ' and send_jitter = "0 s"' if started.by_chance else ""
        return f'with model = "rounds"{jitter} it may repeat'
    if started.by_chance:
        return 'without random waits, send_jitter = "0 s", it may repeat'
    return "a longer search, by a greater longest, may find a period"


def _steady_by_rounds(scenario: Scenario, longest: float | None) -> LimitCycle:
    """The steady state by ``rounds``, with the Floquet multipliers of ``fluid`` if they apply.

    They apply if the continuous equations of ``fluid`` can describe the scenario, and if both
    models find a fixed point or both find a periodic motion. Without them, there are no multipliers
    in the result.  Raises ``ValueError`` if ``rounds`` cannot simulate the scenario, or if a flow
    has a finite size.
    """
    from vegasmodel.engines.fluid.continuous import unsupported
    from vegasmodel.engines.rounds import answers
    from vegasmodel.engines.rounds.cycle import steady

    ending = [group.name for group in scenario.flows if not group.long_lived]
    reason = answers.obstacle(scenario) or (f"flows end: {', '.join(ending)}" if ending else None)
    if reason is not None:
        raise ValueError(f"there is no steady state by rounds: {reason}")
    found = steady(scenario, longest)
    if found.kind != "neither found" and unsupported(with_crossed_link(scenario)) is None:
        by_equations = limit_cycle(scenario, "fluid", losers="growing")
        if by_equations.kind == found.kind:
            return dataclasses.replace(found, multipliers=by_equations.multipliers)
    return found
