"""Rate-Delay services with few NewReno flows, and with flows marked for the wrong queue."""

from __future__ import annotations

import numpy as np

from paper_checks.findings.page import Page, table
from paper_checks.podlesny.changes import HALF, SETTINGS, rates
from paper_checks.podlesny.experiments import BY_NS3, RATIOS, index, loss
from paper_checks.podlesny.isolation import AT_FEW, fairness
from paper_checks.podlesny.router import Compared, N, dumbbell
from paper_checks.runs import Runs
from vegasmodel.plots.style import BLUE, DASHES, GREY, RED, figure, legend, tidy

__all__ = ["page"]

KINDS: tuple[Compared, ...] = ("rd", "red", "droptail")
MIXES = (0.5, 1.0, 2.0, 3.0)  # that ns-3 ran


def _sweep(runs: Runs) -> np.ndarray:
    """[ratio, (ratio, index, its standard error, NewReno's loss, Vegas's loss)]."""
    rows = []
    for ratio in RATIOS:
        scenario = dumbbell(round(N * ratio), N)
        found = index(runs, scenario)
        se = found.std(ddof=1) / np.sqrt(found.size)
        losses = [loss(runs, scenario, law) for law in ("newreno", "vegas")]
        rows.append([ratio, found.mean(), se, *losses])
    return np.array(rows)


def page(runs: Runs) -> Page:
    """The page.  Raises ``NoRun`` if a stored run is missing."""
    rows = _sweep(runs)
    fig = figure(9.0, 3.8)
    left, right = fig.subplots(1, 2)
    left.errorbar(rows[:, 0], rows[:, 1], yerr=2 * rows[:, 2], color=BLUE, marker="o", capsize=3)
    left.axhline(1.0, color=GREY, lw=1, ls=":")
    left.set(ylabel="relative fairness, Vegas over NewReno", ylim=(0, None))
    right.plot(rows[:, 0], rows[:, 3], color=RED, marker="o", label="NewReno")
    right.plot(rows[:, 0], rows[:, 4], color=BLUE, ls=DASHES[1], marker="s", label="Vegas")
    right.set(ylabel="lost packets (percent)", ylim=(0, None))
    for ax in (left, right):
        ax.set(xlabel="NewReno flows per Vegas flow", xscale="log", xticks=RATIOS)
        ax.xaxis.set_major_formatter("{x:g}")
        ax.xaxis.set_minor_formatter("")
    tidy(left, right)
    legend(fig, right)
    return Page("Rate-Delay services at the edges", _text(rows, runs), fig, CAPTION)


WRONG = ["who", "by", "marked right", "marked wrong", "others in that queue"]
CASES = (
    ("one NewReno flow marked as Vegas", (1, 0)),
    ("half of the NewReno flows marked as Vegas", (HALF, 0)),
    ("one Vegas flow marked as NewReno", (0, 1)),
)
CAPTION = (
    "Rate-Delay services with 20 Vegas flows and different numbers of NewReno flows. "
    "Bars: two standard errors."
)


def _text(rows: np.ndarray, runs: Runs) -> str:
    honest = runs.groups(dumbbell()).mean
    marked, single = [], {}
    for who, masked in CASES:
        own, others = (1, 0) if masked[1] else (0, 1)
        for setting in SETTINGS:
            right = rates(dumbbell(), setting, runs).mean(axis=0)
            wrong = rates(dumbbell(masked=masked), setting, runs)
            if masked == (1, 0):
                single[setting] = ", ".join(f"{rate:.0f}" for rate in wrong[:, 2])
            figures = right[own], wrong[:, 2].mean(), wrong[:, others].mean()
            marked.append([who, setting, *(f"{figure:.1f}" for figure in figures)])
    cells = [
        [f"{r[0]:g}", f"{r[1]:.2f} +- {r[2]:.2f}", f"{r[3]:.2f} %", f"{r[4]:.2f} %"] for r in rows
    ]
    fair = rows[np.abs(rows[:, 1] - 1) <= 0.15, 0]
    exact = [
        [f"{ratio:g}", *(f"{fairness(ratio, kind).index[0]:.2f}" for kind in KINDS)]
        for ratio in MIXES
    ]
    few = {(a, b): fairness(0.1, "rd", a, b).index for a, b in AT_FEW}
    at_few = [[f"{a}, {b}", f"{mean:.2f} +- {se:.2f}"] for (a, b), (mean, se) in few.items()]
    both = [dumbbell(round(N * ratio), N) for ratio in BY_NS3["NewReno"]]
    two_way = [
        [f"{ratio:g}", *(f"{index(runs, scenario, exact).mean():.2f}" for exact in (True, False))]
        for ratio, scenario in zip(BY_NS3["NewReno"], both, strict=True)
    ]
    fewest = ", ".join(f"{value:.2f}" for value in index(runs, both[0], exact=True))
    part = 2 * honest[0] / dumbbell().links[0].capacity
    return f"""`podlesny` proposes a router with two queues, Rate-Delay (RD) services: one for flows
that want throughput, and one for flows that want low delay.  It claims that a NewReno flow and a
Vegas flow get the same there for any mix of flows.  It also claims that no flow gains by marking
its packets for the wrong queue.

We ran the experiments of `podlesny` at a fifth of their scale in ns-2 2.35 (mean of 5 runs). ns-2
does not have the paper's router.  Two classes of CBQ (class-based queueing) with weighted round
robin stand in for its queues.

The table has the *relative fairness*, the throughput of a Vegas flow over that of a NewReno flow,
and the loss rates of both.  The first column has the number of NewReno flows per Vegas flow:

{table(["NewReno per Vegas", "relative fairness", "NewReno's loss", "Vegas's loss"], cells)}

**What survives.** The relative fairness is within 0.15 of 1 if there are
{fair.min():g} to {fair.max():g} NewReno flows per Vegas flow.

For 0.1 NewReno flows per Vegas flow `podlesny` also claims a relative fairness of about 1: a Vegas
flow and a NewReno flow get about the same. We find {rows[0, 1]:.2f} with a standard error of
{rows[0, 2]:.2f}, which neither confirms nor refutes the claim. There are only two NewReno flows in
this case, and together they get {part:.0%} of the link. So the relative fairness depends on which
few packets these two flows lose.

**Flows marked for the wrong queue.** A mark in each packet tells the router which queue the packet
belongs to. The next table has the throughput of one flow in pkt/s, if its packets have the right
mark and if they have the mark of the other queue. There are 20 NewReno and 20 Vegas flows, in three
settings:

- In "router, both ways", the router of figure 2 of `podlesny` is simulated in ns-3, with as many
flows in the reverse direction as forward. This is the setting of the paper.

- In "router, one way", the same router has no flows in the reverse direction.

- In "CBQ, both ways", class-based queueing in ns-2 takes the place of the router, with as many
flows in the reverse direction as forward.

{table(WRONG, marked)}

Does a NewReno flow gain if its packets have the mark of Vegas, and so join the queue for low delay?
Section V of `podlesny` says that it "could" gain, but argues that in practice it does not, since
this queue is short and other flows may do the same.

In the setting of `podlesny`, its router with flows in both directions, a NewReno flow that is
marked as Vegas loses. A single such flow gets {single[SETTINGS[0]]} pkt/s in the three runs, less
than a NewReno flow with the right mark gets. If half of the NewReno flows are marked as Vegas, each
of them loses more than a quarter of its throughput.

In two other settings a single NewReno flow that is marked as Vegas gains. The first is the router
without reverse flows: there the Vegas flows leave room in their queue, and the marked NewReno flow
gets {single[SETTINGS[1]]} pkt/s in the three runs. The second is CBQ (class-based queueing). The
router and CBQ both divide the link between the queues by the numbers of their flows. But the router
counts flows of ACKs, too, and CBQ does not. With CBQ each NewReno flow that is marked as Vegas
gains, even if ten of the 20 are.

A Vegas flow that is marked as NewReno loses in all three settings, as `podlesny` says: it starves
in the long queue.

**The paper's router.** The next table has the relative fairness (the throughput of a Vegas flow
over that of a NewReno flow) in ns-3 with flows in one direction only, for the router of the paper's
figure 2 (RD), for RED with ECN and for drop-tail:

{table(["NewReno per Vegas", "RD", "RED/ECN", "DropTail"], exact)}

The next table has the relative fairness (the throughput of a Vegas flow over that of a NewReno
flow) with as many flows in the reverse direction as forward, as in the experiments of `podlesny`,
for the paper's router in ns-3 and for CBQ in ns-2:

{table(["NewReno per Vegas", "router", "CBQ"], two_way)}

With 0.1 NewReno flows per Vegas flow, and as many flows in the reverse direction as forward, the
three runs of the paper's router give a relative fairness of {fewest}. There are only two NewReno
flows, so the runs differ too much for a verdict.

The last table has the relative fairness of the paper's router in ns-3 with 0.1 NewReno flows per
Vegas flow and flows in one direction only: the mean over five seeds, and its standard error
(`docs/ns3.md`). ns-3 rounds Vegas's backlog up, so its alpha = 2 is alpha = 1 in the papers:

{table(["alpha, beta in ns-3", "relative fairness"], at_few)}

If flows go in one direction only, the router of `podlesny` gives a Vegas flow and a NewReno flow
the same throughput to within a tenth, even if there are few NewReno flows."""
