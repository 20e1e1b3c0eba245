"""Evaluates equations (7) to (17) of De Vendictis and Baiocchi (2002) as they are printed.

The equations of the paper's appendix A are here, too. The paper models a Vegas source beside a Reno
source (`minicycle` describes the model). Two of its equations are wrong. Comments mark them, and
`docs/errata.md` has the derivations.

The mini-cycles (round trips) of a cycle have the numbers 1 to N. A cycle has three phases: from 1
to a, from a to b, and from b to N. The packets sent in a phase are a sum over its mini-cycles. The
paper has closed forms of these sums, and we use them although a, b and N are in general not whole
numbers. Only the sum of Vegas's windows over the last phase, equation (17), has no closed form. We
compute it by the formula of Euler and Maclaurin. If b and N are whole numbers, the error of this
formula is at most 1e-4 packets.
"""

from __future__ import annotations

import numpy as np

from vegasmodel.metrics import Floats


def throughput(
    mu: Floats, T: Floats, B: Floats, alpha: Floats, lam: Floats
) -> tuple[Floats, Floats]:
    """The throughputs Lambda_Vegas and Lambda_Reno as De Vendictis and Baiocchi print them, pkt/s.

    mu is the capacity in pkt/s, T the round trip without queues in s; the buffer B and alpha are in
    packets, and ``lam`` is lambda, the factor of Vegas's window at a loss. If B is below B_th, the
    equations are those of ``appendix_a``, otherwise those of ``equilibrium``. B_th is the paper's
    approximation alpha (3 - 2 lambda). The result is NaN if the buffer exceeds mu T: the paper's
    hypothesis 2 excludes that.
    """
    B_th = alpha * (3 - 2 * lam)
    below_B_th = np.less(B, B_th)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        small, large = appendix_a(mu, T, B, lam), equilibrium(mu, T, B, alpha, lam)
        P_Vegas, P_Reno, Delta = (
            np.where(below_B_th, *either) for either in zip(small, large, strict=True)
        )
        vegas, reno = P_Vegas / Delta, P_Reno / Delta
        # With a larger buffer the queue never empties: a < 1, and sums from 1 to a run backwards.
        # The paper's hypothesis 2 excludes this.
        valid = mu * T >= B
    return np.where(valid, vegas, np.nan)[()], np.where(valid, reno, np.nan)[()]


def equilibrium(
    mu: Floats, T: Floats, B: Floats, alpha: Floats, lam: Floats
) -> tuple[Floats, Floats, Floats]:
    """The cycle from one loss to the next by the printed equations, for buffers of B_th or more.

    With such a buffer, Vegas's window stops growing before the loss: it reaches its equilibrium.
    B_th is the paper's approximation of the least buffer for which this is so. Returns P_Vegas and
    P_Reno, the packets that each flow sends in a cycle, and Delta, the duration of the cycle in
    seconds. The equations are those of De Vendictis and Baiocchi; comments have their numbers.

    W_V_1, W_V_a and W_V_N are Vegas's windows in the mini-cycles 1, a and N, and W_R_1 to W_R_N are
    Reno's. A_V, B_V and C_V are the packets that Vegas sends in the three phases.

    mu is the capacity in pkt/s, T the RTT without queueing in s, B the buffer in packets, alpha the
    number of packets that Vegas keeps queued, and ``lam`` the factor of its window at a loss.
    """
    M = mu * T
    # (7) at q = B, the full buffer: the windows at the loss
    W_V_N = alpha * (M + B) / B
    W_R_N = (M + B) * (B - alpha) / B + 1
    # (8), (9): the windows after the loss
    W_R_1, W_V_1 = W_R_N / 2, lam * W_V_N
    # (10) at i = N: the number of mini-cycles, and the sum of Reno's windows
    N = W_R_N - W_R_1 + 1
    P_Reno = N * W_R_1 + N * (N - 1) / 2
    # (11), (12), phase 1: both windows grow by a packet per mini-cycle until they fill the link
    W_V_a = (M + W_V_1 - W_R_1) / 2
    W_R_a = (M + W_R_1 - W_V_1) / 2
    a = (M - W_R_1 - W_V_1) / 2 + 1
    A_V = a * W_V_1 + a * (a - 1) / 2
    Delta_a = a * T
    # (16) and its solution b, the mini-cycle in which Vegas's window stops growing
    b = a + (-(W_V_a - alpha) + np.sqrt((W_V_a - alpha) ** 2 + 2 * alpha * M)) / 2
    # (15), the duration of a mini-cycle, summed over phase 2
    Delta_b = (T + (b - a + 1) / mu) * (b - a)
    # Printed wrong: a + 1 + b should be b - a + 1, as the window grows by i - a up to mini-cycle i
    B_V = (b - a) * W_V_a + (a + 1 + b) * (b - a) / 2
    # (17), Vegas's window, and (15), the duration, summed over phase 3
    W_R_b = W_R_a + b - a
    C_V = phase_3_sum(W_R_b, N - b, M, alpha)
    steps = N - b
    Delta_c = (C_V + steps * W_R_b + steps * (steps + 1) / 2) / mu
    return A_V + B_V + C_V, P_Reno, Delta_a + Delta_b + Delta_c


def vegas_window(W_R: Floats, M: Floats, alpha: Floats) -> Floats:
    """Vegas's equilibrium window if Reno's window is ``W_R`` packets.

    This is equation (17) of De Vendictis and Baiocchi. M is the bandwidth-delay product mu T in
    packets, and alpha the number of packets that Vegas keeps in the queue.
    """
    # the positive root of W_V^2 + C W_V - alpha W_R = 0, without loss of digits to cancellation
    C = W_R - alpha - M
    root = np.sqrt(C * C + 4 * alpha * W_R)
    return np.where(C > 0, 2 * alpha * W_R / np.where(C > 0, C + root, 1.0), (root - C) / 2)


def phase_3_sum(W_R: Floats, steps: Floats, M: Floats, alpha: Floats) -> Floats:
    """C_V, the packets that Vegas sends in the last phase of a cycle: the sum of its windows.

    The sum is over the mini-cycles (round trips) i of the phase, with the windows W_V of equation
    (17) of De Vendictis and Baiocchi. ``W_R`` is Reno's window at the start of the phase, ``M`` the
    bandwidth-delay product mu T, and ``alpha`` the number of packets that Vegas keeps in the queue,
    all in packets. The number of mini-cycles, ``steps``, need not be whole. So the formula of Euler
    and Maclaurin replaces the sum by three terms:

    - the integral of W_V over i,
    - half the difference between the last and the first W_V,
    - a twelfth of the difference between the last and the first dW_V/di.

    The integral is computed over the queue q. With X = alpha mu T, we have W_V = alpha + X/q, and
    di = (1 + X/q^2) dq.
    """
    X = alpha * M

    def parts_at(R: Floats) -> tuple[Floats, Floats, Floats]:
        """At Reno's window R: W_V, dW_V/di, and the integral of W_V over i up to a constant."""
        W = vegas_window(R, M, alpha)
        q = W + R - M
        slope = -X / (q * q + X)
        integral = alpha * (q - X / q) + X * np.log(q) - X * X / (2 * q * q)
        return W, slope, integral

    first_W, first_slope, first_integral = parts_at(W_R)
    last_W, last_slope, last_integral = parts_at(W_R + steps)
    return last_integral - first_integral + (last_W - first_W) / 2 + (last_slope - first_slope) / 12


def appendix_a(mu: Floats, T: Floats, B: Floats, lam: Floats) -> tuple[Floats, Floats, Floats]:
    """The cycle from one loss to the next by the printed equations, for buffers below B_th.

    With such a buffer, Vegas's window grows until the loss. B_th is the paper's approximation of
    the least buffer with which it stops growing earlier. Returns P_Vegas and P_Reno, the packets
    that each flow sends in a cycle, and Delta, the duration of the cycle in seconds. The equations
    are those of appendix A of De Vendictis and Baiocchi.

    mu is the capacity in pkt/s, T the RTT without queueing in s, B the buffer in packets, and
    ``lam`` the factor of Vegas's window at a loss.
    """
    M = mu * T
    # the number of mini-cycles (round trips) from one loss to the next
    N = (M + B + 1) * (1 - lam) / (3 - 2 * lam) + 1
    P_Reno = 3 / 2 * N * (N - 1)
    P_Vegas = (1 + lam) / (2 * (1 - lam)) * N * (N - 1)
    # the mini-cycle in which the windows add up to mu T, so that the queue begins to grow
    a = (M - (N - 1) / (1 - lam)) / 2 + 1
    # Printed wrong: the bracket should be (N-1)/(1-lambda) + N + a - 1 = mu T + N - a + 1
    Delta = a * T + ((N - 1) / (1 - lam) + N - a + 1) * (N - a) / mu
    return P_Vegas, P_Reno, Delta
