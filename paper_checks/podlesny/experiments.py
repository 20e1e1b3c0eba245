"""Figure 1 and experiments A and B of ``podlesny``, with their loss curves, by ns-2.

The pictures are missing from our text; what it says of them is checked.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np

from paper_checks.checks import Found, Record
from paper_checks.podlesny.router import N, dumbbell
from paper_checks.podlesny.scenes import figure_1
from paper_checks.runs import Floats, Groups, Runs
from paper_checks.spread import averaged
from vegasmodel.scenario import Scenario

ROUTER = (
    "ns-2 2.35 with RD by CBQ and weighted round robin, mean of 5 runs, at a fifth of the scale "
    "(flows, capacity, buffers)."
)
SPREAD = (
    "Tolerance: rounding of the print and two standard errors of the difference of two means of 5 "
    "runs, but at most 10 %."
)
NO_PICTURE = "Its picture is missing from our text."
RTTS = (0.03, 0.1, 0.2)  # s, tried for figure 1, which does not state it
WIRE = 1.04  # bytes of a NewReno packet over those of a Vegas packet: 40 B of headers in ns-2
RATIOS = (0.1, 0.5, 1.0, 3.0, 5.0, 7.0)
BY_NS3 = {"NewReno": (0.5, 1.0, 3.0), "Vegas": (1.0,)}  # of them: a run takes 20 s of CPU time
EXACT = (
    "ns-3 3.37, the router of figure 2 itself, mean of 3 runs, at a fifth of the scale (flows, "
    "capacity, buffers). Vegas's alpha is one more there, which makes ns-3's rule the paper's "
    "(docs/ns3.md)."
)


# --- figure 1 --------------------------------------------------------------------------------


def _share(runs: Runs) -> Found:
    """NewReno's part of the link at the RTT that comes nearest."""
    capacity = 2e6 / 8000
    shares = {rtt: float(runs(figure_1(rtt)).mean[0]) / capacity for rtt in RTTS}
    text = ", ".join(f"{1e3 * r:g} ms: {100 * s:.1f} %" for r, s in shares.items())
    return Found(100 * min(shares.values(), key=lambda s: abs(s - 0.92)), detail=f"By RTT: {text}.")


FIGURE_1 = Record(
    "figure 1, NewReno's share",
    "figure",
    92,
    _share,
    tolerance=1.0,
    note="Percent of 2 Mbit/s beside one Vegas flow; ns-2 2.35, mean of 5 seeds, 5 to 60 s, buffer "
    "62 packets (250 ms). RTT and buffer are not stated: the nearest over RTTs of 30, 100 and 200 "
    f"ms. Tolerance 1: 'approximately'. {NO_PICTURE}",
)

# --- what the records have in common ---------------------------------------------------------


def index(runs: Runs, scenario: Scenario, exact: bool = False) -> Floats:
    """Relative fairness of each run: utilisation by a Vegas flow over that by a NewReno flow.

    Of the lasting flows on the forward way.  ``exact``: by ns-3 and figure 2's own router, where
    packets of both laws have the same size.
    """
    if exact:
        return _index(runs.exact(scenario), scenario)
    return _index(runs.groups(scenario), scenario) / WIRE


def _index(found: Groups, scenario: Scenario) -> Floats:
    rate = {law: np.zeros(len(found.throughput)) for law in ("newreno", "vegas")}
    flows = dict.fromkeys(rate, 0)
    for g, group in enumerate(scenario.flows):
        if group.direction == "forward" and group.arrivals == "once":
            rate[group.law] += group.count * found.throughput[:, g]
            flows[group.law] += group.count
    ratio = rate["vegas"] / flows["vegas"] / (rate["newreno"] / flows["newreno"])
    return np.asarray(ratio)


def loss(runs: Runs, scenario: Scenario, law: str, exact: bool = False) -> float:
    """Loss rate of the lasting flows of a law on the forward way, percent."""
    names = [group.name for group in scenario.flows]
    found = runs.exact(scenario) if exact else runs.groups(scenario)
    return 100 * float(found.loss_rate[names.index(law)])


def curve(
    runs: Runs, axis: Iterable[float], scenarios: Iterable[Scenario], exact: bool = False
) -> str:
    """Index and loss rates over the varied quantity, as text."""
    rows = [
        f"{x:g}: {index(runs, s, exact).mean():.2f}, {loss(runs, s, 'vegas', exact):.2f} %, "
        f"{loss(runs, s, 'newreno', exact):.2f} %"
        for x, s in zip(axis, scenarios, strict=True)
    ]
    return f"Index, Vegas's and NewReno's loss: {'; '.join(rows)}."


def _mean(scenario: Scenario, runs: Runs) -> float:
    return float(index(runs, scenario).mean())


def _exact_mean(scenario: Scenario, runs: Runs) -> Found:
    found, by_cbq = index(runs, scenario, exact=True), index(runs, scenario)
    each = ", ".join(f"{value:.3f}" for value in found)
    return Found(float(found.mean()), detail=f"Runs: {each}; by CBQ in ns-2 {by_cbq.mean():.2f}.")


# --- A and B: numbers of flows ---------------------------------------------------------------


def more_newreno() -> list[Scenario]:
    """Experiment A: 20 Vegas flows."""
    return [dumbbell(round(N * ratio), N) for ratio in RATIOS]


def more_vegas() -> list[Scenario]:
    """Experiment B: 20 NewReno flows."""
    return [dumbbell(N, round(N * ratio)) for ratio in RATIOS]


def _use(runs: Runs) -> Found:
    """Percent of the link that each class uses in (a) of figure 4 at ratio 3."""
    scenario = dumbbell(3 * N, N)
    capacity = scenario.links[0].capacity
    found, by_cbq = (
        100 * np.array([3 * N, N]) * rates[:, :2] / capacity
        for rates in (runs.exact(scenario).throughput, runs.groups(scenario).throughput)
    )
    other = by_cbq.mean(axis=0) * [WIRE, 1.0]
    return averaged(found, [74.0, 24.0], 1.0, f"By CBQ in ns-2 {other[0]:.1f} and {other[1]:.1f}.")


def _straight(runs: Runs) -> Found:
    """Vegas's loss over the number of NewReno flows: R^2 of a straight line."""
    scenarios = more_newreno()
    losses = [loss(runs, s, "vegas") for s in scenarios]
    R2 = float(np.corrcoef(RATIOS, losses)[0, 1] ** 2)
    text = f"R^2 {R2:.3f}. {curve(runs, RATIOS, scenarios)}"
    return Found(bool(R2 > 0.9 and losses[-1] > losses[0]), detail=text)


def _bent(runs: Runs) -> Found:
    """Vegas's loss over the number of Vegas flows: R^2 of a straight line."""
    scenarios = more_vegas()
    losses = [loss(runs, s, "vegas") for s in scenarios]
    R2 = float(np.corrcoef(RATIOS, losses)[0, 1] ** 2)
    text = f"R^2 {R2:.3f}. {curve(runs, RATIOS, scenarios)}"
    return Found(bool(R2 < 0.9 and losses[-1] > losses[0]), detail=text)


def numbers_of_flows() -> list[Record]:
    """Figures 4 and 5."""
    rounded = "'Close to 1' is read as rounding to 1.0."
    in_text = "Printed in IV-A; tolerance as at the other ratios."
    said = {("NewReno", 3.0): 0.97}  # section IV-A, where the text has a figure
    sweeps = (("4a", "NewReno", more_newreno()), ("5a", "Vegas", more_vegas()))
    found = [
        Record(
            f"figure {figure}, index at {varied} ratio {ratio:g}",
            "figure",
            said.get((varied, ratio), 1.0),
            partial(_exact_mean if ratio in BY_NS3[varied] else _mean, scenario),
            tolerance=0.05,
            note=f"{EXACT if ratio in BY_NS3[varied] else ROUTER} "
            f"{rounded if (varied, ratio) not in said else in_text} {NO_PICTURE}",
        )
        for figure, varied, scenarios in sweeps
        for ratio, scenario in zip(RATIOS, scenarios, strict=True)
    ]
    return [
        *found,
        Record(
            "section IV-A, utilisations at ratio 3, by packets",
            "claim",
            [74, 24],
            _use,
            note=f"Percent of the link. {EXACT} {SPREAD.replace('means of 5', 'means of 3')}",
        ),
        Record(
            "figure 4b, Vegas's loss grows linearly with the NewReno flows",
            "figure",
            True,
            _straight,
            note=f"Read as R^2 above 0.9 over the ratio of flows. {ROUTER} {NO_PICTURE}",
        ),
        Record(
            "figure 5b, Vegas's loss grows non-linearly with the Vegas flows",
            "figure",
            True,
            _bent,
            note=f"Read as R^2 below 0.9 over the ratio of flows. {ROUTER} {NO_PICTURE}",
        ),
    ]


RECORDS = (FIGURE_1, *numbers_of_flows())
