"""Pairs the flows of a scenario with those of a trace, to compare predictions with the trace.

Each flow of the scenario gets one flow of the trace as its partner. The partner may have the same
name, for example, or run the same congestion control. For each pair, the result says why these two
flows are a pair.
"""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vegasmodel.fields.errors import FieldError, printable
from vegasmodel.fields.lists import few
from vegasmodel.packets.activity import idle_flows
from vegasmodel.packets.gaps import packets_in_all
from vegasmodel.packets.trace import Trace
from vegasmodel.results.assumption import Assumption
from vegasmodel.scenario import Member, Scenario

__all__ = ["Pairing", "match_texts", "pair"]

# the rules that make a pair, as output names them (the function ``pair`` explains them)
MATCH, NAME, CONTROL = "match", "name", "congestion control"
SCENARIO = "order in a trace made from this scenario"
ONLY, ORDER = "being the only flow", "order of appearance"
# if unpaired flows deliver a smaller part of all packets, they hardly matter
NEGLIGIBLE_PART = 0.001
RENO = ("reno", "newreno", "sack", "tahoe")  # the kernel calls them all reno


@dataclass(frozen=True)
class Pairing:
    """Which flow of a trace belongs to each flow of a scenario, and by which rule it was found.

    For each flow of the scenario, ``order`` has the index of its partner in the trace, and ``by``
    has the name of the rule, such as ``MATCH``.
    """

    trace: Trace
    scenario: Scenario
    order: tuple[int, ...]
    by: tuple[str, ...]

    def to_json(self) -> list[dict[str, str]]:
        """The pairs as plain Python types, which can be written as JSON.

        For each flow of the scenario, there is its name, the name of its partner in the trace, and
        the rule that paired them.
        """
        return [
            {"flow": member.name, "trace": self.trace.flows[i], "by": by}
            for member, i, by in zip(self.scenario.members, self.order, self.by, strict=True)
        ]

    def assumptions(self) -> tuple[Assumption, ...]:
        """The assumptions about the pairing that are doubtful or wrong.

        There is one for each of these cases:

        - Flows were paired by their order alone.
        - A flow ran another congestion control than the scenario says.
        - A flow has little to send, but an infinite size in the scenario.
        - The trace has flows that the scenario does not have, and they deliver at least 0.1 % of
          the packets.
        """
        found = []
        names, members = self.trace.flows, self.scenario.members
        if ORDER in self.by:
            guessed = [m.name for m, by in zip(members, self.by, strict=True) if by == ORDER]
            detail = (
                f"{few(guessed, 6)}: only the order of appearance says which flow of the trace it "
                "is; match = ... in the scenario can say it"
            )
            found.append(Assumption("flow-pairing", None, detail))
        ran = self.trace.controls
        other_controls = [
            f"{member.name} is {member.flow.law}, and {names[i]} ran {ran[names[i]]}"
            for member, i in zip(members, self.order, strict=True)
            if not _fits_law(self.trace, i, member)
        ]
        if other_controls:
            found.append(Assumption("congestion-control", False, few(other_controls, clauses=True)))
        idle = idle_flows(self.trace)
        idle_partners = [
            f"{member.name}, which is {names[i]}, {idle[names[i]]}"
            for member, i in zip(members, self.order, strict=True)
            if names[i] in idle and member.flow.long_lived
        ]
        if idle_partners:
            found.append(Assumption("no-idle-flows", False, few(idle_partners, clauses=True)))
        unpaired = [i for i in range(len(names)) if i not in set(self.order)]
        packets = packets_in_all(self.trace)
        if unpaired and packets is not None:
            unpaired_part = float(np.nansum(packets[unpaired]) / max(np.nansum(packets), 1e-300))
            if unpaired_part >= NEGLIGIBLE_PART:
                who = few([names[i] for i in unpaired], 6)
                detail = (
                    f"{who}: flows of the trace alone, {100 * unpaired_part:.3g} % of its packets"
                )
                found.append(Assumption("no-other-flows", False, detail))
        return tuple(found)


def pair(trace: Trace, scenario: Scenario) -> Pairing:
    """Find, for each flow of the scenario, its partner in the trace.

    These rules apply one after another, each to the flows that have no partner yet:

    - The field ``match`` in the scenario gives the name of the flow in the trace, or the address
      or port of its sender or receiver there. If the name has characters that cannot be printed,
      ``match`` is the text that ``match_texts`` makes of it.
    - Flows with the same name are paired.
    - If the trace was made by simulating this scenario, its flows have the scenario's order.
    - If the scenario and the trace have equally many flows with the same congestion control, these
      are paired in the order of their starts. Reno, NewReno, SACK and Tahoe count as one congestion
      control, because Linux calls them all reno.
    - The remaining flows are paired in the order of their starts.

    The last two rules leave out flows of the trace that have little to send
    (``activity.idle_flows``), unless too few others remain.

    Raises ``FieldError`` if flows cannot be paired, or if the last rule would pair flows of
    different congestion controls.
    """
    members = scenario.members
    found = _matched(trace, scenario)  # scenario's flow: (index of its partner, rule)
    free = {name: i for i, name in enumerate(trace.flows)}  # flows of the trace without a partner
    for i, _ in found.values():
        del free[trace.flows[i]]
    for k, member in enumerate(members):
        if k not in found and member.name in free:
            found[k] = (free.pop(member.name), NAME)
    if trace.scenario == scenario.fingerprint() and len(trace.flows) == len(members):
        for k in set(range(len(members))) - set(found):
            if trace.flows[k] in free:  # a trace of this scenario keeps its order
                found[k] = (free.pop(trace.flows[k]), SCENARIO)
    idle = idle_flows(trace)
    busy = {name: i for name, i in free.items() if name not in idle}
    # the remaining rules guess, so they leave out idle flows if there are enough others
    free = busy if len(busy) >= len(members) - len(found) else free
    _by_control(trace, scenario, found, free)
    _by_order(trace, scenario, found, free)
    order = tuple(found[k][0] for k in range(len(members)))
    return Pairing(trace, scenario, order, tuple(found[k][1] for k in range(len(members))))


def match_texts(names: Sequence[str]) -> list[str]:
    r"""The text for the key ``match`` of a scenario file that selects each flow of a trace.

    ``names`` are the names of the flows in the trace.  Usually the text is the name itself.  But a
    scenario file has only printable text, so characters that cannot be printed are replaced by
    escapes such as ``\x1b``.  If two flows would then have the same text, a number is added to the
    second, such as `` (2)``.
    """
    texts: dict[str, None] = {}
    unchanged = {name for name in names if name.isprintable()}  # these are their own texts
    for name in names:
        text = first = printable(name)
        number = 1
        while text in texts or (text in unchanged and text != name):
            number += 1
            text = f"{first} ({number})"
        texts[text] = None
    return list(texts)


def _matched(trace: Trace, scenario: Scenario) -> dict[int, tuple[int, str]]:
    """Pair the flows for which the scenario has the field ``match``.

    The result maps the index of a flow in the scenario to the index of its partner in the trace and
    the rule's name.  If an entry of the scenario describes n flows, its ``match`` must fit exactly
    n flows of the trace, or ``FieldError`` is raised.  The n flows are paired in the order of their
    starts.
    """
    found: dict[int, tuple[int, str]] = {}
    paired: dict[int, str] = {}  # index of a flow of the trace -> name of the entry that it fits
    names = trace.flows
    printable_names = match_texts(names)
    for g, group in enumerate(scenario.flows):
        if group.match is None:
            continue
        field = f"flow[{g}].match"
        # the trace's flows that fit: by name, else by printable text, else by address or port
        hits = [names.index(group.match)] if group.match in names else []
        hits = hits or [i for i, name in enumerate(printable_names) if name == group.match]
        hits = hits or [i for i, name in enumerate(names) if _fits(group.match, name)]
        if len(hits) != group.count:
            wrong = f"fits {len(hits) or 'no'} flow{'s' * (len(hits) > 1)} of the trace"
            wrong += f", not {group.count}" if hits else ""
            flows = f"it has {few(names, 6)}" if not hits else few([names[i] for i in hits], 6)
            raise FieldError(field, group.match, flows, wrong=wrong)
        for i in hits:
            if i in paired:
                wrong = f"fits {trace.flows[i]}, which {paired[i]} fits already"
                raise FieldError(field, group.match, "give each another flow", wrong=wrong)
            paired[i] = group.name
        # ``k`` is the index of a flow in the scenario, ``i`` that of a flow in the trace
        members = [k for k, member in enumerate(scenario.members) if member.group == g]
        starting = _as_they_start(scenario, members)
        for k, i in zip(starting, _as_they_appear(trace, hits), strict=True):
            found[k] = (i, MATCH)
    return found


def _fits(text: str, name: str) -> bool:
    """Whether ``text``, a value of the key ``match`` in a scenario, fits a flow of the trace.

    ``name`` is the flow's name in the trace. It has the address and the port of the flow's sender,
    and then those of its receiver, as in ``10.0.0.1:5001>10.0.0.2:80``. ``text`` fits if it names
    the sender or the receiver in one of these ways: its address, its port, ``address:port``, or the
    text that ``name`` has for it. If two hosts connect again with the same ports, ``name`` ends
    with a number such as `` #2``; this number is ignored.
    """
    wanted = _address_and_port(text)
    for end in name.partition(" #")[0].split(">"):
        address, port = _address_and_port(end)
        if text == end or (address is not None and (address, port) == wanted):
            return True
        if wanted[1] is None and text.isdigit() and port == text:
            return True
        if wanted[1] is None and address is not None and address == wanted[0]:
            return True
    return False


def _address_and_port(text: str) -> tuple[object, str | None]:
    """Split ``10.0.0.1:5001`` or ``[::1]:5001`` into address and port; a missing part is None."""
    host, colon, port = text.rpartition(":")
    if colon and port.isalnum() and _address(host.strip("[]")) is not None:
        bare = "[" not in text and host.count(":") > 0  # an IPv6 address without a port
        if not bare:
            return _address(host.strip("[]")), port
    return _address(text.strip("[]")), None


def _address(text: str) -> object:
    """The IP address that ``text`` states, or ``None``.

    The name of an interface after ``%`` is left out. An IPv4 address that is written as an IPv6
    one, as in ``::ffff:10.0.0.1``, becomes an IPv4 address again.
    """
    try:
        found = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found


def _by_control(
    trace: Trace, scenario: Scenario, found: dict[int, tuple[int, str]], free: dict[str, int]
) -> None:
    """Pair flows of the scenario with flows of the trace that have the same congestion control.

    Only flows without a partner are considered.  If the scenario and the trace have equally many of
    them with one congestion control, these are paired in the order of their starts.  Reno, NewReno,
    SACK and Tahoe count as one congestion control, because Linux calls them all reno.

    ``found`` has the pairs so far, and ``free`` the trace's flows that have no partner yet.  The
    function adds the new pairs to ``found`` and removes their flows from ``free``.  The rule of a
    pair is ``CONTROL`` if the flows of the scenario are alike, so that any pairing of them is
    right.  Otherwise it is ``ORDER``.
    """
    # congestion control -> indices of the scenario's flows that have it and no partner yet
    unpaired: dict[str, list[int]] = {}
    for k, member in enumerate(scenario.members):
        if k not in found:
            unpaired.setdefault(_kernel_name(member.flow.law), []).append(k)
    for control, of_scenario in unpaired.items():
        of_trace = [
            i for name, i in free.items() if _kernel_name(trace.controls.get(name, "")) == control
        ]
        if len(of_trace) != len(of_scenario):
            continue
        kinds = {
            (m.group, m.rtt, m.start, m.stop) for m in (scenario.members[k] for k in of_scenario)
        }
        by = CONTROL if len(kinds) == 1 else ORDER
        pairs = zip(
            _as_they_start(scenario, of_scenario), _as_they_appear(trace, of_trace), strict=True
        )
        for k, i in pairs:
            found[k] = (i, by)
            del free[trace.flows[i]]


def _by_order(
    trace: Trace, scenario: Scenario, found: dict[int, tuple[int, str]], free: dict[str, int]
) -> None:
    """Pair the remaining flows of the scenario and of the trace in the order of their starts.

    ``found`` has the pairs so far, and ``free`` the trace's flows that have no partner yet. The new
    pairs are added to ``found``. Raises ``FieldError`` if the numbers of the remaining flows
    differ, or if a pair would have different congestion controls.
    """
    members = scenario.members
    # indices of flows in the scenario (``k``) and in the trace (``i``) that have no partner yet
    unpaired = [k for k in range(len(members)) if k not in found]
    if not unpaired:
        return
    if len(free) != len(unpaired):
        names, wanted = trace.flows, [members[k].name for k in unpaired]
        allowed = (
            "name the flows of the scenario as in the trace, or write match = ... for each: "
            f"{few(wanted, 6)}"
        )
        counts = f"(flows: {len(names)}) cannot be paired with the scenario (flows: {len(members)})"
        raise FieldError("trace", few(names, 6), allowed, wrong=counts)
    by = ONLY if len(members) == len(trace.flows) == 1 else ORDER
    appearing = _as_they_appear(trace, list(free.values()))
    for k, i in zip(_as_they_start(scenario, unpaired), appearing, strict=True):
        if not _fits_law(trace, i, members[k]):
            ran, name = trace.controls[trace.flows[i]], members[k].name
            wrong = f"ran {ran}, but {name} of the scenario is {members[k].flow.law}"
            allowed = f"write match = ... in the scenario to say which flow of the trace {name} is"
            raise FieldError("trace", trace.flows[i], allowed, wrong=wrong)
        found[k] = (i, by)


def _fits_law(trace: Trace, i: int, member: Member) -> bool:
    """Whether flow ``i`` of the trace may have run the law of a flow of the scenario.

    It may if the trace does not tell its congestion control, or tells this law.
    """
    known = trace.controls.get(trace.flows[i])
    return known in (None, member.flow.law, _kernel_name(member.flow.law))


def _kernel_name(law: str) -> str:
    """The name that Linux has for a congestion control: ``reno`` for all variants of Reno."""
    return "reno" if law in RENO else law


def _as_they_start(scenario: Scenario, members: list[int]) -> list[int]:
    """Sort flows of the scenario, given by their indices, by their start times."""
    return sorted(members, key=lambda k: scenario.members[k].start)


def _as_they_appear(trace: Trace, flows: list[int]) -> list[int]:
    """Sort flows of the trace, given by their indices, by the times of their first packets.

    Flows whose time is unknown come last. If the trace tells no times, the order stays.
    """
    first = trace.known("first")
    if first is None:
        return flows
    return sorted(flows, key=lambda i: math.inf if math.isnan(first[i]) else float(first[i]))
