"""Experiments G and H of Podlesny and Williamson and the argument of section V, in ns-2 and ns-3.

In experiment G the number of Vegas flows changes suddenly, in H flows cross five bottlenecks, and
section V is about flows with a wrong mark.  Our copy lacks figures 10 and 12; we test what the
text says about them, for DropTail, RED/ECN and RD (Rate-Delay services, the paper's router).  The
paper does not state RED's thresholds, nor the flows of G before 60 s and after 120 s.  The index is
the relative fairness: throughput of a Vegas flow over that of a NewReno flow.

ns-3 has the paper's router; ns-2 runs RD by class-based queueing (CBQ) instead.  ``kind`` is the
kind of queue.
"""

from functools import partial

import numpy as np

from paper_checks.checks import Found, Record, from_printed_numbers, open_question
from paper_checks.podlesny.experiments import (
    IN_NS2,
    IN_NS3,
    NO_PICTURE,
    ONLY_CBQ_RAN,
    SIZE_RATIO,
    index,
)
from paper_checks.podlesny.router import (
    QUEUES,
    Discipline,
    dumbbell,
    one_way,
    parking_lot,
    sudden,
)
from paper_checks.runs import Runs
from paper_checks.spread import difference_and_error, plus_minus
from vegasmodel.metrics import Floats, standard_error
from vegasmodel.scenario import Scenario

THREE_RUNS = IN_NS2.replace("5 runs", "3 runs")
WITHOUT_RD = THREE_RUNS.replace(" with RD by CBQ and weighted round robin", "")
RED = (
    "RED as ns-2 sets it if nothing is stated: thresholds for a delay of 5 ms, gentle_ true, "
    "largest probability 0.1."
)
TRIED = "With RED's thresholds at a quarter and three quarters of the buffer:"
# s, counted from the paper's 60th: before the change, just after it (Vegas has 5 times as many
# flows), and when the rates have settled again
INTERVALS = ((5.0, 20.0), (20.0, 25.0), (25.0, 40.0))
# numbers of the groups of flows in ``dumbbell``; the third exists only if some marks are wrong
NEWRENO, VEGAS, WRONGLY_MARKED = range(3)
# names of the queues in texts
NAMES = {"droptail": "DropTail", "red": "RED/ECN", "rd": "RD"}


def _indices(kind: Discipline, runs: Runs, with_router: bool = False) -> Floats:
    """The relative fairness in each run and in each interval of ``INTERVALS``: [runs, intervals].

    The relative fairness is the throughput of a Vegas flow over that of a NewReno flow.  ``kind``
    is the kind of queue.  The runs are by ns-2; or with ``with_router`` by ns-3, which has the
    paper's router.
    """
    return np.column_stack([index(runs, sudden(kind, *span), with_router) for span in INTERVALS])


def _indices_as_text(runs: Runs) -> str:
    """A text with the relative fairness in ns-2: the mean over the runs, by queue and interval.

    The relative fairness is the throughput of a Vegas flow over that of a NewReno flow.
    """
    rows = [
        f"{NAMES[kind]} {', '.join(f'{v:.2f}' for v in _indices(kind, runs).mean(axis=0))}"
        for kind in reversed(QUEUES)
    ]
    return f"Index at 65 to 80, 80 to 85, 85 to 100 s, by ns-2: {'; '.join(rows)}."


def _index_before_and_after(runs: Runs) -> Found:
    """The relative fairness with the paper's router before the change and after rates have settled.

    The relative fairness is the throughput of a Vegas flow over that of a NewReno flow.  At the
    change, the number of Vegas flows rises to 5 times the number before.
    """
    before, _, settled = _indices("rd", runs, with_router=True).mean(axis=0)
    return Found([float(before), float(settled)], detail=_indices_as_text(runs))


def _index_just_after(runs: Runs) -> Found:
    """The relative fairness with the paper's router in the first 5 s after the change.

    The relative fairness is the throughput of a Vegas flow over that of a NewReno flow.  At the
    change, the number of Vegas flows rises to 5 times the number before.
    """
    _, first, later = _indices("rd", runs, with_router=True).mean(axis=0)
    spans = [end - begin for begin, end in INTERVALS[1:]]
    whole = float(np.average([first, later], weights=spans))  # over both intervals after the change
    missing = (
        "The paper does not say how soon 'immediate' is, and this decides: with the router the "
        f"index is {first:.2f} over the first 5 s, in which the new flows begin, and {whole:.2f} "
        "over all 20 s from 80 to 100 s."
    )
    return Found(float(first), detail=_indices_as_text(runs), missing=missing)


def _rd_fairest_droptail_least(runs: Runs) -> Found:
    """Whether the index is nearest to 1 with RD, and nearer with RED/ECN than with DropTail.

    The index is the throughput of a Vegas flow over that of a NewReno flow; RD is the paper's
    router.  The distance of a run's index from 1 is |ln(index)|, as a mean over the intervals of
    time.  Distances must differ by more than two standard errors, for both choices of RED's
    thresholds.  RD must be nearest both by the router in ns-3 and by its stand-in in ns-2, CBQ.
    """

    def distance(kind: Discipline, with_router: bool = False) -> Floats:
        """The distance in each run, with the queue ``kind``, in ns-2 or with the router in ns-3."""
        return np.asarray(np.abs(np.log(_indices(kind, runs, with_router))).mean(axis=1))

    def clearly_more(one: Floats, other: Floats) -> bool:
        """Whether the mean distance ``one`` exceeds ``other`` by two standard errors."""
        difference, error = difference_and_error(one, other)
        return difference > 2 * error

    # the distances with each queue: RED with both choices of its thresholds, RD by CBQ in ns-2 and
    # by the router in ns-3
    tail, reds = distance("droptail"), (distance("red"), distance("red-high"))
    rds = (distance("rd"), distance("rd", with_router=True))
    names = ("DropTail", "RED/ECN", "with higher thresholds", "RD by CBQ", "by figure 2's router")
    rows = (
        f"{name} {plus_minus(found, 3)}"
        for name, found in zip(names, (tail, *reds, *rds), strict=True)
    )
    text = f"Distance, with its standard error: {', '.join(rows)}."
    holds = all(clearly_more(tail, red) and clearly_more(red, rd) for red in reds for rd in rds)
    return Found(holds, detail=f"{text} {_indices_as_text(runs)}")


def _vegas_struggles(runs: Runs) -> Found:
    """Whether a Vegas flow gets less than half of a NewReno flow's rate with DropTail.

    The ratio of the two rates must be below 0.5 in each interval of ``INTERVALS``.
    """
    return Found(
        bool(_indices("droptail", runs).mean(axis=0).max() < 0.5), detail=_indices_as_text(runs)
    )


def _advantage_after(runs: Runs) -> Found:
    """Whether a Vegas flow gets less than 0.9 of a NewReno flow's rate with RED, in the long run.

    The ratio of the two rates is that in the last interval of ``INTERVALS``, after the change.
    The result is open if it depends on RED's thresholds, which the paper does not state.
    """
    low = _indices("red", runs).mean(axis=0)  # in each interval, with ns-2's own thresholds
    high = _indices("red-high", runs).mean(axis=0)  # with higher thresholds
    text = f"{_indices_as_text(runs)} {TRIED} {', '.join(f'{v:.2f}' for v in high)}."
    return _if_thresholds_agree(bool(low[-1] < 0.9), bool(high[-1] < 0.9), text)


def _if_thresholds_agree(low: bool, high: bool, text: str) -> Found:
    """The answer ``low``, found with ns-2's own thresholds of RED; ``text`` describes it.

    The question stays open if ``high``, the answer with thresholds at 1/4 and 3/4 of the buffer,
    differs.
    """
    if low != high:
        return open_question(
            "The paper does not state RED's thresholds, and they decide: the statement "
            f"{'holds' if low else 'does not hold'} with those that ns-2 sets itself, and "
            f"{'holds' if high else 'does not hold'} with thresholds at a quarter and three "
            f"quarters of the buffer. {text}"
        )
    return Found(low, detail=text)


def sudden_changes() -> list[Record]:
    """The records of experiment G, figure 10: the number of Vegas flows suddenly grows fivefold.

    The index is a Vegas flow's throughput over a NewReno flow's; 1 is fair. RD is the paper's
    router with its two queues. In the notes, names in capitals such as ``IN_NS3`` stand for texts
    that several records share, and so do ``note`` and ``unity``.
    """
    note = f"{WITHOUT_RD} No reverse flows. {NO_PICTURE}"
    unity = (
        f"{IN_NS3} No reverse flows. Tolerance: 'approximately unity' is read as rounding to 1.0. "
        "In ns-2 class-based queueing (CBQ) stands in for RD."
    )
    return [
        Record(
            "section IV-G, index about 1 between sudden changes",
            printed=[1.0, 1.0],
            compute=_index_before_and_after,
            tolerance=0.05,
            prints=("approximately unity",),
            note="100 NewReno flows; 20 Vegas flows, and 100 from 80 s on. Means from 65 to 80 s "
            f"and from 85 to 100 s. {unity}",
        ),
        Record(
            "figure 10d, with RD the index is about 1 at once after a sudden change",
            printed=1.0,
            compute=_index_just_after,
            tolerance=0.05,
            prints=("approximately unity",),
            note=f"Mean from 80 to 85 s; 80 of the 100 Vegas flows start at 80 s. {unity}",
        ),
        Record(
            "figure 10a, NewReno and Vegas flows from 60 to 80 s and from 80 to 100 s",
            printed=[100, 20, 100, 100],
            blocked="An input of the experiment: there is nothing to compute. The text does not "
            "tell the numbers of flows before 60 s, and from 100 s on it tells only that there are "
            f"no NewReno flows at 100 s. {NO_PICTURE}",
        ),
        Record(
            "figure 10b, with DropTail Vegas struggles",
            compute=_vegas_struggles,
            note=f"Read as an index below 0.5 in each interval. {note}",
        ),
        Record(
            "figure 10c, with RED/ECN NewReno has a distinct advantage from 80 to 100 s",
            compute=_advantage_after,
            note=f"Read as an index below 0.9 from 85 s on. {RED} {note}",
        ),
        Record(
            "figure 10e, RD is fairer than RED/ECN, and that fairer than DropTail",
            compute=_rd_fairest_droptail_least,
            note="The distance of the index from 1 is |ln(index)|, as a mean over three spans of "
            "time. Read as: it is larger with DropTail than with RED/ECN, and there larger than "
            "with RD, each time by more than two standard errors, with both choices of RED's "
            "thresholds, and with RD by CBQ in ns-2 and by the router in ns-3. "
            f"{RED} {THREE_RUNS} {IN_NS3} No reverse flows. {NO_PICTURE}",
        ),
    ]


# --- experiment H: five bottlenecks -----------------------------------------------------------


def _by_link(kind: Discipline, runs: Runs) -> Floats:
    """Vegas's throughput over NewReno's on each of five links: [runs, links].

    ``kind`` is the kind of the links' queues.  Each throughput is that of a flow over all links
    plus that of a flow over this link alone.  It is in bytes: a NewReno packet has ``SIZE_RATIO``
    times the bytes of a Vegas packet.
    """
    scenario = parking_lot(kind)
    found = runs.groups(scenario).throughput
    rate = {flow.name: found[:, g] for g, flow in enumerate(scenario.flows)}
    ratios = [
        (rate["vegas A"] + rate[f"vegas {link.name}"])
        / (SIZE_RATIO * (rate["newreno A"] + rate[f"newreno {link.name}"]))
        for link in scenario.links
    ]
    return np.column_stack(ratios)


def _ratios_as_text(runs: Runs) -> str:
    """The ratio on each link with each queue, as text."""
    rows = [
        f"{NAMES[kind]} {', '.join(f'{v:.2f}' for v in _by_link(kind, runs).mean(axis=0))}"
        for kind in QUEUES
    ]
    return f"Bytes of Vegas over those of NewReno by link: {'; '.join(rows)}."


def _equal_on_each_link(runs: Runs) -> Found:
    """Vegas's throughput over NewReno's on each of five links with RD: an open question.

    RD is the paper's router, which did not run this.  Only its stand-in in ns-2 did, class-based
    queueing (CBQ), and CBQ fixes the throughputs by its shares.
    """
    found = _by_link("rd", runs)
    errors = ", ".join(f"{error:.3f}" for error in standard_error(found))
    packets = ", ".join(f"{SIZE_RATIO * ratio:.3f}" for ratio in found.mean(axis=0))
    return open_question(
        f"{ONLY_CBQ_RAN} Here each class has half of each link, so equal throughputs show only "
        f"that both classes use their halves. Standard errors {errors}; counted in packets "
        f"{packets}. {_ratios_as_text(runs)}"
    )


def _vegas_below(kind: Discipline, limit: float, runs: Runs) -> Found:
    """Whether Vegas's throughput over NewReno's is below ``limit`` on each link, by ns-2.

    ``kind`` is the kind of queue of the links.
    """
    return Found(
        bool(_by_link(kind, runs).mean(axis=0).max() < limit), detail=_ratios_as_text(runs)
    )


def _vegas_below_with_red(runs: Runs) -> Found:
    """Whether Vegas's throughput over NewReno's is below 0.9 on each link with RED.

    The result is open if it depends on RED's thresholds, which the paper does not state.
    """
    low, high = (_vegas_below(kind, 0.9, runs).value for kind in ("red", "red-high"))
    return _if_thresholds_agree(
        bool(low), bool(high), f"{_ratios_as_text(runs)} {_ratios_with_high_thresholds(runs)}"
    )


def _ratios_with_high_thresholds(runs: Runs) -> str:
    """The ratios with RED's higher thresholds, as text."""
    high = ", ".join(f"{v:.2f}" for v in _by_link("red-high", runs).mean(axis=0))
    return f"{TRIED} {high}."


def _red_improves(runs: Runs) -> Found:
    """Whether Vegas's throughput over NewReno's is nearer to 1 with RED than with DropTail.

    It must be so on each link.  The result is open if it depends on RED's thresholds, which the
    paper does not state.
    """
    droptail, *reds = (  # red-high: RED with higher thresholds
        _by_link(kind, runs).mean(axis=0) for kind in ("droptail", "red", "red-high")
    )
    low, high = (bool(np.all(np.abs(red - 1) < np.abs(droptail - 1))) for red in reds)
    return _if_thresholds_agree(
        low, high, f"{_ratios_as_text(runs)} {_ratios_with_high_thresholds(runs)}"
    )


def many_bottlenecks() -> list[Record]:
    """The records of experiment H, figures 11 and 12: flows over five bottlenecks in a row.

    They are about Vegas's throughput over NewReno's on each link, with RD (the paper's router),
    with RED/ECN and with DropTail. In the notes, names in capitals such as ``IN_NS2`` stand for
    texts that several records share.
    """
    return [
        Record(
            "figure 11, 40 NewReno and 40 Vegas flows on each of 5 bottlenecks",
            printed=40,
            compute=from_printed_numbers(20 + 20),
            note="Of each law: the 20 flows of pool A, which cross all bottlenecks, and the 20 of "
            f"the pool at this bottleneck. {NO_PICTURE}",
        ),
        Record(
            "section IV-H, equal throughputs at each of 5 bottlenecks",
            printed=[1.0] * 5,
            compute=_equal_on_each_link,
            tolerance=0.05,
            prints=("approximately the same throughput",),
            note="Bytes of Vegas over those of NewReno on the link. In ns-2 a NewReno packet has 4 "
            f"% more bytes, its headers. {IN_NS2}",
        ),
        Record(
            "figure 12, NewReno's substantial advantage with DropTail",
            compute=partial(_vegas_below, "droptail", 0.5),
            note="Read as: Vegas gets less than half of what NewReno gets on each link. "
            f"{WITHOUT_RD} {NO_PICTURE}",
        ),
        Record(
            "figure 12, NewReno's advantage with RED/ECN",
            compute=_vegas_below_with_red,
            note="'Significantly less than 1' is read as below 0.9 on each link. "
            f"{RED} {WITHOUT_RD} {NO_PICTURE}",
        ),
        Record(
            "figure 12, RED/ECN improves on DropTail",
            compute=_red_improves,
            note="Read as: Vegas's throughput over NewReno's is nearer to 1 on each link. "
            f"{RED} {WITHOUT_RD} {NO_PICTURE}",
        ),
    ]


# --- section V -------------------------------------------------------------------------------


# Settings in which we test section V: the paper's router (figure 2) in ns-3, with as many reverse
# flows as forward ones; the same without reverse flows; CBQ in ns-2, with as many reverse flows.
CBQ_WITH_REVERSE = "CBQ, both ways"
SETTINGS = ("router, both ways", "router, one way", CBQ_WITH_REVERSE)
HALF_OF_NEWRENO = 10  # half of the 20 NewReno flows


def rates(scenario: Scenario, setting: str, runs: Runs) -> Floats:
    """Throughput per flow, [runs, groups], pkt/s; ``setting`` is one of ``SETTINGS``."""
    if setting == CBQ_WITH_REVERSE:
        return runs.groups(scenario).throughput
    return runs.with_router(scenario if setting == SETTINGS[0] else one_way(scenario)).throughput


def gain(newreno: int, vegas: int, setting: str, runs: Runs) -> tuple[float, str]:
    """Rate of a wrongly marked flow over that of a flow of its law if all are marked right.

    A mark tells the router whether the flow is one for throughput (NewReno) or for low delay
    (Vegas).  ``newreno`` and ``vegas`` are the numbers of wrongly marked flows: one of them is 0.
    ``setting`` says whether the paper's router or class-based queueing (CBQ) runs, and whether
    there are reverse flows.  The second value is a text with both rates.
    """
    masked = rates(dumbbell(masked=(newreno, vegas)), setting, runs)[:, WRONGLY_MARKED]
    wrong = float(masked.mean())
    right = float(rates(dumbbell(), setting, runs)[:, NEWRENO if newreno else VEGAS].mean())
    each = ", ".join(f"{rate:.0f}" for rate in masked)
    text = f"{setting} {wrong:.1f} pkt/s per flow (runs: {each}), marked right {right:.1f}"
    return wrong / right, text


def _does_not_gain(newreno: int, vegas: int, runs: Runs) -> Found:
    """Whether a wrongly marked flow does not gain with the paper's router.

    A mark tells the router whether the flow is one for throughput (NewReno) or for low delay
    (Vegas).  ``newreno`` and ``vegas`` are the numbers of wrongly marked flows.  A flow does not
    gain if its rate is at most that of a flow of its law if all are marked right.  The result is
    undecided if it depends on whether there are reverse flows.  Its detail has the rates in all
    settings (``SETTINGS``).
    """
    gains = [gain(newreno, vegas, setting, runs) for setting in SETTINGS]
    with_reverse, without = (ratio <= 1 for ratio, _ in gains[:2])
    return Found(
        with_reverse,
        detail=f"{'; '.join(text for _, text in gains)}.",
        undecided=REVERSE_DECIDES if with_reverse != without else "",
    )


REVERSE_DECIDES = (
    "Section V does not say whether there are reverse flows, and this decides: with the router the "
    "flow with the wrong mark gets less with reverse flows, and more without them, as in section "
    "IV-G."
)


def _could_gain(runs: Runs) -> Found:
    """Whether a NewReno flow gains by a wrong mark in at least one of four cases.

    A mark tells the paper's router whether a packet is for the queue of flows that want throughput
    (NewReno) or for that of flows that want low delay (Vegas).  "Masked" flows have the mark of the
    other law.  Here 1 or 10 of the 20 NewReno flows are masked, with or without reverse flows.
    These are the four cases, with the router in ns-3.  A flow gains if its rate exceeds that of a
    NewReno flow when no flow is masked, by more than two standard errors.

    The result's detail also has the gains with CBQ (class-based queueing), which stands in for the
    router in ns-2.  Its ``missing`` says why a failure would leave the question open: the paper
    says that a flow "could" gain, and we test only a few settings.
    """
    rows, gains = [], []
    for setting in SETTINGS:
        right = rates(dumbbell(), setting, runs)[:, NEWRENO]
        for number in (1, HALF_OF_NEWRENO):
            masked = rates(dumbbell(masked=(number, 0)), setting, runs)[:, WRONGLY_MARKED]
            more, error = difference_and_error(masked, right)
            if setting != CBQ_WITH_REVERSE:
                gains.append(more > 2 * error)
            rows.append(f"{number} {setting} {more:+.0f} +- {2 * error:.0f}")
    return Found(
        any(gains),
        detail="By how much more a masked flow gets than one that is marked right, pkt/s, if 1 and "
        f"if 10 flows are masked, +- two standard errors: {', '.join(rows)}.",
        missing="Four cases cannot refute a 'could'.",
    )


def _part_kept_by_vegas(setting: str, runs: Runs) -> list[float]:
    """The part of its throughput that Vegas keeps if 1 or 10 NewReno flows are wrongly marked.

    The list has this part for 1 and for 10 such flows.  ``setting`` says whether the paper's router
    or class-based queueing (CBQ) runs, and whether there are reverse flows.
    """
    # k NewReno flows are wrongly marked
    scenes = [dumbbell(masked=(k, 0)) for k in (0, 1, HALF_OF_NEWRENO)]
    undisturbed, *beside = (rates(scene, setting, runs)[:, VEGAS] for scene in scenes)
    return [float((rate / undisturbed).mean()) for rate in beside]


def _degrades_vegas(runs: Runs) -> Found:
    """Whether Vegas flows lose over a quarter of their rate beside 10 wrongly marked NewReno flows.

    It is enough if they do in one of ``SETTINGS``.  If they do not, the question stays open, since
    the paper only says that they "could".
    """
    kept = {setting: _part_kept_by_vegas(setting, runs) for setting in SETTINGS}
    text = "; ".join(f"{setting} {one:.0%}, {ten:.0%}" for setting, (one, ten) in kept.items())
    text = f"What Vegas flows keep beside 1 and 10 masked NewReno flows: {text}."
    if min(ten for _, ten in kept.values()) >= 0.75:
        return open_question(
            "Three settings cannot refute a 'could', and the paper does not say what loss is "
            "'serious': here Vegas loses less than a quarter. We did not run all 20 flows masked. "
            f"{text}"
        )
    return Found(True, detail=text)


def mismarking() -> list[Record]:
    """The records of section V: who gains and who loses if flows have wrong marks.

    A mark tells the paper's router whether a packet is for the queue of NewReno flows, which want
    throughput, or for that of Vegas flows, which want low delay.
    """
    note = (
        "20 NewReno and 20 Vegas flows. A masked flow has the mark of the other law, and the "
        f"router counts it as it is marked. {IN_NS3} A single masked flow has an RTT of 147 ms. "
        "There are three settings. In the first, there are as many reverse flows, as in most of "
        "the paper's experiments; in the second, there are none. In the third, class-based "
        "queueing (CBQ) replaces the router, and is told how many data flows each class has. This "
        "note also gives the results in all three."
    )
    return [
        Record(
            f"section V, {who} does not improve its performance",
            compute=partial(_does_not_gain, *masked),
            note=note,
        )
        for who, masked in (
            ("a Vegas flow marked as NewReno", (0, 1)),
            ("one NewReno flow marked as Vegas", (1, 0)),
            ("half of the NewReno flows marked as Vegas", (HALF_OF_NEWRENO, 0)),
        )
    ] + [
        Record(
            "section V, NewReno marked as Vegas could gain",
            compute=_could_gain,
            note="The text's 'could' is read as: it gains by more than two standard errors with "
            "the router, in the setting with or in that without reverse flows. With reverse flows, "
            "as in most of the paper's experiments, a masked flow does not gain. Without reverse "
            "flows, as in IV-G, a single masked flow does. "
            f"{note}",
        ),
        Record(
            "section V, NewReno marked as Vegas could seriously degrade Vegas",
            compute=_degrades_vegas,
            note="The text's 'could' is read as: Vegas flows lose more than a quarter of their "
            "rate if half of the NewReno flows are masked, in any of the settings below. "
            f"{note}",
        ),
    ]


RECORDS = (*sudden_changes(), *many_bottlenecks(), *mismarking())
