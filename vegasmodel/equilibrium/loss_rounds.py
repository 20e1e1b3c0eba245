"""Computes the goodput and the mean RTT of one source under random loss.

Both are means over a Markov chain, which describes the source's window from one loss to the next.
``_loss_chain.py`` has this chain, and says how the source behaves.

The model ``random-loss`` uses the chain. ``benchmarks/accuracy_loss.py`` compares this model with
ns-2, and ``docs/accuracy.md`` has the errors.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from vegasmodel.equilibrium._loss_chain import ACK_PAUSE as ACK_PAUSE
from vegasmodel.equilibrium._loss_chain import DUPLICATES, Chain
from vegasmodel.equilibrium._loss_source import LAWS, Recovery, Source
from vegasmodel.fields import kinds

__all__ = ["LAWS", "Recovery", "Source", "goodput", "mean_rtt"]

# The largest window is REACH/sqrt(b p). If a loss cuts it by the factor d, it grows to this size
# again before the next loss with the probability exp(-(1 - d^2) REACH^2/2). This is 2e-9 for
# Vegas's d = 0.75, and less for a smaller d. So larger windows need not be in the chain.
REACH = 9.6
FINE_SLACK = 1 / 16  # fraction of a steady RTT by which Vegas's fine timer lasts longer than it


@kinds.checked
def goodput(source: Source, law: Recovery) -> float:
    """Goodput of one TCP source on a lossy path, packets per second, each packet counted once.

    ``law`` says how the source recovers from losses. The goodput is infinite if nothing limits the
    source: there are no losses, and its window and the capacity are unlimited. It is 0 if every
    packet is lost, and NaN if a number is too large for a float, such as the square of a window of
    1e200 packets.
    """
    if source.loss >= 1.0:
        return 0.0
    top = _largest(source)
    if math.isinf(top):
        return source.capacity
    if source.loss == 0.0 and source.hold <= source.overflow:
        return top / max(source.rtt, top / source.capacity)
    try:
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            chain = _of_source(source, law, top)
            return chain.packets / chain.seconds(source)
    except ArithmeticError:
        return math.nan


@kinds.checked
def mean_rtt(source: Source, law: Recovery) -> float:
    """The mean RTT of the source's packets, s; packets may wait behind others of the source.

    A packet of a window W has the RTT ``source.rtt``, or W/``source.capacity`` if that is longer.
    The mean is over the packets of the same chain as in ``goodput``. The result is NaN if no packet
    arrives, or if a number is too large for a float. It is infinite if the window grows without
    end.
    """
    if source.loss >= 1.0:
        return math.nan
    top = _largest(source)
    if math.isinf(source.capacity):
        return source.rtt
    if math.isinf(top) or (source.loss == 0.0 and source.hold <= source.overflow):
        return max(source.rtt, top / source.capacity)
    try:
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            chain = _of_source(source, law, top)
            return chain.sum_of_rtts(source) / chain.packets
    except ArithmeticError:
        return math.nan


def _largest(source: Source) -> float:
    """The largest window that the source can reach, packets; infinite if nothing limits it."""
    return max(2.0, min(source.hold, source.overflow, _reach(source)))


def _reach(source: Source) -> float:
    """The window that is hardly ever reached before a random loss, packets."""
    if source.loss == 0.0:
        return math.inf
    return REACH / math.sqrt(source.counted_every * source.loss)


def _of_source(source: Source, law: Recovery, top: float) -> Chain:
    """The chain of ``source`` with windows up to ``top`` packets."""
    needed = float(DUPLICATES)
    if law.fine_timer:
        # Duplicate ACKs arrive at the rate of the link. The first one after the fine timer has
        # expired starts the retransmit. To round up to whole ACKs adds 1/2 on average.
        before_timer = source.capacity * source.rtt * FINE_SLACK
        needed = min(max(before_timer + 0.5, 1.0), needed)
    overflows = source.overflow <= min(source.hold, _reach(source))
    return _chain(law, source.loss, source.counted_every, top, overflows, needed)


@functools.lru_cache(maxsize=32)
def _chain(
    law: Recovery, loss: float, counted_every: float, top: float, overflows: bool, needed: float
) -> Chain:
    """The Markov chain of loss events (``Chain``), cached for calls with the same arguments."""
    return Chain(law, loss, counted_every, top, overflows, needed)
