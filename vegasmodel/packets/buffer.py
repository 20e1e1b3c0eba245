"""Estimates from a trace the buffer of its bottleneck, and the probability of random losses.

If the trace records the length of the bottleneck's queue, the buffer is estimated from the greatest
length. Otherwise it is estimated from the RTTs (``full_queue.py``). A loss counts as random if the
queue was not full at the time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from vegasmodel.fields import kinds
from vegasmodel.metrics import Floats
from vegasmodel.packets.busy_times import carried
from vegasmodel.packets.capacity import bottleneck, in_mean_size, of_flows
from vegasmodel.packets.estimated import Estimate
from vegasmodel.packets.full_queue import ENOUGH_LOSSES, longest_wait, noise_of
from vegasmodel.packets.gaps import packets_in_all
from vegasmodel.packets.trace import Trace

__all__ = ["buffer_of", "loss_of", "lost_packets"]

# a queue overflowed only if at least this part of the drops came at its longest length
MIN_PART_AT_LONGEST = 0.1
NEGLIGIBLE_QUEUE = 2  # packets: a link whose queue is never longer is not taken to overflow


@kinds.checked
def lost_packets(trace: Trace) -> bool | None:
    """Whether a packet was lost or retransmitted; ``None`` if the trace does not tell.

    The result is ``None`` if the trace shows no such packet, and for some flow it records neither
    losses nor retransmissions.
    """
    found = [trace.known(name) for name in ("loss", "retransmits")]
    counts = [values for values in found if values is not None]
    if any(np.nansum(values) > 0 for values in counts):
        return True
    recorded = [np.isfinite(values).any(axis=0) for values in counts]
    return False if recorded and bool(np.any(recorded, axis=0).all()) else None


# Whether the longest queue is the buffer or only a lower bound of it, by the result of
# ``lost_packets``. These texts become part of an estimate's text ``how``.
BOUNDS = {
    True: "the queue overflowed",
    False: "nothing was lost: a lower bound",
    None: "the trace does not tell whether packets were lost: a lower bound",
}


def buffer_of(
    trace: Trace, capacity: Estimate | None, rtts: Mapping[str, Estimate]
) -> tuple[Estimate | None, int]:
    """Estimate the buffer of a trace's bottleneck, and count the random losses.

    The estimate uses the lengths of the bottleneck's queue if the trace has them. Otherwise it is
    computed from RTTs, each flow's RTT with an empty queue (``rtts``) and the ``capacity``. It is
    ``None`` if the trace does not tell enough.

    If packets differ in size, RTTs tell only how many bytes waited. The estimate is then the number
    of packets of the mean size that have so many bytes. Its range begins with the number of the
    largest packets that have so many.

    A loss is random if it came while the queue was not full. The number of random losses is 0
    unless most losses were random.
    """
    lost, resent = lost_packets(trace), trace.known("retransmits")
    bound = BOUNDS[lost]
    link, largest = bottleneck(trace), trace.known("queue_max")
    if link is not None and largest is not None and np.isfinite(largest[:, link]).any():
        return _of_lengths(trace, link, lost)
    rtt = trace.known("rtt")
    if rtt is None or capacity is None or not rtts:
        return None, 0
    # ACKs of packets behind a lost one are delayed until it has been sent again. So RTTs from
    # intervals with retransmissions are left out, unless the reader of the trace did so already.
    clean = "none across retransmissions" in trace.provenance.get("rtt", "")
    if resent is not None and not clean:
        rtt = np.where(resent > 0, np.nan, rtt)
    rate, largest_size = in_mean_size(trace, capacity)
    waits = carried(trace, rtt - of_flows(trace, rtts), rate)
    wait, how, random = longest_wait(trace, waits)
    if not wait > 0:
        return None, random
    # Little's law: the packets that waited = the longest wait times the capacity
    longest_queue = wait * rate
    if lost:  # a mean or a sample can miss the longest queue of its interval
        bound = "packets were lost, but an interval's RTT is not its largest: a lower bound"
    # The least number of packets that may have waited. A part of the wait may be noise, and as many
    # bytes are fewer packets if these are large.
    noise = noise_of(trace, waits, 1.0 / rate)
    least = max(wait - noise, 0.0) * rate / largest_size
    if least < longest_queue:
        reasons = [
            *(["RTTs vary by noise or bursts"] if noise > 0.0 else []),
            *(["packets differ in size"] if largest_size > 1.0 else []),
        ]
        counted = "; packets of the mean size are counted" if largest_size > 1.0 else ""
        bound = f"{bound.removesuffix(': a lower bound')}, so the buffer may be larger{counted}; "
        bound += f"{least:.3g} pkt are a lower bound, because {' and '.join(reasons)}"
    how = f"({how} - baseRTT) capacity; {bound}"
    return Estimate(longest_queue, least, np.inf, "pkt", how), random


def _of_lengths(trace: Trace, link: int, lost: bool | None) -> tuple[Estimate, int]:
    """The buffer of a link by the longest queue in each interval, and the number of random losses.

    ``lost`` says whether any packet was lost or sent again. If packets were dropped because the
    queue was full (``_overflowed``), the longest queue is the buffer. Otherwise the queue may never
    have been full, and the longest queue is a lower bound.

    A loss is random if no link had its longest queue in the same interval. Some links are not
    considered here: this link, if its queue was never full, and other links whose queues never
    have more than ``NEGLIGIBLE_QUEUE`` packets. The number of random losses is 0 in three cases:
    there are fewer than ``ENOUGH_LOSSES`` losses, at most half of the intervals with losses have
    random ones, or it cannot be told whether the queue was full.
    """
    largest, dropped = trace.get("queue_max"), trace.known("loss")
    largest = np.nan_to_num(np.zeros((1, 1)) if largest is None else largest)  # [interval, link]
    tops = largest.max(axis=0)  # the longest queue of each link
    longest_queue, bound, random = float(tops[link]), BOUNDS[lost], 0
    overflowed: bool | None = False
    drops = np.zeros(0) if dropped is None else np.nansum(dropped, axis=1)  # in each interval
    if lost and not drops.sum() > 0:
        bound = "packets were sent again, but the trace shows no drops: a lower bound"
    elif lost:
        at_longest = largest >= tops  # whether a link had its longest queue: [interval, link]
        served = trace.known("served")
        packets = np.diff(trace.edges)
        packets = packets if served is None else np.nan_to_num(served[:, link]) * packets
        overflowed = _overflowed(at_longest[:, link], drops, packets)
        if overflowed is None:
            bound = "packets were lost, but too few, or so many waited too often, to tell whether "
            bound += "the queue was full: a lower bound"
        else:
            may_be_full = tops > NEGLIGIBLE_QUEUE  # [link]
            may_be_full[link] = overflowed
            random = _random_losses(at_longest[:, may_be_full], drops)
            if not overflowed:
                bound = "packets were lost while fewer waited: a lower bound"
    high = longest_queue if overflowed else np.inf
    how = f"most packets that waited; {bound}"
    return Estimate(longest_queue, longest_queue, high, "pkt", how), random


def _random_losses(full: NDArray[np.bool_], drops: Floats) -> int:
    """How many packets were lost while no queue was full; 0 unless most losses were such.

    ``full`` [interval, link] says whether each queue was full, and ``drops`` [interval] how many
    packets were lost.  The result is also 0 if there are fewer than ``ENOUGH_LOSSES`` losses.
    """
    none_full = ~np.any(full, axis=1)  # [interval]
    if drops.sum() >= ENOUGH_LOSSES and np.mean(none_full[drops > 0]) > 0.5:
        return round(float(drops[none_full].sum()))
    return 0


def _overflowed(longest: NDArray[np.bool_], drops: Floats, packets: Floats) -> bool | None:
    """Whether packets were dropped because the queue was full; ``None`` if this cannot be told.

    The arguments have one value per interval: whether the queue had its ``longest`` length, and the
    numbers of ``drops`` and of all ``packets``.

    The queue was full if three conditions hold:

    - At least the fraction ``MIN_PART_AT_LONGEST`` of all drops came at the longest length.
    - More drops came at the longest length than chance explains. If drops did not depend on the
      queue, the longest length would have the same part of the drops as of the packets. The number
      of drops there must exceed this by two standard deviations.
    - At least half of all drops came at the longest length, or the queue reached this length more
      than once. A full queue always has the same length, but the peaks of a RED queue differ.

    The answer is unknown if there are few drops, or if the queue has its longest length most of the
    time. In these cases chance could explain it if all drops came at the longest length.
    """
    number, at_longest = float(drops.sum()), float(drops[longest].sum())
    part = float(packets[longest].sum() / packets.sum()) if packets.sum() > 0 else 1.0
    # mean plus two standard deviations of the binomial number of drops at the longest length
    chance = number * part + 2.0 * math.sqrt(number * part * (1.0 - part))
    if number <= chance:
        return None
    enough = at_longest >= MIN_PART_AT_LONGEST * number and at_longest > chance
    # how often the queue rose to its longest length
    arrivals = np.count_nonzero(np.diff(longest, prepend=False) & longest)
    return bool(enough and (2 * at_longest >= number or arrivals > 1))


def loss_of(trace: Trace, losses: int) -> Estimate | None:
    """The probability that a packet is lost at random, if ``losses`` packets were lost in this way.

    The range of the estimate extends two standard deviations to either side of the value, as for
    independent losses.
    """
    delivered = packets_in_all(trace)
    packets = 0.0 if delivered is None else float(np.nansum(delivered))
    if not packets > 0:
        return None
    sent = packets + losses
    low, high = ((losses + side * 2 * math.sqrt(losses)) / sent for side in (-1, 1))
    how = "losses per packet sent; most came, at random or by RED, while the queue was not full"
    return Estimate(losses / sent, max(low, 0.0), min(high, 1.0), "", how)
