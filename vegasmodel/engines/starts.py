"""Draws random start times of the flows, one set for each run of a scenario.

The runs of a scenario are numbered. The run with a given number has the same start times in every
simulator and in ns-2.
"""

from __future__ import annotations

import numpy as np

from vegasmodel.fields.errors import FieldError
from vegasmodel.metrics import Floats
from vegasmodel.scenario import Scenario

__all__ = ["check_starts", "random_delays", "start_times"]


def random_delays(scenario: Scenario, k: int) -> tuple[np.random.Generator, Floats]:
    """The random generator of run number ``k``, and each flow's random delay of its start, in s.

    The delays are at most ``start_jitter``; they are to be added to the scenario's start times.
    """
    rng = np.random.default_rng([scenario.run.seed, k])
    # When we run ns-2, the first number drawn is the seed of ns-2's own generator. The simulators
    # need no such seed, but also draw this number. So the delays drawn next are the same for ns-2
    # and for the simulators.
    rng.integers(1, 2**31 - 1)
    return rng, rng.uniform(0.0, 1.0, len(scenario.members)) * scenario.run.start_jitter


def start_times(scenario: Scenario, k: int) -> Floats:
    """The start times in run number ``k`` of the scenario's flows, in seconds.

    A random part (``start_jitter``) is added to the times in the scenario. The run of ns-2 with the
    same number has the same start times, because it has the same seed.
    """
    _, delays = random_delays(scenario, k)
    return np.array([member.start for member in scenario.members]) + delays


def check_starts(scenario: Scenario, starts: Floats | None) -> None:
    """Raise ``FieldError`` unless ``starts`` has a time for each flow, or is None."""
    n = len(scenario.members)
    if starts is not None and (starts.shape != (n,) or np.any(np.isnan(starts))):
        raise FieldError("starts", starts, f"{n} times in s, one for each flow")
