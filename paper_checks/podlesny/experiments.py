"""Figures 1 and 4 to 12 of ``podlesny``, experiments A to H, and the argument of section V.

Stock ns-2 has no RD queue, so what needs the whole router is blocked; what can be decided with
the two queues taken apart (see ``scenes``), or without RD, is run.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from paper_checks.checks import Found, Kind, Record, Value, exactly
from paper_checks.podlesny.scenes import CAPACITY, figure_1, parking_lot, queue
from paper_checks.runs import Runs

APART = (
    "ns-2 2.35, mean of 5 seeds, at a tenth of the scale (flows, capacity and buffers), the two "
    "queues as links of their own, without reverse traffic."
)
NO_RD = (
    "Needs the RD router, which stock ns-2 does not have; with its two queues taken apart, what "
    "one class leaves to the other would be lost, and that decides here."
)
NO_PICTURE = "Its picture is missing from our text."
RTTS = (0.03, 0.1, 0.2)  # s, tried for figure 1, which does not state it


# --- figure 1 --------------------------------------------------------------------------------


def _share(runs: Runs) -> Found:
    """NewReno's part of the link at the RTT that comes nearest."""
    capacity = 2e6 / 8000
    shares = {rtt: float(runs(figure_1(rtt)).mean[0]) / capacity for rtt in RTTS}
    text = ", ".join(f"{1e3 * r:g} ms: {100 * s:.1f} %" for r, s in shares.items())
    return Found(100 * min(shares.values(), key=lambda s: abs(s - 0.92)), detail=f"By RTT: {text}.")


# --- the two queues taken apart --------------------------------------------------------------


def _index(n_rate: int, n_delay: int, runs: Runs) -> Found:
    """Relative fairness: utilisation by a Vegas flow over that by a NewReno flow, in bytes.

    By (6) and (7) both queues have the same capacity a flow.
    """
    rate = runs(queue("rate", n_rate, n_delay, n_rate, 0)).utilization
    delay = runs(queue("delay", n_rate, n_delay, 0, n_delay)).utilization
    return Found(
        delay / rate,
        detail=f"The R queue is used to {100 * rate:.1f} %, the D queue to {100 * delay:.1f} %.",
    )


def fairness() -> list[Record]:
    """Experiments A and B: the index over the numbers of flows."""
    found = [
        Record(
            f"figure 4a, index at NewReno ratio {n_rate / 10:g}",
            "figure",
            1.0,
            partial(_index, n_rate, 10),
            tolerance=0.05,
            note=f"{n_rate} NewReno and 10 Vegas flows. {APART} 'Close to 1' is read as rounding "
            f"to 1.0. {NO_PICTURE}",
        )
        for n_rate in (10, 30, 70)
    ]
    found += [
        Record(
            f"figure 5a, index at Vegas ratio {n_delay / 10:g}",
            "figure",
            1.0,
            partial(_index, 10, n_delay),
            tolerance=0.05,
            note=f"10 NewReno and {n_delay} Vegas flows. {APART} 'Close to 1' is read as rounding "
            f"to 1.0. {NO_PICTURE}",
        )
        for n_delay in (30, 70)
    ]
    return [
        *found,
        Record(
            "figure 4a, index at NewReno ratio 0.1",
            "figure",
            1.0,
            blocked=f"{NO_RD} With few NewReno flows their queue runs empty.",
        ),
        Record(
            "figure 5a, index at Vegas ratio 0.1",
            "figure",
            1.0,
            blocked=f"{NO_RD} At a tenth of the scale there is one Vegas flow.",
        ),
    ]


def _losses(pairs: tuple[tuple[int, int], ...], runs: Runs) -> list[float]:
    """Loss rate of Vegas in the D queue, percent."""
    return [100 * float(np.nanmean(runs(queue("delay", r, d, 0, d)).loss_rate)) for r, d in pairs]


def _linear(runs: Runs) -> Found:
    ratios = (10, 30, 50, 70)
    losses = _losses(tuple((r, 10) for r in ratios), runs)
    text = ", ".join(f"{loss:.3f}" for loss in losses)
    if losses[-1] <= 0:
        return Found(False, detail=f"Percent at ratios 1, 3, 5, 7: {text}.")
    straight = float(np.corrcoef(ratios, losses)[0, 1] ** 2)
    return Found(
        straight > 0.9, detail=f"Percent at ratios 1, 3, 5, 7: {text}; R^2 {straight:.3f}."
    )


def _convex(runs: Runs) -> Found:
    losses = _losses(((10, 10), (10, 30), (10, 50), (10, 70)), runs)
    text = ", ".join(f"{loss:.3f}" for loss in losses)
    steps = np.diff(losses)
    bent = bool(losses[-1] > losses[0] and np.max(steps) > 1.5 * max(np.min(steps), 0.0))
    return Found(bent, detail=f"Percent at ratios 1, 3, 5, 7: {text}.")


def losses() -> list[Record]:
    """Figures 4b and 5b: Vegas's loss rate."""
    return [
        Record(
            "figure 4b, Vegas's loss grows linearly with the NewReno flows",
            "figure",
            True,
            _linear,
            note=f"Read as R^2 above 0.9. {APART} {NO_PICTURE}",
        ),
        Record(
            "figure 5b, Vegas's loss grows non-linearly with the Vegas flows",
            "figure",
            True,
            _convex,
            note=f"Read as steps that differ by more than half. {APART} {NO_PICTURE}",
        ),
        Record(
            "figure 5b, by theory: no loss up to B_D/alpha flows, then more than linear",
            "figure",
            True,
            exactly(_theory()),
            note="Package's closed form at full scale: D buffer 312 packets, alpha 1, RTT 160 ms, "
            "100 NewReno flows, 100 Mbit/s.",
        ),
    ]


def _theory() -> Found:
    from vegasmodel.equilibrium import rate_delay

    n = np.array([100.0, 300.0, 400.0, 500.0, 600.0, 700.0])
    _, S_D = rate_delay.service_rates(100, n, 12500.0)
    p = np.asarray(rate_delay.delay_loss(n, 0.16, 312.5, S_D, 1.0))
    text = ", ".join(f"{x:.3f}" for x in p)
    return Found(
        bool(p[1] == 0 and np.all(np.diff(p[1:]) > 0)),
        detail=f"At 100, 300, 400, 500, 600, 700 flows: {text}.",
    )


# --- experiments that need the whole router --------------------------------------------------

BLOCKED: tuple[tuple[str, Kind, Value], ...] = (
    ("section IV-C, index with Web traffic", "claim", [0.75, 0.96]),
    ("figure 6", "figure", None),
    ("section IV-D, index from above 10 Mbit/s to 1 Gbit/s", "claim", [0.72, 0.88]),
    ("section IV-D, index at 10 Mbit/s", "claim", 0.61),
    ("section IV-D, Vegas's loss at 10 Mbit/s, percent", "claim", 28),
    ("figure 7", "figure", None),
    ("section IV-E, index over maximum RTTs of 30 ms to 1 s", "claim", [0.83, 0.87]),
    ("section IV-E, Vegas's loss at 20, 200 and 1000 ms, percent", "claim", [0.29, 0.01, 0.11]),
    ("section IV-E, Vegas's loss well below 1 %", "claim", True),
    ("figure 8", "figure", None),
    ("section IV-F, index at 50 and 200 flows/s of 30 KB", "claim", [0.9, 0.69]),
    ("section IV-F, index at 50 and 200 flows/s of 100 KB", "claim", [0.86, 0.67]),
    ("figure 9", "figure", None),
    ("section IV-G, index about 1 at sudden changes", "claim", 1.0),
    ("figure 10", "figure", None),
    ("section IV-H, equal throughputs at each of 5 bottlenecks", "claim", 1.0),
    ("figure 11", "figure", None),
    ("figure 12, with RED/ECN and with RD", "figure", None),
)


def blocked() -> list[Record]:
    """Experiments C to H."""
    found = []
    for item, kind, printed in BLOCKED:
        why = NO_RD
        if item.startswith(("figure 10", "section IV-G")):
            why = f"{NO_RD} The numbers of flows over time stand in the missing figure 10a."
        found.append(
            Record(
                item,
                kind,
                printed,
                blocked=f"{why} {NO_PICTURE}" if kind == "figure" else why,
            )
        )
    return found


def _advantage(runs: Runs) -> Found:
    """Vegas over NewReno on each link: the flows over all links and those over this one."""
    scenario = parking_lot()
    rate = {
        flow.name: sum(
            float(r)
            for r, member in zip(runs(scenario).mean, scenario.members, strict=True)
            if member.flow is flow
        )
        for flow in scenario.flows
    }
    ratios = [
        (rate["vegas A"] + rate[f"vegas {link.name}"])
        / (rate["newreno A"] + rate[f"newreno {link.name}"])
        for link in scenario.links
    ]
    text = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    return Found(max(ratios) < 0.5, detail=f"Vegas over NewReno by link: {text}.")


DROP_TAIL = Record(
    "figure 12, NewReno's substantial advantage with DropTail",
    "figure",
    True,
    _advantage,
    note="Read as Vegas with less than half of NewReno's throughput on each of the 5 links. ns-2 "
    f"2.35, mean of 5 seeds, at a tenth of the scale (flows, capacity, buffers). {NO_PICTURE}",
)

# --- section V -------------------------------------------------------------------------------


def _masked_vegas(runs: Runs) -> Found:
    """One Vegas flow in the R queue beside 10 NewReno flows; the router counts 11 : 9."""
    throughput = runs(queue("rate", 11, 9, 10, 1)).mean
    own, fair = float(throughput[-1]), CAPACITY / 20
    return Found(own <= fair, detail=f"It gets {own:.1f} pkt/s, marked right {fair:.1f}.")


def _masked_newreno(runs: Runs) -> Found:
    """One NewReno flow in the D queue beside 10 Vegas flows; the router counts 9 : 11."""
    throughput = runs(queue("delay", 9, 11, 1, 10)).mean
    own, fair = float(throughput[0]), CAPACITY / 20
    others = float(throughput[1:].mean())
    return Found(
        own <= fair,
        detail=f"It gets {own:.1f} pkt/s, marked right {fair:.1f}; the Vegas flows beside it get "
        f"{others:.1f} each.",
    )


def _many_masked(runs: Runs) -> Found:
    """Five NewReno flows in the D queue beside 10 Vegas flows; the router counts 5 : 15."""
    throughput = runs(queue("delay", 5, 15, 5, 10)).mean
    own, fair = float(throughput[:5].mean()), CAPACITY / 20
    return Found(own <= fair, detail=f"Each gets {own:.1f} pkt/s, marked right {fair:.1f}.")


def mismarking() -> list[Record]:
    """Who gains by marking its packets wrong."""
    note = f"Of 10 and 10 flows. {APART}"
    return [
        Record(
            "section V, Vegas marked as NewReno gains nothing",
            "claim",
            True,
            _masked_vegas,
            0,
            note,
        ),
        Record(
            "section V, one NewReno flow marked as Vegas gains nothing",
            "claim",
            True,
            _masked_newreno,
            note=note,
        ),
        Record(
            "section V, half of the NewReno flows marked as Vegas gain nothing",
            "claim",
            True,
            _many_masked,
            note=note,
        ),
    ]


FIGURE_1 = Record(
    "figure 1, NewReno's share",
    "figure",
    92,
    _share,
    tolerance=1.0,
    note="Percent of 2 Mbit/s beside one Vegas flow; ns-2 2.35, mean of 5 seeds, 5 to 60 s, buffer "
    "62 packets (250 ms). RTT and buffer are not stated: the nearest over RTTs of 30, 100 and 200 "
    f"ms. Tolerance 1: 'approximately'. {NO_PICTURE}",
)

RECORDS = (FIGURE_1, *fairness(), *losses(), *blocked(), DROP_TAIL, *mismarking())
