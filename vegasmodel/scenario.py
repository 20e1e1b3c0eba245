"""One scenario: links, groups of flows and how long to look at them.  Every model answers it.

All numbers are SI seconds, packets and packets per second (of ``Scenario.packet_size`` bytes).
``Scenario.from_toml`` reads text with units; the dataclasses can also be made in Python, from
numbers or from the same text.  Where text takes a packet size or an RTT, it stays text until a
``Scenario`` knows them.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

import numpy as np

from vegasmodel import laws, rules, toml_file
from vegasmodel.changes import replaced
from vegasmodel.consistency import MAX_FLOWS, settle
from vegasmodel.html_table import html_table
from vegasmodel.queues import DropTail, Queue, QueueRule, RateDelay, Red
from vegasmodel.rules import (
    Boolean,
    Checked,
    Choice,
    Integer,
    Later,
    OneOf,
    OrText,
    Quantity,
    Table,
    Tables,
    Text,
    Texts,
)
from vegasmodel.rules import declare as field
from vegasmodel.stacks import STACKS
from vegasmodel.units import FieldError, format_rate, format_time, parse, write

__all__ = [
    "LAWS",
    "VARIANTS",
    "Drop",
    "DropTail",
    "Flow",
    "Link",
    "Member",
    "Pareto",
    "ParetoArrivals",
    "Poisson",
    "RateDelay",
    "Red",
    "Run",
    "Scenario",
    "Staggered",
    "Uniform",
    "load",
]

LAWS = tuple(law.name for law in laws.BUILT_IN)
VARIANTS = tuple(STACKS)

LONGEST = 1e7  # seconds
_TIME = Quantity("time", high=LONGEST)
_POSITIVE_TIME = Quantity("time", low_open=True, high=LONGEST)
_RATE = Quantity("rate", low=1e-6, high=1e12)  # beyond, products of the models' terms overflow
_SHAPE = Quantity("fraction", low=1.0, low_open=True)


class _PacketNumbers:
    """Sequence numbers of packets to drop, each once."""

    def read(self, value: object, where: str, packet_size: float | None) -> tuple[int, ...]:
        if not isinstance(value, list):
            raise FieldError(where, value, "a list of packet numbers")
        self.check(tuple(value), where)
        return tuple(value)

    def check(self, value: Any, where: str) -> None:
        if not isinstance(value, tuple) or not 0 < len(value) <= 10_000:
            raise FieldError(where, value, "1 to 10000 packet numbers")
        for number in value:
            Integer(0, 2**31 - 1).check(number, where)

    def write(self, value: tuple[int, ...]) -> list[int]:
        return list(value)


class _LawRule:
    """The name of a law: of the package, or one that the user has registered."""

    def read(self, value: object, where: str, packet_size: float | None) -> Any:
        return Choice(laws.names()).read(value, where, packet_size)

    def check(self, value: Any, where: str) -> None:
        Choice(laws.names()).check(value, where)

    def write(self, value: str) -> str:
        return value


class BufferRule(Quantity):
    """Packets; or a time, or bandwidth-delay products, which wait for a capacity and RTTs."""

    def read(self, value: object, where: str, packet_size: float | None) -> float:
        """``Later`` for a time and for ``"1 BDP"``."""
        for kind in ("time", "bdp"):
            try:
                parse(value, kind, field=where)
            except FieldError:
                continue
            return cast("float", Later(value))
        return super().read(value, where, packet_size)

    def packets(
        self, text: str, where: str, packet_size: float, capacity: float, rtt: float
    ) -> float:
        """The packets that it comes to at a link of ``capacity``, pkt/s, crossed by ``rtt``, s.

        ``rtt`` is NaN where there is none.
        """
        for kind, one in (("time", capacity), ("bdp", capacity * rtt)):
            try:
                number = parse(text, kind, field=where)
            except FieldError:
                continue
            if math.isnan(one):
                raise FieldError(where, text, "no BDP: there is no RTT here")
            self.check(number * one, where)
            return number * one
        return super().read(text, where, packet_size)


@dataclass(frozen=True)
class Drop(Checked):
    """Forced drops (packet engines): the first transmission of these packets of one flow."""

    flow: str = field(Text())
    packets: tuple[int, ...] = field(_PacketNumbers())


@dataclass(frozen=True)
class Link(Checked):
    """One link.  ``buffer`` counts waiting packets, not the one in transmission."""

    capacity: OrText[float] = field(_RATE)
    name: str = field(Text(), "bottleneck")
    buffer: OrText[float] = field(BufferRule("buffer", infinite=True), math.inf)
    delay: OrText[float] = field(
        _TIME, None
    )  # one way; default 1 ms, or less where that is too much
    queue: Queue = field(QueueRule(), DropTail())
    loss: OrText[float] = field(Quantity("fraction", high=1.0), 0.0)
    drops: tuple[Drop, ...] = field(Tables(Drop), ())


@dataclass(frozen=True)
class Uniform(Checked):
    """RTTs drawn once, uniformly in ``[low, high]`` seconds."""

    low: OrText[float] = field(_POSITIVE_TIME)
    high: OrText[float] = field(_POSITIVE_TIME)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.high < self.low:
            raise FieldError("rtt.uniform", [self.low, self.high], "the lower end first")


class _UniformRule(Table):
    """``{ uniform = ["20 ms", "300 ms"] }``."""

    def read(self, value: object, where: str, packet_size: float | None) -> Uniform:
        if not isinstance(value, list) or len(value) != 2:
            raise FieldError(where, value, "a list of two times")
        low, high = (_POSITIVE_TIME.read(time, where, packet_size) for time in value)
        if high < low:
            raise FieldError(where, value, "the lower end first")
        return Uniform(low, high)

    def write(self, value: Any) -> list[str]:
        return [write(value.low, "time"), write(value.high, "time")]


@dataclass(frozen=True)
class Staggered(Checked):
    """Member i of a group starts at ``first + i every`` seconds."""

    first: OrText[float] = field(_TIME, 0.0)
    every: OrText[float] = field(_TIME, 0.0)


@dataclass(frozen=True)
class Pareto(Checked):
    """Pareto sizes: mean in packets, shape > 1."""

    mean: OrText[float] = field(Quantity("packets", low_open=True))
    shape: OrText[float] = field(_SHAPE)


@dataclass(frozen=True)
class Poisson(Checked):
    """Poisson arrivals, flows per second."""

    rate: OrText[float] = field(Quantity("frequency", low_open=True))


class _PoissonRule(Table):
    """``{ poisson = "50 1/s" }``."""

    def read(self, value: object, where: str, packet_size: float | None) -> Poisson:
        return Poisson(Quantity("frequency", low_open=True).read(value, where, packet_size))

    def write(self, value: Any) -> str:
        return write(value.rate, "frequency")


@dataclass(frozen=True)
class ParetoArrivals(Checked):
    """Pareto times between arrivals: rate in flows per second, shape > 1."""

    rate: OrText[float] = field(Quantity("frequency", low_open=True))
    shape: OrText[float] = field(_SHAPE)


_RTT = OneOf(plain=_POSITIVE_TIME, tagged={"uniform": _UniformRule(Uniform)})
_START = OneOf(plain=_TIME, table=Table(Staggered))
_SIZE = OneOf(
    plain=Quantity("packets", low_open=True, infinite=True), tagged={"pareto": Table(Pareto)}
)
_ARRIVALS = OneOf(
    word="once", tagged={"poisson": _PoissonRule(Poisson), "pareto": Table(ParetoArrivals)}
)
_THRESHOLD = Quantity("packets", low_open=True, high=1e6)


@dataclass(frozen=True)
class Flow(Checked):
    """A group of ``count`` like flows.

    Where the default is ``None``, ``__post_init__`` fills in that of the law and variant; but
    ``initial_window`` is then each model's own: that of the protocol which it stands for, and
    ``send_jitter`` that of ``Scenario.jitter``.
    ``match`` says which flow of a trace this is: its name, an address, a port or both.
    """

    law: str = field(_LawRule())
    rtt: OrText[float | Uniform] = field(_RTT)
    name: str = field(Text(), None)
    count: int = field(Integer(1, MAX_FLOWS), 1)
    start: OrText[float | Staggered] = field(_START, 0.0)
    stop: OrText[float | None] = field(_POSITIVE_TIME, None)
    size: OrText[float | Pareto] = field(_SIZE, math.inf)
    arrivals: OrText[Literal["once"] | Poisson | ParetoArrivals] = field(_ARRIVALS, "once")
    alpha: OrText[float] = field(_THRESHOLD, None)
    beta: OrText[float] = field(_THRESHOLD, None)
    gamma: OrText[float] = field(_THRESHOLD, None)
    decrease: OrText[float] = field(Quantity("fraction", high=1.0, low_open=True), None)
    variant: Literal["paper", "ns2", "linux"] = field(Choice(VARIANTS), "paper")
    over_estimate: OrText[float | Literal["measured"]] = field(
        OneOf(plain=_TIME, word="measured"), "measured"
    )
    max_window: OrText[float] = field(Quantity("packets", low=1.0, infinite=True), math.inf)
    initial_window: OrText[float | None] = field(Quantity("packets", low=1.0, high=1e6), None)
    delayed_ack: bool = field(Boolean(), False)
    packet_size: OrText[float | None] = field(Quantity("bytes", low=1.0, high=65535.0), None)
    direction: Literal["forward", "reverse"] = field(Choice(("forward", "reverse")), "forward")
    service: Literal["rate", "delay"] = field(Choice(("rate", "delay")), None, key="class")
    path: tuple[str, ...] | None = field(Texts(), None)
    access: OrText[float | None] = field(_RATE, None)
    send_jitter: OrText[float | None] = field(_TIME, None)
    delay_noise: OrText[float] = field(_TIME, 0.0)
    match: str | None = field(Text(), None)
    _filled: ClassVar[Sequence[str]] = ()  # of an instance: what it was not given

    def __post_init__(self) -> None:
        super().__post_init__()
        stack, law = STACKS[self.variant], laws.find(self.law)
        defaults = {
            "name": self.law,
            "alpha": stack.alpha,
            "beta": stack.beta,
            "gamma": stack.gamma,
            "decrease": stack.decrease if self.law == "vegas" else law.decrease,
            "service": "delay" if law.delay_based else "rate",
        }
        object.__setattr__(self, "_filled", [k for k in defaults if getattr(self, k) is None])
        for key in self._filled:
            object.__setattr__(self, key, defaults[key])
        if rules.known(self.alpha, self.beta) and self.beta < self.alpha:
            raise FieldError("beta", self.beta, f"at least alpha, {self.alpha:g} pkt")
        first = self.initial_window
        if first is not None and rules.known(first) and first % 1.0:
            raise FieldError("initial_window", self.initial_window, "a whole number of packets")
        if self.arrivals != "once" and (self.size == math.inf or self.count != 1):
            raise FieldError(
                "arrivals", "poisson or pareto", "a group with count 1 and a finite size"
            )


@dataclass(frozen=True)
class Run(Checked):
    """How long, from when on it counts, and how often.

    ``runs`` None: packet engines run once, models until their standard error is small enough.
    """

    duration: OrText[float] = field(_POSITIVE_TIME, 600.0)
    warmup: OrText[float] = field(_TIME, 200.0)
    seed: int = field(Integer(0, 2**31 - 1), 1)
    runs: int | None = field(Integer(1, 10_000), None)
    start_jitter: OrText[float] = field(_TIME, 0.0)
    ns2_defaults: Literal["papers", "2.35"] = field(Choice(("papers", "2.35")), "papers")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.warmup >= self.duration:
            raise FieldError("warmup", self.warmup, f"less than duration, {self.duration:g} s")
        if self.start_jitter > self.duration:
            allowed = f"at most duration, {self.duration:g} s"
            raise FieldError("start_jitter", self.start_jitter, allowed)

    @property
    def times(self) -> int:
        """Runs of a packet engine."""
        return self.runs or 1


@dataclass(frozen=True)
class Member:
    """One flow of a group, with what differs between members: its name, RTT and start."""

    name: str
    group: int
    flow: Flow
    rtt: float
    start: float
    stop: float


@dataclass(frozen=True, repr=False)
class Scenario(Checked):
    """Links and groups of flows; checked as a whole when it is made."""

    links: tuple[Link, ...] = field(Tables(Link), key="link")
    flows: tuple[Flow, ...] = field(Tables(Flow), key="flow")
    packet_size: OrText[float] = field(Quantity("bytes", low=1.0, high=65535.0), 1000.0)
    name: str = field(Text(), "scenario")
    ack_size: OrText[float] = field(Quantity("bytes", low=1.0, high=65535.0), 40.0)
    run: Run = field(Table(Run), Run())

    # of an instance: its links and flows as they were given, text and gaps included
    _given: ClassVar[tuple[tuple[Link, ...], tuple[Flow, ...]]] = ((), ())

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "_given", (self.links, self.flows))
        settle(self)

    @classmethod
    def from_toml(cls, text: str) -> Scenario:
        """Read a scenario file's text.  Raises ``FieldError``: field, value, what is allowed."""
        return cls.from_dict(toml_file.parse(text, "scenario file", text[:40]))

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> Scenario:
        """Read the same keys from a dictionary, quantities as text with units."""
        return rules.read(cls, table, "", None)

    def __repr__(self) -> str:
        """One line: links and groups; ``to_toml`` has it all."""
        links = [
            f"{format_rate(link.capacity, self.packet_size)}, buffer {link.buffer:.4g} pkt"
            for link in self.links[:3]
        ]
        flows = [f"{g.count} {g.name}" if g.count > 1 else g.name for g in self.flows[:6]]
        for shown, parts in ((links, self.links), (flows, self.flows)):
            shown += [f"{len(parts) - len(shown)} more"] if len(parts) > len(shown) else []
        return f"<Scenario {self.name}: {'; '.join(links)}; {', '.join(flows)}>"

    def _repr_html_(self) -> str:
        links = [
            [
                link.name,
                format_rate(link.capacity, self.packet_size),
                f"{link.buffer:.4g} pkt",
                link.queue.discipline,
            ]
            for link in self.links
        ]
        flows = [
            [
                group.name,
                f"{group.count} {group.law}",
                format_time(group.rtt)
                if isinstance(group.rtt, float)
                else f"{format_time(group.rtt.low)} to {format_time(group.rtt.high)}",
                f"{group.alpha:g}, {group.beta:g}" if group.law == "vegas" else "",
                group.variant,
            ]
            for group in self.flows
        ]
        title = f"{self.name}, packets of {self.packet_size:g} B"
        columns = ["group", "flows", "RTT", "alpha, beta", "variant"]
        return html_table(title, ["link", "capacity", "buffer", "queue"], links) + html_table(
            "", columns, flows
        )

    @functools.cached_property
    def members(self) -> tuple[Member, ...]:
        """Groups expanded: one entry per flow, RTTs drawn, starts staggered."""
        return tuple(m for i, group in enumerate(self.flows) for m in self._expand(i, group))

    def _expand(self, index: int, group: Flow) -> list[Member]:
        if isinstance(group.rtt, Uniform):
            rng = np.random.default_rng([self.run.seed, index])
            rtts = rng.uniform(group.rtt.low, group.rtt.high, group.count)
        else:
            rtts = np.full(group.count, group.rtt)
        start = group.start if isinstance(group.start, Staggered) else Staggered(group.start)
        stop = self.run.duration if group.stop is None else group.stop
        return [
            Member(
                name=f"{group.name}[{i}]" if group.count > 1 else group.name,
                group=index,
                flow=group,
                rtt=float(rtts[i]),
                start=start.first + i * start.every,
                stop=stop,
            )
            for i in range(group.count)
        ]

    def path(self, group: Flow) -> tuple[Link, ...]:
        """The links that a group crosses, in the order in which its data meets them."""
        by_name = {link.name: link for link in self.links}
        links = self.links if group.path is None else tuple(by_name[name] for name in group.path)
        return links if group.direction == "forward" else links[::-1]

    def size_of(self, group: Flow) -> float:
        """Bytes of one data packet of this group."""
        return self.packet_size if group.packet_size is None else group.packet_size

    def access_rate(self, group: Flow) -> float:
        """Rate of the group's own access links, pkt/s; default 200 times its slowest link."""
        if group.access is not None:
            return group.access
        return 200.0 * min(link.capacity for link in self.path(group))

    def usual_jitter(self, group: Flow) -> float:
        """Seconds that a data packet of the group takes on the slowest link of its path.

        Floyd and Jacobson (1992) recommend a random wait of up to that.
        """
        slowest = min(link.capacity for link in self.path(group))
        return self.size_of(group) / self.packet_size / slowest

    def jitter(self, group: Flow) -> float:
        """Seconds that the group's senders wait, at most, before they use an open window."""
        return 0.0 if group.send_jitter is None else group.send_jitter

    def transmission(self, group: Flow) -> float:
        """Seconds that a data packet and its ACK spend in transmission on a round trip.

        Two access links and every link of the path, there and back.
        """
        packets = (self.size_of(group) + self.ack_size) / self.packet_size
        rates = [link.capacity for link in self.path(group)] + [self.access_rate(group)] * 2
        return packets * sum(1.0 / rate for rate in rates)

    def replace(self, changes: Mapping[str, Any] | None = None, /, **fields: Any) -> Scenario:
        """The scenario that its file would give with some keys changed.

        ``s.replace({"link.buffer": "2 BDP", "flow.vegas.alpha": 3}, name="other")``.  A key is
        that of the file behind its table: ``link.KEY`` and ``flow.KEY`` are of every link and
        every group, ``link.NAME.KEY`` and ``flow.NAME.KEY`` of one, ``link.queue.KEY`` of its
        queue, ``run.KEY`` of the run.  ``fields`` are fields of ``Scenario`` itself.  A value is a
        number in the package's units, or text.  What was given as text that takes a packet size
        or an RTT (``"10 Mbit/s"``, ``"1 BDP"``) and what was left out follow the change;
        ``dataclasses.replace`` keeps all other numbers as they are.  ``FieldError``: no such key,
        or values that cannot stand together.
        """
        return replaced(self, changes or {}, fields)

    def to_toml(self) -> str:
        """A scenario file that ``from_toml`` reads as this very scenario; defaults are left out."""
        links, flows = self._given
        own = {"name": self.name, "packet_size": write(self.packet_size, "bytes")}
        table = own | rules.write_table(self)
        table["link"] = [rules.write_table(link) for link in links]
        table["flow"] = [rules.write_table(group) for group in flows]
        return toml_file.write(table)

    def to_dict(self) -> dict[str, Any]:
        """Everything in SI floats, as plain data."""
        return dataclasses.asdict(self)

    def fingerprint(self) -> str:
        """A key for stored runs of this very scenario: all but its own name decides.

        Keys that are younger than stored runs count only where they are given, ``send_jitter``
        where packets wait; ``match`` never does, as it tells of a trace.
        """
        data = self.to_dict()
        del data["name"]
        data["run"]["runs"] = self.run.times
        for group, flow in zip(self.flows, data["flows"], strict=True):
            del flow["match"]
            if flow["initial_window"] is None:
                del flow["initial_window"]
            flow["send_jitter"] = self.jitter(group)
            if flow["send_jitter"] == 0.0:
                del flow["send_jitter"]
        text = json.dumps(data, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def load(path: str | Path) -> Scenario:
    """Read a scenario file.  Raises ``FieldError`` for every kind of bad file."""
    return Scenario.from_dict(toml_file.read(path))
