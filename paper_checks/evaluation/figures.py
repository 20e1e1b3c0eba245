"""Figures of the paper ``evaluation`` as its text describes them, and its claims.

The records compare what the text says about the figures with ns-2, since our copy of the paper
lacks the pictures.  A law is a congestion control: Reno, SACK or Vegas.  X is the delay of the
second source's last link, s.
"""

import dataclasses
from collections.abc import Callable

import numpy as np

from paper_checks.checks import (
    Found,
    Known,
    Record,
    formula,
    from_printed_numbers,
    in_every_case,
    of_runs,
    rises,
    rounding,
)
from paper_checks.circulation import circulate
from paper_checks.evaluation.red import SETTINGS, with_each_red
from paper_checks.evaluation.scenes import forced, pair, single, stored
from paper_checks.evaluation.table_3 import TABLE_3, delays
from paper_checks.evaluation.tables import CAPACITY, TABLE_2, ratio
from paper_checks.runs import Runs
from paper_checks.spread import (
    LARGEST_TOLERANCE,
    MAJORITY_NOTE,
    SOURCE,
    SOURCE_WORD,
    for_each_seed,
    jittered,
    majority_of_seeds,
    median_of_seeds,
    one_scenario_per_seed,
)
from vegasmodel.metrics import Floats
from vegasmodel.scenario import Red, Scenario

MBIT_PER_PACKET = 8000 / 1e6  # Mbit/s of one packet a second
RUN = "ns-2 2.35, the run as described."
NO_PICTURE = "Our copy lacks the picture; we check what the text says about it."
BUFFERS_OF_3_3_2 = (4.0, 7.0, 10.0, 15.0, 50.0)  # buffers of the charts in section 3.3.2, packets
BUFFERS_OF_3_2_3 = (10.0, 15.0, 20.0, 30.0, 50.0)  # buffers of the charts in section 3.2.3, packets
LOSS_BASED = ("reno", "sack")


@of_runs
def holds(runs: Runs, scenario: Scenario, claim: Callable[[Floats], bool], names: str) -> Found:
    """Whether a claim on throughputs holds for most seeds.

    In a run of each seed, the sources' starts move by up to one packet's time.  ``claim`` is a
    function of the throughputs of one run, in pkt/s.  The result's detail has the throughputs in
    Mbit/s; ``names`` are the sources' names for it.
    """
    values = for_each_seed(runs, [scenario], lambda rates: bool(claim(rates)))
    means = ", ".join(f"{rate * MBIT_PER_PACKET:.3f}" for rate in runs(jittered(scenario)).mean)
    text = f"{names}: {means} Mbit/s on average."
    if isinstance(scenario.links[0].queue, Red):
        # RED drops at random, so the run whose starts do not move is no special case
        return majority_of_seeds(values, detail=text)
    rates = runs(scenario).throughput[0]
    described = ", ".join(f"{rate * MBIT_PER_PACKET:.3f}" for rate in rates)
    text += f" The run as described: {described} Mbit/s."
    return majority_of_seeds(values, detail=text, described=bool(claim(rates)))


# --- figure 1: four drops in one window ------------------------------------------------------

# In each of six runs: the numbers of the packets that the link drops, four in a row
DROPPED = tuple(tuple(range(first, first + 4)) for first in (30, 14, 20, 26, 38, 44))


FORCED_NOTE = (
    "ns-2 2.35, runs of 2 s on topology 1; the window is read from 0.2 s on, every 8 ms. The paper "
    "names neither the packets nor the buffer of figure 1. We drop four packets in a row, from the "
    "14th, 20th, 26th, 30th, 38th or 44th on. With a buffer of 50 no other packet is lost; with "
    "one of 6, as in section 3.1.1, more are. If the result depends on the buffer, the record is "
    "blocked."
)
BUFFERS = (50.0, 6.0)  # packets
BUFFER_DECIDES = "The buffer decides, and the paper does not state that of figure 1."


def least_window(runs: Runs, law: str, drops: tuple[int, ...], buffer: float = BUFFERS[0]) -> float:
    """The least window of figure 1's source after the link has dropped some packets, in packets.

    ``law`` is the source's congestion control, ``drops`` has the numbers of these packets, and
    ``buffer`` is in packets.
    """
    row, source = 1, 0  # of ``window``: row 1 has the least windows
    return float(runs(forced(law, drops, buffer=buffer)).window[row, source])


def _reno_restarts(runs: Runs) -> Found:
    """Whether Reno's window falls to one packet in each run."""
    windows = [least_window(runs, "reno", drops, buffer) for buffer in BUFFERS for drops in DROPPED]
    text = ", ".join(f"{window:g}" for window in windows)
    return Found(
        max(windows) <= 1,
        detail=f"Least windows with a buffer of 50, then with one of 6: {text}.",
    )


def _vegas_does_not_restart(runs: Runs) -> Found:
    """Whether Vegas's window stays above 2 packets, its window after a timeout."""
    windows = {drops[0]: least_window(runs, "vegas", drops) for drops in sorted(DROPPED)}
    text = ", ".join(f"{window:g}" for window in windows.values())
    kept = [window > 2 for window in windows.values()]
    detail = f"Least window, 2 after a timeout: {text}"
    return in_every_case(kept, "The packets decide, and the paper does not name them", detail)


def _laws_with_largest_window(runs: Runs) -> Found:
    """The laws with the largest window after figure 1's losses; the paper says that it is SACK.

    Each law is simulated six times with each buffer: once for each entry of ``DROPPED``, the four
    packets that the link drops. For each entry, the law with the largest mean window wins. We take
    the mean from 0.5 s to the end of the run, at 2 s. The result names the laws that win at least
    once with the first buffer. So it is just "sack" if SACK always wins. It is undecided if with
    the second buffer other laws win.
    """
    winners, windows = [], []  # for each buffer: these laws, and a text with all mean windows
    for buffer in BUFFERS:
        means = [
            {
                law: float(runs(forced(law, drops, 0.5, buffer)).window[0, 0])  # row 0: means
                for law in ("sack", "reno", "vegas")
            }
            for drops in DROPPED
        ]
        winners.append({max(by_law, key=lambda law: by_law[law]) for by_law in means})
        rows = "; ".join(
            ", ".join(f"{law} {window:.2f}" for law, window in by_law.items()) for by_law in means
        )
        windows.append(f"with a buffer of {buffer:g}: {rows}")
    starts = ", ".join(str(drops[0]) for drops in DROPPED)
    return Found(
        ", ".join(sorted(winners[0])),
        detail=f"Mean windows from 0.5 s on, packets dropped from {starts} on: "
        f"{'. '.join(windows)}.",
        undecided=BUFFER_DECIDES if winners[0] != winners[1] else "",
    )


def figure_1() -> list[Record]:
    """The records of figure 1: after four losses Reno restarts from a window of one packet.

    Vegas does not, and SACK has the largest window afterwards.
    """
    note = f"{FORCED_NOTE} {NO_PICTURE}"
    return [
        Record(
            "figure 1, Reno falls back to slow start",
            compute=_reno_restarts,
            note=f"{note} The print says that the window drops 'to 0'; ns-2's least window is 1.",
        ),
        Record(
            "figure 1, Vegas never does",
            compute=_vegas_does_not_restart,
            note=note,
        ),
        Record(
            "figure 1, largest window afterwards",
            printed="sack",
            compute=_laws_with_largest_window,
            note=note,
        ),
    ]


# --- figures 2 to 4: two sources of one law --------------------------------------------------


def same_law(law: str, X: float) -> Scenario:
    """The scenario of two sources of the same law, of which the second one starts 0.5 s later.

    ``X`` is the delay of the second source's last link, s.  Packets are counted from 15 s on.
    """
    return pair(law, law, X=X, starts=(0.0, 0.5))


AS_STATED = (
    "Starts at 0 and 0.5 s and counts from 15 s on, as the paper states; the buffer, 10, is "
    "inferred from table 2."
)


def _reno_leaves_more_unused(runs: Runs) -> Found:
    """Whether two Renos leave more of the link unused than two Vegas, and more than 1 %.

    This stands for the paper's 'large oscillation', so the result is undecided in any case.
    """

    def unused(rates: Floats) -> float:
        """The part of the link that is unused in a run, percent; ``rates`` of both sources."""
        return 100 * (1 - float(rates.sum()) / CAPACITY)

    scenes = [same_law(law, X=22e-3) for law in ("reno", "vegas")]
    values = for_each_seed(runs, scenes, lambda reno, vegas: unused(reno) > max(unused(vegas), 1.0))
    parts = [unused(runs(jittered(scene)).mean) for scene in scenes]
    text = f"Unused on average: reno {parts[0]:.2f} %, vegas {parts[1]:.2f} %."
    return dataclasses.replace(
        majority_of_seeds(values, detail=text),
        undecided=NO_OSCILLATION,
    )


def figures_2_to_4() -> list[Record]:
    """The records of figures 2 to 4: the bandwidths of two sources of the same law, in Mbit/s.

    X is the delay of the second source's last link: 1 ms, as the first source's, or 22 ms. In the
    notes, names in capitals such as ``AS_STATED`` stand for texts that several records share.
    """
    found = []
    words = {2: "fair", 3: "almost half and half"}  # by figure: the paper's words for the ratio
    for number, law in ((2, "reno"), (3, "vegas")):
        found.append(
            Record(
                f"figure {number}a, {law}, X = 1 ms, ratio of the bandwidths",
                printed=1.0,
                compute=_figure_3a(law)
                if law == "vegas"
                else median_of_seeds(same_law(law, 1e-3), ratio, printed=1.0, unit=0.1),
                prints=(words[number],),
                note=f"'{words[number]}'. {AS_STATED} {SOURCE_WORD} {NO_PICTURE}",
            )
        )
    return [
        *found,
        Record(
            "figure 4a, sack, X = 1 ms",
            printed=None,
            blocked="Our copy lacks this picture and says nothing about it: 'similar to that of "
            "Reno' is about the bias in figure 4b.",
        ),
        Record(
            "figure 2b, reno, X = 22 ms, ratio",
            printed=2.0,
            compute=_almost_twice,
            prints=("almost twice",),
            note="From 15 s on. The authors' own table 3 has 2.2 for this case. ns-2 2.35; "
            "the majority of 5 seeds, whose "
            f"starts move by up to one packet's time. {NO_PICTURE}",
        ),
        Record(
            "figure 2b, reno, X = 22 ms, the total bandwidth oscillates",
            compute=_reno_leaves_more_unused,
            note="'Large oscillation of the total bandwidth'. We tested whether two Renos leave "
            "more than 1 % of the link unused, and more than two Vegas (figure 3b). "
            f"{MAJORITY_NOTE} {NO_PICTURE}",
        ),
        Record(
            "figure 3b, vegas, X = 22 ms, the lesser of the two bandwidths",
            printed=0.7,
            compute=median_of_seeds(
                same_law("vegas", 22e-3),
                lambda r: float(r.min()) * MBIT_PER_PACKET,
                printed=0.7,
                unit=0.1,
            ),
            note="Mbit/s; the greater one, 0.8, is the rest of the link. The text does not say "
            f"which source has which. {AS_STATED} {SOURCE} {NO_PICTURE}",
        ),
        Record(
            "figure 4b, sack, X = 22 ms, the shorter connection gains",
            compute=holds(same_law("sack", 22e-3), lambda r: r[0] > 1.5 * r[1], "Shorter, longer"),
            note=f"'Very noticeable', read as a ratio above 1.5. {AS_STATED} {MAJORITY_NOTE} "
            f"{NO_PICTURE}",
        ),
    ]


NO_OSCILLATION = (
    "The paper does not state over which interval it averages a bandwidth, and this decides how "
    "far the total moves; 'large' is no number. We stored means only, so we can only say how much "
    "of the link stays unused."
)


def _almost_twice(runs: Runs) -> Found:
    """The ratio of two Renos' bandwidths in figure 2b; always undecided, with the reason."""
    scenario = same_law("reno", 22e-3)
    values = [ratio(row) for row in runs(jittered(scenario)).throughput]
    described = ratio(runs(scenario).throughput[0])
    text = f"Seeds: {', '.join(f'{v:.2f}' for v in values)}; as described {described:.2f}."
    found = majority_of_seeds(
        values, printed=2.0, tolerance=LARGEST_TOLERANCE * 2.0, detail=text, described=described
    )
    word = (
        "'Almost twice' is no number, and its meaning decides: the ratio is 2.2 with most seeds, "
        "which rounds to 2 but is more than twice."
    )
    return dataclasses.replace(found, undecided=word)


@of_runs
def _figure_3a(runs: Runs, law: str) -> Found:
    """The ratio of figure 3a, that of the rates of two sources of ``law``, from runs of ns-2.

    The second source starts 0.5 s after the first.  The result's detail also has the rates if both
    start at 0, and the ratios with other buffers.  If another buffer gives the printed ratio, a
    difference shows nothing, since the paper does not state the buffer.
    """
    found = median_of_seeds(same_law(law, 1e-3), ratio, printed=1.0, unit=0.1)(runs)
    buffers = (6.0, 8.0, 15.0, 50.0)
    rates = ", ".join(f"{r * MBIT_PER_PACKET:.3f}" for r in runs(pair(law, law)).throughput[0])
    text = (
        "In the paper the second source starts 0.5 s later; if both start at 0, ns-2 gives "
        f"{rates} Mbit/s."
    )
    others = [
        ratio(runs(pair(law, law, buffer=B, starts=(0.0, 0.5))).throughput[0]) for B in buffers
    ]
    by_buffer = ", ".join(f"{B:g}: {r:.3f}" for B, r in zip(buffers, others, strict=True))
    text += (
        " The buffer, 10, is inferred from table 2. The ratio with other buffers, one run "
        f"each: {by_buffer}."
    )
    close = any(abs(other - 1.0) <= (found.tolerance or 0.0) for other in others)
    missing = "The paper does not state the buffer, and it decides." if close else found.missing
    return dataclasses.replace(found, detail=f"{found.detail} {text}", missing=missing)


# --- figure 5 and section 3.2.3 --------------------------------------------------------------


def figure_5() -> Record:
    """The record of figure 5, a chart of table 3: the ratio of two sources' packets over X.

    X is the delay of the second source's last link.
    """

    def compute(runs: Runs) -> Found:
        """Whether the ratio of two sources' packets rises with X, for Reno and for SACK."""
        scenes = [delays(law, X * 1e-3) for law in LOSS_BASED for X in TABLE_3]

        def both_rise(*rates: Floats) -> bool:
            """Whether the ratio rises with X for both laws; ``rates`` are those of a seed."""
            # [law, X], as ``scenes`` has first all X of Reno, and then those of SACK
            chart = np.array([ratio(r) for r in rates]).reshape(2, len(TABLE_3))
            return all(map(rises, chart))

        medians = [np.median([ratio(r) for r in runs(jittered(s)).throughput]) for s in scenes]
        text = ", ".join(f"{v:.3g}" for v in medians)
        found = for_each_seed(runs, scenes, both_rise)
        return majority_of_seeds(found, detail=f"Medians, reno, then sack, at each X: {text}.")

    return Record(
        "figure 5, Reno's and SACK's bias grows with X",
        compute=compute,
        note="A chart of table 3. Read as: the ratio rises at every step of X. "
        f"{MAJORITY_NOTE} {NO_PICTURE}",
    )


AS_TABLE_3 = (
    "Starts at 0 and 0.5 s, and counts from 0 s on, as for table 3; the text states neither."
)


def _chart(law: str, red: bool) -> list[Scenario]:
    """The scenarios of a chart of section 3.2.3, one for each buffer of its axis.

    Two sources of ``law`` share the link.  The last link of the second one has a delay X of 58 ms.
    With ``red`` the queue is RED, whose upper threshold is the buffer; else it is DropTail.
    """
    queues = [Red(min_threshold=B / 2, max_threshold=B) if red else None for B in BUFFERS_OF_3_2_3]
    return [
        pair(law, law, X=58e-3, buffer=B, starts=(0.0, 0.5), warmup=0.0, queue=queue)
        for B, queue in zip(BUFFERS_OF_3_2_3, queues, strict=True)
    ]


@of_runs
def _ratio_falls_with_buffer(runs: Runs, law: str, red: bool) -> Found:
    """Whether ACK1/ACK2 is less at the largest buffer than at 10.

    ACK1 and ACK2 are the numbers of packets acknowledged to the two sources of ``law``.  With
    ``red`` the queue is RED.
    """
    chart = _chart(law, red)  # by buffer, from the least to the largest
    values = for_each_seed(runs, chart, lambda *r: ratio(r[-1]) < ratio(r[0]))
    medians = [np.median([ratio(r) for r in runs(jittered(s)).throughput]) for s in chart]
    text = ", ".join(f"{v:.3g}" for v in medians)
    return majority_of_seeds(values, detail=f"Medians at 10, 15, 20, 30, 50: {text}.")


def _fairer_with_red(runs: Runs) -> Found:
    """Whether the ratio ACK1/ACK2 is smaller with RED than with DropTail, in every case.

    A case is a law of both sources, Reno or SACK, and a buffer.
    """
    droptail = [scenario for law in LOSS_BASED for scenario in _chart(law, red=False)]
    red = [scenario for law in LOSS_BASED for scenario in _chart(law, red=True)]
    n = len(droptail)  # number of cases

    def fairer(*rates: Floats) -> int:
        """The number of cases in which RED has the smaller ratio; ``rates`` are those of a seed."""
        found = [ratio(r) for r in rates]  # with DropTail in each case, then with RED
        return sum(r < d for d, r in zip(found[:n], found[n:], strict=True))

    counts = for_each_seed(runs, [*droptail, *red], fairer)
    text = ", ".join(map(str, counts))
    return majority_of_seeds(
        [k == n for k in counts], detail=f"RED is fairer in {text} of {n} cases."
    )


@of_runs
def _close_is_no_number(runs: Runs, compute: Callable[[Runs], Found]) -> Found:
    """The result of ``compute``, which also says that 'close to 1' is no number."""
    missing = (
        "The paper states neither when the sources start nor from when on packets count, and "
        "'close' is no number. We ran starts at 0 and 0.5 s with counts from 0 s on."
    )
    return dataclasses.replace(compute(runs), missing=missing)


def buffers_and_delay() -> list[Record]:
    """The records of section 3.2.3: how the ratio ACK1/ACK2 depends on the buffer.

    ACK1 and ACK2 are the numbers of packets acknowledged to the two sources.  The delay X of the
    second source's last link is 58 ms.  In the notes, names in capitals such as ``AS_TABLE_3``
    stand for texts that several records share.
    """
    found = []
    for law in LOSS_BASED:
        for red in (False, True):
            section = "3.2.3.2, RED" if red else "3.2.3.1, DropTail"
            falls = _ratio_falls_with_buffer(law, red)
            found.append(
                Record(
                    f"section {section}, {law}: the ratio falls as the buffer grows",
                    compute=with_each_red(falls) if red else falls,
                    note="Read as: the ratio is smaller at a buffer of 50 than at one of 10, but "
                    "need not fall at each step. "
                    f"{AS_TABLE_3} {MAJORITY_NOTE}" + f" {SETTINGS}" * red,
                )
            )
        found.append(
            Record(
                f"section 3.2.3.1, DropTail, {law}: close to 1 at buffer 50",
                printed=1.0,
                compute=_close_is_no_number(
                    median_of_seeds(_chart(law, red=False)[-1], ratio, printed=1.0, unit=0.1)
                ),
                note=f"'Close to 1'. {SOURCE_WORD}",
            )
        )
    found.append(
        Record(
            "section 3.2.3.2, RED needs less buffer than DropTail to be fair",
            compute=with_each_red(_fairer_with_red),
            note="Read as: at every buffer of the chart the ratio is smaller with RED. "
            f"{MAJORITY_NOTE} {AS_TABLE_3} {SETTINGS}",
        )
    )
    return found


# --- section 2.4 and claims that cite others -------------------------------------------------


def vegas_alone(runs: Runs) -> Found:
    """Whether a single Vegas source keeps 1 to 3 packets in the queue on average."""
    found = runs(single("vegas"))
    return Found(1.0 <= found.queue <= 3.0, detail=f"{found.queue:.2f} packets wait on average.")


def _most_retransmitted(runs: Runs) -> Found:
    """The largest number of packets that Vegas retransmits in a run of table 2."""
    # by scenario; a name is, for example, "table2-1-vegas-reno": it ends with the sources' laws
    most = {
        name: max(
            float(runs(one).retransmits[name.split("-")[2:].index("vegas")])
            for one in one_scenario_per_seed(stored(name))
        )
        for name in TABLE_2
        if "vegas" in name
    }
    text = ", ".join(f"{name.split('-', 2)[2]} {count:g}" for name, count in most.items())
    return Found(max(most.values()), detail=f"{text}.")


def claims() -> list[Record]:
    """The records of claims that stand outside tables and figures."""
    # table 2's retransmit ratios of loss-based sources; those of Vegas are all 0
    ratios = [row[2] for row in TABLE_2.values()]
    beside_vegas = [x for both in ratios if 0.0 in both for x in both if x]
    without_vegas = [x for both in ratios if 0.0 not in both for x in both]
    # one source with a window of 12 packets, at a link of 100 pkt/s, with an empty RTT of 0.1 s
    packets = circulate([12], 100.0, 0.1)
    return [
        formula(
            "section 2.4, Diff",
            printed=(12 / 0.1 - 12 / packets.RTT) * 0.1,
            compute=Known(packets.waiting, "replay"),
            tolerance=1e-6,
            note="Diff is the number of packets that wait; at a link of 100 pkt/s, CWND 12, "
            "BaseRTT 0.1 s. computed: their mean number in a simulation in which each ACK releases "
            "the next packet; printed: Diff with the mean RTT of this simulation. Tolerance: "
            "rounding of the arithmetic.",
        ),
        Record(
            "section 2.4, window rule",
            "equation",
            compute=vegas_alone,
            note="One Vegas source alone keeps between alpha = 1 and beta = 3 packets waiting. "
            f"{RUN} Topology 1.",
        ),
        Record(
            "section 3.1.1, 37 to 71 % more than Reno",
            printed=[37, 71],
            blocked="Quoted from another paper, whose network is not described here.",
        ),
        Record(
            "section 3.1.3, retransmit ratio beside Vegas about 2 %",
            printed=2,
            compute=from_printed_numbers(float(np.mean(beside_vegas))),
            tolerance=0.1 * 2,
            note="Mean of table 2's printed ratios of Reno and SACK beside Vegas. Tolerance: 10 %, "
            "since the print says 'about'.",
        ),
        Record(
            "section 3.1.3, retransmit ratio of Reno and SACK together about 3.5 %",
            printed=3.5,
            compute=from_printed_numbers(float(np.mean(without_vegas))),
            tolerance=rounding(0.1),
            note="Mean of the four ratios that table 2 prints for Reno beside SACK. Tolerance: "
            "rounding of the print.",
        ),
        Record(
            "section 3.1.3, Vegas never loses a packet",
            printed=0,
            compute=_most_retransmitted,
            note="The largest number of packets that Vegas sends again in a run of one of table "
            "2's four pairs with Vegas; ns-2 2.35, 5 seeds each, whose starts move by up to one "
            "packet's time.",
        ),
    ]


RECORDS = (
    *claims(),
    *figure_1(),
    *figures_2_to_4(),
    figure_5(),
    *buffers_and_delay(),
)
