"""The ratios Vegas/Reno of De Vendictis and Baiocchi if their sums run over whole mini-cycles.

A mini-cycle is a round trip; a cycle from loss to loss has the mini-cycles 1 to N.  The link is
full from number a on, and Vegas is in equilibrium from number b on.  By the paper's formulas a, b
and N are in general no whole numbers, and the paper does not say where its sums then end.

Does the paper's model give the ratios that the paper prints if these ends are rounded?  Here they
are rounded in each of three ways.  Only the ends are: the windows of Vegas and Reno in mini-cycles
a and b, W_V(a), W_R(a) and W_R(b), follow from a and b as they are.  T is the RTT without queueing
in s, and B the buffer in packets.
"""

from collections.abc import Callable

import numpy as np

from paper_checks.checks import rounding
from paper_checks.devendictis.scenes import ALPHA, BUFFERS, LAM, MU

__all__ = ["WAYS", "appendix_a", "at_figure_3", "section_3"]

Way = Callable[[float], float]  # a way of rounding a number to a whole one
WAYS: dict[str, Way] = {"down": np.floor, "to the nearest": np.rint, "up": np.ceil}
# The T that we try, s, in steps of 0.1 ms.  By hypothesis 2 mu T exceeds each buffer of figure 3.
T_SCANNED = np.arange(np.ceil(1e4 * max(BUFFERS) / MU), 2000.0) / 1e4


def section_3(T: float, B: float, way: Way) -> float:
    """Vegas's packets in a cycle over Reno's, by the printed formulas of section 3.

    They are for buffers B (packets) above the threshold B_th.  ``T`` is the RTT without waiting, s;
    ``way`` is how mini-cycles (round trips) are rounded to whole numbers.  The capacity is ``MU``.
    A loss multiplies Vegas's window by ``LAM``, and Vegas keeps a backlog of ``ALPHA`` packets.
    """
    M = MU * T  # packets that the path holds while none waits
    # The windows V of Vegas and R of Reno, in packets, in three mini-cycles: N, at the loss; 1,
    # after the loss, by (9) and (8); and a, in which they fill the link, by (11) and (12).
    V_N, R_N = ALPHA * (M + B) / B, (M + B) * (B - ALPHA) / B + 1
    V_1, R_1 = LAM * V_N, R_N / 2
    V_a, R_a = (M + V_1 - R_1) / 2, (M + R_1 - V_1) / 2
    # the numbers of mini-cycles before they are rounded: a by (11) and (12), b by (16)
    real_a = (M - R_1 - V_1) / 2 + 1
    real_b = real_a + (-(V_a - ALPHA) + np.sqrt((V_a - ALPHA) ** 2 + 2 * ALPHA * M)) / 2
    a, b, N = way(real_a), way(real_b), way(R_N / 2 + 1)
    R = R_a + real_b - real_a + np.arange(1, N - b + 1)  # Reno's windows in mini-cycles after b
    C = R - ALPHA - M  # as in (17)
    vegas = a * V_1 + a * (a - 1) / 2  # A_V, Vegas's packets in mini-cycles 1 to a
    vegas += (b - a) * V_a + (a + 1 + b) * (b - a) / 2  # B_V, in a + 1 to b, as printed
    vegas += float(np.sum((-C + np.sqrt(C**2 + 4 * ALPHA * R)) / 2))  # (17), after b
    reno = N * R_1 + N * (N - 1) / 2  # P_Reno, Reno's packets in mini-cycles 1 to N
    return float(vegas / reno)


def appendix_a(T: float, B: float, way: Way) -> float:
    """Vegas's packets in a cycle over Reno's, by appendix A, for buffers below the threshold B_th.

    Both windows then grow until the loss.  It multiplies Vegas's by ``LAM``, and halves Reno's.
    ``T`` is the RTT without waiting, s, ``B`` the buffer in packets, and ``way`` how the number N
    of mini-cycles (round trips) in a cycle is rounded to a whole number.
    """
    V_N = (MU * T + B + 1) / (3 - 2 * LAM)  # Vegas's window at the loss
    V_1, R_1 = LAM * V_N, (1 - LAM) * V_N  # Reno's window at the loss is 2 (1 - LAM) V_N
    # N = R_1 + 1 mini-cycles; both windows grow by 1 in each, by (N - 1)/2 on average
    growth = (way(R_1 + 1) - 1) / 2
    return float((V_1 + growth) / (R_1 + growth))


def at_figure_3(
    ratio: Callable[[float, float, Way], float], B: float, printed: float
) -> tuple[float, str]:
    """The largest value of ``ratio`` over all T of ``T_SCANNED`` and ways of rounding, and a text.

    ``ratio`` is ``section_3`` or ``appendix_a``, and ``B`` the buffer in packets.  The text says at
    which T each way of rounding gives the value ``printed``; it is empty if none does.
    """
    values = {name: np.array([ratio(T, B, way) for T in T_SCANNED]) for name, way in WAYS.items()}
    hits = {
        name: T_SCANNED[abs(found - printed) <= rounding(0.01)] for name, found in values.items()
    }
    text = "; ".join(
        f"{name}, {1e3 * T.min():.0f} to {1e3 * T.max():.0f} ms"
        for name, T in hits.items()
        if T.size
    )
    return max(float(found.max()) for found in values.values()), text
