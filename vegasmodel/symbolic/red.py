"""Derives RED's drop probability in SymPy; proves that rates fall as the queue or the loss grows.

It follows that a RED queue has at most one equilibrium. Tests compare the derived drop probability
with that of the numeric code (``equilibrium.red.effective``).
"""

from __future__ import annotations

import sympy as sp

from vegasmodel.symbolic.steps import NO_NUMBER, Derivation, Expr

# RED's base probability, loss probability, packets per ACK, constant of the square-root law, and
# timeout and RTT without a queue
p_b, p, b, K, T_0, R_0 = sp.symbols("p_b p b K T_0 R_0", positive=True)
# queue, over-estimate of baseRTT, Vegas's threshold, capacity
q, x, alpha, c = sp.symbols("q x alpha c", positive=True)
m = sp.Symbol("m", integer=True, positive=True)  # 1/p_b
n, j = sp.symbols("n j", integer=True, positive=True)  # numbers of a packet


def spacing_wait() -> Derivation:
    """RED's drop probability with ns-2's option ``wait_``, which spaces the drops.

    RED computes a probability p_b from its mean queue. Let m = 1/p_b. After a drop, the first m - 1
    packets pass. Packet n >= m is dropped with probability p_b / (2 - n p_b), if packets 1 .. n - 1
    passed. So each of packets m .. 2m - 1 is equally likely to be the next that is dropped. The
    drop probability is 1 over the mean number of packets from drop to drop.
    """
    # Packet n = m + j - 1 is the j-th that may be dropped. The probabilities that it passes if all
    # before it have passed, and that all j pass:
    pass_one = sp.simplify(1 - (1 / m) / (2 - (m + j - 1) / m))
    pass_all = 1 - j / m
    recursion = sp.simplify(pass_all / pass_all.subs(j, j - 1) - pass_one)  # 0: the two agree
    # the mean number of packets from drop to drop
    gap = sp.simplify(m + sp.summation(pass_all, (j, 1, m - 1)))
    derived = sp.simplify((1 / gap).subs(m, 1 / p_b))
    return Derivation(NO_NUMBER, "p", premises=(pass_one,), derived=derived, steps=(recursion, gap))


def spacing_uniform() -> Derivation:
    """RED's drop probability without ns-2's option ``wait_``.

    RED computes a probability p_b from its mean queue. Let m = 1/p_b. Packet n after a drop is
    dropped with probability p_b / (1 - n p_b), if packets 1 .. n - 1 passed. So each of packets
    1 .. m - 1 is equally likely to be the next that is dropped. The drop probability is 1 over the
    mean number of packets from drop to drop.
    """
    # the probabilities that packet n passes if all before it have passed, and that all n pass
    pass_one = sp.simplify(1 - (1 / m) / (1 - n / m))
    pass_all = (m - 1 - n) / (m - 1)
    recursion = sp.simplify(pass_all / pass_all.subs(n, n - 1) - pass_one)  # 0: the two agree
    # the mean number of packets from drop to drop
    gap = sp.simplify(sp.summation(1 - n / (m - 1), (n, 0, m - 2)))
    derived = sp.simplify((1 / gap).subs(m, 1 / p_b))
    return Derivation(NO_NUMBER, "p", premises=(pass_one,), derived=derived, steps=(recursion, gap))


def falling() -> tuple[Expr, ...]:
    """Four derivatives, whose signs prove that rates fall as the queue q or the loss p grows.

    The short formula of PFTK (Padhye et al. 1998) gives a loss-based flow's rate r:

        1/r = (R_0 + q/c) sqrt(b p)/K + (T_0 + q/c) min(1, 3 sqrt(3 b p/8)) p (1 + 32 p^2).

    R_0 is the RTT and T_0 the timeout without a queue, c the capacity, b the number of packets per
    ACK, and K the constant of the square-root law. The derivatives are

    - d(1/r)/dq, if the minimum is less than 1: positive;
    - d(1/r)/dp, if the minimum is less than 1: positive;
    - d(1/r)/dp, if the minimum is 1: positive;
    - the derivative with respect to q of a Vegas flow's rate alpha/(q/c - x), where x is its
      over-estimate of baseRTT: negative.
    """
    without_timeouts = (R_0 + q / c) * sp.sqrt(b * p) / K  # first term of 1/r
    last_factors = p * (1 + 32 * p**2)
    # 1/r if the minimum is less than 1, and if it is 1
    minimum_below_1 = without_timeouts + (T_0 + q / c) * 3 * sp.sqrt(3 * b * p / 8) * last_factors
    minimum_1 = without_timeouts + (T_0 + q / c) * last_factors
    vegas = alpha / (q / c - x)
    return (
        sp.diff(minimum_below_1, q),
        sp.diff(minimum_below_1, p),
        sp.diff(minimum_1, p),
        sp.diff(vegas, q),
    )
