"""Claims in sections 2 and 3 of the paper ``evaluation`` that do not belong to a figure.

Each has a record, which compares the claim with ns-2 or with the paper's own tables.
"""

import dataclasses
from collections.abc import Callable

from paper_checks.checks import Found, Record, from_printed_numbers, rounding
from paper_checks.devendictis.hypotheses import cut
from paper_checks.evaluation.figures import (
    BUFFER_DECIDES,
    BUFFERS,
    DROPPED,
    FORCED_NOTE,
    LOSS_BASED,
    NO_PICTURE,
    RUN,
    least_window,
    same_law,
)
from paper_checks.evaluation.red import SETTINGS, with_each_red
from paper_checks.evaluation.scenes import pair, single
from paper_checks.evaluation.tables import CAPACITY, COUNTED_SECONDS, TABLE_2, TABLE_4, red
from paper_checks.runs import Runs, largest_swing
from paper_checks.spread import (
    MAJORITY_NOTE,
    for_each_seed,
    jittered,
    majority_of_seeds,
    one_scenario_per_seed,
)
from vegasmodel.metrics import Floats

# Parts of figure 6, and the laws that they compare
FIGURE_6 = {"6a": "Reno and SACK", "6b": "Reno and Vegas", "6c": "SACK and Vegas"}
UPPER_THRESHOLDS = tuple(map(float, TABLE_4["reno"]))  # RED's upper thresholds in table 4, packets


def _largest_oscillation(runs: Runs) -> Found:
    """How much a window varies at most in figures 3a and 3b: largest less least, in packets.

    The figures differ in X, the delay of the second source's last link.
    """
    found = [
        max(largest_swing(runs(one)) for one in one_scenario_per_seed(same_law("vegas", X)))
        for X in (1e-3, 22e-3)
    ]
    return Found(found, detail="At X of 1 and 22 ms.")


def _reno_goes_on_losing(runs: Runs) -> Found:
    """Whether two Renos send more than one packet a second again, on average."""
    laws = ("reno", "vegas")
    found = {law: float(runs(jittered(same_law(law, 1e-3))).retransmits.sum()) for law in laws}
    text = ", ".join(f"{law} {count:g}" for law, count in found.items())
    return Found(
        found["reno"] > COUNTED_SECONDS,  # packets, and the seconds in which they are counted
        detail=f"Packets sent again in {COUNTED_SECONDS:g} s, mean of 5 seeds: {text}.",
    )


def section_2() -> list[Record]:
    """The records of section 2: how windows of Reno and Vegas vary, and whether packets are lost.

    The paper says that Reno's window swings because of its losses, and that Vegas's stays constant.
    """
    sources = "Two sources of a law, as in figures 2 and 3, after 15 s."
    return [
        Record(
            "section 2.2, the window is halved after three duplicate ACKs",
            printed=0.5,
            compute=cut,
            prints=("half",),
            tolerance=0.02,
            note="Least over largest window of Reno beside Vegas, on the link of De Vendictis and "
            "Baiocchi (1080 pkt/s, 80 ms, buffer 20), where the window falls from 87 to 43 "
            "packets. It is the run of ns-2 2.35 of their equation (8), sampled every 2.5 s. "
            "Tolerance 0.02: each of both windows is known to about a packet.",
        ),
        Record(
            "section 2.4, Vegas's window does not oscillate in equilibrium",
            printed=[0.0, 0.0],
            compute=_largest_oscillation,
            prints=("does not cause any oscillation",),
            note=f"Largest less least window of any seed, packets. {sources} ns-2 2.35, 5 seeds, "
            "whose starts move by up to one packet's time.",
        ),
        Record(
            "section 2.4, Reno goes on losing packets",
            compute=_reno_goes_on_losing,
            note=f"X = 1 ms. {sources} ns-2 2.35, 5 seeds, whose starts move by up to one packet's "
            "time. Read as more than one lost packet a second on average; our stored runs do not "
            "say when packets are lost. The note has Vegas's number, too.",
        ),
    ]


def _stays_after_first_loss(runs: Runs) -> Found:
    """Whether SACK's least window is the same after one loss in a window and after four.

    The result's detail also has Reno's least windows.  The result is undecided if it differs
    between the buffers, since the paper does not state that of figure 1.
    """
    stays, texts = [], []  # for each buffer
    for buffer in BUFFERS:
        pairs = {  # by law: both windows for each choice of the four packets that are lost
            law: [
                (least_window(runs, law, drops[:1], buffer), least_window(runs, law, drops, buffer))
                for drops in DROPPED
            ]
            for law in ("sack", "reno")
        }
        text = "; ".join(
            f"{law} {', '.join(f'{one:.0f} and {four:.0f}' for one, four in found)}"
            for law, found in pairs.items()
        )
        texts.append(f"with a buffer of {buffer:g}: {text}")
        stays.append(all(abs(one - four) <= 1 for one, four in pairs["sack"]))
    return Found(
        stays[0],
        detail=f"Least windows after one and after four losses, {'. '.join(texts)}.",
        undecided=BUFFER_DECIDES if stays[0] != stays[1] else "",
    )


def _window_and_thresholds_in_buffer(runs: Runs) -> Found:
    """Whether Vegas keeps w + alpha to w + beta packets in the buffer, where w is its window.

    Alpha is 1, and beta 3. The answer is also yes if this holds with w as the number of packets
    that the empty path holds.
    """
    found = runs(single("vegas"))
    window, queue = float(found.window[0, 0]), found.queue
    path = CAPACITY * single("vegas").members[0].rtt
    return Found(
        window + 1 <= queue <= window + 3 or path + 1 <= queue <= path + 3,
        detail=f"{queue:.2f} packets wait, with a window of {window:.2f}. If w is the number of "
        f"packets that the empty path holds, {path:.2f}, then the window, not the queue, lies "
        "between w + alpha and w + beta.",
    )


def _fairer_with_red(law: str) -> Callable[[Runs], Found]:
    """Make the function that tests in ns-2 whether RED gives Vegas a larger share than DropTail.

    The share is Vegas's part of both throughputs.  The other source has the law ``law``.  RED's
    lower threshold is 3 packets, and its upper one is the buffer.  Vegas's share must be larger at
    each buffer.  Even then the result is undecided, since the paper calls the share "relative
    fair", which is no number.
    """

    def share(rates: Floats) -> float:
        """Vegas's share, from the rates of the other source and of Vegas."""
        return float(rates[1] / rates.sum())

    def compute(runs: Runs) -> Found:
        """Whether Vegas's share is larger with RED at each buffer, for most seeds."""
        with_red = [red(law, buffer) for buffer in UPPER_THRESHOLDS]
        with_droptail = [pair(law, "vegas", buffer=buffer) for buffer in UPPER_THRESHOLDS]
        scenes = [*with_red, *with_droptail]

        def larger_with_red(*rates: Floats) -> bool:
            """Whether it is so in the runs with one seed; ``rates`` are in the order of scenes."""
            shares, n = [share(pair_of_rates) for pair_of_rates in rates], len(with_red)
            return all(
                by_red > by_droptail
                for by_red, by_droptail in zip(shares[:n], shares[n:], strict=True)
            )

        means = [100 * share(runs(jittered(scene)).mean) for scene in scenes]
        text = ", ".join(f"{mean:.0f}" for mean in means)
        values = for_each_seed(runs, scenes, larger_with_red)
        return majority_of_seeds(
            values,
            detail="Vegas's mean share at buffers of 10, 20, 40 and 80, RED, then DropTail, "
            f"percent: {text}.",
        )

    compute_with_each_red = with_each_red(compute)

    def undecided(runs: Runs) -> Found:
        """The result with each setting of RED, but always undecided, with the reason."""
        found = compute_with_each_red(runs)
        share_at_80 = 100 * share(runs(jittered(red(law, 80.0))).mean)  # percent
        text = (
            "'Relative fair' is no number, and its meaning decides: Vegas gets more than with "
            f"DropTail, but at a buffer of 80 only {share_at_80:.0f} % of the link, where table 4 "
            f"itself has {VEGAS_SHARE_AT_80[law]:.0f} %."
        )
        return dataclasses.replace(found, undecided=found.undecided or text)

    return undecided


# Vegas's share of both counts in the last row of tables 4a and 4b, percent
VEGAS_SHARE_AT_80 = {law: 100 * rows[80][1] / sum(rows[80][:2]) for law, rows in TABLE_4.items()}


def _shorter_queue(runs: Runs) -> Found:
    """Whether RED's mean queue is less than half of DropTail's, at a buffer of 80 packets."""
    queues = [
        tuple(runs(jittered(s)).queue for s in (red(law, 80.0), pair(law, "vegas", buffer=80.0)))
        for law in LOSS_BASED  # for each law: the mean queue with RED, and that with DropTail
    ]
    text = "; ".join(
        f"beside {law} {a:.1f} and {b:.1f}" for law, (a, b) in zip(LOSS_BASED, queues, strict=True)
    )
    return Found(
        all(by_red < by_droptail / 2 for by_red, by_droptail in queues),
        detail=f"Mean queue with a buffer of 80, RED and DropTail: {text}.",
    )


def section_3() -> list[Record]:
    """The records of statements in sections 3.1.2 to 4 that belong to no chart or table cell.

    In the notes, names in capitals such as ``FORCED_NOTE`` stand for texts that several records
    share.
    """
    return [
        Record(
            "figure 1, SACK's window stays where the first loss has put it",
            compute=_stays_after_first_loss,
            note="Read as: the least window after four losses is the same as after the first of "
            f"them alone, within a packet. {FORCED_NOTE} {NO_PICTURE}",
        ),
        Record(
            "section 3.1.3, Reno and SACK share almost half and half",
            printed=[1.0, 1.0],
            compute=from_printed_numbers(
                [TABLE_2[name][0][0] / TABLE_2[name][0][1] for name in _RENO_BESIDE_SACK]
            ),
            prints=("almost in half and half",),
            tolerance=rounding(0.1),
            note="Ratios of table 2's printed counts, Reno/SACK and SACK/Reno. Tolerance: 'almost' "
            "is read as rounding to 1.0.",
        ),
        Record(
            "section 3.3.1, figures 7b and 7c",
            printed="7b, 7c",
            compute=from_printed_numbers(
                ", ".join(figure for figure, laws in FIGURE_6.items() if "Vegas" in laws)
            ),
            prints=("figure 7b", "figure 7c", "Figure 6b", "Figure 6c"),
            note="computed: the figures of that section that compare Vegas with another law.",
            erratum="6b and 6c are meant: figure 7 belongs to section 3.3.3 and has no such parts.",
        ),
        Record(
            "section 3.2.2, connection 2 from S3 to S4",
            printed="S3 to S4",
            compute=from_printed_numbers("S2 to S4"),
            prints=("connection 2 (from S3 to S4)", "connection 2 from S2 to S4"),
            note="computed: connection 2 as section 3.2 and its topology define it.",
            erratum="S2 to S4 is meant: S3 is the receiver of connection 1.",
        ),
        Record(
            "section 3.2.3, the topology of figure 2",
            printed="Figure 2",
            compute=from_printed_numbers("Topology 3"),
            prints=("topology is the same as shown in Figure 2", "Topology 3: Network Topology"),
            note="computed: the topology of section 3.2, in which the second delay is varied.",
            erratum="A topology is meant: figures 2a and 2b show bandwidths over time. It is "
            "Topology 3, or Topology 2, as later sections call the same network.",
        ),
        Record(
            "section 3.3.3, Vegas keeps between w + alpha and w + beta in the buffer",
            compute=_window_and_thresholds_in_buffer,
            prints=("w+α", "w+β"),
            note="Mean queue of one Vegas source alone, alpha 1 and beta 3, against w + alpha and "
            "w + beta. Section 3.3.3 does not define w; we try Vegas's mean window, and the number "
            f"of packets that the empty path holds. {RUN} Topology 1.",
            erratum="There are alpha to beta packets in the buffer: Diff = W (1 - BaseRTT/RTT) is "
            "the backlog by Little's law, and the rule keeps it between alpha and beta. The print "
            "calls w + alpha to w + beta the buffer size; it may be right for the window.",
        ),
        *(
            Record(
                f"section 3.3.2.2, a low threshold gives Vegas a fairer share beside {law}",
                compute=_fairer_with_red(law),
                note="'A relative fair share'. We tested whether Vegas gets a larger share with "
                "RED than with DropTail at the same buffer, in all four rows of table 4; RED's "
                f"thresholds are 3 packets and the buffer. {MAJORITY_NOTE} {SETTINGS}",
            )
            for law in LOSS_BASED
        ),
        Record(
            "section 3.3.2.2, a low threshold makes the buffer seem smaller",
            compute=with_each_red(_shorter_queue),
            note="Read as less than half of DropTail's mean queue; ns-2 2.35, mean of 5 seeds, all "
            f"starts at 0. {SETTINGS}",
        ),
        Record(
            "section 4, Vegas causes much fewer retransmissions",
            compute=from_printed_numbers(
                Found(
                    max(_retransmitted(vegas=True)) < 0.1 * min(_retransmitted(vegas=False)),
                    detail=f"Vegas at most {max(_retransmitted(vegas=True))}, the others at least "
                    f"{min(_retransmitted(vegas=False))}.",
                )
            ),
            note="Table 2's printed counts; read as less than a tenth of those of the other laws.",
        ),
    ]


# the columns of table 2 in which Reno and SACK share the link
_RENO_BESIDE_SACK = ("table2-3-reno-sack", "table2-4-sack-reno")


def _retransmitted(vegas: bool) -> list[int]:
    """Numbers of retransmitted packets in table 2: those of Vegas, or those of the other laws."""
    return [
        count
        for name, (_, again, _) in TABLE_2.items()
        for law, count in zip(name.split("-")[2:], again, strict=True)  # "table2-1-vegas-reno"
        if (law == "vegas") == vegas
    ]


RECORDS = (*section_2(), *section_3())
