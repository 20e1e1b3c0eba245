"""Shows how much ns-2's results change if one parameter has the default of ns-2 2.35.

    python -m benchmarks.old_defaults        # the tables of docs/ns2.md, in a few CPU minutes

The papers are from 1999 to 2001, and some defaults of ns-2 have changed since then. The first table
is for the six columns of table 2 of the paper `evaluation`. All parameters but one have the values
of 1999 to 2001, and this one has that of ns-2 2.35. The table has the largest relative change of a
flow's count of acknowledged packets.

The second table has the ratio of Vegas's throughput to Reno's on the link of `devendictis`, for
several buffers, with the old value of useHeaders_ and with that of ns-2 2.35.
"""

from pathlib import Path

import numpy as np

import vegasmodel as vm
from vegasmodel.packets import ns2
from vegasmodel.packets.ns2_defaults import SETS

CHECKS = Path(__file__).parents[1] / "paper_checks"
BUFFERS = (5, 10, 20, 30)
LINK = """
[[link]]
capacity = "1080 pkt/s"
buffer = "{buffer} pkt"
[[flow]]
law = "vegas"
rtt = "80 ms"
send_jitter = "0 s"
alpha = 3
beta = 3
[[flow]]
law = "reno"
rtt = "80 ms"
send_jitter = "0 s"
[run]
duration = "300 s"
warmup = "100 s"
start_jitter = "1 s"
runs = 3
"""


def main() -> None:
    """Print two tables: how much a result changes if one of ns-2's defaults is that of 2.35."""
    columns = [vm.load(file) for file in sorted(CHECKS.glob("evaluation/table2-*.toml"))]
    with_old_values = [acks(column) for column in columns]
    print("| parameter | largest change |\n| --- | ---: |")
    for setting in SETS["papers"]:
        with_one_new = [acks(column, setting.variable) for column in columns]
        pairs = zip(with_one_new, with_old_values, strict=True)
        change = max(np.abs(new / old - 1.0).max() for new, old in pairs)
        print(f"| `{setting.variable}` | {change:.1%} |", flush=True)
    print("\n| buffer | `false` | as in 2.35 |\n| ---: | ---: | ---: |")
    for buffer in BUFFERS:
        scenario = vm.Scenario.from_toml('packet_size = "500 B"\n' + LINK.format(buffer=buffer))
        print(f"| {buffer} | {ratio(scenario):.2f} | {ratio(scenario, 'useHeaders_'):.2f} |")


def acks(scenario: vm.Scenario, *stock: str) -> np.ndarray:
    """The flows' acknowledged packets; the parameters ``stock`` have the values of ns-2 2.35."""
    return np.asarray(ns2.run(scenario, stock=stock).acks, dtype=np.float64)


def ratio(scenario: vm.Scenario, *stock: str) -> float:
    """Vegas's throughput over Reno's."""
    return ns2.run(scenario, stock=stock).ratios["vegas/reno"]


if __name__ == "__main__":
    main()
