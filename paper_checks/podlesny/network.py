"""Experiments D and E of Podlesny and Williamson: the capacity, and the longest round-trip time.

The index is the relative fairness: throughput of a Vegas flow over that of a NewReno flow.  The
router is the paper's, which ns-3 runs; CBQ stands in for it in ns-2.  ``exact`` asks for the
router.  ``axis`` has the values of the quantity that varies, one for each of ``scenarios``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import partial

import numpy as np

from paper_checks.checks import Found, Record, open_question
from paper_checks.podlesny.experiments import (
    BY_CBQ,
    EXACT,
    NO_PICTURE,
    ROUTER,
    SPREAD,
    SPREAD_3,
    curve,
    index,
    loss,
)
from paper_checks.podlesny.router import Web, dumbbell, single
from paper_checks.runs import Runs
from paper_checks.spread import apart, averaged, plus_minus
from vegasmodel.metrics import standard_error
from vegasmodel.scenario import Scenario

MBITS = (10, 30, 100, 300, 1000)  # at full scale
LONGEST = (0.03, 0.1, 0.2, 0.3, 1.0)  # s
LONGEST_EXACT = (0.03, 0.2, 1.0)  # what ns-3 runs: there the router counts the short flows too
FIFTH = 0.2
SCALE = (
    "The scale decides. The paper's router has run at a fifth of it only, and there CBQ differs "
    "from CBQ at full scale"
)


def index_range(
    axis: Sequence[float],
    scenarios: Sequence[Scenario],
    printed: Sequence[float],
    exact: bool,
    runs: Runs,
) -> Found:
    """The least and the largest mean index of the scenarios, beside the two printed ones."""
    values = np.array([index(runs, s, exact) for s in scenarios])
    ends = [int(np.argmin(values.mean(axis=1))), int(np.argmax(values.mean(axis=1)))]
    text = curve(runs, axis, scenarios, exact)
    if exact:
        others = ", ".join(f"{index(runs, s).mean():.2f}" for s in scenarios)
        full = ", ".join(f"{index(runs, s).mean():.2f}" for s in whole())
        text += (
            f" By CBQ, which does not count the short flows, {others}, in one run of each at full "
            f"scale {full}."
        )
    found = averaged(values[ends].T, printed, 0.01, text)
    return dataclasses.replace(found, missing=_by_scale(runs) if exact else BY_CBQ)


def _by_scale(runs: Runs) -> str:
    """A text: the scale changes the index of experiment E by CBQ, and by how much at most."""
    changes = [
        float(index(runs, full).mean() - index(runs, fifth).mean())
        for full, fifth in zip(whole(), round_trips(LONGEST_EXACT), strict=True)
    ]
    return f"{SCALE}: its index changes by {max(changes, key=abs):+.2f}."


def steady(
    axis: Sequence[float],
    scenarios: Sequence[Scenario],
    printed: Sequence[float],
    exact: bool,
    runs: Runs,
) -> Found:
    """Whether the ratio of the largest mean index to the least is at most that of the printed ones.

    The question stays open without ``exact``, and if the runs do not decide.
    """
    values = np.array([index(runs, s, exact) for s in scenarios])
    means = values.mean(axis=1)
    least, most = int(np.argmin(means)), int(np.argmax(means))
    part, limit = float(means[most] / means[least]), printed[1] / printed[0]
    errors = standard_error(values.T) / means
    error = 2 * part * float(np.hypot(errors[least], errors[most]))
    text = (
        f"Largest over least index {part:.3f} +- {error:.3f} (two standard errors), in the print "
        f"{limit:.3f}. {curve(runs, axis, scenarios, exact)}"
    )
    if not exact:
        fixed = "An index of fixed parts is steady whatever the traffic."
        return open_question(f"{BY_CBQ} {fixed} {text}")
    others = np.array([index(runs, s).mean() for s in scenarios])
    text += f" By CBQ, which does not count the short flows, {others.max() / others.min():.3f}."
    if part - error <= limit < part + error:
        return open_question(
            f"The runs do not decide: the print is within their two standard errors. {text}"
        )
    return Found(part + error <= limit, detail=text)


def _starves(runs: Runs) -> Found:
    """Whether the index with the router is lower at 10 than at 30 Mbit/s, and below 1.

    Both differences must exceed two standard errors.
    """
    (own, wider), by_cbq = (
        [index(runs, s, exact) for s in capacities()[:2]] for exact in (True, False)
    )
    gap, error = apart(wider, own)
    least = 1 - own.mean()
    return Found(
        bool(gap > 2 * error and least > 2 * standard_error(own)),
        detail=f"Index {plus_minus(own)} at 10, {plus_minus(wider)} at 30 Mbit/s. By CBQ "
        f"{plus_minus(by_cbq[0])} (at full scale {plus_minus(index(runs, narrow()))}) and "
        f"{plus_minus(by_cbq[1])}.",
    )


def _above_narrowest(runs: Runs) -> Found:
    """The range of the index above 10 Mbit/s with CBQ; the note has the router's at 30 Mbit/s."""
    own = index(runs, capacities()[1], exact=True)
    found = index_range(MBITS[1:], capacities()[1:], (0.72, 0.88), False, runs)
    each = ", ".join(f"{value:.2f}" for value in own)
    text = f"By figure 2's router in ns-3 at 30 Mbit/s, 3 runs: {each}."
    missing = (
        "The paper's router has run 30 Mbit/s only (beyond it a run takes minutes), where its "
        "index is within the printed range; CBQ, which has run all, is not that router."
    )
    return dataclasses.replace(found, detail=f"{found.detail} {text}", missing=missing)


def _narrowest(runs: Runs) -> Found:
    """The index at 10 Mbit/s with CBQ at full scale.

    The note has the index with the router at a fifth of the scale.
    """
    full = index(runs, narrow())
    own, fifth = index(runs, capacities()[0], exact=True), index(runs, capacities()[0])
    beside = averaged(own, 0.61, 0.01)
    assert isinstance(beside.value, float)
    each = ", ".join(f"{value:.2f}" for value in own)
    text = (
        f"By figure 2's router in ns-3, at a fifth of the scale, runs of {each}, mean "
        f"{beside.value:.2f}. CBQ at a fifth of the scale has {fifth.mean():.2f}, so the scale "
        "matters here."
    )
    found = averaged(full, 0.61, 0.01, text)
    why = (
        "CBQ alone has run this at full scale. The paper's router has run it at a fifth of the "
        "scale, where its three runs scatter around the print."
    )
    return dataclasses.replace(found, missing=why)


def _lost_at_narrowest(runs: Runs) -> Found:
    """Vegas's loss at 10 Mbit/s with CBQ at full scale, percent.

    The note has the losses with the router and with CBQ at a fifth of the scale.
    """
    own, fifth = (loss(runs, capacities()[0], "vegas", exact) for exact in (True, False))
    return Found(
        loss(runs, narrow(), "vegas"),
        detail=f"At a fifth of the scale figure 2's router in ns-3 loses {own:.1f} %, CBQ "
        f"{fifth:.1f} %.",
        missing=f"{BY_CBQ.replace('this', 'this at full scale')}",
    )


def capacities() -> list[Scenario]:
    """The scenarios of experiment D, in which the capacity varies."""
    return [dumbbell(mbit=FIFTH * mbit, web=Web(FIFTH * 50)) for mbit in MBITS]


def narrow() -> Scenario:
    """Experiment D at 10 Mbit/s at full scale: a D queue of 31 packets for 100 flows."""
    return dumbbell(100, 100, mbit=10.0, web=Web(50.0))


def round_trips(longest: Sequence[float] = LONGEST) -> list[Scenario]:
    """The scenarios of experiment E, in which the longest propagation RTT varies, in s."""
    return [dumbbell(longest=value, web=Web(FIFTH * 50)) for value in longest]


def whole() -> list[Scenario]:
    """Experiment E at full scale: scenarios of one run at each longest RTT of ``LONGEST_EXACT``."""
    return [
        single(dumbbell(100, 100, mbit=100.0, longest=value, web=Web(50.0)))
        for value in LONGEST_EXACT
    ]


NO_SPREAD = "Of each loss the mean over the runs is stored, not how far the runs differ."
WEB = (
    "Short flows: half of each class, not counted by the router; the index is of the lasting flows."
)
COUNTED = (
    "Short flows: half of each class, counted by the router; the index is of the lasting flows."
)
NS3_LOSES = (
    "What ns-3's flows lose is not what ns-2's would: there a loss does not take Vegas's window to "
    "3/4, slow start doubles it every RTT, and NewReno recovers by SACK (docs/ns3.md). Without "
    "short flows ns-3 loses ten times as much as ns-2 with CBQ. But both lose more than the print, "
    "and so does CBQ at full scale."
)


def _falls(runs: Runs) -> Found:
    """Whether Vegas's loss falls to less than half from 10 to 30 Mbit/s, by router and by CBQ."""
    own, by_cbq = (
        [loss(runs, s, "vegas", exact) for s in capacities()[:2]] for exact in (True, False)
    )
    text = f"By figure 2's router in ns-3 at 10 and 30 Mbit/s {own[0]:.1f} and {own[1]:.1f} %."
    return Found(
        all(wide < 0.5 * narrow for narrow, wide in (own, by_cbq)),
        detail=f"{text} By CBQ: {curve(runs, MBITS, capacities())}",
    )


def capacity() -> list[Record]:
    """The records of experiment D, figure 7."""
    full = ROUTER.replace("at a fifth of the scale (flows, capacity, buffers)", "at full scale")
    return [
        Record(
            "section IV-D, index from above 10 Mbit/s to 1 Gbit/s",
            "claim",
            [0.72, 0.88],
            _above_narrowest,
            note=f"Least and largest of 30 Mbit/s to 1 Gbit/s. {ROUTER} {WEB} {SPREAD}",
        ),
        Record(
            "section IV-D, index at 10 Mbit/s",
            "claim",
            0.61,
            _narrowest,
            note=f"{full} {WEB} {SPREAD}",
        ),
        Record(
            "section IV-D, Vegas's loss at 10 Mbit/s, percent",
            "claim",
            28,
            _lost_at_narrowest,
            tolerance=0.5,
            note=f"{full} {WEB} Tolerance: rounding of the print.",
        ),
        Record(
            "figure 7a, Vegas's throughput drops at 10 Mbit/s",
            "figure",
            True,
            _starves,
            note="Index under 1 and under that at 30 Mbit/s, by more than two standard errors. "
            f"{EXACT} {COUNTED} {NO_PICTURE}",
        ),
        Record(
            "figure 7b, Vegas's loss falls quickly from 10 to 30 Mbit/s",
            "figure",
            True,
            _falls,
            note="Read as: the mean loss falls to less than half, by the paper's router and by "
            f"CBQ. {NO_SPREAD} From 30 Mbit/s on CBQ alone has run, and decides nothing. {EXACT} "
            f"{COUNTED} {NO_PICTURE}",
        ),
    ]


def _losses(runs: Runs) -> tuple[list[float], str]:
    """Vegas's loss at three values of the longest RTT with the router, percent.

    The second value is a text with the loss with CBQ at all values.
    """
    found = [loss(runs, s, "vegas", exact=True) for s in round_trips(LONGEST_EXACT)]
    by_cbq = ", ".join(f"{loss(runs, s, 'vegas'):.2f}" for s in round_trips())
    full = ", ".join(f"{loss(runs, s, 'vegas'):.2f}" for s in whole())
    middle = LONGEST_EXACT.index(0.2)
    fifth, large = (
        loss(runs, scenarios[middle], "vegas")
        for scenarios in (round_trips(LONGEST_EXACT), whole())
    )
    return found, (
        f"By CBQ, at {', '.join(f'{1e3 * x:g}' for x in LONGEST)} ms: {by_cbq} %; in one run of "
        f"each at full scale, at 30, 200, 1000 ms: {full} %. So the scale matters: at 200 ms "
        f"CBQ loses {fifth:.2f} % at a fifth of the scale and {large:.2f} % at full scale, both "
        "below 1 %; and the router has run at a fifth of the scale only."
    )


def _turns(runs: Runs) -> Found:
    """Vegas's loss if the longest RTT has its least value, 200 ms and its greatest, percent."""
    found, text = _losses(runs)
    return Found(found, detail=text, missing=f"{SCALE}, in which Vegas loses less.")


def _low(runs: Runs) -> Found:
    found, text = _losses(runs)
    return Found(
        max(found) < 1.0,
        detail=f"By the router {', '.join(f'{lost:.2f}' for lost in found)} %. {text}",
        missing=f"{SCALE}, in which Vegas loses less.",
    )


def _non_monotonic(runs: Runs) -> Found:
    (first, middle, last), text = _losses(runs)
    others = [
        [loss(runs, s, "vegas") for s in scenarios]
        for scenarios in (round_trips(LONGEST_EXACT), whole())
    ]
    return Found(
        all(b < min(a, c) for a, b, c in ((first, middle, last), *others)),
        detail=f"{first:.2f}, {middle:.2f}, {last:.2f} %. {text}",
    )


def delays() -> list[Record]:
    """The records of experiment E, figure 8."""
    return [
        Record(
            "section IV-E, index over maximum RTTs of 30 ms to 1 s",
            "claim",
            [0.83, 0.87],
            partial(index_range, LONGEST_EXACT, round_trips(LONGEST_EXACT), (0.83, 0.87), True),
            note=f"Least and largest of 30 ms, 200 ms and 1 s. {EXACT} {COUNTED} {NS3_LOSES} "
            f"{SPREAD_3}",
        ),
        Record(
            "section IV-E, Vegas's loss at 20, 200 and 1000 ms, percent",
            "claim",
            [0.29, 0.01, 0.11],
            _turns,
            tolerance=0.005,
            note="At maximum RTTs of 30 (the axis begins there, not at 20), 200 and 1000 ms. "
            f"{EXACT} {COUNTED} {NS3_LOSES} Tolerance: rounding of the print.",
        ),
        Record(
            "section IV-E, Vegas's loss well below 1 %",
            "claim",
            True,
            _low,
            note=f"At 30 ms, 200 ms and 1 s. {EXACT} {COUNTED} {NS3_LOSES}",
        ),
        Record(
            "figure 8a, very robust over the round-trip times",
            "figure",
            True,
            partial(steady, LONGEST_EXACT, round_trips(LONGEST_EXACT), (0.83, 0.87), True),
            note="Read as: the index varies by no larger a factor than printed, two standard "
            "errors added. "
            f"{EXACT} {COUNTED} {NO_PICTURE}",
        ),
        Record(
            "figure 8b, Vegas's loss falls and then grows",
            "figure",
            True,
            _non_monotonic,
            note="Least at a maximum RTT of 200 ms, beside 30 ms and 1 s, where the text has three "
            "values, by the router and by CBQ, also at full scale. How much is lost is another "
            f"record, and is missed. {NO_SPREAD} "
            f"{EXACT} {COUNTED} {NO_PICTURE}",
        ),
    ]
