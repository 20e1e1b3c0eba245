"""Equations (1) to (9) of Boutremans and Le Boudec, and the special cases of section 3.1.2.

Source i has the propagation delay d_i and over-estimates it by x_i.  Delta is the queueing delay,
and c the capacity.  Numbers in parentheses are the paper's equations: (1) is Vegas's rule for the
window, (5) the rate alpha/(Delta - x_i), and (6) says that the rates add up to c.

The printed side is the printed formula at a test point.  The computed side follows from the
premises in another way: the rule is iterated, the equation is solved by Brent's method, or
solutions are differentiated numerically.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.optimize import brentq

from paper_checks.boutremans.scenes import CAPACITY, SOURCES
from paper_checks.checks import ARITHMETIC, AT_A_POINT, Found, Record, exactly
from vegasmodel.metrics import Floats

ALPHA, BETA, N = 1.0, 3.0, 4
X = np.array([0.0, 0.01, 0.03, 0.02])  # s
D = np.array([0.2, 0.1, 0.3, 0.2])  # s
FINE = 2.0**-10  # packets


def delay(x: Floats, alpha: float = ALPHA, c: float = CAPACITY) -> float:
    """The queueing delay Delta that solves equation (6), by Brent's method, s."""
    most = float(x.max())
    share = x.size * alpha / c

    def excess(gap: float) -> float:
        return float(np.sum(alpha / (most + gap - x))) - c

    return most + float(brentq(excess, 1e-6 * share, share * (1 + 1e-9), xtol=1e-15, rtol=1e-14))


def rates(x: Floats, alpha: float = ALPHA, c: float = CAPACITY) -> Floats:
    """The rates by equation (5), at the queueing delay that solves equation (6), pkt/s."""
    return np.asarray(alpha / (delay(x, alpha, c) - x))


@dataclass(frozen=True, eq=False)
class Rest:
    """The state at which rule (1) keeps all windows; arrays have one entry per source."""

    windows: Floats  # packets
    wait: float  # s, the queueing delay of all
    x: Floats  # s, the over-estimates
    moves: bool  # whether a window would still move

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
) -> Rest:
    """The state in which Vegas's rule (1) changes no window, found by iterating the rule.

    The rule is applied once per round trip, beginning with the windows ``first``, and Delta follows
    from the windows.  A window changes by one packet at first.  This step is halved repeatedly, and
    ends at ``step`` packets.  ``x`` are the over-estimates in s.
    """
    W, size, over = np.array(first), 1.0, np.array(x)

    def signs(W: Floats) -> Floats:
        diff = W * (1 - (D + over) / (D + _wait(W)))
        return np.asarray((diff < alpha) * 1.0 - (diff > beta) * 1.0)

    while size >= step:
        for _ in range(300):
            W = np.maximum(W + size * signs(W), 1.0)
        size /= 2
    return Rest(W, _wait(W), over, bool(signs(W).any()))


def _wait(W: Floats) -> float:
    """The queueing delay, s, at which the rates with the windows ``W`` add up to the capacity."""
    each: list[tuple[float, float]]  # of four, arrays take longer
    each = list(zip(W.tolist(), D.tolist(), strict=True))

    def excess(s: float) -> float:
        return sum(w / (d + s) for w, d in each) - CAPACITY

    return float(brentq(excess, 0.0, 10.0, xtol=1e-14)) if excess(0.0) > 0 else 0.0


def _own_gain() -> Found:
    """Whether each source's rate grows with its own over-estimate, if Delta changes, too."""
    gains = [float((rates(X + 1e-3 * unit) - rates(X)) @ unit) for unit in np.eye(N)]
    return Found(min(gains) > 0, detail=f"pkt/s more: {', '.join(f'{g:.3f}' for g in gains)}.")


def steady_state() -> list[Record]:
    """The records of equations (1) to (6)."""
    Delta, backlogs = delay(X), settled().backlogs
    RTT, base = D + Delta, D + X
    fine = settled(ALPHA, ALPHA, FINE)
    windows = np.array(
        [brentq(lambda W, i=i: W - base[i] / RTT[i] * W - ALPHA, 0, 1e4) for i in range(N)]
    )
    inside = bool(np.all((backlogs >= ALPHA) & (backlogs <= BETA)))
    text = ", ".join(f"{b:.2f}" for b in backlogs)
    tight = settled(ALPHA, ALPHA)
    return [
        Record(
            "equation 1",
            "equation",
            True,
            exactly(
                Found(
                    inside and not settled().moves,
                    detail=f"Backlogs {text} packets. With beta = alpha it "
                    f"{'goes on moving' if tight.moves else 'rests too'}.",
                )
            ),
            note="The rule, iterated for 4 sources with alpha 1 and beta 3 at one queue, rests "
            "with every Diff between alpha and beta.",
        ),
        Record(
            "equation 2",
            "equation",
            None,
            blocked="A definition, which nothing could contradict: x_i is what baseRTT_i has over "
            "d_i. How large it grows is figure 3's.",
        ),
        Record(
            "equation 3",
            "equation",
            [ALPHA] * N,
            exactly(fine.backlogs.tolist()),
            prints=AT_A_POINT,
            tolerance=4 * FINE,
            note="alpha against cwnd_i - (d_i + x_i)/(d_i + Delta) cwnd_i where rule (1) with "
            "alpha = beta rests, iterated in steps that are halved, at one queue; 4 sources with "
            "unlike d and x. Tolerance: four of the last steps.",
        ),
        Record(
            "equation 4",
            "equation",
            (ALPHA * (D + Delta) / (Delta - X)).tolist(),
            exactly(windows.tolist()),
            prints=AT_A_POINT,
            tolerance=1e-6,
            note=f"Printed form against the root of (3) by Brent's method. {ARITHMETIC}",
        ),
        Record(
            "equation 5",
            "equation",
            (ALPHA / (Delta - X)).tolist(),
            exactly((windows / RTT).tolist()),
            prints=AT_A_POINT,
            tolerance=1e-6,
            note=f"Printed form against window over RTT. {ARITHMETIC}",
        ),
        Record(
            "equation 6",
            "equation",
            CAPACITY,
            exactly(float(np.sum(ALPHA / (fine.wait - X)))),
            prints=AT_A_POINT,
            tolerance=4 * FINE * CAPACITY,
            note="c against the sum of alpha/(Delta - x_i) at the queueing delay at which rule (1) "
            "rests, as for (3): no root of (6). Tolerance: that of (3), as a part.",
        ),
        Record(
            "section 3.1.1, the rate grows with the over-estimate",
            "claim",
            True,
            exactly(_own_gain()),
            note="(5) at the Delta of (6), 4 sources: one over-estimate longer by 1 ms, each in "
            "turn, and (6) solved again.",
        ),
    ]


# --- 3.1.2: particular cases -----------------------------------------------------------------


def harmonic(n: int) -> float:
    """S_n = 1 + 1/2 + ... + 1/n."""
    return float(np.sum(1.0 / np.arange(1, n + 1)))


def printed_rates(n: int) -> Floats:
    """The rates that section 3.1.2 prints for n sources which joined one by one, pkt/s.

    Source i has the rate c/(n S_n - (i-1) S_{i-1}), with S_n = ``harmonic(n)``.
    """
    last = n * harmonic(n)
    return np.array([CAPACITY / (last - (k - 1) * harmonic(k - 1)) for k in range(1, n + 1)])


def recursion(n: int, alpha: float = ALPHA) -> Floats:
    """The over-estimates of ``n`` sources that join one by one, each when the queue is at rest, s.

    Source i over-estimates its propagation delay by the queueing delay that it finds.
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
    """The records of two cases: no over-estimates, and sources that join one after the other."""
    n = 20
    fair = delay(np.zeros(n))
    x, unit = recursion(n), ALPHA / CAPACITY
    return [
        Record(
            "section 3.1.2, Delta with x = 0",
            "equation",
            CAPACITY / (n * ALPHA),
            exactly(fair),
            prints=AT_A_POINT,
            tolerance=1e-9,
            erratum="Delta = n alpha/c: n sources with alpha packets each; (6) with x = 0 reads "
            "n alpha/Delta = c. The print, c/(n alpha), is its inverse.",
            note="20 sources, alpha 1, 125 pkt/s.",
        ),
        Record(
            "section 3.1.2, rates with x = 0",
            "equation",
            [CAPACITY / N] * N,
            exactly(settled(ALPHA, ALPHA, FINE, x=(0.0,) * N).rates.tolist()),
            prints=AT_A_POINT,
            tolerance=4 * FINE * CAPACITY / N,
            note=f"c/n, c {CAPACITY:g} pkt/s, against the rates at which rule (1) rests, alpha = "
            f"beta = {ALPHA:g}, steps of {FINE:g} packets; 4 sources whose delays differ, 0.1 to "
            "0.3 s. Tolerance: four steps, as a part.",
        ),
        *(
            Record(
                f"section 3.1.2, baseRTT of source {i}",
                "equation",
                unit * (i - 1) * harmonic(i - 1),
                exactly(float(x[i - 1])),
                prints=AT_A_POINT,
                tolerance=1e-9,
                note="x_i in s: printed (alpha/c) (i-1) S_(i-1) against the recursion.",
                erratum=EXACT_ARRIVALS,
                statement=BONALD,
            )
            for i in (2, 3, 20)
        ),
        Record(
            "section 3.1.2, Delta after n arrivals",
            "equation",
            unit * n * harmonic(n),
            exactly(delay(x)),
            prints=AT_A_POINT,
            tolerance=1e-9,
            erratum="The print has (alpha/a) n S_n, a slip for (alpha/c) n S_n, and that does not "
            f"solve (6) either. {EXACT_ARRIVALS}",
            statement=BONALD,
            note="20 sources, alpha 1; printed: with c for a.",
        ),
        *(
            Record(
                f"section 3.1.2, the printed rates add up to c, n = {k}",
                "equation",
                float(printed_rates(k).sum()),
                exactly(float(rates(recursion(k)).sum())),
                prints=AT_A_POINT,
                tolerance=1e-9,
                erratum=f"The printed rates add up to {printed_rates(k).sum() / CAPACITY:.4f} c"
                + (", 5/6 c at n = 2. " if k == 2 else ". ")
                + EXACT_ARRIVALS,
                statement=BONALD,
                note="Printed: sum of c/(n S_n - (i-1) S_(i-1)), pkt/s; computed: that of the "
                "rates that solve (6), which is c.",
            )
            for k in (2, *SOURCES)
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
    """Derivative by central differences with one step of extrapolation.

    The error is of order h^4, where h is the step.
    """

    def central(step: float) -> float:
        return (f(at + step) - f(at - step)) / (2 * step)

    h = 1e-6
    return (4 * central(h) - central(2 * h)) / 3


def sensitivity(i: int, k: int, x: Floats = X) -> float:
    """The relative change of source i's rate per second of x_k, (d rate_i/d x_k)/rate_i, in 1/s.

    Solutions of equation (6) are differentiated numerically.
    """

    def rate(value: float) -> float:
        moved = x.copy()
        moved[k] = value
        return float(np.log(rates(moved)[i]))

    return slope(rate, float(x[k]))


def _grows_with(own: Floats) -> Found:
    """Whether (d rate_i/d x_i)/rate_i, equation (7), grows from the first source to the last.

    The sources joined one after the other, so later ones over-estimate more.  ``own`` has the value
    for each source.
    """
    steps = np.diff(own)
    ranks = np.argsort(np.argsort(own))
    order = float(np.corrcoef(ranks, np.arange(own.size))[0, 1])
    return Found(
        bool(np.all(steps > 0)),
        detail=f"From {own[0]:.2f} it grows in {np.count_nonzero(steps > 0)} of {steps.size} "
        f"steps, to {own.max():.2f}, and ends at {own[-1]:.2f} 1/s; rank correlation {order:.2f}. "
        "With y = Delta - x_i and S the sum, y S/(1 + y^2 S) peaks at y^2 S = 1, and the last "
        "source is past the peak.",
        missing="What 'increases' means decides: as a tendency, by which figures 4 and 8 are read, "
        "it holds; as a growth in each step it does not."
        if order > 0.5
        else "",
    )


def _close(own: Floats, late: Floats) -> Found:
    """Whether equation (7) gives a large value for a source whose over-estimate is near Delta.

    Two sources are tested: one whose over-estimate grows alone, and the last of 20 that arrived one
    by one.  ``own`` has the value of equation (7) for each of these 20, and ``late`` their
    over-estimates in s.
    """
    values, gaps = [], []
    for over in (0.0, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0):
        x = X.copy()
        x[1] = over
        values.append(sensitivity(1, 1, x))
        gaps.append((delay(x) - over) / delay(x))
    text = ", ".join(f"{value:.3g}" for value in values)
    alone, series = values[-1] > 0.5 * max(values), own[-1] > 0.5 * own.max()
    near = (delay(late) - late[-1]) / delay(late)
    return Found(
        bool(alone and series),
        detail=f"One source of four: {text} 1/s at over-estimates of 0 to 10 s, where Delta - x_i "
        f"falls from {gaps[0]:.0%} to {gaps[-1]:.1%} of Delta. The last of 20 arrivals, at "
        f"{near:.1%} of Delta: {own[-1]:.1f} of at most {own.max():.1f} 1/s.",
        missing="What is held fixed decides: over 20 arrivals it holds, for one source whose "
        "over-estimate grows alone it does not."
        if alone != series
        else "",
    )


def _cross() -> Found:
    """For which pair of 20 sources (d rate_i/d x_k)/rate_i, equation (8), has the largest value.

    The values are computed by numerical differentiation.
    """
    late = recursion(20)
    size = np.array([[-sensitivity(i, k, late) for k in range(20)] for i in range(20)])
    early, back = np.triu(size, 1), np.tril(size, -1)
    i, k = np.unravel_index(int(np.argmax(early)), early.shape)
    ordered = bool(np.all(early[np.triu_indices(20, 1)] > back.T[np.triu_indices(20, 1)]))
    only = bool(back.max() < 0.5 * early.max())
    return Found(
        (int(i), int(k)) == (18, 19) and early.max() > back.max() and ordered and only,
        detail=f"Greatest {early.max():.2f} 1/s, for sources {i + 1} and {k + 1}; where x_i > x_k "
        f"up to {back.max():.2f}; of sources 5 and 10 {early[4, 9]:.2f}.",
        missing="What size is 'significant' decides: it is greatest for the last two, and for each "
        "pair greater where x_i < x_k, but where x_i > x_k it reaches half of the greatest."
        if ordered
        else "",
    )


def derivatives() -> list[Record]:
    """The records of equations (7) to (9), derivatives of the rates."""
    y = delay(X) - X
    i, k = 1, 2
    others = float(np.sum(np.delete(1 / y**2, i)))
    rest = np.delete(y, k)
    note = f"4 sources, i = {i + 1}. Computed: differences of solutions of (6). Tolerance: theirs."
    seven = others / (1 + y[i] ** 2 * others) * y[i]
    eight = -1 / (y[i] + float(np.sum(y[k] ** 2 * rest / rest**2)))
    right = -1 / (y[i] + float(np.sum(y[k] ** 2 * y[i] / rest**2)))
    late = recursion(20)
    own = np.array([sensitivity(j, j, late) for j in range(20)])
    return [
        Record(
            "equation 7",
            "equation",
            seven,
            exactly(sensitivity(i, i)),
            prints=AT_A_POINT,
            tolerance=1e-6 * seven,
            note=note,
        ),
        Record(
            "equation 8",
            "equation",
            eight,
            exactly(sensitivity(i, k)),
            prints=AT_A_POINT,
            tolerance=1e-6 * abs(eight),
            note=f"{note} k = {k + 1}.",
            erratum="In the sum, (Delta - x_j) of the numerator must be (Delta - x_i): from (6), "
            "d Delta/d x_k = (1/y_k^2)/sum_j (1/y_j^2) with y = Delta - x, and (d rate_i/d x_k)/"
            "rate_i = -(d Delta/d x_k)/y_i = -1/(y_i + sum_(j != k) y_k^2 y_i/y_j^2), here "
            f"{right:.6f}.",
        ),
        Record(
            "equation 9",
            "equation",
            -1 / y[i],
            exactly(slope(lambda s: float(np.log(ALPHA / (s - X[i]))), delay(X))),
            prints=AT_A_POINT,
            tolerance=1e-6 / y[i],
            note="4 sources, i = 2, where Delta - x_i is "
            f"{y[i]:.8f} s. Computed: differences of (5). Tolerance: theirs.",
        ),
        Record(
            "section 3.1.3, the influence (7) grows with the over-estimate",
            "claim",
            True,
            exactly(_grows_with(own)),
            note="Each of 20 sources that joined one after the other (exact recursion), alpha 1.",
        ),
        Record(
            "section 3.1.3, (7) has large values when x_i is close to Delta",
            "claim",
            True,
            exactly(_close(own, late)),
            note="Differences of solutions of (6). 'Large' is read as not under half of the "
            "greatest value. If one over-estimate grows alone, (7) tends to 0: the nearer x_i "
            "comes to Delta, the more of the link the source has, and the less there is to gain.",
        ),
        Record(
            "section 3.1.3, (8) is significant where both are near Delta and x_i < x_k",
            "claim",
            True,
            exactly(_cross()),
            note="All pairs of 20 sources that joined one after the other, differences of "
            "solutions of (6). 'Only' there is read as less than half of the greatest elsewhere.",
        ),
    ]


RECORDS = (*steady_state(), *particular_cases(), *derivatives())
