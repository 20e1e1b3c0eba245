"""Experiments D and E of Podlesny and Williamson: the capacity, and the longest round-trip time.

The capacity varies in experiment D, and the longest round-trip time in experiment E.  The index is
the relative fairness: throughput of a Vegas flow over that of a NewReno flow.

Many functions have the same arguments.  ``scenarios`` has one scenario for each value of the
quantity that varies, and ``axis`` has these values.  If ``with_router`` is True, the scenarios run
in ns-3, which has the paper's router.  Otherwise they run in ns-2, where class-based queueing (CBQ)
stands in for the router.
"""

import dataclasses
from collections.abc import Sequence
from functools import partial

import numpy as np

from paper_checks.checks import Found, Record, open_question
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
)
from paper_checks.podlesny.router import SCALE, Web, dumbbell, single
from paper_checks.runs import Runs
from paper_checks.spread import difference_and_error, mean_beside_print, plus_minus
from vegasmodel.metrics import standard_error
from vegasmodel.scenario import Scenario

MBITS = (10, 30, 100, 300, 1000)  # capacities of experiment D at full scale, Mbit/s
LONGEST_RTTS = (0.03, 0.1, 0.2, 0.3, 1.0)  # s, values of the longest RTT in experiment E
LONGEST_RTTS_IN_NS3 = (0.03, 0.2, 1.0)  # those with which ns-3 has run
SCALE_DECIDES = (
    "The scale decides. We ran the paper's router at a fifth of the scale only, and there results "
    "by CBQ differ from those by CBQ at full scale"
)


def index_range(
    axis: Sequence[float],
    scenarios: Sequence[Scenario],
    printed: Sequence[float],
    runs: Runs,
    *,
    with_router: bool,
) -> Found:
    """The least and the largest index of the scenarios, as means over the runs.

    The index is the throughput of a Vegas flow over that of a NewReno flow.  ``axis`` has the
    values of the quantity that varies, one for each of ``scenarios``.  ``printed`` has the least
    and the largest index that the paper states.  Without ``with_router`` the runs are by CBQ, which
    is not the paper's router, so a difference from the print shows nothing.
    """
    values = np.array([index(runs, s, with_router) for s in scenarios])  # [scenarios, runs]
    # which scenarios have the least and the largest index
    ends = [int(np.argmin(values.mean(axis=1))), int(np.argmax(values.mean(axis=1)))]
    text = curve(runs, axis, scenarios, with_router)
    if with_router:
        by_cbq = ", ".join(f"{index(runs, s).mean():.2f}" for s in scenarios)
        full = ", ".join(f"{index(runs, s).mean():.2f}" for s in at_full_scale())
        text += (
            f" Index by CBQ, which does not count the short flows: {by_cbq}; at full scale, one "
            f"run each: {full}."
        )
    found = mean_beside_print(values[ends].T, printed=printed, unit=0.01, detail=text)
    return dataclasses.replace(found, missing=_by_scale(runs) if with_router else ONLY_CBQ_RAN)


def _by_scale(runs: Runs) -> str:
    """A text on how much the index of experiment E by CBQ changes with the scale, at most.

    The index is the throughput of a Vegas flow over that of a NewReno flow.  In ns-2, class-based
    queueing (CBQ) imitates the paper's router.  The router itself has run at a fifth of the paper's
    scale only.  So the change with CBQ is all that we know about the effect of the scale.
    """
    changes = [
        float(index(runs, full).mean() - index(runs, fifth).mean())
        for full, fifth in zip(at_full_scale(), round_trips(LONGEST_RTTS_IN_NS3), strict=True)
    ]
    return (
        f"{SCALE_DECIDES}: at full scale the index differs by up to {max(changes, key=abs):+.2f}."
    )


def steady(
    axis: Sequence[float],
    scenarios: Sequence[Scenario],
    printed: Sequence[float],
    runs: Runs,
    *,
    with_router: bool,
) -> Found:
    """Whether the index varies over the scenarios by no more than the printed ones.

    The index is the throughput of a Vegas flow over that of a NewReno flow.  Its variation is the
    ratio of the largest index to the least, as means over the runs.  ``axis`` has the values of the
    quantity that varies, one for each of ``scenarios``.  ``printed`` has the least and the largest
    index that the paper states.

    Two reasons leave the question open.  One is that only CBQ ran the scenarios (``with_router`` is
    false), since CBQ is not the paper's router.  The other is that the difference between our
    variation and the printed one may be chance.
    """
    values = np.array([index(runs, s, with_router) for s in scenarios])  # [scenarios, runs]
    means = values.mean(axis=1)
    # the scenarios with the least and the largest index, and the largest over the least
    lowest, highest = int(np.argmin(means)), int(np.argmax(means))
    ratio, printed_ratio = float(means[highest] / means[lowest]), printed[1] / printed[0]
    errors = standard_error(values.T) / means  # relative
    two_errors = 2 * ratio * float(np.hypot(errors[lowest], errors[highest]))
    text = (
        f"Largest over least index {ratio:.3f} +- {two_errors:.3f} (two standard errors); by the "
        f"printed indices {printed_ratio:.3f}. {curve(runs, axis, scenarios, with_router)}"
    )
    if not with_router:
        fixed = "With fixed parts of the link the index is steady whatever the traffic."
        return open_question(f"{ONLY_CBQ_RAN} {fixed} {text}")
    by_cbq = np.array([index(runs, s).mean() for s in scenarios])
    text += f" By CBQ, which does not count the short flows, {by_cbq.max() / by_cbq.min():.3f}."
    if ratio - two_errors <= printed_ratio < ratio + two_errors:
        return open_question(
            "The runs do not decide: the ratio of the printed indices is within two standard "
            f"errors of ours. {text}"
        )
    return Found(ratio + two_errors <= printed_ratio, detail=text)


def _vegas_gets_less_at_10(runs: Runs) -> Found:
    """Whether the index with the router is lower at 10 than at 30 Mbit/s, and below 1.

    The index is the throughput of a Vegas flow over that of a NewReno flow.  Both differences must
    exceed two standard errors.  The result's detail also gives the index for class-based queueing
    (CBQ), by which ns-2 imitates the paper's router.
    """
    # the indices at both capacities: with the router, and as a list with CBQ
    (at_10, at_30), by_cbq = (
        [index(runs, s, with_router) for s in capacities()[:2]] for with_router in (True, False)
    )
    rise, error = difference_and_error(at_30, at_10)
    below_1 = 1 - at_10.mean()
    return Found(
        bool(rise > 2 * error and below_1 > 2 * standard_error(at_10)),
        detail=f"Index {plus_minus(at_10)} at 10, {plus_minus(at_30)} at 30 Mbit/s. By CBQ "
        f"{plus_minus(by_cbq[0])} (at full scale {plus_minus(index(runs, narrow()))}) and "
        f"{plus_minus(by_cbq[1])}.",
    )


def _above_narrowest(runs: Runs) -> Found:
    """The least and the largest index at capacities above 10 Mbit/s, with CBQ.

    The index is the throughput of a Vegas flow over that of a NewReno flow.  In ns-2, class-based
    queueing (CBQ) imitates the paper's router.  The result's detail also gives the index with the
    router at 30 Mbit/s, the only such capacity that ns-3 ran.
    """
    by_router = index(runs, capacities()[1], with_router=True)
    found = index_range(MBITS[1:], capacities()[1:], (0.72, 0.88), runs, with_router=False)
    each = ", ".join(f"{value:.2f}" for value in by_router)
    text = f"By figure 2's router in ns-3 at 30 Mbit/s, 3 runs: {each}."
    missing = (
        "With the paper's router we ran 30 Mbit/s only, where its index is within the printed "
        "range; at larger capacities a run takes minutes. We ran all capacities with CBQ, but CBQ "
        "is not that router."
    )
    return dataclasses.replace(found, detail=f"{found.detail} {text}", missing=missing)


def _narrowest(runs: Runs) -> Found:
    """The index at 10 Mbit/s with CBQ, with as many flows as the paper has (full scale).

    The index is the throughput of a Vegas flow over that of a NewReno flow.  In ns-2, class-based
    queueing (CBQ) imitates the paper's router.  The result's detail also gives the index with the
    router at a fifth of the scale.
    """
    full = index(runs, narrow())
    by_router, fifth = index(runs, capacities()[0], with_router=True), index(runs, capacities()[0])
    each = ", ".join(f"{value:.2f}" for value in by_router)
    text = (
        f"By figure 2's router in ns-3, at a fifth of the scale, three runs have {each}, mean "
        f"{by_router.mean():.2f}. CBQ at a fifth of the scale has {fifth.mean():.2f}, so the scale "
        "matters here."
    )
    found = mean_beside_print(full, printed=0.61, unit=0.01, detail=text)
    why = (
        "At full scale we ran this with CBQ only. We ran the paper's router at a fifth of the "
        "scale, where its three runs scatter around the print."
    )
    return dataclasses.replace(found, missing=why)


def _lost_at_narrowest(runs: Runs) -> Found:
    """Vegas's loss at 10 Mbit/s with CBQ at full scale, percent.

    The result's detail has the losses with the router and with CBQ at a fifth of the scale.
    """
    by_router, by_cbq = (
        loss(runs, capacities()[0], "vegas", with_router) for with_router in (True, False)
    )
    return Found(
        loss(runs, narrow(), "vegas"),
        detail=f"At a fifth of the scale Vegas loses {by_router:.1f} % with figure 2's router in "
        f"ns-3 and {by_cbq:.1f} % with CBQ.",
        missing=f"{ONLY_CBQ_RAN.replace('this', 'this at full scale', 1)}",
    )


def capacities() -> list[Scenario]:
    """The scenarios of experiment D, in which the capacity varies."""
    return [dumbbell(mbit=SCALE * mbit, web=Web(SCALE * 50)) for mbit in MBITS]


def narrow() -> Scenario:
    """Experiment D at 10 Mbit/s at full scale: a D queue of 31 packets for 100 flows."""
    return dumbbell(100, 100, mbit=10.0, web=Web(50.0))


def round_trips(longest: Sequence[float] = LONGEST_RTTS) -> list[Scenario]:
    """The scenarios of experiment E, in which the longest propagation RTT varies, in s."""
    return [dumbbell(longest=value, web=Web(SCALE * 50)) for value in longest]


def at_full_scale() -> list[Scenario]:
    """Experiment E at full scale: scenarios of one run, one for each of ``LONGEST_RTTS_IN_NS3``."""
    return [
        single(dumbbell(100, 100, mbit=100.0, longest=value, web=Web(50.0)))
        for value in LONGEST_RTTS_IN_NS3
    ]


NO_SPREAD = (
    "Of each loss we stored the mean over the runs only, so we do not know how far the runs differ."
)
WEB = (
    "Half of the short flows are NewReno, half Vegas; the router does not count them. The index is "
    "that of the long-lived flows."
)
COUNTED = WEB.replace("does not count them", "counts them, too")
NS3_LOSES = (
    "ns-3's flows do not lose what ns-2's would: in ns-3 a loss does not reduce Vegas's window to "
    "3/4, its slow start doubles the window every RTT, and NewReno recovers by SACK (docs/ns3.md). "
    "Without short flows ns-3 loses ten times as much as ns-2 with CBQ. But both lose more than "
    "the print, and so does CBQ at full scale."
)


def _loss_falls_quickly(runs: Runs) -> Found:
    """Whether Vegas's loss falls to less than half from 10 to 30 Mbit/s, by router and by CBQ."""
    by_router, by_cbq = (
        [loss(runs, s, "vegas", with_router) for s in capacities()[:2]]
        for with_router in (True, False)
    )
    # each pair has Vegas's loss at 10 and at 30 Mbit/s, percent
    text = "By figure 2's router in ns-3 Vegas loses {:.1f} and {:.1f} % at 10 and 30 Mbit/s."
    return Found(
        all(at_30 < 0.5 * at_10 for at_10, at_30 in (by_router, by_cbq)),
        detail=f"{text.format(*by_router)} By CBQ: {curve(runs, MBITS, capacities())}",
    )


def capacity() -> list[Record]:
    """The records of experiment D, figure 7: the capacity of the link varies.

    The index is a Vegas flow's throughput over a NewReno flow's; 1 is fair. ns-3 runs the paper's
    router itself, at two capacities only, and ns-2 class-based queueing (CBQ) in its place. In the
    notes, names in capitals such as ``COUNTED`` stand for texts that several records share.
    """
    full = IN_NS2.replace("at a fifth of the scale (flows, capacity, buffers)", "at full scale")
    return [
        Record(
            "section IV-D, index from above 10 Mbit/s to 1 Gbit/s",
            printed=[0.72, 0.88],
            compute=_above_narrowest,
            note=f"Least and largest index from 30 Mbit/s to 1 Gbit/s. {IN_NS2} {WEB} {SPREAD}",
        ),
        Record(
            "section IV-D, index at 10 Mbit/s",
            printed=0.61,
            compute=_narrowest,
            note=f"{full} {WEB} {SPREAD}",
        ),
        Record(
            "section IV-D, Vegas's loss at 10 Mbit/s, percent",
            printed=28,
            compute=_lost_at_narrowest,
            tolerance=0.5,
            note=f"{full} {WEB} Tolerance: rounding of the print.",
        ),
        Record(
            "figure 7a, Vegas's throughput drops at 10 Mbit/s",
            compute=_vegas_gets_less_at_10,
            note="Read as: the index is below 1 and below that at 30 Mbit/s, both by more than two "
            f"standard errors. {IN_NS3} {COUNTED} {NO_PICTURE}",
        ),
        Record(
            "figure 7b, Vegas's loss falls quickly from 10 to 30 Mbit/s",
            compute=_loss_falls_quickly,
            note="Read as: the mean loss falls to less than half, by the paper's router and by "
            f"CBQ. {NO_SPREAD} Above 30 Mbit/s we ran CBQ only, so these losses do not count. "
            f"{IN_NS3} {COUNTED} {NO_PICTURE}",
        ),
    ]


def _losses(runs: Runs) -> tuple[list[float], str]:
    """Vegas's loss at the longest RTTs of 30, 200 and 1000 ms with the router, percent.

    The second value is a text with the losses with class-based queueing (CBQ) at all longest RTTs,
    for the note.
    """
    found = [loss(runs, s, "vegas", with_router=True) for s in round_trips(LONGEST_RTTS_IN_NS3)]
    by_cbq = ", ".join(f"{loss(runs, s, 'vegas'):.2f}" for s in round_trips())
    full = ", ".join(f"{loss(runs, s, 'vegas'):.2f}" for s in at_full_scale())
    middle = LONGEST_RTTS_IN_NS3.index(0.2)
    fifth, large = (
        loss(runs, scenarios[middle], "vegas")
        for scenarios in (round_trips(LONGEST_RTTS_IN_NS3), at_full_scale())
    )
    return found, (
        f"By CBQ, at {', '.join(f'{1e3 * x:g}' for x in LONGEST_RTTS)} ms: {by_cbq} %; in one run "
        f"of each at full scale, at 30, 200, 1000 ms: {full} %. So the scale matters: at 200 ms "
        f"CBQ loses {fifth:.2f} % at a fifth of the scale and {large:.2f} % at full scale, both "
        "below 1 %; and the router has run at a fifth of the scale only."
    )


def _losses_at_three_rtts(runs: Runs) -> Found:
    """Vegas's loss at a longest RTT of 30, 200 and 1000 ms with the router, percent."""
    found, text = _losses(runs)
    return Found(found, detail=text, missing=LESS_AT_FULL_SCALE)


LESS_AT_FULL_SCALE = f"{SCALE_DECIDES}, in which Vegas loses less."


def _loss_below_1_percent(runs: Runs) -> Found:
    """Whether Vegas loses less than 1 % of its packets with the paper's router.

    The RTTs of the flows reach up to a longest RTT, which experiment E varies.  The loss must be
    below 1 % at each longest RTT.
    """
    found, text = _losses(runs)
    return Found(
        max(found) < 1.0,
        detail=f"By the router {', '.join(f'{lost:.2f}' for lost in found)} %. {text}",
        missing=LESS_AT_FULL_SCALE,
    )


def _non_monotonic(runs: Runs) -> Found:
    """Whether Vegas loses less at a longest RTT of 200 ms than at 30 and at 1000 ms.

    It must be so with the router, and with CBQ both at a fifth of the paper's scale and at full
    scale.
    """
    (first, middle, last), text = _losses(runs)
    others = [  # with CBQ
        [loss(runs, s, "vegas") for s in scenarios]
        for scenarios in (round_trips(LONGEST_RTTS_IN_NS3), at_full_scale())
    ]
    return Found(
        all(b < min(a, c) for a, b, c in ((first, middle, last), *others)),
        detail=f"{first:.2f}, {middle:.2f}, {last:.2f} %. {text}",
    )


def delays() -> list[Record]:
    """The records of experiment E, figure 8: the longest RTT of the flows varies.

    The index is a Vegas flow's throughput over a NewReno flow's; 1 is fair. ns-3 runs the paper's
    router itself, and ns-2 class-based queueing (CBQ) in its place. In the notes, names in capitals
    such as ``COUNTED`` stand for texts that several records share.
    """
    return [
        Record(
            "section IV-E, index over maximum RTTs of 30 ms to 1 s",
            printed=[0.83, 0.87],
            compute=partial(
                index_range,
                LONGEST_RTTS_IN_NS3,
                round_trips(LONGEST_RTTS_IN_NS3),
                (0.83, 0.87),
                with_router=True,
            ),
            note="Least and largest index at 30 ms, 200 ms and 1 s. "
            f"{IN_NS3} {COUNTED} {NS3_LOSES} {SPREAD_3}",
        ),
        Record(
            "section IV-E, Vegas's loss at 20, 200 and 1000 ms, percent",
            printed=[0.29, 0.01, 0.11],
            compute=_losses_at_three_rtts,
            tolerance=0.005,
            note="At maximum RTTs of 30, 200 and 1000 ms; the axis begins at 30 ms, not at 20. "
            f"{IN_NS3} {COUNTED} {NS3_LOSES} Tolerance: rounding of the print.",
        ),
        Record(
            "section IV-E, Vegas's loss well below 1 %",
            compute=_loss_below_1_percent,
            note=f"At 30 ms, 200 ms and 1 s. {IN_NS3} {COUNTED} {NS3_LOSES}",
        ),
        Record(
            "figure 8a, very robust over the round-trip times",
            compute=partial(
                steady,
                LONGEST_RTTS_IN_NS3,
                round_trips(LONGEST_RTTS_IN_NS3),
                (0.83, 0.87),
                with_router=True,
            ),
            note="Read as: the largest over the least index is at most that of the printed "
            f"indices, even if two standard errors are added. {IN_NS3} {COUNTED} {NO_PICTURE}",
        ),
        Record(
            "figure 8b, Vegas's loss falls and then grows",
            compute=_non_monotonic,
            note="Read as: of the maximum RTTs of 30 ms, 200 ms and 1 s, for which the text has "
            "values, Vegas loses least at 200 ms, by the router, by CBQ, and by CBQ at full scale. "
            "Another record compares how much it loses, and that differs from the print. "
            f"{NO_SPREAD} {IN_NS3} {COUNTED} {NO_PICTURE}",
        ),
    ]
