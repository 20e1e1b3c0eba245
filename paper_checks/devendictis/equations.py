"""Equations (1) to (17) of De Vendictis and Baiocchi.

The symbols are the paper's: mu is the capacity in pkt/s, T the RTT without queueing in s, and B the
buffer in packets.  W_V and W_R are the windows of Vegas and Reno.  A mini-cycle is one round trip,
and a cycle lasts from one loss to the next.

Each equation has a record, which compares a printed with a computed value.  The printed value is
that of the printed formula for numbers that we chose.  The computed value is a count over
mini-cycles or over circulating packets, an iterated rule, or a root found by Brent's method; it
uses none of the package's formulas.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq

from paper_checks.checks import ARITHMETIC, Found, Known, Record, by_theory, formula
from paper_checks.circulation import circulate
from paper_checks.devendictis.scenes import ALPHA, LAM, MU
from paper_checks.senders import growth

T = 0.08  # s, the RTT without queueing; our choice, since the paper states none
B = 20.0  # packets, the buffer of figure 4
M = MU * T  # packets that the path holds while none waits; MU is the capacity mu, pkt/s

# texts for the notes of records
COUNTED = "computed: counted, one mini-cycle after another."
CASE = f"mu T {M:g} packets (we chose T = 80 ms), alpha {ALPHA:g}."
SIMULATED = (
    "computed: in a simulation of single packets, in which each ACK releases the next packet."
)


def _simulated(item: str, printed: Any, computed: Any, note: str) -> Record:
    """A record of a printed formula, beside a value from the simulation ``circulate``.

    In this simulation packets circulate between sources and a link, and the windows of the sources
    are constant. ``item`` is the record's name, ``printed`` is what the printed formula gives for
    numbers that we chose, and ``computed`` is the value from the simulation. ``note`` begins the
    record's note; if it ends with a semicolon, ``SIMULATED`` completes its last sentence.
    """
    return formula(
        item,
        printed=printed,
        compute=Known(computed, "replay"),  # "replay": the value comes from our own simulation
        tolerance=1e-6,
        note=f"{note} {SIMULATED} {ARITHMETIC}",
    )


def equation(
    item: str, printed: Any, computed: Any, note: str, erratum: str = "", tolerance: float = 1e-6
) -> Record:
    """A record of a printed formula, compared with a value found without this formula.

    ``printed`` is what the formula gives for numbers that we chose.  ``computed`` follows from the
    formula's premises in another way, such as by counting.  ``erratum`` is the corrected formula if
    the print is wrong.
    """
    return formula(
        item,
        printed=printed,
        compute=by_theory(computed),
        tolerance=tolerance,
        note=f"{note} {ARITHMETIC}",
        erratum=erratum,
    )


# --- section 2 and the equilibrium -----------------------------------------------------------


def window_rules() -> list[Record]:
    """The records of equations (1) to (3), the rules by which windows change.

    (1) is Vegas's backlog (Diff), (2) Reno's growth per round trip, and (3) Vegas's growth per ACK.
    """
    W, mu = 12.0, 120.0  # packets; pkt/s
    # a source with the constant window W alone on a link, simulated packet by packet: its mean RTT
    # (``RTT``) and the mean number of packets that wait (``waiting``)
    alone = circulate([int(W)], mu, T)
    return [
        _simulated(
            "equation 1",
            printed=(W / T - W / alone.RTT) * T,
            computed=alone.waiting,
            note="Diff is the number of packets that wait; at a link of 120 pkt/s, W 12, BaseRTT "
            "80 ms. printed: Diff with the mean RTT of the simulation;",
        ),
        Record(
            "equation 2",
            printed=1.0,
            compute=by_theory(growth(W)),
            prints=("by 1 packet every T",),
            tolerance=0.5 / W,
            note="By section 3, (2) means a growth of one packet every T. Computed: each of 12 "
            "ACKs adds 1/W, from W = 12 on. Tolerance: 1/(2 W), since W grows meanwhile.",
        ),
        formula(
            "equation 3",
            printed=M + ALPHA,
            compute=by_theory(_window_at_rest()),
            tolerance=1 / (M + ALPHA),
            note=f"{CASE} computed: the window at which rule (3), applied at each ACK of a single "
            "source, comes to rest, with RTT = max(T, W/mu). printed: (6) with W/RTT = mu, that is "
            "mu T + alpha. Tolerance: 1/W, by which an ACK changes the window.",
        ),
    ]


def _window_at_rest(reno: float = 0.0) -> float:
    """Vegas's window, packets, after so many ACKs that it only rises and falls by 1/W packets.

    Each ACK changes the window W by the paper's rule (3): by 1/W, upwards if Vegas's backlog is at
    most alpha, else downwards.  ``reno`` is Reno's window, which does not change.
    """
    W = 1.0
    for _ in range(20_000):
        RTT = max(T, (W + reno) / MU)
        W += 1 / W if (W / T - W / RTT) * T <= ALPHA else -1 / W
    return W


def _ack_by_ack(W: float, rounds: int) -> list[float]:
    """The windows of a source in mini-cycles 1, 2, ..., if each ACK adds 1/W to its window W.

    ``rounds`` is the number of mini-cycles after the first.
    """
    windows = [W]
    for _ in range(rounds):
        for _ in range(int(W)):
            W += 1 / W
        windows.append(W)
    return windows


def _backlog(V: float, q: float) -> float:
    """Vegas's backlog (the paper's Diff) with the window V if q packets wait, packets.

    The RTT is then T + q/mu, with the capacity mu and the RTT T without queueing.
    """
    return (V / T - V / (T + q / MU)) * T


def _window_at_alpha(q: float) -> float:
    """The Vegas window whose backlog is alpha if q packets wait, by Brent's method, packets."""
    return float(brentq(lambda V: _backlog(V, q) - ALPHA, 1e-6, M + q, xtol=1e-12))


# windows of Vegas and Reno, packets, with which a cycle may begin
STARTS = ((5.0, 20.0), (5.0, 50.0), (20.0, 60.0), (30.0, 30.0))


def _at_the_loss(V: float, R: float) -> tuple[float, float]:
    """The windows of Vegas and Reno when B + 1 packets wait, so that one is lost.

    B packets fit into the buffer, and M others are on their way.  The arguments are the windows at
    the beginning of the cycle, in packets: V of Vegas and R of Reno.  The function follows the
    windows from round trip to round trip.  Each ACK changes a window.  Vegas's grows by 1/V while
    its backlog is at most alpha, and otherwise falls by 1/V (the paper's rule (3)).  Reno's grows
    by 1/R.
    """
    while V + R < M + B + 1:  # in each pass one round trip: V ACKs for Vegas, R for Reno
        RTT = max(T, (V + R) / MU)
        for _ in range(int(V)):
            V += 1 / V if (V / T - V / RTT) * T <= ALPHA else -1 / V
        for _ in range(int(R)):
            R += 1 / R
    return V, R


def equilibrium() -> list[Record]:
    """The records of equations (4) to (7), and of the windows at the loss.

    A Vegas and a Reno source share the link. (4) and (5) are Vegas's rate and the packets in the
    network. By (6) and (7) Vegas keeps alpha packets in a queue of q packets. At the loss, B + 1
    packets wait.
    """
    W_V, W_R = 16, 90  # constant windows of Vegas and Reno, packets, for (4) and (5)
    both = circulate([W_V, W_R], MU, T)  # both sources on one link, simulated packet by packet
    rest = _window_at_rest(W_R)  # Vegas's window by rule (3) beside this window of Reno
    at_loss = ALPHA * (M + B) / B, (M + B) * (B - ALPHA) / B + 1  # W_V(N), W_R(N), as printed
    after = LAM * at_loss[0], at_loss[1] / 2  # (9) and (8)
    # the same windows, if a cycle begins with each of STARTS; their ranges as texts
    from_starts = np.array([_at_the_loss(*start) for start in STARTS])  # [starts, Vegas and Reno]
    ends = zip(from_starts.min(axis=0), from_starts.max(axis=0), strict=True)
    spans = [f"{low:.2f} to {high:.2f}" for low, high in ends]
    return [
        _simulated(
            "equation 4",
            printed=W_V / (W_R + W_V) * MU,
            computed=both.rates[0],
            note=f"{CASE} Windows 16 and 90.",
        ),
        _simulated(
            "equation 5",
            printed=W_V + W_R,
            computed=M + both.waiting,
            note=f"{CASE} Windows 16 and 90. q is the mean number of packets that wait;",
        ),
        formula(
            "equation 6",
            printed=ALPHA,
            compute=by_theory(_backlog(rest, rest + W_R - M)),
            tolerance=1 / rest,
            note=f"{CASE} computed: Diff where rule (3), applied at each ACK, comes to rest beside "
            "a Reno window that stays at 90 packets; the RTT follows from both windows. Tolerance: "
            "1/W, by which an ACK changes the window.",
        ),
        equation(
            "equation 7",
            printed=[ALPHA * (M + q) / q for q in (5.0, 12.0)],
            computed=[_window_at_alpha(q) for q in (5.0, 12.0)],
            note=f"{CASE} At q of 5 and 12; computed: the window whose Diff is alpha at an RTT "
            "of T + q/mu, by Brent's method.",
        ),
        formula(
            "section 3, W_V(N) and W_R(N)",
            printed=list(at_loss),
            compute=by_theory(list(_at_the_loss(*after))),
            tolerance=1.0,
            note="mu 1080, T 80 ms, B 20. The sum of both windows is mu T + B + 1 packets at the "
            "loss, so the two values are only one independent result. computed: Vegas's window "
            "changes by rule (3) at each ACK, Reno's by 1/W. They begin as after a loss by (9) and "
            "(8), at 3/4 of the printed W_V(N) and half of the printed W_R(N). The beginning "
            f"matters little: from {', '.join(f'({V:g}, {R:g})' for V, R in STARTS)} Vegas comes "
            f"to {spans[0]} and Reno to {spans[1]}, some of them just outside the tolerance. "
            "Tolerance: one packet, by which a window changes in a round trip.",
        ),
    ]


# --- the cycle, phase by phase ---------------------------------------------------------------


SLACK_NOTE = (
    "Tolerance: 3/(2 W) for each mini-cycle, 1/(2 W) since W grows meanwhile, and 1/W since the "
    "number of ACKs is whole and W is not."
)


class _Cycle(NamedTuple):
    """A cycle from loss to loss that is counted mini-cycle by mini-cycle; these are round trips.

    The records of equations (10) to (15) compare the paper's formulas with it.  The mini-cycles
    have the numbers 1 to N.  In phase 1, mini-cycles 1 to a, no packet waits.  In phase 2,
    mini-cycles a + 1 to b, the queue grows.  Windows grow by a packet per mini-cycle.
    """

    V1: float  # W_V(1), Vegas's window in mini-cycle 1, packets
    R1: float  # W_R(1), Reno's window in mini-cycle 1, packets
    bdp: float  # mu T, the bandwidth-delay product, packets
    N: int  # the number of mini-cycles
    a: int  # the last mini-cycle of phase 1, and the first with a full link
    b: int  # the last mini-cycle of phase 2, which we chose
    vegas: list[float]  # Vegas's windows in mini-cycles 1 to N, packets
    reno: list[float]  # Reno's windows

    @property
    def where(self) -> str:
        """The cycle's numbers as text, for the notes of records."""
        return (
            f"W_V(1) {self.V1:g}, W_R(1) {self.R1:g}, mu T {self.bdp:g} packets, a = {self.a}, "
            f"b = {self.b}."
        )

    @property
    def T(self) -> float:
        """The RTT without queueing for which mu T is ``bdp``, s."""
        return self.bdp / MU


def _cycle() -> _Cycle:
    """The cycle with W_V(1) = 10, W_R(1) = 20, mu T = 50 packets and 30 mini-cycles."""
    V1, R1, bdp, N = 10.0, 20.0, 50.0, 30
    vegas, reno = [V1 + i for i in range(N)], [R1 + i for i in range(N)]
    a = 1
    while vegas[a - 1] + reno[a - 1] < bdp:
        a += 1
    b = a + 6  # any later mini-cycle serves, since the formulas are for all b
    return _Cycle(V1=V1, R1=R1, bdp=bdp, N=N, a=a, b=b, vegas=vegas, reno=reno)


def _slack(by_ack: list[float]) -> float:
    """The tolerance of a window after the mini-cycles with the windows ``by_ack`` (SLACK_NOTE)."""
    return 1.5 * sum(1 / W for W in by_ack)


def reno_in_a_cycle() -> list[Record]:
    """The records of equation (10), Reno's window in mini-cycle i, and of the sum of these windows.

    A mini-cycle is a round trip.  With whole numbers of mini-cycles, the sum can be counted.
    """
    c = _cycle()
    R1, N, reno = c.R1, c.N, c.reno
    by_ack = _ack_by_ack(R1, N)  # Reno's windows, computed with single ACKs
    return [
        formula(
            "equation 10",
            printed=[R1 + i - 1 for i in (10, 20, N)],
            compute=by_theory([by_ack[i - 1] for i in (10, 20, N)]),
            tolerance=_slack(by_ack),
            note=f"W_R(1) {R1}; windows of mini-cycles 10, 20 and {N}; computed: each ACK adds "
            f"1/W. {SLACK_NOTE} All three windows have the tolerance of the last one.",
        ),
        equation(
            "section 3, P_Reno",
            printed=N * R1 + N * (N - 1) / 2,
            computed=sum(reno),
            note=f"{N} mini-cycles, counted.",
        ),
    ]


def phase_1() -> list[Record]:
    """The records of equations (11) and (12): both windows grow until they fill the link.

    The link is full in mini-cycle (round trip) a.  The records are about the windows in mini-cycle
    a, the number a itself, the packets A_V that Vegas sends in phase 1, and its duration Delta_a.
    """
    c = _cycle()  # the class ``_Cycle`` explains the fields
    V1, R1, bdp, a, vegas, reno, where = c.V1, c.R1, c.bdp, c.a, c.vegas, c.reno, c.where
    V_a, R_a = vegas[a - 1], reno[a - 1]  # W_V(a) and W_R(a)
    # the windows in mini-cycles 1 to a, computed with single ACKs
    vegas_by_ack, reno_by_ack = _ack_by_ack(V1, a - 1), _ack_by_ack(R1, a - 1)
    return [
        formula(
            "equation 11",
            printed=[V1 + a - 1, R1 + a - 1],
            compute=by_theory([vegas_by_ack[-1], reno_by_ack[-1]]),
            tolerance=_slack(vegas_by_ack),
            note=f"{where} printed: (11) solved for the windows of mini-cycle a, with the counted "
            f"a; computed: each ACK adds 1/W. {SLACK_NOTE}",
        ),
        _simulated(
            "equation 12",
            printed=V_a + R_a,
            computed=_most_without_wait(bdp),
            note=f"{where} The largest number of packets on their way of which none waits;",
        ),
        equation(
            "section 3, W_V(a)",
            printed=(bdp + V1 - R1) / 2,
            computed=V_a,
            note=f"{where} {COUNTED}",
        ),
        equation(
            "section 3, W_R(a)",
            printed=(bdp + R1 - V1) / 2,
            computed=R_a,
            note=f"{where} {COUNTED}",
        ),
        equation(
            "section 3, a", printed=(bdp - R1 - V1) / 2 + 1, computed=a, note=f"{where} {COUNTED}"
        ),
        equation(
            "section 3, A_V",
            printed=a * V1 + a * (a - 1) / 2,
            computed=sum(vegas[:a]),
            note=f"{where} {COUNTED}",
        ),
        equation(
            "section 3, Delta_a",
            printed=a * c.T,
            computed=sum(max(c.T, (v + r) / MU) for v, r in zip(vegas[:a], reno[:a], strict=True)),
            note=f"{where} Computed: the sum of the RTTs, each the sum of both windows over mu, "
            "or T.",
        ),
    ]


def phase_2() -> list[Record]:
    """The records of equations (13) to (15): the link is full, and both windows still grow.

    Phase 2 has the mini-cycles (round trips) a + 1 to b.  The records are about Vegas's rate in
    mini-cycle b, the RTTs, the sums of both windows, the duration Delta_b of the phase, and the
    packets B_V that Vegas sends in it.
    """
    c = _cycle()
    bdp, a, b, vegas, reno, where = c.bdp, c.a, c.b, c.vegas, c.reno, c.where
    numbers = range(a + 1, b + 1)
    sums = [vegas[i - 1] + reno[i - 1] for i in numbers]  # of both windows in each mini-cycle
    # both sources with the windows of mini-cycle b, simulated packet by packet
    at_b = circulate([int(vegas[b - 1]), int(reno[b - 1])], MU, c.T)
    V_a = vegas[a - 1]
    # Vegas's packets in the phase, by the printed formula and by the one that we derived
    printed_B_V = (b - a) * V_a + (a + 1 + b) * (b - a) / 2
    derived_B_V = (b - a) * V_a + (b - a + 1) * (b - a) / 2
    return [
        _simulated(
            "equation 13",
            printed=vegas[b - 1] / (vegas[b - 1] + reno[b - 1]) * MU,
            computed=at_b.rates[0],
            note=f"{where} The windows stay as in mini-cycle b;",
        ),
        _simulated(
            "equation 14",
            printed=vegas[b - 1] / at_b.rates[0],
            computed=at_b.RTT,
            note=f"{where} Mini-cycle b lasts an RTT, which is the window over the rate by "
            "Little's law. Rate and RTT come from the simulation;",
        ),
        _simulated(
            "equation 15",
            printed=[s / MU for s in sums],
            computed=[circulate([int(s)], MU, c.T).RTT for s in sums],
            note=f"{where} The RTTs in phase 2;",
        ),
        equation(
            "section 3, windows in phase 2",
            printed=[bdp + 2 * (i - a) for i in numbers],
            computed=sums,
            note=f"{where} {COUNTED}",
        ),
        equation(
            "section 3, Delta_b",
            printed=(c.T + (b - a + 1) / MU) * (b - a),
            computed=sum(s / MU for s in sums),
            note=f"s. {where} mu {MU:g} pkt/s. {COUNTED}",
        ),
        equation(
            "section 3, B_V",
            printed=printed_B_V,
            computed=sum(vegas[i - 1] for i in numbers),
            note=f"{where} {COUNTED}",
            erratum="(b-a) W_V(a) + (b-a+1)(b-a)/2: in mini-cycle i of phase 2 the window is "
            "W_V(a) + i - a, where i - a runs from 1 to b - a. The print sums i instead, from a + "
            f"1 to b, and so has a (b-a) = {a * (b - a)} packets too many. Corrected: "
            f"{derived_B_V:g}.",
        ),
    ]


def _most_without_wait(bdp: float) -> int:
    """The most packets that circulate without a queue on a path that holds ``bdp`` packets.

    It is found by simulating one packet more each time, until one has to wait.
    """
    n = 1
    while circulate([n + 1], MU, bdp / MU).waiting < 1e-6:
        n += 1
    return n


def _length_of_phase_2(V_a: float) -> float:
    """The number of mini-cycles (round trips) in phase 2 of a cycle, by Brent's method.

    Phase 2 begins in mini-cycle a with a full link, an empty queue and Vegas's window ``V_a``. In
    its k mini-cycles both windows grow by k packets, so the queue becomes q = 2 k. The phase ends
    when Vegas's window has grown to its equilibrium window (7), alpha (M + q)/q.
    """
    return float(
        brentq(lambda k: V_a + k - ALPHA * (M + 2 * k) / (2 * k), 1e-6, 1e3, xtol=1e-13, rtol=1e-14)
    )


def _window_beside(R: float) -> float:
    """Vegas's equilibrium window beside a Reno window of ``R`` packets, by Brent's method, packets.

    It is the root V of equation (7), V q = alpha (M + q), with the queue q = V + R - M.
    """
    return float(
        brentq(lambda V: V * (V + R - M) - ALPHA * (V + R), max(M - R, 0) + 1e-9, 1e4, xtol=1e-12)
    )


def phase_3() -> list[Record]:
    """The records of equations (16) and (17), about the end of a cycle from loss to loss.

    By (16) Vegas reaches its equilibrium window in mini-cycle (round trip) b. By (17) its window
    then stays at the equilibrium value (7), which falls as the queue grows. q packets wait, and the
    path holds M = mu T others.
    """
    a, V_a = 10.0, 9.0  # mini-cycle a, and the window W_V(a) in it, packets
    solved_k = _length_of_phase_2(V_a)
    # b as the paper prints it, which solves (16)
    printed_b = a + (-(V_a - ALPHA) + np.sqrt((V_a - ALPHA) ** 2 + 2 * ALPHA * M)) / 2
    k = printed_b - a
    R = 80.0 + np.arange(1, 6)  # Reno's windows in five mini-cycles of phase 3, W_R(b) = 80
    # (17): Vegas's windows in these mini-cycles
    C = R - ALPHA - M
    printed = (-C + np.sqrt(C**2 + 4 * ALPHA * R)) / 2
    solved = [_window_beside(R_i) for R_i in R]
    # by how many packets the queue grows from one of these mini-cycles to the next
    queue_steps = np.diff([V + R_i - M for V, R_i in zip(solved, R, strict=True)])
    return [
        Record(
            "section 3, in phase 3 the queue grows by at most 1 packet a mini-cycle",
            compute=by_theory(
                Found(
                    bool(np.all(queue_steps <= 1)),
                    detail=f"By {queue_steps.min():.2f} to {queue_steps.max():.2f} packets.",
                )
            ),
            note=f"{CASE} W_R(b) 80, five mini-cycles: q = W_V + W_R - mu T at the roots of (7), "
            "by Brent's method.",
        ),
        equation(
            "equation 16",
            printed=ALPHA * (M + 2 * k) / (2 * k),
            computed=V_a + solved_k,
            note=f"{CASE} a 10, W_V(a) 9. computed: the growing window W_V(a) + b - a where it "
            "equals (7) at q = 2 (b - a), by Brent's method.",
        ),
        equation(
            "section 3, b",
            printed=float(printed_b),
            computed=a + solved_k,
            note=f"{CASE} a 10, W_V(a) 9. computed: the root of equation 16.",
        ),
        equation(
            "equation 17",
            printed=printed.tolist(),
            computed=solved,
            note=f"{CASE} W_R(b) 80, five mini-cycles: the root of (7) with q = W_V + W_R - mu "
            "T, by Brent's method.",
            tolerance=1e-5,
        ),
    ]


RECORDS = (*window_rules(), *equilibrium(), *reno_in_a_cycle(), *phase_1(), *phase_2(), *phase_3())
