"""Evaluates the mini-cycle model for many values of a scenario's fields at once.

The model describes how the windows of Vegas and Reno move in a cycle, which lasts from one overflow
of the buffer to the next. The results are averages over a cycle.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from vegasmodel.adapters import minicycle as adapter
from vegasmodel.equilibrium import minicycle
from vegasmodel.metrics import Floats
from vegasmodel.scenario import Scenario

KEYS = ("capacity", "buffer", "rtt", "alpha", "beta", "gamma", "decrease", "initial_window")
WANTED = ("vegas", "reno", "queue_mean", "utilization", "loss_rate_vegas", "loss_rate_reno")


def takes(scenario: Scenario, key: str, groups: Sequence[int]) -> bool:
    """Whether ``averages`` can compute results for many values of a field of some flow groups.

    ``key`` is the field, and ``groups`` holds the groups' indices in the scenario. For a field of
    the link, ``groups`` is empty. All flows of the model have the same RTT, so ``groups`` must be
    all groups if the field is ``rtt``. All its Vegas flows have the same parameters, so ``groups``
    must be all Vegas groups if the field is a parameter of Vegas.
    """
    if key not in KEYS or len(scenario.links) != 1:
        return False
    everyone = set(range(len(scenario.flows)))
    vegas = {i for i, group in enumerate(scenario.flows) if group.keeps_backlog}
    if key in ("capacity", "buffer"):
        return not groups
    if key == "rtt":
        return set(groups) == everyone
    return set(groups) == vegas


def averages(scenario: Scenario, values: Mapping[str, Floats]) -> dict[str, Floats]:
    """The averages of ``minicycle.answer`` for many values of the scenario's fields.

    ``values`` maps fields (from ``KEYS``) to arrays, which replace the scenario's values. The
    arrays broadcast to one shape, which is also the shape of each result. The function
    ``minicycle.answer`` must be able to answer the scenario itself.

    The results are ``vegas`` and ``reno`` (the rate of one flow of each, pkt/s),
    ``loss_rate_vegas`` and ``loss_rate_reno``, ``queue_mean`` (packets), ``utilization``, and
    ``rtt_mean`` (s). They are NaN if the buffer is infinite or the model has no steady cycle.
    """
    vegas = next(g for g in scenario.flows if g.keeps_backlog)
    link = scenario.links[0]
    member = [m.flow.keeps_backlog for m in scenario.members]
    n_vegas = sum(member)
    n_reno = len(member) - n_vegas
    _, losers, response = adapter._reading(scenario, vegas)
    shape = np.broadcast_shapes(*(np.shape(value) for value in values.values()))
    at: dict[str, Floats] = {
        "capacity": np.asarray(link.capacity),
        "rtt": np.asarray(scenario.members[0].rtt),
        "buffer": np.asarray(link.buffer),
        "alpha": np.asarray(vegas.alpha),
        "beta": np.asarray(vegas.beta),
        "decrease": np.asarray(vegas.decrease),
        **values,
    }
    at = {key: np.broadcast_to(value, shape) for key, value in at.items()}

    def solve(at: Mapping[str, Floats], start: Floats) -> minicycle.Cycle:
        return minicycle.solve(
            at["capacity"],
            at["rtt"],
            adapter._room(at["buffer"], vegas),
            at["alpha"],
            at["decrease"],
            beta=at["beta"],
            losers=losers,
            variant=vegas.variant,
            response=response,
            n_vegas=n_vegas,
            n_reno=n_reno,
            start=start,
        )

    cycle = solve(at, np.asarray(1.0))
    found = {name: np.array(getattr(cycle, name)) for name in WANTED}
    # Where a range of windows is steady, the first window decides; it is computed only for these.
    many = cycle.vegas_range[..., 0] < cycle.vegas_range[..., 1]
    if np.any(many):
        part = {key: value[many] for key, value in at.items()}
        again = solve(part, adapter._start(scenario, vegas, n_vegas, n_reno, part))
        for name in WANTED:
            found[name][many] = getattr(again, name)
    infinite = at["buffer"] == math.inf
    if np.any(infinite):
        for entries in found.values():
            entries[infinite] = np.nan
    found["rtt_mean"] = at["rtt"] + found["queue_mean"] / at["capacity"]
    return found
