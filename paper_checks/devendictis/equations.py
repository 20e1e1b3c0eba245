"""Equations (1) to (17) of ``devendictis`` and its appendix A.

The printed side is the printed formula at a test point.  The computed side is a count over
mini-cycles, or a root found by Brent's method; none of the package's formulas is used.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import brentq

from paper_checks.checks import AT_A_POINT, Found, Record, exactly

MU, T, ALPHA, LAM, B = 1080.0, 0.08, 3.0, 0.75, 20.0  # figure 3 with a T of ours
M = MU * T
ARITHMETIC = "Tolerance: rounding of the arithmetic."


def _equation(
    item: str, printed: Any, computed: Any, note: str, erratum: str = "", tolerance: float = 1e-6
) -> Record:
    return Record(
        item,
        "equation",
        printed,
        exactly(computed),
        tolerance=tolerance,
        note=f"{note} {ARITHMETIC}",
        erratum=erratum,
        prints=AT_A_POINT,
    )


# --- section 2 and the equilibrium -----------------------------------------------------------


def window_rules() -> list[Record]:
    """Equations (1) to (3)."""
    W, RTT = 12.0, 0.1
    actual = W / RTT
    expected = W / T
    grown = W
    for _ in range(int(W)):  # the ACKs of one round trip
        grown += 1 / grown
    return [
        _equation(
            "equation 1",
            (expected - actual) * T,
            W - actual * T,
            "W 12, BaseRTT 80 ms, RTT 100 ms; computed: window less what the empty path holds at "
            "the actual rate.",
        ),
        Record(
            "equation 2",
            "equation",
            1.0,
            exactly(grown - W),
            prints=AT_A_POINT,
            tolerance=0.5 / W,
            note="A step of 1/W an ACK is one packet a round trip; computed: 12 ACKs from W = 12. "
            "Tolerance: the window's own growth meanwhile, 1/(2 W).",
        ),
        Record(
            "equation 3",
            "equation",
            M + ALPHA,
            exactly(_resting()),
            prints=AT_A_POINT,
            tolerance=1 / (M + ALPHA),
            note="Window of a source alone at which rule (3), ACK by ACK, comes to rest, RTT = "
            "max(T, W/mu); printed: alpha packets beside the mu T of a full pipe. Tolerance: the "
            "rule's own step, 1/W.",
        ),
    ]


def _resting(reno: float = 0.0) -> float:
    """Window of rule (3) after many ACKs beside a held Reno window: it moves by 1/W then."""
    W = 1.0
    for _ in range(20_000):
        RTT = max(T, (W + reno) / MU)
        W += 1 / W if (W / T - W / RTT) * T <= ALPHA else -1 / W
    return W


def _ack_by_ack(W: float, rounds: int) -> list[float]:
    """Windows of mini-cycles 1, 2, ... of a source that grows by 1/W for each ACK."""
    windows = [W]
    for _ in range(rounds):
        for _ in range(int(W)):
            W += 1 / W
        windows.append(W)
    return windows


def _shares(W_V: float, W_R: float) -> tuple[float, float]:
    """Rate of Vegas and queue: the RTT at which both rates add up to mu, by Brent's method."""
    RTT = float(brentq(lambda r: (W_V + W_R) / r - MU, 1e-3, 10.0, xtol=1e-15))
    return W_V / RTT, (RTT - T) * MU


def equilibrium() -> list[Record]:
    """Equations (4) to (7) and the windows at the loss."""
    W_V, W_R = 16.0, 90.0
    rate, queue = _shares(W_V, W_R)

    def backlog(V: float, q: float) -> float:
        """Diff of a window V beside a Reno window that makes the queue q."""
        own, _ = _shares(V, M + q - V)
        return (V / T - own) * T

    def balance(q: float) -> float:
        return float(brentq(lambda V: backlog(V, q) - ALPHA, 1e-6, M + q - 1e-6, xtol=1e-12))

    V_N, rest = balance(B), _resting(W_R)
    return [
        _equation(
            "equation 4",
            W_V / (W_R + W_V) * MU,
            rate,
            "Windows 16 and 90; computed: window over the RTT at which both rates add up to mu.",
        ),
        _equation("equation 5", W_V + W_R, M + queue, "The queue of that RTT."),
        Record(
            "equation 6",
            "equation",
            ALPHA,
            exactly(backlog(rest, rest + W_R - M)),
            prints=AT_A_POINT,
            tolerance=1 / rest,
            note="Diff where rule (3), ACK by ACK, comes to rest beside a Reno window held at 90 "
            "packets, at the RTT of both. Tolerance: the rule's own step, 1/W.",
        ),
        _equation(
            "equation 7",
            [ALPHA * (M + q) / q for q in (5.0, 20.0)],
            [balance(q) for q in (5.0, 20.0)],
            "At q of 5 and 20; computed: the window whose Diff is alpha, by Brent's method.",
        ),
        _equation("section 3, W_V(N)", ALPHA * (M + B) / B, V_N, "(7) at q = B."),
        _equation(
            "section 3, W_R(N)",
            (M + B) * (B - ALPHA) / B + 1,
            M + B + 1 - V_N,
            "The packet number mu T + B + 1 is lost.",
        ),
    ]


# --- the cycle, phase by phase ---------------------------------------------------------------


SLACK = (
    "Tolerance: 3/(2 W) a mini-cycle, half for W's own growth meanwhile and one for W's part that "
    "is no whole ACK."
)


def phases() -> list[Record]:
    """Equations (10) to (17), with whole numbers of mini-cycles: W_V(1) 10, W_R(1) 20, mu T 50."""
    V1, R1, pipe, N = 10.0, 20.0, 50.0, 30
    reno = [R1 + i for i in range(N)]
    vegas = list(reno)
    a = 1
    while V1 + R1 + 2 * (a - 1) < pipe:  # the first mini-cycle with a full link
        a += 1
    vegas = [V1 + i for i in range(N)]
    V_a, R_a = vegas[a - 1], reno[a - 1]
    b = a + 6
    second = range(a + 1, b + 1)
    sums = [vegas[i - 1] + reno[i - 1] for i in second]
    printed_B_V = (b - a) * V_a + (a + 1 + b) * (b - a) / 2
    right = (b - a) * V_a + (b - a + 1) * (b - a) / 2
    pipe_T = pipe / MU
    by_ack = _ack_by_ack(R1, N)
    slack = 1.5 * sum(1 / W for W in by_ack)
    short = 1.5 * sum(1 / W for W in _ack_by_ack(V1, a)[:a])
    where = f"W_V(1) 10, W_R(1) 20, mu T 50 packets, a = {a}, b = {b}."
    return [
        Record(
            "equation 10",
            "equation",
            [R1 + i - 1 for i in (10, 20, N)],
            exactly([by_ack[i - 1] for i in (10, 20, N)]),
            prints=AT_A_POINT,
            tolerance=slack,
            note=f"Windows of mini-cycles 10, 20 and {N}; computed: 1/W for each ACK. {SLACK}",
        ),
        _equation(
            "section 3, P_Reno", N * R1 + N * (N - 1) / 2, sum(reno), f"{N} mini-cycles, counted."
        ),
        Record(
            "equation 11",
            "equation",
            [V1 + a - 1, R1 + a - 1],
            exactly([_ack_by_ack(V1, a)[a - 1], by_ack[a - 1]]),
            prints=AT_A_POINT,
            tolerance=short,
            note=f"{where} printed: solved for the windows of mini-cycle a, which is counted; "
            f"computed: 1/W for each ACK. {SLACK}",
        ),
        _equation("equation 12", V_a + R_a, pipe, where),
        _equation("section 3, W_V(a)", (pipe + V1 - R1) / 2, V_a, where),
        _equation("section 3, W_R(a)", (pipe + R1 - V1) / 2, R_a, where),
        _equation("section 3, a", (pipe - R1 - V1) / 2 + 1, a, f"{where} Counted."),
        _equation("section 3, A_V", a * V1 + a * (a - 1) / 2, sum(vegas[:a]), f"{where} Counted."),
        _equation(
            "section 3, Delta_a",
            a * pipe_T,
            sum(max(pipe_T, (v + r) / MU) for v, r in zip(vegas[:a], reno[:a], strict=True)),
            f"{where} Computed: RTTs of the windows.",
        ),
        _equation(
            "equation 13",
            vegas[b - 1] / (vegas[b - 1] + reno[b - 1]) * MU,
            vegas[b - 1] / (pipe_T + (vegas[b - 1] + reno[b - 1] - pipe) / MU),
            f"{where} Mini-cycle b: window over RTT.",
        ),
        _equation(
            "equation 14",
            vegas[b - 1] / (vegas[b - 1] / (vegas[b - 1] + reno[b - 1]) * MU),
            pipe_T + (vegas[b - 1] + reno[b - 1] - pipe) / MU,
            f"{where} Mini-cycle b: it lasts one RTT.",
        ),
        _equation(
            "equation 15",
            [s / MU for s in sums],
            [pipe_T + (s - pipe) / MU for s in sums],
            f"{where} Phase 2: RTT = T + q/mu.",
        ),
        _equation(
            "section 3, windows in phase 2",
            [pipe + 2 * (i - a) for i in second],
            sums,
            f"{where} Counted.",
        ),
        _equation(
            "section 3, Delta_b",
            (pipe_T + (b - a + 1) / MU) * (b - a),
            sum(s / MU for s in sums),
            f"{where} Counted.",
        ),
        _equation(
            "section 3, B_V",
            printed_B_V,
            sum(vegas[i - 1] for i in second),
            f"{where} Counted.",
            erratum="(b-a) W_V(a) + (b-a+1)(b-a)/2: the window grows by i - a from saturation on, "
            f"so the sum runs over 1 .. b-a; the print, with (a+1+b), adds a (b-a) = {a * (b - a)} "
            f"packets. Corrected: {right:g}.",
        ),
        *_equilibrium_phase(),
    ]


def _equilibrium_phase() -> list[Record]:
    """Where Vegas meets its equilibrium, (16), and follows it, (17)."""
    a, V_a = 10.0, 9.0
    root = float(
        brentq(lambda k: V_a + k - ALPHA * (M + 2 * k) / (2 * k), 1e-6, 1e3, xtol=1e-13, rtol=1e-14)
    )
    printed_b = a + (-(V_a - ALPHA) + np.sqrt((V_a - ALPHA) ** 2 + 2 * ALPHA * M)) / 2
    R_b, steps = 80.0, np.arange(1, 6)
    C = R_b + steps - ALPHA - M
    printed = (-C + np.sqrt(C**2 + 4 * ALPHA * (R_b + steps))) / 2
    solved = [
        float(
            brentq(
                lambda V, R=R: V * (V + R - M) - ALPHA * (V + R),
                max(M - R, 0) + 1e-9,
                1e4,
                xtol=1e-12,
            )
        )
        for R in R_b + steps
    ]
    k = printed_b - a
    steps_of_q = np.diff([V + R - M for V, R in zip(solved, R_b + steps, strict=True)])
    return [
        Record(
            "section 3, in phase 3 the queue grows by at most 1 packet a mini-cycle",
            "claim",
            True,
            exactly(
                Found(
                    bool(np.all(steps_of_q <= 1)),
                    detail=f"By {steps_of_q.min():.2f} to {steps_of_q.max():.2f} packets.",
                )
            ),
            note="W_R(b) 80, five mini-cycles: q = W_V + W_R - mu T at the roots of (7), by "
            "Brent's method.",
        ),
        _equation(
            "equation 16",
            ALPHA * (M + 2 * k) / (2 * k),
            V_a + root,
            "a 10, W_V(a) 9: (7) at q = 2 (b - a) meets the growing window, by Brent's method.",
        ),
        _equation("section 3, b", float(printed_b), a + root, "The same root."),
        _equation(
            "equation 17",
            printed.tolist(),
            solved,
            "W_R(b) 80, five mini-cycles: the root of (7) with q = W_V + W_R - mu T, by Brent's "
            "method.",
            tolerance=1e-5,
        ),
    ]


# --- appendix A and the threshold ------------------------------------------------------------


def small_buffers() -> list[Record]:
    """Appendix A at lambda 3/4, mu T 54, B 5, for which N = 11 and a = 8 are whole; B_th."""
    pipe, small, lam = 54.0, 5.0, 0.75
    V_N = (pipe + small + 1) / (3 - 2 * lam)
    R_N = pipe + small + 1 - V_N
    N = round((1 - lam) * V_N) + 1
    vegas = [lam * V_N + i for i in range(N)]
    reno = [R_N / 2 + i for i in range(N)]
    sums = [v + r for v, r in zip(vegas, reno, strict=True)]
    a = next(i for i, s in enumerate(sums, 1) if s >= pipe)
    T_small = pipe / MU
    base = (N - 1) / (1 - lam)
    counted = sum(max(s, pipe) / MU for s in sums)
    where = "lambda 3/4, mu T 54, B 5."
    threshold = float(
        brentq(lambda x: (M + x + 1) / (3 - 2 * LAM) - ALPHA * (M + x) / x, 0.1, 50, xtol=1e-12)
    )
    return [
        _equation(
            "appendix A, windows at the loss",
            [lam * V_N + N - 1, R_N / 2 + N - 1],
            [V_N, R_N],
            f"{where} Both grow by N - 1 packets from lambda W_V(N) and W_R(N)/2.",
        ),
        _equation(
            "appendix A, N",
            (pipe + small + 1) * (1 - lam) / (3 - 2 * lam) + 1,
            len(sums),
            f"{where} Counted.",
        ),
        _equation("appendix A, P_Reno", 1.5 * N * (N - 1), sum(reno), f"{where} Counted."),
        _equation(
            "appendix A, P_Vegas",
            (1 + lam) / (2 * (1 - lam)) * N * (N - 1),
            sum(vegas),
            f"{where} Counted.",
        ),
        _equation("appendix A, a", 0.5 * (pipe - base) + 1, a, f"{where} Counted."),
        _equation(
            "appendix A, Delta",
            a * T_small + (base + N - a + 1) * (N - a) / MU,
            counted,
            f"s. {where} Counted: the windows over mu, or T while they leave the link idle.",
            erratum="a T + [(N-1)/(1-lambda) + N + a - 1] (N-a)/mu: mini-cycle i has windows of "
            "(N-1)/(1-lambda) + 2 (i-1) packets, and the sum from a+1 to N is that. The print, "
            "with - a + 1, is 2 (a-1)(N-a)/mu seconds short, so that its rates can pass the "
            "link's.",
        ),
        Record(
            "section 3, B_th",
            "equation",
            ALPHA * (3 - 2 * LAM),
            exactly(threshold),
            prints=AT_A_POINT,
            tolerance=ALPHA * (3 - 2 * LAM) / M,
            note="Packets: the root of W_V(N) = (mu T + B + 1)/(3 - 2 lambda) = alpha (mu T + B)/B "
            "by Brent's method, against the printed approximation. Tolerance: its next order, "
            "B_th/(mu T).",
        ),
        Record(
            "section 4, the threshold of figure 3",
            "claim",
            5,
            exactly(threshold),
            tolerance=0.5,
            note="Packets: the root of the paper's own condition at T = 80 ms. For any T it is "
            "below alpha (3 - 2 lambda) = 4.5, since B_th = 4.5 (mu T + B_th)/(mu T + B_th + 1). "
            "Tolerance: rounding to a whole packet.",
        ),
        Record(
            "section 3, equal throughputs below B_th at lambda = 1/2",
            "claim",
            1.0,
            exactly((1 + 0.5) / (3 * (1 - 0.5))),
            tolerance=1e-12,
            note="P_Vegas/P_Reno = (1 + lambda)/(3 (1 - lambda)) of appendix A.",
        ),
        Record(
            "section 3, Vegas pushes more for lambda above 1/2",
            "claim",
            True,
            exactly(Found(sum(vegas) > sum(reno), detail=f"{sum(vegas):g} against {sum(reno):g}.")),
            note=f"Packets of a cycle. {where} Counted.",
        ),
    ]


RECORDS = (*window_rules(), *equilibrium(), *phases(), *small_buffers())
