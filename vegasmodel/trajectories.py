"""Turns simulated trajectories into a trace, which is stored and compared like any measurement."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vegasmodel.packets import trace

if TYPE_CHECKING:
    import xarray as xr


def to_trace(data: xr.Dataset) -> trace.Trace:
    """The dataset of ``simulate`` as a ``Trace`` of its intervals.

    The throughput in an interval is what was delivered over the interval's length.  Windows, RTTs
    and queues are those at the interval's end.
    """
    time = data["time"].values
    flows = [str(name) for name in data["flow"].values]
    links = [str(name) for name in data["link"].values]
    delivered = np.diff(data["delivered"].values, axis=0)
    return trace.make(
        str(data.attrs["model"]),
        time[1:],
        flows,
        {
            "throughput": delivered / np.diff(time)[:, None],
            "window": data["window"].values[1:],
            "rtt": data["rtt"].values[1:],
            "base_rtt": data["base_rtt"].values[1:],
            "queue": data["queue"].values[1:],
        },
        begin=float(time[0]),
        links=links,
        scenario=str(data.attrs["fingerprint"]),
        provenance={key: str(value) for key, value in data.attrs.items()},
    )
