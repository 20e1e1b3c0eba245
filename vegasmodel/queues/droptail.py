"""Drop-tail, a first-in first-out queue: a packet that finds the buffer full is lost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from vegasmodel.fields.rules import Checked, Choice
from vegasmodel.fields.rules import declare as field


@dataclass(frozen=True)
class DropTail(Checked):
    """First in, first out; a packet that finds the buffer full is lost."""

    discipline: Literal["droptail"] = field(Choice(("droptail",)), "droptail")
