"""Fluid trajectories of a scenario, and which engine gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from vegasmodel.fluid import answers, continuous
from vegasmodel.scenario import Scenario

if TYPE_CHECKING:
    import xarray


def engine(scenario: Scenario) -> Literal["continuous", "rounds"]:
    """Which engine answers a scenario.

    The papers' law moves a window continuously, so the continuous engine has it; ns-2 and Linux
    decide once a round trip on whole packets, which the rounds engine carries.  Scenarios without
    Vegas, and those with features that the continuous engine lacks, go to the rounds engine too.
    """
    variants = {group.variant for group in scenario.flows if group.law == "vegas"}
    plain = variants == {"paper"} and continuous.unsupported(scenario) is None
    return "continuous" if plain else "rounds"


def simulate(
    scenario: Scenario, *, samples: int = 2001, parts: int | None = None, delayed: bool = False
) -> xarray.Dataset:
    """Trajectories at ``samples`` instants evenly over the duration, by ``engine(scenario)``.

    With ``delayed`` it is the continuous law of every variant under feedback delay
    (``feedback.py``): then ``rtt`` is that of the packet whose ACK arrives now, and ``lost``
    (time, flow) is there too.

    ``window`` (time, flow) packets, ``rate`` (time, flow) packets a second into the first link,
    ``rtt`` (time, flow) seconds that a packet sent now would take, ``base_rtt`` (time, flow) the
    least RTT seen so far by Vegas, NaN for the others, ``delivered`` (time, flow) and ``queue``
    (time, link) packets that wait to cross a link forward.  Units stand in the variables'
    ``attrs``, where the numbers come from in the dataset's.  ``parts`` is the rounds engine's
    resolution.  Raises ``ValueError`` where the engine lacks a feature.
    """
    import xarray

    import vegasmodel

    way = "feedback" if delayed else engine(scenario)
    if way == "feedback":
        found = _feedback(scenario, samples)
    elif way == "continuous":
        found = _continuous(scenario, samples)
    else:
        found = _rounds(scenario, samples, parts)
    attrs = {
        "model": "fluid",
        "engine": way,
        "scenario": scenario.name,
        "fingerprint": scenario.fingerprint(),
        "version": vegasmodel.__version__,
        **found.pop("attrs"),
    }
    units = {"rate": "packets/s", "rtt": "s", "base_rtt": "s"}
    times, links = found.pop("time"), found.pop("link")
    return xarray.Dataset(
        {
            name: (
                ("time", "link" if name == "queue" else "flow"),
                values,
                {"units": units.get(name, "packets")},
            )
            for name, values in found.items()
        },
        coords={
            "time": ("time", times, {"units": "s"}),
            "flow": [member.name for member in scenario.members],
            "link": links,
        },
        attrs=attrs,
    )


def _rounds(scenario: Scenario, samples: int, parts: int | None) -> dict[str, Any]:
    from vegasmodel.fluid.rounds import resolution, run

    reason = answers.obstacle(scenario)
    if reason is not None:
        raise ValueError(f"the fluid model cannot simulate this scenario: {reason}")
    starts = answers.starts_of(scenario, 0)
    totals = run(scenario, parts=parts, samples=samples, starts=starts)
    window, sent, rtt, delivered, base = np.moveaxis(totals.per_flow, 2, 0)
    step = totals.times[1] if samples > 1 else np.inf
    links = [link.name for link in scenario.links]
    return {
        "time": totals.times,
        "window": window,
        "rate": np.diff(sent, axis=0, prepend=0.0) / step,
        "rtt": rtt,
        "base_rtt": np.where(_vegas(scenario) & (base < 1e9), base, np.nan),
        "delivered": delivered,
        "queue": totals.of_links(totals.queues, links),
        "link": links,
        "attrs": {
            "parts": resolution(scenario)[0] if parts is None else parts,
            "status": answers.STATUS.get(totals.status, "done"),
            "events": totals.events,
            # features of the scenario that are not simulated
            "left_out": ", ".join(a.name for a in answers.left_out(scenario) if not a.holds),
        },
    }


def _continuous(scenario: Scenario, samples: int) -> dict[str, Any]:
    run = continuous.run(scenario, sample=scenario.run.duration / (samples - 1))
    rate = np.nan_to_num(run.rate)
    carried = 0.5 * (rate[1:] + rate[:-1]) * np.diff(run.time)[:, None]  # trapezoids
    active = np.where(run.window > 0, run.rtt, np.inf)
    least = np.fmin.accumulate(active, axis=0)  # the delay that a packet sent so far has met
    return {
        "time": run.time,
        "window": run.window,
        "rate": run.rate,
        "rtt": run.rtt,
        "base_rtt": np.where(_vegas(scenario) & np.isfinite(least), least, np.nan),
        "delivered": np.vstack([np.zeros(rate.shape[1]), np.cumsum(carried, axis=0)]),
        "queue": run.queue,
        "link": [scenario.path(scenario.flows[0])[0].name],
        "attrs": {"status": run.status},
    }


def _feedback(scenario: Scenario, samples: int) -> dict[str, Any]:
    from vegasmodel.fluid import feedback

    run = feedback.run(scenario, samples)
    least = np.fmin.accumulate(np.where(run.delivered > 0, run.rtt, np.inf), axis=0)
    return {
        "time": run.time,
        "window": run.window,
        "rate": np.diff(run.sent, axis=0, prepend=0.0) / run.time[1],
        "rtt": run.rtt,
        "base_rtt": np.where(_vegas(scenario) & np.isfinite(least), least, np.nan),
        "delivered": run.delivered,
        "lost": run.lost,
        "queue": run.queue,
        "link": [scenario.path(scenario.flows[0])[0].name],
        "attrs": {"status": "done"},
    }


def _vegas(scenario: Scenario) -> Any:
    return np.array([member.flow.law == "vegas" for member in scenario.members])
