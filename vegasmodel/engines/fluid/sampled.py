"""Windows of whole packets that decide once a round trip, over one self-clocked link.

Where an implementation decides is part of its law: ns-2's and Linux's Vegas look at a round trip
when it is over, at what they measured in it, and only a whole packet leaves.  So the fluid of
(W1) and (W2) is sampled here.  With ``n_i`` packets of flow i in flight and ``k_i`` of them lost,

    sum_i (n_i - k_i)/(T_i + s) = c,   or s = 0 where that sum is below c               (S1)
    dW_i/dt = m_i/(T_i + s),   m_i = drift of the law                                   (S2)
    n_i = floor(W_i); after a cut n_i falls by one an ACK until it is that              (S3)

A round trip ends when as many packets as were in flight have been acknowledged:
integral of dt/(T + s) = 1.  ACKs tell of the queue that their packets met when they were sent, a
round trip ago.  The packet that finds c s > B is lost; it is the one that made its window's whole
part grow, so who stands or falls loses nothing.  A round trip later its sender hears of it.

Steps are a part of the shortest round trip.  What comes within one counts in the order in which
it comes; its effect on the queue begins at the step's end.
"""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

from vegasmodel.engines.fluid.tally import Tally
from vegasmodel.engines.outside import call
from vegasmodel.laws import BUILT_IN, Source
from vegasmodel.metrics import Floats
from vegasmodel.support.machine_code import compiled

SCOREBOARD, HOLE_BY_HOLE, ONE_HOLE, SLOW_START = 0, 1, 2, 3  # recovery
NONE, UNTIL_LOSS, GAMMA = 0, 1, 2  # slow start
NEVER = 1e300
SAME = 1e-9  # packets
TIGHT = 1e-12  # relative tolerance of (S1)
DUPLICATES = 3.0  # that tell of a loss
TICK = 0.1  # seconds; the clock of BSD's timer. A steady RTT leaves it at RTT + 3 ticks:
TICKS = 3.0  # its variance is kept in quarters of a tick, and 3/4 decay no further
LONGEST_PAUSE = 64.0  # seconds; ns-2's longest timeout
STILL = 4.0  # rounds in a row without a decision that moves a window: then none will come

Record = Any  # one element of such an array, read and written by field name
Records = NDArray[Any]
FLOW = np.dtype(
    [
        # what a flow is: times in seconds, windows in packets
        ("rtt", "f8"),  # T, empty network
        ("law", "i8"),  # place in ``BUILT_IN``, or -1
        ("drift_at", "i8"),  # addresses of the compiled rules of a law from outside; 0: none
        ("cut_at", "i8"),
        ("remember_at", "i8"),
        # mechanisms of its stack (``stacks/stack.py``)
        ("backlog_over_base", "b1"),
        ("real_numbers", "b1"),
        ("whole_window", "b1"),
        ("least_of_round", "b1"),
        ("rack", "b1"),
        ("doubling", "i8"),
        ("cut_rounds_up", "b1"),  # a law with its own check cuts by whole packets, rounded down
        ("once", "b1"),  # decides once a round trip
        ("recovery", "i8"),
        ("slow_start", "i8"),
        ("lower", "f8"),  # thresholds of the backlog, after the implementation's rounding
        ("upper", "f8"),
        ("gamma", "f8"),
        ("climb", "f8"),  # factor on the drift: 1/2 with delayed ACKs
        ("decrease", "f8"),
        ("floor", "f8"),
        ("cap", "f8"),
        ("first", "f8"),
        ("measured", "b1"),  # baseRTT is measured; else ``over`` stays
        ("start", "f8"),
        ("stop", "f8"),
        # what moves
        ("on", "b1"),
        ("window", "f8"),  # W
        ("flight", "f8"),  # n
        ("lost", "f8"),  # k: packets lost of which the sender has not heard
        ("gone", "f8"),  # packets lost so far
        ("hear", "f8"),  # round trips until it hears of them; 0: nothing to hear
        ("hold", "f8"),  # round trips of recovery that are left
        ("asleep", "f8"),  # time until which it waits for its timer
        ("backoff", "f8"),  # factor on the next timeout
        ("drain", "f8"),  # packets a round trip by which the flight falls
        ("threshold", "f8"),  # of slow start
        ("slow", "b1"),  # in slow start
        ("even", "i8"),  # Vegas's slow start: 1 where it doubles in this round
        ("drift", "f8"),  # m of this round
        ("part", "f8"),  # of the round trip that is over
        ("over", "f8"),  # x
        ("seen", "f8"),  # integral of s over the packets sent in this round,
        ("sent", "f8"),  # ... those packets
        ("least", "f8"),  # ... and the least s
        ("wide", "f8"),  # window when this round began,
        ("deep", "f8"),  # ... and s
        ("told", "f8"),  # mean s (Linux: least) of the round before, which this round's ACKs tell
        ("still", "f8"),  # rounds since a decision moved the window
        ("memory", "f8"),  # of the law
        ("since", "f8"),  # time of the last loss
        # in a step
        ("grown", "f8"),  # packets that left on top of those that ACKs let go
        ("spilt", "f8"),  # ... of which so many found the buffer full
        ("pace", "f8"),  # of the window, packets a second,
        ("paced", "f8"),  # ... and in the step before
        ("rate", "f8"),  # of delivery when the step began
    ]
)

_Function = TypeVar("_Function", bound=Callable[..., Any])


def jit(function: _Function) -> _Function:
    """Compile when first called, and keep the result on disk; threads run side by side."""
    options: dict[str, Any] = {"error_model": "numpy", "nogil": True}
    return cast("_Function", compiled(function, whole_program=True, **options))


class Road(NamedTuple):
    """The link."""

    capacity: float
    room: float  # packets that can wait
    loss: float  # probability of random loss
    red: int
    low: float  # RED's thresholds, packets
    high: float
    top: float
    weight: float
    gentle: int
    wait: float  # of the senders before they use an open window: transmission times, at most


def _chain(functions: list[Any]) -> Any:
    """A compiled function that calls the k-th of them, without a table: all are inlined."""
    inner = numba.njit(error_model="numpy", nogil=True)  # kept with what calls them

    def link(k: int, function: Any, rest: Any) -> Any:
        if rest is None:
            return inner(lambda _, f: function(f))
        return inner(lambda i, f: function(f) if i == k else rest(i, f))

    chain = None
    for k in range(len(functions) - 1, -1, -1):
        chain = link(k, inner(functions[k]), chain)
    return chain


_drift = _chain([law.drift for law in BUILT_IN])


@jit
def _source(flows: Records, clock: Floats, i: int, smooth: bool) -> Source:
    """What the law of flow i sees."""
    s = clock[1] if smooth else flows[i].told
    W = flows[i].window if smooth else np.floor(flows[i].window + SAME)
    rtt, base = flows[i].rtt + s, flows[i].rtt + flows[i].over
    backlog = W * (s - flows[i].over) / (base if flows[i].backlog_over_base else rtt)
    elapsed = clock[0] - flows[i].since
    return Source(
        flows[i].window,
        rtt,
        base,
        backlog,
        elapsed,
        flows[i].memory,
        flows[i].lower,
        flows[i].upper,
    )


@jit
def _drift_of(flows: Records, clock: Floats, i: int, smooth: bool) -> float:
    f = _source(flows, clock, i, smooth)
    if flows[i].drift_at != 0:
        return flows[i].climb * call(flows[i].drift_at, f)
    return flows[i].climb * _drift(flows[i].law, f)


@jit
def _whole(flows: Records, i: int, smooth: bool) -> float:
    return flows[i].window if smooth else np.floor(flows[i].window + SAME)


@jit
def _delay(flows: Records, clock: Floats, c: float) -> float:
    """(S1): the queueing delay, by Newton's method, which from the left never overshoots."""
    s = clock[1]
    for _ in range(50):
        f, slope = -c, 0.0
        for i in range(flows.size):
            if flows[i].on:
                per = 1.0 / (flows[i].rtt + s)
                rate = (flows[i].flight - flows[i].lost) * per
                f += rate
                slope -= rate * per
        if slope == 0.0 or (s == 0.0 and f <= 0.0):
            return 0.0
        new = max(s - f / slope, 0.0)
        if abs(new - s) <= TIGHT * (new + 1e-6):
            return new
        s = new
    return s


@jit
def _spill(flows: Records, s_max: float, c: float) -> float:
    """(S1) at the full buffer: packets a second too many, if some flow has grown."""
    f = -c
    for i in range(flows.size):
        if flows[i].on:
            f += (flows[i].flight - flows[i].lost) / (flows[i].rtt + s_max)
    return f


@jit
def _lose(flows: Records, i: int, packets: float) -> None:
    """Packets of flow i are lost; a round trip later it hears of the first.

    None: an overflow of smooth windows, in which each that grows loses one and is cut at once.
    """
    flows[i].lost += packets
    flows[i].gone += max(packets, 1.0)
    flows[i].still = 0.0
    if flows[i].hear <= 0.0:
        flows[i].hear = 1.0


@jit
def _cut(flows: Records, clock: Floats, i: int, smooth: bool) -> float:
    f = _source(flows, clock, i, smooth)
    W = _whole(flows, i, smooth)
    if flows[i].remember_at != 0:
        flows[i].memory = call(flows[i].remember_at, f)
    else:
        flows[i].memory = W
    flows[i].since = clock[0]
    if flows[i].cut_at != 0:
        return call(flows[i].cut_at, f)
    if smooth:
        return W * flows[i].decrease
    if flows[i].cut_rounds_up:
        return W - np.floor((1.0 - flows[i].decrease) * W)
    return np.floor(flows[i].decrease * W)


@jit
def _react(flows: Records, clock: Floats, i: int, smooth: bool, out: Tally) -> None:
    """The sender hears of its losses."""
    lost, W = flows[i].lost, _whole(flows, i, smooth)
    out.losses[i] += 1
    flows[i].hear, flows[i].slow, flows[i].still = 0.0, False, 0.0
    flows[i].drift = 0.0
    before = flows[i].flight
    flows[i].flight = max(before - lost, 0.0)
    flows[i].lost = 0.0
    few = 1.0 if flows[i].slow_start == GAMMA else DUPLICATES
    timer = (W - lost < few) or (flows[i].recovery == ONE_HOLE and lost > 1.0)
    new = max(_cut(flows, clock, i, smooth), flows[i].floor)
    flows[i].drain = before
    if smooth:
        flows[i].window = flows[i].flight = new
        return
    if timer and not flows[i].rack:
        if W - lost >= few:
            W = new
        flows[i].threshold = max(np.floor(0.5 * W), 2.0)
        tick = 0.1
        pause = flows[i].backoff * (flows[i].rtt + clock[1] + 3.0 * tick)
        flows[i].asleep = clock[0] + min(pause, 64.0)
        flows[i].backoff = min(2.0 * flows[i].backoff, 64.0)
        flows[i].window = 2.0 if flows[i].slow_start == GAMMA else 1.0
        flows[i].slow = flows[i].slow_start != GAMMA
        return
    flows[i].window, flows[i].threshold = new, max(new, 2.0)
    flows[i].hold = 1.0
    if flows[i].recovery == SLOW_START:
        flows[i].window, flows[i].slow = 1.0, True
    elif flows[i].recovery == HOLE_BY_HOLE:
        flows[i].hold = lost


@jit
def _burst(flows: Records, clock: Floats, i: int, c: float) -> float:
    """Packets of a slow start's round that queue though on average none need wait.

    Its packets come as one train: two for each ACK, while the link lets one go.  So the queue grows
    by what the window has grown in this round, at least.
    """
    if not flows[i].slow:
        return 0.0
    return max(flows[i].window - flows[i].wide - c * (clock[1] - flows[i].deep), 0.0)


@jit
def _end_round(flows: Records, clock: Floats, i: int, c: float, smooth: bool) -> None:
    """A round trip is over: what it measured, and the law's decision if it decides so."""
    s, before = flows[i].told, flows[i].window
    if flows[i].hear <= 0.0 and flows[i].asleep <= clock[0]:
        flows[i].backoff = 1.0
    if flows[i].measured:
        flows[i].over = min(flows[i].over, s)
    busy = flows[i].hold > 0.0 or flows[i].asleep > clock[0]
    if flows[i].slow_start == GAMMA and not busy:
        f = _source(flows, clock, i, False)
        if flows[i].slow:
            flows[i].drift = 0.0
            flows[i].even = 1 - flows[i].even if flows[i].doubling > 1 else 1
            if flows[i].whole_window:
                if np.floor(f.backlog) > flows[i].gamma:
                    W = np.floor(flows[i].window + SAME)
                    flows[i].window = max(min(W, np.floor(W * f.base_rtt / f.rtt) + 1.0), 2.0)
                    flows[i].slow = False
            elif flows[i].even == 1 and np.floor(f.backlog + 0.5) > flows[i].gamma:
                keeps = 1.0 if smooth else 7.0 / 8.0  # ns-2 slows down a bit
                flows[i].window = max(flows[i].window * keeps, flows[i].floor)
                flows[i].slow = False
            if flows[i].slow and flows[i].even == 1:
                flows[i].drift = flows[i].window
        elif flows[i].once and not smooth:
            _decide(flows, clock, i)
    elif flows[i].once and not busy and not flows[i].slow and not smooth:
        _decide(flows, clock, i)
    flows[i].still = (
        flows[i].still + 1.0 if flows[i].window == before and flows[i].drift == 0.0 else 0.0
    )
    if flows[i].sent > 0.0:
        mean = flows[i].seen / flows[i].sent + 0.5 * max(_burst(flows, clock, i, c), 0.0) / c
        flows[i].told = flows[i].least if flows[i].least_of_round else mean
    flows[i].seen, flows[i].sent, flows[i].least = 0.0, 0.0, np.inf
    flows[i].wide, flows[i].deep = flows[i].window, clock[1]


@jit
def _decide(flows: Records, clock: Floats, i: int) -> None:
    """ns-2 takes a packet away at once and adds one in the course of the round, Linux at once."""
    m = _drift_of(flows, clock, i, False)
    flows[i].drift = 0.0
    if flows[i].whole_window or (not flows[i].real_numbers and m < 0.0):
        flows[i].window = min(max(flows[i].window + m, flows[i].floor), flows[i].cap)
    else:
        flows[i].drift = m


@jit
def _admit(flows: Records, clock: Floats) -> float:
    """Start and stop flows that are due; the time of the next start or stop."""
    t, due = clock[0], np.inf
    for i in range(flows.size):
        active = flows[i].start <= t < flows[i].stop
        if active and not flows[i].on:
            flows[i].window = flows[i].flight = flows[i].first
            flows[i].slow = flows[i].slow_start != NONE
            flows[i].threshold, flows[i].even = np.inf, 1
            flows[i].over = clock[1] if flows[i].measured else flows[i].over
            flows[i].told, flows[i].part, flows[i].drift = clock[1], 0.0, 0.0
            flows[i].wide, flows[i].deep = flows[i].window, clock[1]
            flows[i].seen, flows[i].sent, flows[i].least, flows[i].still = 0.0, 0.0, np.inf, 0.0
            flows[i].lost, flows[i].hear, flows[i].hold, flows[i].asleep = 0.0, 0.0, 0.0, 0.0
            flows[i].since, flows[i].memory, flows[i].backoff = t, 0.0, 1.0
        elif flows[i].on and not active:
            flows[i].window = flows[i].flight = flows[i].lost = 0.0
        flows[i].on = active
        if flows[i].start > t:
            due = min(due, flows[i].start)
        elif flows[i].stop > t:
            due = min(due, flows[i].stop)
    return due


@jit
def _early(link: Road, average: float) -> float:
    """RED's drop probability p_b of the average queue."""
    if average < link.low:
        return 0.0
    if average < link.high:
        return link.top * (average - link.low) / (link.high - link.low)
    if link.gentle and average < 2.0 * link.high:
        return link.top + (1.0 - link.top) * (average - link.high) / link.high
    return 1.0


@jit
def _victim(flows: Records, clock: Floats) -> int:
    """A packet that arrives now, drawn by the flows' rates."""
    total, s, last = 0.0, clock[1], 0
    for i in range(flows.size):
        if flows[i].on:
            total += flows[i].flight / (flows[i].rtt + s)
    left = np.random.random() * total
    for i in range(flows.size):
        if flows[i].on and flows[i].flight > 0.0:
            last = i
            left -= flows[i].flight / (flows[i].rtt + s)
            if left <= 0.0:
                return i
    return last


@jit
def _toss(flows: Records, clock: Floats, link: Road, packets: float) -> None:
    """Random loss and RED, of so many arrivals.

    RED (Floyd and Jacobson 1993; ns-2's ``wait_``): the number of packets between two drops is
    uniform on 1/p .. 2/p, so the next falls when the sum of p since the last is uniform on 1 .. 2.
    """
    if link.loss > 0.0:
        clock[5] -= packets * -np.log1p(-link.loss)
        while clock[5] <= 0.0:
            clock[5] += -np.log(1.0 - np.random.random())
            _lose(flows, _victim(flows, clock), 1.0)
    if link.red:
        waits = max(link.capacity * clock[1] - 0.5, 0.0)
        clock[2] += (1.0 - (1.0 - link.weight) ** packets) * (waits - clock[2])
        chance = _early(link, clock[2]) if waits > 1.0 else 0.0
        if chance <= 0.0:
            clock[3] = 0.0
            return
        clock[3] += packets * chance
        while clock[3] >= clock[4]:
            clock[3] -= clock[4]
            clock[4] = 1.0 + np.random.random()
            _lose(flows, _victim(flows, clock), 1.0)


@jit
def _grow(flows: Records, clock: Floats, h: float, smooth: bool) -> bool:
    """(S2) and (S3) over a step.

    ``grown``: packets that left on top of those that ACKs let go; ``pace``: of the window, pkt/s.
    """
    s, t, moved = clock[1], clock[0], False
    for i in range(flows.size):
        flows[i].grown = 0.0
        if not flows[i].on:
            continue
        g = h / (flows[i].rtt + s)
        W = flows[i].window
        if flows[i].asleep > t or flows[i].hold > 0.0:
            flows[i].hold = max(flows[i].hold - g, 0.0)
        elif flows[i].slow and flows[i].slow_start == UNTIL_LOSS:
            flows[i].window = min(W * 2.0 ** (flows[i].climb * g), max(flows[i].threshold, W))
            flows[i].slow = flows[i].window < flows[i].threshold
        elif flows[i].slow and flows[i].doubling == 1:
            flows[i].window = W * 2.0**g
        elif flows[i].slow or (flows[i].once and not smooth):  # what was decided holds this round
            flows[i].window = W + flows[i].drift * min(g, 1.0 - flows[i].part)
        else:
            flows[i].window = W + _drift_of(flows, clock, i, smooth) * g
        flows[i].window = min(
            max(flows[i].window, flows[i].floor if flows[i].floor <= W else W), flows[i].cap
        )
        flows[i].paced = flows[i].pace
        flows[i].pace = (flows[i].window - W) / h if h > 0.0 else 0.0
        now = _whole(flows, i, smooth)
        n = flows[i].flight
        if flows[i].asleep > t + h:
            now = 0.0
        if now > n:
            flows[i].grown = now - n
            flows[i].flight = now
        elif now < n:
            flows[i].flight = max(now, n - max(flows[i].drain, n) * g)
        moved = moved or flows[i].flight != n
    return moved


@jit
def _burst_spills(flows: Records, i: int, clock: Floats, link: Road) -> None:
    """Packets of a slow start's train, and one of a sender that has woken, at a full buffer."""
    if flows[i].slow and flows[i].grown > 0.0:
        over = link.capacity * clock[1] + _burst(flows, clock, i, link.capacity) - link.room
        over = min(np.ceil(over - SAME), flows[i].grown)
        if over > 0.0:
            flows[i].grown -= over
            flows[i].spilt += over
            _lose(flows, i, over)
    # the only packet of a sender that has woken comes at any moment of a transmission
    alone = flows[i].grown == flows[i].flight == 1.0
    if alone and link.capacity * clock[1] + np.random.random() <= link.room:
        flows[i].grown = 0.0


@jit
def _last_to_grow(flows: Records) -> int:
    """The flow whose packet on top of those that ACKs let go left last; -1: none is left.

    Of several that left at one instant, as those of like flows do, any: packets have an order.
    """
    last, which, like = np.inf, -1, 0.0
    for i in range(flows.size):
        if flows[i].on and flows[i].grown > SAME:
            over = flows[i].window - flows[i].flight + flows[i].spilt
            ago = over / flows[i].pace if flows[i].pace > 0.0 else NEVER
            if ago < last - SAME * last or which < 0:
                last, which, like = ago, i, 1.0
            elif ago <= last + SAME * last:
                like += 1.0
                which = i if np.random.random() * like < 1.0 else which
    return which


@jit
def _overflow(flows: Records, clock: Floats, link: Road, smooth: bool) -> None:
    """Packets that find the buffer full: those that left last; if windows are smooth, one of each.

    Who stands or falls sends one packet an ACK, so it finds the place that its last packet left.
    Not so where senders wait at random: a wait is up to ``wait`` transmission times, and in each of
    these the place may go to whoever comes.  ACKs of one RTT come a transmission apart, so waits
    of at most that leave their order as it is.
    """
    for i in range(flows.size):
        flows[i].spilt = 0.0
        if flows[i].on and not smooth:
            _burst_spills(flows, i, clock, link)
    s_max = link.room / link.capacity
    while _spill(flows, s_max, link.capacity) > TIGHT * link.capacity:
        which = _last_to_grow(flows)
        if which < 0:
            return
        if smooth:
            for i in range(flows.size):
                # about a threshold a window goes to and fro: it slides there and does not grow
                if flows[i].on and flows[i].grown > 0.0 and flows[i].paced > 0.0:
                    _lose(flows, i, 0.0)
            return
        flows[which].grown -= 1.0
        flows[which].spilt += 1.0
        if link.wait > 0.0 and np.random.random() < link.wait:
            other = _victim(flows, clock)
            if link.wait > 1.0 or flows[other].rtt != flows[which].rtt:
                which = other  # by then the place is another's
        _lose(flows, which, 1.0)


@jit
def _rests(flows: Records, link: Road) -> bool:
    """Nothing will move until a flow starts or stops."""
    if link.red or link.loss > 0.0:
        return False
    for i in range(flows.size):
        if flows[i].on and (
            not flows[i].once or flows[i].still < STILL or flows[i].slow or flows[i].hear > 0.0
        ):
            return False
    return True


@jit
def seed(number: int) -> None:
    """Begin the draws of RED and of random loss, in this thread."""
    np.random.seed(number)


@jit
def _length(flows: Records, clock: Floats, link: Road, fraction: float, until: float) -> float:
    """How long the next step is: a part of the shortest round trip; while all rest, to the end."""
    h: float = until - clock[0]
    if not _rests(flows, link):
        for i in range(flows.size):
            if flows[i].on:
                h = min(h, fraction * (flows[i].rtt + clock[1]))
    return h


@jit
def _sense(flows: Records, clock: Floats, h: float) -> float:
    """What the packets of a step will tell of the queue; how many they are."""
    s, arrivals = clock[1], 0.0
    for i in range(flows.size):
        if flows[i].on:
            trip = flows[i].rtt + s
            flows[i].rate = (flows[i].flight - flows[i].lost) / trip
            packets = flows[i].flight * h / trip
            arrivals += packets
            flows[i].seen += packets * s
            flows[i].sent += packets
            flows[i].least = min(flows[i].least, s)
    return arrivals


@jit
def _hear(
    flows: Records, clock: Floats, i: int, g: float, c: float, smooth: bool, out: Tally
) -> None:
    """What the ACKs of ``g`` round trips tell flow i: losses, and the end of a round."""
    if smooth and flows[i].measured:
        flows[i].over = min(flows[i].over, clock[1])
    if flows[i].hear > 0.0:
        flows[i].hear -= g
        if flows[i].hear <= 0.0 or smooth:
            _react(flows, clock, i, smooth, out)
    flows[i].part += g
    if flows[i].part >= 1.0:
        flows[i].part -= np.floor(flows[i].part)
        _end_round(flows, clock, i, c, smooth)
        if flows[i].drift != 0.0 and flows[i].hold <= 0.0 and flows[i].asleep <= clock[0]:
            flows[i].window += flows[i].drift * flows[i].part  # of the round that has begun


@jit
def march(
    flows: Records, clock: Floats, link: Road, end: float, fraction: float, smooth: bool,
    out: Tally, grid: Floats, record: Floats,
) -> None:  # fmt: skip
    """Move on to ``end``.  ``fraction`` is the step over the shortest round trip.

    ``smooth``: no whole packets, no delay of decisions; the law's drift at every instant.
    """
    k = np.searchsorted(grid, clock[0])
    due = _admit(flows, clock)
    clock[1] = _delay(flows, clock, link.capacity)
    while clock[0] < end:
        until = min(due, end)
        h = _length(flows, clock, link, fraction, until)
        later = until if h == until - clock[0] else clock[0] + h
        while k < grid.size and grid[k] <= later:
            for i in range(flows.size):
                record[k, i] = flows[i].window if flows[i].on else 0.0
                record[k, flows.size + 1 + i] = flows[i].gone
            record[k, flows.size] = clock[1]
            k += 1
        arrivals = _sense(flows, clock, h)
        moved = _grow(flows, clock, h, smooth)
        if moved and link.room < np.inf:
            _overflow(flows, clock, link, smooth)
        s, clock[0] = clock[1], later
        if link.red or link.loss > 0.0:
            _toss(flows, clock, link, arrivals)
        clock[1] = _delay(flows, clock, link.capacity)
        out.queue[0] += 0.5 * h * link.capacity * (s + clock[1])
        out.queue[1] += h
        for i in range(flows.size):
            if flows[i].on:
                rate = (flows[i].flight - flows[i].lost) / (flows[i].rtt + clock[1])
                out.delivered[i] += 0.5 * h * (flows[i].rate + rate)
                out.window[i] += h * flows[i].flight
                out.active[i] += h
                _hear(flows, clock, i, h / (flows[i].rtt + s), link.capacity, smooth, out)
        if later >= due:
            due = _admit(flows, clock)
            clock[1] = _delay(flows, clock, link.capacity)
