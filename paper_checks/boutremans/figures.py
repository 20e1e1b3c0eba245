"""Figures 2 to 8 of ``boutremans`` by theory and by ns-2; the pictures are missing from our text.

The packet size is not stated (1000 B here), and the random part of the delay is left out: its
stated variance, that of an M/M/1 queue at 90 % load, is 90 packets^2, a standard deviation of 76 ms
of queueing, not the "very small variations" of the text.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from paper_checks.boutremans.scenes import CAPACITY, SOURCES, joining
from paper_checks.boutremans.theory import harmonic, printed_rates, rates, recursion
from paper_checks.checks import Found, Record, exactly, rounding
from paper_checks.runs import Floats, Measured, Runs
from vegasmodel.metrics import jain

D = 0.2  # s
RUN = (
    "ns-2 2.35, mean of 5 seeds, 90 to 120 s; 1000 B packets, no random part of the delay. The "
    "picture is missing from our text; its described content is checked."
)
ALPHAS = (1.0, 3.0, 5.0)
SPREADS = ((1.0, 3.0), (1.0, 5.0), (2.0, 4.0))


def base_rtts(measured: Measured) -> Floats:
    """The baseRTT of each source at its end, s."""
    assert measured.base_rtt is not None
    return measured.base_rtt


# --- figure 2 --------------------------------------------------------------------------------


def figure_2() -> list[Record]:
    """Rates over the index for n = 20: the last against the earlier ones."""
    bonald, exact = printed_rates(20), rates(recursion(20))
    middle = [float(r[-1] / np.median(r[:-1])) for r in (bonald, exact)]
    mean = [float(r[-1] / r[:-1].mean()) for r in (bonald, exact)]
    first = [float(r[-1] / r[0]) for r in (bonald, exact)]
    return [
        Record(
            "figure 2, last over the median of the earlier connections",
            "figure",
            10,
            exactly(
                Found(
                    middle[0],
                    detail=f"Other readings: over the first {first[0]:.1f}, over the mean of the "
                    f"earlier {mean[0]:.1f}. Exact recursion: {middle[1]:.2f}, {first[1]:.1f} and "
                    f"{mean[1]:.1f}.",
                )
            ),
            tolerance=rounding(1.0),
            note="'10 times more than the earlier connections', by the printed rates, n = 20. "
            "Tolerance: rounding of the print. The picture is missing from our text.",
        ),
        Record(
            "figure 2, last over first",
            "figure",
            10,
            exactly(first[0]),
            tolerance=rounding(1.0),
            note="The other reading of the same claim, by the printed rates. Tolerance: rounding.",
        ),
        Record(
            "figure 2, last over first, by packets",
            "figure",
            10,
            lambda runs: _last_over_first(runs, 20, 1.0, 1.0),
            tolerance=rounding(1.0),
            note=f"alpha = beta = 1. {RUN} Tolerance: rounding.",
        ),
    ]


def _last_over_first(runs: Runs, n: int, alpha: float, beta: float) -> float:
    throughput = runs(joining(n, alpha, beta)).mean
    return float(throughput[-1] / throughput[0])


# --- figure 3: baseRTT -----------------------------------------------------------------------


def _pessimistic(alpha: float, runs: Runs) -> Found:
    theory = D + alpha / CAPACITY * np.array([k * harmonic(k) for k in range(20)])
    exact = D + recursion(20, alpha)
    measured = base_rtts(runs(joining(20, alpha, alpha)))
    errors = [float(np.sqrt(np.mean((t - measured) ** 2))) for t in (theory, exact)]
    return Found(
        bool(np.mean(theory - measured) > 0 and theory[-1] > measured[-1]),
        detail=f"Last source: {measured[-1]:.3f} s measured, {theory[-1]:.3f} s by Bonald, "
        f"{exact[-1]:.3f} s by the exact recursion; root mean square errors {errors[0]:.3f} and "
        f"{errors[1]:.3f} s.",
    )


def _far(alpha: float, runs: Runs) -> Found:
    late = float(base_rtts(runs(joining(20, alpha, alpha)))[-1] - D)
    return Found(late > D, detail=f"The last source over-estimates by {late:.3f} s.")


def figure_3() -> list[Record]:
    """The baseRTT over the index, n = 20: far from the truth, and theory above it."""
    found = []
    for letter, alpha in zip("abc", ALPHAS, strict=True):
        case = f"alpha = beta = {alpha:g}, n = 20"
        found += [
            Record(
                f"figure 3{letter}, the theoretical baseRTT is pessimistic",
                "figure",
                True,
                partial(_pessimistic, alpha),
                note=f"{case}: Bonald's above the measured, on average and for the last. {RUN}",
            ),
            Record(
                f"figure 3{letter}, late baseRTTs are far from the propagation delay",
                "figure",
                True,
                partial(_far, alpha),
                note=f"{case}; read as more than d = 0.2 s too long. {RUN}",
            ),
        ]
    return found


def _rank_correlation(a: Floats, b: Floats) -> float:
    from scipy.stats import spearmanr  # a second to load

    return float(spearmanr(a, b).statistic)


# --- figures 4 and 5: rates and their oscillation --------------------------------------------


def _rising(n: int, alpha: float, beta: float) -> Callable[[Runs], Found]:
    """Rank correlation of rate and over-estimate."""

    def compute(runs: Runs) -> Found:
        measured = runs(joining(n, alpha, beta))
        order = _rank_correlation(base_rtts(measured), measured.mean)
        return Found(order > 0.5, detail=f"Rank correlation {order:.2f}.")

    return compute


def _most(runs: Runs) -> Found:
    ratios = {
        (n, alpha): _last_over_first(runs, n, alpha, alpha) for n in SOURCES for alpha in ALPHAS
    }
    text = "; ".join(f"n {n}, alpha {a:g}: {r:.1f}" for (n, a), r in ratios.items())
    return Found(max(ratios.values()), detail=f"{text}.")


def _swings(runs: Runs) -> Found:
    measured = runs(joining(20, 3.0, 3.0))
    swing = measured.rate[2] - measured.rate[1]
    if not swing.any():
        return Found(
            False,
            detail="Nothing swings: ns-2 rounds Diff, which leaves a dead zone of one packet.",
        )
    order = _rank_correlation(measured.rate[0], swing)
    return Found(order > 0.5, detail=f"Rank correlation {order:.2f}.")


def figures_4_and_5() -> list[Record]:
    """With alpha = beta late sources gain, and rates swing."""
    return [
        *(
            Record(
                f"figure 4{letter}, n = {n}, alpha = {alpha:g}: the rate grows with x_i",
                "figure",
                True,
                _rising(n, alpha, alpha),
                note=f"Read as a rank correlation above 0.5. {RUN}",
            )
            for letter, n in zip("abc", SOURCES, strict=True)
            for alpha in ALPHAS
        ),
        Record(
            "figure 4, up to 5 times",
            "figure",
            5,
            _most,
            tolerance=rounding(1.0),
            note=f"Largest rate of the last over the first source, all n and alpha = beta of 1, 3 "
            f"and 5. Tolerance: rounding. {RUN}",
        ),
        Record(
            "figure 4, n = 20, alpha = 3: last over first",
            "figure",
            5,
            lambda runs: _last_over_first(runs, 20, 3.0, 3.0),
            tolerance=rounding(1.0),
            note=f"The case of figure 5. Tolerance: rounding. {RUN}",
        ),
        Record(
            "figure 5, the swing grows with the rate",
            "figure",
            True,
            _swings,
            note="n = 20, alpha = beta = 3: largest less least cwnd/RTT of one run against its "
            f"mean. {RUN}",
        ),
        Record(
            "figure 5, the link stays full",
            "figure",
            1.0,
            lambda runs: runs(joining(20, 3.0, 3.0)).utilization,
            tolerance=0.005,
            note=f"Utilisation, n = 20, alpha = beta = 3. Tolerance: half a percent. {RUN}",
        ),
    ]


# --- figures 7 and 8: alpha < beta -----------------------------------------------------------


def _jain(runs: Runs, n: int, alpha: float, beta: float, known: bool) -> float:
    return jain(runs(joining(n, alpha, beta, known)).mean)


def _early_wins(alpha: float, beta: float) -> Callable[[Runs], Found]:
    def compute(runs: Runs) -> Found:
        rates = runs(joining(10, alpha, beta, True)).mean
        halves = float(rates[:5].mean()), float(rates[5:].mean())
        return Found(
            halves[0] > halves[1],
            detail=f"First five {halves[0]:.2f}, last five {halves[1]:.2f} pkt/s; first source "
            f"{rates[0]:.2f}, last {rates[-1]:.2f}.",
        )

    return compute


def _by_ratio(runs: Runs) -> Found:
    cases = sorted(SPREADS, key=lambda pair: pair[1] / pair[0])
    values = [_jain(runs, 10, *pair, known=True) for pair in cases]
    text = ", ".join(f"({a:g}, {b:g}) {v:.3f}" for (a, b), v in zip(cases, values, strict=True))
    return Found(bool(np.all(np.diff(values) < 0)), detail=f"Jain's index: {text}.")


def _still(runs: Runs) -> Found:
    window = runs(joining(10, 1.0, 3.0, True)).window
    swing = float((window[2] - window[1]).max())
    return Found(swing, detail="Packets by which a window moves after 90 s, at most.")


def _fairer(n: int, runs: Runs) -> Found:
    values = [_jain(runs, n, 1.0, beta, False) for beta in (1.0, 3.0, 5.0)]
    text = ", ".join(f"{v:.3f}" for v in values)
    return Found(bool(np.all(np.diff(values) > 0)), detail=f"Beta 1, 3, 5: {text}.")


def figures_7_and_8() -> list[Record]:
    """With alpha < beta, without and with over-estimates."""
    found = [
        Record(
            f"figure 7, alpha {a:g}, beta {b:g}: early connections get more",
            "figure",
            True,
            _early_wins(a, b),
            note=f"n = 10, true baseRTTs; means of the first and the last five. {RUN}",
        )
        for a, b in SPREADS
    ]
    found += [
        Record(
            "figure 7, unfairness grows with beta/alpha",
            "figure",
            True,
            _by_ratio,
            note=f"n = 10, true baseRTTs; the pairs are ours, the paper's are lost. {RUN}",
        ),
        Record(
            "figure 7, the oscillations disappear",
            "figure",
            0.0,
            _still,
            note=f"n = 10, true baseRTTs, alpha 1, beta 3, one run. {RUN}",
        ),
    ]
    for letter, n in zip("abc", SOURCES, strict=True):
        found.append(
            Record(
                f"figure 8{letter}, n = {n}: the rate grows with x_i",
                "figure",
                True,
                _rising(n, 1.0, 3.0),
                note=f"alpha 1, beta 3, baseRTTs measured; rank correlation above 0.5. {RUN}",
            )
        )
        found.append(
            Record(
                f"figure 8{letter}, n = {n}: fairer as beta moves off alpha",
                "figure",
                True,
                partial(_fairer, n),
                note=f"Jain's index, alpha 1. {RUN}",
            )
        )
    return found


def setting() -> list[Record]:
    """Section 3.2.1."""
    load = 0.9
    deviation = float(np.sqrt(load)) / (1 - load)  # of the number in an M/M/1 queue
    return [
        Record(
            "section 3.2.1, the random part of the delay is very small",
            "claim",
            True,
            exactly(
                Found(
                    deviation / CAPACITY < 0.1 * D,
                    detail=f"{deviation:.1f} packets, or {deviation / CAPACITY:.3f} s beside "
                    "d = 0.2 s.",
                )
            ),
            note="Standard deviation of the number in an M/M/1 queue at 90 %, sqrt(0.9)/0.1, in "
            "times of 1000 B packets; 'very small' is read as under a tenth of d.",
        ),
    ]


RECORDS = (*setting(), *figure_2(), *figure_3(), *figures_4_and_5(), *figures_7_and_8())
