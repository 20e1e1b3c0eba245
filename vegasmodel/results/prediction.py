"""Defines ``Prediction``, the throughputs and other results of one model or one measurement.

``vegasmodel.predict`` returns a ``Prediction``.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from vegasmodel.fields.by_name import ByName
from vegasmodel.fields.lists import few
from vegasmodel.metrics import (
    Floats,
    delivered,
    group_means,
    group_ratios,
    jain,
    standard_error,
)
from vegasmodel.results import texts, writers
from vegasmodel.results.writers import finite
from vegasmodel.scenario import Scenario
from vegasmodel.scenario.active_time import active_part
from vegasmodel.support.shown import Shown, Table

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr


@dataclass(frozen=True)
class Assumption:
    """Something that a model or a measurement assumes, and whether it holds in the scenario.

    ``holds`` is ``None`` if it is not known whether the assumption holds.
    """

    name: str
    holds: bool | None
    detail: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class Prediction(Shown):
    """The throughput of each flow, and the other results that a model or a measurement gives.

    ``table`` gives a text with a line for each group, and the assumptions that do not hold.
    Predictions are equal only if they are the same object; compare their fields, such as
    ``throughput``, instead.

    An array has one entry per flow, in the order of ``scenario.members`` (``names``), unless
    another shape is given.  It is read-only; its method ``copy`` gives one that is not.  A result
    that was not computed or measured is ``None``.  If a result is missing for only some flows,
    their entries are NaN.

    - ``model``: the name of the model, or that of the measurement, such as ``ns2``.
    - ``scenario``: the scenario that the result is for.
    - ``throughput``: packets delivered per second while the flow is active.
    - ``applicable``, ``reason``: if the model cannot be evaluated for the scenario, ``applicable``
      is False, ``reason`` says why, and the results are missing.
    - ``throughput_range``: [n_flows, 2] pkt/s, the lower and the upper end, if the model predicts a
      range for each flow.
    - ``throughput_se``: standard error of ``throughput`` over runs, pkt/s.
    - ``base_rtt``: the flow's baseRTT, s: the least round-trip time that it has seen, or the value
      that the scenario gives.  If there are several runs, it is the mean over them.  It is NaN for
      loss-based flows, and if no baseRTT is known.
    - ``rtt_mean``: mean round-trip time, s.  In the simulators, ns-2 and ns-3 it does not include
      the time for which packets behind a lost one wait for its retransmission.
    - ``loss_rate``: packets lost over packets sent.
    - ``acks``: number of packets newly acknowledged; if measured from a trace, number of ACKs.
    - ``retransmits``: number of packets that were sent again.
    - ``delivered``: packets delivered from the end of the warm-up to the end of the run.
    - ``delivered_time``: for how many seconds ``delivered`` was counted.  ``None`` means from the
      end of the warm-up to the end of the run.
    - ``queue_mean``: [n_links] mean number of packets that wait.
    - ``utilization_links``: [n_links] the utilization of each link, if the model or the measurement
      gives it.  Read ``utilization`` instead: if need be, it is computed from the throughputs.
      The entry ``utilization[0]`` is for the first link.
    - ``assumptions``: each with ``name``, ``holds`` and ``detail``; ``broken`` has those that fail.
    - ``seconds``: computing time, s.
    - ``extra``: more figures, which depend on the model.
    """

    model: str
    scenario: Scenario
    throughput: Floats | None
    applicable: bool = True
    reason: str | None = None  # why not applicable
    throughput_range: Floats | None = None  # [n_flows, 2] for models that give ranges
    throughput_se: Floats | None = None  # standard error over runs
    base_rtt: Floats | None = None
    rtt_mean: Floats | None = None
    loss_rate: Floats | None = None
    acks: Floats | None = None
    retransmits: Floats | None = None
    delivered: Floats | None = None  # packets from warm-up to end; None: throughput x active time
    delivered_time: float | None = None  # s; None: all the time from warm-up to end
    queue_mean: Floats | None = None  # [n_links] packets
    utilization_links: Floats | None = None  # [n_links]; computed from the throughputs if None
    assumptions: tuple[Assumption, ...] = ()
    seconds: float = 0.0  # time it took to answer
    extra: dict[str, Any] = dataclasses.field(default_factory=dict)  # model-specific figures

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                fixed = value.view()  # the caller may write to an array of its own
                fixed.flags.writeable = False
                object.__setattr__(self, field.name, fixed)

    @classmethod
    def not_applicable(cls, model: str, scenario: Scenario, reason: str) -> Prediction:
        """The result of a model that cannot be evaluated for the scenario; ``reason`` says why."""
        return cls(model, scenario, None, applicable=False, reason=reason)

    @property
    def broken(self) -> tuple[Assumption, ...]:
        """The assumptions that do not hold in the scenario."""
        return tuple(each for each in self.assumptions if each.holds is False)

    @property
    def runs(self) -> int:
        """The number of runs over which the throughputs are means; 1 for a closed form."""
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
        members = [member.group for member in self.scenario.members]
        return group_means(self.throughput, members, [g.name for g in self.scenario.flows])

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
            members = [member.group for member in self.scenario.members]
            names = [group.name for group in self.scenario.flows]
            means = [list(group_means(one, members, names).values()) for one in runs]
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

        Time in which the flow is not active counts here.  It does not count in ``throughput_bps``,
        which is therefore larger for a flow that is active for only a part of the time.
        ``None`` if the prediction has no throughputs.
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
        groups = np.array([member.group for member in self.scenario.members])
        bits = self.delivered_bps
        return ByName(
            (group.name, float(bits[groups == i].sum()))
            for i, group in enumerate(self.scenario.flows)
        )

    @cached_property
    def shares(self) -> dict[str, float | None]:
        """Each group's share of all bits delivered after the warm-up; ``None`` if no bit was.

        A group is one ``Flow`` of the scenario, which may stand for several equal flows.  A
        throughput is a mean over the time in which the flow is active, but a share counts the bits
        of the whole time.  If two groups have the same throughput, but the second is active only
        half as long as the first, the second has half the share of the first.
        """
        total = sum(self.group_bps.values())
        return ByName(
            (name, bps / total if total > 0 else None) for name, bps in self.group_bps.items()
        )

    @cached_property
    def unknown_flows(self) -> tuple[str, ...]:
        """The names of the active flows whose throughput a measurement does not tell.

        A flow that is never active between warm-up and end is left out: it has no throughput.
        """
        if self.throughput is None or self.delivered is None:
            return ()
        unknown = np.isnan(self.delivered) & (active_part(self.scenario) > 0)
        return tuple(name for name, lacks in zip(self.names, unknown, strict=True) if lacks)

    @cached_property
    def jain(self) -> float | None:
        """Jain's fairness index of the flows' throughputs.

        ``None`` if the prediction has no throughputs, if none of them is above 0, or if that of an
        active flow is unknown (``unknown_flows``).
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

    def __repr__(self) -> str:
        """One line: the model, its throughputs, and how many of its assumptions do not hold.

        The throughputs are means per flow, of at most six groups; ranges stand in parentheses.
        If the model cannot be evaluated for the scenario, the line has the model and the reason.
        """
        return texts.one_line(self)

    @property
    def _shown(self) -> Table:
        return texts.table(self)

    def to_dataframe(self) -> pd.DataFrame:
        """The prediction as a pandas table with one row per flow.

        The columns ``model``, ``flow``, ``law`` and ``group`` are texts, all others numbers.
        ``share`` is the flow's share of all delivered bits.  ``share`` and ``delivered_bps`` are
        averages over the whole time from warm-up to end, the throughputs only over the part of this
        time in which the flow is active.  If a column has a unit, its name ends with the unit:
        ``throughput_pps`` is in packets per second, ``throughput_bps`` in bit/s and ``rtt_mean_s``
        in seconds.  NaN means that the model gives no value.
        """
        return writers.dataframe(self)

    def to_xarray(self) -> xr.Dataset:
        """The prediction as an xarray dataset with the dimensions ``flow`` and ``link``.

        The numerical columns of ``to_dataframe``, except ``delivered_bps``, become variables over
        ``flow``.  They have the same names as in ``sweep``, without a unit at the end, such as
        ``throughput`` and ``rtt_mean``; only ``throughput_mbps``, in Mbit/s, keeps a unit.  The
        units are in the ``attrs`` of the variables.  The columns ``law`` and ``group`` become
        coordinates of ``flow``, and ``model`` becomes an attribute of the dataset.  Two more
        variables are over ``link``: the mean queue in packets (``queue_mean``) and the
        ``utilization``.
        """
        return writers.dataset(self)

    def to_json(self) -> dict[str, Any]:
        """The prediction as an entry of the list ``results`` in a command's JSON document.

        An unknown value is ``None``.  ``links`` has the utilization and the mean queue of each
        link.  The same two values of the first link also stand outside ``links``.
        """
        return writers.document(self)


def sends_after_warm_up(scenario: Scenario, throughput: Floats | None) -> tuple[Assumption, ...]:
    """The assumption ``sends-after-warm-up``, which fails if flows end before the warm-up does.

    ``throughput`` has one entry per flow. It is NaN, or 0 in some traces, for a flow that has sent
    all its data, or has stopped, by the end of the warm-up. The text names up to three such flows.
    The result is empty if there are none.
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
    said = f"{few(ended)} before averages begin at {begin:.4g} s"
    return (Assumption("sends-after-warm-up", False, f"{said} (`warmup`)"),)
