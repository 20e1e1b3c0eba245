"""Turns the results of a sweep into rows, for JSON and for CSV tables.

Each row is for one point of the sweep, that is for one combination of the values that are varied.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vegasmodel.metrics import known_mean
from vegasmodel.support.files import atomic_write
from vegasmodel.support.json_numbers import finite

if TYPE_CHECKING:
    import xarray as xr

    from vegasmodel.scenario import Scenario

__all__ = ["flow_indices", "rows", "write_csv"]

# the variables of a sweep's results that a row shows
VARIABLES_OF_ROW = (
    "status", "reason", "share", "throughput", "throughput_mbps", "jain", "uncertainty",
    "queueing_delay", "utilization", "broken",
)  # fmt: skip


def flow_indices(data: xr.Dataset, scenario: Scenario) -> list[list[int]]:
    """For each group of the scenario, the places of its flows in the results ``data``.

    A group is all flows of one ``[[flow]]`` table.  If the sweep varies the number of flows, the
    results have one place for each group.
    """
    if data.sizes["flow"] == len(scenario.flows):
        return [[g] for g in range(len(scenario.flows))]
    owners = [member.group for member in scenario.members]
    return [[i for i, g in enumerate(owners) if g == group] for group in range(len(scenario.flows))]


def rows(data: xr.Dataset, fields: Sequence[str], scenario: Scenario) -> list[dict[str, Any]]:
    """A dictionary for each point of a sweep, in the order of the printed table.

    ``fields`` are the names of the fields that vary. Values that are not known are ``None``.
    """
    from vegasmodel.study.points import STATUS

    groups = list(
        zip([group.name for group in scenario.flows], flow_indices(data, scenario), strict=True)
    )
    # each variable is read from disk once
    known = {name: _values(data, name) for name in (*fields, *VARIABLES_OF_ROW)}
    found = []
    for place in np.ndindex(data["status"].shape):
        point = {name: values[place] for name, values in known.items()}
        code = int(point["status"])
        found.append(
            {
                "fields": {name: np.asarray(point[name]).item() for name in fields},
                "status": STATUS[code] if code >= 0 else "not computed",
                "reason": str(point["reason"]) or None,
                "groups": {name: _group(point, indices) for name, indices in groups},
                "jain": finite(point["jain"]),
                "uncertainty": finite(point["uncertainty"]),
                "links": {
                    str(name): {
                        "queueing_delay_s": finite(point["queueing_delay"][i]),
                        "utilization": finite(point["utilization"][i]),
                    }
                    for i, name in enumerate(data["link"].values)
                },
                "broken": str(point["broken"]).split(),
            }
        )
    return found


def _values(data: xr.Dataset, name: str) -> Any:
    """The values of a variable or a coordinate; the dimensions of the grid are the first axes."""
    grid = data["status"].dims
    values = data[name]
    # a coordinate, the values of a varied field, has only this field's dimension: repeat it along
    # the others
    if not set(grid) <= set(values.dims):
        values = values.broadcast_like(data["status"])
    return values.transpose(*grid, ...).values


def _group(point: dict[str, Any], indices: list[int]) -> dict[str, float | None]:
    """The share of a group's flows together, and their mean throughput, at one point of a sweep.

    ``point`` has the values of the sweep's variables at this point, by name.  Flows without a
    throughput are left out of the mean.  ``indices`` has the places of the flows.
    """
    return {
        "share": finite(point["share"][indices].sum()),
        "throughput_pps": finite(float(known_mean(point["throughput"][indices]))),
        "throughput_mbps": finite(float(known_mean(point["throughput_mbps"][indices]))),
    }


def write_csv(path: Path, data: xr.Dataset, fields: Sequence[str], scenario: Scenario) -> None:
    """Write a table with a row for each point of a sweep; a cell is empty if it is not known."""
    units = {name: data[name].attrs.get("units", "") for name in fields}
    heads = [f"{name}, {unit}" if unit not in ("", "1") else name for name, unit in units.items()]
    for group in scenario.flows:
        heads += [f"{group.name} {what}" for what in ("share", "mean pkt/s", "mean Mbit/s")]
    for link in data["link"].values:
        heads += [f"{link} queueing delay, s", f"{link} load"]
    with atomic_write(path) as part, part.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow([*heads, "Jain", "uncertainty", "broken", "status", "reason"])
        for row in rows(data, fields, scenario):
            # the results of the groups, then of the links, in the order of ``heads``
            results = [*row["groups"].values(), *row["links"].values()]
            table.writerow(
                [
                    *row["fields"].values(),
                    *(value for each in results for value in each.values()),
                    *(row[key] for key in ("jain", "uncertainty")),
                    " ".join(row["broken"]),
                    row["status"],
                    row["reason"],
                ]
            )
