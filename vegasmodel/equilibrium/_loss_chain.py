"""Computes how the window of one source moves from random loss to random loss, by a Markov chain.

Every packet is lost with probability p, independently. The state of the chain is the window at
which a loss occurs. The source behaves as in ns-2:

* Growth. The window grows by about one packet every b round trips, where b is the number of packets
  per ACK. (Linux counts the acknowledged packets instead of the ACKs. So in Linux the window grows
  by a packet every round trip, whatever b is.) If b is above 1, the last packets of a window wait
  for their ACK until the next window arrives. Vegas does not grow in the round trip after a
  recovery.
* Fast retransmit. It needs three duplicate ACKs. If fewer than three packets arrive after the lost
  one, the source waits for its coarse timer, the usual retransmission timer. Vegas also has a fine
  timer, which is shorter. If the fine timer has expired, one or two duplicate ACKs are enough.
* Recovery. Tahoe continues with slow start. Reno repairs one loss; a second loss in the window
  means a timeout. NewReno and Vegas repair one loss per round trip. SACK repairs all losses in one
  round trip.
* Timeout. A timeout also follows if a retransmission is lost. Slow start then lasts until half of
  the window at the loss is reached. Each timeout doubles the coarse timer, until an RTT is measured
  again. In Vegas a fast retransmit doubles the coarse timer, too.

The chain is an approximation: it assumes that each round trip ends before the next one begins, and
that ACKs arrive evenly. All constants come from the protocols; none is fitted.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from vegasmodel.equilibrium._loss_formulas import waits_in_a_row
from vegasmodel.equilibrium._loss_source import Recovery, Source
from vegasmodel.metrics import Floats

MAX_WINDOWS = 128  # windows of the chain: if ``top`` is larger, they are over one packet apart
DUPLICATES = 3  # duplicate ACKs that start a fast retransmit
# Least windows in packets from which the chain lets a window grow linearly. The first is for the
# growth after a cut: three duplicate ACKs need a window of 4 packets, and half of it is 2. ns-2's
# Vegas may cut smaller windows, but never below 2 (``recv`` in tcp-vegas.cc).
#
# The second is for the growth after a timeout. The chain always counts the three ACKs by which slow
# start goes from 1 packet to 4. ns-2's least ssthresh is 2 (``slowdown`` in tcp.cc). With this
# ssthresh the first of the three ACKs ends slow start, at a window of 2. The other two make the
# window larger by 1/2 and by 1/2.5 packets (``opencwnd``), so it is nearly 3 when the chain's
# linear growth begins. ns-2's Vegas begins at 2 packets instead of 1 (``v_slowstart_``), which the
# chain neglects.
LEAST_AFTER_CUT, LEAST_AFTER_TIMEOUT = 2.0, 3.0
ACK_PAUSE = 0.1  # s for which ns-2's receiver delays an ACK at most


class Chain:
    """The Markov chain of loss events. Its state is the window at which a loss occurs.

    The possible windows ``w`` form a grid that ends at ``top``. ``packets`` is the mean number of
    packets that are delivered from one loss event to the next.
    """

    def __init__(
        self,
        law: Recovery,
        loss: float,
        counted_every: float,
        top: float,
        overflows: bool,
        needed: float,
    ) -> None:
        """Compute how often a loss occurs at each window, and the packets from loss to loss.

        ``law`` says how the source recovers, and ``loss`` is the probability that a packet is lost.
        The window W grows by 1/W packets for every ``counted_every`` acknowledged packets. The
        largest window of the chain is ``top``. If ``overflows`` is true, a window that reaches it
        overflows the buffer, and a packet is dropped. If it is false, the window stays there until
        a packet is lost at random. ``needed`` is the mean number of duplicate ACKs that start a
        fast retransmit.
        """
        self.law, self.loss, self.counted_every = law, loss, counted_every
        self.overflows, self.needed = overflows, needed
        self.step = max(1.0, top / MAX_WINDOWS)
        below = self.step * np.arange(1.0, max(2, math.ceil(top / self.step - 1e-9)))
        self.w: Floats = np.append(below, top)  # it ends at ``top`` even if that is not a step
        self.log_arrive = math.log1p(-loss)  # ln of the probability that a packet arrives
        self.fast = self._fast_retransmit()  # by window: the probability of no timeout
        self.after_cut = law.decrease * self.w  # by window: the window after a fast retransmit
        # For each window at a loss: the probabilities of the windows at the next loss, and the
        # packets sent until then. First after a timeout (slow start to half the window follows),
        # then after a fast retransmit.
        growth = self._growth()
        slow_start = self._slow_start(growth)
        next_after_timeout, packets_after_timeout = self._after_timeout(slow_start)
        # Slow start begins at 1 packet, and sends 3 ``counted_every`` packets until the window is
        # 4. One of them is the retransmission of the lost packet, which has been counted already.
        packets_after_timeout = packets_after_timeout + 3.0 * counted_every - 1
        if law.restarts:  # Tahoe: slow start follows a fast retransmit, too
            next_after_fast, packets_after_fast = next_after_timeout, packets_after_timeout
        else:
            next_after_fast, packets_after_fast = self._after_cut(growth)
            # packets of the round trips without growth, and of those of the recovery
            packets_after_fast = packets_after_fast + law.idle_rounds * self.after_cut
            rounds = self._recovery_rounds()
            packets_after_fast = packets_after_fast + rounds * np.maximum(self.after_cut - 1, 0)
        fast = self.fast[:, None]
        # by window: the fraction of the losses that occur at it
        self.weight = _stationary(fast * next_after_fast + (1 - fast) * next_after_timeout)
        # by window: the packets from a loss there to the next one; the loss's round trip has w - 1
        each = self.w - 1 + self.fast * packets_after_fast + (1 - self.fast) * packets_after_timeout
        self.packets = float(self.weight @ each)

    def seconds(self, source: Source) -> float:
        """Mean time in s from one loss to the next: the recovery and the growth that follows it."""
        rtt = functools.partial(_rtt, source)
        # seconds of linear growth until a loss, by the window at which it starts
        growth = self.alive @ (self.sent * self._packet_spacing(source))
        # seconds of slow start from 4 packets, and of the growth that follows it: first by
        # ssthresh, then by the window at the loss
        from_4 = self.survive * growth + self.slow_rounds @ rtt(self.slow_windows)
        [from_4] = self._after_timeout((from_4,))
        # Each round trip of slow start multiplies the window by 1 + 1/counted_every. So it takes
        # ln 4/ln(1 + 1/counted_every) round trips from 1 packet to 4.
        slow = from_4 + math.log(4.0) / math.log1p(1.0 / self.counted_every) * source.rtt
        # seconds after a fast retransmit, by the window at the loss
        if self.law.restarts:
            after_fast = slow
        else:
            [after_fast] = self._after_cut((growth,))
            rounds = self._recovery_rounds() + self.law.idle_rounds
            after_fast = after_fast + rounds * rtt(self.after_cut)
        after_timeout = slow + self._timeout_wait(source.timeout)
        # the first term is the round trip in which the other w - 1 packets are sent
        each = rtt(self.w) + self.fast * after_fast + (1 - self.fast) * after_timeout
        return float(self.weight @ each)

    def sum_of_rtts(self, source: Source) -> float:
        """The sum of the RTTs of all packets delivered from one loss to the next, s, on average.

        ``__init__`` counts these packets, phase by phase (``packets``). Here the packets of each
        phase are multiplied by the RTT at their window.
        """
        rtt = functools.partial(_rtt, source)
        # the sum over linear growth until a loss, by the window at which it starts
        growth = self.alive @ (self.sent * rtt(self.middle))
        # the sum over slow start from 4 packets and the growth that follows it: first by ssthresh,
        # then by the window at the loss
        from_4 = self.survive * growth
        from_4 = from_4 + self.slow_rounds @ (self.slow_windows * rtt(self.slow_windows))
        [from_4] = self._after_timeout((from_4,))
        # slow start from 1 packet to 4, without the retransmission
        after_timeout = from_4 + (3.0 * self.counted_every - 1) * source.rtt
        if self.law.restarts:  # Tahoe: slow start follows a fast retransmit, too
            after_fast = after_timeout
        else:
            [after_fast] = self._after_cut((growth,))
            # packets of the round trips without growth, and of those of the recovery
            packets = self.law.idle_rounds * self.after_cut
            packets = packets + self._recovery_rounds() * np.maximum(self.after_cut - 1, 0)
            after_fast = after_fast + packets * rtt(self.after_cut)
        # the first term is for the other w - 1 packets of the loss's round trip
        each = (self.w - 1) * rtt(self.w) + self.fast * after_fast + (1 - self.fast) * after_timeout
        return float(self.weight @ each)

    def _packet_spacing(self, source: Source) -> Floats:
        """Mean time in s from packet to packet in each step of linear growth.

        If a window does not fill the link, its packets arrive as a burst, and a pause follows. Let
        the receiver send one ACK for b packets. The last packets of the burst may be fewer than b.
        The receiver then acknowledges them with the next burst, a round trip later, but after
        ``ACK_PAUSE`` at the latest. Until then the sender sends no new packets in their place, so
        its rate is lower. On average (b - 1)/2 packets wait in this way. If the window stays
        constant, the number of waiting packets is the remainder when the window is divided by b.
        """
        waiting = np.full_like(self.w, max(source.ack_every - 1.0, 0.0) / 2.0)
        if not self.overflows and self.w[-1] == source.hold and source.hold % 1.0 == 0.0:
            waiting[-1] = source.hold % source.ack_every
        moving = self.middle - waiting * min(1.0, ACK_PAUSE / source.rtt)
        return np.asarray(np.maximum(source.rtt / moving, 1.0 / source.capacity))

    def _recovery_rounds(self) -> Floats:
        """Mean number of round trips of a fast recovery, for each window at which a loss occurs.

        The first lost packet takes one round trip. NewReno and Vegas repair one loss per round
        trip, so each further lost packet of the window takes another round trip.
        """
        return np.asarray(1.0 + self.law.round_per_hole * self.loss * (self.w - 1))

    def _timeout_wait(self, timeout: float) -> Floats:
        """Mean time in s that a source waits for timeouts, for each window at which a loss occurs.

        The loss is one that leads to a timeout. If the retransmission or one of the next two
        packets is lost, the model assumes another timeout. It is twice as long as the one before,
        but never longer than 64 times the first.

        In Vegas a fast retransmit also doubles the retransmission timeout. So the first wait of
        Vegas is 2 to 64 times ``timeout``.
        """
        # probability that the retransmission or one of the next two packets is lost
        p = -math.expm1(DUPLICATES * self.log_arrive)
        # The mean is ``waits_in_a_row`` divided by 1 - p, which is exp(DUPLICATES log_arrive).
        # (Computed from p, 1 - p would round to 0 if almost every packet is lost.)
        wait = np.full_like(
            self.w, timeout * waits_in_a_row(p) * math.exp(-DUPLICATES * self.log_arrive)
        )
        if self.law.backs_off:
            # The timer is doubled for this loss, and once more for each of the k windows just
            # before that had a loss, too. ``has_loss`` is the probability that a window has one.
            # The mean of the factor on the timer has two parts: for k up to 4, and for larger k, at
            # which the factor is 64, its limit.
            has_loss = -np.expm1(self.log_arrive * self.w)
            up_to_4 = sum((1 - has_loss) * 2 ** (k + 1) * has_loss**k for k in range(5))
            wait *= up_to_4 + 64 * has_loss**5
        return wait

    def _mean_sent(self, packets: Floats) -> Floats:
        """Mean number of packets that a source sends until a loss, the lost packet included.

        The count ends at ``packets`` packets if none of them is lost.
        """
        p = self.loss
        return packets if p == 0 else np.asarray(-np.expm1(self.log_arrive * packets) / p)

    def _growth(self) -> tuple[Floats, Floats]:
        """Linear growth until the next loss: the window at this loss, and the packets sent.

        The chain's possible windows form a grid. Returns a matrix and a vector. Entry (i, j) of the
        matrix is the probability that growth from window i of the grid ends with a loss at window
        j. Entry i of the vector is the mean number of packets sent from window i to the loss.

        The method also sets three arrays that ``seconds`` needs. ``middle`` is the mean window in
        each step of the grid, and ``sent`` the mean number of packets sent in this step. Entry
        (i, j) of ``alive`` is the probability of no loss from window i to window j.
        """
        w = self.w
        width = np.append(np.diff(w), 1.0)
        self.middle = w + np.maximum(width - 1, 0) / 2  # mean of the whole windows in a step
        # packets sent in each step of the grid, and before it
        packets = self.counted_every * width * (self.middle + self.law.ack_lag)
        before = np.concatenate([[0.0], np.cumsum(packets)[:-1]])
        self.alive = np.triu(
            np.exp(np.minimum(self.log_arrive * (before[None, :] - before[:, None]), 0.0))
        )
        lost = -np.expm1(self.log_arrive * packets)  # probability of a loss in the step
        lost[-1] = 1.0  # at the largest window the growth ends with a loss in any case
        sent = self._mean_sent(packets)
        if not self.overflows:  # the window stays there until a packet is lost at random
            sent[-1] = 1.0 / self.loss
        self.sent = sent
        return self.alive * lost, self.alive @ sent

    def _slow_start(self, growth: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
        """Slow start from 4 packets to ssthresh, then linear growth, until the next loss.

        Returns a matrix and a vector. Let ssthresh be window i of the grid. Entry (i, j) of the
        matrix is the probability that the next loss occurs at window j. Entry i of the vector is
        the mean number of packets sent until then. ``growth`` has the same two results for linear
        growth alone (``_growth``).

        The method also sets three arrays that ``seconds`` needs: ``slow_windows`` are the windows
        of slow start, ``slow_rounds`` is the mean number of round trips at each of them, and
        ``survive`` is the probability that slow start ends without a loss.
        """
        w = self.w
        # from one window of slow start to the next: each ACK, or each packet, adds a packet
        factor = 1.0 + 1.0 / self.counted_every
        steps = max(0, math.ceil(math.log(w[-1] / 4.0) / math.log(factor)))
        self.slow_windows = np.array([4.0 * factor**i for i in range(steps)])
        self.slow_rounds = np.zeros((w.size, self.slow_windows.size))
        # by ssthresh: the probability of no loss so far, and those of a loss at each window
        alive, lost = np.ones_like(w), np.zeros((w.size, w.size))
        for i, window in enumerate(self.slow_windows):
            # packets sent while slow start has this window; 0 if ssthresh (``w``) is not above it
            packets = np.where(window < w, window * self.law.slow_rounds, 0.0)
            self.slow_rounds[:, i] = alive * self._mean_sent(packets) / window
            nearest = min(max(round(window / self.step), 1), w.size) - 1  # window of the grid
            lost[:, nearest] += alive * -np.expm1(self.log_arrive * packets)
            alive = alive * np.exp(self.log_arrive * packets)
        self.survive = alive
        next_windows, sent_in_growth = growth
        sent = self.slow_rounds @ self.slow_windows
        return lost + alive[:, None] * next_windows, sent + alive * sent_in_growth

    def _after_cut(self, growth: tuple[Floats, ...]) -> tuple[Floats, ...]:
        """For each window at a loss, the results of linear growth from the window after the cut.

        ``growth`` has these results for each window of the grid from which growth may start.
        """
        return self._at_windows(growth, np.maximum(self.after_cut, LEAST_AFTER_CUT))

    def _after_timeout(self, slow_start: tuple[Floats, ...]) -> tuple[Floats, ...]:
        """For each window at a loss, the results of a slow start that ends at half this window.

        ``slow_start`` has these results for each window of the grid at which slow start may end.
        """
        return self._at_windows(slow_start, np.maximum(self.w / 2.0, LEAST_AFTER_TIMEOUT))

    def _at_windows(self, phase: tuple[Floats, ...], window: Floats) -> tuple[Floats, ...]:
        """Interpolate results of linear growth or slow start between the windows of the grid.

        ``phase`` has arrays of results. Their first index stands for a window of the grid: the one
        at which linear growth starts, or ssthresh, at which slow start ends. ``window`` holds the
        windows for which results are wanted; they may lie between two windows of the grid. The
        interpolation is linear. A window above the grid is replaced by the grid's largest.
        """
        window = np.minimum(window, self.w[-1])
        # index of the grid's window below, and how far the window is on the way to the next one
        low = np.clip(np.searchsorted(self.w, window) - 1, 0, self.w.size - 2)
        part = (window - self.w[low]) / (self.w[low + 1] - self.w[low])
        return tuple(
            ((1 - part) * x[low].T + part * x[low + 1].T).T  # the windows are x's first axis
            for x in phase
        )

    def _fast_retransmit(self) -> Floats:
        """Probability that a loss causes no timeout, for each window at which a loss occurs.

        Between two whole windows the probability is interpolated linearly.
        """
        low = np.floor(self.w)
        part = self.w - low
        return np.asarray(
            (1 - part) * self._repair_probability(low) + part * self._repair_probability(low + 1)
        )

    def _repair_probability(self, window: Floats) -> Floats:
        """Probability that a loss at a window of whole packets causes no timeout."""
        p, others = self.loss, window - 1  # packets sent after the lost one: each gives an ACK
        arrive = 1 - p
        if self.law.restarts:  # three of the others arrive, and the retransmission
            return (1 - _prob_fewer(DUPLICATES, others, p, arrive)) * arrive
        if self.law.one_loss_only:  # all of the others arrive, and the retransmission
            return np.where(others >= DUPLICATES, arrive ** (others + 1), 0.0)
        # Otherwise ``needed`` of the others must arrive, and every retransmission. The result is
        # the probability that all lost packets are repaired, less that of too few arrivals among
        # them.
        lost_and_resent = p * arrive  # a packet is lost, and its retransmission arrives
        all_repaired: Floats = (lost_and_resent + arrive) ** others
        # between two whole numbers of needed packets, the probability is interpolated
        low, part = int(self.needed), self.needed % 1
        too_few = (1 - part) * _prob_fewer(low, others, lost_and_resent, arrive)
        if part:
            too_few = too_few + part * _prob_fewer(low + 1, others, lost_and_resent, arrive)
        return arrive * (all_repaired - too_few)


def _rtt(source: Source, window: Floats) -> Floats:
    """The RTT in s at each window (packets): ``source.rtt``, or longer if packets of it queue.

    They queue if the window exceeds ``source.rtt`` times ``source.capacity``.
    """
    return np.asarray(np.maximum(source.rtt, window / source.capacity))


def _prob_fewer(needed: int, n: Floats, lost: float, arrive: float) -> Floats:
    """The probability that fewer than ``needed`` of n packets arrive; n is whole and >= 0.

    A packet arrives with the probability ``arrive`` and is lost with the probability ``lost``. The
    result is the sum of C(n, j) arrive^j lost^(n - j) over all j < needed.
    """
    total, binomial = np.zeros_like(n), np.ones_like(n)
    for j in range(needed):
        power = np.where(n >= j, lost ** np.maximum(n - j, 0.0), 0.0)
        total += binomial * arrive**j * power
        binomial = binomial * np.maximum(n - j, 0.0) / (j + 1)
    return total


def _stationary(matrix: Floats) -> Floats:
    """Stationary distribution of a Markov chain with the transition matrix ``matrix``.

    Each row of the matrix adds up to 1. A distribution is multiplied by the matrix until it no
    longer changes. If it still changes after 400 multiplications, a linear system is solved
    instead.
    """
    weight = np.full(len(matrix), 1 / len(matrix))
    for _ in range(400):
        following = weight @ matrix
        if np.abs(following - weight).sum() < 1e-14:
            return np.asarray(following / following.sum())
        weight = following
    # the equations weight = weight @ matrix; the last one is replaced by sum(weight) = 1
    system = np.eye(len(matrix)) - matrix.T
    system[-1] = 1.0
    right = np.zeros(len(matrix))
    right[-1] = 1.0
    return np.asarray(np.linalg.solve(system, right), dtype=np.float64)
