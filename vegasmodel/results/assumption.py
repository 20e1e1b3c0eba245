"""Defines ``Assumption``: what a model or a measurement assumes, and whether it holds.

The module also tests one assumption: that each flow still sends when the warm-up has ended.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from vegasmodel.fields.lists import few
from vegasmodel.metrics import Floats
from vegasmodel.scenario import Scenario


@dataclass(frozen=True)
class Assumption:
    """Something that a model or a measurement assumes, and whether it holds in the scenario.

    ``holds`` is ``None`` if it is not known whether the assumption holds.
    """

    name: str
    holds: bool | None
    detail: str = ""


def sends_after_warm_up(scenario: Scenario, throughput: Floats | None) -> tuple[Assumption, ...]:
    """The assumption ``sends-after-warm-up``, which fails if flows end before the warm-up does.

    ``throughput`` has one entry per flow. It is NaN, or 0 in some traces, for a flow that has sent
    all its data, or has stopped, by the end of the warm-up. The assumption's text names up to three
    such flows. The result is empty if there are none.
    """
    if throughput is None:
        return ()
    begin, ended = scenario.run.warmup, []
    for member, rate in zip(scenario.members, throughput, strict=True):
        if rate > 0.0 or member.flow.arrivals != "once":
            continue
        if member.stop <= begin:
            ended.append(f"{member.name} stops at {member.stop:.4g} s")
        elif member.flow.size != math.inf:
            ended.append(f"{member.name} has sent all its data")
    if not ended:
        return ()
    text = f"{few(ended)} before averages begin at {begin:.4g} s"
    return (Assumption("sends-after-warm-up", False, f"{text} (`warmup`)"),)
