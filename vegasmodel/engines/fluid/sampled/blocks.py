"""Keeps the packets of two flows in order at a RED queue, for some round trips after a burst.

In a recovery a NewReno source repairs one lost packet per round trip. The ACK that ends the
recovery releases a whole window at once: a burst. If both flows have the same RTT, all packets that
a flow has in flight follow one another as a block, and blocks of the two flows take turns. The
burst is such a block, too. A block of the other flow arrives after it. Then arrives the block that
the ACKs of the burst release, and so on.

RED's average queue rises after a burst, and RED may drop every packet for a while. Then the order
of the blocks decides how many packets in a row each flow loses. So ``block_by_block`` (in
``random_drops.py``) lets the packets arrive one by one, in the order of the blocks.

The packets of a block arrive at the link's rate. The next block of the same flow begins to arrive
one round trip after this block has begun to arrive. The round trip includes the wait of this
block's first packet in the queue. ACKs release packets of the next block only until the first
duplicate ACK. So the next block has as many packets as this block had before its first loss.

This module is used only if one of the two flows is ns-2's Vegas. The order of the blocks then
decides whether Vegas measures a far too small baseRTT (``short_round.py``). The module is not used
in two cases. If there are more than two flows, the order of their blocks is not known. If the link
was idle before the burst, the other flow's block need not follow the burst at once.

A flow that waits for its retransmission timer sends no blocks. Its next block is the packets that
it sends at the timeout.

In the functions, ``now`` is the link's present state, and ``c`` its capacity in pkt/s.
"""

from __future__ import annotations

from vegasmodel.engines.fluid.sampled.records import NEVER, LinkState, Sender, moving
from vegasmodel.engines.tables import Table, rare

# There are two flows. After a burst of one of them, the packets of both arrive at the link in
# blocks for ``ROUND_TRIPS`` round trips. A block is all packets that a flow has in flight. In the
# first round trip, the burst and a block of the other flow arrive. Their ACKs release two new
# blocks, one of each flow, which arrive in the second round trip. In the third round trip, further
# blocks arrive, and the senders learn which packets of the second round trip were lost. After the
# third round trip this simulator no longer lets packets arrive in blocks.
ROUND_TRIPS = 3.0


@rare
def line_up_behind(
    flows: Table[Sender], first: int, now: LinkState, c: float, queue: float
) -> None:
    """Let the block of the other flow begin just behind a burst of flow ``first``.

    There are only two flows. A block is the packets that a flow has in flight, one behind the
    other. ``queue`` is the number of packets that wait now. From now on packets arrive block by
    block, until ``now.ordered_until``. For both flows the count of blocks, and that of the losses
    from which ns-2's Vegas may measure a wrong baseRTT (``short_round.py``), begin anew. ``c`` is
    the capacity in pkt/s.
    """
    for i in range(len(flows)):
        flow = flows[i]
        flow.block, flow.first_block = 0.0, NEVER
        flow.run, flow.short_round, flow.lost_before, flow.lost_beyond = 0.0, 0.0, 0.0, 0.0
        if i != first:  # the first packet of its block arrives one transmission time after now
            flow.block_began = now.time + 1.0 / c
            flow.block_next = flow.block_began + flow.rtt + queue / c
            flow.block_size = moving(flow) if flow.timeout_ends <= now.time else 0.0
            flow.clean, flow.passed = -1.0, 0.0  # none of its packets has reached the queue yet
    now.ordered_until = now.time + ROUND_TRIPS * (flows[first].rtt + queue / c)


@rare
def burst_is_block(
    flow: Sender, now: LinkState, c: float, queue: float, clean: float, passed: float
) -> None:
    """Record that a burst of the flow arrives now: it becomes the flow's present block.

    A block is the packets that a flow has in flight, one behind the other. ``queue`` packets waited
    before the burst. RED accepted ``passed`` packets of the burst, and ``clean`` of these came
    before the first packet that it dropped (-1: it dropped none). ``c`` is the capacity in pkt/s.
    """
    flow.block_began, flow.block_size, flow.clean, flow.passed = now.time, 0.0, clean, passed
    flow.block_next = now.time + flow.rtt + queue / c


@rare
def begin_block(flow: Sender, now: LinkState, c: float, queue: float) -> None:
    """Begin the flow's next block, whose first packet finds ``queue`` packets waiting.

    A block is the packets that a flow has in flight, one behind the other. The ACKs of one block
    release the next block. ``c`` is the capacity in pkt/s.
    """
    flow.block_began = flow.block_next
    flow.block_next += flow.rtt + queue / c
    # as many packets as ACKs of the last block came before the first duplicate ACK
    flow.block_size = flow.clean if flow.clean >= 0.0 else flow.passed
    if flow.timeout_ends > now.time:  # it waits for its retransmission timer and sends nothing
        flow.block_size = 0.0
    elif flow.timeout_ends == flow.block_began:  # the block is what it sends at the timeout
        flow.block_size = moving(flow)
    flow.clean, flow.passed = -1.0, 0.0
    flow.block += 1.0
    # Runs count from packet P on (``short_round``). P is not known yet, or is in this block or a
    # later one.
    if flow.first_block >= flow.block - 1.0:
        flow.run = 0.0


@rare
def sends(flow: Sender, now: LinkState, t: float, c: float, queue: float) -> bool:
    """Whether a packet of the flow arrives at the time ``t``; ``queue`` packets wait then."""
    if flow.block_began < flow.timeout_ends <= t:  # its next block begins at a timeout
        flow.block_next = flow.timeout_ends
    if t >= flow.block_next:
        begin_block(flow, now, c, queue)
    return flow.block_began <= t < flow.block_began + flow.block_size / c
