"""Makes a copy of a scenario with some keys changed, as if its scenario file had been edited."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from vegasmodel.fields.checked import evolve
from vegasmodel.fields.rules import nearest
from vegasmodel.fields.units import FieldError

__all__ = ["replaced"]


T = TypeVar("T")
Parts = tuple[tuple[Any, ...], tuple[Any, ...]]


def replaced(scenario: T, given: Parts, changes: Mapping[str, Any], fields: Mapping[str, Any]) -> T:
    """The implementation of ``Scenario.replace``; see there for ``changes`` and ``fields``.

    ``given`` holds the links and the groups of flows as the user gave them, before text with units
    such as "1 BDP" was converted to numbers.
    """
    if not isinstance(changes, Mapping):
        raise FieldError("changes", changes, 'a mapping such as {"link.buffer": 20}')
    for name in changes:
        if not isinstance(name, str):
            raise FieldError("changes", name, "keys are text such as link.buffer")
    links, flows = given
    whole: Any = scenario
    inner = {"link": links[0], "flow": flows[0], "run": whole.run}
    for name in (*changes, *fields):
        if name not in _keys(scenario) and (found := _places(name, inner)):
            raise FieldError(name, name, f"did you mean {found}?", wrong="is no key of a scenario")
    tree: dict[Any, Any] = {}  # ("link", 0) -> attribute -> new value, or a tree of inner changes
    for name, value in changes.items():
        head, _, rest = name.partition(".")
        if head in ("link", "flow") and rest:
            parts: Sequence[Any] = links if head == "link" else flows
            places, key = _addressed(parts, rest, name)
            for i in places:
                _set_nested(tree.setdefault((head, i), {}), parts[i], key, name, value)
        else:
            _set_nested(tree, scenario, name, name, value)
    for key in fields:
        _attribute(scenario, key, key)
    own = {
        "links": tuple(_grown(x, tree.pop(("link", i), {}), "link") for i, x in enumerate(links)),
        "flows": tuple(_grown(x, tree.pop(("flow", i), {}), "flow") for i, x in enumerate(flows)),
    }
    grown: T = _grown(scenario, own | tree | dict(fields), "")
    return grown


def _addressed(parts: Sequence[Any], rest: str, name: str) -> tuple[Sequence[int], str]:
    """Find out which links or groups to change, and which of their keys.

    ``parts`` are all links or all groups.  ``rest`` says what to change: ``buffer`` stands for the
    buffers of all links, and ``uplink.buffer`` for that of the link named ``uplink``.  Returns the
    indices of the links or groups, and the key.

    Raises ``FieldError`` if there is no such key, link or group. The error names the whole of what
    to change (``name``), and shows its first part, which is neither a key nor a link or group.
    """
    keys = [field.metadata["key"] or field.name for field in dataclasses.fields(parts[0])]
    if rest.split(".")[0] in keys:
        return range(len(parts)), rest
    named = [i for i, part in enumerate(parts) if rest.startswith(f"{part.name}.")]
    if not named:
        kind, wrong = name.split(".")[0], rest.split(".")[0]
        near = nearest(wrong, [*keys, *(part.name for part in parts)])
        said = f"is neither a key nor the name of a {kind}"
        raise FieldError(name, wrong, f"{kind}.KEY or {kind}.NAME.KEY{near}", wrong=said)
    longest = max(named, key=lambda i: len(parts[i].name))  # a name may hold dots
    return [longest], rest[len(parts[longest].name) + 1 :]


def _set_nested(tree: dict[Any, Any], part: Any, key: str, name: str, value: Any) -> None:
    key, _, inner = key.partition(".")
    attribute = _attribute(part, key, name)
    if not inner:
        tree[attribute] = value
        return
    held = getattr(part, attribute)
    if not dataclasses.is_dataclass(held):
        raise FieldError(name, value, f"{name.removesuffix(f'.{inner}')} has no keys of its own")
    _set_nested(tree.setdefault(attribute, {}), held, inner, name, value)


def _grown(part: Any, tree: Mapping[Any, Any], where: str) -> Any:
    """A copy of the dataclass ``part`` with changed attributes.

    ``tree`` maps the names of attributes to their new values.  If an attribute is itself a
    dataclass, a mapping changes some of its attributes: ``{"queue": {"weight": 0.01}}`` changes
    only the weight of the queue.  ``where`` is the place of ``part`` for error messages.
    """
    changes = {
        key: _grown(getattr(part, key), value, f"{where}.{key}".lstrip("."))
        if isinstance(value, Mapping) and dataclasses.is_dataclass(getattr(part, key))
        else value
        for key, value in tree.items()
    }
    return evolve(part, changes, where) if changes else part


def _attribute(part: Any, key: str, name: str) -> str:
    """The name of the attribute of ``part`` that holds the value of ``key`` in a scenario file.

    ``key`` may also be the attribute's name itself. Raises ``FieldError`` for an unknown key; the
    error calls the field ``name``.
    """
    known = _keys(part)
    if key not in known:
        raise FieldError(name, key, f"no such key{nearest(key, list(known))}")
    return known[key]


def _keys(part: Any) -> dict[str, str]:
    """A dictionary from the keys of ``part`` in a scenario file to its attributes' names.

    It also maps the name of each attribute to itself.  For example, the attribute ``service`` of a
    flow is found by its key ``class`` and by ``service``.
    """
    return {
        key: field.name
        for field in dataclasses.fields(part)
        for key in (field.metadata["key"] or field.name, field.name)
    }


def _places(name: str, parts: Mapping[str, Any]) -> str:
    """The full names of the keys called ``name``, as text: for example "link.buffer".

    The text is empty if no part of the scenario has such a key.
    """
    return " or ".join(f"{place}.{name}" for place, part in parts.items() if name in _keys(part))
