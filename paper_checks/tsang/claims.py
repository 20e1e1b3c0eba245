"""Statements of Tsang and Chang about network and thresholds, other than tables 3 and 4.

x2 is the delay of the second connection's last link in ms, delta is alpha = beta, and R1 is the
router before the shared link.  ``longer_first`` says whether the longer connection's first packet
arrives at R1 before the shorter one's.
"""

import numpy as np

from paper_checks.checks import Found, Record, by_theory, from_printed_numbers, rises, rounding
from paper_checks.runs import Runs
from paper_checks.tsang.replay import MAX_WINDOW, replay
from paper_checks.tsang.scenes import BITS_PER_PACKET, CAPACITY, X2_IN_MS, two_connections
from paper_checks.tsang.table3 import FROM_30_S, PACKET_TIME
from paper_checks.tsang.table4 import CASES, THRESHOLDS, as_printed, each_case, index
from paper_checks.tsang.text import SHORTEST
from vegasmodel.metrics import jain

FAIR_SHARE = CAPACITY / 2  # pkt/s, an equal share for each of the two connections
# s, printed in table 4: least RTTs of the longer connection for all of X2_IN_MS but the last
LEAST_RTTS = (0.231, 0.211, 0.191, 0.171, 0.151, 0.131, 0.111, 0.091, 0.071, 0.051, 0.031, 0.021)
RED_LOWER = 15.0  # packets, RED's lower threshold
RULE = "Packet by packet with the printed rules (paper_checks/tsang/replay.py)."


def _index_limits() -> Found:
    """Whether Jain's index is above 0, and whether it is at most 1, for several sets of rates."""
    cases = [[1.0, *[0.0] * n] for n in (0, 1, 9, 999)]  # one flow has all, n others nothing
    cases += [[3.0, 1.0, 2.0], [5.0, 5.0]]
    found = [jain(case) for case in cases]
    return Found([min(found) > 0, max(found) <= 1], detail=f"{min(found):g} to {max(found):g}.")


LATER_BY = 10.0  # s: how long after the first source the second one starts


def _gains_by_a_later_start(runs: Runs) -> Found:
    """Whether the second source gets more if it starts later than if both start at once.

    The second source is the one with the longer delay.  It must get more in most cases and less in
    none.  Only delays are used at which the later start increases its over-estimate of baseRTT.
    """
    gains = {}  # by x2: second source's rate if it starts later, over that if both start at once
    for x2 in X2_IN_MS:
        (_, at_once), (_, later) = replay(x2), replay(x2, later_by=LATER_BY)  # the second sources
        if later.base > at_once.base + 0.01 * PACKET_TIME:
            gains[x2] = later.rate(FROM_30_S) / at_once.rate(FROM_30_S)
    more = sum(gain > 1.01 for gain in gains.values())
    text = ", ".join(f"{x2} ms {gain:.2f}" for x2, gain in gains.items())
    return Found(
        more > len(gains) / 2 and min(gains.values()) > 0.99,
        detail=f"It over-estimates by more at {len(gains)} of the 13 delays, and gets more in "
        f"{more} of these. Its rate, over that with both at once: {text}.",
    )


def _packets_over_rates(runs: Runs) -> Found:
    """The ratio of the two connections' packets in the queue, divided by the ratio of their rates.

    The quotient is 1 if the connections share the link as they share the queue, as the paper says.
    The result is its mean over the 13 delays x2 (ms) of the longer connection's last link.
    """
    quotients = []
    for x2 in X2_IN_MS:
        first, second = replay(x2)
        packets = first.held(FROM_30_S) / second.held(FROM_30_S)
        quotients.append(packets / (first.rate(FROM_30_S) / second.rate(FROM_30_S)))
    return Found(
        float(np.mean(quotients)),
        detail=f"At single delays {min(quotients):.2f} to {max(quotients):.2f}, since the packets "
        "of the two do not wait equally long.",
    )


def _below_window_limit(runs: Runs) -> Found:
    """Whether all windows with alpha 1 and beta 3 stay below the advertised window of 30 packets.

    The result's detail has the largest window with each pair of thresholds.
    """
    largest = {
        name: max(
            each_round.window
            for x2 in X2_IN_MS
            for longer_first in (False, True)
            for connection in replay(x2, *pair, longer_first=longer_first)
            for each_round in connection.rounds
        )
        for name, pair in THRESHOLDS.items()
    }
    text = ", ".join(f"{name} {window:.1f}" for name, window in largest.items())
    return Found(largest["Vegas1_3"] < MAX_WINDOW, detail=f"Largest windows: {text}.")


def _below_red(runs: Runs) -> Found:
    """Whether the mean queue by ns-2 is below RED's lower threshold at each delay x2."""
    queues = {x2: runs(two_connections(x2, warmup=FROM_30_S)).queue for x2 in X2_IN_MS}
    worst = max(queues, key=lambda x2: queues[x2])
    return Found(
        queues[worst] < RED_LOWER,
        detail=f"At most {queues[worst]:.1f} packets, at x2 = {worst} ms.",
    )


def _queue_grows_with_delta(runs: Runs) -> Found:
    """Whether the mean queue over the delays grows with delta (alpha = beta), by ns-2."""
    names = ("Vegas-1", "Vegas-2", "Vegas-3")
    means = [
        float(np.mean([runs(two_connections(x2, *THRESHOLDS[n])).queue for x2 in X2_IN_MS]))
        for n in names
    ]
    text = ", ".join(f"{mean:.2f}" for mean in means)
    return Found(rises(means), detail=f"Packets with delta 1, 2, 3: {text}.")


def _expected(name: str, x2: int, longer_first: bool) -> float:
    """Mean expected rate of the longer connection from 30 s on, pkt/s.

    ``name`` is the paper's name of the thresholds, such as "Vegas-1"; ``x2`` is the delay of this
    connection's last link, ms. ``longer_first`` says whether its packet is the first at the router
    R1.
    """
    _, longer = replay(x2, *THRESHOLDS[name], longer_first=longer_first)
    return float(np.mean([r.expected for r in longer.decisions(FROM_30_S)])) / BITS_PER_PACKET


def _below_fair_share_with_1_only(runs: Runs) -> Found:
    """Whether the longer connection's expected rate is below the fair share with delta 1 only.

    delta is the value of both thresholds, alpha = beta.
    """
    names = ("Vegas-1", "Vegas-2", "Vegas-3")
    found = [[_expected(name, *case) for name in names] for case in as_printed()]
    text = each_case(["/".join(f"{rate:.0f}" for rate in rates) for rates in found])
    holds = all(rates[0] < FAIR_SHARE < min(rates[1:]) for rates in found)
    return Found(holds, detail=f"With delta 1/2/3: {text} The fair share is {FAIR_SHARE:g}.")


def _least_stable_thresholds(runs: Runs) -> Found:
    """The pair of thresholds with which Jain's index has the largest range over the delays."""
    spans = {n: float(np.ptp([index(x2, n) for x2 in X2_IN_MS])) for n in THRESHOLDS}
    text = ", ".join(f"{name} {span:.3f}" for name, span in spans.items())
    return Found(max(spans, key=lambda n: spans[n]), detail=f"Largest less least index: {text}.")


RECORDS = (
    Record(
        "section 1, the index lies between 0 and 1",
        printed=[True, True],
        compute=by_theory(_index_limits()),
        note="Above 0 and at most 1, if one of n flows has all, if the rates are unequal and if "
        "they are equal.",
    ),
    Record(
        "table 1, point 5a, a second source that starts later over-estimates and gets more",
        compute=_gains_by_a_later_start,
        note=f"The print has 'may'. Read as: more in most cases, and less in none. The second "
        f"source starts {LATER_BY:g} s after the first, or both start at once; alpha 1, beta 3; "
        f"rates from 30 s on. {RULE}",
        source="replay",
    ),
    Record(
        "section 3.1, the window of 30 is no limit",
        compute=_below_window_limit,
        note="Both windows in the 13 cases with alpha 1 and beta 3, whichever connection's packet "
        "is the first at R1. "
        f"{RULE} Section 3.3 names the advertised window as another limit of the longer "
        "connection.",
        source="replay",
    ),
    Record(
        "section 3.1, RED's thresholds of 15 and 45 do not act",
        compute=_below_red,
        note="Mean queue from 30 s on in the 13 cases, below the lower threshold; ns-2 2.35, RED "
        "as printed. No packet is lost either (the record of section 3.2).",
    ),
    Record(
        "section 3.2, FIFO: the rates are as the packets in the queue",
        printed=1.0,
        compute=_packets_over_rates,
        prints=("reflects the ratio of the bandwidth sharing",),
        tolerance=0.1,
        note="computed: the ratio of the two connections' packets at R1, divided by the ratio of "
        "their rates, from 30 s on; mean over the 13 delays, alpha 1, beta 3. printed: 1, since "
        "the print says that the first ratio 'reflects' the second. "
        f"{RULE} Tolerance: 10 %, chosen by us.",
        source="replay",
    ),
    Record(
        "table 4, least RTT of the longer connection",
        printed=[*LEAST_RTTS, 0.013],
        compute=from_printed_numbers([1e-3 * (SHORTEST + 2 * (x2 - 1)) for x2 in X2_IN_MS]),
        tolerance=rounding(0.001),
        note="s, the table's 13 rows: section 3.1's 13.211 ms and 2 (x2 - 1) ms. Tolerance: "
        "rounding of the print.",
    ),
    Record(
        "section 3.3, the larger delta the more packets wait",
        compute=_queue_grows_with_delta,
        note="Mean queue over the 13 delays; ns-2 2.35.",
    ),
    Record(
        "section 3.3, the longer's expected rate: under the fair share with Vegas-1 alone",
        compute=_below_fair_share_with_1_only,
        note=f"pkt/s from 30 s on. {CASES}",
        source="replay",
    ),
    Record(
        "abstract, with alpha = beta = 1 the fairness is unstable",
        printed="Vegas-1",
        compute=_least_stable_thresholds,
        note=f"Read as the largest range of the index over the 13 delays. {RULE}",
        source="replay",
    ),
)
