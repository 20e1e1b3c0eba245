"""Scenarios of the paper ``evaluation``, in which one to three sources share a link.

They are variations of two scenario files, ``pair.toml`` and ``single.toml``.  X is the delay of the
second source's last link.
"""

import dataclasses
from functools import cache
from pathlib import Path

from paper_checks.topology import USUAL_DELAY, link_by_link
from vegasmodel.queues import Queue
from vegasmodel.scenario import Drop, DropTail, Flow, Red, Scenario, load

__all__ = ["BASE_RTT", "PROPAGATION", "forced", "pair", "single", "stored", "trio"]

FOLDER = Path(__file__).parent
PROPAGATION = 6e-3  # s, there and back with X = 1 ms
BASE_RTT = 13.2106666666666666e-3  # s, the same and the transmission times


@cache
def stored(name: str) -> Scenario:
    """A scenario file of this folder, by its name."""
    return load(FOLDER / f"{name}.toml")


def pair(
    first: str,
    second: str,
    *,
    buffer: float = 10.0,
    X: float = USUAL_DELAY,
    starts: tuple[float, float] = (0.0, 0.0),
    warmup: float = 15.0,
    queue: DropTail | Red | None = None,
    thresholds: tuple[float, float] = (1.0, 3.0),
) -> Scenario:
    """Two sources of the laws ``first`` and ``second``, which share a link of 1.5 Mbit/s.

    ``buffer``: packets; ``X``: delay of the second source's last link, s; ``starts``: when each
    source starts, s; ``warmup``: from when on packets count, s; ``queue``: DropTail if ``None``;
    ``thresholds``: Vegas's alpha and beta.
    """
    base = stored("pair")
    queue = queue or DropTail()
    flows = (
        _flow(base.flows[0], first, starts[0], BASE_RTT, thresholds),
        _flow(base.flows[1], second, starts[1], BASE_RTT, thresholds),
    )
    name = f"evaluation-{first}-{second}-buffer-{buffer:g}{_suffix(queue)}"
    name += f"-X-{1e3 * X:g}-ms{'-late' * (starts != (0.0, 0.0))}-from-{warmup:g}-s"
    name += f"-alpha-{thresholds[0]:g}" * (thresholds != (1.0, 3.0))
    changes = {"link.buffer": buffer, "link.queue": queue, "run.warmup": warmup}
    scenario = base.replace(changes, name=name, flows=flows)
    return scenario if X == USUAL_DELAY else link_by_link(scenario, (USUAL_DELAY, X))


def _suffix(queue: Queue) -> str:
    """The part of a scenario's name that describes RED."""
    if not isinstance(queue, Red):
        return ""
    return f"-red-{queue.min_threshold:g}-{queue.max_threshold:g}"


def trio(buffer: float, thresholds: tuple[float, float] = (1.0, 3.0)) -> Scenario:
    """The scenario of section 3.4: a Reno, a SACK and a Vegas source share the link.

    ``buffer`` is in packets, and ``thresholds`` are Vegas's alpha and beta.
    """
    base = pair("reno", "sack", buffer=buffer)
    vegas = _flow(base.flows[0], "vegas", 0.0, BASE_RTT, thresholds)
    name = f"evaluation-trio-buffer-{buffer:g}"
    name += f"-alpha-{thresholds[0]:g}" * (thresholds != (1.0, 3.0))
    flows = (*base.flows, dataclasses.replace(vegas, name="third"))
    return dataclasses.replace(base, name=name, flows=flows)


def single(law: str, *, loss: float = 0.0, runs: int = 1) -> Scenario:
    """The paper's topology 1: one source of ``law``, whose packets are lost at random.

    ``loss`` is the probability that a data packet is lost.
    """
    base = stored("single")
    flow = dataclasses.replace(
        _flow(base.flows[0], law, 0.0, base.members[0].rtt, (1.0, 3.0)), name=law
    )
    name = f"evaluation-{law}-loss-{loss:g}"
    return base.replace({"link.loss": loss, "run.runs": runs}, name=name, flows=(flow,))


def forced(law: str, drops: tuple[int, ...], since: float = 0.2, buffer: float = 50.0) -> Scenario:
    """The scenario of figure 1: topology 1 for 2 s, where the link drops some packets on purpose.

    The source has the congestion control ``law``, and ``drops`` has the numbers of these packets.
    With a buffer of 50 no other packet is lost.  Averages begin at ``since`` s.
    """
    base = single(law)
    lost = (Drop(flow=law, packets=drops),) if drops else ()
    changes = {"link.drops": lost, "link.buffer": buffer}
    changes |= {"run.duration": 2.0, "run.warmup": since}
    which = "-".join(map(str, drops))
    name = f"evaluation-{law}-drops-{which or 'none'}" + f"-from-{since:g}-s" * (since != 0.2)
    name += f"-buffer-{buffer:g}" * (buffer != 50.0)
    return base.replace(changes, name=name)


def _flow(base: Flow, law: str, start: float, rtt: float, thresholds: tuple[float, float]) -> Flow:
    """The flow ``base`` with another law, start (s), RTT (s), and alpha and beta if it is Vegas."""
    alpha, beta = thresholds if law == "vegas" else (1.0, 3.0)
    vegas = law == "vegas"
    return dataclasses.replace(
        base,
        law=law,
        start=start,
        rtt=rtt,
        alpha=alpha,
        beta=beta,
        decrease=0.75 if vegas else 0.5,
        service="delay" if vegas else "rate",
        variant="ns2",
    )
