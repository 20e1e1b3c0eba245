"""Writes a ``Prediction`` as a pandas table, as an xarray dataset, and as a JSON entry."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from vegasmodel.metrics import Floats
from vegasmodel.support.json_numbers import all_finite, finite

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from vegasmodel.results.result import Result

# the variables of ``to_xarray`` that are rates in packets, and the units of all that have one
_RATE_COLUMNS = ("throughput", "throughput_se", "throughput_low", "throughput_high")
_UNITS = {
    **dict.fromkeys(_RATE_COLUMNS, "packets/s"),
    "throughput_mbps": "Mbit/s",
    "base_rtt": "s",
    "rtt_mean": "s",
    "queue_mean": "packets",
}


def dataframe(result: Result) -> pd.DataFrame:
    """The table that ``Prediction.to_dataframe`` returns."""
    import pandas as pd

    bits = result.delivered_bps
    total_bits = np.nan if bits is None else bits.sum()
    rows = []
    for i, flow in enumerate(_flow_entry(result, i) for i in range(len(result.names))):
        low, high = flow.pop("throughput_range_pps") or (None, None)
        share = None if bits is None or not total_bits > 0 else bits[i] / total_bits
        rows.append(
            {"model": result.model, "flow": flow.pop("name"), "law": flow.pop("law")}
            | {"group": result.scenario.members[i].flow.name, "share": share}
            | {"delivered_bps": None if bits is None else bits[i]}
            | flow
            | {"throughput_low_pps": low, "throughput_high_pps": high}
        )
    frame = pd.DataFrame(rows)
    texts = ["model", "flow", "law", "group"]
    return frame.astype(dict.fromkeys(frame.columns.difference(texts), float))


def dataset(result: Result) -> xr.Dataset:
    """The dataset that ``Prediction.to_xarray`` returns."""
    frame = dataframe(result).drop(columns=["model", "delivered_bps"]).set_index("flow")
    frame["throughput_mbps"] = frame.pop("throughput_bps") / 1e6
    frame = frame.rename(columns=lambda name: name.removesuffix("_pps").removesuffix("_s"))
    data: xr.Dataset = frame.to_xarray().set_coords(["law", "group"])
    for name, values in (("queue_mean", result.queue_mean), ("utilization", result.utilization)):
        nothing = np.full(len(result.scenario.links), np.nan)
        data[name] = ("link", nothing if values is None else np.asarray(values, dtype=float))
    names = [link.name for link in result.scenario.links]
    data = data.assign_coords(link=names, flow=result.names)
    for figure, variable in data.data_vars.items():
        variable.attrs["units"] = _UNITS.get(str(figure), "1")
    data.attrs = {"model": result.model, "scenario": result.scenario.name}
    return data


def document(result: Result) -> dict[str, Any]:
    """The entry that ``Prediction.to_json`` returns."""
    utilization, queues = result.utilization, result.queue_mean
    return {
        "model": result.model,
        "applicable": result.applicable,
        "reason": result.reason,
        "flows": [_flow_entry(result, i) for i in range(len(result.names))],
        "ratios": {pair: finite(value) for pair, value in result.ratios.items()},
        "shares": {name: finite(share) for name, share in result.shares.items()},
        "shares_se": dict(result.shares_se),
        "laws": [{"name": law, **its} for law, its in result.laws.items()],
        "jain": result.jain,
        "utilization": entry(utilization, 0),
        "queue_mean_pkt": entry(queues, 0),
        "links": [
            {
                "name": link.name,
                "utilization": entry(utilization, i),
                "queue_mean_pkt": entry(queues, i),
            }
            for i, link in enumerate(result.scenario.links)
        ],
        "assumptions": [dataclasses.asdict(a) for a in result.assumptions],
        "seconds": result.seconds,
    }


def _flow_entry(result: Result, i: int) -> dict[str, Any]:
    """The facts and results of flow ``i`` that the pandas table and the JSON entry show."""
    member = result.scenario.members[i]
    rate = entry(result.throughput, i)
    bits = 8 * result.scenario.size_of(member.flow)
    span = result.throughput_range
    return {
        "name": member.name,
        "law": member.flow.law,
        "throughput_pps": rate,
        "throughput_bps": None if rate is None else rate * bits,
        "throughput_range_pps": None if span is None else all_finite(span[i]),
        "throughput_se_pps": entry(result.throughput_se, i),
        "base_rtt_s": entry(result.base_rtt, i),
        "rtt_mean_s": entry(result.rtt_mean, i),
        "loss_rate": entry(result.loss_rate, i),
        "acks": entry(result.acks, i),
        "retransmits": entry(result.retransmits, i),
    }


def entry(values: Floats | None, i: int) -> float | None:
    """Entry ``i`` of an array; ``None`` if it is NaN or infinite, or if there is no array."""
    return None if values is None else finite(values[i])
