"""Measures the speed of the steady-state solver, and its error against a 50-digit reference.

The solver (``equilibrium.secular``) finds the queueing delay q at which the rates of Vegas flows
add up to the capacity c: sum of alpha/(q - x) = c.  A flow over-estimates its baseRTT by x.

``python benchmarks/secular.py`` times the solver.  ``--accuracy [N]`` compares N random cases
(default 100,000) of seven families, some of them numerically difficult, with a reference computed
to 50 digits with ``decimal``.  ``--jax`` compares the JAX path with the NumPy path.
"""

import argparse
import decimal
import time
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from benchmarks.arguments import at_least
from vegasmodel.equilibrium import secular

Case = tuple[np.ndarray, np.ndarray, float]  # alpha, x (over-estimates), capacity
DIGITS = 50  # of the reference
FAMILIES = ("uniform", "cluster", "close", "magnitudes", "small at top", "mixed", "offset")


def case(rng: np.random.Generator, family: str, n: int) -> Case:
    """Thresholds alpha, over-estimates x of the baseRTTs, and the capacity c of a random case.

    ``n`` is the number of flows.  The solver finds the queueing delay q at which the sum of the
    rates alpha/(q - x) is c.  Most families are numerically difficult, for example because the
    largest over-estimates are nearly equal.
    """
    alpha, x = rng.uniform(0.5, 5.0, n), rng.uniform(0.0, 1.0, n)
    c = 10 ** rng.uniform(-1.0, 6.0)
    if family == "cluster":  # near one to four places; the clusters are equally wide
        places = rng.uniform(0.0, 1.0, 1 + int(rng.integers(4)))
        x = rng.choice(places, n) + 10 ** rng.uniform(-16.0, -3.0) * rng.random(n)
    elif family == "close":  # within 1e-13 of the largest
        x = rng.uniform(0.1, 10.0) * (1.0 - 1e-13 * rng.random(n))
    elif family == "magnitudes":
        alpha = 10 ** rng.uniform(-6.0, 6.0, n)
    elif family in ("small at top", "mixed") and n > 1:
        # One flow, ``top``, has the largest x and a small alpha.  At q = x[top] the rates of the
        # other flows add up to ``full``.  The capacity c differs from ``full`` by a fraction of
        # 0.5 to 5e-17.  If c is near ``full``, the rate of the flow ``top`` is a small difference
        # of large numbers: c less the rates of the others.
        top = int(rng.integers(n))
        others = np.arange(n) != top
        if family == "mixed":
            alpha = 10 ** rng.uniform(-6.0, 6.0, n)
            x[others] -= 10 ** rng.uniform(-13.0, 0.0)
        x[top] = x.max() + 10 ** rng.uniform(-13.0, 0.0)
        alpha[top] = alpha.max() * 10 ** rng.uniform(-12.0, -6.0)
        full = float((alpha[others] / (x[top] - x[others])).sum())
        c = full * (1.0 + rng.choice([-1.0, 1.0]) * 10 ** rng.uniform(-16.0, 0.0) * 0.5)
    elif family == "offset":  # over-estimates far from 0, gaps small beside them
        x = 10 ** rng.uniform(0.0, 6.0) + x * 10 ** rng.uniform(-9.0, 0.0)
    return alpha, x, c


def sizes(rng: np.random.Generator, count: int) -> Iterator[int]:
    """Random numbers of flows from 1 to 10,000; most are small, because the reference is slow."""
    for _ in range(count):
        largest = rng.choice(
            [3.0, 12.0, 100.0, 1000.0, 10_000.0], p=[0.25, 0.45, 0.27, 0.025, 0.005]
        )
        yield max(1, int(largest ** rng.uniform(0.0, 1.0) + 0.5))


def reference(alpha: np.ndarray, x: np.ndarray, c: float, gap: float) -> list[decimal.Decimal]:
    """The rates to 50 digits, in decimal arithmetic; the floats of the case count as exact.

    The equation is that the rates alpha/(g + top - x) add up to the capacity ``c``, where top is
    the largest over-estimate.  The unknown g is the queueing delay less top.  It is found by
    Newton's method on 1/(sum of the rates), which starts from ``gap`` and is kept within a bracket.
    """
    with decimal.localcontext() as context:
        context.prec = DIGITS + 10
        alphas, capacity = [decimal.Decimal(a) for a in alpha.tolist()], decimal.Decimal(c)
        exact = [Fraction(each) for each in x.tolist()]
        top = max(exact)
        distances = [_decimal(top - each) for each in exact]  # top - x of each flow
        flows = list(zip(alphas, distances, strict=True))
        # The bracket of g: the flows with x = top alone have at most the capacity, so g is at least
        # the sum of their alphas over it. If all flows had x = top, g would be largest.
        at_top = sum((a for a, d in flows if d == 0), decimal.Decimal(0))
        low, high = at_top / capacity, sum(alphas) / capacity
        g = decimal.Decimal(gap) if gap > 0 else (low * high).sqrt()
        tiny = decimal.Decimal(10) ** -DIGITS
        for _ in range(400):
            rates = [a / (g + d) for a, d in flows]
            total = sum(rates)
            # minus the derivative of the sum of the rates
            slope = sum((a / (g + d) ** 2 for a, d in flows), decimal.Decimal(0))
            low, high = (max(low, g), high) if total > capacity else (low, min(high, g))
            step = (total - capacity) / slope * total / capacity
            if abs(step) <= tiny * g:
                return rates
            g = g + step if low <= g + step <= high else (low * high).sqrt()
    raise RuntimeError("the reference did not converge")


def _decimal(value: Fraction) -> decimal.Decimal:
    """A difference of two floats as an exact decimal (its denominator is a power of two)."""
    with decimal.localcontext() as context:
        context.prec = 2500
        return decimal.Decimal(value.numerator) / decimal.Decimal(value.denominator)


def units(rates: np.ndarray, exact: list[decimal.Decimal]) -> float:
    """The largest error of a case's rates, in units in the last place of a float (ulp).

    ``rates`` come from the solver, ``exact`` from ``reference``.
    """
    worst = 0.0
    for found, true in zip(rates.tolist(), exact, strict=True):
        error = abs(decimal.Decimal(found) - true)
        worst = max(worst, float(error / decimal.Decimal(float(np.spacing(float(true))))))
    return worst


def campaign(count: int, seed: int) -> dict[str, tuple[int, float, int]]:
    """Compare ``count`` random cases with the reference; return three numbers for each family.

    They are the number of its cases, the largest error in units in the last place, and the number
    of flagged cases.  A case is flagged if the solver's status says that it did not converge.
    """
    rng, found = np.random.default_rng(seed), dict.fromkeys(FAMILIES, (0, 0.0, 0))
    for number, n in enumerate(sizes(rng, count)):
        family = FAMILIES[number % len(FAMILIES)]
        alpha, x, c = case(rng, family, n)
        state = secular.solve(alpha, x, c)
        done, worst, flagged = found[family]
        if state.status:
            flagged += 1
            print(f"flagged {int(state.status)}: {family}, case {number}, n = {n}")
        else:
            worst = max(worst, units(state.rates, reference(alpha, x, c, float(state.gap))))
        found[family] = done + 1, worst, flagged
    return found


def in_jax(count: int, seed: int) -> float:
    """The largest relative difference between the rates by JAX and by NumPy, over all families.

    For each family and each of five numbers of flows, ``count`` cases are solved at once.
    """
    import jax
    import jax.numpy as jnp

    rng, worst = np.random.default_rng(seed), 0.0
    with jax.enable_x64(True):
        solve = jax.jit(secular.solve)
        for family in FAMILIES:
            for n in (1, 2, 7, 40, 300):
                batch = [case(rng, family, n) for _ in range(count)]
                alpha, x, c = (np.array(part) for part in zip(*batch, strict=True))
                exact, found = secular.solve(alpha, x, c), solve(*map(jnp.asarray, (alpha, x, c)))
                if np.any(np.asarray(found.status) != exact.status):
                    print("statuses differ:", family, n)
                error = np.abs(np.asarray(found.rates) / exact.rates - 1.0)
                worst = max(worst, float(np.nanmax(error)))
    return worst


def best(call: object, repeats: int) -> float:
    """The shortest wall time of ``repeats`` calls, s."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return min(times)


def speed() -> None:
    """Print the time of the solver beside those of a root finder and of one NumPy sum."""
    from scipy.optimize import brentq

    rng, m, n = np.random.default_rng(1), 100_000, 20
    alpha, x = rng.uniform(1.0, 4.0, (m, n)), rng.uniform(0.0, 0.1, (m, n))
    c = 10 ** rng.uniform(1.0, 4.0, m)
    secular.solve(alpha, x, c)  # compiles, or loads what was compiled
    ours = best(lambda: secular.solve(alpha, x, c), 5)

    def loop(cases: int) -> None:
        """Solve the first ``cases`` cases one by one with SciPy's ``brentq``.

        The unknown is g = q - max x, where q is the queueing delay at which the rates
        alpha_i/(q - x_i) = alpha_i/(g + max x - x_i) add up to the capacity.
        """
        for a, v, capacity in zip(alpha[:cases], x[:cases], c[:cases], strict=True):
            d = v.max() - v
            # bounds of g: by the flows with the largest x alone, and if all x were the largest
            low, high = a[d == 0].sum() / capacity, a.sum() / capacity
            g = brentq(
                lambda g: float((a / (g + d)).sum()) - capacity,
                low, high * (1 + 1e-12), xtol=1e-300, rtol=8.9e-16,
            )  # fmt: skip
            a / (g + d)  # the rates, which the solver computes, too

    theirs = best(lambda: loop(2000), 3) / 2000 * m
    print(f"{m} cases of {n} flows: {ours:.3f} s; brentq in a loop {theirs:.2f} s (of 2,000 cases)")
    print(f"  {theirs / ours:.0f} times faster; the goal is 200")
    alpha, x = rng.uniform(1.0, 4.0, 10_000_000), rng.uniform(0.0, 0.1, 10_000_000)
    for capacity in (1e6, 3e8):
        state = secular.solve(alpha, x, capacity)
        ours = best(lambda: secular.solve(alpha, x, capacity), 5)
        once = best(lambda: float((alpha / (state.delay - x)).sum()), 5)
        print(f"10,000,000 flows, c = {capacity:g}, {int(state.iterations)} passes: {ours:.3f} s")
        print(f"  {ours / once:.1f} times one NumPy sum ({once:.3f} s); the goal is 6")
    small = best(lambda: secular.solve(alpha[:n].tolist(), x[:n].tolist(), 1000.0), 50)
    print(f"one case of {n} flows: {1e6 * small:.0f} us")


def main() -> None:
    """Time the solver, or with ``--accuracy`` or ``--jax`` compare its results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--accuracy", type=at_least(1), nargs="?", const=100_000, metavar="N")
    parser.add_argument("--jax", type=at_least(1), nargs="?", const=200, metavar="N")
    parser.add_argument("--seed", type=at_least(0), default=1)
    options = parser.parse_args()
    if options.accuracy:
        begin, found = time.perf_counter(), campaign(options.accuracy, options.seed)
        for family, (cases, worst, flagged) in found.items():
            print(f"{family:13s} {cases:6d} cases, worst {worst:.2f} ulp, {flagged} flagged")
        print(f"{time.perf_counter() - begin:.0f} s")
        raise SystemExit(any(worst > 8.0 for _, worst, _ in found.values()))
    if options.jax:
        worst = in_jax(options.jax, options.seed)
        print(f"JAX against NumPy: largest relative difference {worst:.1e}")
        return
    speed()


if __name__ == "__main__":
    main()
