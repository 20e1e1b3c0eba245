"""The scenario of the tests of ``design``, and its quantities by their definitions."""

import dataclasses
from collections.abc import Callable, Mapping

import numpy as np

import vegasmodel as vm
from tests.helpers import MIXED
from vegasmodel.study import points

SHORT = '[run]\nduration = "60 s"\nwarmup = "20 s"\n'
SCATTER = (-0.002, 0.0, 0.002)  # of a share, over three runs: the 95 % interval is 0.005 each way


def mixed(more: str = "") -> vm.Scenario:
    return vm.Scenario.from_toml(MIXED + more)


def figure(kind: str, p: vm.Prediction) -> float:
    """The target's value by its definition, computed without the code under test."""
    rates = np.asarray(p.throughput)
    return {
        "share:vegas": float(rates[0] / rates.sum()),
        "ratio:vegas/reno": float(rates[0] / rates[1]),
        "jain": float(rates.sum() ** 2 / (2 * (rates**2).sum())),
        "delay": float(p.queue_mean[0]) / p.scenario.links[0].capacity,
        "utilization": float(p.utilization[0]),
    }[kind]


def scattering(
    shares: Mapping[int, float],
    loads: Mapping[int, float] | None = None,
) -> Callable[..., tuple[points.Figures, list[vm.Prediction]]]:
    """A stand-in for ``tried.answered``: three runs at each buffer, with these shares of Vegas.

    ``shares`` has the mean share by the buffer in packets, and ``loads`` the load of the link
    (default 1).
    """

    def runs(asked: points.Points, *_: object) -> tuple[points.Figures, list[vm.Prediction]]:
        made = []
        for value in asked.columns[0]:
            total = 1080 * (loads[value] if loads else 1.0)
            rates = np.array(
                [[total * (shares[value] + e), total * (1 - shares[value] - e)] for e in SCATTER]
            )
            one = vm.predict(mixed().replace({"link.buffer": float(value)}), "minicycle")
            # no packet finds the buffer full, so phase effects are impossible
            extra = {"throughput_runs": rates, "overflowed": False}
            made.append(
                dataclasses.replace(
                    one, throughput=rates.mean(axis=0), utilization_links=None, extra=extra
                )
            )
        return points.collected(asked, made), made

    return runs
