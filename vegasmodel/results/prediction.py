"""Defines ``Prediction``, the throughputs and other results of one model or one measurement.

``vegasmodel.predict`` returns a ``Prediction``.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from vegasmodel.fields.by_name import ByName
from vegasmodel.fields.lists import few
from vegasmodel.fields.units import format_number
from vegasmodel.metrics import (
    Floats,
    delivered,
    group_means,
    group_ratios,
    jain,
    standard_error,
    with_error,
)
from vegasmodel.scenario import Scenario
from vegasmodel.scenario.active_time import active_part
from vegasmodel.support.shown import Shown, Table

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

_RATES = ("throughput", "throughput_se", "throughput_low", "throughput_high")
_UNITS = {  # of the variables of ``to_xarray`` that have one
    **dict.fromkeys(_RATES, "packets/s"),
    "throughput_mbps": "Mbit/s",
    "base_rtt": "s",
    "rtt_mean": "s",
    "queue_mean": "packets",
}


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
    - ``rtt_mean``: mean round-trip time, s.  In ``rounds``, ns-2 and ns-3 it does not include the
      time for which packets behind a lost one wait for its retransmission.
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
        if not self.applicable:
            return f"<Prediction {self.model}: no answer, {self.reason}>"
        first = list(self.groups.items())[:6]
        rates = [f"{name} {format_number(rate)}{_ends(self, name)} pkt/s" for name, rate in first]
        more = [f"{len(self.groups) - 6} more"] if len(self.groups) > 6 else []
        broken = len(self.broken)
        said = f"; {broken} assumption{'s' * (broken > 1)} not held" if broken else ""
        return f"<Prediction {self.model}: {', '.join([*rates, *more])}{said}>"

    @property
    def _shown(self) -> Table:
        title = f"{self.model} on {self.scenario.name}"
        if not self.applicable:
            return Table(f"{title}: no answer, {self.reason}", [], [])
        broken = [each.name for each in self.broken]
        said = f"{title}; does not hold: {', '.join(broken)}" if broken else title
        said += of_errors([self])
        rows = [
            [
                name,
                shown_rate(self, name),
                format_number(self.group_bps[name] / 1e6),
                _percent(self.shares[name]),
            ]
            for name in self.groups
        ]
        return Table(said, ["group", "pkt/s per flow", "Mbit/s together", "share"], rows)

    def to_dataframe(self) -> pd.DataFrame:
        """The prediction as a pandas table with one row per flow.

        The columns ``model``, ``flow``, ``law`` and ``group`` are texts, all others numbers.
        ``share`` is the flow's share of all delivered bits.  ``share`` and ``delivered_bps`` are
        averages over the whole time from warm-up to end, the throughputs only over the part of this
        time in which the flow is active.  If a column has a unit, its name ends with the unit:
        ``throughput_pps`` is in packets per second, ``throughput_bps`` in bit/s and ``rtt_mean_s``
        in seconds.  NaN means that the model gives no value.
        """
        import pandas as pd

        bits = self.delivered_bps
        total_bits = np.nan if bits is None else bits.sum()
        rows = []
        for i, flow in enumerate(self._flow(i) for i in range(len(self.names))):
            low, high = flow.pop("throughput_range_pps") or (None, None)
            share = None if bits is None or not total_bits > 0 else bits[i] / total_bits
            rows.append(
                {"model": self.model, "flow": flow.pop("name"), "law": flow.pop("law")}
                | {"group": self.scenario.members[i].flow.name, "share": share}
                | {"delivered_bps": None if bits is None else bits[i]}
                | flow
                | {"throughput_low_pps": low, "throughput_high_pps": high}
            )
        frame = pd.DataFrame(rows)
        texts = ["model", "flow", "law", "group"]
        return frame.astype(dict.fromkeys(frame.columns.difference(texts), float))

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
        frame = self.to_dataframe().drop(columns=["model", "delivered_bps"]).set_index("flow")
        frame["throughput_mbps"] = frame.pop("throughput_bps") / 1e6
        frame = frame.rename(columns=lambda name: name.removesuffix("_pps").removesuffix("_s"))
        data: xr.Dataset = frame.to_xarray().set_coords(["law", "group"])
        for name, values in (("queue_mean", self.queue_mean), ("utilization", self.utilization)):
            nothing = np.full(len(self.scenario.links), np.nan)
            data[name] = ("link", nothing if values is None else np.asarray(values, dtype=float))
        names = [link.name for link in self.scenario.links]
        data = data.assign_coords(link=names, flow=self.names)
        for figure, variable in data.data_vars.items():
            variable.attrs["units"] = _UNITS.get(str(figure), "1")
        data.attrs = {"model": self.model, "scenario": self.scenario.name}
        return data

    def to_json(self) -> dict[str, Any]:
        """The prediction as an entry of the list ``results`` in a command's JSON document.

        An unknown value is ``None``.  ``links`` has the utilization and the mean queue of each
        link.  The same two values of the first link also stand outside ``links``.
        """
        utilization, queues = self.utilization, self.queue_mean
        return {
            "model": self.model,
            "applicable": self.applicable,
            "reason": self.reason,
            "flows": [self._flow(i) for i in range(len(self.names))],
            "ratios": {pair: finite(value) for pair, value in self.ratios.items()},
            "jain": self.jain,
            "utilization": entry(utilization, 0),
            "queue_mean_pkt": entry(queues, 0),
            "links": [
                {
                    "name": link.name,
                    "utilization": entry(utilization, i),
                    "queue_mean_pkt": entry(queues, i),
                }
                for i, link in enumerate(self.scenario.links)
            ],
            "assumptions": [dataclasses.asdict(a) for a in self.assumptions],
            "seconds": self.seconds,
        }

    def _flow(self, i: int) -> dict[str, Any]:
        member = self.scenario.members[i]
        rate = entry(self.throughput, i)
        bits = 8 * self.scenario.size_of(member.flow)
        span = self.throughput_range
        return {
            "name": member.name,
            "law": member.flow.law,
            "throughput_pps": rate,
            "throughput_bps": None if rate is None else rate * bits,
            "throughput_range_pps": None if span is None else [finite(x) for x in span[i]],
            "throughput_se_pps": entry(self.throughput_se, i),
            "base_rtt_s": entry(self.base_rtt, i),
            "rtt_mean_s": entry(self.rtt_mean, i),
            "loss_rate": entry(self.loss_rate, i),
            "acks": entry(self.acks, i),
            "retransmits": entry(self.retransmits, i),
        }


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


def entry(values: Floats | None, i: int) -> float | None:
    """Entry ``i`` of an array; ``None`` if it is NaN or infinite, or if there is no array."""
    return None if values is None else finite(values[i])


def over_runs(results: Sequence[Prediction]) -> str:
    """How many runs the results are means over, as text such as ``3 runs``.

    If the numbers differ, it is ``3 to 5 runs`` for results of a single model. For those of several
    models it names the models, as in ``the runs (fluid 5, rounds 3)``.
    """
    counts = [each.runs for each in results]
    if 1 in counts:  # a standard error of unknown origin
        return "the runs"
    if len(set(counts)) == 1:
        return f"{counts[0]} runs"
    if len({result.model for result in results}) == 1:
        return f"{min(counts)} to {max(counts)} runs"
    each = [f"{result.model} {n}" for result, n in zip(results, counts, strict=True)]
    return f"the runs ({', '.join(each)})"


def shown_rate(result: Prediction, group: str) -> str:
    """A group's mean throughput per flow as text, with its standard error and range if known.

    A group is a ``[[flow]]`` table. The text is ``-`` if the group has no throughput.
    """
    if group not in result.groups:
        return "-"
    return with_error(result.groups[group], result.groups_se.get(group)) + _ends(result, group)


def of_errors(results: Sequence[Prediction]) -> str:
    """The part of a table's title that explains ``±``; empty if no result has a standard error."""
    scattered = [each for each in results if any(each.groups_se.values())]
    return f"; ±: standard error of the mean over {over_runs(scattered)}" if scattered else ""


def _ends(result: Prediction, group: str) -> str:
    """The range of a group's mean throughput in parentheses, such as `` (143..600)``; or empty."""
    found = mean_range(result, group)
    return f" ({found})" if found else ""


def mean_range(result: Prediction, group: str) -> str:
    """The range of a group's mean throughput per flow, such as ``143..600``; empty if none.

    A group is a ``[[flow]]`` table. The ends of its range are the means of the ends of its flows'
    ranges.
    """
    if result.throughput_range is None:
        return ""
    rows = [member.flow.name == group for member in result.scenario.members]
    low, high = result.throughput_range[rows].mean(axis=0)
    return f"{format_number(low)}..{format_number(high)}" if low < high else ""


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


def finite(value: float | None) -> float | None:
    """The number, or ``None`` if it is NaN or infinite, which JSON cannot hold."""
    return float(value) if value is not None and math.isfinite(value) else None
