"""Equations (1) to (9) of Boutremans and Le Boudec, and the special cases of section 3.1.2.

Source i has the propagation delay d_i and over-estimates it by x_i.  Delta is the queueing delay,
and c the capacity.  Numbers in parentheses are the paper's equations: (1) is Vegas's rule for the
window, (5) the rate alpha/(Delta - x_i), and (6) says that the rates add up to c.

Each equation has a record, which compares a printed with a computed value.  The printed value is
that of the printed formula for numbers that we chose (a test point).  The computed value follows
from the premises in another way: the rule is iterated, the equation is solved by Brent's method, or
solutions are differentiated numerically.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.optimize import brentq

from paper_checks.boutremans.scenes import CAPACITY, SOURCE_COUNTS
from paper_checks.checks import ARITHMETIC, Found, Record, by_theory, formula
from vegasmodel.metrics import Floats

# the test point: N sources with these thresholds (packets), over-estimates X and propagation delays
# D
ALPHA, BETA, N = 1.0, 3.0, 4
X = np.array([0.0, 0.01, 0.03, 0.02])  # s
D = np.array([0.2, 0.1, 0.3, 0.2])  # s
SMALL_STEP = 2.0**-10  # packets, a small step by which rule (1) changes windows


def delay(x: Floats, alpha: float = ALPHA, c: float = CAPACITY) -> float:
    """The queueing delay Delta that solves equation (6), by Brent's method, s.

    By (5) and (6) the rates alpha/(Delta - x_i) are positive and add up to c.  So Delta is above
    the largest over-estimate.  It is above it by at most n alpha/c, and by just so much if all
    over-estimates are equal.  ``x`` has the over-estimates of the n sources, in s.
    """
    largest = float(x.max())
    greatest_excess = x.size * alpha / c  # of Delta over the largest over-estimate, s

    def surplus(above: float) -> float:
        """Sum of the rates minus c if Delta is ``above`` s more than the largest over-estimate."""
        return float(np.sum(alpha / (largest + above - x))) - c

    ends = 1e-6 * greatest_excess, greatest_excess * (1 + 1e-9)  # the root lies between them
    return largest + float(brentq(surplus, *ends, xtol=1e-15, rtol=1e-14))


def rates(x: Floats, alpha: float = ALPHA, c: float = CAPACITY) -> Floats:
    """The rates alpha/(Delta - x_i) by equation (5), with the Delta that solves (6), pkt/s.

    ``x`` are the over-estimates of the sources, s, ``alpha`` their threshold, packets, and ``c``
    the capacity, pkt/s.
    """
    return np.asarray(alpha / (delay(x, alpha, c) - x))


@dataclass(frozen=True, eq=False)
class LastState:
    """The last state of an iteration of Vegas's rule (1); one array entry per source.

    ``moves`` is false if the iteration has come to rest: the rule then keeps all windows.
    """

    windows: Floats  # packets
    wait: float  # s, the queueing delay of all
    x: Floats  # s, the over-estimates
    moves: bool  # whether the rule would still change a window

    @property
    def backlogs(self) -> Floats:
        """The backlog that each source computes (the paper's Diff), packets."""
        return np.asarray(self.windows * (1 - (D + self.x) / (D + self.wait)))

    @property
    def rates(self) -> Floats:
        """The rate of each source, its window divided by its RTT, pkt/s."""
        return np.asarray(self.windows / (D + self.wait))


@cache
def settled(
    alpha: float = ALPHA,
    beta: float = BETA,
    step: float = 1.0,
    x: tuple[float, ...] = tuple(X),
    first: tuple[float, ...] = (1.0,) * N,
) -> LastState:
    """The state in which Vegas's rule (1) changes no window, found by iterating the rule.

    The rule is applied once per round trip, beginning with the windows ``first``.  The queueing
    delay follows from the windows each time.  At first a window changes by one packet.  After every
    300 round trips this step is halved; the last one is ``step`` packets.  So with a small step the
    state is near that in which each backlog is alpha, if alpha = beta.  ``x`` are the
    over-estimates in s.
    """
    W, size, over_estimates = np.array(first), 1.0, np.array(x)

    def signs(W: Floats) -> Floats:
        """Of each window: 1 if rule (1) makes it larger, -1 if smaller, else 0."""
        diff = W * (1 - (D + over_estimates) / (D + _wait(W)))
        return np.asarray((diff < alpha) * 1.0 - (diff > beta) * 1.0)

    while size >= step:
        for _ in range(300):
            W = np.maximum(W + size * signs(W), 1.0)
        size /= 2
    return LastState(W, _wait(W), over_estimates, bool(signs(W).any()))


def _wait(W: Floats) -> float:
    """The queueing delay, s, at which the rates with the windows ``W`` add up to the capacity."""
    sources: list[tuple[float, float]]  # for four sources, arrays would take longer
    sources = list(zip(W.tolist(), D.tolist(), strict=True))

    def excess(wait: float) -> float:
        """The sum of the rates at the queueing delay ``wait``, less the capacity."""
        return sum(w / (d + wait) for w, d in sources) - CAPACITY

    return float(brentq(excess, 0.0, 10.0, xtol=1e-14)) if excess(0.0) > 0 else 0.0


def _grows_with_own_over_estimate() -> Found:
    """Whether each source's rate grows with its own over-estimate, if it is 1 ms larger than in X.

    The N sources have the over-estimates X.  A larger over-estimate also changes the queueing delay
    Delta: equation (6), by which the rates add up to the capacity, is solved again.
    """
    gains = [float((rates(X + 1e-3 * unit) - rates(X)) @ unit) for unit in np.eye(N)]
    text = ", ".join(f"{gain:.3f}" for gain in gains)
    return Found(min(gains) > 0, detail=f"The rates grow by {text} pkt/s.")


def steady_state() -> list[Record]:
    """The records of equations (1) to (6): Vegas's window rule, and the rates that it leads to.

    By rule (1) a window grows if the source's backlog (Diff) is below alpha, and shrinks if it is
    above beta. Equations (3) to (6) are about the state with alpha = beta in which every backlog is
    alpha.
    """
    # Delta by (6); the backlogs with which rule (1) comes to rest, with alpha 1 and beta 3
    Delta, backlogs = delay(X), settled().backlogs
    RTT, base = D + Delta, D + X  # of each source, s
    # the rule with beta = alpha, which ends in small steps, and the same in steps of a packet
    small_steps, whole_steps = settled(ALPHA, ALPHA, SMALL_STEP), settled(ALPHA, ALPHA)
    windows = np.array(  # roots of (3)
        [brentq(lambda W, i=i: W - base[i] / RTT[i] * W - ALPHA, 0, 1e4) for i in range(N)]
    )
    inside = bool(np.all((backlogs >= ALPHA) & (backlogs <= BETA)))
    text = ", ".join(f"{b:.2f}" for b in backlogs)
    return [
        Record(
            "equation 1",
            compute=by_theory(
                Found(
                    inside and not settled().moves,
                    detail=f"Backlogs {text} packets. With beta = alpha "
                    f"{'windows go on changing' if whole_steps.moves else 'windows settle, too'}.",
                )
            ),
            note="The rule, iterated for 4 sources with alpha 1 and beta 3 at one queue, comes to "
            "rest (it keeps all windows), and then every Diff is between alpha and beta.",
        ),
        Record(
            "equation 2",
            printed=None,
            blocked="A definition, which nothing could contradict: x_i is baseRTT_i minus d_i. "
            "Figure 3 shows how large it becomes.",
        ),
        formula(
            "equation 3",
            printed=[ALPHA] * N,
            compute=by_theory(small_steps.backlogs.tolist()),
            tolerance=4 * SMALL_STEP,
            note="computed: cwnd_i - (d_i + x_i)/(d_i + Delta) cwnd_i where rule (1) with alpha = "
            "beta comes to rest, iterated at one queue in steps that are halved; printed: alpha. 4 "
            "sources with different d and x. Tolerance: four of the last steps.",
        ),
        formula(
            "equation 4",
            printed=(ALPHA * (D + Delta) / (Delta - X)).tolist(),
            compute=by_theory(windows.tolist()),
            tolerance=1e-6,
            note=f"computed: the root of (3), by Brent's method. {ARITHMETIC}",
        ),
        formula(
            "equation 5",
            printed=(ALPHA / (Delta - X)).tolist(),
            compute=by_theory((windows / RTT).tolist()),
            tolerance=1e-6,
            note=f"computed: the window that solves (3), divided by the RTT. {ARITHMETIC}",
        ),
        formula(
            "equation 6",
            printed=CAPACITY,
            compute=by_theory(float(np.sum(ALPHA / (small_steps.wait - X)))),
            tolerance=4 * SMALL_STEP * CAPACITY,
            note="computed: the sum of alpha/(Delta - x_i) at the queueing delay Delta at which "
            "rule (1) comes to rest, as for (3), so Delta is not taken from (6); printed: c. "
            "Tolerance: that of (3), relative to alpha.",
        ),
        Record(
            "section 3.1.1, the rate grows with the over-estimate",
            compute=by_theory(_grows_with_own_over_estimate()),
            note="(5) at the Delta of (6), 4 sources. We increase one over-estimate by 1 ms, solve "
            "(6) again, and do so for each source in turn.",
        ),
    ]


# --- 3.1.2: particular cases -----------------------------------------------------------------


def harmonic(n: int) -> float:
    """S_n = 1 + 1/2 + ... + 1/n."""
    return float(np.sum(1.0 / np.arange(1, n + 1)))


def printed_rates(n: int) -> Floats:
    """The rates that section 3.1.2 prints for n sources which joined one by one, pkt/s.

    Source i has the rate c/(n S_n - (i-1) S_{i-1}), with the capacity c and S_n = ``harmonic(n)``.
    """
    last = n * harmonic(n)
    return np.array([CAPACITY / (last - (k - 1) * harmonic(k - 1)) for k in range(1, n + 1)])


def recursion(n: int, alpha: float = ALPHA) -> Floats:
    """The over-estimates of ``n`` sources that join one by one, each when the queue is at rest, s.

    A source over-estimates its propagation delay by the queueing delay that it finds: the one with
    which the rates of the sources before it add up to the capacity.  ``alpha`` is the threshold of
    all sources, packets.
    """
    x = np.zeros(n)
    for i in range(1, n):
        x[i] = delay(x[:i], alpha)
    return x


BONALD = "section 3.1.2, the closed form for the order of arrival"
EXACT_ARRIVALS = (
    "(6) has no such closed form: the exact recursion is x_i = Delta_(i-1) with Delta_(i-1) the "
    "root of (6) for the first i - 1 sources. At i = 3 it gives (3 + sqrt 5)/2 = 2.618 alpha/c, "
    "the print 3 alpha/c."
)


def particular_cases() -> list[Record]:
    """The records of two cases of section 3.1.2, in which the over-estimates x_i are known.

    In the first case all are 0. In the second the sources join one after the other, so each
    over-estimates its propagation delay by the queueing delay Delta that it finds. For this case
    the paper prints a closed form, Bonald's, which is wrong.
    """
    n = 20  # sources
    fair = delay(np.zeros(n))  # Delta in the first case, by (6), s
    # in the second case: the over-estimates, s; and alpha/c, in s, of which they are multiples
    x, unit = recursion(n), ALPHA / CAPACITY
    return [
        formula(
            "section 3.1.2, Delta with x = 0",
            printed=CAPACITY / (n * ALPHA),
            compute=by_theory(fair),
            tolerance=1e-9,
            erratum="Delta = n alpha/c, since (6) with x = 0 is n alpha/Delta = c: n sources have "
            "alpha packets each in the queue. The print, c/(n alpha), is the inverse.",
            note="20 sources, alpha 1, 125 pkt/s.",
        ),
        formula(
            "section 3.1.2, rates with x = 0",
            printed=[CAPACITY / N] * N,
            compute=by_theory(settled(ALPHA, ALPHA, SMALL_STEP, x=(0.0,) * N).rates.tolist()),
            tolerance=4 * SMALL_STEP * CAPACITY / N,
            note=f"printed: c/n, with c {CAPACITY:g} pkt/s; computed: the rates at which rule (1) "
            f"comes to rest, with alpha = beta = {ALPHA:g} and last steps of {SMALL_STEP:g} "
            "packets; 4 sources with different delays, 0.1 to 0.3 s. Tolerance: four steps "
            "relative to alpha.",
        ),
        *(
            formula(
                f"section 3.1.2, baseRTT of source {i}",
                printed=unit * (i - 1) * harmonic(i - 1),
                compute=by_theory(float(x[i - 1])),
                tolerance=1e-9,
                note="x_i in s. printed: (alpha/c) (i-1) S_(i-1); computed: the exact recursion.",
                erratum=EXACT_ARRIVALS,
                statement=BONALD,
            )
            for i in (2, 3, 20)
        ),
        formula(
            "section 3.1.2, Delta after n arrivals",
            printed=unit * n * harmonic(n),
            compute=by_theory(delay(x)),
            tolerance=1e-9,
            erratum="The print has (alpha/a) n S_n. (alpha/c) n S_n is meant, but this does not "
            f"solve (6) either. {EXACT_ARRIVALS}",
            statement=BONALD,
            note="20 sources, alpha 1; printed: the formula with c in place of a.",
        ),
        *(
            formula(
                f"section 3.1.2, the printed rates add up to c, n = {k}",
                printed=float(printed_rates(k).sum()),
                compute=by_theory(float(rates(recursion(k)).sum())),
                tolerance=1e-9,
                erratum=f"The printed rates add up to {printed_rates(k).sum() / CAPACITY:.4f} c"
                + (", 5/6 c at n = 2. " if k == 2 else ". ")
                + EXACT_ARRIVALS,
                statement=BONALD,
                note="pkt/s. printed: the sum of c/(n S_n - (i-1) S_(i-1)) over i; computed: the "
                "sum of the rates that solve (6), which is c.",
            )
            for k in (2, *SOURCE_COUNTS)
        ),
    ]


def last_over_middle(rates: Floats) -> Floats:
    """The last source's rate over the median of the earlier ones, for each run.

    ``rates`` are in the order of arrival, [sources] or [runs, sources].
    """
    return np.asarray(rates[..., -1] / np.median(rates[..., :-1], axis=-1))


def advantage(rates: Floats) -> Floats:
    """The last source's rate over the first one's, for each run.

    ``rates`` are in the order of arrival, [sources] or [runs, sources].
    """
    return np.asarray(rates[..., -1] / rates[..., 0])


# --- 3.1.3 and (9): derivatives --------------------------------------------------------------


def slope(f: Callable[[float], float], at: float) -> float:
    """Derivative of ``f`` at ``at`` by central differences with Richardson's extrapolation.

    The steps are h and 2 h, so the error is of order h^4.
    """

    def central(step: float) -> float:
        """The derivative by central differences with this step."""
        return (f(at + step) - f(at - step)) / (2 * step)

    h = 1e-6
    return (4 * central(h) - central(2 * h)) / 3


def sensitivity(i: int, k: int, x: Floats = X) -> float:
    """The relative change of source i's rate per second of x_k, (d rate_i/d x_k)/rate_i, in 1/s.

    x_k is the over-estimate of source k's baseRTT, s, an entry of ``x``. Solutions of equation (6)
    are differentiated numerically.
    """

    def rate(value: float) -> float:
        """The logarithm of source i's rate if x_k has this value."""
        moved = x.copy()
        moved[k] = value
        return float(np.log(rates(moved)[i]))

    return slope(rate, float(x[k]))


def _grows_in_order_of_arrival(influence: Floats) -> Found:
    """Whether (d rate_i/d x_i)/rate_i, equation (7), grows from the first source to the last.

    The sources joined one after the other, so later ones over-estimate more.  ``influence`` has the
    value of equation (7) for each source in order of arrival, in 1/s.
    """
    steps = np.diff(influence)
    ranks = np.argsort(np.argsort(influence))
    order = float(np.corrcoef(ranks, np.arange(influence.size))[0, 1])
    return Found(
        bool(np.all(steps > 0)),
        detail=f"From {influence[0]:.2f} it grows in {np.count_nonzero(steps > 0)} of "
        f"{steps.size} steps, to {influence.max():.2f}, and ends at {influence[-1]:.2f} 1/s; rank "
        f"correlation {order:.2f}. (7) is y S/(1 + y^2 S), where y = Delta - x_i and S is the sum "
        "of 1/(Delta - x_j)^2 over the other sources. As y falls it is largest at y^2 S = 1, and "
        "the last source has a smaller y.",
        missing="What 'increases' means decides. As a tendency, as figures 4 and 8 are read, the "
        "statement holds; as a growth in each step it does not."
        if order > 0.5
        else "",
    )


def _large_near_delta(influence: Floats, joined: Floats) -> Found:
    """Whether a source's rate depends strongly on its over-estimate if this is nearly Delta.

    Delta is the queueing delay.  Equation (7) is the relative change of the source's rate per
    second of its over-estimate (``sensitivity``).  We test in two ways whether it is large:

    - The over-estimate of one of four sources grows, while those of the others stay the same.  The
      value of (7) at the largest over-estimate must exceed half of the greatest value.
    - 20 sources join one by one.  The value of (7) for the last one must exceed half of the
      greatest value of the 20.  ``influence`` has these values, in 1/s, and ``joined`` the
      over-estimates of the 20 sources, in s.
    """
    # for one source of four: the value of equation (7), and (Delta - x_i)/Delta
    values, distances = [], []
    for over_estimate in (0.0, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0):
        x = X.copy()
        x[1] = over_estimate
        values.append(sensitivity(1, 1, x))
        distances.append((delay(x) - over_estimate) / delay(x))
    text = ", ".join(f"{value:.3g}" for value in values)
    alone = values[-1] > 0.5 * max(values)
    last = influence[-1] > 0.5 * influence.max()
    distance = (delay(joined) - joined[-1]) / delay(joined)
    return Found(
        bool(alone and last),
        detail=f"One source of four: {text} 1/s at over-estimates of 0 to 10 s, where Delta - x_i "
        f"falls from {distances[0]:.0%} to {distances[-1]:.1%} of Delta. The last of 20 arrivals, "
        f"where Delta - x_i is {distance:.1%} of Delta: {influence[-1]:.1f} 1/s; the largest of "
        f"the 20 is {influence.max():.1f} 1/s.",
        missing="It depends on what else changes. Over 20 arrivals the statement holds; for one "
        "source whose over-estimate grows alone it does not."
        if last and not alone
        else "",
    )


def _large_for_late_pairs() -> Found:
    """Whether equation (8) is significant only for late sources i and k with x_i < x_k.

    Equation (8) is (d rate_i/d x_k)/rate_i: how the rate of source i changes with the over-estimate
    x_k of source k.  It must be largest for the last two of 20 sources.  For each pair with
    x_i < x_k it must be larger than with i and k exchanged.  Where x_i > x_k it must be less than
    half of the largest value.  Its values are computed by numerical differentiation.
    """
    x = recursion(20)  # the over-estimates; they grow from source to source
    size = np.array([[-sensitivity(i, k, x) for k in range(20)] for i in range(20)])
    # [i, k] the values for x_i < x_k, that is i < k, and for x_i > x_k; all others are 0
    smaller_x_i, larger_x_i = np.triu(size, 1), np.tril(size, -1)
    i, k = np.unravel_index(int(np.argmax(smaller_x_i)), size.shape)
    pairs = np.triu_indices(20, 1)
    ordered = bool(np.all(smaller_x_i[pairs] > larger_x_i.T[pairs]))
    most, most_elsewhere = smaller_x_i.max(), larger_x_i.max()
    only = bool(most_elsewhere < 0.5 * most)
    return Found(
        (int(i), int(k)) == (18, 19) and most > most_elsewhere and ordered and only,
        detail=f"Largest {most:.2f} 1/s, for i = {i + 1} and k = {k + 1}; where x_i > x_k "
        f"up to {most_elsewhere:.2f}; for i = 5 and k = 10 {smaller_x_i[4, 9]:.2f}.",
        missing="What size is 'significant' decides. (8) is largest for the last two sources, and "
        "for each pair larger where x_i < x_k; but where x_i > x_k it reaches half of the largest "
        "value."
        if ordered
        else "",
    )


def derivatives() -> list[Record]:
    """The records of equations (7) to (9): how a source's rate changes with the over-estimates.

    The rates are those of equation (5) at the queueing delay Delta that solves (6). All three
    equations give the derivative of ln(rate of source i): (7) by its own over-estimate x_i, (8) by
    another source's over-estimate x_k, (9) by Delta. Let y_j be Delta - x_j, and S the sum of
    1/y_j^2 over all sources but i. Then (7) is y_i S/(1 + y_i^2 S), and (9) is -1/y_i. The record
    of (8) has our form of (8) as its erratum.
    """
    y = delay(X) - X
    i, k = 1, 2  # counted from 0: the paper's sources 2 and 3
    S = float(np.sum(np.delete(1 / y**2, i)))  # over all sources j but i
    y_j = np.delete(y, k)  # for all sources j but k
    note = (
        f"4 sources, i = {i + 1}. computed: numerical derivatives of solutions of (6). Tolerance: "
        "the error of numerical derivatives."
    )
    # (7)
    seven = S / (1 + y[i] ** 2 * S) * y[i]
    # (8) as the paper prints it, with y_j in the numerator, and as we derive it, with y_i
    eight = -1 / (y[i] + float(np.sum(y[k] ** 2 * y_j / y_j**2)))
    derived_eight = -1 / (y[i] + float(np.sum(y[k] ** 2 * y[i] / y_j**2)))
    joined = recursion(20)  # s, over-estimates of 20 sources that join one by one
    # (7) of each of these sources, by numerical differentiation
    influence = np.array([sensitivity(j, j, joined) for j in range(20)])
    return [
        formula(
            "equation 7",
            printed=seven,
            compute=by_theory(sensitivity(i, i)),
            tolerance=1e-6 * seven,
            note=note,
        ),
        formula(
            "equation 8",
            printed=eight,
            compute=by_theory(sensitivity(i, k)),
            tolerance=1e-6 * abs(eight),
            note=f"{note} k = {k + 1}.",
            erratum="In the sum, (Delta - x_j) of the numerator must be (Delta - x_i). With y = "
            "Delta - x, the derivative of (6) with respect to x_k gives d Delta/d x_k = "
            "(1/y_k^2)/sum_j (1/y_j^2). The logarithm of (5) gives (d rate_i/d x_k)/rate_i = "
            "-(d Delta/d x_k)/y_i = -1/(y_i + sum_(j != k) y_k^2 y_i/y_j^2), here "
            f"{derived_eight:.6f}.",
        ),
        formula(
            "equation 9",
            printed=-1 / y[i],
            compute=by_theory(slope(lambda s: float(np.log(ALPHA / (s - X[i]))), delay(X))),
            tolerance=1e-6 / y[i],
            note=f"4 sources, i = 2, where Delta - x_i is {y[i]:.8f} s. computed: the numerical "
            "derivative of (5). Tolerance: the error of numerical derivatives.",
        ),
        Record(
            "section 3.1.3, the influence (7) grows with the over-estimate",
            compute=by_theory(_grows_in_order_of_arrival(influence)),
            note="Each of 20 sources that joined one after the other (exact recursion), alpha 1.",
        ),
        Record(
            "section 3.1.3, (7) has large values when x_i is close to Delta",
            compute=by_theory(_large_near_delta(influence, joined)),
            note="Numerical derivatives of solutions of (6). 'Large' is read as more than half of "
            "the largest value. If one over-estimate grows alone, (7) tends to 0: the nearer x_i "
            "comes to Delta, the more of the link the source has already.",
        ),
        Record(
            "section 3.1.3, (8) is significant where both are near Delta and x_i < x_k",
            compute=by_theory(_large_for_late_pairs()),
            note="All pairs of 20 sources that joined one after the other; numerical derivatives "
            "of solutions of (6). Read as: elsewhere (8) is less than half of its largest value.",
        ),
    ]


RECORDS = (*steady_state(), *particular_cases(), *derivatives())
