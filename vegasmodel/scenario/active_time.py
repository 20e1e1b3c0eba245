"""Says when flows are active: in which order they start, and for which part of the time."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from vegasmodel.metrics import Floats
from vegasmodel.scenario import Scenario


def by_start(scenario: Scenario) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """The indices of the flows, in the order in which they start."""
    return np.argsort([m.start for m in scenario.members], kind="stable")


def active_part(scenario: Scenario) -> Floats:
    """The fraction of the measured time in which each flow is active, [n_flows], from 0 to 1.

    The measured time begins at the end of the warm-up and ends with the run.  A flow is active from
    its start to its stop.
    """
    begin, end = scenario.run.warmup, scenario.run.duration
    spans = [min(m.stop, end) - max(m.start, begin) for m in scenario.members]
    part: Floats = np.maximum(spans, 0.0) / (end - begin)
    return part


def silent(scenario: Scenario) -> NDArray[np.bool_]:
    """For each flow, whether it may send nothing after the warm-up, [flow].

    This is so for a flow of finite size, because it may have sent all its packets by then. It is
    also so for a flow that stops before the warm-up ends. The throughput of these flows may be NaN.
    """
    ended = np.array([m.flow.size != math.inf for m in scenario.members])
    never: NDArray[np.bool_] = active_part(scenario) == 0.0
    return ended | never
