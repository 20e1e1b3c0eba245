"""Experiments C to F of Podlesny and Williamson: short flows, capacity, round-trip times, bursts.

The index is the relative fairness: throughput of a Vegas flow over that of a NewReno flow.  The
router is the paper's, which ns-3 runs; CBQ stands in for it in ns-2.  ``exact`` asks for the
router.  ``axis`` has the values of the quantity that varies, one for each of ``scenarios``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import partial

import numpy as np

from paper_checks.checks import Found, Record, open_question, rises
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
    losses,
)
from paper_checks.podlesny.router import Web, dumbbell, single
from paper_checks.runs import Runs
from paper_checks.spread import apart, averaged, plus_minus
from vegasmodel.metrics import standard_error
from vegasmodel.scenario import Scenario

WEBS = (1, 50, 100, 200, 300)  # short flows a second, at full scale
MBITS = (10, 30, 100, 300, 1000)  # at full scale
LONGEST = (0.03, 0.1, 0.2, 0.3, 1.0)  # s
# Of these, what ns-3 runs: there the router counts the short flows too.
LONGEST_EXACT = (0.03, 0.2, 1.0)
BURSTS_EXACT = ((30.0, 50), (30.0, 200), (100.0, 50))
BURSTS = (50, 100, 200)  # short flows a second, at full scale
# Size in packets and flows a second: printed index
BURST_INDEX = {(30.0, 50): 0.9, (30.0, 200): 0.69, (100.0, 50): 0.86, (100.0, 200): 0.67}
FIFTH = 0.2
LAWS = ("newreno", "vegas")


def _at(scenario: Scenario, printed: float, unit: float, runs: Runs) -> Found:
    values = index(runs, scenario)
    each = ", ".join(f"{value:.2f}" for value in values)
    found = averaged(values, printed, unit, f"Runs: {each}.")
    return dataclasses.replace(found, missing=found.missing or BY_CBQ)


def _exact_at(scenario: Scenario, printed: float, unit: float, runs: Runs) -> Found:
    """The index by the router.

    It cannot refute ``printed``, whose last digit has the unit ``unit``, if the index by CBQ lies
    on the other side of it.
    """
    values, other = index(runs, scenario, exact=True), float(index(runs, scenario).mean())
    losses = [loss(runs, scenario, law, exact=True) for law in LAWS]
    found = averaged(
        values,
        printed,
        unit,
        f"Runs: {', '.join(f'{value:.2f}' for value in values)}; NewReno loses {losses[0]:.1f} %, "
        f"Vegas {losses[1]:.1f} %. By CBQ, which does not count the short flows, {other:.2f}.",
    )
    between = (float(values.mean()) - printed) * (other - printed) < 0
    return dataclasses.replace(found, missing=found.missing or (BETWEEN if between else ""))


SCALE = (
    "The scale decides. The paper's router has run at a fifth of it only, and there CBQ differs "
    "from CBQ at full scale"
)
BETWEEN = (
    "The print lies between the two stand-ins, the router with ns-3's TCP and CBQ with ns-2's, "
    "which differ by more than either does from the print."
)


def _range(
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


def _rises(size: float, runs: Runs) -> Found:
    """Whether Vegas's loss grows from each rate of short flows to the next, with CBQ and router.

    The short flows have ``size`` packets on average.
    """
    text = f"By CBQ: {curve(runs, BURSTS, bursts(size))}"
    by_cbq = rises([loss(runs, s, "vegas") for s in bursts(size)])
    own = [rate for rate in BURSTS if (size, rate) in BURSTS_EXACT]
    scenarios = [bursts(size)[BURSTS.index(rate)] for rate in own]
    text += f" By figure 2's router in ns-3: {curve(runs, own, scenarios, exact=True)}"
    if len(own) < 2:
        return open_question(
            f"{BY_CBQ} By CBQ it {'grows' if by_cbq else 'does not grow'}. The router has run one "
            f"of the three intensities. {text}"
        )
    by_ns3 = rises([loss(runs, s, "vegas", exact=True) for s in scenarios])
    return Found(by_cbq and by_ns3, detail=text)


def _rises_with_web(runs: Runs) -> Found:
    """Whether Vegas's loss grows with the rate of short flows: open, as CBQ alone has run this.

    The note has Vegas's loss with short flows, by CBQ, and without them, by CBQ and by the router.
    """
    grows = rises([loss(runs, s, "vegas") for s in webs()])
    without = [losses(runs, dumbbell(), "vegas", exact) for exact in (False, True)]
    text = " and ".join(map(plus_minus, without))
    return open_question(
        f"{BY_CBQ} By CBQ Vegas's loss {'grows' if grows else 'does not grow'}; without short "
        f"flows Vegas loses, with standard errors, {text} % by CBQ and by figure 2's router. "
        f"{curve(runs, WEBS, webs())}"
    )


def _steady(
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
        steady = "An index of fixed parts is steady whatever the traffic."
        return open_question(f"{BY_CBQ} {steady} {text}")
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
    found = _range(MBITS[1:], capacities()[1:], (0.72, 0.88), False, runs)
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


def webs() -> list[Scenario]:
    """The scenarios of experiment C, in which the rate of short flows varies."""
    return [dumbbell(web=Web(FIFTH * rate)) for rate in WEBS]


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


def bursts(size: float) -> list[Scenario]:
    """The scenarios of experiment F: bursts of short flows of ``size`` packets at several rates."""
    return [dumbbell(web=Web(FIFTH * rate, size, bursty=True)) for rate in BURSTS]


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


def web_traffic() -> list[Record]:
    """The records of experiment C, figure 6."""
    return [
        Record(
            "section IV-C, index with Web traffic",
            "claim",
            [0.75, 0.96],
            partial(_range, WEBS, webs(), (0.75, 0.96), False),
            note=f"Least and largest over 1 to 300 flows/s. {ROUTER} {WEB} {SPREAD}",
        ),
        Record(
            "figure 6a, robust to the dynamics of Web traffic",
            "figure",
            True,
            partial(_steady, WEBS, webs(), (0.75, 0.96), False),
            note="Read as: the index varies by no larger a factor than printed, two standard "
            "errors added. "
            f"{ROUTER} {WEB} {NO_PICTURE}",
        ),
        Record(
            "figure 6b, Vegas's loss grows with the intensity of Web traffic",
            "figure",
            True,
            _rises_with_web,
            note=f"At 1, 50, 100, 200 and 300 flows/s. {ROUTER} {WEB} {NO_PICTURE}",
        ),
    ]


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
            partial(_range, LONGEST_EXACT, round_trips(LONGEST_EXACT), (0.83, 0.87), True),
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
            partial(_steady, LONGEST_EXACT, round_trips(LONGEST_EXACT), (0.83, 0.87), True),
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


def _explained(runs: Runs) -> Found:
    """Whether the index falls and Vegas's loss grows from 50 to 200 short flows per second.

    Both must hold for each size of short flow and each simulator that ran both rates.
    """
    rows: list[str] = []
    found: list[bool | None] = []
    for size, exact in ((30.0, True), (30.0, False), (100.0, False)):
        ends = bursts(size)[0], bursts(size)[-1]
        few, many = (index(runs, s, exact) for s in ends)
        gap, error = apart(many, few)
        lost = {law: [loss(runs, s, law, exact) for s in ends] for law in LAWS}
        if abs(gap) > 2 * error:
            found.append(gap < 0 and lost["vegas"][1] > lost["vegas"][0])
        else:
            found.append(None)
        texts = ", ".join(f"{law} {a:.1f} to {b:.1f} %" for law, (a, b) in lost.items())
        rows.append(
            f"{size:g} KB, {'the router' if exact else 'CBQ'}: index {few.mean():.2f} to "
            f"{many.mean():.2f}, by {gap:+.2f} +- {2 * error:.2f}, losses {texts}"
        )
    text = "; ".join(rows)
    if None in found:
        return open_question(f"The runs do not decide whether the index falls at each size. {text}")
    return Found(all(found), detail=f"{text}.")


def burstiness() -> list[Record]:
    """The records of experiment F, figure 9."""
    found = []
    for (size, rate), printed in BURST_INDEX.items():
        exact = (size, rate) in BURSTS_EXACT
        how = f"{EXACT} {COUNTED} {SPREAD_3}" if exact else f"{ROUTER} {WEB} {SPREAD}"
        scenario = bursts(size)[BURSTS.index(rate)]
        found.append(
            Record(
                f"section IV-F, index at {rate} flows/s of {size:g} KB",
                "claim",
                printed,
                partial(_exact_at if exact else _at, scenario, printed, 0.01),
                note=f"Pareto arrivals, shape 1.1. {how}",
            )
        )
    found += [
        Record(
            f"figure 9{letter}, Vegas's loss grows with the short flows of {size:g} KB",
            "figure",
            True,
            partial(_rises, size),
            note="At 50, 100 and 200 flows/s by CBQ; the paper's router has run 50 and 200 of 30 "
            f"KB. Read as: the mean losses grow, by CBQ and by the router. {NO_SPREAD} {ROUTER} "
            f"{WEB} {NO_PICTURE}",
        )
        for letter, size in (("a", 30.0), ("b", 100.0))
    ]
    found += [
        Record(
            "section IV-F, the decline in fairness is explained by Vegas's loss",
            "claim",
            True,
            _explained,
            note="Read as: from 50 to 200 flows/s of either size the index falls by more than two "
            "standard errors and Vegas's loss grows; ns-2 2.35 with CBQ, 5 runs, and at 30 KB "
            f"figure 2's router, 3 runs, which has not run 200 flows/s of 100 KB. {EXACT} "
            f"{COUNTED} {NO_PICTURE}",
        ),
        Record(
            "figure 9, NewReno's loss",
            "figure",
            None,
            blocked="The text gives no number and says nothing of its course.",
            note=f"The record of the decline in fairness has our figures. {NO_PICTURE}",
        ),
    ]
    return found


RECORDS = (*web_traffic(), *capacity(), *delays(), *burstiness())
