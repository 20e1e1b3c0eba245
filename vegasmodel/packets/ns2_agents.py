"""Says for each congestion control of this package which TCP sender of ns-2 runs it.

ns-2 calls its TCP senders agents. The module also says how a flow of a scenario sets the variables
of its agent.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import NamedTuple

from vegasmodel.scenario import Flow

__all__ = ["AGENTS", "Agent"]

LINUX = "Agent/TCP/Linux"  # ns-2's agent with the code of Linux 2.6
Settings = dict[str, float | int | str]  # variables of an agent, and their values


class Agent(NamedTuple):
    """A TCP sender of ns-2, and how a flow of a scenario sets its variables.

    - ``name``: the sender's class in ns-2.
    - ``sack``: whether the receiver reports in SACK blocks which packets arrived.
    - ``decrease``: the factor by which a loss multiplies the window, such as 0.5; ``None`` if one
      of the settings is this factor.
    - ``settings``: a function that takes an entry ``[[flow]]`` of the scenario, and returns the
      sender's variables and their values.

    The sender ``Agent/TCP/Linux`` runs the code of Linux 2.6. Its setting ``module`` is the name of
    Linux's congestion control, such as "cubic". Its setting ``cubic_beta`` is the parameter
    ``beta`` of the module ``cubic``.
    """

    name: str
    sack: bool = False
    decrease: float | None = 0.5
    settings: Callable[[Flow], Settings] = lambda _: {}


def _vegas(group: Flow) -> Settings:
    """The thresholds of a Vegas flow, in packets, as variables of ns-2's agent."""
    return {f"v_{key}_": int(getattr(group, key)) for key in ("alpha", "beta", "gamma")}


def _cubic(group: Flow) -> Settings:
    """Linux's CUBIC, whose parameter ``beta`` is the factor of the window in units of 1/1024."""
    return {"module": "cubic", "cubic_beta": round(1024 * group.decrease)}


AGENTS = MappingProxyType(
    {
        "vegas": Agent("Agent/TCP/Vegas", decrease=0.75, settings=_vegas),
        "reno": Agent("Agent/TCP/Reno"),
        "newreno": Agent("Agent/TCP/Newreno"),
        "sack": Agent("Agent/TCP/Sack1", sack=True),
        "tahoe": Agent("Agent/TCP"),
        "cubic": Agent(LINUX, sack=True, decrease=None, settings=_cubic),
    }
)
