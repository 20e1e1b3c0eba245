"""Figure 1 and experiments A and B of Podlesny and Williamson, in ns-2 and ns-3.

Our copy of the paper lacks the pictures; we test what its text says about them.  The code uses
these words and names:

- The index is the paper's "relative fairness": the throughput of a Vegas flow divided by that of a
  NewReno flow.
- ``varied`` names the law (the congestion control) whose number of flows an experiment varies.
  Experiment A varies the number of NewReno flows, and B that of Vegas flows.
- A ratio is the number of flows of the law ``varied``, divided by that of the other law.
- ``with_router`` asks for a run of ns-3, which has the router of the paper's figure 2.  Runs of
  ns-2 have class-based queueing (CBQ) instead.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from paper_checks.checks import Found, Record, open_question
from paper_checks.podlesny.router import FLOWS_PER_CLASS, dumbbell, single
from paper_checks.podlesny.scenes import figure_1
from paper_checks.runs import ROUTER_RUNS, Groups, Runs
from paper_checks.spread import difference_and_error, mean_beside_print, plus_minus
from vegasmodel.metrics import Floats, standard_error
from vegasmodel.scenario import Scenario

# one of these two sentences stands in each note; ``replace(ONCE, ANEW)`` exchanges them
ONCE = "Each flow's RTT is drawn once, for all runs."
ANEW = "The RTTs are drawn anew for each run."
IN_NS2 = (
    "ns-2 2.35 with RD by CBQ and weighted round robin, mean of 5 runs, at a fifth of the scale "
    f"(flows, capacity, buffers). {ONCE}"
)
SPREAD = (
    "Tolerance: rounding of the print and two standard errors of the difference of two means of 5 "
    "runs, but at most 10 %."
)
SPREAD_3 = SPREAD.replace("two means of 5 runs", "our mean of 3 runs and the paper's of 5")
ONLY_CBQ_RAN = (
    "We ran this with class-based queueing (CBQ) in ns-2 only. CBQ gives each class a fixed part "
    "of the link, where the paper's router counts flows; where both have run, indices and losses "
    "by the router, in ns-3, differ from those by CBQ."
)
NO_PICTURE = "Our copy lacks the picture."
RTTS = (0.03, 0.1, 0.2)  # s, that we run for figure 1, which does not state its RTT
# in ns-2: bytes of a NewReno packet over those of a Vegas packet, since ns-2's NewReno adds 40 B of
# headers to 1000 B
SIZE_RATIO = 1.04
RATIOS = (0.1, 0.5, 1.0, 3.0, 5.0, 7.0)  # of the numbers of flows
# Those of RATIOS that ns-3 has run, by the law whose flows vary: a run takes 20 s of CPU time
RATIOS_IN_NS3 = {"NewReno": (0.1, 0.5, 1.0, 3.0), "Vegas": (1.0,)}
IN_NS3 = (
    "ns-3 3.37, the router of figure 2 itself, mean of 3 runs, at a fifth of the scale (flows, "
    f"capacity, buffers). {ONCE} Vegas's alpha is one more there, which makes ns-3's rule the "
    "paper's (docs/ns3.md)."
)


# --- figure 1 --------------------------------------------------------------------------------


def _share_of_bytes(runs: Runs, buffer: float) -> list[float]:
    """NewReno's share of the bytes on the link at each RTT, percent; ``buffer`` is in packets."""
    found = []
    for rtt in RTTS:
        newreno, vegas = (float(rate) for rate in runs(figure_1(rtt, buffer)).mean)
        found.append(100 * SIZE_RATIO * newreno / (SIZE_RATIO * newreno + vegas))
    return found


def _share(runs: Runs) -> Found:
    """NewReno's share of the bytes, percent, at the one of three RTTs where it is nearest to 92.

    92 % is printed, and the paper states neither the RTT nor the buffer.  So the result's detail
    has the shares at all RTTs, those of the payload alone, and those with ns-2's default buffer.
    """
    shares = _share_of_bytes(runs, 62.0)
    rows = {
        "Of the bytes at each RTT": shares,
        "of the payload alone": [100 * float(runs(figure_1(rtt)).mean[0]) / 250.0 for rtt in RTTS],
        OWN_LIMIT: _share_of_bytes(runs, 50.0),
    }
    text = "; ".join(f"{name} {', '.join(f'{s:.1f}' for s in row)} %" for name, row in rows.items())
    near = [sum(abs(share - 92) <= 1 for share in row) for row in (shares, rows[OWN_LIMIT])]
    return Found(
        min(shares, key=lambda s: abs(s - 92)),
        detail=f"{text}.",
        missing="The paper states neither the RTT nor the buffer, and they decide: the share is "
        f"within 1 of the print at {near[1]} of {len(RTTS)} RTTs with a buffer of 50 packets, and "
        f"at {near[0]} with one of 62.",
    )


OWN_LIMIT = "with a buffer of 50 packets, ns-2's default"
FIGURE_1 = Record(
    "figure 1, NewReno's share",
    printed=92,
    compute=_share,
    tolerance=1.0,
    note="Percent of the bytes on the link: the text's 74 and 24 % of IV-A must include headers, "
    "since they add up to nearly 100 %. ns-2 2.35, mean of 5 seeds, 5 to 60 s; the figure has one "
    "run. We chose a buffer of 62 packets, the 250 ms of section IV, and of RTTs of 30, 100 and "
    "200 ms the one that comes nearest to the print. Tolerance: 1, since the print says "
    f"'approximately'. {NO_PICTURE}",
)

# --- what the records have in common ---------------------------------------------------------


def index(runs: Runs, scenario: Scenario, with_router: bool = False) -> Floats:
    """Relative fairness of each run: throughput of a Vegas flow over that of a NewReno flow.

    Only long-lived flows in the forward direction count.  ``with_router``: in ns-3, which has the
    router of figure 2.  There the packets of both laws have the same size.  In ns-2, with
    class-based queueing (CBQ), NewReno's packets are larger.  So there the ratio, which counts
    packets, is divided by ``SIZE_RATIO``.
    """
    if with_router:
        return _index(runs.with_router(scenario), scenario)
    return _index(runs.groups(scenario), scenario) / SIZE_RATIO


def _index(found: Groups, scenario: Scenario) -> Floats:
    """The paper's relative fairness, in each run: rate of a Vegas flow over that of a NewReno flow.

    Each rate is the mean over the law's long-lived flows in the forward direction. (Other groups
    have short flows, which arrive at random.) ``found.throughput`` [run, group] has the mean rate
    of a group's flows, in pkt/s.
    """
    rate = {law: np.zeros(len(found.throughput)) for law in ("newreno", "vegas")}
    flows = dict.fromkeys(rate, 0)
    for g, group in enumerate(scenario.flows):
        if group.direction == "forward" and group.arrivals == "once":
            rate[group.law] += group.count * found.throughput[:, g]
            flows[group.law] += group.count
    ratio = rate["vegas"] / flows["vegas"] / (rate["newreno"] / flows["newreno"])
    return np.asarray(ratio)


def loss(runs: Runs, scenario: Scenario, law: str, with_router: bool = False) -> float:
    """Loss rate of the long-lived forward flows of a law, percent, as a mean over the runs.

    ``with_router``: in ns-3 with the paper's router, else in ns-2 with class-based queueing (CBQ).
    """
    names = [group.name for group in scenario.flows]
    found = runs.with_router(scenario) if with_router else runs.groups(scenario)
    return 100 * float(found.loss_rate[names.index(law)])


def losses(runs: Runs, scenario: Scenario, law: str, with_router: bool = False) -> Floats:
    """Loss rate of the long-lived forward flows of ``law`` in each run, percent.

    A result that is stored for several runs has only the mean of their losses. So there is a stored
    result of its own for each run. ``with_router``: in ns-3 with the paper's router, else in ns-2
    with class-based queueing (CBQ).
    """
    end = scenario.run.seed + (ROUTER_RUNS if with_router else scenario.run.times)  # last seed + 1
    each = (
        scenario.replace({"run.runs": 1, "run.seed": seed}, name=f"{scenario.name}-seed-{seed}")
        for seed in range(scenario.run.seed, end)
    )
    return np.array([loss(runs, one, law, with_router) for one in each])


def curve(
    runs: Runs, axis: Iterable[float], scenarios: Iterable[Scenario], with_router: bool = False
) -> str:
    """A text with the index and the loss rates at each value of ``axis``, the quantity that varies.

    ``scenarios`` has the scenario for each of these values.  The index is the throughput of a Vegas
    flow over that of a NewReno flow.  ``with_router``: in ns-3 with the paper's router, else in
    ns-2 with class-based queueing (CBQ).
    """
    rows = [
        f"{x:g}: {index(runs, s, with_router).mean():.2f}, "
        f"{loss(runs, s, 'vegas', with_router):.2f} %, "
        f"{loss(runs, s, 'newreno', with_router):.2f} %"
        for x, s in zip(axis, scenarios, strict=True)
    ]
    return f"Index, Vegas's and NewReno's loss: {'; '.join(rows)}."


def _index_at_each_ratio(varied: str, scenarios: Sequence[Scenario], runs: Runs) -> Found:
    """The index at each ratio of the numbers of flows, one for each of ``scenarios``.

    ``varied`` names the law whose number of flows varies: "NewReno" or "Vegas".  The index is the
    throughput of a Vegas flow over that of a NewReno flow.  It is that with the paper's router, in
    ns-3, if ns-3 ran all ratios.  Else it is that with class-based queueing (CBQ), in ns-2; a
    difference from the print then shows nothing, since the paper did not use CBQ.
    """
    by_cbq = [index(runs, s) for s in scenarios]
    in_ns3 = [
        s for ratio, s in zip(RATIOS, scenarios, strict=True) if ratio in RATIOS_IN_NS3[varied]
    ]
    by_ns3 = [index(runs, s, with_router=True) for s in in_ns3]
    judged = by_ns3 if router_ran_all(varied) else by_cbq  # the indices that give the verdict
    errors = ", ".join(f"{standard_error(v):.3f}" for v in judged)
    rows = [f"Standard errors {errors}."]
    for name, ratios, values in (
        ("CBQ in ns-2", RATIOS, by_cbq),
        ("figure 2's router in ns-3", RATIOS_IN_NS3[varied], by_ns3),
    ):
        if values is not judged:
            means = ", ".join(map(plus_minus, values))
            rows.append(f"By {name} at {_listed(ratios)}: {means}.")
    return Found(
        [float(v.mean()) for v in judged],
        detail=" ".join(rows),
        missing="" if router_ran_all(varied) else NOT_ALL.format(_listed(RATIOS_IN_NS3[varied])),
    )


NOT_ALL = (
    "With the paper's router we ran only the ratios {}. We ran all ratios with CBQ, but CBQ is not "
    "that router."
)


def router_ran_all(varied: str) -> bool:
    """Whether ns-3, which has the paper's router, ran every ratio of the numbers of flows.

    ``varied`` is the law whose number of flows varies.
    """
    return RATIOS_IN_NS3[varied] == RATIOS


def _listed(ratios: Iterable[float]) -> str:
    """The ratios as text, with commas between them."""
    return ", ".join(f"{ratio:g}" for ratio in ratios)


def _at_three(runs: Runs) -> Found:
    """The index at three times as many NewReno as Vegas flows, with the paper's router.

    The index is the throughput of a Vegas flow over that of a NewReno flow.  The result's detail
    also gives it for class-based queueing (CBQ), by which ns-2 imitates the router.
    """
    scenario = dumbbell(3 * FLOWS_PER_CLASS, FLOWS_PER_CLASS)
    found, by_cbq = index(runs, scenario, with_router=True), index(runs, scenario)
    each = ", ".join(f"{value:.3f}" for value in found)
    full = float(index(runs, full_three())[0])
    text = (
        f"Runs: {each}. By CBQ in ns-2 the index is {by_cbq.mean():.2f}, and {full:.2f} in one run "
        "at full scale, so the scale does not decide."
    )
    return mean_beside_print(found, printed=0.97, unit=0.01, detail=text)


def full_three() -> Scenario:
    """Ratio 3 of experiment A at full scale, one run."""
    return single(dumbbell(300, 100, mbit=100.0))


# --- A and B: numbers of flows ---------------------------------------------------------------


def more_newreno() -> list[Scenario]:
    """The scenarios of experiment A: 20 Vegas flows, and a number of NewReno flows that varies."""
    return [dumbbell(round(FLOWS_PER_CLASS * ratio), FLOWS_PER_CLASS) for ratio in RATIOS]


def more_vegas() -> list[Scenario]:
    """The scenarios of experiment B: 20 NewReno flows, and a number of Vegas flows that varies."""
    return [dumbbell(FLOWS_PER_CLASS, round(FLOWS_PER_CLASS * ratio)) for ratio in RATIOS]


def _use_of_link(runs: Runs) -> Found:
    """Percent of the link that NewReno and Vegas flows use in figure 4 (a).

    There are 3 NewReno flows for each Vegas flow.  The value is that with the paper's router, in
    ns-3.  The result's detail has those with CBQ, in ns-2, at the scale of our runs and at the
    paper's.
    """

    def percent(scenario: Scenario, found: Groups) -> Floats:
        """The percentage of the link that all flows of each law use, [run, NewReno and Vegas]."""
        # the first two groups of flows are NewReno and Vegas; later ones are reverse flows
        flows = [group.count for group in scenario.flows[:2]]
        return 100 * found.throughput[:, :2] * flows / scenario.links[0].capacity

    scenario, full = dumbbell(3 * FLOWS_PER_CLASS, FLOWS_PER_CLASS), full_three()
    found = percent(scenario, runs.with_router(scenario))
    # ns-2's NewReno packets are larger by SIZE_RATIO, so they take more of the link
    cbq, cbq_full = (
        percent(each, runs.groups(each)).mean(axis=0) * [SIZE_RATIO, 1.0]
        for each in (scenario, full)
    )
    text = (
        f"By CBQ in ns-2 {cbq[0]:.1f} and {cbq[1]:.1f}, in one run at full scale "
        f"{cbq_full[0]:.1f} and {cbq_full[1]:.1f}."
    )
    return mean_beside_print(found, printed=[74.0, 24.0], unit=1.0, detail=text)


CHANCE = 0.01  # a p-value below this one means that the losses are not on a line
BY_LINE = (
    "Read as: the loss grows by more than two standard errors from the first ratio to the last. It "
    "grows non-linearly if an F test for lack of fit of a straight line has a p-value below 1 %, "
    "otherwise linearly. The verdict is that of figure 2's router if ns-3 ran three ratios or "
    "more. If a part of the ratios lies on a line, this does not show that all do."
)


def _losses_as_text(ratios: Sequence[float], values: Floats) -> str:
    """Mean loss at each ratio with its standard error; ``values`` [ratios, runs]."""
    return ", ".join(f"{x:g}: {plus_minus(row)}" for x, row in zip(ratios, values, strict=True))


def _p_value(ratios: Sequence[float], values: Floats) -> float:
    """p-value of the F test for lack of fit of a straight line; ``values`` [ratios, runs].

    A small p-value means that the means over the runs are further from the line than chance
    explains.  The test compares the squared distances of these means from the line with those of
    the runs from their means.
    """
    from scipy.stats import f  # a second to load

    points, runs = values.shape
    means = values.mean(axis=1)
    line = np.polyval(np.polyfit(ratios, means, 1), ratios)  # the line that fits the means best
    # degrees of freedom: the line takes 2 from the means, and each mean takes 1 from its runs
    of_means, of_runs = points - 2, points * (runs - 1)
    # mean squares: of the distances of the means from the line, and of the runs from their means
    from_line = runs * np.sum((means - line) ** 2) / of_means
    within = np.sum((values - means[:, None]) ** 2) / of_runs
    return float(f.sf(from_line / within, of_means, of_runs))


class _Tested(NamedTuple):
    """Vegas's losses that are tested for growth along a straight line."""

    ratios: Sequence[float]  # of the numbers of flows of both laws
    percent: Floats  # [ratios, runs] Vegas's loss
    with_router: bool  # whether they are those of the paper's router, in ns-3; else of CBQ
    text: str  # all losses, for the note


def _tested(varied: str, scenarios: Sequence[Scenario], runs: Runs) -> _Tested:
    """The losses with the paper's router, if ns-3 ran at least three ratios; else those with CBQ.

    CBQ is class-based queueing, which stands in for the router in ns-2.  With fewer than three
    points there is no test for a line.  ``scenarios`` has one for each of ``RATIOS``, the ratios of
    the number of flows of the law ``varied`` to that of the other law.
    """
    by_ratio = dict(zip(RATIOS, scenarios, strict=True))
    in_ns3 = RATIOS_IN_NS3[varied]  # the ratios that ns-3 ran
    by_ns3 = np.array(
        [losses(runs, by_ratio[ratio], "vegas", with_router=True) for ratio in in_ns3]
    )
    means = ", ".join(f"{x:g}: {loss(runs, s, 'vegas'):.2f}" for x, s in by_ratio.items())
    by_router = _losses_as_text(in_ns3, by_ns3)
    text = f"Percent lost at each ratio, with standard errors: router {by_router}"
    if len(in_ns3) >= 3:
        return _Tested(in_ns3, by_ns3, with_router=True, text=f"{text}; CBQ {means}")
    by_cbq = np.array([losses(runs, scenario, "vegas") for scenario in scenarios])
    text = f"{text}; CBQ {_losses_as_text(RATIOS, by_cbq)}"
    return _Tested(RATIOS, by_cbq, with_router=False, text=text)


def _line(varied: str, scenarios: Sequence[Scenario], runs: Runs, *, straight: bool) -> Found:
    """Whether Vegas's loss grows with the ratio, along a straight line if ``straight``, else not.

    The ratio is the number of flows of the law ``varied`` over that of the other law.  The result
    is open in two cases.  Either only the losses with class-based queueing (CBQ) could be tested
    (``_tested``).  Or those with the paper's router are on a line, but ns-3 ran only a part of the
    ratios.
    """
    tested = _tested(varied, scenarios, runs)
    p_value = _p_value(tested.ratios, tested.percent)
    on_a_line = p_value >= CHANCE
    growth, error = difference_and_error(tested.percent[-1], tested.percent[0])
    grows = growth > 2 * error
    # R^2, the part of the variation of the means that a line explains
    R2 = float(np.corrcoef(tested.ratios, tested.percent.mean(axis=1))[0, 1] ** 2)
    text = f"{tested.text}. Straight line: p-value {p_value:.2g}, R^2 {R2:.3f}"
    if not tested.with_router:
        shape = "on a line" if on_a_line else "but not on a line"
        by_cbq = f"By CBQ the loss {'grows' if grows else 'does not grow'}, {shape}."
        return open_question(f"{ONLY_CBQ_RAN} {by_cbq} {text}")
    if straight and grows and on_a_line and tested.ratios != RATIOS:
        line = (
            "At the ratios that we ran with the router its losses are on a line; those of CBQ are "
            "not."
        )
        return open_question(f"{line} {text}")
    return Found(grows and on_a_line == straight, detail=f"{text}.")


def numbers_of_flows() -> list[Record]:
    """The records of experiments A and B, figures 4 and 5.

    In A the number of NewReno flows varies, and in B that of Vegas flows. The ratio is the number
    that varies over the other one. The index is a Vegas flow's throughput over a NewReno flow's; 1
    is fair. ns-3 runs the paper's router itself, and ns-2 class-based queueing (CBQ) in its place.
    In the notes, names in capitals such as ``BY_LINE`` stand for texts that several records share.
    """
    sweeps = (("4a", "NewReno", more_newreno()), ("5a", "Vegas", more_vegas()))
    found = [
        Record(
            f"figure {figure}, index close to 1 at every {varied} ratio",
            printed=[1.0] * len(RATIOS),
            compute=partial(_index_at_each_ratio, varied, scenarios),
            tolerance=0.05,
            prints=("close to 1",),
            note=f"At ratios of {_listed(RATIOS)}. "
            f"{IN_NS3 if router_ran_all(varied) else IN_NS2} "
            f"'Close to 1' is read as rounding to 1.0. {NO_PICTURE}",
        )
        for figure, varied, scenarios in sweeps
    ]
    return [
        *found,
        Record(
            "section IV-A, index at ratio 3, by packets",
            printed=0.97,
            compute=_at_three,
            note=f"{IN_NS3} {SPREAD_3}",
        ),
        Record(
            "section IV-A, utilisations at ratio 3, by packets",
            printed=[74, 24],
            compute=_use_of_link,
            note="Percent of the link, without the ACKs of the reverse flows, which take up to 4 "
            "%. If all these ACKs were NewReno's, its value would differ from the print, too. "
            f"{IN_NS3} {SPREAD_3}",
        ),
        Record(
            "figure 4b, Vegas's loss grows linearly with the NewReno flows",
            compute=partial(_line, "NewReno", more_newreno(), straight=True),
            note=f"{BY_LINE} {IN_NS3.replace(ONCE, ANEW)} The router ran the four ratios up to 3. "
            f"{NO_PICTURE}",
        ),
        Record(
            "figure 5b, Vegas's loss grows non-linearly with the Vegas flows",
            compute=partial(_line, "Vegas", more_vegas(), straight=False),
            note=f"{BY_LINE} {IN_NS2.replace(ONCE, ANEW)} Where both have run, at ratio 1, CBQ "
            f"loses a tenth of what the router does. {NO_PICTURE}",
        ),
    ]


RECORDS = (FIGURE_1, *numbers_of_flows())
