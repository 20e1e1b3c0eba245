"""Converts what ``simulate`` returns, windows and queues over time, to a ``Trace``.

A ``Trace`` can be stored, and compared with models.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vegasmodel.packets import trace
from vegasmodel.packets.gaps import last_deliveries

if TYPE_CHECKING:
    import xarray as xr


def to_trace(data: xr.Dataset) -> trace.Trace:
    """Convert the dataset of ``simulate`` to a ``Trace``.

    The trace has one entry for each interval between two samples. The throughput of an interval is
    the number of packets delivered in it, divided by its length. Windows, RTTs and queues are those
    at its end. The variable ``last``, the time of a flow's last packet, is the end of the last
    interval in which the flow delivers packets, but not later than the flow's ``end`` in the
    dataset. ``controls`` names each flow's congestion control. ``provenance`` names the TCP
    implementation (``variant``), if all flows have the same one.
    """
    time = data["time"].values
    flows = [str(name) for name in data["flow"].values]
    links = [str(name) for name in data["link"].values]
    delivered = np.diff(data["delivered"].values, axis=0)
    last = np.minimum(last_deliveries(time, delivered), data["end"].values)
    about = {key: str(value) for key, value in data.attrs.items()}
    variants = {str(name) for name in data["variant"].values}
    if len(variants) == 1:
        about["variant"] = variants.pop()
    return trace.make(
        str(data.attrs["model"]),
        time[1:],
        flows,
        {
            "throughput": delivered / np.diff(time)[:, None],
            "window": data["window"].values[1:],
            "rtt": data["rtt"].values[1:],
            "base_rtt": data["base_rtt"].values[1:],
            "loss": np.diff(data["lost"].values, axis=0),
            "queue": data["queue"].values[1:],
            "first": np.where(np.isnan(last), np.nan, data["start"].values),
            "last": last,
            "packet_size": data["packet_size"].values,
        },
        begin=float(time[0]),
        links=links,
        scenario=str(data.attrs["fingerprint"]),
        provenance=about,
        controls={name: str(law) for name, law in zip(flows, data["law"].values, strict=True)},
    )
