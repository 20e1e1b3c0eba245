"""Reads flows that are written as text on the command line, such as ``vegas:alpha=3,beta=3``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from vegasmodel import laws
from vegasmodel.fields import checked
from vegasmodel.fields.errors import FieldError
from vegasmodel.scenario import Flow, Link, Scenario

# forms of the texts that a user may write for a flow
_WHOLE = re.compile(r"[+-]?\d+")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_SEVERAL = re.compile(r"([1-9]\d{0,5}) ?[x*]? ?([A-Za-z].*)")  # such as 2xvegas
_KEY_AFTER_COLON = re.compile(r":\s*[a-z_]+\s*=")  # a second colon, where a comma is needed


def parse_flow(text: str, **defaults: Any) -> dict[str, Any]:
    """Read a flow from text such as ``vegas:alpha=3,beta=3``.

    The text has the form ``law[:key=value,...]``. The result is a dictionary with the keys that a
    flow has in a scenario file. ``defaults`` gives the values of keys that the text lacks. Raises
    ``FieldError`` for an option without ``=`` or a key given twice; the values are not checked.
    """
    law, _, options = text.partition(":")
    several = _SEVERAL.fullmatch(law.strip())
    if several and laws.known(several[2]) and not laws.known(law.strip()):
        raise FieldError("flow", text, f'write "{several[2]}:count={several[1]}"')
    if law.strip().isdecimal() and not laws.known(law.strip()):  # as in "ratio 2 vegas"
        message = f'a law; for several flows write "vegas:count={law.strip()}"'
        raise FieldError("flow", text, message)
    given: dict[str, Any] = {"law": law.strip()}
    for option in filter(None, (part.strip() for part in options.split(","))):
        key, equals, value = (part.strip() for part in option.partition("="))
        if not equals:
            raise FieldError(
                "flow", option, 'key=value after the law, as in "vegas:alpha=3,beta=3"'
            )
        if _KEY_AFTER_COLON.search(value):
            allowed = 'a comma before the second key, as in "vegas:alpha=3,beta=3"'
            raise FieldError("flow", text, allowed)
        if key in given:
            raise FieldError("flow", text, f"each key once; {key} is given twice")
        given[key] = _value(value)
    return {**defaults, **given}


def _value(text: str) -> object:
    """A value as TOML would read it: true, false or a number; anything else stays text."""
    if text in ("true", "false"):
        return text == "true"
    if _WHOLE.fullmatch(text) and len(text) < 19:
        return int(text)
    if _NUMBER.fullmatch(text) and len(text) < 60:
        return float(text)
    return text


def scenario_from_options(
    flows: Sequence[str], *, capacity: str, rtt: str, buffer: str, packet_size: str, loss: str
) -> Scenario:
    """The one-link scenario of the command ``vegasmodel ratio``, from the command's options.

    Each argument is the text of an option, such as "1080 pkt/s", and ``flows`` are the flows as the
    user writes them, such as "vegas:alpha=3".

    If several flows have the same name, the later ones get a suffix: ``-2``, ``-3``, ... If the
    RTT is too short for the link, the error names ``--rtt``, unless the flow has an RTT of its own.
    """
    tables = [parse_flow(text, rtt=rtt) for text in flows]
    count_of_name: dict[str, int] = {}
    for table in tables:
        name = str(table.get("name", table["law"]))
        count_of_name[name] = count_of_name.get(name, 0) + 1
        if count_of_name[name] > 1:
            table["name"] = f"{name}-{count_of_name[name]}"
    # Read each option under its own name first, so that an error names the option.
    size = checked.of(Scenario, "packet_size").read(packet_size, "--packet-size", 1.0)
    for key, value in (("capacity", capacity), ("buffer", buffer), ("loss", loss)):
        checked.of(Link, key).read(value, f"--{key}", size)
    checked.of(Flow, "rtt").plain.read(rtt, "--rtt", size)
    link = {"capacity": capacity, "buffer": buffer, "loss": loss}
    table = {"name": "ratio", "packet_size": packet_size, "link": [link], "flow": tables}
    try:
        return Scenario.from_dict(table)
    except FieldError as error:
        of_option = {f"flow[{i}].rtt" for i, f in enumerate(flows) if "rtt" not in parse_flow(f)}
        if isinstance(error.value, bool):  # the user wrote true or false, as in TOML
            said = str(error.value).lower()
            raise FieldError(error.field, said, error.allowed, wrong=error.wrong) from None
        if error.field not in of_option:
            raise
        raise FieldError("--rtt", rtt, error.allowed) from None
