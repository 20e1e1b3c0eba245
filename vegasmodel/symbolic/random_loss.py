"""Derives formulas for flows under random loss in SymPy: square-root laws, PFTK and Vegas.

PFTK is the model of Padhye, Firoiu, Towsley and Kurose (1998). A packet is lost with probability p.
A loss multiplies the window by d. A receiver sends one ACK for every b packets. The PFTK paper
prints its formulas for d = 1/2; the field ``printed`` of a derivation holds the formula as printed.
Tests compare the derived formulas with the numeric code of ``equilibrium.random_loss``.
"""

from __future__ import annotations

import sympy as sp

from vegasmodel.fields import kinds
from vegasmodel.fields.rules import Integer
from vegasmodel.symbolic.steps import NO_NUMBER, Derivation, Expr

p, d, b, w, s = sp.symbols("p d b w s", positive=True)  # w: a window; s: the order of a moment
W, W_m = sp.symbols("W W_m", positive=True)  # the window at a loss, and the largest window
RTT, base, alpha, c = sp.symbols("RTT BaseRTT alpha c", positive=True)  # of Vegas; c: capacity
HALF = sp.Rational(1, 2)


def square_root_periodic() -> Derivation:
    """The constant K of the square-root law, K = rate * RTT * sqrt(b p), under periodic losses.

    One packet of every 1/p packets is lost. The window is a sawtooth: it grows from d W to W by one
    packet in b round trips, and a loss multiplies it by d.
    """
    rounds = b * (1 - d) * W  # round trips from loss to loss
    packets = sp.integrate(b * w, (w, d * W, W))  # sent in them
    per_round = packets / rounds
    [top] = [r for r in sp.solve(sp.Eq(packets, 1 / p), W) if r.subs({b: 1, p: 1, d: HALF}) > 0]
    derived = sp.simplify(per_round.subs(W, top) * sp.sqrt(b * p))
    return Derivation(
        NO_NUMBER,
        r"K_{\mathrm{periodic}}",
        premises=(sp.Eq(packets, 1 / p),),
        derived=derived,
        steps=(rounds, packets, top),
    )


def moment_step() -> Derivation:
    """The ratio E U^s / E U^(s-1) of two moments of U = b p w^2 / 2, where w is the window.

    E is the mean over the packets sent, and s is any positive number. b is the number of packets
    per ACK.

    Each packet is lost with probability p. A loss multiplies the window by d, so U by d^2. The
    window grows by one packet in b round trips, so by 1/(b w) per packet sent. U then grows by p
    per packet.

    Time is counted in packets sent, and its unit is 1/p packets, the mean number between losses. So
    U grows at rate 1, and losses come at rate 1.

    Per unit of time, growth adds s E U^(s-1) to E U^s, and losses take away (1 - d^(2s)) E U^s. In
    the steady state the two are equal.
    """
    u = sp.Symbol("u", positive=True)
    growth = sp.simplify(sp.diff(u**s, u) / u ** (s - 1))  # times E U^(s-1)
    taken = sp.simplify((u**s - (d**2 * u) ** s) / u**s)  # times E U^s
    return Derivation(
        NO_NUMBER, "E U^s / E U^{s-1}", premises=(), derived=growth / taken, steps=(growth, taken)
    )


@kinds.checked
def moment_product(terms: int = 6) -> tuple[Expr, Expr]:
    """The moment M(s) = E U^s, approximated by a product, and the ratio M(s)/M(s - 1).

    U is b p w^2 / 2, where w is the window at a loss, p the loss probability and b the number of
    packets per ACK. E is the mean. A loss multiplies w by d. The product has ``terms`` factors:

        M(s) = Gamma(1 + s) prod_k (1 - d^(2 (s + k))) / (1 - d^(2 k)),  k = 1 .. terms.

    It is exact for infinitely many terms. Most factors cancel in the ratio, and it becomes
    s (1 - d^(2 (s + terms))) / (1 - d^(2 s)). With infinitely many terms this is the ratio of
    ``moment_step``.
    """
    Integer(1, 1000).check(terms, "terms")

    def moment(at: Expr) -> Expr:
        factors = [(1 - d ** (2 * (at + k))) / (1 - d ** (2 * k)) for k in range(1, terms + 1)]
        return sp.gamma(1 + at) * sp.Mul(*factors)

    step = sp.gammasimp(moment(s) / moment(s - 1))
    return moment(s), sp.simplify(step)


def square_root_random() -> Derivation:
    """The constant K of the square-root law, K = rate * RTT * sqrt(b p), under independent losses.

    p is the loss probability and b the number of packets per ACK. K is a function of m = E sqrt(U),
    where U = b p W^2 / 2 for the window W at a loss. So the mean of W is m sqrt(2/(b p)). The loss
    multiplies W by d; then the window grows by one packet in b round trips. From loss to loss there
    are b (1 - d) E W round trips on average, in which 1/p packets are sent.
    """
    m = sp.Symbol("m", positive=True)
    mean_top = sp.sqrt(2 / (b * p)) * m
    rounds = b * (1 - d) * mean_top
    derived = sp.simplify(sp.sqrt(b * p) / (p * rounds))
    return Derivation(
        NO_NUMBER, r"K_{\mathrm{random}}", premises=(), derived=derived, steps=(mean_top, rounds)
    )


def pftk_window() -> Derivation:
    """PFTK (13): the mean window W at a loss, from two counts of the packets from loss to loss.

    First count: on average (1 - p)/p packets are sent before the first lost packet. The lost packet
    and those sent after it in its window are W packets.

    Second count: a loss multiplies the window by d, and the window then keeps each size for b round
    trips. So it grows to W in b (1 - d) W round trips. The round trip after the loss adds W/2
    packets on average.
    """
    rounds = b * (1 - d) * W
    counted = rounds / 2 * (d * W + W - 1) + W / 2
    balance = sp.Eq((1 - p) / p + W, counted)
    [top] = [r for r in sp.solve(balance, W) if r.subs({b: 1, p: HALF / 50, d: HALF}) > 0]
    printed = (2 + b) / (3 * b) + sp.sqrt(8 * (1 - p) / (3 * b * p) + ((2 + b) / (3 * b)) ** 2)
    return Derivation(
        "13", "E[W]", premises=(balance,), derived=top, printed=printed, steps=(rounds, counted)
    )


def pftk_limited_rounds() -> Derivation:
    """PFTK II-C: mean number of round trips from loss to loss, if the window is at most W_m.

    The window grows to W_m and then stays there for V round trips. From loss to loss, the windows
    of all round trips add up to the mean number of packets sent, (1 - p)/p + W_m. This gives V.
    """
    V = sp.Symbol("V")
    growth = b * (1 - d) * W_m
    packets = growth / 2 * (d * W_m + W_m) + V * W_m
    balance = sp.Eq((1 - p) / p + W_m, packets)
    [plateau] = sp.solve(balance, V)
    derived = sp.expand(growth + plateau)
    printed = b * W_m / 8 + (1 - p) / (p * W_m) + 1
    return Derivation(
        "section II-C",
        "E[X]",
        premises=(balance,),
        derived=derived,
        printed=printed,
        steps=(growth, plateau),
    )


def pftk_timeout_probability() -> Derivation:
    """PFTK (24): the probability that a loss leads to a timeout, for a window of w packets.

    q = 1 - p is the probability that a packet arrives. All packets behind the first lost one of a
    round trip are lost, too. Of the w packets of the window, k arrive. Their k ACKs release k more
    packets. If fewer than 3 of these arrive, there is a timeout.
    """
    k, m = sp.symbols("k m", integer=True, nonnegative=True)
    q = sp.Symbol("q", positive=True)  # 1 - p
    k_arrive = q**k * (1 - q) / (1 - q**w)  # probability that k packets arrive, given a loss
    few = sp.simplify(sp.summation(q**m * (1 - q), (m, 0, 2)))  # fewer than 3 in a row arrive
    # If k is less than 3, fewer than 3 of the k new packets arrive in any case. Otherwise this has
    # the probability ``few``; the sum of k_arrive over k = 3 .. w - 1 is (q^3 - q^w)/(1 - q^w).
    below_3 = sp.summation(k_arrive, (k, 0, 2))
    from_3 = (q**3 - q**w) / (1 - q**w) * few
    derived = sp.factor(sp.powsimp(sp.simplify(below_3 + from_3)))
    printed = sp.expand((1 - q**3) * (1 + q**3 * (1 - q ** (w - 3)))) / (1 - q**w)
    steps = (few, below_3, from_3)
    return Derivation(
        "24", r"\hat{Q}(w)", premises=(k_arrive,), derived=derived, printed=printed, steps=steps
    )


def pftk_silence() -> Derivation:
    """PFTK (27): the mean duration of a sequence of timeouts, divided by the first timeout T_0.

    The timer doubles at each timeout, up to 64 T_0. Another timeout follows if the retransmission
    is lost, with probability p.
    """
    k = sp.Symbol("k", integer=True, positive=True)
    q = sp.Symbol("q", positive=True)
    # A sequence of j timeouts has the probability p^(j-1) (1 - p). Up to j = 6 it lasts
    # 1 + 2 + .. + 2^(j-1) = 2^j - 1, in units of T_0.
    up_to_6 = sum((2**j - 1) * p ** (j - 1) * (1 - p) for j in range(1, 7))
    # From j = 7 on it lasts 63 + 64 (j - 6) = 127 + 64 m with m = j - 7. The sum of q^m over
    # m = 0, 1, .. is 1/(1 - q), and the sum of m q^m is q times its derivative.
    geometric = sp.Integer(1) / (1 - q)
    from_7 = p**6 * (1 - p) * (127 * geometric + 64 * q * sp.diff(geometric, q)).subs(q, p)
    derived = sp.factor(sp.simplify(up_to_6 + from_7))
    f = 1 + p + 2 * p**2 + 4 * p**3 + 8 * p**4 + 16 * p**5 + 32 * p**6
    return Derivation(
        "27",
        "E[Z]/T_0",
        premises=(k,),
        derived=derived,
        printed=f / (1 - p),
        steps=(up_to_6, from_7),
    )


def hold_windows() -> tuple[Derivation, Derivation]:
    """Vegas's steady window W, from W (RTT - baseRTT)/RTT = alpha, in two cases.

    In the first case the RTT is given. In the second the flow is alone on a link of rate c, so that
    RTT = W/c.
    """
    steady = sp.Eq(W * (RTT - base) / RTT, alpha)
    with_rtt = sp.solve(steady, W)[0]
    alone = sp.solve(steady.subs(RTT, W / c), W)[0]
    return (
        Derivation(NO_NUMBER, "W", premises=(steady,), derived=with_rtt),
        Derivation(NO_NUMBER, "W", premises=(steady, sp.Eq(RTT, W / c)), derived=alone),
    )


def repaired() -> Derivation:
    """The probability (1 - p^2)^n that none of n packets causes a timeout.

    The n packets are those of the window behind its first lost packet. Each packet, and each
    retransmission, is lost with probability p. There is a timeout if a packet and its
    retransmission are both lost. The formula is derived for n = 5, as a sum over the number of lost
    packets.
    """
    n = 5
    chance = sum(sp.binomial(n, j) * p**j * (1 - p) ** (n - j) * (1 - p) ** j for j in range(n + 1))
    return Derivation(
        NO_NUMBER,
        "F",
        premises=(),
        derived=sp.factor(chance),
        printed=(1 - p**2) ** n,
        steps=(chance,),
    )


def derivations() -> tuple[Derivation, ...]:
    """Every ``Derivation`` of this module."""
    return (
        square_root_periodic(),
        moment_step(),
        square_root_random(),
        pftk_window(),
        pftk_limited_rounds(),
        pftk_timeout_probability(),
        pftk_silence(),
        *hold_windows(),
        repaired(),
    )
