"""Lists what the simulator ``rounds`` assumes about a scenario, and whether it holds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vegasmodel.engines.rounds.resolution import is_coarse
from vegasmodel.engines.rounds.run import Totals
from vegasmodel.fields.lists import few
from vegasmodel.metrics import Floats, percent
from vegasmodel.results import scatter
from vegasmodel.results.assumption import Assumption
from vegasmodel.scenario import Scenario
from vegasmodel.scenario.placement import left_out_of_laws, shut_links, stack

__all__ = ["assumptions", "left_out"]

BELOW_RTT = 0.99  # a baseRTT below this part of the empty path's RTT counts as too low


def assumptions(
    scenario: Scenario, outcomes: Sequence[Totals], rates: Floats, *, chance: bool
) -> tuple[Assumption, ...]:
    """The assumptions to print with a prediction; each says whether it holds.

    ``outcomes`` are the runs. ``rates`` are their throughputs in packets/s, [runs, flows].
    ``chance`` is True if another run could give other throughputs.
    """
    grouped = is_coarse(scenario)
    many = "a round trip has so many packets that they are simulated in groups near losses, too"
    return (
        *left_out(scenario),
        Assumption("packets-one-by-one", not grouped, many if grouped else ""),
        _every_ack_arrives(scenario, outcomes),
        scatter.insensitive(scenario, rates),
        scatter.enough_runs(scenario, rates, chance=chance),
        *_base_rtt_too_low(scenario, outcomes),
        *_base_reset(scenario, outcomes),
    )


def left_out(scenario: Scenario) -> tuple[Assumption, ...]:
    """The assumptions that this simulator makes because it lacks some features.

    An assumption holds if the scenario does not need the feature. The features are some details of
    congestion controls, and packets that ns-2 drops on purpose at a link (``Link.drops``). Another
    feature is how ns-2 treats a link with a tiny buffer (``_passes_packets``).
    """
    forced = any(link.drops for link in scenario.crossed)
    lacking = left_out_of_laws(scenario, counted=True)
    dropping = "`rounds` does not drop the packets that the key `drops` of a link names"
    return (
        *([Assumption("whole-laws", False, lacking)] if lacking else ()),
        Assumption("no-forced-drops", not forced, dropping if forced else ""),
        *_passes_packets(scenario),
    )


def _passes_packets(scenario: Scenario) -> tuple[Assumption, ...]:
    """The assumption that ns-2 lets packets through every link; empty if it holds.

    ns-2 drops every packet at a link whose buffer is too small (``shut_links``). In this simulator
    an idle link transmits a packet, however small the buffer is.
    """
    shut = shut_links(scenario)
    said = (
        f"ns-2 drops every packet at {few(shut)}, whose buffer is below 2 packets (1 with RED); in "
        "this simulator one packet at a time passes"
    )
    return (Assumption("ns2-passes-packets", False, said),) if shut else ()


def _every_ack_arrives(scenario: Scenario, outcomes: Sequence[Totals]) -> Assumption:
    """The assumption that no ACK meets a full queue. The simulator lets such an ACK arrive."""
    name = "every-ack-arrives"
    sent = np.sum([o.flows["sent"] for o in outcomes], axis=0)
    # for each packet that a flow has sent, [flow]
    acks_lost = np.sum([o.flows["acks_lost"] for o in outcomes], axis=0) / np.maximum(sent, 1.0)
    most_first = np.argsort(-acks_lost, kind="stable")
    losers = [scenario.members[i] for i in most_first if acks_lost[i] > 0.0]
    if not losers:
        return Assumption(name, True)
    detail = (
        f"for up to {percent(acks_lost.max())} of a flow's packets the ACK met a full queue "
        f"({few([m.name for m in losers])}); the simulator lets it arrive all the same. A real "
        "sender with one or two packets in flight then waits for a timeout"
    )
    if any(m.flow.keeps_backlog and stack(scenario, m.flow).resets_base for m in losers):
        detail += ", and ns-2's Vegas may take a longer RTT as its baseRTT"
    return Assumption(name, False, detail)


def _base_rtt_too_low(scenario: Scenario, outcomes: Sequence[Totals]) -> tuple[Assumption, ...]:
    """The assumption that baseRTT is at least the RTT of the empty path; empty if it holds.

    It fails if a flow's baseRTT was lower at the end of a run. In ns-2, Vegas's baseRTT can fall so
    low after a timeout (``docs/ns2.md``). Flows with random delays (``delay_noise``) are not
    examined: some of their packets can be faster than the RTT of the empty path.
    """
    rtt = np.array([m.rtt if m.flow.delay_noise == 0.0 else 0.0 for m in scenario.members])
    base = np.array([one.base for one in outcomes])  # NaN if loss-based
    too_low = np.less(base, BELOW_RTT * rtt)
    if not too_low.any():
        return ()
    low = [member for i, member in enumerate(scenario.members) if too_low[:, i].any()]
    detail = (
        f"in {np.count_nonzero(too_low.any(axis=1))} of {len(outcomes)} runs the baseRTT of "
        f"{few([member.name for member in low])} fell below the propagation delay"
    )
    if any(m.flow.keeps_backlog and stack(scenario, m.flow).resets_base for m in low):
        detail += "; ns-2's Vegas can measure such a baseRTT after a timeout"
    return (Assumption("base-rtt-above-propagation", False, detail),)


def _base_reset(scenario: Scenario, outcomes: Sequence[Totals]) -> tuple[Assumption, ...]:
    """The assumption that Vegas keeps the baseRTT that the scenario gives; empty if it holds.

    If at most one packet is sent in a round trip, ns-2's Vegas takes the RTT of this round trip as
    its baseRTT (``rttLen <= 1`` in tcp-vegas.cc). It does so even if the scenario gives the baseRTT
    (``over_estimate``). The simulator keeps the given baseRTT.
    """
    given = np.array([m.flow.keeps_backlog and not m.flow.measures_base for m in scenario.members])
    resets = np.array([stack(scenario, m.flow).resets_base for m in scenario.members])
    alone = np.array([one.flows["lone_rtt"] for one in outcomes])  # 0 if no such round trip was
    base = np.array([one.base for one in outcomes])
    reset = given & resets & (BELOW_RTT * alone > base)
    if not reset.any():
        return ()
    names = few([member.name for i, member in enumerate(scenario.members) if reset[:, i].any()])
    detail = (
        f"in {np.count_nonzero(reset.any(axis=1))} of {len(outcomes)} runs {names} sent only one "
        f"packet in a round trip of up to {alone[reset].max():.3g} s; ns-2's Vegas then takes this "
        "RTT as its baseRTT, the simulator keeps the one that `over_estimate` gives"
    )
    return (Assumption("given-base-rtt-stays", False, detail),)
