"""Equations (10) and (11) of Boutremans and Le Boudec, and figure 6: Vegas with alpha < beta.

With alpha < beta a source keeps any backlog from alpha to beta, so there are many equilibria.  The
equations bound the windows and the rates in them.  Each of them has a record, which compares the
printed value with ours.
"""

import numpy as np

from paper_checks.boutremans.scenes import CAPACITY, SMALL_BUFFERS, finite, joining
from paper_checks.boutremans.theory import ALPHA, BETA, SMALL_STEP, D, N, X, settled
from paper_checks.checks import Found, Record, by_theory, formula, in_every_case
from paper_checks.runs import Runs
from paper_checks.spread import jittered
from vegasmodel.metrics import Floats

EDGES = (
    "where rule (1) comes to rest, iterated in steps that are halved, with alpha = beta = 1 (lower "
    "bound) and with alpha = beta = 3 (upper bound); 4 sources with different d and x. Tolerance: "
    "four of the last steps."
)


def bands() -> list[Record]:
    """The records of equations (10) and (11), and of what follows from them for two sources.

    With alpha < beta a source may keep any backlog from alpha to beta. So there are many
    equilibria. Equations (10) and (11) bound the windows W_i and the rates r_i in them: the bounds
    are the values that the sources have if alpha = beta, at either threshold. By (4) and (5) these
    values are, with the threshold a and the queueing delay Delta,

        W_i = a (d_i + Delta)/(Delta - x_i),   r_i = a/(Delta - x_i)

    Source i has the propagation delay d_i (``D``) and the over-estimate x_i (``X``). We iterate the
    paper's window rule (1) until it comes to rest, take Delta from this state (``wait``), and
    compare the formulas with the state's windows and rates.
    """
    from vegasmodel.equilibrium import arrivals
    from vegasmodel.equilibrium import bands as model

    # section 4.1: the set of all equilibria of two sources without over-estimates
    two_sources = model.equilibria([ALPHA] * 2, [BETA] * 2, [0.0, 0.0], CAPACITY)
    _, largest_ratio = two_sources.ratio_range  # [i, j]: of source i's rate to source j's
    # by the common value of alpha and beta: the state in which the window rule (1) comes to rest
    at_rest = {limit: settled(limit, limit, SMALL_STEP) for limit in (ALPHA, BETA)}
    # the formulas for W_i and r_i, divided by the threshold a
    scales = [(D + state.wait) / (state.wait - X) for state in at_rest.values()]
    rates = [1 / (state.wait - X) for state in at_rest.values()]
    # figure 6: a second source arrives when the first is in equilibrium
    arrived = arrivals.arrive(
        np.full(2, ALPHA),
        CAPACITY,
        beta=np.full(2, BETA),
        rtt=np.full(2, 0.2),
        over_estimate=np.zeros(2),
    )
    r1, r2 = (float(r) for r in arrived.rates)
    return [
        formula(
            "equation 10",
            printed=[
                limit * s for limit, scale in zip(at_rest, scales, strict=True) for s in scale
            ],
            compute=by_theory([W for state in at_rest.values() for W in state.windows]),
            tolerance=4 * SMALL_STEP * float(np.max(scales)),
            note=f"Both bounds on the window. computed: the windows {EDGES}",
        ),
        formula(
            "equation 11",
            printed=[limit * r for limit, rate in zip(at_rest, rates, strict=True) for r in rate],
            compute=by_theory([r for state in at_rest.values() for r in state.rates]),
            tolerance=4 * SMALL_STEP * float(np.max(rates)),
            note=f"Both bounds on the rate. computed: the rates {EDGES}",
        ),
        formula(
            "section 4.1, beta/alpha between two sources with x = 0",
            printed=BETA / ALPHA,
            compute=by_theory(float(largest_ratio[0, 1])),
            kind="claim",
            tolerance=1e-9,
            note="The largest ratio of both rates in the set of all equilibria.",
        ),
        Record(
            "figure 6, the first of two gets more",
            compute=by_theory(Found(r1 > r2, detail=f"{r1:.1f} and {r2:.1f} pkt/s.")),
            note="Two sources, x = 0, alpha 1, beta 3, d 0.2 s; the first is in equilibrium when "
            "the second arrives. Our copy lacks the picture; we check what it says about it.",
        ),
        Record(
            "figure 6, region 5 is the only one where no window moves",
            blocked="A definition, which nothing could contradict: the lines between the regions "
            "are those at which rule (1) begins to change a window. Our copy lacks the picture "
            "with the numbers of the regions; its words say which region is which.",
        ),
    ]


def _bounds_grow() -> Found:
    """Whether a source's least and largest steady rate grow with its own over-estimate.

    There are N sources with the over-estimates X.  We compute both rates again with an
    over-estimate that is 1 ms larger, for each source in turn.
    """
    from vegasmodel.equilibrium import bands as model

    def least_and_largest(x: Floats) -> tuple[Floats, Floats]:
        """The least and the largest steady rate of each source with the over-estimates ``x``, s."""
        return model.equilibria([ALPHA] * N, [BETA] * N, x, CAPACITY).rate_range

    before, gains = least_and_largest(X), []
    for i in range(N):
        after = least_and_largest(X + 1e-3 * np.eye(N)[i])
        gains.append([float(after[end][i] - before[end][i]) for end in (0, 1)])
    text = "; ".join(f"{low:.3f} and {high:.3f}" for low, high in gains)
    return Found(bool(np.min(gains) > 0), detail=f"The bounds grow by, in pkt/s: {text}.")


def _several_states_at_rest() -> Found:
    """Whether the paper's window rule (1) can come to rest in several states on a full link.

    We iterate the rule for N sources, from two sets of first windows.  They must lead to two states
    in which the rule keeps all windows, the rates add up to the capacity, and a rate differs by
    more than 1 pkt/s.
    """
    starts = [(1.0,) * N, (1.0,) * (N - 1) + (40.0,)]  # packets
    states = [settled(x=(0.0,) * N, first=first) for first in starts]
    text = "; ".join(", ".join(f"{rate:.1f}" for rate in state.rates) for state in states)
    full = all(abs(state.rates.sum() - CAPACITY) < 1e-6 for state in states)
    difference = float(np.abs(states[0].rates - states[1].rates).max())
    at_rest = not any(state.moves for state in states)
    return Found(full and difference > 1 and at_rest, detail=f"pkt/s: {text}.")


def _all_lose_at_small_buffers(runs: Runs) -> Found:
    """Whether all sources lose packets at small buffers, and none at an infinite buffer.

    This tests the paper's statement that Vegas sources behave like Reno sources at small buffers.
    """
    losses = {
        (law, buffer): 100 * runs(finite(law, buffer)).loss_rate
        for law in ("vegas", "reno")
        for buffer in SMALL_BUFFERS
    }
    infinite = 100 * runs(joining(n=10, alpha=3.0, beta=3.0)).loss_rate
    text = "; ".join(
        f"{law} at {buffer:g} {part.min():.1f} to {part.max():.1f}"
        for (law, buffer), part in losses.items()
    )
    return Found(
        bool(min(part.min() for part in losses.values()) > 0 and infinite.max() == 0),
        detail=f"Percent lost by source: {text}; Vegas at an infinite buffer {infinite.max():g}.",
        undecided="What 'behave like' means decides: both laws lose packets, but not equally many.",
    )


def _vegas_leaves_less_unused(runs: Runs) -> Found:
    """Whether two Reno sources leave more of the link unused than two Vegas, and more than 1 %.

    The paper describes no network for this claim, so we take that of the paper ``evaluation``.  The
    claim must hold there for a short and for a long delay X of the second source.
    """
    from paper_checks.evaluation.figures import same_law
    from paper_checks.evaluation.tables import CAPACITY as LINK

    vegas_leaves_less, rows = [], []  # for each delay; ``rows`` are texts
    for delay in (1e-3, 22e-3):
        reno, vegas = (  # percent of the link that is unused, of each seed
            100
            * np.maximum(0, 1 - runs(jittered(same_law(law, delay))).throughput.sum(axis=1) / LINK)
            for law in ("reno", "vegas")
        )
        vegas_leaves_less.append(bool(np.all(reno > np.maximum(vegas, 1.0))))
        rows.append(
            f"X = {1e3 * delay:g} ms, Reno {reno.min():.2f} to {reno.max():.2f} %, Vegas "
            f"{vegas.min():.2f} to {vegas.max():.2f} %"
        )
    text = f"Unused: {'; '.join(rows)}"
    return in_every_case(vegas_leaves_less, "The network decides, and the paper states none", text)


def text() -> list[Record]:
    """The records of what the paper's sections 2 to 4.1 say beside their equations."""
    return [
        Record(
            "section 2, Vegas uses the bandwidth more efficiently than Reno",
            compute=_vegas_leaves_less_unused,
            note="Two sources of one law, in the network of figures 2 and 3 of 'evaluation'. Read "
            "as: in every seed two Renos leave more than 1 % of the link unused, and more than two "
            "Vegas; ns-2 2.35, 5 seeds whose starts move by up to one packet's time.",
        ),
        Record(
            "section 3.1.1, at small buffers Vegas behaves like Reno",
            compute=_all_lose_at_small_buffers,
            note="The paper quotes this. We tested whether every Vegas source loses packets at "
            "buffers of less than n alpha packets, as every Reno source does there, and none at an "
            "infinite buffer. 10 sources of one law on the link of section 3.2.1, alpha = beta = "
            "3, buffers of 5 and 20 packets; ns-2 2.35, mean of 5 seeds, 60 to 120 s.",
        ),
        Record(
            "section 4.1, the bounds grow with the over-estimate",
            compute=by_theory(_bounds_grow()),
            note="We increase one over-estimate by 1 ms, and compute this source's least and "
            "largest rate over all steady states by the package, with Delta changed, too; we do so "
            "for each of 4 sources in turn.",
        ),
        Record(
            "section 4.1, more than one solution fills the link",
            compute=by_theory(_several_states_at_rest()),
            note="4 sources with x = 0, alpha 1 and beta 3. Rule (1) is iterated from windows of "
            "one packet each, and again with 40 packets for the last. Both times it comes to rest "
            "with the link full, but at different rates.",
        ),
    ]


RECORDS = (*bands(), *text())
