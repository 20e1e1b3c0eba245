"""Splits the lines of an ns-2 trace into words and converts words to numbers; compiled by Numba.

The argument ``buf`` of the functions holds bytes of the trace. Integers of more than 18 digits are
refused. A time becomes a float, whose last bit may be wrong.
"""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

from __future__ import annotations

import functools

import numpy as np

from vegasmodel.support.machine_code import compiled

MAX_LINE = 4096  # bytes
POWERS = 10.0 ** np.arange(23)  # powers of 10 that are exact in float64
TENS = 10 ** np.arange(19)  # the same as integers
# bytes between words and numbers; the digits 0 to 9 are the bytes 48 to 57
TAB, NEWLINE, RETURN, BLANK, DOT = 9, 10, 13, 32, 46
ENQUEUE, DEQUEUE, RECEIVE, DROP = 43, 45, 114, 100  # the bytes + - r d with which an event begins
# Indices of an event's numbers: the kind of the event (its first byte), the packet's type, the two
# nodes of the link, the packet's size in bytes, the flow id, node and port of the source, node and
# port of the sink, the sequence number, and ns-2's number (uid) of the packet. Those from LABEL to
# PACKET have the order of the line.
KIND, TYPE, AT, GOAL, BYTES, LABEL, NODE1, PORT1, NODE2, PORT2, NUMBER, PACKET = range(12)
# the byte that follows the number in the line, from LABEL on
AFTER = np.array([0, 0, 0, 0, 0, BLANK, DOT, BLANK, DOT, BLANK, BLANK, NEWLINE])
# the type of the event's packet
TCP, OTHER, ACK, ROUTING = range(4)
# without Numba's reference counts (_nrt) the functions take half the time, but allocate no arrays
jit = functools.partial(compiled, whole_program=True, nogil=True, error_model="numpy", _nrt=False)


@jit
def _token(buf, i, end):
    """The start and end of the first word in ``buf[i:end]``; the two are equal if there is none."""
    while i < end and (buf[i] == BLANK or buf[i] == TAB or buf[i] == RETURN):
        i += 1
    start = i
    while i < end and buf[i] != BLANK and buf[i] != TAB and buf[i] != RETURN:
        i += 1
    return start, i


@jit
def integer(buf, a, b):
    """The integer in ``buf[a:b]``, and whether these bytes are an integer of at most 18 digits."""
    negative = a < b and buf[a] == 45  # a minus sign
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


@jit
def decimal(buf, a, b):
    """The decimal number in ``buf[a:b]``, and whether these bytes are a finite number."""
    negative = a < b and buf[a] == 45  # a minus sign
    if negative:
        a += 1
    # the number is mantissa * 10^scale; ``point`` tells whether the decimal point was read
    mantissa, scale, digits, point, i = 0, 0, 0, False, a
    while i < b and (48 <= buf[i] <= 57 or (buf[i] == DOT and not point)):
        if buf[i] == DOT:
            point = True
        else:
            digits += 1
            if mantissa < 10**17:  # more digits would not fit into 64 bits
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
        value /= POWERS[-scale]  # both are exact, so the quotient is the nearest double
    elif scale > 0:
        value *= 10.0**scale
    else:
        value /= 10.0 ** (-scale)
    return (-value if negative else value), good and np.isfinite(value)


@jit
def _exponent(buf, a, b):
    """The value of the exponent in ``buf[a:b]``, such as ``e-05``, and whether it is valid."""
    if buf[a] != 101 and buf[a] != 69:  # e and E
        return 0, False
    a += 1
    if a < b and buf[a] == 43:  # a plus sign
        a += 1
    exponent, good = integer(buf, a, b)
    return exponent, good and abs(exponent) <= 400


@jit
def _address(buf, a, b):
    """The node and the port of the address in ``buf[a:b]``, and whether the address is valid.

    ``3.0`` is port 0 of node 3.  ``0.1.2.0`` is port 0 of the node with the hierarchical address
    ``0.1.2``.  The result encodes a hierarchical address as a negative number.  The port is -1 if
    the address has none.
    """
    dot = b - 1  # position of the last dot
    while dot >= a and buf[dot] != DOT:
        dot -= 1
    if dot < a:
        node, good = integer(buf, a, b)
        return node, -1, good and node >= 0
    port, good = integer(buf, dot + 1, b)
    node, flat = integer(buf, a, dot)
    if flat:  # no hierarchical address
        return node, port, good and node >= 0
    # a hierarchical address: at most four parts below 4096, each put into 12 bits of ``packed``
    packed, part, levels, digits = 0, 0, 1, 0
    for i in range(a, dot):
        digit = np.int64(buf[i]) - 48
        if buf[i] == DOT and digits > 0:
            packed, part, levels, digits = packed * 4096 + part, 0, levels + 1, 0
        elif 0 <= digit <= 9:
            part, digits = part * 10 + digit, digits + 1
        else:
            return 0, 0, False
        if part >= 4096 or levels > 4:
            return 0, 0, False
    good = good and digits > 0 and levels > 1
    # the number of levels takes 3 bits; the result is -2 or less, as -1 means that nothing is known
    return -2 - (packed * 4096 + part) * 8 - levels, port, good


@jit
def equal(buf, a, b, text):
    """Whether the bytes ``buf[a:b]`` equal the bytes ``text``."""
    good = b - a == len(text)
    for i in range(len(text)):
        good = good and buf[a + i] == text[i]
    return good


@jit
def split(buf, i, end, spans):
    """Find the first 12 words of ``buf[i:end]``, and return how many there are.

    The start and end of each word are written to ``spans``, one after the other.
    """
    n = 0
    while n < 12:
        a, i = _token(buf, i, end)
        if a == i:
            break
        spans[2 * n], spans[2 * n + 1] = a, i
        n += 1
    return n


@jit
def _number(buf, i, after):
    """Read the integer that begins at ``buf[i]`` and must be followed by the byte ``after``.

    Returns the integer and the position after that byte.  The position is -1 if there is no
    integer, if it has more than 18 digits, or if a different byte follows it.
    """
    first, value = i, 0
    while 48 <= buf[i] <= 57:
        value = value * 10 + np.int64(buf[i]) - 48
        i += 1
    good = buf[i] == after and 0 < i - first <= 18
    return value, (i + 1 if good else -1)


@jit
def _seconds(buf, i, clock):
    """Read the time in s that begins at ``buf[i]``, such as ``1.25``, and store it in ``clock[0]``.

    A blank must follow the time.  Returns the position after the blank, or -1 if the time has
    another form or is too long.
    """
    whole, first = _number(buf, i, DOT)
    fraction, after = _number(buf, first, BLANK) if first > 0 else (0, -1)
    if after < 0 or after - i > 17:
        return -1
    digits = after - 1 - first  # of the fraction
    clock[0] = (whole * TENS[digits] + fraction) / POWERS[digits]
    return after


@jit
def usual(buf, i, e, clock):
    """Parse the line that begins at ``buf[i]``, if it is an ns-2 event in the most frequent form.

    In this form, one blank stands between two words, addresses have no hierarchy, and the packet's
    type is tcp or ack.  The event's numbers are stored in ``e`` and its time in ``clock[0]``.
    Returns the position of the next line, or -1 if the line has another form.

    At least ``MAX_LINE`` bytes must follow position i, because the function does not check where
    ``buf`` ends. After each number ``i`` is the position of the next word, or -1 if the number or
    the byte behind it is not as expected.
    """
    kind = buf[i]
    known = (kind == ENQUEUE) | (kind == DEQUEUE) | (kind == RECEIVE) | (kind == DROP)
    if not known or buf[i + 1] != BLANK:
        return -1
    e[KIND] = kind
    i = _seconds(buf, i + 2, clock)
    for k in (AT, GOAL):
        if i > 0:
            e[k], i = _number(buf, i, BLANK)
    if i < 0:
        return -1
    if buf[i] == 116 and buf[i + 1] == 99 and buf[i + 2] == 112 and buf[i + 3] == BLANK:  # "tcp "
        e[TYPE] = TCP
    elif buf[i] == 97 and buf[i + 1] == 99 and buf[i + 2] == 107 and buf[i + 3] == BLANK:  # "ack "
        e[TYPE] = ACK
    else:
        return -1
    e[BYTES], i = _number(buf, i + 4, BLANK)
    if i < 0 or buf[i + 7] != BLANK:
        return -1
    for k in range(i, i + 7):  # the word with seven flags
        if buf[k] <= BLANK:
            return -1
    i += 8
    for k in range(LABEL, PACKET):  # from the flow id to the sequence number
        e[k], i = _number(buf, i, AFTER[k])
        if i < 0:
            return -1
    e[PACKET], i = _number(buf, i, NEWLINE)
    return i


@jit
def unusual(buf, w, e, clock):
    """Parse the words of a line that records an event, in whatever form the line has.

    ``w`` holds the start and end of each of the line's 12 words in ``buf``: those of word k, from 0
    on, are ``w[2 k]`` and ``w[2 k + 1]``.  The words are the event's kind, time, two nodes, packet
    type, size, flags, flow id, source, sink, sequence number and uid.  The event's numbers are
    stored in ``e`` and its time in ``clock[0]``.  Returns whether the words form a valid event.
    """
    e[KIND] = buf[w[0]]
    clock[0], good = decimal(buf, w[2], w[3])
    e[AT], good1 = integer(buf, w[4], w[5])
    e[GOAL], good2 = integer(buf, w[6], w[7])
    e[BYTES], good3 = integer(buf, w[10], w[11])
    e[LABEL], good4 = integer(buf, w[14], w[15])
    e[NODE1], e[PORT1], good5 = _address(buf, w[16], w[17])
    e[NODE2], e[PORT2], good6 = _address(buf, w[18], w[19])
    e[NUMBER], good7 = integer(buf, w[20], w[21])
    e[PACKET], good8 = integer(buf, w[22], w[23])
    e[TYPE] = OTHER
    if equal(buf, w[8], w[9], b"ack"):
        e[TYPE] = ACK
    elif equal(buf, w[8], w[9], b"tcp"):
        e[TYPE] = TCP
    elif w[9] - w[8] > 2 and equal(buf, w[8], w[8] + 3, b"rtP"):
        e[TYPE] = ROUTING
    good = good and good1 and good2 and good3 and good4 and good5 and good6 and good7 and good8
    return good and e[AT] >= 0 and e[GOAL] >= 0
