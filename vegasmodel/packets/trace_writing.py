"""Writes a trace to a Parquet file.

The file has one row per interval. Each variable that changes with time has a column, whose cells
are lists with one value per flow or link. Other variables have one value per flow for the whole
trace, such as ``first``, the time of the flow's first packet. These other variables are stored in
the file's metadata (JSON), together with the names of the flows and links and other notes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vegasmodel.fields.errors import FieldError
from vegasmodel.packets.trace_variables import MAX_FLOWS, MAX_LINKS, VARIABLES
from vegasmodel.support.files import atomic_write

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["write"]

MAX_ROWS = 4_000_000  # intervals
MAX_CELLS = 16_000_000  # values of all variables together
MAX_METADATA = 8_000_000  # bytes
KEY = b"vegasmodel.trace"  # names the JSON text in the metadata of a Parquet file


def write(data: xr.Dataset, facts: Mapping[str, Any], path: str | Path) -> None:
    """Write a trace to one Parquet file; ``Trace.write`` describes it.

    ``data`` are the trace's variables. ``facts`` are those about the trace as a whole, which are
    stored as JSON under the key ``KEY``.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    about = json.dumps(facts)
    rows, flows, links = (data.sizes[name] for name in ("time", "flow", "link"))
    many = rows > MAX_ROWS or flows > MAX_FLOWS or links > MAX_LINKS
    cells = sum(values.size for values in data.data_vars.values())
    if many or cells > MAX_CELLS or len(about) > MAX_METADATA:
        size = f"{rows} intervals of {flows} flows and {links} links"
        raise FieldError("trace", size, f"at most {MAX_CELLS} values, {MAX_FLOWS} flows")
    columns = {"time": pa.array(data["time"].values)}
    for name, values in data.data_vars.items():
        kind = VARIABLES[str(name)]
        if not kind.static and values.shape[1]:
            flat = pa.array(np.ascontiguousarray(values.values).reshape(-1))
            columns[str(name)] = pa.FixedSizeListArray.from_arrays(flat, values.shape[1])
    table = pa.table(columns).replace_schema_metadata({KEY: about})
    packed = pa.BufferOutputStream()  # a process killed while packing leaves no file
    pq.write_table(table, packed, compression="zstd")
    with atomic_write(path) as part:
        part.write_bytes(packed.getvalue())
