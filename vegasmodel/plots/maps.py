"""Draws maps: for each pair of values of two scenario fields, a cell's colour shows a result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import LogNorm, Normalize, TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from numpy.typing import NDArray

from vegasmodel.fields.errors import FieldError
from vegasmodel.fields.rules import listed
from vegasmodel.metrics import Floats
from vegasmodel.plots.style import figure, plain

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["every_nth", "heat", "on_axis"]

MAX_TICKS = 9  # greatest number of ticks on an axis
MAX_UNEVENNESS = 50.0  # widest cell / narrowest cell of an axis up to which all are seen
MAX_RATIO = 100.0  # the greatest ratio that has a colour of its own
# the values of shares and of ratios at which contour lines are drawn
CONTOUR_LEVELS = {"share": (0.25, 0.5, 0.75), "ratio": (0.5, 1.0, 2.0, 5.0, 10.0, 50.0)}


def heat(
    panels: Sequence[xr.DataArray],
    titles: Sequence[str],
    across: Sequence[str],
    *,
    title: str,
    shown: str,
    up: str,
) -> Figure:
    """Draw maps side by side with one colour scale; a cell without a value is grey.

    ``panels`` are arrays [y, x]. If their name is ``ratio``, they hold ratios of two rates: the
    colour scale is logarithmic, its middle is 1, and it ends at a ratio of at most 100. Otherwise
    they hold shares from 0 to 1, and the middle of the colour scale is one half. Black contour
    lines mark the values in ``CONTOUR_LEVELS``. On the axes, times are in ms (starting times in s)
    and capacities in Mbit/s.

    The cells lie at the coordinates' values. An axis is logarithmic if its values are more evenly
    spaced on such a scale. In four cases the cells are spaced evenly instead: the values are words,
    some are infinite, they are not in order, or they are so uneven that some cells could hardly be
    seen.

    ``title`` is the title of the figure and ``titles`` those of the panels. ``across`` are the
    labels of the x axes, ``up`` is the label of the y axis, and ``shown`` that of the colour scale.

    Raises ``FieldError`` if a panel is not an array of this kind, if no panel contains a number, or
    if ``titles`` or ``across`` do not have one text for each panel.
    """
    panels = _checked(panels, titles, across)
    fig = figure(5.2 * len(panels), 4.6)
    fig.suptitle(plain(title), x=0.01, ha="left", fontsize="large")
    plots = np.atleast_1d(fig.subplots(1, len(panels)))
    ratio = panels[0].name == "ratio"
    values = [np.asarray(panel.values, dtype=float) for panel in panels]
    norm = _norm(values, ratio=ratio)
    for ax, panel, drawn, panel_title, x_label in zip(
        plots, panels, values, titles, across, strict=True
    ):
        image = _draw(ax, panel, drawn, norm, CONTOUR_LEVELS["ratio" if ratio else "share"])
        ax.set_title(plain(panel_title), loc="left", fontsize="medium")
        ax.set_xlabel(plain(x_label))
    plots[0].set_ylabel(plain(up))
    bar = fig.colorbar(image, ax=list(plots), label=plain(shown), shrink=0.9)
    if ratio:
        bar.ax.yaxis.set_major_formatter("{x:g}")
        bar.ax.yaxis.set_minor_formatter("")
    return fig


def _checked(
    panels: Sequence[xr.DataArray], titles: Sequence[str], across: Sequence[str]
) -> Sequence[xr.DataArray]:
    """The panels; ``FieldError`` if ``heat`` cannot draw them, or lacks a text for one of them.

    ``titles`` are the titles of the panels, and ``across`` the labels of their x axes.
    """
    allowed = "DataArrays of xarray, each of numbers and with two dimensions [y, x]"
    panels = listed(panels, "panels", allowed)
    for panel in panels:
        kind = getattr(getattr(panel, "dtype", None), "kind", "")
        if len(getattr(panel, "dims", ())) != 2 or kind not in tuple("iuf"):
            raise FieldError("panels", panel, allowed)
    if not any(panel.notnull().any() for panel in panels):
        raise FieldError("panels", f"{len(panels)} arrays", "an array with a number")
    for where, texts in (("titles", titles), ("across", across)):
        if len(listed(texts, where, "texts")) != len(panels):
            raise FieldError(where, texts, f"{len(panels)} texts, one for each panel")
    return panels


def _draw(
    ax: Axes, panel: xr.DataArray, values: Floats, norm: Normalize, levels: Sequence[float]
) -> QuadMesh:
    """Draw one map with lines at some ``levels``, and return the coloured cells.

    ``panel`` has the coordinates of the map, and ``values`` [y, x] the values to draw. ``norm``
    gives each value its place on the colour scale.
    """
    ax.set_facecolor("#bbbbbb")
    x, y = (_cells(ax, which, panel) for which in ("x", "y"))
    image = ax.pcolormesh(
        x.edges, y.edges, np.ma.masked_invalid(values), cmap="RdBu", norm=norm, rasterized=True
    )
    # the levels that lie between the least and the greatest of the values
    crossed = [v for v in levels if np.any(values < v) and np.any(values > v)]
    words = any(panel[dim].dtype.kind not in "iuf" for dim in panel.dims)  # not numbers
    if crossed and min(values.shape) > 1 and not words:
        lines = ax.contour(
            x.middles, y.middles, values, levels=crossed, colors="black", linewidths=0.9
        )
        ax.clabel(lines, fmt="%g", fontsize=8)
    return image


def _norm(values: Sequence[Floats], *, ratio: bool) -> Normalize:
    """The colour scale for all panels, of ratios or of shares (``heat`` describes both)."""
    if not ratio:
        return TwoSlopeNorm(vcenter=0.5, vmin=0.0, vmax=1.0)
    logarithms = [np.abs(np.log10(v[v > 0])).max(initial=0.0) for v in values]
    largest = min(max(10.0 ** float(max(logarithms)), 2.0), MAX_RATIO)
    return LogNorm(1.0 / largest, largest, clip=True)


def on_axis(data: xr.DataArray, field: str) -> tuple[NDArray[Any], str]:
    """The values of a field for the axis of a figure, and the label of the axis with the unit.

    Values that are not numbers are returned as strings. Capacities are converted from pkt/s to
    Mbit/s with the packet size in bytes, ``data.attrs["packet_size"]``. Times are converted to ms,
    except starting times, which stay in s.
    """
    values, unit = np.asarray(data[field].values), str(data[field].attrs.get("units", "1"))
    if values.dtype.kind not in "iuf":
        return np.array([str(word) for word in values]), field
    label = str(data[field].attrs.get("long_name", field))
    numbers = values.astype(float)
    if field.endswith(".capacity"):
        return numbers * 8e-6 * data.attrs["packet_size"], f"{label} (Mbit/s)"
    if unit == "s" and not field.endswith(".start"):
        return numbers * 1e3, f"{label} (ms)"
    return numbers, label if unit == "1" else f"{label} ({unit})"


def every_nth(n: int) -> NDArray[np.intp]:
    """Evenly spaced indices of ``n`` values, from 0 on; at most ``MAX_TICKS`` of them."""
    return np.arange(0, n, max(-(-n // MAX_TICKS), 1))


class _Cells(NamedTuple):
    """The middles and the edges of a map's cells along one of its axes."""

    middles: Floats
    edges: Floats


def _cells(ax: Axes, which: Literal["x", "y"], panel: xr.DataArray) -> _Cells:
    """Compute where the cells lie along an axis, and set the axis's scale and its ticks.

    There are ticks at up to nine cells, labelled with the coordinate's values.
    """
    axis, dim = (ax.xaxis, panel.dims[1]) if which == "x" else (ax.yaxis, panel.dims[0])
    coordinates, _ = on_axis(panel, str(dim))
    words = coordinates.dtype.kind == "U"
    in_order = (  # finite numbers that all rise or all fall
        not words
        and np.isfinite(coordinates).all()
        and abs(np.sign(np.diff(coordinates)).sum()) == len(coordinates) - 1
    )
    # the middles of the cells: the coordinate's values, or 0, 1, 2, ... if these cannot be used
    middles = (
        coordinates
        if in_order and coordinates.size > 1
        else np.arange(coordinates.size, dtype=float)
    )
    # The axis is logarithmic if this makes the cells more alike in width, by more than a tenth.
    above_0 = min(middles[0], middles[-1]) > 0  # whether all middles are, since they are in order
    logarithmic = above_0 and _uneven(np.log(middles)) < 0.9 * _uneven(middles)
    scaled = np.log(middles) if logarithmic else middles  # the middles on the axis's scale
    if _uneven(scaled) > MAX_UNEVENNESS:  # some cells could hardly be seen: space all evenly
        logarithmic, middles = False, np.arange(coordinates.size, dtype=float)
        scaled = middles
    # an edge lies half way between two middles; an outer cell extends as far to the outside of its
    # middle as to the inside
    between = 0.5 * (scaled[1:] + scaled[:-1])
    half = 0.5 * np.diff(scaled) if coordinates.size > 1 else np.array([0.5])
    edges = np.concatenate([[scaled[0] - half[0]], between, [scaled[-1] + half[-1]]])
    if logarithmic:
        (ax.set_xscale if which == "x" else ax.set_yscale)("log")
    ticks = every_nth(coordinates.size)
    axis.set_ticks(
        middles[ticks],
        [plain(str(coordinates[i])) if words else f"{coordinates[i]:.4g}" for i in ticks],
    )
    axis.set_minor_locator(NullLocator())
    return _Cells(middles, np.exp(edges) if logarithmic else edges)


def _uneven(values: Floats) -> float:
    """The largest step between successive values, divided by the smallest."""
    steps = np.abs(np.diff(values))
    return float(steps.max() / steps.min()) if steps.size else 1.0
