"""Equations (10) and (11) of ``boutremans`` and figure 6: alpha < beta."""

from __future__ import annotations

import numpy as np

from paper_checks.boutremans.scenes import CAPACITY
from paper_checks.boutremans.theory import ALPHA, BETA, D, N, X, settled
from paper_checks.checks import AT_A_POINT, Found, Record, exactly
from paper_checks.runs import Floats, Runs
from paper_checks.spread import jittered


def bands() -> list[Record]:
    """Equations (10) and (11), and what follows for two sources."""
    from vegasmodel.equilibrium import arrivals
    from vegasmodel.equilibrium import bands as package

    band = package.equilibria(np.full(N, ALPHA), np.full(N, BETA), X, CAPACITY)
    two = package.equilibria([ALPHA] * 2, [BETA] * 2, [0.0, 0.0], CAPACITY)
    _, most = two.ratio_range
    low, high = band.delay_range
    rest = settled()
    windows = [limit * (D + rest.wait) / (rest.wait - X) for limit in (ALPHA, BETA)]
    bounds = [limit / (rest.wait - X) for limit in (ALPHA, BETA)]
    first = arrivals.arrive(
        np.full(2, ALPHA), CAPACITY, beta=np.full(2, BETA), rtt=np.full(2, 0.2), x=np.zeros(2)
    )
    r1, r2 = (float(r) for r in first.rates)
    return [
        Record(
            "equation 10",
            "equation",
            True,
            exactly(_within(rest.windows, windows)),
            note="Windows at which rule (1) rests, 4 sources with unlike d and x, against alpha "
            "(d + Delta)/(Delta - x) and beta (d + Delta)/(Delta - x) at the Delta that they make.",
        ),
        Record(
            "equation 11",
            "equation",
            True,
            exactly(_within(rest.rates, bounds)),
            note="Their rates against alpha/(Delta - x) and beta/(Delta - x). That Delta, "
            f"{rest.wait:.4f} s, lies within the package's exact set of equilibria, {low:.4f} to "
            f"{high:.4f} s.",
        ),
        Record(
            "section 4.1, beta/alpha between two sources with x = 0",
            "claim",
            BETA / ALPHA,
            exactly(float(most[0, 1])),
            prints=AT_A_POINT,
            tolerance=1e-9,
            note="Largest ratio over the whole set of equilibria; attained.",
        ),
        Record(
            "figure 6, the first of two gets more",
            "figure",
            True,
            exactly(Found(r1 > r2, detail=f"{r1:.1f} and {r2:.1f} pkt/s.")),
            note="Two sources, x = 0, alpha 1, beta 3, d 0.2 s: quasi-static arrivals. The picture "
            "is missing from our text; its described content is checked.",
        ),
        Record(
            "figure 6, region 5 is where no window moves",
            "figure",
            True,
            exactly(_regions()),
            note="The signs of rule (1) over the nine regions cut by the lines Diff_i = alpha and "
            "Diff_i = beta: user 1 grows in (1), (4), (7), shrinks in (3), (6), (9); user 2 grows "
            "in (7), (8), (9), shrinks in (1), (2), (3).",
        ),
    ]


def _within(values: Floats, bounds: list[Floats]) -> Found:
    """Whether each value lies between its bounds."""
    text = "; ".join(
        f"{low:.2f} <= {value:.2f} <= {high:.2f}"
        for low, value, high in zip(bounds[0], values, bounds[1], strict=True)
    )
    inside = (bounds[0] <= values) & (values <= bounds[1])
    return Found(bool(np.all(inside)), detail=f"{text}.")


def _bounds() -> bool:
    """Whether both bounds of (11) grow with x, at Delta = 50 ms."""
    x = np.linspace(0.0, 0.045, 10)
    return all(bool(np.all(np.diff(limit / (0.05 - x)) > 0)) for limit in (ALPHA, BETA))


def _many() -> Found:
    """Whether the package's set of equilibria of two sources has more than one point."""
    from vegasmodel.equilibrium import bands as package

    two = package.equilibria([ALPHA] * 2, [BETA] * 2, [0.0, 0.0], CAPACITY)
    least, most = (float(end[0, 1]) for end in two.ratio_range)
    return Found(least < most, detail=f"Ratios of the two rates from {least:.3f} to {most:.3f}.")


def _small_buffers(runs: Runs) -> Found:
    """Whether Vegas loses packets beside Reno with a buffer of 5, and with one of 20."""
    from paper_checks.devendictis.validation import scene

    losses = [100 * float(runs(scene(0.08, B)).loss_rate[0]) for B in (5.0, 20.0)]
    return Found(
        losses[0] > losses[1], detail=f"Percent lost with 5 and 20: {losses[0]:.3f}, {losses[1]:g}."
    )


def _efficient(runs: Runs) -> Found:
    """Unused part of the link, percent, by two sources of a law."""
    from paper_checks.evaluation.figures import alike

    idle = {
        law: 100 * (1 - runs(jittered(alike(law, 22e-3))).utilization) for law in ("reno", "vegas")
    }
    text = ", ".join(f"{law} {part:.2f} %" for law, part in idle.items())
    return Found(idle["vegas"] < idle["reno"], detail=f"Unused: {text}.")


def text() -> list[Record]:
    """What sections 2 to 4.1 say beside their equations."""
    return [
        Record(
            "section 2, Vegas uses the bandwidth more efficiently than Reno",
            "claim",
            True,
            _efficient,
            note="Two sources of either law on the link of 'evaluation' figures 2b and 3b; ns-2 "
            "2.35, mean of 5 seeds whose starts move by up to one packet's time.",
        ),
        Record(
            "section 3.1.1, at small buffers Vegas behaves like Reno",
            "claim",
            True,
            _small_buffers,
            note="Read as losing packets as Reno does, with a buffer of 5 beside Reno and not with "
            "one of 20: the link of 'devendictis', T 80 ms; ns-2 2.35.",
        ),
        Record(
            "section 4.1, the bounds grow with the over-estimate",
            "claim",
            True,
            exactly(_bounds()),
            note="alpha/(Delta - x) and beta/(Delta - x) over x from 0 to 0.9 Delta.",
        ),
        Record(
            "section 4.1, more than one solution fills the link",
            "claim",
            True,
            exactly(_many()),
            note="Two sources with x = 0, alpha 1 and beta 3: the rates of all steady states whose "
            "sum is c, by the package.",
        ),
    ]


def _regions() -> bool:
    """Regions by columns of Diff_1 (low, between, high) and rows of Diff_2 (high first)."""
    diffs = {0: 0.5, 1: 2.0, 2: 4.0}
    moves = {}
    for column in range(3):
        for row in range(3):
            signs = [(d < ALPHA) - (d > BETA) for d in (diffs[column], diffs[2 - row])]
            moves[3 * row + column + 1] = tuple(signs)
    printed = {
        "first grows": {1, 4, 7},
        "first shrinks": {3, 6, 9},
        "second grows": {7, 8, 9},
        "second shrinks": {1, 2, 3},
    }
    found = {
        "first grows": {k for k, m in moves.items() if m[0] > 0},
        "first shrinks": {k for k, m in moves.items() if m[0] < 0},
        "second grows": {k for k, m in moves.items() if m[1] > 0},
        "second shrinks": {k for k, m in moves.items() if m[1] < 0},
    }
    return found == printed and moves[5] == (0, 0)


RECORDS = (*bands(), *text())
