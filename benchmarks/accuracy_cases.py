"""Draws random networks (cases) of several families, to compare the simulators with ns-2.

A family has networks of one kind.  Cases are drawn by ``default_rng([seed, family, index])``.  The
cases of ``SEED`` were looked at while the simulator ``rounds`` was built, the even-numbered half
more than the odd-numbered half.
"""

import dataclasses
from collections.abc import Callable

import numpy as np

from vegasmodel.scenario import Flow, Link, Red, Run, Scenario, Staggered

SEED = 2004
CASES = 20  # per family
# run.seed for a model: so its start times differ from those of the measured runs
OTHER_DRAWS = 7
LOSS_BASED = ("reno", "newreno", "sack", "tahoe")
Rng = np.random.Generator


def _capacity(rng: Rng) -> float:
    """200 to 3000 pkt/s; the logarithm is uniform."""
    return float(np.round(np.exp(rng.uniform(np.log(200), np.log(3000)))))


def _time(rng: Rng, low: float, high: float) -> float:
    """A time from ``low`` to ``high``, s."""
    return float(np.round(rng.uniform(low, high), 4))


def _run(duration: float = 300.0, warmup: float = 100.0) -> Run:
    """Five runs, in which each flow starts later by a random time of up to 0.5 s."""
    return Run(duration=duration, warmup=warmup, runs=5, start_jitter=0.5)


def _against(rng: Rng, vegas: int, others: int) -> Scenario:
    """``vegas`` Vegas flows and ``others`` flows of one loss-based law, all with the same RTT."""
    alpha, rtt = float(rng.integers(2, 6)), _time(rng, 0.03, 0.2)
    link = Link(capacity=_capacity(rng), buffer=float(rng.integers(12, 81)))
    law = str(rng.choice(LOSS_BASED))
    groups = (
        Flow("vegas", rtt, count=vegas, alpha=alpha, beta=alpha, variant="ns2", send_jitter=0.0),
        Flow(law, rtt, count=others, variant="ns2", send_jitter=0.0),
    )
    return Scenario((link,), groups, run=_run())


def pair(rng: Rng) -> Scenario:
    """One Vegas and one loss-based source at a drop-tail link."""
    return _against(rng, 1, 1)


def mixed(rng: Rng) -> Scenario:
    """Two to eight sources, of both kinds."""
    total = int(rng.integers(2, 9))
    vegas = int(rng.integers(1, total))
    return _against(rng, vegas, total - vegas)


def arrivals(rng: Rng) -> Scenario:
    """4 to 40 Vegas sources that start one after another, at a link with an infinite buffer."""
    count, every = int(rng.integers(4, 41)), float(np.round(rng.uniform(2, 20), 2))
    alpha, settled = float(rng.integers(2, 6)), count * every + 100.0
    rtt, start = _time(rng, 0.05, 0.25), Staggered(0.0, every)
    group = Flow(
        "vegas",
        rtt,
        count=count,
        start=start,
        alpha=alpha,
        beta=alpha,
        variant="ns2",
        send_jitter=0.0,
    )
    link = Link(capacity=float(np.round(rng.uniform(100, 600))))
    return Scenario((link,), (group,), run=_run(settled + 200.0, settled))


def bands(rng: Rng) -> Scenario:
    """2 to 5 Vegas sources with alpha < beta and RTTs of their own."""
    groups = []
    for i in range(int(rng.integers(2, 6))):
        alpha = float(rng.integers(1, 5))
        beta, rtt = alpha + float(rng.integers(1, 4)), _time(rng, 0.03, 0.25)
        groups.append(
            Flow("vegas", rtt, name=f"v{i}", alpha=alpha, beta=beta, variant="ns2", send_jitter=0.0)
        )
    return Scenario((Link(capacity=_capacity(rng)),), tuple(groups), run=_run())


def losses(rng: Rng) -> Scenario:
    """2 to 4 loss-based sources with RTTs of their own at a drop-tail link."""
    law = str(rng.choice(LOSS_BASED))
    groups = tuple(
        Flow(law, _time(rng, 0.03, 0.25), name=f"f{i}", variant="ns2", send_jitter=0.0)
        for i in range(int(rng.integers(2, 5)))
    )
    link = Link(capacity=_capacity(rng), buffer=float(rng.integers(12, 81)))
    return Scenario((link,), groups, run=_run())


def red(rng: Rng) -> Scenario:
    """One Vegas and one NewReno source under RED."""
    low, alpha, rtt = float(rng.integers(5, 20)), float(rng.integers(2, 6)), _time(rng, 0.03, 0.2)
    link = Link(
        capacity=_capacity(rng), buffer=100.0, queue=Red(min_threshold=low, max_threshold=3.0 * low)
    )
    groups = (
        Flow("vegas", rtt, alpha=alpha, beta=alpha, variant="ns2", send_jitter=0.0),
        Flow("newreno", rtt, variant="ns2", send_jitter=0.0),
    )
    return Scenario((link,), groups, run=_run())


def crowd(rng: Rng) -> Scenario:
    """2 to 8 sources of any law, Vegas first, each with thresholds and an RTT of its own."""
    flows = []
    for i in range(int(rng.integers(2, 9))):
        vegas = i == 0 or (i > 1 and rng.random() < 0.5)
        law = "vegas" if vegas else str(rng.choice(LOSS_BASED))
        alpha = float(rng.integers(1, 5))
        flow = Flow(law, _time(rng, 0.03, 0.2), name=f"{law}{i}", variant="ns2", send_jitter=0.0)
        if vegas:
            beta = alpha + float(rng.integers(0, 4))
            flow = dataclasses.replace(flow, alpha=alpha, beta=beta)
        flows.append(flow)
    link = Link(capacity=_capacity(rng), buffer=float(rng.integers(12, 81)))
    return Scenario((link,), tuple(flows), run=_run())


def round_numbers(rng: Rng) -> Scenario:
    """One Vegas and one loss-based source, with the round numbers that a user chooses.

    The RTT is a whole number of transmission times, so that packets that do not wait arrive at the
    very instants of departures.
    """
    while True:
        capacity = float(rng.choice((1.0, 2.0, 4.0, 5.0, 8.0, 10.0, 20.0))) * 1e6 / 8000.0
        rtt = float(rng.choice((20, 30, 40, 50, 60, 80, 100, 120))) / 1000.0
        path_holds = round(capacity * rtt, 9)  # packets: the bandwidth-delay product
        buffer = round(path_holds * float(rng.choice((0.25, 0.5, 1.0, 2.0))))
        if path_holds == round(path_holds) and buffer >= 5:
            break
    groups = (
        Flow("vegas", rtt, alpha=1.0, beta=3.0, variant="ns2", send_jitter=0.0),
        Flow(str(rng.choice(LOSS_BASED)), rtt, variant="ns2", send_jitter=0.0),
    )
    return Scenario((Link(capacity=capacity, buffer=float(buffer)),), groups, run=_run())


def wide(rng: Rng) -> Scenario:
    """1 to 3 loss-based sources beside one whose RTT is 3 to 10 times theirs."""
    law, short = str(rng.choice(LOSS_BASED)), _time(rng, 0.01, 0.05)
    long = float(np.round(short * rng.uniform(3.0, 10.0), 4))
    groups = (
        Flow(law, short, name="short", count=int(rng.integers(1, 4)), variant="ns2", send_jitter=0),
        Flow(law, long, name="long", variant="ns2", send_jitter=0),
    )
    link = Link(capacity=_capacity(rng), buffer=float(rng.integers(12, 81)))
    return Scenario((link,), groups, run=_run())


FAMILIES: dict[str, Callable[[Rng], Scenario]] = {
    f.__name__: f for f in (pair, mixed, arrivals, bands, losses, red, crowd, round_numbers, wide)
}
JITTER = "-jitter"  # ends the name of a family whose sources wait


def _waiting(family: str) -> Callable[[Rng], Scenario]:
    """A family's networks, with a random wait of the senders (``send_jitter``).

    The longest wait of a case is drawn between 0.1 ms and one transmission time.
    """

    def draw(rng: Rng) -> Scenario:
        """A network of the family ``family``, in which all senders have the same longest wait."""
        drawn = FAMILIES[family](rng)
        transmission = 1.0 / drawn.links[0].capacity
        wait = float(np.round(rng.uniform(1e-4, transmission), 6))
        return drawn.replace({"flow.send_jitter": wait})

    return draw


WITHOUT_WAITS = tuple(FAMILIES)  # the position of a family is a part of its cases' seeds
_WITH_WAITS = ("pair", "mixed", "losses", "round_numbers", "wide")
FAMILIES |= {family + JITTER: _waiting(family) for family in _WITH_WAITS}


def case(family: str, index: int, seed: int = SEED) -> Scenario:
    """The ``index``-th case of a family, with the seed with which ns-2 ran it."""
    # the number does not depend on waits: so a network is the same with and without them
    number = WITHOUT_WAITS.index(family.removesuffix(JITTER))
    drawn = FAMILIES[family](np.random.default_rng([seed, number, index]))
    return with_seed(drawn, 1 if seed == SEED else seed)


def with_seed(scenario: Scenario, seed: int) -> Scenario:
    """The scenario with this seed, which draws the start times."""
    return scenario.replace({"run.seed": seed})
