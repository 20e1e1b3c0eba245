"""Defines ``Filled``: the estimate, from a trace, of a value that a scenario file leaves out."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

__all__ = ["Filled"]


@dataclass(frozen=True)
class Filled:
    """The estimate of a key that a scenario file leaves out.

    ``key`` names it, such as ``link[0].buffer``. The trace agrees with all values from ``low`` to
    ``high``; ``value`` is the estimate, in ``unit``. ``how`` says how the estimate was found. If
    the trace does not tell a buffer or alpha, ``value`` is the default of the key. ``default`` is
    the key's default. It is ``None`` if the key has none, or one that depends on the trace.
    """

    key: str
    value: float
    low: float
    high: float
    unit: str
    how: str
    default: float | None = None

    @property
    def replaces_default(self) -> bool:
        """Whether the estimate is another value than the key's default."""
        return self.default is not None and self.value != self.default

    def to_json(self) -> dict[str, Any]:
        """The estimate as a dictionary for JSON; an infinite value becomes ``None``."""
        data = dataclasses.asdict(self)
        finite = {k: v for k, v in data.items() if not isinstance(v, float) or math.isfinite(v)}
        return dict.fromkeys(data) | finite
