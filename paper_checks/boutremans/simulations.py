"""Figures 3 to 5, 7 and 8 of ``boutremans`` by ns-2; the pictures are missing from our text.

Each is run without and with the random part of the delay.  Its variance is stated as that of an
M/M/1 queue at 90 % load: 90, but of what?  The paper states neither the packet size (1000 B here)
nor the time that a packet takes.  Four readings are run, 5, 9.5, 20 and 76 ms; the verdict is that
of 9.5 ms, one of the three that are the text's "very small variations" beside d = 0.2 s, and the
note says how the others fare.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial

import numpy as np

from paper_checks.boutremans.scenes import CAPACITY, NOISE, NOISES, SOURCES, joining
from paper_checks.boutremans.theory import harmonic, recursion
from paper_checks.checks import Found, Record, Value, distance, rounding
from paper_checks.runs import Floats, Measured, Runs
from paper_checks.spread import majority
from vegasmodel.metrics import jain

D = 0.2  # s
_RUN = (
    "ns-2 2.35, {}, 90 to 120 s; 1000 B packets, {}. The picture is missing from our text; its "
    "described content is checked."
)
_DELAY = {
    False: "no random part of the delay",
    True: f"a normal random part of the delay, standard deviation {1e3 * NOISE:g} ms",
}
RUN = {noise: _RUN.format("mean of 5 seeds", text) for noise, text in _DELAY.items()}
ONE_RUN = {noise: _RUN.format("one run", text) for noise, text in _DELAY.items()}
EACH = {
    noise: _RUN.format("the majority of 5 seeds, computed: their median", text)
    for noise, text in _DELAY.items()
}
ALPHAS = (1.0, 3.0, 5.0)
SPREADS = ((1.0, 3.0), (1.0, 5.0), (2.0, 4.0))
Compute = Callable[[Runs], Found]
Statistic = Callable[[float, Runs], Found]  # at a standard deviation of the delay, s


def agrees(found: Found, printed: Value, tolerance: float) -> bool:
    """Whether the figure is the printed one: for most seeds, where each has its own."""
    if found.share is not None:
        return found.share > 0.5
    return distance(found.value, printed) <= tolerance


def _read(
    statistic: Statistic, noise: bool, printed: Value = True, tolerance: float = 0.0
) -> Compute:
    """The statistic without the random part, or at ``NOISE``; the note has the other readings."""
    if not noise:
        return partial(statistic, 0.0)

    def compute(runs: Runs) -> Found:
        found = {sigma: statistic(sigma, runs) for sigma in NOISES}
        agree = [f"{1e3 * s:.2g}" for s, f in found.items() if agrees(f, printed, tolerance)]
        text = f"Of the readings 5, 9.5, 20 and 76 ms these agree: {', '.join(agree) or 'none'}."
        return dataclasses.replace(found[NOISE], detail=f"{found[NOISE].detail} {text}".strip())

    return compute


def _mark(noise: bool) -> str:
    return " with noise" if noise else ""


def base_rtts(measured: Measured) -> Floats:
    """The baseRTT of each source at its end, s."""
    assert measured.base_rtt is not None
    return measured.base_rtt


def last_over_first(runs: Runs, n: int, alpha: float, noise: float = 0.0) -> Floats:
    """Rate of the last source over that of the first, of each seed, alpha = beta."""
    throughput = runs(joining(n, alpha, alpha, noise=noise)).throughput
    return np.asarray(throughput[:, -1] / throughput[:, 0])


def by_seeds(values: Floats, printed: float, unit: float, detail: str = "") -> Found:
    """The seeds' median, and the part of them that rounds to what is printed."""
    each = ", ".join(f"{value:.1f}" for value in values)
    return majority(values.tolist(), printed, rounding(unit), f"Seeds: {each}. {detail}".strip())


# --- figure 3: baseRTT -----------------------------------------------------------------------


def _pessimistic(alpha: float, noise: float, runs: Runs) -> Found:
    theory = D + alpha / CAPACITY * np.array([k * harmonic(k) for k in range(20)])
    exact = D + recursion(20, alpha)
    measured = base_rtts(runs(joining(20, alpha, alpha, noise=noise)))
    errors = [float(np.sqrt(np.mean((t - measured) ** 2))) for t in (theory, exact)]
    return Found(
        bool(np.mean(theory - measured) > 0 and theory[-1] > measured[-1]),
        detail=f"Last source: {measured[-1]:.3f} s measured, {theory[-1]:.3f} s by Bonald, "
        f"{exact[-1]:.3f} s by the exact recursion; root mean square errors {errors[0]:.3f} and "
        f"{errors[1]:.3f} s.",
    )


def _far(alpha: float, noise: float, runs: Runs) -> Found:
    late = float(base_rtts(runs(joining(20, alpha, alpha, noise=noise)))[-1] - D)
    return Found(late > D, detail=f"The last source over-estimates by {late:.3f} s.")


def _lasts(alpha: float, noise: float, runs: Runs) -> Found:
    """The last of 20 sources, which joins at 38 s: its baseRTT at 40 s and at 120 s."""
    begin = base_rtts(runs(joining(20, alpha, alpha, noise=noise, until=40.0)))[-1]
    end = base_rtts(runs(joining(20, alpha, alpha, noise=noise)))[-1]
    return Found(
        begin - end < 0.1 * begin, detail=f"{begin:.3f} s after 2 s, {end:.3f} s after 82."
    )


def figure_3(noise: bool) -> list[Record]:
    """The baseRTT over the index, n = 20: far from the truth, and theory above it."""
    found = []
    for letter, alpha in zip("abc", ALPHAS, strict=True):
        figure = f"figure 3{letter}{_mark(noise)}"
        case = f"alpha = beta = {alpha:g}, n = 20"
        found += [
            Record(
                f"{figure}, the theoretical baseRTT is pessimistic",
                "figure",
                True,
                _read(partial(_pessimistic, alpha), noise),
                note=f"{case}: Bonald's above the measured, on average and for the last. "
                f"{RUN[noise]}",
            ),
            Record(
                f"{figure}, late baseRTTs are far from the propagation delay",
                "figure",
                True,
                _read(partial(_far, alpha), noise),
                note=f"{case}; read as more than d = 0.2 s too long. {RUN[noise]}",
            ),
            Record(
                f"{figure}, baseRTTs at the beginning and at the end are very close",
                "figure",
                True,
                _read(partial(_lasts, alpha), noise),
                note=f"{case}; the last source, read as a fall of less than 10 %. {RUN[noise]}",
            ),
        ]
    return found


CHANCE = 0.01  # most that an order may owe to it


def _in_order(a: Floats, b: Floats) -> tuple[bool, str]:
    """Whether ``b`` grows with ``a``: by rank, above 0.5 and beyond chance.

    Chance: the part of 9,999 drawn orders of ``b`` whose correlation is at least as large, the
    measured one counted among them.
    """
    from scipy.stats import rankdata  # a second to load

    x, y = rankdata(a), rankdata(b)
    order = float(np.corrcoef(x, y)[0, 1])
    drawn = np.random.default_rng(1).permuted(np.tile(y, (9999, 1)), axis=1)
    others = (drawn - y.mean()) @ (x - x.mean()) / (x.size * x.std() * y.std())
    chance = (1 + np.count_nonzero(others >= order - 1e-12)) / (1 + others.size)
    return order > 0.5 and chance < CHANCE, f"Rank correlation {order:.2f}, by chance {chance:.2g}"


# --- figures 4 and 5: rates and their oscillation --------------------------------------------


def _rising(n: int, alpha: float, beta: float, noise: float, runs: Runs) -> Found:
    """Rank correlation of rate and over-estimate."""
    measured = runs(joining(n, alpha, beta, noise=noise))
    rates = measured.mean
    grows, text = _in_order(base_rtts(measured), rates)
    return Found(grows, detail=f"{text}; first source {rates[0]:.2f}, last {rates[-1]:.2f} pkt/s.")


def _use(noise: float, runs: Runs) -> Found:
    return Found(runs(joining(20, 3.0, 3.0, noise=noise)).utilization)


def _most(noise: float, runs: Runs) -> Found:
    ratios = {
        (n, alpha): last_over_first(runs, n, alpha, noise) for n in SOURCES for alpha in ALPHAS
    }
    text = "; ".join(f"n {n}, alpha {a:g}: {np.median(r):.1f}" for (n, a), r in ratios.items())
    but_one = max(float(np.median(r)) for (_, alpha), r in ratios.items() if alpha > 1)
    return by_seeds(
        np.max(list(ratios.values()), axis=0),
        5,
        1.0,
        f"Medians: {text}; without alpha = 1 at most {but_one:.1f}.",
    )


def _swings(noise: float, runs: Runs) -> Found:
    measured = runs(joining(20, 3.0, 3.0, noise=noise))
    if not (measured.window[2] > measured.window[1]).any():  # the queue alone moves the rates
        return Found(
            False,
            detail="No window moves: ns-2 rounds Diff, which leaves a dead zone of one packet.",
        )
    swing = measured.rate[2] - measured.rate[1]
    grows, text = _in_order(measured.rate[0], swing)
    return Found(grows, detail=f"{text}.")


def _alike(noise: float, runs: Runs) -> Found:
    window = runs(joining(20, 3.0, 3.0, noise=noise)).window
    swing = window[2] - window[1]
    least, most = float(swing.min()), float(swing.max())
    return Found(
        0 < most <= 2 * least, detail=f"Windows move by {least:.1f} to {most:.1f} packets."
    )


def figures_4_and_5(noise: bool) -> list[Record]:
    """With alpha = beta late sources gain, and rates swing."""
    return [
        *(
            Record(
                f"figure 4{letter}{_mark(noise)}, n = {n}, alpha = {alpha:g}: the rate grows with "
                "x_i",
                "figure",
                True,
                _read(partial(_rising, n, alpha, alpha), noise),
                note=f"The caption gives n only, alpha = beta is ours. Read as a rank correlation "
                f"above 0.5, by chance under 1 %. {RUN[noise]}",
            )
            for letter, n in zip("abc", SOURCES, strict=True)
            for alpha in ALPHAS
        ),
        Record(
            f"figure 4{_mark(noise)}, up to 5 times",
            "figure",
            5,
            _read(_most, noise, 5, rounding(1.0)),
            tolerance=rounding(1.0),
            note="Largest rate of the last over the first source, all n and alpha = beta of 1, 3 "
            "and 5, which figure 3 has; the alphas of figure 4 are lost with its pictures. "
            f"Tolerance: rounding. {EACH[noise]}",
        ),
        Record(
            f"figure 5{_mark(noise)}, the swing grows with the rate",
            "figure",
            True,
            _read(_swings, noise),
            note="n = 20, alpha = beta = 3: largest less least cwnd/RTT against its mean. "
            f"{ONE_RUN[noise]}",
        ),
        Record(
            f"section 3.2.2{_mark(noise)}, all windows oscillate by a similar amplitude",
            "claim",
            True,
            _read(_alike, noise),
            note=f"n = 20, alpha = beta = 3; read as all within a factor of 2. {ONE_RUN[noise]}",
        ),
        Record(
            f"figure 5{_mark(noise)}, the link stays full",
            "figure",
            1.0,
            _read(_use, noise, 1.0, 0.005),
            tolerance=0.005,
            note=f"Utilisation, n = 20, alpha = beta = 3. Tolerance: half a percent. {RUN[noise]}",
        ),
    ]


# --- figures 7 and 8: alpha < beta -----------------------------------------------------------


def _early_wins(alpha: float, beta: float, noise: float, runs: Runs) -> Found:
    rates = runs(joining(10, alpha, beta, known=True, noise=noise)).mean
    halves = float(rates[:5].mean()), float(rates[5:].mean())
    return Found(
        halves[0] > halves[1],
        detail=f"First five {halves[0]:.2f}, last five {halves[1]:.2f} pkt/s; first source "
        f"{rates[0]:.2f}, last {rates[-1]:.2f}.",
    )


def _by_ratio(noise: float, runs: Runs) -> Found:
    cases = sorted(SPREADS, key=lambda pair: pair[1] / pair[0])
    values = [jain(runs(joining(10, *pair, known=True, noise=noise)).mean) for pair in cases]
    text = ", ".join(f"({a:g}, {b:g}) {v:.3f}" for (a, b), v in zip(cases, values, strict=True))
    return Found(bool(np.all(np.diff(values) < 0)), detail=f"Jain's index: {text}.")


def _still(noise: float, runs: Runs) -> Found:
    window = runs(joining(10, 1.0, 3.0, known=True, noise=noise)).window
    swing = float((window[2] - window[1]).max())
    return Found(swing, detail="Packets by which a window moves after 90 s, at most.")


def _fairer(n: int, noise: float, runs: Runs) -> Found:
    values = [jain(runs(joining(n, 1.0, beta, noise=noise)).mean) for beta in (1.0, 3.0, 5.0)]
    text = ", ".join(f"{v:.3f}" for v in values)
    return Found(bool(np.all(np.diff(values) > 0)), detail=f"Beta 1, 3, 5: {text}.")


def figures_7_and_8(noise: bool) -> list[Record]:
    """With alpha < beta, without and with over-estimates."""
    truth = "true baseRTTs" if not noise else "three packets each through the empty network first"
    found = [
        Record(
            f"figure 7{_mark(noise)}, alpha {a:g}, beta {b:g}: early connections get more",
            "figure",
            True,
            _read(partial(_early_wins, a, b), noise),
            note=f"n = 10, {truth}; means of the first and the last five. {RUN[noise]}",
        )
        for a, b in SPREADS
    ]
    found += [
        Record(
            f"figure 7{_mark(noise)}, unfairness grows with beta/alpha",
            "figure",
            True,
            _read(_by_ratio, noise),
            note=f"n = 10, {truth}; the pairs are ours, the paper's are lost. {RUN[noise]}",
        ),
        Record(
            f"figure 7{_mark(noise)}, the oscillations disappear",
            "figure",
            0.0,
            _read(_still, noise, 0.0),
            note=f"n = 10, {truth}, alpha 1, beta 3. {ONE_RUN[noise]}",
        ),
    ]
    for letter, n in zip("abc", SOURCES, strict=True):
        found += [
            Record(
                f"figure 8{letter}{_mark(noise)}, n = {n}: the rate grows with x_i",
                "figure",
                True,
                _read(partial(_rising, n, 1.0, 3.0), noise),
                note="The caption gives n only, alpha 1 and beta 3 are ours; baseRTTs measured; "
                f"rank correlation above 0.5, by chance under 1 %. {RUN[noise]}",
            ),
            Record(
                f"figure 8{letter}{_mark(noise)}, n = {n}: fairer as beta moves off alpha",
                "figure",
                True,
                _read(partial(_fairer, n), noise),
                note=f"Jain's index; the caption gives n only, alpha 1 is ours. {RUN[noise]}",
            ),
        ]
    return found


RECORDS = tuple(
    record
    for noise in (False, True)
    for figures in (figure_3, figures_4_and_5, figures_7_and_8)
    for record in figures(noise)
)
