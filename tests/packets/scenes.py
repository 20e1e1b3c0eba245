"""Scenarios and traces for the tests of what traces tell."""

import math
from pathlib import Path

import numpy as np

import vegasmodel as vm
from vegasmodel.packets.trace import make

ROOT = Path(__file__).parent.parent.parent
LINUX = ROOT / "vegasmodel" / "packets" / "reference" / "linux"
RUNS = [path.stem for path in sorted(LINUX.glob("*.parquet"))]


def kernel_log(second=1.0, trip=1.0, byte=1.0):
    """A CSV of one flow that delivers 10 packets of 1000 B in each of 100 round trips of 50 ms.

    The arguments are factors by which time, RTT and bytes are wrong.
    """
    lines = [
        f"{0.05 * k * second:.9g},a,10,{10_000 * k * byte:g},1000,{5e4 * trip:g}"
        for k in range(101)
    ]
    return "\n".join(["time,flow,cwnd,bytes_acked,snd_mss,rtt_us", *lines]).encode()


def gappy(rates, unknown, **more):
    """A trace of intervals of 1 s, without the throughputs at the index ``unknown``."""
    rates = np.array(rates, dtype=float)
    rates[unknown] = math.nan
    return make("csv", np.arange(1.0, len(rates) + 1), ["a", "b"], {"throughput": rates, **more})


def scenario(flows=("a", "b"), warmup=1.0, duration=6.0, start=0.0, size="inf"):
    groups = "".join(
        f'[[flow]]\nname = "{name}"\nlaw = "vegas"\nrtt = "40 ms"\nstart = "{start} s"\n'
        f'size = "{size}"\n'
        for name in flows
    )
    return vm.Scenario.from_toml(
        f'[[link]]\ncapacity = "500 pkt/s"\n{groups}'
        f'[run]\nwarmup = "{warmup} s"\nduration = "{duration} s"\n'
    )


def small(**changes):
    rng = np.random.default_rng(3)
    variables = {
        "throughput": rng.uniform(0, 500, (6, 2)),
        "rtt": rng.uniform(0.04, 0.08, (6, 2)),
        "queue": rng.uniform(0, 20, (6, 1)),
        "first": [0.0, 1.5],
    }
    given = {"links": ["bottleneck"], "scenario": "abc", "provenance": {"source": "a test"}}
    return make("ns2", np.arange(1.0, 7.0), ["a", "b"], variables, **(given | changes))


def of_a_queue(longest, dropped):
    """A link of 1000 pkt/s with these longest queues, and drops, in intervals of 1 s."""
    links = {name: np.array(longest, dtype=float)[:, None] for name in ("queue", "queue_max")}
    flows = {"loss": np.array(dropped, dtype=float)[:, None]}
    flows["throughput"] = np.full((len(longest), 1), 1000.0)
    figures = flows | links | {"served": flows["throughput"]}
    return make("ns2", np.arange(1.0, len(longest) + 1), ["a"], figures, links=["l"])
