"""The inner loop over an ns-2 trace: bytes in, sums out, compiled by Numba.

``scan`` works through complete lines.  It stops, without having touched the line, when the bins
have to be widened, a table has to grow or the line is wrong; the caller acts and calls again.
Integers of more than 18 digits are refused; times are exact to the last bit or the next.
"""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from vegasmodel.packets.readers.bins import (
    ACKS,
    AGAIN,
    DELIVERED,
    LOST,
    QUEUE_MAX,
    RTT_MIN,
    RTT_N,
    RTT_SUM,
    SENT,
    SERVED,
    WAITED,
    WINDOW_N,
    WINDOW_SUM,
)

# why ``scan`` stopped
DONE, BEYOND, FLOWS_FULL, LINKS_FULL = range(4)
BAD_LINE, BAD_TIME, BACKWARDS, LONG_LINE = range(4, 8)
# columns of ``Tables.flow``
FID, SRC, SPORT, DST, DPORT, FIRST_UID, SOURCE, SINK, HIGH, SENT_TO, ACKED = range(11)
EVENTS, CWND, SIZE, REXMIT, DATAPACK = range(11, 16)
FLOW_COLUMNS = 16
# columns of ``Tables.link``
FROM, TO, WAITING, LAST_UID = range(4)
# columns of ``Tables.counts``
N_FLOWS, N_LINKS, LINES, STATUS = range(4)

WORDS = 256  # of 64 bits: packets behind the highest received that are told apart
MAX_LINE = 4096
SLACK = 1.1e-5  # seconds: variable traces round to 10 us, event traces do not
MAX_TIME = 1e10
POWERS = 10.0 ** np.arange(23)


class Tables(NamedTuple):
    """State of the scan.  Slots are hash tables of indices into ``flow`` and ``link``, -1 empty."""

    counts: NDArray[np.int64]
    clock: NDArray[np.float64]  # [1] latest time
    flow: NDArray[np.int64]
    flow_times: NDArray[np.float64]  # first, last
    flow_slots: NDArray[np.int64]
    received: NDArray[np.uint64]  # [flow, WORDS] ring of bits by sequence number
    link: NDArray[np.int64]
    link_times: NDArray[np.float64]
    link_slots: NDArray[np.int64]
    sent_key: NDArray[np.int64]  # [slot, 2] flow and sequence number of a first transmission
    sent_time: NDArray[np.float64]


_jit = njit(cache=True, nogil=True, error_model="numpy")


@_jit
def _token(buf, i, end):
    """Next run of non-blanks in ``[i, end)``."""
    while i < end and (buf[i] == 32 or buf[i] == 9 or buf[i] == 13):
        i += 1
    a = i
    while i < end and buf[i] != 32 and buf[i] != 9 and buf[i] != 13:
        i += 1
    return a, i


@_jit
def _integer(buf, a, b):
    """Value and whether it is one."""
    negative = a < b and buf[a] == 45
    if negative:
        a += 1
    if a == b or b - a > 18:
        return 0, False
    value = 0
    for i in range(a, b):
        digit = np.int64(buf[i]) - 48
        if digit < 0 or digit > 9:
            return 0, False
        value = value * 10 + digit
    return (-value if negative else value), True


@_jit
def _decimal(buf, a, b):
    """Value and whether it is a finite decimal number."""
    negative = a < b and buf[a] == 45
    if negative:
        a += 1
    mantissa, scale, digits, point, i = 0, 0, 0, False, a
    while i < b and (48 <= buf[i] <= 57 or (buf[i] == 46 and not point)):
        if buf[i] == 46:
            point = True
        else:
            digits += 1
            if mantissa < 10**17:
                mantissa = mantissa * 10 + np.int64(buf[i]) - 48
                scale -= point
            else:
                scale += not point
        i += 1
    good = digits > 0
    if i < b:
        exponent, whole = _exponent(buf, i, b)
        good = good and whole
        scale += exponent
    value = float(mantissa)
    if -22 <= scale <= 0:
        value /= POWERS[-scale]  # both are exact, and so the quotient is the nearest double
    elif scale > 0:
        value *= 10.0**scale
    else:
        value /= 10.0 ** (-scale)
    return (-value if negative else value), good and np.isfinite(value)


@_jit
def _exponent(buf, a, b):
    """What stands after a number: ``e``, a sign or none, digits."""
    if buf[a] != 101 and buf[a] != 69:
        return 0, False
    a += 1
    if a < b and buf[a] == 43:
        a += 1
    exponent, good = _integer(buf, a, b)
    return exponent, good and abs(exponent) <= 400


@_jit
def _address(buf, a, b):
    """Node, port and whether good.  ``3.0`` is node 3; ``0.1.2.0`` is packed as a negative."""
    dot = b - 1
    while dot >= a and buf[dot] != 46:
        dot -= 1
    if dot < a:
        node, good = _integer(buf, a, b)
        return node, -1, good and node >= 0
    port, good = _integer(buf, dot + 1, b)
    node, flat = _integer(buf, a, dot)
    if flat:
        return node, port, good and node >= 0
    packed, part, levels, digits = 0, 0, 1, 0
    for i in range(a, dot):
        digit = np.int64(buf[i]) - 48
        if buf[i] == 46 and digits > 0:
            packed, part, levels, digits = packed * 4096 + part, 0, levels + 1, 0
        elif 0 <= digit <= 9:
            part, digits = part * 10 + digit, digits + 1
        else:
            return 0, 0, False
        if part >= 4096 or levels > 4:
            return 0, 0, False
    good = good and digits > 0
    return -2 - (packed * 4096 + part) * 8 - levels, port, good


@_jit
def _slot(slots, table, columns, a, b, c, d):
    """Place in ``slots`` of the row whose ``columns`` are a, b, c, d, or of the gap for it."""
    mask = np.uint64(slots.size - 1)
    h = np.uint64(a) * np.uint64(0x9E3779B97F4A7C15)
    h = (h ^ np.uint64(b)) * np.uint64(0xC2B2AE3D27D4EB4F)
    h = (h ^ (h >> np.uint64(29)) ^ np.uint64(c)) * np.uint64(0x165667B19E3779F9)
    h = (h ^ (h >> np.uint64(32)) ^ np.uint64(d)) * np.uint64(0x9E3779B97F4A7C15)
    place = np.int64((h ^ (h >> np.uint64(31))) & mask)
    while slots[place] >= 0:
        row = table[slots[place]]
        if (
            row[columns] == a
            and row[columns + 1] == b
            and (columns == 0 or (row[columns + 2] == c and row[columns + 3] == d))
        ):
            break
        place = (place + 1) & np.int64(slots.size - 1)
    return place


@_jit
def _new_flow(s, place, fid, src, sport, dst, dport, t):
    f = s.counts[N_FLOWS]
    s.counts[N_FLOWS] += 1
    s.flow_slots[place] = f
    row = s.flow[f]
    row[:] = 0
    row[FID], row[SRC], row[SPORT], row[DST], row[DPORT] = fid, src, sport, dst, dport
    row[FIRST_UID], row[SOURCE], row[SINK] = -1, -1, -1
    row[HIGH], row[SENT_TO], row[ACKED] = -1, -1, -1
    s.flow_times[f, 0] = s.flow_times[f, 1] = t
    s.received[f, :] = 0
    return f


@_jit
def _first_time(s, f, seq):
    """Whether packet ``seq`` was not received before."""
    ring, high = s.received[f], s.flow[f, HIGH]
    word, bit = (seq >> 6) % WORDS, np.uint64(1) << np.uint64(seq & 63)
    if seq > high:
        first = (high >> 6) + 1 if high >= 0 else 0
        for k in range(max(first, (seq >> 6) - WORDS + 1), (seq >> 6) + 1):
            ring[k % WORDS] = np.uint64(0)
        s.flow[f, HIGH] = seq
    elif (seq >> 6) <= (high >> 6) - WORDS or ring[word] & bit:
        return False
    ring[word] |= bit
    return True


@_jit
def _remember(s, f, seq, t):
    """Note when a packet was sent (NaN: twice); a later one may take its place."""
    place = (f * 7919 + seq) & (s.sent_time.size - 1)
    s.sent_key[place, 0], s.sent_key[place, 1], s.sent_time[place] = f, seq, t


@_jit
def _sent_at(s, f, seq):
    place = (f * 7919 + seq) & (s.sent_time.size - 1)
    if s.sent_key[place, 0] == f and s.sent_key[place, 1] == seq:
        return s.sent_time[place]
    return np.nan


@_jit
def _add_rtt(flow, f, k, rtt):
    flow[RTT_SUM, f, k] += rtt
    flow[RTT_N, f, k] += 1
    flow[RTT_MIN, f, k] = min(flow[RTT_MIN, f, k], rtt)


@_jit
def _data(s, flow, f, k, kind, t, at, to, tcp, size, seq, uid):
    """A data packet of flow f: ``+`` at its source, ``r`` at its sink, ``d`` anywhere."""
    row = s.flow[f]
    row[EVENTS] = 1
    row[SIZE] = max(row[SIZE], size)
    s.flow_times[f, 1] = t
    if kind == 43:
        if row[FIRST_UID] < 0:
            row[FIRST_UID], row[SOURCE] = uid, at
        if at != row[SOURCE]:
            return
        flow[SENT, f, k] += 1
        again = tcp and seq <= row[SENT_TO]
        if again:
            flow[AGAIN, f, k] += 1
        row[SENT_TO] = max(row[SENT_TO], seq)
        _remember(s, f, seq, np.nan if again else t)
    elif kind == 114:
        if row[FIRST_UID] < 0:
            row[FIRST_UID] = uid
        # The sink is the destination's node; where the trace does not show it, the last node
        # at which the flow's first packet was received.
        moved = uid == row[FIRST_UID] and row[SINK] != row[DST] and to != row[SINK]
        if moved or (to == row[DST] and row[SINK] != row[DST]):
            row[SINK], row[HIGH] = to, -1
            flow[DELIVERED, f, :] = 0
            s.received[f, :] = 0
        if to == row[SINK] and (not tcp or _first_time(s, f, seq)):
            flow[DELIVERED, f, k] += 1
    elif kind == 100:
        flow[LOST, f, k] += 1


@_jit
def _ack(s, flow, f, k, t, seq):
    """An ACK has come back to the source of flow f."""
    row = s.flow[f]
    flow[ACKS, f, k] += 1
    if seq <= row[ACKED]:
        return
    if row[CWND] == 0:  # packets in flight before this ACK
        flow[WINDOW_SUM, f, k] += row[SENT_TO] - row[ACKED]
        flow[WINDOW_N, f, k] += 1
    row[ACKED] = seq
    sent = _sent_at(s, f, seq)
    if not np.isnan(sent):
        _add_rtt(flow, f, k, t - sent)


@_jit
def _queue(s, link, begin, width, e, kind, t, uid):
    """``+`` joins the queue of link e, ``-`` leaves it for the wire.

    A packet that is dropped on arrival shows as ``+`` and ``d``; one that an error model takes
    before the queue shows as ``d`` alone.
    """
    row = s.link[e]
    last, waiting = s.link_times[e], row[WAITING]
    count = link.shape[2]
    k = min(int((t - begin) / width), count - 1)
    if waiting > 0 and t > last:
        for j in range(min(int((last - begin) / width), count - 1), k + 1):
            low, high = begin + j * width, begin + (j + 1) * width
            part = min(t, high) - max(last, low)
            if part > 0:
                link[WAITED, e, j] += waiting * part
                link[QUEUE_MAX, e, j] = max(link[QUEUE_MAX, e, j], waiting)
    s.link_times[e] = t
    if kind == 43:
        row[WAITING] = waiting + 1
        row[LAST_UID] = uid
    elif kind == 45:
        row[WAITING] = max(waiting - 1, 0)
        link[SERVED, e, k] += 1
    elif uid == row[LAST_UID]:
        row[WAITING] = max(waiting - 1, 0)


@_jit
def _home(row, node):
    """Whether ``node`` is the flow's source, and not just where a partial trace first shows it."""
    return node == row[SOURCE] and (row[SRC] < 0 or node == row[SRC])


@_jit
def _is(buf, a, b, text):
    good = b - a == len(text)
    for i in range(len(text)):
        good = good and buf[a + i] == text[i]
    return good


@_jit
def _split(buf, i, end, spans):
    """Starts and ends of the first 12 words."""
    n = 0
    while n < 12:
        a, i = _token(buf, i, end)
        if a == i:
            break
        spans[2 * n], spans[2 * n + 1] = a, i
        n += 1
    return n


@_jit
def _time(s, bins_end, buf, a, b):
    """Time and status; a time that rounding put a little before the last is the last."""
    t, good = _decimal(buf, a, b)
    if not good:
        return 0.0, BAD_LINE
    if t < 0.0 or t > MAX_TIME:
        return 0.0, BAD_TIME
    last = s.clock[0]
    if t < last - SLACK:
        return 0.0, BACKWARDS
    t = max(t, last)
    return t, (DONE if t < bins_end else BEYOND)


@_jit
def _event(s, flow, link, begin, width, buf, w):
    """``+ time from to type size flags fid source destination sequence uid``."""
    t, status = _time(s, begin + width * flow.shape[2], buf, w[2], w[3])
    at, good1 = _integer(buf, w[4], w[5])
    to, good2 = _integer(buf, w[6], w[7])
    size, good3 = _integer(buf, w[10], w[11])
    fid, good4 = _integer(buf, w[14], w[15])
    src, sport, good5 = _address(buf, w[16], w[17])
    dst, dport, good6 = _address(buf, w[18], w[19])
    seq, good7 = _integer(buf, w[20], w[21])
    uid, good8 = _integer(buf, w[22], w[23])
    good = good1 and good2 and good3 and good4 and good5 and good6 and good7 and good8
    if not good or at < 0 or to < 0:
        return BAD_LINE
    if status != DONE:
        return status
    kind = buf[w[0]]
    place = 0
    if kind != 114:
        place = _slot(s.link_slots, s.link, FROM, at, to, 0, 0)
        if s.link_slots[place] < 0 and s.counts[N_LINKS] == s.link.shape[0]:
            return LINKS_FULL
    ack = _is(buf, w[8], w[9], b"ack")
    routing = w[9] - w[8] > 2 and _is(buf, w[8], w[8] + 3, b"rtP")
    if ack:
        mine = _slot(s.flow_slots, s.flow, SRC, dst, dport, src, sport)
    else:
        mine = _slot(s.flow_slots, s.flow, SRC, src, sport, dst, dport)
    f = s.flow_slots[mine]
    if f < 0 and not ack and not routing:
        if s.counts[N_FLOWS] == s.flow.shape[0]:
            return FLOWS_FULL
        f = _new_flow(s, mine, fid, src, sport, dst, dport, t)
    # from here on the line counts
    s.clock[0] = t
    k = min(int((t - begin) / width), flow.shape[2] - 1)
    if kind != 114:
        e = s.link_slots[place]
        if e < 0:
            e = s.counts[N_LINKS]
            s.counts[N_LINKS] += 1
            s.link_slots[place] = e
            s.link[e, FROM], s.link[e, TO] = at, to
            s.link[e, WAITING], s.link[e, LAST_UID], s.link_times[e] = 0, -1, t
        _queue(s, link, begin, width, e, kind, t, uid)
    if f >= 0 and not ack and not routing:
        tcp = seq >= 0 and _is(buf, w[8], w[9], b"tcp")
        s.flow[f, FID] = fid
        _data(s, flow, f, k, kind, t, at, to, tcp, size, seq, uid)
    elif f >= 0 and ack and kind == 114 and _home(s.flow[f], to):
        _ack(s, flow, f, k, t, seq)
    return DONE


@_jit
def _variable(s, flow, begin, width, buf, w):
    """``time node port node port name value`` of an agent's traced variable."""
    t, status = _time(s, begin + width * flow.shape[2], buf, w[0], w[1])
    src, good1 = _integer(buf, w[2], w[3])
    sport, good2 = _integer(buf, w[4], w[5])
    dst, good3 = _integer(buf, w[6], w[7])
    dport, good4 = _integer(buf, w[8], w[9])
    value, good5 = _decimal(buf, w[12], w[13])
    good = good1 and good2 and good3 and good4 and good5
    if not good or src < 0 or dst < 0 or abs(value) > 1e15:
        return BAD_LINE
    if status != DONE:
        return status
    mine = _slot(s.flow_slots, s.flow, SRC, src, sport, dst, dport)
    f = s.flow_slots[mine]
    if f < 0:
        if s.counts[N_FLOWS] == s.flow.shape[0]:
            return FLOWS_FULL
        f = _new_flow(s, mine, -1, src, sport, dst, dport, t)
    s.clock[0] = t
    s.flow_times[f, 1] = t
    k = min(int((t - begin) / width), flow.shape[2] - 1)
    a, b = w[10], w[11]
    row = s.flow[f]
    if _is(buf, a, b, b"cwnd_"):
        if row[CWND] == 0:  # the window itself replaces the packets in flight
            row[CWND] = 1
            flow[WINDOW_SUM, f, :] = 0
            flow[WINDOW_N, f, :] = 0
        flow[WINDOW_SUM, f, k] += value
        flow[WINDOW_N, f, k] += 1
    elif row[EVENTS] == 0:  # the packets themselves, where they are there, count instead
        if _is(buf, a, b, b"ack_") and value > row[ACKED]:
            flow[DELIVERED, f, k] += value - row[ACKED]
            row[ACKED] = np.int64(value)
        elif _is(buf, a, b, b"nrexmitpack_") and value > row[REXMIT]:
            flow[AGAIN, f, k] += value - row[REXMIT]
            row[REXMIT] = np.int64(value)
        elif _is(buf, a, b, b"ndatapack_") and value > row[DATAPACK]:
            flow[SENT, f, k] += value - row[DATAPACK]
            row[DATAPACK] = np.int64(value)
        elif _is(buf, a, b, b"rtt_") and value > 0:
            _add_rtt(flow, f, k, value)
    return DONE


@_jit
def scan(buf, start, stop, final, s, flow, link, begin, width):
    """Work through the lines of ``buf[start:stop]``; return where it stopped.

    ``s.counts[STATUS]`` says why, ``s.counts[LINES]`` counts the lines that are done.  ``final``:
    the last line may lack its end.
    """
    spans = np.zeros(24, dtype=np.int64)
    s.counts[STATUS] = DONE
    i = start
    while i < stop:
        end = i
        while end < stop and buf[end] != 10:
            end += 1
        if end - i > MAX_LINE:
            s.counts[STATUS] = LONG_LINE
            return i
        if end == stop and not final:
            return i
        words = _split(buf, i, end, spans)
        status = DONE
        if words > 0:
            first, single = buf[spans[0]], spans[1] - spans[0] == 1
            if single and (first == 43 or first == 45 or first == 114 or first == 100):
                status = BAD_LINE
                if words == 12:
                    status = _event(s, flow, link, begin, width, buf, spans)
            elif 48 <= first <= 57:
                status = BAD_LINE
                if words == 7:
                    status = _variable(s, flow, begin, width, buf, spans)
            elif not (single and first in (104, 118, 110, 108, 69)) and first != 35:
                status = BAD_LINE  # not h, v, n, l, E (hops, marks, nodes, links, TCP events), #
        if status != DONE:
            s.counts[STATUS] = status
            return i
        s.counts[LINES] += 1
        i = end + 1
    return min(i, stop)
