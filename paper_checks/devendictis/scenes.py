"""Scenarios of De Vendictis and Baiocchi: one Vegas and one Reno source share a link.

T is the RTT without queueing in s, B the buffer in packets, and mu the capacity in pkt/s.  The
paper does not state T, so each claim is computed for a range of T.
"""

import dataclasses
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Literal

from vegasmodel.scenario import Drop, Scenario, load

__all__ = [
    "ALPHA",
    "AVERAGED_FOR",
    "BUFFERS",
    "FORMS",
    "LAM",
    "MU",
    "NO_T",
    "ROOM",
    "RUN",
    "SPANS",
    "SPAN_LENGTH",
    "T_TRIED",
    "T_TRIED_AS_TEXT",
    "Form",
    "ScenarioAt",
    "model",
    "one_span",
    "vegas_alone",
    "with_limit",
    "with_room",
]

# mu, pkt/s; alpha, packets; lambda, by which a loss multiplies Vegas's window
MU, ALPHA, LAM = 1080.0, 3.0, 0.75
T_TRIED = (0.04, 0.06, 0.08, 0.16)  # s, the T for which we ran ns-2
T_TRIED_AS_TEXT = f"T of {', '.join(f'{1e3 * T:g}' for T in T_TRIED)} ms"
BUFFERS = (5.0, 10.0, 20.0, 30.0)  # packets, the buffers that the text names
AVERAGED_FOR = 400.0  # s, over which the paper averages
# we count the cycles in spans of one run: the length of a span, s, and the number of spans
SPAN_LENGTH, SPANS = 40.0, 5
NO_T = "The paper does not state T, the propagation delay."
RUN = "ns-2 2.35, mean of 3 seeds with starts moved by up to 0.5 s, 200 to 600 s."
ROOM = (
    "In the model and in ns-2 B packets can wait: ns-2's limit is B + 1, since it counts the "
    "packet in transmission, too."
)

# the equations of the model as we derived them, or as the paper prints them
Form = Literal["derived", "printed"]
FORMS: tuple[Form, ...] = ("printed", "derived")
ScenarioAt = Callable[[float, float], Scenario]  # a function that makes the scenario from T and B


@cache
def with_limit(T: float, B: float, mu: float = MU) -> Scenario:
    """The scenario of figure 3, one Vegas and one Reno source.

    ``T`` is the RTT without waiting, s; ``B`` ns-2's buffer limit, packets; ``mu`` the link's
    capacity, pkt/s.
    """
    base = load(Path(__file__).with_name("figure3.toml"))
    changes = {"link.buffer": B, "link.capacity": mu, "flow.rtt": T, "run.runs": 3}
    return base.replace(changes, name=f"devendictis-T-{1e3 * T:g}-ms-B-{B:g}-mu-{mu:g}")


@cache
def with_room(T: float, B: float, mu: float = MU) -> Scenario:
    """The scenario ``with_limit`` with room for ``B`` waiting packets: a limit of B + 1 in ns-2.

    In the paper's section 3, T is the RTT without waiting, and contains the transmission.  So the
    packet in transmission is one of the mu T packets on their way, and B others can wait.  ns-2's
    limit counts the packet in transmission, too (docs/ns2.md).
    """
    return with_limit(T, B + 1, mu)


@cache
def one_span(k: int) -> Scenario:
    """The scenario of figure 4 with T = 80 ms, in one run, measured over a part of its time.

    This part is the ``k``-th span of ``SPAN_LENGTH`` seconds after 200 s.  So the numbers of cycles
    in different spans of one run can be compared.
    """
    base = with_room(0.08, 20.0)
    begin = 200.0 + k * SPAN_LENGTH
    changes = {"run.runs": 1, "run.warmup": begin, "run.duration": begin + SPAN_LENGTH}
    return base.replace(changes, name=f"{base.name}-from-{begin:g}-s")


@cache
def vegas_alone(*dropped: int, T: float = 0.08) -> Scenario:
    """The scenario of a Vegas source alone, if the link drops the packets numbered ``dropped``.

    Averages begin at 7 s, because the window still grows before.  ``T`` is the RTT without waiting,
    s.
    """
    base = with_limit(T, 20.0)
    drops = (Drop(flow=base.flows[0].name, packets=dropped),) if dropped else ()
    run = dataclasses.replace(base.run, runs=1, duration=16.0, warmup=7.0, start_jitter=0.0)
    name = f"devendictis-vegas-alone{'-drop' * bool(dropped)}"
    return base.replace({"link.drops": drops}, name=name, flows=base.flows[:1], run=run)


def model(T: float, B: float, form: Form, mu: float = MU) -> tuple[float, float]:
    """Throughputs of Vegas and Reno by the paper's model (Lambda_Vegas, Lambda_Reno), pkt/s.

    ``T`` is the RTT without waiting, s; ``B`` the buffer, packets; ``mu`` the link's capacity,
    pkt/s.  ``form`` chooses between the printed equations and those that we derived.
    """
    from vegasmodel.equilibrium import minicycle

    vegas, reno = minicycle.throughput(mu, T, B, ALPHA, LAM, form=form)
    return float(vegas), float(reno)
