"""Drop-tail, a first-in first-out queue: a packet that finds the buffer full is lost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from vegasmodel.fields.checked import declare as field
from vegasmodel.fields.rules import Choice
from vegasmodel.queues.discipline import Discipline


@dataclass(frozen=True, repr=False)
class DropTail(Discipline):
    """A first-in first-out queue; a packet that finds the buffer full is lost."""

    discipline: Literal["droptail"] = field(Choice(("droptail",)), "droptail")
