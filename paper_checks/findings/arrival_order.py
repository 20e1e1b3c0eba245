"""Makes the page on who came first: a source that joins later gets more, by theory and by ns-2.

The scenarios are those of Boutremans and Le Boudec, in which Vegas sources join one by one.  A
ratio is the rate of the last source over that of the first.  ``alpha`` is Vegas's threshold in
packets, and beta is equal to it.
"""

import numpy as np

from paper_checks.boutremans.figures import INTERVALS, by_rule, by_six, in_ns2, mean_and_error
from paper_checks.boutremans.rule import SEEDS, unhurried
from paper_checks.boutremans.scenes import CAPACITY, joining, one_by_one
from paper_checks.boutremans.simulations import ALPHAS, D, base_rtts
from paper_checks.boutremans.theory import (
    advantage,
    delay,
    harmonic,
    printed_rates,
    rates,
    recursion,
)
from paper_checks.findings.page import Page, table
from paper_checks.runs import Runs
from vegasmodel.metrics import Floats
from vegasmodel.plots.style import COLORS, DASHES, MARKERS, figure, legend, tidy
from vegasmodel.predictor import predict
from vegasmodel.scenario import Scenario

__all__ = ["page"]

N = 20  # sources
# forms of the window rule: by how many packets a window changes, and whether the backlog is rounded
RULES = ((1.0, False), (0.5, False), (1.0, True), (0.5, True))
NAMES = ("ns-2", "rounds", "exact recursion", "Bonald's form")


def _rates(alpha: float, runs: Runs) -> list[Floats]:
    """The rates of 20 sources in order of arrival, pkt/s, by ns-2, ``rounds`` and two theories.

    All sources have the threshold ``alpha`` = beta, in packets. The theories are the exact
    recursion, which solves the paper's equation (6) at each arrival, and Bonald's closed form.
    """
    scenario = joining(N, alpha, alpha)
    by_rounds = predict(scenario, "rounds").throughput
    assert by_rounds is not None
    return [
        runs(scenario).mean,
        np.asarray(by_rounds),
        rates(recursion(N, alpha), alpha),
        printed_rates(N),
    ]


def _over_estimates(alpha: float, runs: Runs) -> list[Floats]:
    """Over-estimates of baseRTT in order of arrival, s, by ns-2, ``rounds`` and two theories.

    All sources have the threshold ``alpha`` = beta, in packets. The theories are the exact
    recursion, which solves the paper's equation (6) at each arrival, and Bonald's closed form.
    """
    scenario = joining(N, alpha, alpha)
    by_rounds = predict(scenario, "rounds").base_rtt
    assert by_rounds is not None
    printed = alpha / CAPACITY * np.array([k * harmonic(k) for k in range(N)])
    return [base_rtts(runs(scenario)) - D, np.asarray(by_rounds) - D, recursion(N, alpha), printed]


def _ratio_by_rounds(scenario: Scenario) -> Floats:
    """The last source's rate over the first one's, in each run of ``rounds``."""
    return advantage(np.asarray(predict(scenario, "rounds").extra["throughput_runs"]))


def _slower(runs: Runs) -> str:
    """The table of the last source's rate over the first's, if sources arrive at longer intervals.

    The rates are those in ns-2 and in ``rounds``.
    """
    head = ["alpha = beta", *(f"ns-2, every {every:g} s" for every in INTERVALS)]
    head.append(f"rounds, every {INTERVALS[-1]:g} s")
    rows = []
    for alpha in ALPHAS:
        by_model = _ratio_by_rounds(one_by_one(N, alpha, INTERVALS[-1]))
        cells = map(mean_and_error, [*in_ns2(alpha, runs), by_model])
        rows.append([f"{alpha:g}", *cells])
    return table(head, rows)


def _by_the_rule() -> str:
    """The table of the last source's rate over the first's, by the paper's window rule (1).

    The rule is simulated in four forms (``RULES``): a window changes by one packet or by half a
    packet at a time, and the backlog is rounded to whole packets or not.  So much time lies between
    two arrivals (``unhurried``) that each source finds a queue at rest when it starts.
    """
    head = ["alpha = beta", "an arrival every", "one packet", "half a packet"]
    head += ["one packet, rounded", "half a packet, rounded"]  # in the order of ``RULES``
    rows = []
    for alpha in ALPHAS:
        cells = [mean_and_error(by_rule(alpha, step, rounded)) for step, rounded in RULES]
        rows.append([f"{alpha:g}", f"{unhurried(alpha):g} s", *cells])
    return table(head, rows)


def page(runs: Runs) -> Page:
    """Make the page; raises ``NoRun`` if a stored run is missing.

    Its picture has the rates of 20 sources in order of arrival, and their over-estimates of
    baseRTT, with alpha = beta = 3.
    """
    by_alpha = {alpha: (_rates(alpha, runs), _over_estimates(alpha, runs)) for alpha in ALPHAS}
    fig = figure(9.0, 4.0)
    left, right = fig.subplots(1, 2)
    index = np.arange(1, N + 1)
    # left the rates, right the over-estimates
    for ax, curves in zip((left, right), by_alpha[3.0], strict=True):
        for k, (name, values) in enumerate(zip(NAMES, curves, strict=True)):
            measured = k == 0  # ns-2, the first of ``NAMES``, as black points without a line
            dash = "none" if measured else DASHES[k - 1]
            color = "black" if measured else COLORS[k - 1]
            ax.plot(index, values, ls=dash, color=color, marker=MARKERS[k], ms=4, label=name)
        ax.set(xlabel="order of arrival", ylim=(0, None), xticks=(1, 5, 10, 15, 20))
    left.set_ylabel("throughput (pkt/s)")
    right.set_ylabel("baseRTT - RTT of the empty network (s)")
    tidy(left, right)
    legend(fig, left, right)
    return Page("Who came first", _text(by_alpha, runs), fig, CAPTION)


CAPTION = f"{N} Vegas sources that join a 1 Mbit/s link every 2 s, alpha = beta = 3."


def _text(by_alpha: dict[float, tuple[list[Floats], list[Floats]]], runs: Runs) -> str:
    """The page's text, with its tables in Markdown.

    ``by_alpha`` has for each alpha the sources' rates and their over-estimates of baseRTT. Each of
    the two is a list: by ns-2, by ``rounds`` and by two theories (``NAMES``).
    """

    def errors_of(results: list[Floats]) -> list[float]:
        """The NRMSE of ``rounds`` and of both theories against ns-2, the first of ``results``."""
        by_ns2 = results[0]
        return [
            float(np.sqrt(np.mean((other - by_ns2) ** 2)) / by_ns2.mean()) for other in results[1:]
        ]

    rows, errors = [], []  # of the page's first two tables
    # by alpha: a list of pairs for ``rounds`` and for both theories; a pair has the error of the
    # throughputs and that of the over-estimates
    error_pairs = {}
    for alpha, (throughput, over_estimates) in by_alpha.items():
        scenario = joining(N, alpha, alpha)
        by_run = advantage(runs(scenario).throughput), _ratio_by_rounds(scenario)
        theory = [f"{advantage(rates):.1f}" for rates in throughput[2:]]
        rows.append([f"{alpha:g}", *map(mean_and_error, by_run), *theory])
        of_both = errors_of(throughput), errors_of(over_estimates)
        error_pairs[alpha] = list(zip(*of_both, strict=True))
        errors.append([f"{alpha:g}", *(f"{a:.0%}, {b:.0%}" for a, b in error_pairs[alpha])])
    by_rounds, exact, bonald = error_pairs[3.0]  # at alpha = 3, as in the picture
    # of Bonald's rates of 2 and of 20 sources: the sum, as a part of the capacity
    sums = [printed_rates(n).sum() / CAPACITY for n in (2, N)]
    # by alpha: last source's rate over the first one's in ns-2, with the slowest arrivals, for
    # which ``in_ns2`` has the last entry
    slowest = {alpha: in_ns2(alpha, runs)[-1].mean() for alpha in ALPHAS}
    delta = delay(recursion(N))  # s, queueing delay of all sources together, at alpha 1
    first = float(rates(recursion(N))[0] * (D + delta))  # window of the first source, packets
    return f"""A Vegas source that starts when there is a queue counts the queueing delay as part of
its propagation delay: it over-estimates its baseRTT. So it computes a smaller backlog than it
really has, keeps a larger window, and gets more than the sources that started before it. The paper
`boutremans` (Boutremans and Le Boudec) says how much more: the last of 20 sources gets "10 times
more than the earlier connections".

In the next table, 20 Vegas sources start one after another, one every 2 s. The table has the ratio
of the last source's rate to the first one's. The columns "ns-2" and "rounds" have the mean over
5 runs of ns-2 2.35 and of the simulator `rounds`, with its standard error (±). The rates are
averaged from 90 to 120 s of each run. The other columns have the results of two theories:

- The column "exact recursion" has the solution of equation (6) of `boutremans`, which says that the
rates add up to the capacity. This equation is solved once for each source that starts, because the
queueing delay that the earlier sources cause is the over-estimate of the next one.

- The column "Bonald's form" is a closed form by Bonald (1998), which `boutremans` prints for the
same rates.

{table(["alpha = beta", *NAMES], rows)}

The next table has the errors of `rounds` and of the two theories against ns-2.  In each cell the
first number is the error of the sources' throughputs, and the second is that of their
over-estimates of baseRTT.  An error is the root mean square error divided by ns-2's mean:

{table(["alpha = beta", *NAMES[1:]], errors)}

**What remains true.** The paper `boutremans` is right about the mechanism: sources that start late
over-estimate their baseRTT and get more. The paper calls the baseRTTs that follow from Bonald's
form "pessimistic", and this is right, too: they are longer than in ns-2 (`vegasmodel paper
boutremans` shows this for the paper's figure 3).

But Bonald's form, the formula for the rates that `boutremans` prints, is wrong: its rates add up to
{sums[0]:.3f} of the capacity for two sources, and to {sums[1]:.2f} of it for 20. The exact
recursion computes the rates source after source by equation (6), and its rates add up to the
capacity. But in the exact recursion, too, the last source gets more than in ns-2. So the wrong sum
of Bonald's form is not the reason why the theories give the last source too much.

How large are the errors against ns-2 at alpha = 3? For the over-estimates of baseRTT, the exact
recursion has an error of {exact[1]:.0%}, Bonald's form of {bonald[1]:.0%}, and the simulator
`rounds` of {by_rounds[1]:.0%}. For the throughputs, the exact recursion has an error of
{exact[0]:.0%}, Bonald's form of {bonald[0]:.0%}, and `rounds` of {by_rounds[0]:.0%}.

**Which hypothesis is wrong.** Both theories of `boutremans`, the exact recursion and Bonald's form,
assume that the queue is in equilibrium when the next source starts. If a source starts every 2 s,
as in the paper, this assumption does not hold, because a window grows by only one packet per round
trip. With alpha = 5, for example, the queue is still growing towards its equilibrium when the next
source starts 2 s later. So the next source finds a shorter queue than in theory.

How much of the theories' error does this assumption cause? In the next table a source starts every
{INTERVALS[0]:g}, {INTERVALS[1]:g} or {INTERVALS[2]:g} s instead of every 2 s, so the queue has more
time to settle. The table has the ratio of the last source's rate to the first one's, as the mean
over {one_by_one(N, 1.0, INTERVALS[0]).run.times} runs with its standard error. The rates are
averaged over 60 s:

{_slower(runs)}

By the exact recursion, the last source's rate divided by the first one's is {by_six(1.0):.1f} for
every alpha. With alpha = 3 and 5 the ratio in ns-2 rises as the arrivals become slower, to
{slowest[3.0]:.1f} and {slowest[5.0]:.1f}. So with these two alphas the assumption of an equilibrium
causes most of the error at an arrival every 2 s. But with alpha = 3 the ratio does not stop at that
of the exact recursion: it rises above it. With alpha = 1 the ratio does not rise by more than
chance. So with alpha = 1 the error must have another cause.

The theories also assume that each source keeps a backlog of exactly alpha packets. A window is a
whole number of packets, so its backlog is in general not exactly alpha. The windows are small if
alpha is small: with alpha = 1, the first of the {N} sources has a window of {first:.1f} packets by
the exact recursion. Besides, ns-2's Vegas rounds the backlog, so its window stays constant at any
backlog that is less than half a packet from alpha.

The next table tests the assumption that each source keeps a backlog of exactly alpha packets. It
has the ratio of the last source's rate to the first one's. We computed this ratio by the window
rule that `boutremans` prints, its equation (1), without a simulation of packets
(`paper_checks/boutremans/rule.py`). Each source starts when the queue has reached its equilibrium,
which takes longer for a larger alpha. By the printed rule a window changes by one packet per round
trip; we also tried steps of half a packet. In the last two columns the backlog is rounded as in
ns-2. Each number is the mean over {SEEDS} runs, which differ in the start times, with its standard
error:

{_by_the_rule()}

With steps of half a packet and without rounding, the ratio is near that of the exact recursion for
each alpha. With steps of one packet, or with rounding, it is lower, and most of all with alpha = 1.
So with alpha = 1 the exact recursion is wrong because a source cannot keep a backlog of exactly
alpha packets. We do not know why the ratio in ns-2 with alpha = 3 rises above that of the exact
recursion.

**For users.** Vegas sources that start late get more because they over-estimate their baseRTT. If
all sources know their true baseRTT, those that start late do not get more (`vegasmodel paper
boutremans` shows this for the paper's figure 7). If the sources measure their baseRTT and start
soon after one another, a larger alpha reduces the advantage of starting late. If each source starts
when the queue has settled, a larger alpha does not reduce this advantage: with an arrival every
{INTERVALS[-1]:g} s the ratio in ns-2 is larger with alpha = 3 or 5 than with alpha = 1. A larger
alpha also makes the queueing delay longer, in proportion to alpha."""
