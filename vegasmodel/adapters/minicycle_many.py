"""Evaluates the mini-cycle model for many values of a scenario's fields at once.

The model describes how the windows of Vegas and Reno move in a cycle, which lasts from one overflow
of the buffer to the next. A result has averages over a cycle, and says which assumptions hold.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from vegasmodel.adapters.minicycle import steady
from vegasmodel.adapters.minicycle_assumptions import holding
from vegasmodel.adapters.minicycle_inputs import given, losing
from vegasmodel.metrics import Floats
from vegasmodel.scenario import Scenario

# the fields of a scenario whose values may differ; the last ones are those of its Vegas flows
KEYS_OF_VEGAS = ("alpha", "beta", "gamma", "decrease", "initial_window")
KEYS = ("capacity", "buffer", "rtt", *KEYS_OF_VEGAS)
# the fields of ``minicycle.Cycle`` that are results
WANTED = ("vegas", "reno", "queue_mean", "utilization", "loss_rate_vegas", "loss_rate_reno")


def takes(scenario: Scenario, key: str, groups: Sequence[int]) -> bool:
    """Whether ``answers`` can compute results for many values of the field ``key`` at once.

    The values are for those entries ``[[flow]]`` of the scenario whose indices are in ``groups``.
    For a field of the link, ``groups`` is empty. In the model all flows have the same RTT, and all
    Vegas flows have the same parameters. So for ``rtt`` the groups must be all groups, and for a
    parameter of Vegas all groups with Vegas.
    """
    if key not in KEYS or len(scenario.links) != 1:
        return False
    all_groups = set(range(len(scenario.flows)))
    vegas = {i for i, group in enumerate(scenario.flows) if group.keeps_backlog}
    if key in ("capacity", "buffer"):
        return not groups
    if key == "rtt":
        return set(groups) == all_groups
    return set(groups) == vegas


def answers(
    scenario: Scenario, values: Mapping[str, Floats]
) -> tuple[dict[str, Floats], dict[str, NDArray[np.bool_]]]:
    """The results of ``minicycle.answer`` for many values of the scenario's fields.

    ``values`` maps fields (from ``KEYS``) to arrays, which replace the scenario's values. The
    arrays broadcast to one shape, which is also the shape of each result. The scenario itself must
    be one for which ``minicycle.answer`` has throughputs.

    The first result has the averages ``vegas`` and ``reno`` (the rate of one flow of each, pkt/s),
    ``loss_rate_vegas`` and ``loss_rate_reno``, ``queue_mean`` (packets), ``utilization``, and
    ``rtt_mean`` (s). They are NaN if the buffer is infinite or the model has no steady cycle. The
    second result says whether each assumption holds, by its name. It means nothing where the
    averages are NaN.
    """
    shape = np.broadcast_shapes(*(np.shape(value) for value in values.values()))
    all_values = {
        name: np.broadcast_to(value, shape)
        for name, value in (given(scenario) | dict(values)).items()
    }
    cycle = steady(scenario, all_values, losing(scenario))
    found = {name: np.array(getattr(cycle, name)) for name in WANTED}
    infinite = all_values["buffer"] == math.inf
    if np.any(infinite):
        for entries in found.values():
            entries[infinite] = np.nan
    found["rtt_mean"] = all_values["rtt"] + found["queue_mean"] / all_values["capacity"]
    return found, holding(scenario, all_values, cycle)
