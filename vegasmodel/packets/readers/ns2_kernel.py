"""Counts what the lines of an ns-2 trace report, in a loop that Numba compiles.

The function ``scan`` reads a block of the trace line by line. It adds what each line reports, such
as a delivery or a drop, to sums per interval of time. It stops early in two cases:

- There is no room to count the line: its time is after the last interval, or it shows a new flow or
  link and the arrays are full. The caller then makes room and calls ``scan`` again.
- The line is wrong. The caller then raises an error.

In the functions, ``tables`` is a ``Tables`` object. ``flow`` and ``link`` are the arrays of sums
(``Bins.flow`` and ``Bins.link``); their intervals last ``width`` seconds and start at ``begin``.
``f`` is the number of a flow, and ``k`` that of an interval. ``kind`` is the code of a line's first
character, ``seq`` the packet's sequence number, and ``uid`` its number in ns-2.
"""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vegasmodel.packets.readers.bins import (
    ACKS,
    CARRIED,
    DELIVERED,
    LOST,
    QUEUE_MAX,
    RETRANSMITTED,
    RTT_MIN,
    RTT_N,
    RTT_SUM,
    SENT,
    SERVED,
    WAITED,
    WINDOW_N,
    WINDOW_SUM,
)
from vegasmodel.packets.readers.ns2_words import (
    ACK,
    AT,
    BYTES,
    DEQUEUE,
    DROP,
    ENQUEUE,
    GOAL,
    KIND,
    LABEL,
    MAX_LINE,
    NEWLINE,
    NODE1,
    NODE2,
    NUMBER,
    PACKET,
    PORT1,
    PORT2,
    RECEIVE,
    TCP,
    TYPE,
    decimal,
    equal,
    integer,
    jit,
    split,
    unusual,
    usual,
)

# Why ``scan`` stopped: all lines are counted, or a line cannot be counted. Its time is after the
# last interval (BEYOND), the table of flows or links is full, or one of the errors in
# ``ns2_tr._MESSAGES``.
DONE, BEYOND, FLOWS_FULL, LINKS_FULL = range(4)
BAD_LINE, BAD_TIME, BACKWARDS, LONG_LINE, REPEATED = range(4, 9)
# Columns of ``Tables.flow``; -1 where nothing is known yet:
# - FID: the flow id;
# - SRC, SPORT, DST, DPORT: node and port of the source and of the destination, as the lines give
#   them;
# - FIRST_UID: the number (uid) of the flow's first packet;
# - SOURCE, SINK: the nodes at which transmissions and deliveries are counted;
# - HIGH: the highest packet received at SINK;
# - SENT_TO, ACKED: the highest packet that SOURCE has sent, and the highest whose ACK it has got.
FID, SRC, SPORT, DST, DPORT, FIRST_UID, SOURCE, SINK, HIGH, SENT_TO, ACKED = range(11)
# - EVENTS, CWND: 1 if the trace has events of the flow's packets, or its variable ``cwnd_``;
# - SIZE, FULL_FROM: the size of the flow's largest packet in bytes, and the first such packet;
# - REXMIT, DATAPACK: the latest values of ``nrexmitpack_`` and ``ndatapack_``;
# - ACKER: the node at which the flow's ACKs are counted as they leave the sink;
# - SINK_ACKED: the highest packet that these ACKs acknowledge;
# - IN_ORDER: 1 if the latest of them acknowledged new data.
EVENTS, CWND, SIZE, REXMIT, DATAPACK, SINK_ACKED, IN_ORDER, ACKER, FULL_FROM = range(11, 20)
AT_ACKS = 20  # number of packets sent at the time at which an ACK arrived
SYN = 21  # 1 if packet 0 was smaller than a later one
FLOW_COLUMNS = 22
# columns of ``Tables.flow_times``, s: the flow's first and last event, and the arrival of its last
# ACK at the source
FIRST, LAST, LAST_ACK = range(3)
# columns of ``Tables.link``: its two nodes, the packets in its queue, and the uid of the packet
# that joined the queue last
FROM, TO, WAITING, LAST_UID = range(4)
# elements of ``Tables.counts``: flows, links and lines so far, and why ``scan`` stopped
N_FLOWS, N_LINKS, LINES, STATUS = range(4)

MAX_PER_ACK = 100  # packets: an ACK of more counts as an ACK of 100 packets
WORDS = 256  # of 64 bits: a window of packets below the highest one received
# s: a line's time may be earlier than that of the line before by so much, because ns-2 rounds the
# times of variables to 10 us, but not those of events
ROUNDING = 1.1e-5
MAX_TIME = 1e10  # s


class Tables(NamedTuple):
    """What the function ``scan`` remembers from one block of an ns-2 trace to the next.

    ``flow`` has one row per flow and ``link`` one row per link.  Rows are found by hash tables:
    each slot of ``flow_slots`` contains the number of a row of ``flow``, and each slot of
    ``link_slots`` that of a row of ``link``.  A slot with -1 is empty.
    """

    counts: NDArray[np.int64]  # [4] ``N_FLOWS`` to ``STATUS``
    clock: NDArray[np.float64]  # [1] time of the latest line that was counted, s
    flow: NDArray[np.int64]  # [flow, column] columns ``FID`` to ``SYN``
    flow_times: NDArray[np.float64]  # [flow, column] columns ``FIRST`` to ``LAST_ACK``
    flow_slots: NDArray[np.int64]
    received: NDArray[np.uint64]  # [flow, WORDS] a bit for each of the last packets: 1 if received
    per_ack: NDArray[np.int64]  # [flow, k] packets acknowledged by ACKs of k packets each
    link: NDArray[np.int64]  # [link, column] columns ``FROM`` to ``LAST_UID``
    link_times: NDArray[np.float64]  # [link] time of the latest event at the link, s
    link_slots: NDArray[np.int64]
    # the latest transmissions at the sources, for RTTs; a hash table has their slots
    sent_key: NDArray[np.int64]  # [slot, 2] flow and sequence number of a transmission
    sent_time: NDArray[np.float64]  # [slot] the transmission's time, s; NaN if it must give no RTT
    words: NDArray[np.int64]  # [24] starts and ends of a line's words
    event: NDArray[np.int64]  # [12] the numbers of a line's event, ``KIND`` to ``PACKET``
    when: NDArray[np.float64]  # [1] the time of the line that is being read, s


@jit
def _slot(slots, table, columns, a, b, c, d):
    """Find a flow or link in the hash table ``slots``; return the index of its slot.

    The slot contains the number of the flow's or link's row in ``table``.  If the flow or link has
    no row yet, the slot is empty; the caller stores the number of a new row there.

    A flow is given by its source node a, source port b, destination node c and destination port d.
    A link is given by its two nodes a and b. These values are in successive columns of ``table``.
    ``columns`` is the index of the first of these columns: 0 for links, and above 0 for flows.
    """
    mask = np.uint64(slots.size - 1)  # the number of slots is a power of 2
    # the hash ``h``: the four numbers, each times a large odd number, are added and mixed
    h = np.uint64(a) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(b) * np.uint64(0xC2B2AE3D27D4EB4F)
    h += np.uint64(c) * np.uint64(0x165667B19E3779F9) + np.uint64(d) * np.uint64(0x27D4EB2F165667C5)
    place = np.int64((h ^ (h >> np.uint64(37)) ^ (h >> np.uint64(49))) & mask)
    while slots[place] >= 0:
        i = slots[place]
        if (
            table[i, columns] == a
            and table[i, columns + 1] == b
            and (columns == 0 or (table[i, columns + 2] == c and table[i, columns + 3] == d))
        ):
            break
        place = (place + 1) & np.int64(slots.size - 1)
    return place


@jit
def _new_flow(tables, place, fid, src, sport, dst, dport, t):
    """Begin a row for a flow that appears at time t; return its number.

    ``place`` is its slot in the hash table, ``fid`` its flow id (-1 if unknown). The other
    arguments are the nodes and ports of its source and destination.

    ``tables`` (``Tables``) holds a row for each flow that the trace has shown so far.
    """
    f = tables.counts[N_FLOWS]
    tables.counts[N_FLOWS] += 1
    tables.flow_slots[place] = f
    row = tables.flow[f]
    row[:] = 0
    row[FID], row[SRC], row[SPORT], row[DST], row[DPORT] = fid, src, sport, dst, dport
    row[FIRST_UID], row[SOURCE], row[SINK] = -1, -1, -1
    row[HIGH], row[SENT_TO], row[ACKED] = -1, -1, -1
    row[SINK_ACKED], row[ACKER] = -1, -1
    tables.flow_times[f, FIRST] = tables.flow_times[f, LAST] = t
    tables.flow_times[f, LAST_ACK] = -1.0
    tables.received[f, :] = 0
    tables.per_ack[f, :] = 0
    return f


@jit
def _new_link(tables, link_slot, from_node, to_node, t):
    """Begin a row for a link that appears at time t; return its number.

    ``link_slot`` is its slot in the hash table, ``from_node`` and ``to_node`` are its two nodes.
    ``tables`` (``Tables``) holds a row for each link that the trace has shown so far.
    """
    number = tables.counts[N_LINKS]
    tables.counts[N_LINKS] += 1
    tables.link_slots[link_slot] = number
    tables.link[number, FROM], tables.link[number, TO] = from_node, to_node
    tables.link[number, WAITING], tables.link[number, LAST_UID] = 0, -1
    tables.link_times[number] = t
    return number


@jit
def _first_time(tables, f, seq):
    """Whether packet ``seq`` of flow number f is received for the first time.

    The function also marks the packet as received. It keeps marks for about 16,000 packets below
    the highest sequence number received (64 in each of ``WORDS`` words). Any lower packet is taken
    to have been received before. ``tables`` (``Tables``) holds what is remembered of each flow.
    """
    high = tables.flow[f, HIGH]
    # packet ``seq`` has bit seq % 64 of word seq // 64; the words are used in turn
    word, bit = (seq >> 6) % WORDS, np.uint64(1) << np.uint64(seq & 63)
    if seq > high:  # clear the words that are used for the first time, or again
        first = (high >> 6) + 1 if high >= 0 else 0
        for k in range(max(first, (seq >> 6) - WORDS + 1), (seq >> 6) + 1):
            tables.received[f, k % WORDS] = np.uint64(0)
        tables.flow[f, HIGH] = seq
    elif (seq >> 6) <= (high >> 6) - WORDS or tables.received[f, word] & bit:
        return False
    tables.received[f, word] |= bit
    return True


@jit
def _remember(tables, f, seq, t):
    """Store the time t, s, at which packet ``seq`` of flow number f was sent.

    For a packet that must give no RTT, such as a retransmission, t is NaN.  The table of times has
    a fixed size, so a new time may overwrite that of another packet.
    """
    place = (f * 7919 + seq) & (tables.sent_time.size - 1)
    tables.sent_key[place, 0], tables.sent_key[place, 1], tables.sent_time[place] = f, seq, t


@jit
def _sent_at(tables, f, seq):
    """The time that ``_remember`` has stored for a packet; NaN if it was overwritten."""
    place = (f * 7919 + seq) & (tables.sent_time.size - 1)
    if tables.sent_key[place, 0] == f and tables.sent_key[place, 1] == seq:
        return tables.sent_time[place]
    return np.nan


@jit
def _add_rtt(flow, f, k, rtt):
    """Count an RTT in s of flow number f in the interval k."""
    flow[RTT_SUM, f, k] += rtt
    flow[RTT_N, f, k] += 1
    flow[RTT_MIN, f, k] = min(flow[RTT_MIN, f, k], rtt)


@jit
def _data(tables, flow, f, k, kind, t, from_node, to_node, tcp, size, seq, uid):
    """Count an event of a data packet of flow number f, at time t, in the trace's interval k.

    Transmissions (``+``) are counted at the flow's source, deliveries (``r``) at its sink, and
    drops (``d``) at any node.  The source is the first node in the trace that sends the flow's
    data.  The packet is on its way from node ``from_node`` to node ``to_node``, and has ``size``
    bytes. ``tcp`` is false if it has no sequence number of TCP.

    ``tables`` (``Tables``) holds what is remembered of each flow, such as its source.  ``flow`` has
    the counts [quantity, flow, interval].
    """
    tables.flow[f, EVENTS] = 1
    # Forget the RTTs of smaller packets, such as a SYN: their transmission takes less time.
    if size > tables.flow[f, SIZE]:
        # packet 0 was a SYN if it was the largest so far, because this one is larger
        tables.flow[f, SYN] = tcp and tables.flow[f, SIZE] > 0 and tables.flow[f, FULL_FROM] == 0
        tables.flow[f, SIZE], tables.flow[f, FULL_FROM] = size, seq
        flow[RTT_SUM, f, :] = 0.0
        flow[RTT_N, f, :] = 0.0
        flow[RTT_MIN, f, :] = np.inf
    tables.flow_times[f, LAST] = t
    if kind == ENQUEUE:
        _data_sent(tables, flow, f, k, t, from_node, tcp, size, seq, uid)
    elif kind == RECEIVE:
        _data_received(tables, flow, f, k, to_node, tcp, seq, uid)
    elif kind == DROP:
        flow[LOST, f, k] += 1


@jit
def _data_sent(tables, flow, f, k, t, from_node, tcp, size, seq, uid):
    """Count a data packet that joins a queue at node ``from_node``, if this is the flow's source.

    The source is the node of the first such event.  ``tables.flow`` has a row for each flow, and
    ``flow`` the counts [quantity, flow, interval].  The event is of flow ``f`` at time ``t``, in
    interval ``k``.  The packet has ``size`` bytes, and ``uid`` is its number in ns-2.  ``seq`` is
    its sequence number; ``tcp`` is false if it has none of TCP.
    """
    if tables.flow[f, FIRST_UID] < 0:
        tables.flow[f, FIRST_UID], tables.flow[f, SOURCE] = uid, from_node
    if from_node != tables.flow[f, SOURCE]:
        return
    flow[SENT, f, k] += 1
    # this count will tell whether the sender waits before it sends
    tables.flow[f, AT_ACKS] += t == tables.flow_times[f, LAST_ACK]
    retransmission = tcp and seq <= tables.flow[f, SENT_TO]
    if retransmission:
        flow[RETRANSMITTED, f, k] += 1
    tables.flow[f, SENT_TO] = max(tables.flow[f, SENT_TO], seq)
    _remember(tables, f, seq, np.nan if retransmission or size < tables.flow[f, SIZE] else t)


@jit
def _data_received(tables, flow, f, k, to_node, tcp, seq, uid):
    """Count a data packet that arrives at node ``to_node``, if this is the flow's sink.

    The sink is the node with the flow's destination address, if packets of the flow arrive at this
    node.  If none does, the sink is the last node that the flow's first packet reaches.  So a later
    line of the trace may show that the sink is another node than was assumed so far.  The
    deliveries counted so far are then discarded.

    ``tables.flow`` has a row for each flow, and ``flow`` the counts [quantity, flow, interval].
    The event is of flow ``f``, in interval ``k``.  ``uid`` is the packet's number in ns-2, and
    ``seq`` its sequence number; ``tcp`` is false if it has none of TCP.
    """
    if tables.flow[f, FIRST_UID] < 0:
        tables.flow[f, FIRST_UID] = uid
    sink, destination = tables.flow[f, SINK], tables.flow[f, DST]
    goes_on = uid == tables.flow[f, FIRST_UID] and to_node != sink  # the first packet
    if sink != destination and (to_node == destination or goes_on):
        sink = tables.flow[f, SINK] = to_node
        tables.flow[f, HIGH] = -1
        flow[DELIVERED, f, :] = 0
        tables.received[f, :] = 0
    if to_node == sink and (not tcp or _first_time(tables, f, seq)):
        flow[DELIVERED, f, k] += 1


@jit
def _ack(tables, flow, f, k, t, seq):
    """Count an ACK that reached the source of flow number f at time t, in the trace's interval k.

    ``seq`` is the packet that the ACK acknowledges.  An ACK of new data gives an RTT, if the time
    at which packet ``seq`` was sent is known.  It also gives the number of packets in flight.  This
    number is taken as the flow's window if the trace does not have the window itself, ``cwnd_``.
    ``tables.flow`` has a row for each flow, with columns such as ``SENT_TO``, the highest packet
    sent.  ``flow`` has the counts [quantity, flow, interval].
    """
    flow[ACKS, f, k] += 1
    tables.flow_times[f, LAST_ACK] = t
    if seq <= tables.flow[f, ACKED]:
        return
    if tables.flow[f, CWND] == 0:  # packets in flight before this ACK
        flow[WINDOW_SUM, f, k] += tables.flow[f, SENT_TO] - tables.flow[f, ACKED]
        flow[WINDOW_N, f, k] += 1
    tables.flow[f, ACKED] = seq
    sent = _sent_at(tables, f, seq)
    full_size = seq >= tables.flow[f, FULL_FROM]  # not a smaller packet, such as a SYN
    if full_size and not np.isnan(sent):
        _add_rtt(flow, f, k, t - sent)


@jit
def _acknowledges(tables, f, seq):
    """Count how many packets of flow number f an ACK of packet ``seq`` acknowledges.

    These counts show whether the receiver delays its ACKs. An ACK of new data that follows a
    duplicate ACK is not counted: it acknowledges a missing packet together with all packets that
    arrived while it was missing. ``tables.flow`` has a row for each flow: ``SINK_ACKED`` is the
    highest packet acknowledged so far, and ``IN_ORDER`` is 1 if the latest ACK acknowledged new
    data.
    """
    packets = seq - tables.flow[f, SINK_ACKED]
    if packets > 0:
        if tables.flow[f, IN_ORDER] == 1:
            tables.per_ack[f, min(packets, MAX_PER_ACK)] += packets
        tables.flow[f, SINK_ACKED] = seq
    tables.flow[f, IN_ORDER] = packets > 0


@jit
def _queue(tables, link, begin, width, link_number, kind, t, size, uid):
    """Count an event of an ns-2 trace at a link, and the packets that wait in its queue.

    The event is of a packet of ``size`` bytes. ``link`` has the counts [quantity, link, interval];
    the intervals last ``width`` seconds and start at ``begin``.

    At ``+`` a packet arrives at the queue, and is counted as waiting.  At ``-`` it leaves the queue
    to be transmitted, and is no longer counted.  At ``d`` it is dropped.  If the queue drops it on
    arrival, ns-2 has written ``+`` just before, so this function takes it off the count again.  If
    an error model drops it before the queue, ns-2 writes only ``d``, and the count does not change.
    In the first case the last ``+`` of the link has the same uid.

    ``tables`` holds what is remembered of each link: the number of packets that wait, the time of
    the last event, and the uid of the last packet that joined the queue. An event has the time
    ``t``, and ``kind`` is its first character.
    """
    last, waiting = tables.link_times[link_number], tables.link[link_number, WAITING]
    count = link.shape[2]  # number of intervals
    k = min(int((t - begin) / width), count - 1)  # the interval of this event
    # add up how long packets have waited in each interval since the last event at this link
    if waiting > 0 and t > last:
        for j in range(min(int((last - begin) / width), count - 1), k + 1):
            low, high = begin + j * width, begin + (j + 1) * width
            part = min(t, high) - max(last, low)
            if part > 0:
                link[WAITED, link_number, j] += waiting * part
                link[QUEUE_MAX, link_number, j] = max(link[QUEUE_MAX, link_number, j], waiting)
    tables.link_times[link_number] = t
    if kind == ENQUEUE:
        tables.link[link_number, WAITING] = waiting + 1
        tables.link[link_number, LAST_UID] = uid
    elif kind == DEQUEUE:
        tables.link[link_number, WAITING] = max(waiting - 1, 0)
        link[SERVED, link_number, k] += 1
        link[CARRIED, link_number, k] += size
    elif uid == tables.link[link_number, LAST_UID]:  # dropped by the queue
        tables.link[link_number, WAITING] = max(waiting - 1, 0)


@jit
def _at_link(tables, link_number, kind, t, uid):
    """Return ``DONE`` if an event can be counted at a link, or else the reason why not.

    A negative ``link_number`` means that the trace has shown no event at this link before. The
    result is ``REPEATED`` if the trace says a second time that the same packet joins the queue at
    the same moment. ``kind`` is the event's first character, ``t`` its time, and ``uid`` the number
    of its packet.

    ``tables`` holds what is remembered of each link, such as the last packet that joined its queue.
    """
    if link_number < 0:
        return LINKS_FULL if tables.counts[N_LINKS] == tables.link.shape[0] else DONE
    repeated = (
        kind == ENQUEUE
        and uid == tables.link[link_number, LAST_UID]
        and t == tables.link_times[link_number]
    )
    return REPEATED if repeated else DONE


@jit
def _is_source(tables, f, node):
    """Whether ``node`` is the source of flow number f, where its ACKs are counted.

    The source is the first node in the trace that sends the flow's data.  It must also be the node
    in the flow's source address.  A hierarchical address is not compared, because it contains no
    node number.

    ``tables`` (``Tables``) holds what is remembered of each flow, such as its source.
    """
    return node == tables.flow[f, SOURCE] and (
        tables.flow[f, SRC] < 0 or node == tables.flow[f, SRC]
    )


@jit
def _time(tables, bins_end, t):
    """Check the time ``t`` of a line; return the time in s, and a status.

    The status is ``DONE`` if the time can be used.  Otherwise it says why not: the time is out of
    range, not before ``bins_end`` (the end of the last interval), or earlier than the time of the
    line before.  If it is earlier only by a rounding error, the time of the line before is returned
    in its place.  ``tables`` (``Tables``) holds what is remembered of the trace so far, such as
    this last time.
    """
    if not 0.0 <= t <= MAX_TIME:
        return 0.0, BAD_TIME
    last = tables.clock[0]
    if t < last - ROUNDING:
        return 0.0, BACKWARDS
    t = max(t, last)
    return t, (DONE if t < bins_end else BEYOND)


@jit
def _event(tables, flow, link, begin, width, numbers, time):
    """Count an event of an ns-2 trace, such as a packet that arrives at a node.

    The event is a line ``kind time from to type size flags fid source sink seq uid`` of the trace.
    ``numbers`` holds the numbers of this line.  The event is counted for its flow and for its link.
    Returns ``DONE``, or the reason why the event cannot be counted.

    ``flow`` and ``link`` have the counts [quantity, flow or link, interval]. The intervals last
    ``width`` seconds and start at ``begin``. ``tables`` holds what is remembered of flows and
    links.
    """
    # First find out whether the event can be counted; until then nothing is changed.
    t, status = _time(tables, begin + width * flow.shape[2], time)
    if status != DONE:
        return status
    kind, packet_type, uid = numbers[KIND], numbers[TYPE], numbers[PACKET]
    from_node, to_node = numbers[AT], numbers[GOAL]
    link_slot = 0
    if kind != RECEIVE:  # at the link's queue
        link_slot = _slot(tables.link_slots, tables.link, FROM, from_node, to_node, 0, 0)
        status = _at_link(tables, tables.link_slots[link_slot], kind, t, uid)
        if status != DONE:
            return status
    # the flow: its source and its destination; the source of an ACK is the flow's destination
    src, sport = numbers[NODE1], numbers[PORT1]
    dst, dport = numbers[NODE2], numbers[PORT2]
    if packet_type == ACK:
        src, sport, dst, dport = dst, dport, src, sport
    flow_slot = _slot(tables.flow_slots, tables.flow, SRC, src, sport, dst, dport)
    f = tables.flow_slots[flow_slot]
    is_data = packet_type < ACK  # types of data packets have numbers below ACK
    if f < 0 and is_data:
        if tables.counts[N_FLOWS] == tables.flow.shape[0]:
            return FLOWS_FULL
        f = _new_flow(tables, flow_slot, numbers[LABEL], src, sport, dst, dport, t)
    # from here on, the line is counted: at its link, then for its flow
    size, seq = numbers[BYTES], numbers[NUMBER]
    tables.clock[0] = t
    k = min(int((t - begin) / width), flow.shape[2] - 1)  # the interval of the event's time
    if kind != RECEIVE:
        link_number = tables.link_slots[link_slot]
        if link_number < 0:
            link_number = _new_link(tables, link_slot, from_node, to_node, t)
        _queue(tables, link, begin, width, link_number, kind, t, size, uid)
    if f >= 0 and is_data:
        tcp = packet_type == TCP and seq >= 0
        tables.flow[f, FID] = numbers[LABEL]
        _data(tables, flow, f, k, kind, t, from_node, to_node, tcp, size, seq, uid)
    elif f >= 0 and packet_type == ACK and kind == RECEIVE and _is_source(tables, f, to_node):
        _ack(tables, flow, f, k, t, seq)
    if f >= 0 and packet_type == ACK and kind == ENQUEUE:
        if tables.flow[f, ACKER] < 0:  # the sink, or the node nearest to it in the trace
            tables.flow[f, ACKER] = from_node
        if from_node == tables.flow[f, ACKER]:
            _acknowledges(tables, f, seq)
    return DONE


@jit
def _variable(tables, flow, begin, width, buf, spans):
    """Process a line of an ns-2 trace that has the value of a traced TCP variable.

    The line is ``time node port node port name value``. The first node and port are the flow's
    source, the second its destination. ``spans`` holds the start and end of each word in ``buf``.
    Returns ``DONE``, or the reason why the line cannot be counted.

    For ``cwnd_`` and ``rtt_``, the values are added up for a mean. For the counters ``ack_``,
    ``nrexmitpack_`` and ``ndatapack_``, the increases are added up. Once the trace has shown an
    event of the flow's packets, only ``cwnd_`` is used: the events give all the other values.

    ``flow`` has the counts [quantity, flow, interval]. The intervals last ``width`` seconds and
    start at ``begin``. ``tables`` holds what is remembered of each flow.
    """
    # word j of the line begins at ``spans[2 j]`` and ends before ``spans[2 j + 1]``
    time, good = decimal(buf, spans[0], spans[1])
    src, good1 = integer(buf, spans[2], spans[3])
    sport, good2 = integer(buf, spans[4], spans[5])
    dst, good3 = integer(buf, spans[6], spans[7])
    dport, good4 = integer(buf, spans[8], spans[9])
    value, good5 = decimal(buf, spans[12], spans[13])
    good = good and good1 and good2 and good3 and good4 and good5
    if not good or src < 0 or dst < 0 or abs(value) > 1e15:
        return BAD_LINE
    tables.when[0] = time
    t, status = _time(tables, begin + width * flow.shape[2], time)
    if status != DONE:
        return status
    slot = _slot(tables.flow_slots, tables.flow, SRC, src, sport, dst, dport)
    f = tables.flow_slots[slot]
    if f < 0:
        if tables.counts[N_FLOWS] == tables.flow.shape[0]:
            return FLOWS_FULL
        f = _new_flow(tables, slot, -1, src, sport, dst, dport, t)
    tables.clock[0] = t
    tables.flow_times[f, LAST] = t
    k = min(int((t - begin) / width), flow.shape[2] - 1)  # the interval of the line's time
    a, b = spans[10], spans[11]  # the variable's name is ``buf[a:b]``
    if equal(buf, a, b, b"cwnd_"):
        if tables.flow[f, CWND] == 0:  # the window itself replaces the packets in flight
            tables.flow[f, CWND] = 1
            flow[WINDOW_SUM, f, :] = 0
            flow[WINDOW_N, f, :] = 0
        flow[WINDOW_SUM, f, k] += value
        flow[WINDOW_N, f, k] += 1
    elif tables.flow[f, EVENTS] == 0:  # if the trace has packet events, these count instead
        if equal(buf, a, b, b"ack_") and value > tables.flow[f, ACKED]:
            flow[DELIVERED, f, k] += value - tables.flow[f, ACKED]
            tables.flow[f, ACKED] = np.int64(value)
            _acknowledges(tables, f, np.int64(value))
        elif equal(buf, a, b, b"nrexmitpack_") and value > tables.flow[f, REXMIT]:
            flow[RETRANSMITTED, f, k] += value - tables.flow[f, REXMIT]
            tables.flow[f, REXMIT] = np.int64(value)
        elif equal(buf, a, b, b"ndatapack_") and value > tables.flow[f, DATAPACK]:
            flow[SENT, f, k] += value - tables.flow[f, DATAPACK]
            tables.flow[f, DATAPACK] = np.int64(value)
        elif equal(buf, a, b, b"rtt_") and value > 0:
            _add_rtt(flow, f, k, value)
    return DONE


@jit
def _line(tables, flow, link, begin, width, buf, i, end):
    """Process the line ``buf[i:end]`` of an ns-2 trace.

    A line records an event of a packet or the value of a traced variable.  Empty lines, comments,
    and some lines that ns-2 writes for other purposes are skipped.  Any other line is an error.
    Returns ``DONE``, or the reason why the line cannot be counted.

    ``tables`` (``Tables``) holds what is remembered of the trace so far. ``flow`` and ``link`` are
    the arrays to which events are added: [quantity, flow or link, interval]. The intervals last
    ``width`` seconds and start at ``begin``.
    """
    spans = tables.words
    words = split(buf, i, end, spans)
    if words == 0:
        return DONE
    first, single = buf[spans[0]], spans[1] - spans[0] == 1
    if single and first in (ENQUEUE, DEQUEUE, RECEIVE, DROP):
        if words == 12 and unusual(buf, spans, tables.event, tables.when):
            return _event(tables, flow, link, begin, width, tables.event, tables.when[0])
        return BAD_LINE
    if 48 <= first <= 57:  # a digit: the line begins with a time
        return _variable(tables, flow, begin, width, buf, spans) if words == 7 else BAD_LINE
    # lines to skip: comments (35 is #), and lines that begin with one of the letters h (hops),
    # v (marks), n (nodes), l (links) and E (TCP events)
    skipped = first == 35 or (single and first in (104, 118, 110, 108, 69))
    return DONE if skipped else BAD_LINE


@jit
def scan(buf, start, stop, final, tables, flow, link, begin, width):
    """Count what the lines ``buf[start:stop]`` of an ns-2 trace report, such as deliveries.

    The counts per interval of time are added to ``flow`` and ``link``, the arrays of ``Bins``.  The
    intervals last ``width`` seconds and start at ``begin``.  ``tables`` is a ``Tables`` object.
    ``final`` is true if the trace ends at ``stop``; the last line is then complete even without a
    line break.

    Returns the position in ``buf`` after the last counted line.  ``tables.counts[STATUS]`` is
    ``DONE`` if every complete line was counted; otherwise it says why the next line cannot be
    counted. ``tables.counts[LINES]`` is the number of lines counted so far.
    """
    tables.counts[STATUS] = DONE
    i = start
    while i < stop:
        following = usual(buf, i, tables.event, tables.when) if stop - i > MAX_LINE else -1
        if following > 0:
            status = _event(tables, flow, link, begin, width, tables.event, tables.when[0])
        else:
            end = i
            while end < stop and buf[end] != NEWLINE:
                end += 1
            if end - i <= MAX_LINE and end == stop and not final:
                return i
            following, status = end + 1, LONG_LINE
            if end - i <= MAX_LINE:
                status = _line(tables, flow, link, begin, width, buf, i, end)
        if status != DONE:
            tables.counts[STATUS] = status
            return i
        tables.counts[LINES] += 1
        i = following
    return min(i, stop)
