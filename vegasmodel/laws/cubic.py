"""TCP CUBIC (RFC 9438): the window is a cubic function of the time since the last loss.

CUBIC also computes the window that a Reno flow would have that lost a packet at the same time. If
this window is larger, CUBIC uses it instead.
"""

import functools

import numpy as np

from vegasmodel.laws.law import Law, Rule
from vegasmodel.laws.packets import SLACK
from vegasmodel.laws.source import Source

C = 0.4  # packets per second cubed
BETA = 0.7  # factor on the window at a loss
COMPARED_LATE = 0.5  # round trips, on average, until Linux uses the growth of Reno's window
SAME_WINDOW = 1.0 / 32.0  # s, HZ/32: Linux computes a constant window's growth once in this time
ALPHA = 3.0 * (1.0 - BETA) / (1.0 + BETA)  # of an AIMD(alpha, beta) that is fair to Reno


def remember(f: Source) -> float:
    """Return W_max, the window towards which CUBIC grows after a loss, or -W_max.

    Let W be the window at the loss. If W is at least the previous W_max, then W_max = W. Otherwise
    W_max = W (1 + beta)/2, where beta = 0.7 is CUBIC's factor at a loss. This second rule is called
    fast convergence (RFC 9438 4.7), and after it the result is -W_max. ``drift`` computes W from
    W_max, and the sign tells it which of the two rules to invert.
    """
    return f.window if f.window >= abs(f.memory) else -0.5 * (1.0 + BETA) * f.window


# After a loss CUBIC's window is the larger of two functions of time (RFC 9438). The time t counts
# from the end of the recovery. W_epoch is the window at t = 0.
# - The cubic function is C (t - K)^3 + W_max (equations (1) and (2)), where
#   K = cbrt((W_max - W_epoch)/C). So it is W_epoch at t = 0, and W_max at t = K. W_max is the
#   window just before the loss, or a smaller value after fast convergence (`remember`).
# - The second function estimates the window that a Reno flow would have (section 4.3). It is also
#   W_epoch at t = 0. By RFC 9438 it grows by ALPHA = 0.53 packets per RTT until it reaches the
#   window before the loss, and then by 1 packet per RTT. In Linux it always grows by 0.53 packets
#   per RTT, and in ns-2 always by 0.35. A ``Stack`` (``stacks/``) describes such a TCP
#   implementation, and its ``reno_windows`` is the inverse of this growth: 1/0.53 RTTs per packet
#   in Linux.
def _at_loss(f: Source) -> float:
    """The window at the last loss, before the cut."""
    highest = abs(f.memory)
    return highest if f.memory > 0.0 else 2.0 * highest / (1.0 + BETA)


def _growth(f: Source, reno: float) -> float:
    """Growth of the window in packets per round trip, towards CUBIC's target window.

    The result is the target window less the present window, and at least 0. The target is the
    larger of two windows one round trip ahead: the value of the cubic function, and ``reno``, the
    window that a Reno flow would have then. The target is at most 1.5 times the present window
    (RFC 9438 4.2). The kernel has the same limit, because it adds a packet to the window at every
    second ACK at most. It computes a number of ACKs, ``cnt``, from the target. In Linux 6.1 the
    ``cnt``-th ACK adds the packet, and ``cnt`` is at least 2. In Linux 2.6, which ns-2 contains,
    the next ACK adds it, and ``cnt`` is at least 1 (``bictcp_cong_avoid``).

    Before the first loss there is no W_max, so no cubic function. The growth is then 1, as Reno's.
    """
    if f.memory == 0.0:  # slow start has ended without a loss
        return 1.0
    highest = abs(f.memory)  # W_max
    k: float = ((highest - BETA * _at_loss(f)) / C) ** (1.0 / 3.0)  # seconds until it is W_max
    # The time t counts from the end of the recovery, a round trip after the loss. So one round trip
    # from now, t is the time since the loss.
    ahead = max(f.elapsed, f.rtt)
    cubic: float = C * (ahead - k) ** 3 + highest
    target = min(max(cubic, reno), 1.5 * f.window)
    return max(target - f.window, 0.0)


def drift(f: Source) -> float:
    """Growth in packets per round trip, by RFC 9438: towards the larger of two windows.

    The two windows are the value of the cubic function (``_growth``) and the window that Reno would
    have, both one round trip ahead.

    Reno's window is a function of the round trips since the end of the recovery, which is assumed
    to last one round trip. It grows by ``ALPHA`` packets per round trip up to the window at the
    loss, and then by one packet. The round trips are counted, not computed as seconds/RTT, because
    the RTT changes with the queue.
    """
    at_loss = _at_loss(f)
    after_cut = BETA * at_loss
    # one round trip ahead of now, and one less for the recovery: so many since the last loss
    rounds = max(f.round_trips, 1.0)
    rounds_to_at_loss = (at_loss - after_cut) / ALPHA
    if rounds < rounds_to_at_loss:
        reno = after_cut + ALPHA * rounds
    else:
        reno = at_loss + rounds - rounds_to_at_loss
    return _growth(f, reno)


@functools.cache  # the simulator compiles each function that it gets
def kernel_drift(reno_windows: float, whole_window: bool, together: bool = False) -> Rule:
    """Return the function ``drift`` of the CUBIC of Linux or ns-2 (``tcp_cubic.c``).

    It differs from RFC 9438 in the growth of the window that Reno would have. This window always
    grows by one packet in ``reno_windows`` round trips, even above the window at the last loss.
    ``whole_window`` is True for Linux. Then there are three more differences, which the kernel's
    function ``bictcp_update`` shows:

    - Windows and the target are whole numbers. The window after a loss is rounded down, and the
      cubic function and Reno's window begin at the rounded window. The target is rounded up below
      W_max, and down above W_max.
    - The target is the value of the cubic function one RTT later. Linux takes the least RTT for
      this, not the present RTT.
    - While the window does not change, it is compared with Reno's at most once per 1/32 s. The ACKs
      of a round trip usually arrive together, within less time. So the windows are compared at the
      first of these ACKs, half a round trip late on average (``COMPARED_LATE``).

    ``together`` is True if the RTTs of all flows are equal. The simulator ``fluid`` then knows when
    these first ACKs arrive, and calls the function only then. So the window is not compared late,
    and Reno's window is rounded down to whole packets.
    """

    def drift(f: Source) -> float:
        rounds = max(f.round_trips, 1.0)
        return _growth(f, BETA * _at_loss(f) + rounds / reno_windows)

    def whole(f: Source) -> float:
        """The function ``drift`` of Linux's CUBIC, in which windows are whole numbers."""
        if f.memory == 0.0:  # slow start has ended without a loss
            return 1.0
        after_cut = np.floor(BETA * _at_loss(f) + SLACK)
        highest = max(np.floor(abs(f.memory) + SLACK), after_cut)  # W_max
        k = ((highest - after_cut) / C) ** (1.0 / 3.0)  # K: seconds until the window is W_max
        ahead = max(f.elapsed - f.rtt, 0.0) + f.base_rtt  # t, one least RTT from now
        offset = ahead - k
        distance = np.floor(C * abs(offset) ** 3)  # of the target from W_max, packets
        target = highest + distance if offset > 0.0 else highest - distance
        window = np.floor(f.window + SLACK)
        if together:
            reno = after_cut + np.floor(max(f.round_trips - 1.0, 0.0) / reno_windows + SLACK)
        else:
            reno = after_cut + max(f.round_trips - COMPARED_LATE, COMPARED_LATE) / reno_windows
        growth: float = max(min(target, 1.5 * window) - window, reno - f.window, 0.0)
        return growth

    return whole if whole_window else drift


def left_out(stack: str, decrease: float) -> str:
    """What this law leaves out of the CUBIC of the TCP implementation ``stack``, as a text.

    ``decrease`` is the flow's factor on the window at a loss. If it is not 0.7, the text says that
    the formulas of this law assume 0.7. If it is 0.7 and the stack is ``linux``, the text says that
    Linux ends CUBIC's slow start by HyStart. In all other cases the text is empty.
    """
    if decrease != BETA:
        return f"CUBIC's K and its Reno-friendly region are those of a factor of {BETA:g}"
    return "CUBIC's slow start in Linux ends by HyStart, too" if stack == "linux" else ""


LAW = Law(
    "cubic",
    drift=drift,
    decrease=BETA,
    remember=remember,
    is_cubic=True,
    kernel_drift=kernel_drift,
    left_out=left_out,
)
