"""For a key that a user wrote into the wrong table of a scenario file, names the right table."""

from __future__ import annotations

import dataclasses
from typing import Any

from vegasmodel.fields.errors import NO_KEY, FieldError
from vegasmodel.queues import DISCIPLINES
from vegasmodel.scenario.parts import Flow, Link, Run

__all__ = ["tables_with", "with_its_table"]


def tables_with(key: object) -> str:
    """The tables of a scenario file that may have ``key``, such as ``[run]``; empty if none."""
    parts: dict[str, type[Any]] = {"[[link]]": Link, "[[flow]]": Flow, "[run]": Run}
    homes = [name for name, part in parts.items() if key in _keys(part)]
    kinds = [f'"{name}"' for name, part in DISCIPLINES.items() if key in _keys(part)]
    homes += [f"a link's queue with discipline = {' or '.join(kinds)}"] if kinds else []
    return " or ".join(homes)


def with_its_table(error: FieldError) -> FieldError:
    """An error that names the tables of a scenario file in which the wrong key is allowed.

    Returns ``error`` itself if it is not about an unknown key, or if no other table has such a key.
    """
    if error.wrong != NO_KEY:
        return error
    tables = tables_with(error.value)
    if not tables:
        return error
    return FieldError(error.field, error.value, f"it is a key of {tables}", wrong=error.wrong)


def _keys(part: type[Any]) -> list[str]:
    """The keys that a scenario file may have for a part of a scenario, such as ``Link``."""
    return [field.metadata["key"] or field.name for field in dataclasses.fields(part)]
