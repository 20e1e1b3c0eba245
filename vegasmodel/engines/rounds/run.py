"""Runs the simulator ``rounds``: takes a scenario, returns trajectories and totals.

The simulation goes from event to event. An event is the arrival of some packets of one flow at a
queue. ``resolution.py`` decides into how many events the packets of a round trip are divided.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Collection
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vegasmodel.engines.rounds.flows import SUMS, Templates, receivers, records, sum_by_member
from vegasmodel.engines.rounds.resolution import (
    CONTENDED,
    held_packets,
    resolution,
    unlimited_window,
)
from vegasmodel.engines.rounds.rounding import roundings
from vegasmodel.engines.rounds.route import Routes, routes
from vegasmodel.engines.rounds.state import (
    COLUMNS,
    DELIVERED,
    PARCEL,
    RTT,
    SAMPLED,
    WINDOW,
    WITHOUT_ROUNDING,
    WITHOUT_ROUNDS,
    WITHOUT_TICKS,
    Net,
    array,
)
from vegasmodel.engines.starts import check_starts
from vegasmodel.engines.tables import direct
from vegasmodel.fields import kinds
from vegasmodel.fields.errors import FieldError
from vegasmodel.fields.rules import MAX_SAMPLES, Integer
from vegasmodel.laws.packets import NEVER
from vegasmodel.metrics import Floats
from vegasmodel.scenario import Scenario
from vegasmodel.status import Status
from vegasmodel.support import threads
from vegasmodel.support.progress import running

__all__ = ["Simulation", "Totals", "run"]

# what the argument ``without`` of ``run`` can switch off, and the bit of ``Sender.without`` for it
MECHANISMS = {"rounding": WITHOUT_ROUNDING, "rounds": WITHOUT_ROUNDS, "ticks": WITHOUT_TICKS}
# Room for holes, ranges of packets that a receiver misses: the least and the greatest number of
# holes for one flow, and the greatest number for all flows
_HOLES, _MOST_HOLES, _ALL_HOLES = 256, 2**15, 2**16
MOST_EVENTS = 2_000_000_000  # greatest number of events in a run; a run with more fails
PAUSE = 2**18  # events, about 0.1 s, after which Python can see that the user has pressed Ctrl-C
MAX_PARTS = 1_000_000  # events per flow and round trip: more would not change the results
# Room for groups of packets on their way (``_rings``): in a new ring buffer, the greatest number in
# a ring buffer, and about the number in all ring buffers together
_FIRST_PLACES, _RING, _PARCELS = 64, 2**16, 2**22
_PER_PACKET = 4.0  # greatest number of groups for each packet that the path and its buffers hold
QUEUE_SUMS = ("arrived", "lost", "served", "area")  # totals in the record of a queue
SEED_STRIDE = 2654435761  # odd, so that different seeds of scenarios give different seeds of runs


@dataclass(frozen=True)
class Totals:
    """The result of one run: samples over time, and the records of flows and queues at its end.

    The records contain totals since the start of the run, and totals up to the end of warm-up.
    """

    scenario: Scenario
    starts: Floats  # of the flows in this run, s
    status: int  # how the run ended (``Status``)
    events: int  # number of events in the run
    flows: NDArray[Any]  # the final records, ``state.FLOW``
    routes: Routes  # the queues and hops, with their final records
    times: Floats  # of the samples, seconds
    per_flow: Floats  # [time, flow, ``state.WINDOW`` to ``state.LOST``]
    queues: Floats  # [time, queue] packets that wait

    @property
    def first_queue(self) -> Any:
        """The first queue's record at the end of the run, with the fields of ``state.Queue``."""
        return self.routes.links[0]

    @property
    def window(self) -> Floats:
        """The window of each flow at each sample in packets, [time, flow]."""
        return self.per_flow[:, :, WINDOW]

    @property
    def rtt(self) -> Floats:
        """The RTT of each flow with the queues at each sample in seconds, [time, flow]."""
        return self.per_flow[:, :, RTT]

    @property
    def delivered(self) -> Floats:
        """Packets that each flow has delivered from its start until each sample, [time, flow]."""
        return self.per_flow[:, :, DELIVERED]

    def of_links(self, values: Floats) -> Floats:
        """For each link, the sum of ``values`` over the link's queues in the forward direction.

        If a link divides its flows into two classes (Rate-Delay services), it has a queue for each
        class. Any other link has at most one such queue. ``values`` has the shape [..., queue], the
        result [..., n_links]. The sum is 0 if no data packets cross the link in this direction.
        """
        names = [link.name for link in self.scenario.links]
        out = np.zeros((*values.shape[:-1], len(names)))
        for k, (name, direction, _) in enumerate(self.routes.keys):
            if direction == "forward":
                out[..., names.index(name)] += values[..., k]
        return out

    @functools.cached_property
    def base(self) -> Floats:
        """The baseRTT of each flow at the end of the run, in seconds.

        It is NaN if the flow's congestion control uses no baseRTT, or if none has been measured.
        """
        given = self.flows["known_base"]
        base = np.where(np.isnan(given), self.flows["base"], given)
        return np.where(self.flows["keeps_base"] & (base < NEVER), base, np.nan)


def _rings(way: Routes, sizes: Floats, parts: int, at_once: float, held: float) -> NDArray[Any]:
    """Make the memory for all groups of packets that can be in flight at once (``Net.rings``).

    A group consists of successive packets of one flow that travel together (``state.Parcel``). A
    hop is one queue on one flow's path. Each hop has a ring buffer of groups in this memory. The
    function also sets, for each hop, where its ring buffer begins and how many groups it has room
    for. ``sizes`` [flow] are the flows' sizes in packets. ``parts`` is the number of intervals in a
    round trip. ``at_once`` is the number of packets that can be in flight. ``held`` is the
    number that the path and its buffers hold; it may be infinite.

    There are many groups if a round trip has many intervals. There are also many when a large
    window overflows a buffer for the first time. The queue then alternately drops and accepts
    packets, and each change begins a new group.

    When a ring buffer is full, the simulator copies it to a new place with room for twice as many
    groups, but for at most ``Hop.most``. It does not use the old place again. All old places of a
    ring buffer together have room for less than 2 ``most`` groups. So the function makes room for
    3 ``most`` groups per ring buffer, but for at most ``3 * _PARCELS`` groups in all: if there are
    many ring buffers, they are not all full at once. ``numpy.empty`` only reserves this memory:
    parts that are never used take up no space and no time.
    """
    # The numbers below are generous: a run that needs more room fails.
    share = _PARCELS // len(way.hops)
    spare = share if math.isfinite(way.longest) else 0
    largest = int(min(max(16 * parts + 8192, spare, int(at_once)), _RING))
    largest = int(max(largest, min(_PER_PACKET * held, share)))  # huge buffers or windows
    # short flows need less room
    most = np.minimum(largest, 4.0 * sizes[way.hops["flow"]] + 256.0).astype(np.int64)
    most[: way.first[0]] = largest  # the hops of Rate-Delay classes, which belong to no flow
    way.hops["most"], way.hops["places"] = most, np.minimum(most, _FIRST_PLACES)
    way.hops["ring"] = np.cumsum(way.hops["places"]) - way.hops["places"]
    return np.empty(int(way.hops["places"].sum()) + 3 * min(int(most.sum()), _PARCELS), PARCEL)


class Frame:
    """Keeps what all runs of a scenario have in common, so that only the first run computes it.

    The runs may differ in their durations, in the start times of flows and in random numbers.
    """

    def __init__(self) -> None:
        self.templates: Templates = {}  # a record for each group and RTT (``flows.records``)
        self._key: tuple[bytes, float] | None = None  # the arguments for which ``_network`` holds
        self._network: tuple[Routes, Floats] | None = None

    def network(
        self, scenario: Scenario, who: NDArray[np.int64], step: float
    ) -> tuple[Routes, Floats]:
        """The queues and paths of the flows ``who``, and capacities and delays rounded as in ns-2.

        ``route.routes`` and ``rounding.roundings`` compute them, and explain them in more detail.
        ``who`` has the flows' indices in ``scenario.members``, and ``step`` is the desired length
        of an interval in seconds. The results are computed again only if ``who`` or ``step`` differ
        from those of the last call. The records of queues and hops (a hop is one queue on one
        flow's path) are copies, because a run changes them.
        """
        key = who.tobytes(), step
        if self._network is None or self._key != key:
            members = [scenario.members[i] for i in who]
            way = routes(scenario, members, step)
            self._key, self._network = key, (way, roundings(scenario, members, way))
        way, grid = self._network
        return replace(way, links=way.links.copy(), hops=way.hops.copy()), grid


def _instants(scenario: Scenario, samples: int | Floats) -> Floats:
    """The times of the samples in seconds: those given, or ``samples`` times, evenly spaced."""
    if np.ndim(samples) == 0:
        Integer(0, MAX_SAMPLES).check(samples, "samples")
        return np.linspace(0.0, scenario.run.duration, int(samples))
    times = np.asarray(samples, dtype=np.float64)
    if times.ndim != 1 or not np.all(np.diff(times) >= 0.0):
        raise FieldError("samples", times, "a number of samples, or their times in order, s")
    return times


def _empty(
    scenario: Scenario, flows: NDArray[Any], way: Routes, coarse: int, near: int, calm: int
) -> tuple[Net, Floats]:
    """Make the network as it is at time 0, and the tables of the flows' holes.

    A hole is a range of successive packets of a flow that the receiver misses (``acks.add_hole``).

    ``near`` and ``calm`` are the numbers of intervals into which the simulator divides a round
    trip, near losses and far from them (``Net.parts`` and ``Net.calm``). The ring buffers have room
    for the groups of ``coarse`` intervals. ``coarse`` is ``near``, or ``CONTENDED`` if ``near`` is
    larger and was chosen by ``resolution``. In the latter case most groups near losses are single
    packets, and the ring buffers also have room for these.
    """
    flows["longest_stretch"], flows["hop"] = way.longest, way.first
    flows["hops"] = np.diff(np.append(way.first, len(way.hops)))
    # packets that the path holds, and those that the path and its buffers hold
    pipe, held = held_packets(scenario)
    # Number of groups of packets in flight for which there is to be room. A group consists of
    # successive packets of one flow that travel together (``state.Parcel``). If ``near`` exceeds
    # ``coarse``, most groups near losses are single packets. So there is room for as many groups as
    # packets fit on the path and in its buffers, with ``_PER_PACKET`` as a generous factor.
    at_once = _PER_PACKET * held if near > coarse else pipe
    # If each packet has a random delay of its own, each is a group (``sender.plan``).
    packets_apart = (flows["noise"] > 0.0) | (flows["queue_wait"] > 0.0) | flows["waits_long"]
    # A window that no loss stops may exceed ``held``. With a single queue the length of an interval
    # is not limited (``clocks.clocks`` returns infinity). Long intervals then keep the number of
    # groups small, whatever the window, so the window needs no memory of its own. But if each
    # packet is a group, there is room for up to ``_RING`` groups.
    window = unlimited_window(scenario)
    if math.isinf(way.longest):
        window = min(window, _RING / _PER_PACKET if packets_apart.any() else 0.0)
    rings = _rings(way, flows["size"], coarse, at_once, max(held, window))
    # the tree that finds the next event (``onward.schedule``); its leaves are the hops
    tree = np.zeros(2 * len(way.hops), np.int64)
    tree[len(way.hops) :] = np.arange(len(way.hops))
    records_of_receivers = receivers(scenario, flows, way)
    # The greatest number of holes of a flow. If there would be more, the last hole is extended to
    # the newly lost packets. Then the packets between them count as lost, although they arrived.
    holes = int(max(_HOLES, min(held, _MOST_HOLES, _ALL_HOLES // len(flows))))
    net = Net(
        flows=flows,
        hops=way.hops,
        links=way.links,
        copies=way.links.copy(),
        rings=rings,
        free=np.array([way.hops["places"].sum()]),
        receivers=records_of_receivers,
        missing=np.zeros((len(records_of_receivers), holes, COLUMNS)),
        keys=np.full(len(way.hops), NEVER),
        tree=tree,
        shares=way.shares,
        parts=near,
        calm=calm,
    )
    return net, np.zeros((len(flows), holes, COLUMNS))


@kinds.checked
class Simulation:
    """A run of the simulator, which can be stopped and continued.

    The parameters are those of the function ``run``. The method ``proceed`` continues the run to
    its end, or until a flow's window falls.
    """

    def __init__(
        self,
        scenario: Scenario,
        *,
        parts: int | None = None,
        samples: int | Floats = 0,
        starts: Floats | None = None,
        seed: int = 1,
        synchronised: bool = False,
        without: Collection[str] = (),
        frame: Frame | None = None,
    ) -> None:
        """Check the arguments, and make the network as it is at time 0."""
        from vegasmodel.engines.rounds.kernel import march

        if parts is not None:
            Integer(1, MAX_PARTS).check(parts, "parts")
        Integer(0, 2**32 - 1).check(seed, "seed")
        times = _instants(scenario, samples)
        check_starts(scenario, starts)
        # greatest number of events in a round trip of a flow near losses, and of any other flow
        near, calm = resolution(scenario) if parts is None else (parts, parts)
        unknown = sorted(set(without) - set(MECHANISMS))
        if unknown:
            allowed = ", ".join(MECHANISMS)
            raise FieldError("without", unknown, f"any of {allowed}")
        # the network at time 0, with memory for packets (``_empty``)
        members, frame = scenario.members, frame or Frame()
        flows = records(scenario, starts, seed, frame.templates)
        who = flows["member"]
        flows["without"] = sum(MECHANISMS[name] for name in set(without))
        coarse = min(near, CONTENDED) if parts is None else near
        step = float(flows["rtt"].max()) / coarse
        way, self._grid = frame.network(scenario, who, step)
        if synchronised and way.data_queues > 1:
            raise FieldError("synchronised", True, "only for one queue: its losses are shared")
        self.net, self.holes = _empty(scenario, flows, way, coarse, near, calm)
        self.routes = way
        self.scenario, self.duration = scenario, scenario.run.duration
        self.starts = np.array([m.start for m in members]) if starts is None else starts
        self.capacity = float(way.links["capacity"][0])
        # what ``kernel.march`` fills in, and what it keeps from call to call
        self.times = times
        self.per_flow = np.zeros((self.times.size, len(members), SAMPLED))
        self.queues = np.zeros((self.times.size, len(way.links)))
        self.events = 0
        self._march, self._stopped = march, False
        self._outside = scenario.own_laws
        self._warmup, self._synchronised = scenario.run.warmup, synchronised
        # the scenario's seed counts, too; with its default 1, the seeds of runs are 1, 2, 3, ...
        seeded = (seed + (scenario.run.seed - 1) * SEED_STRIDE) % 2**32
        self._carried = np.array([0.0, 0.0, seeded])  # see ``kernel.march``

    def proceed(self, falls: float = math.inf) -> tuple[int, float]:
        """Continue the run to its end; returns the status and the simulated time in seconds.

        The run ends early if it fails; the status (``Status``) says why. A run that has reached its
        end also counts as failed if its state shows a fault of the simulator (``_fault``).
        ``LawFault`` is raised if a function of a user's congestion control has returned an unusable
        number.

        ``falls`` is a time in seconds. From then on, the run also stops after each event that
        reduces the number of whole packets in a flow's window. The next call continues the run. By
        default it does not stop for such events.

        Compiled code does not react to Ctrl-C. So it returns here after every ``PAUSE`` events.
        Python then raises ``KeyboardInterrupt`` if the user has pressed Ctrl-C. (On other threads
        than the main one, ``threads.check`` does.)
        """
        status, time = int(Status.PAUSED), 0.0
        while status == Status.PAUSED:
            threads.check()
            status, events, time = self._march(
                self.net,
                self.holes,
                self.times,
                self.per_flow,
                self.queues,
                self._warmup,
                self.duration,
                self._synchronised,
                self._grid,
                falls,
                PAUSE,
                self._carried,
            )
            self.events += int(events)
            if status == Status.PAUSED and self.events > MOST_EVENTS:
                status = Status.TOO_MANY_EVENTS
        if status == Status.FALL and not self._stopped:  # calls should be fast, as many may follow
            self._march, self._stopped = direct(self._march), True
        for law in self._outside:
            from vegasmodel.engines.outside import raise_faults

            raise_faults(law)
        return int(self._fault() if status == Status.DONE else status), float(time)

    def _fault(self) -> Status:
        """The fault of the simulator that the state at the run's end shows; ``DONE`` if none.

        A sender has stalled if it has data left to send, but no packet in flight and no random wait
        in progress, and if this has lasted for longer than its retransmission timeout and its
        longest random wait. (The timer is restarted at each ACK of new data. A wait that ends after
        the run may have been simulated already.)
        """
        flows, links = array(self.net.flows), array(self.net.links)
        sums = [flows[name] for name in SUMS] + [links[name] for name in QUEUE_SUMS]
        if np.isnan(np.concatenate(sums)).any():
            return Status.NOT_A_NUMBER
        idle = (flows["high"] <= flows["acked"]) & (flows["wait_ends"] == NEVER)
        should_send = flows["deadline"] + flows["jitter"]  # time by which it should have sent
        too_long = should_send < np.minimum(flows["stop"], self.duration)
        stalled = idle & too_long & (flows["next"] < flows["size"])
        return Status.STALLED if stalled.any() else Status.DONE

    def with_progress(self) -> AbstractContextManager[None]:
        """A context in which the progress of the run is shown on the terminal."""
        from vegasmodel.support.machine_code import compiling  # the kernel has loaded it

        return running(self.now, self.duration, compiling)

    def now(self) -> float:
        """The simulated time so far, in seconds."""
        return min(float(self.routes.links["now"].max()), self.duration)

    def totals(self, status: int) -> Totals:
        """The result of the run so far; ``status`` is the one that ``proceed`` has returned."""
        flows = sum_by_member(array(self.net.flows), self.per_flow.shape[1])
        return Totals(
            self.scenario,
            self.starts,
            status,
            self.events,
            flows,
            self.routes,
            self.times,
            self.per_flow,
            self.queues,
        )


@kinds.checked
def run(
    scenario: Scenario,
    *,
    parts: int | None = None,
    samples: int | Floats = 0,
    starts: Floats | None = None,
    seed: int = 1,
    synchronised: bool = False,
    without: Collection[str] = (),
    frame: Frame | None = None,
) -> Totals:
    """Simulate a scenario once; returns samples of the flows and queues over time, and totals.

    ``samples`` is a number of instants, evenly spaced in time, at which samples are taken. It can
    also be an array of the instants, in seconds. ``parts`` is the approximate greatest number of
    events for each flow and queue in a round trip; by default the function ``resolution`` chooses
    it. ``starts`` [n_flows] are start times in seconds that replace those of the scenario's flows.
    ``without`` names mechanisms of the senders (``MECHANISMS``) that are switched off, to measure
    their effect. The scenario's seed and ``seed`` together determine all random numbers. If several
    runs of a scenario get the same ``frame``, what they have in common is computed only once.

    With ``synchronised``, if one flow loses a packet, each other flow that is not in recovery loses
    one, too. De Vendictis and Baiocchi assume this. Without it, a loss of one flow causes no loss
    of another.

    In the totals, a group of short flows that arrive at random counts as one flow. Raises
    ``ValueError`` for arguments out of range (``parts`` is from 1 to ``MAX_PARTS``), for unknown
    mechanisms, and for synchronised losses if data packets cross more than one queue.
    """
    simulation = Simulation(
        scenario,
        parts=parts,
        samples=samples,
        starts=starts,
        seed=seed,
        synchronised=synchronised,
        without=without,
        frame=frame,
    )
    with simulation.with_progress():
        status, _ = simulation.proceed()
    return simulation.totals(status)
