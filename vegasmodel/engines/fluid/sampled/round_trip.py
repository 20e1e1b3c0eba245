"""A round trip of a sender: what its packets measure, when it is over, what it decides then."""

from __future__ import annotations

import numpy as np

from vegasmodel.engines.fluid.records import Tally, jit
from vegasmodel.engines.fluid.sampled.law import drift, source
from vegasmodel.engines.fluid.sampled.queue import burst
from vegasmodel.engines.fluid.sampled.records import GAMMA, SAME, Records
from vegasmodel.engines.fluid.sampled.recovery import on_loss
from vegasmodel.metrics import Floats


@jit
def sample_delay(flows: Records, clock: Floats, h: float) -> float:
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
def decide(flows: Records, clock: Floats, i: int) -> None:
    """ns-2 takes a packet away at once and adds one in the course of the round, Linux at once."""
    m = drift(flows, clock, i, False)
    flows[i].drift = 0.0
    if flows[i].whole_window or (not flows[i].real_numbers and m < 0.0):
        flows[i].window = min(max(flows[i].window + m, flows[i].floor), flows[i].cap)
    else:
        flows[i].drift = m


@jit
def end_round(flows: Records, clock: Floats, i: int, c: float, smooth: bool) -> None:
    """A round trip is over: what it measured, and the law's decision if it decides so."""
    s, before = flows[i].told, flows[i].window
    if flows[i].hear <= 0.0 and flows[i].asleep <= clock[0]:
        flows[i].backoff = 1.0
    if flows[i].measured:
        flows[i].over = min(flows[i].over, s)
    busy = flows[i].hold > 0.0 or flows[i].asleep > clock[0]
    if flows[i].slow_start == GAMMA and not busy:
        f = source(flows, clock, i, False)
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
            decide(flows, clock, i)
    elif flows[i].once and not busy and not flows[i].slow and not smooth:
        decide(flows, clock, i)
    flows[i].still = (
        flows[i].still + 1.0 if flows[i].window == before and flows[i].drift == 0.0 else 0.0
    )
    if flows[i].sent > 0.0:
        mean = flows[i].seen / flows[i].sent + 0.5 * max(burst(flows, clock, i, c), 0.0) / c
        flows[i].told = flows[i].least if flows[i].least_of_round else mean
    flows[i].seen, flows[i].sent, flows[i].least = 0.0, 0.0, np.inf
    flows[i].wide, flows[i].deep = flows[i].window, clock[1]


@jit
def on_acks(
    flows: Records, clock: Floats, i: int, g: float, c: float, smooth: bool, out: Tally
) -> None:
    """What the ACKs of ``g`` round trips tell flow i: losses, and the end of a round."""
    if smooth and flows[i].measured:
        flows[i].over = min(flows[i].over, clock[1])
    if flows[i].hear > 0.0:
        flows[i].hear -= g
        if flows[i].hear <= 0.0 or smooth:
            on_loss(flows, clock, i, smooth, out)
    flows[i].part += g
    if flows[i].part >= 1.0:
        flows[i].part -= np.floor(flows[i].part)
        end_round(flows, clock, i, c, smooth)
        if flows[i].drift != 0.0 and flows[i].hold <= 0.0 and flows[i].asleep <= clock[0]:
            flows[i].window += flows[i].drift * flows[i].part  # of the round that has begun
