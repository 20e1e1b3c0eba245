"""Derives the formulas of Podlesny and Williamson on Rate-Delay services, in SymPy.

A router with these services has one queue for flows that want a high rate (class R), and one for
flows that want a low delay (class D). A scheduler divides the link's capacity between the two.
Tests compare the derived formulas with the package's numeric code. The command ``vegasmodel paper
--html FILE`` shows the formulas as the paper prints them, and the derived ones where they differ.

The derivations cover equations (2) to (7) of the paper, the scheduler, the relative fairness and
the buffer of the delay class. Two more formulas are not in the paper: ``rate_utilization`` and
``delay_loss``. ``derivations()`` lists all derivations. Rates are in packets per second, buffers in
packets.
"""

from __future__ import annotations

import sympy as sp

from vegasmodel.symbolic.steps import NO_NUMBER, Derivation

# capacity; service rates of the classes R and D, and numbers of their flows; target ratio of rates
C, S_R, S_D, n_rate, n_delay, k = sp.symbols("C S_R S_D n_R n_D k", positive=True)
lam = sp.Symbol("lambda", positive=True)  # data volume of class D over that of class R
U_V, U_R = sp.symbols("U_V U_R", positive=True)  # utilisations of the Vegas and NewReno flows
B_D, d, t = sp.symbols("B_D d t", positive=True)  # buffer of class D, longest wait, time
# window, or sum of windows; its largest value; bandwidth-delay product; RTT without queueing;
# service rate; factor of a window at a loss; loss probability; W_max/BDP
W, W_max, BDP, T, S, b, p, y = sp.symbols("W W_max M T S b p y", positive=True)
L_R, L_D = sp.symbols("L_R L_D", positive=True)  # data that the classes R and D have sent
# a flow's window, RTT and estimate of the propagation time
cwnd, RTT, base = sp.symbols("cwnd RTT BaseRTT", positive=True)


def volume_ratio() -> Derivation:
    """lambda, the data volume of class D divided by that of class R: equation (5).

    The equation is that of Podlesny and Williamson. It holds if an R flow's rate is k times a D
    flow's. D is a Rate-Delay router's low-delay class, with n_D flows, and R its rate class, with
    n_R flows.
    """
    per_flow = sp.Eq(S_R / n_rate, k * S_D / n_delay)
    volumes = sp.Eq(lam, S_D / S_R)
    [solution] = sp.solve([per_flow, volumes], [S_D, lam], dict=True)
    return Derivation(
        "5",
        r"\lambda",
        premises=(per_flow, volumes),
        derived=solution[lam],
        printed=n_delay / (k * n_rate),
    )


def service_rates() -> tuple[Derivation, Derivation]:
    """The service rates of the two Rate-Delay classes: equations (6) and (7).

    The equations are those of Podlesny and Williamson. Class R gets a high rate, and class D a low
    delay. The two rates add up to the capacity, and their ratio is that of equation (5).
    """
    shares_fill_link = sp.Eq(S_R + S_D, C)
    ratio = sp.Eq(S_D, volume_ratio().derived * S_R)
    [solution] = sp.solve([shares_fill_link, ratio], [S_R, S_D], dict=True)
    total = n_delay + k * n_rate
    return (
        Derivation(
            "6",
            "S_R",
            premises=(shares_fill_link, ratio),
            derived=solution[S_R],
            printed=k * n_rate * C / total,
        ),
        Derivation(
            "7",
            "S_D",
            premises=(shares_fill_link, ratio),
            derived=solution[S_D],
            printed=n_delay * C / total,
        ),
    )


def scheduler() -> Derivation:
    """The scheduler's test ``k n_R L_D > n_D L_R``: has class D sent more than its share?

    The test is from figure 2 of Podlesny and Williamson. L_D and L_R are the volumes of data that
    the classes D and R have sent. n_D and n_R are the numbers of their flows. A flow of R should
    send k times as much as a flow of D. So D has sent more than its share if
    L_D/n_D > L_R/(k n_R).
    """
    beyond_share = L_D - volume_ratio().derived * L_R  # what D has sent beyond its share
    derived = sp.expand(beyond_share * k * n_rate)
    return Derivation(
        "figure 2",
        r"k n_R (L_D - \lambda L_R)",
        premises=(beyond_share,),
        derived=derived,
        printed=k * n_rate * L_D - n_delay * L_R,
    )


def relative_fairness() -> Derivation:
    """Relative fairness: a Vegas flow's mean utilisation divided by a NewReno flow's.

    Section IV-A of Podlesny and Williamson defines this ratio in words. In its example there are 3
    NewReno flows per Vegas flow. All NewReno flows together use 0.74 of the capacity and all Vegas
    flows 0.24. So the ratio is 0.24 / (0.74 / 3) = 0.97.
    """
    vegas, newreno = U_V / n_delay, U_R / n_rate
    derived = sp.simplify(vegas / newreno)
    in_words = (U_V / n_delay) / (U_R / n_rate)
    return Derivation(
        "section IV-A",
        "f",
        premises=(vegas, newreno),
        derived=derived,
        printed=in_words,
        note="defined in words; the printed 0.97 is 0.24 / (0.74 / 3) = 0.973, though our copy of "
        "the paper shows a dot in place of the first /",
    )


def delay_buffer() -> Derivation:
    """The buffer B_D of the delay class D, if no packet may wait longer than the time d.

    A Rate-Delay router serves class D at the rate S_D, so the last packet of a full buffer waits
    B_D/S_D.
    """
    served = sp.integrate(S_D, (t, 0, d))  # packets served in the time d
    empty = sp.Eq(B_D, served)  # the buffer is then just empty
    return Derivation(
        "section II-C", "B_D", premises=(empty,), derived=sp.solve(empty, B_D)[0], steps=(served,)
    )


def vegas_difference() -> Derivation:
    """Equation (2) of Podlesny and Williamson: ``diff``, the backlog that Vegas computes.

    The paper defines ``diff`` by the expected and the actual rate, equations (3) and (4). Here
    ``diff`` is derived as the number of the flow's packets in the queue: the flow's rate times its
    queueing delay. The two agree if BaseRTT is the propagation time.
    """
    expected, actual = cwnd / base, cwnd / RTT
    equation_2 = (expected - actual) * base
    queued = sp.expand(actual * (RTT - base))  # Little's law: rate times queueing delay
    return Derivation(
        "2",
        "diff",
        premises=(expected, actual),
        derived=queued,
        printed=sp.expand(equation_2),
        steps=(queued,),
    )


def rate_utilization() -> Derivation:
    """The fraction of its service rate S that class R uses, if all its flows lose simultaneously.

    R is a class of a Rate-Delay router, with n AIMD flows of the same RTT. W is the sum of their
    windows. It grows by n packets per round trip up to W_max. Then a loss multiplies it by b.

    T is the round-trip time without a queue, and M = S T (``BDP``). If W < M, the class uses only a
    part of S, and a round trip lasts T. If W > M, there is a queue, and a round trip lasts W/S. The
    time between two losses is the sum of the times with W < M (``idle``) and with W > M (``busy``).

    The result is a function of b and y, where y = W_max/M = 1 + B_R/M with the buffer B_R. It holds
    for b y <= 1. If b y > 1, the queue never empties, and the fraction is 1.
    """
    n = sp.Symbol("n", positive=True)
    idle = sp.integrate(T / n, (W, b * W_max, BDP))  # dt/dW
    busy = sp.integrate(W / (S * n), (W, BDP, W_max))
    packets = sp.integrate(W / n, (W, b * W_max, W_max))
    ratio = packets / (S * (idle + busy))
    derived = sp.factor(sp.simplify(ratio.subs({W_max: y * BDP}).subs(BDP, S * T)))
    return Derivation(
        NO_NUMBER, "U", premises=(sp.Eq(BDP, S * T),), derived=derived, steps=(idle, busy, packets)
    )


def delay_loss() -> Derivation:
    """The product p W^2 for Vegas flows whose buffer is too small for alpha packets of each.

    p is the loss probability and W the mean window. The window of such a flow grows by one packet
    per round trip until a loss multiplies it by b. So it is a sawtooth from b W_max to W_max. There
    is one loss per tooth, so p is 1 divided by the number of packets sent in a tooth.
    """
    packets = sp.integrate(W, (W, b * W_max, W_max))
    mean = (1 + b) / 2 * W_max
    derived = sp.factor(sp.simplify(mean**2 / packets))
    return Derivation(
        NO_NUMBER,
        "p W^2",
        premises=(sp.Eq(p, 1 / packets),),
        derived=derived,
        steps=(packets, mean),
    )


def derivations() -> tuple[Derivation, ...]:
    """All derivations of this module."""
    return (
        volume_ratio(),
        *service_rates(),
        scheduler(),
        relative_fairness(),
        delay_buffer(),
        vegas_difference(),
        rate_utilization(),
        delay_loss(),
    )
