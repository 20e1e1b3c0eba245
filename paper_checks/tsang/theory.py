"""Table 3 of ``tsang`` by the theory of ``boutremans``: what makes a connection lose.

Behind the printed expected rates stand whole windows, and baseRTTs that connection 2 over-estimates
(see ``table3``).  The windows decide the rates; the over-estimates decide who would gain.
"""

from __future__ import annotations

from scipy.optimize import brentq

from paper_checks.checks import Found, Record, exactly
from paper_checks.tsang.scenes import BITS, CAPACITY, DELAYS, base_rtt
from paper_checks.tsang.table3 import MISS, TABLE_3, window_and_base


def by_windows(x2: int) -> float:
    """Ratio of the rates W_i/(d_i + Delta) that the windows give at a full link."""
    W1 = round(TABLE_3[x2][0] / BITS * base_rtt(1))
    W2, _ = window_and_base(x2)

    def excess(delay: float) -> float:
        return W1 / (base_rtt(1) + delay) + W2 / (base_rtt(x2) + delay) - CAPACITY

    delay = float(brentq(excess, 0.0, 1.0, xtol=1e-14))
    return W1 * (base_rtt(x2) + delay) / (W2 * (base_rtt(1) + delay))


def alike(x2: int) -> float:
    """Ratio with alpha_1 = alpha_2 = 2, the middle of the band, and the over-estimate."""
    from vegasmodel.equilibrium import rates

    over = max(window_and_base(x2)[1] - base_rtt(x2), 0.0)
    first, second = rates([2.0, 2.0], [0.0, over], CAPACITY)
    return float(first / second)


def windows_decide() -> list[Record]:
    """Each printed ratio against that of the windows."""
    return [
        Record(
            f"section 3.2, ratio by the windows at x2 = {x2} ms",
            "claim",
            TABLE_3[x2][4],
            exactly(by_windows(x2)),
            tolerance=MISS * TABLE_3[x2][4],
            note="printed: the table's ratio; computed: rates W_i/(d_i + Delta) of a full link "
            f"with the whole windows behind the expected rates. Tolerance: {100 * MISS:.1f} %, by "
            "which the print's own rows miss the full link.",
        )
        for x2 in DELAYS
    ]


def conclusion() -> list[Record]:
    """Is it the delay?"""
    ratios = [alike(x2) for x2 in DELAYS[:-1]]
    return [
        Record(
            "section 3.2, a bias against the longer delay, by the steady state",
            "claim",
            True,
            exactly(
                Found(
                    all(r > 1 for r in ratios),
                    detail=f"With equal backlogs the longer connection gains: ratios of "
                    f"{min(ratios):.2f} to {max(ratios):.2f}.",
                )
            ),
            note="boutremans (6) with alpha_1 = alpha_2 = 2 and the over-estimates behind the "
            "printed rates, x2 of 5 ms and more. The delay itself is not in the equation; the "
            "longer connection loses because it is slower to fill the band [alpha, beta].",
        )
    ]


RECORDS = (*windows_decide(), *conclusion())
