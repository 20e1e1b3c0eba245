"""Writes one run of a scenario as plain numbers for ``rig.py``; refuses what the rig cannot do."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from vegasmodel.fields.errors import FieldError
from vegasmodel.scenario import DropTail, Flow, Scenario

MAX_FLOWS = 200
INFINITE = 100_000  # packets, which stand for an infinite buffer
# for each law of a scenario, the kernel's name of this congestion control
CONTROLS = {"vegas": "vegas", "reno": "reno", "cubic": "cubic"}
SAMPLES = 240  # of a run, by default
LONGEST_WAIT = 1.0  # s; netem draws a random wait as a 32-bit number of ns
# bytes: the smallest and the largest packet, Ethernet header included
ETHERNET_FRAME = (128, 65535)


def job(
    scenario: Scenario,
    number: int = 0,
    *,
    instead: Mapping[str, str] | None = None,
    sampler: str = "tcp_info",
    delay: str = "auto",
    interval: float | None = None,
) -> dict[str, Any]:
    """The job for run ``number`` of the scenario: what ``rig.py`` needs to run it with a kernel.

    - ``instead``: for some flows, by name, the kernel's congestion control that they run in place
      of that of their law.
    - ``sampler``: how the sockets' states are read: by the system call of ``tcp_info``, or by the
      program ``ss``.
    - ``delay``: who delays ACKs: ``netem``, or a process of ours (``user``).  With ``auto`` it is
      netem if the kernel has it.
    - ``interval``: seconds between two samples; by default there are ``SAMPLES`` in the run.

    A start gets the same random jitter as in run ``number`` of ns-2 with the same seed.

    Raises ``FieldError`` for a feature of the scenario that the rig does not have.
    """
    groups = [member.flow for member in scenario.members]
    _check(scenario, groups, instead or {})
    run = scenario.run
    rng = np.random.default_rng([run.seed, number])
    rng.integers(1, 2**31 - 1)  # our driver of ns-2 draws the seed of ns-2's own generator here
    jitter = rng.uniform(0.0, 1.0, len(groups)) * run.start_jitter
    link = scenario.links[0]
    flows = [
        {
            "name": member.name,
            "control": _control(member.flow, instead or {}),
            "rtt": member.rtt,
            "start": float(member.start + jitter[i]),
            "stop": member.stop,
            "packet_size": int(scenario.size_of(member.flow)),
            "delayed_ack": member.flow.delayed_ack,
            "initial_window": int(member.flow.initial_window or 0),  # 0: the kernel's own
            "send_jitter": scenario.jitter(member.flow),
        }
        for i, member in enumerate(scenario.members)
    ]
    return {
        "rate": 8.0 * scenario.packet_size * link.capacity,
        "buffer": int(min(link.buffer, INFINITE)),
        "duration": run.duration,
        "interval": interval or run.duration / SAMPLES,
        "sampler": sampler,
        "delay": delay,
        "vegas": _vegas(groups) if any(flow["control"] == "vegas" for flow in flows) else None,
        "flows": flows,
    }


def controls(words: list[str]) -> dict[str, str]:
    """The congestion control by flow name, from texts ``FLOW=NAME`` of the command line."""
    found = {}
    for word in words:
        flow, _, name = word.partition("=")
        if not flow or not name:
            raise FieldError("--control", word, "FLOW=NAME, such as reno=cubic")
        found[flow] = name
    return found


def _control(group: Flow, instead: Mapping[str, str]) -> str:
    """The kernel's congestion control of a flow: that in ``instead``, or else that of its law."""
    return instead.get(group.name) or CONTROLS[group.law]


def _vegas(groups: list[Flow]) -> dict[str, int]:
    """The parameters of the kernel module tcp_vegas, from the Vegas flows among ``groups``.

    Raises ``FieldError`` unless these have the same whole numbers as alpha, beta and gamma.
    """
    sets = {(g.alpha, g.beta, g.gamma) for g in groups if g.law == "vegas"}
    chosen = sorted(sets or {(2.0, 4.0, 1.0)})
    if len(chosen) > 1 or any(not value.is_integer() for value in chosen[0]):
        found = "; ".join(", ".join(f"{x:g}" for x in values) for values in chosen)
        raise FieldError(
            "flow.alpha, beta, gamma", found, "one set of whole numbers: tcp_vegas has one"
        )
    return dict(zip(("alpha", "beta", "gamma"), map(int, chosen[0]), strict=True))


def _check(scenario: Scenario, groups: list[Flow], instead: Mapping[str, str]) -> None:
    """Raise ``FieldError`` for what the rig does not have.

    ``groups`` are the groups of flows. ``instead`` has, by name of a flow, the congestion control
    of the kernel that replaces that of the flow's law.
    """
    link = scenario.links[0]
    names = {group.name for group in groups}
    for name in instead:
        if name not in names:
            raise FieldError("--control", name, f"a flow of the scenario: {', '.join(names)}")
    if len(scenario.links) > 1:
        raise FieldError("link", len(scenario.links), "one link in this rig")
    if not isinstance(link.queue, DropTail) or link.loss or link.drops:
        raise FieldError("link.queue", link.name, "plain drop-tail without random or forced loss")
    if link.buffer < 1:
        raise FieldError("link.buffer", link.buffer, "at least 1 packet")
    if len(groups) > MAX_FLOWS:
        raise FieldError("flow.count", len(groups), f"at most {MAX_FLOWS} flows in this rig")
    low, high = ETHERNET_FRAME
    for group in groups:
        if group.name not in instead and group.law not in CONTROLS:
            raise FieldError(
                "flow.law",
                group.law,
                f"one of {', '.join(CONTROLS)}, or --control {group.name}=...",
            )
        if not group.long_lived:
            raise FieldError("flow.size", group.name, "lasting flows in this rig")
        if scenario.jitter(group) > LONGEST_WAIT:
            allowed = f"at most {LONGEST_WAIT:g} s in this rig"
            raise FieldError("flow.send_jitter", scenario.jitter(group), allowed)
        plain = group.direction == "forward" and group.max_window == math.inf
        if not plain or group.delay_noise or group.over_estimate != "measured":
            allowed = "no reverse direction, max_window, delay_noise or given over_estimate"
            raise FieldError("flow", group.name, allowed)
        if not low <= scenario.size_of(group) <= high:
            raise FieldError(
                "packet_size",
                scenario.size_of(group),
                f"{low} to {high} B, Ethernet header included",
            )
