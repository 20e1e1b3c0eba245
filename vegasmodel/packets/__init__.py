"""Packet-level evidence: the ns-2 driver, readers of traces, reference runs."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vegasmodel.packets.reading import read
    from vegasmodel.packets.trace import Trace, TraceError

_NAMES = {"Trace": "trace", "TraceError": "trace", "read": "reading"}
_MODULES = (
    "campaign",
    "engine",
    "estimate",
    "measured",
    "ns2",
    "ns2_trace",
    "ns3",
    "reading",
    "reference",
    "trace",
)

__all__ = ["Trace", "TraceError", "read"]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(importlib.import_module(f"{__name__}.{_NAMES[name]}"), name)
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
