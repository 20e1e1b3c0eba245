"""Draws the plane of two Vegas flows' windows: where each window grows, stays or shrinks.

The figure is like figure 6 of Boutremans and Le Boudec (2000).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from vegasmodel.equilibrium import phase_plane, secular
from vegasmodel.fields.errors import FieldError
from vegasmodel.fields.rules import Integer, listed
from vegasmodel.metrics import Floats
from vegasmodel.plots.style import (
    BLACK,
    BLUE,
    DASHES,
    GREY,
    ORANGE,
    PINK,
    RED,
    figure,
    legend,
    plain,
    row,
    simulated,
    tidy,
)
from vegasmodel.scenario import Scenario, expect
from vegasmodel.stacks import dead_zone

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["convergence_regions"]

MESH_POINTS = 501  # on each axis; at these points the shaded region is computed


class _Plane(NamedTuple):
    """Two Vegas flows on one link, whose windows are the axes of a plane.

    - ``lower``, ``upper``: at a backlog between them, in packets, a flow keeps its window.
    - ``x``: by how much each flow over-estimates its baseRTT, s.
    - ``d``: each flow's round-trip time without queueing, s.
    - ``c``: the link's capacity, pkt/s.
    - ``variant``: the TCP implementation, which decides how Vegas computes its backlog.
    """

    lower: Floats
    upper: Floats
    x: Floats
    d: Floats
    c: float
    variant: str

    def top(self) -> Floats:
        """The greatest window on each axis, packets: 1.1 c (d + Delta).

        c is the capacity and d the flow's RTT without queueing. Delta is the queueing delay if the
        backlog of both flows is ``upper``, the largest one at which they keep their windows. With
        this delay a flow that has the whole capacity has the window c (d + Delta). The factor 1.1
        leaves a margin beyond it.
        """
        delay = secular.solve(self.upper, self.x, self.c, rtt=self.d, variant=self.variant).delay
        return 1.1 * self.c * (self.d + float(delay))


def convergence_regions(
    scenario: Scenario,
    paths: Sequence[xr.Dataset] = (),
    *,
    x: ArrayLike | None = None,
    arrows: int = 15,
) -> Figure:
    """Draw the plane of two Vegas flows' windows: where each window grows, stays and shrinks.

    This is like figure 6 of Boutremans and Le Boudec. Lines bound the region where each window
    stays constant. The region where both windows stay constant is shaded. It is hatched where the
    first flow has the greater rate. Grey lines show where the link is just full and where the rates
    are equal. On a grid of ``arrows`` times ``arrows`` points, arrows show in which direction the
    windows move.

    ``paths`` are results of ``simulate``; each is drawn as a curve that starts at a circle and ends
    at a square. ``x`` are the flows' over-estimates of baseRTT in seconds. By default they are
    those of the scenario, or 0 if it gives none.

    Raises ``FieldError`` for a wrong argument, and unless the scenario has two Vegas flows of one
    variant on one link.
    """
    plane = _plane(scenario, x)
    Integer(1, 1000).check(arrows, "arrows")
    drawn = [simulated(data, "paths") for data in listed(paths, "paths", "results of simulate")]
    top = plane.top()
    fig = figure(6.4, 7.2)
    ax = fig.subplots()
    _shade(ax, plane, top)
    _lines(ax, plane, top)
    _arrows(ax, plane, top, arrows)
    for i, data in enumerate(drawn):
        windows, color = data["window"].values, (BLACK, PINK, ORANGE)[i % 3]  # [time, flow]
        name = str(data.attrs["model"]) + (f" {i + 1}" if len(drawn) > 1 else "")
        ax.plot(*windows.T, ls=DASHES[i % len(DASHES)], color=color, lw=1.6, label=name)
        ax.plot(*windows[0], "o", color=color, ms=7, mfc="white", clip_on=False, zorder=5)
        ax.plot(*windows[-1], "s", color=color, ms=7, clip_on=False, zorder=5)
    names = [plain(member.name) for member in scenario.members]
    ax.set(xlim=(-0.02 * top[0], top[0]), ylim=(-0.02 * top[1], top[1]), box_aspect=1)
    ax.set_xlabel(f"window of {names[0]} (packets)")
    ax.set_ylabel(f"window of {names[1]} (packets)")
    ax.set_title(plain(scenario.name), loc="left")
    tidy(ax, grid=False)
    legend(fig, ax)
    return fig


def _plane(scenario: Scenario, x: ArrayLike | None) -> _Plane:
    """What ``convergence_regions`` must know about the scenario's two Vegas flows and their link.

    ``x`` are the over-estimates of baseRTT, s, or ``None`` for those of the scenario. Raises
    ``FieldError`` unless the scenario has two Vegas flows of one variant on one link.
    """
    expect(scenario)
    members = scenario.members
    if (
        len(scenario.links) != 1
        or len(members) != 2
        or any(not m.flow.keeps_backlog for m in members)
    ):
        raise FieldError("scenario", scenario, "two Vegas flows on one link")
    variants = {m.flow.variant for m in members}
    if len(variants) > 1:
        raise FieldError("scenario", scenario, "one variant of Vegas for both flows")
    given = [m.flow.over_estimate for m in members]
    over_estimates = row([0.0 if isinstance(v, str) else v for v in given] if x is None else x, "x")
    if over_estimates.size not in (1, 2):
        raise FieldError("x", x, "one over-estimate, or one for each of the two flows")
    (variant,) = variants
    lower, upper = dead_zone(
        [m.flow.alpha for m in members], [m.flow.beta for m in members], variant
    )
    return _Plane(
        lower=lower,
        upper=upper,
        x=np.array(np.broadcast_to(over_estimates, (2,))),
        d=np.array([m.rtt for m in members]),
        c=scenario.links[0].capacity,
        variant=variant,
    )


def _shade(ax: Axes, plane: _Plane, top: Floats) -> None:
    """Shade the region in which Vegas keeps both windows as they are.

    Hatch it where the first flow has the greater rate.
    """
    # the windows [y, x, flow] at the points of a grid, and the backlogs that the flows compute
    W = np.stack(np.meshgrid(*(np.linspace(0, t, MESH_POINTS) for t in top)), axis=-1)
    backlogs, delay = phase_plane.reckoned(W, plane.x, plane.c, plane.d, plane.variant)
    # the least distance of a backlog to its limits, positive in the region and 0 at its border
    inside = np.minimum(backlogs - plane.lower, plane.upper - backlogs).min(axis=-1)
    rates = W / (plane.d + delay[..., None])
    first_rate, second_rate = np.moveaxis(rates, -1, 0)
    # positive where, besides, the first flow has the greater rate
    first_is_faster = np.minimum(inside, first_rate - second_rate)
    first_window, second_window = np.moveaxis(W, -1, 0)
    if np.any(inside > 0):
        ax.contourf(first_window, second_window, inside, levels=[0, np.inf], colors=["#cdeee0"])
    if np.any(first_is_faster > 0):
        with_hatch = ax.contourf(
            first_window,
            second_window,
            first_is_faster,
            levels=[0, np.inf],
            colors="none",
            hatches=["////"],
        )
        with_hatch.set_edgecolor("#7fbfa6")


def _lines(ax: Axes, plane: _Plane, top: Floats) -> None:
    """Draw lines in the plane of the two flows' windows.

    - On a coloured line, one flow's backlog is at a limit of the range in which Vegas keeps its
      window.
    - On one grey line the link is just full, on the other the two rates are equal.
    """
    c, d = plane.c, plane.d  # the capacity, pkt/s, and the two RTTs without queueing, s
    # at a longer queueing delay, s, the lines are outside the figure
    longest_delay = 2 * float((top / c).max())
    for flow, color in ((0, BLUE), (1, RED)):
        alpha, beta = f"\\alpha_{flow + 1}", f"\\beta_{flow + 1}"
        limits = {alpha: plane.lower[flow], beta: plane.upper[flow]}
        if limits[alpha] == limits[beta]:  # one line for both
            limits = {f"{alpha} = {beta}": limits[alpha]}
        for (name, limit), dash in zip(limits.items(), DASHES, strict=False):
            # the line begins where this flow has the whole link: about at this queueing delay, s
            begin = plane.x[flow] + limit / c
            delays = begin + np.concatenate([[0.0], np.geomspace(1e-6, 1.0, 2000) * longest_delay])
            # [delay, flow] the windows on the line
            line = phase_plane.level(limit, flow, plane.x, c, d, delays, plane.variant)
            ax.plot(*line.T, ls=dash, color=color, lw=1.6, label=f"${name}$")
    ax.plot([c * d[0], 0], [0, c * d[1]], ls=":", color=GREY, label="link just full")
    # without a queue the rates are W/d; with a queue of any delay they are c/2
    equal = np.stack([0 * d, c / 2 * d, c / 2 * (d + 2 * longest_delay)])
    ax.plot(*equal.T, color=GREY, lw=1, ls=DASHES[3], label="equal rates")


def _arrows(ax: Axes, plane: _Plane, top: Floats, rows: int) -> None:
    """Draw arrows on a coarse grid in the direction in which the windows move.

    The grid has ``rows`` rows and columns. It reaches up to the windows ``top``.
    """
    steps = (np.arange(rows) + 0.5) / rows
    W = np.stack(np.meshgrid(*(t * steps for t in top)), axis=-1).reshape(-1, 2)
    move = phase_plane.drift(W, plane.lower, plane.upper, plane.x, plane.c, plane.d, plane.variant)
    moving = move.any(axis=-1)
    ax.quiver(
        *W[moving].T, *move[moving].T, color="#9a9a9a", pivot="mid", angles="xy", width=0.0028,
        scale=1.9 * rows, headwidth=5,
    )  # fmt: skip
