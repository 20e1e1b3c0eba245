"""Writes a new scenario file with comments.

If the user gives a trace, the file describes the flows of the trace, and the values in the file are
estimates from the trace. A value that cannot be estimated is a guess, and its comment says so.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from vegasmodel import laws
from vegasmodel.command_line.trace_sizes import (
    NS2_235,
    begin_with_syn,
    size_note,
    sizes_of,
    usual_size,
    without_syn,
)
from vegasmodel.fields import toml_file
from vegasmodel.fields.errors import FieldError, printable
from vegasmodel.fields.units import write
from vegasmodel.packets.ack_delays import AckDelay, ack_delays
from vegasmodel.packets.activity import ends_early, idle_flows
from vegasmodel.packets.completion import DEFAULT, EstimateError, complete
from vegasmodel.packets.estimate import estimate, first_windows
from vegasmodel.packets.filled import Filled
from vegasmodel.packets.inspection import doubts
from vegasmodel.packets.pairing import match_texts
from vegasmodel.packets.send_times import sent_at_once
from vegasmodel.packets.trace import Trace
from vegasmodel.scenario import Scenario
from vegasmodel.stacks import STACKS

__all__ = ["from_trace", "laws_guessed", "plain"]

# The type of a dictionary with the comments that the command ``new`` writes into a scenario file.
# Each comment is written at the end of a line that sets a key of the scenario. The dictionary's key
# says which line this is: the kind of its table ("link", "flow", or "" for the file's top), the
# number of the table among those of its kind, counted from 0, and the name that the line sets.
Notes = dict[tuple[str, int, str], str]
MAX_FLOWS = 300  # tables of a file
CAPACITY, RTT = "10 Mbit/s", 0.05  # guesses; the RTT in s
LONGEST_GUESSED_RTT = 1000.0  # s: greatest RTT that is tried as a guess

# comments on guesses in the file; the third is added to the second
GUESS = "a guess: the trace cannot tell it"
TOO_SHORT = "a guess: the trace's RTT is too short for this link"
AT_RECEIVER = "; a capture at the receiver shows only a part of it"
HEAD = """\
# vegasmodel estimated this scenario from a trace. docs/scenario.md lists every key.
# A trace does not show the right values of the keys below. So this file does not set these keys,
# and each has its default value. Check whether the defaults are right for your network.
"""
LAWS_FIRST = """\
# Correct the laws first: the trace does not tell the congestion control of every flow. A wrong law
# may change every prediction.
"""
NO_SYN = "a guess: it sends no SYN, but other flows do, and of ns-2's agents only Vegas sends none"
UNCERTAIN_DEFAULTS = {  # keys whose defaults are guesses
    "variant": """\
# - variant, under each [[flow]]: the TCP implementation. The default is the TCP that the papers on
#   Vegas describe. For Linux hosts write variant = "linux", for ns-2 variant = "ns2".
""",
    "ns2_defaults": """\
# - ns2_defaults, under [run]: the defaults of ns-2's TCP. Without this key they are those of 1999
#   to 2001. If your script leaves the defaults of ns-2 2.35, write ns2_defaults = "2.35".
""",
    "queue": """\
# - queue, under [[link]]: the queue discipline. The default is drop-tail. If your link has RED,
#   correct the key buffer, too. Its value in this file is then too small, because RED drops packets
#   before the buffer is full.
""",
    "delayed_ack": """\
# - delayed_ack, under each [[flow]]: by default the receiver sends an ACK for every packet. But
#   most real receivers delay their ACKs. For such a receiver write delayed_ack = true.
""",
    "send_jitter": """\
# - send_jitter, under each [[flow]]: by default the sender waits for a random time before it sends
#   a packet. If your senders do not wait, write send_jitter = "0 s".
""",
}
PLAIN = """\
# One bottleneck, one Vegas and one Reno flow.  docs/scenario.md lists every key with its default.
name = "{name}"
packet_size = "1000 B"     # a data packet on the wire, all headers included

[[link]]
capacity = "10 Mbit/s"     # or "1250 pkt/s"
buffer = "1 BDP"           # capacity times the mean rtt of all flows; or "50 pkt", "inf"

[[flow]]                   # as many tables as there are groups of like flows
law = "vegas"              # {laws}, or a law of your own
rtt = "40 ms"              # of a packet and its ACK while every queue is empty
alpha = 1                  # packets that Vegas keeps queued: at least alpha, at most beta
beta = 3
variant = "ns2"            # whose TCP runs: "paper" (the papers' rule), "ns2" or "linux"
count = 1                  # flows in the group

[[flow]]
law = "reno"
rtt = "40 ms"

[run]
duration = "200 s"
warmup = "50 s"            # averages begin here
"""


def plain(name: str) -> str:
    """The text of an example scenario file called ``name``."""
    return PLAIN.format(name=name, laws=", ".join(laws.names()))


def from_trace(
    trace: Trace, name: str, source: str = "a trace"
) -> tuple[str, tuple[Filled, ...], tuple[str, ...]]:
    """Write the text of a scenario file that describes a trace.

    Returns the text, the values estimated from the trace, and the keys whose values are guesses.
    ``name`` is the name of the scenario, and ``source`` the name by which the file mentions the
    trace.

    The file has one table for each flow of the trace. The tables of flows that have little to send
    (``idle_flows``) are comments, each with its reason. If the trace does not tell a value, the
    file has a guess or the default, and its comment says so.

    Raises ``FieldError`` unless 1 to ``MAX_FLOWS`` flows have enough to send, or if the estimates
    are not a valid scenario.
    """
    trace = _with_printable_names(trace)
    # flows with little to send, whether receivers delay ACKs, and flows whose senders do not wait
    idle, delays, at_once = idle_flows(trace), ack_delays(trace), sent_at_once(trace)
    busy = [i for i, flow in enumerate(trace.flows) if flow not in idle]
    if not 0 < len(busy) <= MAX_FLOWS:
        allowed = f"a trace of 1 to {MAX_FLOWS} flows"
        raise FieldError("--from-trace", f"{len(busy)} flows", allowed)
    size = usual_size(trace, busy)
    flows = _flows(trace, size.get("packet_size"))
    table: dict[str, Any] = {"name": name, "estimated_from": source, **size}
    table |= {"link": [{}], "flow": [flows[i] for i in busy]}
    with_syn = bool(begin_with_syn(trace))
    if with_syn:
        table["run"] = {"ns2_defaults": "2.35"}
    scenario, filled, notes = _completed(table, trace)
    part_of_rtt = TOO_SHORT in notes.values()  # RTTs that do not show the queueing delay
    if "captured-at-the-sender" in trace.doubts:
        notes = {k: TOO_SHORT + AT_RECEIVER if v == TOO_SHORT else v for k, v in notes.items()}
    notes |= _write_estimates(table, filled, scenario, part_of_rtt=part_of_rtt)
    if with_syn:
        text = "estimate: a flow begins with a SYN, which ns-2's older defaults do not send"
        notes["", 0, "ns2_defaults"] = text
    notes |= _flow_notes(table["flow"], trace, delays, at_once)
    notes["", 0, "estimated_from"] = "without this line the values count as known"
    known = {  # whether the trace tells the key for all flows
        "variant": all("variant" in flow for flow in table["flow"]),
        "ns2_defaults": with_syn or trace.engine != "ns2",
        "delayed_ack": delays,
        "send_jitter": all(flow["match"] in at_once for flow in table["flow"]),
    }
    unknown = [key for key in UNCERTAIN_DEFAULTS if not known.get(key)]
    guesses = (*_guessed(notes), *unknown)
    table["guesses"] = list(guesses)
    notes["", 0, "guesses"] = "edit this list, too, when you have corrected a value"
    if note := size_note(trace):
        notes["", 0, "packet_size"] = note
    text = _commented(toml_file.write(table), notes)
    head = HEAD + "".join(UNCERTAIN_DEFAULTS[key] for key in unknown)
    head = LAWS_FIRST + head if laws_guessed(guesses) else head
    text = head + _doubts(trace) + text + _left_out(trace, flows, idle)
    return text, filled, guesses


def _write_estimates(
    table: dict[str, Any], filled: Sequence[Filled], scenario: Scenario, *, part_of_rtt: bool
) -> Notes:
    """Write the estimates into ``table``, and return a comment on each.

    ``part_of_rtt`` says that the trace's RTTs do not show the queueing delay. Then they tell no
    buffer either, and the table gets a guess.
    """
    notes, run = Notes(), dict[str, str]()
    for entry in filled:
        if entry.key.startswith("run."):
            key = entry.key.removeprefix("run.")
            run[key], notes["", 0, key] = _seconds_as_text(entry.value), entry.how
            continue
        place = _split_key(entry.key)
        if place is None:
            continue
        kind, i, key = place
        value, note = _written(entry, scenario.packet_size)
        if key == "buffer" and part_of_rtt:
            value, note = "1 BDP", GUESS
        elif key == "buffer" and value == "inf":
            value, note = _never_full_buffer(entry, scenario, note)
        table[kind][i][key], notes[place] = value, note
    if run:
        table["run"] = run | table.get("run", {})
    return notes


def _flow_notes(
    flows: Sequence[Mapping[str, Any]],
    trace: Trace,
    delays: Mapping[str, AckDelay],
    at_once: Mapping[str, float],
) -> Notes:
    """Comments on ``law``, ``stop``, ``delayed_ack`` and ``send_jitter`` of tables ``[[flow]]``.

    ``delays`` has for flows of the trace whether their receivers delay ACKs. ``at_once`` has the
    flows whose senders do not wait, each with the part of its packets that shows it.
    """
    notes = Notes()
    for i, flow in enumerate(flows):
        ran = trace.controls.get(flow["match"])
        if ran is None and flow["match"] in without_syn(trace):
            notes["flow", i, "law"] = NO_SYN
        elif ran is None:
            notes["flow", i, "law"] = "a guess: the trace does not name its congestion control"
        elif ran not in laws.names():
            ran = printable(ran)[:20]
            notes["flow", i, "law"] = f"a guess: it ran {ran}, a law that vegasmodel does not have"
        if "stop" in flow:
            notes["flow", i, "stop"] = "the last packet; the flow ends before the trace does"
        if flow["match"] in delays:
            known = delays[flow["match"]]
            kind = "estimate" if known.certain else "a guess"
            notes["flow", i, "delayed_ack"] = f"{kind}: {known.how}"
        if flow["match"] in at_once:
            part = f"{math.floor(100 * at_once[flow['match']])} %"
            text = f"estimate: {part} of the packets are sent at the time when an ACK arrives"
            notes["flow", i, "send_jitter"] = text
    return notes


def _with_printable_names(trace: Trace) -> Trace:
    """A copy of the trace in which the flows' names have only characters that can be printed.

    A scenario file may have such names only, and its key ``match`` finds flows by them.
    """
    names = match_texts(trace.flows)
    texts = dict(zip(trace.flows, names, strict=True))
    controls = {texts[name]: control for name, control in trace.controls.items() if name in texts}
    return dataclasses.replace(trace, data=trace.data.assign_coords(flow=names), controls=controls)


def _guessed(notes: Notes) -> tuple[str, ...]:
    """The keys whose values are guesses, such as ``buffer`` and ``law of 2 flows``."""
    keys = [(kind, key) for (kind, _, key), text in notes.items() if text.startswith("a guess")]
    found = []
    for kind, key in dict.fromkeys(keys):
        n = keys.count((kind, key))
        flows = f" of {n} flow{'s' if n > 1 else ''}" if kind == "flow" else ""
        found.append(f"{key}{flows}")
    return tuple(found)


def laws_guessed(guesses: Sequence[str]) -> bool:
    """Whether the law of a flow is among the guesses that ``from_trace`` returns."""
    return any(each.startswith("law of ") for each in guesses)


def _doubts(trace: Trace) -> str:
    """Comments for the scenario file that say what is doubtful about the trace.

    They do not mention flows with little to send; ``_left_out`` writes comments on these.
    """
    found = {k: text for k, text in doubts(trace).items() if k != "no-idle-flows"}
    return "".join(f"# In doubt, {k}: {printable(text)}.\n" for k, text in found.items())


def _completed(table: dict[str, Any], trace: Trace) -> tuple[Scenario, tuple[Filled, ...], Notes]:
    """Complete ``table`` with estimates from the trace, or with guesses where there are none.

    The guesses are written to ``table``. Returns the scenario, the estimates, and a comment on each
    guess.

    ``complete`` raises an error for the first key that it cannot estimate. So it is called again
    and again, each time with one more guess, until it raises no error. What the next guess is
    depends on the error:

    - The trace does not tell a key that is required. This key is guessed, and with it all RTTs that
      the trace does not tell.
    - The RTT of a flow in the trace is less than the transmission times on its path. The RTT of
      this flow, and others as short, are guessed in place of the estimates.
    - An RTT that was guessed before is less than the transmission times on a link. All guesses of
      RTTs are doubled.

    Any other error is raised.
    """
    notes = Notes()  # a comment on each guess so far
    rtt = RTT  # the guess of all RTTs that are not known, s
    while True:
        try:
            return (*complete(table, trace), notes)
        except FieldError as error:
            wrong = _split_key(error.key if isinstance(error, EstimateError) else error.field)
            # the wrong key, or None if it is a guess already, or is no key of a table
            unguessed = None if wrong in notes else wrong
            if unguessed and "required" in error.allowed:  # the trace does not tell it
                notes |= {unguessed: GUESS} | {
                    ("flow", i, "rtt"): GUESS for i in _without_rtts(table, trace)
                }
            elif unguessed and isinstance(error, EstimateError) and unguessed[2] == "rtt":
                # the RTT in the trace is less than the transmission times on the path
                short = _with_short_rtts(table, trace, unguessed[1])
                notes |= {("flow", i, "rtt"): TOO_SHORT for i in short}
            elif not any(key == "rtt" for _, _, key in notes) or rtt > LONGEST_GUESSED_RTT:
                raise  # no RTT is a guess, or the guess is as large as is allowed
            else:  # the guessed RTT is less than the transmission times on this link
                rtt *= 2.0
        for kind, i, key in notes:
            table[kind][i][key] = CAPACITY if key == "capacity" else write(rtt, "time")


def _without_rtts(table: dict[str, Any], trace: Trace) -> list[int]:
    """The indices of the flows in ``table`` whose RTTs the trace does not tell."""
    rtts = estimate(trace).rtt
    return [i for i, flow in enumerate(table["flow"]) if flow["match"] not in rtts]


def _with_short_rtts(table: dict[str, Any], trace: Trace, flow: int) -> list[int]:
    """The indices of the flows in ``table`` whose RTTs in the trace are probably too short.

    The RTT of ``flow`` in the trace is too short: less than the transmission times on its path.
    RTTs up to twice as long are then taken to be too short as well.  This saves time, because the
    flows with these RTTs need not be tested one by one.
    """
    rtts = estimate(trace).rtt
    known = [(i, rtts[f["match"]]) for i, f in enumerate(table["flow"]) if f["match"] in rtts]
    most = 2.0 * rtts[table["flow"][flow]["match"]].value
    return [i for i, rtt in known if rtt.value <= most]


def _left_out(trace: Trace, flows: list[dict[str, Any]], idle: Mapping[str, str]) -> str:
    """Comments for the scenario file: the tables of up to ``MAX_FLOWS`` flows with little to send.

    ``idle`` maps the names of these flows to the reasons.
    """
    rtts, text = estimate(trace).base_rtt if idle else {}, ""
    for name in list(idle)[:MAX_FLOWS]:
        table = dict(flows[trace.flows.index(name)])
        rtt = rtts[name].value if name in rtts else RTT
        table["rtt"] = write(float(f"{rtt:.6g}"), "time")
        lines = toml_file.write({"flow": [table]}).splitlines()
        reason = f"Left out (delete the # to put it back): it {idle[name]}."
        text += "\n" + "".join(f"# {line}".rstrip() + "\n" for line in [reason, *lines])
    return text


def _flows(trace: Trace, packet_size: str | None) -> list[dict[str, Any]]:
    """Tables ``[[flow]]`` of the scenario file, one for each flow of the trace.

    A table has a ``packet_size`` if it differs from that of the file.

    The flows keep their names if each name begins with a letter, has only letters, digits, hyphens
    and underscores, and is at most 100 characters long. Otherwise the names may be addresses with
    ports, which are hard to read. Each flow is then named after its congestion control and its
    number in the trace, such as ``cubic-2``. The trace may not tell a flow's congestion control, or
    tell one that this package does not have. The table then says ``reno``, which the user may
    change, and the flow gets a name such as ``flow-2``. But a flow of an ns-2 trace that sends no
    SYN, although other flows do, is taken to run Vegas.
    """
    firsts, end = trace.known("first"), float(trace.edges[-1])
    windows, delays, stops = first_windows(trace), ack_delays(trace), ends_early(trace)
    sizes, at_once = sizes_of(trace), sent_at_once(trace)
    without_syns = without_syn(trace)
    stack = trace.provenance.get("variant", trace.engine)  # a simulated trace names its stack
    named = all(re.fullmatch(r"[A-Za-z][\w-]{,99}", name) for name in trace.flows)
    flows = []
    for i, flow in enumerate(trace.flows):
        law = trace.controls.get(flow)
        law = law if law in laws.names() else None
        if flow in without_syns and flow not in trace.controls:
            law = NS2_235.own_packets[0]
        name = flow if named else f"{law or 'flow'}-{i + 1}"
        entry: dict[str, Any] = {"name": name, "law": law or "reno"}
        if stack in STACKS and STACKS[stack].laws is None:  # a stack that has every law
            entry["variant"] = stack
        first = 0.0 if firsts is None else float(firsts[i])
        if 0.0 < first < end:
            entry["start"] = _seconds_as_text(first)
        if flow in stops and max(first, 0.0) < stops[flow]:
            entry["stop"] = _seconds_as_text(stops[flow])
        if flow in windows:
            entry["initial_window"] = f"{windows[flow]:g} pkt"
        if sizes[i] not in (None, packet_size):
            entry["packet_size"] = sizes[i]
        if flow in delays:
            entry["delayed_ack"] = delays[flow].delayed
        if flow in at_once:
            entry["send_jitter"] = "0 s"
        flows.append(entry | {"match": flow})
    return flows


def _seconds_as_text(time: float) -> str:
    """A time in s as text, rounded to microseconds, the resolution of most traces."""
    return f"{time:.6f}".rstrip("0").rstrip(".") + " s"


def _written(entry: Filled, packet_size: float) -> tuple[str | float, str]:
    """An estimate as text for the scenario file, and the text of its comment.

    ``entry`` is the estimate of one key. ``packet_size``, in bytes, is the size of the packets in
    which a capacity is counted.

    The estimate is a number if it has no unit. Otherwise both texts use the same unit, which is ms
    for a time below 1 s. The comment has the range of values that agree with the trace. Its ends
    have four digits, or up to six if the estimate would not lie between them otherwise. The comment
    has no range if both ends are written alike, or if a finite estimate has no upper end and is not
    that of beta. If the value is a default, the comment says only this.
    """
    scale, unit = (1e3, "ms") if entry.unit == "s" and entry.value < 1.0 else (1.0, entry.unit)
    value, low, high = (scale * each for each in (entry.value, entry.low, entry.high))
    if entry.key.endswith(".buffer") and math.isfinite(value):
        value = max(1.0, round(value))  # a queue holds whole packets
    rounded = f"{_rounded(value, low, high)!r}".removesuffix(".0")
    text: str | float = f"{rounded} {unit}" if math.isfinite(value) else "inf"
    text = text if unit else float(rounded)
    if entry.how == DEFAULT:
        return text, entry.how
    for digits in (4, 5, 6):  # the value has at most 6 digits, too
        ends = [f"{end:.{digits}g}" for end in (low, high)]
        if float(ends[0]) <= float(rounded) <= float(ends[1]):
            break
    ends = list(dict.fromkeys(ends))
    range_text = "" if len(ends) == 1 else f", {' to '.join(ends)} {unit}".rstrip()
    if math.isinf(high):  # ``how`` says that the value may be larger
        open_end = math.isinf(value) or entry.key.endswith(".beta")
        range_text = f", at least {low:.4g} {unit}" if open_end else ""
    note = f"estimate{range_text}: {entry.how}"
    if entry.key.endswith(".capacity"):
        note += f"; packets of {packet_size:g} B"
    return text, note


def _never_full_buffer(entry: Filled, scenario: Scenario, note: str) -> tuple[str, str]:
    """The value for a buffer that was never full in the trace, and its comment.

    If no flow grows until it loses a packet, the value is infinite, and the comment is ``note``.
    Otherwise a window would grow for ever at an infinite buffer, so the value is a guess: 1 BDP
    (capacity times mean RTT), or the longest queue in the trace if that was longer.
    """
    if not any(group.grows_until_loss for group in scenario.flows):
        return "inf", note
    if entry.how == DEFAULT:
        return "1 BDP", GUESS
    bdp = scenario.links[0].capacity * np.mean([m.rtt for m in scenario.members])
    text = "1 BDP" if entry.low <= bdp else f"{math.ceil(entry.low)} pkt"
    how = entry.how.removesuffix(", so the default")
    return text, f"a guess: the trace only tells that it is at least {entry.low:.4g} pkt: {how}"


def _rounded(value: float, low: float, high: float) -> float:
    """An estimate from a trace, rounded to as few digits as its accuracy allows: 3, 4, 5 or 6.

    Any value from ``low`` to ``high`` would agree with the trace. The result has the fewest digits
    of 3, 4 and 5 that meet two conditions. The rounded value lies from ``low`` to ``high``. And it
    differs from the estimate by at most a tenth of ``high - low``, or not at all if ``high`` is
    infinite. If no number of digits meets both conditions, the result has 6 digits.
    """
    allowed_error = (high - low) / 10.0 if math.isfinite(high - low) else 0.0
    for digits in range(3, 6):
        shorter = float(f"{value:.{digits}g}")
        if abs(shorter - value) <= allowed_error and low <= shorter <= high:
            return shorter
    return float(f"{value:.6g}")


def _split_key(key: str) -> tuple[str, int, str] | None:
    """Split a key such as ``link[0].buffer`` into ``("link", 0, "buffer")``.

    Returns ``None`` for a key of another form.
    """
    head, dot, attribute = key.partition("].")
    kind, bracket, number = head.partition("[")
    return (kind, int(number), attribute) if dot and bracket else None


def _commented(text: str, notes: Notes) -> str:
    """The text of a scenario file with the comments ``notes`` at the ends of its lines."""
    lines, kind, count = [], "", {"link": -1, "flow": -1}
    for line in text.splitlines():
        if line.startswith("[["):
            kind = line.strip("[]")
            count[kind] += 1
        elif line.startswith("["):
            kind = ""
        note = notes.get((kind, count.get(kind, 0), line.partition(" = ")[0]))
        lines.append(f"{line}  # {note}" if note else line)
    return "\n".join(lines) + "\n"
