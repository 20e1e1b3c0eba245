"""Makes the page on which conclusions of the papers survive if senders wait at random.

In the papers senders do not wait, so phase effects may decide a result: the same source loses a
packet each time.  A sender that waits delays each packet by a random time, which prevents this.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from paper_checks.boutremans.scenes import joining
from paper_checks.checks import rises
from paper_checks.devendictis.scenes import with_limit as mixed
from paper_checks.evaluation.figures import BUFFERS_OF_3_3_2
from paper_checks.evaluation.scenes import pair, trio
from paper_checks.evaluation.table_3 import delays
from paper_checks.findings.page import Page, table
from paper_checks.podlesny.scenes import figure_1
from paper_checks.runs import Runs
from paper_checks.spread import SEEDS
from paper_checks.tsang.scenes import FROM_10_MS, X2_IN_MS, two_connections
from vegasmodel.metrics import Floats, jain
from vegasmodel.plots.style import BLACK, BLUE, DASHES, GREY, figure, legend, tidy
from vegasmodel.predictor import predict
from vegasmodel.scenario import Scenario

__all__ = ["CONCLUSIONS", "page", "waiting"]

ROUNDS_RUNS = 20  # of `rounds`: with fewer, chance decides some of the verdicts
Rates = Sequence[Floats]  # of each scenario, [flows] pkt/s


@dataclass(frozen=True)
class Conclusion:
    """What a paper concludes from ``scenes``, and the numbers that show it.

    ``numbers`` computes these numbers from the rates in each scenario, ``holds`` says whether they
    support the conclusion, and ``printed`` is the paper's own number as text.
    """

    paper: str
    says: str
    printed: str
    scenes: tuple[Scenario, ...]
    numbers: Callable[[Rates], Sequence[float]]
    holds: Callable[[Sequence[float]], bool]  # of the numbers


def waiting(scenario: Scenario, runs: int = SEEDS) -> Scenario:
    """The scenario with ``runs`` runs and waits of up to a packet's time at the slowest link."""
    packet = 1 / min(link.capacity for link in scenario.links)
    changes = {"flow.send_jitter": packet, "run.runs": runs}
    return scenario.replace(changes, name=f"{scenario.name}-waiting")


# --- the numbers that show a conclusion ------------------------------------------------------


def _first_over_second(rates: Rates) -> list[float]:
    """The first source's rate over the second's in each scenario."""
    return [float(r[0] / r[1]) for r in rates]


def _sack_over_reno(rates: Rates) -> list[float]:
    """SACK's ratio of the first source's rate to the second's, divided by that of Reno.

    The scenarios alternate: two Reno sources, then two SACK sources with the same delays.
    """
    ratios = _first_over_second(rates)
    return [sack / reno for reno, sack in zip(ratios[::2], ratios[1::2], strict=True)]


def _last_over_first(rates: Rates) -> list[float]:
    """The last source's rate over the first's in each scenario."""
    return [float(r[-1] / r[0]) for r in rates]


def _halves(rates: Rates) -> list[float]:
    """Mean rate of the earlier half of the sources over that of the later half."""
    return [float(r[: r.size // 2].mean() / r[r.size // 2 :].mean()) for r in rates]


def _share(rates: Rates) -> list[float]:
    """The first source's share of the total throughput in each scenario, percent."""
    return [100 * float(r[0] / r.sum()) for r in rates]


def _longer_loses(rates: Rates) -> list[float]:
    """In how many scenarios the second source gets over 1 % less than the first."""
    return [float(sum(r[0] > 1.01 * r[1] for r in rates))]


def _least_index(rates: Rates) -> list[float]:
    """The least of Jain's indices over the scenarios."""
    return [min(jain(r) for r in rates)]


def _all_above(limit: float) -> Callable[[Sequence[float]], bool]:
    """A function that says whether all numbers exceed ``limit``."""
    return lambda x: min(x) > limit


X = (1, 13, 22, 58, 208)  # ms, delays of the second source's last link in table 3 of ``evaluation``


def _pairs(law: str) -> tuple[Scenario, ...]:
    """Two sources of ``law``, for each delay of the second source's last link (``X``)."""
    return tuple(delays(law, x * 1e-3) for x in X)


def _buffers(law: str) -> tuple[Scenario, ...]:
    """Two sources of ``law``, with buffers of 10 and of 50 packets.

    The last link of the second source has a delay X of 58 ms.
    """
    starts = (0.0, 0.5)
    return tuple(pair(law, law, X=58e-3, buffer=B, starts=starts, warmup=0.0) for B in (10.0, 50.0))


CONCLUSIONS = (
    *(
        conclusion
        for law, near, far in (
            ("Reno", "1, 1.71", "2.2, 12.42, 46.62"),
            ("SACK", "1, 1.77", "4.31, 30.69, 70.3"),
        )
        for conclusion in (
            Conclusion(
                "evaluation",
                f"two {law}: with X = 22, 58, 208 ms the longer gets clearly less (first over "
                "second, above 1.5)",
                printed=far,
                scenes=_pairs(law.lower())[2:],
                numbers=_first_over_second,
                holds=_all_above(1.5),
            ),
            Conclusion(
                "evaluation",
                f"two {law}: the longer the RTT, the smaller the share, already at X = 1 and 13 ms",
                printed=f"{near}, {far}",
                scenes=_pairs(law.lower()),
                numbers=_first_over_second,
                holds=rises,
            ),
        )
    ),
    Conclusion(
        "evaluation",
        "at X = 58 and 208 ms SACK is biased more than Reno (SACK's first over second, divided by "
        "Reno's)",
        printed="2.47, 1.51",
        scenes=tuple(delays(law, x * 1e-3) for x in X[3:] for law in ("reno", "sack")),
        numbers=_sack_over_reno,
        holds=lambda x: min(x) > 1,
    ),
    Conclusion(
        "evaluation",
        "two Vegas: no bias against the longer up to X = 58 ms (first over second, under 1.5)",
        printed="1, 1.17, 1.18, 1.03",
        scenes=_pairs("vegas")[:4],
        numbers=_first_over_second,
        holds=lambda x: max(x) < 1.5,
    ),
    *(
        Conclusion(
            "evaluation",
            f"{law} at DropTail: a buffer of 50 is fairer than one of 10 (first over second at "
            "each buffer, X = 58 ms)",
            printed="falls to close to 1",
            scenes=_buffers(law.lower()),
            numbers=_first_over_second,
            holds=lambda x: x[1] < x[0],
        )
        for law in ("Reno", "SACK")
    ),
    Conclusion(
        "evaluation",
        "Vegas gets less than Reno at a buffer of 10 (Reno over Vegas)",
        printed="2.04",
        scenes=(pair("reno", "vegas", warmup=14.0),),
        numbers=_first_over_second,
        holds=lambda x: x[0] > 1,
    ),
    Conclusion(
        "evaluation",
        "Vegas outperforms Reno at a buffer of 4, and gets less at 50 (Reno over Vegas at 4, 7, "
        "10, 15, 50)",
        printed="1 at about 8",
        scenes=tuple(pair("reno", "vegas", buffer=B) for B in BUFFERS_OF_3_3_2),
        numbers=_first_over_second,
        holds=lambda x: x[0] < 1 < x[-1],
    ),
    Conclusion(
        "evaluation",
        "alpha 3, beta 6 is not biased at a buffer of 15 (Reno over Vegas)",
        printed="1",
        scenes=(pair("reno", "vegas", buffer=15.0, thresholds=(3.0, 6.0)),),
        numbers=_first_over_second,
        holds=lambda x: 0.9 <= x[0] <= 1.1,
    ),
    *(
        Conclusion(
            "evaluation",
            f"of Reno, SACK and Vegas, Vegas gets {most} at a buffer of {B:g} (Vegas over the "
            "mean of the other two)",
            printed=printed,
            scenes=(trio(B),),
            numbers=lambda rates: [float(2 * r[2] / (r[0] + r[1])) for r in rates],
            holds=holds,
        )
        for B, most, printed, holds in (
            (15.0, "most", "above 1", lambda x: x[0] > 1),
            (30.0, "least", "below 1", lambda x: x[0] < 1),
        )
    ),
    Conclusion(
        "tsang",
        "alpha 1, beta 3: of two Vegas connections, the one with the longer delay gets less (in "
        "how many of 11 cases)",
        printed="11",
        scenes=tuple(two_connections(x2) for x2 in FROM_10_MS),
        numbers=_longer_loses,
        holds=lambda x: x[0] == 11,
    ),
    Conclusion(
        "tsang",
        "alpha = beta = 3 is fair (least fairness index over the 13 delays)",
        printed="0.999",
        scenes=tuple(two_connections(x2, alpha=3.0, beta=3.0) for x2 in X2_IN_MS),
        numbers=_least_index,
        holds=lambda x: x[0] > 0.9,
    ),
    Conclusion(
        "boutremans",
        "late connections gain where alpha = beta = 3 (last over first of 20)",
        printed="up to 5",
        scenes=(joining(n=20, alpha=3.0, beta=3.0),),
        numbers=_last_over_first,
        holds=lambda x: x[0] > 1.5,
    ),
    Conclusion(
        "boutremans",
        "early connections gain where baseRTTs are true, alpha 1, beta 3 (first five over last "
        "five)",
        printed="above 1",
        scenes=(joining(n=10, alpha=1.0, beta=3.0, known=True),),
        numbers=_halves,
        holds=lambda x: x[0] > 1,
    ),
    Conclusion(
        "devendictis",
        "Vegas outperforms Reno at a buffer of 5 and falls behind at 20 (Vegas over Reno, T 80 ms)",
        printed="2.58 at 5, 0.76 at 10",
        scenes=tuple(mixed(0.08, B) for B in (5.0, 10.0, 20.0)),
        numbers=_first_over_second,
        holds=lambda x: x[0] > 1 > x[2],
    ),
    Conclusion(
        "podlesny",
        "without Rate-Delay services NewReno takes the link (NewReno's share in percent, RTT 100 "
        "ms)",
        printed="92",
        scenes=(figure_1(0.1),),
        numbers=_share,
        holds=lambda x: x[0] > 75,
    ),
)


# --- the answers -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Answer:
    """A conclusion's numbers: ns-2 without waits and with waits, and ``rounds`` with waits."""

    conclusion: Conclusion
    no_waits: Sequence[float]  # ns-2, senders do not wait
    waits: Sequence[float]  # ns-2, senders wait, median over the runs
    seeds: int  # in how many of ns-2's ``SEEDS`` runs with waits the conclusion holds
    rounds: Sequence[float]  # the simulator ``rounds``, senders wait

    @property
    def holds_without_waits(self) -> bool:
        """Whether the conclusion holds in ns-2 if senders do not wait."""
        return self.conclusion.holds(self.no_waits)

    @property
    def verdict(self) -> str:
        """Whether the conclusion survives: it holds in ns-2 and in ``rounds`` if senders wait."""
        by_ns2, by_rounds = self.seeds > SEEDS / 2, self.conclusion.holds(self.rounds)
        if by_ns2 and by_rounds:
            return "yes"
        found = "by ns-2 alone" if by_ns2 else "by rounds alone" if by_rounds else "no"
        return found if self.holds_without_waits else f"{found}; not without waits either"


def _answer(conclusion: Conclusion, runs: Runs) -> Answer:
    """The numbers of ``conclusion``, from stored runs of ns-2 and from ``rounds``."""
    scenes = [waiting(scene) for scene in conclusion.scenes]
    measured = [runs(scene).throughput for scene in scenes]  # [seeds, flows] of each scenario
    by_seed = [conclusion.numbers([rates[k] for rates in measured]) for k in range(SEEDS)]
    return Answer(
        conclusion,
        no_waits=conclusion.numbers([runs(scene).mean for scene in conclusion.scenes]),
        waits=np.median(by_seed, axis=0).tolist(),
        seeds=sum(conclusion.holds(x) for x in by_seed),
        rounds=conclusion.numbers([_rounds(scene) for scene in scenes]),
    )


@cache
def _rounds(scenario: Scenario) -> Floats:
    """The throughputs by ``rounds``, as means over ``ROUNDS_RUNS`` runs, pkt/s."""
    rates = predict(scenario.replace({"run.runs": ROUNDS_RUNS}), "rounds").throughput
    assert rates is not None
    return np.asarray(rates)


def _number(value: float) -> str:
    """A number of the table as text; large ones without decimals."""
    return f"{value:.0f}" if value == int(value) or abs(value) >= 20 else f"{value:.2f}"


def _cells(answer: Answer) -> list[str]:
    """The row of the table, with the columns of ``HEAD``."""
    lists = (answer.no_waits, answer.waits, answer.rounds)
    no_waits, waits, rounds = (", ".join(map(_number, x)) for x in lists)
    made = answer.conclusion
    return [
        f"`{made.paper}`: {made.says}", made.printed, no_waits, waits, f"{answer.seeds} of {SEEDS}",
        rounds, answer.verdict,
    ]  # fmt: skip


HEAD = (
    "conclusion",
    "printed",
    "ns-2, nobody waits",
    "ns-2, waits",
    "runs in which it holds",
    "rounds, waits",
    "survives",
)


def page(runs: Runs) -> Page:
    """Make the page; raises ``NoRun`` if a stored run is missing.

    Its picture has table 3 of ``evaluation``, for Reno and for SACK: the ratio of the rates of two
    sources, if senders wait and if they do not.
    """
    answers = [_answer(conclusion, runs) for conclusion in CONCLUSIONS]
    fig = figure(9.0, 3.9)
    for ax, law in zip(fig.subplots(1, 2), ("Reno", "SACK"), strict=True):
        [bias] = [a for a in answers if a.conclusion.says.startswith(f"two {law}: the longer the")]
        printed = [float(number) for number in bias.conclusion.printed.split(", ")]
        curves = (
            ("print", printed, GREY, "-", "o"),
            ("ns-2, nobody waits", bias.no_waits, BLACK, "none", "s"),
            ("ns-2, waits", bias.waits, BLUE, "none", "^"),
            ("rounds, waits", bias.rounds, BLUE, DASHES[1], "v"),
        )
        for name, values, color, dash, marker in curves:
            ax.plot(X, values, ls=dash, color=color, marker=marker, ms=6, label=name)
        ax.axhline(1.0, color=GREY, lw=1)
        ax.set(title=f"two {law}", xlabel="X (ms)", xscale="log", yscale="log")
        ax.set(ylabel="first over second", xticks=X, yticks=(0.5, 1, 2, 5, 10, 20, 50))
        ax.xaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_major_formatter("{x:g}")
        ax.xaxis.set_minor_formatter("")
        ax.yaxis.set_minor_formatter("")
    tidy(*fig.axes)
    legend(fig, *fig.axes)
    return Page("What survives senders that wait at random", _text(answers), fig, CAPTION)


CAPTION = "Table 3 of evaluation: two sources of one law, the second behind a link of X ms."


def _text(answers: Sequence[Answer]) -> str:
    """The page's text, with its tables in Markdown; ``answers`` has one for each conclusion."""
    # conclusions that hold in ns-2 if senders do not wait: all; those that hold with waits, too;
    # those that do not. And conclusions that do not hold even without waits
    without_waits = [a for a in answers if a.holds_without_waits]
    surviving = [a for a in without_waits if a.verdict == "yes"]
    lost = [a for a in without_waits if a.verdict == "no"]
    never = [a for a in answers if not a.holds_without_waits]

    def one(start: str) -> Answer:
        """The answer for the conclusion whose words begin with ``start``."""
        return next(a for a in answers if a.conclusion.says.startswith(start))

    reno, sack = (one(f"two {law}: the longer the") for law in ("Reno", "SACK"))
    # rows of a table: by X in ms, first over second for Reno and SACK, without and with waits
    ratios = [
        [x, *(f"{numbers[k]:.1f}" for a in (reno, sack) for numbers in (a.no_waits, a.waits))]
        for k, x in enumerate(X)
        if k  # not the first X, where both round trips are equal
    ]
    head = ["X, ms", "Reno, no waits", "Reno, waits", "SACK, no waits", "SACK, waits"]
    buffers, vegas = one("Vegas outperforms Reno at a buffer of 4"), one("two Vegas")
    return f"""Loss-based sources at a drop-tail queue show phase effects: a source whose packets
always arrive just after a departure finds a free place in the queue, and the other sources lose
packets. This pattern can last for minutes (Floyd and Jacobson, "On traffic phase effects in
packet-switched gateways", 1992). Real hosts send after small random waits, which break the pattern.
The senders in the five papers that this project checks do not wait.

This page asks which conclusions of the papers remain true if senders wait for a random time. When
the window of a sender allows it to send, the sender first waits for a random time. The wait is
drawn uniformly, from 0 to one packet's transmission time at the slowest link (`send_jitter`), as
Floyd and Jacobson recommend. Everything else is as in each paper.

Each row of the table is a conclusion of a paper. The words in parentheses say what the numbers in
the row are. For example, "first over second" is the first flow's throughput divided by the
second's. In rows that name a delay X, the second of two flows also crosses a link with this delay,
so it has the longer round trip. "The longer" in a row means this flow. The rows begin with the
short names of the papers (`docs/paper-checks.md` has their titles).

The column "printed" has the numbers that the papers print. The next columns have our results: by
ns-2 2.35 with senders that do not wait, by ns-2 with senders that wait (median of {SEEDS} runs),
and by the simulator `rounds` with senders that wait (mean of {ROUNDS_RUNS} runs).

A conclusion *survives* if, with senders that wait, it holds in at least {SEEDS // 2 + 1} of the
{SEEDS} runs of ns-2, and for the mean of the runs of `rounds`:

{table(HEAD, [_cells(a) for a in answers])}

**Which conclusions survive.** If senders do not wait, {len(without_waits)} of the {len(answers)}
conclusions hold in ns-2. Of these {len(without_waits)} conclusions, {len(surviving)} survive.

A conclusion may survive random waits of the senders although its numbers change. For example, the
paper `evaluation` concludes that Vegas gets more than Reno at a buffer of 4 packets, and less at a
buffer of 50. Both statements are true in ns-2 with and without waits. But the numbers change: at a
buffer of 7 packets, for example, Reno's throughput divided by Vegas's is {buffers.no_waits[1]:.2f}
without waits, and {buffers.waits[1]:.2f} with waits.

Another conclusion of the paper `evaluation` survives random waits of the senders: if two Vegas
flows share a link, the flow with the longer round trip does not get clearly less. If the
link that only the second flow crosses has a delay of 1 ms, this flow even gets more in ns-2,
although its round trip is longer: the first flow's throughput divided by the second's is
{vegas.no_waits[0]:.2f} without waits, and {vegas.waits[0]:.2f} with waits.

**Which do not survive.** {len(lost)} of the papers' conclusions hold in ns-2 if senders do not
wait, but not if they wait at random. In the table of conclusions, these are the rows whose last
column is just "no".

In table 3 of the paper `evaluation` two flows with the same congestion control share a link. The
second flow also crosses a link of X ms, so it has the longer round trip. The next table has the
first flow's throughput divided by the second's in ns-2, for two Reno flows and for two SACK flows:

{table(head, ratios)}

Take first a delay X of 13 ms. If senders do not wait, the second flow gets less than the first; if
senders wait, the second flow gets more. The simulator `rounds` agrees: with waits, the first flow's
throughput divided by the second's is {reno.rounds[1]:.2f} for two Reno flows and
{sack.rounds[1]:.2f} for two SACK flows.

Now take a delay X of 208 ms. Random waits make the ratio of the first flow's throughput to the
second's larger for Reno, and smaller for SACK.

So the bias against the flow with the longer round trip depends on the waits of the senders. The
paper `evaluation`, in which senders do not wait, calls this bias almost linear in the ratio of the
round trips.

**What does not hold even without waits.** {len(never)} of the papers' conclusions do not hold in
ns-2 2.35 even if senders do not wait. For these conclusions, `vegasmodel paper` prints what
the paper says beside our result.

**Caution.** A sender's wait is uniform from 0 to the transmission time of one packet. This time is
{1e3 / 187.5:.1f} ms on the links of `evaluation` and `tsang`, where the shortest round trip is 13.2
ms. So the waits are not small: their mean, {0.5e3 / 187.5:.1f} ms, is an additional delay, which
the senders in the papers do not have. If a result changes when senders wait, there are two possible
reasons: the waits prevent phase effects, or they make the round trip longer. The runs do not tell
which of the two is the reason."""
