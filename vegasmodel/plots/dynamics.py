"""Draws windows and queues over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from vegasmodel.fields.rules import Integer
from vegasmodel.metrics import Floats
from vegasmodel.plots.style import (
    BLACK,
    COLORS,
    DASHES,
    GREY,
    figure,
    legend,
    plain,
    simulated,
    tidy,
)

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["windows"]

CYCLE_SAMPLING = 0.5  # over the shortest RTT: samples this far apart show every cycle


def windows(data: xr.Dataset, *, cycles: int = 5, most: int = 8) -> Figure:
    """Draw the windows of flows over time and, below them, the queues of links.

    ``data`` is the result of ``simulate``. At most ``most`` flows are drawn: if there are more, the
    first, the last and evenly spaced ones between them. Links are chosen in the same way. If the
    simulator is ``rounds``, short peaks of a window are fast recoveries, in which each duplicate
    ACK adds a packet to the window.

    A second column enlarges the last ``cycles`` cycles. A cycle lasts from one loss to the next, of
    whichever flow, and losses at most one RTT apart count as one. A line marks each loss.

    The second column is left out if ``cycles`` is 0, if there are at most ``2 * cycles`` losses, or
    if the samples are more than half the shortest RTT apart.

    Raises ``FieldError`` for bad input.
    """
    simulated(data, "data")
    Integer(0).check(cycles, "cycles")
    Integer(1).check(most, "most")
    losses = _losses(data)
    zoom = cycles > 0 and losses.size > 2 * cycles and _resolves_cycles(data)
    fig = figure(11.0 if zoom else 8.0, 5.6)
    axes = fig.subplots(
        2, 2 if zoom else 1, squeeze=False, sharex="col", sharey="row", height_ratios=[2, 1],
        width_ratios=[1, 1.2] if zoom else [1],
    )  # fmt: skip
    time = data["time"].values
    spans = [(time[0], time[-1])]
    if zoom:
        begin, end = losses[-1 - cycles], losses[-1]
        spans.append((begin - 0.05 * (end - begin), end + 0.05 * (end - begin)))
    for (upper, lower), span in zip(axes.T, spans, strict=True):
        _over_time(upper, lower, data, span, most)
    if zoom:
        for ax in axes[:, 1]:
            for loss in losses[-1 - cycles :]:
                ax.axvline(loss, color=GREY, lw=0.8, ls=":")
        axes[0, 1].set_title(f"the last {cycles} cycles, loss to loss", loc="left")
    axes[0, 0].set(ylabel="window (packets)", ylim=(0, None))
    how_many = f", {most} of {data.sizes['flow']} flows" if data.sizes["flow"] > most else ""
    axes[0, 0].set_title(plain(str(data.attrs["scenario"])) + how_many, loc="left")
    axes[1, 0].set(ylabel="queue (packets)", ylim=(0, None))
    for ax in axes[1]:
        ax.set_xlabel("time (s)")
    legend(fig, axes[0, -1], axes[1, -1])
    return fig


def _over_time(
    upper: Axes, lower: Axes, data: xr.Dataset, span: tuple[float, float], most: int
) -> None:
    """Draw the windows of at most ``most`` flows in ``upper``, the queues of links in ``lower``.

    ``span`` has the start and the end, s, of the time that is drawn.
    """
    time = data["time"].values
    inside = (time >= span[0]) & (time <= span[1])
    for ax, quantity, names in ((upper, "window", "flow"), (lower, "queue", "link")):
        drawn = data[quantity].values
        if ax is upper:
            drawn = np.where(drawn > 0, drawn, np.nan)  # no window before the flow's start
        for i, k in enumerate(_evenly_chosen(data.sizes[names], most)):
            color = BLACK if ax is lower else COLORS[i % len(COLORS)]
            # a dashed curve of many samples cannot be followed by the eye
            dash = DASHES[i % len(DASHES)] if inside.sum() < 500 or ax is lower else "-"
            name = plain(str(data[names].values[k]))
            label = f"queue of {name}" if ax is lower else name
            ax.plot(
                time[inside], drawn[inside, k], ls=dash, color=color, label=label,
                lw=1.1,
            )  # fmt: skip
    tidy(upper, lower)


def _evenly_chosen(n: int, most: int) -> NDArray[np.int64]:
    """At most ``most`` evenly spaced indices of ``n`` entries, with the first and the last."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(np.int64))


def _resolves_cycles(data: xr.Dataset) -> bool:
    """Whether the samples are close enough in time to show each cycle from loss to loss.

    The time between two samples must be at most half the shortest RTT.
    """
    step = float(np.diff(data["time"].values[:2])[0])
    return step <= CYCLE_SAMPLING * float(np.nanmin(data["rtt"].values)) * (1.0 + 1e-9)


def _losses(data: xr.Dataset) -> Floats:
    """The times at which flows lose packets; losses close to each other count as one.

    A loss is left out if the previous loss, of any flow, is at most one RTT earlier, even if that
    loss is left out, too. The RTT is that of the flow that loses packets now. If several flows do,
    it is the longest of their RTTs.
    """
    loses = np.diff(data["lost"].values, axis=0) > 0  # [interval between samples, flow]
    rows = np.flatnonzero(loses.any(axis=1))  # the intervals in which a flow loses packets
    # [loss] the longest RTT of the flows that lose packets, and the time, s
    rtt = np.where(loses, data["rtt"].values[1:], 0.0).max(axis=1)[rows]
    time = data["time"].values[1:][rows]
    found: Floats = time[np.diff(time, prepend=-np.inf) > rtt]
    return found
