"""What one run of ns-2 wrote: counts of flows and links, samples, dropped packets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

__all__ = ["Counts", "Output", "read"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass
class Counts:
    """Counters at the two ends of the measured interval: ``[2, ...]``, times in seconds."""

    time: Floats  # [2, n]
    value: Floats  # [2, n, k]


@dataclass
class Drops:
    """Dropped data packets, one entry each, in the order of time."""

    time: Floats
    link: Integers
    reverse: Integers  # 1: dropped on the link's way back
    flow: Integers


@dataclass
class Output:
    """What one run wrote.

    Columns of ``flows``: packets acknowledged, retransmitted, sent; of ``links``: integral of the
    waiting packets, arrivals, departures, bytes departed.
    """

    flows: Counts
    links: Counts
    finished: Floats  # [n_flows] time at which a finite flow was done; NaN if not
    sample_time: Floats  # [n_samples]
    window: Floats  # [n_samples, n_flows]
    queue: Floats  # [n_samples, n_links]
    drops: Drops


def read(folder: Path, n_flows: int, n_links: int) -> Output:
    """Parse the files of one run.  Raises ``ValueError`` if the run did not reach its end."""
    flows = Counts(np.full((2, n_flows), np.nan), np.full((2, n_flows, 3), np.nan))
    links = Counts(np.full((2, n_links), np.nan), np.full((2, n_links, 4), np.nan))
    finished = np.full(n_flows, np.nan)
    samples: list[list[float]] = []
    ended = False
    with (folder / "result.txt").open(encoding="ascii") as lines:
        for line in lines:
            kind, *words = line.split()
            if kind == "flow":
                _store(flows, int(words[0]), words[1], words[2:])
            elif kind == "link":
                _store(links, int(words[0]), words[2], words[3:])
            elif kind == "sample":
                samples.append([float(word) for word in words])
            elif kind == "done":
                finished[int(words[0])] = float(words[1])
            elif kind == "end":
                ended = True
    if not ended:
        raise ValueError("ns-2 stopped before the end of the run")
    table = np.array(samples, dtype=np.float64).reshape(len(samples), 1 + n_flows + n_links)
    return Output(
        flows=flows,
        links=links,
        finished=finished,
        sample_time=table[:, 0],
        window=table[:, 1 : 1 + n_flows],
        queue=table[:, 1 + n_flows :],
        drops=_drops(folder / "drops.txt"),
    )


def _store(counts: Counts, i: int, label: str, words: list[str]) -> None:
    end = 0 if label == "first" else 1
    counts.time[end, i] = float(words[0])
    counts.value[end, i] = [float(word) for word in words[1:]]


def _drops(path: Path) -> Drops:
    """Lines of ns-2's drop trace: ``d time link direction type size flags flow ...``."""
    rows = [line.split() for line in path.read_text(encoding="ascii").splitlines()]
    rows = [row for row in rows if row[4] != "ack"]
    return Drops(
        time=np.array([row[1] for row in rows], dtype=np.float64),
        link=np.array([row[2] for row in rows], dtype=np.int64),
        reverse=np.array([row[3] for row in rows], dtype=np.int64),
        flow=np.array([row[7] for row in rows], dtype=np.int64),
    )
