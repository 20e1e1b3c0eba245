"""Appendix A of De Vendictis and Baiocchi: the cycle from loss to loss at small buffers.

A Vegas and a Reno source share the link.  The buffers are smaller than the threshold B_th, so that
Vegas's window still grows at each loss.  A mini-cycle is one round trip.
"""

from scipy.optimize import brentq

from paper_checks.checks import (
    ARITHMETIC,
    Found,
    Record,
    by_theory,
    formula,
    from_printed_numbers,
    rounding,
)
from paper_checks.devendictis.equations import COUNTED, M, equation
from paper_checks.devendictis.scenes import ALPHA, LAM, MU

BDP, BUFFER = 54.0, 5.0  # mu T and B, packets
SUM_AT_LOSS = BDP + BUFFER + 1  # packets, of both windows when the buffer overflows


def cycle() -> list[Record]:
    """The records of the formulas of appendix A for a cycle from loss to loss at a small buffer.

    In each mini-cycle (round trip) both windows grow by one packet. In each record ``printed`` is
    what the paper's formula gives for lambda = 3/4, mu T = 54 packets and B = 5 packets.
    ``computed`` comes from a simulation of such cycles, one after another, until they repeat
    (``_cycle``).

    N is the number of mini-cycles in a cycle, and in mini-cycle a the link becomes full. P_Reno and
    P_Vegas are the packets that the sources send in a cycle, and Delta is the duration of the
    cycle. With our numbers the formulas give whole numbers, N = 11 and a = 8, so they can be
    compared with counts of mini-cycles.
    """
    bdp, lam = BDP, LAM  # mu T, packets; lambda, the factor of Vegas's window at a loss
    V_N, R_N, N = _cycle(SUM_AT_LOSS, lam)
    vegas = [lam * V_N + i for i in range(N)]  # windows in mini-cycles 1 to N
    reno = [R_N / 2 + i for i in range(N)]
    sums = [v + r for v, r in zip(vegas, reno, strict=True)]  # of both windows in each mini-cycle
    a = next(i for i, s in enumerate(sums, 1) if s >= bdp)
    T = bdp / MU  # s
    sum_at_start = (N - 1) / (1 - lam)  # of both windows in mini-cycle 1, as printed
    duration = sum(max(s, bdp) / MU for s in sums)  # s, of a cycle
    where = "lambda 3/4, mu T 54, B 5, cycles iterated until they repeat."
    return [
        equation(
            "appendix A, windows at the loss",
            printed=[SUM_AT_LOSS / (3 - 2 * lam) * x for x in (1, 2 * (1 - lam))],
            computed=[V_N, R_N],
            note=f"{where} printed: the appendix's equations, solved for W_V(N) and W_R(N), give "
            "W_V(N) = (mu T + B + 1)/(3 - 2 lambda) and W_R(N) = 2 (1 - lambda) W_V(N).",
        ),
        equation(
            "appendix A, N",
            printed=SUM_AT_LOSS * (1 - lam) / (3 - 2 * lam) + 1,
            computed=N,
            note=f"{where} {COUNTED}",
        ),
        equation(
            "appendix A, P_Reno",
            printed=1.5 * N * (N - 1),
            computed=sum(reno),
            note=f"{where} {COUNTED}",
        ),
        equation(
            "appendix A, P_Vegas",
            printed=(1 + lam) / (2 * (1 - lam)) * N * (N - 1),
            computed=sum(vegas),
            note=f"{where} {COUNTED}",
        ),
        equation(
            "appendix A, a",
            printed=0.5 * (bdp - sum_at_start) + 1,
            computed=a,
            note=f"{where} {COUNTED}",
        ),
        equation(
            "appendix A, Delta",
            printed=a * T + (sum_at_start + N - a + 1) * (N - a) / MU,
            computed=duration,
            note=f"s. {where} mu {MU:g} pkt/s. computed: the sum of the mini-cycles; each lasts "
            "the sum of both windows over mu, or T while the link is not full.",
            erratum="a T + [(N-1)/(1-lambda) + N + a - 1] (N-a)/mu: in mini-cycle i both windows "
            "have (N-1)/(1-lambda) + 2 (i-1) packets together, and the second term is the sum of "
            "these from a+1 to N, over mu. The print, with - a + 1, is 2 (a-1)(N-a)/mu seconds "
            "short; it would be right with mu T in place of (N-1)/(1-lambda).",
        ),
    ]


def threshold() -> list[Record]:
    """The records of B_th, the buffer below which Vegas's window still grows at each loss.

    At this buffer, Vegas's window at the loss by appendix A equals its equilibrium window (7).
    """

    def excess(B: float) -> float:
        """By how many packets the window at the loss exceeds (7), at the buffer ``B``."""
        at_loss = (M + B + 1) / (3 - 2 * LAM)  # W_V(N) by appendix A
        at_equilibrium = ALPHA * (M + B) / B  # (7) with a full buffer, q = B
        return at_loss - at_equilibrium

    exact = float(brentq(excess, 0.1, 50, xtol=1e-12))  # B_th without an approximation, packets
    return [
        formula(
            "section 3, B_th",
            printed=ALPHA * (3 - 2 * LAM),
            compute=by_theory(exact),
            tolerance=ALPHA * (3 - 2 * LAM) / M,
            note=f"Packets. mu T {M:g} packets, alpha {ALPHA:g}, lambda {LAM:g}. computed: the B "
            "at which W_V(N) = (mu T + B + 1)/(3 - 2 lambda) equals alpha (mu T + B)/B, by Brent's "
            "method. printed: the paper's approximation of this B. Tolerance: the next term of the "
            "approximation, B_th/(mu T).",
        ),
        Record(
            "section 4, the threshold of figure 3",
            printed=5,
            compute=from_printed_numbers(
                Found(
                    ALPHA * (3 - 2 * LAM),
                    detail=f"The exact condition gives less at any T, {exact:.2f} at 80 ms.",
                )
            ),
            tolerance=rounding(1.0),
            note="Packets: the printed B_th = alpha (3 - 2 lambda) is 4.5. Tolerance: rounding to "
            "a whole packet, where a half is rounded up.",
        ),
    ]


def throughputs() -> list[Record]:
    """The records of how the throughputs below B_th depend on lambda, Vegas's factor at a loss."""
    # by lambda: Vegas's packets in a cycle over Reno's
    ratios = {factor: _packets_over(SUM_AT_LOSS, factor) for factor in (0.5, 0.55, 0.65, 0.75, 0.9)}
    return [
        Record(
            "section 3, equal throughputs below B_th at lambda = 1/2",
            printed=1.0,
            compute=by_theory(ratios[0.5]),
            tolerance=1e-6,
            prints=("the same average throughput",),
            note="Packets of a cycle, Vegas over Reno, mu T 54, B 5: appendix A's cycles iterated "
            f"from windows of 50 and 10 packets until they repeat. {ARITHMETIC}",
        ),
        Record(
            "section 3, Vegas pushes more for lambda above 1/2",
            compute=by_theory(
                Found(
                    min(ratio for factor, ratio in ratios.items() if factor > 0.5) > 1,
                    detail=", ".join(f"{factor:g}: {ratio:.2f}" for factor, ratio in ratios.items())
                    + ".",
                )
            ),
            note="Packets of a cycle, Vegas over Reno, by lambda, mu T 54, B 5: cycles iterated "
            "until they repeat.",
        ),
    ]


def _cycle(sum_at_loss: float, lam: float, rounds: int = 200) -> tuple[float, float, int]:
    """The windows of Vegas and Reno at the loss, and the number of mini-cycles, by appendix A.

    A loss multiplies Vegas's window by ``lam`` and halves Reno's.  Then both windows grow by one
    packet per mini-cycle until their sum is ``sum_at_loss``, in packets.  This is repeated for
    ``rounds`` cycles, so that the windows at the beginning do not matter.
    """
    V, R, steps = 50.0, 10.0, 0.0
    for _ in range(rounds):
        V, R = lam * V, R / 2
        steps = (sum_at_loss - V - R) / 2
        V, R = V + steps, R + steps
    return V, R, round(steps) + 1


def _packets_over(sum_at_loss: float, lam: float) -> float:
    """The packets that Vegas sends in a cycle, divided by those that Reno sends.

    Each window grows linearly, so its mean is that of its first and its last value in the cycle.
    The result is the ratio of the two means.  A loss multiplies Vegas's window by ``lam`` and
    halves Reno's.  ``sum_at_loss`` is the sum of both windows at the loss, in packets.
    """
    V, R, _ = _cycle(sum_at_loss, lam)
    return (1 + lam) * V / (1.5 * R)


RECORDS = (*cycle(), *threshold(), *throughputs())
