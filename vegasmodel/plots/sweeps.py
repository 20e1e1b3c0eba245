"""Draws the results of a sweep: each group's share of all bytes delivered.

A group is a ``[[flow]]`` table, which may stand for several flows. A sweep evaluates a model for
many values of one or more fields of a scenario. If one field varies, there is a curve for each of
the first 8 groups, or for the groups that the caller names. If two vary, there is a map of the
share of one group. If there is only one group, its share is always 1. Then the utilization of the
first link is drawn instead.
"""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from vegasmodel.fields.errors import FieldError
from vegasmodel.fields.rules import nearest
from vegasmodel.fields.units import parse
from vegasmodel.plots.maps import every_nth, heat, on_axis
from vegasmodel.plots.style import COLORS, DASHES, MARKERS, figure, legend, plain, tidy

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["sweep"]

MAX_CURVES = 8  # each shows a group of flows
ANSWERED = 0  # the variable ``status`` of a sweep at a point for which the model has an answer
GROUP = re.compile(r"\[\d+\]$")  # the flow's number at the end of its name, as in vegas[0]


def sweep(data: xr.Dataset, group: str | None = None) -> Figure:
    """Plot a sweep: the shares of all delivered bytes, over the one or two fields that vary.

    ``data`` is the result of ``vegasmodel.sweep``, or of ``xarray.open_zarr`` on its folder.

    - If one field varies, a curve shows the share of ``group``: the share that all flows of the
      group get together.  By default there is a curve for each of the first 8 groups of flows.
      Error bars show two standard errors of this share if these are known.
    - If two fields vary, a map shows the share of ``group``.  The default is the first group.

    ``group`` may also be several groups, such as ``"a+b"``, or ``"law:vegas"`` for all groups with
    this law.  If ``group`` has all flows of the sweep, its share is always 1.  The plot then shows
    the utilization of the first link instead.

    Points at which the model predicts nothing are left out; in a map they are grey.

    Raises ``FieldError`` if there is no such group, and for data that cannot be plotted, such as a
    sweep over random points.
    """
    if not {"share", "status"} <= set(getattr(data, "data_vars", ())):
        raise FieldError("data", data, "the dataset that vegasmodel.sweep returns")
    fields = [str(name) for name in data["status"].dims]
    if len(fields) > 2 or fields == ["point"]:
        raise FieldError("data", ", ".join(fields), "a grid over one or two fields")
    if not bool((data["status"] == ANSWERED).any()):
        raise FieldError("data", data.attrs["scenario"], "a sweep with an answer at some point")
    names = [GROUP.sub("", str(name)) for name in data["flow"].values]
    shared = names[0] if group is None else group
    flows = _flows_of(shared, data, names)
    if not flows:
        groups = list(dict.fromkeys(names))
        allowed = f"one of {', '.join(groups)}, several of them (a+b), "
        allowed += f"or all with one law (law:LAW){nearest(group, groups)}"
        raise FieldError("group", group, allowed)
    all_flows = len(flows) == len(names)  # whose share is always 1
    title = f"{data.attrs['scenario']}, by {data.attrs['model']}"
    if len(fields) == 1:
        groups = list(dict.fromkeys(names))
        curves = {name: _flows_of(name, data, names) for name in groups[:MAX_CURVES]}
        if len(groups) > MAX_CURVES and group is None:
            title += f", {MAX_CURVES} of {len(groups)} groups"
        return _lines(data, fields[0], title, curves if group is None else {shared: flows})
    share = data["share"].isel(flow=flows).sum("flow", min_count=1)
    shown = (data["utilization"].isel(link=0, drop=True) if all_flows else share).rename("share")
    shown.attrs["packet_size"] = _packet_size(data)
    across, up = (on_axis(shown, field)[1] for field in fields)
    text = "part of the first link's capacity that is used" if all_flows else f"share of {shared}"
    panel = shown.transpose(fields[1], fields[0])
    return heat([panel], [""], [across], title=title, shown=text, up=up)


def _flows_of(group: object, data: xr.Dataset, names: list[str]) -> list[int]:
    """The indices of the flows of a group ``a``, of groups ``a+b``, or of groups ``law:LAW``.

    ``names`` has the name of each flow's group.  The result is empty if one of the groups, or the
    law, does not occur in the sweep.  It is also empty for a law if the sweep varies laws, because
    the law then has other flows at each point.
    """
    if not isinstance(group, str):
        return []
    table = tomllib.loads(str(data.attrs["scenario_toml"]))
    laws_vary = any(str(field).endswith(".law") for field in data["status"].dims)
    laws: dict[str, set[str]] = {}  # a text such as "law:vegas" -> the names of its groups
    for flow in [] if laws_vary else table["flow"]:
        laws.setdefault(f"law:{flow['law']}", set()).add(flow.get("name", flow["law"]))
    parts = [group] if group in names else group.split("+")  # a name may hold a +
    wanted = [{part} if part in names else laws.get(part, set()) for part in parts]
    if not all(wanted):
        return []
    return [i for i, name in enumerate(names) if any(name in group_names for group_names in wanted)]


def _lines(data: xr.Dataset, field: str, title: str, curves: dict[str, list[int]]) -> Figure:
    """Draw the shares of groups of flows over the values of ``field``.

    ``curves`` has for each curve its name and the indices of its flows. If a curve has all flows,
    the only curve shows the utilization of the first link. ``data`` is the dataset of the sweep,
    and ``title`` the title of the figure.
    """
    load = any(len(flows) == data.sizes["flow"] for flows in curves.values())
    fig = figure()
    ax = fig.subplots()
    axis = data[field].copy()
    axis.attrs["packet_size"] = _packet_size(data)
    x, label = on_axis(axis, field)
    words = x.dtype.kind == "U"  # such as names of laws, which are drawn at equal distances
    x_places = np.arange(x.size) if words else x
    if load:
        _line(ax, 0, x_places, data["utilization"].isel(link=0).values, None, "load", words=words)
    else:
        # a sweep stored by an older version has no errors; nor has a sum of several groups
        errors = data.get("group_share_se")
        for i, (name, flows) in enumerate(curves.items()):
            share = data["share"].isel(flow=flows).sum("flow", min_count=1).values
            error = None
            if errors is not None and name in errors["group"]:
                error = 2.0 * errors.sel(group=name).values
            text = f"{name}, {len(flows)} flows together" if len(flows) > 1 else name
            _line(ax, i, x_places, share, error, text, words=words)
    if words:
        ax.set_xticks(x_places, [plain(str(word)) for word in x])
    elif x.size > 2 and np.allclose(np.diff(x), x[1] - x[0]):
        ticks = every_nth(x.size)
        ax.set_xticks(x[ticks], [f"{value:.4g}" for value in x[ticks]])
    elif np.array_equal(x, np.round(x)):
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_title(plain(title), loc="left")
    ax.set(xlabel=plain(label), ylim=(0, None))
    ax.set_ylabel("part of the capacity that is used" if load else "part of all bytes delivered")
    tidy(ax)
    legend(fig, ax)
    return fig


def _line(
    ax: Axes, i: int, x: np.ndarray, y: np.ndarray, error: np.ndarray | None, name: str, *,
    words: bool,
) -> None:  # fmt: skip
    """Draw curve number ``i`` with markers at its points, or only the markers if x are ``words``.

    ``error`` has two standard errors of each y, or is ``None``; ``name`` stands in the legend.
    """
    bars = None if error is None or not np.any(error > 0) else np.nan_to_num(error)
    ax.errorbar(
        x, y, bars, ls="none" if words else DASHES[i % len(DASHES)], marker=MARKERS[i], ms=4,
        color=COLORS[i], lw=1.6, elinewidth=1, capsize=2, label=plain(name),
    )  # fmt: skip


def _packet_size(data: xr.Dataset) -> float:
    """The size of a data packet in the scenario of the sweep, in bytes."""
    table = tomllib.loads(str(data.attrs["scenario_toml"]))
    return parse(table["packet_size"], "bytes", field="packet_size")
