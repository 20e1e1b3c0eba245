"""Equations (1) to (7) of Podlesny and Williamson, the scheduler of figure 2, numbers in the text.

Each has a record, which compares the printed value with ours.  The paper's router has two queues: R
for flows of the rate service (NewReno), D for those of the delay service (Vegas).
"""

from functools import cache

from paper_checks.checks import (
    Found,
    Record,
    by_theory,
    formula,
    from_printed_numbers,
    rounding,
)
from paper_checks.devendictis.hypotheses import after_loss
from paper_checks.podlesny.scenes import figure_1, first_window, sawtooth, windowed
from paper_checks.runs import Runs
from paper_checks.senders import doubling, growth, least_after_timeout

# Numbers of flows of the rate service and of the delay service, the paper's k, and the capacity in
# pkt/s. A flow of the rate service gets k times the rate of a flow of the delay service.
N_R, N_D, K, C = 300, 100, 1.0, 12500.0


@cache
def dispatched(n_rate: int, n_delay: int, k: float, packets: int = 70_000) -> tuple[int, int]:
    """Packets sent from the queues R and D by the test in the paper's figure 2.

    The router applies this test before each packet, here while neither queue is empty.  ``n_rate``
    and ``n_delay`` are the numbers of flows of R and of D.  A flow of R gets ``k`` times the rate
    of a flow of D.  ``packets`` is the number sent in total.
    """
    L_R = L_D = 0  # packets sent so far from R and from D
    for _ in range(packets):
        if k * n_rate * L_D > n_delay * L_R:
            L_R += 1
        else:
            L_D += 1
    return L_R, L_D


def _by_section_3(n_rate: int, n_delay: int, k: float, packets: int) -> list[int]:
    """Packets sent from the queues R and D by the words of section III.

    L_R and L_D are the packets sent so far from R and from D, and lambda is n_delay/(k n_rate).  By
    these words the router sends from D while L_D does not exceed lambda L_R.  ``packets`` is the
    number sent in total.
    """
    lam = n_delay / (k * n_rate)
    L_R = L_D = 0
    for _ in range(packets):
        if lam * L_R >= L_D:
            L_D += 1
        else:
            L_R += 1
    return [L_R, L_D]


# The mean number of packets that wait if a flow with a fixed window of 60 packets has a link of 250
# pkt/s; the record of (2) finds it with ns-2.
WAITING = 35.0
RTT = 0.1 + WAITING / 250.0  # s, of this flow


def _first_windows(runs: Runs) -> Found:
    """The first windows of NewReno and of Vegas in ns-2, packets."""
    found = [float(runs(first_window(law)).window[0, 0]) for law in ("newreno", "vegas")]
    return Found(
        found,
        missing="The section describes both protocols without naming an implementation, and the "
        "implementation decides: they begin with different windows.",
    )


def _change_by_rule(queue: float, rate: float = 100.0, base: float = 0.1) -> int:
    """The change of a window by the printed rule: 1, 0 or -1 packets.

    The flow has ``queue`` packets waiting, sends at ``rate`` pkt/s and has a baseRTT of ``base`` s.
    """
    RTT = base + queue / rate
    cwnd = rate * RTT  # Little's law
    diff = (cwnd / base - cwnd / RTT) * base
    return (diff < 1) - (diff > 3)  # alpha 1, beta 3


def windows() -> list[Record]:
    """The records of equations (1) to (4) and of the window rule.

    By (1) NewReno's window grows at each ACK. (2) is Vegas's estimate of its packets in the queue
    (diff), from the expected rate (3) and the actual rate (4). If a record has ``prints``, these
    are the words of the paper for the number ``printed``.
    """
    W, base = 12.0, 0.1  # a window in packets, and baseRTT in s
    return [
        # NewReno's growth
        Record(
            "equation 1",
            printed=1.0,
            compute=by_theory(growth(W)),
            prints=("one segment",),
            tolerance=0.5 / W,
            note="printed: the paper's sentence, by which the window grows by one segment in a "
            "round trip; computed: (1) at each ACK of a window of 12, which we chose. Tolerance: "
            "1/(2 W), since W grows meanwhile.",
        ),
        # Vegas's rates and backlog, for a flow with a fixed window
        formula(
            "equation 2",
            printed=(60.0 / base - 250.0) * base,
            compute=lambda runs: float(runs(windowed(60.0)).queue),
            tolerance=1.0,
            note="Packets; cwnd 60, BaseRTT 0.1 s, actual throughput 250 pkt/s, the capacity of "
            "the link; computed: the mean queue, ns-2 2.35. Tolerance: one packet, the packet in "
            "transmission, which does not count as waiting.",
        ),
        formula(
            "equation 3",
            printed=W / base,
            compute=lambda runs: float(runs(windowed(W)).throughput[0, 0]),
            tolerance=1.0,
            note="pkt/s; a flow with a fixed window of 12 packets on an empty path of 0.1 s, ns-2 "
            "2.35. Tolerance: one packet per second.",
        ),
        formula(
            "equation 4",
            printed=60.0 / RTT,
            compute=lambda runs: float(runs(windowed(60.0)).throughput[0, 0]),
            tolerance=5.0,
            note="pkt/s; a flow with a fixed window of 60 packets. By the record of equation (2) "
            "35 of them wait at the link of 250 pkt/s, so the RTT is 0.1 s + 35/250 s = 0.24 s. "
            "computed: packets delivered, ns-2 2.35. Tolerance: 2 %, since one of the 60 packets, "
            "the packet in transmission, does not count as waiting.",
        ),
        # Vegas's window: after a loss, at the start, and by the rule
        Record(
            "section II-B, window after a triple duplicate ACK",
            printed=0.75,
            compute=after_loss,
            tolerance=0.02,
            prints=("25%",),
            note="The print has 25 % less. computed: least window of a single Vegas source after "
            "the loss of one packet, over its mean window without a loss; ns-2 2.35. Tolerance: "
            "0.02, that is 1.8 packets of about 89, since ns-2 takes a whole number of packets "
            "off.",
        ),
        Record(
            "section II-B, initial windows of NewReno and Vegas",
            printed=[1, 2],
            compute=_first_windows,
            note="Packets, before the first ACK of data; for NewReno the text says 'typically'. "
            "Stock ns-2 2.35. There NewReno begins with windowInit_, which is 2 packets, and was 1 "
            "until May 2001. Vegas begins with 1, and applies windowInit_ only at its next ACK; so "
            "with windowInit_ 1 both begin with 1.",
        ),
        formula(
            "section II-B, window rule",
            printed=[1, 0, -1],
            compute=by_theory([_change_by_rule(queue) for queue in (0.5, 2.0, 4.0)]),
            note="printed: the window grows, stays and shrinks with 0.5, 2 and 4 packets of the "
            "flow in the queue, alpha 1, beta 3, as the text explains the rule. computed: the "
            "printed rule with the diff of (2) to (4), where the RTT follows from the queue at 100 "
            "pkt/s.",
        ),
    ]


def _least_over_largest(runs: Runs) -> float:
    """NewReno's least window divided by its largest, after slow start."""
    _, least, largest = runs(sawtooth()).window[:, 0]
    return float(least / largest)


def senders() -> list[Record]:
    """The records of section II: slow start, and the windows after a loss.

    Section II-A describes NewReno, and II-B Vegas.  We compare both with ns-2.
    """
    base = figure_1(0.1)
    rounds = (
        "The window in each round trip over that in the round trip before; a source alone with an "
        "RTT of 2 s; stock ns-2 2.35."
    )
    all_lost = "Packets, after all 20 on their way were lost; stock ns-2 2.35."
    return [
        Record(
            "section II-A, slow start doubles the window every RTT",
            printed=[2.0] * 5,
            compute=lambda runs: doubling(runs, base, "newreno", range(1, 7)),
            prints=("doubling every RTT",),
            note=f"{rounds} From the second RTT on.",
        ),
        Record(
            "section II-A, window after a timeout",
            printed=1,
            compute=lambda runs: least_after_timeout(runs, base, "newreno"),
            note=all_lost,
        ),
        Record(
            "section II-A, window after a triple duplicate ACK",
            printed=0.5,
            compute=_least_over_largest,
            prints=("half",),
            tolerance=0.02,
            note="Least over largest window of one NewReno source alone from 20 s on, 2 Mbit/s, "
            "100 ms, buffer 62; stock ns-2 2.35. Tolerance: 0.02, that is 1.8 packets of about 88.",
        ),
        Record(
            "section II-B, slow start doubles the window every other RTT",
            printed=[2.0, 1.0, 2.0, 1.0, 2.0],
            compute=lambda runs: doubling(runs, base, "vegas", range(3, 9)),
            prints=("every other RTT",),
            note=f"{rounds} From the fourth RTT on: ns-2's Vegas begins with windows of 1, 1, 3.",
        ),
        Record(
            "section II-B, window after a timeout",
            printed=2,
            compute=lambda runs: least_after_timeout(runs, base, "vegas"),
            note=all_lost,
        ),
    ]


def scheduler() -> list[Record]:
    """The records of equations (5) to (7), by which the router shares the link between its queues.

    R is the queue for NewReno flows and D that for Vegas flows. L_R and L_D are the packets sent
    from them. With n_R and n_D flows and a link of capacity C, the equations are

        lambda = L_D/L_R = n_D/(k n_R)         (5)
        rate of R = C k n_R/(n_D + k n_R)      (6)
        rate of D = C n_D/(n_D + k n_R)        (7)

    They are compared with the test in figure 2, by which the router chooses a queue for each
    packet.
    """
    # packets sent from R and from D: with 300 and 100 flows and k = 1, and with 100 each and k = 2
    L_R, L_D = dispatched(N_R, N_D, K)
    L_R2, L_D2 = dispatched(100, 100, 2.0)
    total = L_R + L_D
    one_packet = 1 / min(L_R, L_D, L_D2)  # largest relative change of a count by one packet
    counted = "computed: figure 2's test for 70,000 packets, while neither queue is empty. "
    return [
        formula(
            "equation 5",
            printed=[N_D / (K * N_R), 100 / (2.0 * 100)],
            compute=by_theory([L_D / L_R, L_D2 / L_R2]),
            tolerance=one_packet,
            note="lambda for 300 NewReno and 100 Vegas flows with k 1, and for 100 and 100 with k "
            f"2. {counted}Tolerance: one packet.",
        ),
        formula(
            "equation 6",
            printed=K * N_R * C / (N_D + K * N_R),
            compute=by_theory(C * L_R / total),
            tolerance=C / total,
            note="pkt/s for 300 NewReno and 100 Vegas flows at a link of 12500 pkt/s. "
            f"{counted}Tolerance: one packet.",
        ),
        formula(
            "equation 7",
            printed=N_D * C / (N_D + K * N_R),
            compute=by_theory(C * L_D / total),
            tolerance=C / total,
            note="pkt/s for 300 NewReno and 100 Vegas flows at a link of 12500 pkt/s. "
            f"{counted}Tolerance: one packet.",
        ),
        formula(
            "figure 2, the test of section III",
            printed=list(dispatched(N_R, N_D, K, 1000)),
            compute=by_theory(_by_section_3(N_R, N_D, K, 1000)),
            kind="figure",
            note="Numbers of packets from R and from D among the first 1000. printed: by figure "
            "2's test; computed: by the text, which sends from 'D if L_D does not exceed lambda "
            "L_R'.",
        ),
        Record(
            "section III, equal rates at k = 1",
            printed=1.0,
            compute=by_theory((L_D / N_D) / (L_R / N_R)),
            tolerance=2 * one_packet,
            prints=("fair sharing",),
            note="Relative fairness of 300 NewReno and 100 Vegas flows. "
            f"{counted}Tolerance: one packet from each queue.",
        ),
    ]


def numbers() -> list[Record]:
    """The records of the numbers that section IV computes."""
    return [
        Record(
            "section IV-A, index from the printed 74 and 24 %",
            printed=0.97,
            compute=from_printed_numbers(0.24 / (0.74 / 3)),
            tolerance=rounding(0.01),
            note="0.24/(0.74/3), as the text defines the index. Our copy has a dot in place of the "
            "first slash, with which it would be 0.059. This may be an error of the paper, or the "
            "sign was misread when our copy was made; we cannot tell. Tolerance: rounding of the "
            "print.",
        ),
        Record(
            "section IV-D, D buffer at 10 Mbit/s",
            printed=31.25,
            compute=from_printed_numbers(0.1 * 10e6 * 0.25 / 8 / 1000),
            tolerance=1e-9,
            note="KB: a tenth of 250 ms of the link.",
        ),
        Record(
            "figure 3, buffer of the dumbbell's bottleneck",
            printed=None,
            blocked="C times 250 ms is an input: there is nothing to compute. Our copy lacks the "
            "picture.",
        ),
    ]


RECORDS = (*windows(), *senders(), *scheduler(), *numbers())
