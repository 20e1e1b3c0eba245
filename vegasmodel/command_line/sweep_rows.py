"""Makes rows of the results of a sweep: a row for each point, for JSON and for CSV tables."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vegasmodel.support.files import atomic_write
from vegasmodel.support.json_numbers import finite

if TYPE_CHECKING:
    import xarray as xr

    from vegasmodel.scenario import Scenario

__all__ = ["places", "rows", "write_csv"]


def places(data: xr.Dataset, scenario: Scenario) -> list[list[int]]:
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
        zip([group.name for group in scenario.flows], places(data, scenario), strict=True)
    )
    found = []
    for place in np.ndindex(data["status"].shape):
        point = data.isel(dict(zip(data["status"].dims, place, strict=True)))
        code = int(point["status"].item())
        found.append(
            {
                "fields": {name: point[name].item() for name in fields},
                "status": STATUS[code] if code >= 0 else "not computed",
                "reason": point["reason"].item() or None,
                "groups": {name: _group(point, where) for name, where in groups},
                "jain": finite(point["jain"].item()),
                "uncertainty": finite(point["uncertainty"].item()),
                "links": {
                    str(name): {
                        "queueing_delay_s": finite(point["queueing_delay"].values[i]),
                        "utilization": finite(point["utilization"].values[i]),
                    }
                    for i, name in enumerate(data["link"].values)
                },
                "broken": point["broken"].item().split(),
            }
        )
    return found


def _group(point: xr.Dataset, where: list[int]) -> dict[str, float | None]:
    return {
        "share": finite(point["share"].values[where].sum()),
        "throughput_pps": finite(point["throughput"].values[where].mean()),
        "throughput_mbps": finite(point["throughput_mbps"].values[where].mean()),
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
            inner = [*row["groups"].values(), *row["links"].values()]
            table.writerow(
                [
                    *row["fields"].values(),
                    *(value for each in inner for value in each.values()),
                    *(row[key] for key in ("jain", "uncertainty")),
                    " ".join(row["broken"]),
                    row["status"],
                    row["reason"],
                ]
            )
