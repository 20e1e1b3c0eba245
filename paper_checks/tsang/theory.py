"""Table 3 of ``tsang`` by the theory of ``boutremans``: what makes a connection lose.

Behind the printed expected rates stand whole windows, and baseRTTs that connection 2 over-estimates
(see ``table3``).  The backlogs make the longer lose; the over-estimates alone would let it gain.
"""

from __future__ import annotations

from paper_checks.checks import Found, Record, exactly
from paper_checks.tsang.scenes import BITS, CAPACITY, DELAYS, base_rtt
from paper_checks.tsang.table3 import TABLE_3, window_and_base


def ratio(alphas: tuple[float, float], over: float) -> float:
    """Shorter over longer in the steady state, where the longer over-estimates by ``over`` s."""
    from vegasmodel.equilibrium import rates

    first, second = rates(list(alphas), [0.0, over], CAPACITY)
    return float(first / second)


def over_estimate(x2: int) -> float:
    """That of the longer connection behind its printed expected rate, s."""
    return max(window_and_base(x2)[1] - base_rtt(x2), 0.0)


def backlogs(x2: int) -> tuple[float, float]:
    """alpha_1 and alpha_2 = (expected - actual) baseRTT of the printed rates, packets."""
    expected1, actual1, expected2, actual2, _, _ = TABLE_3[x2]
    W1 = round(expected1 / BITS * base_rtt(1))
    W2, _ = window_and_base(x2)
    return W1 * (1 - actual1 / expected1), W2 * (1 - actual2 / expected2)


def conclusion() -> tuple[Record, ...]:
    """What makes the longer connection lose, and what does not."""
    own, alike = [], []
    for x2 in DELAYS[:-2]:
        own.append(ratio(backlogs(x2), 0.0))
        alike.append(ratio((2.0, 2.0), over_estimate(x2)))
    return (
        Record(
            "section 3.2, one cause is the difference in alpha_i, even when x_i is zero",
            "claim",
            True,
            exactly(
                Found(
                    min(own) > 1 >= max(alike),
                    detail=f"Shorter over longer {min(own):.2f} to {max(own):.2f}; with equal "
                    f"backlogs and the over-estimates {min(alike):.2f} to {max(alike):.2f}.",
                )
            ),
            note="'boutremans' (6) for the 11 cases in which the longer loses, with the alpha_i "
            "behind the printed rates and x = 0. Beside it: alpha_1 = alpha_2 = 2 and the "
            "over-estimates behind the printed rates, with which the longer does not lose.",
        ),
    )


RECORDS = conclusion()
