"""What ``tsang`` says of its network and its thresholds beside tables 3 and 4."""

from __future__ import annotations

import numpy as np

from paper_checks.checks import AT_A_POINT, Found, Record, by_print, exactly, rounding
from paper_checks.runs import Runs
from paper_checks.tsang.replay import MAX_WINDOW, replay
from paper_checks.tsang.scenes import BITS, CAPACITY, DELAYS, two
from paper_checks.tsang.table3 import CONVERGED
from paper_checks.tsang.table4 import CURVES, SETTLED, VEGAS, index, nearest
from paper_checks.tsang.text import SHORTEST
from vegasmodel.metrics import jain

FAIR = CAPACITY / 2  # pkt/s
PRINTED = (0.231, 0.211, 0.191, 0.171, 0.151, 0.131, 0.111, 0.091, 0.071, 0.051, 0.031, 0.021)
LOWER = 15.0  # packets, RED's lower threshold
RULE = "Packet by packet with the printed rules (paper_checks/tsang/replay.py)."


def _between() -> Found:
    cases = [[1.0, *[0.0] * n] for n in (0, 1, 9, 999)] + [[3.0, 1.0, 2.0], [5.0, 5.0]]
    found = [jain(case) for case in cases]
    return Found([min(found) > 0, max(found) <= 1], detail=f"{min(found):g} to {max(found):g}.")


def _gain() -> Found:
    """Rates of two sources of which the second over-estimates by one packet's time."""
    from vegasmodel.equilibrium import rates

    first, second = (float(r) for r in rates([2.0, 2.0], [0.0, 1 / CAPACITY], CAPACITY))
    return Found(second > first, detail=f"{first:.1f} and {second:.1f} pkt/s of {CAPACITY:g}.")


def _by_backlog() -> list[float]:
    """Ratio of the rates at backlogs of 3 : 1 and 2 : 1, one queueing delay, no over-estimate."""
    from vegasmodel.equilibrium import rates

    pairs = [rates([a, 1.0], [0.0, 0.0], CAPACITY) for a in (3.0, 2.0)]
    return [float(first / second) for first, second in pairs]


def _unlimited(runs: Runs) -> Found:
    """Largest window of each setting, packets."""
    largest = {
        name: max(r.window for x2 in DELAYS for c in replay(x2, *pair) for r in c.rounds)
        for name, pair in VEGAS.items()
    }
    text = ", ".join(f"{name} {window:.1f}" for name, window in largest.items())
    return Found(largest["Vegas1_3"] < MAX_WINDOW, detail=f"Largest windows: {text}.")


def _below_red(runs: Runs) -> Found:
    queues = {x2: runs(two(x2, warmup=CONVERGED)).queue for x2 in DELAYS}
    worst = max(queues, key=lambda x2: queues[x2])
    return Found(
        queues[worst] < LOWER, detail=f"At most {queues[worst]:.1f} packets, at x2 = {worst} ms."
    )


def _queues(runs: Runs) -> Found:
    """Mean queue by delta, over the delays, packets."""
    names = ("Vegas-1", "Vegas-2", "Vegas-3")
    means = [float(np.mean([runs(two(x2, *VEGAS[n])).queue for x2 in DELAYS])) for n in names]
    text = ", ".join(f"{mean:.2f}" for mean in means)
    return Found(bool(np.all(np.diff(means) > 0)), detail=f"Packets with delta 1, 2, 3: {text}.")


def _expected(name: str) -> float:
    late = replay(nearest(), *VEGAS[name])[1].late(SETTLED)
    return float(np.mean([r.expected for r in late])) / BITS


def _relieved(runs: Runs) -> Found:
    """Expected rate of the longer connection, pkt/s: with delta 1 alone under the fair share."""
    found = {name: _expected(name) for name in ("Vegas-1", "Vegas-2", "Vegas-3")}
    text = ", ".join(f"{name} {rate:.1f}" for name, rate in found.items())
    least = min(found["Vegas-2"], found["Vegas-3"])
    return Found(found["Vegas-1"] < FAIR < least, detail=f"{text}; the fair share is {FAIR:g}.")


def _unstable(runs: Runs) -> Found:
    """Range of the index over the delays, by setting."""
    spans = {n: float(np.ptp([index(x2, n) for x2 in DELAYS])) for n in VEGAS}
    text = ", ".join(f"{name} {span:.3f}" for name, span in spans.items())
    return Found(max(spans, key=lambda n: spans[n]), detail=f"Largest less least index: {text}.")


RECORDS = (
    Record(
        "section 1, the index lies between 0 and 1",
        "claim",
        [True, True],
        exactly(_between()),
        note="Above 0 and at most 1, over shares of 1 of n, unequal ones and equal ones.",
    ),
    Record(
        "table 1, point 5a, an over-estimate of one transmission gives a higher throughput",
        "table",
        True,
        exactly(_gain()),
        note="Steady state of 'boutremans' (6), alpha of both 2, x of the second 5.33 ms.",
    ),
    Record(
        "section 3.1, the window of 30 is no limit",
        "claim",
        True,
        _unlimited,
        note=f"Both windows of the 13 cases with alpha 1 and beta 3. {RULE} Section 3.3 expects a "
        "limit with larger thresholds.",
        source="replay",
    ),
    Record(
        "section 3.1, RED's thresholds of 15 and 45 do not act",
        "claim",
        True,
        _below_red,
        note="Mean queue from 30 s on in the 13 cases, below the lower threshold; ns-2 2.35, RED "
        "as printed. No packet is lost either (the record of section 3.2).",
    ),
    Record(
        "section 3.2, FIFO: the rates are as the packets in the queue",
        "claim",
        [3.0, 2.0],
        exactly(_by_backlog()),
        prints=AT_A_POINT,
        tolerance=1e-9,
        note="Ratio of the rates at backlogs of 3 : 1 and 2 : 1 in the steady state of "
        "'boutremans' (6), x = 0. Tolerance: rounding of the arithmetic.",
    ),
    Record(
        "table 4, least RTT of the longer connection",
        "table",
        [*PRINTED, 0.013],
        by_print([1e-3 * (SHORTEST + 2 * (x2 - 1)) for x2 in DELAYS]),
        tolerance=rounding(0.001),
        note="s, the table's 13 rows: section 3.1's 13.211 ms and 2 (x2 - 1) ms. Tolerance: "
        "rounding of the print.",
    ),
    Record(
        "section 3.3, the larger delta the more packets wait",
        "claim",
        True,
        _queues,
        note="Mean queue over the 13 delays; ns-2 2.35.",
    ),
    Record(
        "section 3.3, the longer's expected rate: under the fair share with Vegas-1 alone",
        "claim",
        True,
        _relieved,
        note=f"pkt/s from 30 s on, at the delay of the other figures of section 3.3. {CURVES}",
        source="replay",
    ),
    Record(
        "abstract, with alpha = beta = 1 the fairness is unstable",
        "claim",
        "Vegas-1",
        _unstable,
        note=f"Read as the largest range of the index over the 13 delays. {RULE}",
        source="replay",
    ),
)
