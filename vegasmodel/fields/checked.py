"""Reads, checks, copies and writes objects whose fields each have a rule.

Parts of a scenario are such objects, for example a ``Link`` and a ``Flow``.  The rule of a field
says how its value is read, which values are allowed, and how the value is written.  ``read`` makes
an object from a TOML table.  ``check`` tests an object that was made in Python.  ``evolve`` makes a
copy with other values in some fields.  ``write_table`` makes a TOML table from an object.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, ClassVar, Self, TypeVar, cast

from vegasmodel.fields.errors import MISSING, NO_KEY, FieldError, without_rounding_error
from vegasmodel.fields.rules import Quantity, Rule, Unresolved, instead, is_time_span

T = TypeVar("T")


@functools.cache
def _fields(cls: type[Any]) -> Mapping[str, dataclasses.Field[Any]]:
    """The fields of a dataclass by their names, found only once for each dataclass."""
    return {field.name: field for field in dataclasses.fields(cls)}


@dataclasses.dataclass(frozen=True)
class Table:
    """Reads, checks and writes a field that is a TOML table in a file and a dataclass in Python.

    ``cls`` is the dataclass. ``Rule`` explains the arguments of the methods.
    """

    cls: type[Any]

    def read(self, value: object, where: str, packet_size: float | None) -> Any:
        """Make an object of the dataclass from a TOML table, by the rules of its fields."""
        return read(self.cls, value, where, packet_size)

    def check(self, value: Any, where: str) -> None:
        """Raise ``FieldError`` unless the value is an object of the dataclass ``cls``.

        Such an object checked its own fields when it was made, so they are not checked again.
        """
        if not isinstance(value, self.cls):
            raise FieldError(where, value, f"a {self.cls.__name__}")

    def write(self, value: Any) -> Any:
        """Convert the object to a TOML table; fields that hold their default are left out."""
        return write_table(value)


@dataclasses.dataclass(frozen=True)
class Tables:
    """Reads, checks and writes a list of TOML tables, such as all ``[[flow]]`` of a scenario file.

    In Python the list is a tuple of objects of the dataclass ``cls``. ``Rule`` explains the
    arguments of the methods.
    """

    cls: type[Any]

    def read(self, value: object, where: str, packet_size: float | None) -> tuple[Any, ...]:
        """Make a tuple of objects of the dataclass from a list of tables.

        An entry that already is such an object is not changed. An error's attribute ``field`` has
        the entry's index, counted from 0: ``flow[1]`` is the second flow. Its message counts from 1
        (``errors.in_words``). ``where`` is the field's name for an error.
        """
        if not isinstance(value, Sequence) or isinstance(value, str):
            heading = re.sub(r"\[\d+\]", "", where)  # link.drops, if the field is link[0].drops
            hint = f": write [[{heading}]], not [{heading}]" if isinstance(value, Mapping) else ""
            raise FieldError(where, value, f"a list of tables{hint}")
        return tuple(
            row if isinstance(row, self.cls) else read(self.cls, row, f"{where}[{i}]", packet_size)
            for i, row in enumerate(value)
        )

    def check(self, value: Any, where: str) -> None:
        """Raise ``FieldError`` unless the value is a tuple of objects of the dataclass ``cls``."""
        if not isinstance(value, tuple) or not all(isinstance(row, self.cls) for row in value):
            raise FieldError(where, value, f"a list of {self.cls.__name__}")

    def write(self, value: Any) -> list[Any]:
        """Convert the tuple of objects to a list of TOML tables."""
        return [write_table(row) for row in value]


@dataclasses.dataclass(frozen=True)
class OneOf:
    """Reads, checks and writes a field whose value may be a number, a word or a TOML table.

    A number is allowed only if ``plain`` is given, a word only with ``word``, and a table only with
    ``table`` or ``tagged``. ``Rule`` explains the arguments of the methods.

    - ``plain``: the rule for a number.
    - ``word``: the only word that is allowed.
    - ``table``: the rule for a table.
    - ``tagged``: for tables with a single key, such as ``{ pareto = {...} }``. It maps each allowed
      key to the rule for the key's value.
    - ``for_list``: the text of the error if the value is a list, which is never allowed. The text
      says which values are allowed.
    """

    plain: Rule | None = None
    word: str | None = None
    table: Table | None = None
    tagged: Mapping[str, Rule] = dataclasses.field(default_factory=dict)
    for_list: str = ""

    def read(self, value: object, where: str, packet_size: float | None) -> Any:
        """Read the value by the rule for its kind: a number, a word or a table.

        A text that is not the allowed word is read as a number, because a number may be written
        with a unit, such as "80 ms". A table with a single key that ``tagged`` knows is read by the
        rule for this key. Raises ``FieldError`` if no rule is for the value, or if its rule refuses
        it. ``where`` is the field's name for an error.
        """
        if isinstance(value, Mapping):
            if self.table is not None:
                return self.table.read(value, where, packet_size)
            for key, rule in self.tagged.items():
                if tuple(value) == (key,):
                    return rule.read(value[key], _join(where, key), packet_size)
        elif self.for_list and isinstance(value, list):
            raise FieldError(where, value, self.for_list)
        elif self._is_word(value):
            return value
        elif self.plain is not None:
            return self._number(self.plain, value, where, packet_size)
        raise FieldError(where, value, self._allowed())

    def check(self, value: Any, where: str) -> None:
        """Raise ``FieldError`` unless one of the rules (number, word, table) allows the value.

        ``where`` is the field's name for an error.
        """
        if self._is_word(value):
            return
        if isinstance(value, Real) and self.plain is not None:
            self.plain.check(value, where)
            return
        for rule in (*self.tagged.values(), *([self.table] if self.table else [])):
            try:
                rule.check(value, where)
            except FieldError:
                continue
            return
        raise FieldError(where, value, self._allowed())

    def write(self, value: Any) -> Any:
        """Convert the value to a number, text or a TOML table for a scenario file."""
        if self.plain is not None and isinstance(value, (int, float, Unresolved)):
            return self.plain.write(value)
        if self.table is not None and isinstance(value, self.table.cls):
            return self.table.write(value)
        key = self.tag(value)
        return {key: self.tagged[key].write(value)} if key else value

    def tag(self, value: Any) -> str:
        """The key of ``tagged`` whose rule makes such objects, or an empty text."""
        rules = self.tagged.items()
        made = (key for key, r in rules if isinstance(r, Table) and isinstance(value, r.cls))
        return next(made, "")

    def _number(self, plain: Rule, value: object, where: str, packet_size: float | None) -> Any:
        """Read a number by the rule ``plain``; an error also names the allowed word."""
        try:
            return plain.read(value, where, packet_size)
        except FieldError as error:
            if self.word is None:
                raise
            allowed = f'{error.allowed}; or "{self.word}"'
            raise FieldError(where, value, allowed, wrong=error.wrong) from None

    def _is_word(self, value: Any) -> bool:
        """Whether the value is the allowed word."""
        return self.word is not None and value == self.word

    def _allowed(self) -> str:
        """The forms of a value that are allowed, for an error message."""
        forms = [f'"{self.word}"'] if self.word else []
        if self.plain is not None:
            forms.append("a single value")
        if self.table is not None:
            keys = ", ".join(f"{f.name} = ..." for f in dataclasses.fields(self.table.cls))
            forms.append(f"{{ {keys} }}")
        forms += [f"{{ {key} = ... }}" for key in self.tagged]
        return " or ".join(forms)


def declare(rule: Rule, default: Any = dataclasses.MISSING, *, key: str | None = None) -> Any:
    """Declare a field of a dataclass, with the rule for its values.

    ``key`` is the field's name in a scenario file, if it differs from the name in Python. A field
    without a default is required: ``check`` refuses an object in which it was not given.
    """
    required = default is dataclasses.MISSING
    metadata = {"rule": rule, "key": key, "required": required}
    return dataclasses.field(default=None if required else default, metadata=metadata)


def of(cls: type[Any], field: str) -> Any:
    """The rule that the dataclass ``cls`` declares for its field ``field``."""
    return cls.__dataclass_fields__[field].metadata["rule"]


def check(instance: Any) -> None:
    """Convert every field of the dataclass object ``instance``, and check it against its rule.

    NumPy's numbers and arrays are first replaced by Python's numbers and lists. Text, lists and
    tables are converted like those of a scenario file: ``"80 ms"`` becomes 0.08. Text that cannot
    be converted without a packet size or an RTT stays text (``Unresolved``) and is not checked. In
    a field for a quantity, a whole number becomes a float. A field is skipped if its default is
    ``None`` and it was not given. Raises ``FieldError`` for a value that the field's rule refuses.
    """
    for field in _fields(cast("Any", type(instance))).values():
        value = getattr(instance, field.name)
        metadata = field.metadata
        if "rule" not in metadata:
            continue
        if value is None and field.default is None and not metadata["required"]:
            continue
        rule, key = metadata["rule"], metadata["key"] or field.name
        if value is None and metadata["required"]:
            raise FieldError(field.name, None, "this argument is required", wrong=MISSING)
        if hasattr(value, "tolist") or isinstance(value, (list, tuple, dict)):
            value = _without_numpy(value)
            object.__setattr__(instance, field.name, value)
        try:
            if isinstance(value, (str, list, Mapping)):
                value = rule.read(value, key, None)
                object.__setattr__(instance, field.name, value)
            if not isinstance(value, Unresolved):
                rule.check(value, key)
        except FieldError as error:
            # if the error names the key of a scenario file, name the argument in Python instead
            raise error.of(field.name if error.field == key else error.field) from None
        quantity = isinstance(getattr(rule, "plain", rule), Quantity)
        if quantity and type(value) is not float and isinstance(value, Real):
            # 60 becomes 60.0, so that equal scenarios have the same fingerprint
            object.__setattr__(instance, field.name, float(value))


def _without_numpy(value: Any) -> Any:
    """Replace NumPy's numbers and arrays by Python's, also inside a list, tuple or dictionary."""
    if hasattr(value, "tolist") and not is_time_span(value):
        return value.tolist()
    if isinstance(value, list):
        return [_without_numpy(each) for each in value]
    if isinstance(value, tuple):
        return tuple(map(_without_numpy, value))
    if isinstance(value, dict):
        return {key: _without_numpy(each) for key, each in value.items()}
    return value


def resolve(part: T, where: str, sizes: Mapping[str, float], size: float) -> T:
    """Copy the dataclass object ``part``, and convert its texts that only lacked a packet size.

    For example, the buffer ``"20 kB"`` becomes 20 packets if the packet size is 1000 bytes. Text
    that also needs an RTT stays text. ``size`` is the packet size in bytes. ``sizes`` has other
    packet sizes for some fields, by the field's name. ``where`` is the place of ``part`` in the
    scenario, such as ``flow[1]``, for error messages.
    """
    changes: dict[str, Any] = {}
    for field in _fields(cast("Any", type(part))).values():
        value, key = getattr(part, field.name), field.metadata.get("key") or field.name
        if isinstance(value, Unresolved):  # text whose unit could not be converted so far
            place, packet_size = _join(where, key), sizes.get(field.name, size)
            number = field.metadata["rule"].read(str(value), place, packet_size)
            changes |= {} if isinstance(number, Unresolved) else {field.name: number}
        elif isinstance(value, Checked):  # a dataclass object inside this one, such as a queue
            rule, place = field.metadata["rule"], _join(where, key)
            tag = rule.tag(value) if isinstance(rule, OneOf) else ""
            settled = resolve(value, _join(place, tag) if tag else place, {}, size)
            if settled is not value:
                changes[field.name] = settled
    return evolve(part, changes, where) if changes else part


def evolve(part: T, changes: Mapping[str, Any], where: str) -> T:
    """Copy the dataclass object ``part`` with new values for the fields that ``changes`` names.

    Some defaults depend on other fields, so the copy computes all its defaults again. ``where`` is
    the place of ``part`` in the scenario, such as ``flow[1]``. An error then names the field's key
    with its place, such as ``flow[1].rtt``.
    """
    unset = dict.fromkeys(_filled_in(part))
    try:
        return cast("T", dataclasses.replace(cast("Any", part), **(unset | dict(changes))))
    except FieldError as error:
        # the error names only an argument, such as base_rtt: give it the key and place in the file
        raise error.of(_join(where, _key(part, error.field))) from None


def _filled_in(part: Any) -> Sequence[str]:
    """The names of the fields into which ``part`` has put defaults that depend on other fields.

    For example, the default of a flow's ``alpha`` depends on its ``variant``. Such an object lists
    these fields in its attribute ``_filled``. Most dataclasses have no such fields.
    """
    return getattr(part, "_filled", ())


def _key(part: Any, name: str) -> str:
    """The key in a scenario file of the field ``name`` of a dataclass or of an object of it.

    A name that is no field is returned unchanged.
    """
    field = part.__dataclass_fields__.get(name)
    return str((field and field.metadata.get("key")) or name)


def as_written(part: Any, name: str) -> Any:
    """The value of the field ``name`` of a dataclass object as a scenario file has it: "80 ms".

    It is for error messages about a value that was already converted. In a finished scenario, a
    value that was converted from text by means of a packet size, a capacity or RTTs is shown as
    that text. While a scenario is being made, these texts are not yet kept (``keep_texts``), and
    such a value has the field's unit. A number that needs no unit stays a number.
    """
    texts = getattr(part, "_texts", {})
    return texts[name] if name in texts else with_unit(of(type(part), name), getattr(part, name))


def with_unit(rule: Rule, value: Any) -> Any:
    """The value as a scenario file has it, by its field's ``rule``, without its rounding error."""
    number = isinstance(value, float)
    return rule.write(without_rounding_error(float(value)) if number else value)


def write_table(instance: Any) -> dict[str, Any]:
    """Convert a dataclass object to a TOML table, from which ``read`` makes an equal object.

    Fields that hold their default are left out.
    """
    table = {}
    defaults = _filled_in(instance)
    for field in dataclasses.fields(instance):
        value = getattr(instance, field.name)
        if value is None or field.name in defaults or value == field.default:
            continue
        table[field.metadata["key"] or field.name] = field.metadata["rule"].write(value)
    return table


def read(cls: type[T], table: object, where: str, packet_size: float | None, **given: Any) -> T:
    """Make an object of the dataclass ``cls`` from a TOML table.

    ``where`` is the place of the table for error messages.  ``packet_size`` is in bytes, or
    ``None`` if it is not known yet.  ``given`` holds the values of fields that the caller has
    already read.  Raises ``FieldError`` for a key that is unknown, missing or has a wrong value,
    and for values that contradict one another.
    """
    if not isinstance(table, Mapping):
        raise FieldError(where, table, "a table")
    fields = {f.metadata.get("key") or f.name: f for f in dataclasses.fields(cast("Any", cls))}
    for key in table:
        if key not in fields:
            raise FieldError(_join(where, key), key, instead(key, list(fields)), wrong=NO_KEY)
    values = dict(given)
    for key, field in fields.items():
        if field.name in given:
            continue
        if key in table:
            rule = cast("Rule", field.metadata["rule"])
            values[field.name] = rule.read(
                _without_numpy(table[key]), _join(where, key), packet_size
            )
        elif field.metadata["required"]:
            raise FieldError(_join(where, key), None, "this key is required", wrong=MISSING)
    try:
        return cls(**values)
    except FieldError as error:
        # the error names only an argument of ``cls``: give it the key and its place in the file
        raise error.of(_join(where, _key(cls, error.field))) from None


def _join(where: str, key: object) -> str:
    """The place of a key for error messages, such as ``flow[0].rtt``.

    ``where`` is the place of its table. A long or unprintable key is shortened or escaped.
    """
    text = key if isinstance(key, str) else repr(key)
    text = text if text.isprintable() and len(text) <= 60 else ascii(text)[:60]
    return f"{where}.{text}" if where else text


class Checked:
    """Base class of dataclasses that check each field against its rule when an object is made."""

    def __new__(cls, *values: object, **given: object) -> Self:
        """Raise ``FieldError`` for a keyword argument that is no field of the dataclass.

        The error names the field with the most similar name, if there is a similar one.
        """
        cls._check_order(values)
        known = _fields(cast("Any", cls))
        for name in given:
            if name not in known:
                wrong = f"is no argument of {cls.__name__}"
                raise FieldError(name, name, instead(name, list(known), "arguments"), wrong=wrong)
        return super().__new__(cls)

    @classmethod
    def _check_order(cls, values: tuple[object, ...]) -> None:
        """Do nothing; a subclass may raise ``FieldError`` if ``values`` are in a wrong order.

        ``values`` are the arguments that have no keyword.
        """

    def __post_init__(self) -> None:
        check(self)


class ShownAsCall(Checked):
    """A checked dataclass whose ``repr`` is the Python call that makes an equal object.

    In this call, numbers have their units, and fields that hold their default are left out. A
    number that was converted from text by means of a packet size, a capacity or RTTs is shown as
    that text. The call then makes an equal object as soon as it is a part of the same scenario.
    """

    _texts: ClassVar[Mapping[str, str]] = {}  # of an instance: such texts, by the field's name

    def __repr__(self) -> str:
        """The Python call, such as ``Link(capacity='10 Mbit/s', buffer='20 pkt')``."""
        texts = []
        for field in dataclasses.fields(cast("Any", self)):
            value = getattr(self, field.name)
            if value != field.default and field.name not in _filled_in(self):
                number = isinstance(value, (float, Unresolved))
                shown = field.metadata["rule"].write(value) if number else value
                texts.append(f"{field.name}={self._texts.get(field.name, shown)!r}")
        return f"{type(self).__name__}({', '.join(texts)})"


def keep_texts(converted: Checked, given: Checked) -> None:
    """Let the ``repr`` of ``converted`` show the texts that a user wrote in place of some numbers.

    ``given`` is a part of a scenario, such as a link, as the user gave it: some of its fields have
    texts such as ``"1 BDP"``. ``converted`` is the same part after these texts were converted to
    numbers. The texts are stored in its attribute ``_texts``, which ``ShownAsCall.__repr__`` and
    ``as_written`` read. Parts inside this part, such as a queue, are treated in the same way.
    """
    texts = {}
    for name in _fields(cast("Any", type(given))):
        before, after = getattr(given, name), getattr(converted, name)
        if isinstance(before, Unresolved):
            texts[name] = str(before)
        elif isinstance(before, ShownAsCall) and after is not before:
            keep_texts(after, before)
    if texts:
        object.__setattr__(converted, "_texts", texts)
