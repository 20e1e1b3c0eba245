"""Checks the boundary of stability with the simulator ``delayed``, 2 % away from it on both sides.

    python -m benchmarks.accuracy_stability [POINTS [SEED]]

The random scenarios are of four families: Vegas alone on a drop-tail link, with and without random
loss; Reno under RED; Vegas and Reno under RED.  In each, the capacity is multiplied by a factor, or
all RTTs are if the queue is RED.  ``hopf.crossings`` finds at which factor the equilibrium loses
its stability.

The simulator ``delayed`` is then run with a factor 2 % smaller, and with one 2 % larger.  A run
that begins exactly at its equilibrium would stay there.  So it begins at the equilibrium of a link
whose capacity is larger by the fraction 1e-5: queue and windows are then slightly wrong, and begin
to oscillate.  The growth rate of the queue's oscillation is compared with the real part of the
rightmost characteristic root, which is the growth rate by the linearised equations.  The exit
status is 1 if the two differ in their sign.
"""

import argparse
import math
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from benchmarks.arguments import at_least
from vegasmodel.adapters.stability import equilibrium_of
from vegasmodel.engines.delayed import feedback
from vegasmodel.equilibrium import hopf
from vegasmodel.equilibrium.stability import Loop, assess
from vegasmodel.fields.errors import FieldError
from vegasmodel.metrics import Floats
from vegasmodel.scenario import Scenario

FAMILIES = ("vegas", "vegas, random loss", "reno, RED", "both, RED")
DISTANCE = 0.02  # relative distance of the tested points from the boundary
E_FOLDS = 4.0  # so many times an oscillation should grow or decay by the factor e in a run
DISTURBANCE = 1e-5  # relative difference of the capacity for whose equilibrium a run begins
MAX_STEPS = 2e6  # of a run


class Case(NamedTuple):
    """A random network whose equilibrium may lose its stability.

    One number of it is free: a factor on its capacity, or on all RTTs if the queue is RED.
    """

    family: str  # one of ``FAMILIES``
    flows: tuple[dict[str, Any], ...]  # tables ``[[flow]]`` of a scenario file, RTTs in s
    capacity: float  # pkt/s
    queue: dict[str, Any] | None  # RED's parameters; ``None``: drop-tail
    loss: float  # probability that the link loses a packet at random

    def at(self, x: float, duration: float = 50.0, faster: float = 1.0) -> Scenario:
        """The scenario of this case.

        ``x`` is a factor on the capacity, or with RED on all RTTs.  ``faster`` always multiplies
        the capacity, to disturb the equilibrium.  The run lasts ``duration`` seconds.
        """
        by_rtt = self.queue is not None
        flows = [
            flow | {"rtt": f"{flow['rtt'] * (x if by_rtt else 1.0)!r} s"} for flow in self.flows
        ]
        c = self.capacity * faster * (1.0 if by_rtt else x)
        link: dict[str, Any] = {"capacity": f"{c!r} pkt/s", "loss": self.loss}
        link |= {} if self.queue is None else {"queue": self.queue}
        run = {"duration": f"{duration!r} s", "warmup": "0 s"}
        return Scenario.from_dict({"link": [link], "flow": flows, "run": run})

    def loop(self, x: float, _: float = 1.0) -> Loop | None:
        """The control loop of the case with the factor ``x``, linearised at its equilibrium.

        ``hopf.crossings`` calls it with two arguments, of which the second is not used here.  The
        factor multiplies the capacity, or with RED all RTTs.  The result is ``None`` if there is no
        equilibrium or no such scenario.
        """
        try:
            found = equilibrium_of(self.at(x))
        except FieldError:  # the transmission times of the packets exceed an RTT
            return None
        # a text says why there is no equilibrium
        return None if isinstance(found, str) else found.loop


def draw(rng: np.random.Generator, family: str) -> Case:
    """A random network of ``family``, one of ``FAMILIES``, whose name tells the laws and the queue.

    Each Vegas flow knows its true baseRTT, and has alpha = beta.
    """
    flows: list[dict[str, Any]] = []
    if "reno" in family or "both" in family:
        for k in range(int(rng.integers(1, 3))):  # one or two groups of flows
            rtt = float(rng.uniform(0.03, 0.3))
            flows.append(
                {"law": "reno", "name": f"r{k}", "rtt": rtt, "count": int(rng.integers(1, 9))}
            )
    if "vegas" in family or "both" in family:
        for k in range(int(rng.integers(1, 4))):  # one to three groups of flows
            alpha = float(rng.uniform(1.0, 6.0))
            flow = {"law": "vegas", "name": f"v{k}", "rtt": float(rng.uniform(0.03, 0.3))}
            flow |= {"alpha": alpha, "beta": alpha, "over_estimate": "0 s"}
            flows.append(flow | {"count": int(rng.integers(1, 5))})
    queue = None
    if "RED" in family:
        low = float(rng.uniform(3.0, 20.0))
        queue = {
            "discipline": "red",
            "min_threshold": low,
            "max_threshold": low * rng.uniform(3, 9),
        }
        queue |= {"max_probability": float(rng.uniform(0.05, 0.4))}
        queue |= {"weight": float(10.0 ** rng.uniform(-3.5, -1.0))}
    loss = float(10.0 ** rng.uniform(-4.5, -3.5)) if "loss" in family else 0.0
    # pkt/s; without RED any value serves, because ``Case.at`` multiplies it by a factor
    capacity = float(10.0 ** rng.uniform(2.0, 3.3)) if queue else 100.0
    return Case(family=family, flows=tuple(flows), capacity=capacity, queue=queue, loss=loss)


def boundaries(rng: np.random.Generator) -> Iterator[tuple[Case, hopf.Crossing]]:
    """Random cases, family after family, each with a boundary of its stability.

    A boundary is a factor (on the capacity or the RTTs) at which the rightmost root of the
    linearised loop crosses the imaginary axis.  Cases without such a factor are skipped.
    """
    k = 0
    while True:
        family = FAMILIES[k % len(FAMILIES)]
        case = draw(rng, family)
        found = hopf.crossings(case.loop, np.geomspace(0.02, 50.0, 25), 1.0)
        leading = [each for each in found.points if each.leading]
        if leading:
            k += 1
            yield case, leading[0]


def growth_rate(queue: Floats, time: Floats, span: float, begin: float, end: float) -> float:
    """The growth rate, 1/s, of the amplitude of the queue's oscillation from ``begin`` to ``end``.

    The amplitude is measured twice: in the first ``span`` seconds, and in the last ``span``
    seconds.  It is the longest queue minus the shortest one in these seconds.  ``queue`` is the
    queue at each ``time``.
    """
    first = (time >= begin) & (time < begin + span)
    last = (time >= end - span) & (time < end)
    ratio = float(np.ptp(queue[last]) / np.ptp(queue[first]))
    return math.log(ratio) / (end - span - begin)


def measured(case: Case, x: float) -> tuple[bool, float, float]:
    """Whether an equilibrium is stable, and how fast the queue's oscillation about it grows.

    The scenario is ``case.at(x)``: the factor ``x`` multiplies the capacity, or with RED all RTTs.
    The result is three values:

    - whether the equilibrium is stable by its characteristic roots;
    - the growth rate of the queue's oscillation by these roots, 1/s;
    - the growth rate in a run of the simulator ``delayed``, 1/s.

    A run that begins at the equilibrium itself would stay there.  So the run begins at the
    equilibrium for a capacity that is larger by the fraction ``DISTURBANCE``.

    Raises ``ValueError`` if there is no equilibrium for one of the two capacities.
    """
    rest, near = equilibrium_of(case.at(x)), equilibrium_of(case.at(x, faster=1.0 + DISTURBANCE))
    if isinstance(rest, str) or isinstance(near, str):
        raise ValueError(f"no equilibrium beside the boundary: {rest}, {near}")
    predicted = assess(rest.loop)
    root, R = predicted.root, rest.loop.rtt
    # Each of the two amplitudes is measured during ``span`` seconds (``growth_rate``).
    span = max(1.5 * predicted.period, 2.0 * float(R.max()))
    # the run's length in s: the time of E_FOLDS e-folds, the time in which other modes decay, and
    # the time in which the two amplitudes are measured
    length = E_FOLDS / abs(root.real) + 8.0 * float(R.max()) + 2.0 * span
    # With steps of h seconds, the simulator's interpolation damps an oscillation of frequency w by
    # the fraction (w h)^2/8 per round trip, that is at a rate of (w h)^2/(8 RTT). ``h`` is the step
    # with which this rate is a tenth of the predicted growth rate, for the flow with the shortest
    # RTT.
    h = math.sqrt(0.8 * abs(root.real) * float(R.min())) / max(abs(root.imag), 1e-9)
    least = float((R - rest.delay).min())  # the shortest RTT with an empty queue, s
    # The simulator takes its step as a fraction of this RTT. We use at most 1/32, the simulator's
    # default, and at least 1/512, because with shorter steps a run takes long. If these limits
    # change the step, the damping is not a tenth of the growth rate.
    step = float(np.clip(h / least, 1 / 512, 1 / 32))
    length = min(length, MAX_STEPS * step * least)
    scenario = case.at(x, length)
    samples = int(np.clip(24 * length / predicted.period, 2001, 400_001))  # 24 per period
    begin = feedback.Equilibrium(near.delay, near.window)
    run = feedback.run(scenario, samples, step=step, begin=begin)
    return (
        predicted.stable,
        root.real,
        growth_rate(run.queue[:, 0], run.time, span, 0.4 * length, length),
    )


def main(points: int, seed: int) -> int:
    """Test ``points`` boundaries of stability on both sides; return 1 if a sign is wrong.

    A boundary is a random network with the factor on its capacity, or on its RTTs, at which the
    equilibrium turns unstable (``boundaries``). One line is printed for a slightly smaller factor
    and one for a slightly larger one. ``seed`` decides which networks are drawn.
    """
    wrong = 0
    found = boundaries(np.random.default_rng(seed))
    print(f"{'family':20} {'factor':>9} {'w, 1/s':>9} {'side':>7} {'root':>10} {'measured':>10}")
    for _ in range(points):
        case, boundary = next(found)
        for side_factor in (1.0 - DISTANCE, 1.0 + DISTANCE):
            stable, predicted, grew = measured(case, boundary.x * side_factor)
            fits = (grew < 0.0) == stable
            wrong += not fits
            side = "inside" if stable else "outside"
            print(
                f"{case.family:20} {boundary.x:9.4g} {boundary.frequency:9.4g} {side:>7} "
                f"{predicted:10.3g} {grew:10.3g} {'' if fits else 'WRONG'}",
                flush=True,
            )
    print(f"{2 * points - wrong} of {2 * points} sides as predicted")
    return 1 if wrong else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("points", type=at_least(1), nargs="?", default=20)
    parser.add_argument("seed", type=at_least(0), nargs="?", default=1)
    given = parser.parse_args()
    sys.exit(main(given.points, given.seed))
