"""Stores samples of the state of every flow; if there are too many samples, it drops some.

A sample holds values, such as the cwnd, and counters, such as the bytes acknowledged so far. If a
sample is dropped, no bytes are missed, because the counter in the next sample includes them.

If a counter decreases, a new connection between the same addresses and ports has begun. This
connection is stored as another flow. Bytes are converted to packets of the flow's largest segment
size.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from vegasmodel.fields.lists import few
from vegasmodel.metrics import Floats
from vegasmodel.packets.readers.source import Source
from vegasmodel.packets.trace import Trace, assemble
from vegasmodel.packets.trace_variables import MAX_FLOWS

MAX_CELLS = 200_000  # samples that are kept at most, to limit the memory
# Samples of different flows form one snapshot if the time between them is less than this fraction
# of the usual time between two samples of one flow.
SAME_SNAPSHOT = 0.25
# the counters in a sample (bytes delivered, packets retransmitted, bytes retransmitted), each with
# the variable of the trace that its growth gives
COUNTERS = {"bytes": "throughput", "retransmits": "retransmits", "bytes_resent": "retransmits"}
Sample = dict[str, float]  # values and counters of one flow at one time, by name


class Snapshots:
    """Collects samples of the flows' state; ``trace`` makes a trace of them.

    Samples of several flows at about the same time form a snapshot.

    To save memory, time may be divided into steps of ``width`` seconds. Only the last sample of
    each flow in a step is then kept. As long as ``width`` is 0, all samples are kept. The function
    that reads a file may set ``width``, and ``width`` grows when there are more than ``MAX_CELLS``
    samples.

    A sample at time 0 is never replaced by a later one, because its counters are the values from
    which later growth is computed.
    """

    def __init__(self, source: Source) -> None:
        """Begin without samples; ``source`` is the file, which error messages name."""
        self.source = source
        # for each step of time (``_store`` numbers them): its latest time, and its samples by flow
        self.rows: dict[float, tuple[float, dict[str, Sample]]] = {}
        # The keys of the dictionaries below are flows or names. Several connections with the same
        # addresses and ports are different flows, but have one name.
        # flow -> time of its last sample; in order of appearance
        self.latest: dict[str, float] = {}
        self.times = dict[str, float]()  # name -> time of the last sample
        self.counts: dict[str, Sample] = {}  # flow -> the latest values of its counters
        self.connections: dict[str, int] = {}  # name -> number of connections, if above 1
        self.payload: dict[str, float] = {}  # flow -> the largest segment size, bytes of data
        self.changed: dict[str, float] = {}  # flow -> the smallest of several segment sizes
        self.controls: dict[str, str] = {}  # flow -> its congestion control, if known
        self.samples = 0  # number of samples in ``rows``
        self.width = 0.0  # s, length of a step of time; 0: every sample time is a step of its own
        # True if all counters are 0 where the file begins: what they show in the first snapshot is
        # then a part of the first interval's growth.
        self.from_zero = False

    def begin(self) -> None:
        """Add a snapshot at time 0 that has no samples yet.

        Samples of flows at time 0 may be added to this snapshot later. A flow that has no sample at
        time 0, but has samples at later times, was not open at time 0. The first values of its
        counters are then their growth from 0.
        """
        self.rows[0.0] = (0.0, {})

    def add(
        self, line: int, time: float, flow: str, sample: Sample, mss: float, control: str = ""
    ) -> None:
        """Add a sample of one flow's state at ``time``, s.

        ``mss`` is the number of bytes of data in a full packet.  ``control`` is the flow's
        congestion control, or empty if unknown.  ``line`` is the number of the line in the file.
        Raises ``TraceError`` if the time is earlier than that of the flow's last sample, or if
        there are more than ``MAX_FLOWS`` flows.
        """
        if time < self.times.get(flow, -math.inf):
            self.source.fail(f"line {line}", time, "a time that does not decrease")
        self.times[flow] = time
        flow = self._connection(flow, sample)
        if flow not in self.latest and len(self.latest) == MAX_FLOWS:
            self.source.fail(f"line {line}", flow[:60], f"at most {MAX_FLOWS} flows")
        self.latest[flow] = time
        self.counts[flow] = {key: sample[key] for key in COUNTERS if key in sample}
        known = self.payload.setdefault(flow, mss)
        if mss != known:
            self.changed[flow] = min(self.changed.get(flow, known), mss)
            self.payload[flow] = max(mss, known)
        if control:
            self.controls[flow] = control
        self._store(time, {flow: sample})
        if self.samples > MAX_CELLS:
            self._thin()

    def _connection(self, flow: str, sample: Sample) -> str:
        """The name under which a sample of the flow ``flow`` is stored.

        If a counter is lower than in the flow's previous sample, a new connection between the same
        ports has begun. The new connection is a flow of its own: its name gets a number, such as
        ``#2``.
        """
        number = self.connections.get(flow, 1)
        name = f"{flow} #{number}" if number > 1 else flow
        before = self.counts.get(name, {})
        if any(sample.get(key, math.inf) < value for key, value in before.items()):
            self.connections[flow] = number + 1
            return f"{flow} #{number + 1}"
        return name

    def _store(self, time: float, samples: dict[str, Sample]) -> None:
        """Store samples that were taken at ``time``, s; ``samples`` has one for each of some flows.

        They replace earlier samples of the same flows in the same step of time. If ``width`` is 0,
        every time is a step of its own, and ``rows`` has the samples under this time. Otherwise a
        step lasts ``width`` seconds, and ``rows`` has the samples under the step's number. But
        samples at time 0 have a step for themselves, so that no later sample replaces them.
        """
        if not self.width:
            step = time
        elif time:
            step = float(math.floor(time / self.width))
        else:
            step = -self.width  # numbers of the other steps are not negative
        latest, row = self.rows.get(step, (time, {}))
        stored = len(row)
        row.update(samples)
        self.samples += len(row) - stored
        self.rows[step] = (max(time, latest), row)

    def _thin(self) -> None:
        """Make the steps of time at least twice as long; keep each flow's last sample in a step."""
        rows = sorted(self.rows.values(), key=lambda row: row[0])
        self.width = max(2 * self.width, 2 * (rows[-1][0] - rows[0][0]) / len(rows))
        self.rows, self.samples = {}, 0
        for time, samples in rows:
            self._store(time, samples)

    def _joined(self) -> list[tuple[float, dict[str, Sample]]]:
        """The snapshots in order of time: for each its time, s, and the samples by flow name.

        Samples of different flows are in one snapshot if they were taken at nearly the same time.
        Their times must differ by less than a quarter (``SAME_SNAPSHOT``) of the usual time between
        two samples of one flow.
        """
        rows = sorted(self.rows.values(), key=lambda row: row[0])
        times_of: dict[str, list[float]] = {}  # flow -> the times of its samples
        for time, samples in rows:
            for name in samples:
                times_of.setdefault(name, []).append(time)
        between = np.concatenate([np.diff(times) for times in times_of.values()] or [np.zeros(0)])
        tolerance = SAME_SNAPSHOT * float(np.median(between)) if between.size else 0.0
        joined: list[tuple[float, dict[str, Sample]]] = []
        for time, samples in rows:
            if (
                joined
                and time - joined[-1][0] < tolerance
                and not joined[-1][1].keys() & samples.keys()
            ):
                joined[-1] = (time, joined[-1][1] | samples)
            else:
                joined.append((time, samples))
        return joined

    def keep(self, flows: set[str]) -> None:
        """Drop the samples of all flows whose names are not in ``flows``."""
        self.latest = {name: time for name, time in self.latest.items() if name in flows}
        for step, (time, row) in self.rows.items():
            self.rows[step] = time, {name: s for name, s in row.items() if name in flows}

    def trace(
        self,
        engine: str,
        provenance: Mapping[str, str],
        doubts: Mapping[str, str] | None = None,
        *,
        origin: float = 0.0,
    ) -> Trace:
        """Make a trace of all samples, with intervals that end at the times of the snapshots.

        For each counter, the trace has its growth per interval. Times in the trace count from
        ``origin``, s. ``Trace`` explains the other arguments. Raises ``TraceError`` if there are
        fewer than two snapshots, or too many flows for the memory that a trace may use.
        """
        rows, names = self._joined(), list(self.latest)
        if len(rows) < 2:
            found = "samples at one time" if rows else "no samples"
            self.source.fail("", found, "samples at two times or more")
        # to save memory, keep fewer samples of each flow
        while self.width and len(rows) * len(names) > 10 * MAX_CELLS and len(rows) > 2:
            self._thin()
            rows = self._joined()
        if len(rows) * len(names) > 10 * MAX_CELLS:
            self.source.fail("", f"{len(names)} flows", "fewer flows, or a shorter time")
        times = np.array([time for time, _ in rows]) - origin
        keys = sorted({key for _, row in rows for sample in row.values() for key in sample})
        index = {name: i for i, name in enumerate(names)}
        # name of a value, such as rtt -> its samples [snapshot, flow]; NaN: none was taken
        grids = {key: np.full((len(rows), len(names)), math.nan) for key in keys}
        for k, (_, row) in enumerate(rows):
            for name, sample in row.items():
                for key, value in sample.items():
                    grids[key][k, index[name]] = value
        sampled = np.array([[name in row for name in names] for _, row in rows])
        payload = np.array([self.payload[name] for name in names])
        variables = _variables(grids, times, sampled, payload, from_zero=self.from_zero)
        changed = [
            f"{name} (from {least:g} to {self.payload[name]:g} B)"
            for name, least in self.changed.items()
        ]
        what = ": the segment size changed; bytes are converted to packets of the largest size"
        return assemble(
            engine,
            times[1:],
            names,
            variables,
            begin=times[0],
            provenance={**provenance, "packets": "bytes over the largest segment size"},
            controls=self.controls,
            doubts={
                **(doubts or {}),
                **({"one-packet-size": few(changed) + what} if changed else {}),
            },
        )


def _variables(
    grids: dict[str, Floats],
    times: Floats,
    sampled: np.ndarray[tuple[int, int], np.dtype[np.bool_]],
    payload: Floats,
    *,
    from_zero: bool,
) -> dict[str, Floats]:
    """The variables of the trace by name: arrays [interval, flow], or [flow].

    An interval lies between two successive snapshots; ``times`` [snapshot] are their times in s.
    ``sampled`` [snapshot, flow] says whether the snapshot has a sample of the flow. ``grids`` has
    for each key of the samples the values [snapshot, flow], NaN where there is none. ``payload``
    [flow] is the number of bytes of data in a full packet.

    A counter gives its growth in each interval. Other values are those at the end of the interval.
    ``from_zero`` is true if all counters were 0 where the file begins; the first interval's growth
    then contains what they show in the first snapshot.
    """
    variables: dict[str, Floats] = {"payload": payload}
    for key, grid in grids.items():
        if key not in COUNTERS:
            variables[key] = grid[1:]
            continue
        counter = _filled_forward(grid)
        if from_zero:
            counter[0] = 0.0
        growth = np.diff(counter, axis=0)
        if key != "retransmits":  # a counter of bytes
            growth = growth / payload
        if key == "bytes":  # the throughput is a rate
            growth = growth / np.diff(times)[:, None]
        # retransmissions may be counted in packets for some samples and in bytes for others
        other = variables.get(COUNTERS[key])
        variables[COUNTERS[key]] = growth if other is None else other + growth
    flows = sampled.shape[1]
    first = np.argmax(sampled, axis=0)  # index of the snapshot with the flow's first sample
    last = len(times) - 1 - np.argmax(sampled[::-1], axis=0)
    # The flow began at an unknown time between the snapshot before its first sample and this
    # sample. The earlier time is taken, because the growth of the interval between the two
    # snapshots counts as the flow's.
    variables["first"] = times[np.maximum(first - 1, 0)].reshape(flows)
    variables["last"] = times[last].reshape(flows)
    return variables


def _filled_forward(grid: Floats) -> Floats:
    """Replace unknown values (NaN) of a cumulative counter, an array [time, flow].

    Each NaN becomes the flow's latest known value before it, or 0 if there is none.
    """
    known = ~np.isnan(grid)
    # [time, flow] index of the latest time with a known value; -1 if there is none yet
    latest = np.maximum.accumulate(np.where(known, np.arange(len(grid))[:, None], -1), axis=0)
    held = np.take_along_axis(grid, np.maximum(latest, 0), axis=0)
    return np.where(latest < 0, 0.0, held)
