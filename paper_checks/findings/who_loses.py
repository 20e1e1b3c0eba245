"""Makes the page on who loses a packet when a Vegas and a Reno source overflow a buffer.

By hypothesis 5 of De Vendictis and Baiocchi both do.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from paper_checks.devendictis.scenes import BUFFERS, MU, with_limit
from paper_checks.findings.page import Page, table
from paper_checks.runs import Runs
from vegasmodel.equilibrium import minicycle
from vegasmodel.plots.style import COLORS, DASHES, MARKERS, figure, legend, tidy
from vegasmodel.predictor import predict

__all__ = ["page"]

T = 0.08  # s, the RTT without queueing; the paper states none


@dataclass(frozen=True)
class Form:
    """A form of the mini-cycle model, by which the page explains ns-2's results.

    The model follows the windows of Vegas and Reno from one overflow of the buffer to the next.
    """

    form: Literal["printed", "derived"]  # the paper's formulas, or those that we derived
    losers: Literal["both", "growing"] = "both"  # which flows lose a packet at an overflow
    variant: Literal["paper", "ns2"] = "paper"  # with ``ns2`` Vegas rounds its backlog
    response: float = 0.0  # round trips after which Vegas's window reacts to the queue

    def ratio(self, limit: float) -> float:
        """Vegas's rate over Reno's if ns-2's drop-tail queue holds ``limit`` packets.

        This limit counts the packet in transmission, and the buffer of the model does not.
        """
        v, r = minicycle.throughput(
            MU, T, limit - 1, alpha=3.0, decrease=0.75, form=self.form, losers=self.losers,
            variant=self.variant, response=self.response,
        )  # fmt: skip
        return float(v / r)


# the forms of the model that the page compares, by the names of their columns
FORMS = {
    "both lose, printed": Form(form="printed"),
    "both lose, derived": Form(form="derived"),
    "both lose, ns-2's edges": Form(form="derived", losers="both", variant="ns2"),
    "who grows loses, ns-2's edges": Form(
        form="derived", losers="growing", variant="ns2", response=2.0
    ),
}
NAMES = ("ns-2", "rounds", *FORMS)


class Results(NamedTuple):
    """What the page compares, at each buffer."""

    buffers: np.ndarray  # [buffers] packets, ns-2's limits
    ratios: np.ndarray  # [buffers, NAMES] Vegas's rate over Reno's
    lost: np.ndarray  # [buffers, Vegas and Reno] percent of its packets that a source loses in ns-2


def _results(runs: Runs) -> Results:
    """The results at each buffer.  Raises ``NoRun`` if a stored run of ns-2 is missing."""
    ratios, lost = [], []  # for each buffer
    for B in BUFFERS:
        measured = runs(with_limit(T, B))
        by_rounds = predict(with_limit(T, B), "rounds").throughput
        assert by_rounds is not None
        by_simulation = [vegas / reno for vegas, reno in (measured.mean, by_rounds)]
        ratios.append(by_simulation + [form.ratio(B) for form in FORMS.values()])
        lost.append(100 * measured.loss_rate)
    return Results(np.array(BUFFERS), np.array(ratios), np.array(lost))


def page(runs: Runs) -> Page:
    """Make the page; raises ``NoRun`` if a stored run is missing.

    Its picture has, by the buffer, the ratio of Vegas's rate to Reno's, and the losses in ns-2.
    """
    found = _results(runs)
    fig = figure(9.0, 3.9)
    left, right = fig.subplots(1, 2)
    for k, name in enumerate(NAMES):
        measured = k == 0  # ns-2, the first of ``NAMES``, as black points without a line
        dash = "none" if measured else DASHES[k - 1]
        color = "black" if measured else COLORS[k - 1]
        size = 10 if measured else 5  # so that ns-2's can be seen behind the others
        left.plot(
            found.buffers, found.ratios[:, k], ls=dash, color=color, marker=MARKERS[k], ms=size,
            label=name,
        )  # fmt: skip
    left.set(ylabel="throughput, Vegas over Reno", yscale="log", yticks=(0.2, 0.5, 1.0, 2.0, 3.0))
    left.yaxis.set_major_formatter("{x:g}")
    left.yaxis.set_minor_formatter("")
    for k, name in enumerate(("Vegas's packets", "Reno's packets")):
        right.plot(found.buffers, found.lost[:, k], color=COLORS[k], marker=MARKERS[k], label=name)
    right.set(ylabel="lost in ns-2 (percent)", ylim=(0, None))
    for ax in (left, right):
        ax.set(xlabel="buffer (packets)", xlim=(0, None))
    tidy(left, right)
    legend(fig, left, right)
    return Page("Who loses when the buffer overflows", _text(found), fig, CAPTION)


CAPTION = "One Vegas and one Reno source, 1080 pkt/s, 80 ms, alpha = 3."


def _text(found: Results) -> str:
    """The page's text, with its tables in Markdown; ``found`` comes from ``_results``."""
    head = ["buffer", *NAMES, "Vegas loses", "Reno loses"]
    cells = [
        [f"{B:.0f}", *(f"{ratio:.2f}" for ratio in ratios), *(f"{part:.3f} %" for part in lost)]
        for B, ratios, lost in zip(*found, strict=True)
    ]
    large = found.buffers >= 10  # buffers of 10, 20 and 30 packets
    # relative errors of the ratios against ns-2, which is the first of NAMES: [buffers, others]
    errors = np.abs(found.ratios[large, 1:] / found.ratios[large, :1] - 1)
    error_rows = [
        [name, *(f"{error:.0%}" for error in column)]
        for name, column in zip(NAMES[1:], errors.T, strict=True)
    ]
    buffers = [f"buffer of {B:.0f}" for B in found.buffers[large]]
    # mean errors at buffers of 20 and 30 packets, of the last three forms of the model; the second
    # of them has one change of the model, the third has both
    unchanged, with_one, with_both = errors[1:, -3:].mean(axis=0)
    # the part of the error that each change removes
    removed = (1 - with_one / unchanged, 1 - with_both / with_one)
    return f"""Hypothesis 5 of the paper `devendictis` (De Vendictis and Baiocchi) says that one
Vegas and one Reno source both lose a packet each time the buffer overflows. The formulas of the
paper depend on this hypothesis. For example, they contain the factor 3/4, by which Vegas multiplies
its window after a loss. This factor has an effect only if Vegas loses packets.

The table has the ratio of Vegas's throughput to Reno's at several buffers (in packets). It compares
ns-2 2.35 (mean of 3 runs), the simulator `rounds`, and four forms of the model of the paper
`devendictis`. The last two columns have the loss rates of the two sources in ns-2: the fraction of
a source's packets that is lost.

- The columns "both lose, printed" and "both lose, derived" are the model of `devendictis` with its
hypothesis 5: both sources lose a packet at an overflow. The column "printed" uses the formulas that
the paper prints. The column "derived" uses formulas that we derived anew from the paper's
assumptions.

- The column "both lose, ns-2's edges" is the model of `devendictis` with the formulas as we derived
them, and with ns-2's rounding of the backlog. With this rounding Vegas's window is constant while
its backlog is between two edges, alpha - 1/2 and alpha + 1/2. Both sources lose a packet at an
overflow.

- The column "who grows loses, ns-2's edges" is the model of `devendictis` with the formulas as we
derived them and with ns-2's rounding of the backlog. In this form only a source whose window grows
at an overflow loses a packet. In addition, Vegas reacts to the queue two round trips late, as in
ns-2. This delay changes the result only at a buffer of 5 packets.

The buffer in the first column is the limit of ns-2's drop-tail queue. This limit includes the
packet in transmission; the buffer in the formulas of `devendictis` does not. So the formulas are
evaluated for a buffer that is one packet smaller (`docs/ns2.md`):

{table(head, cells)}

The next table has the relative errors, against ns-2, of the ratio of Vegas's throughput to Reno's:

{table(["model", *buffers], error_rows)}

**What remains true.** The model of `devendictis` follows both windows from one overflow of the
buffer to the next. The comparison with ns-2 confirms this method. But hypothesis 5 of the paper,
that both sources lose a packet at an overflow, holds only at a buffer of 5 packets. The hypothesis
is wrong at buffers of 10, 20 and 30 packets, where Vegas loses {found.lost[large, 0].max():.3f} %
of its packets.

Why does Vegas lose nothing? A source with a constant window sends one packet for each ACK. This
packet takes the place of the acknowledged one, so the queue does not become longer by it. Only a
source whose window grows sends additional packets, and one of these overflows the buffer. At
buffers of 10 packets or more, only Reno's window grows before an overflow. Vegas's window has
stopped growing, because its backlog has reached alpha.

**How much each change improves the model.** We changed the model of `devendictis` twice. The first
change is ns-2's rounding: ns-2 rounds the backlog to whole packets before it compares the backlog
with alpha. So Vegas's window is constant at every backlog from alpha - 1/2 to alpha + 1/2. Without
rounding it is constant only at a backlog of alpha. At buffers of 20 and 30 packets, the first
change removes {removed[0]:.0%} of the error of the model in the form "both lose, derived".

The second change of the model of `devendictis` is that only Reno, whose window grows, loses a
packet at an overflow. At buffers of 20 and 30 packets this second change removes {removed[1]:.0%}
of the error that remains after the first change (ns-2's rounding).

At a buffer of 10 packets the error of the model of `devendictis` is large with and without the two
changes. With so small a buffer, Vegas's window depends strongly on the length of the queue: if the
queue is longer or shorter by one packet, Vegas's window changes by several packets.

**For users.** After a loss Vegas multiplies its window by a decrease factor (3/4). If a Vegas flow
shares a link with a Reno flow, this factor matters only if the buffer holds a few packets. With a
larger buffer the Vegas flow loses no packets, so it does not use the factor."""
