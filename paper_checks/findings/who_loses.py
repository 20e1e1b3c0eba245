"""Who loses when Vegas and Reno overflow a buffer: hypothesis 5 of ``devendictis``."""

from __future__ import annotations

from typing import Literal

import numpy as np

from paper_checks.devendictis.validation import BUFFERS, MU, scene
from paper_checks.findings.page import Page, table
from paper_checks.runs import Runs
from vegasmodel.equilibrium import minicycle
from vegasmodel.plots.style import COLORS, DASHES, MARKERS, figure, legend, tidy
from vegasmodel.predictor import predict

__all__ = ["page"]

T = 0.08  # s
FORMS: tuple[tuple[Literal["printed", "derived"], Literal["both", "reno"]], ...] = (
    ("printed", "both"),
    ("derived", "both"),
    ("derived", "reno"),
)
NAMES = ("ns-2", "rounds", "both lose, printed", "both lose, derived", "Reno loses, derived")


def _rows(runs: Runs) -> np.ndarray:
    """[buffer, ratio Vegas/Reno by ``NAMES``, Vegas's and Reno's loss in percent]."""
    rows = []
    for B in BUFFERS:
        measured = runs(scene(T, B))
        rates = predict(scene(T, B), "rounds").throughput
        assert rates is not None
        ratios = [measured.mean[0] / measured.mean[1], rates[0] / rates[1]]
        for form, losers in FORMS:
            v, r = minicycle.throughput(MU, T, B, 3.0, 0.75, form=form, losers=losers)
            ratios.append(v / r)
        rows.append([B, *ratios, *(100 * measured.loss_rate)])
    return np.array(rows, dtype=np.float64)


def page(runs: Runs) -> Page:
    """The page; raises ``NoRun`` without the runs."""
    rows = _rows(runs)
    fig = figure(9.0, 3.9)
    left, right = fig.subplots(1, 2)
    for k, name in enumerate(NAMES):
        dash = "none" if k == 0 else DASHES[k - 1]
        color = "black" if k == 0 else COLORS[k - 1]
        size = 10 if k == 0 else 5  # so that ns-2's can be seen behind the fluid's
        left.plot(
            rows[:, 0], rows[:, k + 1], ls=dash, color=color, marker=MARKERS[k], ms=size, label=name
        )
    left.set(ylabel="throughput, Vegas over Reno", yscale="log", yticks=(0.2, 0.5, 1.0, 2.0, 3.0))
    left.yaxis.set_major_formatter("{x:g}")
    left.yaxis.set_minor_formatter("")
    for k, name in enumerate(("Vegas's packets", "Reno's packets")):
        right.plot(rows[:, 0], rows[:, 6 + k], color=COLORS[k], marker=MARKERS[k], label=name)
    right.set(ylabel="lost in ns-2 (percent)", ylim=(0, None))
    for ax in (left, right):
        ax.set(xlabel="buffer (packets)", xlim=(0, None))
    tidy(left, right)
    legend(fig, left, right)
    return Page("Who loses when the buffer overflows", _text(rows), fig, CAPTION)


CAPTION = "One Vegas and one Reno source, 1080 pkt/s, 80 ms, alpha = 3."


def _text(rows: np.ndarray) -> str:
    head = ["buffer", *NAMES, "Vegas loses", "Reno loses"]
    cells = [
        [f"{r[0]:.0f}", *(f"{v:.2f}" for v in r[1:6]), *(f"{v:.3f} %" for v in r[6:])] for r in rows
    ]
    large = rows[rows[:, 0] >= 10]
    errors = np.abs(large[:, 2:6] / large[:, 1:2] - 1).mean(axis=0)
    listed = ", ".join(f"{name} {e:.0%}" for name, e in zip(NAMES[1:], errors, strict=True))
    return f"""Hypothesis 5 of `devendictis` says that one Vegas and one Reno source both lose a
packet each time the buffer overflows.  Its formulas, and its decrease factor of 3/4 for Vegas, rest
on it.  ns-2 2.35 (mean of 3 runs) beside the formulas:

{table(head, cells)}

Mean error of the ratio at buffers of 10 and more: {listed}.

**What survives.**  The mini-cycle survives, the hypothesis does not.  At 5 packets Vegas loses too;
from 10 on, its loss is {large[:, 6].max():.3f} %.  A source whose window stands still sends one
packet for each ACK: it takes the place that its own packet has just left.  The packet that
finds no place is the extra one of the source that grows, and near overflow only Reno
grows, for Vegas's backlog is already at its threshold.

**What remains of the error** when Reno alone loses: ns-2 compares a backlog rounded to whole
packets with alpha, so Vegas holds up to alpha + 1/2.  The fluid model has that rounding too.

**For users.**  Vegas's decrease factor matters only where the buffer is a few packets.  With more
it never acts."""
