"""Compares the average throughputs of flows that differ only in how they start.

Two equal loss-based flows may share a queue unequally for thousands of seconds and then exchange
their shares, for example because of phase effects.  Within a run that is shorter than this, the
throughputs look constant, so the differences between parts of the run do not show the error of an
average.  But the difference between the two flows does.
"""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from vegasmodel.metrics import Floats
from vegasmodel.scenario import Flow, Scenario
from vegasmodel.scenario.parts import Member

__all__ = ["least_error"]

# Fields that only matter at the start of a flow, or that name it.  ``Member`` has the flow's own
# RTT and stop time.
_ASIDE = {"name", "match", "count", "start", "initial_window", "rtt", "stop"}
_COMPARED = [each.name for each in fields(Flow) if each.name not in _ASIDE]


def least_error(scenario: Scenario, rates: Floats) -> Floats:
    """The least standard error that averages over one run can have, because equal flows differ.

    ``rates`` [flow] are the flows' average throughputs in the run, in packets per second. The
    result [flow] has the same unit. It is 0 for a flow without an equal one.

    Two flows are equal if they differ at most in name, start time and first window. If a motion is
    random, such flows have the same mean throughput m in the long run. Let x_1, ..., x_k be their
    averages over one run, each with the standard error s, and r the correlation between two of
    them. The sum of the averages has a variance of at least 0, so r >= -1/(k - 1), and

        E[ sum_i (x_i - mean(x))^2 / k ] = s^2 (1 - r) (k - 1)/k <= s^2.

    The result is the square root of sum_i (x_i - mean(x))^2 / k.

    It is 0 for all flows if the motion is not random: then the start may decide for ever which flow
    gets more. For the same reason it is 0 for a delay-based flow that measures its baseRTT, because
    the baseRTT depends on the queue at the flow's start.
    """
    found = np.zeros_like(rates)
    # random starts alone make no random motion: a run draws them once
    if not scenario.replace({"run.start_jitter": 0.0}).by_chance:
        return found
    alike: dict[tuple[object, ...], list[int]] = {}
    for i, member in enumerate(scenario.members):
        if not (member.flow.delay_based and member.flow.measures_base):
            alike.setdefault(_key(member), []).append(i)
    for indices in alike.values():
        found[indices] = np.std(rates[indices])
    return found


def _key(member: Member) -> tuple[object, ...]:
    """What two flows must have in common to count as equal."""
    own = (getattr(member.flow, name) for name in _COMPARED)
    return (member.rtt, member.stop, *own)
