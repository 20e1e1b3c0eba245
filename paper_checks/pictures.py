"""Draws the papers' main figures for the HTML report.

Predictions of our models are lines, and the stored runs of ns-2 are markers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from paper_checks.answers import answer, measurement
from paper_checks.boutremans.scenes import joining
from paper_checks.devendictis.scenes import BUFFERS
from paper_checks.devendictis.scenes import with_limit as mixed
from paper_checks.evaluation.figures import BUFFERS_OF_3_3_2
from paper_checks.evaluation.scenes import pair
from paper_checks.podlesny.router import dumbbell
from paper_checks.runs import NoRun, Runs
from paper_checks.tsang.replay import replay
from paper_checks.tsang.scenes import X2_IN_MS, two_connections
from paper_checks.tsang.table3 import TABLE_3, TEN_S_AFTER_START
from vegasmodel import plots, simulation
from vegasmodel.results.prediction import Prediction
from vegasmodel.scenario import Scenario

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Picture", "pictures"]


class Picture(NamedTuple):
    """A figure and its caption, which is also its alternative text."""

    figure: Figure
    caption: str


def pictures(paper: str, runs: Runs) -> list[Picture]:
    """The pictures of one paper: models as curves, measurements as markers.

    Markers of measurements that are not stored are left out.
    """
    makers: dict[str, Callable[[Runs], list[Picture]]] = {
        "tsang": _tsang,
        "boutremans": _boutremans,
        "evaluation": _evaluation,
        "devendictis": _devendictis,
        "podlesny": _podlesny,
    }
    return makers[paper](runs)


def _answers(scenarios: Iterable[Scenario], models: Sequence[str]) -> list[Prediction]:
    """The predictions of each model for each scenario, without those that give no throughputs."""
    found = [answer(scenario, model) for scenario in scenarios for model in models]
    return [p for p in found if p.applicable and p.throughput is not None]


def _measured(scenarios: Iterable[Scenario], runs: Runs) -> list[Prediction]:
    """ns-2's measurements of those scenarios of which a run is stored."""
    found = []
    for scenario in scenarios:
        try:
            found.append(measurement(scenario, runs))
        except NoRun:
            continue
    return found


def _tsang(runs: Runs) -> list[Picture]:
    """Tables 3 and 4: the ratio of the two sources' rates over the second one's delay."""
    found = []
    for name, alpha, beta in (("table 3", 1, 3), ("table 4", 3, 3)):
        delays = [float(x2) for x2 in sorted(X2_IN_MS)]
        scenes = [two_connections(x2, alpha, beta) for x2 in delays]
        models = {
            model: _ratios(zip(delays, (_answers([s], [model]) for s in scenes), strict=True))
            for model in ("network", "rounds")
        }
        marks = {
            "ns-2 2.35": _ratios(zip(delays, (_measured([s], runs) for s in scenes), strict=True)),
            "packets, rule as printed": (delays, [_replayed(x2, alpha, beta) for x2 in delays]),
        }
        if name == "table 3":  # the table has the inverse ratio
            marks["print"] = (delays, [1 / TABLE_3[int(x2)].ratio for x2 in delays])
        figure = plots.curves(
            models,
            marks,
            x="x2, delay of the second source's last link (ms)",
            y="throughput of source 2 / source 1",
            title=f"tsang, {name}: alpha = {alpha}, beta = {beta}",
        )
        text = (
            f"Two Vegas sources with different delays, alpha = {alpha}, beta = {beta}: the second "
            "source's throughput over the first's, by the delay of the second's last link. If it "
            "is 1, both get the same."
        )
        found.append(Picture(figure, text))
    return found


def _replayed(x2: float, alpha: int, beta: int) -> float:
    """Rate of source 2 over that of source 1, simulated packet by packet with the printed rule.

    ``x2`` is the delay of the last link of source 2, ms; ``alpha`` and ``beta`` are in packets.

    Two packets can arrive at the link at the same instant.  Which one goes first decides the rates,
    and the paper does not state it.  The printed values fit if the packet of the longer connection
    is the first in table 4 (alpha = beta), and that of the shorter one in table 3.
    """
    first, second = replay(x2, alpha, beta, longer_first=alpha == beta)
    return second.rate(TEN_S_AFTER_START) / first.rate(TEN_S_AFTER_START)


def _ratios(
    predictions: Iterable[tuple[float, Sequence[Prediction]]],
) -> tuple[list[float], list[float]]:
    """Values of x, and ratios of source 2's rate to source 1's, one for each prediction.

    ``predictions`` has the predictions at each x.
    """
    xs, ys = [], []
    for x, found in predictions:
        for p in found:
            assert p.throughput is not None
            xs.append(x)
            ys.append(float(p.throughput[1] / p.throughput[0]))
    return xs, ys


def _boutremans(runs: Runs) -> list[Picture]:
    """Rates and baseRTTs of sources in the order of arrival, and figure 6."""
    scene = joining(n=20, alpha=3.0, beta=3.0)
    measured = _measured([scene], runs)
    predicted = _answers([scene], ("arrivals", "arrivals-bonald", "rounds"))
    return [
        Picture(
            plots.rate_by_arrival(predicted, measured),
            "Rates in the order of arrival, 20 sources, alpha = beta = 3: a late flow counts the "
            "queueing delay that it finds as propagation delay, and gets more.",
        ),
        Picture(
            plots.base_rtt_by_arrival(predicted, measured),
            "The baseRTTs of the same sources. The theories assume that the queue is in "
            "equilibrium when a flow starts, so their baseRTTs are larger than the measured ones.",
        ),
        Picture(
            _regions(),
            "Figure 6 of the paper, by the paper's window rule: the regions in which two windows "
            "grow, stay and shrink. The first flow starts alone. Where both windows come to rest "
            "decides which flow gets more; in the hatched part it is the first.",
        ),
    ]


def _regions() -> Figure:
    """Figure 6 of ``boutremans``: for which windows of two Vegas flows each of them grows or holds.

    The course of both windows is drawn into it, by the simulator ``fluid``.  Alpha is 2 and beta 6,
    so that the region in which both windows hold is visible.  The second flow starts at 20 s.
    """
    base = joining(n=10, alpha=2.0, beta=6.0, known=True)
    flow = dataclasses.replace(base.flows[0], count=1, variant="paper", rtt=0.1)
    flows = tuple(
        dataclasses.replace(flow, name=name, start=start)
        for name, start in (("first", 0.0), ("second", 20.0))
    )
    run = dataclasses.replace(base.run, duration=60.0, warmup=40.0, runs=1, start_jitter=0.0)
    scene = dataclasses.replace(base, name="convergence region", flows=flows, run=run)
    return plots.convergence_regions(scene, [simulation.simulate(scene, "fluid")])


def _evaluation(runs: Runs) -> list[Picture]:
    """The throughputs of Reno and Vegas over the buffer, as in section 3.3.2."""
    scenes = [pair("reno", "vegas", buffer=B) for B in BUFFERS_OF_3_3_2]
    return [
        Picture(
            plots.throughput_over_buffer(
                _answers(scenes, ("minicycle", "rounds")), _measured(scenes, runs)
            ),
            "Throughputs of Reno (first) and Vegas (second), which share a 1.5 Mbit/s link, by its "
            "buffer, DropTail.",
        )
    ]


def _devendictis(runs: Runs) -> list[Picture]:
    """Figure 3, and the windows of Vegas and Reno over time."""
    scenes = [mixed(0.08, B) for B in BUFFERS]
    return [
        Picture(
            plots.throughput_over_buffer(
                _answers(scenes, ("minicycle", "rounds")), _measured(scenes, runs)
            ),
            "Figure 3, the shares of Vegas and Reno by the buffer of their link. We chose an RTT "
            "of 80 ms, since the paper states none. In the mini-cycle model only a flow whose "
            "window grows loses packets at an overflow, as in ns-2.",
        ),
        Picture(
            plots.windows(simulation.simulate(mixed(0.08, 20.0))),
            "The windows over time by the simulator rounds, at a buffer of 20 packets.",
        ),
    ]


def _podlesny(runs: Runs) -> list[Picture]:
    """Experiment A: the shares of NewReno and Vegas over the number of NewReno flows.

    The model ``rate-delay`` evaluates the paper's equations for Rate-Delay services.  They have no
    reverse flows, so it gets the scenarios without these.  With DropTail there is only ``rounds``.
    """
    newreno_flows = (2, 10, 20, 60, 100, 140)
    rate_delay = [dumbbell(n) for n in newreno_flows]
    one_way = [
        dataclasses.replace(s, flows=tuple(f for f in s.flows if f.direction == "forward"))
        for s in rate_delay
    ]
    droptail = [dumbbell(n, kind="droptail") for n in newreno_flows if n <= 60]
    predicted = _answers(one_way, ["rate-delay"]) + _answers([*rate_delay, *droptail], ["rounds"])
    return [
        Picture(
            plots.class_shares(predicted, _measured([*rate_delay, *droptail], runs)),
            "Experiment A at a fifth of the scale: NewReno flows (rate class) beside 20 Vegas "
            "flows (delay class), with Rate-Delay services and with DropTail. The equations are "
            "evaluated without the reverse flows.",
        )
    ]
