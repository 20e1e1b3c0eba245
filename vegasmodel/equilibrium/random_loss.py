"""Computes throughputs under random loss: of one flow, and of flows that share one link.

``throughput`` computes the rate of one flow by a Markov chain (``loss_rounds``), or by a formula:
the square-root law, or PFTK, the model of Padhye, Firoiu, Towsley and Kurose (1998). ``share``
computes the rates of flows that share one link. Every packet is lost with probability ``p``,
independently, before it reaches the link. Times are in seconds, windows in packets, rates in
packets per second. All results are approximations. The docstring of each function says what it
leaves out.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from vegasmodel.equilibrium import loss_rounds
from vegasmodel.equilibrium._checks import numbers, sender, word
from vegasmodel.equilibrium._loss_formulas import (
    coarse_timeout,
    hold_window,
    pftk,
    random_factor,
    square_root,
)
from vegasmodel.equilibrium.loss_rounds import LAWS, Source
from vegasmodel.fields import kinds
from vegasmodel.fields.errors import FieldError
from vegasmodel.laws import find
from vegasmodel.metrics import Floats
from vegasmodel.status import Status

__all__ = [
    "Sender",
    "Share",
    "coarse_timeout",
    "hold_window",
    "own_queueing",
    "pftk",
    "random_factor",
    "share",
    "square_root",
    "throughput",
]

Method = Literal["rounds", "pftk", "square-root"]
METHODS = ("rounds", "pftk", "square-root")
MAX_BRACKET = 1e9  # a search for a root goes no further than the first number from here on
MAX_STEPS = 10_000  # of a search for a root: enough to halve any interval of floats to the end


@kinds.checked
@dataclass(frozen=True)
class Sender:
    """One TCP sender on a lossy link: its congestion control ``law`` and its parameters.

    ``rtt`` and ``timeout`` are in s, without queueing. ``ack_every`` is the number of packets per
    ACK: 2 with delayed ACKs. With ``counts_packets`` the window grows by the packets that ACKs
    acknowledge, as in Linux; otherwise it grows by the ACKs. With ``scoreboard`` ACKs list the lost
    packets (SACK), whatever the law: a recovery repairs all losses in one round trip, as in Linux.
    Tahoe starts again from one packet even then. The formulas ``pftk`` and ``square-root`` do not
    use ``scoreboard``. Only Vegas uses ``alpha`` and ``over_estimate``. By default ``timeout`` is
    computed by ``coarse_timeout``, and ``decrease`` is the usual window factor of the law at a
    loss. Raises ``FieldError`` for values out of range.
    """

    law: str
    rtt: float
    alpha: float = 1.0
    over_estimate: float = 0.0
    decrease: float | None = None
    max_window: float = math.inf
    ack_every: float = 1.0
    timeout: float | None = None
    counts_packets: bool = False
    scoreboard: bool = False

    def __post_init__(self) -> None:
        word("law", self.law, tuple(LAWS))
        sender(self, cut=False)

    @property
    def counted_every(self) -> float:
        """The number of acknowledged packets for which the window W grows by 1/W packets."""
        return 1.0 if self.counts_packets else self.ack_every


@kinds.checked
def throughput(
    flow: Sender,
    p: float,
    capacity: float = math.inf,
    buffer: float = math.inf,
    queueing: float = 0.0,
    method: Method = "rounds",
) -> float:
    """Rate of one flow on a lossy link, pkt/s.

    ``p`` is the loss probability, ``capacity`` is in pkt/s, and ``buffer`` in packets. ``queueing``
    is the delay in s that other flows' packets cause. In all methods the window is at most the
    flow's ``max_window``. A Vegas flow's window also stops growing when its backlog is ``alpha``
    (``hold_window``), so the lesser of the two windows limits it.

    The methods ``pftk`` and ``square-root`` give the sending rate, which includes lost packets. The
    method ``rounds`` gives the goodput, which does not:

    - ``rounds``: by the Markov chain of ``loss_rounds``. A large window fills the buffer with the
      flow's own packets; if the buffer overflows, the window is cut.
    - ``pftk``: by the function ``pftk``, at most the capacity.
    - ``square-root``: by the function ``square_root``, at most the capacity.

    These two functions were derived for loss-based laws. For Vegas they get its factor ``decrease``
    at a loss, and the limit of its window. Samios and Vernon ("Modeling the throughput of TCP
    Vegas", SIGMETRICS 2003) express Vegas's throughput by the loss rate, the mean RTT and the least
    RTT. The formulas here are not theirs.

    For p = 1 the rate is 0. If p is so small that a window exceeds the range of floats, the rate
    may be NaN. Raises ``FieldError`` for arguments out of range.
    """
    _check_link(p, capacity, buffer, method)
    numbers("queueing", queueing)
    if p == 1:
        return 0.0  # nothing of what is sent arrives
    source, law = _source(flow, p, capacity, buffer, queueing)
    if method == "rounds":
        return loss_rounds.goodput(source, law)
    R, hold = source.rtt, source.hold  # ``hold``: the limit of the window, packets
    if method == "pftk":
        rate = pftk(p, R, source.timeout, flow.counted_every, hold, law.decrease)
    else:
        rate = np.minimum(square_root(p, R, flow.counted_every, law.decrease), hold / R)
    return min(float(rate), capacity)


@kinds.checked
def own_queueing(flow: Sender, p: float, capacity: float, buffer: float = math.inf) -> float:
    """The mean queueing delay in s of a flow that is alone on a lossy link.

    The flow's packets wait behind one another if its window exceeds ``capacity`` times the RTT. The
    delay is the mean RTT of the Markov chain of ``loss_rounds``, less ``flow.rtt``. The link loses
    each packet with the probability ``p``. Its ``capacity`` is in pkt/s, and its ``buffer`` in
    packets. The result is NaN for p = 1, because no packet arrives. Raises ``FieldError`` for
    arguments out of range.
    """
    _check_link(p, capacity, buffer, "rounds")
    return loss_rounds.mean_rtt(*_source(flow, p, capacity, buffer, 0.0)) - flow.rtt


def _source(
    flow: Sender, p: float, capacity: float, buffer: float, queueing: float
) -> tuple[Source, loss_rounds.Recovery]:
    """The source of the Markov chain of ``loss_rounds`` for a flow, and how it recovers.

    ``p`` is the loss probability of the link, ``capacity`` is in pkt/s, and ``buffer`` in packets.
    ``queueing`` is the delay in s that other flows' packets cause.
    """
    law = LAWS[flow.law]
    if flow.decrease is not None:
        law = dataclasses.replace(law, decrease=flow.decrease)
    if flow.scoreboard:  # with SACK several losses need no timeout, and no round trip each
        law = dataclasses.replace(law, one_loss_only=False, round_per_hole=False)
    # the timeout without queueing, s
    T_0 = float(coarse_timeout(flow.rtt)) if flow.timeout is None else flow.timeout
    hold = flow.max_window  # the window at which growth stops
    if find(flow.law).keeps_backlog:  # Vegas
        vegas_window = hold_window(flow.rtt, queueing, flow.alpha, flow.over_estimate, capacity)
        hold = min(hold, float(vegas_window))
    # the window at which the buffer overflows; one packet more is in transmission
    overflow = capacity * flow.rtt + buffer + 1
    source = Source(
        loss=p,
        rtt=flow.rtt + queueing,
        timeout=T_0 + queueing,
        capacity=capacity,
        hold=hold,
        overflow=overflow,
        ack_every=flow.ack_every,
        counts_packets=flow.counts_packets,
    )
    return source, law


@dataclass(frozen=True)
class Share:
    """The rates of flows on one lossy link, in pkt/s.

    ``queueing`` is the mean queueing delay in s, and ``loss`` the loss probability. ``regime`` says
    what limits the rates:

    - ``loss-limited``: even without a queue, the rates add up to at most the capacity;
    - ``capacity-limited``: the link is full, and the mean queue is below the buffer;
    - ``buffer-limited``: the buffer stays full, and ``loss`` is more than the random loss.

    ``residual`` is the sum of the rates divided by the capacity, less 1. In the regimes
    ``capacity-limited`` and ``buffer-limited`` it must be almost 0. If it is not, no solution was
    found: ``status`` is ``NOT_CONVERGED``, and the rates are NaN. For example, there is no solution
    for loss-based flows without a ``max_window`` if no packet is lost at random and the buffer is
    infinite: nothing then limits their windows.

    If a number is too large for a float, such as the square of a window of 1e200 packets,
    ``status`` is ``INVALID``, ``regime`` is empty, and all numbers are NaN.
    """

    rates: Floats
    queueing: float
    loss: float
    residual: float
    regime: str
    status: Status


@kinds.checked
def share(
    flows: Sequence[Sender],
    p: float,
    capacity: float,
    buffer: float = math.inf,
    method: Method = "rounds",
) -> Share:
    """Rates of flows that share a lossy link, and the mean queueing delay q.

    Each flow sees RTT = rtt + q. The rates fall as q grows, and q is the least delay at which their
    sum does not exceed the capacity. If the sum exceeds the capacity even with a full buffer, the
    buffer overflows. All flows then see an additional loss probability, just so large that the sum
    equals the capacity.

    The model is a mean field: flows see each other's mean queue, but not each other's bursts. A
    single flow waits only behind its own packets, which ``throughput`` counts, so q is 0
    (``own_queueing`` gives this delay).

    ``p``, ``capacity``, ``buffer`` and ``method`` are as in ``throughput``. Raises ``FieldError``
    for arguments out of range, and if ``flows`` is empty.
    """
    _check_link(p, capacity, buffer, method)
    if len(flows) == 0:
        raise FieldError("flows", flows, "one or more flows")
    different = list(dict.fromkeys(flows))  # equal flows have equal rates, which are computed once
    count = np.array([list(flows).count(flow) for flow in different], dtype=np.float64)

    def rates(queueing: float, loss: float) -> Floats:
        """The rate of each of the different flows."""
        return np.array(
            [throughput(flow, loss, capacity, buffer, queueing, method) for flow in different]
        )

    def excess(queueing: float, loss: float) -> float:
        """The sum of all rates divided by the capacity, less 1."""
        found = float(count @ rates(queueing, loss) / capacity - 1)
        if math.isnan(found):
            raise OverflowError
        return found

    try:
        queueing, loss, regime = _balance(excess, p, buffer / capacity)
        residual = excess(queueing, loss)
    except OverflowError:
        nothing = np.full(len(flows), np.nan)
        return Share(
            rates=nothing,
            queueing=math.nan,
            loss=math.nan,
            residual=math.nan,
            regime="",
            status=Status.INVALID,
        )
    found = dict(zip(different, rates(queueing, loss), strict=True))
    result = np.array([found[flow] for flow in flows])
    solved = regime == "loss-limited" or abs(residual) < 1e-6
    if not solved:
        result = np.full_like(result, np.nan)
    status = Status.DONE if solved else Status.NOT_CONVERGED
    return Share(
        rates=result, queueing=queueing, loss=loss, residual=residual, regime=regime, status=status
    )


def _balance(
    excess: Callable[[float, float], float], p: float, full: float
) -> tuple[float, float, str]:
    """The queueing delay, the loss probability and the regime of the result (``Share``).

    The regime says what limits the rates (``Share.regime``). ``excess(queueing delay, loss
    probability)`` is the sum of the rates divided by the capacity, less 1. ``p`` is the probability
    of a random loss. The loss probability of the result is larger if the buffer overflows, too.
    ``full`` is the queueing delay of a full buffer in s; it is infinite for a buffer without limit.
    """
    if excess(0.0, p) <= 1e-12:  # without a queue the flows do not exceed the capacity
        return 0.0, p, "loss-limited"
    if math.isfinite(full) and excess(full, p) > 0:  # they exceed it even with a full buffer
        by_overflow = _root(lambda x: excess(full, p + x), guess=1e-6, high=1.0 - p)
        return full, by_overflow + p, "buffer-limited"
    guess = full if math.isfinite(full) else 0.01  # seconds
    return _root(lambda q: excess(q, p), guess, math.inf), p, "capacity-limited"


def _root(falling: Callable[[float], float], guess: float, high: float) -> float:
    """The root of a falling function between 0, where it is positive, and ``high``.

    The root is first bracketed. The function is evaluated at ``guess``, then at 4 times this
    number, and so on, until it is not positive. Brent's method finds the root between the last two
    of these numbers. No number beyond ``high`` is tried, and none after the first that is
    ``MAX_BRACKET`` or more. If the function is positive even at the last number, this number is
    returned in place of a root.
    """
    from scipy.optimize import brentq

    below, above = 0.0, min(guess, high)
    while falling(above) > 0 and above < min(high, MAX_BRACKET):
        below, above = above, min(4 * above, high)
    if falling(above) > 0:
        return above
    return float(brentq(falling, below, above, xtol=1e-14, rtol=1e-12, maxiter=MAX_STEPS))


def _check_link(p: float, capacity: float, buffer: float, method: str) -> None:
    """Raise ``FieldError`` if one of these arguments of ``throughput`` is out of range."""
    numbers("p", p, high=1.0)
    numbers("capacity", capacity, above=True, infinite=True)
    numbers("buffer", buffer, infinite=True)
    word("method", method, METHODS)
