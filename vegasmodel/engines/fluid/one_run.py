"""Makes one run of the simulator ``fluid`` with the package ``sampled``, in small steps of time.

If a run depends on random numbers, ``run.py`` makes several runs and averages their results.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from vegasmodel.engines.fluid import continuous
from vegasmodel.engines.fluid.methods import papers_only
from vegasmodel.engines.fluid.pauses import running, whole
from vegasmodel.engines.fluid.records import SPAN, WAITED, empty_tally, reordered
from vegasmodel.engines.starts import random_delays
from vegasmodel.fields.errors import FieldError
from vegasmodel.laws import find
from vegasmodel.laws.faults import LawFault
from vegasmodel.laws.law import ask, place
from vegasmodel.metrics import Floats
from vegasmodel.scenario import Red, Scenario
from vegasmodel.scenario.placement import link_stack
from vegasmodel.status import Status

__all__ = ["advance", "begin", "march_arguments", "one_run", "room"]

STEP = 0.5  # length of a step of ``sampled``, as a part of the shortest round trip
CONTINUOUS_STEP = 1.0 / 64.0  # the same, if windows change at every instant


def one_run(
    scenario: Scenario, common: tuple[Any, float, bool], flows: np.ndarray, k: int, time: Floats
) -> dict[str, Any]:
    """Simulate run number k of the scenario.

    ``common`` is what all runs of the scenario have in common (``march_arguments``). ``flows`` are
    the scenario's ``senders``, which the run changes. Returns a dictionary: the averages after
    warmup, and samples at the times ``time`` of the windows, the queueing delay, and the packets
    lost and delivered so far. It also has the number of random numbers that were drawn (``draws``),
    each flow's number of timeouts, and the numbers that the flows' laws keep at the end of the run
    (``kept``).
    """
    from vegasmodel.engines.fluid.sampled import march

    n, state = flows.size, begin(scenario, flows, k)
    # samples: a row for each time, with n windows, the queueing delay, n losses, n deliveries
    record = np.full((time.size, 3 * n + 1), np.nan)
    before, after = empty_tally(n), empty_tally(n)
    with running(lambda: float(state["time"][0]), scenario.run.duration):
        for end, out in ((scenario.run.warmup, before), (scenario.run.duration, after)):
            lost = flows["lost"].copy()  # at the beginning of this part of the run
            until_fall = False
            further = (*common, until_fall, out, time, record)
            advance(scenario, march.march, flows, state, end, *further)
    # after the warm-up the packets delivered are counted anew; the samples count from the start
    record[time.searchsorted(scenario.run.warmup) :, 2 * n + 1 :] += before.delivered
    # all results in the order of the scenario's flows (``begin`` has sorted the senders)
    back = flows["number"].argsort()
    flows, lost, after = flows[back], lost[back], reordered(after, back)
    record = record[:, np.concatenate([back, [n], n + 1 + back, 2 * n + 1 + back])]
    delay_based = np.array([member.flow.delay_based for member in scenario.members])
    propagation = flows["rtt"] - flows["wait"]  # ``rtt`` contains the mean random wait ``wait``
    with np.errstate(invalid="ignore", divide="ignore"):
        return {
            "throughput": after.delivered / after.active,
            "delivered": after.delivered,
            "rtt_mean": after.moving / after.delivered - flows["wait"],
            "base_rtt": np.where(delay_based, propagation + flows["over_estimate"], np.nan),
            "queue_mean": after.queue[[WAITED]] / after.queue[SPAN],  # [link]
            "loss_rate": (flows["lost"] - lost) / (flows["lost"] - lost + after.delivered),
            "losses": after.losses.astype(np.float64),
            "record": record,
            "draws": int(state[0]["draws"]),
            "timeouts": flows["timeouts"].copy(),
            "kept": flows["kept"].copy(),
        }


def begin(scenario: Scenario, flows: np.ndarray, k: int) -> np.ndarray:
    """Prepare run number k of a scenario, and return the link's state at time 0.

    The function also adds a random delay to each start time in ``flows``, and seeds the random
    numbers of the run. It then sorts ``flows``: first come those that decide once per round trip,
    such as Vegas, in the order of their starts. The first flow sets the ends of the steps
    (``march.step_in_train``), and random numbers go to the flows in this order. So without the
    sorting, a result would depend on the order of the scenario's tables.
    """
    from vegasmodel.engines.fluid.sampled import chance, records

    rng, start_delays = random_delays(scenario, k)
    flows["start"] += start_delays
    flows[:] = flows[np.lexsort((flows["rank"], flows["start"], ~flows["once_a_round"]))]
    state = np.zeros(1, records.LINK_STATE)
    state["red_gap"], loss, gap = rng.random(), scenario.links[0].loss, rng.exponential()
    # the number of packets up to the first random loss has a geometric distribution
    state["loss_gap"] = 1.0 + gap // -math.log1p(-loss) if 0.0 < loss < 1.0 else 1.0
    # RED: its drop probability is 0 so far, so it has let all packets pass with probability 1
    state["red_count"], state["red_passes"] = -1.0, 1.0
    chance.seed(int(rng.integers(2**31)))
    return state


def march_arguments(scenario: Scenario, flows: np.ndarray) -> tuple[Any, float, bool]:
    """Three arguments of the function ``march`` of the package ``sampled``.

    They are the link's constants, the length of a step divided by the shortest round trip, and the
    flag ``smooth``. The flag is true if all flows run TCP as in the papers: windows are then real
    numbers that change at every instant. ``flows`` are the scenario's ``senders``.
    """
    smooth = papers_only(scenario)
    link = _with_steps(_bottleneck(scenario, smooth), flows, smooth)
    return link, CONTINUOUS_STEP if smooth else STEP, smooth


def room(scenario: Scenario) -> float:
    """How many packets can wait at the link, in the equations of ``sampled``."""
    return float(_bottleneck(scenario, papers_only(scenario)).room)


def _bottleneck(scenario: Scenario, smooth: bool) -> Any:
    """The constants of the link; ``smooth`` says whether windows are real numbers."""
    from vegasmodel.engines.fluid.sampled.records import Bottleneck

    link, queue = scenario.links[0], scenario.links[0].queue
    if smooth:
        _, s_max = continuous.limits(scenario, packets=False)  # the delay of a full buffer, s
        room = s_max * link.capacity
    else:
        room = link.room(link_stack(scenario))
    bottleneck = Bottleneck(
        capacity=link.capacity,
        room=room,
        loss=link.loss,
        red=0,  # not RED, so the next five numbers are not used
        min_threshold=0.0,
        max_threshold=1.0,
        max_probability=0.0,
        weight=0.0,
        gentle=0,
        max_wait=link.capacity * max(scenario.jitter(group) for group in scenario.flows),
        meet_at=0,  # ``_with_steps`` sets the two addresses of compiled functions
        drop_at=0,
    )
    if not isinstance(queue, Red):
        return bottleneck
    return bottleneck._replace(
        red=1,
        min_threshold=queue.min_threshold,
        max_threshold=queue.max_threshold,
        max_probability=queue.max_probability,
        weight=queue.weight,
        gentle=int(queue.gentle),
    )


def _with_steps(link: Any, flows: np.ndarray, smooth: bool) -> Any:
    """Add the addresses of two compiled functions to the link's constants, if they are needed.

    ``trains.meet`` drops packets where the flows' trains of packets meet at the queue.
    ``random_drops.drop_at_random`` drops packets by random loss and RED. Many scenarios need
    neither function. To save time, each is compiled only at the first scenario that needs it
    (``on_demand``). ``smooth`` says whether windows are real numbers.
    """
    from vegasmodel.engines import on_demand
    from vegasmodel.engines.fluid.sampled import random_drops, records, trains

    now = np.zeros(1, records.LINK_STATE)[0]
    # the arguments after the function only tell the types of those in later calls
    if not smooth and trains.meetings_matter(flows, link.room, link.capacity):
        link = link._replace(meet_at=on_demand.address(trains.meet, flows, now, link, 0.0))
    if link.red or link.loss > 0.0:
        step = on_demand.address(random_drops.drop_at_random, flows, now, link, 0.0, 0.0)
        link = link._replace(drop_at=step)
    return link


def advance(
    scenario: Scenario,
    march: Callable[..., int],
    flows: np.ndarray,
    state: np.ndarray,
    *further: Any,
) -> int:
    """Call ``march`` of the package ``sampled`` until the simulation ends.

    ``further`` are the other arguments of ``march``. Returns the code that says why the simulation
    ended. Raises ``LawFault`` if a flow sends far more packets at once than the link and its buffer
    hold.
    """
    code = whole(march, flows, state, *further)
    if code == Status.TOO_MANY_EVENTS:
        raise _too_many(scenario, flows, state)
    return code


def _too_many(scenario: Scenario, flows: np.ndarray, state: np.ndarray) -> LawFault:
    """The error for a law that has enlarged a window without bound; it names the law's function."""
    from vegasmodel.engines.fluid.sampled.law import source

    # the flow with the most packets that the link cannot take, and what its law sees
    i = int((flows["extra"] + flows["undetected"]).argmax())
    flow, now = flows.view(np.recarray)[i], state.view(np.recarray)[0]
    plain, member = source(flow, now, papers_only(scenario)), scenario.members[flow.number]
    W, trip, law = plain.window, flow.rtt - flow.wait, find(member.flow.law)
    seen = law.source(plain, flow.kept[: len(law.state)])
    # the function that has enlarged the window: ``cut``, if it does so at a loss, else ``drift``
    name, allowed = "drift", "a growth per round trip that link and buffer can take"
    try:
        found = ask(law, "drift", seen)
        if law.cut is not None and ask(law, "cut", seen) > W:
            name, found = "cut", ask(law, "cut", seen)
            allowed = "after a loss a window that is not above the one before it"
    except FieldError as error:
        return LawFault.of_error(error)
    fits = scenario.links[0].capacity * trip + scenario.links[0].buffer
    why = f"{member.name} has a window of {W:.3g} packets, and link and buffer hold "
    said = f"{allowed} ({place(getattr(law, name))}): {why}{fits:.3g}"
    return LawFault(f"law {law.name}: {name}", float(f"{found:.3g}"), said)
