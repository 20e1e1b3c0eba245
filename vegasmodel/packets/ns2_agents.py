"""The TCP senders of ns-2 (agents), one for each congestion control (law) that ns-2 simulates."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import NamedTuple

from vegasmodel.scenario import Flow

__all__ = ["AGENTS", "Agent"]

Settings = dict[str, float | int | str]


class Agent(NamedTuple):
    """A sender of ns-2, and what it needs.

    ``name`` is its class. With ``sack`` the receiver reports in SACK blocks which packets arrived.
    ``decrease`` is the factor by which a loss multiplies the window, such as 0.5; it is ``None`` if
    one of the settings gives this factor. ``settings`` is a function. It takes an entry
    ``[[flow]]`` of the scenario, and returns the sender's variables and their values.

    ``Agent/TCP/Linux`` runs the code of Linux 2.6. Its setting ``module`` is the name of the
    congestion control there, such as "cubic". A setting such as ``cubic_beta`` is the parameter
    ``beta`` of this module.
    """

    name: str
    sack: bool = False
    decrease: float | None = 0.5
    settings: Callable[[Flow], Settings] = lambda _: {}


def _vegas(group: Flow) -> Settings:
    return {f"v_{key}_": int(getattr(group, key)) for key in ("alpha", "beta", "gamma")}


def _cubic(group: Flow) -> Settings:
    return {"module": "cubic", "cubic_beta": round(1024 * group.decrease)}


AGENTS = MappingProxyType(
    {
        "vegas": Agent("Agent/TCP/Vegas", decrease=0.75, settings=_vegas),
        "reno": Agent("Agent/TCP/Reno"),
        "newreno": Agent("Agent/TCP/Newreno"),
        "sack": Agent("Agent/TCP/Sack1", sack=True),
        "tahoe": Agent("Agent/TCP"),
        "cubic": Agent("Agent/TCP/Linux", sack=True, decrease=None, settings=_cubic),
    }
)
