"""Defines ``Result``: the fields of a ``Prediction``, and figures that are computed from them."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from vegasmodel.fields.by_name import ByName
from vegasmodel.metrics import (
    Floats,
    delivered,
    group_means,
    group_ratios,
    jain,
    standard_error,
)
from vegasmodel.results.assumption import Assumption
from vegasmodel.results.share_errors import share_errors
from vegasmodel.scenario import Scenario
from vegasmodel.scenario.active_time import active_part
from vegasmodel.support.json_numbers import finite


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """The fields of a ``Prediction``, which explains them, and what follows from them.

    The subclass ``Prediction`` adds the methods that show and write a result. They call functions
    of the modules ``results.texts`` and ``results.writers``, which take a ``Result``.
    """

    model: str
    scenario: Scenario
    throughput: Floats | None  # [n_flows] pkt/s
    applicable: bool = True
    reason: str | None = None  # why not applicable
    throughput_range: Floats | None = None  # [n_flows, 2] for models that give ranges
    throughput_se: Floats | None = None  # [n_flows] standard error over runs, pkt/s
    base_rtt: Floats | None = None  # [n_flows] s; NaN for loss-based flows
    rtt_mean: Floats | None = None  # [n_flows] s
    loss_rate: Floats | None = None  # [n_flows] lost packets / sent packets, at most 1
    acks: Floats | None = None  # [n_flows] packets newly acknowledged; from a trace, ACKs
    retransmits: Floats | None = None  # [n_flows] packets sent again
    delivered: Floats | None = None  # packets from warm-up to end; None: throughput x active time
    delivered_time: float | None = None  # s; None: all the time from warm-up to end
    queue_mean: Floats | None = None  # [n_links] packets
    utilization_links: Floats | None = None  # [n_links]; computed from the throughputs if None
    assumptions: tuple[Assumption, ...] = ()
    seconds: float = 0.0  # time it took to answer
    extra: dict[str, Any] = dataclasses.field(default_factory=dict)  # model-specific figures

    def __post_init__(self) -> None:
        """Make the arrays read-only."""
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                fixed = value.view()  # the caller may write to an array of its own
                fixed.flags.writeable = False
                object.__setattr__(self, field.name, fixed)

    @property
    def broken(self) -> tuple[Assumption, ...]:
        """The assumptions that do not hold in the scenario."""
        return tuple(each for each in self.assumptions if each.holds is False)

    @property
    def runs(self) -> int:
        """The number of runs over which the throughputs are means; 1 for a model in closed form."""
        rates = self.extra.get("throughput_runs")  # a stored measurement lacks them
        if rates is not None:
            return len(rates)
        return 1 if self.throughput_se is None else self.scenario.run.times

    @cached_property
    def names(self) -> list[str]:
        """The names of the flows, in the order of ``scenario.members``."""
        return [member.name for member in self.scenario.members]

    @cached_property
    def groups(self) -> dict[str, float]:
        """Each group's mean throughput per flow, pkt/s, by the group's name.

        A group is one ``Flow`` of the scenario, which may stand for several equal flows.  Flows
        whose throughput is NaN are left out of the mean.  The result is empty if the prediction has
        no throughputs.
        """
        if self.throughput is None:
            return ByName()
        group_of_flow = [member.group for member in self.scenario.members]
        return group_means(self.throughput, group_of_flow, [g.name for g in self.scenario.flows])

    @cached_property
    def groups_se(self) -> dict[str, float]:
        """The standard error of each group's mean throughput per flow, pkt/s, by the group's name.

        A group is one ``Flow`` of the scenario, which may stand for several equal flows.  The error
        is computed from the group's mean throughput in each run, ``extra["throughput_runs"]``.  If
        this is missing, the error is known only for groups of one flow (``throughput_se``), because
        the throughputs of a group's flows are correlated.  Groups whose error is unknown are left
        out.
        """
        runs = self.extra.get("throughput_runs")  # [runs, flows]
        if runs is not None and len(runs) > 1:
            group_of_flow = [member.group for member in self.scenario.members]
            names = [group.name for group in self.scenario.flows]
            means = [list(group_means(one, group_of_flow, names).values()) for one in runs]
            found = dict(zip(names, standard_error(np.array(means)).tolist(), strict=True))
        elif self.throughput_se is not None:
            found = {
                member.flow.name: float(error)
                for member, error in zip(self.scenario.members, self.throughput_se, strict=True)
                if member.flow.count == 1
            }
        else:
            found = {}
        return ByName((name, error) for name, error in found.items() if math.isfinite(error))

    @cached_property
    def ratios(self) -> dict[str, float | None]:
        """The ratio of mean throughputs for every ordered pair of groups, by keys like ``"a/b"``.

        A group is one ``Flow`` of the scenario, which may stand for several equal flows
        (``count``). Its throughput is the mean over these flows. A ratio is ``None`` if b's
        throughput is 0 or one of the two is NaN.
        """
        return group_ratios(self.groups)

    @cached_property
    def throughput_bps(self) -> Floats | None:
        """The throughput of each flow in bit/s; a packet counts with its size in the scenario."""
        if self.throughput is None:
            return None
        bits: Floats = self.throughput * self._packet_bits
        return bits

    @property
    def _packet_bits(self) -> Floats:
        """The size of one data packet of each flow, in bits, [n_flows]."""
        sizes = [self.scenario.size_of(member.flow) for member in self.scenario.members]
        return 8.0 * np.array(sizes)

    @cached_property
    def delivered_bps(self) -> Floats | None:
        """The mean rate of each flow from the end of the warm-up to the end of the run, bit/s.

        A trace may cover only a part of this time.  The mean is then over this part.

        Time in which the flow is not active counts here. It does not count in ``throughput_bps``,
        which is therefore larger for a flow that is active for only a part of the time. The result
        is ``None`` if the prediction has no throughputs.
        """
        if self.throughput is None or self.throughput_bps is None:
            return None
        if self.delivered is None:
            return delivered(self.throughput_bps) * active_part(self.scenario)
        span = self.delivered_time or self.scenario.run.duration - self.scenario.run.warmup
        bits: Floats = self.delivered * self._packet_bits / span
        return bits

    @cached_property
    def group_bps(self) -> dict[str, float]:
        """The sum of ``delivered_bps`` over the flows of each group, in bit/s, by the group's name.

        A group is one ``Flow`` of the scenario, which may stand for several equal flows.
        """
        if self.delivered_bps is None:
            return ByName()
        group_of_flow = np.array([member.group for member in self.scenario.members])
        bits = self.delivered_bps
        return ByName(
            (group.name, float(bits[group_of_flow == i].sum()))
            for i, group in enumerate(self.scenario.flows)
        )

    @cached_property
    def shares(self) -> dict[str, float | None]:
        """Each group's share of all bits delivered after the warm-up; ``None`` if there are none.

        A group is one ``Flow`` of the scenario, which may stand for several equal flows. A
        throughput is a mean over the time in which the flow is active, but a share counts the bits
        of the whole time. For example, two groups may have the same throughput, but the second is
        active only half as long. Its share is then half that of the first.
        """
        total = sum(self.group_bps.values())
        return ByName(
            (name, bps / total if total > 0 else None) for name, bps in self.group_bps.items()
        )

    @cached_property
    def shares_se(self) -> dict[str, float]:
        """The standard error of each group's share, by the group's name.

        A group is one ``Flow`` of the scenario, which may stand for several equal flows.  The error
        is computed from the throughputs in each run, ``extra["throughput_runs"]``, by the jackknife
        (``share_errors``).  It is empty if there are fewer than two runs.
        """
        group_of_flow = np.array([member.group for member in self.scenario.members])
        names = [group.name for group in self.scenario.flows]
        errors = np.broadcast_to(  # a single NaN if the errors are unknown
            share_errors(self.extra.get("throughput_runs", ()), self.delivered_bps, group_of_flow),
            len(names),
        )
        return ByName(
            (name, float(error))
            for name, error in zip(names, errors, strict=True)
            if math.isfinite(error)
        )

    @cached_property
    def laws(self) -> dict[str, dict[str, float | int | None]]:
        """What all flows of each law (congestion control) deliver together, by the law's name.

        The entry of a law has four keys:

        - ``flows``: the number of its flows. A group of short flows that arrive at random counts as
          one flow.
        - ``delivered_bps``: the sum of their ``delivered_bps``, bit/s.
        - ``share``: this sum as a fraction of that of all laws. It is ``None`` if no flow delivers
          anything.
        - ``utilization``: the fraction of the link's capacity that its forward flows use. It is
          ``None`` if there are several links.

        A number that is not known is ``None``. The result is empty if the prediction has no
        throughputs.
        """
        bits, members = self.delivered_bps, self.scenario.members
        if bits is None:
            return {}
        laws = np.array([member.flow.law for member in members])
        forward = np.array([member.flow.direction == "forward" for member in members])
        links, total = self.scenario.links, float(bits.sum())
        found: dict[str, dict[str, float | int | None]] = {}
        for law in dict.fromkeys(laws.tolist()):
            its = laws == law
            part = None
            if len(links) == 1:
                capacity = 8.0 * self.scenario.packet_size * links[0].capacity
                part = finite(bits[its & forward].sum() / capacity)
            found[law] = {
                "flows": int(its.sum()),
                "delivered_bps": finite(bits[its].sum()),
                "share": finite(bits[its].sum() / total) if total > 0 else None,
                "utilization": part,
            }
        return found

    @cached_property
    def unknown_flows(self) -> tuple[str, ...]:
        """The names of the active flows whose throughput is unknown in a measurement.

        A flow that is never active between warm-up and end is left out: it has no throughput.
        """
        if self.throughput is None or self.delivered is None:
            return ()
        unknown = np.isnan(self.delivered) & (active_part(self.scenario) > 0)
        return tuple(name for name, lacks in zip(self.names, unknown, strict=True) if lacks)

    @cached_property
    def jain(self) -> float | None:
        """Jain's fairness index of the flows' throughputs.

        It is ``None`` if the prediction has no throughputs, if none of them is above 0, or if that
        of an active flow is unknown (``unknown_flows`` names such flows).
        """
        if self.throughput is None or self.unknown_flows:
            return None
        return finite(jain(self.throughput))

    @cached_property
    def utilization(self) -> Floats | None:
        """The utilization of each link, [n_links]: the part of its capacity that forward flows use.

        It is an array also if there is only one link, whose utilization is ``utilization[0]``.

        Only packets that these flows deliver count, each once, in models and in measurements.  So
        retransmitted packets do not count, and neither do the ACKs of reverse flows.

        In ``rounds`` and ns-2 it may be slightly above 1.  A packet counts when a cumulative ACK
        reports it, so packets may cross the link before the warm-up ends and count after it.

        If the model gives no utilization, it is computed from the flows' mean rates
        (``delivered_bps``).  It is ``None`` if they are missing as well.
        """
        if self.utilization_links is not None or self.delivered_bps is None:
            return self.utilization_links
        used = np.zeros(len(self.scenario.links))
        index = {link.name: i for i, link in enumerate(self.scenario.links)}
        for member, bits in zip(self.scenario.members, self.delivered_bps, strict=True):
            if member.flow.direction == "forward":
                for link in self.scenario.path(member.flow):
                    used[index[link.name]] += bits
        capacity: Floats = np.array([link.capacity for link in self.scenario.links])
        return used / (8.0 * self.scenario.packet_size * capacity)
