"""Decides by which of two methods the simulator ``fluid`` simulates a scenario.

The function ``unsupported`` says why ``fluid`` cannot simulate a scenario at all. The methods are:

* ``continuous.py`` solves differential equations for windows that change at every instant. It is
  used if every flow runs TCP as in the papers (``variant = "paper"``) with a congestion control law
  of this package other than CUBIC, and if the link is drop-tail without random loss.
* The package ``sampled`` proceeds in small steps of time. It is used in all other cases: for RED,
  for random loss, for CUBIC, for laws that the user has written, and for the TCP of ns-2 or Linux.
  (Their TCP sends whole packets, and their Vegas changes its window once per round trip.)
"""

from __future__ import annotations

from vegasmodel.engines.fluid import continuous
from vegasmodel.fields import kinds
from vegasmodel.laws import foreign
from vegasmodel.scenario import Scenario
from vegasmodel.stacks import STACKS

__all__ = ["all_continuous", "by_chance", "one_run_suffices", "papers_only", "unsupported"]


def papers_only(scenario: Scenario) -> bool:
    """Whether all flows run TCP as in the papers (``variant = "paper"``).

    Their windows are then real numbers that change at every instant. The TCPs of ns-2 and Linux
    send whole packets instead, and their Vegas changes its window once per round trip.
    """
    return all(STACKS[group.variant].real_numbers for group in scenario.flows)


@kinds.checked
def unsupported(scenario: Scenario) -> str | None:
    """Why the simulator ``fluid`` cannot simulate the scenario; None if it can."""
    name = "the simulator `fluid`"
    return continuous.unsupported(scenario, random_loss=True, red=True, any_law=True, name=name)


def all_continuous(scenario: Scenario) -> bool:
    """Whether ``continuous.py`` simulates the scenario, and not the package ``sampled``.

    It does if every flow runs TCP as in the papers, with a law of this package other than CUBIC,
    and if the link is drop-tail without random loss.
    """
    plain = scenario.links[0].loses_only_when_full
    known = not foreign(group.law for group in scenario.flows)
    return papers_only(scenario) and plain and known


def one_run_suffices(scenario: Scenario) -> bool:
    """Whether all runs of the scenario give the same result, so that one run is enough.

    They do if the module ``continuous`` computes the runs, and if start times are not random. (That
    module draws no random numbers.)
    """
    return all_continuous(scenario) and scenario.run.start_jitter == 0.0


def by_chance(scenario: Scenario) -> bool:
    """Whether the scenario has something random, such as random loss, so that runs of it differ.

    The conditions are those of ``Scenario.by_chance``, with one exception. If all flows run TCP as
    in the papers, the simulator ``fluid`` ignores the random waits of senders (``send_jitter``).
    """
    if papers_only(scenario):
        scenario = scenario.replace({"flow.send_jitter": 0.0})
    return scenario.by_chance
