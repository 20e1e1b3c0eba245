"""Solves random networks of Vegas flows, and counts those whose solution has a certificate.

    python benchmarks/network.py [--networks 1000] [--seed 1]

A certificate shows that the rates satisfy the optimality (KKT) conditions; the largest residual of
these conditions is printed, too.  Each network has 1 to 20 links, 1 to 60 flows and random paths.
Capacities are 10 to 1000 pkt/s, alphas 0.1 to 100 packets.  In half of the networks all
over-estimates of baseRTT are 0.  In a third of the networks some rows of the routing matrix are
copies of others or the sum of all.  The exit status is 1 if a network has no certificate.
"""

import argparse
import time

import numpy as np

from benchmarks.arguments import at_least
from vegasmodel.equilibrium import network
from vegasmodel.status import Status


def random_case(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """A random network: routing matrix, capacities, alphas and over-estimates of baseRTT.

    Shapes: [links, flows]; [links] pkt/s; [flows] packets; [flows] s.
    """
    links, flows = int(rng.integers(1, 21)), int(rng.integers(1, 61))
    A = (rng.random((links, flows)) < rng.uniform(0.05, 0.9)).astype(float)  # routing matrix
    A[rng.integers(links, size=flows), np.arange(flows)] = 1  # each flow crosses a link
    c = 10 ** rng.uniform(1, 3, links)
    if rng.random() < 1 / 3:  # copies of links, and a link that carries the traffic of all
        copies = rng.integers(links, size=3)
        A = np.vstack([A, A[copies], A.sum(axis=0)])
        c = np.append(c, [*c[copies], c.sum() * rng.choice([0.3, 1.0, 2.0])])
    alpha = 10 ** rng.uniform(-1, 2, flows)
    x = rng.choice([0.0, 1.0]) * rng.exponential(0.05, flows)
    return A, c, alpha, x


def main() -> None:
    """Print how many solutions have a certificate, and the time of a network."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--networks", type=at_least(1), default=1000, metavar="N", help="how many to solve"
    )
    parser.add_argument("--seed", type=at_least(0), default=1)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    worst, failed, start = 0.0, 0, time.perf_counter()
    for _ in range(options.networks):
        found = network.solve(*random_case(rng))
        failed += found.status != Status.DONE
        worst = max(worst, found.certificate.residual)
    seconds = time.perf_counter() - start
    solved = options.networks - failed
    print(f"{solved} of {options.networks} solutions certified; largest KKT residual {worst:.2g}")
    print(f"{1e3 * seconds / options.networks:.1f} ms a network")
    raise SystemExit(failed > 0)


if __name__ == "__main__":
    main()
