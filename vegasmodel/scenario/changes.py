"""Makes a copy of a scenario with some keys changed, as if its scenario file had been edited."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from vegasmodel.fields.checked import evolve
from vegasmodel.fields.errors import NO_KEY, FieldError
from vegasmodel.fields.lists import few
from vegasmodel.fields.rules import instead, nearest

__all__ = ["replaced", "with_thresholds"]


T = TypeVar("T")
GivenParts = tuple[tuple[Any, ...], tuple[Any, ...]]  # links and groups as the user gave them
THRESHOLDS = ("alpha", "beta", "gamma")
TWICE = "is given twice"  # what is wrong with a key, in an error message
AttributePath = tuple[str | int, ...]  # ("flows", 0, "alpha") leads to the alpha of the first group


class _Change(NamedTuple):
    """A new value of an attribute, and the key (``name``) for which the user gave it.

    ``single`` is false if the key changes all links or all groups of flows, as ``flow.rtt`` does.
    It is true for all other keys: those that change one link or group, as ``flow.NAME.rtt`` does,
    and those of the scenario itself, such as ``run.seed``.
    """

    name: str
    value: Any
    single: bool = True


class _Tree(dict[Any, Any]):
    """The changes to an object, such as a scenario: new values by the names of its attributes.

    If only a part of an attribute changes, such as one of the links, the value is another tree.
    """


def replaced(
    scenario: T, given: GivenParts, changes: Mapping[str, Any], fields: Mapping[str, Any]
) -> T:
    """Copy a scenario with changes; ``Scenario.replace`` explains ``changes`` and ``fields``.

    ``given`` holds the links and the groups of flows as the user gave them, before text with units
    such as "1 BDP" was converted to numbers.
    """
    if not isinstance(changes, Mapping):
        raise FieldError("changes", changes, 'a mapping such as {"link.buffer": 20}')
    for name in changes:
        if not isinstance(name, str):
            raise FieldError("changes", name, 'every key is text, such as "link.buffer"')
    _refuse_almost_right((*changes, *fields), scenario, given)
    wanted = _wanted_changes(scenario, given, changes, fields)
    whole: Any = scenario
    _keep_one_threshold(wanted, whole.flows)
    tree = _tree(wanted)
    links, flows = given
    # copy the links and groups as the user gave them, each with its own changes
    for key, parts in (("links", links), ("flows", flows)):
        by_index = tree.get(key, _Tree())
        if isinstance(by_index, _Tree):  # otherwise ``fields`` gave the whole tuple anew
            tree[key] = tuple(
                _changed_copy(part, by_index.get(i, _Tree()), key[:-1])
                for i, part in enumerate(parts)
            )
    try:
        changed: T = _changed_copy(scenario, tree, "")
    except FieldError as error:
        # the error names an attribute of the scenario; name the key that the user gave for it
        known = _keys(scenario)
        names_of_it = [
            n for n in (*changes, *fields) if n in known and known[n] == known.get(error.field)
        ]
        raise error.of(names_of_it[0]) if names_of_it else error from None
    return changed


def _refuse_almost_right(names: Sequence[str], scenario: Any, given: GivenParts) -> None:
    """Raise ``FieldError`` for a key that is almost right; the error says what the user meant.

    There are two such cases: "buffer" in place of "link.buffer", and "flow[0].rtt" in place of
    "flow.vegas.rtt".
    """
    links, flows = given
    examples = {"link": links[0], "flow": flows[0], "run": scenario.run}
    for name in names:
        if name in _keys(scenario):
            continue
        meant = _name_for_index(name, {"link": links, "flow": flows})
        meant = meant or _keys_with_table(name, examples)
        if meant:
            raise FieldError(name, name, f"did you mean {meant}?", wrong="is no key of a scenario")


def _wanted_changes(
    scenario: Any, given: GivenParts, changes: Mapping[str, Any], fields: Mapping[str, Any]
) -> dict[AttributePath, _Change]:
    """Each new value that the user wants, by the path to its attribute in the scenario.

    ``changes`` has new values by keys of the scenario file. A key such as ``flow.rtt`` gives a new
    value for each group of flows. ``fields`` has new values of whole attributes of the scenario,
    such as ``run``. ``given`` has the links and the groups of flows as the user wrote them.
    """
    wanted: dict[AttributePath, _Change] = {}
    for name, value in changes.items():
        part, _, within = name.partition(".")
        if part in ("link", "flow") and within:
            parts = given[0] if part == "link" else given[1]
            indices, key, single = _find_parts(parts, within, name)
            for i in indices:
                path: AttributePath = (f"{part}s", i, *_attribute_path(parts[i], key, name, value))
                _add_change(wanted, path, _Change(name, value, single))
        else:
            _add_change(wanted, _attribute_path(scenario, name, name, value), _Change(name, value))
    for key, value in fields.items():
        _add_change(wanted, (_attribute(scenario, key, key),), _Change(key, value))
    return wanted


def with_thresholds(groups: Sequence[Any]) -> tuple[int, ...]:
    """The indices of the groups of flows that a change of ``flow.alpha`` applies to.

    These are the groups with a delay-based congestion control, such as Vegas. If there are none,
    the change applies to all groups. The same holds for ``flow.beta`` and ``flow.gamma``.
    """
    found = tuple(i for i, group in enumerate(groups) if group.delay_based)
    return found or tuple(range(len(groups)))


def _add_change(wanted: dict[AttributePath, _Change], path: AttributePath, change: _Change) -> None:
    """Add ``change`` to ``wanted``, the changes that the user wants.

    ``path`` leads to the attribute that changes: ``("flows", 0, "alpha")`` is the alpha of the
    first group.  ``wanted`` may have a change of this attribute already.  Then a key of one link or
    group, such as ``flow.NAME.rtt``, overrides a key of all of them, such as ``flow.rtt``, in
    whatever order the two are given.  Raises ``FieldError`` if neither key overrides the other.
    """
    earlier = wanted.get(path)
    if earlier is not None and earlier.single == change.single:
        raise FieldError("changes", change.name, f"{earlier.name} sets it, too", wrong=TWICE)
    if earlier is None or change.single:
        wanted[path] = change


def _keep_one_threshold(wanted: dict[AttributePath, _Change], groups: Sequence[Any]) -> None:
    """Let beta change with alpha in each group of flows that has alpha = beta.

    A user who sets alpha = beta means a single threshold, so both change together.  If the user
    also gives a new beta, that value is used instead.
    """
    for i, group in enumerate(groups):
        alpha = wanted.get(("flows", i, "alpha"))
        if alpha is not None and group.one_threshold:
            wanted.setdefault(("flows", i, "beta"), alpha)


def _tree(wanted: Mapping[AttributePath, _Change]) -> _Tree:
    """Collect all changes in one tree, from the whole scenario down to single attributes.

    Raises ``FieldError`` if one change sets a part of what another sets as a whole, as ``run.seed``
    does beside ``run``.
    """
    tree = _Tree()
    for path, change in wanted.items():
        for n in range(1, len(path)):
            if path[:n] in wanted:
                within = f"{wanted[path[:n]].name} sets it, too"
                raise FieldError("changes", change.name, within, wrong=TWICE)
        node = tree
        for step in path[:-1]:
            node = node.setdefault(step, _Tree())
        node[path[-1]] = change.value
    return tree


def _find_parts(parts: Sequence[Any], rest: str, name: str) -> tuple[Sequence[int], str, bool]:
    """Find out which links or groups a user wants to change, and which of their keys.

    ``parts`` are all links or all groups.  ``rest`` is the user's key without its first word,
    ``link`` or ``flow``: ``buffer`` stands for the buffers of all links, and ``uplink.buffer`` for
    that of the link named ``uplink``.  Returns the indices of the links or groups, the key of each
    that changes (``buffer``), and whether ``rest`` names a single link or group.

    Raises ``FieldError`` if there is no such key, link or group. The error shows ``name``, which is
    the key as the user gave it, and the unknown word in ``rest``.
    """
    keys = [field.metadata["key"] or field.name for field in dataclasses.fields(parts[0])]
    if rest in THRESHOLDS and rest in keys:
        return with_thresholds(parts), rest, False
    if rest.split(".")[0] in keys:
        return range(len(parts)), rest, False
    named = [i for i, part in enumerate(parts) if rest.startswith(f"{part.name}.")]
    if not named:
        kind, wrong = name.split(".")[0], rest.split(".")[0]
        names = [part.name for part in parts]
        near = nearest(wrong, [*keys, *names]) or f"; NAME is {few(names)}"
        text = f"is neither a key nor the name of a {kind}"
        raise FieldError(name, wrong, f"{kind}.KEY or {kind}.NAME.KEY{near}", wrong=text)
    longest = max(named, key=lambda i: len(parts[i].name))  # a name may hold dots
    return [longest], rest[len(parts[longest].name) + 1 :], True


def _attribute_path(part: Any, key: str, name: str, value: Any) -> tuple[str, ...]:
    """The names of the attributes that lead from ``part`` to the value of ``key``.

    For the key ``queue.weight`` of a link they are ``("queue", "weight")``. Error messages show
    ``name``, the key as the user gave it, and ``value``, its new value.
    """
    key, _, inner = key.partition(".")
    attribute = _attribute(part, key, name)
    if not inner:
        return (attribute,)
    held = getattr(part, attribute)
    if not dataclasses.is_dataclass(held):
        whole = name.removesuffix(f".{inner}")
        raise FieldError(name, inner, f"{whole} is a single value", wrong=NO_KEY)
    return (attribute, *_attribute_path(held, inner, name, value))


def _changed_copy(part: Any, tree: _Tree, where: str) -> Any:
    """A copy of the dataclass object ``part`` with the changes of ``tree``.

    ``where`` is the place of ``part`` in the scenario, such as ``link.queue``, for error messages.
    """
    changes = {
        key: _changed_copy(getattr(part, key), value, f"{where}.{key}".lstrip("."))
        if isinstance(value, _Tree)
        else value
        for key, value in tree.items()
    }
    try:
        return evolve(part, changes, where) if changes else part
    except FieldError as error:
        # a new alpha above the old beta is refused as a wrong beta, which the user did not give
        if error.field != "flow.beta" or "beta" in tree or "alpha" not in tree:
            raise
        remedy = f"{error.allowed}; if beta = alpha in the scenario, a change of alpha changes both"
        raise FieldError(error.field, error.value, remedy, wrong=error.wrong) from None


def _attribute(part: Any, key: str, name: str) -> str:
    """The name of the attribute of ``part`` that holds the value of ``key`` in a scenario file.

    ``key`` may also be the attribute's name itself. Raises ``FieldError`` for an unknown key.
    ``name`` is the field's name in the error.
    """
    known = _keys(part)
    if key not in known:
        raise FieldError(name, key, instead(key, list(known)), wrong=NO_KEY)
    return known[key]


def _keys(part: Any) -> dict[str, str]:
    """A dictionary from the keys of ``part`` in a scenario file to the names of its attributes.

    It also maps the name of each attribute to itself.  For example, the keys ``class`` and
    ``service`` of a flow both give the attribute ``service``.
    """
    return {
        key: field.name
        for field in dataclasses.fields(part)
        for key in (field.metadata["key"] or field.name, field.name)
    }


def _name_for_index(name: str, parts: Mapping[str, Sequence[Any]]) -> str:
    """A key in which the name of a link or group replaces its index, for a hint in an error.

    For "flow[0].rtt" it is "flow.vegas.rtt", which users must write. They may have copied the index
    from ``FieldError.field``. The text is empty if ``name`` has no valid index of a link or group.
    ``parts`` has the links under the key "link", and the groups under "flow".
    """
    match = re.fullmatch(r"(link|flow)s?\[(\d{1,4})\]\.(.+)", name)
    if match is None:
        return ""
    kind, index, key = match.groups()
    named = parts[kind]
    return f"{kind}.{named[int(index)].name}.{key}" if int(index) < len(named) else ""


def _keys_with_table(name: str, parts: Mapping[str, Any]) -> str:
    """The full key for a key whose table is missing, for a hint: "link.buffer" for "buffer".

    ``parts`` has an example of each table: a link, a group and the run. If several tables have the
    key ``name``, the text names them all. It is empty if none has it.
    """
    return " or ".join(f"{table}.{name}" for table, part in parts.items() if name in _keys(part))
