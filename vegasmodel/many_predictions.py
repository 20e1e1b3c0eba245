"""The class ``Batch``: the predictions of one model for many scenarios, which ``batch`` returns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vegasmodel.prediction import Prediction, of_errors, shown_rate
from vegasmodel.support.html_table import html_table
from vegasmodel.support.text_table import text_table

if TYPE_CHECKING:
    import pandas as pd


class Batch(tuple[Prediction, ...]):
    """The predictions of one model for many scenarios: a tuple that a notebook shows as a table.

    They are in the order of the scenarios, so ``batch[3]`` is the prediction for ``scenarios[3]``.
    A slice of a batch is a plain tuple.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        """One line: the model, the number of scenarios, and for how many there is no prediction."""
        if not self:
            return "<Batch of no scenario>"
        without = sum(not each.applicable for each in self)
        said = f", {without} without an answer" if without else ""
        return f"<Batch {self[0].model}: {len(self)} scenario{'s' * (len(self) > 1)}{said}>"

    def to_dataframe(self) -> pd.DataFrame:
        """One pandas table of all predictions, with one row per scenario and flow.

        The column ``scenario`` is the index of the scenario.  Scenarios for which the model has no
        prediction are left out.  The other columns are those of ``Prediction.to_dataframe``.
        """
        import pandas as pd

        frames = []
        for i, each in enumerate(self):
            if each.applicable:
                frame = each.to_dataframe()
                frame.insert(0, "scenario", i)
                frames.append(frame)
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()

    def to_json(self) -> list[dict[str, Any]]:
        """The predictions as plain data: a list in the order of the scenarios.

        An entry has the form of those in the list ``results`` of a command's JSON document.
        """
        return [each.to_json() for each in self]

    def table(self) -> str:
        """The predictions as text: a line for each scenario, which begins with its index.

        A line has the groups' throughputs, and the names of the model's assumptions that do not
        hold.  If there is no prediction, the line says why.
        """
        return text_table(*self._shown)

    def _repr_html_(self) -> str:
        return html_table(*self._shown)

    @property
    def _shown(self) -> tuple[str, list[str], list[list[str]]]:
        """The title, columns and rows of the predictions as a table."""
        names = list(dict.fromkeys(name for each in self for name in each.groups))
        rows = [
            [
                str(i),
                *(shown_rate(each, name) for name in names),
                ", ".join(a.name for a in each.broken) if each.applicable else str(each.reason),
            ]
            for i, each in enumerate(self)
        ]
        title = f"{self[0].model}: pkt/s per flow" if self else "no scenario"
        title += of_errors(self)
        return title, ["scenario", *names, "does not hold, or why there is no answer"], rows
