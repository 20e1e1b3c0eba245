"""The style of all figures: colours, markers, legends, and how a picture is written.

The colours are those of Okabe and Ito, which colour-blind readers can tell apart (with grey instead
of yellow, which is faint on white).  A model has the same colour, dash and marker in every figure,
so a grey print can be read too.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator
from numpy.typing import ArrayLike

from vegasmodel.support.files import atomic_write

BLUE, RED, GREEN, PINK, ORANGE, SKY, BLACK, GREY = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#000000",
    "#777777",
)
COLORS = (BLUE, RED, GREEN, PINK, ORANGE, SKY, BLACK, GREY)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)), (0, (3, 1.5)))
Dash = str | tuple[float, tuple[float, ...]]
Curve = Sequence[ArrayLike]  # x, y, and of a measurement the error of y too


class Look(NamedTuple):
    """How a model or a measurement is drawn, and its name in a legend."""

    label: str
    color: str
    dash: Dash
    marker: str


_LOOKS = {
    "equilibrium": Look("equilibrium", GREEN, DASHES[0], "^"),
    "bands": Look("bands (middle)", SKY, DASHES[2], "v"),
    "arrivals": Look("exact recursion", BLUE, DASHES[0], "s"),
    "arrivals-bonald": Look("Bonald's form", ORANGE, DASHES[1], "D"),
    "minicycle": Look("mini-cycle", BLUE, DASHES[1], "s"),
    "red": Look("RED", ORANGE, DASHES[3], "P"),
    "random-loss": Look("random loss", PINK, DASHES[2], "X"),
    "rate-delay": Look("RD equations", BLUE, DASHES[0], "s"),
    "network": Look("network", PINK, DASHES[3], "*"),
    "fluid": Look("fluid", SKY, DASHES[4], "p"),
    "rounds": Look("rounds", RED, DASHES[4], "h"),
    "ns2": Look("ns-2", BLACK, "none", "o"),
    "ns3": Look("ns-3", BLACK, "none", "s"),
    "trace": Look("measured", BLACK, "none", "o"),
}


def look(model: str) -> Look:
    """The look of a model or a simulator; an unknown name is drawn in grey under that name."""
    return _LOOKS.get(model) or Look(plain(model), GREY, DASHES[2], "d")


class Picture(Figure):
    """A figure that a notebook shows; it does not use pyplot and its global list of figures."""

    def _repr_png_(self) -> bytes:
        data = io.BytesIO()
        self.savefig(data, format="png", dpi=100)
        return data.getvalue()


def figure(width: float = 7.0, height: float = 4.2) -> Figure:
    """An empty figure that needs no display."""
    result = Picture(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(result)
    return result


def save(fig: Figure, path: str | Path) -> None:
    """Write the picture whole or not at all; the file's suffix gives the format."""
    drawn = io.BytesIO()  # drawing takes long, and a process killed meanwhile leaves no file
    fig.savefig(drawn, dpi=150, format=Path(path).suffix[1:] or None)
    with atomic_write(path) as part:
        part.write_bytes(drawn.getbuffer())


def plain(text: str) -> str:
    """The text with dollar signs escaped, so that matplotlib does not read a formula in it."""
    return text.replace("$", r"\$")


def tidy(*axes: Axes, grid: bool = True) -> None:
    """Remove the box and draw a faint grid."""
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
        ax.set_axisbelow(True)
        if grid:
            ax.grid(alpha=0.25)


def legend(fig: Figure, *axes: Axes, columns: int = 4) -> None:
    """One legend under the axes, where it hides nothing; each name appears once."""
    entries: dict[str, Artist] = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    if entries:
        fig.legend(
            list(entries.values()),
            list(entries),
            loc="outside lower center",
            ncols=min(columns, len(entries)),
            frameon=False,
        )


def curves(
    models: Mapping[str, Curve],
    measured: Mapping[str, Curve],
    *,
    x: str,
    y: str,
    title: str = "",
    log: bool = False,
) -> Figure:
    """A figure of any quantity over any parameter: models as lines, measurements as markers.

    A curve is x and y; a measurement also has half the length of its error bars.  If all x are
    whole numbers, so are the ticks of the axis.
    """
    fig = figure()
    ax = fig.subplots()
    for i, (name, (xs, ys, *_)) in enumerate(models.items()):
        dash = DASHES[i % len(DASHES)]
        ax.plot(xs, ys, ls=dash, color=COLORS[i % len(COLORS)], label=plain(name), linewidth=1.6)
    for i, (name, (xs, ys, *bars)) in enumerate(measured.items()):
        color = COLORS[(len(models) + i) % len(COLORS)] if len(measured) > 1 else BLACK
        marker = MARKERS[i % len(MARKERS)]
        error = bars[0] if bars else None
        ax.errorbar(
            xs, ys, error, fmt=marker, color=color, label=plain(name), ms=5, capsize=2, lw=1
        )
    all_x = [np.asarray(curve[0]) for curve in (*models.values(), *measured.values())]
    if all(np.array_equal(xs, np.round(xs)) for xs in all_x):
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    if log:
        ax.set_yscale("log")
        ax.yaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_minor_locator(LogLocator(subs=(2, 5)))
        ax.yaxis.set_minor_formatter("{x:g}")
    ax.set(xlabel=x, ylabel=y)
    ax.set_title(plain(title), loc="left")
    tidy(ax)
    legend(fig, ax)
    return fig


mpl.rcParams["svg.hashsalt"] = "vegasmodel"  # the same figure gives the same file
