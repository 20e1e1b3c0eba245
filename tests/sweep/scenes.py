"""The scenario of the tests of ``sweep``, and the fields that vary."""

import vegasmodel as vm
from tests.helpers import MIXED

RUN = '[run]\nduration = "20 s"\nwarmup = "5 s"\n'


def file_of(variant: str = "ns2") -> str:
    """A scenario file: the scenario ``MIXED`` with another variant of Vegas, and a short run."""
    return MIXED.replace("ns2", variant) + RUN


def mixed(variant: str = "ns2") -> vm.Scenario:
    return vm.Scenario.from_toml(file_of(variant))


OVER = ["link.buffer=1:20:0.5", "flow.rtt=20ms:80ms:20ms", "flow.vegas.alpha=2,4"]
