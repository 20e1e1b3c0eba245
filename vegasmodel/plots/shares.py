"""Draws throughputs as bars per flow group, and throughputs and baseRTTs as curves.

The x axis of the curves is the flows' order of arrival, or the buffer. With Rate-Delay services,
which have a queue for high rate and one for low delay, it is the number of flows in the first queue
divided by the number in the second.

The functions that draw curves take two arguments. ``models`` are predictions, drawn as lines.
``measured`` are measurements, drawn as markers. Throughputs that are means over several runs have
error bars of two standard errors, but ``class_shares`` draws no error bars.

Each of the two arguments may be one prediction, a list of predictions, or what
``vegasmodel.predict_all`` or ``vegasmodel.compare`` returns. It may also be a list of such objects.
The result of ``compare`` contains measurements; they are drawn as markers even if they are part of
``models``.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from vegasmodel.fields.errors import FieldError
from vegasmodel.metrics import Floats
from vegasmodel.plots.arguments import (
    Answers,
    drawn_results,
    expect_same,
    expect_same_flows,
    groups_of,
    known,
    split,
)
from vegasmodel.plots.style import (
    BLUE,
    DASHES,
    GREEN,
    GREY,
    RED,
    Dash,
    Look,
    figure,
    legend,
    look,
    plain,
    tidy,
)
from vegasmodel.results.prediction import Prediction
from vegasmodel.scenario import Scenario, expect
from vegasmodel.scenario.active_time import by_start

__all__ = [
    "base_rtt_by_arrival",
    "class_shares",
    "rate_by_arrival",
    "throughput_bars",
    "throughput_over_buffer",
]

MAX_PANELS = 4  # each shows a group of flows
# an axis is logarithmic if its largest value is more than so many times its smallest
LINEAR_UP_TO = 4
MAX_TICKS = 9  # if an axis has more ratios, they do not have a tick each
# patterns of the bars, so that models differ also in print without colours
HATCHES = ("", "//", "..", "xx", "\\\\", "++", "oo", "--")


def throughput_bars(scenario: Scenario | Answers, results: Answers | None = None) -> Figure:
    """Draw the mean throughput per flow of each flow group (at most 12), with one bar per model.

    A flow group is an entry of ``scenario.flows``.  Error bars show the range of throughputs if a
    model gives one, else two standard errors if these are known.  Predictions without throughputs
    are left out.  The argument ``scenario`` may be left out, as in
    ``throughput_bars(predict_all(s))``.  The scenario is then that of the first prediction.

    Raises ``FieldError`` if a prediction is for a scenario with other groups, or if no prediction
    has throughputs.
    """
    case = scenario if isinstance(scenario, Scenario) else None
    if case is None and results is not None:
        expect(scenario)
    parts = split(scenario if case is None else results, "results")
    shown = known([p for part in parts for p in part], "throughput", "results")
    case = case or shown[0].scenario
    expect_same(groups_of(case), shown, groups_of, "results")
    groups = groups_of(case)[:12]
    fig = figure(max(7.0, 1.2 * len(groups) * len(shown) / 3))
    ax = fig.subplots()
    width = 0.8 / max(len(shown), 1)
    for i, result in enumerate(shown):
        # the bars of a group stand beside one another around the group's number
        bar_places = np.arange(len(groups)) + (i - (len(shown) - 1) / 2) * width
        heights = [result.groups.get(g, np.nan) for g in groups]
        style = look(result.model)
        # measurements, which have no line style (``dash``), have bars without hatching
        hatch = "" if style.dash == "none" else HATCHES[i % len(HATCHES)]
        ax.bar(
            bar_places,
            heights,
            0.92 * width,
            color=style.color,
            label=style.label,
            hatch=hatch,
            ec="white",
        )
        error_ends = [_error_ends(result, _flows_of_group(result, g)) for g in range(len(groups))]
        if any(ends is not None for ends in error_ends):
            # [group, end]; a bar without errors gets an error bar of length 0
            spans = np.array(
                [
                    (height, height) if ends is None else ends
                    for ends, height in zip(error_ends, heights, strict=True)
                ]
            )
            errors = np.abs(spans - np.asarray(heights)[:, None]).T  # Matplotlib: [end, group]
            ax.errorbar(bar_places, heights, errors, fmt="none", ecolor="#444444", capsize=2)
    ax.set_xticks(range(len(groups)), [plain(g) for g in groups])
    ax.set_ylabel("throughput per flow (pkt/s)")
    ax.set_title(plain(case.name), loc="left")
    tidy(ax, grid=False)
    legend(fig, ax)
    return fig


def rate_by_arrival(models: Answers, measured: Answers = ()) -> Figure:
    """Plot the throughput of each flow. On the x axis, flows are numbered in the order of arrival.

    A dotted line shows the fair share: the first link's capacity divided by the number of flows.
    Some models give a range for the throughput of each flow; this range is shaded. Error bars show
    two standard errors, if the standard errors are known.

    Raises ``FieldError`` if the predictions are for different flows, or if none has throughputs.
    """
    drawn = drawn_results(models, measured)
    expect_same_flows(drawn)
    fig = figure()
    ax = fig.subplots()
    scenario: Scenario | None = None
    for result, style, as_marker in drawn:
        scenario = result.scenario
        order = by_start(scenario)
        assert result.throughput is not None  # noqa: S101 - drawn_results leaves out the others
        index, rates = np.arange(1, order.size + 1), result.throughput[order]
        if result.throughput_range is not None:
            low, high = result.throughput_range[order].T
            span = f"{result.model}: range"
            ax.fill_between(index, low, high, color=style.color, alpha=0.18, lw=0, label=span)
        se = result.throughput_se
        bars = None if se is None else 2 * se[order]  # two standard errors
        _draw(ax, index, rates, style, bars=bars, as_marker=as_marker)
    if scenario is not None:
        share = scenario.links[0].capacity / len(scenario.members)
        ax.axhline(share, color=GREY, lw=1, ls=":", label="fair share")
        ax.set_title(plain(scenario.name), loc="left")
    _index_axis(ax)
    ax.set(ylabel="throughput (pkt/s)", ylim=(0, None))
    tidy(ax)
    legend(fig, ax)
    return fig


def base_rtt_by_arrival(models: Answers, measured: Answers = ()) -> Figure:
    """Plot the baseRTT of each flow. On the x axis, flows are numbered in the order of arrival.

    A dotted line shows the true value: the flow's ``rtt``, its RTT when all queues are empty. (It
    does not contain the time to transmit headers that a TCP implementation adds.) Models and
    measurements that give no baseRTT are left out.  Raises ``FieldError`` if the predictions are
    for different flows, or if none has baseRTTs.
    """
    drawn = drawn_results(models, measured)
    known([each.result for each in drawn], "base_rtt", "models, measured")
    drawn = [each for each in drawn if each.result.base_rtt is not None]
    expect_same_flows(drawn)
    fig = figure()
    ax = fig.subplots()
    scenario = drawn[0].result.scenario
    order = by_start(scenario)
    flows = np.arange(1, order.size + 1)
    for result, style, as_marker in drawn:
        _draw(ax, flows, 1e3 * np.asarray(result.base_rtt)[order], style, as_marker=as_marker)
    true = 1e3 * np.array([m.rtt for m in scenario.members])[order]
    ax.plot(flows, true, color=GREY, lw=1, ls=":", label="true RTT")
    ax.set_title(plain(scenario.name), loc="left")
    _index_axis(ax)
    ax.set(ylabel="baseRTT (ms)")
    tidy(ax)
    legend(fig, ax)
    return fig


def throughput_over_buffer(models: Answers, measured: Answers = ()) -> Figure:
    """Plot the total throughput of each flow group over the buffer of the first link.

    A flow group is an entry of ``scenario.flows``. The throughput is drawn as a fraction of this
    link's capacity. Each of the first four groups has a panel, with one curve per model. The
    predictions should be for scenarios that differ only in the buffer; their order does not matter.
    Error bars show two standard errors, if the throughputs are means over several runs.

    Raises ``FieldError`` if the predictions have different groups, or if none has throughputs.
    """
    drawn = drawn_results(models, measured)
    all_groups = groups_of(drawn[0].result.scenario)
    expect_same(all_groups, [each.result for each in drawn], groups_of, "models, measured")
    groups = all_groups[:MAX_PANELS]
    fig = figure(max(5.0, 3.8 * len(groups)), 3.8)
    axes = list(np.atleast_1d(fig.subplots(1, len(groups), sharey=True)))
    # the results of each curve, by the model and by whether they are measurements (``as_marker``)
    curves: dict[tuple[str, bool], list[Prediction]] = {}
    for result, _, is_measurement in drawn:
        curves.setdefault((result.model, is_measurement), []).append(result)
    for (model, as_marker), results in curves.items():
        of_model = sorted(results, key=lambda result: result.scenario.links[0].buffer)
        for g, ax in enumerate(axes):
            # for each scenario: the group's part of the capacity, and twice its standard error
            parts, two_errors = np.array([_share_of_capacity(p, g) for p in of_model]).T
            buffers = [p.scenario.links[0].buffer for p in of_model]
            _draw(ax, buffers, parts, look(model), bars=two_errors, as_marker=as_marker)
    for ax, group in zip(axes, groups, strict=False):
        ax.set_title(plain(group), loc="left")
    for ax in axes:
        ax.set_xlabel("buffer (packets)")
    axes[0].set(ylabel="part of the capacity", ylim=(0, None))
    tidy(*axes)
    legend(fig, *axes)
    return fig


def class_shares(models: Answers, measured: Answers = ()) -> Figure:
    """Plot the throughputs of the two classes of Rate-Delay services: rate class and delay class.

    The x axis is the number of rate-class flows per delay-class flow.

    - The upper panel shows the mean throughput per flow of each class, divided by the fair share.
      The fair share is the capacity divided by the number of flows.
    - The lower panel shows the mean throughput of a delay-class flow divided by that of a
      rate-class flow. Podlesny and Williamson call this quotient the relative fairness.

    Reverse flows and short flows that arrive at random do not count. The colour tells the class;
    the marker and the line style tell the model. Filled markers are for scenarios whose first link
    has a Rate-Delay queue, hollow markers for the other scenarios.

    Raises ``FieldError`` if a class has no flow, or if no prediction has throughputs.
    """
    drawn = drawn_results(models, measured)
    fig = figure(7.5, 7.0)
    upper, lower = fig.subplots(2, 1, sharex=True)
    names = list(dict.fromkeys(each.result.model for each in drawn if not each.is_measurement))
    dashes: dict[str, Dash] = dict(zip(names, itertools.cycle(DASHES), strict=False))
    # the results of each set of curves, by the model, by whether they are for a Rate-Delay queue
    # (``rd``), and by whether they are measurements (``as_marker``)
    sets_of_curves: dict[tuple[str, bool, bool], list[Prediction]] = {}
    for result, _, is_measurement in drawn:
        key = (result.model, _is_rd(result), is_measurement)
        sets_of_curves.setdefault(key, []).append(result)
    for (model, rd, as_marker), results in sets_of_curves.items():
        # each an array [scenario]; ``rate`` and ``delay`` are the rates of the two classes
        x, rate, delay = np.array(sorted(map(_class_rates, results))).T
        model_look, dash = look(model), dashes.get(model, "none")
        name = f"{model_look.label}, {'RD' if rd else 'no RD'}"
        for ax, y, color, word in (
            (upper, rate, RED, "rate class"),
            (upper, delay, BLUE, "delay class"),
            (lower, delay / rate, GREEN, "delay / rate"),
        ):
            curve = Look(f"{name}: {word}", color, dash, model_look.marker)
            _draw(ax, x, y, curve, as_marker=as_marker, hollow=not rd)
    upper.axhline(1.0, color=GREY, lw=1, ls=":")
    lower.axhline(1.0, color=GREY, lw=1, ls=":")
    upper.set_ylabel("throughput of a flow\n(fair share = 1)")
    upper.set_ylim(0, 1.07 * upper.get_ylim()[1])
    _set_axes_of_quotients(lower, [_class_rates(each.result) for each in drawn])
    tidy(upper, lower)
    legend(fig, upper, lower, columns=2)
    return fig


def _set_axes_of_quotients(ax: Axes, drawn: Sequence[tuple[float, float, float]]) -> None:
    """Set scales, ticks and labels of the lower panel of ``class_shares``.

    ``drawn`` has the results of ``_class_rates`` for each prediction.  The y axis is logarithmic if
    the quotients of the two classes' rates differ by more than the factor ``LINEAR_UP_TO``.
    """
    quotients = [delay / rate for _, rate, delay in drawn if rate]
    logarithmic = bool(quotients) and max(quotients) > LINEAR_UP_TO * min(quotients) > 0
    ax.set_yscale("log" if logarithmic else "linear")
    if not logarithmic:
        ax.set_ylim(0, 1.1 * max([1.0, *quotients]))
    ax.set(xscale="log", xlabel="rate-class flows per delay-class flow")
    ax.set_ylabel("delay-class rate /\nrate-class rate")
    ratios = sorted({ratio for ratio, _, _ in drawn})
    if 0 < len(ratios) <= MAX_TICKS:
        ax.set_xticks(ratios)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter("{x:.3g}")
        axis.set_minor_formatter("")


def _draw(
    ax: Axes,
    x: ArrayLike,
    y: Floats,
    style: Look,
    *,
    bars: Floats | None = None,
    as_marker: bool,
    hollow: bool = False,
) -> None:
    """Draw a curve with markers and error bars; if ``as_marker`` is True, leave out the curve.

    ``style`` has the colour, the marker, the line style and the label.  The error bars reach from
    y - bars to y + bars.  There are none if ``bars`` is None or has only zeros.  With ``hollow``
    the markers are white inside.
    """
    if bars is not None:
        bars = np.nan_to_num(bars) if np.any(np.nan_to_num(bars)) else None
    face = "white" if hollow else style.color
    if as_marker:
        ax.errorbar(
            x, y, bars, fmt=style.marker, color=style.color, mfc=face, ms=5, capsize=2, lw=1,
            label=style.label, zorder=4,
        )  # fmt: skip
    else:
        if bars is not None:
            ax.errorbar(x, y, bars, fmt="none", ecolor=style.color, capsize=2, lw=1)
        ax.plot(
            x, y, ls=style.dash, marker=style.marker, ms=4, color=style.color, lw=1.6, mfc=face,
            label=style.label,
        )  # fmt: skip


def _flows_of_group(result: Prediction, group: int) -> list[int]:
    """The indices of the flows that belong to group number ``group``."""
    return [i for i, m in enumerate(result.scenario.members) if m.group == group]


def _error_ends(result: Prediction, rows: Sequence[int]) -> tuple[float, float] | None:
    """The lower and the upper end of the error bar of a group's mean throughput, pkt/s.

    ``rows`` are the indices of the group's flows. If the model gives a range of throughputs for
    each flow, the ends are the means of these ranges' ends. Otherwise they are two standard errors
    below and above the mean throughput. The result is ``None`` if neither is known.
    """
    if result.throughput_range is not None:
        low, high = result.throughput_range[rows].mean(axis=0)
        return float(low), float(high)
    if result.throughput_se is not None and result.throughput is not None:
        mean, error = float(result.throughput[rows].mean()), _two_errors(result, rows)
        return mean - error, mean + error
    return None


def _two_errors(result: Prediction, rows: Sequence[int]) -> float:
    """Twice the standard error of the mean throughput of a group's flows, in pkt/s.

    ``rows`` are the indices of these flows.  If the standard error of the mean is unknown, it is
    computed from the flows' standard errors as if these errors were independent.  The result is 0
    if the flows' standard errors are unknown, too.
    """
    name = result.scenario.members[rows[0]].flow.name
    if name in result.groups_se:
        return 2 * result.groups_se[name]
    if result.throughput_se is None:
        return 0.0
    return float(2 * np.sqrt((result.throughput_se[rows] ** 2).sum()) / len(rows))


def _share_of_capacity(result: Prediction, group: int) -> tuple[float, float]:
    """A flow group's share of the first link's capacity, and twice the share's standard error.

    The share is the group's total throughput divided by the capacity, both in bytes per second.
    """
    scenario, rows = result.scenario, _flows_of_group(result, group)
    assert result.throughput is not None  # noqa: S101 - drawn_results leaves out the others
    size = scenario.size_of(scenario.flows[group]) / scenario.packet_size
    unit = size * len(rows) / scenario.links[0].capacity
    return unit * float(result.throughput[rows].mean()), unit * _two_errors(result, rows)


def _is_rd(result: Prediction) -> bool:
    """Whether the scenario's first link has a Rate-Delay queue."""
    return result.scenario.links[0].queue.discipline == "rd"


def _class_rates(result: Prediction) -> tuple[float, float, float]:
    """Compare the two classes of Rate-Delay services: numbers of flows and mean throughputs.

    Returns three numbers:

    - the number of rate-class flows per delay-class flow,
    - the mean throughput of a rate-class flow, divided by the fair share,
    - the mean throughput of a delay-class flow, divided by the fair share.

    The fair share is the first link's capacity divided by the number of flows. Reverse flows and
    short flows that arrive at random do not count. Raises ``FieldError`` if a class has no flow.
    """
    members, rates = result.scenario.members, result.throughput
    assert rates is not None  # noqa: S101 - drawn_results leaves out the others
    lasting = np.array(
        [m.flow.direction == "forward" and m.flow.arrivals == "once" for m in members]
    )
    delayed = np.array([m.flow.service == "delay" for m in members])
    rate, delay = rates[lasting & ~delayed], rates[lasting & delayed]
    if not rate.size or not delay.size:
        missing = "delay" if rate.size else "rate"
        allowed = f"flows of both classes: there is no flow of class {missing}"
        raise FieldError("models, measured", result, allowed)
    fair = result.scenario.links[0].capacity / (rate.size + delay.size)
    return rate.size / delay.size, float(rate.mean() / fair), float(delay.mean() / fair)


def _index_axis(ax: Axes) -> None:
    """Let the x axis number flows in the order of arrival, with ticks at whole numbers."""
    ax.set_xlabel("order of arrival")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
