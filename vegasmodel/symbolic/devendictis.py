"""Derives the formulas of De Vendictis and Baiocchi, from equation (7) to appendix A, in SymPy.

Tests compare the derived formulas with the package's numeric code. The command ``vegasmodel paper
--html FILE`` shows the formulas as the paper prints them, and the derived ones where they differ.

The paper models one Vegas source beside one Reno source. A cycle lasts from one loss to the next.
It consists of N mini-cycles of one round trip each, and has three phases. Phase 1 ends when the
windows fill the link, phase 2 when Vegas reaches its equilibrium window, and phase 3 at the loss.

``formulas()`` lists the derivations of the paper's formulas. The functions below it derive formulas
that our numeric model needs and the paper lacks.

The symbols are:

- mu: the capacity in packets per second.
- T: the round-trip time without queueing in seconds.
- B and q: the buffer and the queue in packets.
- alpha: the number of packets that Vegas keeps in the queue.
- lambda: the factor by which a loss multiplies Vegas's window.
- i: the number of a mini-cycle, from 1 to N.
- a: the number of the mini-cycle in which the two windows fill the link, that is, add up to mu T.
- b: the number of the last mini-cycle of phase 2.
- W_V1, W_Va and W_VN: Vegas's window in the mini-cycles 1, a and N, in packets.
- W_R1, W_Ra, W_Rb and W_RN: Reno's window in the mini-cycles 1, a, b and N.
- W_V, W_R and mu_V: the two windows, and Vegas's rate, at any time.
"""

from __future__ import annotations

import sympy as sp

from vegasmodel.symbolic.steps import NO_NUMBER, Derivation, Expr

mu, T, B, alpha, q = sp.symbols("mu T B alpha q", positive=True)
lam = sp.Symbol("lambda", positive=True)
a, b, N, i = sp.symbols("a b N i", positive=True)
n = sp.Symbol("n", positive=True)  # b - a
W_V1, W_Va, W_VN, W_R1, W_Ra, W_RN, W_Rb = sp.symbols(
    "W_V1 W_Va W_VN W_R1 W_Ra W_RN W_Rb", positive=True
)
W_V, W_R, mu_vegas = sp.symbols("W_V W_R mu_V", positive=True)
M = mu * T


def equilibrium_window() -> Derivation:
    """Equation (7) of De Vendictis and Baiocchi: Vegas's equilibrium window.

    Three equations give it. By (4) Vegas's share of the capacity is its share of the windows. By
    (5) the windows add up to the bandwidth-delay product plus the queue. By (6) Vegas's backlog is
    alpha.
    """
    equation_4 = sp.Eq(mu_vegas, W_V / (W_R + W_V) * mu)
    equation_5 = sp.Eq(W_V + W_R, M + q)
    equation_6 = sp.Eq((W_V / T - mu_vegas) * T, alpha)
    premises = (equation_4, equation_5, equation_6)
    [solution] = sp.solve(premises, [W_V, W_R, mu_vegas], dict=True)
    return Derivation(
        "7", "W_V", premises=premises, derived=solution[W_V], printed=alpha * (M + q) / q
    )


def reno_at_loss() -> Derivation:
    """Reno's window at the loss, W_R(N), if Vegas is in equilibrium then.

    N is the number of round trips from loss to loss. At the loss Vegas's window is equation (7)
    with a full buffer, q = B, and the two windows add up to mu T + B + 1 packets. mu T is the
    bandwidth-delay product, B the buffer, q the queue.
    """
    equation_7 = sp.Eq(W_VN, equilibrium_window().derived.subs(q, B))
    full = sp.Eq(W_VN + W_RN, M + B + 1)
    [solution] = sp.solve([equation_7, full], [W_VN, W_RN], dict=True)
    printed = (M + B) * (B - alpha) / B + 1
    return Derivation(
        "section 3", "W_R(N)", premises=(equation_7, full), derived=solution[W_RN], printed=printed
    )


def reno_packets() -> Derivation:
    """P_Reno, the packets that Reno sends in a cycle from loss to loss: the sum of its windows.

    By equation (10) Reno's window in mini-cycle i is W_R1 + i - 1, with the window W_R1 after the
    first loss.
    """
    reno = W_R1 + i - 1
    printed = N * W_R1 + N * (N - 1) / 2
    return Derivation(
        "10", "P_Reno", premises=(reno,), derived=sp.summation(reno, (i, 1, N)), printed=printed
    )


# Equations (11) and (12). By (11) each window grows by one packet per mini-cycle (round trip) after
# a loss. By (12) the two windows add up to the bandwidth-delay product mu T in mini-cycle a.
_FILL_THE_LINK = (sp.Eq(W_Va - W_V1, a - 1), sp.Eq(W_Ra - W_R1, a - 1), sp.Eq(W_Va + W_Ra, M))


def _saturation() -> dict[Expr, Expr]:
    """Solves equations (11) and (12) for mini-cycle a, in which the windows first fill the link.

    Returns a and the windows of Vegas and Reno in this mini-cycle (round trip).
    """
    [solution] = sp.solve(_FILL_THE_LINK, [W_Va, W_Ra, a], dict=True)
    return dict(solution)


def phase_1() -> tuple[Derivation, ...]:
    """Phase 1 of a cycle, from the loss until the windows of Vegas and Reno fill the link.

    Returns the windows at its end, the number a of its mini-cycles (round trips), the number A_V of
    packets that Vegas sends in it, and its duration Delta_a.

    The symbols are W_V1 and W_R1, the windows in the first mini-cycle; W_Va and W_Ra, those in
    mini-cycle a; M, the bandwidth-delay product mu T; and T, the RTT without queueing.
    """
    solution = _saturation()
    premises = _FILL_THE_LINK
    packets_vegas = sp.summation(W_V1 + i - 1, (i, 1, a))
    duration_a = sp.summation(T, (i, 1, a))
    return (
        Derivation(
            "12", "W_V(a)", premises=premises, derived=solution[W_Va], printed=(M + W_V1 - W_R1) / 2
        ),
        Derivation(
            "12", "W_R(a)", premises=premises, derived=solution[W_Ra], printed=(M + W_R1 - W_V1) / 2
        ),
        Derivation(
            "12", "a", premises=premises, derived=solution[a], printed=(M - W_R1 - W_V1) / 2 + 1
        ),
        Derivation(
            "section 3",
            "A_V",
            premises=premises,
            derived=packets_vegas,
            printed=a * W_V1 + a * (a - 1) / 2,
        ),
        Derivation("section 3", "Delta_a", premises=premises, derived=duration_a, printed=a * T),
    )


def duration() -> Derivation:
    """The duration of a mini-cycle (round trip) with a full link: equation (15).

    It is Vegas's window divided by Vegas's rate, equation (14). By equation (13) this rate is a
    share of the capacity: Vegas's window divided by the sum of both windows. The equations are
    those of De Vendictis and Baiocchi.
    """
    delta = sp.Symbol("delta", positive=True)
    equation_13 = sp.Eq(mu_vegas, W_V / (W_V + W_R) * mu)
    equation_14 = sp.Eq(delta, W_V / mu_vegas)
    premises = (equation_13, equation_14)
    [solution] = sp.solve(premises, [mu_vegas, delta], dict=True)
    return Derivation(
        "15", "delta(i)", premises=premises, derived=solution[delta], printed=(W_V + W_R) / mu
    )


def phase_2() -> tuple[Derivation, ...]:
    """Phase 2 of a cycle, from the full link until Vegas reaches its equilibrium window.

    A mini-cycle is a round trip. In mini-cycle number ``a`` the windows of Vegas and Reno fill the
    link: they add up to the bandwidth-delay product M = mu T. In the mini-cycles ``a + 1`` to
    ``b``, which are phase 2, each window grows by one packet per mini-cycle, and the queue fills.

    For three numbers the result has our formula beside the one that the paper prints. These numbers
    are the sum of the windows in mini-cycle i, the phase's duration Delta_b, and the packets B_V
    that Vegas sends in the phase.
    """
    vegas, reno = W_Va + (i - a), W_Ra + (i - a)  # the windows in mini-cycle i
    full = sp.Eq(W_Va + W_Ra, M)  # the windows in mini-cycle a fill the link
    both_windows = sp.expand(vegas + reno).subs(W_Ra, M - W_Va)
    duration_b = sp.summation(
        sp.expand(duration().derived.subs({W_V: vegas, W_R: reno})), (i, a + 1, b)
    )
    packets_vegas = sp.summation(vegas, (i, a + 1, b))
    premises = (vegas, reno, full)
    return (
        Derivation(
            "section 3",
            "W_V(i) + W_R(i)",
            premises=premises,
            derived=both_windows,
            printed=M + 2 * (i - a),
        ),
        Derivation(
            "section 3",
            "Delta_b",
            premises=premises,
            derived=duration_b.subs(W_Ra, M - W_Va),
            printed=(T + (b - a + 1) / mu) * (b - a),
        ),
        Derivation(
            "section 3",
            "B_V",
            premises=premises,
            derived=packets_vegas,
            printed=(b - a) * W_Va + (a + 1 + b) * (b - a) / 2,
            note="the printed sum counts i packets of growth in mini-cycle i, but the window has "
            "grown by i - a; so the printed sum is too large by a (b - a) packets",
        ),
    )


def crossing() -> tuple[Derivation, ...]:
    """Equation (16) of De Vendictis and Baiocchi: Vegas's window at the end b of phase 2, and b.

    Phase 2 begins in mini-cycle (round trip) a. The link is full then, and the queue is empty. The
    windows of Vegas and Reno each grow by one packet per mini-cycle, so the queue in mini-cycle b
    is q = 2 (b - a). Phase 2 ends when Vegas's window equals equation (7), its equilibrium window
    with this queue.
    """
    queue = 2 * n  # W_V + W_R - mu T after n = b - a mini-cycles of phase 2
    target = equilibrium_window().derived.subs(q, queue)
    equation_16 = sp.Eq(W_Va + n, target)
    [root] = [r for r in sp.solve(equation_16, n) if _positive(r)]
    printed_n = (-(W_Va - alpha) + sp.sqrt((W_Va - alpha) ** 2 + 2 * alpha * M)) / 2
    printed_window = alpha * (M + 2 * (b - a)) / (2 * (b - a))
    return (
        Derivation(
            "16",
            "W_V(b)",
            premises=(equation_16,),
            derived=target.subs(n, b - a),
            printed=printed_window,
        ),
        Derivation("16", "b", premises=(equation_16,), derived=a + root, printed=a + printed_n),
    )


def _positive(root: Expr) -> bool:
    """Whether ``root``, a root of a quadratic, is the positive one of the two.

    The product of the two roots is negative for all values of the parameters, so one root is
    positive and the other negative.  A test with one set of values therefore decides for all.
    """
    point = {W_Va: 50, alpha: 3, mu: 1000, T: sp.Rational(1, 10), W_R: 60, q: 10, W_Rb: 60}
    return bool(root.subs(point) > 0)


def phase_3() -> tuple[Derivation, ...]:
    """Phase 3, before a loss, with Vegas in equilibrium: its window, equation (17), and dW_V/dW_R.

    Reno's window W_R grows by one packet per mini-cycle (round trip), and the queue grows with it.
    Vegas's window W_V is always the equilibrium window with the present queue, equation (7). W_Rb
    is Reno's window in mini-cycle b, with which the phase begins, and M the bandwidth-delay product
    mu T.
    """
    reno = W_Rb + i - b
    queue = W_V + W_R - M
    keeps = sp.Eq(W_V, equilibrium_window().derived.subs(q, queue))
    [root] = [r for r in sp.solve(keeps, W_V) if _positive(r)]
    C = reno - alpha - M
    printed = (-C + sp.sqrt(C**2 + 4 * alpha * reno)) / 2
    slope = sp.diff(root, W_R)
    return (
        Derivation(
            "17", "W_V(i)", premises=(keeps, reno), derived=root.subs(W_R, reno), printed=printed
        ),
        Derivation(
            "section 3",
            "dW_V/dW_R",
            premises=(keeps,),
            derived=slope,
            printed=slope_in_queue().subs(q, root + W_R - M),
            note="between -1 and 0 for every q > 0; so if Reno's window grows by a packet, Vegas's "
            "equilibrium window falls by less than a packet; Vegas can reduce its window by one "
            "packet per RTT, so it stays in equilibrium",
        ),
    )


def slope_in_queue() -> Expr:
    """How Vegas's window changes with Reno's while Vegas is in equilibrium: dW_V/dW_R.

    By equation (7) W_V = alpha (mu T + q)/q with the bandwidth-delay product mu T. The queue q sets
    both windows, because they add up to mu T + q.
    """
    vegas = equilibrium_window().derived
    return sp.simplify(sp.diff(vegas, q) / sp.diff(M + q - vegas, q))


def cycle_count() -> Derivation:
    """The number N of mini-cycles (round trips) from one loss to the next.

    By equation (8) a loss halves Reno's window. By equation (10) the window then grows by one
    packet per mini-cycle, up to W_R(N) at the next loss. The paper does not print this formula, so
    ``printed`` holds the one that we obtained by hand.
    """
    equation_8, equation_10 = sp.Eq(W_R1, W_RN / 2), sp.Eq(W_RN, W_R1 + N - 1)
    premises = (equation_8, equation_10)
    [solution] = sp.solve(premises, [W_R1, N], dict=True)
    return Derivation(
        "8, 10", "N", premises=premises, derived=solution[N], printed=W_RN - W_RN / 2 + 1
    )


def _small_buffer() -> dict[Expr, Expr]:
    """The windows of appendix A at a loss and just after it, and the number N of round trips.

    In appendix A the buffer is so small that Vegas never reaches its equilibrium window. Both
    windows then grow by one packet per round trip, so by N - 1 packets from one loss to the next.
    At a loss the two windows together fill the link and the buffer.
    """
    system = [
        sp.Eq(W_VN, W_V1 + N - 1),
        sp.Eq(W_RN, W_R1 + N - 1),
        sp.Eq(W_V1, lam * W_VN),
        sp.Eq(W_R1, W_RN / 2),
        sp.Eq(W_VN + W_RN, M + B + 1),
    ]
    [solution] = sp.solve(system, [W_VN, W_RN, W_V1, W_R1, N], dict=True)
    return dict(solution)


def appendix_a() -> tuple[Derivation, ...]:
    """The cycle of appendix A: buffers so small that Vegas never reaches equilibrium.

    A cycle lasts from one loss to the next. W_V and W_R are the windows of Vegas and of Reno. After
    a loss they grow by one packet per mini-cycle. Each formula that we derived stands beside the
    one that the paper prints. The formulas give

    - N, the number of its mini-cycles (round trips);
    - P_Reno and P_Vegas, the packets that Reno and Vegas send in it;
    - a, the number of the mini-cycle in which the two windows fill the link;
    - Delta, its duration.

    As in the paper, P_Reno, P_Vegas and a are functions of N. Delta is a function of N and a.
    """
    solution = _small_buffer()
    # The first windows W_V1 and W_R1 after a loss, in terms of N. The last ones are N - 1 larger.
    # The loss multiplies these by lambda (Vegas) and by 1/2 (Reno).
    [start] = sp.solve(
        [sp.Eq(W_V1 / lam, W_V1 + N - 1), sp.Eq(2 * W_R1, W_R1 + N - 1)], [W_V1, W_R1], dict=True
    )
    reno = sp.summation(W_R1 + i - 1, (i, 1, N)).subs(start)
    vegas = sp.summation(W_V1 + i - 1, (i, 1, N)).subs(start)
    saturation = _saturation()[a].subs(start)
    both_windows = (W_V1 + W_R1 + 2 * (i - 1)).subs(start)
    time = a * T + sp.summation(sp.expand(both_windows), (i, a + 1, N)) / mu
    premises = tuple(sp.Eq(k, v) for k, v in solution.items())
    first_windows = (N - 1) / (1 - lam)  # W_V1 + W_R1
    return (
        Derivation(
            "appendix A",
            "N",
            premises=premises,
            derived=solution[N],
            printed=(M + B + 1) * (1 - lam) / (3 - 2 * lam) + 1,
        ),
        Derivation(
            "appendix A",
            "P_Reno",
            premises=premises,
            derived=reno,
            printed=sp.Rational(3, 2) * N * (N - 1),
        ),
        Derivation(
            "appendix A",
            "P_Vegas",
            premises=premises,
            derived=vegas,
            printed=(1 + lam) / (2 * (1 - lam)) * N * (N - 1),
        ),
        Derivation(
            "appendix A",
            "a",
            premises=premises,
            derived=saturation,
            printed=(M - first_windows) / 2 + 1,
        ),
        Derivation(
            "appendix A",
            "Delta",
            premises=premises,
            derived=time,
            printed=a * T + (first_windows + N - a + 1) * (N - a) / mu,
            note="the bracket is the printed factor of (N-a)/mu; the windows of mini-cycle i add "
            "up to (N-1)/(1-lambda) + 2 (i-1); so by our derivation the bracket is "
            "(N-1)/(1-lambda) + N + a - 1; with the formula for a this equals mu T + N - a + 1; "
            "the printed bracket has the beginning of the first form and the end of the second",
        ),
    )


def buffer_threshold() -> Derivation:
    """B_th, the smallest buffer B at which Vegas reaches its equilibrium window before a loss.

    At this buffer size, Vegas's window at the loss in appendix A equals its equilibrium window,
    which is equation (7) with the queue q = B. The paper prints the limit of B_th for a large
    bandwidth-delay product mu T.
    """
    equal = sp.Eq(_small_buffer()[W_VN], equilibrium_window().derived.subs(q, B))
    # B_th depends only on D = mu T and k = alpha (3 - 2 lambda); in these SymPy solves the equation
    D, k = sp.symbols("D k", positive=True)
    scaled = {mu: D / T, alpha: k / (3 - 2 * lam)}
    cleared = sp.numer(sp.factor((equal.lhs - equal.rhs).subs(scaled)))
    [exact] = [r for r in sp.solve(cleared, B) if r.subs({D: 100, k: 4, lam: 0.75}) > 0]
    limit = sp.limit(exact, D, sp.oo).subs(k, alpha * (3 - 2 * lam))
    return Derivation(
        "section 3",
        "B_th",
        premises=(equal, sp.Eq(B, exact.subs({D: M, k: alpha * (3 - 2 * lam)}))),
        derived=limit,
        printed=alpha * (3 - 2 * lam),
        note="an approximation in the paper, too; the second premise has the exact B_th",
    )


def formulas() -> tuple[Derivation, ...]:
    """The formulas of De Vendictis and Baiocchi, from equation (7) to appendix A."""
    return (
        equilibrium_window(),
        reno_at_loss(),
        reno_packets(),
        *phase_1(),
        duration(),
        *phase_2(),
        *crossing(),
        *phase_3(),
        cycle_count(),
        buffer_threshold(),
        *appendix_a(),
    )


# For several sources: A is the sum of Vegas's thresholds. h is A in the paper and in ns-2, and 0 in
# Linux. n_V and n_R are the numbers of sources, V and R the sums of their windows, and t is a
# number of round trips.
A, h, n_vegas, n_reno, V, R, t = sp.symbols("A h n_V n_R V R t", positive=True)
X = A * M  # (7) for all Vegas sources together: V = h + X/q


def loss_limited() -> Derivation:
    """V, the sum of all Vegas windows at a loss, if every Vegas source grows until the loss.

    There are ``n_vegas`` Vegas and ``n_reno`` Reno sources; R is the sum of all Reno windows at the
    loss. Appendix A of De Vendictis and Baiocchi has one source of each kind. There are three
    premises. The first and the second say that N - 1 round trips with one packet more in each
    window restore what a loss takes away: a loss multiplies V by ``lam``, and R by 1/2. The third
    is that a packet is lost when V + R is the bandwidth-delay product M, plus the buffer B, plus 1.
    """
    system = (
        sp.Eq(V * (1 - lam), n_vegas * (N - 1)),
        sp.Eq(R / 2, n_reno * (N - 1)),
        sp.Eq(V + R, M + B + 1),
    )
    [solution] = sp.solve(system, [V, R, N], dict=True)
    return Derivation(NO_NUMBER, "V(N)", premises=system, derived=sp.factor(solution[V]))


def held() -> Derivation:
    """An equation for V, the sum of all Vegas windows at a loss before which Vegas stops growing.

    Vegas stops growing when its backlog reaches the lower threshold, and keeps its window until the
    loss. By equation (7), V is then h + A mu T/q, where A is the sum of the sources' thresholds,
    mu T the bandwidth-delay product and q the queue in packets. h is A in the paper and in ns-2,
    and 0 in Linux.

    From the last loss until Vegas stops, Vegas and Reno grow for the same number of round trips.
    This gives a quadratic equation. Its unknown is v = V - h.
    """
    v = sp.Symbol("v", positive=True)
    vegas = v + h  # V: at the loss, and also when Vegas stops growing
    reno_at_loss = M + B + 1 - vegas  # all windows add up to M + B + 1 at a loss
    reno_at_stop = M + X / v - vegas  # by (7) the queue is X/v when Vegas stops
    # the number of round trips from the last loss until Vegas stops, by Vegas's growth and by
    # Reno's; the last loss has multiplied V by lambda, and halved Reno's windows
    by_vegas = (1 - lam) * vegas / n_vegas
    by_reno = (reno_at_stop - reno_at_loss / 2) / n_reno
    equal = sp.Eq(by_vegas, by_reno)
    quadratic = sp.numer(sp.together(equal.lhs - equal.rhs))
    return Derivation(
        NO_NUMBER, "0", premises=(equal,), derived=sp.expand(quadratic / (2 * n_vegas))
    )


def meeting() -> Derivation:
    """Equation (16) of De Vendictis and Baiocchi for n_vegas Vegas and n_reno Reno sources.

    Returns a quadratic equation whose root n is the number of mini-cycles (round trips) of phase 2.
    In this phase each window grows by one packet per mini-cycle. So at the end of the phase the
    queue is q = (n_vegas + n_reno) n. The phase ends when Vegas's backlog reaches the lower
    threshold. By equation (7) the Vegas windows then add up to h + A mu T/q, where A is the sum of
    the sources' thresholds and mu T the bandwidth-delay product. h is A in the paper and in ns-2,
    and 0 in Linux.
    """
    grows = sp.Eq(W_Va + n_vegas * n, h + X / ((n_vegas + n_reno) * n))
    quadratic = sp.numer(sp.together(grows.lhs - grows.rhs))
    return Derivation(NO_NUMBER, "0", premises=(grows,), derived=sp.expand(quadratic))


def catching_up() -> Derivation:
    """The number t of round trips for which Vegas's window is above its equilibrium window.

    There are more Reno than Vegas sources. As Reno fills the queue, Vegas's equilibrium window
    falls. Each Vegas source gives up only one packet per round trip, so its window lags behind. The
    window has caught up after t round trips.

    At first the Vegas windows add up to V, and the queue is q. In t round trips V falls by
    n_vegas t packets, and q grows by (n_reno - n_vegas) t. By equation (7), (V - h) q is the same
    in each equilibrium. So Vegas is in equilibrium again when this product has its first value.
    """
    line = sp.Eq((V - h - n_vegas * t) * (q + (n_reno - n_vegas) * t), (V - h) * q)
    [lag] = sp.solve(line, t)  # t is positive, so the root 0 is not among them
    return Derivation(NO_NUMBER, "t", premises=(line,), derived=sp.simplify(lag))


def following() -> tuple[Derivation, ...]:
    """Four integrals over phase 3, in which Reno fills the queue and Vegas is in equilibrium.

    The integrals replace sums over the mini-cycles (round trips) of the phase. They are returned as
    antiderivatives with respect to the queue q. V is the sum of the Vegas windows. W = mu T + q is
    the sum of all windows, with the bandwidth-delay product mu T. The integrands are

    - 1, which gives the number of mini-cycles;
    - W, which gives the packets of all flows;
    - q W, which gives the queue weighted by these packets;
    - V, which gives the packets of Vegas.
    """
    vegas = h + X / q
    reno = M + q - vegas
    rate = sp.diff(reno, q) / n_reno  # di/dq
    return tuple(
        Derivation(
            NO_NUMBER, name, premises=(vegas, reno), derived=sp.integrate(sp.expand(f * rate), q)
        )
        for name, f in (("i", sp.Integer(1)), ("W", M + q), ("qW", q * (M + q)), ("V", vegas))
    )


def trapezoids() -> Expr:
    """The error of the trapezoidal rule for a linear function f; the error is 0.

    The rule replaces the sum of f(i) over i = a .. b by the integral of f from a to b, plus
    (f(a) + f(b))/2. ``equilibrium.minicycle_derived`` uses it for sums over mini-cycles, because it
    also has a value if a and b are not whole numbers. The result of this function is the sum minus
    the replacement.
    """
    c, d = sp.symbols("c d")
    f = c + d * i
    total = sp.integrate(f, (i, a, b)) + (f.subs(i, a) + f.subs(i, b)) / 2
    return sp.simplify(sp.summation(f, (i, a, b)) - total)
