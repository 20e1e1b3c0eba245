"""Two flows with two laws over one link, and what they get."""

import numpy as np

import vegasmodel as vm
from tests.helpers import exact
from vegasmodel.scenario import Link, Run, Scenario


def scenario(one: str, two: str, variant: str = "paper", **link) -> Scenario:
    flows = (
        exact(one, 0.08, name="one", variant=variant, alpha=3.0, beta=3.0),
        exact(two, 0.08, name="two", variant=variant, alpha=3.0, beta=3.0),
    )
    return Scenario((Link(1080.0, **({"buffer": 20.0} | link)),), flows, run=Run(300.0, 100.0))


def rates(*arguments, **link) -> np.ndarray:
    return np.asarray(vm.predict(scenario(*arguments, **link), "fluid").throughput)


def by_rounds(*arguments, **link) -> np.ndarray:
    return np.asarray(vm.predict(scenario(*arguments, **link), "rounds").throughput)
