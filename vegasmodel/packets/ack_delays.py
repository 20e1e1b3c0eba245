"""Tells from a trace whether the receivers delay their ACKs.

A receiver that delays its ACKs sends one ACK for two packets (RFC 1122). If no second packet comes,
it acknowledges the first one alone after a while, in Linux after 40 to 200 ms.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vegasmodel.fields import kinds
from vegasmodel.packets.gaps import first_and_last_packets, packets_in_all
from vegasmodel.packets.readers.segments import ACK_DELAY
from vegasmodel.packets.trace import Trace

__all__ = ["AckDelay", "ack_delays"]


class AckDelay(NamedTuple):
    """Whether a flow's receiver delays its ACKs (``delayed``), with the evidence as text (``how``).

    If ``certain`` is false, ``delayed`` is only a guess.
    """

    delayed: bool
    certain: bool
    how: str


@kinds.checked
def ack_delays(trace: Trace) -> dict[str, AckDelay]:
    """Whether the receiver of each flow delays its ACKs, by the flow's name.

    A receiver that delays its ACKs usually sends one ACK for two packets. But it acknowledges some
    packets alone: at the start of a flow, behind a lost packet, and if the next packet comes late.
    So the function takes the median number of packets per ACK over the flow's packets. If it is
    two, the receiver delays its ACKs; if it is one, it does not. The answer is uncertain in three
    cases:

    - The median is one, but the flow delivers less than one packet in 40 ms. Then each ACK may be a
      delayed one.
    - The median is three or more. Then the receiver's network card joins packets, or many ACKs do
      not reach the sender.
    - The trace does not show how many packets the flow's ACKs acknowledge.

    The result is empty if the last case holds for all flows. The number of packets per ACK is known
    from packet captures, and from traces of ns-2 and ns-3 that list packets or have ns-2's variable
    ``ack_``.
    """
    per_ack = trace.known("packets_per_ack")
    if per_ack is None:
        return {}
    with np.errstate(over="ignore"):  # a trace may hold absurd times
        life = np.diff(first_and_last_packets(trace), axis=1)[:, 0]
    packets = packets_in_all(trace)
    packets = np.full(len(life), np.nan) if packets is None else packets
    return {
        name: _delay(per_ack[i], float(packets[i]) * ACK_DELAY > float(life[i]))
        for i, name in enumerate(trace.flows)
    }


def _delay(per_ack: float, dense: bool) -> AckDelay:
    """Whether a receiver delays its ACKs, by the median number of packets per ACK.

    ``dense`` says whether, on average, the next packet comes within ``ACK_DELAY``, the least time
    for which a receiver delays an ACK. Then an ACK of one packet is not a delayed one.
    """
    if np.isnan(per_ack):
        return AckDelay(False, False, "the trace has too few ACKs of this flow")
    if per_ack >= 2.5:
        why = "packets were joined at the receiver, or ACKs left out on their way"
        return AckDelay(
            True, False, f"an ACK acknowledges {per_ack:g} packets (median), as if {why}"
        )
    if per_ack >= 1.5:
        return AckDelay(True, True, "an ACK acknowledges 2 packets (median)")
    if dense:
        return AckDelay(False, True, "an ACK acknowledges 1 packet (median)")
    why = f"packets come more than {ACK_DELAY * 1e3:g} ms apart, so each ACK may be a delayed one"
    return AckDelay(False, False, f"an ACK acknowledges 1 packet (median), but {why}")
