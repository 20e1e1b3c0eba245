"""The whole state of the simulator at a moment: equal states have equal futures.

To compare states, sequence numbers count from the first unacknowledged packet, and times from now.
Times are divided by the service time of the first queue, so all numbers are in packets.  The state
leaves out what cannot affect the future: totals, times long past, and ns-2's coarse timer as long
as it is restarted before it expires.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vegasmodel.engines.rounds.state import MECHANISMS, RED, Net, array
from vegasmodel.metrics import Floats

AGO = 16.0  # round trips after which it is of no account when something was
FAR = 1e6  # seconds; beyond is never


class Kinds(NamedTuple):
    """Names of a record's fields, by their kind."""

    numbers: tuple[str, ...] = ()  # sequence numbers that matter from what is acknowledged on
    instants: tuple[str, ...] = ()
    spans: tuple[str, ...] = ()  # seconds
    rates: tuple[str, ...] = ()
    plain: tuple[str, ...] = ()  # packets, counts, flags


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


SENDER = Kinds(
    _words("next high received first retransmit recover resent probed"),
    _words("received_at latest changed since awaits_since time left_at wait_ends delack_expires"),
    _words("rtt_last mean_rtt rtt_deviation min_rtt base"),
    ("rate",),
    _words(
        "cwnd memory cwnd_cnt ssthresh dupacks inflated pipe recover_in_flight prr_delivered "
        "prr_out phase partial timed_out marked echoed growth grow_next rechecks deflated "
        "overdue_factor burst_part since_queue spread burst event transit awaits_parcels "
        "active count holes owed_loss quick_acks_left delack_packets"
    ),
)
ROUND = Kinds(
    instants=("round_start",), spans=("rtt_sum", "rtt_min"), plain=("rtt_count",)
)  # of Vegas; round_end too
CUBIC = Kinds(
    ("train_end",), ("counted", "train_start", "train_last"), ("delay_min", "train_rtt", "cubic_k"),
    (),
    _words("cnt last_max origin_point reno_cwnd reno_acks last_cwnd train_samples hystart_found"),
)  # fmt: skip
TIMER = Kinds(
    ("timed",), ("deadline", "timed_at"), ("rto",), (), _words("srtt rttvar backoff timer_kind")
)
STOP = Kinds(
    ("first",), ("time", "sent_at"), ("rtt", "min_rtt"), ("rate",),
    _words("count since_queue spread burst lost marked ends_parcel"),
)  # fmt: skip
QUEUE = Kinds(
    instants=("now",), rates=_words("rate packet_rate"),
    plain=_words(
        "queue excess average early passed hazard next_hazard active share packets_per_work"
    ),
)  # fmt: skip
PARCEL = Kinds(
    instants=("back", "sent_at"), spans=("rtt_sum", "rtt_min"), plain=_words("count lost marked")
)


# of each record what no future hangs on: what was given, is counted only, or says where things lie
LEFT_OUT = {
    "flow": MECHANISMS
    + _words(
        "recovery rules drift_at cut_at remember_at once rounds keeps_base scoreboard probes "
        "rtt gap block alpha beta gamma decrease max_window first_window untimed syn "
        "known_base jitter queue_wait noise slack delayed_ack start stop size without "
        "boot_time hop hops longest_stretch member short_flow ecn_capable head acked sent lost "
        "retransmits acks timeouts delivered acks_lost rtt_area rtt_samples mark_delivered "
        "mark_sent mark_lost mark_retransmits mark_acks"
    ),
    "hop": _words("flow link data last work precedes to_next ring room latest head idle since"),
    "link": _words(
        "capacity buffer discipline loss min_threshold max_threshold max_probability weight "
        "ecn mark_limit gentle mixed largest smallest oldest rows partner class_weight shift "
        "lateness foreseen sampled warm handshake_excess handshake_leaves arrived lost served "
        "area mark_area mark_served mark_now"
    ),
    "parcel": (),
}


class Snapshot(NamedTuple):
    """The state at a moment, for comparison with other moments, and the totals until then."""

    time: float
    rough: bytes
    state: Floats  # packets
    timers: Floats  # packets; of ns-2's coarse timer, and the phases of its ticks, 0 to 1
    ticks: Floats
    flows: NDArray[np.void]
    links: NDArray[np.void]


def rough(net: Net) -> bytes:
    """A few whole numbers that equal states have in common.  They are quick to compare."""
    flows = array(net.flows)
    parts = (np.floor(flows["cwnd"] + 1e-6), flows["next"] - flows["acked"], flows["holes"])
    numbers: NDArray[np.int64] = np.stack([*parts, flows["phase"], flows["count"]]).astype(np.int64)
    return numbers.tobytes()


def snapshot(net: Net, holes: Floats, now: float, c: float) -> Snapshot:
    """The state now; the capacity ``c``, pkt/s, converts seconds into packets."""
    flows = array(net.flows)
    ago = AGO * float(flows["rtt_last"].max())
    acked, rounds, stamped = flows["acked"], flows["rounds"], flows["timestamps"]

    def columns(records: Any, kinds: Kinds, acked: Any) -> Floats:
        parts = [np.maximum(records[name] - acked, -1.0) for name in kinds.numbers]
        parts += [np.clip(records[name] - now, -ago, FAR) * c for name in kinds.instants]
        parts += [np.minimum(records[name], FAR) * c for name in kinds.spans]
        parts += [records[name] / c for name in kinds.rates]
        parts += [records[name] for name in kinds.plain]
        return np.stack(np.broadcast_arrays(*parts)).astype(np.float64)

    timers = columns(flows, TIMER, acked)
    found = [
        columns(flows, SENDER, acked),
        columns(flows[rounds], ROUND, 0.0),
        (flows["round_end"] - acked)[rounds],
        columns(flows[flows["bictcp"]], CUBIC, acked[flows["bictcp"]]),
        (now - flows["epoch_start"])[flows["bictcp"]] * c,
        timers[:, stamped],
        columns(net.links, QUEUE, 0.0),
        np.where(net.links["discipline"] == RED, net.links["idle"] * c, 0.0),
    ]
    for i, f in enumerate(flows):
        some = holes[i, : f["holes"]].copy()
        some[:, [0, 1, 5]] -= f["acked"]
        some[:, [2, 3]] = np.maximum(some[:, [2, 3]] - now, -ago) * c
        found.append(some)
    for e, h in enumerate(array(net.hops)):
        f = flows[h["flow"]]
        first = e == f["hop"]
        holder = f if first else h
        ring = array(net.rings)[h["ring"] : h["ring"] + h["room"]]
        some = ring[(holder["head"] + np.arange(holder["count"])) % len(ring)]
        found += [columns(some, PARCEL, 0.0), some["first"] - f["acked"]]
        if not first and not h["idle"]:
            found.append(columns(h, STOP, f["acked"]))
    for link in array(net.links)[net.links["mixed"] == 1]:
        rows = (link["oldest"] + np.arange(link["rows"])) % link["stock"].shape[0]
        found.append(link["stock"][rows])
    return Snapshot(
        now,
        rough(net),
        np.concatenate([np.ravel(part) for part in found]),
        np.ravel(timers[:, ~stamped]),
        ((now + flows["boot_time"]) / flows["tick"] % 1.0)[~stamped],
        flows.copy(),
        array(net.links).copy(),
    )


def apart(one: Snapshot, two: Snapshot) -> float:
    """Largest difference of two states, packets; inf if their shapes differ.

    ns-2's coarse timers count only if one has expired, or has not been restarted, between the two.
    """
    if one.rough != two.rough or one.state.shape != two.state.shape:
        return float("inf")
    worst = float(np.abs(one.state - two.state).max())
    coarse = ~one.flows["timestamps"]
    old, new = one.flows[coarse], two.flows[coarse]
    waits = (new["high"] > new["acked"]) & (new["deadline"] <= old["deadline"])
    if np.any(waits | (old["timeouts"] != new["timeouts"])):
        turn = np.abs(one.ticks - two.ticks)
        timers = float(np.abs(one.timers - two.timers).max())
        worst = max(worst, timers, float(np.minimum(turn, 1.0 - turn).max()))
    return worst
