"""Scenarios for the simulators with continuous windows, and what Vegas gets in its steady state."""

import numpy as np
from scipy.optimize import brentq

from vegasmodel.scenario import Flow, Link, Run, Scenario


def scenario(flows, capacity=1080.0, buffer=20.0, duration=600.0, warmup=200.0, **link):
    return Scenario(
        links=(Link(capacity=capacity, buffer=buffer, **link),),
        flows=tuple(flows),
        packet_size=500.0,
        run=Run(duration=duration, warmup=warmup, seed=3),
    )


def vegas(alpha=3.0, beta=None, rtt=0.08, **more):
    return Flow(law="vegas", rtt=rtt, alpha=alpha, beta=alpha if beta is None else beta, **more)


def reno(rtt=0.08, **more):
    return Flow(law="reno", rtt=rtt, **more)


def steady_state(alpha, x, c):
    """``boutremans`` (6): rates alpha/(Delta - x) whose sum is c."""
    alpha, x = np.asarray(alpha), np.asarray(x)
    delta = brentq(lambda d: (alpha / (d - x)).sum() - c, x.max() + 1e-12, 1e4, xtol=1e-15)
    return alpha / (delta - x)
