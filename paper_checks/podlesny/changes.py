"""Experiments G and H of Podlesny and Williamson and the argument of section V, in ns-2 and ns-3.

Figures 10 and 12 are missing from our text; we test what the text says about them, for DropTail,
RED/ECN and RD.  The paper does not state RED's thresholds, nor the flows of G before 60 s and after
120 s.  The index is the relative fairness: throughput of a Vegas flow over that of a NewReno flow.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from paper_checks.checks import Found, Record, by_print, open_question
from paper_checks.podlesny.experiments import BY_CBQ, EXACT, NO_PICTURE, ROUTER, WIRE, index
from paper_checks.podlesny.router import (
    QUEUES,
    Discipline,
    dumbbell,
    one_way,
    parking_lot,
    sudden,
)
from paper_checks.runs import Runs
from paper_checks.spread import apart, plus_minus
from vegasmodel.metrics import Floats, standard_error
from vegasmodel.scenario import Scenario

THREE = ROUTER.replace("5 runs", "3 runs")
OTHERS = THREE.replace(" with RD by CBQ and weighted round robin", "")
RED = "RED as ns-2 sets it where nothing is stated: thresholds for 5 ms, gentle, 0.1."
TRIED = "Tried besides, RED's thresholds at a quarter and three quarters of the buffer:"
# s, counted from the paper's 60th: before the change, just after it (Vegas has 5 times as many
# flows), and when the rates have settled again
WINDOWS = ((5.0, 20.0), (20.0, 25.0), (25.0, 40.0))
NAMES = {"droptail": "DropTail", "red": "RED/ECN", "rd": "RD"}


def _indices(kind: Discipline, runs: Runs, exact: bool = False) -> Floats:
    """The index in each run and in each window of time (``WINDOWS``): [runs, windows].

    ``exact``: by ns-3 with the paper's router, not by ns-2 with CBQ.
    """
    return np.column_stack([index(runs, sudden(kind, *window), exact) for window in WINDOWS])


def _texts(runs: Runs) -> str:
    rows = [
        f"{NAMES[kind]} {', '.join(f'{v:.2f}' for v in _indices(kind, runs).mean(axis=0))}"
        for kind in reversed(QUEUES)
    ]
    return f"At 65 to 80, 80 to 85, 85 to 100 s, by ns-2: {'; '.join(rows)}."


def _settled(runs: Runs) -> Found:
    means = _indices("rd", runs, exact=True).mean(axis=0)
    return Found([float(means[0]), float(means[2])], detail=_texts(runs))


def _at_once(runs: Runs) -> Found:
    first, later = _indices("rd", runs, exact=True).mean(axis=0)[1:]
    spans = [end - begin for begin, end in WINDOWS[1:]]
    whole = float(np.average([first, later], weights=spans))
    missing = (
        "The paper does not say how soon 'immediate' is, and this decides: by the router the index "
        f"is {first:.2f} over the first 5 s, in which the new flows begin, and {whole:.2f} "
        "over all 20 s from 80 to 100 s."
    )
    return Found(float(first), detail=_texts(runs), missing=missing)


def _order(runs: Runs) -> Found:
    """Whether the index is nearest to 1 with RD, and nearer with RED/ECN than with DropTail.

    The distance of a run's index from 1 is |ln(index)|, mean over the windows of time.  Distances
    must differ by more than two standard errors.
    """

    def far(kind: Discipline, exact: bool = False) -> Floats:
        return np.asarray(np.abs(np.log(_indices(kind, runs, exact))).mean(axis=1))

    def more(one: Floats, other: Floats) -> bool:
        gap, error = apart(one, other)
        return gap > 2 * error

    tail, reds = far("droptail"), (far("red"), far("red-high"))
    rds = (far("rd"), far("rd", exact=True))
    names = ("DropTail", "RED/ECN", "with higher thresholds", "RD by CBQ", "by figure 2's router")
    rows = (
        f"{name} {plus_minus(found, 3)}"
        for name, found in zip(names, (tail, *reds, *rds), strict=True)
    )
    text = f"Distance, with its standard error: {', '.join(rows)}."
    holds = all(more(tail, red) and more(red, rd) for red in reds for rd in rds)
    return Found(holds, detail=f"{text} {_texts(runs)}")


def _struggles(runs: Runs) -> Found:
    return Found(bool(_indices("droptail", runs).mean(axis=0).max() < 0.5), detail=_texts(runs))


def _advantage_after(runs: Runs) -> Found:
    last = _indices("red", runs).mean(axis=0)[2]
    high = _indices("red-high", runs).mean(axis=0)
    text = f"{_texts(runs)} {TRIED} {', '.join(f'{v:.2f}' for v in high)}."
    return _if_thresholds_agree(bool(last < 0.9), bool(high[2] < 0.9), text)


def _if_thresholds_agree(low: bool, high: bool, text: str) -> Found:
    """The answer ``low``, found with ns-2's own thresholds of RED; ``text`` describes it.

    The question stays open if ``high``, the answer with thresholds at 1/4 and 3/4 of the buffer,
    differs.
    """
    if low != high:
        return open_question(
            "RED's thresholds are not stated, and they decide: it "
            f"{'holds' if low else 'does not hold'} with those that ns-2 sets itself, and "
            f"{'holds' if high else 'does not hold'} with those at a quarter and three quarters "
            f"of the buffer. {text}"
        )
    return Found(low, detail=text)


def sudden_changes() -> list[Record]:
    """The records of experiment G, figure 10."""
    note = f"{OTHERS} One way only. {NO_PICTURE}"
    unity = (
        f"{EXACT} One way only. Tolerance: 'approximately unity' is read as rounding to 1.0. RD by "
        "CBQ in ns-2, DropTail and RED/ECN beside it."
    )
    return [
        Record(
            "section IV-G, index about 1 between sudden changes",
            "claim",
            [1.0, 1.0],
            _settled,
            tolerance=0.05,
            prints=("approximately unity",),
            note=f"100 NewReno, 20 and from 80 s 100 Vegas flows; 65 to 80, 85 to 100 s. {unity}",
        ),
        Record(
            "figure 10d, with RD the index is about 1 at once after a sudden change",
            "figure",
            1.0,
            _at_once,
            tolerance=0.05,
            prints=("approximately unity",),
            note=f"80 to 85 s, when 80 of 100 Vegas flows are new. {unity}",
        ),
        Record(
            "figure 10a, NewReno and Vegas flows from 60 to 80 s and from 80 to 100 s",
            "figure",
            [100, 20, 100, 100],
            blocked="An input of the experiment, which cannot fail: there is nothing to compute. "
            f"Before 60 s and from 100 s on the text has only NewReno's 0 at 100 s. {NO_PICTURE}",
        ),
        Record(
            "figure 10b, with DropTail Vegas struggles",
            "figure",
            True,
            _struggles,
            note=f"Read as an index under 0.5 in each interval. {note}",
        ),
        Record(
            "figure 10c, with RED/ECN NewReno has a distinct advantage from 80 to 100 s",
            "figure",
            True,
            _advantage_after,
            note=f"Read as an index under 0.9 from 85 s on. {RED} {note}",
        ),
        Record(
            "figure 10e, RD is fairer than RED/ECN, and that fairer than DropTail",
            "figure",
            True,
            _order,
            note=f"Mean distance of the index from 1, as |ln|, over three spans of time, with "
            "either choice of RED's thresholds and either router with RD; each is more than the "
            f"next by more than two standard errors. {RED} {THREE} {EXACT} One way only. "
            f"{NO_PICTURE}",
        ),
    ]


# --- H ---------------------------------------------------------------------------------------


def _by_link(kind: Discipline, runs: Runs) -> Floats:
    """Vegas's throughput over NewReno's on each link, [runs, 5].

    Each throughput is that of a flow over all links plus that of a flow over this link alone.
    """
    scenario = parking_lot(kind)
    found = runs.groups(scenario).throughput
    column = {flow.name: found[:, g] for g, flow in enumerate(scenario.flows)}
    ratios = [
        (column["vegas A"] + column[f"vegas {link.name}"])
        / (WIRE * (column["newreno A"] + column[f"newreno {link.name}"]))
        for link in scenario.links
    ]
    return np.column_stack(ratios)


def _links(runs: Runs) -> str:
    rows = [
        f"{NAMES[kind]} {', '.join(f'{v:.2f}' for v in _by_link(kind, runs).mean(axis=0))}"
        for kind in QUEUES
    ]
    return f"Bytes of Vegas over those of NewReno by link: {'; '.join(rows)}."


def _equal(runs: Runs) -> Found:
    found = _by_link("rd", runs)
    errors = standard_error(found)
    packets = ", ".join(f"{WIRE * ratio:.3f}" for ratio in found.mean(axis=0))
    return open_question(
        f"{BY_CBQ} Here that part is half of each link, so equal throughputs show only that both "
        f"classes fill it. Standard errors {', '.join(f'{e:.3f}' for e in errors)}; counted in "
        f"packets {packets}. {_links(runs)}"
    )


def _behind(kind: Discipline, most: float, runs: Runs) -> Found:
    return Found(bool(_by_link(kind, runs).mean(axis=0).max() < most), detail=_links(runs))


def _behind_red(runs: Runs) -> Found:
    low, high = (_behind(kind, 0.9, runs).value for kind in ("red", "red-high"))
    return _if_thresholds_agree(bool(low), bool(high), f"{_links(runs)} {_tried(runs)}")


def _tried(runs: Runs) -> str:
    high = ", ".join(f"{v:.2f}" for v in _by_link("red-high", runs).mean(axis=0))
    return f"{TRIED} {high}."


def _improves(runs: Runs) -> Found:
    tail, *reds = (_by_link(kind, runs).mean(axis=0) for kind in ("droptail", "red", "red-high"))
    low, high = (bool(np.all(np.abs(red - 1) < np.abs(tail - 1))) for red in reds)
    return _if_thresholds_agree(low, high, f"{_links(runs)} {_tried(runs)}")


def many_bottlenecks() -> list[Record]:
    """The records of experiment H, figures 11 and 12."""
    return [
        Record(
            "figure 11, 40 NewReno and 40 Vegas flows on each of 5 bottlenecks",
            "figure",
            40,
            by_print(20 + 20),
            note="Of a law: pool A's 20, which cross all bottlenecks, and the 20 of the pool at "
            f"this one. {NO_PICTURE}",
        ),
        Record(
            "section IV-H, equal throughputs at each of 5 bottlenecks",
            "claim",
            [1.0] * 5,
            _equal,
            tolerance=0.05,
            prints=("approximately the same throughput",),
            note=f"Bytes of Vegas over those of NewReno on the link: with headers a NewReno packet "
            f"has 4 % more. {ROUTER}",
        ),
        Record(
            "figure 12, NewReno's substantial advantage with DropTail",
            "figure",
            True,
            partial(_behind, "droptail", 0.5),
            note=f"Read as Vegas under half of NewReno on each link. {OTHERS} {NO_PICTURE}",
        ),
        Record(
            "figure 12, NewReno's advantage with RED/ECN",
            "figure",
            True,
            _behind_red,
            note=f"'Significantly less than 1' is read as under 0.9 on each link. {RED} {OTHERS} "
            f"{NO_PICTURE}",
        ),
        Record(
            "figure 12, RED/ECN improves on DropTail",
            "figure",
            True,
            _improves,
            note=f"Nearer to 1 on each link. {RED} {OTHERS} {NO_PICTURE}",
        ),
    ]


# --- section V -------------------------------------------------------------------------------


# Settings of section V: figure 2's own router in ns-3 with as many reverse flows, as in the paper;
# the same without reverse flows; CBQ in ns-2 with as many reverse flows.
BY_CBQ_BOTH = "CBQ, both ways"
SETTINGS = ("router, both ways", "router, one way", BY_CBQ_BOTH)
HALF = 10  # of the 20 NewReno flows


def rates(scenario: Scenario, setting: str, runs: Runs) -> Floats:
    """Throughput per flow, [runs, groups], pkt/s; ``setting`` is one of ``SETTINGS``."""
    if setting == BY_CBQ_BOTH:
        return runs.groups(scenario).throughput
    return runs.exact(scenario if setting == SETTINGS[0] else one_way(scenario)).throughput


def gain(newreno: int, vegas: int, setting: str, runs: Runs) -> tuple[float, str]:
    """Rate of a wrongly marked flow over that of a flow of its law if all are marked right.

    ``newreno`` and ``vegas`` are the numbers of wrongly marked flows, ``setting`` is one of
    ``SETTINGS``.  The second value is both rates as text.
    """
    masked = rates(dumbbell(masked=(newreno, vegas)), setting, runs)
    fair = float(rates(dumbbell(), setting, runs)[:, 0 if newreno else 1].mean())
    own = float(masked[:, 2].mean())
    each = ", ".join(f"{rate:.0f}" for rate in masked[:, 2])
    return own / fair, f"{setting} {own:.1f} pkt/s a flow (runs: {each}), marked right {fair:.1f}"


def _masked(newreno: int, vegas: int, runs: Runs) -> Found:
    """Whether a wrongly marked flow does not gain with the paper's router.

    ``newreno`` and ``vegas`` are the numbers of wrongly marked flows.  The result is undecided if
    it depends on whether there are reverse flows.  The note has all settings.
    """
    gains = [gain(newreno, vegas, setting, runs) for setting in SETTINGS]
    both_ways, alone = (ratio <= 1 for ratio, _ in gains[:2])
    return Found(
        both_ways,
        detail=f"{'; '.join(text for _, text in gains)}.",
        undecided=TRAFFIC_DECIDES if both_ways != alone else "",
    )


TRAFFIC_DECIDES = (
    "Section V does not say whether flows go back too, and this decides: by the router the flow "
    "with the wrong mark gets less with flows back, and more without them, as in section IV-G."
)


def _could_gain(runs: Runs) -> Found:
    """Whether wrong marks gain a NewReno flow over two standard errors with the paper's router."""
    rows, gains = [], []
    for setting in SETTINGS:
        fair = rates(dumbbell(), setting, runs)[:, 0]
        for number in (1, HALF):
            masked = rates(dumbbell(masked=(number, 0)), setting, runs)[:, 2]
            gap, error = apart(masked, fair)
            if setting != BY_CBQ_BOTH:
                gains.append(gap > 2 * error)
            rows.append(f"{number} {setting} {gap:+.0f} +- {2 * error:.0f}")
    return Found(
        any(gains),
        detail="What 1 and what 10 masked flows get more than marked right, each, pkt/s, with two "
        f"standard errors: {', '.join(rows)}.",
        missing="Two settings cannot refute a 'could'.",
    )


def _kept(setting: str, runs: Runs) -> list[float]:
    """Vegas's throughput beside 1 and 10 wrongly marked NewReno flows, over that beside none.

    ``setting`` is one of ``SETTINGS``.
    """
    scenes = [dumbbell(masked=(k, 0)) for k in (0, 1, HALF)]
    alone, *beside = (rates(scene, setting, runs)[:, 1] for scene in scenes)
    return [float((rate / alone).mean()) for rate in beside]


def _hurt(runs: Runs) -> Found:
    kept = {setting: _kept(setting, runs) for setting in SETTINGS}
    text = "; ".join(f"{setting} {one:.0%}, {ten:.0%}" for setting, (one, ten) in kept.items())
    text = f"What Vegas flows keep beside 1 and 10 masked NewReno flows: {text}."
    if min(ten for _, ten in kept.values()) >= 0.75:
        return open_question(
            "Three settings cannot refute a 'could', and the paper does not say what loss is "
            f"'serious': here Vegas loses less than a quarter. All 20 masked was not run. {text}"
        )
    return Found(True, detail=text)


def mismarking() -> list[Record]:
    """The records of section V: whether a flow gains by wrong marks on its packets."""
    note = (
        f"Of 20 and 20 flows; the router counts a flow as it is marked. {EXACT} A single masked "
        "flow has an RTT of 147 ms. With as many flows back, as in most of the paper's "
        "experiments; the router one way, and CBQ, which is told how many data flows each class "
        "has, beside it."
    )
    return [
        Record(
            f"section V, {who} does not improve its performance",
            "claim",
            True,
            partial(_masked, *masked),
            note=note,
        )
        for who, masked in (
            ("a Vegas flow marked as NewReno", (0, 1)),
            ("one NewReno flow marked as Vegas", (1, 0)),
            ("half of the NewReno flows marked as Vegas", (HALF, 0)),
        )
    ] + [
        Record(
            "section V, NewReno marked as Vegas could gain",
            "claim",
            True,
            _could_gain,
            note="The text's 'could': read as a gain by more than two standard errors in either "
            "of the router's two settings. With flows back, as in most of the paper's experiments, "
            f"it does not gain; one way, as in IV-G, a single flow does. {note}",
        ),
        Record(
            "section V, NewReno marked as Vegas could seriously degrade Vegas",
            "claim",
            True,
            _hurt,
            note="The text's 'could': read as a loss of more than a quarter beside half of the "
            f"NewReno flows, in any of the three settings. {note}",
        ),
    ]


RECORDS = (*sudden_changes(), *many_bottlenecks(), *mismarking())
