"""Table 3 of ``tsang`` by the theory of ``boutremans``: what makes a connection lose.

Behind the printed expected rates stand whole windows, and baseRTTs that connection 2 over-estimates
(see ``table3``).  The windows decide the rates; the over-estimates decide who would gain.
"""

from __future__ import annotations

from scipy.optimize import brentq

from paper_checks.checks import Found, Record, exactly, rounding
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
    """The printed ratios against those of the windows."""
    found = [by_windows(x2) for x2 in DELAYS]
    printed = [TABLE_3[x2][4] for x2 in DELAYS]
    errors = [100 * abs(f / p - 1) for f, p in zip(found, printed, strict=True)]
    text = ", ".join(f"{error:.1f}" for error in errors)
    return [
        Record(
            "section 3.2, rate_i = cwnd_i/RTT_i: the windows behind table 3 give its ratios",
            "claim",
            printed,
            exactly(Found(found, detail=f"Off by {text} %.")),
            tolerance=rounding(0.01),
            note="The 13 ratios from 110 to 1 ms; computed: rates W_i/(d_i + Delta) of a full link "
            "with the whole windows behind the printed expected rates. Tolerance: rounding of the "
            f"print. The printed rates are of single rounds and miss the full link by up to "
            f"{100 * MISS:.1f} %.",
        )
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
