"""Section 3 of De Vendictis and Baiocchi: hypotheses, losses, the cycle and the throughputs.

The paper models a Vegas and a Reno source at one link, from one overflow of the buffer to the next.
T is the RTT without queueing in s, which the paper does not state, B the buffer in packets, and mu
the capacity in pkt/s.
"""

import itertools
from functools import partial

from paper_checks.checks import Found, Record, by_theory, formula
from paper_checks.devendictis.scenes import (
    ALPHA,
    AVERAGED_FOR,
    BUFFERS,
    FORMS,
    LAM,
    MU,
    NO_T,
    ROOM,
    RUN,
    T_TRIED,
    T_TRIED_AS_TEXT,
    model,
    vegas_alone,
    with_limit,
    with_room,
)
from paper_checks.runs import Runs


def after_loss(runs: Runs) -> Found:
    """Vegas's window after the loss of one packet, divided by its window without the loss."""
    only = 0  # the index of the only source
    mean, least, largest = runs(vegas_alone()).window[:, only]
    # if packet 8000 is lost: the least window, just after the loss
    _, after, _ = runs(vegas_alone(8000)).window[:, only]
    return Found(
        float(after / mean),
        detail=f"{after:.1f} over {mean:.1f} packets; without a loss the window moves from "
        f"{least:.1f} to {largest:.1f}.",
    )


def cut(runs: Runs) -> float:
    """Reno's least window divided by its largest, in the run of figure 3 at T = 80 ms, B = 20.

    T is the RTT without waiting, and B the buffer in packets.  The window is smallest after a loss
    and largest before it, so this is the factor of a loss.
    """
    reno = 1  # the index of this source
    _, least, largest = runs(with_limit(0.08, 20.0)).window[:, reno]  # mean, least, largest
    return float(least / largest)


def losses() -> list[Record]:
    """The records of equations (8) and (9), by which a loss cuts the windows."""
    return [
        formula(
            "equation 8",
            printed=0.5,
            compute=cut,
            tolerance=0.02,
            note="Least over largest window of Reno at T 80 ms, B 20; one run of ns-2 2.35, "
            "sampled every 2.5 s. Tolerance: 0.02, that is 1.7 of 87 packets.",
        ),
        Record(
            "equation 9",
            printed=LAM,
            compute=after_loss,
            prints=("3/4",),
            tolerance=0.02,
            note="Least window of a single Vegas source after the loss of one packet, over its "
            "mean window without a loss; T 80 ms, ns-2 2.35, 7 to 16 s. Tolerance: 0.02, that is "
            "1.8 of 90 packets, about as far as the window moves from its mean without a loss.",
        ),
    ]


def throughputs() -> list[Record]:
    """The records of the two throughputs, and of figure 2, the course of the windows in a cycle.

    A cycle from loss to loss has the mini-cycles (round trips) 1 to N. The link is full from
    mini-cycle a on, and Vegas is in equilibrium from b on. Lambda is a source's throughput: its
    packets in a cycle, P, over the duration of the cycle, Delta.
    """
    from vegasmodel.equilibrium import minicycle

    cycle = minicycle.solve(capacity=MU, rtt=0.08, buffer=20.0, alpha=ALPHA, decrease=LAM)
    forms = {form: model(T=0.08, B=20.0, form=form) for form in FORMS}
    a, b, N = float(cycle.a), float(cycle.b), float(cycle.N)
    return [
        *(
            formula(
                f"section 3, Lambda_{name} at figure 4's buffer",
                printed=forms["printed"][i],
                compute=by_theory(forms["derived"][i]),
                tolerance=1 / float(cycle.period),
                note="pkt/s at mu 1080, T 80 ms, B 20. printed: the printed formulas; computed: "
                "the formulas that we derived from the same premises. Tolerance: one packet in a "
                "cycle: the limits a, b and N of the sums are no whole numbers, and where such "
                "sums end is a convention.",
                erratum="P/Delta has the error of B_V, by which Vegas sends a (b-a) packets too "
                "many in a cycle."
                if i == 0
                else "",
                statement="section 3, B_V",
            )
            for i, name in enumerate(("Vegas", "Reno"))
        ),
        Record(
            "figure 2, three phases: 1 <= a <= b <= N",
            compute=by_theory(
                Found(
                    1 <= a <= b <= N,
                    detail=f"a, b, N: {a:.1f}, {b:.1f}, {N:.1f}.",
                )
            ),
            note="mu 1080, T 80 ms, B 20, by the formulas as we derived them. Our copy lacks the "
            "picture.",
        ),
    ]


def _link_idle_at_times(runs: Runs) -> Found:
    """Whether the link is idle at times, for each buffer and each RTT T.

    By the paper's hypothesis 4 the buffer is empty when congestion avoidance begins after a loss.
    The link is idle only while the buffer is empty.  So if the link is never idle, the hypothesis
    is wrong.
    """
    used = {(T, B): runs(with_room(T, B)).utilization for T in T_TRIED for B in BUFFERS}
    text = "; ".join(
        f"B = {B:g}: {', '.join(f'{100 * used[T, B]:.1f}' for T in T_TRIED)}" for B in BUFFERS
    )
    return Found(max(used.values()) < 0.999, detail=f"Percent used, {T_TRIED_AS_TEXT}: {text}.")


def _vegas_losses(B: float, runs: Runs) -> Found:
    """Whether Vegas loses packets at the buffer ``B``, for each RTT T without queueing.

    The result's detail has Reno's losses.
    """
    lost = [100 * runs(with_room(T, B)).loss_rate for T in T_TRIED]  # percent of Vegas's, of Reno's
    vegas, reno = (", ".join(f"{percent[i]:.3f}" for percent in lost) for i in (0, 1))
    return Found(
        all(percent[0] > 0 for percent in lost),
        detail=f"Percent lost, {T_TRIED_AS_TEXT}: Vegas {vegas}; Reno {reno}.",
    )


def _no_timeouts(runs: Runs) -> Found:
    """Whether no source has a timeout, after which it would send more packets again than it lost.

    The result's detail has the packets sent again over those lost, at each buffer and each RTT T,
    for each source that lost packets.
    """
    found: dict[str, list[float]] = {}  # by source and buffer: the quotient at each T
    for B, T in itertools.product(BUFFERS, T_TRIED):
        measured = runs(with_limit(T, B))
        for name, rate, loss, resent in zip(
            ("Vegas", "Reno"), measured.mean, measured.loss_rate, measured.retransmits, strict=True
        ):
            if loss > 0:
                # of the packets sent, the part 1 - loss is delivered and the part loss is lost
                lost = AVERAGED_FOR * rate * loss / (1 - loss)
                found.setdefault(f"{name} at B = {B:g}", []).append(float(resent) / lost)
    text = "; ".join(
        f"{name} {', '.join(f'{ratio:.3f}' for ratio in ratios)}" for name, ratios in found.items()
    )
    return Found(
        max(map(max, found.values())) < 1.01,
        detail=f"Sent again over lost, {T_TRIED_AS_TEXT}: {text}.",
    )


def hypotheses() -> list[Record]:
    """The records of what section 3 assumes about the losses, tested in ns-2.

    The paper does not state the RTT T, so each hypothesis is tested at several T. In the notes,
    names in capitals such as ``NO_T`` stand for texts that several records share.
    """
    return [
        Record(
            "section 3, hypothesis 4: the buffer is empty when congestion avoidance begins",
            compute=_link_idle_at_times,
            note="Read as: the link is idle for more than 0.1 % of the time, as it can be only "
            f"while no packet waits. {NO_T} {ROOM} {RUN}",
        ),
        Record(
            "section 3, hypothesis 3: losses are recovered by fast retransmit",
            compute=_no_timeouts,
            note="Read as: at most 1 % more packets are sent again than were lost. After a timeout "
            "a source would send a whole window again, most of which had arrived. ns-2's limit of "
            f"the buffer is B, 5 to 30. {NO_T} {RUN}",
        ),
        *(
            Record(
                f"section 3, hypothesis 5 at B = {B:g}: Vegas loses too",
                compute=partial(_vegas_losses, B),
                note=f"At each T. {NO_T} {ROOM} {RUN}",
            )
            for B in (5.0, 20.0)
        ),
    ]


def quoted() -> list[Record]:
    """Statements that the paper quotes and that nothing here can compute."""
    return [
        Record(
            "figure 1, network model",
            printed=None,
            blocked="A sketch without numbers, which our copy lacks. The other records run the "
            "network that the text describes.",
        ),
        Record(
            "section 1, Vegas 37 to 71 % better than Reno",
            printed=[37, 71],
            blocked="Quoted from other papers, whose networks are not described here.",
        ),
    ]


RECORDS = (*losses(), *throughputs(), *hypotheses(), *quoted())
