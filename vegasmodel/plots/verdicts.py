"""Draws the throughput errors of models: a row for each model, with a dot for each scenario."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from vegasmodel.fields.errors import FieldError
from vegasmodel.plots.style import BLACK, figure, look, plain, row, tidy

__all__ = ["model_errors"]

SMALLEST_DRAWN = 0.01  # percent: the axis begins here, and smaller errors are drawn here


def model_errors(errors: Mapping[str, ArrayLike], *, title: str = "") -> Figure:
    """Plot the throughput errors of models: a row per model, with a dot for each scenario.

    A bar marks the model's mean error. The model with the smallest mean is on top. The axis is
    logarithmic, and errors below 0.01 % are drawn at 0.01 %.

    ``errors`` maps a model's name to its error in each scenario. The error is the NRMSE (normalised
    root mean square error) of the throughputs, as a fraction: 0.05 is drawn as 5 %. NaN means that
    the model predicts nothing for the scenario. A model with NaN for all scenarios has no row.

    Raises ``FieldError`` if ``errors`` is no such mapping.
    """
    if not isinstance(errors, Mapping):
        raise FieldError("errors", errors, "a mapping from a model's name to its errors")
    found = {name: row(values, f"errors, {name}") for name, values in errors.items()}
    found = {name: v[np.isfinite(v)] for name, v in found.items()}
    order = sorted((name for name in found if found[name].size), key=lambda n: found[n].mean())
    fig = figure(7.0, 1.3 + 0.42 * max(len(order), 2))
    ax = fig.subplots()
    for place, name in enumerate(order):
        style, percent = look(name), np.maximum(100 * found[name], SMALLEST_DRAWN)
        shifts = 0.22 * np.sin(2.4 * np.arange(percent.size))  # so that equal errors stay visible
        if percent.size == 1:
            shifts[:] = 0
        ax.plot(
            percent, place + shifts, style.marker, color=style.color, ms=5, alpha=0.7, ls="none"
        )
        mean = max(100 * float(found[name].mean()), SMALLEST_DRAWN)
        ax.plot([mean, mean], [place - 0.38, place + 0.38], color=BLACK, lw=2)
    labels = [f"{look(name).label}  ({found[name].size})" for name in order]
    ax.set_yticks(range(len(order)), labels)
    ax.set_ylim(len(order) - 0.4, -0.6)
    ax.set(xscale="log", xlabel="throughput error, NRMSE (%); bar: mean; (scenarios answered)")
    ax.xaxis.set_major_formatter("{x:g}")
    ax.set_title(plain(title), loc="left")
    tidy(ax)
    ax.grid(visible=False, axis="y")
    return fig
