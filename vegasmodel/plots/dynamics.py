"""How windows move over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from vegasmodel.metrics import Floats
from vegasmodel.plots.style import (
    BLACK,
    COLORS,
    DASHES,
    GREY,
    figure,
    legend,
    plain,
    tidy,
)

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["windows"]

FALL = 0.75  # a window that falls below this part of itself within a sample met a loss


def windows(data: xr.Dataset, *, cycles: int = 5, most: int = 8) -> Figure:
    """Windows over time and below them the queues, of ``most`` flows and links at most.

    Of more, some evenly over their order are drawn, the first and the last among them.

    ``data`` as ``simulate`` gives it.  Where windows fall again and again, a second column
    shows the last ``cycles`` cycles large, with a line at each fall.
    """
    falls = _falls(data)
    zoom = cycles > 0 and falls.size > 2 * cycles
    fig = figure(11.0 if zoom else 8.0, 5.6)
    axes = fig.subplots(
        2, 2 if zoom else 1, squeeze=False, sharex="col", sharey="row", height_ratios=[2, 1],
        width_ratios=[1, 1.2] if zoom else [1],
    )  # fmt: skip
    time = data["time"].values
    spans = [(time[0], time[-1])]
    if zoom:
        begin, end = falls[-1 - cycles], falls[-1]
        spans.append((begin - 0.05 * (end - begin), end + 0.05 * (end - begin)))
    for (upper, lower), span in zip(axes.T, spans, strict=True):
        _over_time(upper, lower, data, span, most)
    if zoom:
        for ax in axes[:, 1]:
            for at in falls[-1 - cycles :]:
                ax.axvline(at, color=GREY, lw=0.8, ls=":")
        axes[0, 1].set_title(f"the last {cycles} cycles", loc="left")
    axes[0, 0].set(ylabel="window (packets)", ylim=(0, None))
    more = f", {most} of {data.sizes['flow']} flows" if data.sizes["flow"] > most else ""
    axes[0, 0].set_title(plain(str(data.attrs["scenario"])) + more, loc="left")
    axes[1, 0].set(ylabel="queue (packets)", ylim=(0, None))
    for ax in axes[1]:
        ax.set_xlabel("time (s)")
    legend(fig, axes[0, -1], axes[1, -1])
    return fig


def _over_time(
    upper: Axes, lower: Axes, data: xr.Dataset, span: tuple[float, float], most: int
) -> None:
    time = data["time"].values
    inside = (time >= span[0]) & (time <= span[1])
    for ax, quantity, names in ((upper, "window", "flow"), (lower, "queue", "link")):
        drawn = data[quantity].values
        if ax is upper:
            drawn = np.where(drawn > 0, drawn, np.nan)  # not there before its start
        for i, k in enumerate(_some(data.sizes[names], most)):
            color = BLACK if ax is lower else COLORS[i % len(COLORS)]
            dash = DASHES[i % len(DASHES)] if inside.sum() < 500 or ax is lower else "-"
            name = plain(str(data[names].values[k]))
            label = f"queue of {name}" if ax is lower else name
            ax.plot(
                time[inside], drawn[inside, k], ls=dash, color=color, label=label,
                lw=1.1,
            )  # fmt: skip
    tidy(upper, lower)


def _some(n: int, most: int) -> NDArray[np.int64]:
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(np.int64))


def _falls(data: xr.Dataset) -> Floats:
    """Instants at which some window falls at once, those within two samples taken as one."""
    time, w = data["time"].values, data["window"].values
    fell = np.flatnonzero(((w[1:] < FALL * w[:-1]) & (w[:-1] > 4)).any(axis=1)) + 1
    apart = np.diff(fell, prepend=-10) > 2
    found: Floats = time[fell[apart]]
    return found
