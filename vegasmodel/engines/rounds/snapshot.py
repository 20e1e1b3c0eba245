"""Stores states of the simulator ``rounds`` and compares them, to find periodic motions.

If the simulator is in the same state at two times, the same follows after both, unless it depends
on random numbers. So the motion is periodic if an earlier state occurs again. A stored state leaves
out what cannot affect the future, such as totals.

States at different times must be comparable. So a stored state contains sequence numbers relative
to the flow's first unacknowledged packet, and times relative to the time of the state. Times are
multiplied by the capacity of the first queue, in packets per second. They become numbers of packets
in this way, as windows and queues are. So one tolerance, in packets, suits all numbers of a state.
If an event happened more than ``AGO`` round trips ago, we assume that its exact time does not
matter. A stored state then contains ``AGO`` round trips in place of the true age of the event.

ns-2's retransmission timers expire only at ticks of a clock. If no timer has affected what happened
between two states, the states are compared without these timers (``Observer.difference``).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vegasmodel.engines.rounds.state import (
    AFTER,
    BEFORE_AT,
    COLUMNS,
    FIRST,
    FLOW,
    FORGOTTEN,
    HOP,
    LINK,
    MECHANISMS,
    NOT_RESENT,
    PARCEL,
    RED,
    SENT_AT,
    Hop,
    Net,
    Sender,
    array,
    jit,
)
from vegasmodel.engines.states import Kinds, Memory, Now, difference, fields, memory, put, write
from vegasmodel.engines.tables import direct
from vegasmodel.metrics import Floats

AGO = 16.0  # round trips after which the exact time of an event is assumed not to matter
KEY_SIZE = 5  # integers of each flow in the key of a state (``write_state``)


def _words(text: str) -> tuple[str, ...]:
    """The names in ``text``, which are separated by spaces."""
    return tuple(text.split())


# The search for periodic motion compares the simulator's states at two times. For this it stores
# some of the fields of each record (of a sender, receiver, link and so on). The constants below
# name these fields. A field's kind decides how it is stored. An instant, for example, is stored
# relative to the time of the state. ``Kinds`` has five lists of names, in this order: sequence
# numbers, instants, durations, rates, and all others. The fields in ``SENDER`` are stored for every
# sender, and those in ``ROUND``, ``LAW`` and ``CUBIC`` only for some senders.
SENDER = Kinds(
    _words("next high received first retransmit recover resent stale stale_end probed"),
    _words(
        "arrival_sent_at latest_sent_at changed since awaits_since time left_at wait_ends "
        "delack_expires"
    ),
    _words("rtt_last mean_rtt rtt_deviation min_rtt base late"),
    ("rate",),
    _words(
        "cwnd memory cwnd_cnt ssthresh dupacks inflated pipe recover_in_flight prr_delivered "
        "prr_out flight_limit phase partial timed_out marked echoed growth grow_next rechecks "
        "deflated overdue_factor burst_part since_queue spread burst event transit awaits_parcels "
        "active owed_loss quick_acks_left delack_packets "
        "duplicate_held"
    ),
)
# a sender whose law acts at the end of a round trip, as Vegas does; round_end belongs here, too
ROUND = Kinds(instants=("round_start",), spans=("rtt_sum", "rtt_min"), plain=("rtt_count",))
# a sender whose law keeps numbers
LAW = Kinds(plain=("kept",))
# a sender that runs Linux's CUBIC
CUBIC = Kinds(
    ("train_end",), ("counted", "train_start", "train_last"), ("delay_min", "train_rtt"),
    (),
    _words(
        "cnt last_max origin_point cubic_k reno_cwnd reno_acks last_cwnd train_samples "
        "hystart_found"
    ),
)  # fmt: skip
# a receiver in Linux that delays its ACKs
LINUX_RECEIVER = Kinds(
    ("dups_for",), ("heard_at",), _words("delack_delay receiver_rtt"), (),
    _words("ack_ticks dups_sent"),
)  # fmt: skip
# a receiver that delays its ACKs, if they meet data in a queue
# (which packets have arrived follows from the sender's record and the packets on their way)
DELAYING_RECEIVER = Kinds(
    instants=("delack_expires", "heard_at"), plain=("delack_packets", "quick_acks_left")
)
# a sender's retransmission timer and the RTT estimates from which it is set
TIMER = Kinds(
    ("timed",), ("deadline", "timed_at"), ("rto",), (), _words("srtt rttvar backoff timer_kind")
)
# the packets of a flow that arrive at one queue on its path (``state.Hop``)
ARRIVALS = Kinds(
    ("first",), ("time", "sent_at"), ("rtt", "rtt_min"), ("rate",),
    _words("count since_queue spread burst silent lost marked ends_parcel"),
)  # fmt: skip
# a queue (``state.Queue``)
QUEUE = Kinds(
    instants=("now",), rates=_words("rate packet_rate"),
    plain=_words(
        "queue excess average early passed since_loss next_loss active share packets_per_work"
    ),
)  # fmt: skip
# a class of a Rate-Delay link
CLASS = Kinds(
    instants=_words("last_end over_until all_end all_until"),
    spans=_words("mean_idle all_idle"),
    plain=_words("waiting unsent volume lag turn credit held_back"),
)
# a group of packets on its way (``state.Parcel``)
GROUP = Kinds(
    instants=("back", "sent_at"),
    spans=("rtt_sum", "rtt_min", "late"),
    plain=_words("packets lost marked silent"),
)


# the tables of these fields (``states.fields``), from which ``write_state`` writes a state
_SENDER, _ROUND, _LAW, _CUBIC, _LINUX_RECEIVER, _TIMER = (
    fields(FLOW, kinds) for kinds in (SENDER, ROUND, LAW, CUBIC, LINUX_RECEIVER, TIMER)
)
_GROUP, _ARRIVALS, _QUEUE = fields(PARCEL, GROUP), fields(HOP, ARRIVALS), fields(LINK, QUEUE)
_DELAYING_RECEIVER, _CLASS = fields(FLOW, DELAYING_RECEIVER), fields(LINK, CLASS)

# for each record, the fields that a state leaves out: parameters, totals, and places in memory
LEFT_OUT = {
    "flow": MECHANISMS
    + _words(
        "recovery rules drift_at cut_at remember_at update_at keeps_numbers once rounds "
        "keeps_base scoreboard probes rtt gap block_delay alpha beta gamma decrease max_window "
        "first_window untimed syn known_base "
        "syn_in_window jitter queue_wait waits_long places noise slack delayed_ack "
        "start stop size finished without boot_time hop hops longest_stretch member short_flow "
        "ecn_capable acked sent lost retransmits acks timeouts early_timers arrived "
        "delivered ahead ahead_since ahead_until ahead_acks acks_lost rtt_total rtt_packets "
        "mark_delivered mark_sent mark_lost mark_retransmits mark_rtt_total "
        "mark_rtt_packets mark_beyond lone_rtt way warm closed last_delivered last_sent last_lost "
        "last_retransmits last_rtt_total last_rtt_packets first_hole holes missing "
        "trips trips_at"  # both follow from ``since``
    ),
    "hop": _words(
        "flow stores link data last work block block_time precedes wire lead early to_next ring "
        "places most latest head idle burst_at burst_noise blocks"
    ),
    "link": _words(
        "capacity buffer discipline loss_hazard min_threshold max_threshold max_probability weight "
        "ecn mark_limit gentle mixed largest smallest leaving oldest rows whole fluid_rows partner "
        "class_weight shift instant lateness foreseen sampled warm handshake_excess "
        "handshake_leaves overflowed arrived lost served even area mark_area mark_now store "
        "class_based exact_capacity change round_bytes packet_bytes shares_sum idle_limit "
        "all_limit"
    ),
    "parcel": (),
}


class Snapshot(NamedTuple):
    """The state of the simulator at one time, and the totals up to this time.

    A state is compared with later ones: if it recurs, the motion of the windows is periodic.
    """

    time: float  # seconds
    key: bytes  # the first numbers of ``state``, which are compared first (``Observer.look``)
    state: Floats  # packets; first the numbers of ``key``, then those of ns-2's coarse timers
    flows: bytes  # the records of all flows (``state.Sender``), with their totals
    areas: Floats  # [queue] waiting packets integrated over time (``Queue.area``)


class Observer:
    """Takes snapshots of the simulator's state and compares them, to find periodic motions.

    Times in a state are multiplied by ``capacity``, in packets/s, and so become numbers of packets.
    """

    def __init__(self, net: Net, holes: Floats, capacity: float) -> None:
        """Observe the network ``net``; ``holes`` are the packets that its receivers miss."""
        self._net, self._holes, self._capacity = net, holes, capacity
        self._flows, self._links = array(net.flows), array(net.links)
        self._coarse = ~self._flows["timestamps"]  # senders with ns-2's coarse timers
        # In a state these are the indices after the key's numbers, and after the coarse timers.
        self._key = KEY_SIZE * len(self._flows)
        self._timers = self._key + int(self._coarse.sum()) * len(_TIMER)
        self._row = np.empty(1024)
        self._write = direct(write_state)

    def look(self, now: float) -> tuple[bytes, Floats]:
        """The state at the time ``now``: its key as bytes, and all its numbers as an array.

        The key has the first numbers of the array. They are five integers for each flow, for
        example its window rounded down to packets. Most states differ in their keys already, so
        that no further comparison is needed. The next call of ``look`` overwrites the array.
        """
        size = self._write(self._row, self._net, self._holes, now, self._capacity)
        if size > self._row.size:
            self._row = np.empty(2 * size)
            return self.look(now)
        return self._row[: self._key].tobytes(), self._row[:size]

    def keep(self, now: float, key: bytes, state: Floats) -> Snapshot:
        """Make a snapshot of the simulator, for comparison with later states.

        ``key`` and ``state`` describe the state at the time ``now``; ``look`` has returned them.
        The array ``state`` is copied, because the next call of ``look`` overwrites it.
        """
        areas = self._links["area"].copy()
        return Snapshot(now, key, state.copy(), self._flows.tobytes(), areas)

    def flows(self, seen: Snapshot) -> NDArray[np.void]:
        """The records of all flows (``state.Sender``) at the time of the snapshot ``seen``."""
        return np.frombuffer(seen.flows, self._flows.dtype)

    def difference(self, one: Snapshot, two: Snapshot, enough: float) -> float:
        """The largest difference between the numbers of two states, in packets.

        The result is infinite if the difference exceeds ``enough``.

        ns-2's coarse retransmission timers are compared only in two cases: if a timer has expired
        between the two snapshots, or if a running timer has not been restarted between them. In all
        other cases the timers do not affect what happens.

        ns-2's Vegas stores the sending times of packets in an array of ``Sender.places`` entries,
        which packets use in turn. If a flow has lost packets between the snapshots, it matters
        which entry a packet uses (``overdue.leave_stale``). The result is then infinite unless the
        flow's first unacknowledged packet uses the same entry in both states.
        """
        if one.key != two.key:
            return math.inf
        worst = difference(one.state, two.state, self._timers, enough)
        if worst == math.inf:  # most states differ here, so what follows is seldom needed
            return worst
        before, after = self.flows(one), self.flows(two)
        moved = (after["acked"] - before["acked"]) % after["places"] != 0.0  # to another entry
        if np.any(moved & np.isfinite(after["places"]) & (after["lost"] > before["lost"])):
            return math.inf
        if not self._coarse.any():
            return worst
        old, new = before[self._coarse], after[self._coarse]
        # whether a timer runs that has not been restarted between the two states
        waits = (new["high"] > new["acked"]) & (new["deadline"] <= old["deadline"])
        if np.any(waits | (old["timeouts"] != new["timeouts"])):
            tick = np.abs(_ticks(old, one.time) - _ticks(new, two.time))  # shift of the ticks
            timers = difference(one.state[: self._timers], two.state[: self._timers], 0, enough)
            worst = max(worst, timers, float(np.minimum(tick, 1.0 - tick).max()))
        return worst


def _ticks(flows: NDArray[np.void], now: float) -> Floats:
    """For each flow, the part of its clock's present tick that is over at time ``now``, 0 to 1."""
    phase: Floats = (now + flows["boot_time"]) / flows["tick"] % 1.0
    return phase


@jit
def write_state(out: Floats, net: Net, holes: Floats, time: float, capacity: float) -> int:
    """Write the simulator's state at ``time`` into ``out``; returns how many numbers the state has.

    The state is a list of numbers, so that two states can be compared number by number. First comes
    the key (``Observer.look``), then the numbers of ns-2's coarse timers. Then come all other
    numbers that tell how the simulation goes on: those of the flows, then those of the queues. If
    the array ``out`` is too short, the remaining numbers are counted but not written.
    """
    ago = 0.0  # seconds after which the exact time of an event is assumed not to matter
    for i in range(net.flows.shape[0]):
        ago = max(ago, AGO * net.flows[i].rtt_last)
    now, n = Now(time, ago, capacity), 0
    for i in range(net.flows.shape[0]):  # the key, ``KEY_SIZE`` integers each
        f = net.flows[i]
        n = put(out, n, np.floor(f.cwnd + 1e-6))  # the window in whole packets
        n = put(out, n, np.trunc(f.next - f.acked))  # packets that are not acknowledged
        n = put(out, n, float(f.holes - f.first_hole))  # ranges of packets that the receiver misses
        n = put(out, n, float(f.phase))  # recovery from losses, or not
        n = put(out, n, float(net.hops[f.hop].count))  # groups of packets on their way
    flows, links = memory(net.flows), memory(net.links)
    for i in range(net.flows.shape[0]):
        if not net.flows[i].timestamps:  # ns-2's coarse timers (``Observer.difference``)
            n = write(out, n, flows, i, _TIMER, net.flows[i].acked, now)
    # all other numbers of each flow, then those of each queue
    for i in range(net.flows.shape[0]):
        n = _write_sender(out, n, net.flows[i], flows, i, now)
        n = _write_holes(out, n, net.flows[i], holes[i], now)
        n = _write_way(out, n, net, net.flows[i], now)
        if net.receivers.shape[0] > 0 and net.receivers[i].delayed_ack:
            n = write(out, n, memory(net.receivers), i, _DELAYING_RECEIVER, 0.0, now)
    for k in range(net.links.shape[0]):
        n = write(out, n, links, k, _QUEUE, 0.0, now)
        link = net.links[k]
        if link.discipline == RED:
            n = put(out, n, link.idle * now.capacity)
        if link.partner >= 0:
            n = write(out, n, links, k, _CLASS, 0.0, now)
            n = _write_waiting(out, n, net, net.hops[link.store], now)
        if link.mixed == 1:  # packets of several sizes: their order, too
            n = put(out, n, link.leaving)
            for r in range(link.rows):
                row = link.stock[(link.oldest + r) % link.stock.shape[0]]
                for column in range(row.shape[0]):
                    n = put(out, n, row[column])
    return n


@jit
def _write_sender(out: Floats, n: int, f: Sender, flows: Memory, i: int, now: Now) -> int:
    """Append the state of a sender to the state in ``out``: the fields that matter for its kind.

    ``f`` is the sender's record, which is number ``i`` in the memory ``flows``. ``out`` already
    contains ``n`` numbers. Returns how many it contains afterwards.

    ``write`` appends the fields that a table such as ``_SENDER`` lists. It writes sequence numbers
    relative to its sixth argument: ``f.acked``, the sender's first unacknowledged packet, or 0 if
    the table has no sequence numbers.
    """
    n = write(out, n, flows, i, _SENDER, f.acked, now)
    if f.rounds:  # its law acts at the end of each round trip, as Vegas does
        n = write(out, n, flows, i, _ROUND, 0.0, now)
        n = put(out, n, f.round_end - f.acked)
    if f.keeps_numbers:  # its law, which a user has written, keeps numbers
        n = write(out, n, flows, i, _LAW, 0.0, now)
    if f.bictcp:  # Linux's CUBIC
        n = write(out, n, flows, i, _CUBIC, f.acked, now)
        n = put(out, n, (now.time - f.epoch_start) * now.capacity)
    if f.delayed_ack and f.adapts_ack_pause:  # its receiver is in Linux and delays ACKs
        n = write(out, n, flows, i, _LINUX_RECEIVER, f.acked, now)
    if f.timestamps:  # its timer is fine; ``write_state`` has written ns-2's coarse timers
        n = write(out, n, flows, i, _TIMER, f.acked, now)
    return n


@jit
def _write_holes(out: Floats, n: int, f: Sender, holes: Floats, now: Now) -> int:
    """Append the packet ranges that a sender's receiver misses (``holes``) to the state in ``out``.

    Packet numbers are written relative to the first unacknowledged packet. Times are written
    relative to the present, as multiples of the time in which the link sends a packet.

    ``write_state`` writes the simulator's state into the array ``out``, which already contains
    ``n`` numbers. Returns how many it contains afterwards.
    """
    for k in range(f.first_hole, f.holes):
        for column in range(COLUMNS):
            x = holes[k, column]
            if column in (FIRST, AFTER, NOT_RESENT):
                x -= f.acked
            elif column in (SENT_AT, BEFORE_AT):
                x = max(x - now.time, -now.ago) * now.capacity
            elif column == FORGOTTEN and f.clears_scoreboard and x > 0.0:
                x -= f.acked
            n = put(out, n, x)
    return n


@jit
def _write_way(out: Floats, n: int, net: Net, f: Sender, now: Now) -> int:
    """Append the groups of packets on their way through a flow's queues to the state in ``out``.

    ``write_state`` writes the simulator's state into the array ``out``, which already contains
    ``n`` numbers. Returns how many it contains afterwards.
    """
    rings, hops = memory(net.rings), memory(net.hops)
    for e in range(f.hop, f.hop + f.hops):
        h = net.hops[e]
        for k in range(h.count):
            place = h.ring + (h.head + k) % h.places
            n = write(out, n, rings, place, _GROUP, f.acked, now)
            n = put(out, n, net.rings[place].first - f.acked)
        if e != f.hop and h.idle == 0:
            n = write(out, n, hops, e, _ARRIVALS, f.acked, now)
    return n


@jit
def _write_waiting(out: Floats, n: int, net: Net, store: Hop, now: Now) -> int:
    """Append the packets that wait in one class of a Rate-Delay link to the state in ``out``.

    ``write_state`` writes the simulator's state into the array ``out``, which already contains
    ``n`` numbers. Returns how many it contains afterwards.
    """
    rings = memory(net.rings)
    for k in range(store.count):
        place = store.ring + (store.head + k) % store.places
        p = net.rings[place]
        n = write(out, n, rings, place, _GROUP, 0.0, now)
        n = put(out, n, float(p.hop))
        n = put(out, n, p.work)
        if p.hop >= 0:
            n = put(out, n, p.first - net.flows[net.hops[p.hop].flow].acked)
    return n
