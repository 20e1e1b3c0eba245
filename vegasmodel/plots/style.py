"""Sets the style of all figures, such as colours, markers and legends, and saves figures in files.

The colours are those of Okabe and Ito, which colour-blind readers can tell apart. Grey replaces
their yellow, which is faint on white. Most figures draw a given model with the same colour, dash
and marker. A few functions of this module check what a user has passed to a function that draws a
figure. They get the name of the checked argument as ``where``, and state it in the error message.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator
from numpy.typing import ArrayLike

from vegasmodel.fields import kinds
from vegasmodel.fields.errors import FieldError
from vegasmodel.fields.rules import Boolean, Integer, Quantity, listed
from vegasmodel.metrics import Floats
from vegasmodel.support.files import atomic_write

if TYPE_CHECKING:
    import xarray as xr

# the colours as hexadecimal red, green and blue
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
# colours and markers of curves that stand for no model of ``_LOOKS``, in this order
COLORS = (BLUE, RED, GREEN, PINK, ORANGE, SKY, BLACK, GREY)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
# a line style of matplotlib: a name such as "-"; or the offset of the first dash, and the lengths
# of dashes and gaps in turn
Dash = str | tuple[float, tuple[float, ...]]
DASHES: tuple[Dash, ...] = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)), (0, (3, 1.5)))
LARGEST = 400.0  # inches of a figure: at 150 pixels an inch, a picture has at most 65536 pixels
Curve = Sequence[ArrayLike]  # x, y, and of a measurement the error of y too


class Look(NamedTuple):
    """How a model or a simulator is drawn: name in the legend, colour, line style and marker."""

    label: str
    color: str
    dash: Dash
    marker: str


_LOOKS = {  # models as lines; measurements, without a line, as markers
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
    """How to draw a model or a simulator, given its name; unknown ones are drawn in grey."""
    return _LOOKS.get(model) or Look(plain(model), GREY, DASHES[2], "d")


class Picture(Figure):
    """A Matplotlib figure that a notebook shows as an image, although pyplot did not make it."""

    def _repr_png_(self) -> bytes:
        """The image as PNG, which a notebook asks for."""
        data = io.BytesIO()
        self.savefig(data, format="png", dpi=100)
        return data.getvalue()


def figure(width: float = 7.0, height: float = 4.2) -> Figure:
    """An empty figure, which can be drawn without a screen; width and height are in inches."""
    for name, inches in (("width", width), ("height", height)):
        Quantity("fraction", high=LARGEST, low_open=True).check(inches, name)
    result = Picture(figsize=(float(width), float(height)), layout="constrained")
    FigureCanvasAgg(result)
    return result


def save(fig: Figure, path: str | Path) -> None:
    """Save the figure in a file, whose suffix gives the format.

    If this fails, no incomplete file is left, and an older file of this name stays as it was.
    Raises ``FieldError`` for a wrong argument, and the errors of matplotlib and of writing a file.
    """
    _expect_figure(fig)
    usable = isinstance(path, (str, Path)) and str(path) not in ("", ".") and "\0" not in str(path)
    if not usable:
        raise FieldError("path", path, "the name of a file, such as picture.png")
    form, known = Path(path).suffix[1:].lower(), fig.canvas.get_supported_filetypes()
    if form and form not in known:
        raise FieldError("path", str(path), f"a suffix for a format: {', '.join(sorted(known))}")
    drawn = io.BytesIO()  # not yet a file: a process killed while it draws leaves none
    fig.savefig(drawn, dpi=150, format=form or None)
    with atomic_write(path) as part:
        part.write_bytes(drawn.getbuffer())


def _expect_figure(fig: Figure) -> None:
    """Raise ``FieldError`` unless ``fig`` is a figure."""
    if not isinstance(fig, Figure):
        raise FieldError("fig", fig, "a figure, as the functions of vegasmodel.plots return")


def _expect_axes(axes: Sequence[Axes]) -> None:
    """Raise ``FieldError`` unless all are axes of a figure."""
    for ax in axes:
        if not isinstance(ax, Axes):
            raise FieldError("axes", ax, "axes of a figure, as figure().subplots() returns")


def plain(text: object) -> str:
    """Escape a text so that matplotlib draws it literally.

    Dollar signs are escaped, because matplotlib takes them for marks of a formula.  An underscore
    at the beginning is written as a formula.  Otherwise matplotlib would leave the line out of the
    legend: it omits lines whose names begin with an underscore.
    """
    escaped = str(text).replace("$", r"\$")
    return rf"$\_${escaped[1:]}" if escaped.startswith("_") else escaped


def tidy(*axes: Axes, grid: bool = True) -> None:
    """Remove the top and the right edge of each plot; draw a faint grid if ``grid`` is True."""
    _expect_axes(axes)
    Boolean().check(grid, "grid")
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
        ax.set_axisbelow(True)
        if grid:
            ax.grid(alpha=0.25)


def legend(fig: Figure, *axes: Axes, columns: int = 4) -> None:
    """Draw one legend for all axes, below them, with at most ``columns`` names in a row.

    A name that several axes have appears once.
    """
    _expect_figure(fig)
    _expect_axes(axes)
    Integer(1).check(columns, "columns")
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
            handlelength=3.5,  # a marker in the middle leaves room for each line of DASHES
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
    """Plot any quantity over any parameter: models as lines, measurements as markers.

    ``models`` and ``measured`` map a name in the legend to the x values and the y values of a
    curve.  A measurement can also have the error of each y value.  Its error bars then reach from
    y - error to y + error.  ``x`` and ``y`` are the labels of the axes.  With ``log``, the y axis
    is logarithmic.

    Raises ``FieldError`` unless the x values and the y values of each curve are two rows of numbers
    of equal length, and its errors are at least 0: one for each y, or one for all.
    """
    Boolean().check(log, "log")
    _check_curves(models, "models")
    _check_curves(measured, "measured")
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
    all_curves = (*models.values(), *measured.values())
    drawn = [(row(xs, "x"), row(ys, "y")) for xs, ys, *_ in all_curves]
    if all(np.array_equal(xs, np.round(xs)) for xs, _ in drawn):
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    if log and any(np.any(ys > 0) for _, ys in drawn):
        ax.set_yscale("log")
        ax.yaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_minor_locator(LogLocator(subs=(2, 5)))
        ax.yaxis.set_minor_formatter("{x:g}")
    ax.set(xlabel=x, ylabel=y)
    ax.set_title(plain(title), loc="left")
    tidy(ax)
    legend(fig, ax)
    return fig


def row(values: ArrayLike, where: str) -> Floats:
    """The values as a one-dimensional array of floats.

    Raises ``FieldError`` unless ``values`` is a number or a one-dimensional list of numbers. The
    error names the argument ``where``.
    """
    try:
        if kinds.holds_bool(values):
            raise TypeError("NumPy would read True as 1")
        found = np.atleast_1d(np.asarray(values, dtype=np.float64))
    except (TypeError, ValueError, OverflowError):
        raise FieldError(where, values, "numbers") from None
    if found.ndim != 1:
        raise FieldError(where, values, "numbers in one row")
    return found


def simulated(data: xr.Dataset, where: str) -> xr.Dataset:
    """Return ``data``; raise ``FieldError`` unless it is a dataset as ``simulate`` returns it."""
    if not {"window", "lost", "queue", "rtt"} <= set(getattr(data, "data_vars", ())):
        raise FieldError(where, data, "the dataset that vegasmodel.simulate returns")
    return data


def _check_curves(curves: Mapping[str, Curve], where: str) -> None:
    """Raise ``FieldError`` unless each curve has as many y values as x values, and valid errors.

    ``curves`` maps a curve's name to its x values, its y values and perhaps the errors of y. The
    error names the argument ``where``.
    """
    if not isinstance(curves, Mapping):
        raise FieldError(where, curves, "a mapping from a curve's name to its x and y")
    for name, curve in curves.items():
        place = f"{where}, {name}"
        parts = listed(curve, place, "two rows of numbers, x and y")
        rows = [row(part, place) for part in parts[:2]]
        if len(rows) != 2 or rows[0].size != rows[1].size:
            raise FieldError(place, curve, "two rows of numbers, x and y, of one length")
        errors = row(parts[2], place) if len(parts) > 2 else rows[1][:0]
        if errors.size not in (0, 1, rows[1].size) or np.any(errors < 0):
            raise FieldError(place, curve, "errors of at least 0, one for each y")


mpl.rcParams["svg.hashsalt"] = "vegasmodel"  # the same figure gives the same file
