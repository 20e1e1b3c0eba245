"""Experiments C and F of Podlesny and Williamson: short flows, and bursts of short flows.

The index is the relative fairness: throughput of a Vegas flow over that of a NewReno flow.  The
router is the paper's, which ns-3 runs; CBQ stands in for it in ns-2.  ``exact`` asks for the
router.  ``RECORDS`` has the records of the experiments D and E (``network.py``), too.
"""

from __future__ import annotations

import dataclasses
from functools import partial

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
from paper_checks.podlesny.network import (
    COUNTED,
    FIFTH,
    NO_SPREAD,
    WEB,
    capacity,
    delays,
    index_range,
    steady,
)
from paper_checks.podlesny.router import Web, dumbbell
from paper_checks.runs import Runs
from paper_checks.spread import apart, averaged, plus_minus
from vegasmodel.scenario import Scenario

WEBS = (1, 50, 100, 200, 300)  # short flows a second, at full scale
BURSTS = (50, 100, 200)  # short flows a second, at full scale
# What ns-3 runs, by size in packets and flows a second: there the router counts short flows, too.
BURSTS_EXACT = ((30.0, 50), (30.0, 200), (100.0, 50))
# Size in packets and flows a second: printed index
BURST_INDEX = {(30.0, 50): 0.9, (30.0, 200): 0.69, (100.0, 50): 0.86, (100.0, 200): 0.67}
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


BETWEEN = (
    "The print lies between the two stand-ins, the router with ns-3's TCP and CBQ with ns-2's, "
    "which differ by more than either does from the print."
)


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


def webs() -> list[Scenario]:
    """The scenarios of experiment C, in which the rate of short flows varies."""
    return [dumbbell(web=Web(FIFTH * rate)) for rate in WEBS]


def bursts(size: float) -> list[Scenario]:
    """The scenarios of experiment F: bursts of short flows of ``size`` packets at several rates."""
    return [dumbbell(web=Web(FIFTH * rate, size, bursty=True)) for rate in BURSTS]


def web_traffic() -> list[Record]:
    """The records of experiment C, figure 6."""
    return [
        Record(
            "section IV-C, index with Web traffic",
            "claim",
            [0.75, 0.96],
            partial(index_range, WEBS, webs(), (0.75, 0.96), False),
            note=f"Least and largest over 1 to 300 flows/s. {ROUTER} {WEB} {SPREAD}",
        ),
        Record(
            "figure 6a, robust to the dynamics of Web traffic",
            "figure",
            True,
            partial(steady, WEBS, webs(), (0.75, 0.96), False),
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
