"""Makes the page on whether Vegas disfavours long delays, by two papers, ns-2 and Linux's rule.

Tsang and Chang find that it does.  By the theory of Boutremans and Le Boudec it does not.  There
are two connections, a shorter and a longer one: the shorter has the shorter propagation delay.  x2
is the delay of the longer connection's last link, in ms.
"""

import dataclasses

import numpy as np

from paper_checks.findings.page import Page, table
from paper_checks.runs import Runs
from paper_checks.tsang.replay import replay
from paper_checks.tsang.scenes import CAPACITY, X2_IN_MS, base_rtt, two_connections
from paper_checks.tsang.table3 import FROM_30_S, TABLE_3
from vegasmodel.equilibrium import rates
from vegasmodel.plots.style import BLACK, COLORS, DASHES, GREEN, GREY, MARKERS, figure, legend, tidy
from vegasmodel.predictor import predict
from vegasmodel.scenario import Scenario

__all__ = ["page"]

COLUMNS = (
    "print",
    "printed rule, 1 and 3",
    "ns-2, 1 and 3",
    "theory, 1 and 3",
    "ns-2, 2 and 2",
    "theory, 2 and 2",
    "rounds of Linux, 1 and 3",
)
PRINT, RULE, NS2, NS2_EQUAL, LINUX = 0, 1, 2, 4, 6  # indices of COLUMNS
# x2 with which the connections differ: not the last, 1 ms, which is the delay of the shorter one
LONGER_X2 = X2_IN_MS[:-1]
# the 11 of which the paper says that the longer connection gets less: not 5 ms
CASES = tuple(x2 for x2 in LONGER_X2 if x2 >= 10)


def _replayed(x2: int, longer_first: bool = False, known: bool = False) -> float:
    """Rate of the shorter connection over that of the longer one, by the printed rule.

    The printed rule is simulated packet by packet.  ``x2``: delay of the longer connection's last
    link, ms.  ``longer_first``: the first packet at the shared link is the longer connection's,
    else the shorter one's.  ``known``: both connections know their least RTTs, and need not measure
    them.
    """
    shorter, longer = replay(x2, longer_first=longer_first, known=known)
    return shorter.rate(FROM_30_S) / longer.rate(FROM_30_S)


def _backlogs() -> np.ndarray:
    """The backlogs at which the windows stop growing, packets: [``CASES``, connection].

    They are those of the printed rule.  The backlog is W (1 - actual/expected), with the rates of
    Vegas's last decision.  Only whole packets of the window W count.
    """
    last = [[c.rounds[-1] for c in replay(x2)] for x2 in CASES]
    return np.array([[int(r.window) * (1 - r.actual / r.expected) for r in pair] for pair in last])


def _theory(x2: int, scenario: Scenario, runs: Runs) -> float:
    """Rate of the shorter connection over that of the longer one, by theory.

    ``x2`` is the delay of the longer one's last link, ms.  The theory is equation (6) of Boutremans
    and Le Boudec with the threshold (alpha + beta)/2 and the baseRTTs that ns-2 measures in
    ``scenario``.
    """
    base = runs(scenario).base_rtt
    assert base is not None
    over_estimates = np.maximum(base - np.array([base_rtt(1), base_rtt(x2)]), 0.0)
    middle = 0.5 * (scenario.flows[0].alpha + scenario.flows[0].beta)
    first, second = rates([middle, middle], over_estimates, CAPACITY)
    return float(first / second)


def _linux(x2: int) -> float:
    """Rate of the shorter connection over that of the longer one, with Linux's Vegas.

    It is computed by the simulator ``rounds``.  ``x2`` is the delay of the longer one's last link,
    ms.
    """
    scenario = two_connections(x2, warmup=FROM_30_S)
    flows = tuple(dataclasses.replace(flow, variant="linux") for flow in scenario.flows)
    found = predict(dataclasses.replace(scenario, flows=flows), "rounds").throughput
    assert found is not None
    return float(found[0] / found[1])


def _rows(runs: Runs) -> np.ndarray:
    """Rate of the shorter connection over that of the longer one: [``LONGER_X2``, ``COLUMNS``].

    A row is for one x2, the delay of the longer connection's last link in ms.  It has the ratio of
    the paper's table 3 and the ratios that we found.
    """
    rows = []
    for x2 in LONGER_X2:
        # alpha 1, beta 3; averaged from 30 s on, as in table 3
        with_1_3 = two_connections(x2, warmup=FROM_30_S)
        # alpha = beta = 2; averaged from the start on, as in table 4
        with_2_2 = two_connections(x2, alpha=2.0, beta=2.0)
        rates_1_3, rates_2_2 = runs(with_1_3).mean, runs(with_2_2).mean
        rows.append(
            [
                TABLE_3[x2].ratio,
                _replayed(x2),
                rates_1_3[0] / rates_1_3[1],
                _theory(x2, with_1_3, runs),
                rates_2_2[0] / rates_2_2[1],
                _theory(x2, with_2_2, runs),
                _linux(x2),
            ]
        )
    return np.array(rows)


def page(runs: Runs) -> Page:
    """Make the page; raises ``NoRun`` if a stored run is missing.

    Its picture has the rate of the shorter connection over that of the longer one, by the delay of
    the longer connection's last link.
    """
    rows = _rows(runs)
    fig = figure(7.5, 4.4)
    ax = fig.subplots()
    for k, name in enumerate(COLUMNS):
        # there are five dashes; in the second round of them, each curve gets the next dash but one,
        # so that no two curves look alike
        dash = "none" if name.startswith("ns-2") else DASHES[(k + k // 5) % len(DASHES)]
        color = {NS2: BLACK, LINUX: GREEN}.get(k, COLORS[k])
        ax.plot(LONGER_X2, rows[:, k], ls=dash, color=color, marker=MARKERS[k], ms=5, label=name)
    ax.axhline(1.0, color=GREY, lw=1)
    ax.set(
        xlabel="delay of the longer connection's last link (ms)",
        ylabel="rate of the shorter over the longer",
        yscale="log",
        ylim=(0.1, 2.5),
        yticks=(0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0),
    )
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_formatter("")
    tidy(ax)
    legend(fig, ax, columns=3)
    return Page("Does Vegas disfavour long delays?", _text(rows), fig, CAPTION)


CAPTION = "Two Vegas sources; above 1 the one with the longer delay gets less."


def _text(rows: np.ndarray) -> str:
    """The page's text, with its tables in Markdown; ``rows`` come from ``_rows``."""
    cells = [
        [x2, *(f"{value:.2f}" for value in row)] for x2, row in zip(LONGER_X2, rows, strict=True)
    ]
    of_cases = rows[[x2 in CASES for x2 in LONGER_X2]]
    # for each column: in how many of ``CASES`` the longer connection gets less, by more than 1 %
    lose = (of_cases > 1.01).sum(axis=0)
    # for each column: geometric mean, over ``CASES``, of the larger rate over the smaller
    spread = np.exp(np.abs(np.log(of_cases)).mean(axis=0))
    # the count in ``lose`` by the printed rule, if the longer connection's packet comes first
    swapped = sum(_replayed(x2, longer_first=True) > 1.01 for x2 in CASES)
    short, long = _backlogs().T  # of the shorter and of the longer connection
    # In how many of ``CASES`` the longer connection gets even less, by more than 1 %, if both
    # connections know their least RTTs. Here, too, the printed rule is simulated.
    worse = sum(_replayed(x2, known=True) > 1.01 * _replayed(x2) for x2 in CASES)
    return f"""In the paper `tsang` (Tsang and Chang) two Vegas sources with different propagation
delays share a link. The paper concludes from its table 3 that the source with the longer delay gets
less. Equation (6) of the paper `boutremans` (Boutremans and Le Boudec) contradicts this conclusion:
in this equation the propagation delay has no influence on the rates. By the equation a source gets
*more* if it over-estimates its baseRTT, as the source with the longer delay does in most rows of
table 3.

The table below has the ratio of the rate of the source with the shorter delay to that of the other
source. The paths of the two sources first share a link. Then each path has a link of its own, and
only the delays of these two links differ: one is 1 ms, and the other is in the first column, in ms.
In the heads of the columns, "1 and 3" stands for alpha = 1 and beta = 3. The two columns "ns-2"
have our measurements. The other columns are:

- The column "print" is table 3 of `tsang`.

- The column "printed rule" is a packet-by-packet simulation with the window rule that `tsang`
prints in section 2.1.

- The columns "theory" have the ratio by equation (6) of `boutremans`. For the baseRTT of each
source in this equation, we take the baseRTT that the source measures in ns-2. The equation has only
one threshold, for which we take (alpha + beta)/2.

- The column "rounds of Linux" is the simulator `rounds` with the window rule of Linux.

{table(["ms", *COLUMNS], cells)}

In {len(CASES)} rows of the table above, the delay in the first column is 10 ms or more. The next
table counts in how many of these {len(CASES)} cases the source with the longer delay gets less, by
more than 1 %. The last column has the geometric mean, over the {len(CASES)} cases, of the ratio of
the larger throughput to the smaller:

| result of | the longer delay gets less | ratio |
| --- | ---: | ---: |
| the paper's table | {lose[PRINT]} | {spread[PRINT]:.2f} |
| the paper's window rule, simulated | {lose[RULE]} | |
| ns-2, alpha = 1, beta = 3 | {lose[NS2]} | {spread[NS2]:.2f} |
| ns-2, alpha = beta = 2 | {lose[NS2_EQUAL]} | {spread[NS2_EQUAL]:.2f} |
| `rounds`, Linux's Vegas | {lose[LINUX]} | |

**What remains true.** We confirm the numbers of the paper `tsang`, and also its conclusion for
alpha = 1 and beta = 3: the connection with the longer delay gets less. We simulated the window rule
that the paper prints. The two connections start together, so either of them may be the first to
have a packet at the router. We simulated both cases. If the connection with the shorter delay is
first, the connection with the longer delay gets less in {lose[RULE]} of {len(CASES)} cases. If the
connection with the longer delay is first, it gets less, too, in {swapped} of {len(CASES)} cases.

If alpha = beta = 2 or 3, the printed rule gives both connections of `tsang` nearly the same
throughput, as in table 4 of the paper. If alpha = beta = 1, the throughputs differ more in some
cases.

The window rule that the paper `tsang` prints does not round the backlog. ns-2's Vegas rounds the
backlog to whole packets before it compares the backlog with the thresholds. We simulated the
printed rule packet by packet. The simulation reproduces most of the paper's table 3 to the sixth
digit (`vegasmodel paper tsang`). So the simulator of the paper probably did not round.

**Why the connection with the longer delay gets less.** A window changes once per round trip, so the
window of the connection with the shorter RTT grows faster. This window stops growing first, when
its backlog reaches alpha. The window of the connection with the longer RTT still grows until its
own backlog reaches alpha. This growth makes the queue longer. As the queue grows, the backlog of
the connection with the shorter RTT grows, too, and exceeds alpha. So in the end the connection with
the shorter RTT has the larger backlog, and gets more.

In our simulations of the rule that `tsang` prints, the connection with the shorter RTT ends with a
backlog of {short.min():.1f} to {short.max():.1f} packets, and the connection with the longer RTT
with {long.min():.1f} to {long.max():.1f}. With alpha = 1 and beta = 3, every backlog from 1 to 3
packets is a steady state. Equation (6) of `boutremans` cannot show such a difference, because in it
all connections have the same backlog.

In ns-2 2.35 the connection with the longer delay gets less in only {lose[NS2]} of {len(CASES)}
cases, because ns-2 rounds the backlog. The rounding has two effects. First, a window stops growing
at a backlog of alpha - 1/2 instead of alpha. Second, slow start ends at another time than without
rounding, because Vegas compares the rounded backlog with a threshold to end slow start. A window
doubles in slow start, so the last doubling may take the backlog of the connection with the longer
delay from below alpha to above alpha. Then this connection keeps the larger backlog, and need not
get less.

**Which hypothesis is wrong.** `tsang` says that every connection knows its true minimum RTT. This
hypothesis is wrong: the two connections start together, and the first packet of the connection with
the longer delay waits in the queue behind the first packet of the other. So the connection with the
longer delay over-estimates its baseRTT. By equation (6) of `boutremans`, which assumes equal
backlogs, this connection would get more. In fact it gets less, because its backlog is smaller. If
in our simulation of the printed rule both connections know their true minimum RTT, the connection
with the longer delay gets even less in {worse} of {len(CASES)} cases.

**Linux.** Vegas computes its backlog from the window W and the queueing delay RTT - baseRTT. In the
papers the backlog is W (RTT - baseRTT)/RTT. In Linux the backlog is W (RTT - baseRTT)/baseRTT. If a
connection keeps Linux's backlog at alpha, its rate W/RTT is alpha/(RTT - baseRTT) times
baseRTT/RTT. The first factor is the same for both connections, because they share the queue. The
second factor is larger for the connection with the longer delay. So with Linux's Vegas this
connection gets more, which reverses the conclusion of `tsang`.

The numbers for Linux in the tables are predictions of the simulator `rounds`. We have not yet
measured this network with a Linux kernel."""
