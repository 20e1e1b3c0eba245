"""Parses the files that one run of ns-2 or ns-3 wrote: counts, samples, drops, round-trip times."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vegasmodel.metrics import Floats

__all__ = ["Counts", "Drops", "Output", "RoundTrips", "Samples", "read"]

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Counts:
    """Counters of n flows or n links, read at the beginning and at the end of a measurement.

    ``value`` has k counters for each flow or link, such as packets sent. ``time`` has the times at
    which they were read.
    """

    time: Floats  # [2, n] seconds
    value: Floats  # [2, n, k]


@dataclass(frozen=True)
class Drops:
    """The data packets that were dropped in a run, in order of time.

    Each array has one entry per dropped packet.
    """

    time: Floats  # s from the scenario's start
    link: Integers  # index of the link
    reverse: Integers  # 1: dropped in the link's reverse direction
    flow: Integers
    packet: Integers  # sequence number, from 0


@dataclass(frozen=True)
class RoundTrips:
    """The measured round-trip times of one flow, s.

    Each ACK that acknowledges new data gives a round-trip time, unless one of the packets that it
    acknowledges was sent more than once, or it answers a SYN.
    """

    time: Floats  # when the ACK came, s from the scenario's start
    rtt: Floats
    # whether the receiver may have held the ACK back, to wait for another packet
    held: NDArray[np.bool_]


@dataclass(frozen=True)
class Samples:
    """Windows, queues and counters of a run, sampled at equal steps of time.

    The first sample is at the scenario's start, the last one at its end.  The last step may be
    shorter than the others.
    """

    time: Floats  # [n]
    window: Floats  # [n, n_flows] packets; NaN for short flows that arrive at random
    flows: Floats  # [n, n_flows, 3] counters as in ``Output.flows``
    queue: Floats  # [n, n_links] waiting packets
    links: Floats  # [n, n_links, 3] counters as in ``Output.links``


@dataclass(frozen=True)
class Output:
    """What one run of ns-2 or ns-3 wrote.

    Times count from the scenario's start, s. In ns-2, some Vegas flows first send packets to
    measure their baseRTT; the times of these packets are negative.

    ``flows`` has three counters per flow: the packets acknowledged, retransmitted and sent.
    ``links`` has three counters of each link's forward direction: the integral of the number of
    waiting packets over time (packets times s), the packets that left, and the bytes that left.
    """

    flows: Counts
    links: Counts
    finished: Floats  # [n_flows] when a finite flow was done; NaN if not
    samples: Samples
    drops: Drops
    round_trips: tuple[RoundTrips, ...] | None  # per flow; None: not recorded


def read(folder: Path, n_flows: int, n_links: int, origin: float, *, rtts: bool) -> Output:
    """Parse the files that one run of ns-2 or ns-3 wrote into ``folder``.

    ``origin`` is the time on the simulator's clock at which the scenario begins, s.  ``rtts`` says
    whether the run recorded round-trip times.  Raises ``ValueError`` if the run did not reach its
    end, and ``OSError`` if a file is missing.  There are ``n_flows`` flows and ``n_links`` links.

    The file ``result.txt`` has these lines, in which flows and links are numbers:

    - ``flow FLOW first|last TIME COUNTERS``: counters at the start or the end of the measurement,
    - ``link LINK forward first|last TIME COUNTERS``: the same of a link,
    - ``sample TIME`` and more numbers (``_samples``),
    - ``done FLOW TIME``: a finite flow is done,
    - ``end``: the last line.
    """
    flows = Counts(np.full((2, n_flows), np.nan), np.full((2, n_flows, 3), np.nan))
    links = Counts(np.full((2, n_links), np.nan), np.full((2, n_links, 3), np.nan))
    finished = np.full(n_flows, np.nan)
    samples: list[list[float]] = []
    ended = False
    with (folder / "result.txt").open(encoding="ascii") as lines:
        for line in lines:
            kind, *words = line.split()
            if kind == "flow":
                _store(flows, int(words[0]), words[1], words[2:], origin)
            elif kind == "link":
                _store(links, int(words[0]), words[2], words[3:], origin)
            elif kind == "sample":
                samples.append([float(word) for word in words])
            elif kind == "done":
                finished[int(words[0])] = float(words[1]) - origin
            elif kind == "end":
                ended = True
    if not ended or np.isnan(flows.time).any() or np.isnan(links.time).any():
        raise ValueError("it stopped before the end of the run")
    return Output(
        flows=flows,
        links=links,
        finished=finished,
        samples=_samples(samples, n_flows, n_links, origin),
        drops=_drops(folder / "drops.txt", origin),
        round_trips=_round_trips(folder / "rtt.txt", n_flows, origin) if rtts else None,
    )


def _store(counts: Counts, i: int, label: str, words: list[str], origin: float) -> None:
    """Store the counters of flow or link ``i``, which a line of the output has.

    ``label`` says when they were read: ``first`` at the beginning of the measurement, ``last`` at
    its end. ``words`` are the time, s, and the counters. ``origin`` is the time at which the
    scenario begins, s.
    """
    end = 0 if label == "first" else 1
    counts.time[end, i] = float(words[0]) - origin
    counts.value[end, i] = [float(word) for word in words[1:]]


def _samples(rows: list[list[float]], n_flows: int, n_links: int, origin: float) -> Samples:
    """Split the rows of samples: the time, then four numbers per flow, then four per link.

    A flow has its window and three counters, a link its queue and three counters. ``origin`` is the
    time at which the scenario begins, s.
    """
    table = np.array(rows, dtype=np.float64).reshape(len(rows), 1 + 4 * (n_flows + n_links))
    flows = table[:, 1 : 1 + 4 * n_flows].reshape(len(rows), n_flows, 4)
    links = table[:, 1 + 4 * n_flows :].reshape(len(rows), n_links, 4)
    time = table[:, 0] - origin
    return Samples(time, flows[..., 0], flows[..., 1:], links[..., 0], links[..., 1:])


def _drops(path: Path, origin: float) -> Drops:
    """Parse a simulator's file of dropped packets, leaving out dropped ACKs.

    Its lines have the form ``d time link direction type size flags flow src dst seq id``. Here
    ``direction`` is 0 for the link's forward and 1 for its reverse direction, and ``seq`` is the
    packet's sequence number. ``origin`` is the time, s, on the simulator's clock at which the
    scenario begins.
    """
    rows = [line.split() for line in path.read_text(encoding="ascii").splitlines()]
    rows = [row for row in rows if row[4] != "ack"]
    return Drops(
        time=np.array([row[1] for row in rows], dtype=np.float64) - origin,
        link=np.array([row[2] for row in rows], dtype=np.int64),
        reverse=np.array([row[3] for row in rows], dtype=np.int64),
        flow=np.array([row[7] for row in rows], dtype=np.int64),
        packet=np.array([row[10] for row in rows], dtype=np.int64),
    )


def _round_trips(path: Path, n_flows: int, origin: float) -> tuple[RoundTrips, ...]:
    """Compute the round-trip times of each flow from a file of packets recorded at the senders.

    Each line of the file stands for a packet and has the form ``+ time flow 0 type size ... seq
    id``.  The size is in bytes; in ns-3 it is 0.  A line begins with ``+`` for a data packet that
    the sender sends, and with ``r`` for an ACK that the sender receives.  ``origin`` is the time,
    s, on the simulator's clock at which the scenario begins.
    """
    from pyarrow import csv

    if path.stat().st_size == 0:
        return (RoundTrips(np.empty(0), np.empty(0), np.empty(0, dtype=np.bool_)),) * n_flows
    names = ["what", "time", "flow", "size", "seq"]
    columns = ["what", "time", "flow", *"ab", "size", *"cdef", "seq", "id"]  # letters: not read
    table = csv.read_csv(
        path,
        read_options=csv.ReadOptions(column_names=columns, use_threads=False),
        parse_options=csv.ParseOptions(delimiter=" ", quote_char=False),
        convert_options=csv.ConvertOptions(include_columns=names),
    )
    what, time, flow, sizes, seq = (table[name].to_numpy() for name in names)
    order = np.argsort(flow, kind="stable")
    bounds = np.searchsorted(flow[order], np.arange(n_flows + 1))
    what, time, seq, sizes = what[order] == "+", time[order] - origin, seq[order], sizes[order]
    parts = [slice(a, b) for a, b in itertools.pairwise(bounds)]
    return tuple(_rtts_of_flow(what[p], time[p], seq[p], sizes[p]) for p in parts)


def _rtts_of_flow(
    is_data: NDArray[np.bool_], time: Floats, seq: Integers, sizes: Integers
) -> RoundTrips:
    """Compute the round-trip times of one flow, by the rule of Karn and Partridge.

    An ACK carries the sequence number of the last packet that the receiver has got in order. If
    this number is higher than in all earlier ACKs, the time since the packet with this number was
    sent is an RTT. But ACKs that also acknowledge a packet that was sent more than once are left
    out: such an ACK came only after a lost packet had been sent again, so the time is too long. The
    ACK of a smaller packet, such as a SYN, is left out, too: its RTT is shorter.

    If most packets are acknowledged by ACKs of several packets, the receiver delays its ACKs. Then
    it may have held back an ACK of one packet until its timer expired.

    ``time`` (s), ``seq`` and ``sizes`` (bytes) have the times, the sequence numbers and the sizes
    of data packets and ACKs. ``is_data`` is true for data packets.
    """
    sent, sent_at = seq[is_data], time[is_data]
    acked, acked_at = seq[~is_data], time[~is_data]
    # the highest packet acknowledged before each ACK, and after the last one; -1: none
    highest = np.concatenate([[-1], np.maximum.accumulate(acked)]) if acked.size else np.array([-1])
    before, new = highest[:-1], highest[1:] > highest[:-1]
    before, acked, acked_at = before[new], acked[new], acked_at[new]  # keep ACKs of new data
    # When each packet was sent first. The times are stored in reverse order, so of several times of
    # one packet the earliest stays.
    size = int(sent.max(initial=-1)) + 1
    first_sent = np.full(size, np.nan)
    first_sent[sent[::-1]] = sent_at[::-1]
    # repeated_before[n]: how many of the packets 0 .. n - 1 were sent more than once
    repeated_before = np.concatenate([[0], np.cumsum(np.bincount(sent, minlength=size) > 1)])
    # whether the ACK acknowledges only packets that were sent once
    unrepeated = repeated_before[acked + 1] == repeated_before[before + 1]
    large = np.zeros(size, dtype=bool)
    large[sent[sizes[is_data] == sizes[is_data].max(initial=0)]] = True
    used = unrepeated & large[acked]
    packets = acked - before  # that each ACK acknowledges
    # whether fewer than half of all packets have an ACK of their own
    delays = 2 * np.count_nonzero(packets == 1) < packets.sum()
    held = delays & (packets == 1)
    return RoundTrips(acked_at[used], (acked_at - first_sent[acked])[used], held[used])
