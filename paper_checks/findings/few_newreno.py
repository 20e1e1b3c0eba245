"""Makes the page on Rate-Delay services with few NewReno flows, and with wrongly marked flows.

A mark in each packet tells the router which of its two queues the packet belongs to.  The router is
that of Podlesny and Williamson, which ns-3 runs.  ns-2 lacks this router, so class-based queueing
(CBQ) takes its place there.  Relative fairness, or the index, is a Vegas flow's throughput over a
NewReno flow's.
"""

from typing import NamedTuple

from paper_checks.findings.page import Page, table
from paper_checks.podlesny import isolation
from paper_checks.podlesny.changes import (
    HALF_OF_NEWRENO,
    NEWRENO,
    SETTINGS,
    VEGAS,
    WRONGLY_MARKED,
    rates,
)
from paper_checks.podlesny.experiments import RATIOS, RATIOS_IN_NS3, index, loss
from paper_checks.podlesny.isolation import AT_FEW, fairness
from paper_checks.podlesny.router import FLOWS_PER_CLASS, Compared, dumbbell
from paper_checks.runs import Runs
from vegasmodel.metrics import standard_error
from vegasmodel.plots.style import BLUE, DASHES, GREY, RED, figure, legend, tidy

__all__ = ["page"]

KINDS: tuple[Compared, ...] = ("rd", "red", "droptail")


class Point(NamedTuple):
    """Results for one ratio of the numbers of NewReno and Vegas flows, in ns-2.

    ns-2 runs class-based queueing (CBQ) in the place of the paper's router.
    """

    ratio: float  # NewReno flows per Vegas flow
    fairness: float  # a Vegas flow's throughput over a NewReno flow's, mean over the runs
    error: float  # standard error of ``fairness``
    newreno_loss: float  # percent
    vegas_loss: float  # percent


def _points(runs: Runs) -> list[Point]:
    """The results for each ratio of the numbers of flows, the least ratio first."""
    points = []
    for ratio in RATIOS:
        scenario = dumbbell(round(FLOWS_PER_CLASS * ratio), FLOWS_PER_CLASS)
        found = index(runs, scenario)
        losses = [loss(runs, scenario, law) for law in ("newreno", "vegas")]
        points.append(Point(ratio, float(found.mean()), float(standard_error(found)), *losses))
    return points


def page(runs: Runs) -> Page:
    """Make the page; raises ``NoRun`` if a stored run is missing.

    Its picture has the relative fairness and the losses of both laws in ns-2, by the ratio of the
    numbers of flows.
    """
    points = _points(runs)
    ratios = [point.ratio for point in points]
    errors = [2 * point.error for point in points]
    fig = figure(9.0, 3.8)
    left, right = fig.subplots(1, 2)
    left.errorbar(ratios, [p.fairness for p in points], errors, color=BLUE, marker="o", capsize=3)
    left.axhline(1.0, color=GREY, lw=1, ls=":")
    left.set(ylabel="relative fairness, Vegas over NewReno", ylim=(0, None))
    right.plot(ratios, [p.newreno_loss for p in points], color=RED, marker="o", label="NewReno")
    right.plot(
        ratios, [p.vegas_loss for p in points], color=BLUE, ls=DASHES[1], marker="s", label="Vegas"
    )
    right.set(ylabel="lost packets (percent)", ylim=(0, None))
    for ax in (left, right):
        ax.set(xlabel="NewReno flows per Vegas flow", xscale="log", xticks=RATIOS)
        ax.xaxis.set_major_formatter("{x:g}")
        ax.xaxis.set_minor_formatter("")
    tidy(left, right)
    legend(fig, right)
    return Page(
        "Rate-Delay services with few or wrongly marked flows", _text(points, runs), fig, CAPTION
    )


WRONG_MARKS = ["who", "by", "marked right", "marked wrong", "others in that queue"]  # columns
CASES = (  # numbers of NewReno and of Vegas flows that are marked wrong
    ("one NewReno flow marked as Vegas", (1, 0)),
    ("half of the NewReno flows marked as Vegas", (HALF_OF_NEWRENO, 0)),
    ("one Vegas flow marked as NewReno", (0, 1)),
)
CAPTION = (
    "Rate-Delay services with 20 Vegas flows and different numbers of NewReno flows. "
    "Bars: two standard errors."
)


def _by_cbq(points: list[Point]) -> str:
    """The table of relative fairness and loss rates in ns-2, by the ratio of numbers of flows.

    Relative fairness is the throughput of a Vegas flow over that of a NewReno flow.
    """
    cells = [
        [
            f"{p.ratio:g}",
            f"{p.fairness:.2f} +- {p.error:.2f}",
            f"{p.newreno_loss:.2f} %",
            f"{p.vegas_loss:.2f} %",
        ]
        for p in points
    ]
    return table(
        ["NewReno per Vegas", "relative fairness", "NewReno's loss", "Vegas's loss"], cells
    )


def _marked(runs: Runs) -> str:
    """The table of throughputs of flows with right and with wrong marks, in pkt/s per flow.

    A flow's mark tells the router which queue the flow joins: that for NewReno or that for Vegas.
    A wrongly marked flow joins the queue of the other law.  The three columns of throughputs have:

    - a flow of the same law as the wrongly marked ones, if all marks are right,
    - a wrongly marked flow,
    - beside it, a rightly marked flow in the queue that the wrongly marked one has joined.
    """
    rows = []
    # ``wrongly_marked``: the numbers of NewReno and of Vegas flows with the wrong mark
    for who, wrongly_marked in CASES:
        # the law of the wrongly marked flows, and the law whose mark they have
        own, other = (VEGAS, NEWRENO) if wrongly_marked[VEGAS] else (NEWRENO, VEGAS)
        for setting in SETTINGS:
            all_right = rates(dumbbell(), setting, runs).mean(axis=0)
            some_wrong = rates(dumbbell(masked=wrongly_marked), setting, runs).mean(axis=0)
            cells = all_right[own], some_wrong[WRONGLY_MARKED], some_wrong[other]
            rows.append([who, setting, *(f"{rate:.1f}" for rate in cells)])
    return table(WRONG_MARKS, rows)


def _single(setting: str, runs: Runs) -> str:
    """The throughputs of one NewReno flow with Vegas's mark in each run, pkt/s, as text.

    ``setting`` says which router or stand-in, and whether there are reverse flows.
    """
    marked_as_vegas = rates(dumbbell(masked=(1, 0)), setting, runs)[:, WRONGLY_MARKED]
    return ", ".join(f"{rate:.0f}" for rate in marked_as_vegas)


def _one_way() -> str:
    """The table of relative fairness by the queue in ns-3, with flows in one direction.

    Relative fairness is the throughput of a Vegas flow over that of a NewReno flow.
    """
    rows = [
        [f"{ratio:g}", *(f"{fairness(ratio, kind).index[0]:.2f}" for kind in KINDS)]
        for ratio in isolation.RATIOS
    ]
    return table(["NewReno per Vegas", "RD", "RED/ECN", "DropTail"], rows)


def _both_ways(runs: Runs) -> str:
    """The table of relative fairness by the paper's router and by its stand-in in ns-2, CBQ.

    Relative fairness is the throughput of a Vegas flow over that of a NewReno flow.  Flows run in
    both directions.
    """
    rows = []
    for ratio in RATIOS_IN_NS3["NewReno"]:
        scenario = dumbbell(round(FLOWS_PER_CLASS * ratio), FLOWS_PER_CLASS)
        found = (index(runs, scenario, with_router).mean() for with_router in (True, False))
        rows.append([f"{ratio:g}", *(f"{value:.2f}" for value in found)])
    return table(["NewReno per Vegas", "router", "CBQ"], rows)


def _at_few() -> str:
    """The table of relative fairness with 0.1 NewReno flows per Vegas flow, by alpha and beta.

    Relative fairness is the throughput of a Vegas flow over that of a NewReno flow.
    """
    few = {(a, b): fairness(0.1, "rd", a, b).index for a, b in AT_FEW}
    rows = [[f"{a}, {b}", f"{mean:.2f} +- {se:.2f}"] for (a, b), (mean, se) in few.items()]
    return table(["alpha, beta in ns-3", "relative fairness"], rows)


def _text(points: list[Point], runs: Runs) -> str:
    """The page's text, with its tables in Markdown; ``points`` come from ``_points``."""
    # NewReno flows per Vegas flow with which a Vegas and a NewReno flow get about the same
    fair = [p.ratio for p in points if abs(p.fairness - 1) <= 0.15]
    fewest_flows = points[0]
    # throughputs of one NewReno flow with Vegas's mark in each run, as texts
    router_both_ways, router_one_way = (_single(setting, runs) for setting in SETTINGS[:2])
    # relative fairness with the fewest NewReno flows, in each run with the paper's router
    few = dumbbell(round(FLOWS_PER_CLASS * RATIOS_IN_NS3["NewReno"][0]), FLOWS_PER_CLASS)
    fewest = ", ".join(f"{value:.2f}" for value in index(runs, few, with_router=True))
    return f"""The paper `podlesny` (Podlesny and Williamson) proposes Rate-Delay (RD) services. A
router has two queues: one for flows that want throughput, and one for flows that want low delay.
The paper makes two claims. First, a NewReno flow in one queue and a Vegas flow in the other get the
same throughput, whatever the numbers of flows. Second, no flow gains by marking its packets for the
wrong queue.

We ran the experiments of the paper `podlesny` in ns-2 2.35 (mean of 5 runs). The numbers of flows,
the capacity and the buffers are a fifth of the paper's. ns-2 does not have the paper's router with
its two queues. In its place we use class-based queueing (CBQ) with weighted round robin, which has
a class for each of the two queues.

The table has the *relative fairness*, which is the throughput of a Vegas flow divided by that of a
NewReno flow, and the loss rates of both.  The first column has the number of NewReno flows per
Vegas flow:

{_by_cbq(points)}

**What remains true.** The claim of equal throughputs is right to within 0.15 (the relative fairness
is between 0.85 and 1.15) if there are {min(fair):g} to {max(fair):g} NewReno flows per Vegas flow.

For 0.1 NewReno flows per Vegas flow, the paper `podlesny` also claims a relative fairness of about
1: a Vegas flow and a NewReno flow get about the same. We find {fewest_flows.fairness:.2f} with a
standard error of {fewest_flows.error:.2f}. This result neither confirms nor refutes the claim. With
0.1 NewReno flows per Vegas flow there are only two NewReno flows. Their throughput depends on a few
losses, so the relative fairness differs much between runs.

**Flows marked for the wrong queue.** The router of the paper `podlesny` has one queue for flows
that want throughput (NewReno), and one for flows that want low delay (Vegas). A mark in each packet
tells the router which queue the packet belongs to. We simulated 20 NewReno and 20 Vegas flows,
first with the right marks, and then with a wrong mark for some flows, which therefore join the
other queue.

The next table has the throughput of one flow in pkt/s, as the mean over flows of the same kind. The
first column names the flows that get a wrong mark. The column "marked right" has the throughput of
one of them if all marks are right, and "marked wrong" its throughput with the wrong mark. The
column "others in that queue" has, in the same runs, the throughput of a flow with the right mark in
the queue that the wrongly marked flows have joined. The column "by" names one of three settings:

- Setting "router, both ways": the router of figure 2 of the paper `podlesny`, simulated in ns-3. As
many flows run in the reverse direction as forward. This is the setting of most experiments of the
paper.

- Setting "router, one way": the same router in ns-3, without flows in the reverse direction.

- Setting "CBQ, both ways": class-based queueing (CBQ) in ns-2 instead of the router. As many flows
run in the reverse direction as forward.

{_marked(runs)}

Does a NewReno flow gain if it marks its packets as Vegas packets? Its packets then join the queue
for low delay. Section V of the paper `podlesny` says that the flow "could" gain throughput. But the
section argues that in practice the flow does not gain, because the queue for low delay is short,
and because other NewReno flows may join this queue, too. The section does not say whether flows run
in the reverse direction.

In the setting of most experiments of the paper `podlesny`, a NewReno flow that marks its packets as
Vegas packets gets less throughput. This setting has the paper's router, and flows in both
directions. A single NewReno flow with Vegas's mark gets {router_both_ways} pkt/s in three runs of
ns-3, less than with the right mark. If half of the NewReno flows have the wrong mark, each of them
loses more than a quarter of its throughput.

In two other settings a single NewReno flow gains if it marks its packets as Vegas packets, and so
joins the Vegas flows in their queue:

- The first setting is the router of `podlesny` without flows in the reverse direction, as in the
paper's experiment with sudden changes of the traffic (section IV-G). The Vegas flows do not fill
their queue, so the NewReno flow finds room there. It gets {router_one_way} pkt/s in three runs of
ns-3.

- The second setting is class-based queueing (CBQ), with flows in both directions. With CBQ each
NewReno flow with the wrong mark gains, even if ten of the 20 NewReno flows have it.

With flows in both directions, why does a NewReno flow with the wrong mark gain with class-based
queueing (CBQ), but not with the router of `podlesny`? With CBQ as with the router, a queue's part
of the link grows with the number of its flows. But CBQ and the router count these flows
differently. For CBQ our script counts only the flows that send data through the queue. The router
counts all flows whose packets it sees. The ACKs of a reverse flow pass through a forward queue, and
the router counts them as one more flow there. As many flows run in the reverse direction as
forward, so the router counts twice as many flows in each queue as our script does. A NewReno flow
that joins the queue for low delay thus enlarges this queue's part of the link by only half as much
as with CBQ.

If a NewReno flow joins the queue for low delay, its throughput there has two sources. One is the
growth of this queue's part of the link, the other is what the Vegas flows in the queue lose. With
CBQ the growth alone is about as much as the flow had in the queue for throughput, so the flow gets
more than it had. With the router of `podlesny` the growth is only half of that. What the Vegas
flows lose is less than the missing half, so the flow gets less than it had.

A Vegas flow that is marked as NewReno gets less in all three settings than with the right mark, as
`podlesny` says: it starves in the long queue.

**The paper's router.** The next table has the relative fairness in ns-3: the throughput of a Vegas
flow over that of a NewReno flow. All flows run in one direction. The columns are for the router of
the paper's figure 2 (RD), for RED with ECN and for drop-tail:

{_one_way()}

The next table has the relative fairness: the throughput of a Vegas flow over that of a NewReno
flow. It compares the router of the paper `podlesny` in ns-3 with class-based queueing (CBQ) in
ns-2. As many flows run in the reverse direction as forward, as in most experiments of the paper:

{_both_ways(runs)}

The first row of this table, with 0.1 NewReno flows per Vegas flow, has only two NewReno flows. With
the router of `podlesny`, the relative fairness in three runs of ns-3 is {fewest}. These values
differ too much to say whether the router is fair with so few NewReno flows.

The last table has the relative fairness of the router of `podlesny` in ns-3, for 0.1 NewReno flows
per Vegas flow and flows in one direction only. An entry is the mean over runs with five seeds, with
its standard error. ns-3 rounds Vegas's backlog up, and the papers do not round it. So alpha = 2 in
ns-3 is the same rule as alpha = 1 in the papers (`docs/ns3.md`):

{_at_few()}

If flows go in one direction only, the router of `podlesny` gives a Vegas flow and a NewReno flow
the same throughput to within a tenth, even if there are few NewReno flows."""
