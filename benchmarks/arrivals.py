"""Measures the CPU seconds of the closed form for Vegas flows that arrive one after another.

    python -m benchmarks.arrivals

The closed form (``equilibrium.arrivals``) solves equation (6) of Boutremans and Le Boudec at each
arrival.  The program also prints by how much the solutions miss the equation, relative to the
capacity: as the closed form says (``residual``), and by a sum over all flows at 10 arrivals.
"""

import math
import time

import numpy as np

from vegasmodel.equilibrium import arrivals

ALPHA, CAPACITY = 3.0, 1e4  # packets, pkt/s


def main() -> None:
    """Print one line for each number of flows; the time of the first includes compilation."""
    for n in (2_000, 10_000, 100_000, 1_000_000):
        begin = time.process_time()
        state = arrivals.arrive(np.full(n, ALPHA), CAPACITY)
        spent = time.process_time() - begin
        one_by_one = [
            abs(math.fsum(ALPHA / (state.delays[i] - state.x[: i + 1])) / CAPACITY - 1)
            for i in np.random.default_rng(1).integers(1, n, 10)
        ]
        print(
            f"{n:9,} flows: {spent:6.2f} s, residual {float(state.residual):.1e}, "
            f"(6) summed one by one at 10 arrivals: within {max(one_by_one):.1e}"
        )


if __name__ == "__main__":
    main()
