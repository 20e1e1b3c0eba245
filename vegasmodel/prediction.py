"""The results of models and measurements: ``Prediction`` and, for steady states, ``LimitCycle``."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vegasmodel.metrics import Floats, delivered, group_means, group_ratios, jain
from vegasmodel.scenario import Scenario
from vegasmodel.support.html_table import html_table

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr


@dataclass(frozen=True)
class Assumption:
    """An assumption of a model or a measurement, and whether the scenario meets it.

    ``holds`` is ``None`` if that is not known.
    """

    name: str
    holds: bool | None
    detail: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class Prediction:
    """The throughput of each flow, and the other results that a model or a measurement gives.

    An array has one entry per flow, in the order of ``scenario.members``.  Rates are in pkt/s of
    the flow's own packets, times in seconds.  A result that the model does not give is ``None``.
    An entry of an array is NaN if the model does not give the result for this flow.
    """

    model: str
    scenario: Scenario
    throughput: Floats | None
    applicable: bool = True
    reason: str | None = None  # why not applicable
    throughput_range: Floats | None = None  # [n_flows, 2], where the answer is a set
    throughput_se: Floats | None = None  # standard error over runs
    base_rtt: Floats | None = None
    rtt_mean: Floats | None = None
    loss_rate: Floats | None = None
    acks: Floats | None = None
    retransmits: Floats | None = None
    delivered: Floats | None = None  # packets from warm-up to end; else throughput x active time
    queue_mean: Floats | None = None  # [n_links] packets
    utilization_links: Floats | None = None  # [n_links]; computed from the throughputs if None
    assumptions: tuple[Assumption, ...] = ()
    seconds: float = 0.0  # time it took to answer
    extra: dict[str, Any] = dataclasses.field(default_factory=dict)  # model-specific figures

    @classmethod
    def not_applicable(
        cls, model: str, scenario: Scenario, reason: str, assumptions: Sequence[Assumption] = ()
    ) -> Prediction:
        """The answer of a model that cannot be evaluated for this scenario; ``reason`` says why."""
        return cls(
            model, scenario, None, applicable=False, reason=reason, assumptions=tuple(assumptions)
        )

    @cached_property
    def names(self) -> list[str]:
        """The names of the flows, in the order of ``scenario.members``."""
        return [member.name for member in self.scenario.members]

    @cached_property
    def groups(self) -> dict[str, float]:
        """The mean throughput of a flow in each group, pkt/s, by the group's name."""
        if self.throughput is None:
            return {}
        members = [member.group for member in self.scenario.members]
        return group_means(self.throughput, members, [g.name for g in self.scenario.flows])

    @cached_property
    def groups_se(self) -> dict[str, float]:
        """The standard error of each group's mean throughput per flow, over the runs, pkt/s.

        The throughputs of a group's flows are correlated, so the error is computed from the group's
        mean in each run (``extra["throughput_runs"]``).  Without these data the error is known only
        for groups of one flow.  Groups with an unknown standard error are left out.
        """
        runs = self.extra.get("throughput_runs")  # [runs, flows]
        if runs is not None and len(runs) > 1:
            members = [member.group for member in self.scenario.members]
            names = [group.name for group in self.scenario.flows]
            means = [group_means(one, members, names) for one in runs]
            found = {
                name: float(np.std([mean[name] for mean in means], ddof=1)) / math.sqrt(len(runs))
                for name in names
            }
        elif self.throughput_se is not None:
            found = {
                member.flow.name: float(error)
                for member, error in zip(self.scenario.members, self.throughput_se, strict=True)
                if member.flow.count == 1
            }
        else:
            found = {}
        return {name: error for name, error in found.items() if math.isfinite(error)}

    @cached_property
    def ratios(self) -> dict[str, float | None]:
        """The ratio ``a/b`` of mean throughputs per flow, for every ordered pair of groups."""
        return group_ratios(self.groups)

    @cached_property
    def throughput_bps(self) -> Floats | None:
        """The throughput of each flow in bits per second; the packets' headers are included."""
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
        """The mean rate of each flow over the whole time from warm-up to end, bit/s.

        It is less than ``throughput_bps`` for a flow that is active in a part of this time only,
        because its throughput is a mean over that part.
        """
        if self.throughput is None or self.throughput_bps is None:
            return None
        if self.delivered is None:
            return delivered(self.throughput_bps) * active_part(self.scenario)
        span = self.scenario.run.duration - self.scenario.run.warmup
        bits: Floats = self.delivered * self._packet_bits / span
        return bits

    @cached_property
    def group_bps(self) -> dict[str, float]:
        """The mean rate of all flows of each group together, from warm-up to end, bit/s."""
        if self.delivered_bps is None:
            return {}
        groups = np.array([member.group for member in self.scenario.members])
        bits = self.delivered_bps
        return {
            group.name: float(bits[groups == i].sum())
            for i, group in enumerate(self.scenario.flows)
        }

    @cached_property
    def shares(self) -> dict[str, float | None]:
        """Each group's part of all bits delivered from warm-up to end; ``None`` if there are none.

        This differs from the group's part of the throughputs, because a throughput is a mean over
        the time in which the group is active.  So a group that is active for half of the time
        delivers half as many bits as a group with the same throughput that is always active.  A
        group that is never active between warm-up and end has the share 0.
        """
        total = sum(self.group_bps.values())
        return {name: bps / total if total > 0 else None for name, bps in self.group_bps.items()}

    @cached_property
    def jain(self) -> float | None:
        """Jain's fairness index of the flows' throughputs; ``None`` if it is not known."""
        return None if self.throughput is None else _number(jain(self.throughput))

    @cached_property
    def utilization(self) -> Floats | None:
        """The utilization of each link, [n_links]: the part of its capacity that forward flows use.

        If the model does not give it, it is computed from the throughputs.
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
        """One line: the model, each group's mean throughput per flow, how many assumptions fail."""
        if not self.applicable:
            return f"<Prediction {self.model}: no answer, {self.reason}>"
        rates = [f"{name} {rate:.4g} pkt/s" for name, rate in list(self.groups.items())[:6]]
        more = [f"{len(self.groups) - 6} more"] if len(self.groups) > 6 else []
        broken = sum(a.holds is False for a in self.assumptions)
        said = f"; {broken} assumption{'s' * (broken > 1)} not held" if broken else ""
        return f"<Prediction {self.model}: {', '.join([*rates, *more])}{said}>"

    def _repr_html_(self) -> str:
        title = f"{self.model} on {self.scenario.name}"
        if not self.applicable:
            return html_table(f"{title}: no answer, {self.reason}", [], [])
        broken = [a.name for a in self.assumptions if a.holds is False]
        said = f"{title}; does not hold: {', '.join(broken)}" if broken else title
        rows = [
            [
                name,
                with_error(rate, self.groups_se.get(name)),
                f"{self.group_bps[name] / 1e6:.4g}",
                _percent(self.shares[name]),
            ]
            for name, rate in self.groups.items()
        ]
        return html_table(said, ["group", "pkt/s per flow", "Mbit/s together", "share"], rows)

    def to_dataframe(self) -> pd.DataFrame:
        """The prediction as a table: one row per flow.

        The columns are named as in ``flows`` of the JSON document.  ``share`` is the flow's part of
        all bits delivered.  NaN means that the model does not give a value.
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
                | flow
                | {"throughput_low_pps": low, "throughput_high_pps": high}
            )
        frame = pd.DataFrame(rows)
        texts = ["model", "flow", "law", "group"]
        return frame.astype(dict.fromkeys(frame.columns.difference(texts), float))

    def to_xarray(self) -> xr.Dataset:
        """The prediction as an xarray dataset.

        The columns of ``to_dataframe`` become variables over ``flow``. The mean queue (packets) and
        the utilization of each link are variables over ``link``.
        """
        frame = self.to_dataframe().drop(columns="model").set_index("flow")
        data: xr.Dataset = frame.to_xarray().set_coords(["law", "group"])
        for name, values in (("queue_mean", self.queue_mean), ("utilization", self.utilization)):
            nothing = np.full(len(self.scenario.links), np.nan)
            data[name] = ("link", nothing if values is None else np.asarray(values, dtype=float))
        names = [link.name for link in self.scenario.links]
        data = data.assign_coords(link=names, flow=self.names)
        for figure, variable in data.data_vars.items():
            variable.attrs["units"] = _unit(str(figure))
        data.attrs = {"model": self.model, "scenario": self.scenario.name}
        return data

    def to_json(self) -> dict[str, Any]:
        """The prediction as an entry of the list ``results`` in a command's JSON document."""
        utilization, queues = self.utilization, self.queue_mean
        return {
            "model": self.model,
            "applicable": self.applicable,
            "reason": self.reason,
            "flows": [self._flow(i) for i in range(len(self.names))],
            "ratios": {pair: _number(value) for pair, value in self.ratios.items()},
            "jain": self.jain,
            "utilization": _entry(utilization, 0),
            "queue_mean_pkt": _entry(queues, 0),
            "links": [
                {
                    "name": link.name,
                    "utilization": _entry(utilization, i),
                    "queue_mean_pkt": _entry(queues, i),
                }
                for i, link in enumerate(self.scenario.links)
            ],
            "assumptions": [dataclasses.asdict(a) for a in self.assumptions],
            "seconds": self.seconds,
        }

    def _flow(self, i: int) -> dict[str, Any]:
        member = self.scenario.members[i]
        rate = _entry(self.throughput, i)
        bits = 8 * self.scenario.size_of(member.flow)
        span = self.throughput_range
        return {
            "name": member.name,
            "law": member.flow.law,
            "throughput_pps": rate,
            "throughput_bps": None if rate is None else rate * bits,
            "throughput_range_pps": None if span is None else [_number(x) for x in span[i]],
            "throughput_se_pps": _entry(self.throughput_se, i),
            "base_rtt_s": _entry(self.base_rtt, i),
            "rtt_mean_s": _entry(self.rtt_mean, i),
            "loss_rate": _entry(self.loss_rate, i),
            "acks": _entry(self.acks, i),
            "retransmits": _entry(self.retransmits, i),
        }


def active_part(scenario: Scenario) -> Floats:
    """The fraction of the measured time in which each flow is active, [n_flows], from 0 to 1.

    The measured time is that from the end of the warm-up to the end of the run.  A flow is active
    from its start to its stop.
    """
    begin, end = scenario.run.warmup, scenario.run.duration
    spans = [min(m.stop, end) - max(m.start, begin) for m in scenario.members]
    part: Floats = np.maximum(spans, 0.0) / (end - begin)
    return part


def silent(scenario: Scenario) -> NDArray[np.bool_]:
    """Whether each flow possibly sends nothing from the end of the warm-up on, [flow].

    This is so for flows of finite size, and for flows that are not active in this time.  Their
    throughput may be NaN.
    """
    ended = np.array([m.flow.size != math.inf for m in scenario.members])
    never: NDArray[np.bool_] = active_part(scenario) == 0.0
    return ended | never


def _entry(values: Floats | None, i: int) -> float | None:
    return None if values is None else _number(values[i])


def with_error(value: float, error: float | None, digits: int = 4) -> str:
    """A number and its standard error as text, such as ``125.3 ± 1.2``.

    If the error is unknown or 0, the text is the number alone.
    """
    text = f"{value:.{digits}g}"
    return f"{text} ± {float(f'{error:.2g}'):g}" if error and math.isfinite(error) else text


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


def _unit(name: str) -> str:
    """The unit of a variable, found from the end of its name; ``"1"`` if it has no unit."""
    ends = {"_pps": "packets/s", "_bps": "bit/s", "_s": "s", "queue_mean": "packets"}
    return next((unit for end, unit in ends.items() if name.endswith(end)), "1")


def _number(value: float | None) -> float | None:
    """The number as JSON can hold it: NaN and infinity become ``None``."""
    return float(value) if value is not None and math.isfinite(value) else None


@dataclass(frozen=True, eq=False)
class LimitCycle:
    """The steady state of a scenario: a fixed point or a periodic motion.

    If neither was found, it holds averages over a long run.  The steady state is that after all
    flows have started.  Flows that stop before the end of the run are no longer part of it.
    """

    kind: str  # "fixed point" | "periodic" | "neither found"
    period: float  # s; 0 at a fixed point, NaN where neither is found
    overflows: int  # in one period; by rounds, moments at which a window falls
    throughput: Floats  # [flow] pkt/s, mean over the period
    spread: Floats  # [flow] standard error of that mean over blocks; 0 where the motion repeats
    window: Floats  # [flow] packets, mean over time
    rtt_mean: Floats  # [flow] s, mean over the packets
    base_rtt: Floats  # [flow] s; NaN if not Vegas
    queue_mean: float  # packets
    losses: Floats  # [flow] losses in one period; by rounds, packets, NaN where nothing repeats
    multipliers: np.ndarray  # Floquet, largest first; empty: none; NaN: the map jumps there
    residual: float  # packets by which the state after a period differs from the one before
    status: str  # "done", or why there is no answer (the averages are then NaN)
