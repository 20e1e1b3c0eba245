"""What the law of a flow sees, and what it answers: its drift, and its window after a loss."""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

from typing import Any

import numba
import numpy as np

from vegasmodel.engines.fluid.records import jit
from vegasmodel.engines.fluid.sampled.records import SAME, Records
from vegasmodel.engines.outside import call
from vegasmodel.laws import BUILT_IN, Source
from vegasmodel.metrics import Floats


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


_built_in = _chain([law.drift for law in BUILT_IN])


@jit
def source(flows: Records, clock: Floats, i: int, smooth: bool) -> Source:
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
def drift(flows: Records, clock: Floats, i: int, smooth: bool) -> float:
    """m_i of (S2): packets a round trip by which the law moves the window."""
    f = source(flows, clock, i, smooth)
    if flows[i].drift_at != 0:
        return flows[i].climb * call(flows[i].drift_at, f)
    return flows[i].climb * _built_in(flows[i].law, f)


@jit
def cwnd(flows: Records, i: int, smooth: bool) -> float:
    """Packets that the window lets be in flight: whole ones, unless windows are smooth."""
    return flows[i].window if smooth else np.floor(flows[i].window + SAME)


@jit
def cut(flows: Records, clock: Floats, i: int, smooth: bool) -> float:
    """The window after a loss, by the law's own rule or its factor; the law remembers the loss."""
    f = source(flows, clock, i, smooth)
    W = cwnd(flows, i, smooth)
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
