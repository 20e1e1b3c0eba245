"""Makes a ``Prediction`` (of throughputs and delays) from runs of the simulator ``rounds``.

In the functions, ``totals`` is the result of one run (``run.Totals``), and ``outcomes`` are the
results of all runs of a scenario.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vegasmodel.engines.rounds.assumptions import assumptions
from vegasmodel.engines.rounds.flows import MAX_ARRIVALS
from vegasmodel.engines.rounds.route import DISCIPLINES
from vegasmodel.engines.rounds.run import Frame, Totals, run
from vegasmodel.engines.starts import start_times
from vegasmodel.fields import kinds
from vegasmodel.fields.rules import MAX_RUNS, Integer
from vegasmodel.metrics import Floats, known_mean, loss_rates, standard_error
from vegasmodel.results import scatter
from vegasmodel.results.prediction import Prediction
from vegasmodel.scenario import Run, Scenario
from vegasmodel.scenario.placement import forward_load
from vegasmodel.status import Status
from vegasmodel.support.progress import series

__all__ = ["answer", "obstacle"]

# (the predictions of single runs so far) -> whether they suffice, so that no further run is made
Enough = Callable[[Sequence[Prediction]], bool]


@kinds.checked
def obstacle(scenario: Scenario) -> str | None:
    """The reason why the simulator cannot simulate the scenario, or None if it can."""
    for link in scenario.links:
        if link.queue.discipline not in DISCIPLINES:
            return f"rounds does not know the queue discipline {link.queue.discipline}"
    for member in scenario.members:
        group = member.flow
        if len({link.name for link in scenario.path(group)}) < len(scenario.path(group)):
            return f"the path of {group.name} crosses a link more than once"
        if not isinstance(group.arrivals, str):
            expected = group.arrivals.rate * (member.stop - member.start)
            if expected > MAX_ARRIVALS:
                return f"{group.name} has {expected:.3g} short flows; the most is {MAX_ARRIVALS}"
    return None


def _clock_starts_matter(scenario: Scenario, totals: Totals) -> bool:
    """Whether the random start times of the hosts' clocks could have affected the run.

    If so, another run, with other start times, may give other throughputs.

    A clock ticks at a regular interval. Its start time decides at which instants it ticks. This
    matters for ns-2's coarse retransmission timer and the timers of Linux, which count ticks, and
    for Linux's CUBIC, which measures time in ticks. The result is False if short flows arrive at
    random, because one run then averages over the clocks of many flows.
    """
    flows = totals.flows
    # senders whose retransmission timer has expired, at a tick of a clock; a timer is exact only if
    # it takes its RTTs from time stamps and does not wait for Linux's timer wheel
    expired = (flows["timeouts"] > 0) & ~(flows["timestamps"] & ~flows["timer_wheel"])
    # Linux senders for which ticks may have mattered in another way: their receiver delays ACKs,
    # they run CUBIC, or one of their earlier timers has expired
    other_ticks = flows["timer_wheel"] & ((flows["delayed_ack"] > 0) | flows["bictcp"])
    other_ticks |= flows["early_timers"] > 0
    return not scenario.random_arrivals and bool(np.any(expired | other_ticks))


def throughput(totals: Totals) -> Floats:
    """Each flow's throughput in packets/s, over the time after warm-up in which it is active.

    The result is NaN for a flow that is not active after warm-up. If the run has failed, it is NaN
    for all flows.
    """
    members, warmup = totals.scenario.members, totals.scenario.run.warmup
    begin = np.maximum(totals.starts, warmup)
    end = np.minimum([m.stop for m in members], finished(totals))
    delivered = totals.flows["last_delivered"] - totals.flows["mark_delivered"]
    known = (end > begin) & (totals.status == Status.DONE)
    with np.errstate(divide="ignore", invalid="ignore"):
        rates: Floats = np.where(known, delivered / (end - begin), np.nan)
    return rates


def finished(totals: Totals) -> Floats:
    """When each flow had delivered all its data, in seconds; infinite if a flow has not.

    For a group of short flows that start one after another, the time is always infinite.
    """
    once = [member.flow.arrivals == "once" for member in totals.scenario.members]
    # The times in a record are by the clock of the first queue. ``start`` minus the true start time
    # is the time from the sender to this queue; it is subtracted.
    times = totals.flows["finished"] - (totals.flows["start"] - totals.starts)
    return np.where(once, times, np.inf)


def unchanging(scenario: Scenario) -> bool:
    """Whether all flows send all the time from the end of warm-up to the end of the run.

    If this is so, some runs of ``answer`` may be shorter.
    """
    latest = scenario.run.warmup - scenario.run.start_jitter
    lasting = all(g.long_lived and g.stop is None for g in scenario.flows)
    return lasting and all(member.start <= latest for member in scenario.members)


def half_time(run: Run) -> float:
    """The duration in s of a run that measures for half as much time after warm-up."""
    return 0.5 * (run.warmup + run.duration)


def halved(scenario: Scenario) -> Scenario:
    """The same scenario with an earlier end: half as much time after warm-up."""
    run = dataclasses.replace(scenario.run, duration=half_time(scenario.run))
    return dataclasses.replace(scenario, run=run)


def pieces(scenario: Scenario) -> Floats:
    """The times, in s, that divide the run after warm-up into ``scatter.PIECES`` equal parts.

    The first run of ``answer`` takes samples at these times. They show whether its first half gives
    nearly the same throughputs as the whole.
    """
    return np.linspace(scenario.run.warmup, scenario.run.duration, scatter.PIECES + 1)


@kinds.checked
def answer(
    scenario: Scenario,
    *,
    parts: int | None = None,
    runs: int | None = None,
    synchronised: bool = False,
    without: Collection[str] = (),
    enough: Enough | None = None,
) -> Prediction:
    """Predict a scenario's throughputs with the simulator ``rounds``.

    A flow's throughput is the number of packets delivered per second after warm-up, [n_flows]. The
    outcome of a run is random if start times, sending times or delays are random, if RED or random
    loss drops packets, or if the random start of a host's clock affects the run
    (``_clock_starts_matter``). If the outcome is not random, there is one run, unless ``runs`` asks
    for more. If short flows arrive at random, the scenario can also ask for more.

    If the outcome is random, the prediction is the mean over several runs, with its standard error.
    The argument ``runs`` is their number. Without it the scenario gives the number (``run.runs``).
    If neither gives it, there are 3 to 5 runs: after the third and the fourth run, another one is
    made only if both conditions hold:

    - The mean throughput of some flow is not precise enough: half its 95 % interval (Student's t)
      is above 10 % of the mean.
    - All means would be precise enough after 5 runs, if all runs scatter like the present ones.

    If there are 3 to 5 runs, those after the first may be shorter: they then measure for half of
    the time after warm-up. There are two conditions for this. All flows must send from the end of
    warm-up to the end of the run. And in the first run, the first half of the time after warm-up
    must give nearly the same throughputs as the whole, and chance must not hide a difference of
    more than 10 % (``scatter.half_suffices``).

    In the result, ``extra["durations"]`` has the length of each run, in seconds.
    ``extra["overflowed"]`` is True if a packet has found a buffer full in one of the runs, even if
    this was during warm-up. ``extra["behind_holes"]`` is how many packets of each flow arrived in
    the warm-up but were delivered after it (``_behind_holes``). ``extra["kept"]`` has the numbers
    that the flows' laws keep at the end of the first run, [flow, number].

    ``enough`` can end the runs earlier, if neither ``runs`` nor the scenario gives their number. It
    is a function of a list with one prediction for each run so far. It is called after the second
    run and each later one. If it returns True, no further run is made.

    ``parts``, ``synchronised`` and ``without`` are passed on to ``rounds.run``. If the simulator
    cannot simulate the scenario, ``Prediction.not_applicable`` gives the reason. If a run fails, no
    further run is made, the throughputs are NaN, and ``extra["status"]`` gives the reason.
    """
    if runs is not None:
        Integer(1, MAX_RUNS).check(runs, "runs")
    began = time.perf_counter()
    reason = obstacle(scenario)
    if reason is not None:
        return Prediction.not_applicable("rounds", scenario, reason)
    outcomes: list[Totals] = []
    chance = scenario.by_chance
    no_number = runs is None and scenario.run.runs is None  # nobody has given the number of runs
    may_shorten = chance and no_number and unchanging(scenario)  # the runs after the first
    next_scenario, frame = scenario, Frame()
    with series() as under_way:
        while len(outcomes) < (wanted := _wanted(scenario, outcomes, chance, runs, enough)):
            under_way.wanted, k = wanted, len(outcomes)
            outcomes.append(
                run(
                    next_scenario,
                    parts=parts,
                    samples=pieces(scenario) if may_shorten and k == 0 else 0,
                    starts=start_times(scenario, k),
                    seed=k + 1,
                    synchronised=synchronised,
                    without=without,
                    frame=frame,
                )
            )
            chance = chance or _clock_starts_matter(scenario, outcomes[-1])
            if may_shorten and k == 0:
                delivered = np.diff(outcomes[0].delivered, axis=0)  # in each piece of the run
                next_scenario = halved(scenario) if scatter.half_suffices(delivered) else scenario
    return _prediction(scenario, outcomes, time.perf_counter() - began)


def _prediction(scenario: Scenario, outcomes: list[Totals], seconds: float = 0.0) -> Prediction:
    """Make the prediction from the outcomes of one or more runs: means and standard errors.

    ``seconds`` is the computing time.
    """
    rates = _rates(outcomes)
    failed = [Status(o.status).reason for o in outcomes if o.status != Status.DONE]
    chance = scenario.by_chance or scenario.random_arrivals
    chance = chance or any(_clock_starts_matter(scenario, one) for one in outcomes)
    return Prediction(
        "rounds",
        scenario,
        np.full(len(scenario.members), np.nan) if failed else known_mean(rates),
        throughput_se=standard_error(rates) if len(rates) > 1 else None,
        assumptions=assumptions(scenario, outcomes, rates, chance=chance),
        seconds=seconds,
        extra={
            "status": failed[0] if failed else Status.DONE.reason,
            "runs": len(rates),
            "durations": [one.scenario.run.duration for one in outcomes],
            "throughput_runs": rates,
            "overflowed": any(bool(one.routes.links["overflowed"].any()) for one in outcomes),
            "queue_runs": _queues(outcomes),
            "behind_holes": _behind_holes(scenario, outcomes),
            "kept": outcomes[0].flows["kept"].copy(),
        },
        **_means(scenario, outcomes),
    )


def _wanted(
    scenario: Scenario,
    outcomes: list[Totals],
    chance: bool,
    runs: int | None,
    enough: Enough | None,
) -> int:
    """How many runs should be made in all, judged by the outcomes of the runs made so far.

    ``chance`` is True if the outcomes of runs differ by chance; ``answer`` explains ``runs`` and
    ``enough``. If the result equals the number of runs made, no further run is needed.
    """
    n = len(outcomes)
    if outcomes and outcomes[-1].status != Status.DONE:  # a run has failed
        return n
    if runs is not None:
        return runs
    if scenario.run.runs is not None and (chance or scenario.random_arrivals):
        return scenario.run.runs
    if not chance:
        return 1
    if n < 2:  # one run does not show how much runs scatter
        return n + 1
    if enough and enough([_prediction(one.scenario, [one]) for one in outcomes]):
        return n
    rates = _rates(outcomes)
    return n if scatter.enough(rates) or scatter.hopeless(rates) else n + 1


def _rates(outcomes: list[Totals]) -> Floats:
    """The throughput of each flow in each run, [run, flow], in packets/s."""
    return np.array([throughput(one) for one in outcomes])


def waiting(links: NDArray[Any]) -> Floats:
    """The number of waiting packets of each queue, integrated over the time after warm-up.

    The unit is packets times seconds. ``links`` are the queues' records (``state.Queue``) at the
    end of a run.
    """
    counted: Floats = np.maximum(links["area"] - links["mark_area"], 0.0)
    return counted


def _queues(outcomes: list[Totals]) -> Floats:
    """The mean number of packets that wait at each link after the warm-up, [run, link]."""
    areas = np.array([one.of_links(waiting(one.routes.links)) for one in outcomes])
    return np.asarray(areas / _spans(outcomes)[:, None])


def _behind_holes(scenario: Scenario, outcomes: list[Totals]) -> Floats:
    """Packets of each flow that arrived in the warm-up but were delivered after it, [n_flows].

    At the end of the warm-up they waited at the receiver, because an earlier packet was missing.
    The result is the mean over the runs, as for other totals (``_mean_total``).
    """
    held_back = np.array([one.flows["mark_beyond"] for one in outcomes])  # at the receivers
    return _mean_total(scenario, outcomes, held_back)


def _spans(outcomes: list[Totals]) -> Floats:
    """The time after warm-up of each run, in seconds, [run]."""
    return np.array([one.scenario.run.duration - one.scenario.run.warmup for one in outcomes])


def _mean_total(scenario: Scenario, outcomes: list[Totals], totals: Floats) -> Floats:
    """The mean over the runs of each flow's total, such as the packets delivered, [flow].

    ``totals`` has a row for each run. Those of a shorter run are scaled to the full time.
    """
    span = scenario.run.duration - scenario.run.warmup
    mean: Floats = (totals * (span / _spans(outcomes))[:, None]).mean(axis=0)
    return mean


def _means(scenario: Scenario, outcomes: list[Totals]) -> dict[str, Any]:
    """Fields of ``Prediction`` that are means over the runs, by their names."""

    def column(name: str) -> Floats:
        """The field ``name`` of the flows' records at the end of each run, [run, flow]."""
        return np.array([o.flows[name] for o in outcomes])

    def since_warmup(what: str) -> Floats:
        """The increase of the field ``what`` in the measured time, [run, flow].

        This time begins at the end of warm-up. It ends when the flow stops or the run ends. The
        increase is NaN if the run has failed.
        """
        done = np.array([[o.status == Status.DONE] for o in outcomes])
        return np.where(done, column(f"last_{what}") - column(f"mark_{what}"), np.nan)

    with np.errstate(divide="ignore", invalid="ignore"):
        rtt = since_warmup("rtt_total") / since_warmup("rtt_packets")
    loss = loss_rates(since_warmup("lost"), since_warmup("sent"))
    span = scenario.run.duration - scenario.run.warmup
    delivered = _mean_total(scenario, outcomes, since_warmup("delivered"))
    return {
        "base_rtt": np.mean([o.base for o in outcomes], axis=0),
        "rtt_mean": rtt.mean(axis=0),
        "loss_rate": loss.mean(axis=0),
        "acks": delivered,  # the packets that ACKs have acknowledged
        "retransmits": _mean_total(scenario, outcomes, since_warmup("retransmits")),
        "delivered": None if any(o.status != Status.DONE for o in outcomes) else delivered,
        "utilization_links": forward_load(scenario, delivered, span),
        "queue_mean": _queues(outcomes).mean(axis=0),
    }
