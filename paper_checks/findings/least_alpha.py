"""Makes the page on the fair alpha, with which Vegas gets as much as Reno at a given buffer.

The fair alpha is a value of alpha = beta.  Buffers are in packets.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from paper_checks import devendictis
from paper_checks.devendictis.scenes import ALPHA, LAM, model
from paper_checks.evaluation.scenes import pair
from paper_checks.findings.page import Page, table
from paper_checks.runs import Runs
from vegasmodel.equilibrium import minicycle
from vegasmodel.plots.style import COLORS, DASHES, MARKERS, figure, legend, tidy
from vegasmodel.predictor import predict
from vegasmodel.scenario import Scenario, load

__all__ = ["page"]

# By buffer: the values of alpha = beta that we run.  They are whole numbers around the fair alpha,
# since ns-2 rounds the backlog.  SHORT is for the link of ``short``, LONG for that of ``long``.
SHORT = {
    5: (1, 2),
    10: (3, 4),
    15: (5, 6, 7),
    20: (7, 8, 9),
    30: (10, 12, 14),
    40: (11, 13, 15, 17),
}
LONG = {10: (1, 2, 3), 15: (3, 4, 5), 20: (5, 6, 7), 30: (9, 10, 11, 12), 40: (13, 14, 15, 16)}
RUNS = 3  # of ns-2, for each buffer and alpha

Losers = Literal["growing", "both"]  # which flows lose a packet when the buffer overflows
LOSERS: tuple[Losers, ...] = ("growing", "both")
Scene = Callable[[int, int], Scenario]  # ``short`` or ``long``: makes it from buffer and alpha


def short(buffer: int, alpha: int) -> Scenario:
    """A Vegas and a Reno source on the link of ``evaluation``, with ``alpha`` = beta, in packets.

    The link's buffer is ``buffer`` packets. The link has 187.5 pkt/s, and the RTT is 13.2 ms, so
    the bandwidth-delay product is 2.5 packets.
    """
    base = pair("vegas", "reno", buffer=float(buffer), thresholds=(float(alpha), float(alpha)))
    name = f"evaluation-fair-buffer-{buffer}-alpha-{alpha}"
    return base.replace({"run.runs": RUNS, "run.start_jitter": 0.5}, name=name)


def long(buffer: int, alpha: int) -> Scenario:
    """A Vegas and a Reno source on the link of ``devendictis``, with ``alpha`` = beta, in packets.

    The link's buffer is ``buffer`` packets. The link has 1080 pkt/s, and the RTT is 80 ms, so the
    bandwidth-delay product is 86 packets.
    """
    base = load(Path(devendictis.__file__).with_name("figure3.toml"))
    changes = {"flow.alpha": float(alpha), "flow.beta": float(alpha)}  # of Vegas alone
    changes |= {"link.buffer": float(buffer)}
    changes |= {"run.duration": 300.0, "run.warmup": 100.0, "run.runs": RUNS}
    return base.replace(changes, name=f"devendictis-fair-buffer-{buffer}-alpha-{alpha}")


def crossing(alphas: Sequence[float], ratios: Sequence[float]) -> float:
    """The alpha at which the logarithm of Vegas's rate over Reno's is 0, by linear interpolation.

    ``ratios`` has that ratio at each of ``alphas``.  NaN if the sign does not change from minus to
    plus.
    """
    logs = np.log(ratios)
    for i in range(1, len(alphas)):
        if logs[i - 1] < 0 <= logs[i]:
            part = -logs[i - 1] / (logs[i] - logs[i - 1])
            return float(alphas[i - 1] + part * (alphas[i] - alphas[i - 1]))
    return float("nan")


def closed_form(scene: Scene, buffer: int, losers: Losers) -> float:
    """The fair alpha at the buffer ``buffer`` by the mini-cycle model; NaN if there is none.

    With this alpha, Vegas gets as much as Reno.  ``scene`` is ``short`` or ``long``.  ``losers``
    says which flows lose when the buffer overflows. As in ns-2, Vegas's window is constant at
    backlogs from alpha - 1/2 to alpha + 1/2, and reacts two round trips late. The model's buffer is
    one packet less than ns-2's limit, which counts the packet in transmission.
    """
    scenario = scene(buffer, 1)
    capacity, rtt = scenario.links[0].capacity, scenario.members[0].rtt
    waiting = buffer - 1.0
    alphas = np.arange(0.55, waiting, 0.01)
    vegas, reno = minicycle.throughput(
        capacity, rtt, waiting, alpha=alphas, losers=losers, variant="ns2", response=2.0
    )
    return crossing(alphas.tolist(), (vegas / reno).tolist())


def printed_ratio(B: float) -> float:
    """Vegas's rate over Reno's by the printed formulas of De Vendictis and Baiocchi.

    ``B`` is the buffer in packets, and the RTT without queueing is 80 ms.
    """
    vegas, reno = model(0.08, B, "printed")
    return vegas / reno


class FairAlphas(NamedTuple):
    """The fair alpha at each buffer on one link, by ns-2 and by three models; NaN if there is none.

    With this value of alpha = beta, Vegas gets as much as Reno.  All fields are in packets, and
    have one entry for each buffer.
    """

    buffers: np.ndarray
    ns2: np.ndarray
    rounds: np.ndarray
    growing_loses: np.ndarray  # by the mini-cycle model, if only a growing window loses a packet
    both_lose: np.ndarray  # by the mini-cycle model


# the heads of the columns of ``FairAlphas`` in tables and pictures
NAMES = {
    "ns2": "ns-2",
    "rounds": "rounds",
    "growing_loses": "mini-cycle, who grows loses",
    "both_lose": "mini-cycle, both lose",
}


def _fair(scene: Scene, grid: dict[int, tuple[int, ...]], runs: Runs) -> FairAlphas:
    """The fair alphas, with which Vegas gets as much as Reno, on the link of ``scene``.

    ``scene`` is ``short`` or ``long``.  ``grid`` has the values of alpha to try at each buffer in
    ns-2 and in ``rounds``.
    """
    rows = []  # for each buffer: the values of the fields of ``FairAlphas``
    for buffer, alphas in grid.items():
        by_ns2, by_rounds = [], []  # Vegas's rate over Reno's at each alpha
        for alpha in alphas:
            scenario = scene(buffer, alpha)
            vegas, reno = runs(scenario).mean
            by_ns2.append(float(vegas / reno))
            rates = predict(scenario, "rounds").throughput
            assert rates is not None
            by_rounds.append(float(rates[0] / rates[1]))
        forms = [closed_form(scene, buffer, losers) for losers in LOSERS]
        rows.append([float(buffer), crossing(alphas, by_ns2), crossing(alphas, by_rounds), *forms])
    return FairAlphas(*np.array(rows).T)


def page(runs: Runs) -> Page:
    """Make the page on the fair alpha.

    Its picture shows, for both links, the fair alpha at each buffer: ns-2's as points, and those of
    the models as lines.  Raises ``NoRun`` if a stored run of ns-2 is missing.
    """
    links = [_fair(short, SHORT, runs), _fair(long, LONG, runs)]
    fig = figure(9.0, 4.0)
    axes = fig.subplots(1, 2)
    titles = ("the link holds 2.5 packets", "the link holds 86 packets")
    for ax, found, title in zip(axes, links, titles, strict=True):
        for k, (field, name) in enumerate(NAMES.items()):
            # how to draw it: ns-2's as black points, those of the models as lines
            how = {"ls": "none", "marker": "o", "color": "black"} if field == "ns2" else {
                "ls": DASHES[k - 1], "color": COLORS[k - 1], "marker": MARKERS[k], "ms": 4,
            }  # fmt: skip
            ax.plot(found.buffers, getattr(found, field), label=name, **how)
        ax.set(xlabel="buffer (packets)", title=title, xlim=(0, None), ylim=(0, None))
    axes[0].set_ylabel("alpha for equal throughputs (packets)")
    tidy(*axes)
    legend(fig, *axes)
    return Page(
        "The least alpha that is fair to Vegas beside Reno", _text(links, runs), fig, CAPTION
    )


CAPTION = "Alpha = beta at which one Vegas and one Reno source get the same."


def _lottery(runs: Runs) -> str:
    """The text on the largest buffer of ``SHORT``, where the random start times decide the rates.

    There the fair alpha is uncertain.
    """
    buffer = max(SHORT)
    alpha = SHORT[buffer][0]
    measured = runs(short(buffer, alpha))
    assert measured.base_rtt is not None
    rates = ", ".join(f"{rate:.0f}" for rate in sorted(measured.throughput[:, 0]))
    return f"""At a buffer of {buffer} packets on the link of `evaluation`, the fair alpha is
uncertain, in ns-2 as in `rounds`: the throughputs of a run depend on the random start times, and we
made only {RUNS} runs. If Vegas starts when Reno already has a long queue, it counts the delay of
this queue as propagation delay, and gets far more. With this buffer the queue never empties, so
Vegas never measures its true baseRTT.

For example, take alpha = {alpha} at a buffer of {buffer} packets on the link of `evaluation`.
Beside Reno, Vegas gets {rates} pkt/s in the {RUNS} runs of ns-2. In the last of these runs Vegas
started 0.4 s after Reno, in the others at most about 0.05 s after Reno. The mean of Vegas's baseRTT
over the runs is {1e3 * measured.base_rtt[0]:.0f} ms; the true baseRTT is
{1e3 * short(buffer, alpha).members[0].rtt:.0f} ms."""


def _fair_alphas(found: FairAlphas) -> str:
    """The table of fair alphas on one link, by buffer."""

    def cell(alpha: float) -> str:
        """A fair alpha as text; NaN means that there is none."""
        return "none" if np.isnan(alpha) else f"{alpha:.1f}"

    return table(
        ["buffer", *NAMES.values()],
        [[f"{B:.0f}", *map(cell, alphas)] for B, *alphas in zip(*found, strict=True)],
    )


def _errors(links: list[FairAlphas]) -> str:
    """The table of each model's relative error against ns-2 on each link, as mean over buffers."""

    def cell(found: FairAlphas, field: str) -> str:
        """The error of the model that ``field`` of ``FairAlphas`` is for, as text."""
        by_model = getattr(found, field)
        error = np.nanmean(np.abs(by_model - found.ns2) / found.ns2)
        none = np.isnan(by_model).sum()
        without = f" (without {none} of {by_model.size}: no answer)" if none else ""
        return f"{error:.1%}{without}"

    rows = [
        [name, *(cell(found, field) for found in links)]
        for field, name in NAMES.items()
        if field != "ns2"
    ]
    return table(["model", "link of evaluation", "link of devendictis"], rows)


def _text(links: list[FairAlphas], runs: Runs) -> str:
    """The page's text; ``links`` has the fair alphas on the links of ``short`` and of ``long``."""
    # for each link the straight line that fits ns-2's fair alphas best, as a text
    fits = [np.polyfit(found.buffers, found.ns2, 1) for found in links]
    lines = [
        f"{slope:.2f} B {'+' if level >= 0 else '-'} {abs(level):.1f}" for slope, level in fits
    ]
    # for each link the buffer at which an alpha of 3 is fair in ns-2, packets
    three = [float(np.interp(3.0, found.ns2, found.buffers)) for found in links]
    # ns-2's fair alphas as parts of the buffer
    parts_of_B = np.concatenate([found.ns2 / found.buffers for found in links])
    # Vegas's rate over Reno's by the paper's formulas, at buffers just above B_th
    above = {B: printed_ratio(float(B)) for B in (5, 6, 7, 8)}
    # by how much the model "who grows loses" exceeds ns-2; not at the largest buffer of ``short``,
    # where the fair alpha is uncertain (``_lottery``)
    on_short, on_long = (found.growing_loses - found.ns2 for found in links)
    over = np.concatenate([on_short[:-1], on_long])
    return f"""How large must Vegas's threshold alpha be, so that a Vegas source beside a Reno
source gets as much as Reno? Two papers have partial answers. In `devendictis` (De Vendictis and
Baiocchi), Vegas gets more than Reno if the buffer is smaller than B_th = alpha (3 - 2 lambda),
where lambda is the factor by which a loss multiplies Vegas's window. Above B_th, Vegas's share
falls as the buffer grows. The paper `evaluation` (a comparison of Reno, SACK and Vegas in ns-2)
finds that alpha = 3, beta = 6 is fair at a buffer of 15 packets (section 3.3.3), and that alpha
= 1, beta = 3 is fair at a buffer of "about 8" packets. Neither paper says how to find the fair
alpha for a given buffer.

This page computes the *fair alpha*: the value of alpha = beta at which one Vegas and one Reno
source of equal delay get the same throughput. For ns-2 and for the simulator `rounds` we make
{RUNS} runs with each of several whole values of alpha. At the smaller of these values Reno gets
more, and at the larger ones Vegas. We interpolate the fair alpha between the last value at which
Reno gets more and the next larger value.

The tables also have the fair alpha by the mini-cycle model of the paper `devendictis`. This model
follows the windows of Vegas and Reno, round trip by round trip, from one overflow of the buffer to
the next. The tables have two columns for this model. In the column "both lose", both sources lose a
packet at an overflow. In the column "who grows loses", only a source whose window grows at the
overflow loses a packet.

To compare the mini-cycle model of `devendictis` with ns-2, this page changes the model in three
points:

- ns-2's Vegas rounds its backlog to whole packets. So in the model Vegas's window grows at a
backlog below alpha - 1/2, and shrinks at a backlog above alpha + 1/2.

- ns-2's Vegas reacts to the queue about two round trips late. In the changed model, Vegas does,
too.

- The limit of ns-2's queue includes the packet in transmission, and the model's buffer does not. So
the model's buffer is one packet smaller than ns-2's limit (`docs/ns2.md`).

**Link of `evaluation`** (187.5 pkt/s, 13.2 ms, so the bandwidth-delay product is 2.5 packets).
Buffers and fair alphas are in packets:

{_fair_alphas(links[0])}

**Link of `devendictis`** (1080 pkt/s, 80 ms, so the bandwidth-delay product is 86 packets). Buffers
and fair alphas are in packets:

{_fair_alphas(links[1])}

The last table has the relative error of the fair alpha against ns-2, as the mean over the buffers
of each link:

{_errors(links)}

**What remains true.** The fair alpha grows with the buffer B. The model of the paper `devendictis`
suggests this, because B_th, the buffer above which Vegas's share falls, is proportional to alpha.
But at a buffer of B_th the two sources do not yet get the same. With alpha = 3, for example, B_th
is {ALPHA * (3 - 2 * LAM):g} packets. By the paper's printed formulas, Vegas still gets more than
Reno just above it: at 80 ms it gets {above[5]:.2f} times as much at a buffer of 5 packets,
{above[6]:.2f} times at 6, {above[7]:.2f} times at 7, and {above[8]:.2f} times at 8.

In ns-2 the fair alpha is {min(parts_of_B):.0%} to {max(parts_of_B):.0%} of the buffer, on average
{np.mean(parts_of_B):.0%}. Straight lines fitted to ns-2's fair alphas are
{lines[0]} packets for the link of `evaluation`, and {lines[1]} packets for the link of
`devendictis`.

In ns-2 an alpha of 3 packets is fair at a buffer of {three[0]:.0f} packets on the link of
`evaluation`, and at a buffer of {three[1]:.0f} packets on the link of `devendictis`. Since the fair
alpha depends on the buffer, no fixed alpha is fair at every buffer.

**Which hypothesis is wrong.** Hypothesis 5 of the paper `devendictis` says that Vegas and Reno both
lose a packet when the buffer overflows. But if Vegas's backlog has reached alpha before the
overflow, Vegas's window no longer grows. Vegas then sends one packet for each ACK. This packet
takes the place of the acknowledged one, so the queue does not become longer by it, and Vegas loses
nothing.

Even without hypothesis 5 the mini-cycle model of the paper `devendictis` is not exact. Suppose that
in the model only a source whose window grows loses a packet at an overflow. The fair alpha, at
which Vegas and Reno get the same, is then larger in the model than in ns-2, by {over.min():.1f} to
{over.max():.1f} packets. (This holds for all buffers but {max(SHORT)} packets on the link of
`evaluation`, where the fair alpha is uncertain.) We do not know why the fair alpha is larger in the
model.

**Caution.** If alpha is larger than the fair alpha, at which both sources get the same, Vegas gets
more than Reno. This advantage grows quickly with alpha. So if you know the fair alpha only roughly,
choose an alpha below your estimate.

{_lottery(runs)}"""
