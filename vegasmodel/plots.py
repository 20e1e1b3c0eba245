"""Results -> figures.  The only module that knows matplotlib.

Colours are those of Okabe and Ito, which colour-blind readers can tell apart; axes carry units.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from vegasmodel.prediction import Prediction
from vegasmodel.scenario import Scenario

if TYPE_CHECKING:
    import xarray as xr

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
Curve = tuple[ArrayLike, ArrayLike]


def figure(width: float = 7.0, height: float = 4.2) -> Figure:
    """An empty figure that needs no display."""
    result = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(result)
    return result


def save(fig: Figure, path: str | Path) -> None:
    """Write the picture whole or not at all; the format is that of the suffix."""
    path = Path(path)
    temporary = path.with_name(f".{os.getpid()}-{path.name}")
    try:
        fig.savefig(temporary, dpi=150)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def plain(text: str) -> str:
    """A name as it is: a dollar sign starts no formula."""
    return text.replace("$", r"\$")


def throughput_bars(scenario: Scenario, results: Sequence[Prediction]) -> Figure:
    """Mean throughput per flow of each group, one bar a model; spans and errors as whiskers."""
    shown = [p for p in results if p.applicable]
    groups = [group.name for group in scenario.flows][:12]
    fig = figure(max(7.0, 1.2 * len(groups) * len(shown) / 3))
    ax = fig.subplots()
    width = 0.8 / max(len(shown), 1)
    for i, result in enumerate(shown):
        at = np.arange(len(groups)) + (i - (len(shown) - 1) / 2) * width
        heights = [result.groups.get(g, np.nan) for g in groups]
        ax.bar(at, heights, 0.92 * width, color=COLORS[i % len(COLORS)], label=result.model)
        whiskers = [_whisker(result, g) for g in range(len(groups))]
        if any(w is not None for w in whiskers):
            spans = np.array(
                [w if w is not None else (h, h) for w, h in zip(whiskers, heights, strict=True)]
            )
            errors = np.abs(spans - np.asarray(heights)[:, None]).T
            ax.errorbar(at, heights, errors, fmt="none", ecolor="#444444", capsize=2)
    ax.set_xticks(range(len(groups)), [plain(g) for g in groups])
    ax.set_ylabel("throughput per flow (pkt/s)")
    ax.set_title(plain(scenario.name), loc="left")
    ax.legend(frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
    return fig


def _whisker(result: Prediction, group: int) -> tuple[float, float] | None:
    """Range of the group's mean: from the answer's set, or two standard errors."""
    rows = [i for i, m in enumerate(result.scenario.members) if m.group == group]
    if result.throughput_range is not None:
        low, high = result.throughput_range[rows].mean(axis=0)
        return float(low), float(high)
    if result.throughput_se is not None and result.throughput is not None:
        mean = float(result.throughput[rows].mean())
        error = float(np.sqrt((result.throughput_se[rows] ** 2).sum()) / len(rows))
        return mean - 2 * error, mean + 2 * error
    return None


def curves(
    models: Mapping[str, Curve],
    measured: Mapping[str, Curve],
    *,
    x: str,
    y: str,
    title: str = "",
    log: bool = False,
) -> Figure:
    """Models as lines, measurements as markers: any quantity over any parameter."""
    fig = figure()
    ax = fig.subplots()
    for i, (name, (xs, ys)) in enumerate(models.items()):
        ax.plot(xs, ys, color=COLORS[i % len(COLORS)], label=plain(name), linewidth=1.6)
    for i, (name, (xs, ys)) in enumerate(measured.items()):
        color = COLORS[(len(models) + i) % len(COLORS)] if len(measured) > 1 else "#000000"
        ax.plot(xs, ys, MARKERS[i % len(MARKERS)], color=color, label=plain(name), markersize=5)
    if log:
        ax.set_yscale("log")
    ax.set(xlabel=x, ylabel=y)
    ax.set_title(plain(title), loc="left")
    ax.legend(frameon=False)
    ax.grid(alpha=0.25)
    ax.spines[["top", "right"]].set_visible(False)
    return fig


def trajectories(data: xr.Dataset, most: int = 8) -> Figure:
    """Windows of the first ``most`` flows over time, and below them the queues."""
    fig = figure(8.0, 5.6)
    upper, lower = fig.subplots(2, 1, sharex=True, height_ratios=[2, 1])
    time = data["time"].values
    for i, name in enumerate(data["flow"].values[:most]):
        color = COLORS[i % len(COLORS)]
        upper.plot(time, data["window"].values[:, i], color=color, label=plain(str(name)), lw=1)
    for i, name in enumerate(data["link"].values[:most]):
        color = COLORS[i % len(COLORS)]
        lower.plot(time, data["queue"].values[:, i], color=color, label=plain(str(name)), lw=1)
    upper.set_ylabel("window (packets)")
    lower.set(ylabel="queue (packets)", xlabel="time (s)")
    upper.set_title(plain(str(data.attrs["scenario"])), loc="left")
    for ax in (upper, lower):
        ax.legend(frameon=False, loc="upper right")
        ax.grid(alpha=0.25)
        ax.spines[["top", "right"]].set_visible(False)
    return fig


mpl.rcParams["svg.hashsalt"] = "vegasmodel"  # the same figure gives the same file
