"""Finds out whether ns-2's Vegas measures a far too small baseRTT after a burst at a RED queue.

Once per round trip ns-2's Vegas computes an RTT: the mean of the RTT samples of the round trip. A
packet that was sent twice gives no sample. If a round trip has no samples, Vegas takes the length
of the round trip as its RTT. A round trip ends with the ACK of the first packet that was sent after
it began (tcp-vegas.cc: ``v_begseq_``, ``v_begtime_``, ``v_cntRTT_``). If a round trip without
samples is very short, its length becomes a far too small baseRTT. ``docs/ns2.md`` says how often
this happens.

How can a round trip be so short? It happens if RED drops several successive packets of Vegas. We
call these packets a run.

- After its timeout Vegas sends the run again, in trains of 2, 2, 4, 4, 8, 8 ... packets, because
  its slow start doubles the window in every other round trip. The first ACK of each train ends a
  round trip and begins the next one.
- The packets behind the run arrived before the timeout. So the ACK of the last packet of the run
  also acknowledges the packets behind the run, and ends the round trip. This round trip began with
  the first ACK of the same train, only a few ACKs before. None of its ACKs gives a sample, because
  each packet of the run was sent twice.

This happens only if two conditions hold:

- The run does not begin before a certain packet P. P is the packet whose ACK would have ended the
  round trip of the first loss if no packet had been lost. All packets that a flow has in flight are
  a block (``blocks.py``). If the first lost packet is the first packet of its block, P is this
  packet. Otherwise P is the first packet of the flow's next block.
- Vegas does not repair all losses up to P before the timeout. If it did, the ACK of P would end the
  round trip, and the next round trip would end only with the ACK of a packet sent after the run.
  But Vegas repairs at most two losses before the timeout: the first at the third duplicate ACK, the
  second one round trip later (``v_worried_``). The RTT samples of these repairs contain the time
  that the repairs take. Such long samples make Vegas's fine timeout too long for a third repair.
"""

from __future__ import annotations

import numpy as np

from vegasmodel.engines.fluid.sampled.records import Sender
from vegasmodel.engines.tables import rare

REPAIRED = 2.0  # losses that Vegas repairs before its timeout


@rare
def acks_of_train(flow: Sender, W: float) -> float:
    """The length of the short round trip: how many ACKs after its first ACK it ends.

    RED has dropped ``flow.run`` successive packets, a run. After the timeout Vegas sends them again
    in trains of 2, 2, 4, 4 ... packets. One of these trains contains the last packet of the run.
    The short round trip begins with the first ACK of this train and ends with the ACK of the run's
    last packet. If the first packet of the train is the last of the run, there is no short round
    trip, and the result is 0.

    ``W`` is the window before the loss. Slow start ends at half of it.
    """
    # ``unsent`` is the number of packets of the run that Vegas has not yet sent again, and
    # ``train`` the size of its next train. ``grows`` says whether the train after that one is
    # longer.
    unsent, train, grows = flow.run, 2.0, flow.doubles == 0
    while unsent > train:
        unsent -= train
        train = max(min(2.0 * train, np.floor(0.5 * W)), train) if grows else train
        grows = not grows
    return max(unsent - 1.0, 0.0)


@rare
def count_block_packet(flow: Sender, lost: bool) -> None:
    """Count a packet of the flow's present block, which RED has dropped (``lost``) or accepted.

    A block is the packets that a flow has in flight, one behind the other. P is the packet whose
    ACK would have ended the round trip of the first loss (see the top of this file). The function
    updates these fields of the flow:

    - ``passed`` and ``clean``: how many packets of this block RED has accepted, and how many of
      them before its first drop in the block.
    - ``first_block``: the last block ahead of P. So P is the first packet of the next block.
    - ``lost_before`` and ``lost_beyond``: losses ahead of P, and losses of P and behind it.
    - ``from_begin``: whether the losses of ``lost_beyond`` begin with the first packet of a block.
    - ``run``: how many successive packets RED has just dropped, from P on.
    - ``short_round``: the number of ACKs in the short round trip whose length may become Vegas's
      baseRTT (``lose_base``). It is set when an accepted packet ends the first run.
    """
    if not lost:
        flow.passed += 1.0
        if flow.run > 0.0 and flow.short_round == 0.0:
            flow.short_round = acks_of_train(flow, flow.in_flight)
        flow.run = 0.0
        return
    if flow.clean < 0.0:  # the first drop in this block
        flow.clean = flow.passed
    if flow.undetected <= 0.0:  # the first loss, which sets P
        # P is this packet itself if it is the first of its block, else the first of the next block
        flow.first_block = flow.block - (1.0 if flow.passed == 0.0 else 0.0)
        flow.run, flow.short_round, flow.lost_before, flow.lost_beyond = 0.0, 0.0, 0.0, 0.0
    if flow.block <= flow.first_block:
        flow.lost_before += 1.0
        return
    if flow.lost_beyond == 0.0:
        flow.from_begin = flow.passed == 0.0
    flow.run, flow.lost_beyond = flow.run + 1.0, flow.lost_beyond + 1.0


@rare
def lose_base(flow: Sender, c: float, W: float, arrived: float, fast: bool) -> None:
    """At a timeout, let the duration of a short round trip become Vegas's baseRTT, if there is one.

    The short round trip, the run of lost packets that leads to it, and the packet P are described
    at the top of this file. Before the losses ``W`` packets were in flight, and ``arrived`` of them
    have arrived. ``fast`` says whether Vegas has repaired losses before the timeout. ACKs come one
    transmission time of the link apart; ``c`` is its capacity.

    The short round trip occurs only if a packet behind the run has arrived. This may be one of the
    packets that were in flight with the run. If all packets in flight behind the run are lost, too,
    it may be a new packet that a duplicate ACK has released. A duplicate ACK adds a packet to the
    window, so it releases a new packet only after earlier ones have made up for the cut of the
    window.
    """
    # P is the first packet of its block, and ``from_begin`` says that it is lost.
    losses_up_to_P = flow.lost_before + (1.0 if flow.from_begin else 0.0)
    if fast and losses_up_to_P <= REPAIRED:  # Vegas has repaired all of them before the timeout
        return
    acks = flow.short_round
    if acks == 0.0 and fast and arrived > np.floor((1.0 - flow.decrease) * W):
        acks = acks_of_train(flow, W)  # a duplicate ACK has released a new packet
    if acks > 0.0:
        base_rtt = acks / c
        flow.over_estimate = min(flow.over_estimate, base_rtt - (flow.rtt - flow.wait))
