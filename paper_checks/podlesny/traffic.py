"""Experiments C and F of Podlesny and Williamson: short flows, and bursts of short flows.

The index is the relative fairness: throughput of a long Vegas flow over that of a long NewReno
flow.  If the argument ``with_router`` of a function is True, the scenarios run in ns-3, which has
the paper's router.  Otherwise they run in ns-2, where class-based queueing (CBQ) stands in for the
router.  ``RECORDS`` has the records of the experiments D and E (``network.py``), too.
"""

import dataclasses
from functools import partial

from paper_checks.checks import Found, Record, open_question, rises
from paper_checks.podlesny.experiments import (
    IN_NS2,
    IN_NS3,
    NO_PICTURE,
    ONLY_CBQ_RAN,
    SPREAD,
    SPREAD_3,
    curve,
    index,
    loss,
    losses,
)
from paper_checks.podlesny.network import (
    COUNTED,
    NO_SPREAD,
    WEB,
    capacity,
    delays,
    index_range,
    steady,
)
from paper_checks.podlesny.router import SCALE, Web, dumbbell
from paper_checks.runs import Runs
from paper_checks.spread import difference_and_error, mean_beside_print, plus_minus
from vegasmodel.scenario import Scenario

WEB_RATES = (1, 50, 100, 200, 300)  # short flows a second, at full scale
BURST_RATES = (50, 100, 200)  # short flows a second, at full scale
# Mean size in packets and short flows a second that ns-3 runs, where the router counts short flows
BURSTS_IN_NS3 = ((30.0, 50), (30.0, 200), (100.0, 50))
# Size in packets and flows a second: printed index
BURST_INDEX = {(30.0, 50): 0.9, (30.0, 200): 0.69, (100.0, 50): 0.86, (100.0, 200): 0.67}
LAWS = ("newreno", "vegas")


def _index_by_cbq(scenario: Scenario, printed: float, unit: float, runs: Runs) -> Found:
    """The index by CBQ in ns-2, for the cases that ns-3 did not run.

    The index is the throughput of a Vegas flow over that of a NewReno flow.  CBQ, class-based
    queueing, is not the paper's router, so a difference from ``printed`` shows nothing.  ``unit``
    is that of the last digit of ``printed``.
    """
    values = index(runs, scenario)
    each = ", ".join(f"{value:.2f}" for value in values)
    found = mean_beside_print(values, printed=printed, unit=unit, detail=f"Runs: {each}.")
    return dataclasses.replace(found, missing=found.missing or ONLY_CBQ_RAN)


def _index_by_router(scenario: Scenario, printed: float, unit: float, runs: Runs) -> Found:
    """The index by the paper's router in ns-3; ``unit`` is that of the last digit of ``printed``.

    The index is the throughput of a Vegas flow over that of a NewReno flow.  A difference from
    ``printed`` shows nothing if ``printed`` lies between the index by the router and that by CBQ in
    ns-2 (``PRINT_BETWEEN``).
    """
    values, by_cbq = index(runs, scenario, with_router=True), float(index(runs, scenario).mean())
    losses = [loss(runs, scenario, law, with_router=True) for law in LAWS]
    found = mean_beside_print(
        values,
        printed=printed,
        unit=unit,
        detail=f"Runs: {', '.join(f'{value:.2f}' for value in values)}; NewReno loses "
        f"{losses[0]:.1f} %, "
        f"Vegas {losses[1]:.1f} %. By CBQ, which does not count the short flows, {by_cbq:.2f}.",
    )
    between = (float(values.mean()) - printed) * (by_cbq - printed) < 0
    return dataclasses.replace(found, missing=found.missing or (PRINT_BETWEEN if between else ""))


PRINT_BETWEEN = (
    "We replaced the paper's simulator in two ways, by its router with ns-3's TCP and by CBQ with "
    "ns-2's TCP, and the print lies between the two indices."
)


def _loss_grows_with_rate(size: float, runs: Runs) -> Found:
    """Whether Vegas's loss grows from each rate of short flows to the next.

    It must grow with class-based queueing (CBQ) in ns-2, and with the paper's router for those
    rates that ns-3 ran.  The question stays open if ns-3 ran only one rate.  The short flows have
    ``size`` packets on average.
    """
    text = f"By CBQ: {curve(runs, BURST_RATES, bursts(size))}"
    by_cbq = rises([loss(runs, s, "vegas") for s in bursts(size)])
    rates = [rate for rate in BURST_RATES if (size, rate) in BURSTS_IN_NS3]
    scenarios = [bursts(size)[BURST_RATES.index(rate)] for rate in rates]
    text += f" By figure 2's router in ns-3: {curve(runs, rates, scenarios, with_router=True)}"
    if len(rates) < 2:
        return open_question(
            f"{ONLY_CBQ_RAN} By CBQ the loss {'grows' if by_cbq else 'does not grow'}. With the "
            f"router we ran one of the three rates of short flows. {text}"
        )
    by_ns3 = rises([loss(runs, s, "vegas", with_router=True) for s in scenarios])
    return Found(by_cbq and by_ns3, detail=text)


def _loss_grows_with_web(runs: Runs) -> Found:
    """Whether Vegas's loss grows with the rate of short flows: open, as CBQ alone has run this.

    The result's detail has Vegas's loss with short flows, by CBQ, and without them, by CBQ and by
    the router.
    """
    grows = rises([loss(runs, s, "vegas") for s in webs()])
    without = [losses(runs, dumbbell(), "vegas", with_router) for with_router in (False, True)]
    text = " and ".join(map(plus_minus, without))
    return open_question(
        f"{ONLY_CBQ_RAN} By CBQ Vegas's loss {'grows' if grows else 'does not grow'}; without "
        f"short flows Vegas loses, with standard errors, {text} % by CBQ and by figure 2's router. "
        f"{curve(runs, WEB_RATES, webs())}"
    )


def webs() -> list[Scenario]:
    """The scenarios of experiment C, in which the rate of short flows varies."""
    return [dumbbell(web=Web(SCALE * rate)) for rate in WEB_RATES]


def bursts(size: float) -> list[Scenario]:
    """The scenarios of experiment F: bursts of short flows of ``size`` packets at several rates."""
    return [dumbbell(web=Web(SCALE * rate, size, bursty=True)) for rate in BURST_RATES]


def web_traffic() -> list[Record]:
    """The records of experiment C, figure 6: short flows (Web traffic) share the link.

    The index is a long Vegas flow's throughput over that of a long NewReno flow; 1 is fair. Only
    ns-2 has run this, with class-based queueing (CBQ) in the place of the paper's router.
    """
    return [
        Record(
            "section IV-C, index with Web traffic",
            printed=[0.75, 0.96],
            compute=partial(index_range, WEB_RATES, webs(), (0.75, 0.96), with_router=False),
            note=f"Least and largest index from 1 to 300 flows/s. {IN_NS2} {WEB} {SPREAD}",
        ),
        Record(
            "figure 6a, robust to the dynamics of Web traffic",
            compute=partial(steady, WEB_RATES, webs(), (0.75, 0.96), with_router=False),
            note="Read as: the largest over the least index is at most that of the printed "
            f"indices, even if two standard errors are added. {IN_NS2} {WEB} {NO_PICTURE}",
        ),
        Record(
            "figure 6b, Vegas's loss grows with the intensity of Web traffic",
            compute=_loss_grows_with_web,
            note=f"At 1, 50, 100, 200 and 300 flows/s. {IN_NS2} {WEB} {NO_PICTURE}",
        ),
    ]


def _index_falls_as_loss_grows(runs: Runs) -> Found:
    """Whether the index falls and Vegas's loss grows from 50 to 200 short flows per second.

    The index is the throughput of a Vegas flow over that of a NewReno flow.  Both must hold for
    each size of short flow and each simulator that ran both rates.
    """
    rows: list[str] = []
    found: list[bool | None] = []  # None where the change of the index may be due to chance
    for size, with_router in ((30.0, True), (30.0, False), (100.0, False)):
        ends = bursts(size)[0], bursts(size)[-1]  # at 50 and 200 short flows per second
        few, many = (index(runs, s, with_router) for s in ends)
        change, error = difference_and_error(many, few)
        lost = {law: [loss(runs, s, law, with_router) for s in ends] for law in LAWS}
        if abs(change) > 2 * error:
            found.append(change < 0 and lost["vegas"][1] > lost["vegas"][0])
        else:
            found.append(None)
        texts = ", ".join(f"{law} {a:.1f} to {b:.1f} %" for law, (a, b) in lost.items())
        rows.append(
            f"{size:g} KB, {'the router' if with_router else 'CBQ'}: index {few.mean():.2f} to "
            f"{many.mean():.2f}, by {change:+.2f} +- {2 * error:.2f}, losses {texts}"
        )
    text = "; ".join(rows)
    if None in found:
        return open_question(f"The runs do not decide whether the index falls at each size. {text}")
    return Found(all(found), detail=f"{text}.")


def burstiness() -> list[Record]:
    """The records of experiment F, figure 9: bursts of short flows share the link.

    The index is a long Vegas flow's throughput over that of a long NewReno flow; 1 is fair. ns-3
    ran some of the cases with the paper's router, and ns-2 all of them with class-based queueing
    (CBQ) in its place.
    """
    found = []
    for (size, rate), printed in BURST_INDEX.items():
        with_router = (size, rate) in BURSTS_IN_NS3
        how = f"{IN_NS3} {COUNTED} {SPREAD_3}" if with_router else f"{IN_NS2} {WEB} {SPREAD}"
        scenario = bursts(size)[BURST_RATES.index(rate)]
        found.append(
            Record(
                f"section IV-F, index at {rate} flows/s of {size:g} KB",
                printed=printed,
                compute=partial(
                    _index_by_router if with_router else _index_by_cbq, scenario, printed, 0.01
                ),
                note=f"Pareto arrivals, shape 1.1. {how}",
            )
        )
    found += [
        Record(
            f"figure 9{letter}, Vegas's loss grows with the short flows of {size:g} KB",
            compute=partial(_loss_grows_with_rate, size),
            note="Read as: the mean losses grow, by CBQ at 50, 100 and 200 flows/s, and by the "
            "paper's router, with which we ran 50 and 200 flows/s of 30 KB. "
            f"{NO_SPREAD} {IN_NS2} {WEB} {NO_PICTURE}",
        )
        for letter, size in (("a", 30.0), ("b", 100.0))
    ]
    found += [
        Record(
            "section IV-F, the decline in fairness is explained by Vegas's loss",
            compute=_index_falls_as_loss_grows,
            note="Read as: from 50 to 200 flows/s the index falls by more than two standard errors "
            "and Vegas's loss grows, with 30 KB by ns-2 2.35 with CBQ, 5 runs, and by figure 2's "
            "router, 3 runs; with 100 KB by CBQ only, since we did not run 200 flows/s of 100 KB "
            f"with the router. {IN_NS3} {COUNTED} {NO_PICTURE}",
        ),
        Record(
            "figure 9, NewReno's loss",
            printed=None,
            blocked="The text gives no number, and does not say how the loss changes.",
            note=f"The record of the decline in fairness has our values. {NO_PICTURE}",
        ),
    ]
    return found


RECORDS = (*web_traffic(), *capacity(), *delays(), *burstiness())
