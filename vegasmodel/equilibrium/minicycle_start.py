"""Computes Vegas's window after the first overflow of the buffer, if Vegas and Reno start together.

Vegas and Reno move in cycles from overflow to overflow. Usually the steady cycle does not depend on
the start. But it does if Vegas never loses a packet, and keeps its window at any backlog in a
range, for example between alpha and beta. Then there are many steady cycles, which differ in
Vegas's window. The window after the first overflow decides which of these cycles follows.

All sources start together in an empty network, in slow start. Reno's window doubles each RTT.
Vegas's window doubles every second RTT (in Linux each RTT), until its backlog exceeds gamma. After
that Vegas grows or shrinks by one packet per RTT, or holds its window, as its backlog demands. At
the overflow every source whose window still grows loses a packet, which cuts its window.
"""

from __future__ import annotations

import numpy as np

from vegasmodel.equilibrium.minicycle_derived import Edge
from vegasmodel.metrics import Floats
from vegasmodel.stacks import STACKS, Variant, dead_zone, find

# the least window to which Vegas shrinks when its backlog is above beta
LEAST_WINDOW = {
    name: 0.0 if stack.real_numbers else stack.least_window for name, stack in STACKS.items()
}
# the window, in packets, with which a source starts by default
INITIAL = {name: stack.least_window for name, stack in STACKS.items()}
STEP = 1 / 64  # length of a step of the computation, in mini-cycles
# most mini-cycles until the overflow: Reno's window doubles in each, so any buffer overflows within
# 1024 of them
MAX_MINICYCLES = 2000


def edge(backlog: Floats, variant: Variant, n_V: Floats, M: Floats) -> Edge:
    """The sum of the Vegas windows as a function of the queue, if each flow has this ``backlog``.

    This is equation (7) of De Vendictis and Baiocchi, with the queue q in the form shift + pull/q.
    The backlog is in packets, computed by the formula of ``variant``. n_V is the number of Vegas
    flows and M the bandwidth-delay product in packets.
    """
    A = n_V * np.maximum(backlog, 0.0)
    return Edge(shift=np.zeros_like(A) if find(variant).backlog_over_base else A, pull=A * M)


def edges(
    alpha: Floats, beta: Floats, variant: Variant, n_V: Floats, M: Floats
) -> tuple[Edge, Edge]:
    """The sum of the Vegas windows as a function of the queue, at both limits of the backlog.

    Vegas keeps its window while its backlog is between the two limits. The limits follow from
    alpha, beta and the rounding of the variant. Returns the function for the lower limit, and then
    that for the upper limit. n_V is the number of Vegas sources, and M the bandwidth-delay product
    in packets.
    """
    lower, upper = dead_zone(alpha, beta, variant)
    return edge(lower, variant, n_V, M), edge(upper, variant, n_V, M)


def window(
    M: Floats,
    B: Floats,
    alpha: Floats,
    beta: Floats,
    cut: Floats,
    n_V: Floats,
    n_R: Floats,
    gamma: Floats,
    initial: Floats,
    variant: Variant,
) -> Floats:
    """Window in packets of one Vegas source after the first overflow of the buffer.

    All sources start together in slow start, with ``initial`` packets each. Vegas leaves slow start
    when its backlog exceeds ``gamma`` packets. M is the bandwidth-delay product and B the buffer,
    in packets. n_V and n_R are the numbers of Vegas and Reno sources. ``cut`` is the factor of
    Vegas's window at a loss. Vegas loses only if its window still grows at the overflow. All arrays
    have one shape.
    """
    # functions of the queue: the sum of the Vegas windows at the two limits of the backlog, between
    # which Vegas keeps its window, and at the backlog ``gamma``
    lower, upper = edges(alpha, beta, variant, n_V, M)
    gamma_edge = edge(gamma, variant, n_V, M)
    V, R = n_V * initial, n_R * initial  # sums of the Vegas and of the Reno windows
    slow_start = np.ones(V.shape, dtype=np.bool_)  # whether Vegas is still in slow start
    grows = slow_start.copy()  # whether Vegas's windows grow
    not_full = V + R < M + B + 1  # whether the buffer has not overflowed yet
    for _ in range(int(MAX_MINICYCLES / STEP)):  # each step is a part of a mini-cycle (round trip)
        if not np.any(not_full):
            break
        q = np.clip(V + R - M, 0.0, B)  # the queue
        # Where the buffer has overflowed, nothing changes any more (``not_full`` is False).
        slow_start &= ~not_full | (gamma_edge.window(q) > V)
        low, high = lower.window(q), upper.window(q)
        # V after the step: in slow start, below the upper limit (``up``), and above it (``down``).
        # In slow start Vegas's window doubles once in ``doubling`` round trips.
        doubled = V * 2.0 ** (STEP / STACKS[variant].doubling)
        up = np.minimum(V + n_V * STEP, np.maximum(low, V))
        down = np.maximum(
            V - n_V * STEP, np.maximum(high, np.minimum(n_V * LEAST_WINDOW[variant], V))
        )
        grows = np.where(not_full, slow_start | (low > V), grows)
        V = np.where(not_full, np.where(slow_start, doubled, np.where(high < V, down, up)), V)
        R = np.where(not_full, R * 2.0**STEP, R)
        not_full = V + R < M + B + 1
    return np.where(grows, cut * V, V) / n_V
