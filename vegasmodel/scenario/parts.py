"""Defines the parts of a scenario: links, groups of flows, and the length of a run.

Times are in seconds, and rates in packets per second. Rates and the limits of queues count packets
of ``Scenario.packet_size`` bytes. A flow's windows, thresholds and ``size`` count packets of the
flow's own size (``Flow.packet_size``), if it has one.

In Python, the fields of a part take numbers or text with units. Text such as "20 kB" for a buffer
becomes a number only when the packet size is known, that is, when the part is put into a
``Scenario``. Until then it stays text.
"""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from vegasmodel import laws
from vegasmodel.fields import checked, rules
from vegasmodel.fields.checked import Checked, OneOf, ShownAsCall, Tables
from vegasmodel.fields.checked import declare as field
from vegasmodel.fields.errors import FieldError, exactly
from vegasmodel.fields.rules import (
    Boolean,
    BufferRule,
    Choice,
    Integer,
    Listed,
    ListedOrNone,
    OrText,
    Quantity,
    Text,
    Texts,
)
from vegasmodel.queues import DropTail, Queue, QueueRule, Red
from vegasmodel.scenario.special_rules import LawRule, PacketNumbers
from vegasmodel.scenario.varying import (
    ARRIVALS,
    POSITIVE_TIME,
    RTT,
    SIZE,
    START,
    TIME,
    Pareto,
    ParetoArrivals,
    Poisson,
    Staggered,
    Uniform,
)
from vegasmodel.stacks import STACKS, Stack, Variant

__all__ = [
    "LAWS",
    "MAX_FLOWS",
    "VARIANTS",
    "Drop",
    "Flow",
    "Link",
    "Member",
    "Run",
]

LAWS = tuple(law.name for law in laws.BUILT_IN)
"""The names of the package's own congestion controls ("laws")."""
VARIANTS = tuple(STACKS)
"""The allowed values of a flow's ``variant``; each names a TCP implementation."""
MAX_FLOWS = 100_000  # of a scenario

LONG_RTT = 10  # seconds; few paths have such an RTT, so a greater number may be meant in ms
LONGEST_MATCH = 6000  # characters: 500 of a name in a trace, each perhaps an escape such as \x1b
WARMUP = 200.0  # the longest default warm-up, seconds
_RATE = Quantity("rate", low=1e-6, high=1e12)  # beyond, terms of the models' equations overflow


def warn_of_ms(rtt: object, depth: int) -> None:
    """Warn if an RTT that the user gave may be meant in ms.

    The warning is given for an integer of at least ``LONG_RTT``. It is not given for a float,
    because times that a program computes or converts from text are floats. ``depth`` is the number
    of calls from here to the user's line, which the warning names.
    """
    whole = isinstance(rtt, numbers.Integral) and not rules.is_time_span(rtt)
    if whole and int(rtt) >= LONG_RTT:  # type: ignore[call-overload]
        warnings.warn(f"rtt: {rtt} means {rtt} s; write '{rtt} ms' or '{rtt} s'", stacklevel=depth)


@dataclass(frozen=True)
class Drop(Checked):
    """Packets of one flow whose first transmission ns-2 drops on purpose.

    ``packets`` holds the sequence numbers of these packets.
    """

    flow: str = field(Text())
    packets: Listed[int] = field(PacketNumbers())


@dataclass(frozen=True, repr=False)
class Link(ShownAsCall):
    """One link with its queue.

    A number without a unit is in pkt/s, packets or s: ``Link(1250)`` carries 1250 pkt/s. Text has a
    unit, as in ``Link("10 Mbit/s")``.

    - ``capacity``: pkt/s, or text such as ``"10 Mbit/s"``.
    - ``name``: the link's name.
    - ``buffer``: how many packets can wait, not counting the packet in transmission. The buffer may
      also be a time or a number of bandwidth-delay products: ``"100 ms"`` stands for the packets
      that the link sends in 100 ms, ``"1 BDP"`` for the capacity times the mean RTT of the flows on
      the link. (ns-2 counts the packet in transmission, except with RED; ``docs/scenario.md`` says
      when the models count like ns-2.)
    - ``delay``: one-way propagation delay, s. It is a part of the ``rtt`` of each flow that crosses
      the link. The default is 1 ms, or less if the RTT of a flow is too short for 1 ms.
    - ``queue``: ``DropTail()``, ``Red(...)`` or ``RateDelay(...)``.
    - ``loss``: probability that a data packet is lost at random.
    - ``drops``: packets that ns-2 drops on purpose, as a tuple of ``Drop``. ns-3 cannot do this.

    ``docs/scenario.md`` has more about each field.
    """

    capacity: OrText[float] = field(_RATE)
    name: str = field(Text(), "bottleneck")
    buffer: OrText[float] = field(BufferRule("buffer", infinite=True), math.inf)
    delay: OrText[float] = field(TIME, None)  # ``settle`` sets the default
    queue: Queue = field(QueueRule(), DropTail())
    loss: OrText[float] = field(Quantity("fraction", high=1.0), 0.0)
    drops: Listed[Drop] = field(Tables(Drop), ())

    @classmethod
    def _check_order(cls, values: tuple[object, ...]) -> None:
        """Refuse a buffer as the second argument, which is the link's name.

        Otherwise ``Link("10 Mbit/s", "20 pkt")`` would make a link with this name and an infinite
        buffer.
        """
        text = values[1] if len(values) > 1 else None
        try:
            checked.of(cls, "buffer").read(text, "buffer", None)
        except FieldError:
            return
        allowed = f"the second argument is the link's name; write buffer={text!r}"
        raise FieldError("name", text, allowed)

    @property
    def never_full(self) -> bool:
        """Whether the buffer is infinite, so that every arriving packet finds room."""
        return self.buffer == math.inf

    @property
    def limits(self) -> tuple[float, ...]:
        """How many packets each of the link's queues holds at most, as whole numbers.

        The discipline divides the buffer among the queues. The queues are in the order of the
        discipline's ``services``.
        """
        return self.queue.limits(self.buffer)

    def room(self, stack: Stack, service: str = "") -> float:
        """How many packets can wait in the queue ``service``, without the one in transmission.

        ``stack`` is the TCP implementation that decides whether links behave as in ns-2, where one
        packet fewer may wait.
        """
        limit = self.limits[self.queue.services.index(service)]
        return float(self.queue.waiting(limit, stack))

    @property
    def loses_only_when_full(self) -> bool:
        """Whether packets are lost only at a full buffer: a drop-tail queue, no random loss.

        The packets named in ``drops`` do not count.
        """
        return isinstance(self.queue, DropTail) and self.loss == 0.0

    @property
    def lossless(self) -> bool:
        """Whether the link never loses a packet, other than the packets named in ``drops``."""
        endless = min(self.limits) == math.inf
        return endless and not isinstance(self.queue, Red) and self.loss == 0.0


_THRESHOLD = Quantity("packets", low_open=True, high=1e6)  # of Vegas


@dataclass(frozen=True, repr=False)
class Flow(ShownAsCall):
    """A group of ``count`` flows with the same settings.

    A number without a unit is in s, packets or pkt/s: ``Flow("vegas", 40)`` has an RTT of 40 s.
    Text has a unit, as in ``Flow("vegas", "40 ms")``.  Python warns if ``rtt`` is a whole number
    of at least 10, because it may be meant in milliseconds.

    - ``law``: the congestion control, such as ``"vegas"`` or ``"reno"``.
    - ``rtt``: round-trip time while every queue is empty, s; or a ``Uniform`` if RTTs are random.
    - ``name``: the group's name; the default is the law.
    - ``count``: the number of flows.
    - ``start``: start time, s; or a ``Staggered`` if the flows start one after another.
    - ``stop``: time at which the flows stop, s; the default is the end of the run.
    - ``size``: packets that each flow sends; or a ``Pareto`` if sizes are random.
    - ``arrivals``: ``"once"`` if each flow of the group starts once. A ``Poisson`` or
      ``ParetoArrivals`` makes new short flows arrive at random during the whole run.
    - ``alpha``, ``beta``, ``gamma``: thresholds of Vegas, packets. Vegas keeps alpha to beta of its
      packets queued, and ends slow start when it computes that more than gamma are queued. The
      defaults are those of the ``variant``.
    - ``decrease``: factor by which a loss multiplies the window, such as 0.5. The default is that
      of ``law`` and ``variant``.
    - ``variant``: the TCP implementation: ``"paper"`` (Vegas as published), ``"ns2"`` or
      ``"linux"``.
    - ``over_estimate``: by how much the sender's baseRTT exceeds ``rtt``, s; or ``"measured"`` if
      the sender measures its baseRTT.
    - ``max_window``: the receiver's window, packets.
    - ``initial_window``: first congestion window, packets; the default is that of the TCP
      implementation.
    - ``delayed_ack``: whether the receiver delays ACKs, so that one ACK usually acknowledges two
      packets.
    - ``packet_size``: size of a data packet, bytes; the default is the scenario's. The flow's
      windows, thresholds and ``size`` count packets of this size.
    - ``direction``: ``"forward"``, or ``"reverse"`` against the direction of the links.
    - ``service``: at a link with a ``RateDelay`` queue, whether the flow gets a high ``"rate"`` or
      a low ``"delay"``. In a scenario file, the key is ``class``.
    - ``path``: names of the links that the flows cross; the default is all links.
    - ``access``: rate of each flow's own access links, pkt/s.
    - ``send_jitter``: longest random time that a sender waits before it sends a packet, s. The
      default is a packet's transmission time on the slowest link.
    - ``delay_noise``: standard deviation of the propagation delay, s.
    - ``match``: which flows of a measured trace are those of this group: a flow's name in the
      trace, an address, a port, or ``address:port``.

    ``docs/scenario.md`` has more about each field.
    """

    law: str = field(LawRule())
    rtt: OrText[float | Uniform] = field(RTT)
    name: str = field(Text(), None)
    count: int = field(Integer(1, MAX_FLOWS), 1)
    start: OrText[float | Staggered] = field(START, 0.0)
    stop: OrText[float | None] = field(POSITIVE_TIME, None)
    size: OrText[float | Pareto] = field(SIZE, math.inf)
    arrivals: OrText[Literal["once"] | Poisson | ParetoArrivals] = field(ARRIVALS, "once")
    alpha: OrText[float] = field(_THRESHOLD, None)
    beta: OrText[float] = field(_THRESHOLD, None)
    gamma: OrText[float] = field(_THRESHOLD, None)
    decrease: OrText[float] = field(Quantity("fraction", high=1.0, low_open=True), None)
    variant: Variant = field(Choice(VARIANTS), "paper")
    over_estimate: OrText[float | Literal["measured"]] = field(
        OneOf(plain=TIME, word="measured"), "measured"
    )
    max_window: OrText[float] = field(Quantity("packets", low=1.0, infinite=True), math.inf)
    initial_window: OrText[float | None] = field(Quantity("packets", low=1.0, high=1e6), None)
    delayed_ack: bool = field(Boolean(), False)
    packet_size: OrText[float | None] = field(Quantity("bytes", low=1.0, high=65535.0), None)
    direction: Literal["forward", "reverse"] = field(Choice(("forward", "reverse")), "forward")
    service: Literal["rate", "delay"] = field(Choice(("rate", "delay")), None, key="class")
    path: ListedOrNone[str] = field(Texts(), None)
    access: OrText[float | None] = field(_RATE, None)
    send_jitter: OrText[float | None] = field(TIME, None)
    delay_noise: OrText[float] = field(TIME, 0.0)
    match: str | None = field(Text(LONGEST_MATCH), None)
    # of an instance: the fields in which it filled in a default that depends on others, such as the
    # law; copies choose it anew, and ``write_table`` and ``repr`` leave it out
    _filled: ClassVar[Sequence[str]] = ()

    def __post_init__(self) -> None:
        """Check the fields, and fill in the defaults that depend on the law or the TCP variant."""
        rtt: object = self.rtt  # as the user gave it: text becomes a float in the next line
        super().__post_init__()
        warn_of_ms(rtt, 4)  # 4: the caller of ``__init__``, which has called this method
        stack, law = STACKS[self.variant], laws.find(self.law)
        defaults = {
            "name": self.law,
            "alpha": stack.alpha,
            "beta": stack.beta,
            "gamma": stack.gamma,
            "decrease": stack.decrease if law.keeps_backlog else law.decrease,
            "service": "delay" if law.delay_based else "rate",
        }
        object.__setattr__(self, "_filled", [k for k in defaults if getattr(self, k) is None])
        for key in self._filled:
            object.__setattr__(self, key, defaults[key])
        if rules.known(self.alpha, self.beta) and self.beta < self.alpha:
            default = "; this is its default, so give beta too" if "beta" in self._filled else ""
            shown = checked.as_written(self, "beta")
            raise FieldError("beta", shown, f"at least alpha, {exactly(self.alpha)} pkt{default}")
        first = self.initial_window
        if first is not None and rules.known(first) and first % 1.0:
            shown = checked.as_written(self, "initial_window")
            raise FieldError("initial_window", shown, "a whole number of packets")
        if self.arrivals != "once" and (self.size == math.inf or self.count != 1):
            given = ARRIVALS.write(self.arrivals)
            here = f"here count is {self.count}" if self.count != 1 else "give the key size"
            raise FieldError("arrivals", given, here, wrong="needs count = 1 and a finite size")

    @property
    def keeps_backlog(self) -> bool:
        """Whether the congestion control keeps a backlog between alpha and beta, as Vegas does."""
        return laws.find(self.law).keeps_backlog

    @property
    def one_threshold(self) -> bool:
        """Whether alpha = beta: then a change of alpha alone changes beta, too."""
        return self.alpha == self.beta

    @property
    def delay_based(self) -> bool:
        """Whether the congestion control reads the round-trip time; if not, it is loss-based."""
        return laws.find(self.law).delay_based

    @property
    def measures_base(self) -> bool:
        """Whether the sender measures its baseRTT, if its congestion control uses one.

        If it does not, the scenario gives the over-estimate of baseRTT in seconds.
        """
        return self.over_estimate == "measured"

    @property
    def long_lived(self) -> bool:
        """Whether the flows have data to send until they stop: they start once, of infinite size.

        Short flows that arrive at random are not long-lived, nor are flows of a finite ``size``.
        """
        return self.arrivals == "once" and self.size == math.inf

    @property
    def one_transfer(self) -> bool:
        """Whether each of the flows starts once, and ends when it has delivered a finite ``size``.

        It is false for a group of short flows that arrive at random: new flows keep arriving.
        """
        return self.arrivals == "once" and self.size != math.inf

    @property
    def grows_until_loss(self) -> bool:
        """Whether the windows of the flows grow until a packet is lost.

        They do not if slow start can end before a loss, as that of Vegas does at a backlog of
        gamma. They do not either if the receiver's window or the size of the flows is finite.
        """
        until_loss = laws.find(self.law).slow_start == "until loss"
        return until_loss and self.max_window == self.size == math.inf


@dataclass(frozen=True, repr=False)
class Run(ShownAsCall):
    """How long a run lasts, when measuring begins, and how many runs there are.

    - ``duration``: length of a run, s.
    - ``warmup``: averages begin at this time, s; the default is a third of the duration, at most
      200 s.
    - ``seed``: seed of all random numbers.
    - ``runs``: results are means over this many runs. By default ns-2 and ns-3 run once. The
      simulators ``fluid`` and ``rounds`` run once if the results do not depend on chance, and
      otherwise up to five times.
    - ``start_jitter``: the longest random delay of a flow's start, s.
    - ``ns2_defaults``: default values of ns-2's parameters: ``"papers"`` for those of 1999 to 2001,
      the years of most papers on Vegas that this package checks, or ``"2.35"`` for those of ns-2
      2.35.
    """

    duration: OrText[float] = field(POSITIVE_TIME, 600.0)
    warmup: OrText[float] = field(TIME, None)
    seed: int = field(Integer(0, 2**31 - 1), 1)
    runs: int | None = field(Integer(1, 10_000), None)
    start_jitter: OrText[float] = field(TIME, 0.0)
    ns2_defaults: Literal["papers", "2.35"] = field(Choice(("papers", "2.35")), "papers")
    _filled: ClassVar[Sequence[str]] = ()  # of an instance: the fields that got their default

    def __post_init__(self) -> None:
        """Check the fields; the default of ``warmup`` depends on ``duration``."""
        super().__post_init__()
        object.__setattr__(self, "_filled", [k for k in ("warmup",) if getattr(self, k) is None])
        if self._filled:
            object.__setattr__(self, "warmup", min(WARMUP, self.duration / 3.0))
        if self.warmup >= self.duration:
            shown = checked.as_written(self, "warmup")
            raise FieldError("warmup", shown, f"less than duration, {exactly(self.duration)} s")
        if self.start_jitter > self.duration:
            allowed = f"at most duration, {exactly(self.duration)} s"
            raise FieldError("start_jitter", checked.as_written(self, "start_jitter"), allowed)

    @property
    def times(self) -> int:
        """How many runs a packet-level simulator makes: ``runs``, or one if that is not given."""
        return self.runs or 1


@dataclass(frozen=True)
class Member:
    """One flow of a group, with its own name, and its own RTT, start and stop in s.

    ``flow`` is the ``Flow`` object of the group, and ``group`` is its index in ``Scenario.flows``.
    """

    name: str
    group: int
    flow: Flow
    rtt: float
    start: float
    stop: float
