"""Draws random valid scenarios, and random arguments for the Vegas equilibrium, with Hypothesis.

An example of a test that uses them::

    import vegasmodel as vm
    from hypothesis import given, settings
    from vegasmodel.testing import invariants, strategies

    @settings(deadline=None)
    @given(strategies.scenarios(laws=("vegas",)))
    def test(scenario):
        invariants.check(vm.predict(scenario, "fluid"))

By default Hypothesis allows 200 ms for an example.  A simulator needs longer at its first call,
when it is compiled or loaded, so the test sets ``deadline=None``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from hypothesis import strategies as st

from vegasmodel.fields import kinds
from vegasmodel.metrics import Floats
from vegasmodel.queues import DropTail, Queue, RateDelay, Red
from vegasmodel.scenario import LAWS, VARIANTS, Flow, Link, Run, Scenario, Staggered

__all__ = ["Equilibrium", "equilibria", "queues", "scenarios"]


class Equilibrium(NamedTuple):
    """Arguments of ``vm.equilibrium.rates`` and ``vm.equilibrium.queueing_delay``."""

    alpha: Floats  # [n] packets
    over_estimate: Floats  # [n] s, at least 0
    capacity: float  # pkt/s


@kinds.checked
@st.composite
def equilibria(draw: st.DrawFn, max_flows: int = 20) -> Equilibrium:
    """Random inputs of the Vegas steady state: Vegas flows alone on one link.

    Thresholds are 0.1 to 100 packets, and over-estimates of the baseRTT are 0 to 1 s.  The steady
    rates satisfy ``invariants.check_rates``.  For the variants ``paper`` and ``ns2``, three more
    statements hold; x are the over-estimates and c is the capacity.

    - If the flows are permuted, the rates are permuted in the same way.
    - The inputs ``(alpha, x / k, k c)`` give ``k`` times the rates of ``(alpha, x, c)``.
    - If one flow's over-estimate grows, its own rate does not decrease.
    """
    n = draw(st.integers(1, max_flows))
    alpha = draw(st.lists(st.floats(0.1, 100.0), min_size=n, max_size=n))
    x = draw(st.lists(st.floats(0.0, 1.0), min_size=n, max_size=n))
    return Equilibrium(np.array(alpha), np.array(x), draw(st.floats(10.0, 1e5)))


def queues() -> st.SearchStrategy[Queue]:
    """A Hypothesis strategy for queues: drop-tail, Rate-Delay or RED, with random parameters."""
    return st.one_of(
        st.builds(DropTail),
        st.builds(RateDelay, k=st.floats(0.25, 4.0), delay_buffer=st.floats(0.05, 0.5)),
        st.builds(
            Red,
            min_threshold=st.floats(1.0, 10.0),
            max_threshold=st.floats(11.0, 40.0),
            max_probability=st.floats(0.01, 0.5),
        ),
    )


@kinds.checked
@st.composite
def scenarios(
    draw: st.DrawFn,
    laws: Sequence[str] = LAWS,
    variants: Sequence[str] = VARIANTS,
    queue: st.SearchStrategy[Queue] | None = None,
    max_groups: int = 3,
    max_links: int = 1,
) -> Scenario:
    """Random valid scenarios: 1 to ``max_groups`` groups of 1 to 4 flows, which cross all links.

    There are 1 to ``max_links`` links.  Links have 50 to 5000 pkt/s and a buffer of 5 to 200
    packets, or of 1 or 2 bandwidth-delay products.  Their queues are drawn from ``queue``, by
    default drop-tail.  RTTs are 20 to 300 ms plus 100 ms per link.  Runs last 60 s, of which the
    first 20 s are warm-up.

    Each group has one of ``laws``.  All flows of a scenario have the same variant, one of
    ``variants``.

    The project's tests check two properties of each such scenario ``s``.  A scenario file that is
    written for it gives the same scenario again: ``Scenario.from_toml(s.to_toml()) == s``.  And
    ``invariants.check`` raises no error for a model's prediction for ``s``.
    """
    variant = draw(st.sampled_from(list(variants)))
    discipline = st.just(DropTail()) if queue is None else queue
    links = tuple(
        Link(
            draw(st.floats(50.0, 5000.0)),
            name=f"link-{i}",
            buffer=draw(st.one_of(st.floats(5.0, 200.0), st.sampled_from(["1 BDP", "2 BDP"]))),
            queue=draw(discipline),
        )
        for i in range(draw(st.integers(1, max_links)))
    )
    flows = []
    for i in range(draw(st.integers(1, max_groups))):
        alpha = draw(st.integers(1, 6))
        flows.append(
            Flow(
                draw(st.sampled_from(list(laws))),
                draw(st.floats(0.02, 0.3)) + 0.1 * len(links),  # at 50 pkt/s a packet takes 20 ms
                name=f"group-{i}",
                count=draw(st.integers(1, 4)),
                start=Staggered(draw(st.floats(0.0, 5.0)), draw(st.floats(0.0, 2.0))),
                alpha=alpha,
                beta=draw(st.integers(alpha, 8)),
                variant=cast("Any", variant),
            )
        )
    return Scenario(
        links,
        tuple(flows),
        run=Run(duration=60.0, warmup=20.0, seed=draw(st.integers(0, 2**31 - 1))),
    )
