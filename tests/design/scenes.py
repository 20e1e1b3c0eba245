"""The scenario of the tests of ``design``, and its quantities by their definitions."""

from __future__ import annotations

import numpy as np

import vegasmodel as vm
from tests.helpers import MIXED

SHORT = '[run]\nduration = "60 s"\nwarmup = "20 s"\n'


def mixed(more: str = "") -> vm.Scenario:
    return vm.Scenario.from_toml(MIXED + more)


def figure(kind: str, p: vm.Prediction) -> float:
    """The target's value by its definition, computed without the code under test."""
    rates = np.asarray(p.throughput)
    assert p.queue_mean is not None
    assert p.utilization is not None
    return {
        "share:vegas": float(rates[0] / rates.sum()),
        "ratio:vegas/reno": float(rates[0] / rates[1]),
        "jain": float(rates.sum() ** 2 / (2 * (rates**2).sum())),
        "delay": float(p.queue_mean[0]) / p.scenario.links[0].capacity,
        "utilization": float(p.utilization[0]),
    }[kind]
