"""Reads the Parquet files that ``Trace.write`` writes; ``trace_writing`` says what they hold."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from vegasmodel.fields import kinds
from vegasmodel.fields.errors import FieldError
from vegasmodel.metrics import Floats
from vegasmodel.packets.trace import Trace, assemble
from vegasmodel.packets.trace_variables import (
    MAX_FLOWS,
    MAX_LINKS,
    MAX_NAME,
    SCHEMA,
    VARIABLES,
    TraceError,
)
from vegasmodel.packets.trace_writing import KEY, MAX_CELLS, MAX_METADATA, MAX_ROWS

__all__ = ["read_parquet", "scenario_of"]

VALUES_PER_BATCH = 1_000_000  # how many values are read at a time
LAST_BYTES = b"PAR1"  # of every Parquet file
# ``LIMITS`` bounds the memory that pyarrow allocates for the metadata of a Parquet file. A
# malicious file of a few bytes can claim that its metadata has a list of a million entries. Without
# limits, pyarrow would allocate memory for all these entries before it notices that the file is too
# short to contain them.
LIMITS = {"thrift_container_size_limit": 10_000, "thrift_string_size_limit": 4 * MAX_METADATA}


@kinds.checked
def read_parquet(path: str | Path) -> Trace:
    """Read a file that ``Trace.write`` wrote.  Raises ``TraceError`` for any other file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    expected = "a Parquet file that this package wrote"
    try:
        _expect_end(path, expected)
        with pq.ParquetFile(path, **LIMITS) as file:
            about = _about(path, file.schema_arrow.metadata, file.metadata.num_rows)
            columns = _columns(path, file.schema_arrow, about, file.metadata.num_rows)
            variables = _values(path, file, columns)
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError, OverflowError) as error:
        if isinstance(error, FieldError):
            raise
        raise TraceError(path, "", " ".join(str(error).split())[:60], expected) from None
    try:
        times = variables.pop("time")[:, 0]
        for name, values in about["static"].items():
            variables[name] = np.array([math.nan if x is None else x for x in values], dtype=float)
        trace = assemble(
            about["engine"],
            times,
            about["flows"],
            variables,
            begin=about["begin"],
            links=about["links"],
            scenario=about["scenario"],
            provenance=about["provenance"],
            controls=about["controls"],
            doubts=about["doubts"],
        )
    except (pa.ArrowException, ValueError, TypeError, KeyError, OverflowError) as error:
        raise TraceError(path, "contents", " ".join(str(error).split())[:60], expected) from None
    return trace


def _expect_end(path: str | Path, expected: str) -> None:
    """Raise ``TraceError`` unless the file ends as every Parquet file does.

    A file that was only written or copied in part does not. ``expected`` is the text of the error
    that says what the file should be.
    """
    with Path(path).open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - len(LAST_BYTES)))
        if file.read() != LAST_BYTES:
            raise TraceError(path, "", "no end of a Parquet file: is it cut off?", expected)


@kinds.checked
def scenario_of(path: str | Path) -> str | None:
    """The fingerprint (hash) of the scenario from which a trace file was made; ``None`` if unknown.

    Only the file's metadata is read.  Raises ``TraceError`` if the file is not a trace.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path, **LIMITS) as file:
            rows = file.metadata.num_rows
            found: str | None = _about(path, file.schema_arrow.metadata, rows)["scenario"]
    except (pa.ArrowException, OSError, ValueError) as error:
        raise TraceError(path, "", " ".join(str(error).split())[:60], "a trace") from None
    return found


def _about(path: str | Path, metadata: Mapping[bytes, bytes] | None, rows: int) -> dict[str, Any]:
    """Parse the JSON in the Parquet metadata of a trace file, and check the types of its values.

    The JSON has all that is not measured over time, such as the names of the flows.  ``rows``, the
    file's number of rows, is checked, too.  Raises ``TraceError``.
    """
    raw = (metadata or {}).get(KEY)
    if raw is None or len(raw) > MAX_METADATA:
        raise TraceError(path, "metadata", None if raw is None else len(raw), "a trace's metadata")
    try:
        about = json.loads(raw)
    except (ValueError, RecursionError):
        raise TraceError(path, "metadata", raw[:40], "JSON") from None
    if not isinstance(about, dict) or about.get("schema") != SCHEMA:
        version = about.get("schema") if isinstance(about, dict) else about
        raise TraceError(path, "schema version", version, f"version {SCHEMA}")
    about = {"controls": {}, "doubts": {}} | about  # absent from older files
    types: dict[str, Any] = {
        "engine": str,
        "begin": (int, float),
        "scenario": (str, type(None)),
        "provenance": dict,
        "controls": dict,
        "doubts": dict,
        "flows": list,
        "links": list,
        "static": dict,
    }
    for key, kind in types.items():
        if not isinstance(about.get(key), kind):
            raise TraceError(
                path,
                f"metadata {key}",
                about.get(key),
                "a value of the type that vegasmodel writes there",
            )
    names: list[Any] = [*about["flows"], *about["links"]]
    for key in ("provenance", "controls", "doubts"):
        names += about[key].values()
    if not all(isinstance(name, str) for name in names):
        raise TraceError(path, "metadata", "names", "text")
    if max(map(len, [*about["flows"], *about["links"]]), default=0) > MAX_NAME:
        raise TraceError(path, "metadata", "names", f"names of at most {MAX_NAME} characters")
    if len(about["flows"]) > MAX_FLOWS or len(about["links"]) > MAX_LINKS:
        raise TraceError(path, "metadata flows", len(about["flows"]), f"at most {MAX_FLOWS}")
    if not 0 < rows <= MAX_ROWS:
        raise TraceError(path, "rows", rows, f"1 to {MAX_ROWS} rows")
    return about


def _columns(path: str | Path, schema: Any, about: dict[str, Any], rows: int) -> dict[str, int]:
    """Check the Parquet columns of a trace file; return the width of each column, by name.

    Each entry of a column is a list with one value per flow or per link. The width is its length.
    The column ``time``, whose entries are numbers, is checked but not returned. Raises
    ``TraceError`` if a column has another type or the file has too many values. ``schema``
    describes the columns, and ``about`` is the file's metadata (``_about``).
    """
    import pyarrow as pa

    # a variable is measured for each flow or for each link (``Variable.over``)
    sizes = {"flow": len(about["flows"]), "link": len(about["links"])}
    columns = {}
    if schema.field("time").type != pa.float64():
        raise TraceError(path, "column time", str(schema.field("time").type), "double")
    for name, kind in VARIABLES.items():
        # a ``static`` variable has one value for all times and is stored elsewhere in the file
        if kind.static or name not in schema.names:
            continue
        size = sizes[kind.over]
        found = schema.field(name).type
        if not pa.types.is_fixed_size_list(found) or found.list_size != size:
            raise TraceError(path, f"column {name}", "type", f"lists of {size} doubles")
        columns[name] = size
        cells = rows * sum(columns.values())
        if found.value_type != pa.float64() or cells > MAX_CELLS:
            raise TraceError(path, f"column {name}", cells, f"at most {MAX_CELLS} doubles in all")
    return columns


def _values(path: str | Path, file: Any, columns: Mapping[str, int]) -> dict[str, Floats]:
    """Read the columns of a trace file in batches of rows; return their values by column name.

    The values of a column are an array [row, entry].  ``columns`` has the number of entries in each
    row of a column.

    A malicious file may hold more rows than its metadata says.  Because rows are read in batches,
    little memory has been used when this is noticed and ``TraceError`` is raised.
    """
    # ``rows_read`` counts the rows that have been read
    rows, rows_read, widths = file.metadata.num_rows, 0, {"time": 1, **columns}
    groups = (file.metadata.row_group(i) for i in range(file.metadata.num_row_groups))
    if sum(group.num_rows for group in groups) != rows:
        raise TraceError(path, "rows of its row groups", rows, "as many as the file states")
    values = {name: np.empty((rows, width)) for name, width in widths.items()}
    size = max(1, VALUES_PER_BATCH // sum(widths.values()))
    for batch in file.iter_batches(size, columns=list(widths), use_threads=False):
        end = rows_read + batch.num_rows
        if end > rows:
            raise TraceError(path, "rows", end, f"{rows} rows, as the file states")
        for name, width in widths.items():
            column = batch.column(name)
            flat = column if name == "time" else column.flatten()  # leaves out lists that are null
            if len(flat) != batch.num_rows * width:
                raise TraceError(path, f"column {name}", "null", f"lists of {width} doubles")
            values[name][rows_read:end] = flat.to_numpy(zero_copy_only=False).reshape(-1, width)
        rows_read = end
    if rows_read < rows:
        raise TraceError(path, "rows", rows_read, f"{rows} rows, as the file states")
    return values
