"""Checks `design` on random targets: evaluates the model again at the values that it returns.

    python -m benchmarks.accuracy_design [--targets 200] [--ns2 20] [--seed 1]

An answer of `design` fails in each of these cases:

- `predict`, for the scenario with the value in it, gives something other than `achieved`;
- a solution claims to be `exact`, but misses the target by more than a fraction 1e-6;
- a solution is not exact, and no note says why;
- there is neither a solution nor a reason;
- a grid 60 times as fine as the scan crosses the target where `design` found nothing.

``--ns2 N``: also solve N targets by `rounds` and run each solution by ns-2; the error is
ln(ns-2's quantity / the target).  The exit status is 1 if an answer fails.
"""

import argparse
import collections
import math
import sys

import numpy as np

import vegasmodel as vm
from benchmarks.arguments import at_least
from vegasmodel.study import fields

SCENARIO = """
packet_size = "500 B"
[[link]]
capacity = "1080 pkt/s"
buffer = "20 pkt"
[[flow]]
law = "vegas"
send_jitter = "0 s"
rtt = "60 ms"
alpha = 3
beta = 3
[[flow]]
law = "reno"
send_jitter = "0 s"
rtt = "60 ms"
[run]
duration = "120 s"
warmup = "40 s"
"""
# kinds of target, and the range from which the desired value is drawn (the delay in s)
RANGES = {
    "share:vegas": (0.02, 0.9),
    "ratio:vegas/reno": (0.02, 6.0),
    "jain": (0.5, 1.0),
    "delay": (1e-3, 0.15),
    "utilization": (0.6, 1.0),
}
# fields for which ``design`` solves
FIELDS = ("link.buffer", "flow.vegas.alpha", "flow.rtt", "link.capacity", "flow.vegas.decrease")


def quantity(kind: str, answer: vm.Prediction) -> float:
    """The target's quantity, computed here from the prediction's arrays.

    So it is independent of the code of `design`.  ``kind`` is the kind of target, a key of
    ``RANGES``.
    """
    v, r = np.asarray(answer.throughput)  # of Vegas and of Reno
    if kind == "delay":
        return float(np.asarray(answer.queue_mean)[0]) / answer.scenario.links[0].capacity
    if kind == "utilization":
        return float(np.asarray(answer.utilization)[0])
    jain = (v + r) ** 2 / (2 * (v * v + r * r))
    return float({"share:vegas": v / (v + r), "ratio:vegas/reno": v / r, "jain": jain}[kind])


def draw(rng: np.random.Generator, variant: str | None = None) -> tuple[vm.Scenario, str, float]:
    """A random scenario, a random kind of target and its desired value.

    ``variant`` is the TCP implementation of the Vegas flow; ``None`` draws it, too.
    """
    base = vm.Scenario.from_toml(SCENARIO)
    chosen = variant or str(rng.choice(["paper", "ns2", "linux"]))
    changes = {
        "link.capacity": float(rng.uniform(200, 2000)),
        "link.buffer": float(rng.integers(5, 60)),
        "flow.rtt": float(rng.uniform(0.02, 0.15)),
        "flow.vegas.variant": chosen,
    }
    kind = str(rng.choice(sorted(RANGES)))
    return base.replace(changes), kind, float(rng.uniform(*RANGES[kind]))


def wrong(found: vm.Design, scenario: vm.Scenario, kind: str, wanted: float) -> list[str]:
    """The faults of the answer ``found`` of `design`, as texts; an empty list if there are none.

    ``wanted`` is the desired value of the target ``kind``.
    """
    faults = []
    if not found.solutions and not found.reason:
        faults.append("neither a solution nor a reason")
    for solution in found.solutions:
        again = quantity(kind, vm.predict(solution.scenario, found.model))
        if not math.isclose(again, solution.achieved, rel_tol=1e-9):
            faults.append(f"achieved {solution.achieved!r}, put back {again!r}")
        if solution.exact and abs(again - wanted) > 1.001e-6 * wanted:
            faults.append(f"exact, but {again!r} is not {wanted!r}")
        if not solution.exact and not solution.note:
            faults.append("not exact, and no word why")
        if fields.find(scenario, found.field).of(solution.scenario) != solution.value:
            faults.append("the scenario does not hold the value")
    return faults


def missed(found: vm.Design, scenario: vm.Scenario, kind: str, wanted: float) -> list[str]:
    """Texts on the solutions that a grid 60 times as fine finds and `design` does not.

    ``found`` is the answer of `design`, and ``wanted`` the desired value of the target ``kind``.
    Between two points of the grid there is a solution if the quantity is below the target at one of
    them and above it at the other.  This does not count if the quantity is far from the target (by
    5 % or more) at one of them: it may jump across the target there.
    """
    low, high = found.scanned
    n = 4001  # ``design`` first tries 65 values
    grid = np.geomspace(low, high, n) if low > 0 else np.linspace(low, high, n)
    data = vm.sweep(scenario, {found.field: np.unique(np.clip(grid, low, high))}, found.model)
    x = data[found.field].values
    quantities = {
        "share:vegas": data["share"].values[:, 0],
        "ratio:vegas/reno": data["ratio"].values[:, 0],
        "jain": data["jain"].values,
        "delay": data["queueing_delay"].values[:, 0],
        "utilization": data["utilization"].values[:, 0],
    }
    miss = quantities[kind] / wanted - 1.0  # relative difference from the target, at each point
    with np.errstate(invalid="ignore"):
        crossed = (miss[:-1] * miss[1:] < 0) & (np.maximum(abs(miss[:-1]), abs(miss[1:])) < 0.05)
    values = [solution.value for solution in found.solutions]
    return [
        f"no solution from {x[i]:.6g} to {x[i + 1]:.6g}"
        for i in np.flatnonzero(crossed)
        if not any(x[i] * (1 - 1e-3) <= value <= x[i + 1] * (1 + 1e-3) for value in values)
    ]


def by_minicycle(rng: np.random.Generator, targets: int) -> int:
    """Solve for random targets by the mini-cycle model; return how many answers fail."""
    ends: collections.Counter[str] = collections.Counter()
    failed = 0
    for i in range(targets):
        scenario, kind, wanted = draw(rng)
        solve = str(rng.choice(FIELDS))
        text = f"{kind}={wanted!r}" + (" s" if kind == "delay" else "")
        found = vm.design(scenario, solve, text, "minicycle", verify=())
        exact = all(solution.exact for solution in found.solutions)
        ends[found.status if exact else f"{found.status}, not exact"] += 1
        faults = wrong(found, scenario, kind, wanted) + missed(found, scenario, kind, wanted)
        failed += bool(faults)
        for fault in faults:
            print(f"target {i}, {solve} for {text}: {fault}")
    print(f"{targets} targets by minicycle: {dict(ends)}; {failed} answers fail")
    return failed


def by_ns2(rng: np.random.Generator, targets: int) -> int:
    """Solve for the buffer that gives Vegas a random share, by ``rounds``; verify by ns-2.

    This is repeated until ns-2 has verified ``targets`` buffers. Returns how many answers fail.
    """
    errors, failed = [], 0
    while len(errors) < targets:
        scenario, _, _ = draw(rng, "ns2")
        wanted = float(rng.uniform(0.1, 0.5))
        text = f"share:vegas={wanted!r}"
        found = vm.design(scenario, "link.buffer", text, "rounds", verify=("ns2",))
        faults = wrong(found, scenario, "share:vegas", wanted)
        failed += bool(faults)
        for fault in faults:
            print(f"by rounds, {text}: {fault}")
        for solution in found.solutions:
            measured = solution.verified["ns2"]
            if measured is not None:
                errors.append(math.log(measured / solution.achieved))
    size = np.abs(errors)
    print(
        f"{len(errors)} buffers by rounds, run by ns-2: |ln(ns-2 / rounds)| of the share is "
        f"{size.mean():.3f} on average, {size.max():.3f} at most; {failed} answers fail"
    )
    return failed


def main() -> int:
    """Print for each kind of check how many answers of ``design`` fail."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--targets", type=at_least(1), default=200)
    parser.add_argument("--ns2", type=at_least(0), default=0)
    parser.add_argument("--seed", type=at_least(0), default=1)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    failed = by_minicycle(rng, options.targets)
    if options.ns2:
        failed += by_ns2(rng, options.ns2)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
