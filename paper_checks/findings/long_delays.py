"""Does Vegas disfavour long delays?  ``tsang`` against ``boutremans``, ns-2 and Linux's rule."""

from __future__ import annotations

import dataclasses

import numpy as np

from paper_checks.findings.page import Page, table
from paper_checks.runs import Runs
from paper_checks.tsang.scenes import CAPACITY, DELAYS, base_rtt, two
from paper_checks.tsang.table3 import CONVERGED, TABLE_3
from vegasmodel.equilibrium import rates
from vegasmodel.plots.style import BLACK, COLORS, DASHES, GREY, MARKERS, figure, legend, tidy
from vegasmodel.predictor import predict

__all__ = ["page"]

COLUMNS = (
    "print",
    "ns-2, 1 and 3",
    "theory, 1 and 3",
    "ns-2, 2 and 2",
    "theory, 2 and 2",
    "fluid of Linux, 1 and 3",
)


def _theory(x2: int, alpha: float, beta: float, runs: Runs) -> float:
    """``boutremans`` (6) with the baseRTTs that ns-2 measured; the band's middle as alpha."""
    base = runs(two(x2, alpha, beta, warmup=CONVERGED if beta > alpha else 0.01)).base_rtt
    assert base is not None
    over = np.maximum(base - np.array([base_rtt(1), base_rtt(x2)]), 0.0)
    middle = 0.5 * (alpha + beta)
    first, second = rates([middle, middle], over, CAPACITY)
    return float(first / second)


def _linux(x2: int) -> float:
    scenario = two(x2, warmup=CONVERGED)
    flows = tuple(dataclasses.replace(flow, variant="linux") for flow in scenario.flows)
    found = predict(dataclasses.replace(scenario, flows=flows), "fluid").throughput
    assert found is not None
    return float(found[0] / found[1])


def _rows(runs: Runs) -> np.ndarray:
    """[case, column] of shorter over longer, without the case of equal delays."""
    rows = []
    for x2 in DELAYS[:-1]:
        band = runs(two(x2, warmup=CONVERGED)).mean
        line = runs(two(x2, 2.0, 2.0)).mean
        rows.append(
            [
                TABLE_3[x2][4],
                band[0] / band[1],
                _theory(x2, 1.0, 3.0, runs),
                line[0] / line[1],
                _theory(x2, 2.0, 2.0, runs),
                _linux(x2),
            ]
        )
    return np.array(rows)


def page(runs: Runs) -> Page:
    """The page; raises ``NoRun`` without the runs."""
    rows = _rows(runs)
    fig = figure(7.5, 4.4)
    ax = fig.subplots()
    x = DELAYS[:-1]
    for k, name in enumerate(COLUMNS):
        dash = "none" if name.startswith("ns-2") else DASHES[k % len(DASHES)]
        color = BLACK if name == COLUMNS[1] else COLORS[k]
        ax.plot(x, rows[:, k], ls=dash, color=color, marker=MARKERS[k], ms=5, label=name)
    ax.axhline(1.0, color=GREY, lw=1)
    ax.set(
        xlabel="delay of the longer connection's last link (ms)",
        ylabel="rate of the shorter over the longer",
        yscale="log",
        yticks=(0.5, 0.7, 1.0, 1.5, 2.0),
    )
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_formatter("")
    tidy(ax)
    legend(fig, ax, columns=3)
    return Page("Does Vegas disfavour long delays?", _text(rows), fig, CAPTION)


CAPTION = "Two Vegas sources of unlike delay; above 1 the longer one loses."


def _text(rows: np.ndarray) -> str:
    cells = [
        [x2, *(f"{value:.2f}" for value in row)] for x2, row in zip(DELAYS, rows, strict=False)
    ]
    real = rows[[x2 >= 10 for x2 in DELAYS[:-1]]]  # the 11 cases of which the paper speaks
    lose = (real > 1.01).sum(axis=0)
    spread = np.exp(np.abs(np.log(real)).mean(axis=0))
    other = int((np.sign(np.log(real[:, 0])) != np.sign(np.log(real[:, 1]))).sum())
    return f"""`tsang` sends two Vegas sources over one link, one with a longer way, and concludes
from table 3 that long delays lose.  `boutremans` says that the delay does not enter (6), and that
who over-estimates baseRTT *gains*.  Both run on `tsang`'s network here, beside ns-2 2.35 and the
window rule of Linux.  Numbers: rate of the shorter over that of the longer; "1 and 3" are alpha and
beta; the theory is (6) with the baseRTTs that ns-2 measured, and the middle of the band as alpha.

{table(["ms", *COLUMNS], cells)}

Of the {len(real)} cases with 10 ms and more the longer connection loses (by over 1 %) in {lose[0]}
of the print, {lose[1]} of ns-2 with 1 and 3, {lose[3]} of ns-2 with 2 and 2, and {lose[5]} of the
fluid with Linux's rule.  A typical ratio, up or down, is {spread[0]:.2f} in the print,
{spread[1]:.2f} in ns-2 with 1 and 3 and {spread[3]:.2f} with 2 and 2.

**What survives.**  That two Vegas sources with alpha < beta are unfair.  That the longer one loses
does not: with alpha = beta it never does, as the theory says.  With alpha < beta a window
rests where it first finds its backlog inside the band, and the band [1, 3] allows any ratio from
1/3 to 3.  Which one is the poorer hangs on the phase of the first packets: ns-2 of today decides
otherwise than the ns-2 of the paper in {other} of {len(real)} cases.

**Which hypothesis broke.**  The paper calls its study free of a wrong minimum RTT.  It is not: the
two start together, and the longer one's first packet waits behind the other's (`vegasmodel paper
tsang`, records "over-estimate of baseRTT 2").  With just these over-estimates (6) lets the longer
one win.

**Linux.**  Its rule holds W (RTT - baseRTT)/baseRTT, so a rate is alpha/(RTT - baseRTT) times
baseRTT/RTT, and that last factor is larger for the longer connection: Linux turns `tsang`'s
conclusion round.  The column is our fluid model with that rule; there is no kernel run of this
network yet."""
