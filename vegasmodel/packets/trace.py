"""Defines ``Trace``, which holds what was measured per flow and per link over time.

Time is divided into intervals. In memory a trace is an ``xarray.Dataset``. Its coordinate ``time``
holds the end of each interval. The first interval begins at ``Trace.begin``. The variables that a
trace may have are listed in ``VARIABLES``, with their units. A variable that was not recorded is
absent. NaN means that a value is unknown.

On disk a trace is a Parquet file: ``trace_writing`` writes it, and ``trace_file`` reads it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vegasmodel.fields import kinds
from vegasmodel.fields.errors import FieldError
from vegasmodel.metrics import Floats
from vegasmodel.packets import trace_writing
from vegasmodel.packets.trace_variables import (
    LARGEST,
    MAX_NAME,
    SCHEMA,
    TIMES,
    VARIABLES,
    TraceError,
)

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["VARIABLES", "Trace", "TraceError", "make"]


@dataclass(frozen=True, eq=False)
class Trace:
    """What a simulator, a kernel or a capture recorded about flows and links over time.

    ``packets.ns2_trace.record`` makes a trace by simulation, ``packets.read`` from a file, and
    ``packets.trace.make`` from arrays.

    - ``data``: the dataset, as the docstring of the module ``trace`` describes it.
    - ``begin``: start of the first interval, s.
    - ``engine``: what recorded it: ns2, ns3, linux, pcap, ...
    - ``scenario``: the fingerprint (hash) of the scenario that was run, if known.
    - ``provenance``: notes such as the source, its version and how a variable was obtained.
    - ``controls``: congestion control (``vegas``, ``reno``) by flow name, where known.
    - ``doubts``: the names of assumptions about the values that may not hold, each with a text that
      says why.
    - ``schema``: the version of the format of trace files.
    """

    data: xr.Dataset
    engine: str
    begin: float = 0.0
    scenario: str | None = None
    provenance: Mapping[str, str] = field(default_factory=dict)
    controls: Mapping[str, str] = field(default_factory=dict)
    doubts: Mapping[str, str] = field(default_factory=dict)
    schema: int = SCHEMA

    def __post_init__(self) -> None:
        known = {"time", "flow", "link"} <= set(getattr(self.data, "coords", ()))
        if not known or not set(self.data.data_vars) <= set(VARIABLES):
            raise FieldError("data", self.data, "a dataset as packets.trace.make makes it")

    def __repr__(self) -> str:
        """One line: what recorded the trace, its time, and the numbers of its flows and links."""
        flows, links = (
            f"{len(names)} {what}{'s' * (len(names) != 1)}"
            for names, what in ((self.flows, "flow"), (self.links, "link"))
        )
        edges = self.edges
        return f"<Trace of {self.engine}: {edges[0]:g} to {edges[-1]:g} s, {flows}, {links}>"

    @property
    def flows(self) -> list[str]:
        """The names of the trace's flows."""
        return [str(name) for name in self.data["flow"].values]

    @property
    def links(self) -> list[str]:
        """The names of the links for which the trace has data, such as queue lengths.

        The list is empty if the trace has data of flows only.
        """
        return [str(name) for name in self.data["link"].values]

    @property
    def edges(self) -> Floats:
        """The times that bound the intervals, s: ``begin``, then the end of each interval."""
        return np.concatenate([[self.begin], self.data["time"].values])

    @kinds.checked
    def get(self, name: str) -> Floats | None:
        """The values of the variable ``name``; ``None`` if the trace does not have it.

        The array is ``[time, flow]`` or ``[time, link]``; it is ``[flow]`` if the variable does not
        depend on time.
        """
        return np.asarray(self.data[name].values, dtype=float) if name in self.data else None

    @kinds.checked
    def known(self, name: str) -> Floats | None:
        """The values of the variable ``name`` with NaN in place of impossible values.

        The result is ``None`` if no value remains.  A value is impossible if it is negative or
        above ``LARGEST``.  A damaged or malicious file may hold such values.
        """
        values = self.get(name)
        if values is None:
            return None
        with np.errstate(invalid="ignore"):  # signalling NaNs
            values = np.where((values >= 0) & (values <= LARGEST), values, np.nan)
        return None if np.all(np.isnan(values)) else values

    @kinds.checked
    def write(self, path: str | Path) -> None:
        """Write the trace to one Parquet file (compressed by zstd).

        ``packets.read`` reads it back bit for bit.  An interrupted call leaves no incomplete file.
        Raises ``FieldError`` if the trace is too large for ``packets.read``.
        """
        trace_writing.write(self.data, self._about(), path)

    def _about(self) -> dict[str, Any]:
        """Facts about the trace as a whole, which its file holds as JSON."""
        static = [name for name, kind in VARIABLES.items() if kind.static and name in self.data]
        return {
            "schema": self.schema,
            "engine": self.engine,
            "begin": self.begin,
            "scenario": self.scenario,
            "provenance": dict(self.provenance),
            "controls": dict(self.controls),
            "doubts": dict(self.doubts),
            "flows": self.flows,
            "links": self.links,
            "static": {
                name: [None if math.isnan(x) else x for x in self.data[name].values.tolist()]
                for name in static
            },
            "units": {str(name): VARIABLES[str(name)].unit for name in self.data.data_vars},
        }


@kinds.checked
def make(
    engine: str,
    times: ArrayLike,
    flows: list[str],
    variables: Mapping[str, ArrayLike],
    *,
    begin: float = 0.0,
    links: list[str] | None = None,
    scenario: str | None = None,
    provenance: Mapping[str, str] | None = None,
    controls: Mapping[str, str] | None = None,
    doubts: Mapping[str, str] | None = None,
) -> Trace:
    """Make a trace from plain arrays.

    ``times`` [n] are the ends of the intervals, s. ``flows`` and ``links`` are names. ``variables``
    maps names of variables to arrays [n, flow], [n, link] or [flow], in the units of ``VARIABLES``.
    A variable that is NaN everywhere is left out. The trace may share the memory of the arrays.
    ``Trace`` explains the other arguments.

    Raises ``FieldError``, a ``ValueError``, in these cases:

    - A variable is unknown, or its array has a wrong shape.
    - A value is negative or above 1e12 (``LARGEST``). But the variables ``first`` and ``last``
      (``TIMES``) are points in time, which may be negative, down to -1e12.
    - The times do not increase.
    - A name of a flow or link is repeated, has more than 500 characters (``MAX_NAME``), or ends
      with a NUL character.
    """
    trace = assemble(
        engine, times, flows, variables, begin=begin, links=links, scenario=scenario,
        provenance=provenance, controls=controls, doubts=doubts,
    )  # fmt: skip
    for name in trace.data.data_vars:
        values = np.asarray(trace.data[name].values)
        with np.errstate(invalid="ignore"):  # signalling NaNs
            bad = (np.abs(values) > LARGEST) | ((values < 0) & (name not in TIMES))
        if np.any(bad):
            low = "any number" if name in TIMES else "at least 0"
            allowed = f"{low} and at most {LARGEST:g}; NaN where it is unknown"
            raise FieldError(str(name), float(values[bad][0]), allowed)
    return trace


def assemble(
    engine: str,
    times: ArrayLike,
    flows: list[str],
    variables: Mapping[str, ArrayLike],
    *,
    begin: float = 0.0,
    links: list[str] | None = None,
    scenario: str | None = None,
    provenance: Mapping[str, str] | None = None,
    controls: Mapping[str, str] | None = None,
    doubts: Mapping[str, str] | None = None,
) -> Trace:
    """Make a trace from arrays read from a file, without checking their values.

    A file may contain impossible values, such as negative ones; the trace keeps them. In all else
    the function does the same as ``make``, and raises the same errors.
    """
    import xarray as xr

    flows, links = list(flows), [] if links is None else list(links)
    ends = _checked_times(times, begin)
    for what, names in (("flow", flows), ("link", links)):
        _check_names(what, names)
    sizes = {"time": ends.size, "flow": len(flows), "link": len(links)}
    coordinates = {"time": ends, "flow": _text(flows), "link": _text(links)}
    data = xr.Dataset(_entries(variables, sizes), coords=coordinates)
    data["time"].attrs["units"] = "s"
    return Trace(
        data,
        engine,
        float(begin),
        scenario,
        dict(provenance or {}),
        dict(controls or {}),
        dict(doubts or {}),
    )


def _checked_times(times: ArrayLike, begin: float) -> Floats:
    """The ends of the intervals as an array; ``FieldError`` unless they grow from ``begin`` on."""
    ends = np.array(times, dtype=np.float64)
    if ends.ndim != 1:
        raise FieldError("times", f"shape {ends.shape}", "increasing times in one row")
    known = ends.size and math.isfinite(begin) and np.all(np.isfinite(ends))
    if not known or not np.all(np.diff(ends, prepend=begin) > 0):
        raise FieldError("time", ends[:3].tolist(), "increasing times after begin")
    return ends


def _check_names(what: str, names: list[str]) -> None:
    """Raise ``FieldError`` unless a trace can have flows or links with these names."""
    if len(set(names)) != len(names) or any(name.endswith("\0") for name in names):
        raise FieldError(what, names, "names that differ and do not end with NUL")
    if max(map(len, names), default=0) > MAX_NAME:
        raise FieldError(what, max(names, key=len), f"names of at most {MAX_NAME} characters")


def _entries(
    variables: Mapping[str, ArrayLike], sizes: Mapping[str, int]
) -> dict[str, tuple[tuple[str, ...], Floats, dict[str, str]]]:
    """The variables as xarray takes them: dimensions, values, and unit and meaning of each.

    ``sizes`` has the number of times, flows and links. A variable without known values is left out.
    """
    for name in variables:
        if name not in VARIABLES:
            raise FieldError("variable", name, f"one of {', '.join(VARIABLES)}")
    entries: dict[str, tuple[tuple[str, ...], Floats, dict[str, str]]] = {}
    for name, kind in VARIABLES.items():
        if name not in variables:
            continue
        values = np.asarray(variables[name], dtype=np.float64)
        dims = (kind.over,) if kind.static else ("time", kind.over)
        shape = tuple(sizes[each] for each in dims)
        if values.shape != shape:
            raise FieldError(name, values.shape, f"an array of shape {shape}")
        if not np.all(np.isnan(values)):
            if kind.static:  # every NaN becomes the same NaN, because JSON has only null
                values = np.where(np.isnan(values), np.nan, values)
            entries[name] = (dims, values, {"units": kind.unit, "long_name": kind.meaning})
    return entries


def _text(names: list[str]) -> NDArray[np.str_]:
    """The names as an array of texts, also if there are none."""
    return np.array(names, dtype=np.str_)
