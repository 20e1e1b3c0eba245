"""A scenario that each closed form is made for."""

import vegasmodel as vm
from tests.helpers import scenario

RED = {"discipline": "red", "min_threshold": "5 pkt", "max_threshold": "15 pkt"}
VEGAS = {"law": "vegas", "alpha": 3, "beta": 3}
RENO = {"law": "reno"}

HOME: dict[str, vm.Scenario] = {
    "equilibrium": scenario({**VEGAS, "count": 3}),
    "bands": scenario({"law": "vegas", "count": 3}),
    "arrivals": scenario({**VEGAS, "count": 3, "start": {"every": "2 s"}}),
    "arrivals-bonald": scenario({**VEGAS, "count": 3, "start": {"every": "2 s"}}),
    "minicycle": scenario(VEGAS, RENO, buffer="20 pkt"),
    "red": scenario(VEGAS, RENO, buffer="20 pkt", queue=RED),
    "random-loss": scenario(RENO, buffer="20 pkt", loss=0.01),
    "rate-delay": scenario(VEGAS, RENO, buffer="100 pkt", queue={"discipline": "rd"}),
    "network": scenario({**VEGAS, "count": 3}),
}
