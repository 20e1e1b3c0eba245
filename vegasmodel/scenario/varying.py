"""Defines RTTs, starts, sizes and arrivals that differ between the flows of a group.

Times are in seconds, sizes in packets, and rates in flows per second. The constants ``RTT``,
``START``, ``SIZE`` and ``ARRIVALS`` are the rules by which a flow's keys are read and written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from vegasmodel.fields.checked import Checked, OneOf, Table, as_written
from vegasmodel.fields.checked import declare as field
from vegasmodel.fields.errors import FieldError
from vegasmodel.fields.rules import OrText, Quantity
from vegasmodel.fields.units import write

LONGEST = 1e7  # s: greatest time that a scenario may have
TIME = Quantity("time", high=LONGEST)
POSITIVE_TIME = Quantity("time", low_open=True, high=LONGEST)
_SHAPE = Quantity("fraction", low=1.0, low_open=True)  # at most 1, the mean would be infinite


@dataclass(frozen=True)
class Uniform(Checked):
    """Random RTTs of a group's flows.

    One RTT is drawn for each flow, uniformly in ``[low, high]`` seconds.
    """

    low: OrText[float] = field(POSITIVE_TIME)
    high: OrText[float] = field(POSITIVE_TIME)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.high < self.low:
            shown = [as_written(self, "low"), as_written(self, "high")]
            raise FieldError("rtt.uniform", shown, "two times, the shorter one first")


class _UniformRule(Table):
    """Reads, checks and writes random RTTs such as ``rtt = { uniform = ["20 ms", "300 ms"] }``."""

    def read(self, value: object, where: str, packet_size: float | None) -> Uniform:
        """Make a ``Uniform`` from a list of two times."""
        if not isinstance(value, list) or len(value) != 2:
            raise FieldError(where, value, "a list of two times")
        low, high = (POSITIVE_TIME.read(time, where, packet_size) for time in value)
        if high < low:
            raise FieldError(where, value, "two times, the shorter one first")
        return Uniform(low, high)

    def write(self, value: Any) -> list[str]:
        """The two times as texts."""
        return [write(value.low, "time"), write(value.high, "time")]


@dataclass(frozen=True)
class Staggered(Checked):
    """Start times of a group's flows, which start one after another at equal intervals.

    Flow i, counted from 0, starts at ``first + i * every`` seconds.
    """

    first: OrText[float] = field(TIME, 0.0)
    every: OrText[float] = field(TIME, 0.0)


@dataclass(frozen=True)
class Pareto(Checked):
    """Random sizes of flows, drawn from a Pareto distribution.

    ``mean`` is the mean size in packets, and ``shape`` the distribution's shape (> 1).
    """

    mean: OrText[float] = field(Quantity("packets", low_open=True))
    shape: OrText[float] = field(_SHAPE)


@dataclass(frozen=True)
class Poisson(Checked):
    """Flows arrive at random, as a Poisson process with ``rate`` flows per second."""

    rate: OrText[float] = field(Quantity("frequency", low_open=True))


class _PoissonRule(Table):
    """Reads, checks and writes random arrivals such as ``arrivals = { poisson = "50 1/s" }``."""

    def read(self, value: object, where: str, packet_size: float | None) -> Poisson:
        """Make a ``Poisson`` from a frequency."""
        return Poisson(Quantity("frequency", low_open=True).read(value, where, packet_size))

    def write(self, value: Any) -> str:
        """The rate as text."""
        return write(value.rate, "frequency")


@dataclass(frozen=True)
class ParetoArrivals(Checked):
    """Flows arrive at random; the times between arrivals have a Pareto distribution.

    ``rate`` is in flows per second, and ``shape`` is the distribution's shape (> 1).
    """

    rate: OrText[float] = field(Quantity("frequency", low_open=True))
    shape: OrText[float] = field(_SHAPE)


RTT = OneOf(
    plain=POSITIVE_TIME,
    tagged={"uniform": _UniformRule(Uniform)},
    for_list="a time, one for all flows of a [[flow]] table; write a table for each RTT, or "
    'draw them at random: rtt = { uniform = ["20 ms", "300 ms"] }',
)
START = OneOf(plain=TIME, table=Table(Staggered))
SIZE = OneOf(
    plain=Quantity("packets", low_open=True, infinite=True), tagged={"pareto": Table(Pareto)}
)
ARRIVALS = OneOf(
    word="once", tagged={"poisson": _PoissonRule(Poisson), "pareto": Table(ParetoArrivals)}
)
