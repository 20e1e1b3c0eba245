"""Who came first: the arrival order of ``boutremans`` by theory, ns-2 and ``rounds``."""

from __future__ import annotations

import dataclasses

import numpy as np

from paper_checks.boutremans.scenes import CAPACITY, joining
from paper_checks.boutremans.simulations import ALPHAS, D, base_rtts
from paper_checks.boutremans.theory import harmonic, printed_rates, rates, recursion
from paper_checks.findings.page import Page, table
from paper_checks.runs import Floats, Runs
from vegasmodel.plots.style import COLORS, DASHES, MARKERS, figure, legend, tidy
from vegasmodel.predictor import predict
from vegasmodel.scenario import Staggered

__all__ = ["page"]

N = 20
SLOWLY = 20.0  # s
NAMES = ("ns-2", "rounds", "exact recursion", "Bonald's form")


def _rates(alpha: float, runs: Runs) -> list[Floats]:
    """Rates by each of ``NAMES``, in order of arrival, pkt/s."""
    scenario = joining(N, alpha, alpha)
    played = predict(scenario, "rounds").throughput
    assert played is not None
    return [
        runs(scenario).mean,
        np.asarray(played),
        rates(recursion(N, alpha), alpha),
        printed_rates(N),
    ]


def _over(alpha: float, runs: Runs) -> list[Floats]:
    """Over-estimates of baseRTT by each of ``NAMES``, in order of arrival, s."""
    scenario = joining(N, alpha, alpha)
    played = predict(scenario, "rounds").base_rtt
    assert played is not None
    printed = alpha / CAPACITY * np.array([k * harmonic(k) for k in range(N)])
    return [base_rtts(runs(scenario)) - D, np.asarray(played) - D, recursion(N, alpha), printed]


def _slowly(alpha: float) -> Floats:
    """The rates by ``rounds`` if the queue settles before the next source joins, pkt/s."""
    scenario = joining(N, alpha, alpha)
    flow = dataclasses.replace(scenario.flows[0], start=Staggered(0.0, SLOWLY))
    end = N * SLOWLY
    run = dataclasses.replace(scenario.run, runs=1, warmup=end, duration=end + 30.0)
    found = predict(dataclasses.replace(scenario, flows=(flow,), run=run), "rounds").throughput
    assert found is not None
    return np.asarray(found)


def page(runs: Runs) -> Page:
    """The page.  Raises ``NoRun`` if a stored run is missing."""
    by_alpha = {alpha: (_rates(alpha, runs), _over(alpha, runs)) for alpha in ALPHAS}
    fig = figure(9.0, 4.0)
    left, right = fig.subplots(1, 2)
    index = np.arange(1, N + 1)
    for ax, curves in zip((left, right), by_alpha[3.0], strict=True):
        for k, (name, values) in enumerate(zip(NAMES, curves, strict=True)):
            dash = "none" if k == 0 else DASHES[k - 1]
            color = "black" if k == 0 else COLORS[k - 1]
            ax.plot(index, values, ls=dash, color=color, marker=MARKERS[k], ms=4, label=name)
        ax.set(xlabel="order of arrival", ylim=(0, None), xticks=(1, 5, 10, 15, 20))
    left.set_ylabel("throughput (pkt/s)")
    right.set_ylabel("baseRTT - RTT of the empty network (s)")
    tidy(left, right)
    legend(fig, left, right)
    return Page("Who came first", _text(by_alpha), fig, CAPTION)


CAPTION = f"{N} Vegas sources that join a 1 Mbit/s link every 2 s, alpha = beta = 3."


def _text(by_alpha: dict[float, tuple[list[Floats], list[Floats]]]) -> str:
    rows, errors, pairs = [], [], {}
    for alpha, (throughput, over) in by_alpha.items():
        ratios = [f"{r[-1] / r[0]:.1f}" for r in [*throughput, _slowly(alpha)]]
        rows.append([f"{alpha:g}", *ratios])
        measured = throughput[0].mean()
        miss = [float(np.sqrt(np.mean((r - throughput[0]) ** 2)) / measured) for r in throughput]
        late = [float(np.sqrt(np.mean((x - over[0]) ** 2)) / over[0].mean()) for x in over]
        pairs[alpha] = list(zip(miss[1:], late[1:], strict=True))
        errors.append([f"{alpha:g}", *(f"{a:.0%}, {b:.0%}" for a, b in pairs[alpha])])
    played, exact, bonald = pairs[3.0]
    sums = [printed_rates(n).sum() / CAPACITY for n in (2, N)]
    return f"""A Vegas source that starts when there is a queue counts the queueing delay as part of
its propagation delay: it over-estimates its baseRTT. So the source gets more than the sources that
started before it. The paper `boutremans` (Boutremans and Le Boudec) says how much more: the last of
20 sources gets "10 times more than the earlier connections".

In the next table, 20 Vegas sources start one after another, one every 2 s. The table has the ratio
of the last source's rate to the first one's. The column "ns-2" has the mean over 5 runs of ns-2
2.35, with rates averaged from 90 to 120 s of each run. The column "rounds" has the result of the
simulator `rounds` for the same network. The other columns have the results of two theories, and of
`rounds` with slower arrivals:

- The column "exact recursion" is a theory. It computes the over-estimate of baseRTT of each source
from the sources that started before it, by equation (6) of `boutremans`.

- The column "Bonald's form" is the closed form that `boutremans` prints for the same rates.

- The column "rounds, slowly" is the simulator `rounds` with one arrival every {SLOWLY:g} s.

{table(["alpha = beta", *NAMES, "rounds, slowly"], rows)}

The next table has the errors of `rounds` and of the two theories against ns-2.  In each cell the
first number is the error of the sources' throughputs, and the second is that of their
over-estimates of baseRTT.  An error is the root mean square error divided by ns-2's mean:

{table(["alpha = beta", *NAMES[1:]], errors)}

**What survives.** The paper `boutremans` is right about the mechanism: sources that start late
over-estimate their baseRTT and get more. The paper calls its own theory "pessimistic", and this is
right, too: by the theory the rates are less fair than in ns-2, since the last source gets more.

But Bonald's form, the formula for the rates that `boutremans` prints, is wrong: its rates add up to
{sums[0]:.3f} of the capacity for two sources, and to {sums[1]:.2f} of it for 20. The exact
recursion computes the rates source after source by equation (6), and its rates add up to the
capacity. But in the exact recursion, too, the last source gets more than in ns-2. So the wrong sum
of Bonald's form is not the reason why the last source gets too much in theory.

How large are the errors against ns-2 at alpha = 3? For the over-estimates of baseRTT, the exact
recursion has an error of {exact[1]:.0%}, Bonald's form of {bonald[1]:.0%}, and the simulator
`rounds` of {played[1]:.0%}. For the throughputs, the exact recursion has an error of
{exact[0]:.0%}, Bonald's form of {bonald[0]:.0%}, and `rounds` of {played[0]:.0%}.

**Which hypothesis is wrong.** Both theories of `boutremans`, the exact recursion and Bonald's form,
assume that the queue is in equilibrium when the next source starts. This assumption causes most of
their error against ns-2. The assumption does not hold, because a window grows by only one packet
per round trip. With alpha = 5, for example, the queue is still growing towards its equilibrium when
the next source starts 2 s later. So the next source finds a shorter queue than in theory.

In both theories, the exact recursion and Bonald's form, the ratio of the last source's rate to the
first one's does not depend on alpha. In ns-2 this ratio depends on alpha, because the queue needs
more time to settle if alpha is larger. In the last column of the first table, one source arrives
every {SLOWLY:g} s instead of every 2 s, so the queue has more time to settle. The ratio by the
simulator `rounds` is then nearer to that of the exact recursion.

**For users.** Vegas sources that start late get more because they over-estimate their baseRTT. If
all sources know their true baseRTT, those that start late do not get more (`vegasmodel paper
boutremans` shows this for the paper's figure 7). If the sources measure their baseRTT, a larger
alpha reduces the advantage of starting late, but also makes the queueing delay longer, in
proportion to alpha."""
