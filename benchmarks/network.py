"""Solves random networks and checks the certificates.

    python benchmarks/network.py --certify 1000

Every network has a random size, density and over-estimates, capacities over 2 orders of magnitude
and alphas over 3.  In every third network, some rows of the routing matrix are copies or sums of
others.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from vegasmodel.equilibrium import network
from vegasmodel.status import Status


def random_case(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    links, flows = int(rng.integers(1, 21)), int(rng.integers(1, 61))
    A = (rng.random((links, flows)) < rng.uniform(0.05, 0.9)).astype(float)
    A[rng.integers(links, size=flows), np.arange(flows)] = 1
    c = 10 ** rng.uniform(1, 3, links)
    if rng.random() < 1 / 3:  # redundant links: copies, and one that carries what two carry
        copies = rng.integers(links, size=3)
        A = np.vstack([A, A[copies], A.sum(axis=0)])
        c = np.append(c, [*c[copies], c.sum() * rng.choice([0.3, 1.0, 2.0])])
    alpha = 10 ** rng.uniform(-1, 2, flows)
    x = rng.choice([0.0, 1.0]) * rng.exponential(0.05, flows)
    return A, c, alpha, x


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--certify", type=int, default=1000, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    worst, failed, start = 0.0, 0, time.perf_counter()
    for _ in range(options.certify):
        found = network.solve(*random_case(rng))
        failed += found.status != Status.DONE
        worst = max(worst, found.certificate.residual)
    seconds = time.perf_counter() - start
    print(f"{options.certify - failed} of {options.certify} certified; worst KKT residual")
    print(f"{worst:.2g}; {1e3 * seconds / options.certify:.1f} ms a network")
    raise SystemExit(failed > 0)


if __name__ == "__main__":
    main()
