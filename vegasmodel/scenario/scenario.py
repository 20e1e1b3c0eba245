"""Defines ``Scenario``, the input of every model: links, groups of flows, the length of a run.

Times are in seconds, and rates in packets per second. The module ``scenario.parts`` says how large
these packets are. ``Scenario.from_toml`` reads the text of a scenario file, in which values may
have other units. In Python, a scenario is made from ``Link``, ``Flow`` and ``Run`` objects.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from vegasmodel import stacks
from vegasmodel.fields import checked, toml_file
from vegasmodel.fields.checked import Checked, Table, Tables
from vegasmodel.fields.checked import declare as field
from vegasmodel.fields.errors import FieldError
from vegasmodel.fields.rules import Listed, ListedOrNone, OrText, Quantity, Text, Texts
from vegasmodel.fields.units import format_rate, format_time, write
from vegasmodel.laws import Law, registered
from vegasmodel.laws.reads import draws
from vegasmodel.scenario import routes
from vegasmodel.scenario.changes import replaced
from vegasmodel.scenario.other_tables import with_its_table
from vegasmodel.scenario.parts import Flow, Link, Member, Run
from vegasmodel.scenario.settle import settle
from vegasmodel.support.html_table import html_table

__all__ = ["Scenario", "load"]


@dataclass(frozen=True, repr=False)
class Scenario(Checked):
    """The input of every model: links, groups of flows, and how long a run lasts (``run``).

    ``packet_size`` and ``ack_size`` are in bytes.  Making a scenario raises ``FieldError`` if a
    value is not allowed, or if values do not fit together.
    """

    links: Listed[Link] = field(Tables(Link), key="link")
    flows: Listed[Flow] = field(Tables(Flow), key="flow")
    packet_size: OrText[float] = field(Quantity("bytes", low=1.0, high=65535.0), 1000.0)
    name: str = field(Text(), "scenario")
    ack_size: OrText[float] = field(Quantity("bytes", low=1.0, high=65535.0), 40.0)
    run: Run = field(Table(Run), Run())
    # the trace from which values of the scenario file were estimated
    estimated_from: str | None = field(Text(), None)
    # the keys of the scenario file whose values are guesses
    guesses: ListedOrNone[str] = field(Texts(empty=True), None)

    # The links and flows as the user gave them, before text became numbers and defaults were filled
    # in. Each scenario sets its own. It is a ``ClassVar`` only so that it is no field of the
    # dataclass: it is neither an argument nor compared.
    _given: ClassVar[tuple[tuple[Link, ...], tuple[Flow, ...]]] = ((), ())

    def __post_init__(self) -> None:
        """Check the fields, and complete the links and flows: text and defaults become numbers.

        For example, a buffer of "1 BDP" becomes a number of packets, by the capacity and the RTTs.
        """
        super().__post_init__()
        object.__setattr__(self, "_given", (self.links, self.flows))
        links, flows = settle(self.links, self.flows, self.packet_size, self.ack_size, self.run)
        object.__setattr__(self, "links", links)
        object.__setattr__(self, "flows", flows)
        # ``repr`` of a link or a flow shows text such as "1 BDP" as the user wrote it
        for settled, given in zip((links, flows), self._given, strict=True):
            for part, before in zip(settled, given, strict=True):
                checked.keep_texts(part, before)

    @classmethod
    def from_toml(cls, text: str) -> Scenario:
        """Make a scenario from the text of a scenario file.

        Raises ``FieldError``, which names the field, the value and what is allowed.
        """
        if not isinstance(text, str):
            raise FieldError("scenario file", text, "its text; vegasmodel.load(FILE) reads a file")
        return cls.from_dict(toml_file.parse(text, "scenario file", text[:40]))

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> Scenario:
        """Make a scenario from a dictionary with the keys of a scenario file.

        Values may be text with units.  Raises ``FieldError`` as ``from_toml`` does. Its message
        shows the value as a scenario file has it: ``true``, not ``True``.
        """
        if not isinstance(table, Mapping):
            raise FieldError("scenario", table, "a dictionary with the keys of a scenario file")
        try:
            return checked.read(cls, table, "", None)
        except FieldError as error:
            raise with_its_table(error).in_toml() from None

    def __repr__(self) -> str:
        """One line with the scenario's name, its first three links and its first six groups."""
        links = [
            f"{format_rate(link.capacity, self.packet_size)}, buffer {link.buffer:.4g} pkt"
            for link in self.links[:3]
        ]
        flows = [f"{g.count} {g.name}" if g.count > 1 else g.name for g in self.flows[:6]]
        for shown, parts in ((links, self.links), (flows, self.flows)):
            shown += [f"{len(parts) - len(shown)} more"] if len(parts) > len(shown) else []
        return f"<Scenario {self.name}: {'; '.join(links)}; {', '.join(flows)}>"

    def _repr_html_(self) -> str:
        """Two tables for notebooks, of the links and of the groups of flows."""
        links = [
            [
                link.name,
                format_rate(link.capacity, self.packet_size),
                f"{link.buffer:.4g} pkt",
                link.queue.discipline,
            ]
            for link in self.links
        ]
        variants = [group.variant for group in self.flows]
        flows = [
            [
                group.name,
                f"{group.count} {group.law}",
                format_time(group.rtt)
                if isinstance(group.rtt, float)
                else f"{format_time(group.rtt.low)} to {format_time(group.rtt.high)}",
                f"{group.alpha:g}, {group.beta:g}" if group.keeps_backlog else "",
                stacks.running(group.law, group.variant, variants),
            ]
            for group in self.flows
        ]
        title = f"{self.name}, packets of {self.packet_size:g} B"
        columns = ["group", "flows", "RTT", "alpha, beta", "TCP of"]
        return html_table(title, ["link", "capacity", "buffer", "queue"], links) + html_table(
            "", columns, flows
        )

    @functools.cached_property
    def members(self) -> tuple[Member, ...]:
        """All flows, group by group. Each flow has its own name, RTT, start and stop.

        If a group's RTTs are random, they are drawn with the seed of ``run``.
        """
        return routes.members(self.flows, self.run)

    def path(self, group: Flow) -> tuple[Link, ...]:
        """The links that a group's data packets cross, in the order in which they cross them.

        A group with the direction ``reverse`` crosses its links from the last to the first.
        """
        _expect_group(group)
        return routes.path(self.links, group)

    @functools.cached_property
    def crossed(self) -> tuple[Link, ...]:
        """The links that the data packets of some flow cross, each of them once."""
        return tuple(dict.fromkeys(link for group in self.flows for link in self.path(group)))

    def size_of(self, group: Flow) -> float:
        """Bytes of one data packet of this group."""
        _expect_group(group)
        return routes.size_of(group, self.packet_size)

    def access_rate(self, group: Flow) -> float:
        """The rate of the group's own access links, pkt/s.

        The default is 200 times the capacity of the slowest link on the group's path.
        """
        _expect_group(group)
        return routes.access_rate(self.links, group)

    def usual_jitter(self, group: Flow) -> float:
        """The default of ``jitter``, the longest random wait of the group's packets, s.

        It is the transmission time of one data packet on the slowest link of the group's path.
        Floyd and Jacobson (1992) recommend random waits of up to this time. Without waits, packets
        of several flows may reach a full queue in the same order again and again. Then it is always
        the same flow that loses packets (phase effects).
        """
        slowest = min(link.capacity for link in self.path(group))
        return self.size_of(group) / self.packet_size / slowest

    def jitter(self, group: Flow) -> float:
        """The longest random wait of the group's packets, s; by default ``usual_jitter``.

        When the window allows a packet, the packet leaves the sender's host after a random wait of
        at most this time.
        """
        _expect_group(group)
        return self.usual_jitter(group) if group.send_jitter is None else group.send_jitter

    @property
    def by_chance(self) -> bool:
        """Whether runs with different seeds may differ, so that a mean over several runs is needed.

        They may if at least one of the following is true:

        - Start times are random (``run.start_jitter``).
        - Packets wait for a random time (``jitter``), or a flow has ``delay_noise``.
        - A user's congestion control draws random numbers.
        - A link on a flow's path has RED or random loss.

        There is one exception: if short flows arrive at random, one run already averages over many
        flows. Then only random start times make several runs necessary.
        """
        if self.run.start_jitter > 0:
            return True
        random = any(link.queue.random or link.loss > 0 for link in self.crossed)
        random = random or any(self.jitter(g) > 0 or g.delay_noise > 0 for g in self.flows)
        random = random or any(map(draws, self.own_laws))
        return random and not self.random_arrivals

    @property
    def random_arrivals(self) -> bool:
        """Whether short flows of any group arrive at random; each run then has different flows."""
        return any(group.arrivals != "once" for group in self.flows)

    @property
    def own_laws(self) -> list[Law]:
        """The user-defined laws (congestion controls) of the flows, each once, sorted by name."""
        return registered(group.law for group in self.flows)

    def transmission(self, group: Flow) -> float:
        """The sum of all transmission times of a data packet and its ACK in a round trip, s.

        Both the packet and the ACK cross two access links and every link of the group's path.
        """
        _expect_group(group)
        return routes.transmission(self.links, group, self.packet_size, self.ack_size)

    def replace(self, changes: Mapping[str, Any] | None = None, /, **fields: Any) -> Scenario:
        """A copy of the scenario with some keys changed, as if its scenario file had been edited.

        An example is ``s.replace({"link.buffer": "2 BDP", "flow.vegas.alpha": 3}, name="other")``.

        - ``changes`` maps keys of the scenario file to new values.  ``link.KEY`` and ``flow.KEY``
          change every link and every group; ``link.NAME.KEY`` and ``flow.NAME.KEY`` change one.
          ``link.queue.KEY`` changes the queue of every link, and ``run.KEY`` changes the run.
        - ``fields`` are attributes of ``Scenario`` itself, such as ``name``.
        - A value is a number in the package's units, or text.

        The order of the keys does not matter: ``flow.NAME.KEY`` overrides ``flow.KEY``, and
        ``link.NAME.KEY`` overrides ``link.KEY``.  If any group has a delay-based law, such as
        Vegas, ``flow.alpha``, ``flow.beta`` and ``flow.gamma`` change only the groups with such a
        law.  If a group has alpha = beta, a change of its alpha alone also changes its beta.

        A group whose ``name`` was not given has the name of its law.  So a change of
        ``flow.reno.law`` to "sack" also changes the name of this group, to "sack".

        Defaults are computed again for the new scenario, and text such as ``"1 BDP"`` is converted
        to numbers again.  ``dataclasses.replace`` would keep the old numbers.

        Raises ``FieldError`` if there is no such key, if two keys set the same value, or if values
        contradict one another.
        """
        return replaced(self, self._given, {} if changes is None else changes, fields)

    def to_toml(self) -> str:
        """The text of a scenario file, from which ``from_toml`` makes an equal scenario.

        Keys with default values are left out, except ``name`` and ``packet_size``.
        """
        return toml_file.write(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """A dictionary with the keys of a scenario file; ``from_dict`` makes an equal scenario.

        Its values are as in such a file, for example ``"80 ms"``.  Keys with default values are
        left out, except ``name`` and ``packet_size``.
        """
        links, flows = self._given
        always = {"name": self.name, "packet_size": write(self.packet_size, "bytes")}
        table = always | checked.write_table(self)
        table["link"] = [checked.write_table(link) for link in links]
        table["flow"] = [checked.write_table(group) for group in flows]
        return table

    def fingerprint(self) -> str:
        """A hash of the scenario, by which its stored runs are found.

        The hash does not depend on ``name``, ``match``, ``estimated_from`` and ``guesses``, because
        they do not affect a run.  A missing ``runs`` counts as 1, and a missing ``send_jitter`` as
        its default.  If ``initial_window`` is not given, it is left out of the hash, and so is
        ``send_jitter`` if it is 0.  Some runs were stored before these two keys existed, and their
        hashes must not change.
        """
        return self._key

    @functools.cached_property
    def _key(self) -> str:
        """The hash that ``fingerprint`` returns, computed once."""
        data = dataclasses.asdict(self)
        del data["name"], data["estimated_from"], data["guesses"]
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


def expect(value: object, allowed: str = "a Scenario") -> None:
    """Raise ``FieldError`` unless ``value`` is a ``Scenario``.

    Many users pass the name of a file by mistake.  So the message says how to read a file.
    """
    if not isinstance(value, Scenario):
        raise FieldError("scenario", value, f"{allowed}; vegasmodel.load(FILE) reads a file")


def _expect_group(group: Flow) -> None:
    """Raise ``FieldError`` unless the argument is a group of flows."""
    if not isinstance(group, Flow):
        raise FieldError("group", group, "a group of the scenario, such as flows[0]")


def load(path: str | Path) -> Scenario:
    """Read a scenario file.  Raises ``FieldError`` for any file that is not valid."""
    table = toml_file.read(path)
    with toml_file.keys_of(path):
        return Scenario.from_dict(table)
