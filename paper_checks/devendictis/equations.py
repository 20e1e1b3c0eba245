"""Equations (1) to (17) of De Vendictis and Baiocchi.

The symbols are the paper's: mu is the capacity in pkt/s, T the RTT without queueing in s, and B the
buffer in packets.  W_V and W_R are the windows of Vegas and Reno.  A mini-cycle is one round trip,
and a cycle lasts from one loss to the next.

The printed side is the printed formula at a test point.  The computed side is a count over
mini-cycles or over circulating packets, an iterated rule, or a root found by Brent's method; it
uses none of the package's formulas.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import brentq

from paper_checks.checks import ARITHMETIC, AT_A_POINT, Found, Known, Record, exactly
from paper_checks.circulation import circulate
from paper_checks.devendictis.scenes import ALPHA, LAM, MU
from paper_checks.senders import growth

T, B = 0.08, 20.0  # figure 4's buffer with a T of ours
M = MU * T
HERE = f"mu T {M:g} packets (T of 80 ms is ours), alpha {ALPHA:g}."


COUNTED = "computed: counted over packets that circulate, each sent again when its ACK is back."


def _counted(item: str, printed: Any, computed: Any, note: str) -> Record:
    """A record whose computed value is counted with packets that circulate at fixed windows."""
    return Record(
        item,
        "equation",
        printed,
        Known(computed, "replay"),
        tolerance=1e-6,
        note=f"{note} {COUNTED} {ARITHMETIC}",
        prints=AT_A_POINT,
    )


def equation(
    item: str, printed: Any, computed: Any, note: str, erratum: str = "", tolerance: float = 1e-6
) -> Record:
    """A record of a printed formula, beside a value that follows from its premises in another way.

    ``erratum`` is the corrected formula if the print is wrong.
    """
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
    """The records of equations (1) to (3), the rules by which windows change."""
    W, slow = 12.0, 120.0  # pkt/s
    alone = circulate([int(W)], slow, T)
    return [
        _counted(
            "equation 1",
            (W / T - W / alone.RTT) * T,
            alone.waiting,
            "The packets that wait at a link of 120 pkt/s, W 12, BaseRTT 80 ms; the RTT is that of "
            "the packets.",
        ),
        Record(
            "equation 2",
            "equation",
            1.0,
            exactly(growth(W)),
            prints=("by 1 packet every T",),
            tolerance=0.5 / W,
            note="Section 3 makes of (2) a growth of one packet every T. Computed: 1/W for each of "
            "12 ACKs, from W = 12. Tolerance: the window's own growth meanwhile, 1/(2 W).",
        ),
        Record(
            "equation 3",
            "equation",
            M + ALPHA,
            exactly(_resting()),
            prints=AT_A_POINT,
            tolerance=1 / (M + ALPHA),
            note=f"{HERE} Window of a source alone at which rule (3), ACK by ACK, comes to rest, "
            "RTT = max(T, W/mu); printed: (6) with W/RTT = mu, that is mu T + alpha. Tolerance: "
            "the rule's own step, 1/W.",
        ),
    ]


def _resting(reno: float = 0.0) -> float:
    """Vegas's window by the paper's rule (3) after many ACKs, beside a fixed Reno window.

    From then on the window W only rises and falls by 1/W packets.  ``reno`` is Reno's window.
    """
    W = 1.0
    for _ in range(20_000):
        RTT = max(T, (W + reno) / MU)
        W += 1 / W if (W / T - W / RTT) * T <= ALPHA else -1 / W
    return W


def _ack_by_ack(W: float, rounds: int) -> list[float]:
    """The windows of a source in mini-cycles 1, 2, ..., if each ACK adds 1/W to its window W."""
    windows = [W]
    for _ in range(rounds):
        for _ in range(int(W)):
            W += 1 / W
        windows.append(W)
    return windows


def _backlog(V: float, q: float) -> float:
    """Vegas's backlog (the paper's Diff) with the window V if q packets wait, packets.

    The RTT is then T + q/mu.
    """
    return (V / T - V / (T + q / MU)) * T


def _balance(q: float) -> float:
    """The Vegas window whose backlog is alpha if q packets wait, by Brent's method, packets."""
    return float(brentq(lambda V: _backlog(V, q) - ALPHA, 1e-6, M + q, xtol=1e-12))


STARTS = ((5.0, 20.0), (5.0, 50.0), (20.0, 60.0), (30.0, 30.0))  # windows, Vegas and Reno


def _at_the_loss(V: float, R: float) -> tuple[float, float]:
    """The windows of Vegas and Reno when B + 1 packets wait; V and R are those at the beginning.

    Both windows change with each ACK.
    """
    while V + R < M + B + 1:
        RTT = max(T, (V + R) / MU)
        for _ in range(int(V)):
            V += 1 / V if (V / T - V / RTT) * T <= ALPHA else -1 / V
        for _ in range(int(R)):
            R += 1 / R
    return V, R


def equilibrium() -> list[Record]:
    """The records of equations (4) to (7), and of the windows at the loss."""
    W_V, W_R = 16, 90
    both = circulate([W_V, W_R], MU, T)
    rest = _resting(W_R)
    at_loss = ALPHA * (M + B) / B, (M + B) * (B - ALPHA) / B + 1
    after = LAM * at_loss[0], at_loss[1] / 2  # (9) and (8)
    others = np.array([_at_the_loss(*start) for start in STARTS])
    others = np.array([others.min(axis=0), others.max(axis=0)])
    spans = [f"{low:.2f} to {high:.2f}" for low, high in others.T]
    return [
        _counted("equation 4", W_V / (W_R + W_V) * MU, both.rates[0], f"{HERE} Windows 16 and 90."),
        _counted(
            "equation 5",
            W_V + W_R,
            M + both.waiting,
            f"{HERE} Windows 16 and 90. q: those that wait.",
        ),
        Record(
            "equation 6",
            "equation",
            ALPHA,
            exactly(_backlog(rest, rest + W_R - M)),
            prints=AT_A_POINT,
            tolerance=1 / rest,
            note=f"{HERE} Diff where rule (3), ACK by ACK, comes to rest beside a Reno window held "
            "at 90 packets, at the RTT of both. Tolerance: the rule's own step, 1/W.",
        ),
        equation(
            "equation 7",
            [ALPHA * (M + q) / q for q in (5.0, 12.0)],
            [_balance(q) for q in (5.0, 12.0)],
            f"{HERE} At q of 5 and 12; computed: the window whose Diff is alpha at an RTT of T + "
            "q/mu, by Brent's method.",
        ),
        Record(
            "section 3, W_V(N) and W_R(N)",
            "equation",
            list(at_loss),
            exactly(list(_at_the_loss(*after))),
            prints=AT_A_POINT,
            tolerance=1.0,
            note="mu 1080, T 80 ms, B 20: the windows when mu T + B + 1 packets are on their way, "
            "which is their sum: one measurement. Rule (3) ACK by ACK beside Reno's 1/W, from the "
            "windows after a loss by (9) and (8): 3/4 of the printed W_V(N), half of the printed "
            "W_R(N). A cycle starts from these; how little the start matters: "
            f"from {', '.join(f'({V:g}, {R:g})' for V, R in STARTS)} Vegas has {spans[0]}, Reno "
            f"{spans[1]}, of which the farthest miss the tolerance by little. Tolerance: one "
            "packet, by which a window moves in a round trip.",
        ),
    ]


# --- the cycle, phase by phase ---------------------------------------------------------------


SLACK = (
    "Tolerance: 3/(2 W) a mini-cycle, half for W's own growth meanwhile and one for W's part that "
    "is no whole ACK."
)


def phases() -> list[Record]:
    """The records of equations (10) to (17), with whole numbers of mini-cycles.

    They are taken at W_V(1) = 10, W_R(1) = 20 and mu T = 50 packets.
    """
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
    at_b = circulate([int(vegas[b - 1]), int(reno[b - 1])], MU, pipe_T)
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
            note=f"W_R(1) {R1}; windows of mini-cycles 10, 20 and {N}; computed: 1/W for each ACK. "
            f"{SLACK} The tolerance of the last mini-cycle is taken for each window.",
        ),
        equation(
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
        _counted(
            "equation 12",
            V_a + R_a,
            _most_without_wait(pipe),
            f"{where} The most packets on their way of which none waits;",
        ),
        equation("section 3, W_V(a)", (pipe + V1 - R1) / 2, V_a, f"{where} Counted."),
        equation("section 3, W_R(a)", (pipe + R1 - V1) / 2, R_a, f"{where} Counted."),
        equation("section 3, a", (pipe - R1 - V1) / 2 + 1, a, f"{where} Counted."),
        equation("section 3, A_V", a * V1 + a * (a - 1) / 2, sum(vegas[:a]), f"{where} Counted."),
        equation(
            "section 3, Delta_a",
            a * pipe_T,
            sum(max(pipe_T, (v + r) / MU) for v, r in zip(vegas[:a], reno[:a], strict=True)),
            f"{where} Computed: RTTs of the windows.",
        ),
        _counted(
            "equation 13",
            vegas[b - 1] / (vegas[b - 1] + reno[b - 1]) * MU,
            at_b.rates[0],
            f"{where} Mini-cycle b, its windows held;",
        ),
        _counted(
            "equation 14",
            vegas[b - 1] / at_b.rates[0],
            at_b.RTT,
            f"{where} Mini-cycle b lasts an RTT (Little's law, window over rate, both counted);",
        ),
        _counted(
            "equation 15",
            [s / MU for s in sums],
            [circulate([int(s)], MU, pipe_T).RTT for s in sums],
            f"{where} Phase 2, RTTs;",
        ),
        equation(
            "section 3, windows in phase 2",
            [pipe + 2 * (i - a) for i in second],
            sums,
            f"{where} Counted.",
        ),
        equation(
            "section 3, Delta_b",
            (pipe_T + (b - a + 1) / MU) * (b - a),
            sum(s / MU for s in sums),
            f"s. {where} mu {MU:g} pkt/s. Counted.",
        ),
        equation(
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


def _most_without_wait(pipe: float) -> int:
    """The most packets that circulate without a queue on a path that holds ``pipe`` packets."""
    n = 1
    while circulate([n + 1], MU, pipe / MU).waiting < 1e-6:
        n += 1
    return n


def _equilibrium_phase() -> list[Record]:
    """The records of equation (16), where Vegas reaches its equilibrium window, and of (17).

    By (17) Vegas's window then stays at its equilibrium value, which falls as the queue grows.
    """
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
            note=f"{HERE} W_R(b) 80, five mini-cycles: q = W_V + W_R - mu T at the roots of (7), "
            "by Brent's method.",
        ),
        equation(
            "equation 16",
            ALPHA * (M + 2 * k) / (2 * k),
            V_a + root,
            f"{HERE} a 10, W_V(a) 9: (7) at q = 2 (b - a) meets the growing window, by Brent's "
            "method.",
        ),
        equation(
            "section 3, b",
            float(printed_b),
            a + root,
            f"{HERE} a 10, W_V(a) 9: the root of equation 16.",
        ),
        equation(
            "equation 17",
            printed.tolist(),
            solved,
            f"{HERE} W_R(b) 80, five mini-cycles: the root of (7) with q = W_V + W_R - mu T, by "
            "Brent's method.",
            tolerance=1e-5,
        ),
    ]


RECORDS = (*window_rules(), *equilibrium(), *phases())
